"""Summaries of descriptions, and the numbers and dates in them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import Request, estimate_tokens
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.step_sections import SummarizeDescriptions
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Silent
from graphrag_index.steps import summarize_descriptions as summarize_step
from graphrag_index.steps.summarize_descriptions import (
    SUMMARY_FORMAT,
    SummaryPrompt,
    join_descriptions,
    summarize_descriptions,
)
from graphrag_index.storage.memo import join_batches
from tests.fixtures.examples import examples
from tests.fixtures.fake_model import EarlierTables, FakeChatModel, KeepingModel

LONG = [
    f"In the year {year} she wrote a letter to the Royal Society." for year in range(1840, 1850)
]


@dataclass
class Summarized:
    """What the step made of the tables, and what it asked."""

    entities: pl.DataFrame
    relationships: pl.DataFrame
    model: FakeChatModel
    tables: Mapping[str, pl.DataFrame]

    def asked(self) -> list[str]:
        return [request.messages[1]["content"] for request in self.model.asked]


def summarize(
    answer: Callable[[Request], Any],
    entities: list[list[str]],
    relationships: list[tuple[int, int, list[str]]] = [],  # noqa: B006
    max_prompt_tokens: int = 8_000,
    model: FakeChatModel | None = None,
    earlier: Mapping[str, pl.DataFrame] | None = None,
    **values: Any,
) -> Summarized:
    """Run the step on descriptions; entities are named E0, E1, ..."""
    place = {"document_id": "d", "start_char": 0, "end_char": 1}
    n = len(entities)
    extracted_entities = pl.DataFrame(
        {
            "human_readable_id": range(n),
            "title": [f"E{i}" for i in range(n)],
            "type": ["person"] * n,
            "description": [""] * n,
            "descriptions": entities,
            "description_text_units": [[i] * len(texts) for i, texts in enumerate(entities)],
            "types": [["person"]] * n,
            "text_units": [[i] for i in range(n)],
            "aliases": [["alias"]] * n,
            "evidence": [[place]] * n,
        },
        schema=TABLES["extracted_entities"].schema,
    )
    extracted_relationships = pl.DataFrame(
        [
            {
                **{
                    "source": source,
                    "target": target,
                    "type": "knows",
                    "weight": 7.0,
                    "description": "",
                },
                **{"descriptions": texts, "text_units": [0], "evidence": [place]},
                "description_text_units": [0] * len(texts),
            }
            for source, target, texts in relationships
        ],
        schema=TABLES["extracted_relationships"].schema,
    )
    model = model or FakeChatModel(answer, max_prompt_tokens)
    model.asked.clear()
    batches = summarize_descriptions(
        extracted_entities.lazy(),
        extracted_relationships.lazy(),
        settings=SummarizeDescriptions(**values),
        chat_model=model,
        prompts=Prompts(Path("no such project")),
        previous=EarlierTables(earlier),
        progress=Silent(),
    )
    tables = join_batches(batches, summarize_descriptions.writes)
    return Summarized(
        tables["described_entities"], tables["described_relationships"], model, tables
    )


def described(request: Request) -> dict[str, str]:
    """A summary that says how many descriptions it was made of."""
    lines = request.messages[1]["content"].split("\n- ")[1:]
    return {"description": f"Of {len(lines)}."}


def test_only_what_has_several_long_descriptions_is_summarized() -> None:
    found = summarize(
        described,
        [[], ["One\nas it is"], ["Short", "and sweet."], LONG],
        [(0, 1, []), (1, 2, ["Alone"]), (3, 1, LONG)],
    )
    assert found.entities["description"].to_list() == [
        *("", "One\nas it is", "Short. and sweet.", "Of 10.")
    ]
    place = {"document_id": "d", "start_char": 0, "end_char": 1}
    assert_frame_equal(
        found.relationships,
        pl.DataFrame(
            {
                "source": [0, 1, 3],
                "target": [1, 2, 1],
                "description": ["", "Alone", "Of 10."],
                "weight": [7.0] * 3,
                "text_units": [[0]] * 3,
                "evidence": [[place]] * 3,
                "type": ["knows"] * 3,
            },
            schema=TABLES["described_relationships"].schema,
        ),
    )
    entity, link = found.asked()
    assert entity.startswith("Entity: E3\nType: person\n\nDescriptions:\n- In the year 1840")
    assert link.startswith("Relationship: E3 → E1\nType: knows\n\nDescriptions:\n- ")


def test_empty_tables_stay_empty() -> None:
    found = summarize(described, [])
    assert found.entities.is_empty()
    assert found.relationships.is_empty()


def test_batches_do_not_change_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [["One."], ["Long " * 80, "Text " * 80], ["A.", "B."], [], ["C.", "Text " * 160]]
    entities = [texts[n % 5] for n in range(12)]
    links = [(n, n + 1, texts[(n + 2) % 5]) for n in range(11)]
    expected = summarize(described, entities, links)
    monkeypatch.setattr(summarize_step, "BATCH_ROWS", 3)
    monkeypatch.setattr(summarize_step, "ROW_GROUP_SIZE", 4)
    found = summarize(described, entities, links)
    assert 0 < len(found.model.asked) < found.tables["description_summaries"].height
    for name, rows in expected.tables.items():
        assert_frame_equal(found.tables[name], rows)


def test_how_much_is_joined_without_a_call_is_a_setting() -> None:
    assert len(summarize(described, [["A.", "B."]], max_tokens_without_call=0).model.asked) == 1
    none = summarize(described, [LONG], max_tokens_without_call=1_000)
    assert none.model.asked == []
    assert none.entities["description"].to_list() == [" ".join(LONG)]


def test_what_exceeds_the_budget_is_folded_with_the_summary_first() -> None:
    descriptions = [f"{text} {'And so on. ' * 5}{n}." for n, text in enumerate(LONG * 3)]
    summaries = iter(f"Summary {n}." for n in range(100))
    found = summarize(
        lambda request: {"description": next(summaries)}, [descriptions], max_input_tokens=400
    )
    asked = found.asked()
    assert len(asked) > 2
    for number, prompt in enumerate(asked[1:]):
        assert prompt.split("\n- ")[1] == f"Summary {number}."
    # Each description is shown, and shown once.
    shown = [line for prompt in asked for line in prompt.split("\n- ")[1:]]
    assert [line for line in shown if not line.startswith("Summary")] == descriptions
    assert found.entities["description"].to_list() == [f"Summary {len(asked) - 1}."]


def test_a_failed_request_leaves_the_descriptions() -> None:
    found = summarize(lambda request: None, [LONG, ["One.", "Two."]])
    assert found.entities["description"].to_list() == [" ".join(LONG), "One. Two."]


def test_a_failed_fold_leaves_the_summary_and_the_descriptions_that_it_lacks() -> None:
    descriptions = [f"{text} {'And so on. ' * 5}{n}." for n, text in enumerate(LONG)]
    replies = iter([{"description": "First."}, None])
    found = summarize(lambda request: next(replies), [descriptions], max_input_tokens=200)
    n_shown = len(found.asked()[0].split("\n- ")) - 1
    (description,) = found.entities["description"]
    rest = " ".join(["First.", *descriptions[n_shown:]])
    assert rest.startswith(description)
    assert description.startswith(f"First. {descriptions[n_shown]}")
    assert count_tokens(description, load_encoding("o200k_base")) <= 200


@pytest.mark.parametrize(
    "text", ["She wrote to London. ", "उसने लंदन को एक पत्र लिखा। ", "<|endoftext|> {entity} ## "]
)
def test_prompts_fit_models_with_a_small_window(text: str) -> None:
    encoding = load_encoding("o200k_base")
    texts = [f"{number} {text * 10}" for number in range(50)]
    found = summarize(described, [texts], max_prompt_tokens=800)
    assert len(found.model.asked) > 3
    for request in found.model.asked:
        assert sum(count_tokens(m["content"], encoding) for m in request.messages) <= 800
        # Before it is sent, its length is guessed.
        assert sum(estimate_tokens(m["content"]) for m in request.messages) <= 800


@pytest.mark.parametrize(
    "data", [{"description": " A\n b. "}, {"Summary": "A b."}, [{"description": "A b."}], "A b."]
)
def test_replies_are_read_with_liberties(data: Any) -> None:
    assert SUMMARY_FORMAT.read(data).value == (0, "A b.")


@pytest.mark.parametrize("data", [None, {}, [], {"description": ""}, {"error": "no"}, {"text": 3}])
def test_what_is_no_description_fails(data: Any) -> None:
    texts = [[*LONG]]
    found = summarize(lambda request: data, texts)
    assert found.entities["description"].to_list() == [" ".join(LONG)]


def test_joined_descriptions_are_sentences_and_each_is_there_once() -> None:
    assert join_descriptions(["A", "B.", "A", "丙。", "D!"]) == "A. B. 丙。 D!"
    assert join_descriptions(["As it is"]) == "As it is"
    assert join_descriptions([]) == ""


@examples(60)
@given(
    st.lists(st.text("ab é丙.{<|\n", min_size=1, max_size=300), min_size=2, max_size=12),
    st.integers(0, 5),
)
def test_prompts_stay_within_the_budget_whatever_is_described(texts: list[str], good: int) -> None:
    encoding = load_encoding("o200k_base")
    replies = iter([{"description": "丙" * 500 + "."}] * good)
    found = summarize(lambda request: next(replies, None), [texts], max_input_tokens=200)
    for prompt in found.asked():
        listed = prompt.partition("Descriptions:\n")[2]
        assert count_tokens(listed, encoding) <= 200 + 30


def test_descriptions_of_what_is_as_it_was_are_taken_from_the_last_run() -> None:
    others = [f"{text} And another." for text in LONG]
    model = KeepingModel(described)
    first = summarize(described, [LONG, others], [(0, 1, LONG)], model=model)
    assert len(first.asked()) == 3
    taken = {"model": model, "earlier": first.tables}
    grown = [others, ["Alone"], LONG, LONG[:9]]
    links = [(0, 1, LONG)]
    # What is named E0, has other descriptions, or joins others is another thing.
    second = summarize(described, grown, links, **taken)
    assert len(second.asked()) == 3
    rebuilt = summarize(described, grown, links, model=model)
    assert len(rebuilt.asked()) == 4
    for name, frame in second.tables.items():
        assert_frame_equal(frame, rebuilt.tables[name])
    third = summarize(described, grown, links, model=model, earlier=second.tables)
    assert third.asked() == []
    assert len(model.used) == 4 + 1
    # A reply that is another is read again, and so is everything by other settings or models.
    key = next(key for key in model.kept if "Entity: E2" in key)
    model.kept[key] = {"description": "Another."}
    changed = summarize(described, grown, links, model=model, earlier=third.tables)
    assert changed.entities["description"][2] == "Another."
    assert len(changed.asked()) == 1
    latest = {"model": model, "earlier": changed.tables}
    assert len(summarize(described, grown, links, **latest, max_words=20).asked()) == 4
    model.settings = ModelSettings(model="other")
    assert len(summarize(described, grown, links, **latest).asked()) == 4


def test_a_description_that_failed_is_asked_for_again() -> None:
    model = KeepingModel(lambda request: None)
    first = summarize(described, [LONG], model=model)
    assert first.entities["description"][0] == join_descriptions(LONG)
    model.function = described
    second = summarize(described, [LONG], model=model, earlier=first.tables)
    assert second.entities["description"].to_list() == ["Of 10."]


@given(st.lists(st.text(max_size=80), min_size=1, max_size=12), st.integers(300, 2_000))
def test_no_text_takes_more_than_is_guessed_without_counting(texts: list[str], room: int) -> None:
    section = SummarizeDescriptions(max_input_tokens=200)
    writing = SummaryPrompt(section, Prompts(Path("no such project")), room + 400)
    assert all(writing.budget.cost_of(text) <= writing.budget.max_cost_of(text) for text in texts)

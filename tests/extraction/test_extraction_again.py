"""What was found in text units that are as they were is taken from the last run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.llm.prompts import Prompts, find_quoted_texts
from graphrag_index.llm.request import Request
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.step_sections import ExtractGraph, Star
from tests.fixtures.examples import examples
from tests.fixtures.extraction import LINKS, NAMES, entity, link, named_in, reply, run_extract_graph
from tests.fixtures.fake_model import EarlierTables, KeepingModel

Tables = dict[str, pl.DataFrame]
ADA = "Ada Lovelace wrote to Charles Babbage."
GREY = "Lord Grey saw Ada  Lovelace, and ada lovelace saw him."
PUNCH = "The magazine Punch mocked BABBAGE."


class Ledger(KeepingModel):
    """Finds people by their names; fails where a text has a word."""

    def __init__(self) -> None:
        super().__init__(self._find)
        self.failing = ""

    def _find(self, request: Request) -> Any:
        text = request.messages[-1]["content"]
        if self.failing and self.failing in text:
            return None
        names = [
            name
            for name in ("Ada Lovelace", "Charles Babbage", "Lord Grey", "Punch")
            if name.split()[-1].lower() in text.lower()
        ]
        links = [link(a, b, "knows", f"{a} knows {b}.", 7.3) for a in names for b in names[:1]]
        people = [entity(name, "person", f"{name} in {len(text)}.") for name in names]
        return reply(*people, links=links)


def extract(
    model: KeepingModel,
    texts: list[str],
    earlier: Mapping[str, pl.DataFrame | pl.LazyFrame] | None = None,
    *,
    language: str = "en",
    headings: str = "",
    root: Path = Path("no such project"),
    settings: ExtractGraph | None = None,
    **values: Any,
) -> tuple[Tables, list[str]]:
    """Run the step, one document each; returns what it wrote, and the text units it read."""
    documents = pl.DataFrame(
        {
            "id": [f"document {n} {text}" for n, text in enumerate(texts)],
            "title": [text.split()[-1].strip(".") for text in texts],
            "path": "a.txt",
            "language": language,
            "metadata": None,
            "text": texts,
            "creation_date": "",
        },
        schema_overrides=dict.fromkeys(("id", "title", "metadata", "text"), pl.String),
    )
    units = pl.DataFrame(
        {
            "human_readable_id": range(len(texts)),
            "document_id": documents["id"],
            "start_char": [10 * n for n in range(len(texts))],
            "end_char": 0,
            "text": texts,
            "headings": headings,
            "reading": None,
        },
        schema_overrides={"text": pl.String, "reading": pl.String},
    )
    model.asked.clear()
    tables = run_extract_graph(
        units.lazy(),
        documents.lazy(),
        settings=settings or ExtractGraph(**values),
        chat_model=model,
        prompts=Prompts(root),
        previous=EarlierTables(earlier),
    )
    read = ["".join(find_quoted_texts(asked.messages[-1]["content"])) for asked in model.asked]
    return tables, read


def assert_same(one: Tables, other: Tables) -> None:
    for name in one:
        assert one[name].equals(other[name]), name


def test_only_new_text_units_are_read_and_the_tables_are_those_of_a_rebuild() -> None:
    model = Ledger()
    first, read = extract(model, [ADA, PUNCH])
    assert read == [ADA, PUNCH]
    assert model.used == []
    second, read = extract(model, [GREY, PUNCH, ADA], first)
    assert read == [GREY]
    # What is taken over rests on its replies as if they had been read.
    assert len(model.used) == 2
    assert set(model.used) == {
        str(r["request_keys"][0]) for r in first["text_unit_findings"].rows(named=True)
    }
    rebuilt, read = extract(model, [GREY, PUNCH, ADA])
    assert len(read) == 3
    assert_same(second, rebuilt)


def test_text_units_that_are_equal_or_all_gone() -> None:
    model = Ledger()
    first, _ = extract(model, [ADA, ADA])
    second, read = extract(model, [ADA, PUNCH, ADA, ADA], first)
    assert read == [PUNCH]
    assert_same(second, extract(model, [ADA, PUNCH, ADA, ADA])[0])
    third, read = extract(model, [], second)
    assert read == []
    assert not any(frame.height for frame in third.values())


def test_what_failed_is_asked_for_again_and_a_reply_that_is_another_is_read() -> None:
    model = Ledger()
    model.failing = "Punch"
    first, _ = extract(model, [ADA, PUNCH])
    model.failing = ""
    second, read = extract(model, [ADA, PUNCH], first)
    assert read == [PUNCH]
    key = next(key for key in model.kept if ADA in key)
    model.kept[key] = reply(entity("Ada Lovelace", "poet"))
    third, read = extract(model, [ADA, PUNCH], second)
    assert read == [ADA]
    assert third["extracted_entities"]["type"].to_list() == ["poet", "person", "person"]
    del model.kept[key]
    assert extract(model, [ADA, PUNCH], third)[1] == [ADA]


@pytest.mark.parametrize(
    "change",
    [
        {"language": "de"},
        {"headings": "Letters"},
        {"max_gleanings": 1},
        {"strict": True},
        {"star": Star()},
    ],
)
def test_another_text_unit_or_another_setting_takes_nothing_over(change: dict[str, Any]) -> None:
    model = Ledger()
    first, _ = extract(model, [ADA, PUNCH])
    changed, read = extract(model, [ADA, PUNCH], first, **change)
    assert set(read) >= {ADA, PUNCH}
    assert_same(changed, extract(model, [ADA, PUNCH], **change)[0])
    assert extract(model, [ADA, PUNCH], changed, **change)[1] == []


def test_after_types_were_added_what_was_found_is_taken_over_again() -> None:
    model, wanted = Ledger(), ["person", "place"]
    first, _ = extract(model, [ADA, GREY], entity_types=["person"])
    grown, read = extract(model, [ADA, GREY], first, entity_types=wanted)
    assert len(read) >= 2
    _, read = extract(model, [ADA, GREY], grown, entity_types=wanted)
    assert read == []
    whole, read = extract(model, [ADA, GREY, PUNCH], grown, entity_types=wanted)
    assert read == [PUNCH]
    # That a new text was asked for all types at once may be a change too: of one run.
    once, _ = extract(model, [ADA, GREY, PUNCH], whole, entity_types=wanted)
    _, read = extract(model, [ADA, GREY, PUNCH], once, entity_types=wanted)
    assert read == []
    anew, _ = extract(model, [ADA, GREY, PUNCH], entity_types=wanted)
    for name in ("extracted_entities", "extracted_relationships", "extracted_mentions"):
        assert whole[name].equals(anew[name])
    # Types that come and go are another question each time.
    _, read = extract(model, [ADA, GREY, PUNCH], whole, entity_types=["person"])
    assert read


def test_another_model_or_prompt_takes_nothing_over(tmp_path: Path) -> None:
    model = Ledger()
    first, _ = extract(model, [ADA])
    model.settings = ModelSettings(model="two")
    second, read = extract(model, [ADA], first)
    assert read == [ADA]
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/extract_graph.txt").write_text("Find names.", encoding="utf-8")
    assert extract(model, [ADA], second, root=tmp_path)[1] == [ADA]


def test_a_star_whose_key_is_another_is_made_again() -> None:
    model = Ledger()
    star = {"star": Star()}
    first, _ = extract(model, [ADA, PUNCH], **star)
    second, read = extract(model, [PUNCH, GREY], first, **star)
    assert read == [GREY]
    assert_same(second, extract(model, [PUNCH, GREY], **star)[0])


def test_a_table_of_another_program_is_left_alone() -> None:
    model = Ledger()
    first, _ = extract(model, [ADA])
    other = {"text_unit_findings": first["text_unit_findings"].drop("dropped")}
    assert extract(model, [ADA], other)[1] == [ADA]


UNITS = [
    "Ada Byron married William King in London.",
    "Charles Babbage came from Turin to the Great Exhibition in London with Ada Byron.",
    "The Royal Society has Charles Babbage and William King.",
    "In Turin Ada Byron was unknown.",
]


class RememberingModel(KeepingModel):
    """Finds known names, and remembers its replies and the schemas that were requested."""

    def __init__(self) -> None:
        super().__init__(lambda asked: named_in([said["content"] for said in asked.messages]))
        self.facts: dict[str, str] = {}

    def cached_values(self, request: Request) -> tuple[Any, ...]:
        said = self.kept.get(str(request.messages))
        return (request.format.read(said).value,) if said else ()

    def get_meta(self, name: str) -> str | None:
        return self.facts.get(name)

    def set_meta(self, name: str, value: str) -> None:
        self.facts[name] = value


def graph(tables: dict[str, pl.DataFrame]) -> tuple[Any, Any]:
    """What is known of each entity and relationship, by name."""
    entities = tables["extracted_entities"]
    titles = entities["title"].to_list()
    told = entities.select("title", "type", "text_units", pl.col("descriptions").list.sort())
    links = tables["extracted_relationships"].select(
        pl.col("source", "target").replace_strict(dict(enumerate(titles)), return_dtype=pl.String),
        "type", "weight", "descriptions", "text_units",
    )  # fmt: skip
    return sorted(told.rows()), sorted(links.rows())


wishes = st.builds(
    ExtractGraph,
    entity_types=st.lists(st.sampled_from(sorted(set(NAMES.values()))), unique=True),
    relationship_types=st.lists(
        st.sampled_from(sorted({kind for _, _, kind in LINKS})), unique=True
    ),
    strict=st.booleans(),
)


@examples(20)
@given(st.lists(st.tuples(st.integers(1, len(UNITS)), wishes), min_size=1, max_size=5))
def test_types_and_text_come_and_go_and_the_graph_is_that_of_the_last(
    changes: list[tuple[int, ExtractGraph]],
) -> None:
    model = RememberingModel()
    grown: dict[str, pl.DataFrame] = {}
    for n_units, wanted in changes:
        n_before = len(model.kept)
        grown, _ = extract(model, UNITS[:n_units], grown, settings=wanted)
        # One request for each text unit at most.
        assert len(model.kept) - n_before <= n_units
    n_units, wanted = changes[-1]
    assert graph(grown) == graph(extract(RememberingModel(), UNITS[:n_units], settings=wanted)[0])
    # From the replies alone the tables are the same, and nothing is asked.
    n_kept = len(model.kept)
    again, _ = extract(model, UNITS[:n_units], settings=wanted)
    assert len(model.kept) == n_kept
    assert all(again[name].equals(grown[name]) for name in grown)
    # And so they are from what was found before.
    taken, _ = extract(model, UNITS[:n_units], again, settings=wanted)
    assert all(again[name].equals(taken[name]) for name in again)


def test_a_type_that_is_taken_out_does_not_come_in_with_new_text() -> None:
    model = RememberingModel()
    tables, _ = extract(model, UNITS[:1], entity_types=["person", "place"])
    assert "London" in tables["extracted_entities"]["title"].to_list()
    # A model that gives places although nobody asks for them.
    model.answer = lambda request: named_in(
        [request.messages[0]["content"].replace("one of: person", "one of: place, person"),
         request.messages[1]["content"]]
    )  # fmt: skip
    tables, _ = extract(model, UNITS, entity_types=["person"])
    titles = tables["extracted_entities"]["title"].to_list()
    assert sorted(titles) == ["Ada Byron", "Charles Babbage", "William King"]
    # Where it never was in the list, it is the model's own.
    model.facts.clear()
    tables, _ = extract(model, UNITS, entity_types=["person"])
    assert "Turin" in tables["extracted_entities"]["title"].to_list()

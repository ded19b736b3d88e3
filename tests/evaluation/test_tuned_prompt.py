"""The parts of a proposed prompt: sample, types, examples, score and settings."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from graphrag_evaluation.statistics import Difference, Interval
from graphrag_evaluation.tuning.corpus_sample import (
    KnownEntity,
    KnownRecords,
    SampledPassage,
    choose_passages,
    extract_by_rules,
    read_index_records,
    sample_corpus,
)
from graphrag_evaluation.tuning.prompt_trial import (
    PENALTY_OF_1000_TOKENS,
    ReusingModel,
    score_reply,
)
from graphrag_evaluation.tuning.tuned_prompt import (
    PromptExample,
    choose_examples,
    compose_prompt,
    description_format,
    make_example,
    propose_types,
    split_prompt,
)
from graphrag_evaluation.tuning.tuning_run import Comparison, replace_entity_types
from graphrag_index.errors import SettingsError
from graphrag_index.extraction.graph_reply import FoundEntity, FoundRecords, FoundRelationship
from graphrag_index.llm.registry import Models
from graphrag_index.llm.request import Outcome
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.step_sections import ExtractGraphNlp
from graphrag_query.store.index_store import IndexStore
from tests.fixtures.chat_requests import request, words_of_text
from tests.model_server import Server

TEXT = "Tom Crean sailed with Ernest Shackleton. The Endurance sank."
PASSAGE = SampledPassage(0, "d", "d, characters 0 to 60", TEXT, 100, "en")
KNOWN = KnownRecords(
    (
        KnownEntity("Tom Crean", "person", ((0, 9),)),
        KnownEntity("Ernest Shackleton", "person", ((22, 39),)),
        KnownEntity("Endurance", "ship", ((45, 54),)),
    ),
    {(0, 1): (0, 40)},
)


def found(*names: str, link: bool = False) -> FoundRecords:
    links = (FoundRelationship(names[1], names[0]),) if link else ()
    return FoundRecords(tuple(FoundEntity(name, "person") for name in names), links)


def test_types_of_the_user_come_first_in_their_order() -> None:
    seen = [("PERSON", "a"), ("person", "b"), ("ship", "a"), ("ship", "b"), ("ship", "c")]
    seen += [("dog", "a"), ("name", "a"), ("name", "b"), ("Port", "a"), ("port", "a")]
    types = propose_types(["Sledge", "Person"], seen)
    # A dog and a port are in one passage only, and "name" means that the type is unknown.
    assert [(one.name, one.n_passages, one.is_given) for one in types] == [
        ("Sledge", 0, True),
        ("Person", 2, True),
        ("ship", 3, False),
    ]


@pytest.mark.parametrize(
    ("records", "parts", "missed"),
    [
        (found("Tom Crean", "Ernest Shackleton", link=True), (1, 1, 5 / 6), ["Endurance"]),
        (found("Tom Crean", "Roald Amundsen"), (1, 1 / 2, 1 / 6), None),
        (found("Crean"), (1, 1, 1 / 6), None),
        (FoundRecords(), (1, 0, 0), None),
    ],
)
def test_a_reply_is_scored_by_what_it_grounds_and_finds(
    records: FoundRecords, parts: tuple[float, ...], missed: list[str] | None
) -> None:
    score = score_reply(PASSAGE, Outcome("", (records,)), records, KNOWN, 0)
    assert (score.validity, score.grounded, score.recall) == pytest.approx(parts)
    assert score.total == pytest.approx(
        sum(parts) / 3 - PENALTY_OF_1000_TOKENS * score.n_tokens / 1_000
    )
    if missed is not None:
        assert list(score.missed) == missed
    longer = score_reply(PASSAGE, Outcome("", (records,)), records, KNOWN, 1_000)
    assert longer.total == pytest.approx(score.total - PENALTY_OF_1000_TOKENS)


def test_an_unreadable_reply_scores_nothing() -> None:
    score = score_reply(PASSAGE, Outcome("", failure="no JSON"), FoundRecords(), KNOWN, 0)
    assert score.total == 0
    assert score.failure == "no JSON"
    dropped = Outcome("", (found("Tom Crean"),), dropped=3)
    assert score_reply(PASSAGE, dropped, found("Tom Crean"), KNOWN, 0).validity == 1 / 4


def test_a_relationship_of_an_example_has_the_direction_of_the_reply() -> None:
    types = {"person": "person"}
    reply = found("Tom Crean", "Ernest Shackleton", link=True)
    ends = [
        (one["source"], one["target"])
        for found_records in (None, reply)
        if (example := make_example(PASSAGE, KNOWN, types, found_records))
        for one in example.relationships
    ]
    assert ends == [("Tom Crean", "Ernest Shackleton"), ("Ernest Shackleton", "Tom Crean")]


def test_examples_are_verbatim_passages_with_spans_in_their_document(sample_project: Path) -> None:
    store = IndexStore.open(sample_project / "output")
    sample = sample_corpus(store, 40, 17)
    texts = dict(store.scan("documents").select("id", "text").collect().iter_rows())
    types = {name: name for name in ("person", "geo", "event", "organization")}
    known = read_index_records(store, sample.tuning)
    examples = [
        example for one in sample.tuning if (example := make_example(one, known[one.key], types))
    ]
    assert len(examples) > 10
    for example in examples:
        text = texts[example.document]
        assert example.text in text
        reply = json.loads(example.reply)
        assert [one.text for one in example.names] == [one["name"] for one in reply["entities"]]
        for one in (*example.names, *example.evidence):
            assert text[one.start_char : one.end_char] == one.text
        names = {one.text for one in example.names}
        assert all({one["source"], one["target"]} <= names for one in reply["relationships"])


def example(document: str, *types: str, n_left_out: int = 0, text: str = "Text.") -> PromptExample:
    entities = tuple({"name": kind, "type": kind} for kind in types)
    links = ({"source": "a", "target": "b"},)
    return PromptExample(document, "", text, entities, links, (), (), n_left_out)


@pytest.mark.parametrize(
    ("candidates", "chosen"),
    [
        # Most types first, then other types of another document.
        (
            [example("a", "x"), example("b", "x", "y"), example("b", "z"), example("c", "z")],
            ["b", "c"],
        ),
        # One that leaves an entity out comes after all others.
        ([example("a", "x", "y", n_left_out=1), example("b", "x"), example("c", "x")], ["b", "c"]),
        ([example("a", "x", text="Long text. " * 400), example("b", "x")], ["b"]),
        # On a tie, the shorter one.
        ([example("a", "x", text="A longer text."), example("b", "x")], ["b", "a"]),
        ([], []),
    ],
)
def test_examples_show_most_types_of_different_documents(
    candidates: list[PromptExample], chosen: list[str]
) -> None:
    assert [one.document for one in choose_examples(candidates)] == chosen


@pytest.mark.parametrize(
    ("mean", "p", "is_better"), [(0.2, 0.04, True), (0.2, 0.06, False), (-0.2, 0.01, False)]
)
def test_a_prompt_is_better_by_more_than_chance(mean: float, p: float, is_better: bool) -> None:
    difference = Difference(Interval(mean, mean, mean, 9), p, 0.1, 9)
    assert Comparison("a file", (), (), difference).is_better is is_better
    assert not Comparison("a file", (), (), None).is_better


def test_a_passage_with_braces_is_no_example() -> None:
    types = {"person": "person"}
    assert make_example(PASSAGE, KNOWN, types) is not None
    braces = SampledPassage(0, "d", "", f"{TEXT} {{{{name}}}}", 0, "en")
    assert make_example(braces, KNOWN, types) is None
    assert make_example(PASSAGE, KNOWN, {"person": "{{person}}"}) is None


def test_the_sample_covers_documents_and_splits_them(sample_project: Path) -> None:
    store = IndexStore.open(sample_project / "output")
    sample = sample_corpus(store, 40, 17)
    assert sample == sample_corpus(store, 40, 17)
    assert sample != sample_corpus(store, 40, 18)
    tuning, held_out = ([one.document for one in half] for half in (sample.tuning, sample.held_out))
    assert (len(tuning), len(held_out)) == (20, 20)
    # There are more documents than passages: each passage is of another one.
    assert len({*tuning, *held_out}) == 40


def test_the_linguistic_extractor_serves_where_the_index_has_no_such_records(
    sample_project: Path,
) -> None:
    store = IndexStore.open(sample_project / "output")
    passages = sample_corpus(store, 6, 17).tuning
    records = extract_by_rules(store, passages, ExtractGraphNlp())
    for passage in passages:
        entities = records[passage.key].entities
        assert entities
        for entity in entities:
            assert any(passage.text[slice(*span)] == entity.name for span in entity.spans)


def test_a_later_tuning_replaces_the_sections_of_an_earlier_one() -> None:
    about = "# About these documents\nShips."
    prompt = compose_prompt("Find names.", about, [])
    assert prompt == "Find names.\n\n# About these documents\nShips.\n"
    assert compose_prompt(split_prompt(prompt), about, []) == prompt


def test_each_language_and_each_kind_of_text_is_in_the_sample() -> None:
    # Document a has two passages alike, and one of another kind.
    vectors = np.array([[1, 0], [1, 0], [0, 1], [1, 0], [0, 1]], np.float32)
    owners, codes = ["a", "a", "a", "b", "c"], ["en", "en", "en", "en", "de"]
    pool = pl.DataFrame(
        {
            "human_readable_id": range(5),
            "document_id": owners,
            "language": codes,
            "text": [f"text {n}" for n in range(5)],
            "start_char": [0] * 5,
            "end_char": [6] * 5,
            "headings": [""] * 5,
            "title": owners,
            "path": owners,
        }
    )
    for seed in range(10):
        chosen = choose_passages(pool, vectors, {"a", "b", "c"}, 3, seed)
        assert [one.document for one in chosen if one.language == "de"] == ["c"]
        assert {one.document for one in chosen} == {"a", "b", "c"}
        alone = choose_passages(pool, vectors, {"a"}, 2, seed)
        assert len({int(vectors[one.number][0]) for one in alone}) == 2
        everything = choose_passages(pool, vectors, {"a", "b"}, 9, seed)
        assert sorted(one.number for one in everything) == [0, 1, 2, 3]


def test_a_described_type_needs_a_name_in_a_passage() -> None:
    ship = {"name": "ship", "names": ["Endurance"]}
    invented = {"name": "submarine", "names": ["Nautilus"]}
    reply = description_format([PASSAGE]).read({"domain": "Ships.", "types": [ship, invented, 3]})
    assert reply.value.types == (("ship", PASSAGE.key),)
    assert reply.dropped == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "workflow: fast",
        "extract_graph:\n",
        "extract_graph:\n  # entity_types: []\noutput: out\n",
        "# top\nextract_graph:\n    max_gleanings: 1 # more\noutput: out\n",
        "extract_graph: {strict: true}\n",
        "extract_graph: {}\n",
        "extract_graph:\n  entity_types: [a, b] # mine\n  strict: true\n",
        "extract_graph:\n  entity_types:\n    - a\n    - b\n  strict: true\n",
        "extract_graph:\n  entity_types:\n  - a\n\noutput: out\n",
        "extract_graph:\n  strict: true\n  entity_types:\n",
    ],
)
def test_the_types_are_set_and_the_rest_of_the_settings_is_kept(text: str) -> None:
    types = ["ship", "Schiff: groß"]
    edited = replace_entity_types(text, types)
    before, after = (yaml.safe_load(part) or {} for part in (text, edited))
    assert after["extract_graph"].pop("entity_types") == types
    (before.get("extract_graph") or {}).pop("entity_types", None)
    assert after == {**before, "extract_graph": before.get("extract_graph") or {}}
    comments = [
        line for line in text.splitlines() if "#" in line and "entity_types: [a" not in line
    ]
    assert all(line in edited for line in comments)


def test_settings_that_cannot_be_edited_are_told() -> None:
    text = "one: &x {strict: true}\nextract_graph: *x\n"
    with pytest.raises(SettingsError, match="write extract_graph"):
        replace_entity_types(text, ["ship"])


def test_replies_of_the_index_are_not_paid_for_again(tmp_path: Path, model_server: Server) -> None:
    model_server.answer = words_of_text
    chat = ModelSettings(base_url=model_server.url, model="test-model")

    def ask(folder: str, *texts: str) -> list[Any]:
        with closing(Models({"chat": chat}, tmp_path / folder, check=False)) as models:
            model = ReusingModel(models.open_chat_model("chat", "step"), tmp_path / "index")
            return [outcome.values[0] for outcome in model.replies(map(request, texts))]

    assert ask("index", "a b") == [["a", "b"]]
    assert ask("tuning", "a b", "c") == [["a", "b"], ["c"]]
    # Then the ledger of the tuning has both.
    (tmp_path / "index").rename(tmp_path / "gone")
    assert ask("tuning", "a b", "c") == [["a", "b"], ["c"]]
    assert len(model_server.requests) == 2

"""The parts of a proposed prompt: sample, types, examples and text."""

import json
from pathlib import Path

import numpy as np
import pytest

from graphrag_evaluation.tuned_prompt import (
    PromptExample,
    SampledPassage,
    choose_examples,
    choose_rows,
    compose_prompt,
    description_format,
    make_example,
    propose_types,
    read_index_records,
    sample_corpus,
)
from graphrag_index.extraction.alignment import Passage
from graphrag_index.extraction.graph_reply import FoundEntity, FoundRecords, FoundRelationship
from graphrag_query.store.index_store import IndexStore


def passage(text: str, source: str = "") -> SampledPassage:
    label, one = "d, characters 0 to 60", Passage(text, "en")
    return SampledPassage(7, "d", label, 100, "", one, source or text)


TEXT = "Tom Crean sailed with Ernest Shackleton. The Endurance sank."
PASSAGE = passage(TEXT)
FOUND = FoundRecords(
    (
        FoundEntity("Tom Crean", "Person"),
        FoundEntity("Ernest Shackleton", "person", "A leader."),
        FoundEntity("Roald Amundsen", "person"),
        FoundEntity("Endurance", "ship"),
    ),
    (
        FoundRelationship("Ernest Shackleton", "Tom Crean", "led"),
        FoundRelationship("Tom Crean", "Endurance"),
    ),
)


def test_types_of_the_user_come_first_in_their_order() -> None:
    seen = [("PERSON", 1), ("person", 2), ("ship", 1), ("ship", 2), ("ship", 3)]
    seen += [("dog", 1), ("name", 1), ("name", 2), ("Port", 1), ("port", 1)]
    types = propose_types(["Sledge", "Person"], seen, 2)
    # A dog and a port are in one passage only, and "name" means that the type is unknown.
    assert list(types.items()) == [("Sledge", 0), ("Person", 2), ("ship", 3)]


def test_an_example_has_names_of_the_passage_and_wanted_types_only() -> None:
    example = make_example(PASSAGE, FOUND, ["person"])
    assert example is not None
    assert [one["name"] for one in example.entities] == ["Tom Crean", "Ernest Shackleton"]
    assert [(one["source"], one["target"], one["type"]) for one in example.relationships] == [
        ("Ernest Shackleton", "Tom Crean", "led")
    ]
    assert example.n_left_out == 2
    assert json.loads(example.reply)["entities"][0]["type"] == "person"
    assert make_example(PASSAGE, FOUND, ["ship"]) is None


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("Tom Crean sailed.", "Tom Crean sailed."),
        ("He sailed with Tom Crean of Kerry.", "He sail-\ned with Tom\n  Crean of Ker-\nry."),
        ("| Name |\n|---|\n| Tom Crean |", "| Tom Crean |"),
        ("| Na-me |\n|---|\n| Tom Crean, sea-man |", "| Tom Crean, sea\u00adman |"),
    ],
)  # fmt: skip
def test_places_of_the_index_are_found_in_what_the_model_reads(text: str, source: str) -> None:
    one = passage(text, source)
    start = 100 + source.index("Tom")
    end = 100 + source.index("Crean") + len("Crean")
    assert text[slice(*one.find_span(start, end))] == "Tom Crean"
    assert one.find_span(90, 99) == one.find_span(start, 100 + len(source) + 1) == (0, 0)


def test_examples_are_verbatim_passages_of_their_document(sample_project: Path) -> None:
    store = IndexStore.open(sample_project / "output")
    passages = sample_corpus(store, 20, 17)
    texts = dict(store.scan("documents").select("id", "text").collect().iter_rows())
    known = read_index_records(store, passages)
    types = ("person", "geo", "event", "organization")
    made = [make_example(one, known[one.number], types) for one in passages]
    examples = [example for example in made if example]
    assert len(examples) > 10
    for example in examples:
        assert example.text in texts[example.document]
        names = {one["name"] for one in example.entities}
        assert all(name in example.text for name in names)
        assert all({one["source"], one["target"]} <= names for one in example.relationships)
        assert all(one["description"] for one in (*example.entities, *example.relationships))


def example(document: str, *types: str, n_left_out: int = 0, text: str = "Text.") -> PromptExample:
    entities = tuple({"name": kind, "type": kind} for kind in types)
    links = ({"source": "a", "target": "b"},)
    return PromptExample(document, text, entities, links, n_left_out)


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


def test_a_passage_with_braces_is_no_example() -> None:
    assert make_example(passage(f"{TEXT} {{{{name}}}}"), FOUND, ["person"]) is None


def test_the_sample_covers_documents(sample_project: Path) -> None:
    store = IndexStore.open(sample_project / "output")
    first, again, other = (
        [(one.number, one.document) for one in sample_corpus(store, 40, seed)]
        for seed in (17, 17, 18)
    )
    assert first == again != other
    # There are more documents than passages: each passage is of another one.
    assert len({document for _, document in first}) == 40


def test_each_document_and_each_kind_of_text_is_in_the_sample() -> None:
    # Document a has two passages alike, and one of another kind; two texts are equal.
    vectors = np.array([[1, 0], [1, 0], [0, 1], [1, 0], [0, 1]], np.float32)
    documents, texts = ["a", "a", "a", "b", "c"], ["one", "two", "three", "four", "four"]
    for seed in range(10):
        chosen = choose_rows(documents[:4], texts[:4], vectors[:4], 2, seed)
        assert {documents[row] for row in chosen} == {"a", "b"}
        alone = choose_rows(documents[:3], texts[:3], vectors[:3], 2, seed)
        assert len({int(vectors[row][0]) for row in alone}) == 2
        everything = choose_rows(documents, texts, vectors, 9, seed)
        assert sorted({texts[row] for row in everything}) == ["four", "one", "three", "two"]
        assert len(everything) == 4


def test_a_later_tuning_replaces_the_sections_of_an_earlier_one() -> None:
    about = "# About these documents\nShips."
    prompt = compose_prompt("Find names.", about, [])
    assert prompt == "Find names.\n\n# About these documents\nShips.\n"
    assert compose_prompt(prompt, about, []) == prompt


def test_a_described_type_needs_a_name_in_a_passage() -> None:
    ship = {"name": "ship", "names": ["Endurance"]}
    invented = {"name": "submarine", "names": ["Nautilus"]}
    reply = description_format([PASSAGE]).read({"domain": "Ships.", "types": [ship, invented, 3]})
    assert reply.value.types == (("ship", 7),)
    assert reply.dropped == 2

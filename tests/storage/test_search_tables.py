from collections.abc import Sequence

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from graphrag_index.storage import search_tables
from graphrag_index.storage.search_tables import pair_text_units_with_entities

MENTIONS = {"text_unit": pl.Int32, "entity": pl.Int32, "start_char": pl.Int32}
UNIT_LENGTH = 1_000  # characters from one text unit to the next
PAIRS = {"text_unit": pl.Int32, "entity": pl.Int32, "about": pl.Boolean}


def told_about(
    mentions: Sequence[tuple[int, int] | tuple[int, int, int]],
    entities: list[tuple[str, list[str]]],
    documents: dict[str, list[str]],
    kind: str = "person",
) -> list[tuple[int, int, bool]]:
    """Link entities with aliases to documents with the headings of their text units.

    A mention is at the beginning of its text unit, or as many characters after it as it says.
    """
    units = [(title, headings) for title, units in documents.items() for headings in units]
    links = pair_text_units_with_entities(
        pl.LazyFrame(
            [(unit, entity, UNIT_LENGTH * unit + sum(at)) for unit, entity, *at in mentions],
            schema=MENTIONS,
            orient="row",
        ),
        pl.LazyFrame(
            [(number, *entity, kind) for number, entity in enumerate(entities)],
            schema={
                "human_readable_id": pl.Int64,
                "title": pl.String,
                "aliases": pl.List(pl.String),
                "type": pl.String,
            },
            orient="row",
        ),
        pl.LazyFrame(
            [(number, UNIT_LENGTH * number, *unit) for number, unit in enumerate(units)],
            schema={
                "human_readable_id": pl.Int64,
                "start_char": pl.Int64,
                "document_id": pl.String,
                "headings": pl.String,
            },
            orient="row",
        ),
        pl.LazyFrame({"id": list(documents), "title": list(documents)}),
        pl.LazyFrame(schema={"name": pl.String, "document": pl.Int32}),
    )
    pairs = pl.concat(links).drop("n_mentions")
    assert_frame_equal(pairs, pl.DataFrame(pairs.rows(), schema=PAIRS, orient="row"))
    return pairs.rows()


def test_a_text_unit_is_about_the_entity_of_its_title() -> None:
    entities: list[tuple[str, list[str]]] = [("Discovery", []), ("Crean", ["Tom Crean"])]
    documents = {"Tom Crean": [""], "Discovery (ship)": [""]}
    mentions = [(0, 0), (0, 1), (1, 1), (1, 0), (1, 0)]
    assert told_about(mentions, entities, documents) == [
        *((0, 0, False), (0, 1, True)),
        *((1, 0, True), (1, 1, False)),
    ]


def test_the_title_counts_with_its_brackets_too() -> None:
    entities: list[tuple[str, list[str]]] = [("Frank", []), ("Bishop (of York)", [])]
    assert told_about([(0, 0), (0, 1)], entities, {"BISHOP (of York)": [""]}) == [
        (0, 0, False),
        (0, 1, True),
    ]


def test_a_text_unit_is_about_the_entities_of_its_headings() -> None:
    entities: list[tuple[str, list[str]]] = [("Scott", []), ("Cape Evans", []), ("Terra Nova", [])]
    documents = {"log.txt": ["Cape Evans > Terra Nova's crew", "Cape Évans"]}
    assert told_about([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)], entities, documents) == [
        *((0, 0, False), (0, 1, True), (0, 2, False)),
        *((1, 0, False), (1, 1, True)),
    ]


def test_without_title_or_heading_a_text_unit_is_about_the_name_it_begins_with() -> None:
    entities: list[tuple[str, list[str]]] = [("Ahab", []), ("Starbuck", [])]
    mentions = [(0, 1, 12), (0, 0, 40), (1, 0), (1, 1, 9), (2, 0, 13), (2, 1, 20)]
    assert told_about(mentions, entities, {"moby.txt": ["", "", ""]}) == [
        *((0, 0, False), (0, 1, True)),
        *((1, 0, True), (1, 1, False)),
        *((2, 0, False), (2, 1, False)),
    ]


def test_below_headings_the_first_name_may_stand_anywhere() -> None:
    entities: list[tuple[str, list[str]]] = [("Ahab", []), ("Starbuck", [])]
    mentions = [(0, 1, 30), (0, 0, 40)]
    assert told_about(mentions, entities, {"moby.txt": ["The cabin"]}) == [
        *((0, 0, False), (0, 1, True))
    ]


def test_a_full_name_at_the_beginning_also_tells_of_the_short_name() -> None:
    entities = [("Ada Mary King", ["A. M. King"]), ("Ada King", []), ("Ada Mary Byron", [])]
    documents = {"a.txt": ["", ""], "Ada Mary King": [""], "Ada King": [""]}
    mentions = [(0, 0), (0, 2, 30), (1, 2), (1, 0, 30), (2, 0), (3, 0)]
    expected = [
        *((0, 0, True), (0, 1, True), (0, 2, False)),
        *((1, 0, False), (1, 2, True)),
        (2, 0, True),
        *((3, 0, False), (3, 1, True)),
    ]
    assert told_about(mentions, entities, documents) == expected
    # Only persons have middle names.
    expected.remove((0, 1, True))
    assert told_about(mentions, entities, documents, kind="place") == expected


def test_a_document_begins_with_the_entity_of_its_title() -> None:
    entities: list[tuple[str, list[str]]] = [("Tom Crean", []), ("Annascaul", [])]
    documents = {"Tom Crean": ["", ""], "empty": [""]}
    assert told_about([(0, 1), (1, 1)], entities, documents) == [
        *((0, 0, True), (0, 1, False)),
        (1, 1, True),
    ]


def test_the_size_of_batches_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    entities: list[tuple[str, list[str]]] = [("Ahab", []), ("Starbuck", []), ("Pequod", [])]
    documents = {"Pequod": ["", "Ahab", ""], "letter": ["", ""], "Starbuck": [""]}
    mentions = [(0, 1), (0, 0), (0, 1), (1, 2), (3, 1), (3, 0), (4, 0), (4, 0), (4, 1)]
    expected = told_about(mentions, entities, documents)
    for size in (1, 2, 3, 8):
        monkeypatch.setattr(search_tables, "LINKS_PER_BATCH", size)
        assert told_about(mentions, entities, documents) == expected
    assert len(expected) == 9


def test_no_mentions_give_no_pairs() -> None:
    assert told_about([], [], {"empty": [""]}) == []

"""A small index with every table that an export of the graph reads."""

from pathlib import Path
from typing import Any

import polars as pl

from graphrag_index.export.exported_graph import Filters, Graph, select_graph
from graphrag_index.storage.table_store import TableStore
from tests.index.small_index import table, write_index

# Whatever a form uses to mark where a text ends.
NASTY = [
    "\"quoted\" 'single' `back` \\ \\\\ \\n \\u0041 \\",
    "first\nsecond\r\nthird\rfourth\tfifth",
    "<b>&amp;&#10;</b> ]]> <![CDATA[ <!-- --> <?xml?>",
    "a;b,c|d; // no comment /* */ -- {x: 1} $y",
    "NUL \x00, bell \x07, escape \x1b, delete \x7f, next line \x85, \ufffe \uffff",
    "emoji 👩‍🚀 𝄞, accents é, Arabic العربية, \u2028 \u2029 \u202e",
    " leading and trailing ",
    "",
]


def entities(texts: list[str]) -> pl.DataFrame:
    """One entity a text, all of the type thing, each with the next as its neighbour."""
    rows = [
        {
            "id": f"e{i}",
            "human_readable_id": i,
            "title": text,
            "type": "thing",
            "description": text[::-1],
            "aliases": [text, "plain"],
            "text_unit_ids": ["t0"],
        }
        for i, text in enumerate(texts)
    ]
    return table("entities", *rows)


def relationships(texts: list[str]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = [
        {
            "id": f"r{i}",
            "human_readable_id": i,
            "source_id": f"e{i}",
            "target_id": f"e{(i + 1) % len(texts)}",
            "description": text,
            "type": text,
            "weight": 1.5,
            "text_unit_ids": ["t0"],
        }
        for i, text in enumerate(texts)
    ]
    return table("relationships", *rows)


def write_nasty_index(output: Path) -> Path:
    """Write an index all of whose texts are `NASTY`."""
    every = "".join(NASTY)
    unit = {"id": "t0", "text": every, "document_id": "d0", "headings": NASTY[0]}
    return write_index(
        output,
        entities=entities(NASTY),
        relationships=relationships(NASTY),
        documents=table("documents", {"id": "d0", "title": every, "path": NASTY[2]}),
        text_units=table("text_units", unit),
        communities=table("communities", {"id": "c0", "title": "-", "entity_ids": ["e0"]}),
        community_reports=table("community_reports", {"title": every, "summary": NASTY[1]}),
    )


def write_small_index(output: Path) -> Path:
    """Write four entities in three communities; a relationship leads to an unknown one.

    Ann and Bob are persons and Cee an office, linked in a row; Dee, a place, is alone.
    Level 0 has the communities 0 (Ann, Bob, Cee) and 1 (Dee), level 1 has 2 (Ann, Bob).
    """
    people: list[dict[str, Any]] = [
        {"id": "a", "title": "Ann", "type": "person", "degree": 1, "x": 0.25, "y": -0.5},
        {"id": "b", "title": "Bob", "type": "person", "degree": 2, "text_unit_ids": ["t0", "t1"]},
        {"id": "c", "title": "Cee", "type": "Office", "degree": 1, "text_unit_ids": ["t1", "gone"]},
        {"id": "d", "title": "Dee", "type": "place", "x": None, "y": None},
    ]
    people[0] |= {"text_unit_ids": ["t0"], "aliases": ["Annie", "A; B"], "frequency": 1}
    links = [
        {"id": "ab", "source_id": "a", "target_id": "b", "weight": 2.0, "type": "knows"},
        {"id": "bc", "source_id": "b", "target_id": "c", "weight": 0.5, "description": "paid"},
        {"id": "ax", "source_id": "a", "target_id": "nobody", "weight": 1.0},
    ]
    links[0]["text_unit_ids"] = ["t0", "t1"]
    groups: list[dict[str, Any]] = [
        {"id": "c0", "community": 0, "parent": -1, "entity_ids": ["a", "b", "c"], "size": 3},
        {"id": "c1", "community": 1, "parent": -1, "entity_ids": ["d", "nobody"], "island": True},
        {"id": "c2", "community": 2, "level": 1, "parent": 0, "entity_ids": ["a", "b"]},
    ]
    units = [
        {"id": "t0", "text": "Ann knows Bob.", "document_id": "d0"},
        {"id": "t1", "text": "Bob paid Cee.", "document_id": "d1"},
        {"id": "t2", "text": "Nothing.", "document_id": "nowhere"},
    ]
    papers = [{"id": f"d{i}", "title": f"{i}.txt", "path": f"{i}.txt"} for i in range(3)]
    report = {"community": 0, "title": "Money", "summary": "Bob paid.", "rank": 7.5}
    return write_index(
        output,
        entities=table("entities", *numbered(people)),
        relationships=table("relationships", *numbered(links)),
        communities=table("communities", *numbered(groups)),
        text_units=table("text_units", *numbered(units)),
        documents=table("documents", *numbered(papers)),
        community_reports=table("community_reports", report),
    )


def numbered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"human_readable_id": number, **row} for number, row in enumerate(rows)]


def graph_of(output: Path, **filters: Any) -> Graph:
    store = TableStore(output)
    version = store.read_pointer()
    assert version is not None
    return select_graph(store, version, Filters(**filters))

"""Graphs compared with references whose answers are known."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_evaluation.graph_quality.marked_passages import (
    MarkedEntity,
    MarkedPassage,
    build_marked_graph,
)
from graphrag_evaluation.graph_quality.reference import (
    Reference,
    compare_with_reference,
    open_marked_file,
)
from graphrag_evaluation.graph_quality.reference_comparison import (
    ReferenceComparison,
    compare_graphs,
)
from graphrag_evaluation.statistics import f1_interval
from graphrag_index.errors import InputError
from graphrag_index.health.checked_index import CheckedIndex
from tests.fixtures.commands import Call
from tests.fixtures.literal_index import make_index, means

SHIP = "Émile Racoviță sailed on the Belgica. Cook was the surgeon."
ISLAND = "Cook photographed penguins near Brabant Island."


def voyage() -> CheckedIndex:
    """Two documents of one text unit each; "rain" is a noun phrase that no text names."""
    mentions = [
        *((0, 0, 0, 14), (1, 0, 29, 36), (2, 0, 38, 42)),
        *((2, 1, 0, 4), (3, 1, 32, 46), (4, 1, 18, 26)),
    ]
    types = ["person", "ship", "person", "person", "noun phrase"]
    titles = ["Emile Racovita", "Belgica", "Frederick Cook", "Brabant Island", "penguins"]
    units = [["u0"], ["u0"], ["u0", "u1"], ["u1"], ["u1"]]
    links = [(0, 1, "u0", 0, 37), (0, 2, "u0", 0, 60), (2, 3, "u1", 0, 47), (2, 4, "u1", 0, 47)]
    return make_index(
        documents=[
            {"id": "d0", "path": "ship.txt", "title": "Ship", "text": SHIP},
            {"id": "d1", "path": "island.txt", "title": "Island", "text": ISLAND},
        ],
        text_units=[
            {"id": "u0", "document_id": "d0", "text": SHIP},
            {"id": "u1", "document_id": "d1", "text": ISLAND},
        ],
        entities=[
            {
                "id": f"e{n}",
                "title": titles[n],
                "type": types[n],
                "aliases": ["Cook"] if n == 2 else [],
                "text_unit_ids": units[n],
            }
            for n in range(5)
        ],
        mentions=[
            {"entity": entity, "text_unit": unit, "start_char": start, "end_char": end}
            for entity, unit, start, end in mentions
        ],
        relationships=[
            {
                "source_id": f"e{source}",
                "target_id": f"e{target}",
                "source": titles[source],
                "target": titles[target],
                "text_unit_ids": [unit],
                "evidence": [{"document_id": f"d{unit[1]}", "start_char": a, "end_char": b}],
            }
            for source, target, unit, a, b in links
        ],
    )


def as_microsoft_writes(index: CheckedIndex) -> CheckedIndex:
    """Return the same index without the columns and tables that only ours has."""
    left_out = {
        "documents": ["path"],
        "entities": ["aliases"],
        "relationships": ["source_id", "target_id", "evidence"],
    }
    tables = {name: rows.drop(left_out.get(name, [])) for name, rows in index.tables.items()}
    del tables["mentions"]
    names = pl.Series("title", ["ship.txt", "island.txt"])
    tables["documents"] = tables["documents"].with_columns(names, pl.col("id") + " of theirs")
    units = pl.col("document_id") + " of theirs"
    tables["text_units"] = tables["text_units"].with_columns(units)
    upper = pl.col("title").str.to_uppercase()
    tables["entities"] = tables["entities"].with_columns(upper, pl.col("type").str.to_uppercase())
    ends = pl.col("source", "target").str.to_uppercase()
    tables["relationships"] = tables["relationships"].with_columns(ends)
    return CheckedIndex(Path("theirs"), "another program", None, tables)


def mark(title: str, kind: str = "", **more: Any) -> dict[str, Any]:
    """Return an entity of a file of marked passages."""
    return {"title": title, **({"type": kind} if kind else {}), **more}


def compare(index: CheckedIndex, tmp_path: Path, *lines: dict[str, Any]) -> ReferenceComparison:
    path = tmp_path / "marks.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return compare_with_reference(index, open_marked_file(path), 17)


def test_marked_documents_are_compared_by_name_type_and_pair(tmp_path: Path) -> None:
    found = compare(
        voyage(),
        tmp_path,
        {
            "document": "ship.txt",
            "entities": [
                mark("Émile Racoviță", "person"),
                mark("Belgica", "vessel"),
                mark("surgeon", "person"),
            ],
            "relationships": [["Belgica", "Émile Racoviță"], ["Belgica", "surgeon"]],
        },
        {
            "document": "Island",
            "entities": [
                mark("Cook", "person"),
                mark("Brabant Island", "geo", aliases=["Brabant"]),
            ],
            "relationships": [{"source": "Cook", "target": "Brabant"}],
        },
        {"document": "lost.txt", "entities": ["Nobody"]},
    )
    # Found rightly: Racoviță, Belgica, Cook, Brabant Island; extra: Cook in the first document;
    # missed: surgeon. The noun phrase "penguins" is no name and counts nowhere.
    assert means(found.figures) == {
        "entity_precision": 0.8,
        "entity_recall": 0.8,
        "entity_f1": 0.8,
        # The types of Belgica and Brabant Island differ.
        "typed_precision": 0.4,
        "typed_recall": 0.4,
        "typed_f1": 0.4,
        # Right: Racoviță with Belgica, Cook with the island; extra: Racoviță with Cook.
        "relationship_precision": 0.667,
        "relationship_recall": 0.667,
        "relationship_f1": 0.667,
    }
    assert (found.n_documents, found.n_documents_of_index) == (2, 2)
    assert found.not_found == ("lost.txt",)
    listed = {name: [str(one) for one in names] for name, names in found.lists.items()}
    assert listed == {
        "extra_entities": ["Frederick Cook (1)"],
        "missed_entities": ["surgeon (1)"],
        "extra_relationships": ["Emile Racovita – Frederick Cook (1)"],
        "missed_relationships": ["Belgica – surgeon (1)"],
    }


def test_optional_entities_count_nowhere(tmp_path: Path) -> None:
    entities = [mark("Cook", optional=True), "Brabant Island"]
    line = {"document": "d1", "entities": entities, "relationships": [["Cook", "Brabant Island"]]}
    found = compare(voyage(), tmp_path, line)
    figures = means(found.figures)
    assert (figures["entity_precision"], figures["entity_recall"]) == (1, 1)
    assert found.figures["relationship_recall"] == "the reference has no relationships"
    assert found.figures["typed_f1"] == "the reference has no types"


def test_noun_phrases_count_if_the_reference_has_some(tmp_path: Path) -> None:
    cook, island = mark("Cook"), mark("Brabant Island")
    without = compare(voyage(), tmp_path, {"document": "d1", "entities": [cook, island]})
    rain = mark("rain", "noun phrase")
    with_one = compare(voyage(), tmp_path, {"document": "d1", "entities": [cook, island, rain]})
    assert means(without.figures)["entity_precision"] == 1
    assert means(with_one.figures)["entity_precision"] == 0.667


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_passage_is_compared_with_what_the_index_has_there(tmp_path: Path, is_ours: bool) -> None:
    index = voyage() if is_ours else as_microsoft_writes(voyage())
    text = SHIP[:37]
    line = {
        "document": "ship.txt",
        "text": text,
        "entities": [mark("Émile Racoviță"), mark("Belgica")],
        "relationships": [["Belgica", "Émile Racoviță"]],
    }
    found = compare(index, tmp_path, line, {"document": "ship.txt", "text": "?", "entities": []})
    figures = means(found.figures)
    # Cook is in the document, and not in the passage.
    assert figures == {
        f"{name}_{part}": 1
        for name in ("entity", "relationship")
        for part in ("precision", "recall", "f1")
    }
    assert found.not_found == ("ship.txt (no such passage)",)


def test_two_indexes_are_compared_on_their_common_documents() -> None:
    ours, theirs = voyage(), as_microsoft_writes(voyage())
    more = {"id": ["x"], "title": ["more.txt"], "text": ["Other."]}
    columns = theirs.tables["documents"].collect_schema()
    documents = pl.DataFrame(more).match_to_schema(
        {name: columns[name] for name in more}, missing_columns="insert"
    )
    theirs.tables["documents"] = pl.concat([documents.lazy(), theirs.tables["documents"]])
    found = compare_with_reference(ours, Reference("theirs", theirs), 17)
    figures = means(found.figures)
    assert {figures[f"{name}_f1"] for name in ("entity", "typed", "relationship")} == {1}
    assert found.n_documents == 2
    assert found.not_found == ("more.txt",)


def test_documents_with_a_common_name_are_not_paired_by_it() -> None:
    ours, theirs = voyage(), voyage()
    same = pl.lit("same").alias("title")
    ours.tables["documents"] = ours.tables["documents"].with_columns(same)
    others = pl.col("id", "path", "text") + " of another corpus"
    theirs.tables["documents"] = theirs.tables["documents"].with_columns(same, others)
    units = pl.col("document_id") + " of another corpus"
    theirs.tables["text_units"] = theirs.tables["text_units"].with_columns(units)
    with pytest.raises(InputError, match="no document of the reference"):
        compare_with_reference(ours, Reference("theirs", theirs), 17)


def test_an_index_without_the_documents_is_told() -> None:
    ours, theirs = voyage(), as_microsoft_writes(voyage())
    others = pl.col("id", "title", "text") + " of another corpus"
    theirs.tables["documents"] = theirs.tables["documents"].with_columns(others)
    with pytest.raises(InputError, match="no document of the reference theirs: documents are"):
        compare_with_reference(ours, Reference("theirs", theirs), 17)
    del theirs.tables["documents"]
    bare = CheckedIndex(Path("bare"), "another program", None, theirs.tables)
    with pytest.raises(InputError, match="bare cannot be compared: it lacks entities, text"):
        compare_with_reference(ours, Reference("bare", bare), 17)


@pytest.mark.parametrize("damage", [b"PAR1 cut off", None])
def test_a_damaged_reference_is_told(
    tmp_path: Path, sample_project: Path, graphrag_index: Call, damage: bytes | None
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    for name in ("documents", "text_units", "entities", "relationships"):
        content = (sample_project / "output" / f"{name}.parquet").read_bytes()
        if name == "text_units":
            # The pages are damaged, or the end of the file with the schema is missing.
            content = damage or bytes(4_000) + content[4_000:]
        (folder / f"{name}.parquet").write_bytes(content)
    told = graphrag_index("evaluate", "graph", "--root", sample_project, "--reference", folder)
    assert told.code == 1
    assert str(folder) in told.err
    assert "cannot be read" in told.err
    assert "Traceback" not in told.err


NAMES = st.sampled_from("abcdef")
GRAPHS = st.lists(st.tuples(st.sets(NAMES), st.sets(st.integers(0, 14))), min_size=1, max_size=4)


def marked(graph: list[tuple[set[str], set[int]]]) -> list[MarkedPassage]:
    """Return passages with entities, and with some of the pairs of these entities."""
    return [
        MarkedPassage(
            "a test",
            "d",
            None,
            tuple(map(MarkedEntity, sorted(names))),
            tuple(pair for at, pair in enumerate(combinations(sorted(names), 2)) if at in chosen),
        )
        for names, chosen in graph
    ]


@given(GRAPHS, GRAPHS)
def test_precision_is_the_recall_of_the_other_side(
    one: list[tuple[set[str], set[int]]], other: list[tuple[set[str], set[int]]]
) -> None:
    n = min(len(one), len(other))
    sides = [marked(graph[:n]) for graph in (one, other)]
    documents = pl.Series(range(n), dtype=pl.UInt32)
    graphs = [build_marked_graph(side) for side in sides]
    forth = compare_graphs(graphs[0], graphs[1], documents, 17)[0]
    back = compare_graphs(graphs[1], graphs[0], documents, 17)[0]
    for kind in ("entity", "relationship"):
        rows = [
            {
                (at, row)
                for at, passage in enumerate(side)
                for row in (
                    passage.relationships or ()
                    if kind == "relationship"
                    else [entity.title for entity in passage.entities]
                )
            }
            for side in sides
        ]
        if not rows[0] or not rows[1]:
            continue
        n_same = len(rows[0] & rows[1])
        found = means(forth)
        assert found[f"{kind}_precision"] == round(n_same / len(rows[0]), 3)
        assert found[f"{kind}_recall"] == round(n_same / len(rows[1]), 3)
        assert found[f"{kind}_f1"] == round(2 * n_same / (len(rows[0]) + len(rows[1])), 3)
        assert found[f"{kind}_precision"] == means(back)[f"{kind}_recall"]


def test_f1_is_of_two_counts() -> None:
    # Three of four stated rows are right, and both wanted rows are found: 0.75 and 1.
    interval = f1_interval([2, 1], [2, 2], [1, 1], [1, 1])
    assert interval is not None
    assert (round(interval.mean, 4), interval.n) == (round(6 / 7, 4), 2)
    assert (round(interval.low, 4), interval.high) == (round(2 / 3, 4), 1)
    assert f1_interval([0], [0], [0], [3]) is None
    zero = f1_interval([0], [1], [0], [1])
    assert zero is not None
    assert (zero.mean, zero.low, zero.high) == (0, 0, 0)

"""Graphs compared with references whose answers are known."""

from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_evaluation.graph_quality.reference_comparison import (
    ReferenceComparison,
    compare_with_reference,
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


def compare(ours: CheckedIndex, theirs: CheckedIndex) -> ReferenceComparison:
    return compare_with_reference(ours, "theirs", theirs)


def replace_entity(index: CheckedIndex, title: str, new: str) -> CheckedIndex:
    """Return an index in which an entity has another title, and no alias."""
    is_it = pl.col("title") == title
    entities = index.tables["entities"].with_columns(
        pl.when(is_it).then(pl.lit(new)).otherwise("title").alias("title"),
        pl.when(is_it).then([]).otherwise("aliases").alias("aliases"),
    )
    return CheckedIndex(index.path, "a test", None, index.tables | {"entities": entities})


def test_entities_and_pairs_are_compared_by_name() -> None:
    found = compare(voyage(), replace_entity(voyage(), "Belgica", "Belgian Ship"))
    # Of the five mentions of entities in documents one is extra, and another missed.
    assert means(found.figures) == {
        "entity_precision": 0.833,
        "entity_recall": 0.833,
        "entity_f1": 0.833,
        "relationship_precision": 0.75,
        "relationship_recall": 0.75,
        "relationship_f1": 0.75,
    }
    assert (found.n_documents, found.n_documents_of_index, found.not_found) == (2, 2, ())
    listed = {name: [str(one) for one in names] for name, names in found.lists.items()}
    assert listed == {
        "extra_entities": ["Belgica (1)"],
        "missed_entities": ["Belgian Ship (1)"],
        "extra_relationships": ["Belgica – Emile Racovita (1)"],
        "missed_relationships": ["Belgian Ship – Emile Racovita (1)"],
    }


def test_an_alias_is_a_name() -> None:
    found = compare(replace_entity(voyage(), "Frederick Cook", "Cook"), voyage())
    assert means(found.figures)["entity_f1"] == 1


def test_noun_phrases_count_if_both_sides_have_some() -> None:
    def without_phrases(index: CheckedIndex) -> CheckedIndex:
        is_name = pl.col("type") != "noun phrase"
        entities = index.tables["entities"].filter(is_name)
        return CheckedIndex(index.path, "a test", None, index.tables | {"entities": entities})

    assert means(compare(voyage(), without_phrases(voyage())).figures)["entity_precision"] == 1
    other = replace_entity(voyage(), "penguins", "seals")
    assert means(compare(voyage(), other).figures)["entity_precision"] == 0.833


def test_an_index_without_relationships_gives_the_reason() -> None:
    bare = voyage()
    bare.tables["relationships"] = bare.tables["relationships"].drop("text_unit_ids")
    index = CheckedIndex(bare.path, "a test", None, bare.tables)
    assert compare(index, voyage()).figures["relationship_f1"] == (
        "the index has no relationships there"
    )
    nobody = voyage()
    nobody.tables["entities"] = nobody.tables["entities"].head(0)
    assert compare(voyage(), nobody).figures["entity_f1"] == "the reference has no entities there"


def test_two_indexes_are_compared_on_their_common_documents() -> None:
    ours, theirs = voyage(), as_microsoft_writes(voyage())
    more = {"id": ["x"], "title": ["more.txt"], "text": ["Other."]}
    columns = theirs.tables["documents"].collect_schema()
    documents = pl.DataFrame(more).match_to_schema(
        {name: columns[name] for name in more}, missing_columns="insert"
    )
    theirs.tables["documents"] = pl.concat([documents.lazy(), theirs.tables["documents"]])
    found = compare(ours, theirs)
    figures = means(found.figures)
    assert {figures[f"{name}_f1"] for name in ("entity", "relationship")} == {1}
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
        compare(ours, theirs)


def test_an_index_without_the_documents_is_told() -> None:
    ours, theirs = voyage(), as_microsoft_writes(voyage())
    others = pl.col("id", "title", "text") + " of another corpus"
    theirs.tables["documents"] = theirs.tables["documents"].with_columns(others)
    with pytest.raises(InputError, match="no document of the reference theirs: documents are"):
        compare(ours, theirs)
    del theirs.tables["documents"]
    bare = CheckedIndex(Path("bare"), "another program", None, theirs.tables)
    with pytest.raises(InputError, match="bare cannot be compared: it lacks entities, text"):
        compare_with_reference(ours, "bare", bare)


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
Rows = set[tuple[int, Any]]


def rows_of(graph: list[tuple[set[str], set[int]]]) -> tuple[Rows, Rows]:
    """Return entities and pairs of them, each with the number of its document."""
    names = {(at, name) for at, (found, _) in enumerate(graph) for name in found}
    pairs = {
        (at, pair)
        for at, (found, chosen) in enumerate(graph)
        for number, pair in enumerate(combinations(sorted(found), 2))
        if number in chosen
    }
    return names, pairs


def as_index(n_documents: int, names: Rows, pairs: Rows) -> CheckedIndex:
    return make_index(
        documents=[{"id": f"d{at}", "title": f"d{at}"} for at in range(n_documents)],
        text_units=[{"id": f"u{at}", "document_id": f"d{at}"} for at in range(n_documents)],
        entities=[
            {"title": name, "text_unit_ids": [f"u{at}" for at, other in names if other == name]}
            for name in "abcdef"
        ],
        relationships=[
            {
                "source": pair[0],
                "target": pair[1],
                "text_unit_ids": [f"u{at}" for at, other in pairs if other == pair],
            }
            for pair in combinations("abcdef", 2)
        ],
    )


@settings(max_examples=25)
@given(GRAPHS, GRAPHS)
def test_precision_is_the_recall_of_the_other_side(
    one: list[tuple[set[str], set[int]]], other: list[tuple[set[str], set[int]]]
) -> None:
    n = min(len(one), len(other))
    sides = [rows_of(graph[:n]) for graph in (one, other)]
    indexes = [as_index(n, *rows) for rows in sides]
    forth, back = (means(compare(*both).figures) for both in (indexes, indexes[::-1]))
    for kind, rows in zip(("entity", "relationship"), zip(*sides, strict=True), strict=True):
        if not rows[0] or not rows[1]:
            continue
        n_same = len(rows[0] & rows[1])
        assert forth[f"{kind}_precision"] == round(n_same / len(rows[0]), 3)
        assert forth[f"{kind}_recall"] == round(n_same / len(rows[1]), 3)
        assert forth[f"{kind}_f1"] == round(2 * n_same / (len(rows[0]) + len(rows[1])), 3)
        assert forth[f"{kind}_precision"] == back[f"{kind}_recall"]


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

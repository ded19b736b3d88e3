"""Differences of the input from the index, and between two versions."""

import io
import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_index.cli.printed_tables import difference_as_json, write_difference
from graphrag_index.pipeline.changes import (
    CHANGE_KINDS,
    COMPARED_COLUMNS,
    UNCHANGED,
    Difference,
    compare_documents,
    compare_rows,
    compare_versions,
    digest_documents,
)
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import StepRecord, StoredTable, Version, VersionOrigin
from tests.fixtures.small_index import table

Row = tuple[str | None, str, str, int]


def rows(*documents: Row) -> pl.DataFrame:
    return pl.DataFrame(documents, schema=COMPARED_COLUMNS, orient="row")


def plain(*documents: tuple[str, str]) -> pl.DataFrame:
    """Documents without an id of their own: path and text."""
    return rows(*((None, path, text, 0) for path, text in documents))


def told(old: pl.DataFrame, new: pl.DataFrame) -> dict[str, list[str]]:
    changes = compare_documents(old, new)
    return {kind: names for kind in CHANGE_KINDS if (names := changes.names(kind))}


def test_files_are_added_changed_renamed_and_deleted() -> None:
    old = plain(("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"))
    new = plain(("a", "1"), ("b", "5"), ("e", "3"), ("f", "6"))
    changes = compare_documents(old, new)
    expected = pl.DataFrame(
        {
            "kind": ["deleted", "unchanged", "changed", "renamed", "added"],
            "old_path": ["d", "a", "b", "c", None],
            "path": [None, "a", "b", "e", "f"],
        }
    )
    assert_frame_equal(changes.rows.select(expected.columns), expected)
    assert str(changes) == "1 added, 1 changed, 1 renamed, 1 deleted documents"
    assert {kind: changes.names(kind) for kind in CHANGE_KINDS} == {
        "added": ["f"], "changed": ["b"], "renamed": ["c to e"], "deleted": ["d"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([], [], {}),
        ([], [("a", "1")], {"added": ["a"]}),
        ([("a", "1")], [], {"deleted": ["a"]}),
        # One of two copies is gone: the one whose path is gone.
        ([("a", "1"), ("b", "1")], [("b", "1")], {"deleted": ["a"]}),
        ([("b", "1")], [("a", "1"), ("b", "1")], {"added": ["a"]}),
        # Two files changed places.
        ([("a", "1"), ("b", "2")], [("a", "2"), ("b", "1")], {"renamed": ["b to a", "a to b"]}),
        # A file was moved, and another put in its place.
        ([("a", "1")], [("a", "2"), ("b", "1")], {"added": ["a"], "renamed": ["a to b"]}),
        # Of the records of a file one went, and one has another text.
        (
            [("t", "1"), ("t", "2"), ("t", "3"), ("t", "4")],
            [("t", "1"), ("t", "3"), ("t", "5")],
            {"changed": ["t"], "deleted": ["t"]},
        ),
        ([("t", "1"), ("t", "1")], [("t", "1")], {"deleted": ["t"]}),
        ([("a", "1")], [("t", "2"), ("t", "3")], {"added": ["t (2 records)"], "deleted": ["a"]}),
    ],
)
def test_documents_are_paired_by_path_and_text(
    old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]], expected: dict[str, list[str]]
) -> None:
    assert told(plain(*old), plain(*new)) == expected


def test_a_stated_id_is_all_that_counts() -> None:
    old = rows(("1", "t", "x", 0), ("2", "t", "y", 0), ("3", "t", "z", 0))
    new = rows(("1", "t", "X", 0), ("2", "u", "y", 0), ("4", "t", "z", 0))
    assert told(old, new) == {
        "added": ["t"], "changed": ["t"], "renamed": ["t to u"], "deleted": ["t"],
    }  # fmt: skip


def test_a_record_with_other_metadata_is_changed() -> None:
    old, new = (rows((None, "t", "x", 0), (None, "t", "y", last)) for last in (0, 1))
    assert told(old, new) == {"changed": ["t"]}
    # The title of a file may be its name.
    assert told(rows((None, "a", "x", 0)), rows((None, "b", "x", 1))) == {"renamed": ["a to b"]}


def test_no_change_is_false_and_said() -> None:
    same = compare_documents(plain(("a", "1")), plain(("a", "1")))
    assert not same
    assert str(same) == "no document changed"
    assert str(compare_documents(plain(), plain(("a", "1")))) == "1 added document"


def documents(*values: tuple[str, str, str]) -> pl.DataFrame:
    defaults = dict.fromkeys(TABLES["loaded_documents"].columns)
    return pl.DataFrame(
        [{**defaults, "id": id, "path": path, "text": text} for id, path, text in values],
        schema=TABLES["loaded_documents"].schema,
    )


def test_ids_that_are_made_of_the_text_are_told_from_stated_ones() -> None:
    first, second = (content_id("document", "x", str(number)) for number in (0, 1))
    made = documents((first, "a", "x"), ("7", "b", "x"))
    found = digest_documents([made, documents((second, "c", "x"), ("8", "d", "x"))])
    assert found["id"].to_list() == [None, "7", None, "8"]
    assert found["text"].n_unique() == 1
    assert digest_documents([]).schema == found.schema
    with_title = digest_documents([made.with_columns(title=pl.lit("t"))])
    assert with_title["details"][0] != found["details"][0]


ROWS = st.lists(
    st.tuples(
        st.none(), st.sampled_from("abc"), st.sampled_from("xyz"), st.sampled_from([0, 1])
    ) | st.tuples(
        st.sampled_from("1234"), st.sampled_from("abc"), st.sampled_from("xyz"), st.just(0)
    ),
    max_size=8,
    unique_by=lambda row: row[0] or object(),
)  # fmt: skip


@given(ROWS, ROWS)
def test_the_changes_of_the_old_are_the_new(old: list[Row], new: list[Row]) -> None:
    changes = compare_documents(rows(*old), rows(*new))
    applied: list[Row] = []
    gone = []
    for row in changes.rows.iter_rows(named=True):
        if row["old_row"] is not None:
            gone.append(row["old_row"])
        match row["kind"]:
            case "unchanged":
                applied.append(old[row["old_row"]])
            case "added" | "changed" | "renamed":
                applied.append(tuple(row[name] for name in COMPARED_COLUMNS))  # type: ignore[arg-type]
    # Each document of the index is told of once, and what comes of it is the input, in its order.
    assert sorted(gone) == list(range(len(old)))
    assert applied == new


@given(ROWS, ROWS)
def test_as_few_as_can_be_are_added_and_deleted(old: list[Row], new: list[Row]) -> None:
    found = compare_documents(rows(*old), rows(*new)).rows
    added, deleted = (found.filter(kind=kind) for kind in ("added", "deleted"))
    for stated in (False, True):
        left, right = (
            {row[column] for row in frame.iter_rows(named=True) if (row[id] is not None) == stated}
            for frame, id, column in (
                (added, "id", "id" if stated else "path"),
                (deleted, "old_id", "old_id" if stated else "old_path"),
            )
        )
        assert not left & right
    renamed = found.filter(kind="renamed")
    assert (renamed["text"] == renamed["old_text"]).all()
    assert (renamed["path"] != renamed["old_path"]).all()
    assert compare_documents(rows(*new), rows(*new)).count(UNCHANGED) == len(new)


def version(store: TableStore, number: int, **tables: pl.DataFrame) -> Version:
    """Write a version of these tables."""
    stored: dict[str, StoredTable] = {}
    for name, frame in tables.items():
        with store.writer(number, TABLES[name], name) as writer:
            writer.append(frame)
        stored[name] = writer.stored
    made = VersionOrigin("2026-01-02T03:04:05+00:00", ("all",), 2, 30, 4, 0.125)
    return Version(number, "small", "0.1.0", (StepRecord("all", str(number), stored),), {}, made)


def names(found: Difference) -> dict[str, list[str]]:
    """The names of each kind that there is any of."""
    assert {kind: len(names) for kind, names in found.names.items()} == found.counts
    return {kind: list(names) for kind, names in found.names.items() if names}


def test_documents_are_paired_by_path_and_by_text(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    before = table(
        "loaded_documents",
        *({"id": f"{n}", "path": f"{n}.md", "text": f"text {n}"} for n in "abcd"),
    )
    after = table(
        "loaded_documents",
        {"id": "a", "path": "a.md", "text": "text a"},
        {"id": "b", "path": "b.md", "text": "another text"},
        {"id": "c", "path": "z.md", "text": "text c"},
        {"id": "e", "path": "e.md", "text": "text e"},
    )
    one = version(store, 1, loaded_documents=_with_ids(before))
    two = version(store, 2, loaded_documents=_with_ids(after))
    assert names(compare_versions(store, one, two)["documents"]) == {
        "added": ["e.md"],
        "removed": ["d.md"],
        "changed": ["b.md"],
        "renamed": ["c.md to z.md"],
    }


def _with_ids(documents: pl.DataFrame) -> pl.DataFrame:
    """Give documents the ids that are made of their texts."""
    ids = [content_id("document", text, "0") for text in documents["text"]]
    return documents.with_columns(id=pl.Series(ids))


def test_entities_and_relationships_are_the_same_by_id(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    one = version(
        store,
        1,
        entities=table(
            "entities",
            {"id": "1", "title": "Crean", "type": "person", "degree": 1, "x": 0.5},
            {"id": "2", "title": "Ross Sea", "type": "place"},
            {"id": "3", "title": "Nimrod", "type": "name", "frequency": 1},
        ),
        relationships=table(
            "relationships",
            {"id": "1", "source": "Crean", "target": "Ross Sea", "weight": 1.0},
            {"id": "2", "source": "Crean", "target": "Nimrod", "description": "old"},
        ),
    )
    two = version(
        store,
        2,
        entities=table(
            "entities",
            {"id": "4", "title": "Fram", "type": "ship", "human_readable_id": 0},
            # Where it stands, how it is drawn and how well it is linked is not what it is.
            {"id": "1", "title": "Crean", "type": "person", "degree": 9, "human_readable_id": 1},
            {"id": "3", "title": "Nimrod", "type": "ship", "frequency": 1},
        ),
        relationships=table(
            "relationships",
            {"id": "1", "source": "Crean", "target": "Ross Sea", "weight": 2.0},
            {"id": "2", "source": "Crean", "target": "Nimrod", "description": "new"},
        ),
    )
    found = compare_versions(store, one, two)
    assert names(found["entities"]) == {
        "added": ["Fram"],
        "removed": ["Ross Sea"],
        "changed": ["Nimrod"],
    }
    assert names(found["relationships"]) == {"changed": ["Crean - Nimrod"]}
    assert all(names(one) == {} for one in compare_versions(store, two, two).values())


def test_communities_and_reports_are_the_same_by_number(tmp_path: Path) -> None:
    store = TableStore(tmp_path)

    def report(community: int, text: str, summary: str = "") -> dict[str, object]:
        title = f"About {community}"
        return {
            "id": f"{community}{text}", "community": community, "title": title,
            "full_content": text, "summary": summary,
        }  # fmt: skip

    one = version(
        store,
        1,
        communities=table(
            "communities",
            {"id": "a", "community": 0, "title": "Community 0", "entity_ids": ["1", "2"]},
            {"id": "b", "community": 1, "title": "Community 1", "entity_ids": ["3"]},
            {"id": "c", "community": 2, "title": "Community 2", "entity_ids": ["4"]},
        ),
        community_reports=table(
            "community_reports", report(0, "Ice. [Data: Entities (4, 7)]"), report(1, "Dogs.")
        ),
    )
    two = version(
        store,
        2,
        communities=table(
            "communities",
            {"id": "d", "community": 0, "title": "Community 0", "entity_ids": ["2", "1"]},
            {"id": "e", "community": 2, "title": "Community 2", "entity_ids": ["4", "5"]},
            {"id": "f", "community": 7, "title": "Community 7", "entity_ids": ["3"]},
        ),
        community_reports=table(
            "community_reports",
            # The same rows have other numbers now.
            report(0, "Ice. [Data: Entities (5, 8)]"),
            report(1, "Dogs.", "Of dogs."),
        ),
    )
    assert compare_rows(store, one, two, "communities").rows() == [
        ("removed", "Community 1", 1, None),
        ("changed", "Community 2", 2, 2),
        ("added", "Community 7", None, 7),
    ]
    found = compare_versions(store, one, two)
    assert names(found["communities"]) == {
        "added": ["Community 7"],
        "removed": ["Community 1"],
        "changed": ["Community 2"],
    }
    assert names(found["community_reports"]) == {"changed": ["1: About 1"]}


def test_a_table_that_one_version_does_not_have_is_empty(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    one = version(store, 1)
    two = version(store, 2, entities=table("entities", {"id": "1", "title": "Crean"}))
    assert names(compare_versions(store, one, two)["entities"]) == {"added": ["Crean"]}
    assert names(compare_versions(store, two, one)["entities"]) == {"removed": ["Crean"]}


def test_a_few_names_are_printed_and_all_are_told_as_json(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    rows = [{"id": str(n), "title": f"Entity {n}"} for n in range(7)]
    one, two = version(store, 1), version(store, 2, entities=table("entities", *rows))
    found = compare_versions(store, one, two)
    out = io.StringIO()
    write_difference(one, two, found, out)
    text = out.getvalue()
    assert "  7 added: Entity 0, Entity 1, Entity 2, Entity 3, Entity 4, and 2 more\n" in text
    assert "documents: no difference\n" in text
    assert "Version 2: 2 calls to models, 30 prompt + 4 reply tokens, 0.1250 dollars.\n" in text
    told = json.loads(json.dumps(difference_as_json(one, two, found)))
    added = told["tables"]["entities"]["added"]
    assert (added["count"], len(added["names"])) == (7, 7)
    assert told["after"]["cost"] == 0.125

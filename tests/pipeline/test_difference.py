"""How two versions differ: what is added, removed, changed, and what is not a change."""

import io
import json
from pathlib import Path

import polars as pl

from graphrag_index.cli.index_tables import difference_as_json, write_difference
from graphrag_index.pipeline.changes import Difference, compare
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import Made, StepRecord, StoredTable, Version
from tests.fixtures.small_index import table


def version(store: TableStore, number: int, **tables: pl.DataFrame) -> Version:
    """Write a version of these tables."""
    stored: dict[str, StoredTable] = {}
    for name, frame in tables.items():
        with store.writer(number, TABLES[name], name) as writer:
            writer.append(frame)
        stored[name] = writer.stored
    made = Made("2026-01-02T03:04:05+00:00", ("all",), 2, 30, 4, 0.125)
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
    assert names(compare(store, one, two)["documents"]) == {
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
    found = compare(store, one, two)
    assert names(found["entities"]) == {
        "added": ["Fram"],
        "removed": ["Ross Sea"],
        "changed": ["Nimrod"],
    }
    assert names(found["relationships"]) == {"changed": ["Crean - Nimrod"]}
    assert all(names(one) == {} for one in compare(store, two, two).values())


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
            "community_reports",
            report(0, "Ice. [Data: Entities (4, 7)]"),
            report(1, "Dogs."),
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
    found = compare(store, one, two)
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
    assert names(compare(store, one, two)["entities"]) == {"added": ["Crean"]}
    assert names(compare(store, two, one)["entities"]) == {"removed": ["Crean"]}


def test_a_few_names_are_printed_and_all_are_told_as_json(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    rows = [{"id": str(n), "title": f"Entity {n}"} for n in range(7)]
    one, two = version(store, 1), version(store, 2, entities=table("entities", *rows))
    found = compare(store, one, two)
    out = io.StringIO()
    write_difference(one, two, found, out)
    text = out.getvalue()
    assert "  7 added: Entity 0, Entity 1, Entity 2, Entity 3, Entity 4, and 2 more\n" in text
    assert "documents: no difference\n" in text
    assert "Version 2: 2 calls to models, 30 + 4 tokens, 0.1250 dollars.\n" in text
    told = json.loads(json.dumps(difference_as_json(one, two, found)))
    added = told["tables"]["entities"]["added"]
    assert (added["count"], len(added["names"])) == (7, 7)
    assert told["after"]["cost"] == 0.125

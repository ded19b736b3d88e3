"""An index of Microsoft's: what is wrong with it is found, and nothing that is not."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_index.errors import TableError
from graphrag_index.health.checked_index import open_microsoft
from graphrag_index.health.checks import check_index
from graphrag_index.schema.settings.step_sections import Check
from graphrag_nlp.text.citations import find_cited_rows
from tests.fixtures.checked import found, healthy
from tests.fixtures.microsoft_index import MICROSOFT, needs_index

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def rows() -> dict[str, Rows]:
    return {
        path.stem: pl.read_parquet(path).to_dicts()
        for path in MICROSOFT.glob("*.parquet")
        if not path.stem.startswith("embeddings")
    }


def unknown(rows: dict[str, Rows], table: str, column: str, to: str, key: str = "id") -> int:
    """Count values that no row of another table has, by loops and sets alone."""
    known = {row[key] for row in rows[to]}
    n = 0
    for row in rows[table]:
        values = row[column] if isinstance(row[column], list) else [row[column]]
        n += sum(value not in known and value != -1 for value in values)
    return n


@needs_index
def test_the_defects_of_a_real_index_are_found(rows: dict[str, Rows]) -> None:
    counted = {
        f"{table}.{column}": unknown(rows, table, column, to, *key)
        for table, column, to, *key in [
            ("documents", "text_unit_ids", "text_units"),
            ("text_units", "document_id", "documents"),
            ("text_units", "entity_ids", "entities"),
            ("text_units", "relationship_ids", "relationships"),
            ("text_units", "covariate_ids", "covariates"),
            ("entities", "text_unit_ids", "text_units"),
            ("relationships", "source", "entities", "title"),
            ("relationships", "target", "entities", "title"),
            ("relationships", "text_unit_ids", "text_units"),
            ("communities", "entity_ids", "entities"),
            ("communities", "relationship_ids", "relationships"),
            ("communities", "text_unit_ids", "text_units"),
            ("communities", "parent", "communities", "community"),
            ("communities", "children", "communities", "community"),
            ("community_reports", "community", "communities", "community"),
            ("covariates", "text_unit_id", "text_units"),
        ]
    }
    expected = {name: count for name, count in counted.items() if count}
    # No text unit has an id that its document names, and two relationships end nowhere.
    assert expected == {"documents.text_unit_ids": 5, "relationships.source": 2}
    assert found(check_index(open_microsoft(MICROSOFT), Check())) == {
        "dangling_ids": list(expected.items())
    }


@needs_index
def test_what_is_not_found_in_a_real_index_is_not_there(rows: dict[str, Rows]) -> None:
    for table in rows.values():
        assert max(Counter(row["id"] for row in table).values()) == 1
    assert len({row["title"] for row in rows["entities"]}) == len(rows["entities"])
    pairs = [(row["source"], row["target"]) for row in rows["relationships"]]
    assert len(set(pairs)) == len(pairs)
    members = {member for row in rows["communities"] for member in row["entity_ids"]}
    assert members == {row["id"] for row in rows["entities"]}
    reported = {row["community"] for row in rows["community_reports"]}
    assert reported == {row["community"] for row in rows["communities"]}
    numbers = {
        "Entities": {row["human_readable_id"] for row in rows["entities"]},
        "Relationships": {row["human_readable_id"] for row in rows["relationships"]},
    }
    for report in rows["community_reports"]:
        for section, named in find_cited_rows(report["full_content"]).items():
            assert named <= numbers[section]


@needs_index
def test_the_statistics_of_a_real_index_are_those_that_a_loop_counts(rows: dict[str, Rows]) -> None:
    health = check_index(open_microsoft(MICROSOFT), Check())
    titles = {row["title"]: row["id"] for row in rows["entities"]}
    edges = {
        frozenset((row["source"], row["target"]))
        for row in rows["relationships"]
        if row["source"] in titles and row["target"] in titles
    }
    home = {
        member: row["community"]
        for row in rows["communities"]
        if row["level"] == 0
        for member in row["entity_ids"]
    }
    graph = health.statistics.graph
    assert graph is not None
    assert (graph.nodes, graph.edges) == (len(titles), len(edges))
    between = sum(len({home[titles[end]] for end in edge}) == 2 for edge in edges)
    assert graph.edges_between_communities == between
    # Newman's formula, over all pairs.
    weight: Counter[frozenset[str]] = Counter()
    strength: Counter[str] = Counter()
    for row in rows["relationships"]:
        edge = frozenset((row["source"], row["target"]))
        if edge in edges:
            weight[edge] += row["weight"]
            for end in edge:
                strength[end] += row["weight"]
    total = sum(weight.values())
    inside = sum(w for e, w in weight.items() if len({home[titles[end]] for end in e}) == 1)
    parts: Counter[int] = Counter()
    for title, value in strength.items():
        parts[home[titles[title]]] += value
    expected = inside / total - sum((part / (2 * total)) ** 2 for part in parts.values())
    assert graph.modularity == pytest.approx(expected, abs=1e-4)
    assert health.statistics.languages[0]["language"] == "en"


def write(folder: Path, tables: dict[str, pl.DataFrame]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        rows.write_parquet(folder / f"{name}.parquet")
    return folder


def plain() -> Iterator[tuple[str, pl.DataFrame]]:
    """The tables of another program: what is ours alone is left out."""
    ours = {"evidence", "source_id", "target_id", "path", "language", "island", "theme", "aliases"}
    for name in ("documents", "text_units", "entities", "relationships"):
        rows = healthy()[name]
        yield name, rows.drop(column for column in ours if column in rows.columns)
    yield "communities", healthy()["communities"].drop("island", "theme")
    yield "community_reports", healthy()["community_reports"]


def test_tables_of_version_2_name_documents_in_lists(tmp_path: Path) -> None:
    tables = dict(plain())
    units = tables["text_units"]
    tables["text_units"] = units.with_columns(document_ids=pl.concat_list("document_id")).drop(
        "document_id"
    )
    tables["embeddings.text_unit_text"] = units.select(
        "id", embedding=pl.Series([[1.0, 2.0]] * units.height)
    )
    health = check_index(open_microsoft(write(tmp_path, tables)), Check())
    assert found(health) == {}
    assert health.index.made_by == "Microsoft GraphRAG 2"
    assert health.statistics.documents["entities"].to_list() == [3, 1]
    broken = tables["text_units"].with_columns(document_ids=pl.lit(["d0", "d9"]))
    tables["text_units"] = broken
    health = check_index(open_microsoft(write(tmp_path, tables)), Check())
    assert found(health)["dangling_ids"] == [("text_units.document_ids", 3)]


def test_missing_tables_and_columns_are_named(tmp_path: Path) -> None:
    tables = dict(plain())
    del tables["communities"]
    tables["entities"] = tables["entities"].drop("text_unit_ids")
    tables["text_units"] = tables["text_units"].with_columns(entity_ids=pl.lit("['e0']"))
    health = check_index(open_microsoft(write(tmp_path, tables)), Check())
    assert found(health) == {}
    assert [note for note in health.skipped if "vectors" not in note] == [
        "text_units has no entity_ids: checks that need it are skipped.",
        "entities has no text_unit_ids: checks that need it are skipped.",
        "There is no table communities: checks that need it are skipped.",
        "text_units.entity_ids is String: checks that need it are skipped.",
    ]


def test_a_table_that_is_cut_off_is_a_finding(tmp_path: Path) -> None:
    folder = write(tmp_path, dict(plain()))
    path = folder / "entities.parquet"
    path.write_bytes(path.read_bytes()[:500])
    (folder / "relationships.parquet").write_bytes(b"")
    health = check_index(open_microsoft(folder), Check())
    damaged = [("entities", 1), ("relationships", 1)]
    assert found(health) == {"unreadable_tables": damaged}
    assert health.failed


def test_a_file_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    with pytest.raises(TableError, match="is not a folder"):
        open_microsoft(tmp_path / "file")

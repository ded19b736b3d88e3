"""Each defect, planted in a small index or found in one of Microsoft's; and nothing else."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_index.errors import TableError
from graphrag_index.health.checked_index import CheckedIndex, open_for_check, open_microsoft
from graphrag_index.health.checks import check_index, find_dangling_ids, read_vectors
from graphrag_index.health.index_statistics import compute_statistics
from graphrag_index.schema.settings.step_sections import Check
from graphrag_nlp.text.citations import find_cited_rows
from tests.fixtures.checked import (
    WIDTH,
    Tables,
    change,
    check,
    examples,
    found,
    healthy,
    opened,
    vectors_of,
)
from tests.fixtures.microsoft_index import MICROSOFT, needs_index
from tests.fixtures.small_index import table, write_index

Change = Callable[[Tables], Tables]


def changed(name: str, row: int, **values: object) -> Change:
    return lambda tables: {**tables, name: change(tables[name], row, **values)}


def without(name: str, row: int) -> Change:
    def remove(tables: Tables) -> Tables:
        rows = tables[name].with_row_index("row").filter(pl.col("row") != row).drop("row")
        return {**tables, name: rows}

    return remove


def with_again(name: str, row: int, **values: object) -> Change:
    def add(tables: Tables) -> Tables:
        again = change(tables[name][row : row + 1], 0, **values)
        return {**tables, name: pl.concat([tables[name], again])}

    return add


def with_vectors(make: Change) -> Change:
    """Make a change and the vectors that belong to it."""

    def both(tables: Tables) -> Tables:
        after = make(tables)
        return {**after, **vectors_of(after)}

    return both


def test_nothing_is_found_where_nothing_is_wrong(tmp_path: Path) -> None:
    health = check(tmp_path, healthy())
    assert found(health) == {}
    assert not health.failed
    assert health.skipped == ()
    looked = {outcome.name: outcome.result.of for outcome in health.outcomes}
    assert looked == {
        "unreadable_tables": 10,
        "dangling_ids": 54,
        "duplicates": 40,
        "unresolved_citations": 8,
        "missing_vectors": 10,
        "stale_vectors": 10,
        "stale_search_tables": None,
        "uncovered_entities": 4,
        "uncovered_documents": 2,
        "missing_reports": 3,
        "empty_reports": 3,
        "oversized_communities": 2,
        "equal_documents": 2,
    }


DANGLING = [
    ("documents", {"text_unit_ids": ["u0", "u1", "u9"]}, "document 0: u9"),
    ("text_units", {"document_id": "d9"}, "text unit 0: d9"),
    ("text_units", {"entity_ids": ["e0", "e9", "e8"]}, "text unit 0: e8"),
    ("text_units", {"relationship_ids": ["r9"]}, "text unit 0: r9"),
    ("entities", {"text_unit_ids": ["u9", "u0"]}, "entity 0: u9"),
    ("entities", {"evidence": [{"document_id": "d9"}]}, "entity 0: d9"),
    ("relationships", {"source": "Nobody"}, "relationship 0: Nobody"),
    ("relationships", {"target": "Nobody"}, "relationship 0: Nobody"),
    ("relationships", {"source_id": "e9"}, "relationship 0: e9"),
    ("relationships", {"target_id": "e9"}, "relationship 0: e9"),
    ("relationships", {"text_unit_ids": ["u9"]}, "relationship 0: u9"),
    ("mentions", {"entity": 9}, "mention 9: 9"),
    ("mentions", {"text_unit": 9}, "mention 9: 9"),
    ("communities", {"entity_ids": ["e0", "e1", "e2", "e9"]}, "community 0: e9"),
    ("communities", {"relationship_ids": ["r9"]}, "community 0: r9"),
    ("communities", {"text_unit_ids": ["u0", "u9"]}, "community 0: u9"),
    ("communities", {"parent": 8}, "community 0: 8"),
    ("communities", {"children": [7, 8]}, "community 0: 8"),
    ("community_reports", {"statements": [{"document_id": "d9"}]}, "report on community 7: d9"),
]


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [pytest.param(*case, id=f"{case[0]}.{next(iter(case[1]))}") for case in DANGLING],
)
def test_an_id_that_no_row_has_is_found(name: str, values: dict[str, object], said: str) -> None:
    tables = {n: t.lazy() for n, t in changed(name, 0, **values)(healthy()).items()}
    [finding] = find_dangling_ids(CheckedIndex(Path("somewhere"), "a test", 1, tables)).findings
    (column,) = values
    count = 2 if values.get("entity_ids") == ["e0", "e9", "e8"] else 1
    assert (finding.table, finding.count) == (f"{name}.{column}", count)
    assert finding.examples[0] == said


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(
            changed("entities", 1, human_readable_id=0),
            {
                "duplicates": [("entities.human_readable_id", 1)],
                # Citations and mentions of entity 1 lead nowhere now.
                "dangling_ids": [("mentions.entity", 1)],
                "unresolved_citations": [("community_reports.full_content", 2)],
            },
            id="a number twice",
        ),
        pytest.param(
            with_vectors(with_again("entities", 0, id="e4", human_readable_id=4)),
            {"duplicates": [("entities.title", 1)], "uncovered_entities": [("entities", 1)]},
            id="a title twice",
        ),
        pytest.param(
            with_again("relationships", 0, id="r2", human_readable_id=2, source="Bo", target="Ada"),
            {"duplicates": [("relationships", 1)]},
            id="a link in both directions",
        ),
        pytest.param(
            with_vectors(with_again("community_reports", 0, id="p8")),
            {"duplicates": [("community_reports.community", 1)]},
            id="two reports on one community",
        ),
        pytest.param(
            changed("community_reports", 0, full_content="Bo [Data: Entities (9, 8); Claims (1)]."),
            {
                "unresolved_citations": [("community_reports.full_content", 2)],
                "stale_vectors": [("community_full_content", 1)],
            },
            id="citations of no row",
        ),
        pytest.param(
            with_vectors(changed("community_reports", 0, full_content="It says [Entities (5)].")),
            {"unresolved_citations": [("community_reports.full_content", 1)]},
            id="a citation without Data",
        ),
        pytest.param(
            with_vectors(changed("community_reports", 0, full_content="[Data: Tables (1)] It is.")),
            {"unresolved_citations": [("community_reports.full_content", 1)]},
            id="a citation of what is no table",
        ),
        pytest.param(
            without("text_unit_text", 1),
            {"missing_vectors": [("text_unit_text", 1)]},
            id="no vector",
        ),
        pytest.param(
            changed("entity_description", 0, vector=[0.0] * WIDTH),
            {"missing_vectors": [("entity_description", 1)]},
            id="a vector of zeros",
        ),
        pytest.param(
            changed("entities", 2, description="What is known by now."),
            {"stale_vectors": [("entity_description", 1)]},
            id="a vector of an earlier text",
        ),
        pytest.param(
            with_again("text_unit_text", 0, id="u9"),
            {"stale_vectors": [("text_unit_text", 1)]},
            id="a vector of what is gone",
        ),
        pytest.param(
            with_again("text_unit_text", 0),
            {"stale_vectors": [("text_unit_text", 1)]},
            id="two vectors of one text",
        ),
        pytest.param(
            with_vectors(with_again("entities", 0, id="e4", human_readable_id=4, title="Ed")),
            {"uncovered_entities": [("entities", 1)]},
            id="an entity in no community",
        ),
        pytest.param(
            with_again("documents", 0, id="d2", human_readable_id=2, text="", text_unit_ids=[]),
            {"uncovered_documents": [("documents", 1)]},
            id="a document without a name in it",
        ),
        pytest.param(
            with_vectors(without("community_reports", 2)),
            {
                "uncovered_entities": [("community_reports", 1)],
                "uncovered_documents": [("community_reports", 1)],
                "missing_reports": [("community_reports", 1)],
            },
            id="a community without a report",
        ),
        pytest.param(
            with_vectors(changed("community_reports", 2, full_content="# Report 3\n")),
            {"empty_reports": [("community_reports", 1)]},
            id="a report of nothing but its title",
        ),
        pytest.param(
            changed("documents", 1, text="Ada met Bo. Bo met Cy."),
            {"equal_documents": [("documents.text", 1)]},
            id="a document twice",
        ),
    ],
)
def test_a_defect_is_found_and_nothing_else(
    tmp_path: Path, make: Change, expected: dict[str, list[tuple[str, int]]]
) -> None:
    assert found(check(tmp_path, make(healthy()))) == expected


def test_what_a_document_has_in_brackets_is_no_citation_of_ours(tmp_path: Path) -> None:
    tables = healthy()
    said = "Di lives alone [sources 81, 82], she says."
    text = change(tables["text_units"], 2, text=said.replace(" [", "\n["))
    reports = change(tables["community_reports"], 2, full_content=f"{said} [Data: Sources (2)]")
    tables = {**tables, "text_units": text, "community_reports": reports}
    assert found(check(tmp_path / "a", {**tables, **vectors_of(tables)})) == {}
    tables["text_units"] = change(text, 2, text="Di lives alone.")
    assert found(check(tmp_path / "b", {**tables, **vectors_of(tables)})) == {
        "unresolved_citations": [("community_reports.full_content", 2)]
    }


def test_an_id_twice_is_found() -> None:
    # Our own writer refuses it, other programs do not.
    tables = with_again("entities", 0, human_readable_id=4, title="Ed")(healthy())
    health = check_index(opened(tables), Check())
    assert found(health) == {"duplicates": [("entities.id", 1)]}
    assert examples(health, "duplicates") == ["e0 (2 times)"]


def test_missing_ids_are_no_duplicates() -> None:
    tables = healthy()
    numbers = pl.lit(None, pl.Int64)
    tables["documents"] = tables["documents"].with_columns(human_readable_id=numbers)
    assert found(check_index(opened(tables), Check())) == {}


def test_a_link_in_both_directions_is_no_duplicate_where_links_have_directions() -> None:
    twice = with_again("relationships", 0, id="r2", human_readable_id=2)
    turned = with_again("relationships", 0, id="r3", human_readable_id=3, source="Bo", target="Ada")
    health = check_index(opened(turned(twice(healthy()))), Check())
    assert found(health) == {"duplicates": [("relationships", 1)]}


def test_only_communities_without_parts_are_oversized(tmp_path: Path) -> None:
    health = check(tmp_path, healthy(), Check(oversized_above=1))
    assert found(health) == {"oversized_communities": [("communities", 1)]}
    assert examples(health, "oversized_communities") == ["community 7: 2 entities"]


def test_vector_tables_of_different_widths_are_found(tmp_path: Path) -> None:
    tables = healthy()
    wide = pl.Series([[1.0] * 6] * 4, dtype=pl.Array(pl.Float32, 6))
    tables["entity_description"] = tables["entity_description"].with_columns(vector=wide)
    assert found(check(tmp_path, tables)) == {"stale_vectors": [("vectors", 1)]}


class FakeVectors:
    dimension = 2

    def batches(self) -> Iterator[pl.DataFrame]:
        vectors = [[1.0, 2.0], [0.0, 0.0], [float("nan"), 1.0], [0.0, float("inf")], [0.0, -1.0]]
        dtype = pl.Array(pl.Float32, 2)
        yield pl.DataFrame({"id": list("abcde"), "vector": pl.Series(vectors, dtype=dtype)})


def test_vectors_of_zeros_and_of_no_numbers_are_no_good() -> None:
    rows = read_vectors(FakeVectors())
    assert rows["id"].filter(rows["is_valid"]).to_list() == ["a", "e"]
    assert rows["text_hash"].to_list() == [None] * 5


def test_search_tables_that_are_of_other_tables_are_found(tmp_path: Path) -> None:
    tables = healthy()
    tables["document_rows"] = table("document_rows", {"id": "d0"}, {"id": "d2"})
    tables["entity_rows"] = table("entity_rows", {"title": "Ada"})
    tables["relationships_of_entities"] = table(
        "relationships_of_entities", *({"entity": n} for n in (0, 1, 1, 2))
    )
    health = check(tmp_path, tables)
    assert found(health) == {"stale_search_tables": [("document_rows", 1), ("entity_rows", 3)]}


def test_what_a_workflow_does_not_write_is_not_missed(tmp_path: Path) -> None:
    tables = healthy()
    del tables["community_reports"], tables["community_full_content"], tables["mentions"]
    health = check(tmp_path, tables)
    assert found(health) == {}
    assert health.skipped == (
        "There is no table community_reports: checks that need it are skipped.",
    )


def test_an_index_of_nothing_has_nothing_wrong(tmp_path: Path) -> None:
    tables = {name: rows.clear() for name, rows in healthy().items()}
    health = check(tmp_path, tables)
    assert found(health) == {}
    assert health.statistics.graph is not None
    assert health.statistics.graph.nodes == 0


def test_a_limit_is_a_count_or_a_share(tmp_path: Path) -> None:
    tables = with_vectors(without("community_reports", 2))(healthy())
    assert not check(tmp_path / "a", tables).failed
    assert not check(tmp_path / "b", tables, Check(max_missing_reports=0.34)).failed
    assert check(tmp_path / "c", tables, Check(max_missing_reports=0.33)).failed
    dangling = changed("entities", 0, text_unit_ids=["u8", "u9"])(healthy())
    assert check(tmp_path / "d", dangling, Check(max_dangling_ids=1)).failed
    assert not check(tmp_path / "e", dangling, Check(max_dangling_ids=2)).failed


@pytest.mark.parametrize("name", ["entities.parquet", "lancedb/text_unit_text.lance/data"])
def test_a_table_that_cannot_be_read_is_a_finding(tmp_path: Path, name: str) -> None:
    output = write_index(tmp_path, **healthy())
    stem = Path(name).stem if name.endswith("parquet") else "text_unit_text"
    files = [*output.glob(f"versions/1/{name}"), *output.glob(f"{name}/*")]
    for path in files:
        path.write_bytes(b"PAR1" + bytes(path.stat().st_size - 8) + b"PAR1")
    assert files
    health = check_index(open_for_check(output), Check())
    assert found(health)["unreadable_tables"] == [(stem, 1)]
    assert health.failed
    # All that does not need it was looked at.
    assert {"uncovered_documents"} >= found(health).keys() - {"unreadable_tables"}


def test_the_statistics_are_those_of_a_graph_that_one_can_count(tmp_path: Path) -> None:
    statistics = compute_statistics(open_for_check(write_index(tmp_path, **healthy())))
    graph = statistics.graph
    assert graph is not None
    assert (graph.nodes, graph.edges, graph.average_degree) == (4, 2, 1.0)
    assert (graph.components, graph.largest_component, graph.isolated) == (2, 3, 1)
    # All weight lies inside, in a part that has all ends: nothing is above chance.
    assert (graph.modularity, graph.edges_between_communities) == (0.0, 0)
    assert graph.weight_within_communities == 1.0
    assert [(level.communities, level.largest) for level in statistics.levels] == [(2, 3), (1, 2)]
    assert [level.largest_share for level in statistics.levels] == [0.75, 1.0]
    # The exponential of the entropy of 3/4 and 1/4.
    assert [level.effective_communities for level in statistics.levels] == [1.75, 1.0]
    assert statistics.documents.rows() == [
        ("0.txt", "Document 0", "en", 2, 10, 3, 2),
        ("1.txt", "Document 1", "en", 1, 5, 1, 0),
    ]
    assert statistics.languages == (
        {"language": "en", "documents": 2, "text_units": 3, "tokens": 15},
    )


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
    for listed in rows.values():
        assert max(Counter(row["id"] for row in listed).values()) == 1
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
    assert health.statistics.languages[0]["language"] == "und"


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

"""Checks of rows: ids that no row has, duplicates, and stale search tables."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl

from graphrag_index.health.checked_index import (
    MAX_EXAMPLES,
    NEEDED_COLUMNS,
    CheckedIndex,
    CheckResult,
    Finding,
    count_rows,
    find,
    name_row,
)

# Columns whose values must be those of another table's column.
REFERENCES = (
    ("documents", "text_unit_ids", "text_units", "id"),
    ("text_units", "document_id", "documents", "id"),
    ("text_units", "document_ids", "documents", "id"),
    ("text_units", "entity_ids", "entities", "id"),
    ("text_units", "relationship_ids", "relationships", "id"),
    ("text_units", "covariate_ids", "covariates", "id"),
    ("entities", "text_unit_ids", "text_units", "id"),
    ("entities", "evidence", "documents", "id"),
    ("relationships", "source", "entities", "title"),
    ("relationships", "target", "entities", "title"),
    ("relationships", "source_id", "entities", "id"),
    ("relationships", "target_id", "entities", "id"),
    ("relationships", "text_unit_ids", "text_units", "id"),
    ("relationships", "evidence", "documents", "id"),
    ("mentions", "entity", "entities", "human_readable_id"),
    ("mentions", "text_unit", "text_units", "human_readable_id"),
    ("communities", "entity_ids", "entities", "id"),
    ("communities", "relationship_ids", "relationships", "id"),
    ("communities", "text_unit_ids", "text_units", "id"),
    ("communities", "parent", "communities", "community"),
    ("communities", "children", "communities", "community"),
    ("community_reports", "community", "communities", "community"),
    ("covariates", "text_unit_id", "text_units", "id"),
)
_KEY_NAMES = {"id": "ids", "title": "titles"}
_DUPLICATE_MEANS = {
    "id": "Rows with the same id are confused wherever the id is used.",
    "human_readable_id": "Citations of this number are ambiguous.",
    "community": "Citations of this number are ambiguous.",
    "title": "Relationships refer to entities by title, so they match both rows.",
    "link": "The link between two entities counts twice.",
}
# Search tables with a row for each row of a table.
_ROWS_OF = {
    "document_rows": "documents",
    "text_unit_rows": "text_units",
    "text_unit_vectors": "text_units",
    "entity_rows": "entities",
    "relationship_rows": "relationships",
    "community_rows": "communities",
    "report_rows": "community_reports",
    "claim_rows": "covariates",
}


def dangling_ids(index: CheckedIndex) -> CheckResult:
    """Find references to rows that do not exist."""
    findings: list[Finding] = []
    n_references = 0
    for table, column, target, key in REFERENCES:
        if not (index.has(table, column) and index.has(target, key)):
            continue
        named = _references(index, table, column)
        n_named = count_rows(named)
        n_references += n_named
        # A collision of 64-bit hashes is unlikely even among a billion ids.
        known = index.tables[target].select(key=_hash(key)).drop_nulls()
        findings += find(
            named.with_columns(key=_hash("named")).join(known, on="key", how="anti"),
            f"{table}.{column}",
            n_named,
            f"{_KEY_NAMES.get(key, 'numbers')} in {table}.{column} belong to no row of {target}: "
            "those rows were deleted or never written, and searches skip them. Rebuild the index "
            "from its documents.",
            by=["row", "named"],
            example=partial(_reference_name, table),
        )
    return CheckResult(n_references or None, tuple(findings))


def _reference_name(table: str, row: Mapping[str, object]) -> str:
    return f"{name_row(table, row['row'])}: {row['named']}"


def _references(index: CheckedIndex, table: str, column: str) -> pl.LazyFrame:
    """Return the values of a column as `named`, and the labels of their rows as `row`."""
    label = index.label(table) if index.has(table, index.label(table)) else column
    rows = index.tables[table].select(row=pl.col(label), named=pl.col(column))
    dtype = rows.collect_schema()["named"]
    if isinstance(dtype, pl.List):
        rows = rows.explode("named")
        if isinstance(dtype.inner, pl.Struct):
            rows = rows.with_columns(named=pl.col("named").struct.field("document_id"))
    rows = rows.drop_nulls("named")
    if column == "parent":
        rows = rows.filter(pl.col("named") != -1)  # level 0 has none
    if column in ("source_id", "target_id"):
        # An imported row has none if its title is unknown, which the check of titles reports.
        rows = rows.filter(pl.col("named") != "")
    return rows


def _hash(column: str) -> pl.Expr:
    """Hash a value; integers of all widths have the same hash."""
    return pl.col(column).cast(pl.String).hash()


def duplicates(index: CheckedIndex) -> CheckResult:
    """Find rows that share an id, a number, a title, or both ends."""
    findings: list[Finding] = []
    n_values = 0
    for table in NEEDED_COLUMNS:
        columns = ["id", "human_readable_id"]
        if table in ("communities", "community_reports"):
            # Their human_readable_id is a copy of this number.
            columns = ["id", "community"]
        if table == "entities":
            columns.append("title")
        for column in columns:
            if index.has(table, column):
                rows, name = index.tables[table], f"{table}.{column}"
                found, n = _repeated(rows, [column], name, _DUPLICATE_MEANS[column])
                findings += found
                n_values += n
    ends = ["source", "target"]
    if index.has("relationships", *ends):
        rows = index.tables["relationships"]
        if index.is_own:
            # Only ours have no direction.
            rows = rows.select(source=pl.min_horizontal(ends), target=pl.max_horizontal(ends))
        found, n = _repeated(rows, ends, "relationships", _DUPLICATE_MEANS["link"])
        findings += found
        n_values += n
    return CheckResult(n_values or None, tuple(findings))


def _repeated(
    rows: pl.LazyFrame, columns: Sequence[str], name: str, means: str
) -> tuple[list[Finding], int]:
    """Find values that several rows have; also return the number of values."""
    key = pl.concat_str(
        [pl.col(column).cast(pl.String) for column in columns], separator="\x1f"
    ).alias("key")
    rows = rows.select(key).drop_nulls()
    hashes = rows.select(pl.col("key").hash()).collect(engine="streaming")["key"].to_numpy()
    hashes = np.sort(hashes)
    repeated_hashes = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    n_rows = len(hashes)
    if not len(repeated_hashes):
        return [], n_rows
    # Hashes may collide, so compare the values.
    repeated = (
        rows.filter(pl.col("key").hash().is_in(pl.Series(repeated_hashes).implode()))
        .group_by("key")
        .len()
        .filter(pl.col("len") > 1)
        .collect(engine="streaming")
        .sort("key")
    )
    count = int((repeated["len"] - 1).sum())
    if not count:
        return [], n_rows
    examples = tuple(
        f"{value.replace(chr(31), ' - ')} ({n} times)"
        for value, n in repeated.head(MAX_EXAMPLES).iter_rows()
    )
    message = f"{count:,} of {n_rows:,} rows of {name} repeat another. {means} Rebuild the index."
    return [Finding(name, count, n_rows, examples, message)], n_rows


def equal_documents(index: CheckedIndex) -> CheckResult:
    """Find documents with the same text."""
    if not index.has("documents", "text"):
        return CheckResult(None)
    named = next((c for c in ("path", "title", "id") if index.has("documents", c)), "text")
    texts = index.tables["documents"].select(pl.col("text").hash(), name=pl.col(named))
    repeated = (
        texts.collect(engine="streaming")
        .group_by("text", maintain_order=True)
        .agg("name")
        .filter(pl.col("name").list.len() > 1)
    )
    n_documents = int(texts.select(pl.len()).collect().item())
    count = int((repeated["name"].list.len() - 1).sum())
    if not count:
        return CheckResult(n_documents)
    groups = repeated["name"].head(MAX_EXAMPLES).to_list()
    examples = tuple(" = ".join(map(str, names[:3])) for names in groups)
    means = (
        f"{count:,} of {n_documents:,} documents have the same text as another and count "
        "twice. Exclude the copies with load_documents.exclude."
    )
    finding = Finding("documents.text", count, n_documents, examples, means)
    return CheckResult(n_documents, (finding,))


def stale_search_tables(index: CheckedIndex) -> CheckResult:
    """Compare search tables with the tables that they derive from: row counts and ids."""
    findings: list[Finding] = []
    n_checked = 0
    for name, table in _ROWS_OF.items():
        if name not in index.search_tables or not index.has(table):
            continue
        rows, source = index.search_tables[name], index.tables[table]
        n_rows, n_source = count_rows(rows), count_rows(source)
        n_checked += n_source
        n_wrong = abs(n_rows - n_source)
        if not n_wrong and "id" in rows.collect_schema() and index.has(table, "id"):
            ids = pl.concat([rows.select(here="id"), source.select(there="id")], how="horizontal")
            differ = ids.select((pl.col("here") != pl.col("there")).sum())
            n_wrong = int(differ.collect(engine="streaming").item())
        findings += _stale(name, table, n_rows, n_source, n_wrong)
    name = "relationships_of_entities"
    if name in index.search_tables and index.has("relationships"):
        # Each relationship is listed at both of its ends.
        n_rows, n_expected = count_rows(index.search_tables[name]), 2 * _n_links(index)
        findings += _stale(name, "relationships", n_rows, n_expected, abs(n_rows - n_expected))
    name = "communities_of_entities"
    if name in index.search_tables and index.has("communities", "entity_ids"):
        n_rows = count_rows(index.search_tables[name])
        lengths = index.tables["communities"].select(pl.col("entity_ids").list.len().sum())
        n_expected = int(lengths.collect(engine="streaming").item() or 0)
        findings += _stale(name, "communities", n_rows, n_expected, abs(n_rows - n_expected))
    return CheckResult(n_checked or None, tuple(findings))


def _n_links(index: CheckedIndex) -> int:
    """Count the relationships between two known entities; imported ones may lack an end."""
    rows = index.tables["relationships"]
    if not (index.has("relationships", "source_id") and index.has("entities", "id")):
        return count_rows(rows)
    known = index.tables["entities"].select(pl.col("id").hash()).drop_nulls()
    ends = rows.select(pl.col("source_id", "target_id").hash()).filter(
        pl.col("source_id") != pl.col("target_id")
    )
    for end in ("source_id", "target_id"):
        ends = ends.join(known, left_on=end, right_on="id", how="semi")
    return count_rows(ends)


def _stale(name: str, table: str, n_rows: int, n_expected: int, n_wrong: int) -> list[Finding]:
    if not n_wrong:
        return []
    means = (
        f"{name} has {n_rows:,} rows where {table} implies {n_expected:,}, or rows with other "
        "ids: searches would show the wrong rows. Delete its file, and `graphrag-index run` writes "
        "it again."
    )
    return [Finding(name, n_wrong, n_expected, (), means)]

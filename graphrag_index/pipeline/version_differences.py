"""Differences between two versions of an index, by table and row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from graphrag_index.pipeline.changes import (
    ADDED,
    CHANGED,
    DELETED,
    RENAMED,
    UNCHANGED,
    Changes,
    compare_documents,
    digest_table,
)
from graphrag_index.storage.table_store import TableStore, scan_table
from graphrag_index.storage.versions import Version

REMOVED = "removed"

# Pattern of citations. Their row numbers change when other rows change, so citations are removed.
_CITATION_PATTERN = r"\[Data:[^\]]*\]"

# For each table: the key of its rows, the display name of a row, and the compared columns. Weights,
# degrees, positions and ids of text units are not compared, because a change of other documents
# changes them too.
COMPARED_TABLES = {
    "entities": (
        "id",
        pl.col("title"),
        [pl.col("title", "type", "description", "aliases", "frequency")],
    ),
    "relationships": (
        "id",
        pl.format("{} - {}", "source", "target"),
        [pl.col("source", "target", "type", "description"), pl.col("text_unit_ids").list.len()],
    ),
    "communities": (
        "community",
        pl.col("title"),
        [pl.col("level", "parent"), pl.col("entity_ids").list.sort()],
    ),
    "community_reports": (
        "community",
        pl.format("{}: {}", "community", "title"),
        [pl.col("title"), pl.col("summary", "full_content").str.replace_all(_CITATION_PATTERN, "")],
    ),
}


@dataclass(frozen=True)
class Difference:
    """The changed rows of one table, grouped by the kind of change.

    `counts` has the number of rows of each kind, and `names` has the names of the rows. Several
    records of one file are listed under one name.
    """

    counts: Mapping[str, int]
    names: Mapping[str, Sequence[str]]


def compare_versions(store: TableStore, before: Version, after: Version) -> dict[str, Difference]:
    """Compare the tables of two versions. Return the differences by table name.

    Rows of entities and relationships are matched by id. Rows of communities and reports are
    matched by community number. Documents are paired by `compare_documents`. The names of changed
    rows are in the order of the rows.
    """
    changes = _compare_stored_documents(store, before, after)
    kinds = {ADDED: ADDED, REMOVED: DELETED, CHANGED: CHANGED, RENAMED: RENAMED}
    counts = {kind: changes.count(found) for kind, found in kinds.items()}
    names = {kind: changes.names(found) for kind, found in kinds.items()}
    found = {"documents": Difference(counts, names)}
    for name in COMPARED_TABLES:
        rows = _find_changed_rows(store, before, after, name)
        changed = dict(rows.group_by("kind", maintain_order=True).agg("name").iter_rows())
        by_kind = {kind: changed.get(kind, []) for kind in (ADDED, REMOVED, CHANGED)}
        found[name] = Difference({kind: len(rows) for kind, rows in by_kind.items()}, by_kind)
    return found


def compare_rows(store: TableStore, before: Version, after: Version, table: str) -> pl.DataFrame:
    """Return the changed rows of `documents` or a table of `COMPARED_TABLES`, in their order.

    The columns are `kind` (added, removed, changed, renamed), `name`, and `before` and `after`:
    the number of the row in each version, null in the version that does not have the row. The
    number is the `human_readable_id`, or that of the community. Rows are matched as in
    `compare_versions`.
    """
    if table != "documents":
        return _find_changed_rows(store, before, after, table)
    rows = _compare_stored_documents(store, before, after).rows
    return rows.filter(pl.col("kind") != UNCHANGED).select(
        kind=pl.col("kind").replace(DELETED, REMOVED),
        name=pl.coalesce("path", "old_path"),
        before=pl.col("old_row").cast(pl.Int64),
        after=pl.col("row").cast(pl.Int64),
    )


def _compare_stored_documents(store: TableStore, before: Version, after: Version) -> Changes:
    digests = []
    for version in (before, after):
        # Compare `loaded_documents` if a workflow only loads documents and has no table
        # `documents`. An imported index has only the table `documents`.
        table = "documents" if "documents" in version.tables else "loaded_documents"
        digests.append(digest_table(store, table, version.tables))
    return compare_documents(*digests)


def _find_changed_rows(
    store: TableStore, before: Version, after: Version, table: str
) -> pl.DataFrame:
    """Return the rows of a table that were added, removed or changed; see `compare_rows`."""
    key, label, content = COMPARED_TABLES[table]
    if before.tables.get(table) == after.tables.get(table):
        columns = {"kind": pl.String, "name": pl.String, "before": pl.Int64, "after": pl.Int64}
        return pl.DataFrame(schema=columns)
    # Compare hashes of the columns, because their texts may be long.
    number = pl.col("community" if key == "community" else "human_readable_id").cast(pl.Int64)
    compared = {"key": pl.col(key), "name": label, "content": pl.struct(*content).hash()}
    old, new = (
        scan_table(store, version, table)
        .select(**compared, number=number)
        .with_columns(row=pl.int_range(pl.len()))
        for version in (before, after)
    )
    joined = new.join(old, on="key", how="full", coalesce=True, suffix="_before")
    is_added, is_removed = pl.col("row_before").is_null(), pl.col("row").is_null()
    kind = pl.when(is_added).then(pl.lit(ADDED)).when(is_removed).then(pl.lit(REMOVED))
    return (
        joined.filter(is_added | is_removed | (pl.col("content") != pl.col("content_before")))
        .sort(pl.coalesce("row", "row_before"), pl.coalesce("name", "name_before"))
        .select(
            kind=kind.otherwise(pl.lit(CHANGED)),
            name=pl.coalesce("name", "name_before"),
            before="number_before",
            after="number",
        )
        .collect(engine="streaming")
    )

"""Differences between documents of the index and the input, and between two versions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import Version

ADDED, CHANGED, RENAMED, DELETED = "added", "changed", "renamed", "deleted"
KINDS = (ADDED, CHANGED, RENAMED, DELETED)
UNCHANGED = "unchanged"

REMOVED = "removed"
# Documents per batch: bounds memory, not results.
BATCH_DOCUMENTS = 1_024

# One row per document, in any order.
COLUMNS = {
    "id": pl.String,  # as stated by the record; null if derived from the text
    "path": pl.String,
    "text": pl.String,  # digest of the text
    "details": pl.UInt64,  # hash of title, date, record and metadata; valid in one process
}
# Keys that pair a document of the index with one of the input, most specific first. A record
# that states an id is paired by the id alone.
_BY_CONTENT = (["path", "text", "details"], ["path", "text"], ["text"], ["path"])


# Citations contain row numbers, which change with other rows.
_CITATION = r"\[Data:[^\]]*\]"


@dataclass(frozen=True)
class Compared:
    """The key of the rows of a table, their display name, and the compared content."""

    key: str
    name: pl.Expr
    content: Sequence[pl.Expr]


# Weights, degrees, positions and ids of text units change with other documents: a row that
# differs in nothing else has not changed.
COMPARED = {
    "entities": Compared(
        "id",
        pl.col("title"),
        [pl.col("title", "type", "description", "aliases", "frequency")],
    ),
    "relationships": Compared(
        "id",
        pl.format("{} - {}", "source", "target"),
        [pl.col("source", "target", "type", "description"), pl.col("text_unit_ids").list.len()],
    ),
    "communities": Compared(
        "community",
        pl.col("title"),
        [pl.col("level", "parent"), pl.col("entity_ids").list.sort()],
    ),
    "community_reports": Compared(
        "community",
        pl.format("{}: {}", "community", "title"),
        [pl.col("title"), pl.col("summary", "full_content").str.replace_all(_CITATION, "")],
    ),
}


@dataclass(frozen=True)
class Difference:
    """The changed rows of one table, by kind: their number and names.

    The records of a file share one name.
    """

    counts: Mapping[str, int]
    names: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Changes:
    """Differences between the documents of the index and those of the input.

    `rows` has one row per document of either, with the columns `kind`, `old_row` and `row` (row
    numbers in the two tables), and `old_...` and `...` for each of `COLUMNS`. Of an added document
    the old columns are null, of a deleted one the new columns.
    """

    rows: pl.DataFrame

    def count(self, kind: str) -> int:
        """Return the number of documents of a kind."""
        return int((self.rows["kind"] == kind).sum())

    def __bool__(self) -> bool:
        return self.count(UNCHANGED) < self.rows.height

    def __str__(self) -> str:
        """Summarize on one line: "3 added, 1 deleted documents"."""
        counts = [(kind, n) for kind in KINDS if (n := self.count(kind))]
        if not counts:
            return "no document changed"
        summary = ", ".join(f"{n:,} {kind}" for kind, n in counts)
        return f"{summary} document{'s' * (sum(n for _, n in counts) != 1)}"

    def names(self, kind: str) -> list[str]:
        """Return the paths of the documents of a kind; the records of a file are grouped.

        A renamed document has both names: "a.md to b.md".
        """
        path = "old_path" if kind == DELETED else "path"
        keys = [path, "old_path"] if kind == RENAMED else [path]
        groups = self.rows.filter(kind=kind).group_by(keys, maintain_order=True).len()
        return [
            (f"{row['old_path']} to " if kind == RENAMED else "")
            + row[path]
            + (f" ({row['len']:,} records)" if row["len"] > 1 else "")
            for row in groups.iter_rows(named=True)
        ]


def digest_documents(batches: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the rows to compare of batches of `loaded_documents`, in their order."""
    n_of_text: dict[bytes, int] = {}
    parts = [pl.DataFrame(schema=COLUMNS)]
    for batch in batches:
        rows = []
        for id, path, text in batch.select("id", "path", "text").iter_rows():
            digest = content_id("document", text, "0")
            key = bytes.fromhex(digest)
            before = n_of_text.get(key, 0)
            # Without a stated id, it is derived from the text and the number of equal ones before.
            derived = content_id("document", text, str(before)) if before else digest
            if id == derived:
                n_of_text[key] = before + 1
            rows.append((None if id == derived else id, path, digest))
        details = batch.select("title", "creation_date", "raw_data", "metadata").hash_rows()
        schema = {name: dtype for name, dtype in COLUMNS.items() if name != "details"}
        frame = pl.DataFrame(rows, schema=schema, orient="row")
        parts.append(frame.with_columns(details=details))
    return pl.concat(parts)


def compare_documents(old: pl.DataFrame, new: pl.DataFrame) -> Changes:
    """Pair the documents of an index with those of the input, each once.

    Records with a stated id are paired by it. Other documents with the same path and text are
    unchanged, or changed if the title, date, record or metadata differ; with the same text and
    another path they are renamed; with the same path and another text they are changed.
    """
    before = old.rename({name: f"old_{name}" for name in COLUMNS}).with_row_index("old_row")
    after = new.with_row_index("row")
    pairs = []
    for stated, keys in ((True, ["id"]), *((False, keys) for keys in _BY_CONTENT)):
        left = _nth(before.filter(pl.col("old_id").is_not_null() == stated), keys, "old_")
        right = _nth(after.filter(pl.col("id").is_not_null() == stated), keys, "")
        found = left.join(right, on=["key", "nth"]).drop("key", "nth")
        pairs.append(found)
        before = before.join(found, on="old_row", how="anti")
        after = after.join(found, on="row", how="anti")
    rows = pl.concat([*pairs, before, after], how="diagonal")
    has_text, has_path = (pl.col(name) == pl.col(f"old_{name}") for name in ("text", "path"))
    kind = (
        pl.when(pl.col("old_row").is_null()).then(pl.lit(ADDED))
        .when(pl.col("row").is_null()).then(pl.lit(DELETED))
        .when(has_text & ~has_path).then(pl.lit(RENAMED))
        .when(has_text & (pl.col("details") == pl.col("old_details"))).then(pl.lit(UNCHANGED))
        .otherwise(pl.lit(CHANGED))
    )  # fmt: skip
    return Changes(rows.select(kind.alias("kind"), pl.all()).sort("row", "old_row"))


def _nth(rows: pl.DataFrame, keys: Sequence[str], prefix: str) -> pl.DataFrame:
    """Add the key of each row, and the number of rows before it with the same key."""
    key = pl.struct(pl.col(f"{prefix}{name}").alias(name) for name in keys)
    return rows.with_columns(key=key).with_columns(nth=pl.int_range(pl.len()).over("key"))


def compare(store: TableStore, before: Version, after: Version) -> dict[str, Difference]:
    """Compare the tables of two versions; names are in the order of the tables.

    Entities and relationships are identified by id, communities and reports by number; documents
    are paired as in a run.

    Raises
    ------
    TableError
        A table is missing or damaged.
    """
    found = {"documents": _compare_documents(store, before, after)}
    for name, compared in COMPARED.items():
        names: dict[str, list[str]] = {}
        if _digest(before, name) != _digest(after, name):
            rows = _changes(_scan(store, before, name), _scan(store, after, name), compared)
            names = dict(rows.group_by("kind", maintain_order=True).agg("name").iter_rows())
        kinds = {kind: names.get(kind, []) for kind in (ADDED, REMOVED, CHANGED)}
        found[name] = Difference({kind: len(names) for kind, names in kinds.items()}, kinds)
    return found


def _compare_documents(store: TableStore, before: Version, after: Version) -> Difference:
    old, new = (digest_documents(_documents(store, version)) for version in (before, after))
    changes = compare_documents(old, new)
    kinds = {ADDED: ADDED, REMOVED: DELETED, CHANGED: CHANGED, RENAMED: RENAMED}
    counts = {kind: changes.count(found) for kind, found in kinds.items()}
    return Difference(counts, {kind: changes.names(found) for kind, found in kinds.items()})


def _documents(store: TableStore, version: Version) -> Iterator[pl.DataFrame]:
    """Yield the documents of a version in batches."""
    name = "loaded_documents" if "loaded_documents" in version.tables else "documents"
    if any(record.name == "skip_imported" for record in version.steps):
        # Documents of an imported index are not in the input.
        name = "documents"
    table = version.tables.get(name)
    for start in range(0, table.rows if table else 0, BATCH_DOCUMENTS):
        yield _scan(store, version, name).slice(start, BATCH_DOCUMENTS).collect()


def _digest(version: Version, name: str) -> str:
    table = version.tables.get(name)
    return table.digest if table else ""


def _scan(store: TableStore, version: Version, name: str) -> pl.LazyFrame:
    """Scan a table; one that the version lacks is empty."""
    table = version.tables.get(name)
    return store.scan(name, table) if table else TABLES[name].empty().lazy()


def _changes(before: pl.LazyFrame, after: pl.LazyFrame, compared: Compared) -> pl.DataFrame:
    """Return the name and the kind of change of each row that differs."""
    old, new = (
        # Long texts are compared by their hash.
        frame.select(
            key=pl.col(compared.key),
            row=pl.int_range(pl.len()),
            name=compared.name,
            content=pl.struct(*compared.content).hash(),
        )
        for frame in (before, after)
    )
    joined = new.join(old, on="key", how="full", coalesce=True, suffix="_before")
    is_added, is_removed = pl.col("row_before").is_null(), pl.col("row").is_null()
    kind = pl.when(is_added).then(pl.lit(ADDED)).when(is_removed).then(pl.lit(REMOVED))
    return (
        joined.filter(is_added | is_removed | (pl.col("content") != pl.col("content_before")))
        .select(
            name=pl.coalesce("name", "name_before"),
            kind=kind.otherwise(pl.lit(CHANGED)),
            row=pl.coalesce("row", "row_before"),
        )
        .sort("row", "name")
        .collect(engine="streaming")
    )

"""What changed in the input: the documents of the index beside those that lie there now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from graphrag_index.schema.tables import content_id

ADDED, CHANGED, RENAMED, DELETED = "added", "changed", "renamed", "deleted"
KINDS = (ADDED, CHANGED, RENAMED, DELETED)
UNCHANGED = "unchanged"

# One row per document, in any order.
COLUMNS = {
    "id": pl.String,  # as the record states it; null where it is made of the text
    "path": pl.String,
    "text": pl.String,  # its digest
    "details": pl.UInt64,  # digest of title, date, record and metadata; of one process only
}
# What pairs a document of the index with one of the input, the surest first. A stated id is all
# that counts for a record that has one.
_BY_CONTENT = (["path", "text", "details"], ["path", "text"], ["text"], ["path"])


@dataclass(frozen=True)
class Changes:
    """How the documents of the input differ from those of the index.

    `rows` has one row per document of either, with the columns `kind`, `old_row` and `row` (its
    numbers in the two tables that were compared), and `old_...` and `...` for each of `COLUMNS`.
    Of those that were added the old ones are null, of those that were deleted the new ones.
    """

    rows: pl.DataFrame

    def count(self, kind: str) -> int:
        """Return how many documents are of a kind."""
        return int((self.rows["kind"] == kind).sum())

    def __bool__(self) -> bool:
        return self.count(UNCHANGED) < self.rows.height

    def __str__(self) -> str:
        """Say it on one line: "3 added, 1 deleted documents"."""
        counts = [(kind, n) for kind in KINDS if (n := self.count(kind))]
        if not counts:
            return "no document changed"
        said = ", ".join(f"{n:,} {kind}" for kind, n in counts)
        return f"{said} document{'s' * (sum(n for _, n in counts) != 1)}"

    def names(self, kind: str) -> list[str]:
        """Name the documents of a kind by their paths: the records of a file together.

        Those that were renamed have both names: "a.md to b.md".
        """
        path = "old_path" if kind == DELETED else "path"
        told = [path, "old_path"] if kind == RENAMED else [path]
        groups = self.rows.filter(kind=kind).group_by(told, maintain_order=True).len()
        return [
            (f"{row['old_path']} to " if kind == RENAMED else "")
            + row[path]
            + (f" ({row['len']:,} records)" if row["len"] > 1 else "")
            for row in groups.iter_rows(named=True)
        ]


def digest_documents(batches: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Make the rows to compare of batches of `loaded_documents`, in their order."""
    n_of_text: dict[bytes, int] = {}
    parts = [pl.DataFrame(schema=COLUMNS)]
    for batch in batches:
        rows = []
        for id, path, text in batch.select("id", "path", "text").iter_rows():
            digest = content_id("document", text, "0")
            key = bytes.fromhex(digest)
            before = n_of_text.get(key, 0)
            # Where no id is stated it is made of the text, and of how many such were before.
            made = content_id("document", text, str(before)) if before else digest
            if id == made:
                n_of_text[key] = before + 1
            rows.append((None if id == made else id, path, digest))
        details = batch.select("title", "creation_date", "raw_data", "metadata").hash_rows()
        schema = {name: dtype for name, dtype in COLUMNS.items() if name != "details"}
        frame = pl.DataFrame(rows, schema=schema, orient="row")
        parts.append(frame.with_columns(details=details))
    return pl.concat(parts)


def compare_documents(old: pl.DataFrame, new: pl.DataFrame) -> Changes:
    """Pair the documents of an index with those of the input, each once.

    A record that states an id is the same as the one with that id. Of others, what has the same
    path and text is unchanged, and changed if its title, date, record or metadata differ; what
    has the same text elsewhere is renamed; what has another text in the same path is changed.
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
    """Add what documents are paired by: the key, and how many before it have the same."""
    key = pl.struct(pl.col(f"{prefix}{name}").alias(name) for name in keys)
    return rows.with_columns(key=key).with_columns(nth=pl.int_range(pl.len()).over("key"))


def as_json(changes: Changes) -> Mapping[str, Any]:
    """Make numbers and names of it, for programs."""
    return {kind: {"count": changes.count(kind), "names": changes.names(kind)} for kind in KINDS}

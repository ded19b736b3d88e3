"""Checks of vectors: missing, stale, repeated, or of different models."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.health.checked_index import (
    SINGULAR,
    CheckedIndex,
    CheckResult,
    Finding,
    ModelIdentity,
    Vectors,
    count_rows,
    find,
)

# The table and the columns that each vector table embeds, joined by colons.
_EMBEDDED = {
    "text_unit_text": ("text_units", ("text",)),
    "entity_description": ("entities", ("title", "description")),
    "community_full_content": ("community_reports", ("full_content",)),
}


class EmbeddedTable(NamedTuple):
    """A vector table and the table whose rows it embeds."""

    name: str
    table: str
    rows: pl.LazyFrame  # `row`, a label; `key`, a hash of the id; `text_hash`
    vectors: pl.DataFrame

    @property
    def rows_name(self) -> str:
        return self.table.replace("_", " ")

    def find(
        self, n_checked: int, defects: pl.LazyFrame, means: str, is_id: bool = False
    ) -> list[Finding]:
        """Report defective rows; `row` is a label, or an id if `is_id`."""
        noun = "id" if is_id else SINGULAR[self.table]
        return find(
            defects,
            self.name,
            n_checked,
            means,
            by=["row"],
            example=lambda row: f"{noun} {row['row']}",
        )


class VectorChecks:
    """The checks of vectors; each vector table is read once for all of them."""

    def __init__(self, index: CheckedIndex) -> None:
        self.index = index

    def missing(self) -> CheckResult:
        """Find rows without a vector, and vectors of zeros or non-finite numbers."""
        findings: list[Finding] = []
        n_checked = 0
        for table in self._tables:
            rows, vectors = table.rows, table.vectors.lazy()
            n_rows = count_rows(rows)
            n_checked += n_rows
            findings += table.find(
                n_rows,
                rows.join(vectors, on="key", how="anti"),
                f"{table.rows_name} have no vector: vector search does not find them. Generate the "
                "vectors again.",
            )
            findings += table.find(
                n_rows,
                rows.join(vectors.filter(~pl.col("is_valid")), on="key", how="semi"),
                f"{table.rows_name} have a vector of zeros or non-finite numbers because the model "
                "returned none: only full-text search finds them. `graphrag-index retry` requests "
                "them again.",
            )
        return CheckResult(n_checked if self._tables else None, tuple(findings))

    def stale(self) -> CheckResult:
        """Find vectors of earlier texts or deleted rows, repeated ones, and mixed models."""
        findings: list[Finding] = []
        n_checked = 0
        for table in self._tables:
            rows, vectors = table.rows, table.vectors.lazy()
            n_vectors = table.vectors.height
            n_checked += n_vectors
            findings += table.find(
                n_vectors,
                vectors.join(rows, on="key", how="anti").select(row="id"),
                f"vectors belong to {table.rows_name} that no longer exist: searches find rows "
                "that they cannot show. Generate the vectors again.",
                is_id=True,
            )
            pairs = rows.join(vectors, on="key", suffix="_embedded")
            findings += table.find(
                n_vectors,
                pairs.filter(pl.col("text_hash") != pl.col("text_hash_embedded")),
                f"vectors embed an earlier text of their {table.rows_name}: searches find the old "
                "text. Generate the vectors again.",
            )
            findings += table.find(
                n_vectors,
                vectors.filter(~pl.col("key").is_first_distinct()).select(row="id"),
                "vectors repeat the id of another: searches find its row twice. Generate the "
                "vectors again.",
                is_id=True,
            )
        findings += [*self._different_dimensions(), *self._other_model()]
        return CheckResult(n_checked if self._tables else None, tuple(findings))

    @cached_property
    def _tables(self) -> list[EmbeddedTable]:
        """Read the vector tables; those that cannot be read are recorded as damaged."""
        tables = []
        for name, (table, columns) in _EMBEDDED.items():
            if name not in self.index.vectors or not self.index.has(table, "id", *columns):
                continue
            try:
                vectors = read_vectors(self.index.vectors[name])
            except TableError as error:
                del self.index.vectors[name]
                self.index.damaged.append(Finding(name, 1, 1, (), str(error)))
                continue
            text = pl.concat_str([pl.col(c).fill_null("") for c in columns], separator=":")
            rows = self.index.tables[table].select(
                row=pl.col(self.index.label(table)), key=pl.col("id").hash(), text_hash=text.hash()
            )
            tables.append(EmbeddedTable(name, table, rows, vectors))
        return tables

    def _different_dimensions(self) -> list[Finding]:
        dimensions = {
            table.name: self.index.vectors[table.name].dimension
            for table in self._tables
            if table.vectors.height
        }
        if len(set(dimensions.values())) <= 1:
            return []
        examples = tuple(f"{name}: {dimension:,}" for name, dimension in dimensions.items())
        means = (
            "The vector tables have different dimensions, so different models made them: one "
            "question cannot be compared with all of them. Generate the vectors again."
        )
        return [Finding("vectors", 1, len(dimensions), examples, means)]

    def _other_model(self) -> list[Finding]:
        current, made_by = self.index.question_model, self.index.vector_models
        if current is None:
            return []
        examples = tuple(
            f"{table.name}: {_describe_model(made_by[table.name])}"
            for table in self._tables
            if made_by.get(table.name, current) != current
        )
        if not examples:
            return []
        means = (
            f"The settings embed with {_describe_model(current)}, and another model made these "
            "vectors: questions are refused. `graphrag-index run` embeds again."
        )
        return [Finding("vectors", 1, len(made_by), examples, means)]


def _describe_model(model: ModelIdentity) -> str:
    name, dimensions = model
    return f"{name} ({dimensions:,} dimensions)" if dimensions else name


def read_vectors(vectors: Vectors) -> pl.DataFrame:
    """Read `id`, `key` (its hash), `text_hash` (null if no text is stored) and `is_valid`.

    A vector is valid if all its numbers are finite and one is not zero.
    """
    schema = {"id": pl.String, "key": pl.UInt64, "text_hash": pl.UInt64, "is_valid": pl.Boolean}
    parts = [pl.DataFrame(schema=schema)]
    for batch in vectors.batches():
        values = batch["vector"].to_numpy()
        is_valid = np.isfinite(values).all(axis=1) & np.any(values, axis=1)
        text = pl.col("text") if "text" in batch.columns else pl.lit(None)
        text = text.cast(pl.String)
        parts.append(
            batch.select(
                pl.col("id").cast(pl.String),
                key=pl.col("id").cast(pl.String).hash(),
                # The hash of null is a number, but a vector without a text cannot be stale.
                text_hash=pl.when(text.is_not_null()).then(text.hash()),
                is_valid=pl.Series(is_valid, dtype=pl.Boolean),
            )
        )
    return pl.concat(parts)

"""Checks of vectors: one for each text, of its current version, from one model."""

from collections.abc import Callable, Mapping

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
    find,
)

# The table and columns that each vector table embeds; columns are joined by colons.
EMBEDDED = {
    "text_unit_text": ("text_units", ("text",)),
    "entity_description": ("entities", ("title", "description")),
    "community_full_content": ("community_reports", ("full_content",)),
}


class VectorChecks:
    """Reads each vector table once, for both checks."""

    def __init__(self, index: CheckedIndex) -> None:
        self.index = index
        self._read: dict[str, pl.DataFrame] = {}

    def missing(self) -> CheckResult:
        """Find rows without a vector, and vectors of zeros or invalid numbers."""
        findings: list[Finding] = []
        of = 0
        for name in self._names():
            rows, vectors = self._rows(name), self._read[name].lazy()
            n_rows = rows.select(pl.len()).collect().item()
            of += n_rows
            table = EMBEDDED[name][0]
            what, shown = table.replace("_", " "), _row_name(table)
            findings += find(
                rows.join(vectors, on="key", how="anti"),
                name,
                n_rows,
                f"{what} have no vector: a search by likeness does not find them. Make the vectors "
                "again.",
                by=["row"],
                example=shown,
            )
            findings += find(
                rows.join(vectors.filter(~pl.col("is_valid")), on="key", how="semi"),
                name,
                n_rows,
                f"{what} have a vector of zeros or of no numbers: the model gave none, and only "
                "their words are found. `graphrag-index retry` asks for it again.",
                by=["row"],
                example=shown,
            )
        return CheckResult(of if self._names() else None, tuple(findings))

    def stale(self) -> CheckResult:
        """Find vectors of an old text, without a row, duplicated, or of another model."""
        findings: list[Finding] = []
        of = 0
        for name in self._names():
            rows, vectors = self._rows(name), self._read[name].lazy()
            n_vectors = vectors.select(pl.len()).collect().item()
            of += n_vectors
            table = EMBEDDED[name][0]
            what = table.replace("_", " ")
            findings += find(
                vectors.join(rows, on="key", how="anti").select(row="id"),
                name,
                n_vectors,
                f"vectors belong to {what} that are no longer there: searches find what they "
                "cannot show. Make the vectors again.",
                by=["row"],
                example=_row_name("id"),
            )
            same = rows.join(vectors, on="key", suffix="_embedded")
            findings += find(
                same.filter(pl.col("text_hash") != pl.col("text_hash_embedded")),
                name,
                n_vectors,
                f"vectors are of another text than the {what} have now: searches find them by "
                "what they said before. Make the vectors again.",
                by=["row"],
                example=_row_name(table),
            )
            occurrence = pl.int_range(pl.len()).over("key")
            findings += find(
                vectors.filter(occurrence > 0).select(row="id"),
                name,
                n_vectors,
                "vectors are a second one of the same id: a search finds that row twice. Make the "
                "vectors again.",
                by=["row"],
                example=_row_name("id"),
            )
        findings += [*self._dimensions(), *self._other_model()]
        return CheckResult(of if self._names() else None, tuple(findings))

    def _names(self) -> list[str]:
        """Return the vector tables that can be checked; damaged ones become findings."""
        names = []
        for name, (table, columns) in EMBEDDED.items():
            if name not in self.index.vectors or not self.index.has(table, "id", *columns):
                continue
            try:
                if name not in self._read:
                    self._read[name] = read_vectors(self.index.vectors[name])
                names.append(name)
            except TableError as error:
                del self.index.vectors[name]
                self.index.damaged.append(Finding(name, 1, 1, (), str(error)))
        return names

    def _rows(self, name: str) -> pl.LazyFrame:
        """Return `row`, `key` (the hash of the id) and `text_hash`."""
        table, columns = EMBEDDED[name]
        text = pl.concat_str([pl.col(c).fill_null("") for c in columns], separator=":")
        return self.index.tables[table].select(
            row=pl.col(self.index.label(table)), key=pl.col("id").hash(), text_hash=text.hash()
        )

    def _dimensions(self) -> list[Finding]:
        dimensions = {
            name: self.index.vectors[name].dimension
            for name in self._names()
            if self._read[name].height
        }
        if len(set(dimensions.values())) <= 1:
            return []
        examples = tuple(f"{name}: {n:,}" for name, n in dimensions.items())
        means = (
            "The vector tables have different widths, so different models made them: one question "
            "cannot be compared with all. Make the vectors again."
        )
        return [Finding("vectors", 1, len(dimensions), examples, means)]

    def _other_model(self) -> list[Finding]:
        now, made_by = self.index.embeds_questions, self.index.made_vectors
        other = {name: made_by[name] for name in self._names() if name in made_by}
        other = {name: model for name, model in other.items() if model != now}
        if now is None or not other:
            return []
        examples = tuple(f"{name}: {_describe(model)}" for name, model in other.items())
        means = (
            f"The settings embed with {_describe(now)}, and another model made these vectors: "
            "questions are refused. `graphrag-index run` embeds anew."
        )
        return [Finding("vectors", 1, len(made_by), examples, means)]


def _row_name(table: str) -> Callable[[Mapping[str, object]], str]:
    """Return the function that names a row in an example."""
    return lambda row: f"{SINGULAR.get(table, table)} {row['row']}"


def _describe(model: ModelIdentity) -> str:
    name, dimensions = model
    return f"{name} ({dimensions:,} dimensions)" if dimensions else name


def read_vectors(vectors: Vectors) -> pl.DataFrame:
    """Return `id`, `key`, `text_hash` (null without a text) and `is_valid` of each vector.

    A vector is valid if its numbers are finite and not all zero.
    """
    schema = {"id": pl.String, "key": pl.UInt64, "text_hash": pl.UInt64, "is_valid": pl.Boolean}
    parts = [pl.DataFrame(schema=schema)]
    for batch in vectors.batches():
        values = batch["vector"].to_numpy()
        is_valid = np.isfinite(values).all(axis=1) & np.any(values, axis=1)
        text = (
            pl.col("text").cast(pl.String) if "text" in batch.columns else pl.lit(None, pl.String)
        )
        parts.append(
            batch.select(
                pl.col("id").cast(pl.String),
                key=pl.col("id").cast(pl.String).hash(),
                # Null has a hash too, but a vector without a text cannot be stale.
                text_hash=pl.when(text.is_not_null()).then(text.hash()),
                is_valid=pl.Series(is_valid, dtype=pl.Boolean),
            )
        )
    return pl.concat(parts)

"""Vectors: one for each text, of the text as it is now, and of one width."""

from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.health.finding import EXAMPLES, SINGULAR, Finding, Looked, count_and_first
from graphrag_index.health.opened_index import ModelIdentity, Opened, Vectors


class Embedded(NamedTuple):
    """What a vector table embeds."""

    table: str
    columns: tuple[str, ...]

    def text(self) -> pl.Expr:
        """The text of a row; of an entity `title:description`."""
        return pl.concat_str([pl.col(c).fill_null("") for c in self.columns], separator=":")


VECTOR_TABLES = {
    "text_unit_text": Embedded("text_units", ("text",)),
    "entity_description": Embedded("entities", ("title", "description")),
    "community_full_content": Embedded("community_reports", ("full_content",)),
}


class VectorChecks:
    """Reads each vector table once, for both checks."""

    def __init__(self, index: Opened) -> None:
        self.index = index
        self._read: dict[str, pl.DataFrame] = {}

    def missing(self) -> Looked:
        """Find rows without a vector, and vectors of nothing but zeros."""
        findings: list[Finding] = []
        of = 0
        for name in self._names():
            rows, vectors = self._rows(name), self._vectors(name)
            n_rows = rows.select(pl.len()).collect().item()
            of += n_rows
            what = VECTOR_TABLES[name].table.replace("_", " ")
            count, first = count_and_first(rows.join(vectors, on="key", how="anti"), ["row"])
            if count:
                means = (
                    f"{count:,} of {n_rows:,} {what} have no vector: a search by likeness does "
                    "not find them. Make the vectors again."
                )
                findings.append(self._finding(name, count, n_rows, first, means))
            blank = rows.join(vectors.filter(~pl.col("is_good")), on="key", how="semi")
            count, first = count_and_first(blank, ["row"])
            if count:
                means = (
                    f"{count:,} of {n_rows:,} {what} have a vector of zeros or of no numbers: the "
                    "model gave none, and only their words are found. `graphrag-index retry` asks "
                    "for it again."
                )
                findings.append(self._finding(name, count, n_rows, first, means))
        return Looked(of if self._names() else None, tuple(findings))

    def stale(self) -> Looked:
        """Find vectors of an earlier text, of rows that are gone, several of one row, tables of
        different widths, and those of another model than the settings name.
        """
        findings: list[Finding] = []
        of = 0
        for name in self._names():
            rows, vectors = self._rows(name), self._vectors(name)
            n_vectors = vectors.select(pl.len()).collect().item()
            of += n_vectors
            what = VECTOR_TABLES[name].table.replace("_", " ")
            count, first = count_and_first(
                vectors.join(rows, on="key", how="anti").select(row="id"), ["row"]
            )
            if count:
                means = (
                    f"{count:,} of {n_vectors:,} vectors belong to {what} that are no longer "
                    "there: searches find what they cannot show. Make the vectors again."
                )
                findings.append(self._finding(name, count, n_vectors, first, means, is_id=True))
            same = rows.join(vectors, on="key", suffix="_embedded")
            count, first = count_and_first(
                same.filter(pl.col("said") != pl.col("said_embedded")), ["row"]
            )
            if count:
                means = (
                    f"{count:,} of {n_vectors:,} vectors are of another text than the {what} "
                    "have now: searches find them by what they said before. Make the vectors again."
                )
                findings.append(self._finding(name, count, n_vectors, first, means))
            again = vectors.group_by("key").agg(pl.len(), row=pl.col("id").first())
            again = again.filter(pl.col("len") > 1)
            count = again.select((pl.col("len") - 1).sum()).collect().item()
            if count:
                _, first = count_and_first(again, ["row"])
                means = (
                    f"{count:,} of {n_vectors:,} vectors are a second one of the same id: a search "
                    "finds that row twice. Make the vectors again."
                )
                findings.append(self._finding(name, count, n_vectors, first, means, is_id=True))
        findings += [*self._widths(), *self._other_model()]
        return Looked(of if self._names() else None, tuple(findings))

    def _names(self) -> list[str]:
        """Return the vector tables that can be looked at; those that break off are put aside."""
        names = []
        for name, embedded in VECTOR_TABLES.items():
            if name not in self.index.vectors:
                continue
            if not self.index.has(embedded.table, "id", *embedded.columns):
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
        """Return `row`, `key` of the id and `said`, a number for the text."""
        embedded = VECTOR_TABLES[name]
        label = self.index.label(embedded.table)
        return self.index.tables[embedded.table].select(
            row=pl.col(label), key=pl.col("id").hash(), said=embedded.text().hash()
        )

    def _vectors(self, name: str) -> pl.LazyFrame:
        return self._read[name].lazy()

    def _finding(
        self, name: str, count: int, of: int, first: pl.DataFrame, means: str, is_id: bool = False
    ) -> Finding:
        what = "id" if is_id else SINGULAR[VECTOR_TABLES[name].table]
        examples = tuple(f"{what} {row}" for row in first["row"].head(EXAMPLES))
        return Finding(name, count, of, examples, means)

    def _widths(self) -> list[Finding]:
        widths = {
            name: self.index.vectors[name].dimension
            for name in self._names()
            if self._read[name].height
        }
        if len(set(widths.values())) <= 1:
            return []
        examples = tuple(f"{name}: {width:,}" for name, width in widths.items())
        means = (
            "The vector tables have different widths, so different models made them: one question "
            "cannot be compared with all. Make the vectors again."
        )
        return [Finding("vectors", 1, len(widths), examples, means)]

    def _other_model(self) -> list[Finding]:
        now, made_by = self.index.embeds_questions, self.index.made_vectors
        other = {name: made_by[name] for name in self._names() if name in made_by}
        other = {name: model for name, model in other.items() if now not in (None, model)}
        if now is None or not other:
            return []
        examples = tuple(f"{name}: {_described(model)}" for name, model in other.items())
        means = (
            f"The settings embed with {_described(now)}, and another model made these vectors: "
            "questions are refused. `graphrag-index run` embeds anew."
        )
        return [Finding("vectors", 1, len(made_by), examples, means)]


def _described(model: ModelIdentity) -> str:
    name, dimensions = model
    return f"{name} ({dimensions:,} dimensions)" if dimensions else name


def read_vectors(vectors: Vectors) -> pl.DataFrame:
    """Return of each vector its id, a `key` for it, `said` for its text (null if not kept), and
    whether it `is_good`: numbers, and not all of them zero.
    """
    parts = [
        pl.DataFrame(
            schema={"id": pl.String, "key": pl.UInt64, "said": pl.UInt64, "is_good": pl.Boolean}
        )
    ]
    for batch in vectors.batches():
        values = batch["vector"].to_numpy()
        is_good = np.isfinite(values).all(axis=1) & np.any(values, axis=1)
        text = (
            pl.col("text").cast(pl.String) if "text" in batch.columns else pl.lit(None, pl.String)
        )
        parts.append(
            batch.select(
                pl.col("id").cast(pl.String),
                key=pl.col("id").cast(pl.String).hash(),
                # null has a hash too, and a vector without a text cannot be stale.
                said=pl.when(text.is_not_null()).then(text.hash()),
                is_good=pl.Series(is_good, dtype=pl.Boolean),
            )
        )
    return pl.concat(parts)

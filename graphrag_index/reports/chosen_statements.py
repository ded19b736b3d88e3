"""Sentences chosen for a report without a model, and the texts that are written from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from graphrag_index.reports.report import format_citations
from graphrag_index.reports.statements import SourceSpan
from graphrag_index.schema.tables import TABLES
from graphrag_nlp.list_columns import gather_by_owner, gather_lists, spread_lists

STATEMENTS: Any = TABLES["community_reports"].schema["statements"]
# Value of `finding` in the table `report_choices` for a sentence of the summary.
SUMMARY = -1


@dataclass(frozen=True, eq=False)
class Evidence:
    """A sentence that mentions entities of the community.

    `entities` are the numbers of these entities. `source` is the number of the text unit,
    `document` that of its document, `place` the position of the sentence in the document. `days`
    are the first and last day of a date in the sentence, and `words` its words that may name a
    theme. `wording` is 1, or less if the sentence is hard to understand alone.
    """

    text: str
    entities: Sequence[int]
    source: int
    document: int
    score: float
    days: tuple[date, date] | None = None
    place: tuple[int, int] = (0, 0)
    words: Sequence[str] = ()
    wording: float = 1.0

    @property
    def span(self) -> SourceSpan:
        return SourceSpan(self.source, self.document, *self.place)


class Choice(NamedTuple):
    """A sentence chosen for a report, as positions in its evidence.

    `finding` is the number of its finding, from 0, or `SUMMARY`. `sentences` are the positions
    of the sentence and of others that state the same, and `n_documents` counts their documents.
    """

    finding: int
    n_documents: int
    sentences: Sequence[int]


class PlacedStatements:
    """The statements of several reports, with their places in the documents.

    `choices` are rows of `report_choices`, with the number of the report in `report`, from 0.
    `sentences` are the candidate sentences by report.
    """

    def __init__(self, choices: pl.DataFrame, sentences: pl.DataFrame) -> None:
        self._n_reports = choices.height
        chosen = choices.select("report", "statements").explode("statements")
        self._rows = chosen.drop_nulls().unnest("statements")
        report = self._rows["report"].to_numpy()
        # For each sentence of a statement, the row of the statement.
        self._owners, places = spread_lists(self._rows["sentences"])
        starts = np.searchsorted(sentences["report"], report)
        self._sentences = sentences[starts[self._owners] + places.to_numpy()]
        # The first sentence is the statement itself.
        own = self._sentences[np.searchsorted(self._owners, np.arange(len(report)))]
        sections = {"Entities": "entities", "Relationships": "relationships", "Sources": "source"}
        ids = {section: pl.concat_list(column) for section, column in sections.items()}
        cited = own.select("text", cited=pl.concat_str("text", pl.lit(" "), format_citations(ids)))
        self._rows = pl.concat([self._rows, cited], how="horizontal")

    def write_texts(self) -> tuple[list[str], list[list[str]]]:
        """Return the summary of each report, and the explanations of its findings."""
        texts = self._rows.group_by("report", "finding", maintain_order=True).agg(
            pl.col("cited").str.join(" ")
        )
        is_summary = texts["finding"] == SUMMARY
        summary, findings = texts.filter(is_summary), texts.filter(~is_summary)
        summaries, explanations = (
            gather_lists(part["report"].to_numpy(), part["cited"], self._n_reports)
            for part in (summary, findings)
        )
        return summaries.list.join("").to_list(), explanations.to_list()

    def make_column(self, text_units: pl.DataFrame, documents: pl.DataFrame) -> pl.Series:
        """Return the column `statements`; a statement has one record for each sentence.

        `text_units` has the `id` of each number in `source`, and `documents` that of each number
        in `document`.
        """
        report = self._rows["report"].to_numpy()
        numbered = self._rows.select(
            owner="report",
            statement=pl.Series(np.arange(len(report)) - np.searchsorted(report, report)),
            finding=pl.when(pl.col("finding") != SUMMARY).then("finding"),
            text="text",
            n_documents="n_documents",
        )
        ids = (
            self._sentences.select("source", "document", "start_char", "end_char")
            .join(text_units.rename({"id": "text_unit_id"}), on="source", maintain_order="left")
            .join(
                documents.select("document", document_id="id"), on="document", maintain_order="left"
            )
        )
        spans = pl.concat([numbered[self._owners], ids], how="horizontal")
        fields = {field.name: field.dtype for field in STATEMENTS.inner.fields}
        rows = spans.select("owner", *(pl.col(name).cast(kind) for name, kind in fields.items()))
        return gather_by_owner(rows, self._n_reports).alias("statements")

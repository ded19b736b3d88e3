"""The choices of reports without a model, which are kept while their input stays the same.

The choice of a report is its title, its headings and its sentences. It takes long, and is stored in
the table `report_choices`. The text of a report is written anew from its choice in each run, since
it cites numbers of rows, which change with every document. So a choice and its input have no such
numbers: sentences are positions among the candidate sentences of the report.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from graphrag_index.reports.chosen_statements import Choice
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_nlp.list_columns import (
    Integers,
    gather_by_owner,
    gather_lists,
    pack_lists,
    spread_lists,
)

CHOICES_TABLE = TABLES["report_choices"]
_CHOICE: Any = CHOICES_TABLE.schema["statements"]
_STATEMENT_TYPES = {field.name: field.dtype for field in _CHOICE.inner.fields}
# Separators of the values in a row, and of rows, in the input of a hash.
_VALUE_END, _ROW_END = "\x1f", "\x1e"


class ReportChoice(NamedTuple):
    """The title and the headings of a report, and its sentences in their order."""

    title: str
    headings: Sequence[str]
    statements: Sequence[Choice]


def hash_choice_inputs(
    mains: Sequence[Sequence[str]],
    sentences: pl.DataFrame,
    uses: pl.DataFrame,
    entities: pl.DataFrame,
) -> list[str]:
    """Hash for each report everything that its choice depends on, except settings.

    `mains` has the titles of the main members of each report. `sentences` are the candidates by
    report, best first; `uses` are the uses of words that set reports apart. Numbers of rows are
    replaced by their ranks among those of the report.
    """
    report = sentences["report"].to_numpy()
    row, entity = spread_lists(sentences["entities"])
    ranks, pairs = _rank_in_report(report[row], entity.to_numpy())
    mentioned = gather_lists(row, pl.Series(ranks).cast(pl.String), sentences.height)
    columns = ["text", "language", "clarity", "score", "first_day", "last_day"]
    lines = sentences.with_columns(
        mentioned.list.join(",").alias("entities"),
        *(
            pl.Series(name, _rank_in_report(report, sentences[name].to_numpy())[0])
            for name in ("source", "document")
        ),
    ).select("report", *columns, "start_char", "end_char", "entities", "source", "document")
    members = (
        pl.DataFrame({"report": pairs >> 32, "entity": (pairs & 0xFFFFFFFF).astype(np.int32)})
        .join(entities, on="entity", maintain_order="left")
        .select("report", "title", "weight")
    )
    parts = [
        _join_rows(frame, len(mains))
        for frame in (lines, members, uses.select("report", "word", "weight", "form"))
    ]
    return [content_id(*texts, *main) for *texts, main in zip(*parts, mains, strict=True)]


def _rank_in_report(report: Integers, numbers: Integers) -> tuple[Integers, Integers]:
    """Return the rank of each number among those of its report, and the sorted distinct pairs."""
    keys = (report.astype(np.int64) << 32) + numbers
    pairs, place = np.unique(keys, return_inverse=True)
    return place - np.searchsorted(pairs, report.astype(np.int64) << 32), pairs


def _join_rows(rows: pl.DataFrame, n_reports: int) -> pl.Series:
    """Join the values of all rows of each report to one text; rows are in order of reports."""
    values = pl.all().exclude("report").cast(pl.String).fill_null("")
    lines = rows.select(pl.concat_str(values, separator=_VALUE_END)).to_series()
    return gather_lists(rows["report"].to_numpy(), lines, n_reports).list.join(_ROW_END)


def make_choice_columns(choices: Sequence[ReportChoice]) -> pl.DataFrame:
    """Return the columns of `report_choices` that have the choices."""
    said = [(at, *one) for at, choice in enumerate(choices) for one in choice.statements]
    owner, finding, n_documents, sentences = zip(*said, strict=True) if said else ((),) * 4
    fields = {"finding": finding, "n_documents": n_documents, "sentences": pack_lists(sentences)}
    rows = pl.DataFrame({"owner": owner, **fields}, {"owner": pl.Int64, **_STATEMENT_TYPES})
    columns = {
        "title": [choice.title for choice in choices],
        "headings": [choice.headings for choice in choices],
        "statements": gather_by_owner(rows, len(choices)),
    }
    return pl.DataFrame(columns, {name: CHOICES_TABLE.schema[name] for name in columns})

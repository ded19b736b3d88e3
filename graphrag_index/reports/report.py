"""Community reports, from whichever source, and their table rows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from graphrag_index.schema.list_columns import Integers, gather_lists
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.memo import content_ids
from graphrag_index.text.citations import renumber_written


@dataclass(frozen=True)
class Finding:
    """One finding of a report."""

    summary: str
    explanation: str


@dataclass(frozen=True)
class Report:
    """The text of a report. With a `rank` of None it gets the rank of its community."""

    title: str
    summary: str
    findings: tuple[Finding, ...]
    rank: float | None
    rating_explanation: str

    def markdown(self) -> str:
        """Return `full_content`: title, summary and findings, separated by blank lines."""
        parts = [f"# {self.title}", self.summary]
        for finding in self.findings:
            parts += [f"## {finding.summary}", finding.explanation]
        return "\n\n".join(parts)

    def json(self) -> str:
        """Return `full_content_json`, in Microsoft's order of keys."""
        findings = ",\n".join(
            f'        {{\n            "summary": {_quoted(finding.summary)},\n'
            f'            "explanation": {_quoted(finding.explanation)}\n        }}'
            for finding in self.findings
        )
        # CitedReport out by hand: the standard encoder takes ten times as long to indent.
        return (
            f'{{\n    "title": {_quoted(self.title)},\n    "summary": {_quoted(self.summary)},\n'
            + (f'    "findings": [\n{findings}\n    ],\n' if findings else '    "findings": [],\n')
            + f'    "rating": {self.rank},\n'
            f'    "rating_explanation": {_quoted(self.rating_explanation)}\n}}'
        )


# `json.dumps` would create an encoder for each text.
_quoted = json.JSONEncoder(ensure_ascii=False).encode


def community_rows(communities: pl.LazyFrame) -> pl.DataFrame:
    """Return the communities in the order of the reports, with their counts and `rank`."""
    total = (pl.col("size") + pl.col("n_relationships") + pl.col("n_text_units")).log1p()
    return (
        communities.select(
            *("id", "community", "level", "parent", "children", "period", "size", "island"),
            n_relationships=pl.col("relationship_ids").list.len(),
            n_text_units=pl.col("text_unit_ids").list.len(),
        )
        .with_columns(rank=(10 * total / total.max().over("level")).round(1))
        .sort("level", "community", descending=[True, False])
        .collect()
    )


def report_rows(communities: pl.DataFrame, reports: Sequence[Report]) -> pl.DataFrame:
    """Return rows of `community_reports`, from rows of `community_rows` and their reports."""
    reports = [
        report if report.rank is not None else replace(report, rank=rank)
        for report, rank in zip(reports, communities["rank"], strict=True)
    ]
    contents = pl.Series([report.markdown() for report in reports], dtype=pl.String)
    columns = {
        **communities.to_dict(),
        "id": content_ids("community report", communities["id"], contents),
        "human_readable_id": communities["community"],
        "full_content": contents,
        "full_content_json": pl.Series([report.json() for report in reports], dtype=pl.String),
        **text_columns(reports),
    }
    return pl.DataFrame({name: columns[name] for name in TABLES["community_reports"].schema})


def text_columns(reports: Sequence[Report]) -> dict[str, pl.Series]:
    """Return the texts of reports as columns."""
    findings = [found for report in reports for found in report.findings]
    owners = np.repeat(np.arange(len(reports)), [len(report.findings) for report in reports])
    parts = pl.DataFrame(
        {
            "explanation": [found.explanation for found in findings],
            "summary": [found.summary for found in findings],
        },
        schema={"explanation": pl.String, "summary": pl.String},
    )
    return {
        "title": pl.Series([report.title for report in reports], dtype=pl.String),
        "summary": pl.Series([report.summary for report in reports], dtype=pl.String),
        "findings": gather_lists(owners, parts.to_struct(), len(reports)),
        "rank": pl.Series([report.rank for report in reports], dtype=pl.Float64),
        "rating_explanation": pl.Series(
            [report.rating_explanation for report in reports], dtype=pl.String
        ),
    }


def join_titles(titles: Sequence[str]) -> str:
    """Join names as in prose: "A", "A and B", "A, B and C"."""
    if len(titles) < 2:
        return "".join(titles)
    return f"{', '.join(titles[:-1])} and {titles[-1]}"


# Rows by section, such as Entities; citations are positions in these lists, from 0 on.
Rows = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class CitedReport:
    """A report with the rows that it cites, which changes in other documents do not renumber.

    The rows are those of `CommunityMembers`; in the section Reports, of its communities.
    """

    report: Report
    rows: Rows

    def numbered(self, numbers: Mapping[str, Integers]) -> Report:
        """Return the report with the present numbers of its rows, given by section."""

        def number_of(section: str, place: int) -> int | None:
            rows = self.rows.get(section, ())
            return int(numbers[section][rows[place]]) if 0 <= place < len(rows) else None

        def text(cited: str) -> str:
            return renumber_written(cited, number_of)

        report = self.report
        return replace(
            report,
            title=text(report.title),
            summary=text(report.summary),
            findings=tuple(
                Finding(text(found.summary), text(found.explanation)) for found in report.findings
            ),
            rating_explanation=text(report.rating_explanation),
        )

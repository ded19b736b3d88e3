"""The report on one community, from whatever it was written, and its row."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from graphrag_index.schema.list_columns import gather_lists
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.content_ids import content_ids


@dataclass(frozen=True)
class Finding:
    summary: str
    explanation: str


@dataclass(frozen=True)
class Report:
    """A report, not yet a row. A `rank` of None is that of its community."""

    title: str
    summary: str
    findings: tuple[Finding, ...]
    rank: float | None
    rating_explanation: str

    def markdown(self) -> str:
        """Return `full_content`: title, summary and findings, parted by blank lines."""
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
        # Written out by hand: the standard encoder takes ten times as long to indent.
        return (
            f'{{\n    "title": {_quoted(self.title)},\n    "summary": {_quoted(self.summary)},\n'
            + (f'    "findings": [\n{findings}\n    ],\n' if findings else '    "findings": [],\n')
            + f'    "rating": {self.rank},\n'
            f'    "rating_explanation": {_quoted(self.rating_explanation)}\n}}'
        )


# `json.dumps` would make an encoder for each text.
_quoted = json.JSONEncoder(ensure_ascii=False).encode


def community_rows(communities: pl.LazyFrame) -> pl.DataFrame:
    """Return the communities in the order of the reports, with their counts and `rank`."""
    holds = (pl.col("size") + pl.col("n_relationships") + pl.col("n_text_units")).log1p()
    return (
        communities.select(
            *("id", "community", "level", "parent", "children", "period", "size", "island"),
            n_relationships=pl.col("relationship_ids").list.len(),
            n_text_units=pl.col("text_unit_ids").list.len(),
        )
        .with_columns(rank=(10 * holds / holds.max().over("level")).round(1))
        .sort("level", "community", descending=[True, False])
        .collect()
    )


def report_rows(communities: pl.DataFrame, reports: Sequence[Report]) -> pl.DataFrame:
    """Make the rows of `community_reports` out of those of `community_rows` and their reports."""
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
    """What reports say, as columns."""
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
    """Join names as prose does: "A", "A and B", "A, B and C"."""
    if len(titles) < 2:
        return "".join(titles)
    return f"{', '.join(titles[:-1])} and {titles[-1]}"

"""The report on one community, from whatever it was written, and its row."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from graphrag_index.core.tables import content_id


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


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


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


def report_row(row: Mapping[str, Any], report: Report) -> dict[str, object]:
    """Make the row of `community_reports` out of that of `community_rows` and its report."""
    if report.rank is None:
        report = replace(report, rank=row["rank"])
    content = report.markdown()
    return {
        "id": content_id("community report", str(row["id"]), content),
        "human_readable_id": row["community"],
        "community": row["community"],
        "level": row["level"],
        "parent": row["parent"],
        "children": row["children"],
        "title": report.title,
        "summary": report.summary,
        "full_content": content,
        "rank": report.rank,
        "rating_explanation": report.rating_explanation,
        "findings": [
            {"explanation": finding.explanation, "summary": finding.summary}
            for finding in report.findings
        ],
        "full_content_json": report.json(),
        "period": row["period"],
        "size": row["size"],
    }


def join_titles(titles: Sequence[str]) -> str:
    """Join names as prose does: "A", "A and B", "A, B and C"."""
    if len(titles) < 2:
        return "".join(titles)
    return f"{', '.join(titles[:-1])} and {titles[-1]}"

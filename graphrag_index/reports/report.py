"""Community reports: members of communities, rows of the report table, and model replies.

The request for a report must not change when an unrelated document is added. So the order of
members never depends on row numbers of the index, or on anything outside the community. Parsing
tolerates variants of the JSON format, but removes invalid citations.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.llm.reply_parser import parse_score
from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, object_schema
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.memo import content_ids, read_batches
from graphrag_index.storage.table_writer import ROW_GROUP_SIZE
from graphrag_nlp.list_columns import Integers, RowGroups, find_rows, gather_by_owner
from graphrag_nlp.text.citations import (
    check_citations,
    format_citations,
    number_cited_rows,
    renumber_citations,
)
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.normalize import replace_surrogates, title_key
from graphrag_nlp.text.sentences import split_sentences

# Columns of the table `covariates`, in which a row is a claim, that are shown in a context.
CLAIM_COLUMNS = (
    "subject_id object_id type status start_date end_date source_text description".split()
)
_TEXT_SCHEMA = {"type": "string"}
_FINDING_SCHEMA = object_schema({"summary": _TEXT_SCHEMA, "explanation": _TEXT_SCHEMA})
REPORT_SCHEMA = object_schema(
    {
        "title": _TEXT_SCHEMA,
        "summary": _TEXT_SCHEMA,
        "rating": {"type": "number"},
        "rating_explanation": _TEXT_SCHEMA,
        "findings": {"type": "array", "items": _FINDING_SCHEMA},
    }
)
_REPLY_WORDS = read_lists("graphrag_index/reports/data/replies")
FORMAT_INSTRUCTION: str = _REPLY_WORDS["instruction"]
_HEADING_KEYS, _EXPLANATION_KEYS = _REPLY_WORDS["headings"], _REPLY_WORDS["explanations"]
# Highest rating of a report; the lowest is 0.
MAX_RATING = 10


@dataclass(frozen=True)
class Finding:
    """One finding of a report: a heading (`summary`) and its explanation."""

    summary: str
    explanation: str


@dataclass(frozen=True)
class Report:
    """The text of a report. If `rank` is None, the report gets the rank of its community."""

    title: str
    summary: str
    findings: tuple[Finding, ...]
    rank: float | None
    rating_explanation: str

    def to_markdown(self) -> str:
        """Return the report as Markdown (column `full_content`): title, summary and findings."""
        parts = [f"# {self.title}", self.summary]
        for finding in self.findings:
            parts += [f"## {finding.summary}", finding.explanation]
        return "\n\n".join(parts)

    def to_json(self) -> str:
        """Return the report as JSON (column `full_content_json`), in Microsoft's order of keys."""
        # With an indent, `json.dumps` is slow: it does not use its code in C.
        findings = ",\n".join(
            f'        {{\n            "summary": {_quote(finding.summary)},\n'
            f'            "explanation": {_quote(finding.explanation)}\n        }}'
            for finding in self.findings
        )
        return (
            f'{{\n    "title": {_quote(self.title)},\n    "summary": {_quote(self.summary)},\n'
            f'    "findings": {f"[{chr(10)}{findings}{chr(10)}    ]" if findings else "[]"},\n'
            f'    "rating": {json.dumps(self.rank)},\n'
            f'    "rating_explanation": {_quote(self.rating_explanation)}\n}}'
        )


_quote = json.JSONEncoder(ensure_ascii=False).encode


def rank_communities(communities: pl.LazyFrame) -> pl.DataFrame:
    """Sort communities in the order of reports; add counts and `rank`, an importance (0 to 10)."""
    total = (pl.col("size") + pl.col("n_relationships") + pl.col("n_text_units")).log1p()
    counted = communities.select(
        *("id", "community", "level", "parent", "children", "period", "size", "island"),
        n_relationships=pl.col("relationship_ids").list.len(),
        n_text_units=pl.col("text_unit_ids").list.len(),
    )
    # Count in batches, because the lists of ids need much more memory than their lengths.
    return (
        pl.concat(read_batches(counted, ROW_GROUP_SIZE, at_least_one=True))
        .with_columns(rank=(10 * total / total.max().over("level")).round(1))
        .sort("level", "community", descending=[True, False])
    )


def make_report_rows(
    communities: pl.DataFrame, reports: Sequence[Report], statements: pl.Series
) -> pl.DataFrame:
    """Make rows of `community_reports` from rows of `rank_communities` and their reports.

    `statements` is the column of that name.
    """
    reports = [
        report if report.rank is not None else replace(report, rank=rank)
        for report, rank in zip(reports, communities["rank"], strict=True)
    ]
    contents = pl.Series([report.to_markdown() for report in reports], dtype=pl.String)
    return communities.with_columns(
        content_ids("community report", communities["id"], contents).alias("id"),
        contents.alias("full_content"),
        *make_text_columns(reports),
        human_readable_id="community",
        full_content_json=pl.Series([report.to_json() for report in reports], dtype=pl.String),
        statements=statements,
    ).select(list(TABLES["community_reports"].schema))


def make_text_columns(reports: Sequence[Report]) -> list[pl.Series]:
    """Return the texts, findings and ranks of reports as columns."""
    columns: dict[str, list[Any]] = {
        name: [getattr(report, name) for report in reports]
        for name in ("title", "summary", "rating_explanation", "rank")
    }
    schema = TABLES["community_reports"].schema
    findings = [
        (owner, finding.explanation, finding.summary)
        for owner, report in enumerate(reports)
        for finding in report.findings
    ]
    fields = {"owner": pl.Int64, "explanation": pl.String, "summary": pl.String}
    listed = gather_by_owner(pl.DataFrame(findings, fields, orient="row"), len(reports))
    return [
        *(pl.Series(name, values, schema[name]) for name, values in columns.items()),
        listed.alias("findings"),
    ]


def format_citation(cited: Mapping[str, Sequence[int]]) -> str:
    """Format one citation."""
    row = pl.DataFrame({section: [list(ids)] for section, ids in cited.items()})
    return str(row.select(format_citations({name: pl.col(name) for name in cited})).item())


# Cited rows by section, such as "Entities". A citation is a position (from 0) in these lists.
SectionRows = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class CitedReport:
    """A report and the table rows that it cites.

    A citation is a position in `rows`, so it stays valid if other documents change. `rows` are
    rows of the tables in `CommunityMembers`; in the section Reports, rows of communities.
    """

    report: Report
    rows: SectionRows

    def number_citations(self, numbers: Mapping[str, Integers]) -> Report:
        """Return the report with the final numbers of cited rows, from `numbers` by section."""
        renumber_text = partial(number_cited_rows, rows=self.rows, numbers=numbers)
        report = self.report
        findings = (map(renumber_text, vars(finding).values()) for finding in report.findings)
        return Report(
            renumber_text(report.title),
            renumber_text(report.summary),
            tuple(Finding(*texts) for texts in findings),
            report.rank,
            renumber_text(report.rating_explanation),
        )


class CommunityMembers:
    """Rows of entities, relationships and claims, grouped by community.

    `entities` are sorted by title, `relationships` by descending weight, then titles, `claims` by
    date. Their column `row` is the row in the stored table. `endpoints` has the rows of the source
    and target of each relationship in `entities`. A claim belongs to its subject or, if that is
    unknown, to its object; if both are unknown, the claim is left out. `members` groups entities,
    and `inner` relationships, by the row of the community; `claims_of` groups claims by entity.
    """

    def __init__(
        self,
        communities: pl.DataFrame,
        entities: pl.LazyFrame,
        relationships: pl.LazyFrame,
        covariates: pl.LazyFrame | None,
    ) -> None:
        self.communities = communities
        self.entities = (
            entities.select("id", "human_readable_id", "title", "type", "description")
            .with_row_index("row")
            .sort("title", "id")
            .collect()
        )
        order = ["weight", "source", "target", "id"]
        columns = ["human_readable_id", "type", "description", "source_id", "target_id"]
        links = (
            relationships.select(*order, *columns)
            .with_row_index("row")
            .sort(order, descending=[True, False, False, False])
            .collect()
        )
        self.relationships = links
        self.claims = _read_claims(covariates, self.entities["title"])
        ids = self.entities["id"]
        self.endpoints = np.stack([find_rows(links[e], ids) for e in ("source_id", "target_id")], 1)
        self.members = RowGroups.from_ids(communities["entity_ids"], ids)
        self.inner = RowGroups.from_ids(communities["relationship_ids"], links["id"])
        n_claims = self.claims.height
        self.claims_of = RowGroups(self.claims["entity"].to_numpy(), np.arange(n_claims), len(ids))

    def drop_texts(self) -> None:
        """Delete the texts of relationships and claims from memory; keep ids and numbers."""
        kept = ("id", "human_readable_id", "row")
        self.relationships, self.claims = self.relationships.select(kept), self.claims.select(kept)


def _read_claims(covariates: pl.LazyFrame | None, titles: pl.Series) -> pl.DataFrame:
    """Return the claims about known entities; `entity` is the row of the claim's entity."""
    if covariates is None:
        covariates = TABLES["covariates"].empty().lazy()
    order = ["start_date", "end_date", "description", "id"]
    rows = covariates.select("id", "human_readable_id", *CLAIM_COLUMNS, "text_unit_id")
    claims = rows.with_row_index("row").sort(order, nulls_last=True).collect()
    # If titles differ only in case, the first entity gets the claims.
    row_of = {title_key(title): row for row, title in reversed([*enumerate(titles)])}
    entity = [
        row_of.get(title_key(subject), row_of.get(title_key(object or ""), -1))
        for subject, object in claims.select("subject_id", "object_id").iter_rows()
    ]
    claims = claims.with_columns(entity=pl.Series(entity, dtype=pl.Int64))
    return claims.filter(pl.col("entity") >= 0)


def make_report_format(shown: SectionRows, title: str) -> ReplyFormat:
    """Return the format of replies to one report request; a reply becomes a `CitedReport`.

    `shown` contains the rows of the context by section, numbered from 1 on. Citations of other
    numbers are removed from the reply. A reply without a title gets `title`.
    """
    read = partial(_parse_report_reply, shown, title)
    return ReplyFormat("community_report", REPORT_SCHEMA, read, FORMAT_INSTRUCTION)


def _parse_report_reply(shown: SectionRows, title: str, data: Any) -> ParsedReply:
    """Parse a reply to a report; drop invalid findings and citations, and count them."""
    if isinstance(data, Sequence) and not isinstance(data, str) and len(data) == 1:
        data = data[0]
    if isinstance(data, Mapping) and len(data) == 1:
        # Unwrap the report, since some models reply {"report": {...}}.
        inner = next(iter(data.values()))
        data = inner if isinstance(inner, Mapping) else data
    if not isinstance(data, Mapping):
        raise ReplyError("it is no JSON object with title, summary, rating and findings")
    n_dropped = 0
    cited: dict[str, dict[int, int]] = {}

    def number_cited_row(section: str, number: int) -> int | None:
        rows = shown.get(section, ())
        if not 1 <= number <= len(rows):
            return None
        own = cited.setdefault(section, {})
        return own.setdefault(rows[number - 1], len(own))

    def check_text(value: object) -> str:
        nonlocal n_dropped
        text = replace_surrogates(value) if isinstance(value, str) else ""
        checked, n_removed = renumber_citations(text, number_cited_row)
        n_dropped += n_removed
        return checked

    records = _collect_findings(data.get("findings"))
    parsed = [Finding(*map(check_text, _parse_finding(record))) for record in records]
    findings = tuple(finding for finding in parsed if finding.summary)
    n_dropped += len(parsed) - len(findings)
    summary = check_text(data.get("summary")) or " ".join(found.summary for found in findings)
    if not summary:
        raise ReplyError("it has no summary")
    rating = parse_score(data.get("rating"), MAX_RATING)
    explanation = check_text(data.get("rating_explanation"))
    if rating is None:
        n_dropped += 1
        explanation = "The reply gave no rating: this one goes by how much the community holds."
    report = Report(
        " ".join(check_text(data.get("title")).lstrip("# ").split()) or title,
        summary,
        findings,
        None if rating is None else round(rating, 2),
        explanation,
    )
    rows = {section: tuple(places) for section, places in cited.items()}
    return ParsedReply(CitedReport(report, rows), n_dropped)


def _collect_findings(findings: object) -> Sequence[object]:
    """Convert the findings of a reply, in any of several formats, to a sequence of records."""
    if isinstance(findings, Mapping):
        if any(key in findings for key in (*_HEADING_KEYS, *_EXPLANATION_KEYS)):
            return [findings]
        return [{"summary": key, "explanation": value} for key, value in findings.items()]
    if isinstance(findings, str):
        return [findings]
    return findings if isinstance(findings, Sequence) else []


def _parse_finding(record: object) -> tuple[str, str]:
    """Return (heading, explanation) of a finding; both are empty if the finding is invalid."""
    if isinstance(record, str):
        heading, explanation = "", record
    elif isinstance(record, Mapping):
        heading = _find_first_text(record, _HEADING_KEYS)
        explanation = _find_first_text(record, _EXPLANATION_KEYS)
    else:
        return "", ""
    explanation = explanation.strip()
    if not heading.strip():
        sentences = split_sentences(explanation)
        heading = explanation[sentences[0].start : sentences[0].end] if sentences else ""
        heading = check_citations(heading, {})[0].rstrip(".")
    return " ".join(heading.split()).lstrip("# "), explanation


def _find_first_text(record: Mapping[str, object], keys: Sequence[str]) -> str:
    return next((value for key in keys if isinstance(value := record.get(key), str) and value), "")

"""Parsing of report replies: tolerant of their form, strict about their citations."""

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat
from graphrag_index.reports.report import CitedReport, Finding, Report, Rows
from graphrag_index.text.citations import check_citations, renumber_citations
from graphrag_index.text.sentences import split_sentences

NAME = "community_report"
_TEXT = {"type": "string"}
_PROPERTIES = {
    "title": _TEXT,
    "summary": _TEXT,
    "rating": {"type": "number"},
    "rating_explanation": _TEXT,
    "findings": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"summary": _TEXT, "explanation": _TEXT},
            "required": ["summary", "explanation"],
            "additionalProperties": False,
        },
    },
}
SCHEMA = {
    "type": "object",
    "properties": _PROPERTIES,
    "required": list(_PROPERTIES),
    "additionalProperties": False,
}
FORMAT_INSTRUCTION = (
    'Reply with one JSON object and nothing else: {"title": text, "summary": text, "rating": '
    'number from 0 to 10, "rating_explanation": text, "findings": [{"summary": text, '
    '"explanation": text}, ...]}'
)
# Other keys that models use for the parts of a finding.
_HEADINGS = ("summary", "title", "heading", "finding", "name")
_EXPLANATIONS = ("explanation", "description", "details", "text", "content")
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?")
_OUT_OF = re.compile(r"\s*(?:/|out of|of|von|sur|z)\s*(\d+(?:[.,]\d+)?)")


def report_format(shown: Rows, title: str) -> ReplyFormat:
    """Return the reply format of one report, parsed to a `CitedReport`.

    Parameters
    ----------
    shown
        The rows in the context by section, in the order of their numbers from 1 on. Citations of
        other numbers are removed.
    title
        Title if the reply has none.
    """
    return ReplyFormat(NAME, SCHEMA, partial(_read, shown, title), FORMAT_INSTRUCTION)


def _read(shown: Rows, title: str, data: Any) -> ParsedReply:
    """Parse a reply; invalid findings and citations are dropped and counted."""
    if isinstance(data, Sequence) and not isinstance(data, str) and len(data) == 1:
        data = data[0]
    if isinstance(data, Mapping) and len(data) == 1:
        # {"report": {...}}
        inner = next(iter(data.values()))
        data = inner if isinstance(inner, Mapping) else data
    if not isinstance(data, Mapping):
        raise ReplyError("it is no JSON object with title, summary, rating and findings")
    dropped = 0
    cited: dict[str, dict[int, int]] = {}

    def place(section: str, number: int) -> int | None:
        rows = shown.get(section, ())
        if not 1 <= number <= len(rows):
            return None
        own = cited.setdefault(section, {})
        return own.setdefault(rows[number - 1], len(own))

    def text(value: object) -> str:
        nonlocal dropped
        # Broken JSON may contain halves of characters.
        whole = value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
        checked, n_removed = renumber_citations(whole, place)
        dropped += n_removed
        return checked

    findings = []
    for record in _records(data.get("findings")):
        found = Finding(*map(text, _finding(record)))
        if found.summary:
            findings.append(found)
        else:
            dropped += 1
    summary = text(data.get("summary")) or " ".join(found.summary for found in findings)
    if not summary:
        raise ReplyError("it has no summary")
    rating = _rating(data.get("rating"))
    dropped += rating is None
    explanation = text(data.get("rating_explanation"))
    if rating is None:
        explanation = "The reply gave no rating: this one goes by how much the community holds."
    report = Report(
        " ".join(text(data.get("title")).lstrip("# ").split()) or title,
        summary,
        tuple(findings),
        rating,
        explanation,
    )
    rows = {section: tuple(places) for section, places in cited.items()}
    return ParsedReply(CitedReport(report, rows), dropped)


def _records(findings: object) -> Sequence[object]:
    if isinstance(findings, Mapping):
        if any(key in findings for key in (*_HEADINGS, *_EXPLANATIONS)):
            return [findings]
        return [{"summary": key, "explanation": value} for key, value in findings.items()]
    if isinstance(findings, str):
        return [findings]
    return findings if isinstance(findings, Sequence) else []


def _finding(record: object) -> tuple[str, str]:
    """Return heading and explanation; the heading is empty if there is nothing to report."""
    if isinstance(record, str):
        heading, explanation = "", record
    elif isinstance(record, Mapping):
        heading, explanation = _first(record, _HEADINGS), _first(record, _EXPLANATIONS)
    else:
        return "", ""
    explanation = explanation.strip()
    if not heading.strip():
        sentences = split_sentences(explanation)
        heading = explanation[sentences[0].start : sentences[0].end] if sentences else ""
        heading = check_citations(heading, {})[0].rstrip(".")
    return " ".join(heading.split()).lstrip("# "), explanation


def _first(record: Mapping[str, object], keys: Sequence[str]) -> str:
    return next((value for key in keys if isinstance(value := record.get(key), str) and value), "")


def _rating(value: object) -> float | None:
    """Parse a rating from 0 to 10: a number, or text such as "8/10"; else None."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        rating = float(value) if abs(value) < 1e9 else math.nan
    else:
        number = _NUMBER.search(str(value))
        if number is None:
            return None
        rating = float(number[0].replace(",", "."))
        scale = _OUT_OF.match(str(value), number.end())
        if scale and float(scale[1].replace(",", ".")) > 0:
            rating *= 10 / float(scale[1].replace(",", "."))
    return None if math.isnan(rating) else min(10.0, max(0.0, round(rating, 2)))

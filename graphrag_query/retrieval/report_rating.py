"""Walk down the hierarchy of reports, as far as a model finds them to bear on the question."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from graphrag_index.errors import ModelError
from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, Request
from graphrag_index.schema.settings.searches import GlobalSearch
from graphrag_index.text.citations import check_citations
from graphrag_query.answering.chat import Chat
from graphrag_query.answering.scores import read_score
from graphrag_query.question.question import Question
from graphrag_query.retrieval.index_store import KnowledgeModel
from graphrag_query.retrieval.report_selection import ReportChoice, as_shown, by_fit

HIGHEST = 5
# Of what a report is about; more is not needed to rate it.
LONGEST_GIST = 3_000
SCHEMA = {
    "type": "object",
    "properties": {"rating": {"type": "integer"}},
    "required": ["rating"],
    "additionalProperties": False,
}
IN_WORDS = 'Reply with one JSON object and nothing else: {"rating": number from 0 to 5}'
_NAMES = ("rating", "score", "relevance", "relevance_score", "value")


def choose_by_rating(question: Question, chat: Chat, settings: GlobalSearch) -> ReportChoice:
    """Choose reports from the top of the hierarchy down, at most `max_levels` deep.

    A model rates each report of level 0, then the children of those rated `min_rating` or
    higher. A parent gives way to its children, unless none of them is relevant. A call that
    fails costs its report, and what lies below.

    Raises
    ------
    ModelError
        All calls of the first level failed.
    """
    reports = by_fit(question)
    question.counts["community_reports"] = reports.height
    known = reports["community"].implode()
    # Where the report on a parent is missing, its children stand at the top.
    level = reports.filter(~pl.col("parent").is_in(known))
    ratings: dict[int, float] = {}
    failed: list[int] = []
    for _ in range(settings.max_levels):
        rated, lost = _rate(question, chat, level)
        question.counts.update(
            reports_rated=len(ratings) + len(rated), ratings_failed=len(failed) + len(lost)
        )
        if not ratings and lost and not rated:
            raise ModelError(f"The model rated none of the reports: {next(iter(lost.values()))}.")
        ratings |= rated
        failed += lost
        relevant = [number for number, rating in rated.items() if rating >= settings.min_rating]
        level = reports.filter(pl.col("parent").is_in(relevant))
        if not level.height:
            break
    return _choice(question.model, reports, ratings, failed, settings.min_rating)


def _rate(
    question: Question, chat: Chat, reports: pl.DataFrame
) -> tuple[dict[int, float], dict[int, str]]:
    """Return the ratings by number, and why the others have none."""
    rows = list(question.model.with_texts(reports, "summary", "findings").iter_rows(named=True))
    outcomes = chat.replies((_request(question, chat, row) for row in rows), rating=True)
    ratings, lost = {}, {}
    for row, outcome in zip(rows, outcomes, strict=True):
        if outcome.failure:
            lost[row["community"]] = outcome.failure
        else:
            ratings[row["community"]] = outcome.values[0]
    return ratings, lost


def _request(question: Question, chat: Chat, report: Mapping[str, Any]) -> Request:
    headings = [f"- {finding['summary']}" for finding in report["findings"]]
    gist = "\n".join([report["title"], report["summary"], *headings])
    gist = check_citations(gist, {})[0][:LONGEST_GIST]
    asked = f"Report:\n{gist}\n\nQuestion: {question.text}"
    return Request(
        f"report {report['community']}",
        chat.messages("global_rating", asked),
        ReplyFormat("rating", SCHEMA, _read, IN_WORDS),
    )


def _read(data: Any) -> ParsedReply:
    """Read a rating: a number, or the first one in an object or a list."""
    while isinstance(data, list) and data:
        data = data[0]
    if isinstance(data, Mapping):
        named = (value for key in _NAMES if (value := data.get(key)) is not None)
        data = next(named, next(iter(data.values()), None))
    rating = read_score(data, HIGHEST)
    if rating is None:
        raise ReplyError("it has no rating")
    return ParsedReply(rating)


def _choice(
    model: KnowledgeModel,
    reports: pl.DataFrame,
    ratings: Mapping[int, float],
    failed: list[int],
    min_rating: int,
) -> ReportChoice:
    relevant = [number for number, rating in ratings.items() if rating >= min_rating]
    given_way = reports.filter(pl.col("community").is_in(relevant))["parent"].to_list()
    chosen = (
        reports.filter(pl.col("community").is_in(relevant) & ~pl.col("community").is_in(given_way))
        .with_columns(
            rating=pl.col("community").replace_strict(dict(ratings), return_dtype=pl.Float64)
        )
        .sort("rating", "score", "community", descending=[True, True, False])
    )
    lower = [number for number, rating in ratings.items() if rating < min_rating]
    left_out = reports.filter(pl.col("community").is_in([*lower, *failed]))
    notes: tuple[str, ...] = ()
    if failed:
        listed = ", ".join(map(str, failed))
        notes = (f"{len(failed)} calls failed: reports {listed} were not rated.",)
    return ReportChoice(
        reports=as_shown(model, chosen, "full_content"),
        left_out=left_out.select("community", "title"),
        level=None,
        looked_at={
            "community_reports": reports.height,
            "reports_rated": len(ratings),
            "ratings_failed": len(failed),
            "reports_read": chosen.height,
            "reports_left_out": reports.height - chosen.height,
        },
        notes=notes,
        why=f"rated below {min_rating} of {HIGHEST}",
    )

"""Global search: choose reports, extract points from the reports, answer from the points."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import polars as pl

from graphrag_index.errors import ModelError, SettingsError
from graphrag_index.llm.request import ParsedReply, ReplyFormat, Request
from graphrag_index.schema.settings.searches import GlobalSearch
from graphrag_nlp.text.citations import ShownRows, check_citations, find_cited_rows
from graphrag_query.answer import Answer, Context, Outcome
from graphrag_query.answering.written_answer import merge_contexts, pack_statements, write_answer
from graphrag_query.llm import (
    LLM,
    REPLY_FIELDS,
    find_records,
    first_field,
    first_text,
    read_importance,
    reply_format,
)
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import content_words
from graphrag_query.question.refusals import format_refusal
from graphrag_query.retrieval.report_passages import add_passages
from graphrag_query.retrieval.report_selection import (
    choose_by_rating,
    choose_reports,
    is_about_corpus,
    split_reports,
)

# Maximum length of a point in characters; a point should be one or two sentences.
MAX_POINT_CHARS = 1_000
NO_POINTS_TEXT = "The community reports that were read say nothing on this question."


@dataclass(frozen=True)
class Point:
    """A statement from reports that helps to answer the question; `description` cites them."""

    description: str
    score: float  # 0 to 100


def global_search(question: Question, settings: GlobalSearch) -> Answer:
    """Answer a question about the whole corpus from community reports.

    Choose: take the reports of a level that are most similar to the question, all reports of
    the level, or the reports that a model rates as relevant while it goes down the hierarchy.
    Map: a model extracts scored points from each batch of reports. Reduce: the model writes the
    answer from the best points. If all reports fit into one context, there is no map step.
    Without a model, `global_sentences` answers. The outcome is `no_evidence` if there is no
    report or point, or if the question names something that the documents do not mention.
    """
    llm = question.llm
    if llm is None:
        from graphrag_query.searches.global_sentences import global_sentences

        return global_sentences(question, settings)
    n_reports = question.index.n_rows("community_reports")
    if refusal := question.refuse():
        return replace(refusal, looked_at={"community_reports": n_reports, "reports_read": 0})

    question.counts["community_reports"] = n_reports
    about_all = is_about_corpus(question)
    if settings.selection == "dynamic":
        chosen = choose_by_rating(question, llm, settings)
    else:
        chosen = choose_reports(question, settings, about_all)
    if chosen.reports.height:
        answer = _map_reduce(question, llm, chosen.reports, settings, about_all, chosen.notes)
    else:
        text = format_refusal("no_similar_report", question.language)
        answer = question.answer(text, Outcome.NO_EVIDENCE, notes=chosen.notes)
    return replace(answer, parameters={"level": chosen.level}, left_out=chosen.left_out)


def report_context(question: Question, settings: GlobalSearch) -> Context:
    """Return the reports and passages that the calls of a model would read, the best first.

    The context is empty if the question names something that the documents do not mention.
    Raises `SettingsError` if a model chooses the reports.
    """
    if settings.selection == "dynamic":
        raise SettingsError(
            "With selection: dynamic, global search has no context before a model has rated the "
            "reports. Set global_search.selection to similar or level."
        )
    if question.refuse() is not None:
        return merge_contexts([])
    about_all = is_about_corpus(question)
    reports = choose_reports(question, settings, about_all).reports
    return merge_contexts(_build_contexts(question, reports, settings, about_all))


def _build_contexts(
    question: Question, reports: pl.DataFrame, settings: GlobalSearch, about_all: bool
) -> list[Context]:
    """Split reports into the contexts of calls, each with the best passages on its reports."""
    # Where the settings or a model choose the reports, passages only fill what reports leave free.
    # A question on the whole corpus gets no passages.
    has_share = settings.selection == "similar" and not about_all
    share = settings.passage_share if has_share else 0
    limit = int((1 - share) * settings.max_context_tokens)
    batches = split_reports(question, reports, limit)
    return batches if about_all else add_passages(question, batches, settings)


def _map_reduce(
    question: Question,
    llm: LLM,
    reports: pl.DataFrame,
    settings: GlobalSearch,
    about_all: bool,
    notes: tuple[str, ...],
) -> Answer:
    """Answer from reports in one call if they fit into one context, else from their points."""
    batches = _build_contexts(question, reports, settings, about_all)
    if len(batches) == 1:
        return write_answer(question, "global_search", batches[0], notes)

    question.counts["map_calls"] = len(batches)
    mapped, failures = _map_reports(question, llm, batches)
    points = [point for point in mapped if point.score >= settings.min_score]
    question.counts.update(
        map_calls_failed=len(failures),
        points=len(mapped),
        points_below_min_score=len(mapped) - len(points),
    )
    notes = (*failures, *notes)
    read = merge_contexts(batches)
    if not points:
        return question.answer(NO_POINTS_TEXT, Outcome.NO_EVIDENCE, notes=notes, context=read)
    limit = question.max_context_tokens(settings.max_context_tokens)
    scores, texts = [round(p.score) for p in points], [p.description for p in points]
    columns = {"score": scores, "point": texts}
    context, question.counts["points_used"] = pack_statements("Points", columns, read, limit)
    return replace(write_answer(question, "global_reduce", context, notes), context=read)


def _map_reports(
    question: Question, llm: LLM, batches: Sequence[Context]
) -> tuple[list[Point], list[str]]:
    """Extract the points relevant to the question from each batch, with one call per batch.

    The best points come first. If a call fails, its batch is skipped, and a note lists the
    skipped reports. If all calls fail, `ModelError` is raised.
    """
    outcomes = llm.replies(_points_request(question, llm, batch) for batch in batches)
    points: list[Point] = []
    notes = []
    for batch, outcome in zip(batches, outcomes, strict=True):
        if outcome.failure:
            numbers = ", ".join(map(str, batch.tables["Reports"]["id"]))
            notes.append(f"A call failed ({outcome.failure}): reports {numbers} were not read.")
        else:
            points += outcome.values[0]
    if len(notes) == len(batches):
        raise ModelError(f"The model read none of the reports: {outcomes[0].failure}.")
    # The sort is stable: points of equal score keep the order of their reports.
    points.sort(key=lambda point: -point.score)
    return points, notes


def _points_request(question: Question, llm: LLM, batch: Context) -> Request:
    asked = f"{batch.text}\nQuestion: {question.text}"
    numbers = batch.tables["Reports"]["id"]
    return Request(
        f"reports {numbers[0]} and {len(numbers) - 1} more",
        llm.messages("global_map", asked),
        points_format(batch.tables["Reports"], batch.shown.get("Sources", set())),
    )


def points_format(reports: pl.DataFrame, sources: Set[int] = frozenset()) -> ReplyFormat:
    """Return the reply format for points that may cite these reports and text units."""
    return reply_format("points", partial(_parse_points, reports, sources))


def _parse_points(reports: pl.DataFrame, sources: Set[int], data: Any) -> ParsedReply:
    """Parse the points of a reply. Points without a text or a report are dropped."""
    shown = {"Reports": set(reports["id"].to_list()), "Sources": set(sources)}
    listed = data.get("points") if isinstance(data, Mapping) else None
    if isinstance(listed, Mapping) and not any(name in listed for name in REPLY_FIELDS["point"]):
        # Convert {description: score, ...} to a list of points.
        data = [{"description": text, "score": score} for text, score in listed.items()]
    records = find_records(data, "points", REPLY_FIELDS["point"])
    points = [point for record in records if (point := _parse_point(record, reports, shown))]
    return ParsedReply(points, len(records) - len(points))


def _parse_point(record: Any, reports: pl.DataFrame, shown: ShownRows) -> Point | None:
    if isinstance(record, str):
        record = {"description": record}
    if not isinstance(record, Mapping):
        return None
    description, _ = check_citations(first_text(record, "point"), shown)
    if not check_citations(description, {})[0]:
        return None
    cited = find_cited_rows(description)
    if not any(cited.values()):
        number = _most_similar(description, reports)
        if number is None:
            return None
        cited = {"Reports": {number}}
        description = f"{description} [Data: Reports ({number})]"
    if len(description) > MAX_POINT_CHARS:
        text = check_citations(description, {})[0][:MAX_POINT_CHARS].rstrip()
        rows = {name: ", ".join(map(str, sorted(cited[name]))) for name in cited}
        listed = "; ".join(f"{name} ({numbers})" for name, numbers in rows.items())
        description = f"{text}… [Data: {listed}]"
    return Point(description, read_importance(first_field(record, REPLY_FIELDS["score"])))


def _most_similar(description: str, reports: pl.DataFrame) -> int | None:
    """Return the number of the report that shares the most words with a point.

    None means that no report shares a word with the point.
    """
    words = set(content_words(description))
    best = max(
        ((len(words & set(content_words(text))), -number) for number, text in reports.iter_rows()),
        default=(0, 0),
    )
    return -best[1] if best[0] else None

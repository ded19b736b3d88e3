"""Global search: choose reports, map them to points, reduce these to an answer."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from graphrag_index.schema.settings.searches import GlobalSearch
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.context import Context, Section, joined, pack
from graphrag_query.answering.written_answer import write_answer
from graphrag_query.question.question import Question
from graphrag_query.question.question_names import not_mentioned, unknown_names
from graphrag_query.retrieval.report_rating import choose_by_rating
from graphrag_query.retrieval.report_selection import choose_reports, in_batches
from graphrag_query.searches.global_map import Point, map_reports
from graphrag_query.searches.global_sentences import global_sentences

TOO_FAR = "No community report comes close enough to this question."
NO_POINTS = "The community reports that were read say nothing on this question."


def global_search(question: Question, settings: GlobalSearch) -> Answer:
    """Answer a question about the whole corpus from community reports.

    Choose: the reports of a level that are most similar to the question, or all of it, or
    those that a model finds relevant on its way down the hierarchy. Map: each batch of them
    gives points with a score. Reduce: the answer is written from the best points. Reports
    that fit into one context need no map. Without a model, sentences of the reports are the
    points. The outcome is `no_evidence` if there is no report or point, or if the question
    names what the documents do not.
    """
    chat = question.chat
    if chat is None:
        return global_sentences(question, settings)
    answer = partial(question.answer, method="global", parameters=settings.model_dump())
    unknown = unknown_names(question.model, question.text, ())
    if unknown:
        n_reports = question.model.rows("community_reports")
        counts = {"community_reports": n_reports, "reports_read": 0}
        return answer(not_mentioned(unknown), looked_at=counts, outcome=Outcome.NO_EVIDENCE)

    question.counts["community_reports"] = question.model.rows("community_reports")
    if settings.selection == "dynamic":
        chosen = choose_by_rating(question, chat, settings)
    else:
        chosen = choose_reports(question, settings)
    parameters = settings.model_dump() | {"level": chosen.level}
    looked_at = dict(chosen.looked_at)
    notes = (*chosen.notes, *chosen.note)
    left_out = tuple(chosen.left_out["community"].to_list())
    answer = partial(question.answer, method="global", parameters=parameters, left_out=left_out)
    if not chosen.reports.height:
        return answer(TOO_FAR, looked_at=looked_at, outcome=Outcome.NO_EVIDENCE, notes=notes)

    batches = in_batches(question, chosen.reports, settings.max_context_tokens)
    write = partial(write_answer, question, method="global", parameters=parameters)
    if len(batches) == 1:
        written = write("global_search", batches[0], looked_at=looked_at, notes=notes)
        return replace(written, left_out=left_out)

    question.counts.update(looked_at, map_calls=len(batches))
    mapped = map_reports(question, chat, batches)
    points = [point for point in mapped.points if point.score >= settings.min_score]
    looked_at |= {
        "map_calls": len(batches),
        "map_calls_failed": mapped.n_failed,
        "points": len(mapped.points),
        "points_below_min_score": len(mapped.points) - len(points),
    }
    notes = (*mapped.notes, *notes)
    read = joined(batches)
    if not points:
        return answer(
            NO_POINTS,
            looked_at=looked_at,
            outcome=Outcome.NO_EVIDENCE,
            notes=notes,
            context=read,
        )
    limit = question.max_context_tokens(settings.max_context_tokens)
    context, n_points = _context_of(points, chosen.reports, limit)
    looked_at["points_used"] = n_points
    written = write("global_reduce", context, looked_at=looked_at, notes=notes)
    return replace(written, left_out=left_out, context=read)


def _context_of(
    points: Sequence[Point], reports: pl.DataFrame, max_tokens: int
) -> tuple[Context, int]:
    """Put the best points into a context, from which the reports may be cited that they cite."""
    rows = pl.DataFrame(
        [(n, round(point.score), point.description) for n, point in enumerate(points, 1)],
        {"id": pl.Int64, "score": pl.Int64, "point": pl.String},
        orient="row",
    )
    packed = pack([Section("Points", rows, 1.0)], max_tokens)
    n_points = packed.tables["Points"].height if "Points" in packed.tables else 0
    cited = {number for point in points[:n_points] for number in point.reports}
    shown = reports.filter(pl.col("id").is_in(sorted(cited)))
    return replace(packed, tables={"Reports": shown} if n_points else {}), n_points

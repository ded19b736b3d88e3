"""Choose community reports for a question about the whole corpus."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.errors import ModelError, join_names
from graphrag_index.llm.prompts import RenderedRows, TokenBudget, quote_text
from graphrag_index.llm.request import Request
from graphrag_index.schema.settings.searches import GlobalSearch
from graphrag_nlp.text.citations import check_citations
from graphrag_nlp.text.normalize import stem_word
from graphrag_query.answer import Context, RatedReport
from graphrag_query.answering.written_answer import HEADING_TOKENS
from graphrag_query.llm import LLM, MAX_RATING, RATING_FORMAT
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import (
    STEMS_ABOUT_CORPUS,
    STEMS_BESIDE_CORPUS,
    WORD,
    content_words,
    is_unreadable,
    share_of_words,
)
from graphrag_query.retrieval.community_paths import sample_text_units
from graphrag_query.store.index_store import IndexStore

# Maximum number of reports that are compared with a question. More are read only from an index
# with more reports, of which others are not similar enough for an answer.
MAX_SIMILAR_REPORTS = 4_096
# Weight of a report's rank (divided by 10), added to its cosine similarity to the question.
RANK_WEIGHT = 0.25
# Minimum number of reports of a level; a level with fewer is too coarse to show the themes.
MIN_LEVEL_REPORTS = 4
# Reports up to this number of tokens are read even if they exceed `max_map_share`.
MIN_REPORT_TOKENS = 500
# Length in bytes of a call's instructions; it is added to the length of a level's reports.
PROMPT_BYTES = 1_600
# Number of reports whose texts are read in one call.
REPORTS_PER_BATCH = 32
# Maximum number of reports that a note lists; the answer has the numbers of all reports.
MAX_REPORTS_IN_NOTE = 8
# Maximum number of reports that an answer lists with their scores.
MAX_NOTED_REPORTS = 100
# Minimum number of text units for an estimate of their usual similarity to a question.
MIN_SAMPLE = 50
# Number of standard deviations by which the best text unit of a question stands out.
MIN_DEVIATIONS = 1.6
# Number of text units that match a question best by words, and the minimum share (0 to 1) of its
# words that one of them has if the question is about something in it.
N_MATCHING, MIN_SHARE_OF_WORDS = 8, 0.4
# Maximum characters of a report in the prompt that rates the report.
MAX_RATED_CHARS = 3_000


@dataclass(frozen=True)
class ReportChoice:
    """The chosen reports, the best first. One row is a report: its number `id` and its `text`."""

    reports: pl.DataFrame
    left_out: tuple[int, ...]  # numbers of the other reports
    level: int | None  # None if a model rated reports of several levels
    notes: tuple[str, ...]  # failed calls, and the reports that were left out


def _describe_left_out(
    left_out: pl.DataFrame, n_read: int, level: int | None, why: str
) -> tuple[str, ...]:
    """Return a note on the reports that were left out, and why; empty without such reports."""
    if not left_out.height:
        return ()
    rows = left_out.select("community", "title").iter_rows()
    named = join_names((f"{title} ({number})" for number, title in rows), MAX_REPORTS_IN_NOTE)
    place = f" of level {level}" if level is not None else ""
    of_all = f"{left_out.height} of {left_out.height + n_read}"
    return (f"{of_all} reports{place} left out, {why}: {named}.",)


def subject_text(question: Question) -> str:
    """Return a question without the words that only say that it asks about all documents.

    Returns the empty text if it has no other words.
    """
    kept = set(content_words(question.text, question.language))
    kept -= STEMS_ABOUT_CORPUS | STEMS_BESIDE_CORPUS
    words = WORD.findall(question.text)
    return " ".join(word for word in words if kept & set(content_words(word, question.language)))


def is_about_corpus(question: Question) -> bool:
    """Return whether a question names nothing of the documents, so that it is about all of them.

    It names something if it has the name of an entity, if a text unit has enough of its words, or
    if a text unit is more similar to it than chance allows: with a multilingual embedding model. An
    English question on English documents that has other words than those that say so is about
    something that the documents may lack: their full-text index has the stems of English words.
    """
    text, index = subject_text(question), question.index
    if not text:
        return True
    if question.language.code == "en" and "en" in index.main_languages:
        # In "executive summary", a word that no document has only says what summary.
        said = WORD.findall(question.text.lower())
        stems = STEMS_ABOUT_CORPUS | STEMS_BESIDE_CORPUS
        before = {word for word, noun in pairwise(said) if stem_word(noun) in stems}
        words = {*text.lower().split()}
        return words <= before and words <= {*question.unseen_words}
    table = index.vectors("text_unit_text")
    found = table.find_matching_rows(text, N_MATCHING, ["text"])["text"]
    if any(share_of_words(text, read) >= MIN_SHARE_OF_WORDS for read in found):
        return False
    return not (question.mentions.exact_entities or _stands_out(index, question))


def _stands_out(index: IndexStore, question: Question) -> bool:
    """Return whether the best text unit is much more similar to a question than chance allows.

    The best of n similarities that are normally distributed is expected at the square root of
    2 ln n standard deviations above their mean. Mean and deviation are those of a sample.
    """
    sample, vectors = sample_text_units(index), index.vectors("text_unit_text")
    if len(sample) < MIN_SAMPLE or is_unreadable(index, question.text):
        return False
    usual = index.open_mapped("text_unit_vectors").matrix("vector", sample) @ question.vector
    best = vectors.nearest(question.vector, 1, ["human_readable_id"])["similarity"].to_numpy()
    expected = math.sqrt(2 * math.log(index.links.n_text_units))
    return bool(
        best.size and best.max() >= usual.mean() + (expected + MIN_DEVIATIONS) * usual.std()
    )


def score_reports(question: Question) -> pl.DataFrame:
    """Return all reports without their texts, with `similarity` to the question and `score`.

    `similarity` is the cosine, or 0 for a report that is not among the `MAX_SIMILAR_REPORTS`
    nearest ones, and null for one without a vector, which the search reads too. `score` also takes
    the rank of the report into account.
    """
    reports = question.index.report_list
    table = question.index.vectors("community_full_content")
    n_nearest = max(1, min(reports.height, MAX_SIMILAR_REPORTS))
    rows = table.nearest(question.vector, n_nearest, ["community"])
    other = None if rows.height < n_nearest else 0
    return reports.join(rows, on="community", how="left", maintain_order="left").with_columns(
        pl.col("similarity").cast(pl.Float64).fill_null(pl.lit(other, pl.Float64)),
        score=pl.col("similarity").fill_null(0) + RANK_WEIGHT * pl.col("rank") / 10,
    )


def fitting_level(reports: pl.DataFrame, about_all: bool) -> int:
    """Return the level whose best reports are most similar to a question.

    For a question about the whole corpus, return the coarsest level with at least
    `MIN_LEVEL_REPORTS` reports.
    """
    levels = reports.group_by("level").agg(
        pl.len().alias("n"), fit=pl.col("similarity").fill_null(0).top_k(MIN_LEVEL_REPORTS).mean()
    )
    if about_all:
        levels = levels.filter(pl.col("n") >= MIN_LEVEL_REPORTS).sort("level")
    else:
        levels = levels.sort("fit", "level", descending=[True, False])
    return int(levels["level"][0]) if levels.height else 0


def reports_of_level(
    question: Question, settings: GlobalSearch, about_all: bool
) -> tuple[pl.DataFrame, int]:
    """Score the reports of one level, and of communities above that level without children.

    Returns the reports and the level: the level in the settings, or else the fitting level.
    """
    reports = score_reports(question)
    if settings.level is None:
        level = fitting_level(reports, about_all)
    else:
        level = min(settings.level, max(reports["level"].to_list(), default=0))
    leaf = pl.col("children").list.len() == 0
    return reports.filter((pl.col("level") == level) | ((pl.col("level") < level) & leaf)), level


def note_reports(question: Question, reports: pl.DataFrame, score: str) -> None:
    """Note reports and their scores for the answer; they are in their order, the best first."""
    scores = pl.col(score).cast(pl.Float64).fill_null(0)
    rows = reports.head(MAX_NOTED_REPORTS).select("community", "title", scores).iter_rows()
    question.reports[:] = [RatedReport(*row) for row in rows]


def choose_reports(question: Question, settings: GlobalSearch, about_all: bool) -> ReportChoice:
    """Choose all reports of a level, or the most similar reports within a token budget.

    The budget is `max_map_tokens` and `max_map_share`. For a question about the whole corpus,
    take the reports with the highest rank, and only their summaries, so that more reports fit.
    """
    reports, level = reports_of_level(question, settings, about_all)
    order = ["rank", "size", "score"] if about_all else ["score"]
    reports = reports.sort(*order, "community", descending=[True] * len(order) + [False])
    chosen = reports
    if settings.selection != "level":
        chosen = _take_within_budget(question.index, reports, settings, about_all)
    left_out = reports.join(chosen, on="community", how="anti", maintain_order="left")
    column = "summary" if about_all and settings.selection == "similar" else "full_content"
    question.counts.update(
        community_reports=reports.height,
        reports_read=chosen.height,
        reports_left_out=left_out.height,
    )
    note_reports(question, chosen, order[0])
    why = "ranked lower" if about_all else "less similar to the question"
    return ReportChoice(
        as_context_rows(question.index, chosen, column),
        tuple(left_out["community"]),
        level,
        _describe_left_out(left_out, chosen.height, level, why),
    )


def _take_within_budget(
    index: IndexStore, reports: pl.DataFrame, settings: GlobalSearch, about_all: bool
) -> pl.DataFrame:
    """Return the first reports that fit into the token budget, at least one."""
    n_bytes_of_level = int(reports["n_bytes"].sum())
    if not about_all:
        reports = reports.filter(
            pl.col("similarity").is_null() | (pl.col("similarity") >= settings.min_similarity)
        )
    # The limit is in bytes, because counting the tokens of a large level takes long.
    max_bytes = settings.max_map_share * (n_bytes_of_level + PROMPT_BYTES) - PROMPT_BYTES
    column = "summary" if about_all else "full_content"
    # Passages on the question get the rest of the budget; see `add_passages`.
    passage_share = 0.0 if about_all else settings.passage_share
    max_tokens = (1 - passage_share) * settings.n_map_tokens
    n_fitting = cost = n_bytes = 0
    for start in range(0, reports.height, REPORTS_PER_BATCH):
        read = index.with_texts(reports[start : start + REPORTS_PER_BATCH], column)
        shown = as_context_rows(index, read, column)
        costs = cost + np.cumsum(RenderedRows.from_rows(shown, TokenBudget(1 << 40, 1 << 40)).cost)
        text = pl.concat_str("title", "summary") if about_all else pl.col("full_content")
        sizes = read.select(text.str.len_bytes().cast(pl.Int64)).to_series().to_numpy()
        bytes_read = n_bytes + np.cumsum(sizes)
        has_room = (bytes_read <= max_bytes) | (costs <= MIN_REPORT_TOKENS)
        fits = (costs <= max_tokens) & has_room
        n_fitting += int(fits.sum())
        if not fits.all():
            break
        cost, n_bytes = int(costs[-1]), int(bytes_read[-1])
    return reports.head(max(1, n_fitting))


def as_context_rows(index: IndexStore, reports: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return reports as rows of a context: number and text, without citations.

    `column` is `full_content` or `summary`. A summary has the title of the report before it. A
    statement that several documents state has their number after it: "(3 documents)".
    """
    if column not in reports.columns:
        reports = index.with_texts(reports, column)
    text = reports[column]
    if column == "summary":
        text = reports["title"] + ": " + text
    marks = _mark_statements(index, reports["community"])
    texts = [check_citations(said, {})[0] for said in text]
    for at, community in enumerate(reports["community"]):
        for said, mark in marks.get(community, ()):
            texts[at] = texts[at].replace(said, f"{said} {mark}", 1)
    return pl.DataFrame(
        {"id": reports["community"], "text": texts}, {"id": pl.Int64, "text": pl.String}
    )


def _mark_statements(index: IndexStore, communities: pl.Series) -> dict[int, list[tuple[str, str]]]:
    """Map communities to (text, mark) of the statements that several documents state.

    Of most statements, the corpus has one document: a mark at each of them would say little.
    """
    reports = index.reports(communities)
    if "statements" not in reports.columns:
        # The index is of an earlier version, or of Microsoft GraphRAG.
        return {}
    stated = reports.select("community", "statements").explode("statements").drop_nulls()
    stated = stated.unnest("statements").filter(pl.col("n_documents") > 1)
    stated = stated.unique(["community", "statement"], maintain_order=True)
    marks: dict[int, list[tuple[str, str]]] = {}
    for community, text, n in stated.select("community", "text", "n_documents").iter_rows():
        marks.setdefault(community, []).append((text, f"({n} documents)"))
    return marks


def split_reports(question: Question, reports: pl.DataFrame, max_tokens: int) -> list[Context]:
    """Split reports, in their order, into contexts of at most `max_tokens`.

    A report takes at most half of a context; longer reports are shortened.
    """
    limit = question.max_context_tokens(max_tokens) - HEADING_TOKENS
    room = question.max_context_tokens(1 << 40)
    # Twice the limit, because `RenderedRows` shortens a row to a quarter of its budget.
    rows = RenderedRows.from_rows(reports, TokenBudget(2 * limit, 2 * room))
    batches = []
    ends = np.cumsum(rows.cost)
    first = 0
    while first < reports.height:
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + limit, side="right")))
        lines = "".join(rows.text[first:last].to_list())
        text = f"-----Reports-----\nid,text\n{lines}"
        n_tokens = int(ends[last - 1]) - before + HEADING_TOKENS
        batches.append(Context({"Reports": reports[first:last]}, text, n_tokens, {"Reports": 0}))
        first = last
    return batches


def choose_by_rating(question: Question, llm: LLM, settings: GlobalSearch) -> ReportChoice:
    """Choose reports by a model's ratings, from the top of the hierarchy down.

    The model rates each report of level 0, then the children of the reports that it rated
    `min_rating` or higher, for at most `max_levels` levels. Relevant children replace their
    parent. If a call fails, its report and the reports below it are skipped. Raises `ModelError`
    if all calls of the first level fail.
    """
    reports = score_reports(question)
    question.counts["community_reports"] = reports.height
    known = reports["community"].implode()
    # If the report on a parent is missing, the search starts with its children.
    level = reports.filter(~pl.col("parent").is_in(known))
    ratings: dict[int, float] = {}
    failed: list[int] = []
    relevant: list[int] = []
    for _ in range(settings.max_levels):
        numbers = level["community"].to_list()
        texts = question.index.with_texts(level, "summary", "findings").iter_rows(named=True)
        requests = [_rating_request(question, llm, report) for report in texts]
        outcomes = dict(zip(numbers, llm.replies(requests, rating=True), strict=True))
        lost = {number: o.failure for number, o in outcomes.items() if o.failure}
        rated = {number: o.values[0] for number, o in outcomes.items() if not o.failure}
        ratings |= rated
        failed += lost
        question.counts.update(reports_rated=len(ratings), ratings_failed=len(failed))
        if lost and not ratings:
            raise ModelError(f"The model rated none of the reports: {next(iter(lost.values()))}.")
        found = [number for number, rating in rated.items() if rating >= settings.min_rating]
        relevant += found
        level = reports.filter(pl.col("parent").is_in(found))
        if not level.height:
            break
    rating = pl.col("community").replace_strict(ratings, default=None, return_dtype=pl.Float64)
    order = ["rating", "score", "community"]
    rated_reports = reports.with_columns(rating=rating).drop_nulls("rating")
    rated_reports = rated_reports.sort(order, descending=[True, True, False])
    chosen = rated_reports.filter(pl.col("community").is_in(relevant))
    chosen = chosen.filter(~pl.col("community").is_in(chosen["parent"].implode()))
    note_reports(question, rated_reports, "rating")
    asked = reports.filter(pl.col("community").is_in([*ratings, *failed]))
    left_out = asked.filter(~pl.col("community").is_in(relevant))
    question.counts.update(
        reports_read=chosen.height, reports_left_out=reports.height - chosen.height
    )
    why = f"rated below {settings.min_rating} of {MAX_RATING}"
    notes = _describe_left_out(left_out, chosen.height, None, why)
    if failed:
        listed = ", ".join(map(str, failed))
        notes = (f"{len(failed)} calls failed: reports {listed} were not rated.", *notes)
    shown = as_context_rows(question.index, chosen, "full_content")
    return ReportChoice(shown, tuple(left_out["community"]), None, notes)


def _rating_request(question: Question, llm: LLM, report: Mapping[str, Any]) -> Request:
    headings = [f"- {finding['summary']}" for finding in report["findings"]]
    gist = "\n".join([report["title"], report["summary"], *headings])
    gist = check_citations(gist, {})[0][:MAX_RATED_CHARS]
    asked = f"Report:\n{quote_text(gist)}\n\nQuestion: {question.text}"
    unit = f"report {report['community']}"
    return Request(unit, llm.messages("global_rating", asked), RATING_FORMAT)

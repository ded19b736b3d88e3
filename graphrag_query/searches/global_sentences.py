"""Global search without a model: the best sentences of the reports of a level, as themes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.schema.settings.searches import GlobalSearch
from graphrag_index.text.citations import find_citations
from graphrag_index.text.sentences import are_near_duplicates, telling_words
from graphrag_query.answer import Answer, Citation, Outcome
from graphrag_query.answering.cited_text import best_sentence, units_behind
from graphrag_query.answering.sentence_ranking import (
    SHARE_OF_BEST,
    Candidate,
    as_prose,
    cite,
    rank_sentences,
    rarity_of,
)
from graphrag_query.question.question import Question
from graphrag_query.question.question_names import not_mentioned, unknown_names
from graphrag_query.question.unsupported_scripts import is_unread, share_words
from graphrag_query.retrieval.index_store import KnowledgeModel
from graphrag_query.retrieval.report_selection import by_fit, fitting_level, of_level, subject_of
from graphrag_query.searches.main_entities import kind_of, list_main_entities

# Reports whose sentences are compared with the question.
REPORTS_READ = 24
# A sentence less similar to the question is no point about it (cosine).
MIN_SENTENCE_SIMILARITY = 0.3
# A sentence must hold so much of the question's words, by rarity, and a third of what the one
# holds that holds most: a word that is all over the corpus makes no point. More similarity than
# this makes up for it (cosine).
MIN_COVERAGE = 0.15
ENOUGH_SIMILARITY = 0.48
SENTENCES_PER_THEME = 2
_CITED = re.compile(r"\s*\[Data: (?:[^\[\]]*; )?Sources \((?P<source>\d+)[^)]*\)\]")


@dataclass(frozen=True)
class Point:
    """What one report adds to the answer: a sentence and the passage that proves it."""

    report: Mapping[str, Any]
    text: str
    source: int  # number of the text unit
    score: float


def global_sentences(question: Question, settings: GlobalSearch) -> Answer:
    """Answer a question about the whole corpus from the reports of one level.

    Map: every report of the level is scored by its similarity to the question and by
    its rank, and the best give their best sentences as points. Reduce: points are
    gathered into one theme a report, the highest first, each sentence said once. Asked
    for the main people, places, events or organizations, it lists the entities instead.
    The outcome is `no_evidence` if no report is similar enough, or if the question names
    what the documents do not.
    """
    model, asked = question.model, question.text
    subject = subject_of(asked)
    kind = kind_of(subject)
    if kind:
        return list_main_entities(question, kind, settings)
    unknown = unknown_names(model, asked, ())
    vector = question.vector
    about_all = not subject
    reports = by_fit(question)
    level = settings.level if settings.level is not None else fitting_level(reports, about_all)
    reports = of_level(reports, level)
    if about_all:
        points = _points_of_best(model, reports, settings)
    else:
        points = [] if unknown else _map(model, reports, asked, subject, vector, settings)
    themes = _reduce(points, settings.max_points)
    answer = partial(
        question.answer,
        method="global",
        parameters=settings.model_dump() | {"level": level},
        looked_at={"community_reports": reports.height, "reports_used": len(themes)},
    )
    if not themes:
        far = "No community report comes close enough to this question."
        text = not_mentioned(unknown) if unknown else far
        return answer(text, outcome=Outcome.NO_EVIDENCE)
    text, citations = _write(model, themes, about_all)
    return answer(text, citations=citations)


def _points_of_best(
    model: KnowledgeModel, reports: pl.DataFrame, settings: GlobalSearch
) -> list[Point]:
    """Let the reports of the highest rank give their summaries."""
    best = reports.sort("rank", "score", "community", descending=[True, True, False])
    read = model.with_texts(best.head(2 * settings.max_points), "summary")
    return [
        Point(report, text, source, report["rank"])
        for report in read.iter_rows(named=True)
        for text, source in told_sentences(model, report["community"], report["summary"])
        if _is_inside(model, source)
    ]


def _map(
    model: KnowledgeModel,
    reports: pl.DataFrame,
    question: str,
    subject: list[str],
    vector: "np.ndarray[Any, Any]",
    settings: GlobalSearch,
) -> list[Point]:
    """Let reports give their sentences as points, scored against the question."""
    unread = is_unread(model, question)
    fitting = reports.sort("score", "community", descending=[True, False])
    if not unread:
        fitting = fitting.filter(pl.col("similarity") >= settings.min_similarity)
    candidates, reports_of = [], {}
    read = model.with_texts(fitting.head(REPORTS_READ), "summary", "findings")
    for report in read.iter_rows(named=True):
        parts = [report["summary"], *(f["explanation"] for f in report["findings"])]
        number = report["community"]
        told = (sentence for part in parts for sentence in told_sentences(model, number, part))
        for text, source in told:
            # Reports are read best first: a sentence in several is the point of the best.
            if text not in reports_of and _is_inside(model, source):
                reports_of[text] = report
                candidates.append(Candidate(text, source, 0, 0, report["score"]))
    if unread:
        candidates = [c for c in candidates if share_words(question, c.text)]
    rarity = _rarity(model, reports, subject)
    ranked = rank_sentences(question, vector, candidates, model.embed, rarity=rarity)
    least_coverage = max([MIN_COVERAGE, *(r.coverage / 3 for r in ranked)])
    # Far below the best sentence is padding, not an answer.
    least = SHARE_OF_BEST * ranked[0].score if ranked else 0.0
    return [
        Point(reports_of[r.candidate.text], r.candidate.text, r.candidate.text_unit, r.score)
        for r in ranked
        if unread
        or (
            r.score >= least
            and r.similarity >= MIN_SENTENCE_SIMILARITY
            and (r.coverage >= least_coverage or r.similarity >= ENOUGH_SIMILARITY)
        )
    ]


def _is_inside(model: KnowledgeModel, source: int) -> bool:
    """Tell whether filters leave a text unit: a report that they leave has others as well."""
    return bool(model.text_units_behind("Sources", source))


def _rarity(model: KnowledgeModel, reports: pl.DataFrame, words: list[str]) -> dict[str, float]:
    """Return what words of a question are worth by how many reports hold them."""
    text = pl.col("full_content").str.to_lowercase()
    held = (
        model.scan("community_reports")
        .filter(pl.col("community").is_in(reports["community"].implode()))
        .select(text.str.contains(rf"\b{re.escape(word)}").sum().alias(word) for word in words)
        .collect()
    )
    return {word: rarity_of(int(held[word][0]), reports.height) for word in words}


def cited_sentences(text: str) -> list[tuple[str, int]]:
    """Cut a report's text into its sentences, each with the text unit that it cites."""
    found = []
    start = 0
    for match in _CITED.finditer(text):
        sentence = text[start : match.start()].strip()
        if sentence:
            found.append((sentence, int(match["source"])))
        start = match.end()
    return found


def told_sentences(model: KnowledgeModel, community: int, text: str) -> list[tuple[str, int]]:
    """Cut a text of a report into what is told, each with a text unit that proves it.

    What a model wrote cites other rows than text units, or nothing: then it rests on what
    these rest on, or on the text units about the members of its community.
    """
    found = cited_sentences(text)
    if found:
        return found
    start = 0
    for first, last, rows in find_citations(text):
        said = text[start:first].strip().lstrip(".").strip()
        behind = (n for name, row in rows for n in units_behind(model, name, row, said))
        source = next(behind, None)
        if said and source is not None:
            found.append((said, source))
        start = last
    if not found and text.strip():
        found = [(text.strip(), n) for n in units_behind(model, "Reports", community, text)[:1]]
    return found


def _reduce(points: list[Point], max_points: int) -> list[list[Point]]:
    """Gather points into themes, one a report, the best first; no sentence is said twice."""
    used: list[frozenset[str]] = []
    themes: dict[int, list[Point]] = {}
    for point in sorted(points, key=lambda p: -p.score):
        words = telling_words(point.text)
        theme = themes.setdefault(point.report["community"], [])
        if len(theme) < SENTENCES_PER_THEME and not any(
            are_near_duplicates(words, other) for other in used
        ):
            theme.append(point)
            used.append(words)
    return [theme for theme in themes.values() if theme][:max_points]


def _write(
    model: KnowledgeModel, themes: list[list[Point]], about_all: bool
) -> tuple[str, tuple[Citation, ...]]:
    """Write the themes as a numbered list, each sentence with its citation."""
    units = model.text_units(point.source for theme in themes for point in theme)
    citations: list[Citation] = []
    lines = []
    if about_all:
        lines.append("The largest themes of the documents:\n")
    for number, theme in enumerate(themes, 1):
        parts = []
        for point in theme:
            candidate = locate(point.text, units[point.source])
            said = point.text if candidate is None else candidate.text
            if candidate is None:
                # A model wrote it: the sentence of the passage that says most of it.
                best = best_sentence(said, [units[point.source]])
                candidate = best[0] if best else None
            if candidate is None:
                parts.append(said)
                continue
            citations.append(cite(len(citations) + 1, candidate, units[point.source]))
            parts.append(f"{as_prose(said)} [{len(citations)}]")
        report = theme[0].report
        cited = f"[Data: Reports ({report['community']})]"
        lines.append(f"{number}. **{report['title']}** {cited}\n   {' '.join(parts)}\n")
    return "\n".join(lines).rstrip(), tuple(citations)


def locate(sentence: str, unit: Mapping[str, Any]) -> Candidate | None:
    """Find a sentence in its text unit, where line ends may stand for spaces; None if it is not."""
    pattern = r"\s+".join(re.escape(word) for word in sentence.split())
    match = re.search(pattern, unit["text"])
    if match is None:
        return None
    start = unit["start_char"] + match.start()
    end = unit["start_char"] + match.end()
    return Candidate(match.group(), unit["human_readable_id"], start, end, 0.0)

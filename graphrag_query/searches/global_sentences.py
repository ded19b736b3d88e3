"""Global search without a model: the best sentences of reports, grouped into themes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.schema.settings.searches import GlobalSearch
from graphrag_index.text.citations import find_citations
from graphrag_index.text.normalize import stem_word
from graphrag_index.text.sentences import are_near_duplicates, distinctive_words
from graphrag_query.answer import Answer, Citation, Outcome
from graphrag_query.answering.cited_text import best_sentence, supporting_text_units
from graphrag_query.answering.extractive import (
    Candidate,
    as_one_line,
    cite_passage,
    find_min_score,
    is_doubtful,
    rank_sentences,
    word_weight,
)
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD_LISTS, is_unreadable, share_words
from graphrag_query.retrieval.index_store import IndexStore
from graphrag_query.retrieval.relationship_evidence import find_passages
from graphrag_query.retrieval.report_selection import reports_of_level, subject_words

# Maximum number of reports that are read to learn how rare the words of the question are.
MAX_SAMPLED_REPORTS = 1_024
# Number of entities whose types are read first, in a search for the main entities of some types.
FIRST_ENTITIES = 1_024
# Maximum number of reports whose sentences are compared with the question.
MAX_REPORTS = 24
# Minimum cosine similarity between a sentence and the question.
MIN_SENTENCE_SIMILARITY = 0.3
# Minimum share (0 to 1) of the question's words that a sentence contains, weighted by rarity. The
# minimum is at least a third of the largest share of all sentences.
MIN_WORD_COVERAGE = 0.15
# A sentence with at least this cosine similarity may contain fewer of the question's words.
HIGH_SIMILARITY = 0.48
# Maximum number of sentences in the theme of one report.
MAX_SENTENCES_OF_THEME = 2
_SOURCE_CITATION = re.compile(r"\s*\[Data: (?:[^\[\]]*; )?Sources \((?P<source>\d+)[^)]*\)\]")
_TYPES = WORD_LISTS["types"]
# Maps the stem of a word that asks for entities of a type ("people", "places") to this type.
TYPE_OF_WORD = {stem_word(word): kind for kind in _TYPES for word in _TYPES[kind]["words"].split()}
NO_SIMILAR_REPORT = "No community report is similar enough to this question."


@dataclass(frozen=True)
class SourcedPoint:
    """A sentence of a report and the text unit that supports the sentence."""

    report: Mapping[str, Any]
    text: str
    source: int  # number of the text unit
    score: float


def global_sentences(question: Question, settings: GlobalSearch) -> Answer:
    """Answer a question about the whole corpus from the reports of one level.

    Map: the reports are ranked by similarity to the question and by rank, and the best
    sentences of the best reports are the points. Reduce: points are grouped into one theme per
    report, the best theme first, without repetition. If the question asks for the main people,
    places, events or organizations, the answer lists entities instead. The outcome is
    `no_evidence` if no report is similar enough, or if the question names something that the
    documents do not mention.
    """
    index = question.index
    subject = subject_words(question)
    kinds = {TYPE_OF_WORD.get(word) for word in subject}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind:
        return _list_main_entities(question, kind, settings.max_points)
    refusal = question.refuse()
    about_all = not subject
    reports, level = reports_of_level(question, settings, about_all)
    if about_all:
        points = _points_of_top_reports(index, reports, settings)
    else:
        points = [] if refusal else _matching_points(question, reports, subject, settings)
    themes = _group_into_themes(points, settings.max_points)
    question.counts.update(community_reports=reports.height, reports_used=len(themes))
    if themes:
        text, citations = _write_themes(index, themes, about_all)
        answer = question.answer(text, citations=citations)
    else:
        text = refusal.text if refusal else NO_SIMILAR_REPORT
        answer = question.answer(text, Outcome.NO_EVIDENCE)
    return replace(answer, parameters={"level": level})


def _points_of_top_reports(
    index: IndexStore, reports: pl.DataFrame, settings: GlobalSearch
) -> list[SourcedPoint]:
    """Return the sentences in the summaries of the reports with the highest rank."""
    best = reports.sort("rank", "score", "community", descending=[True, True, False])
    read = index.with_texts(best.head(2 * settings.max_points), "summary")
    return [
        SourcedPoint(report, text, source, report["rank"])
        for report in read.iter_rows(named=True)
        for text, source in sourced_sentences(index, report["community"], report["summary"])
        # A report that the filters keep can cite text units that the filters do not keep.
        if index.text_units_behind("Sources", source)
    ]


def _matching_points(
    question: Question, reports: pl.DataFrame, subject: list[str], settings: GlobalSearch
) -> list[SourcedPoint]:
    """Return the sentences of reports that answer the question, with their scores."""
    index = question.index
    unreadable = is_unreadable(index, question.text)
    fitting = reports
    if not unreadable:
        fitting = reports.filter(pl.col("similarity") >= settings.min_similarity)
    fitting = fitting.sort("score", "community", descending=[True, False])
    candidates, report_of = [], {}
    read = index.with_texts(fitting.head(MAX_REPORTS), "summary", "findings")
    for report in read.iter_rows(named=True):
        parts = [report["summary"], *(f["explanation"] for f in report["findings"])]
        number = report["community"]
        sentences = (s for part in parts for s in sourced_sentences(index, number, part))
        for text, source in sentences:
            # The best report comes first. A sentence of several reports belongs to the best one.
            if text not in report_of and index.text_units_behind("Sources", source):
                report_of[text] = report
                candidates.append(Candidate(text, source, 0, 0, report["score"]))
    if unreadable:
        candidates = [c for c in candidates if share_words(question.text, c.text)]
    rarity = _weight_words(index, reports, subject)
    ranked = rank_sentences(question, candidates, rarity=rarity)
    min_coverage = max([MIN_WORD_COVERAGE, *(r.coverage / 3 for r in ranked)])
    if not unreadable and is_doubtful(question, ranked, question.local.min_similarity):
        return []
    # Sentences with a much lower score than the best sentence add nothing to the answer.
    min_score = find_min_score(ranked[0].score) if ranked else 0.0
    return [
        SourcedPoint(report_of[r.candidate.text], r.candidate.text, r.candidate.text_unit, r.score)
        for r in ranked
        if unreadable
        or (
            r.score >= min_score
            and r.similarity >= MIN_SENTENCE_SIMILARITY
            and (r.coverage >= min_coverage or r.similarity >= HIGH_SIMILARITY)
        )
    ]


def _weight_words(index: IndexStore, reports: pl.DataFrame, words: list[str]) -> dict[str, float]:
    """Map each word of a question to its rarity: the fewer reports contain it, the higher.

    Of a large level, only every n-th report is read.
    """
    sample = reports.gather_every(reports.height // MAX_SAMPLED_REPORTS + 1)
    read = index.reports(sample["community"])
    explanations = pl.col("findings").list.eval(pl.element().struct["explanation"]).list.join(" ")
    text = pl.concat_str("summary", explanations, separator=" ", ignore_nulls=True)
    text = text.str.to_lowercase()
    # The stem of "story" and "stories" is "stori", which "story" does not contain.
    patterns = {word: rf"\b{re.escape(word.removesuffix('i'))}" for word in words}
    held = read.select(
        text.str.contains(pattern).sum().alias(word) for word, pattern in patterns.items()
    )
    return {word: word_weight(int(held[word][0]), sample.height) for word in words}


def cited_sentences(text: str) -> list[tuple[str, int]]:
    """Split the text of a report into sentences, each with the text unit that it cites."""
    # Drop the text after the last citation, because each citation follows its sentence.
    parts = _SOURCE_CITATION.split(text)
    pairs = zip(map(str.strip, parts[::2]), parts[1::2], strict=False)
    return [(sentence, int(source)) for sentence, source in pairs if sentence]


def sourced_sentences(index: IndexStore, community: int, text: str) -> list[tuple[str, int]]:
    """Split the text of a report into statements, each with a text unit that supports it.

    A report that a model wrote may cite other rows than text units. The statement is then
    supported by a text unit that supports the cited row. If the report cites nothing, its
    statement is supported by a text unit about the members of the community.
    """
    found = cited_sentences(text)
    if found:
        return found
    start = 0
    for first, last, rows in find_citations(text):
        said = text[start:first].strip().lstrip(".").strip()
        behind = (n for name, row in rows for n in supporting_text_units(index, name, row, said))
        source = next(behind, None)
        if said and source is not None:
            found.append((said, source))
        start = last
    if not found and text.strip():
        behind_all = supporting_text_units(index, "Reports", community, text)[:1]
        found = [(text.strip(), number) for number in behind_all]
    return found


def _group_into_themes(points: list[SourcedPoint], max_points: int) -> list[list[SourcedPoint]]:
    """Group points into one theme per report, the best theme first, without repetition."""
    used: list[frozenset[str]] = []
    themes: dict[int, list[SourcedPoint]] = {}
    for point in sorted(points, key=lambda p: -p.score):
        words = distinctive_words(point.text)
        theme = themes.setdefault(point.report["community"], [])
        if len(theme) < MAX_SENTENCES_OF_THEME and not any(
            are_near_duplicates(words, other) for other in used
        ):
            theme.append(point)
            used.append(words)
    return [theme for theme in themes.values() if theme][:max_points]


def _write_themes(
    index: IndexStore, themes: list[list[SourcedPoint]], about_all: bool
) -> tuple[str, tuple[Citation, ...]]:
    """Write the themes as a numbered list with a citation after each sentence."""
    units = index.text_units(point.source for theme in themes for point in theme)
    citations: list[Citation] = []
    lines = ["The largest themes of the documents:\n"] if about_all else []
    for number, theme in enumerate(themes, 1):
        parts = []
        for point in theme:
            unit = units[point.source]
            candidate = locate_sentence(point.text, unit)
            said = point.text if candidate is None else candidate.text
            if candidate is None:
                # A model wrote this sentence: cite the most similar sentence of the passage.
                best = best_sentence(said, [unit])
                assert best is not None
                candidate = best[0]
            citations.append(cite_passage(len(citations) + 1, candidate, unit))
            parts.append(f"{as_one_line(said)} [{len(citations)}]")
        report = theme[0].report
        cited = f"[Data: Reports ({report['community']})]"
        lines.append(f"{number}. **{report['title']}** {cited}\n   {' '.join(parts)}\n")
    return "\n".join(lines).rstrip(), tuple(citations)


def locate_sentence(sentence: str, unit: Mapping[str, Any]) -> Candidate | None:
    """Find a sentence in its text unit, ignoring differences in white space.

    Returns None if the text unit does not contain the sentence.
    """
    pattern = r"\s+".join(re.escape(word) for word in sentence.split())
    match = re.search(pattern, unit["text"])
    return Candidate.within(unit, *match.span()) if match else None


def _list_main_entities(question: Question, kind: str, most: int) -> Answer:
    """List the entities of a type with the highest degree, each with a sentence about it."""
    index, plural = question.index, _TYPES[kind]["plural"]
    entities = main_entities(index, [kind], most)
    rows = entities.with_columns(source="title", target="title").to_dicts()
    passages = find_passages(index, rows, "Entities")
    citations: list[Citation] = []
    lines = [f"The {plural} with the most connections in the documents:\n"]
    for number, row in enumerate(rows, 1):
        entity = row["human_readable_id"]
        lines.append(f"{number}. **{row['title']}** [Data: Entities ({entity})]")
        if passage := passages.get(entity):
            sentence, unit = passage
            citations.append(cite_passage(len(citations) + 1, sentence, unit))
            lines.append(f"   {as_one_line(sentence.text)} [{len(citations)}]")
        lines.append("")
    if not entities.height:
        lines = [f"The index knows no {plural} of these documents."]
    question.counts.update(entities=index.n_rows("entities"), entities_listed=entities.height)
    outcome = Outcome.ANSWERED if entities.height else Outcome.NO_EVIDENCE
    return question.answer("\n".join(lines).rstrip(), outcome, citations=tuple(citations))


def main_entities(index: IndexStore, kinds: Sequence[str | None], most: int) -> pl.DataFrame:
    """Fetch the entities of some types with the most relationships; empty means all types."""
    degrees, table = index.links.degrees, index.open_mapped("entity_rows")
    n_read, found = FIRST_ENTITIES, list[int]()
    while len(found) < most:
        # Read all entities with at least this degree, so that ties are in the order of the numbers.
        least = np.partition(degrees, -n_read)[-n_read] if n_read < len(degrees) else 0
        numbers = np.flatnonzero(degrees >= least)
        numbers = numbers[np.argsort(-degrees[numbers], kind="stable")]
        types = table.rows(numbers, "type")["type"].str.to_lowercase()
        pairs = zip(numbers.tolist(), types, strict=True)
        found = [n for n, kind in pairs if (not kinds or kind in kinds) and index.keeps_entity(n)]
        if n_read >= len(degrees):
            break
        n_read *= 16
    return index.entities(found[:most])

"""Global search without a model: sentences that cover a question, grouped by theme."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.schema.settings.searches import GlobalSearch
from graphrag_nlp.answers.counting import read_count_request
from graphrag_nlp.answers.covering_sentences import (
    Floats,
    PassageSentence,
    choose_sentences,
    group_by_theme,
    remove_common_part,
    score_sentences,
    split_passages,
)
from graphrag_nlp.text.normalize import stem_word
from graphrag_query.answer import Answer, Citation, Context, Outcome
from graphrag_query.answering.written_answer import (
    DeferredContext,
    Section,
    pack_sections,
    source_rows,
)
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import content_words, stop_words_of
from graphrag_query.question.refusals import format_refusal
from graphrag_query.retrieval.community_paths import community_paths, sample_text_units
from graphrag_query.retrieval.report_selection import (
    MIN_SAMPLE,
    as_context_rows,
    is_about_corpus,
    note_reports,
    reports_of_level,
    subject_text,
)
from graphrag_query.searches.counting import count_answer
from graphrag_query.store.index_store import IndexStore

# Number of text units whose sentences are compared with a question.
MAX_TEXT_UNITS = 96
# Number of text units of a theme whose sentences are compared with the centre of the theme.
MAX_TEXT_UNITS_OF_THEME = 8
# Minimum similarity of the best sentence to a question with a word that is in no document.
MIN_SIMILARITY_OF_UNSEEN = 0.35
# Maximum number of words of a heading.
MAX_WORDS_OF_HEADING = 12
_ROW_CITATION = re.compile(r"\[Data:[^\]]*\]")


def global_sentences(question: Question, settings: GlobalSearch) -> Answer:
    """Answer a question about the whole corpus with sentences of its themes.

    A question for a number is answered by counting. For a question that names nothing of the
    documents, the themes are the largest communities. The outcome is `no_evidence` if the question
    names something that the documents do not mention, or if no text unit has a sentence.
    """
    stop_words, dates = stop_words_of(question.language), [d.text for d in question.asked_dates]
    if request := read_count_request(question.text, question.language, stop_words, dates):
        return count_answer(question, request)
    question.counts["community_reports"] = question.index.report_list.height
    if refusal := question.refuse():
        return refusal
    if is_about_corpus(question):
        return _answer_about_corpus(question, settings)
    return _answer_about_subject(question, settings)


def _answer_about_subject(question: Question, settings: GlobalSearch) -> Answer:
    """Answer with sentences on the subject of a question, grouped by theme."""
    index = question.index
    subject = subject_text(question)
    [vector] = index.embedder.embed([subject])
    # A question with cells is about their documents alone.
    if not (numbers := list(question.cell_coverage.order)):
        table = index.vectors("text_unit_text")
        near = table.nearest(vector, MAX_TEXT_UNITS, ["human_readable_id"])
        numbers = near["human_readable_id"].to_list()
    pool = _Pool.read(index, numbers)
    scores = score_sentences(pool.vectors, pool.of_units, vector)
    best = float((pool.vectors @ vector).max(initial=0.0))
    is_likely = best >= MIN_SIMILARITY_OF_UNSEEN or question.cell_coverage.order
    if not is_likely and _has_unseen_word(question, subject):
        return _refuse(question)
    chosen = choose_sentences(pool.vectors, scores, pool.n_words, settings.max_words)
    return _write_themes(question, settings, pool, chosen)


def _has_unseen_word(question: Question, subject: str) -> bool:
    """Return whether no document has some word of a question in the one language of all."""
    if question.index.main_languages != {question.language.code}:
        # Documents in other languages may say it in their words.
        return False
    words = set(content_words(subject, question.language))
    return not words.isdisjoint(map(stem_word, question.unseen_words))


def _refuse(question: Question) -> Answer:
    text = format_refusal("no_similar_report", question.language)
    return question.answer(text, Outcome.NO_EVIDENCE)


def _answer_about_corpus(question: Question, settings: GlobalSearch) -> Answer:
    """Answer with the largest themes of the corpus, and sentences at their centres."""
    index = question.index
    reports, level = reports_of_level(question, settings, about_all=True)
    question.counts["community_reports"] = reports.height
    shares, units_of = _measure_themes(index, level, reports["community"])
    vectors, centres = index.open_mapped("text_unit_vectors"), dict[int, Floats]()
    theme_of: dict[int, int] = {}
    for community in list(shares)[: settings.max_points]:
        of_units = vectors.matrix("vector", units_of[community])
        centres[community] = of_units.mean(axis=0)
        order = np.argsort(-(of_units @ centres[community]), kind="stable")
        for at in order[:MAX_TEXT_UNITS_OF_THEME].tolist():
            theme_of[units_of[community][at]] = community
    pool = _Pool.read(index, list(theme_of))
    themes = [theme_of[sentence.passage] for sentence in pool.sentences]
    targets = np.array([centres[theme] for theme in themes]) if themes else pool.vectors
    scores = score_sentences(pool.vectors, pool.of_units, targets)
    chosen = choose_sentences(pool.vectors, scores, pool.n_words, settings.max_words, themes)
    opening = "The largest themes of the documents, with their share of the documents:"
    return _write_themes(question, settings, pool, chosen, level, shares, opening)


@dataclass(frozen=True)
class _Pool:
    """Sentences that may be chosen, with vectors, and the text units that were read.

    `vectors` and `of_units`, those of the text units, have one row per sentence. They lack the
    part that all text units of the corpus share.
    """

    units: Mapping[int, Mapping[str, Any]]
    sentences: Sequence[PassageSentence]
    vectors: Floats
    of_units: Floats

    @classmethod
    def read(cls, index: IndexStore, numbers: Sequence[int]) -> "_Pool":
        """Read the sentences of text units, the best text unit first."""
        found = index.text_units(numbers)
        units = {number: found[number] for number in numbers}
        sentences = split_passages((number, unit["text"]) for number, unit in units.items())
        table, sources = index.open_mapped("text_unit_vectors"), [s.passage for s in sentences]
        own = index.embedder.embed([sentence.text for sentence in sentences])
        of_units = table.matrix("vector", sources) if sources else own
        sample, common = sample_text_units(index), np.zeros(own.shape[1], np.float32)
        if len(sample) >= MIN_SAMPLE:
            common = table.matrix("vector", sample).mean(axis=0)
        vectors = (remove_common_part(rows, common) for rows in (own, of_units))
        return cls(units, sentences, *vectors)

    @property
    def n_words(self) -> list[int]:
        """The words of each sentence and its citation."""
        return [sentence.n_words + 1 for sentence in self.sentences]


def _measure_themes(
    index: IndexStore, level: int, communities: pl.Series
) -> tuple[dict[int, float], dict[int, list[int]]]:
    """Map the communities of a level to their shares of the documents, the largest first.

    A share is from 0 to 1. The second map has their text units. A document with passages in
    several communities counts for each by its share of passages. In a large corpus, every n-th
    text unit is read.
    """
    sample, known = sample_text_units(index), set(communities)
    documents = index.open_mapped("text_unit_rows").rows(sample, "document")["document"].to_list()
    n_passages, shares = Counter(documents), defaultdict[int, float](float)
    units_of = defaultdict[int, list[int]](list)
    paths = community_paths(index, sample, level + 1)
    for document, (number, path) in zip(documents, paths.items(), strict=True):
        if path and path[-1] in known:
            units_of[path[-1]].append(number)
            shares[path[-1]] += 1 / (n_passages[document] * len(n_passages))
    largest = sorted(shares, key=lambda community: (-shares[community], community))
    return {community: shares[community] for community in largest}, units_of


def _write_themes(
    question: Question,
    settings: GlobalSearch,
    pool: _Pool,
    chosen: Sequence[int],
    level: int | None = None,
    shares: Mapping[int, float] | None = None,
    opening: str = "",
) -> Answer:
    """Write sentences as a list of themes with headings, within the words of the settings.

    `level` is that of the themes; None chooses one. With `shares`, those of the themes, the
    largest theme is first, else the theme of the best sentence.
    """
    index, level = question.index, settings.level if level is None else level
    shares = dict(shares or {})
    paths = community_paths(index, {pool.sentences[row].passage for row in chosen})
    titles = dict(index.report_list.select("community", "title").iter_rows())
    while chosen:
        said = [pool.sentences[row] for row in chosen]
        groups, level_of_groups = group_by_theme([paths[s.passage] for s in said], level)
        themes = {c: [said[at] for at in rows] for c, rows in groups.items()}
        order = sorted(themes, key=lambda c: -shares.get(-1 if c is None else c, 0.0))
        themes = {community: themes[community] for community in order[: settings.max_points]}
        text, citations = _write_list(pool, themes, titles, shares)
        text = f"{opening}\n\n{text}" if opening else text
        # Headings are words, too: the sentences that were chosen last leave room for them.
        if len(_ROW_CITATION.sub("", text).split()) <= settings.max_words or len(chosen) == 1:
            break
        chosen = chosen[:-1]
    else:
        return _refuse(question)
    n = len(said)
    rows = [(c, shares.get(c, len(own) / n)) for c, own in themes.items() if c is not None]
    scored = pl.DataFrame(rows, {"community": pl.Int64, "score": pl.Float64}, orient="row")
    reports = index.report_list.join(scored, on="community", maintain_order="left")
    reports = reports.sort("score", "community", descending=[True, False])
    note_reports(question, reports, "score")
    question.counts.update(text_units=len(pool.units), reports_used=len(themes))
    context = DeferredContext(
        partial(_pack, index, settings, reports, pool.units), settings.max_context_tokens
    )
    parameters = {"level": level_of_groups}
    return question.answer(text, citations=citations, parameters=parameters, context=context)


def _write_list(
    pool: _Pool,
    themes: Mapping[int | None, Sequence[PassageSentence]],
    titles: Mapping[int, str],
    shares: Mapping[int, float],
) -> tuple[str, tuple[Citation, ...]]:
    """Write the numbered list of themes; return it with the citations of its sentences."""
    lines, citations = list[str](), list[Citation]()
    for number, (community, sentences) in enumerate(themes.items(), 1):
        parts = []
        for sentence in sentences:
            unit, n = pool.units[sentence.passage], len(citations) + 1
            citations.append(Citation.within(n, unit, sentence.start, sentence.end))
            parts.append(f"{sentence.text} [{n}]")
        # Behind a colon, the title of a report without a model goes on with names.
        if community is None or community not in titles:
            heading = "**Other passages**"
        else:
            title = titles[community] if shares else titles[community].split(": ")[0]
            heading = f"**{' '.join(title.split()[:MAX_WORDS_OF_HEADING])}**"
            if community in shares:
                heading += f" ({max(round(100 * shares[community]), 1)} %)"
            heading += f" [Data: Reports ({community})]"
        lines.append(f"{number}. {heading}\n   {' '.join(parts)}")
    return "\n\n".join(lines), tuple(citations)


def _pack(
    index: IndexStore,
    settings: GlobalSearch,
    reports: pl.DataFrame,
    units: Mapping[int, Mapping[str, Any]],
    max_tokens: int,
) -> Context:
    """Return the summaries of reports and the text units that were read, the best first."""
    summaries, share = as_context_rows(index, reports, "summary"), settings.passage_share
    sections = [
        Section("Reports", summaries, 1 - share),
        Section("Sources", source_rows(units), share),
    ]
    return pack_sections(sections, max_tokens)

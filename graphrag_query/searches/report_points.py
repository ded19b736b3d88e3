"""The sentences of community reports as points of an answer, the central ones first."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import log, sqrt
from typing import Any

import polars as pl

from graphrag_nlp.text.normalize import stem_word
from graphrag_query.answering.extractive import as_one_line
from graphrag_query.answering.page_parts import cut_link
from graphrag_query.answering.report_sentences import longest_turns, sourced_sentences
from graphrag_query.answering.theme_answer import Point, first_subject
from graphrag_query.question.question_words import WORD
from graphrag_query.retrieval.typical_words import all_function_words
from graphrag_query.searches.subject_sentences import (
    POOR_SENTENCE_PENALTY,
    are_poor,
    are_procedure,
    have_unnamed_speaker,
)
from graphrag_query.store.index_store import IndexStore

# Subtracted from the score of a sentence of a report for each sentence before it; less where the
# score also says how central the sentence is.
LATER_SENTENCE_PENALTY, LATER_PENALTY_OF_CENTRAL = 0.05, 0.01
# Weight of how central a sentence of a report is to its theme, from 0 to 1.
CENTRALITY_WEIGHT = 0.5
# Subtracted from the score of a sentence that says what somebody said who is not named in it.
UNNAMED_SPEAKER_PENALTY = 0.2
# Maximum difference between the score of a sentence and that of the best one of its theme; a theme
# without room for such a sentence is only listed.
MAX_BEHIND_BEST = 0.25
# Number of sentences as which the title of a theme counts: a sentence below a title should say
# what the title promises.
SENTENCES_OF_TITLE = 9
# Minimum number of letters of a word that two sentences share.
MIN_WORD_LENGTH = 4
# Two labels in a sentence, which may be those of two turns of a chat.
_TURNS = re.compile(r"\w: .*\w: ")


def read_report_sentences(
    index: IndexStore, reports: pl.DataFrame
) -> Iterator[tuple[Mapping[str, Any], list[tuple[str, int]]]]:
    """Yield each report with its sentences, each with a text unit that supports it."""
    read = index.with_texts(reports, "summary", "findings")
    for report in read.iter_rows(named=True):
        parts = (report["summary"], *(f["explanation"] for f in report["findings"]))
        yield (
            report,
            [
                (text, source)
                for text, source in sourced_sentences(index, report["community"], parts)
                # A report that the filters keep can cite text units that they do not keep.
                if index.text_units_behind("Sources", source)
            ],
        )


def points_of_report(index: IndexStore, sentences: Sequence[tuple[str, int]]) -> list[Point]:
    """Return the sentences of a report with scores: its first ones are the most important.

    Where a sentence is several turns of a chat, the longest turn stands for it.
    """
    return _points_of_reports(index, [sentences], LATER_SENTENCE_PENALTY)[0]


def _points_of_reports(
    index: IndexStore, reports: Sequence[Sequence[tuple[str, int]]], later_penalty: float
) -> list[list[Point]]:
    """Return the sentences of each report with scores, which fall by a penalty for each one."""
    sentences = [sentence for own in reports for sentence in own]
    of_chats = {source for text, source in sentences if _TURNS.search(text)}
    turns = longest_turns(sentences, index.text_units(of_chats))
    said = [
        (text, "") if turn is None else (as_one_line(turn.text), turn.label)
        for (text, _), turn in zip(sentences, turns, strict=True)
    ]
    said = [(cut_link(text), label) for text, label in said]
    texts = pl.Series([text for text, _ in said], dtype=pl.String)
    penalties = POOR_SENTENCE_PENALTY * (
        are_poor(texts) | pl.Series(are_procedure(texts), dtype=pl.Boolean)
    ).cast(pl.Float64)
    penalties += UNNAMED_SPEAKER_PENALTY * have_unnamed_speaker(texts).cast(pl.Float64)
    places = [place for own in reports for place in range(len(own))]
    points = [
        Point(text, source, -later_penalty * place - penalty, label)
        for (text, label), (_, source), place, penalty in zip(
            said, sentences, places, penalties, strict=True
        )
    ]
    left = iter(points)
    return [list(islice(left, len(own))) for own in reports]


def rate_report_points(
    index: IndexStore, reports: Iterable[tuple[Mapping[str, Any], Sequence[tuple[str, int]]]]
) -> Iterator[tuple[Mapping[str, Any], list[Point]]]:
    """Yield each report with its sentences, scored also by how central they are to its theme."""
    read = list(reports)
    all_sentences = [sentences for _, sentences in read]
    titles = [first_subject(report["title"]) for report, _ in read]
    rated = rate_centrality(titles, [[text for text, _ in own] for own in all_sentences])
    all_points = _points_of_reports(index, all_sentences, LATER_PENALTY_OF_CENTRAL)
    for (report, _), points, ratings in zip(read, all_points, rated, strict=True):
        scored = [
            replace(point, score=point.score + CENTRALITY_WEIGHT * rating)
            for point, rating in zip(points, ratings, strict=True)
        ]
        best = max((point.score for point in scored), default=0.0)
        yield report, [point for point in scored if point.score >= best - MAX_BEHIND_BEST]


def rate_centrality(titles: Sequence[str], sentences: Sequence[Sequence[str]]) -> list[list[float]]:
    """Rate how central each sentence of each theme is to it, from 0 to 1 for the best one.

    A central sentence has words that other sentences of its theme have, and those of other themes
    have not; a word in the title of the theme counts as several sentences.
    """
    stems = [[_content_stems(text) for text in texts] for texts in sentences]
    holding = Counter(stem for of_theme in stems for words in of_theme for stem in words)
    n_all = sum(map(len, stems))
    rated = []
    for title, of_theme in zip(titles, stems, strict=True):
        in_theme = Counter(stem for words in of_theme for stem in words)
        in_title = _content_stems(title)
        weights = {
            stem: log(n_all / holding[stem]) * (n - 1 + SENTENCES_OF_TITLE * (stem in in_title))
            for stem, n in in_theme.items()
        }
        ratings = [sum(weights[s] for s in words) / sqrt(len(words) or 1) for words in of_theme]
        best = max(ratings, default=0.0) or 1.0
        rated.append([rating / best for rating in ratings])
    return rated


def _content_stems(text: str) -> frozenset[str]:
    words = {word for word in WORD.findall(text.lower()) if len(word) >= MIN_WORD_LENGTH}
    return frozenset(map(stem_word, words - all_function_words()))

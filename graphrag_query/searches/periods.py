"""The sentences of an answer by time, for questions on how something changed over time."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from math import sqrt
from typing import NamedTuple

import polars as pl

from graphrag_index.errors import format_count
from graphrag_query.answering.count_table import choose_period
from graphrag_query.answering.extractive import TextUnit
from graphrag_query.answering.theme_answer import Point, Theme
from graphrag_query.retrieval.theme_passages import sample_text_units
from graphrag_query.retrieval.typical_words import (
    MIN_PLACES,
    choose_words,
    speakers_of,
    split_words,
    stems_of_entities,
)
from graphrag_query.store.index_store import IndexStore

# Minimum number of periods of an answer by time, and maximum number of those of a whole corpus.
MIN_PERIODS, MAX_PERIODS = 3, 6
# Minimum share (0 to 1) of the sentences with a year, to group those of undated documents by year.
MIN_SHARE_WITH_YEAR = 0.25
# Maximum number of words that set a period apart, and minimum score of such a word; a word that
# chance spreads over the periods has about 1, in standard deviations.
MAX_WORDS_OF_PERIOD = 6
MIN_SCORE_OF_WORD = 1.0
_YEAR = re.compile(r"(?<![\w.,$€£-])(?:1[5-9]|20)\d\d(?![\w+%€]|[.,]\d)")


def group_by_period(
    index: IndexStore,
    points: Mapping[int, Sequence[Point]],
    units: Mapping[int, TextUnit],
    most: int,
    *,
    is_over_time: bool,
) -> tuple[list[Theme], list[Point]]:
    """Group sentences by time, the earliest first; return at most `most` groups and the rest.

    The time is the date of the document, or, if most of them have none, the first year in the
    sentence. `points` maps text units to their sentences. Without sentences of several times,
    there are no groups. Unless the question asks for a course of time (`is_over_time`), there are
    none either if few sentences have a year: then years are mentioned by the way.
    """
    all_points = [point for of_unit in points.values() for point in of_unit]
    dates = _find_document_dates(index, points, units)
    if len(set(dates.values())) < MIN_PERIODS or 2 * len(dates) < len(points):
        years = {id(point): _YEAR.search(point.text) for point in all_points}
        period_of = {id(point): year[0] for point in all_points if (year := years[id(point)])}
        if not is_over_time and len(period_of) < MIN_SHARE_WITH_YEAR * len(all_points):
            return [], all_points
    else:
        dated = [point for point in all_points if point.source in dates]
        period_of = {id(point): dates[point.source] for point in dated}
    groups: dict[str, list[Point]] = {}
    others = []
    for point in all_points:
        if period := period_of.get(id(point)):
            groups.setdefault(period, []).append(point)
        else:
            others.append(point)
    if len(groups) < MIN_PERIODS:
        return [], all_points
    weight = {period: sum(max(p.score, 0.0) for p in group) for period, group in groups.items()}
    best = sorted(groups, key=lambda period: -weight[period])[:most]
    others += [point for period in groups if period not in best for point in groups[period]]
    themes = [Theme(period, "", "", groups[period], weight[period]) for period in sorted(best)]
    return themes, others


def _find_document_dates(
    index: IndexStore, points: Mapping[int, Sequence[Point]], units: Mapping[int, TextUnit]
) -> dict[int, str]:
    """Map text units to the year, month or day of their documents; without dates, empty."""
    document_of = {number: units[number]["document"] for number in points}
    dates = _find_dates(index, document_of.values())
    return {n: dates[document] for n, document in document_of.items() if document in dates}


def _find_dates(index: IndexStore, documents: Iterable[int]) -> dict[int, str]:
    """Map documents with a date to their year, month or day."""
    dated = index.dated_documents(sorted(set(documents)))
    if not dated.height:
        return {}
    length = choose_period(dated["date"])
    return {document: date[:length] for document, date in dated.iter_rows()}


class Period(NamedTuple):
    """A part of the time of a corpus, with the words that set its text units apart."""

    name: str
    documents: Set[int]
    words: Sequence[str]

    def as_theme(self, points: Iterable[Point], units: Mapping[int, TextUnit]) -> Theme:
        """Return the words of the period with those of the sentences that have them."""
        said = [re.compile(rf"(?i)\b{re.escape(word)}") for word in self.words]
        found = [
            # A long sentence has more of the words than a short one that is about them.
            replace(point, score=point.score + n / sqrt(len(point.text.split())))
            for point in points
            if units[point.source]["document"] in self.documents
            and (n := sum(bool(word.search(point.text)) for word in said))
        ]
        extent = format_count("documents", len(self.documents))
        return Theme(f"{self.name}: {', '.join(self.words)}", extent, "", found)


def divide_corpus(index: IndexStore) -> list[Period]:
    """Divide the dated documents of a corpus into periods, the earliest first.

    Without documents of `MIN_PERIODS` times, there are no periods. The words of a period are in
    more of its text units than in those of other periods.
    """
    units = sample_text_units(index)
    rows = index.open_mapped("text_unit_rows").rows(units, "document", "text")
    dates = _find_dates(index, rows["document"].to_list())
    times = pl.Series([dates.get(document) for document in rows["document"]], dtype=pl.String)
    rows = rows.with_columns(time=times, unit=pl.Series(units)).drop_nulls("time")
    counts = rows.group_by("time").len().sort("time")
    if counts.height < MIN_PERIODS:
        return []
    # Each period has about the same number of text units.
    before = (counts["len"].cum_sum() - counts["len"]) * MAX_PERIODS // counts["len"].sum()
    numbered = counts.select("time", period=before)
    rows = rows.join(numbered, on="time", maintain_order="left")
    words = split_words(rows.select("text", "unit", "document", "period"))
    in_all = pl.col("n").sum().over("word")
    sizes = rows.group_by("period").agg(size=pl.len(), documents=pl.col("document").n_unique())
    score = pl.col("n").sqrt() * ((pl.col("n") / pl.col("size")) / (in_all / rows.height)).log()
    scored = (
        words.unique(["word", "unit"])
        .group_by("word", "period")
        .agg(n=pl.len(), n_documents=pl.col("document").n_unique())
        .join(sizes, on="period")
        .with_columns(score=score)
        .filter(
            pl.col("n") >= MIN_PLACES,
            pl.col("n_documents") >= pl.min_horizontal(2, "documents"),
            pl.col("score") >= MIN_SCORE_OF_WORD,
        )
        .sort("score", "word", descending=[True, False])
    )
    known, speakers = stems_of_entities(index, units), speakers_of(rows["text"])
    periods = []
    for (number,), own in sorted(numbered.group_by("period")):
        first, last = str(own["time"].min()), str(own["time"].max())
        documents = set(rows.filter(period=number)["document"])
        best = scored.filter(period=number)["word"]
        typical = choose_words(words, best, speakers, known, MAX_WORDS_OF_PERIOD)
        name = first if first == last else f"{first} to {last}"
        periods.append(Period(name, documents, typical))
    return periods

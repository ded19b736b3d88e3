"""The sentences of an answer by time, for questions on how something changed over time."""

import re
from collections.abc import Mapping, Sequence

import polars as pl

from graphrag_query.answering.count_table import choose_period, find_dates
from graphrag_query.answering.extractive import TextUnit
from graphrag_query.answering.theme_answer import Point, Theme
from graphrag_query.retrieval.index_store import IndexStore

# Minimum number of periods of an answer by time.
MIN_PERIODS = 3
_YEAR = re.compile(r"(?<![\w.,$€£-])(?:1[5-9]|20)\d\d(?![\w+%€]|[.,]\d)")


def group_by_period(
    index: IndexStore,
    points: Mapping[int, Sequence[Point]],
    units: Mapping[int, TextUnit],
    most: int,
) -> tuple[list[Theme], list[Point]]:
    """Group sentences by time, the earliest first; return at most `most` groups and the rest.

    The time is the date of the document, or else the first year in the sentence. `points` maps
    text units to their sentences. Without sentences of several times, there are no groups.
    """
    all_points = [point for of_unit in points.values() for point in of_unit]
    dates = _find_document_dates(index, points, units)
    if len(set(dates.values())) < MIN_PERIODS:
        years = {id(point): _YEAR.search(point.text) for point in all_points}
        period_of = {id(point): year[0] for point in all_points if (year := years[id(point)])}
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
    numbers = sorted(set(document_of.values()))
    rows = index.open_mapped("document_rows").rows(numbers, "title", "creation_date")
    dated = find_dates(rows.with_columns(document=pl.Series(numbers, dtype=pl.Int64)))
    if not dated.height:
        return {}
    length = choose_period(dated["date"])
    dates = {document: date[:length] for document, date in dated.iter_rows()}
    return {n: dates[document] for n, document in document_of.items() if document in dates}

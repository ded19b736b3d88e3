"""Coverage before depth: the best text units of each cell, thing and period, that a question names.

"Which company had the highest margin among A, B and C in Q3 2022?" has three cells, and each of
them gets its best text unit before any gets its second. The ranking by similarity and links follows
behind. A question of one thing and no period has no cells and is ranked as it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from graphrag_nlp.text.periods import Period
from graphrag_query.answer import Cell
from graphrag_query.question.facets import MIN_LISTED_SHARE, MIN_TEXT_UNITS, Facets, Thing
from graphrag_query.question.stem_matching import count_stems
from graphrag_query.store.index_store import IndexStore, RankedTextUnit

if TYPE_CHECKING:
    from graphrag_query.question.question import Question

# Maximum number of cells; with more periods, those of a thing are one cell.
MAX_CELLS = 24
# Maximum number of cells of one thing, if the question names few.
MIN_CELLS_PER_THING = 4
# Maximum number of text units that are read for one question.
MAX_TEXT_UNITS_READ = 2_048
# Number of text units of each part of the topic in each cell that a search returns, up to as many
# in all; and the same where there are many cells.
N_PER_CELL, MAX_OF_FEW_CELLS = 4, 24
N_PER_MANY_CELLS, MAX_TEXT_UNITS = 2, 48
# Weight of the cosine similarity to the question, beside the full-text score in the cell, 0 to 1.
SIMILARITY_WEIGHT = 0.5
# Weight of the share of the topic's words, weighted by rarity, that stand near a number.
NUMBER_WEIGHT = 0.3
# Minimum share of a part of the topic, weighted by rarity, in the best text unit of a cell: its
# mean over all cells tells whether an enumeration without a period is about these documents.
MIN_TOPIC_SHARE = 0.6
# Parameters of BM25.
K1, B = 1.2, 0.75


@dataclass(frozen=True)
class Coverage:
    """The cells of a question, in its order, and text units of all cells, by turns."""

    cells: tuple[Cell, ...] = ()
    order: tuple[int, ...] = ()
    n_slots: int = 0

    @property
    def found(self) -> list[Cell]:
        """The cells with documents."""
        return [cell for cell in self.cells if cell.documents]

    def rank_first(self, ranked: Sequence[RankedTextUnit], top_k: int) -> list[RankedTextUnit]:
        """Put the text units of the cells before the others; return `top_k`, or more of cells."""
        if not self.order:
            return list(ranked[:top_k])
        known = {unit.number: unit for unit in ranked}
        best = max((unit.score for unit in ranked), default=1.0)
        first = []
        for place, number in enumerate(self.order):
            score = best * (2 - place / len(self.order))
            first.append(RankedTextUnit(number, score, score, "name"))
            known.pop(number, None)
        n_places = max(
            top_k,
            min(N_PER_CELL * self.n_slots, MAX_OF_FEW_CELLS),
            min(N_PER_MANY_CELLS * self.n_slots, MAX_TEXT_UNITS),
        )
        return [*first, *known.values()][:n_places]


def find_coverage(question: "Question") -> Coverage:
    """Find the cells of a question, and rank the text units in each of them.

    A question has cells if it names periods of a series, or several things side by side. Without a
    period, the text units must also say what is asked.
    """
    index, facets = question.index, question.facets
    things = [thing for thing in facets.things if _is_thing_of(index, facets, thing)]
    if not things:
        return Coverage()
    cells = [cell for thing in things for cell in _find_cells(index, facets, thing, len(things))]
    cells = list({(cell.thing, cell.period, cell.documents): cell for cell in cells}.values())
    parts = facets.parts or ((),)
    ranks = _rank_in_cells(question, [cell for cell in cells if cell.documents], parts)
    if ranks is None or (not facets.is_dated and ranks.topic_share < MIN_TOPIC_SHARE):
        return Coverage()
    done = iter(ranks.by_cell)
    cells = [replace(cell, **next(done)) if cell.documents else cell for cell in cells]
    asked = [str(period) for period in facets.periods] or [""]
    cells += [
        Cell(name, period, "no_thing")
        for name in _find_missing_things(question, things)
        for period in asked
    ]
    return Coverage(tuple(cells), tuple(ranks.order), len(parts) * len(ranks.by_cell))


def _find_missing_things(question: "Question", things: Sequence[Thing]) -> list[str]:
    """Return the names beside the things that no document mentions."""
    written = [thing.text for thing in things]
    dates = [question.text[period.start : period.end] for period in question.facets.periods]
    spans = (span.text for span in question.mentions.spans)
    spans = (span for span in spans if not any(span in date for date in dates))
    if all(any(span in text or text in span for text in written) for span in spans):
        return []
    return question.mentions.unmentioned_names(written)


def _is_thing_of(index: IndexStore, facets: Facets, thing: Thing) -> bool:
    """Return whether a thing has cells: a series, or one of several things with long documents."""
    if facets.is_dated:
        return True
    if len(facets.things) == 1:
        return thing.is_series
    if not facets.names_list or thing.share < MIN_LISTED_SHARE:
        return False
    starts, stops = index.open_mapped("text_unit_rows").bounds("document", thing.documents)
    return bool((stops - starts).mean() >= MIN_TEXT_UNITS)


def _find_cells(index: IndexStore, facets: Facets, thing: Thing, n_things: int) -> list[Cell]:
    """Return the cells of one thing: one for each period of its documents that is asked for."""
    covered = thing.periods
    asked: Sequence[Period | None] = facets.periods or (None,)
    if facets.asks_latest and covered and not facets.periods:
        asked = covered[-1:]
    cells: list[Cell] = []
    for period in asked:
        fitting = [own for own in covered if period is None or _fits(own, period)]
        if period is not None and covered and not fitting:
            span = f"{covered[0]} to {covered[-1]}" if len(covered) > 1 else str(covered[0])
            cells.append(Cell(thing.text, str(period), "no_period", covered=span))
            continue
        if not covered or len(fitting) > max(MIN_CELLS_PER_THING, MAX_CELLS // n_things):
            chosen = _documents_of(thing, fitting)
            cells.append(Cell(thing.text, str(period or ""), "found", chosen, days=period))
            continue
        cells += [
            Cell(thing.text, str(own), "found", _documents_of(thing, [own]), days=own)
            for own in fitting
        ]
    return cells


def _fits(own: Period, asked: Period) -> bool:
    """Return whether a document is about an asked period, or about a longer one with it."""
    return asked.contains(own) or own.contains(asked)


def _documents_of(thing: Thing, periods: Sequence[Period]) -> tuple[int, ...]:
    """Return the documents of a thing about some periods; all of them if none is known."""
    if not periods:
        return tuple(thing.documents.tolist())
    days = {(p.first.toordinal(), p.last.toordinal()) for p in periods}
    rows = zip(thing.documents.tolist(), map(tuple, thing.days.tolist()), strict=True)
    return tuple(document for document, span in rows if span in days)


@dataclass
class _Ranks:
    """The fields of each cell with documents, the order of their text units, and the topic share."""

    by_cell: list[dict[str, tuple[int, ...] | str]] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    topic_share: float = 0.0


def _rank_in_cells(
    question: "Question", cells: Sequence[Cell], parts: Sequence[Sequence[str]]
) -> _Ranks | None:
    """Rank the text units of each cell by BM25 of each part of the topic, and by similarity."""
    index, found = question.index, _Ranks()
    units = index.open_mapped("text_unit_rows")
    numbers_of = [_text_units_of(index, cell.documents) for cell in cells]
    numbers = np.unique(np.concatenate([np.zeros(0, np.int64), *numbers_of]))
    if not cells or not len(numbers):
        return None if cells else found
    if len(numbers) > MAX_TEXT_UNITS_READ:
        numbers_of = _keep_matching(question, cells, numbers_of)
        numbers = np.unique(np.concatenate(numbers_of))
    rows = units.rows(numbers, "text", "n_tokens")
    stems = list(dict.fromkeys(stem for part in parts for stem in part))
    counts, near = count_stems(rows["text"].to_list(), stems)
    n, held = len(numbers), counts > 0
    in_units = held.sum(axis=0)
    # A word that no text unit of these documents has tells nothing about any of them.
    idf = np.where(in_units, np.log1p((n - in_units + 0.5) / (in_units + 0.5)), 0.0)
    lengths = rows["n_tokens"].to_numpy() / max(float(rows["n_tokens"].mean() or 1), 1.0)
    scores = idf * counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths[:, np.newaxis]))
    vectors = index.open_mapped("text_unit_vectors").matrix("vector", numbers)
    similar = vectors @ question.vector
    queues: list[list[int]] = []
    shares = []
    for cell, own in zip(cells, numbers_of, strict=True):
        places = np.searchsorted(numbers, own)
        lists, share = [], 0.0
        for part in parts:
            columns = [stems.index(stem) for stem in part]
            by_words = scores[np.ix_(places, columns)].sum(axis=1)
            total = idf[columns].sum()
            best = held[np.ix_(places, columns)] @ idf[columns]
            share = max(share, float(best.max() / total) if total and len(best) else 0.0)
            score = by_words / (by_words.max() or 1.0) + SIMILARITY_WEIGHT * similar[places]
            if total:
                score += NUMBER_WEIGHT * (near[np.ix_(places, columns)] @ idf[columns]) / total
            lists.append(own[np.lexsort((own, -score))].tolist())
        shares.append(share)
        queues += lists
        units_of = tuple(dict.fromkeys(number for one in zip(*lists, strict=True) for number in one))
        state = "found" if share or not stems else "no_passage"
        found.by_cell.append({"text_units": units_of[: MAX_TEXT_UNITS], "state": state})
    found.topic_share = float(np.mean(shares)) if shares else 0.0
    found.order = _take_turns(queues)[:MAX_TEXT_UNITS]
    return found


def _text_units_of(index: IndexStore, documents: Sequence[int]) -> "np.ndarray":
    """Return the text units of some documents that may be read, ascending."""
    units = index.open_mapped("text_unit_rows")
    starts, stops = units.bounds("document", np.array(documents, np.int64))
    spans = zip(starts.tolist(), stops.tolist(), strict=True)
    numbers = np.concatenate([np.arange(start, stop) for start, stop in spans])
    flags = index.row_flags("text_units")
    return np.unique(numbers if flags is None else numbers[flags[numbers]])


def _keep_matching(
    question: "Question", cells: Sequence[Cell], numbers_of: "Sequence[np.ndarray]"
) -> "list[np.ndarray]":
    """Keep the text units of each cell that match the question best by the full-text index."""
    table, most = question.index.vectors("text_unit_text"), MAX_TEXT_UNITS_READ // len(cells)
    kept = []
    for numbers in numbers_of:
        where = f"human_readable_id BETWEEN {numbers[0]} AND {numbers[-1]}"
        words = " ".join(question.content_words) or question.text
        rows = table.find_matching_rows(words, most, ["human_readable_id"], where=where)
        matching = np.intersect1d(numbers, rows["human_readable_id"].to_numpy())
        kept.append(matching if len(matching) else numbers[:1])
    return kept


def _take_turns(queues: Sequence[Sequence[int]]) -> list[int]:
    """Take the first of each queue, then the second of each, and so on, without duplicates."""
    longest = max(map(len, queues), default=0)
    turns = (queue[at] for at in range(longest) for queue in queues if at < len(queue))
    return list(dict.fromkeys(turns))

"""Coverage before depth: the best text units of each thing and period of a question.

"Which company had the highest margin among A, B and C in Q3 2022?" has three cells, and each of
them gets its best text unit before any gets its second. The ranking by similarity and links follows
behind. A question of one thing and no period has no cells and is ranked as it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from graphrag_nlp.text.periods import Period, period_around
from graphrag_query.answer import Cell
from graphrag_query.question.facets import MIN_LISTED_SHARE, MIN_TEXT_UNITS, Facets, Thing
from graphrag_query.question.question_words import content_words
from graphrag_query.question.stem_matching import count_stems
from graphrag_query.store.index_store import IndexStore, RankedTextUnit

# Maximum number of cells; with more periods, those of a thing are one cell.
MAX_CELLS = 24
# Maximum number of cells of one thing, if the question names few.
MIN_CELLS_PER_THING = 4
# Maximum number of text units that are read for one question.
MAX_TEXT_UNITS_READ = 2_048
# Maximum number of text units that are kept for one cell.
MAX_OF_CELL = 24
# Number of text units of each part of the topic in each cell that a search returns, up to as many
# in all; and the same where there are many cells.
N_PER_CELL, MAX_OF_FEW_CELLS = 4, 24
N_PER_MANY_CELLS, MAX_TEXT_UNITS = 2, 48
# Weight of the cosine similarity to the question, beside the full-text score in the cell, 0 to 1.
SIMILARITY_WEIGHT = 0.5
# Weight of the share of the topic's words, weighted by rarity, that stand near a number.
NUMBER_WEIGHT = 0.3
# Minimum share of the words of a part of the topic, weighted by rarity, in the best text unit of a
# cell, as a mean over all cells. Below it, these documents do not answer an enumeration without a
# period.
MIN_TOPIC_SHARE = 0.6
# Parameters of BM25.
K1, B = 1.2, 0.75


@dataclass(frozen=True)
class CellCoverage:
    """The cells of a question, in its order, and text units of all cells, by turns.

    `parts` are the parts of the topic, as stems, without the names that no document mentions.
    """

    cells: tuple[Cell, ...] = ()
    parts: tuple[tuple[str, ...], ...] = ((),)
    order: tuple[int, ...] = ()
    n_slots: int = 0

    @property
    def found(self) -> list[Cell]:
        """The cells with documents."""
        return [cell for cell in self.cells if cell.documents]

    def score_first(self, scores: Mapping[int, float], top_k: int) -> dict[int, float]:
        """Put the text units of the cells before others; return `top_k`, or more of many cells.

        `scores` maps text units to scores, the best first. Those of cells get higher ones.
        """
        n_slots = self.n_slots
        n_places = max(
            top_k,
            min(N_PER_CELL * n_slots, MAX_OF_FEW_CELLS),
            min(N_PER_MANY_CELLS * n_slots, MAX_TEXT_UNITS),
        )
        best = max(scores.values(), default=1.0)
        n = len(self.order) or 1
        first = {number: best * (2 - place / n) for place, number in enumerate(self.order)}
        merged = [*first.items(), *((n, score) for n, score in scores.items() if n not in first)]
        return dict(merged[:n_places])

    def rank_first(self, ranked: Sequence[RankedTextUnit], top_k: int) -> list[RankedTextUnit]:
        """Put the text units of the cells before others, as `score_first`."""
        known = {unit.number: unit for unit in ranked}
        if not self.order:
            return list(ranked[:top_k])
        scores = self.score_first({n: unit.score for n, unit in known.items()}, top_k)
        own = {*self.order}
        return [
            RankedTextUnit(n, score, score, "name") if n in own else known[n]
            for n, score in scores.items()
        ]


class AskedQuestion(Protocol):
    """A question, as far as its cells depend on it; see `Question`."""

    @property
    def index(self) -> IndexStore: ...
    @property
    def text(self) -> str: ...
    @property
    def facets(self) -> Facets: ...
    @property
    def content_words(self) -> list[str]: ...
    @property
    def vector(self) -> "np.ndarray[Any, Any]": ...

    def unmentioned_beside(self, written: list[str]) -> list[str]: ...
    def may_be_mentioned(self, name: str) -> bool: ...
    def names_near_series(self) -> list[str]: ...


def find_cell_coverage(question: AskedQuestion) -> CellCoverage:
    """Find the cells of a question, and rank the text units in each of them.

    A question has cells if it names periods of a series, or several things side by side. Without a
    period, the text units must also say what is asked.
    """
    index, facets = question.index, question.facets
    things = [thing for thing in facets.things if _is_thing_of(index, facets, thing)]
    if not things:
        # In a series, a name that is spelt nearly as another is a stranger, not a slip.
        names = question.names_near_series() if facets.periods else []
        return CellCoverage(tuple(_list_missing(question, names, facets)))
    cells = [cell for thing in things for cell in _find_cells(index, facets, thing, len(things))]
    cells = list({(cell.thing, cell.period, cell.documents): cell for cell in cells}.values())
    missing = question.unmentioned_beside([thing.text for thing in things])
    unknown = {stem for name in missing for stem in content_words(name)}
    known = (tuple(stem for stem in part if stem not in unknown) for part in facets.parts)
    parts = tuple(filter(None, known)) or ((),)
    searched, order, topic_share = _rank_in_cells(
        question, [c for c in cells if c.documents], parts
    )
    needs_topic = not facets.is_dated and not any(thing.is_code for thing in things)
    if needs_topic and topic_share < MIN_TOPIC_SHARE:
        return CellCoverage()
    done = iter(searched)
    cells = [next(done) if cell.documents else cell for cell in cells]
    cells += _list_missing(question, missing, facets)
    return CellCoverage(tuple(cells), parts, tuple(order), len(parts) * len(searched))


def _list_missing(question: AskedQuestion, names: Sequence[str], facets: Facets) -> list[Cell]:
    asked = [str(period) for period in facets.periods] or [""]
    cells = list[Cell]()
    for name in names:
        state: Any = "no_passage" if question.may_be_mentioned(name) else "no_thing"
        cells += [Cell(name, period, state) for period in asked]
    return cells


def _is_thing_of(index: IndexStore, facets: Facets, thing: Thing) -> bool:
    """Return whether a thing has cells.

    It is a series or the number of a record, or one of several things with long documents.
    """
    if facets.is_dated or thing.is_code:
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
    each = _find_each_period(facets, covered)
    if 0 < len(each) <= max(MIN_CELLS_PER_THING, MAX_CELLS // n_things):
        return [
            Cell(thing.text, str(shown), "found", _documents_of(thing, [own]), days=own)
            for own, shown in each
        ]
    cells: list[Cell] = []
    for period in asked:
        # Those about the asked period, a part of it, or a longer one.
        fitting = _list_fitting(covered, period)
        if period is not None and covered and not fitting:
            known = [own.numbered_as(period) for own in covered]
            is_gap = known[0].first <= period.first and period.last <= known[-1].last
            if is_gap or len(known) == 1:
                span = ", ".join(map(str, known[:MAX_CELLS]))
            else:
                span = f"{known[0]} to {known[-1]}"
            cells.append(Cell(thing.text, str(period), "no_period", covered=span))
            continue
        if not covered or len(fitting) > max(MIN_CELLS_PER_THING, MAX_CELLS // n_things):
            chosen = _documents_of(thing, [own for own, _ in fitting])
            name, is_dated = str(period or ""), bool(covered)
            cells.append(Cell(thing.text, name, "found", chosen, days=period, is_dated=is_dated))
            continue
        cells += [
            Cell(thing.text, str(shown), "found", _documents_of(thing, [own]), days=own)
            for own, shown in fitting
        ]
    return cells


def _list_fitting(covered: Sequence[Period], asked: Period | None) -> list[tuple[Period, Period]]:
    """Return the periods of documents that fit the asked one, and each by the numbers asked for.

    "Q3 2022" goes by the numbers of the documents, or if none fits, by those of the calendar.
    """
    if asked is None:
        return [(own, own) for own in covered]
    by_number = [(own, own.numbered_as(asked)) for own in covered]
    fitting = [(own, shown) for own, shown in by_number if _is_part(shown, asked)]
    if fitting or asked.is_fiscal:
        return fitting
    by_calendar = [(own, own.numbered(fiscal=False)) for own in covered]
    return [(own, shown) for own, shown in by_calendar if _is_part(shown, asked)]


def _is_part(one: Period, other: Period) -> bool:
    return one.contains(other) or other.contains(one)


def _find_each_period(facets: Facets, covered: Sequence[Period]) -> list[tuple[Period, Period]]:
    """Return the periods of documents that "each quarter" asks for, and shorter ones in others.

    They are as those of `_list_fitting`.
    """
    units: dict[Period, list[tuple[Period, Period]]] = {}
    for own in covered if facets.each else ():
        shown = own.numbered_as(facets.periods[0]) if facets.periods else own
        unit = period_around(shown, facets.each)
        if not facets.periods or any(asked.contains(unit) for asked in facets.periods):
            units.setdefault(unit, []).append((own, shown))
    # A report on a year tells its figures, and those on quarters do not.
    return [
        one
        for unit, held in units.items()
        for one in ([pair for pair in held if pair[1] == unit] or held)
    ]


def _documents_of(thing: Thing, periods: Sequence[Period]) -> tuple[int, ...]:
    """Return the documents of a thing about some periods; all of them if none is known."""
    if not periods:
        return tuple(thing.documents.tolist())
    wanted = set(periods)
    rows = zip(thing.documents.tolist(), thing.days.tolist(), strict=True)
    return tuple(one for one, days in rows if days[0] and Period.from_days(*days) in wanted)


def _rank_in_cells(
    question: AskedQuestion, cells: Sequence[Cell], parts: Sequence[Sequence[str]]
) -> tuple[list[Cell], list[int], float]:
    """Rank the text units of cells by BM25 of each part of the topic, numbers and similarity.

    Returns the cells with their text units, the text units of all by turns, and the mean share of
    a part of the topic in the best text unit of each cell.
    """
    index = question.index
    numbers_of = [_text_units_of(index, cell.documents) for cell in cells]
    if sum(map(len, numbers_of)) > MAX_TEXT_UNITS_READ:
        numbers_of = _keep_matching(question, numbers_of)
    numbers = np.unique(np.concatenate([np.zeros(0, np.int64), *numbers_of]))
    if not len(numbers):
        return list(cells), [], 0.0
    rows = index.open_mapped("text_unit_rows").rows(numbers, "text", "n_tokens")
    stems = list(dict.fromkeys(stem for part in parts for stem in part))
    counts, near = count_stems(rows["text"].to_list(), stems)
    held, n = counts > 0, len(numbers)
    in_units = held.sum(axis=0)
    # A word that no text unit of these documents has tells nothing about any of them.
    idf = np.where(in_units, np.log1p((n - in_units + 0.5) / (in_units + 0.5)), 0.0)
    n_tokens = rows["n_tokens"].to_numpy().astype(float)
    lengths = (n_tokens / max(n_tokens.mean(), 1.0))[:, np.newaxis]
    scores = idf * counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths))
    vectors = index.open_mapped("text_unit_vectors").matrix("vector", numbers)
    similar = SIMILARITY_WEIGHT * (vectors @ question.vector)
    columns_of = [np.array([stems.index(stem) for stem in part], int) for part in parts]
    ranked, queues, shares = [], list[list[int]](), []
    for cell, own in zip(cells, numbers_of, strict=True):
        places, share = np.searchsorted(numbers, own), 0.0
        lists = []
        for columns in columns_of:
            at, total = np.ix_(places, columns), idf[columns].sum() or 1.0
            by_words = scores[at].sum(axis=1)
            score = by_words / (by_words.max(initial=0.0) or 1.0) + similar[places]
            score = score + NUMBER_WEIGHT * (near[at] @ idf[columns]) / total
            lists.append(own[np.lexsort((own, -score))].tolist())
            share = max(share, float((held[at] @ idf[columns]).max(initial=0.0) / total))
        shares.append(share)
        queues += lists
        state: Any = "found" if share or not stems else "no_passage"
        ranked.append(
            replace(cell, text_units=tuple(_take_turns(lists)[:MAX_OF_CELL]), state=state)
        )
    return ranked, _take_turns(queues)[:MAX_TEXT_UNITS], float(np.mean(shares))


def _text_units_of(index: IndexStore, documents: Sequence[int]) -> "np.ndarray":
    """Return the text units of some documents that may be read, ascending."""
    units = index.open_mapped("text_unit_rows")
    starts, stops = units.bounds("document", np.array(documents, np.int64))
    spans = zip(starts.tolist(), stops.tolist(), strict=True)
    numbers = np.concatenate([np.arange(start, stop) for start, stop in spans])
    flags = index.row_flags("text_units")
    return np.unique(numbers if flags is None else numbers[flags[numbers]])


def _keep_matching(
    question: AskedQuestion, numbers_of: "Sequence[np.ndarray]"
) -> "list[np.ndarray]":
    """Keep the text units of each cell that match the question best by the full-text index."""
    table, most = question.index.vectors("text_unit_text"), MAX_TEXT_UNITS_READ // len(numbers_of)
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

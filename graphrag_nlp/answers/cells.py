"""The statement that answers a question about one thing in one period.

The documents of a series speak of their subject without naming it, and beside its figures they
tell those of other times and of parts of it. A statement of another time does not answer. That one
is of a part or of another thing is not told by rules: what begins with the topic comes first.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import chain
from math import log
from pathlib import Path
from typing import NamedTuple

from graphrag_nlp.answers.kinds import compile_words, fold_words
from graphrag_nlp.answers.statements import WORD, Passage, Statement, find_statements, find_stems
from graphrag_nlp.text.languages import Language, language_of, read_lists
from graphrag_nlp.text.periods import Period, find_periods
from graphrag_nlp.text.values import FoundNumber, find_numbers

# Minimum share (0 to 1) of the words of the topic, weighted by rarity, in a clear statement.
MIN_SHARE = 0.6
# Minimum share of the statements with all words of the topic that have a figure, if one is asked.
MIN_SHARE_OF_FIGURES = 0.5
# Maximum number of content words before the topic in a clear statement, and in one that is clear
# whatever other documents state.
MAX_WORDS_BEFORE, MAX_WORDS_BEFORE_AT_ONCE = 1, 0
# What each content word before the topic takes from the rating of a statement, at most 4 of them.
WORD_PENALTY = 0.05
# What the form adds in which most other documents state the topic, if it recurs in this many.
FORM_WEIGHT, MIN_RECURRING = 0.5, 3
# Minimum share of the words of two statements that both have, if they are of one form.
MIN_SAME_WORDS = 0.6


class CellStatement(NamedTuple):
    """A statement of a cell: its share of the words of the topic, and its value nearest to them.

    `has_figure` is true if it has a value, or a code such as E-4711 or 3.10.2.
    """

    statement: Statement
    passage: Passage
    share: float
    value: FoundNumber | None
    has_figure: bool = False

    @property
    def written_value(self) -> str:
        """The value as the statement writes it, or ""."""
        value = self.value
        written = self.statement.text[value.start_char : value.end_char] if value else ""
        # The full stop of a sentence looks like that of "3 Mio.".
        return written.removesuffix(".")


class Topic:
    """The topic of a question: the stems `words`, weighted by rarity among statements.

    `wants_figure` is true if most statements that say it have one. `cells` has the passages of
    each cell. In a series, documents state a figure in one form: `read_others` learns it.
    """

    def __init__(
        self, words: Sequence[str], cells: Sequence[Sequence[Passage]], language: Language
    ) -> None:
        self.words, self.language = words, language
        self.statements = [list(_split(cell)) for cell in cells]
        # The forms in which others state the topic, with the number of things that have each.
        self.forms: dict[frozenset[str], int] = {}
        # The words that several things have in these statements; others may be what is stated.
        self.recurring = frozenset[str]()
        self.best_of_others: CellStatement | None = None
        self.has_read_others = False
        self._before: dict[str, int] = {}
        self._weigh_words()

    def _weigh_words(self) -> None:
        stems = [one.stems | one.label_stems for one, _ in chain(*self.statements)]
        n = len(stems)
        held = {word: sum(word in own for own in stems) for word in self.words}
        # A word that no statement has tells nothing about any of them.
        self.rarity = {word: log(1 + n / k) for word, k in held.items() if k}
        # What is said again and again is no figure.
        full = {one.text for one, _ in chain(*self.statements) if self.share(one) > 0.99}
        with_figure = sum(_has_figure(text) for text in full)
        self.wants_figure = bool(full) and with_figure >= MIN_SHARE_OF_FIGURES * len(full)

    def read_others(self, passages: Sequence[Passage], question: str) -> None:
        """Learn from passages of other documents whether the topic has values, and their form.

        The title of a passage is the thing that it is about: a form recurs if several things have
        it, and not one thing in several periods.
        """
        others = [list(_split([passage])) for passage in passages]
        self.statements += others
        self._weigh_words()
        for own in others:
            # Most say nothing of the topic, and need not be looked at for times and values.
            own[:] = [pair for pair in own if self.share(pair[0]) >= MIN_SHARE]
        self.has_read_others, n = True, len(passages)
        said = [self.choose(at - n, None, question) for at in range(n)] if self.wants_figure else []
        said = [[one for one in own if one.has_figure] for own in said]
        self.recurring = frozenset()
        pairs = {(self._form_of(one.statement), one.passage.title) for one in chain(*said)}
        said_by = {(stem, title) for form, title in pairs for stem in form}
        held = Counter(stem for stem, _ in said_by)
        self.recurring = frozenset(stem for stem, n in held.items() if n >= MIN_RECURRING)
        pairs = {(self._form_of(one.statement), one.passage.title) for one in chain(*said)}
        self.forms = {
            form: len({title for other, title in pairs if _is_same(form, other)})
            for form, _ in pairs
        }
        del self.statements[len(self.statements) - n :]
        self.best_of_others = max(chain(*said), key=self.rate, default=None)

    def share(self, statement: Statement) -> float:
        """Return the share of the topic's words, weighted by rarity, in a statement."""
        said = statement.stems | statement.label_stems
        total = sum(self.rarity.values())
        return (
            sum(self.rarity[word] for word in self.rarity if word in said) / total if total else 0
        )

    def choose(
        self, cell: int, period: Period | None, question: str, *, is_dated: bool = True
    ) -> list[CellStatement]:
        """Return the statements of a cell that may answer, the likeliest first.

        Left out are those of another period, and where documents say no period (`is_dated` is
        false), those that do not name the asked one.
        """
        found, seen = [], set()
        # A question may ask for a forecast.
        is_timed = not any(_is_of(time, question, self.language) for time in ("earlier", "later"))
        for statement, passage in self.statements[cell]:
            if statement.text in seen:
                continue
            seen.add(statement.text)
            language = language_of(passage.language) if passage.language else self.language
            if is_timed and _is_of_other_time(statement.text, language):
                continue
            if _is_of_other_period(statement.text, period):
                continue
            if period and not is_dated and not _names(statement.text, period):
                continue
            value = self._find_value(statement, language)
            has_figure = value is not None or _has_figure(statement.text)
            share = self.share(statement)
            found.append(CellStatement(statement, passage, share, value, has_figure))
        # The sort is stable: passages begin with the best.
        return sorted(found, key=lambda one: -self.rate(one))

    def rate(self, one: CellStatement) -> float:
        """Rate a statement by its words, its value, and the form in which others state the topic.

        "A brother has a weight of 80 kg" has a form that recurs less than "Weight was 80 kg".
        """
        is_stated = one.has_figure and self.wants_figure
        rating = one.share + is_stated / 2 - self._n_words_before(one.statement) * WORD_PENALTY
        most = max(self.forms.values(), default=0)
        if most < MIN_RECURRING or one.share < MIN_SHARE or not one.has_figure:
            return rating
        form = self._form_of(one.statement)
        own = max((n for other, n in self.forms.items() if _is_same(form, other)), default=0)
        return rating + FORM_WEIGHT * own / most

    def is_clear(self, found: CellStatement, max_words_before: int = MAX_WORDS_BEFORE) -> bool:
        """Return whether a statement says what is asked, with a value if one is wanted.

        It names the topic early: "The service division had a margin of 4 %" may be of a part.
        """
        is_stated = found.has_figure or not self.wants_figure
        is_early = self._n_words_before(found.statement) <= max_words_before
        return found.share >= MIN_SHARE and is_stated and is_early and not self.is_outdone(found)

    def is_outdone(self, found: CellStatement | None) -> bool:
        """Return whether others state the topic better than the best statement of a cell.

        Then the cell does not state it at all, since documents of a series use the same words.
        """
        best, recurs = self.best_of_others, max(self.forms.values(), default=0) >= MIN_RECURRING
        if best is None:
            return False
        if found and found.has_figure:
            return recurs and self.rate(best) > self.rate(found)
        return self._n_words_before(best.statement) <= MAX_WORDS_BEFORE + recurs

    def _form_of(self, statement: Statement) -> frozenset[str]:
        """Return the stems of a statement without its figures, and without words that it states.

        Those are a smaller part: "After the examination the diagnosis is acute asthma (code J45)".
        """
        form = frozenset(stem for stem in statement.stems if not any(map(str.isdigit, stem)))
        shared = form & self.recurring
        return shared if 2 * len(shared) >= len(form) else form

    def _n_words_before(self, statement: Statement) -> int:
        """Count the content words before the topic, up to 4: "A brother has a weight of 80 kg".

        Words of figures and periods do not count.
        """
        text, before = statement.text, 0
        if text in self._before:
            return self._before[text]
        if (statement.stems | statement.label_stems).isdisjoint(self.words):
            return 4
        spans = [found[:2] for found in find_numbers(text, self.language.code)]
        spans += [found[:2] for found in find_periods(text)]
        for word in WORD.finditer(text):
            low = word[0].lower()
            if not find_stems(low).isdisjoint(self.words):
                break
            is_counted = low.isalpha() and low not in self.language.function_words
            before += is_counted and not any(a <= word.start() < b for a, b in spans)
        self._before[text] = min(before, 4)
        return self._before[text]

    def _find_value(self, statement: Statement, language: Language) -> FoundNumber | None:
        """Return the value behind the topic's words, or else the last one before them."""
        text = statement.text
        values = list(find_numbers(text, language.code))
        if len(values) < 2:
            return values[0] if values else None
        words = [w for w in WORD.finditer(text) if not find_stems(w[0]).isdisjoint(self.words)]
        last = words[-1].end() if words else 0
        behind = [value for value in values if value.start_char >= last]
        return behind[0] if behind else values[-1]


def _split(passages: Sequence[Passage]) -> Iterator[tuple[Statement, Passage]]:
    for passage in passages:
        for one in find_statements(passage.text, passage.before):
            yield one, passage


def _has_figure(text: str) -> bool:
    """Return whether a text has a number or a code, beside the periods that it names."""
    for period in reversed(find_periods(text)):
        text = text[: period.start] + text[period.end :]
    return any(map(str.isdigit, text))


def _is_same(form: Set[str], other: Set[str]) -> bool:
    """Return whether two forms are the same but for a few words."""
    return len(form & other) >= MIN_SAME_WORDS * len(form | other)


def _is_of_other_time(text: str, language: Language) -> bool:
    """Return whether the first figure of a text is an earlier or later one than it tells of.

    "11.2%, up from 10.1% a year earlier" begins with one of its own time.
    """
    if _is_of("later", text, language):
        return True
    if not _is_of("earlier", text, language):
        return False
    values = list(find_numbers(text, language.code))
    return len(values) < 2 or _is_of("earlier", text[: values[1].end_char], language)


def _is_of_other_period(text: str, period: Period | None) -> bool:
    return period is not None and bool(find_periods(text)) and not _names(text, period)


def _names(text: str, period: Period) -> bool:
    """Return whether a text names a period that shares a day with another one.

    A document that goes by fiscal years may say "the quarter ended June 30, 2022" of its Q3.
    """
    return any(period.numbered_as(one).overlaps(one) for one in find_periods(text))


def _is_of(time: str, text: str, language: Language) -> bool:
    return _words_of(time, language.code).search(fold_words(text)) is not None


@cache
def _words_of(time: str, code: str) -> re.Pattern[str]:
    lists: Mapping[str, str] = read_lists("cells", Path(__file__).parent / "data")[time]
    return compile_words(lists.get(code, lists["en"]))

"""Periods in a question or a title: days, months, quarters, halves, years, and their ranges.

A period is a range of days. In "from Q1 2022 to Q3 2022" and "since May 2021", several parts make
one period. A fiscal year counts as the calendar year of its number, which is right where questions
and documents both name fiscal years.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import MAXYEAR, date, timedelta
from functools import cache
from typing import NamedTuple

from graphrag_nlp.text.languages import MONTHS, Language, expand_pattern, read_lists, word_set
from graphrag_nlp.text.normalize import fold
from graphrag_nlp.text.values import range_of_day, range_of_months

# Number of characters before a period that are searched for a word such as "since".
BEFORE_CHARS = 30
FIRST_DAY, LAST_DAY = date(1, 1, 1), date(MAXYEAR, 12, 31)
# Lengths in months, and the lists of their names.
_LENGTHS = {12: "years", 6: "halves", 3: "quarters", 1: "months"}
_WORDS = re.compile(r"[^\W_]+")
_HAS_YEAR = re.compile(r"\d\d").search
_DASH = re.compile(r"\s*(?:[-–—]|\.\.)\s*")


class Period(NamedTuple):
    """The days `first` to `last`, inclusive, and the characters of a text that name them."""

    start: int
    end: int
    first: date
    last: date

    def overlaps(self, other: "Period") -> bool:
        """Return whether the two periods share a day."""
        return self.first <= other.last and other.first <= self.last

    def contains(self, other: "Period") -> bool:
        """Return whether all days of the other period are in this one."""
        return self.first <= other.first and other.last <= self.last

    @property
    def n_days(self) -> int:
        """The number of days."""
        return (self.last - self.first).days + 1

    def __str__(self) -> str:
        """Return the period as it is written: 2022, Q3 2022, May 2022 or 2022-05-04."""
        return format_period(self.first, self.last)


def format_period(first: date, last: date) -> str:
    """Write a range of days as a year, half, quarter, month or day, or as a range of these."""
    if first == FIRST_DAY:
        return f"until {format_period(last, last)}"
    if last == LAST_DAY:
        return f"since {format_period(first, first)}"
    n_months = 12 * (last.year - first.year) + last.month - first.month + 1
    is_whole = first.day == 1 and (last + timedelta(days=1)).day == 1
    if not is_whole:
        return str(first) if first == last else f"{first} to {last}"
    if n_months % 12 == 0 and first.month == 1:
        return f"{first.year}" if n_months == 12 else f"{first.year} to {last.year}"
    if n_months == 6 and first.month in (1, 7):
        return f"H{first.month // 6 + 1} {first.year}"
    if n_months % 3 == 0 and first.month % 3 == 1:
        one = f"Q{first.month // 3 + 1} {first.year}"
        return one if n_months == 3 else f"{one} to Q{last.month // 3} {last.year}"
    one = f"{first.year}-{first.month:02}"
    return one if n_months == 1 else f"{one} to {last.year}-{last.month:02}"


def find_periods(text: str) -> list[Period]:
    """Find the periods that a text names, in their order.

    A quarter or half without a year has that of the next period, or else of the one before. A range
    is one period, as is one behind "since", "after", "before" or "until".
    """
    if not _HAS_YEAR(text):
        return []
    parts = [part for part in _find_parts(text) if not part.is_bare]
    return [*_join_ranges(text, _resolve_years(parts))]


def find_dates(text: str, language: Language) -> list["DatePart"]:
    """Find the days and months that a text names, in their order, also without a year.

    "May" and "mars" alone are months if they have a capital and do not begin the text.
    """
    has_small = language.code in ("en", "de")
    return [
        part
        for part in _find_parts(text)
        if part.n_months == 1
        and (part.year or part.day or (part.start and not (has_small and part.text.islower())))
    ]


def names_latest(text: str) -> bool:
    """Return whether a text asks for the last period: "the latest quarter"."""
    return _find_length(text, "latest") is not None


def find_each(text: str) -> tuple[int, int, int] | None:
    """Find what asks for all periods of a length: "each quarter".

    Returns its first and last character and the number of months.
    """
    return _find_length(text, "each")


def _find_length(text: str, name: str) -> tuple[int, int, int] | None:
    """Find a word of a list with the name of a length of time, at most two words behind it."""
    words = list(_WORDS.finditer(text))
    for i, word in enumerate(words):
        for near in words[i + 1 : i + 3] if _is_in(fold(word[0]), _words(name)) else ():
            for n_months, noun in _LENGTHS.items():
                if _is_in(fold(near[0]), _words(noun)):
                    return word.start(), near.end(), n_months
    return None


def names_birth(label: str) -> bool:
    """Return whether the label of a field names a birth: "Date of birth"."""
    return any(_is_in(fold(word), _words("birth")) for word in _WORDS.findall(label))


def period_around(period: Period, n_months: int) -> Period:
    """Return the year, half, quarter or month with all days of a period, or else the period."""
    month = (period.first.month - 1) // n_months * n_months + 1
    around = Period(0, 0, *range_of_months(str(period.first.year), month, n_months))
    return around if around.contains(period) else period._replace(start=0, end=0)


class DatePart(NamedTuple):
    """A part of a period: its first month, number of months, and day; 0 is not known.

    `is_bare` is true for a month or day that has no year beside it.
    """

    text: str
    start: int
    end: int
    year: int
    month: int
    n_months: int
    day: int = 0
    is_bare: bool = False

    @property
    def compact(self) -> str:
        """The day as one number, such as 20260408; "" if a part is missing."""
        is_whole = self.year and self.day
        return f"{self.year}{self.month:02}{self.day:02}" if is_whole else ""

    def matches(self, day: str) -> bool:
        """Return whether an ISO date is of this day or month."""
        year, month, number = day[:4], day[5:7], day[8:10]
        has_year = not self.year or year == str(self.year)
        has_day = not self.day or number == f"{self.day:02}"
        return has_year and month == f"{self.month:02}" and has_day


@cache
def _words(name: str) -> frozenset[str]:
    words: str = read_lists("graphrag_nlp/text/data/periods")[name]
    return word_set(words)


def _is_in(word: str, words: frozenset[str]) -> bool:
    """Return whether a folded word is in a list, in which a final * stands for any ending."""
    return word in words or any(w[-1] == "*" and word.startswith(w[:-1]) for w in words)


@cache
def _pattern() -> re.Pattern[str]:
    """Compile the pattern of the parts of periods, for texts of `_fold_letters`."""
    lists = read_lists("graphrag_nlp/text/data/periods")
    words = {name: text for name, text in lists.items() if isinstance(text, str)}
    words["ordinals"] = " ".join(lists["ordinals"].values())
    words["months"] = " ".join(name for name in map(fold, MONTHS) if len(name) > 2)
    alternatives = {
        name.upper(): "|".join(
            re.escape(word).replace(r"\*", r"[^\W\d_]*")
            for word in sorted(text.split(), key=len, reverse=True)
        )
        for name, text in words.items()
    }
    return re.compile(expand_pattern({**alternatives, **lists["patterns"]}, "PART"))


def _find_parts(text: str) -> Iterator[DatePart]:
    """Yield the parts of periods in a text, in their order."""
    for found in _pattern().finditer(_fold_letters(text)):
        named = {name.split("_")[0]: value for name, value in found.groupdict().items() if value}
        place = text[slice(*found.span())], *found.span()
        if named.pop("iso", ""):
            named["year"], named["month"] = found["iso_year"], found["iso_month"]
            named["day"] = found["iso_day"] or "0"
        elif named.pop("dot", ""):
            named["day"], named["month"] = found["dot_day"], found["dot_month"]
        year = int(named.get("year", 0)) or (2000 + int(named["short"]) if "short" in named else 0)
        if name := named.get("month") or named.get("bare"):
            month = int(name) if name.isdigit() else _months()[name]
            yield DatePart(*place, year, month, 1, int(named.get("day", 0)), "bare" in named)
            continue
        number, n_months = 1, 12
        if "kind" in named:
            number, n_months = int(named["number"]), 6 if named["kind"] in "hs" else 3
        elif "ordinal" in named:
            number = _number_of(named["ordinal"])
            n_months = 6 if _is_in(named["noun"], _words("halves")) else 3
        if number * n_months <= 12:
            yield DatePart(*place, year, n_months * (number - 1) + 1, n_months)


@cache
def _months() -> dict[str, int]:
    return {fold(name): number for name, number in MONTHS.items()}


def _fold_letters(text: str) -> str:
    """Remove case and accents of each letter, so that all offsets stay the same."""
    if text.isascii():
        return text.lower()
    folded = (fold(c) if c.isalnum() and not c.isascii() else c.lower() for c in text)
    return "".join(one if len(one) == 1 else c for one, c in zip(folded, text, strict=True))


def _number_of(ordinal: str) -> int:
    if ordinal[0].isdigit():
        return int(ordinal[0])
    lists = read_lists("graphrag_nlp/text/data/periods")["ordinals"]
    return next(int(n) for n, words in lists.items() if _is_in(ordinal, word_set(words)))


def _resolve_years(parts: Sequence[DatePart]) -> list[Period]:
    """Give a quarter without a year the year of the next part, or else of the part before."""
    found: list[Period] = []
    for i, part in enumerate(parts):
        later = (one.year for one in parts[i + 1 :] if one.year)
        earlier = (one.year for one in reversed(parts[:i]) if one.year)
        year = part.year or next(later, 0) or next(earlier, 0)
        span = (
            range_of_day(str(year), part.month, str(part.day))
            if year and part.day
            else range_of_months(str(year), part.month, part.n_months)
            if year
            else None
        )
        if span:
            found.append(Period(part.start, part.end, *span))
    return found


def _join_ranges(text: str, periods: Sequence[Period]) -> Iterator[Period]:
    """Join the two ends of ranges, and open periods behind words such as "since"."""
    i = 0
    while i < len(periods):
        one = periods[i]
        before = [
            fold(word)
            for word in _WORDS.findall(text[max(0, one.start - BEFORE_CHARS) : one.start])
        ]
        before = [word for word in before if word and not _is_in(word, _words("joints"))][-1:]
        if i + 1 < len(periods):
            other = periods[i + 1]
            between = text[one.end : other.start]
            words = [fold(word) for word in _WORDS.findall(between)]
            words = [
                word for word in words if word and not _is_in(word, _words("joints") - _words("to"))
            ]
            is_pair = len(words) == 1 and _is_in(words[0], _words("and"))
            opens = any(_is_in(word, _words("between")) for word in before)
            is_range = len(words) == 1 and _is_in(words[0], _words("to"))
            if one.first <= other.first and (
                is_range or _DASH.fullmatch(between) or (is_pair and opens)
            ):
                yield Period(one.start, other.end, one.first, max(one.last, other.last))
                i += 2
                continue
        yield _open_side(one, before[0]) if before else one
        i += 1


def _open_side(period: Period, word: str) -> Period:
    """Open a period at one side by the word before it."""
    start, end, first, last = period
    if _is_in(word, _words("since")):
        return Period(start, end, first, LAST_DAY)
    if _is_in(word, _words("after")):
        return Period(start, end, last + timedelta(days=1), LAST_DAY)
    if _is_in(word, _words("before")):
        return Period(start, end, FIRST_DAY, first - timedelta(days=1))
    if _is_in(word, _words("until")):
        return Period(start, end, FIRST_DAY, last)
    return period

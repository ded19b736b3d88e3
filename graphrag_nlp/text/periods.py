"""Periods in a question or a title: days, months, quarters, halves and years, and ranges of them.

A period is a range of days. In "from Q1 2022 to Q3 2022" and "since May 2021", several parts make
one period. A fiscal year counts as the calendar year of its number, which is right where questions
and documents both name fiscal years.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import MAXYEAR, date, timedelta
from functools import cache
from typing import NamedTuple

from graphrag_nlp.text.languages import MONTHS, read_lists, word_set
from graphrag_nlp.text.normalize import fold
from graphrag_nlp.text.values import range_of_day, range_of_months

# Years that a number alone may be.
_YEAR = r"(?:19|20)\d\d"
# Maximum number of characters between two periods that an "and" or a dash joins.
MAX_BETWEEN_CHARS = 24
FIRST_DAY, LAST_DAY = date(1, 1, 1), date(MAXYEAR, 12, 31)
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

    A quarter or half without a year has that of the next period, or else of the one before. Ranges
    and "since", "after", "before" and "until" are one period. A month or day without a year is none.
    """
    if not _HAS_YEAR(text):
        return []
    return [*_join_ranges(text, _resolve_years(text, [*_find_parts(text)]))]


def names_latest(text: str) -> bool:
    """Return whether a text asks for the last period: "the latest quarter"."""
    words, lists = [fold(word[0]) for word in _WORDS.finditer(text)], _words("latest")
    nouns = (
        _words("quarters") | _words("halves") | word_set("year jahr annee ano month monat mois mes")
    )
    return any(
        _is_in(word, lists) and any(_is_in(near, nouns) for near in words[i + 1 : i + 3])
        for i, word in enumerate(words)
    )


class _Part(NamedTuple):
    """A part of a period: its first month, number of months, and day; year 0 is not known."""

    start: int
    end: int
    year: int
    month: int
    n_months: int
    day: int = 0


@cache
def _words(name: str) -> frozenset[str]:
    words: str = read_lists("graphrag_nlp/text/data/periods")[name]
    return word_set(words)


def _is_in(word: str, words: frozenset[str]) -> bool:
    """Return whether a folded word is in a list, in which a final * stands for any ending."""
    return word in words or any(w[-1] == "*" and word.startswith(w[:-1]) for w in words)


@cache
def _pattern() -> re.Pattern[str]:
    """Compile the parts of periods. The text is folded in place, but for its punctuation."""

    def any_of(words: frozenset[str] | Sequence[str]) -> str:
        ordered = sorted(words, key=len, reverse=True)
        return "|".join(re.escape(word).replace(r"\*", r"[^\W\d_]*") for word in ordered)

    lists = read_lists("graphrag_nlp/text/data/periods")
    ordinals = any_of([word for words in lists["ordinals"].values() for word in words.split()])
    fiscal, joints = any_of(_words("fiscal")), any_of(_words("joints"))
    gap = rf"(?:\W{{1,3}}(?:{joints}))*\W{{0,3}}"
    fiscal = rf"(?:{fiscal})\W{{0,2}}(?:year\W)?"
    year = rf"(?:{fiscal})?(?P<%s>{_YEAR})(?!\d)"
    short_year = rf"(?:{fiscal}|['’])(?P<%s>\d\d)(?!\d)"

    def years(name: str) -> str:
        return f"(?:{year % name}|{short_year % (name + '_short')})"

    listing = any_of(_words("to") | _words("and") | {"or", "oder", "ou", "o"})
    month = any_of([fold(name) for name in MONTHS if len(fold(name)) > 2])
    day = r"(?:0?[1-9]|[12]\d|3[01])"
    code = r"(?:(?P<{0}kind>[qthsk])(?P<{0}number>[1-4])|(?P<{0}number_first>[1-4])(?P<{0}kind_last>[qths]))"
    quarter = rf"(?P<ordinal>{ordinals}|[1-4]\.)\W{{0,2}}(?P<noun>{any_of(_words('quarters'))}|{any_of(_words('halves'))})"
    return re.compile(
        rf"""
          (?<![^\W_])(?:
            (?P<iso_year>{_YEAR})[-_./ ]?(?P<iso_month>0[1-9]|1[0-2])(?:[-_./ ]?(?P<iso_day>0[1-9]|[12]\d|3[01]))?(?!\d)
          | (?P<dot_day>{day})\.\s?(?P<dot_month>0?[1-9]|1[0-2])\.\s?(?P<dot_year>{_YEAR})(?!\d)
          | {years("y1")}{gap}{code.format("c1_")}(?![^\W_])
          | {code.format("c2_")}(?:{gap}{years("y2")}|(?P<y2_bare>\d\d)(?!\d)|(?![^\W_]))
          | {quarter}(?:{gap}{years("y3")})?
          | (?P<day_before>{day})(?:st|nd|rd|th|er|\.)?\W{{1,2}}(?:(?:of|de)\s)?(?P<m1>{month})\.?,?\W{{0,2}}(?:del?\s)?(?P<y4>{_YEAR})(?!\d)
          | (?P<m2>{month})\.?\W{{0,2}}(?P<day_after>{day})(?:st|nd|rd|th)?,?\s(?P<y5>{_YEAR})(?!\d)
          | (?P<m3>{month})\.?,?{gap}(?P<y6>{_YEAR})(?!\d)
          | (?P<m5>{month})(?=\.?(?:\W{{1,2}}(?:{listing}))?\W{{1,3}}(?:{month})\b[^?!;]{{0,16}}?{_YEAR})
          | (?P<y7>{_YEAR})\W{{1,2}}(?P<m4>{month})(?![^\W_])
          | {years("y8")}(?![^\W_]|[.,]\d)
          )
        """,
        re.VERBOSE,
    )


def _find_parts(text: str) -> Iterator[_Part]:
    """Yield the parts of periods in a text, in their order."""
    plain = _fold_letters(text)
    for found in _pattern().finditer(plain):
        part = {name: value for name, value in found.groupdict().items() if value}
        short = next((v for n, v in part.items() if n.endswith(("_short", "_bare"))), "")
        years = [v for n, v in part.items() if re.fullmatch(r"y\d|iso_year|dot_year", n)]
        year = int(years[0]) if years else 2000 + int(short) if short else 0
        day = int(
            part.get("iso_day")
            or part.get("dot_day")
            or part.get("day_before")
            or part.get("day_after")
            or 0
        )
        month = next(
            (
                v
                for n, v in part.items()
                if n in ("iso_month", "dot_month", "m1", "m2", "m3", "m4", "m5")
            ),
            "",
        )
        kind = next((v for n, v in part.items() if n.endswith(("kind", "kind_last"))), "")
        if month:
            value = int(month) if month.isdigit() else _months()[month]
            yield _Part(*found.span(), year, value, 1, day)
        elif kind:
            number = int(next(v for n, v in part.items() if n.endswith(("number", "number_first"))))
            is_half = kind in "hs"
            if is_half and number > 2:
                continue
            size = 6 if is_half else 3
            yield _Part(*found.span(), year, size * (number - 1) + 1, size)
        elif "ordinal" in part:
            number = _number_of(part["ordinal"])
            size = 6 if _is_in(part["noun"], _words("halves")) else 3
            if number * size <= 12:
                yield _Part(*found.span(), year, size * (number - 1) + 1, size)
        else:
            yield _Part(*found.span(), year, 1, 12)


@cache
def _months() -> dict[str, int]:
    return {fold(name): number for name, number in MONTHS.items()}


def _fold_letters(text: str) -> str:
    """Remove case and accents of each letter, so that all offsets stay the same."""
    if text.isascii():
        return text.lower()
    folded = (fold(c) if c.isalnum() and not c.isascii() else c.lower() for c in text)
    return "".join(one if len(one) == 1 else " " for one in folded)


def _number_of(ordinal: str) -> int:
    if ordinal[0].isdigit():
        return int(ordinal[0])
    lists = read_lists("graphrag_nlp/text/data/periods")["ordinals"]
    return next(int(n) for n, words in lists.items() if _is_in(ordinal, word_set(words)))


def _resolve_years(text: str, parts: Sequence[_Part]) -> list[Period]:
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
        before = [fold(word) for word in _WORDS.findall(text[max(0, one.start - 30) : one.start])]
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

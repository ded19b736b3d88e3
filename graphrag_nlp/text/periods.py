"""Periods in a question or a title: days, months, quarters, halves, years, and their ranges.

A period is a range of days. In "from Q1 2022 to Q3 2022" and "since May 2021", several parts make
one period. "The quarter ended June 30, 2022" is April to June. "Fiscal Q3 2022" has the days of Q3
2022 until a document says how far its fiscal years are ahead of the calendar.
"""

import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import MAXYEAR, date, timedelta
from functools import cache
from typing import NamedTuple

from graphrag_nlp.text.languages import MONTHS, Language, expand_pattern, read_lists, word_set
from graphrag_nlp.text.normalize import fold
from graphrag_nlp.text.values import range_of_day, range_of_months

# Number of characters before a period that are searched for words such as "since".
BEFORE_CHARS = 40
# The same for "fiscal".
FISCAL_CHARS = 12
FIRST_DAY, LAST_DAY = date(1, 1, 1), date(MAXYEAR, 12, 31)
# Lengths in months, and the lists of their names.
_LENGTHS = {12: "years", 6: "halves", 3: "quarters", 1: "months"}
_WORDS = re.compile(r"[^\W_]+")
_HAS_YEAR = re.compile(r"\d\d").search
_DASH = re.compile(r"\s*(?:[-–—]|\.\.)\s*")


class Period(NamedTuple):
    """The days `first` to `last`, inclusive, and the characters of a text that name them.

    If `is_fiscal`, the days are those that have the same number in the calendar: Q3 2022 of "Q3
    FY22". It is None where a text does not say so: "Q3 2022". `shift` is the number of months that
    fiscal years are ahead of the calendar, 0 if that is not known: 3 if they end in September,
    since Q3 FY22 is April to June 2022.
    """

    start: int
    end: int
    first: date
    last: date
    is_fiscal: bool | None = None
    shift: int = 0

    @classmethod
    def from_days(cls, first: int, last: int, is_fiscal: int = 0, shift: int = 0) -> "Period":
        """Return the period from one ordinal day to another, which stands in no text."""
        days = date.fromordinal(first), date.fromordinal(last)
        return cls(0, 0, *days, bool(is_fiscal), shift)

    def overlaps(self, other: "Period") -> bool:
        """Return whether the two periods share a day."""
        return self.first <= other.last and other.first <= self.last

    def contains(self, other: "Period") -> bool:
        """Return whether all days of the other period are in this one."""
        return self.first <= other.first and other.last <= self.last

    def numbered(self, *, fiscal: bool) -> "Period":
        """Return the period by the numbers of fiscal years or by the calendar; as is if unknown."""
        if bool(self.is_fiscal) == fiscal or not self.shift:
            return self
        months = self.shift if fiscal else -self.shift
        first, last = _move(self.first, months), _move(self.last, months)
        return self._replace(first=first, last=last, is_fiscal=fiscal)

    def numbered_as(self, other: "Period") -> "Period":
        """Return the period by the numbers of another one; as is if that does not say which."""
        return self if other.is_fiscal is None else self.numbered(fiscal=other.is_fiscal)

    @property
    def n_days(self) -> int:
        """The number of days."""
        return (self.last - self.first).days + 1

    def __str__(self) -> str:
        """Return the period as it is written: 2022, fiscal Q3 2022, 2022-05 or 2022-05-04."""
        return "fiscal " * bool(self.is_fiscal) + format_period(self.first, self.last)


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


def apply_fiscal_year(period: Period, text: str) -> Period:
    """Set how the period of a text is numbered and the shift, if the text tells of fiscal years.

    It does so by "fiscal Q3 2022" beside "the quarter ended June 30, 2022", or by a year's end: a
    "fiscal year ended September 30" has the number of the calendar year in which it ends.
    """
    folded = _fold_letters(text)
    # Most texts have none of the words: that is found out far sooner than where a period stands.
    ended = (word.rstrip("*") in folded for word in _words("ended"))
    if not any(ended) or not _pattern("ENDS").search(folded):
        return period
    parts = list(_find_parts(text))
    ends = [part for part in parts if part.n_ended]
    dated = _resolve_years([part for part in ends if part.year])
    fiscal = _resolve_years([part for part in parts if part.is_fiscal])
    shifts = (
        _month_of(one.last) - _month_of(other.last)
        for one in fiscal
        for other in dated
        # Months have 28 to 31 days.
        if abs(one.n_days - other.n_days) < 5 and abs((one.last - other.last).days) < 360
    )
    ends_of_years = (part.month - part.ends_early for part in ends if part.n_ended == 12)
    shift = next(shifts, -next(ends_of_years, 0) % 12)
    if not shift:
        return period
    by_fiscal_year = [*fiscal, *(one._replace(shift=shift).numbered(fiscal=True) for one in dated)]
    is_fiscal = period.is_fiscal
    if is_fiscal is None:
        is_fiscal = period[2:4] in [one[2:4] for one in by_fiscal_year]
    return period._replace(is_fiscal=is_fiscal, shift=shift)


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
    first, last = range_of_months(str(period.first.year), month, n_months)
    around = period._replace(start=0, end=0, first=first, last=last)
    return around if around.contains(period) else period._replace(start=0, end=0)


def _month_of(day: date) -> int:
    return 12 * day.year + day.month - 1


def _move(day: date, months: int) -> date:
    """Return a day some months later; the last day of a month becomes that of another."""
    if day in (FIRST_DAY, LAST_DAY):
        return day
    year, month = divmod(_month_of(day) + months, 12)
    n_days = monthrange(year, month + 1)[1]
    is_last = day.day == monthrange(day.year, day.month)[1]
    return date(year, month + 1, n_days if is_last else min(day.day, n_days))


class DatePart(NamedTuple):
    """A part of a period: its first month, number of months, and day; 0 is not known.

    `is_bare` is true for a month or day that has no year beside it. `n_ended` is the number of
    months of "the quarter ended June 30" and the like, 0 for a day or month alone.
    """

    text: str
    start: int
    end: int
    year: int
    month: int
    n_months: int
    day: int = 0
    is_bare: bool = False
    is_fiscal: bool = False
    n_ended: int = 0

    @property
    def ends_early(self) -> bool:
        """Whether a quarter of weeks that ends on this day is that of the month before."""
        return 0 < self.day <= 15

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
def _pattern(name: str = "PART") -> re.Pattern[str]:
    """Compile a pattern of the lists, such as that of parts, for texts of `_fold_letters`."""
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
    return re.compile(expand_pattern({**alternatives, **lists["patterns"]}, name))


def _find_parts(text: str) -> Iterator[DatePart]:
    """Yield the parts of periods in a text, in their order."""
    folded = _fold_letters(text)
    for found in _pattern().finditer(folded):
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
            before = max(0, found.start() - BEFORE_CHARS)
            ended = _pattern("IS_ENDED").search(folded, before, found.start())
            n_ended = int(ended.lastgroup[1:]) if ended and ended.lastgroup else 0
            day = int(named.get("day", 0))
            yield DatePart(*place, year, month, 1, day, "bare" in named, n_ended=n_ended)
            continue
        number, n_months = 1, 12
        if "kind" in named:
            number, n_months = int(named["number"]), 6 if named["kind"] in "hs" else 3
        elif "ordinal" in named:
            number = _number_of(named["ordinal"])
            n_months = 6 if _is_in(named["noun"], _words("halves")) else 3
        if number * n_months <= 12:
            month = n_months * (number - 1) + 1
            before = max(0, found.start() - FISCAL_CHARS)
            is_fiscal = _pattern("IS_FISCAL").search(folded, before, found.end()) is not None
            yield DatePart(*place, year, month, n_months, is_fiscal=is_fiscal)


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
        if span and part.n_ended:
            last = _move(span[1].replace(day=1), -part.ends_early)
            span = range_of_months(str(last.year), last.month, 1)
            span = _move(span[0], 1 - part.n_ended), span[1]
        if span:
            # Days, months, and what ended on a day are of the calendar.
            is_dated = part.n_months == 1
            is_fiscal = part.is_fiscal or (False if is_dated else None)
            found.append(Period(part.start, part.end, *span, is_fiscal))
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
                is_fiscal = one.is_fiscal or other.is_fiscal
                last = max(one.last, other.last)
                yield Period(one.start, other.end, one.first, last, is_fiscal)
                i += 2
                continue
        yield _open_side(one, before[0]) if before else one
        i += 1


def _open_side(period: Period, word: str) -> Period:
    """Open a period at one side by the word before it."""
    if _is_in(word, _words("since")):
        return period._replace(last=LAST_DAY)
    if _is_in(word, _words("after")):
        return period._replace(first=period.last + timedelta(days=1), last=LAST_DAY)
    if _is_in(word, _words("before")):
        return period._replace(first=FIRST_DAY, last=period.first - timedelta(days=1))
    if _is_in(word, _words("until")):
        return period._replace(first=FIRST_DAY)
    return period

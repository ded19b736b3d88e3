"""Dates in texts, each as the span of days that it means; what is ambiguous is left out."""

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from graphrag_index.nlp.value_words import BEFORE_YEAR, MONTHS
from graphrag_index.text.languages import language_of

_MONTH = "|".join(sorted(map(re.escape, MONTHS), key=len, reverse=True))
_YEAR = r"(?:1\d|20)\d\d"
_DATE = re.compile(
    rf"""
    (?<![\w.,/:#-])(?:
      (?P<iso>{_YEAR})-(?P<iso_month>\d\d)-(?P<iso_day>\d\d)(?!-?\d)
    | (?P<day>\d{{1,2}})(?:st|nd|rd|th|er|\.|º)?\s(?:of\s|de\s)?(?P<month>{_MONTH})\.?,?\s
      (?:de\s)?(?P<year>{_YEAR})
    | (?P<us_month>{_MONTH})\.?\s(?P<us_day>\d{{1,2}})(?:st|nd|rd|th)?,\s(?P<us_year>{_YEAR})
    | (?P<only_month>{_MONTH})\.?,?\s(?:de\s)?(?P<month_year>{_YEAR})
    | (?P<dot_day>\d{{1,2}})\.\s?(?P<dot_month>\d{{1,2}})\.\s?(?P<dot_year>{_YEAR})
    | (?P<left>\d{{1,2}})/(?P<right>\d{{1,2}})/(?P<slash_year>{_YEAR})
    | Q(?P<quarter>[1-4])[\s/](?P<quarter_year>{_YEAR})
    | (?P<decade>(?:1\d|20)\d)0s
    | (?P<first>{_YEAR})\s?(?P<dash>[-–—/])\s?(?P<last>{_YEAR}|\d\d)(?![-/]\d)
    | (?P<alone>{_YEAR})
    )(?!\w|[.,:/]\d|[-–]\d)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LAST_WORD = re.compile(r"([^\W\d_][\w']*)\W{0,2}$")

# Words that may stand behind a year.
_BEHIND_YEAR = frozenset(
    "and the was were when until with for after before they she but that which had has under from "
    "und bis war wurde als mit nach der die das unter les des est fut avec par pour dans jusqu "
    "era fue con para por hasta del roku przez oraz był była than where while aboard near".split()
)


class FoundDate(NamedTuple):
    """A span of days, both ends with it, and where a text tells it."""

    start_char: int
    end_char: int
    first: date
    last: date


def find_dates(text: str, language: str) -> Iterator[FoundDate]:
    """Find dates: days, months, quarters, years and spans of years, in their order.

    A year by itself is one behind a word such as "in" or "since", or in brackets; 3/4/1914
    could be two days, 2001-05 a month or four years: they are none.
    """
    for found in _DATE.finditer(text):
        span = _span(found, text, language)
        if span is not None:
            yield FoundDate(found.start(), found.end(), *span)


def _span(found: re.Match[str], text: str, language: str) -> tuple[date, date] | None:
    part = found.groupdict()
    if part["iso"]:
        return _day(part["iso"], int(part["iso_month"]), part["iso_day"])
    if part["day"]:
        return _day(part["year"], MONTHS[part["month"].lower()], part["day"])
    if part["us_day"]:
        return _day(part["us_year"], MONTHS[part["us_month"].lower()], part["us_day"])
    if part["only_month"]:
        if language == "en" and part["only_month"][0].islower():
            # Two of them are verbs too: may, march.
            return None
        return _months(part["month_year"], MONTHS[part["only_month"].lower()], 1)
    if part["dot_day"]:
        return _day(part["dot_year"], int(part["dot_month"]), part["dot_day"])
    if part["left"]:
        left, right = int(part["left"]), int(part["right"])
        if left > 12 or left == right:
            return _day(part["slash_year"], right, part["left"])
        return _day(part["slash_year"], left, part["right"]) if right > 12 else None
    if part["quarter"]:
        return _months(part["quarter_year"], 3 * int(part["quarter"]) - 2, 3)
    if part["decade"]:
        start = int(part["decade"] + "0")
        return date(start, 1, 1), date(start + 9, 12, 31)
    if part["first"]:
        first, last = part["first"], part["last"]
        if part["dash"] in "-/" and len(last) == 2 and 1 <= int(last) <= 12:
            # May of 2001, or four years.
            return None
        until = int(first[: 4 - len(last)] + last)
        return (date(int(first), 1, 1), date(until, 12, 31)) if until > int(first) else None
    return _months(part["alone"], 1, 12) if _is_year(found, text, language) else None


def _day(year: str, month: int, day: str) -> tuple[date, date] | None:
    try:
        one = date(int(year), month, int(day))
    except ValueError:
        return None
    return one, one


def _months(year: str, month: int, count: int) -> tuple[date, date]:
    last = month + count - 1
    return date(int(year), month, 1), date(int(year), last, monthrange(int(year), last)[1])


def _is_year(found: re.Match[str], text: str, language: str) -> bool:
    """Tell whether four digits are a year, by what stands before them."""
    before = text[max(0, found.start() - 24) : found.start()]
    if before.endswith("(") and text[found.end() : found.end() + 1] in (")", ",", ";"):
        return True
    word = _LAST_WORD.search(before)
    if word is None or word[1].lower() not in BEFORE_YEAR or not before[-1:].isspace():
        return False
    # What goes on with a noun, such as "in 1500 cases", counts something.
    behind = re.match(r"\s+([^\W\d_]{3,})", text[found.end() :])
    if behind is None or behind[1].lower() in _BEHIND_YEAR:
        return True
    return behind[1][0].isupper() and not language_of(language).capitalizes_nouns

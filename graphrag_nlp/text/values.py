"""Numbers, amounts and dates in texts, as typed values. Ambiguous values are left out."""

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any, NamedTuple

from graphrag_nlp.text.languages import (
    MONTHS,
    expand_pattern,
    language_of,
    read_lists,
    word_set,
)

_WORDS = read_lists("graphrag_nlp/names/data/values")
_BEFORE_YEAR, _AFTER_YEAR = word_set(_WORDS["before_year"]), word_set(_WORDS["after_year"])
_BILLIONS, _TRILLIONS = word_set(_WORDS["billions"]), word_set(_WORDS["trillions"])


def _invert_lists(name: str) -> dict[str, Any]:
    """Read a mapping from values to lists of words, and return the value of each word."""
    lists = {v: w.split() if isinstance(w, str) else w for v, w in _WORDS[name].items()}
    return {word: value for value, words in lists.items() for word in words}


_SCALES = _invert_lists("scales")
_SCALE_MARKS = _invert_lists("scale_marks")
_CURRENCIES, _UNITS = _invert_lists("currencies"), _invert_lists("units")


def _join_with_or(names: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


# Regular expressions: those of `values.yaml`, and those of the word lists.
_PATTERNS = {
    **_WORDS["patterns"],
    "CODE": _join_with_or(_WORDS["currency_codes"].split()),
    "SCALE": _join_with_or([*_SCALES, *sorted(_BILLIONS | _TRILLIONS)]),
    "MARK": _join_with_or(_SCALE_MARKS),
    "PERCENT": _join_with_or(_WORDS["percent"]),
    "CURRENCY": _join_with_or(_CURRENCIES),
    "UNIT": _join_with_or(_UNITS),
    "MONTH": _join_with_or(MONTHS),
}


def _compile_pattern(name: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(expand_pattern(_PATTERNS, name), flags)


_NUMBER_PATTERN = _compile_pattern("NUMBER", re.VERBOSE | re.IGNORECASE)
_DATE_PATTERN = _compile_pattern("DATE", re.VERBOSE | re.IGNORECASE)
# Digits in groups of three, with a comma or a full stop between the groups.
_GROUPED_DIGITS = re.compile(r"\d{1,3}(?:[.,]\d{3})*")
# Factors of abbreviations directly after the digits: $5k, €3bn.
_FACTOR_OF_LETTER = {"k": 1e3, "m": 1e6, "bn": 1e9}
_RANGE_END, _AFTER_DAY = _compile_pattern("RANGE_END"), _compile_pattern("AFTER_DAY")
# Text after an ordinal number, or after a number at the end of a sentence.
_AFTER_ORDINAL = re.compile(r"\. ?[^\W\d_]")


class FoundNumber(NamedTuple):
    """A number with its kind, unit and span.

    `kind` is number, money, percent or measure. `unit` is an ISO 4217 currency code, "%" or a unit
    of measurement; None for a plain number. Of the pair 120/80 mmHg, `value` is the first number.
    """

    start_char: int
    end_char: int
    kind: str
    value: float
    unit: str | None


def find_numbers(text: str, language: str) -> Iterator[FoundNumber]:
    """Yield the numbers in digits, parsed by the rules of the text's language.

    Ambiguous numbers (1,234 in an unknown language), possible years, parts of names (Boeing 747-8),
    times and versions are left out.
    """
    for found in _NUMBER_PATTERN.finditer(text):
        digits = found["digits"]
        value = parse_number(digits, language)
        before, short = found["before"], (found["short"] or "").lower()
        scale = (found["scale"] or "").lower()
        factor = _scale_factor(scale, language)
        if value is None or factor is None or (short and not before):
            continue
        mark = (found["mark"] or "").lower()
        value *= _FACTOR_OF_LETTER.get(short, 1.0) * _SCALE_MARKS.get(mark, 1.0) * factor
        value = -value if found["sign"] else value
        currency = before or found["after"]
        if currency:
            unit: str | None = _CURRENCIES[currency.strip().lower()]
            kind = "money"
            if before and not (scale or short) and _RANGE_END.match(text, found.end()):
                continue
        elif found["percent"]:
            kind, unit = "percent", "%"
        elif found["unit"]:
            if found["unit"] in ("M", "T"):
                # Skip a capital M or T: it means millions or a model, not metres or tonnes.
                continue
            written = found["unit"].replace("μ", "µ").replace(" ", "")
            kind, unit = "measure", _UNITS.get(found["unit"].lower(), written)
        else:
            kind, unit = "number", None
            follows = (
                pattern.match(text, found.end())
                for pattern in (_RANGE_END, _AFTER_DAY, _AFTER_ORDINAL)
            )
            is_unclear = found["sign"] or re.fullmatch(r"[12]\d{3}", digits) or any(follows)
            if is_unclear and not scale:
                continue
            if _is_part_of_name(text[max(0, found.start() - 40) : found.start()], language):
                continue
        yield FoundNumber(found.start(), found.end(), kind, value, unit)


def _is_part_of_name(before: str, language: str) -> bool:
    """Return whether a number belongs to the word before it: Latham 47, No. 1."""
    word = re.search(r"([^\W\d_]+)(\.?) ?$", before)
    if word is None or not word[1][0].isupper():
        return False
    if word[2]:
        return word[1].lower() in ("no", "nr")
    return word[1].lower() not in language_of(language).function_words


def parse_number(digits: str, language: str) -> float | None:
    """Parse digits with separators. Return None if a separator is ambiguous in the language."""
    plain = re.sub(r"[\u00a0\u202f\u2009’']", "", digits)
    if " " in plain:
        if language not in _WORDS["space_languages"]:
            return None
        plain = plain.replace(" ", "")
    marks = [mark for mark in plain if mark in ".,"]
    if not marks:
        return float(plain)
    last = marks[-1]
    head, _, tail = plain.rpartition(last)
    whole = re.sub("[.,]", "", head)
    if len(set(marks)) == 2:
        # With two kinds of separators, the last one is the decimal separator, and it occurs once.
        is_valid = marks.count(last) == 1 and _GROUPED_DIGITS.fullmatch(head)
        return float(f"{whole}.{tail}") if is_valid else None
    if len(marks) > 1:
        return float(whole + tail) if _GROUPED_DIGITS.fullmatch(plain) else None
    decimal = "," if language in _WORDS["comma_languages"] else "." if language == "en" else None
    if len(tail) != 3 or len(head) > 3 or head == "0":
        # No thousands separator: "3.5" is unambiguous; "3,5" in English may be two numbers.
        return float(f"{head}.{tail}") if last == "." or language != "en" else None
    if decimal is None:
        return None
    return float(f"{head}.{tail}") if last == decimal else float(head + tail)


def _scale_factor(word: str, language: str) -> float | None:
    """Return the factor of a word such as "million"; None if the word is ambiguous."""
    if language not in _WORDS["languages_of_scales"].get(word, [language]):
        return None
    if word in _BILLIONS or word in _TRILLIONS:
        if language == "en":
            return 1e9 if word in _BILLIONS else 1e12
        if language in _WORDS["long_scale_languages"]:
            return 1e12 if word in _BILLIONS else 1e18
        return None
    return float(_SCALES.get(word, 1.0))


_WORD_AFTER = re.compile(r"\s+([^\W\d_]{3,})")
_WORD_BEFORE = re.compile(r"([^\W\d_][\w']*)\W{0,2}$")


class FoundDate(NamedTuple):
    """A date as an inclusive range of days, with its span in the text."""

    start_char: int
    end_char: int
    first: date
    last: date


def find_dates(text: str, language: str) -> Iterator[FoundDate]:
    """Yield the dates of a text in order: days, months, quarters, years and ranges of years.

    A year alone is a date only in brackets or after a word such as "in". Ambiguous dates, such as
    3/4/1914 and 2001-05, are left out.
    """
    for found in _DATE_PATTERN.finditer(text):
        span = _parse_date_range(found, text, language)
        if span is not None:
            yield FoundDate(found.start(), found.end(), *span)


def _parse_date_range(found: re.Match[str], text: str, language: str) -> tuple[date, date] | None:
    part = found.groupdict()
    for kind in ("iso_", "", "us_", "dot_"):
        if day := part[f"{kind}day"]:
            month = part[f"{kind}month"].lower()
            return range_of_day(part[f"{kind}year"], MONTHS.get(month) or int(month), day)
    if part["only_month"]:
        if language == "en" and part["only_month"][0].islower():
            # "may" and "march" in lower case are verbs.
            return None
        return range_of_months(part["month_year"], MONTHS[part["only_month"].lower()], 1)
    if part["left"]:
        left, right = int(part["left"]), int(part["right"])
        if left > 12 or left == right:
            return range_of_day(part["slash_year"], right, part["left"])
        return range_of_day(part["slash_year"], left, part["right"]) if right > 12 else None
    if part["quarter"]:
        return range_of_months(part["quarter_year"], 3 * int(part["quarter"]) - 2, 3)
    if part["decade"]:
        start = int(part["decade"] + "0")
        return date(start, 1, 1), date(start + 9, 12, 31)
    if part["first"]:
        first, last = part["first"], part["last"]
        if part["dash"] in "-/" and len(last) == 2 and 1 <= int(last) <= 12:
            # "2001-05" is ambiguous: May 2001, or the years 2001 to 2005.
            return None
        until = int(first[: 4 - len(last)] + last)
        return (date(int(first), 1, 1), date(until, 12, 31)) if until > int(first) else None
    return range_of_months(part["alone"], 1, 12) if _is_year(found, text, language) else None


def range_of_day(year: str, month: int, day: str) -> tuple[date, date] | None:
    try:
        one = date(int(year), month, int(day))
    except ValueError:
        return None
    return one, one


def range_of_months(year: str, month: int, count: int) -> tuple[date, date]:
    last = month + count - 1
    return date(int(year), month, 1), date(int(year), last, monthrange(int(year), last)[1])


def _is_year(found: re.Match[str], text: str, language: str) -> bool:
    """Return whether four digits are a year, by the words around them."""
    before = text[max(0, found.start() - 24) : found.start()]
    if before.endswith("(") and text[found.end() : found.end() + 1] in (")", ",", ";"):
        return True
    word = _WORD_BEFORE.search(before)
    if word is None or word[1].lower() not in _BEFORE_YEAR or not before[-1:].isspace():
        return False
    # Reject a number before a noun, as in "in 1500 cases": it is a count.
    after = _WORD_AFTER.match(text, found.end())
    if after is None or after[1].lower() in _AFTER_YEAR:
        return True
    return after[1][0].isupper() and not language_of(language).capitalizes_nouns

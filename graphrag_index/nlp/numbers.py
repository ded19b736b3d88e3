"""Numbers in texts as numbers: amounts of money, percentages, measures and counts."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from graphrag_index.nlp.value_words import (
    BILLIONS,
    CODES,
    COMMA_LANGUAGES,
    CURRENCIES,
    LONG_SCALE_LANGUAGES,
    MARKS,
    PERCENT,
    SCALES,
    SPACE_LANGUAGES,
    THOUSAND_LANGUAGES,
    TRILLIONS,
    UNITS,
)
from graphrag_index.text.languages import language_of


def _any_of(words: object) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))  # type: ignore[call-overload]


_SPACE = r"[ \u00a0\u202f\u2009]"
_NUMBER = re.compile(
    rf"""
    (?<![\w.,:/#№’'+–^-])(?P<sign>[-−](?=\d)|\bminus{_SPACE})?
    (?P<before>(?:(?:US)?[$€£¥₹]|(?:{_any_of(CODES)})(?!\w)){_SPACE}?)?
    (?P<digits>\d+(?:[.,’']\d+)*(?:[\u00a0\u202f\u2009 ]\d{{3}}(?!\d))*(?:[.,]\d+)?)
    (?P<short>[kmKM](?!\w)|bn(?!\w))?
    (?:{_SPACE}(?P<scale>{_any_of([*SCALES, *BILLIONS, *TRILLIONS])})(?!\w)\.?)?
    (?:{_SPACE}?(?P<mark>{_any_of(MARKS)})(?=[€$£]))?
    (?:{_SPACE}?(?:
        (?P<percent>{_any_of(PERCENT)})
      | (?:(?:de|di){_SPACE}|d['’])?(?P<after>{_any_of(CURRENCIES)})
      | (?P<unit>{_any_of(UNITS)})
    )(?![\w²³/]))?
    (?!\w|[-–:/#’'^]\w|[.,]\d|{_SPACE}?[%′″])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SHORT = {"k": 1e3, "m": 1e6, "bn": 1e9}
# A number of which what follows tells the scale or unit: "between $5 and $10 million".
_RANGE = re.compile(
    rf"{_SPACE}(?:to|and|or|bis|und|oder|à|et|ou|a|y|o|e|do|i|tot|en|of|till){_SPACE}"
    r"(?:US)?[$€£¥₹]?\d"
)
# A day of a month whose name is not known: "12 апреля 1961", "31 February 1914".
_DAY = re.compile(rf"\.?{_SPACE}[^\W\d]+\.?,?{_SPACE}(?:1\d|20)\d\d(?!\d)")


class FoundNumber(NamedTuple):
    """A number, what it is one of, and where a text tells it.

    `kind` is number, money, percent or measure; `unit` is a currency by ISO 4217, % or a unit.
    """

    start_char: int
    end_char: int
    kind: str
    value: float
    unit: str | None


def find_numbers(text: str, language: str) -> Iterator[FoundNumber]:
    """Find numbers in digits, as the language of the text writes them.

    What could be two numbers, such as 1,234 in a text of an unknown language, and four digits
    that may be a year, are left out, as are parts of names (Boeing 747-8), times and versions.
    """
    for found in _NUMBER.finditer(text):
        digits = found["digits"]
        value = parse_number(digits, language)
        before, short = found["before"], (found["short"] or "").lower()
        if value is None or (short and not before):
            continue
        scale = (found["scale"] or "").lower()
        factor = _scale(scale, language)
        if factor is None:
            continue
        value *= _SHORT.get(short, 1.0) * MARKS.get((found["mark"] or "").lower(), 1.0) * factor
        value = -value if found["sign"] else value
        currency = before or found["after"]
        if currency:
            unit: str | None = CURRENCIES[currency.strip().lower()]
            kind = "money"
            if before and not (scale or short) and _RANGE.match(text, found.end()):
                continue
        elif found["percent"]:
            kind, unit = "percent", "%"
        elif found["unit"]:
            if found["unit"] in ("M", "T"):
                # No metres and no tonnes: millions, or a model.
                continue
            kind, unit = "measure", UNITS[found["unit"].lower()]
        else:
            kind, unit = "number", None
            # A dot behind it may make an ordinal, or end the sentence.
            ordinal = re.match(r"\. ?[^\W\d_]", text[found.end() :])
            if not scale and (_may_be_year(digits) or ordinal or found["sign"]):
                continue
            if _is_part_of_name(text[max(0, found.start() - 40) : found.start()], language):
                continue
            if not scale and (_RANGE.match(text, found.end()) or _DAY.match(text, found.end())):
                continue
        yield FoundNumber(found.start(), found.end(), kind, value, unit)


def _is_part_of_name(before: str, language: str) -> bool:
    """Tell whether a number belongs to the word before it: Latham 47, No. 1."""
    word = re.search(r"([^\W\d_]+)(\.?) ?$", before)
    if word is None or not word[1][0].isupper():
        return False
    is_numbered = word[1].lower() in ("no", "nr") and word[2]
    is_name = word[1].lower() not in language_of(language).function_words and not word[2]
    return bool(is_numbered) or is_name


def parse_number(digits: str, language: str) -> float | None:
    """Read digits with their marks; None where the language does not tell what a mark means."""
    plain = re.sub(r"[\u00a0\u202f\u2009’']", "", digits)
    if " " in plain:
        if language not in SPACE_LANGUAGES:
            return None
        plain = plain.replace(" ", "")
    marks = [mark for mark in plain if mark in ".,"]
    if not marks:
        return float(plain)
    last = marks[-1]
    head, _, tail = plain.rpartition(last)
    groups = re.split(r"[.,]", plain)
    if len(set(marks)) == 2:
        # The last mark, which is there once, is the decimal one.
        whole = re.split(r"[.,]", head)
        if marks.count(last) != 1 or not _are_groups(whole):
            return None
        return float(f"{''.join(whole)}.{tail}")
    if len(marks) > 1:
        return float("".join(groups)) if _are_groups(groups) else None
    decimal = "," if language in COMMA_LANGUAGES else "." if language == "en" else None
    if len(tail) != 3 or len(head) > 3 or head == "0":
        # No thousands: "3.5" is read the same everywhere, "3,5" in English are two numbers.
        return float(f"{head}.{tail}") if last == "." or language != "en" else None
    if decimal is None:
        return None
    return float(f"{head}.{tail}") if last == decimal else float(head + tail)


def _are_groups(groups: list[str]) -> bool:
    """Tell whether digits are parted by thousands."""
    return len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])


def _scale(word: str, language: str) -> float | None:
    """Return what a word multiplies by; None where it means something else elsewhere."""
    if word in THOUSAND_LANGUAGES and language not in THOUSAND_LANGUAGES[word]:
        return None
    if word in BILLIONS or word in TRILLIONS:
        if language == "en":
            return 1e9 if word in BILLIONS else 1e12
        if language in LONG_SCALE_LANGUAGES:
            return 1e12 if word in BILLIONS else 1e18
        return None
    return SCALES.get(word, 1.0)


def _may_be_year(digits: str) -> bool:
    return len(digits) == 4 and digits.isdigit() and digits[0] in "12"

"""Comparisons of two things that a question names: which is older, earlier, larger, cheaper."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_nlp.answers.features import Asked
from graphrag_nlp.answers.kinds import WantedAnswer, compile_words, find_answer_spans, fold_words
from graphrag_nlp.answers.statements import WORD, Passage, Statement, find_stems
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.normalize import fold, stem_word
from graphrag_nlp.text.values import parse_number

# Maximum number of words between the names of two alternatives: "or the".
MAX_WORDS_BETWEEN = 2
# Maximum number of words at the start of a statement that is about the name among them.
MAX_WORDS_TO_NAME = 12
# Number of characters around a number in which a word says what it counts.
NEAR_CHARS = 30
_YEAR = re.compile(r"\b(?:1\d{3}|20\d\d)\b")
_NUMBER = WantedAnswer("number")


class _Order(NamedTuple):
    """The criterion of a comparison: years or other numbers, the smaller or the larger."""

    in_time: bool
    smaller: bool


ORDERS = {
    "earlier": _Order(in_time=True, smaller=True),
    "later": _Order(in_time=True, smaller=False),
    "more": _Order(in_time=False, smaller=False),
    "less": _Order(in_time=False, smaller=True),
}


class Comparison(NamedTuple):
    """The name that a comparison chooses, and the numbers of the two statements that decide it."""

    name: str
    statements: tuple[int, int]


def compare_names(
    asked: Asked, statements: Sequence[Statement], passages: Sequence[Passage]
) -> Comparison | None:
    """Choose between "A or B" by the years or numbers of a statement about each of them.

    None if the question compares nothing, or if a value is missing or the two are equal.
    """
    code, plain = asked.language.code, fold_words(asked.text)
    names = _find_alternatives(asked)
    orders = [order for order in ORDERS if _words(order, code).search(plain)]
    # "Más joven" has a word for more, too.
    orders = [order for order in orders if ORDERS[order].in_time] or orders
    if names is None or len(orders) != 1:
        return None
    order = ORDERS[orders[0]]
    compared = {
        stem for words in _words(orders[0], code).findall(plain) for stem in find_stems(words)
    }
    beside = frozenset(asked.words) - find_stems(" ".join(names))
    beside = frozenset(word for word in beside if fold(word) not in compared)
    found = []
    for name in names:
        words = frozenset(WORD.findall(name.lower())) - asked.language.function_words
        about = [i for i, s in enumerate(statements) if _is_about(s, passages[i], words)]
        # What begins the document of a thing says most about it.
        titled = {i for i in about if words <= set(WORD.findall(passages[i].title.lower()))}
        about.sort(key=lambda i: (i not in titled, passages[i].start_char + statements[i].start))
        value = (
            _find_year(asked, [(i, statements[i]) for i in about], beside, bool(titled))
            if order.in_time
            else _find_number(asked, [(i, statements[i]) for i in about], beside)
        )
        if value is None:
            return None
        found.append(value)
    (one, i, is_birth), (other, j, is_other_birth) = found
    if one == other or is_birth != is_other_birth:
        return None
    if (one < other) == order.smaller:
        return Comparison(names[0], (i, j))
    return Comparison(names[1], (j, i))


def _find_alternatives(asked: Asked) -> tuple[str, str] | None:
    """Find two names of a question with "or", and few other words, between them."""
    alternatives = set(_lists()["or"].get(asked.language.code, "or").split())
    for first, second in pairwise(asked.names):
        start = asked.text.find(first) + len(first)
        between = WORD.findall(asked.text[start : asked.text.find(second, start)].lower())
        if len(between) <= MAX_WORDS_BETWEEN and alternatives & set(between):
            return first, second
    return None


def _is_about(statement: Statement, passage: Passage, words: frozenset[str]) -> bool:
    """Return whether a name stands near the start of a statement, or in the title above it."""
    start = set(WORD.findall(statement.text.lower())[:MAX_WORDS_TO_NAME])
    return bool(words) and (words <= start or words <= set(WORD.findall(passage.title.lower())))


def _find_year(
    asked: Asked, about: Sequence[tuple[int, Statement]], beside: frozenset[str], titled: bool
) -> tuple[float, int, bool] | None:
    """Find the year of a thing in the statement with most words of the question, such as "born".

    Without such a word, it must be a year of birth or begin the document of the thing. A question
    for births needs a year of birth. The third value is whether it is one.
    """
    asks_for_birth = bool(_words("born").search(fold_words(asked.text)))
    held = {i: len(beside & s.stems) for i, s in about}
    for i, statement in sorted(about, key=lambda one: -held[one[0]]):
        year = _YEAR.search(statement.text)
        if year is None:
            continue
        is_birth = _begins_life(statement.text, year) or bool(
            _words("born").search(fold_words(statement.text))
        )
        is_first = titled and i == about[0][0] and not is_birth
        if is_birth if asks_for_birth else held[i] or is_first or (is_birth and not beside):
            return float(year[0]), i, is_birth
    return None


def _begins_life(text: str, year: re.Match[str]) -> bool:
    """Return whether a year is the first of a span in brackets: (3 May 1850 - 1912), (* 1950)."""
    start = text.rfind("(", 0, year.start())
    inside = text[start + 1 :].split(")")[0]
    is_span = re.search(rf"{year[0]}\s?[-–—]|[*°]\s?[^()]*{year[0]}", inside)
    return start > text.rfind(")", 0, year.start()) and is_span is not None


def _find_number(
    asked: Asked, about: Sequence[tuple[int, Statement]], beside: frozenset[str]
) -> tuple[float, int, bool] | None:
    """Find the only number near a word of the question other than a name."""
    for i, statement in about:
        text, numbers = statement.text, set()
        for start, end, _ in find_answer_spans(text, frozenset(), _NUMBER, asked.language, {}):
            near = WORD.findall(text[max(0, start - NEAR_CHARS) : end + NEAR_CHARS].lower())
            digits = re.search(r"\d[\d.,]*", text[start:end])
            if digits and not beside.isdisjoint(map(stem_word, near)):
                numbers.add(parse_number(digits[0].rstrip(".,"), asked.language.code))
        numbers -= {None}
        if len(numbers) == 1:
            return float(numbers.pop() or 0), i, False
    return None


@cache
def _words(name: str, code: str = "") -> re.Pattern[str]:
    """Compile a list of words, or that of a language; without one, the English list."""
    words = _lists()[name]
    return compile_words(words.get(code, words["en"]) if code else words)


def _lists() -> Mapping[str, Any]:
    return read_lists("comparisons", Path(__file__).parent / "data")

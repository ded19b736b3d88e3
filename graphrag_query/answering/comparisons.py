"""Answers that compare things: which of two, whether one is older, whether both are so."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from graphrag_nlp.text.normalize import fold, stem_word
from graphrag_nlp.text.phrases import fold_question
from graphrag_query.answering.answer_spans import find_answer_spans
from graphrag_query.answering.cell_values import find_number
from graphrag_query.answering.direct_answer_words import (
    DirectAnswer,
    denies,
    find_phrases,
    find_stems_said,
    find_word,
    word_lists,
)
from graphrag_query.answering.extractive import Candidate, is_question
from graphrag_query.answering.yes_no import MAX_WORDS_TO_NAME
from graphrag_query.question.answer_kind import WantedAnswer
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD, WORD_LISTS, NameSpan, content_words

# Maximum number of words between the names of two alternatives: "or the".
MAX_WORDS_BETWEEN = 2
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


def answer_for_both(question: Question, candidates: Sequence[Candidate]) -> DirectAnswer | None:
    """Say yes to "Are A and B both C?" if a sentence about each of them says C."""
    sides = _find_joined(question, find_word("conjunctions", question))
    asked = _words_beside_names(question) - set(map(stem_word, WORD_LISTS["both"].split()))
    code = question.language.code
    asks_for_same = find_phrases("same", code).search(fold_question(question.text))
    if not sides or len(_names(question)) != 2 or not asked or asks_for_same:
        return None
    if _is_denied(question):
        return None
    evidence = []
    for span in sides:
        about = [c for c in candidates if _is_about(c, frozenset(span.words))]
        holding = [
            c
            for c in about
            if asked <= find_stems_said(c, question)
            and not denies(c.text, code)
            and not is_question(c.text)
        ]
        if not holding:
            return None
        evidence.append(holding[0])
    return DirectAnswer(find_word("affirmative", question), tuple(evidence))


def compare_things(question: Question, candidates: Sequence[Candidate]) -> DirectAnswer | None:
    """Choose between "A or B" by the years or numbers of a sentence about each of them.

    "Is A older than B?" gets yes or no.
    """
    plain = fold_question(question.text)
    code = question.language.code
    orders = [order for order in ORDERS if find_phrases(order, code).search(plain)]
    # "Más joven" has a word for more, too.
    orders = [order for order in orders if ORDERS[order].in_time] or orders
    compared = _find_compared(question) if len(orders) == 1 else None
    if not compared or _is_denied(question):
        return None
    order = ORDERS[orders[0]]
    found = [_find_value(question, span, candidates, order) for span in compared]
    valued = list(filter(None, found))
    if len(valued) < 2 or valued[0][0] == valued[1][0]:
        return None
    if order.in_time and len({_is_of_birth(candidate) for _, candidate in valued}) > 1:
        return None
    is_first = (valued[0][0] < valued[1][0]) == order.smaller
    evidence = tuple(sentence for _, sentence in (valued if is_first else reversed(valued)))
    if question.wanted.kind == "yes_no" and not find_alternatives(question):
        return DirectAnswer(
            find_word("affirmative" if is_first else "negative", question), evidence
        )
    return DirectAnswer(compared[0 if is_first else 1].text, evidence)


def _is_denied(question: Question) -> bool:
    """Return whether a question has a word such as "not" outside of names ("Life Without Ann")."""
    text = question.text
    for span in question.mentions.spans:
        text = text.replace(span.text, " ")
    return denies(text, question.language.code)


def _find_compared(question: Question) -> tuple[NameSpan, NameSpan] | None:
    """Find two names with "or" between them, or with "than" in a question for yes or no."""
    if alternatives := find_alternatives(question):
        return alternatives
    spans = [span for span in question.mentions.spans if span.words]
    if question.wanted.kind != "yes_no" or len(spans) != 2:
        return None
    than = word_lists()["than"].get(question.language.code, "")
    return _find_joined(question, than, max_words=None)


def find_alternatives(question: Question) -> tuple[NameSpan, NameSpan] | None:
    """Find the two names of a question with "or" between them."""
    return _find_joined(question, WORD_LISTS["alternatives"].get(question.language.code, "or"))


def _find_joined(
    question: Question, words: str, max_words: int | None = MAX_WORDS_BETWEEN
) -> tuple[NameSpan, NameSpan] | None:
    """Find two names of a question with one of the words, and few others, between them."""
    for first, second in pairwise(question.mentions.spans):
        start = question.text.find(first.text) + len(first.text)
        between = WORD.findall(
            question.text[start : question.text.find(second.text, start)].lower()
        )
        is_near = max_words is None or len(between) <= max_words
        if is_near and set(words.split()) & set(between):
            return first, second
    return None


def _find_value(
    question: Question, span: NameSpan, candidates: Sequence[Candidate], order: _Order
) -> tuple[float, Candidate] | None:
    """Find the year or number of a thing, and the sentence that says it."""
    words = frozenset(span.words)
    about = [c for c in candidates if _is_about(c, words)]
    # What begins the document of a thing says most about it.
    about.sort(key=lambda c: not words <= set(WORD.findall(c.title.lower())))
    if order.in_time:
        return _find_year(question, words, about)
    for candidate in about:
        value = _number_near_words(question, candidate.text)
        if value is not None:
            return value, candidate
    return None


def _find_year(
    question: Question, name: frozenset[str], about: list[Candidate]
) -> tuple[float, Candidate] | None:
    """Find the year of a thing in a sentence with most words of the question, such as "born".

    Without such a word, the sentence must begin the document of the thing. A question for births
    needs a year of birth, which also tells what is older.
    """
    plain = fold_question(question.text)
    code = question.language.code
    compared = " ".join(
        found for order in ORDERS for found in find_phrases(order, code).findall(plain)
    )
    orders = set(map(stem_word, WORD.findall(compared)))
    asked = {word for word in _words_beside_names(question) if fold(word) not in orders}
    asks_for_birth = bool(find_phrases("born").search(plain))
    titled = [c for c in about if c.prose and name <= set(WORD.findall(c.title.lower()))]
    opening = min(titled, key=lambda c: c.start_char, default=None)
    held = {c: len(asked & find_stems_said(c, question)) for c in about}
    for candidate in sorted(about, key=lambda c: -held[c]):
        year = _YEAR.search(candidate.text)
        if year is None:
            continue
        is_of_birth = _is_of_birth(candidate)
        is_other = bool(held[candidate]) or (candidate == opening and not is_of_birth)
        if is_of_birth if asks_for_birth else is_other or (is_of_birth and not asked):
            return float(year[0]), candidate
    return None


def _is_of_birth(candidate: Candidate) -> bool:
    """Return whether the first year of a sentence is that of a birth."""
    year = _YEAR.search(candidate.text)
    told = find_phrases("born").search(fold_question(candidate.text))
    return bool(told) or (year is not None and _begins_life(candidate.text, year))


def _begins_life(text: str, year: re.Match[str]) -> bool:
    """Return whether a year is the first of a span in brackets: (3 May 1850 - 1912), (* 1950)."""
    start = text.rfind("(", 0, year.start())
    inside = text[start + 1 :].split(")")[0]
    is_span = re.search(rf"{year[0]}\s?[-–—]|[*°]\s?[^()]*{year[0]}", inside)
    return start > text.rfind(")", 0, year.start()) and is_span is not None


def _number_near_words(question: Question, text: str) -> float | None:
    """Return the only number near a word of the question other than a name."""
    asked = _words_beside_names(question)
    numbers = set()
    for span in find_answer_spans(text, _NUMBER, question.language, {}):
        near = text[max(0, span.start - NEAR_CHARS) : span.end + NEAR_CHARS].lower()
        written = text[span.start : span.end]
        number = find_number(written)
        is_near = asked & {stem_word(word) for word in WORD.findall(near)}
        if number is not None and is_near and not _YEAR.fullmatch(written):
            numbers.add(number)
    return numbers.pop() if len(numbers) == 1 else None


def _names(question: Question) -> list[frozenset[str]]:
    return [frozenset(span.words) for span in question.mentions.spans if span.words]


def _words_beside_names(question: Question) -> set[str]:
    """Return the stems of the content words that are in no name, or in none that is compared.

    German nouns are written like names: "Welches Lager ist größer, Altdorf oder Neustadt?".
    """
    spans = _find_compared(question) or question.mentions.spans
    names = (content_words(span.text) for span in spans)
    return set(question.content_words).difference(*names)


def _is_about(candidate: Candidate, words: frozenset[str]) -> bool:
    """Return whether a name stands near the start of a sentence, or in the title above it."""
    start = WORD.findall(candidate.text.lower())[:MAX_WORDS_TO_NAME]
    return bool(words) and (
        words <= set(start) or words <= set(WORD.findall(candidate.title.lower()))
    )

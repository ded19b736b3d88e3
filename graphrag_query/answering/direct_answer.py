"""Answers in a few words: a part of a sentence, yes or no, or one of two things.

Without a decision there is no direct answer, and sentences are quoted as they are.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from graphrag_index.text.languages import Language
from graphrag_index.text.normalize import fold, stem_word
from graphrag_query.answering.agents import asks_for_agent, find_agents, is_passive
from graphrag_query.answering.answer_spans import (
    AnswerSpan,
    find_answer_spans,
    find_counted_noun,
    find_new_spans,
)
from graphrag_query.answering.asked_words import AskedWords
from graphrag_query.answering.direct_answer_words import (
    DirectAnswer,
    denies,
    find_phrases,
    find_stems_said,
    find_word,
    word_lists,
)
from graphrag_query.answering.extractive import Candidate, RankedSentence, is_question
from graphrag_query.answering.names_of_class import find_names
from graphrag_query.answering.subjects import find_subjects, personal_pronouns
from graphrag_query.answering.yes_no import MAX_WORDS_TO_NAME, answer_yes_or_no
from graphrag_query.question.answer_kind import WantedAnswer
from graphrag_query.question.cues import fold_question
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD, WORD_LISTS, NameSpan, content_words

# Minimum probability of the best sentence, among all, for a part of it to be the answer.
MIN_PROBABILITY = 0.75
# Minimum share of the question's words, weighted by rarity, in this sentence.
MIN_COVERAGE = 0.5
# Maximum number of words of an answer.
MAX_ANSWER_WORDS = 6
# Maximum number of words from a pronoun to the verb of its sentence: "She also then founded".
MAX_WORDS_TO_VERB = 3
# Kinds of answers of which one part of a sentence can be the whole.
KINDS = frozenset(
    ("number", "duration", "date", "time", "person", "place", "organization", "title")
)
# Maximum number of words between the names of two alternatives: "or the".
MAX_WORDS_BETWEEN = 2
# Number of characters around a number in which a word says what it counts.
NEAR_CHARS = 30
_YEAR = re.compile(r"\b(?:1\d{3}|20\d\d)\b")
_DIGIT = re.compile(r"\d")
# A mark between groups of three digits: 1,200 or 1.200.
_THOUSANDS = re.compile(r"(?<=\d)[.,'’\s](?=\d{3}(?!\d))")
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


def find_direct_answer(
    question: Question,
    ranked: Sequence[RankedSentence],
    candidates: Sequence[Candidate],
    types: Mapping[str, str],
) -> DirectAnswer | None:
    """Find the answer to a question in a few words; None if the evidence does not decide it.

    `ranked` has the sentences by how likely they answer, the likeliest first. `types` maps
    names of entities in lower case to their types.
    """
    if _find_alternatives(question):
        return _compare(question, candidates)
    if question.wanted.kind == "yes_no":
        both = _answer_for_both(question, candidates) or _compare(question, candidates)
        best = ranked[0]
        return both or answer_yes_or_no(
            question, best.candidate, candidates, is_translated=best.is_translated
        )
    if question.wanted.kind in KINDS:
        part = _find_part(question, ranked, types) or _find_meant(question, ranked, candidates)
        return DirectAnswer(part) if part else None
    return None


def _find_part(
    question: Question, ranked: Sequence[RankedSentence], types: Mapping[str, str]
) -> str:
    """Return the only part of the wanted kind in the best sentence, if it is far the likeliest."""
    best = ranked[0]
    scores = np.array([sentence.score for sentence in ranked])
    probability = 1 / np.exp(scores - best.score).sum()
    if probability < MIN_PROBABILITY or best.coverage < MIN_COVERAGE or not best.is_about_name:
        return ""
    text, wanted = best.candidate.text, question.wanted
    spans = find_new_spans(text, question.text, wanted, question.language, types)
    best_fit = max((span.fit for span in spans), default=0.0)
    spans = [span for span in spans if span.fit == best_fit >= 1]
    if wanted.kind == "person" and len(spans) > 1:
        spans = _keep_agents(question, text, spans)
    if len({text[span.start : span.end] for span in spans}) != 1:
        return ""
    start, end = spans[0].start, spans[0].end
    if wanted.kind in ("date", "time") and not _DIGIT.search(text[start:end]):
        # "Tonight" says little without the day on which it was said.
        return ""
    if wanted.kind == "number":
        end_of_noun = find_counted_noun(text, end, wanted, question.language)
        if not end_of_noun and not _DIGIT.search(text[start:end]):
            # "One" is seldom a number that somebody asks for.
            return ""
        end = end_of_noun or end
    if not wanted.wants_name and (qualifier := _qualifiers().search(text, 0, start)):
        # "More than a year" is no year.
        start = qualifier.start()
    part = " ".join(text[start:end].split()).strip(" .,;:")
    return part if len(part.split()) <= MAX_ANSWER_WORDS else ""


def _find_meant(
    question: Question, ranked: Sequence[RankedSentence], candidates: Sequence[Candidate]
) -> str:
    """Return the name that the subject of the best sentence stands for: "He founded Altdorf".

    The question asks who did something, and the verb stands just behind the pronoun.
    """
    best, language = ranked[0].candidate, question.language
    if not question.wanted.is_subject or ranked[0].coverage < MIN_COVERAGE:
        return ""
    if not _is_done_by_pronoun(best.text, AskedWords(question), language):
        return ""
    until = [c for c in candidates if c.text_unit == best.text_unit and c.end_char <= best.end_char]
    subject = find_subjects(until, language)[-1]
    if not subject or any(subject & set(span.words) for span in question.mentions.spans):
        return ""
    for text in (best.title, *(c.text for c in reversed(until))):
        for name in find_names(text, "", language, {}):
            if subject == set(WORD.findall(name.text.lower())):
                return name.text
    return ""


def _is_done_by_pronoun(text: str, asked: AskedWords, language: Language) -> bool:
    """Return whether the verb of a question stands just behind a pronoun near the start.

    In "He says Ann founded it" and in "It was founded", no pronoun founded anything.
    """
    clause = re.split(r"[,;:]", text)[0] if text else ""
    words = WORD.findall(clause)
    pronouns = personal_pronouns(language.code)
    place = next(
        (i for i, w in enumerate(words[:MAX_WORDS_TO_NAME]) if w.lower() in pronouns), None
    )
    if place is None:
        return False
    for word in words[place + 1 : place + 1 + MAX_WORDS_TO_VERB]:
        if word[0].isupper() or is_passive(word, language):
            return False
        if asked.find(word.lower()) in asked.beside_names:
            return True
    return False


def _keep_agents(question: Question, text: str, spans: list[AnswerSpan]) -> list[AnswerSpan]:
    """Keep who did it, if the question asks who did something."""
    language = question.language
    if not question.wanted.is_subject and not asks_for_agent(question.text, language):
        return spans
    agents = find_agents(text, AskedWords(question), language)
    return [
        span
        for span in spans
        if any(agent.start <= span.start < agent.end for agent in agents) or not agents
    ]


def _answer_for_both(question: Question, candidates: Sequence[Candidate]) -> DirectAnswer | None:
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


def _compare(question: Question, candidates: Sequence[Candidate]) -> DirectAnswer | None:
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
    if question.wanted.kind == "yes_no" and not _find_alternatives(question):
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
    if alternatives := _find_alternatives(question):
        return alternatives
    spans = [span for span in question.mentions.spans if span.words]
    if question.wanted.kind != "yes_no" or len(spans) != 2:
        return None
    than = word_lists()["than"].get(question.language.code, "")
    return _find_joined(question, than, max_words=None)


def _find_alternatives(question: Question) -> tuple[NameSpan, NameSpan] | None:
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
        found = re.search(r"\d+(?:\.\d+)?", _THOUSANDS.sub("", written).replace(",", "."))
        is_near = asked & {stem_word(word) for word in WORD.findall(near)}
        if found and is_near and not _YEAR.fullmatch(written):
            numbers.add(float(found[0]))
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


@cache
def _qualifiers() -> re.Pattern[str]:
    words = "|".join(re.escape(part.strip()) for part in word_lists()["qualifiers"].split("|"))
    return re.compile(rf"\b(?:{words})\s+$", re.IGNORECASE)

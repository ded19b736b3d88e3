"""Answers in a few words: a part of a sentence, yes or no, or one of two things.

Without a decision there is no direct answer, and sentences are quoted as they are.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from graphrag_nlp.text.languages import Language
from graphrag_nlp.text.normalize import fold
from graphrag_query.answering.agents import asks_for_agent, find_agents, is_passive
from graphrag_query.answering.answer_spans import (
    AnswerSpan,
    counts_other,
    find_answer_spans,
    find_counted_noun,
    find_new_spans,
)
from graphrag_query.answering.asked_words import AskedWords
from graphrag_query.answering.comparisons import (
    answer_for_both,
    compare_things,
    find_alternatives,
)
from graphrag_query.answering.direct_answer_words import (
    DirectAnswer,
    counts_people,
    word_lists,
)
from graphrag_query.answering.extractive import Candidate, RankedSentence
from graphrag_query.answering.names_of_class import find_names
from graphrag_query.answering.subjects import find_subjects, personal_pronouns
from graphrag_query.answering.yes_no import MAX_WORDS_TO_NAME, answer_yes_or_no
from graphrag_query.question.answer_kind import KINDS_OF_PARTS, WantedAnswer, is_plural
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD

# Minimum probability of the best sentence, among all, for a part of it to be the answer.
MIN_PROBABILITY = 0.75
# Minimum share of the question's words, weighted by rarity, in this sentence.
MIN_COVERAGE = 0.5
# Maximum number of words of an answer.
MAX_ANSWER_WORDS = 6
# Maximum number of words from a pronoun to the verb of its sentence: "She also then founded".
MAX_WORDS_TO_VERB = 3
# Minimum fit of another name that may have done what the question asks about.
MIN_FIT_OF_OTHER = 0.5
_DIGIT = re.compile(r"\d")
_NUMBER = WantedAnswer("number")


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
    if find_alternatives(question):
        return compare_things(question, candidates)
    if question.wanted.kind == "yes_no":
        both = answer_for_both(question, candidates) or compare_things(question, candidates)
        best = ranked[0]
        return both or answer_yes_or_no(
            question, best.candidate, candidates, is_translated=best.is_translated
        )
    if question.wanted.kind in KINDS_OF_PARTS:
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
    if wanted.kind == "person":
        spans = _keep_agents(question, text, spans, types)
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
        # "800 cyclists use" ends with a verb.
        has_noun = end_of_noun > 0 and is_plural(fold(text[:end_of_noun].split()[-1].lower()))
        if _is_of_other_number(question, text, start, end, has_noun=has_noun):
            return ""
    qualifiers = "place_qualifiers" if wanted.kind == "place" else "qualifiers"
    is_qualified = wanted.kind == "place" or not wanted.wants_name
    if is_qualified and (qualifier := _qualifiers(qualifiers).search(text, 0, start)):
        # "More than a year" is no year, and "north of Berlin" not in Berlin.
        start = qualifier.start()
    part = " ".join(text[start:end].split()).strip(" .,;:")
    return part if len(part.split()) <= MAX_ANSWER_WORDS else ""


def _is_of_other_number(
    question: Question, text: str, start: int, end: int, *, has_noun: bool
) -> bool:
    """Return whether all words of the question beside a number are nearer to other numbers.

    "300 people marched, and 23 were arrested" does not say how many people were arrested. The
    number and its noun are at `start` to `end`. If it stands before the noun that is asked for,
    numbers of other things do not count: "30 countries on five continents". People may be meant by
    another noun.
    """
    asked = AskedWords(question)
    spans = find_answer_spans(text, _NUMBER, question.language, {})
    others = [span for span in spans if span.end <= start or span.start >= end]
    if has_noun and not counts_people(text[start:end], question.language.code):
        others = [span for span in others if not counts_other(text, span.end)]
    words = [
        word
        for word in WORD.finditer(text)
        if asked.find(word[0].lower()) in asked.beside_names
        and (word.end() <= start or word.start() >= end)
    ]

    def distance(word: re.Match[str], first: int, last: int) -> int:
        return max(word.start() - last, first - word.end())

    return bool(words and others) and all(
        min(distance(word, other.start, other.end) for other in others) < distance(word, start, end)
        for word in words
    )


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


def _keep_agents(
    question: Question, text: str, spans: list[AnswerSpan], types: Mapping[str, str]
) -> list[AnswerSpan]:
    """Keep who did it, if the question asks who did something.

    If the sentence does not tell who, the only name in it did it, and none of several.
    """
    language = question.language
    if not question.wanted.is_subject and not asks_for_agent(question.text, language):
        return spans
    agents = find_agents(text, AskedWords(question), language)
    names = find_new_spans(text, question.text, question.wanted, language, types)
    said = {text[name.start : name.end] for name in names if name.fit >= MIN_FIT_OF_OTHER}
    if not agents and len(said) > 1:
        # "Ann praised the mill that Bob founded": the verb may be said in another word.
        return []
    return [
        span
        for span in spans
        if any(agent.start <= span.start < agent.end for agent in agents) or not agents
    ]


@cache
def _qualifiers(name: str) -> re.Pattern[str]:
    """Compile the words of a list at the end of a text, with a measure: "30 miles north of"."""
    words = "|".join(re.escape(part.strip()) for part in word_lists()[name].split("|"))
    measure = r"(?:\d[\d.,]*\s\w+\s)?" if name == "place_qualifiers" else ""
    return re.compile(rf"\b{measure}(?:{words})\s+$", re.IGNORECASE)

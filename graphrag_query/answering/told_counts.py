"""Sentences that may tell how many there are of what a question wants counted.

To say that no sentence does is worse than to say nothing, if one does: so all sentences that were
read count, also those of another name that a sentence leads to, and numbers beside the verb.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from graphrag_nlp.text.normalize import stem_word
from graphrag_nlp.text.phrases import fold_question
from graphrag_query.answering.answer_spans import (
    FIT_OF_COUNT,
    find_answer_spans,
    find_enumerations,
    find_name_words,
    find_new_spans,
)
from graphrag_query.answering.asked_words import AskedWords, find_words_beside_names
from graphrag_query.answering.direct_answer_words import counts_people, find_phrases
from graphrag_query.answering.extractive import Candidate, RankedSentence
from graphrag_query.answering.subjects import find_subjects
from graphrag_query.question.answer_kind import WantedAnswer
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD
from graphrag_query.retrieval.related_words import RelatedWords

# The list of words that stand for a number: "no children".
UNSAID_NUMBER = "unsaid_number"
# Maximum number of words between a word such as "many" or "twins" and the noun that it counts.
MAX_WORDS_FROM_VAGUE = 2
# Minimum share (0 to 1) of the words beside the names that a sentence on what is asked says.
MIN_TOLD_SHARE = 0.5
# Minimum fit of a part that may be of the wanted kind.
MIN_FIT = 1.0
# Minimum number of relations of a question that two sentences answer, of which one leads to the
# other.
MIN_RELATIONS_OF_STEPS = 2
_DATE = WantedAnswer("date")
_TIMES = re.compile(r"\s+times\b")


class ToldCounts:
    """The counts in the sentences that were read for a question.

    `evidence` has the sentences by how likely they answer, and `candidates` all that were read.
    """

    def __init__(
        self,
        question: Question,
        evidence: Sequence[RankedSentence],
        candidates: Sequence[Candidate],
    ) -> None:
        self._question, self._evidence, self._candidates = question, evidence, candidates
        self._asked = AskedWords(question)
        self._beside = find_words_beside_names(question, self._asked)
        self._nouns = frozenset(question.wanted.nouns)
        texts = [*(s.candidate.text for s in evidence), *(c.text for c in candidates)]
        words = list(dict.fromkeys(WORD.findall(" ".join(texts).lower())))
        like = _find_like_nouns(question, self._asked, words)
        self._like_nouns = self._nouns.union(map(stem_word, like))
        counted = [w for w in WORD.findall(question.text.lower()) if stem_word(w) in self._nouns]
        self._counts_people = counts_people(" ".join(counted), question.language.code)

    def is_told(self) -> bool:
        """Return whether a sentence may tell how many there are."""
        if any(self._may_tell(s.candidate, is_about_name=s.is_about_name) for s in self._evidence):
            return True
        subjects = find_subjects(self._candidates, self._question.language)
        return any(
            self._may_tell(candidate, is_about_name=self._is_about_name(candidate, subject))
            for candidate, subject in zip(self._candidates, subjects, strict=True)
        )

    def is_noun_said(self) -> bool:
        """Return whether the evidence says what is counted, or a number of what is like it."""
        return any(
            not self._like_nouns.isdisjoint(map(stem_word, WORD.findall(text.lower())))
            or not self._nouns.isdisjoint(self._asked.find_said([text]))
            or self._counts_alike(text)
            for text in (join_words(sentence.candidate) for sentence in self._evidence)
        )

    def _may_tell(self, candidate: Candidate, *, is_about_name: bool) -> bool:
        """Return whether a sentence may tell how many there are.

        It is about a name of the question or one that another sentence leads to, and has a number
        before the noun, or of people if people are wanted; or one that counts nothing else, and the
        noun or most words of the question; or one that is no date, and further words, such as the
        verb; or a list and most words; or a word such as "no" beside the noun. A sentence about
        another name has a number before the noun and further words: the number of "shops" may be
        that of another company.
        """
        text, language = candidate.text, self._question.language
        said = self._asked.find_said([join_words(candidate)]) & self._beside
        wanted = replace(self._question.wanted, nouns=tuple(self._like_nouns))
        spans = find_new_spans(text, self._question.text, wanted, language, {})
        fit = max((span.fit for span in spans), default=0.0)
        words = WORD.findall(text.lower())
        is_about_name = is_about_name or not self._led_to.isdisjoint(words)
        if fit >= FIT_OF_COUNT and (is_about_name or said - self._like_nouns):
            return True
        if not is_about_name:
            return False
        if any(_TIMES.match(text, span.end) for span in spans):
            # "Married three times" may tell how many husbands.
            fit = max(fit, MIN_FIT)
        if spans and said - self._like_nouns:
            dates = find_answer_spans(text, _DATE, language, {})
            if any(all(d.end <= s.start or s.end <= d.start for d in dates) for s in spans):
                return True
        says_most = len(said) >= MIN_TOLD_SHARE * len(self._beside)
        says_noun = not self._like_nouns.isdisjoint(map(stem_word, words))
        if (fit >= MIN_FIT and (says_most or says_noun)) or self._counts_alike(text):
            return True
        if says_most and find_enumerations(text, language):
            return True
        plain = fold_question(text)
        vague = find_phrases(UNSAID_NUMBER, language.code).finditer(plain)
        near = (
            (
                *WORD.findall(plain, 0, found.start())[-MAX_WORDS_FROM_VAGUE:],
                *WORD.findall(plain, found.end())[:MAX_WORDS_FROM_VAGUE],
            )
            for found in vague
        )
        return any(stem_word(word) in self._like_nouns for words in near for word in words)

    def _counts_alike(self, text: str) -> bool:
        """Return whether a sentence has a number of people, and the question wants some counted."""
        if not self._counts_people:
            return False
        spans = find_new_spans(
            text, self._question.text, self._question.wanted, self._question.language, {}
        )
        after = (text[span.end :].split()[:MAX_WORDS_FROM_VAGUE] for span in spans)
        code = self._question.language.code
        return any(counts_people(" ".join(words), code) for words in after)

    def _is_about_name(self, candidate: Candidate, subject: frozenset[str]) -> bool:
        """Return whether a sentence is about a name of the question, if it has some."""
        names = self._asked.stems - self._asked.beside_names
        words = {*subject, *WORD.findall(join_words(candidate).lower())}
        return not names or not names.isdisjoint(map(self._asked.find, words))

    @cached_property
    def _led_to(self) -> frozenset[str]:
        """The words of the names to which sentences about a name of the question lead.

        If the question has one relation, only the best sentence leads to others.
        """
        takes_steps = self._asked.n_relations >= MIN_RELATIONS_OF_STEPS
        leading = self._evidence if takes_steps else self._evidence[:1]
        names = (
            find_name_words(sentence.candidate.text, self._question.language)
            for sentence in leading
            if sentence.is_about_name
        )
        words = frozenset[str]().union(*(name for found in names for name in found))
        return words.difference(WORD.findall(self._question.text.lower()))


def join_words(candidate: Candidate) -> str:
    """Return the text of a sentence with the words of its layout and its title."""
    return f"{candidate.about} {candidate.text} {candidate.title}"


def _find_like_nouns(question: Question, asked: AskedWords, words: Sequence[str]) -> list[str]:
    """Return the words that mean what a question wants counted, or nearly: "sons" for "kids"."""
    nouns = set(question.wanted.nouns)
    counted = [w for w in WORD.findall(question.text.lower()) if stem_word(w) in nouns]
    matches = RelatedWords.find(counted, question.language).match(words)
    likeness = matches.max(axis=1, initial=0.0)
    return [
        word
        for word, match in zip(words, likeness, strict=True)
        if match > 0 or nouns & asked.find_related([word])
    ]

"""The words that decide direct answers, by language, and the result that they decide."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_index.text.languages import read_lists
from graphrag_index.text.normalize import stem_word
from graphrag_query.answering.extractive import Candidate
from graphrag_query.question.cues import compile_phrases, fold_question
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD


class DirectAnswer(NamedTuple):
    """An answer in a few words, and the sentences that decide it; empty: the best ones."""

    text: str
    evidence: tuple[Candidate, ...] = ()


def find_word(which: str, question: Question) -> str:
    """Return the word, or the words, of a list in the language of a question, or in English."""
    words: Mapping[str, str] = word_lists()[which]
    return words.get(question.language.code, words["en"])


@cache
def find_phrases(name: str, code: str = "") -> re.Pattern[str]:
    """Compile a list of phrases, or that of a language; without one, the English list."""
    phrases = word_lists()[name]
    return compile_phrases(phrases.get(code, phrases["en"]) if code else phrases)


def word_lists() -> Mapping[str, Any]:
    """Read the word lists."""
    return read_lists("direct_answers", Path(__file__).parent)


def denies(text: str, code: str) -> bool:
    """Return whether a text in the language of a code has a word such as "not"."""
    return bool(find_phrases("negations", code).search(fold_question(text)))


def counts_people(text: str, code: str) -> bool:
    """Return whether a text in the language of a code has a noun for people, beside relatives."""
    return bool(find_phrases("counted_people", code).search(fold_question(text)))


def find_stems_said(candidate: Candidate, question: Question) -> set[str]:
    """Return the stems of a sentence, its title and its layout, as the question writes them."""
    text = f"{candidate.title} {candidate.about} {candidate.text}"
    stems = {stem_word(word) for word in WORD.findall(text.lower())}
    return {question.stems_of_forms.get(stem, stem) for stem in stems}

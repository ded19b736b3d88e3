"""The words that decide direct answers, by language, and the result that they decide."""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_nlp.text.languages import read_lists, word_set
from graphrag_nlp.text.normalize import fold, stem_word
from graphrag_nlp.text.phrases import compile_phrases, fold_question
from graphrag_query.answering.extractive import Candidate
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD

# Minimum number of characters of a verb without its ending.
MIN_VERB_STEM = 4


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


@cache
def find_particles(code: str) -> frozenset[str]:
    """Return the particles that verbs of a language may leave at the end of a clause."""
    return word_set(word_lists()["verb_particles"].get(code, ""))


@lru_cache(maxsize=4096)
def find_verb_stems(word: str, code: str) -> frozenset[str]:
    """Return the possible stems of a regular verb in any form; empty in other languages."""
    endings = word_lists()["verb_endings"].get(code)
    if not endings:
        return frozenset()
    plain = fold(word)
    stems = {plain.removesuffix(ending) for ending in endings.split() if plain.endswith(ending)}
    stems.add(plain)
    if code == "de":
        stems |= {stem.removeprefix("ge") for stem in stems}
    return frozenset(stem for stem in stems if len(stem) >= MIN_VERB_STEM)

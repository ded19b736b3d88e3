"""The words of a question in the other languages of the documents."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cache, lru_cache
from pathlib import Path

from graphrag_nlp.text.languages import Language, read_lists
from graphrag_nlp.text.normalize import stem_word
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD

KNOWN_LANGUAGES = frozenset(("en", "de", "fr", "es"))
# Number of equal characters at the start of words in two languages that have the same origin.
COGNATE_CHARS = 6
# Minimum number of characters of a German stem that may be the end of a compound.
MIN_COMPOUND_CHARS = 6
# Maximum number of words whose terms are kept in memory.
MAX_KEPT_WORDS = 1 << 16


def foreign_words(question: Question) -> dict[str, re.Pattern[str]]:
    """Map stems of words of a question to their pattern in the other languages of the documents.

    Empty if all documents are in the language of the question.
    """
    others = question.index.main_languages - {question.language.code}
    if not others:
        return {}
    asked = set(question.content_words)
    words = [w for w in dict.fromkeys(WORD.findall(question.text.lower())) if stem_word(w) in asked]
    patterns = find_translations(words, question.language, others)
    return {
        stem_word(word): re.compile(pattern)
        for word, pattern in zip(words, patterns, strict=True)
        if pattern
    }


def foreign_languages(question: Question, text_units: Iterable[int]) -> Mapping[int, str]:
    """Map the text units in other languages than the question's to their language."""
    numbers = sorted(set(text_units))
    documents = question.index.open_mapped("text_unit_rows").rows(numbers, "document")["document"]
    rows = question.index.open_mapped("document_rows").rows(documents.to_list(), "language")
    codes = dict(zip(numbers, rows["language"], strict=True))
    others = KNOWN_LANGUAGES - {question.language.code}
    return {number: code for number, code in codes.items() if code in others}


def find_translations(words: Sequence[str], language: Language, others: Set[str]) -> list[str]:
    """Return a pattern of each word of a question in other languages; "" if none is known.

    The words are those of common subjects, those that questions often ask with, and words that
    begin alike. Only some languages are known.
    """
    if language.code not in KNOWN_LANGUAGES or others.isdisjoint(KNOWN_LANGUAGES):
        return [""] * len(words)
    patterns = []
    for word in words:
        found = find_other_languages(word, language.code, has_terms=True)
        parts = [pattern_of(code, other) for code, other in found if code in others]
        if len(word) >= COGNATE_CHARS:
            # Five equal characters are enough if the words have about the same length.
            start, n_more = re.escape(word[: COGNATE_CHARS - 1]), len(word) - COGNATE_CHARS + 1
            parts.append(rf"\b{start}\w{{{max(n_more - 2, 0)},{n_more + 2}}}\b")
        patterns.append("|".join(parts))
    return patterns


@lru_cache(MAX_KEPT_WORDS)
def find_other_languages(
    word: str, language: str, *, has_terms: bool = False
) -> Sequence[tuple[str, str]]:
    """Return (language, word) of the subjects of a word, in all languages but its own.

    With `has_terms`, the words that questions often ask with count as well.
    """
    if language not in KNOWN_LANGUAGES:
        return ()
    found = dict[tuple[str, str], None]()
    for item in _read_items(has_terms=has_terms):
        if any(_matches(word, own) for own in item.get(language, ())):
            others = ((code, w) for code, words in item.items() for w in words)
            found |= dict.fromkeys(other for other in others if other[0] != language)
    return tuple(found)


def _matches(word: str, listed: str) -> bool:
    """Return whether a word is a listed one; "*" stands for any ending, or beginning."""
    if listed.endswith("*"):
        return word.startswith(listed[:-1])
    return word.endswith(listed[1:]) if listed.startswith("*") else word == listed


@cache
def _read_items(*, has_terms: bool) -> list[dict[str, list[str]]]:
    items = read_lists("graphrag_nlp/text/data/common_subjects")["subjects"]
    if has_terms:
        items = [*items, *read_lists("question_terms", Path(__file__).parent)["terms"]]
    return [{code: words.split() for code, words in one.items()} for one in items]


def pattern_of(language: str, word: str) -> str:
    """Return a pattern of a word in a text in lower case; "*" stands for its ending."""
    plain = re.escape(word.strip("*"))
    may_be_compound = language == "de" and len(word.strip("*")) >= MIN_COMPOUND_CHARS
    start = "" if word.startswith("*") or (may_be_compound and word.endswith("*")) else r"\b"
    return f"{start}{plain}" if word.endswith("*") else rf"{start}{plain}\b"

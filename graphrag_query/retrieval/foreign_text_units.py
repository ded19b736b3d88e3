"""Text units in other languages than a question, and the words in them that match it."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from graphrag_nlp.text.languages import Language, read_lists
from graphrag_nlp.text.normalize import stem_word
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD
from graphrag_query.retrieval.index_store import RankedTextUnit

KNOWN_LANGUAGES = frozenset(("en", "de", "fr", "es"))
# Number of equal characters at the start of words in two languages that have the same origin.
COGNATE_CHARS = 6
# Minimum number of characters of a German stem that may be the end of a compound.
MIN_COMPOUND_CHARS = 6
# Maximum number of words whose terms are kept in memory.
MAX_KEPT_WORDS = 1 << 16
# Maximum number of text units in other languages that are compared with a question.
MAX_COMPARED_TEXT_UNITS = 8_192
# Minimum share (0 to 1) of the words of a question that are matched in such a text unit.
MIN_SHARE = 0.5


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


def add_foreign_text_units(
    question: Question, ranked: Sequence[RankedTextUnit]
) -> list[RankedTextUnit]:
    """Rank text units also by the words in which they match a question in another language.

    They must match at least `MIN_SHARE` of the words of the question, weighted by rarity. The
    embedding model may read one language only, so words decide: a text unit that matches all
    words gains as much as the best one has. Of a large corpus, only every n-th text unit is read.
    """
    patterns = foreign_words(question)
    if not patterns:
        return list(ranked)
    index, rows = question.index, question.index.open_mapped("text_unit_rows")
    languages = index.open_mapped("document_rows").columns("language")["language"]
    others = sorted(KNOWN_LANGUAGES - {question.language.code})
    documents = np.flatnonzero(languages.is_in(others).fill_null(value=False).to_numpy())
    bounds = zip(*(ends.tolist() for ends in rows.bounds("document", documents)), strict=True)
    numbers = [number for first, stop in bounds for number in range(first, stop)]
    numbers = numbers[:: -(-len(numbers) // MAX_COMPARED_TEXT_UNITS) or 1]
    if not numbers:
        return list(ranked)
    # Those in the language of the question gain as much by their words.
    numbers += sorted({unit.number for unit in ranked}.difference(numbers))
    texts = rows.rows(numbers, "text")["text"].str.to_lowercase()
    asked = set(question.content_words)
    held = []
    for word in dict.fromkeys(WORD.findall(question.text.lower())):
        if (stem := stem_word(word)) in asked:
            same = rf"\b{re.escape(word)}"
            pattern = f"{same}|{patterns[stem].pattern}" if stem in patterns else same
            held.append(texts.str.contains(pattern).to_numpy())
    matches = np.array(held).T
    weights = np.log1p((len(matches) + 0.5) / (matches.sum(axis=0) + 0.5))
    shares = matches @ weights / weights.sum()
    best = max((unit.score for unit in ranked), default=1.0)
    found = {unit.number: unit for unit in ranked}
    for number, share in zip(numbers, shares.tolist(), strict=True):
        if share >= MIN_SHARE and index.text_units_behind("Sources", number):
            known = found.get(number, RankedTextUnit(number, 0.0, 0.0, "match"))
            score = share * best
            found[number] = replace(
                known, score=known.score + score, own_score=known.own_score + score
            )
    return sorted(found.values(), key=lambda unit: (-unit.score, unit.number))


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

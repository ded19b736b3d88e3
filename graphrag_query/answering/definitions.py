"""Sentences that say who or what a thing is."""

import re
from collections.abc import Container, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from graphrag_index.text.languages import Language, read_lists, word_set
from graphrag_index.text.normalize import stem_word
from graphrag_query.answering.extractive import Candidate
from graphrag_query.question.question_words import WORD

# Maximum number of words at the start of a definition, with the verb: "Kate Cox is".
MAX_WORDS_BEFORE_COPULA = 8
# How surely a sentence says what a thing is, if its subject has further words and no article
# follows the verb.
SHARE_OF_LOOSE = 0.5
# Number of characters at the start of a document in which it says what its title is.
MAX_CHARS_OF_OPENING = 300
# What may stand before the first word of an entry of a dictionary, such as its pronunciation.
_BEFORE_ENTRY = re.compile(r"(?:<[^>]*>|\([^()]*\)|/[^/]*/|[^\w<(/])*")
# What may stand between a name and what it is: "Alpha (1901), a ship".
_APPOSITION = re.compile(r"(?:\s\([^()]*\))?,\s(\w+)")
# "Alpha's captain", "James' captain"; but not the elision "L'Alpha", nor "'James' is".
_GENITIVE = re.compile(r"\w['’]s\b|[sxzß]['’]\s\w")


def rate_definition(candidate: Candidate, asked: Container[str], language: Language) -> float:
    """Return how surely a sentence says what a thing is; `asked` has the stems of its name.

    "Alpha is a ship", "by Alpha, a ship", or "A ship of Ann Bell" at the start of the document
    Alpha: 1. "Alpha's captain is Ann Bell" does not: 0. "The gauge at Altdorf is read by hand" may
    tell of one thing of the kind only: `SHARE_OF_LOOSE`.
    """
    text = candidate.text
    indefinite = word_set(_lists()["indefinite"].get(language.code, ""))
    definite = language.articles or language.determiners
    verb = _verbs(language).search(text)
    if verb:
        words = WORD.findall(text[: verb.start()].lower())
        subject = [word for word in words if word not in language.function_words]
        is_near = len(words) < MAX_WORDS_BEFORE_COPULA
        if is_near and subject and stem_word(subject[0]) in asked:
            if _GENITIVE.search(text, 0, verb.start()):
                return 0.0
            is_whole = all(stem_word(word) in asked for word in subject)
            next_word = WORD.match(text, verb.end() + 1)
            has_article = next_word is not None and next_word[0].lower() in indefinite | definite
            return 1.0 if is_whole or has_article else SHARE_OF_LOOSE
    for word in WORD.finditer(text):
        if stem_word(word[0].lower()) in asked:
            beside = _APPOSITION.match(text, word.end())
            if beside and beside[1] in indefinite | definite:
                return 1.0
    title = [stem_word(word) for word in WORD.findall(candidate.title.lower())]
    if candidate.start_char > MAX_CHARS_OF_OPENING or not any(word in asked for word in title):
        return 0.0
    before = _BEFORE_ENTRY.match(text)
    first = WORD.match(text, before.end() if before else 0)
    return float(first is not None and first[0].lower() in indefinite)


@cache
def _verbs(language: Language) -> re.Pattern[str]:
    """Compile the verbs of a language; without any, a pattern that never matches."""
    verbs = "|".join([*language.copulas, *_lists()["verbs"].get(language.code, [])])
    verbs = verbs.replace(" ", r"\s+") or "(?!)"
    return re.compile(rf"\b(?:{verbs})\b", re.IGNORECASE)


def _lists() -> Mapping[str, Mapping[str, Any]]:
    return read_lists("definitions", Path(__file__).parent)

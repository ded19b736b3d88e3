"""Sentences that say who or what a thing is."""

import re
from collections.abc import Container, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from graphrag_nlp.text.languages import Language, read_lists, word_set
from graphrag_nlp.text.normalize import stem_word
from graphrag_query.answering.direct_answer_words import denies
from graphrag_query.answering.extractive import Candidate
from graphrag_query.question.question_words import WORD

# Maximum number of words at the start of a definition, with the verb: "Kate Cox is".
MAX_WORDS_BEFORE_COPULA = 8
# How surely a sentence says what a thing is, if its subject has further words and no article
# follows the verb, or if it says what happens to the thing: "A snapshot is created at night."
SHARE_OF_LOOSE = 0.5
# How surely a sentence says so that begins like "An inode has", or that names a role before the
# name: "the miller Olga Nowak".
SHARE_OF_GENERAL = 0.75
SHARE_OF_ROLE = 0.75
# Maximum number of words from an article to the name behind the role.
MAX_WORDS_OF_ROLE = 3
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
    tell of one thing of the kind only: `SHARE_OF_LOOSE`. Less sure are "A gauge shows the height"
    and "the miller Olga Nowak".
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
            happens = word_set(_lists()["happens"].get(language.code, ""))
            is_event = next_word is not None and next_word[0].lower() in happens
            # "The club was created in 1990" says where it comes from.
            is_event &= verb[0].lower() in ("is", "are")
            # "The gauge is not even old" says what it is not.
            end = next_word.end() if next_word is not None else verb.end()
            is_event |= denies(text[:end], language.code)
            is_sure = (is_whole and not is_event) or has_article
            return 1.0 if is_sure else SHARE_OF_LOOSE
    for word in WORD.finditer(text):
        if stem_word(word[0].lower()) in asked:
            beside = _APPOSITION.match(text, word.end())
            if beside and beside[1] in indefinite | definite:
                return 1.0
    if _names_role(text, asked, indefinite | definite, language):
        return SHARE_OF_ROLE
    first, *others = WORD.findall(text.lower())[:2] or [""]
    if first in indefinite and others and stem_word(others[0]) in asked:
        return SHARE_OF_GENERAL
    title = [stem_word(word) for word in WORD.findall(candidate.title.lower())]
    if candidate.start_char > MAX_CHARS_OF_OPENING or not any(word in asked for word in title):
        return 0.0
    before = _BEFORE_ENTRY.match(text)
    first = WORD.match(text, before.end() if before else 0)
    return float(first is not None and first[0].lower() in indefinite)


def _names_role(
    text: str, asked: Container[str], articles: Container[str], language: Language
) -> bool:
    """Return whether a role stands between an article and the name: "the miller Olga Nowak"."""
    tokens = list(WORD.finditer(text))
    first = next((i for i, t in enumerate(tokens) if stem_word(t[0].lower()) in asked), 0)
    if not first or not tokens[first][0][0].isupper():
        return False
    role = tokens[max(0, first - MAX_WORDS_OF_ROLE) : first]
    words = [token[0] for token in role]
    before = text[role[-1].end() : tokens[first].start()]
    is_noun = words[-1].lower() not in language.function_words
    is_noun &= language.capitalizes_nouns or words[-1].islower()
    return is_noun and before.isspace() and any(word.lower() in articles for word in words[:-1])


@cache
def _verbs(language: Language) -> re.Pattern[str]:
    """Compile the verbs of a language; without any, a pattern that never matches."""
    verbs = "|".join([*language.copulas, *_lists()["verbs"].get(language.code, [])])
    verbs = verbs.replace(" ", r"\s+") or "(?!)"
    return re.compile(rf"\b(?:{verbs})\b", re.IGNORECASE)


def _lists() -> Mapping[str, Mapping[str, Any]]:
    return read_lists("definitions", Path(__file__).parent)

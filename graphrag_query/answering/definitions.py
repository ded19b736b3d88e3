"""Sentences that say who or what a thing is."""

import re
from collections.abc import Container
from functools import cache
from pathlib import Path

from graphrag_index.text.languages import Language, read_lists, word_set
from graphrag_index.text.normalize import stem_word
from graphrag_query.answering.extractive import Candidate
from graphrag_query.question.question_words import WORD

# Maximum number of words at the start of a definition, with the verb: "Kate Cox is".
MAX_WORDS_BEFORE_COPULA = 8
# Number of characters at the start of a document in which it says what its title is.
MAX_CHARS_OF_OPENING = 300
# What may stand before the first word of an entry of a dictionary, such as its pronunciation.
_BEFORE_ENTRY = re.compile(r"(?:<[^>]*>|\([^()]*\)|/[^/]*/|[^\w<(/])*")
# What may stand between a name and what it is: "Alpha (1901), a ship".
_APPOSITION = re.compile(r"(?:\s\([^()]*\))?,\s(\w+)")
_GENITIVE = re.compile(r"\w['’]s?\b")


def defines(candidate: Candidate, asked: Container[str], language: Language) -> bool:
    """Return whether a sentence says what a thing is; `asked` has the stems of its name.

    "Alpha is a ship", "by Alpha, a ship", or "A ship of Ann Bell" at the start of the document
    Alpha. "Alpha's captain is Ann Bell" does not.
    """
    text = candidate.text
    verbs = language.copulas | _words("verbs", language.code)
    for i, verb in enumerate(WORD.finditer(text)):
        if i >= MAX_WORDS_BEFORE_COPULA:
            break
        if verb[0].lower() in verbs:
            words = WORD.findall(text[: verb.start()].lower())
            subject = [word for word in words if word not in language.function_words]
            if subject and stem_word(subject[0]) in asked:
                return not _GENITIVE.search(text, 0, verb.start())
            break
    indefinite = _words("indefinite", language.code)
    definite = language.articles or language.determiners
    for word in WORD.finditer(text):
        if stem_word(word[0].lower()) in asked:
            beside = _APPOSITION.match(text, word.end())
            if beside and beside[1] in indefinite | definite:
                return True
    title = [stem_word(word) for word in WORD.findall(candidate.title.lower())]
    if candidate.start_char > MAX_CHARS_OF_OPENING or not any(word in asked for word in title):
        return False
    before = _BEFORE_ENTRY.match(text)
    first = WORD.match(text, before.end() if before else 0)
    return first is not None and first[0].lower() in indefinite


@cache
def _words(name: str, code: str) -> frozenset[str]:
    return word_set(read_lists("definitions", Path(__file__).parent)[name].get(code, ""))

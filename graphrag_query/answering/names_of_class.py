"""Names beside which a noun stands that says what they name: "the ship Alpha"."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from graphrag_nlp.text.languages import Language, read_lists
from graphrag_nlp.text.normalize import stem_word
from graphrag_query.answering.answer_spans import VAGUE_TYPES, find_answer_spans
from graphrag_query.answering.extractive import as_one_line
from graphrag_query.question.answer_kind import WantedAnswer
from graphrag_query.question.question_words import WORD, stop_words_of

# Maximum number of words between a name and the noun that says what it is: "Alpha, a small ship".
MAX_WORDS_TO_NOUN = 5
# Minimum share (0 to 1) of the sentences with a name that say what it is, if it has another type.
MIN_SHARE_BESIDE = 1 / 30
_ANY_NAME = WantedAnswer("place")
# What may stand between a noun and a name: "the ship Alpha", "two ships, the Alpha".
_BESIDE = re.compile(r"\s*(?:,\s*(?:the|die|der|das|le|la|les|el|los|las)\s)?[\"“„«]?")
_GENITIVE = re.compile(r"['’]s?\b")


class Name(NamedTuple):
    """A name, on one line, and its place in a text."""

    start: int
    end: int
    text: str


def find_names(text: str, noun: str, language: Language, types: Mapping[str, str]) -> list[Name]:
    """Find the names in a text. A noun (its stem) at their start does not belong to them."""
    names = []
    for start, end, _ in find_answer_spans(text, _ANY_NAME, language, types):
        first = WORD.match(text, start, end)
        second = WORD.search(text, first.end(), end) if first else None
        if first and second and stem_word(first[0].lower()) == noun:
            # "Schiff Alpha": German nouns are written like names.
            start = second.start()
        names.append(Name(start, end, as_one_line(text[start:end])))
    return names


def follows_preposition(text: str, name: Name, language: Language) -> bool:
    """Return whether a preposition stands before a name and its article."""
    before = WORD.findall(text[: name.start].lower())[-2:]
    if before and before[-1] in language.determiners:
        before = before[:-1]
    return bool(before) and before[-1] in _joints_of(language)


def _joints_of(language: Language) -> frozenset[str]:
    """Return the prepositions of a language, and words such as "of" and "by"."""
    joints = language.place_prepositions | language.other_prepositions
    return joints | listed_words("agents", language.code)


def find_names_of_class(
    texts: Collection[str], noun: str, language: Language, types: Mapping[str, str]
) -> set[str]:
    """Find names that the noun stands beside: "the ship Alpha", "The Alpha was a small ship".

    Sentences that begin with "The Alpha" and go on with "the ship" say the same, if nothing else is
    known of the name. What has another type needs more of such sentences, or one of each kind, and
    persons need such as "Alpha, a small ship": in "on the ship Ann cooked", Ann is no ship. `noun`
    is a stem; the names are in lower case.
    """
    beside_of: Counter[str] = Counter()
    again: Counter[str] = Counter()
    definite = language.articles | language.determiners
    for text in texts:
        tokens = list(WORD.finditer(text))
        nouns = [i for i, token in enumerate(tokens) if stem_word(token[0].lower()) == noun]
        names = find_names(text, noun, language, types) if nouns else []
        for i in nouns:
            place = tokens[i]
            if _GENITIVE.match(text, place.end()):
                continue
            after = [name for name in names if name.start >= place.end()][:1]
            before = [name for name in names if name.end <= place.start()]
            beside = [
                name
                for name in after
                if types.get(name.text.lower()) != "person"
                and _BESIDE.fullmatch(text, place.end(), name.start)
            ]
            if before and not _is_compound(text, place.end(), language):
                beside += [n for n in before[-1:] if _defines(text, n, place.start(), language)]
            is_again = i > 1 and all(tokens[j][0].lower() in definite for j in (0, i - 1))
            if is_again and before and before[0].start == tokens[1].start():
                again[before[0].text.lower()] += 1
            beside_of.update({name.text.lower() for name in beside})
    lowered = [as_one_line(text).lower() for text in texts] if beside_of else []
    found = {name for name, n in again.items() if n > 1 and types.get(name) in VAGUE_TYPES}
    for name, n_beside in beside_of.items():
        n_texts = sum(name in text for text in lowered)
        is_often = n_beside >= MIN_SHARE_BESIDE * n_texts
        if types.get(name) in VAGUE_TYPES or is_often or again[name]:
            found.add(name)
    return found


def _is_compound(text: str, end: int, language: Language) -> bool:
    """Return whether another noun may follow: an "expedition member" is no expedition."""
    after = re.match(r"\s([a-z]\w*)", text[end:])
    return after is not None and after[1] not in stop_words_of(language) | _joints_of(language)


def _defines(text: str, name: Name, place: int, language: Language) -> bool:
    """Return whether a noun at a place says what a name before is: "Alpha, a small ship".

    "Ann Bell, the cook of the ship" is none.
    """
    gap = text[name.end : place]
    words = WORD.findall(gap.lower())
    if not 1 < len(words) <= MAX_WORDS_TO_NOUN or not _joints_of(language).isdisjoint(words):
        return False
    if words[0] in language.copulas:
        return words[1] in language.determiners
    return (
        gap.lstrip()[:1] in (",", "(")
        and words[0] in language.determiners | language.articles
        and not follows_preposition(text, name, language)
    )


@cache
def listed_words(name: str, code: str) -> frozenset[str]:
    """Return the words of a list for gathered lists in a language; none in other languages."""
    lists = read_lists("gathered_lists", Path(__file__).parent)
    return frozenset(lists[name].get(code, "").split())

"""Subjects of sentences, also those of pronouns, and the questions to which sentences reply."""

from collections.abc import Container, Sequence
from functools import cache
from pathlib import Path

from graphrag_nlp.text.languages import Language, read_lists, word_set
from graphrag_query.answering.extractive import Candidate
from graphrag_query.question.question_words import WORD, stop_words_of

_LISTS = read_lists("back_references", Path(__file__).parent)
_PRONOUNS = {word: kind for kind in ("he", "she", "it", "any") for word in word_set(_LISTS[kind])}
_CONNECTIVES, _DEFINITE, _PERSONAL = (
    {code: word_set(words) for code, words in _LISTS[name].items()}
    for name in ("connectives", "definite", "personal")
)
# Maximum number of words at the start of a sentence that are searched for a connective.
MAX_WORDS_TO_CONNECTIVE = 4
# Maximum number of words before the first name of a sentence that is about this name.
MAX_WORDS_BEFORE_NAME = 6
# Maximum number of characters at the start of a sentence that are searched for this name.
MAX_CHARS_BEFORE_NAME = 120
_MARKS = "\"“”„«»'()[],;:.!?"


def find_subjects(candidates: Sequence[Candidate], language: Language) -> list[frozenset[str]]:
    """Return the words of the name that each sentence is about, in lower case.

    A sentence is about the first name near its start. A sentence without one, such as "He died in
    1910", is about the last name before it, and a pronoun for persons keeps to the name that it
    stood for. The title of the document comes before its text. The line of a speaker, or a cell of
    a table, is about what its label says: it has no subject.
    """
    stop_words = stop_words_of(language)
    everything = "\n".join(c.text for c in candidates if not c.label)
    is_inside = cache(lambda word: f" {word}" in everything)
    subjects: list[frozenset[str]] = []
    unit = -1
    names: list[frozenset[str]] = []
    last = frozenset[str]()
    meant: dict[str, frozenset[str]] = {}
    for candidate in candidates:
        if candidate.label:
            subjects.append(frozenset())
            continue
        if candidate.text_unit != unit:
            unit = candidate.text_unit
            last = frozenset(WORD.findall(candidate.title.lower()))
            names, meant = [last], {}
        words = candidate.text[:MAX_CHARS_BEFORE_NAME].split()
        kind = _find_pronoun(words, language)
        name = frozenset[str]() if kind else _first_name(words, stop_words)
        start = WORD.search(words[0]) if words else None
        if start and name == {start[0].lower()} and not is_inside(start[0]):
            # A word that has a capital only at the start of sentences: "Murió en 1910."
            name = frozenset()
        if name:
            # "Crean" is "Tom Crean", who was named before.
            last = next((full for full in reversed(names) if name < full), name)
            names.append(last)
            subject = last
        elif kind in ("he", "she"):
            other = meant.get("she" if kind == "he" else "he")
            subject = meant[kind] if last == other and kind in meant else last
            meant[kind] = subject
        else:
            subject = last
        subjects.append(subject)
    return subjects


def _find_pronoun(words: Sequence[str], language: Language) -> str | None:
    """Return the kind of a pronoun that begins a sentence, or that stands before its first name.

    "However, he left Queensland" is not about Queensland.
    """
    personal = _PERSONAL.get(language.code, ())
    for i, word in enumerate(words[:MAX_WORDS_BEFORE_NAME]):
        plain = word.lower().strip(_MARKS)
        if (not i and plain in _PRONOUNS) or plain in personal:
            return _PRONOUNS.get(plain)
        if i and word.strip(_MARKS)[:1].isupper():
            break
    return None


def personal_pronouns(code: str) -> frozenset[str]:
    """Return the pronouns that are subjects in a language; none in other languages."""
    return _PERSONAL.get(code, frozenset())


def begins_with_thing(text: str, language: Language) -> bool:
    """Return whether a sentence begins with a pronoun of a thing named before.

    "It is old." In English "he" and "she" are persons; in other languages they may be things.
    """
    words = text.split(maxsplit=1)
    kind = _PRONOUNS.get(words[0].lower().strip(_MARKS)) if words else None
    return kind is not None and (language.code != "en" or kind not in ("he", "she"))


def refers_back(text: str, language: Language) -> bool:
    """Return whether a sentence refers to the one before.

    It begins with a pronoun, has a word such as "therefore" near its start, or begins with a
    definite article and no name: "The dark line melted."
    """
    words = text[:MAX_CHARS_BEFORE_NAME].split() or [""]
    plain = [word.lower().strip(_MARKS) for word in words[:MAX_WORDS_TO_CONNECTIVE]]
    if not _CONNECTIVES.get(language.code, frozenset()).isdisjoint(plain):
        return True
    if plain[0] in _PRONOUNS:
        return True
    is_definite = plain[0] in _DEFINITE.get(language.code, ())
    return is_definite and not _first_name(words, stop_words_of(language))


def _first_name(words: Sequence[str], stop_words: Container[str]) -> frozenset[str]:
    """Return the words of the first run of capitalized words, in lower case."""
    name: list[str] = []
    for i, word in enumerate(words):
        plain = word.strip(_MARKS)
        is_named = plain[:1].isupper() or (bool(name) and plain[:1].isdigit())
        if is_named and plain.lower() not in stop_words:
            name += WORD.findall(plain.lower().removesuffix("'s").removesuffix("’s"))
        elif name or i >= MAX_WORDS_BEFORE_NAME:
            break
        if name and word[-1] in ",;:.":
            break
    return frozenset(name)


def find_questions_before(candidates: Sequence[Candidate], *, in_turns: bool) -> list[int | None]:
    """Return the place of the question that each statement may reply to; None if there is none.

    It is the statement before. In a chat, each statement of a turn may reply to the last question
    in the turn before, if `in_turns` is set: not for "Who suggested tea?", which who asks answers.
    """
    found: list[int | None] = []
    asked = asked_in_turn_before = None
    for i, candidate in enumerate(candidates):
        before = candidates[i - 1] if i else candidate
        if candidate.text_unit != before.text_unit:
            asked = asked_in_turn_before = None
        elif candidate.label != before.label:
            asked, asked_in_turn_before = None, asked if before.label and in_turns else None
        is_next = bool(i) and candidate.text_unit == before.text_unit and "?" in before.text[-3:]
        found.append(i - 1 if is_next else asked_in_turn_before if candidate.label else None)
        if "?" in candidate.text[-3:]:
            asked = i
    return found

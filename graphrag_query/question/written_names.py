"""Names as a question writes them, and the forms that a name takes."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_index.text.languages import Language, detect_language, language_of
from graphrag_query.answering.sentence_ranking import ASKING, stem

# Shorter stems say too little.
MIN_STEM = 3
VOWELS = "aeiouyаеиоуыэюя"
_WORD = re.compile(r"[^\W_]+")
# What parts two words of one name: Cherry-Garrard, O'Brien, J. R. Smith, Erich von Drygalski.
_PARTICLES = "von van der den de del du la le di da dos of the bin ibn al zu"
_WITHIN_NAME = re.compile(rf"(?:[\s’'.-]+(?:{'|'.join(_PARTICLES.split())}))*(?:\s+|[’'-]|\.\s*)")
_SENTENCE_END = re.compile(r"[?!…:]|\.\s")
# Addresses: a text may name the person without them.
_TITLES = frozenset(
    (
        "mr mrs ms miss dr prof professor doctor sir lady lord captain commander lieutenant "
        "admiral general colonel major sergeant king queen prince princess emperor pope saint st "
        "president herr frau kapitän könig königin kaiser papst pan pani kapitan król królowa"
    ).split()
)
# Letters that no accent can be taken off.
_PLAIN = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ß": "ss", "æ": "ae", "œ": "oe"})


@dataclass(frozen=True)
class Name:
    """A name as the question writes it, and its words that a text must hold."""

    text: str
    words: tuple[str, ...]


def names_in(question: str) -> list[Name]:
    """Find the names in a question: runs of words that a capital marks as names.

    The first word of a sentence has its capital from its place, and in a title or in
    capitals only, every word has one: there, capitals tell nothing.
    """
    language = language_of(detect_language(question))
    plain = language.function_words | ASKING
    tokens = list(_WORD.finditer(question))
    capital = [token[0][0].isupper() for token in tokens]
    initial = [_is_initial(question, tokens, at) for at in range(len(tokens))]
    inside = [
        (token[0].lower() in plain, capital[at])
        for at, token in enumerate(tokens)
        if not initial[at] and len(token[0]) > 1
    ]
    if (True, True) in inside and (False, False) not in inside:
        return []
    names: list[list[re.Match[str]]] = []
    last = None
    for at, token in enumerate(tokens):
        if not capital[at] or initial[at]:
            continue
        gap = question[last.end() : token.start()] if last else ""
        if last and _WITHIN_NAME.fullmatch(gap):
            names[-1].append(token)
        elif token[0].lower() not in plain:
            names.append([token])
        else:
            continue
        last = token
    found = []
    for name in names:
        words = [token[0].lower() for token in name if len(token[0]) > 1]
        words = [word for word in words if word not in plain and word not in _TITLES]
        found.append(Name(question[name[0].start() : name[-1].end()], tuple(words)))
    return found


def _is_initial(question: str, tokens: Sequence[re.Match[str]], at: int) -> bool:
    if at == 0:
        return True
    before = tokens[at - 1]
    # A short word before a full stop may be an abbreviation or an initial: Prof. O'Brien.
    end = _SENTENCE_END.search(question, before.end(), tokens[at].start())
    return end is not None and (end[0][0] != "." or len(before[0]) > 4)


def forms_of(word: str, language: Language) -> set[str]:
    """Return what may be the stem of a folded word."""
    forms = {word, stem(word)}
    # An s marks the owner or several in most languages that we read.
    for ending in ("s", *map(folded, language.endings)):
        if word.endswith(ending) and len(word) - len(ending) >= MIN_STEM:
            forms.add(word.removesuffix(ending))
    for ending, end_of_stem in language.alternations:
        if word.endswith(ending := folded(ending)):
            forms.add(word.removesuffix(ending) + end_of_stem)
    # Wiedeń, Wiedniu; Павел, Павла.
    vowel = language.fleeting_vowel
    if vowel and len(word) > MIN_STEM + 1 and word[-2] == vowel and word[-3] not in VOWELS:
        forms.add(word[:-2] + word[-1])
    return {form for form in forms if len(form) >= MIN_STEM or form == word}


def folded(word: str) -> str:
    """Take the accents off a word in lower case."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFKD", word.translate(_PLAIN))
    return "".join(c for c in decomposed if not unicodedata.combining(c))

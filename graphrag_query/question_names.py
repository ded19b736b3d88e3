"""Which names of a question the documents do not hold: about those, nothing can be answered."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_index.core.languages import Language, detect_language, language_of
from graphrag_query.sentence_ranking import ASKING, stem

if TYPE_CHECKING:
    from graphrag_query.knowledge_model import KnowledgeModel

# Shorter stems say too little.
MIN_STEM = 3
# No language has longer endings of names, and few words begin alike but for these.
LONGEST_ENDING = 4
MOST_WORDS = 1_000
# Text units in which a name is looked for that stands in none of those read.
TOP_K = 5
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


def missing_names(question: str, texts: Iterable[str]) -> list[str]:
    """Return the names in a question that no text holds, as the question writes them."""
    return _missing(names_in(question), _Words(question, texts))


def unknown_names(model: "KnowledgeModel", question: str, texts: Iterable[str]) -> list[str]:
    """Return the names in a question that the documents do not hold.

    They are looked for in the texts that were read, then in the full-text index, then
    among the names and other forms of the entities.
    """
    names = names_in(question)
    words = _Words(question, texts)
    if not _missing(names, words):
        return []
    table = model.vectors("text_unit_text")
    for word in {word for name in names for word in name.words}:
        if not words.hold(word):
            words.add(table.matching(word, TOP_K, ["text"])["text"])
    if not _missing(names, words):
        return []
    words.add(_entity_words(model, [w for name in names for w in name.words if not words.hold(w)]))
    return _missing(names, words)


def not_mentioned(names: Sequence[str]) -> str:
    """Say which names the documents do not hold."""
    listed = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return f"The documents do not mention {listed}."


def _missing(names: list[Name], words: "_Words") -> list[str]:
    missing = []
    for name in names:
        unheld = [not words.hold(word) for word in name.words]
        if words.language.capitalizes_nouns:
            # A capital may mark any noun: two words together, both unheld, are a name.
            absent = len(unheld) > 1 and all(unheld)
        else:
            absent = any(unheld)
        if absent:
            missing.append(name.text)
    return list(dict.fromkeys(missing))


def _entity_words(model: "KnowledgeModel", words: Sequence[str]) -> list[str]:
    """Fetch the words of entities' names that begin as one of these."""
    table = model.map("name_words")
    found = []
    for word in map(folded, words):
        beginning = word[: max(MIN_STEM, len(word) - LONGEST_ENDING)]
        first = table.place("word", beginning)
        stop = table.place("word", beginning + "\U0010ffff", first)
        found += table.texts("word", first, min(stop, first + MOST_WORDS))
    return found


class _Words:
    """The words of texts, found again in any of their forms."""

    def __init__(self, question: str, texts: Iterable[str]) -> None:
        self.language = language_of(detect_language(question))
        self.by_beginning: dict[str, set[str]] = {}
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        for word in {word for text in texts for word in _WORD.findall(text.lower())}:
            plain = folded(word)
            self.by_beginning.setdefault(plain[:MIN_STEM], set()).add(plain)

    def hold(self, word: str) -> bool:
        """Tell whether a text holds a word, without regard to accents and endings."""
        plain = folded(word)
        near = self.by_beginning.get(plain[:MIN_STEM], set())
        if plain in near:
            return True
        forms = forms_of(plain, self.language)
        return any(forms & forms_of(other, self.language) for other in near)


def forms_of(word: str, language: Language) -> set[str]:
    """Return what may be the stem of a folded word."""
    forms = {word, stem(word)}
    # An s marks the owner or several in most languages that we read.
    for ending in ("s", *map(folded, language.endings)):
        if word.endswith(ending) and len(word) - len(ending) >= MIN_STEM:
            forms.add(word.removesuffix(ending))
    return forms


def folded(word: str) -> str:
    """Take the accents off a word in lower case."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFKD", word.translate(_PLAIN))
    return "".join(c for c in decomposed if not unicodedata.combining(c))

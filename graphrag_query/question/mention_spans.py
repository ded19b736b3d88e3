"""Names as a text writes them, and whether other texts hold them in any inflected form."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graphrag_index.text.languages import HONORIFICS, MIN_STEM, PARTICLES, RANKS, Language, stems_of
from graphrag_index.text.normalize import fold, stem
from graphrag_query.question.content_words import QUESTION_WORDS

_WORD = re.compile(r"[^\W_]+")
# Text between two words of one name: Cherry-Garrard, O'Brien, J. R. Smith, Erich von Drygalski.
_PARTICLES = "|".join(sorted(PARTICLES | {"dos", "of", "the"}))
_WITHIN_NAME = re.compile(rf"(?:[\s’'.-]+(?:{_PARTICLES}))*(?:\s+|[’'-]|\.\s*)")
_SENTENCE_END = re.compile(r"[?!…:]|\.\s")
# Forms of address: a text may name the person without them.
_TITLES = HONORIFICS | RANKS


@dataclass(frozen=True)
class NameSpan:
    """A name as a text writes it, and its words in lower case without forms of address."""

    text: str
    words: tuple[str, ...]


def name_spans(text: str, language: Language) -> list[NameSpan]:
    """Find the names in a text: runs of capitalized words.

    The first word of a sentence is capitalized anyway, and in a headline or a text in capitals
    every word is: there, capitals mark no names.
    """
    plain = language.function_words | QUESTION_WORDS
    tokens = list(_WORD.finditer(text))
    capital = [token[0][0].isupper() for token in tokens]
    initial = [_begins_sentence(text, tokens, i) for i in range(len(tokens))]
    inside = [
        (token[0].lower() in plain, capital[i])
        for i, token in enumerate(tokens)
        if not initial[i] and len(token[0]) > 1
    ]
    if (True, True) in inside and (False, False) not in inside:
        return []
    names: list[list[re.Match[str]]] = []
    last = None
    for i, token in enumerate(tokens):
        if not capital[i] or initial[i]:
            continue
        gap = text[last.end() : token.start()] if last else ""
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
        found.append(NameSpan(text[name[0].start() : name[-1].end()], tuple(words)))
    return found


def _begins_sentence(text: str, tokens: Sequence[re.Match[str]], i: int) -> bool:
    if i == 0:
        return True
    before = tokens[i - 1]
    # A short word before a full stop may be an abbreviation or an initial: Prof. O'Brien.
    end = _SENTENCE_END.search(text, before.end(), tokens[i].start())
    return end is not None and (end[0][0] != "." or len(before[0]) > 4)


def forms_of(word: str, language: Language) -> frozenset[str]:
    """Return the possible stems of a folded word, an English stem among them."""
    # In most of our languages an s marks the possessive or the plural.
    without_s = word.removesuffix("s")
    forms = stems_of(word, language) | {stem(word)}
    return forms | {without_s} if len(without_s) >= MIN_STEM else forms


class HeldWords:
    """The words of some texts, found again in any inflected form."""

    def __init__(self, texts: Iterable[str], language: Language) -> None:
        self.language = language
        self._by_prefix: dict[str, set[str]] = {}
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        """Add the words of more texts."""
        for word in {word for text in texts for word in _WORD.findall(text.lower())}:
            folded = fold(word)
            self._by_prefix.setdefault(folded[:MIN_STEM], set()).add(folded)

    def hold(self, word: str) -> bool:
        """Tell whether a text holds a word, ignoring accents and endings."""
        folded = fold(word)
        near = self._by_prefix.get(folded[:MIN_STEM], set())
        if folded in near:
            return True
        forms = forms_of(folded, self.language)
        return any(forms & forms_of(other, self.language) for other in near)

    def missing(self, names: Iterable[NameSpan]) -> list[str]:
        """Return the names that no text holds, each once."""
        return list(dict.fromkeys(name.text for name in names if self._lacks(name)))

    def _lacks(self, name: NameSpan) -> bool:
        absent = [not self.hold(word) for word in name.words]
        if self.language.capitalizes_nouns:
            # A capital may mark any noun: only two absent words together are a missing name.
            return len(absent) > 1 and all(absent)
        return any(absent)

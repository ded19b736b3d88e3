"""Where text units stand in their documents, and where they name entities and relationships."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from graphrag_index.text.sentences import split_sentences

Span = tuple[int, int]

# Lines that are put before a text unit: `title: Polar Times.`
_METADATA_LINE = re.compile(r"[^\n:]{1,100}: [^\n]*\n")
# Where a cut went through a character, its bytes come back as this.
_CUT = "\ufffd"
_WHITESPACE = str.maketrans("\t\n\v\f\r\x85\xa0\u2028\u2029\u202f", " " * 10)
_WORD = re.compile(r"\w+")
# A shorter word of a name does not stand for it.
_LEAST_LETTERS = 4
# Mentions of an entity in one text unit that are looked at, and sentences between two of them.
_MOST_MENTIONS, _MOST_SENTENCES = 16, 5


def place_in_document(text: str, document: str, earliest: int) -> int | None:
    """Find where a document has a text unit; None if it does not.

    The unit before it begins at `earliest` - 1: texts overlap, and may come again. Lines of
    metadata before the text are not in the document: the place is where it would begin with
    them, which may be below 0.
    """
    body = text
    while True:
        core = body.strip(_CUT)
        n_cut = len(body) - len(body.lstrip(_CUT))
        for start in (earliest, 0):
            at = document.find(core, start) if core else -1
            if at >= 0:
                return at - n_cut - (len(text) - len(body))
        line = _METADATA_LINE.match(body)
        if line is None or line.end() == len(body):
            return None
        body = body[line.end() :]


class Named(NamedTuple):
    """Where one text names one entity: ascending spans; `whole` if by its name."""

    spans: tuple[Span, ...]
    whole: bool


def places_of_names(text: str, titles: Sequence[str]) -> list[Named]:
    """Find where a text names each of some entities, in whatever case.

    What is part of a longer name of them is no mention. An entity whose name does not occur is
    mentioned by the longest word of its name, or else by the whole text.
    """
    folded = _folded(text)
    names = [_folded(title).strip() for title in titles]
    found: dict[str, list[Span]] = {}
    taken: list[Span] = []
    for name in sorted(set(names), key=lambda name: (-len(name), name)):
        own = [span for span in _spelt(name, folded) if not _is_within(span, taken)]
        taken += own
        found[name] = own
    places = []
    for name in names:
        spans = found[name]
        if not spans:
            # Nothing but parts of longer names is still the name.
            spans = _spelt(name, folded)
        if spans:
            places.append(Named(tuple(spans), True))
        else:
            places.append(Named((_part(name, folded) or (0, len(text)),), False))
    return places


def _folded(text: str) -> str:
    """Return a text without case and with plain spaces, as long as it was."""
    folded = text.lower().translate(_WHITESPACE)
    if len(folded) != len(text):
        # A few letters become two: these stay.
        letters = (low if len(low := letter.lower()) == 1 else letter for letter in text)
        folded = "".join(letters).translate(_WHITESPACE)
    return folded


def _spelt(name: str, text: str) -> list[Span]:
    """Find a name as whole words; STRASSE is Straße in capitals too."""
    if "ss" not in name or "\u00df" not in text:
        return list(_occurrences(name, text))
    either = re.escape(name).replace("ss", "(?:ss|\u00df)")
    spellings = {name, *re.findall(either, text)}
    return sorted(span for spelling in spellings for span in _occurrences(spelling, text))


def _occurrences(name: str, text: str) -> Iterator[Span]:
    """Find a name as whole words."""
    at = text.find(name) if name else -1
    while at >= 0:
        end = at + len(name)
        before, behind = text[at - 1 : at] if at else "", text[end : end + 1]
        inside_word = (name[0].isalnum() and _is_spaced_letter(before)) or (
            name[-1].isalnum() and _is_spaced_letter(behind)
        )
        if not inside_word:
            yield at, end
        at = text.find(name, end if not inside_word else at + 1)


def _is_spaced_letter(letter: str) -> bool:
    """Tell whether a letter goes on with a word; scripts without spaces do not show it."""
    return letter.isalnum() and letter < "\u0e00"


def _part(name: str, text: str) -> Span | None:
    words = [word for word in _WORD.findall(name) if len(word) >= _LEAST_LETTERS]
    for word in sorted(words, key=len, reverse=True):
        found = next(_occurrences(word, text), None)
        if found is not None:
            return found
    return None


def _is_within(span: Span, others: Iterable[Span]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in others)


class Sentences:
    """The sentences of one text."""

    def __init__(self, text: str) -> None:
        self._sentences = [(start, end) for start, end, _ in split_sentences(text)]

    def around(self, start: int, end: int) -> Span:
        """Extend a span to the sentences that it begins and ends in."""
        for first, last in self._sentences:
            if first <= start < last:
                start = first
            if first < end <= last:
                return start, last
        return start, end

    def between(self, one: Named, other: Named) -> Span | None:
        """Return the sentences between the two nearest mentions of two entities; None if they are
        too far from each other to prove anything.
        """
        _, start, end = min(
            (max(a[1], b[1]) - min(a[0], b[0]), min(a[0], b[0]), max(a[1], b[1]))
            for a in one.spans[:_MOST_MENTIONS]
            for b in other.spans[:_MOST_MENTIONS]
        )
        n_between = sum(first < end and start < last for first, last in self._sentences)
        return self.around(start, end) if n_between <= _MOST_SENTENCES else None

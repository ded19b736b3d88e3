"""Titles and particles in names of persons."""

from collections.abc import Sequence

from graphrag_index.text.word_lists import read_lists, word_set

_LISTS = {name: word_set(text) for name, text in read_lists("text/data/titles").items()}
HONORIFICS, RANKS = _LISTS["honorifics"], _LISTS["ranks"]
TITLE_PARTS, NAMING_TITLES = _LISTS["title_parts"], _LISTS["naming_titles"]
PARTICLES = _LISTS["particles"]
_DOTTED = _LISTS["dotted_titles"]
ABBREVIATED_TITLES = RANKS | _DOTTED | {"mt"}


def is_title(word: str) -> bool:
    """Tell whether a word stands before a person's name and says what the person is."""
    lower = word.lower()
    if lower in HONORIFICS or lower in RANKS:
        return True
    if lower.endswith(".") and (lower[:-1] in RANKS or lower[:-1] in _DOTTED):
        # M. Dupont is a title in French only; elsewhere it is an initial.
        return len(lower) > 2
    # Lieutenant-Colonel, Maj.-Gen.
    return "-" in lower and all(map(is_title, lower.split("-")))


def n_titles(name: Sequence[str]) -> int:
    """Count the titles before a name, of which one word remains at least."""
    first, titled = 0, False
    while first < len(name) - 1:
        if is_title(name[first]):
            titled = True
        elif name[first].lower() not in TITLE_PARTS:
            break
        first += 1
    # "of Peru" is no name, and a Third Class nobody's title.
    return first if titled and name[first][:1].isupper() else 0

"""Starts of names, also of those that an extracted table writes without a space before them.

Example: Petra MertensJonas Vogt, where the first name ends at a line of a table.
"""

import re
from collections.abc import Iterator
from itertools import repeat

from graphrag_nlp.names.name_words import capital_pattern, more_given_names
from graphrag_nlp.text.languages import Language

# A given name or a title in the middle of a word. Its capital is searched first: this is faster.
_GLUED = re.compile(
    r"[A-ZÄÖÜ](?<=[a-zà-ÿ].)(?:(?:(?<=D)r|(?<=P)rof)\.|[a-zà-ÿ]+(?:-[A-ZÄÖÜ]\w+)?(?= [A-ZÄÖÜ]))"
)
_PARTICLES = frozenset("de von van der den zu zur".split())
# Maximum number of characters of two words before a glued name.
_MAX_CHARS_BEFORE = 40
# Minimum number of such names behind a known given name, a particle or an initial.
MIN_CERTAIN_NAMES = 3


def find_name_starts(text: str, language: Language) -> Iterator[tuple[int, int]]:
    """Return the offset of each capital that may begin a name, and where the name must end."""
    glued = _find_glued_names(text) if language.capitalizes_nouns else []
    if not glued:
        capitals = [capital.start() for capital in capital_pattern().finditer(text)]
        return zip(capitals, repeat(len(text)), strict=False)
    return _end_at_glued_names(text, glued)


def _end_at_glued_names(text: str, glued: list[int]) -> Iterator[tuple[int, int]]:
    starts = sorted({*glued, *(found.start() for found in capital_pattern().finditer(text))})
    ends = [*glued, len(text)]
    number = 0
    for start in starts:
        while ends[number] <= start and number < len(glued):
            number += 1
        yield start, ends[number]


def _find_glued_names(text: str) -> list[int]:
    """Return where a person's full name ends inside a word, and another name begins."""
    found, n_certain = list[int](), 0
    for match in _GLUED.finditer(text):
        word, start = match.group(), match.start()
        if word[-1] != "." and word.partition("-")[0] not in more_given_names():
            continue
        opening = found[-1:] if found and start - found[-1] < _MAX_CHARS_BEFORE else []
        before = text[max(start - _MAX_CHARS_BEFORE, 0, *opening) : start].split()
        if len(before) < 2 or not (
            before[-1][0].isupper() and before[-1].replace("-", "").isalpha()
        ):
            continue
        given = before[-2]
        found.append(start)
        n_certain += given in more_given_names() or given in _PARTICLES or given.endswith(".")
    # In a table, given names may be rare.
    return found if n_certain >= MIN_CERTAIN_NAMES else []

"""Stems of names in languages that write them in several cases.

This is no stemmer: an ambiguous ending leaves several possible stems, and two words may be
forms of one name if they have a stem in common. `normalize.stem` is for words of English texts.
"""

from functools import cache, lru_cache

from graphrag_index.text.languages import Language, language_of
from graphrag_index.text.normalize import fold

# Shorter stems say too little.
MIN_STEM = 3


def stems_of(word: str, language: Language) -> frozenset[str]:
    """Return the possible stems of a word: the word without one of the endings."""
    # Parts of a double name are inflected each by themselves: Skłodowskiej-Curie.
    parts = fold(word).split(" ")
    stems = [_stems(part, language.code) for part in parts]
    if len(parts) == 1:
        return stems[0]
    combined = {""}
    for options in stems:
        combined = {f"{left} {right}" for left in combined for right in options}
    return frozenset(combined)


@lru_cache(maxsize=65_536)
def _stems(word: str, code: str) -> frozenset[str]:
    stems = {word}
    for ending in folded_endings(code):
        if word.endswith(ending) and len(word) - len(ending) >= MIN_STEM:
            stems.add(word[: len(word) - len(ending)])
    for ending, stem_end in language_of(code).alternations:
        if word.endswith(ending) and len(word) - len(ending) + len(stem_end) >= MIN_STEM:
            stems.add(word[: len(word) - len(ending)] + stem_end)
    fleeting = language_of(code).fleeting_vowel
    # Paweł, Pawła: the vowel before the last consonant comes and goes.
    if fleeting and len(word) > MIN_STEM and word[-2] == fleeting:
        stems.add(word[:-2] + word[-1])
    return frozenset(stems)


@cache
def folded_endings(code: str) -> tuple[str, ...]:
    return tuple(sorted({fold(ending) for ending in language_of(code).endings}))

"""Find the base form of words that languages with cases write in several forms.

There is no dictionary: two forms are one word if they share a stem and differ by
endings that the language knows, and the base form is the one that looks most like it.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cache

from graphrag_index.core.languages import Language, language_of
from graphrag_index.linguistics.given_names import GIVEN_NAMES

# Shorter stems say too little.
MIN_STEM = 3
# Words that begin alike are compared pair by pair; beyond so many it costs more than it tells.
MAX_GROUP = 200


def fold(text: str) -> str:
    """Fold case and accents, and turn whatever is no letter or digit into single spaces."""
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    decomposed = unicodedata.normalize("NFKD", decomposed).replace("ł", "l")
    kept = (c if c.isalnum() else " " for c in decomposed if not unicodedata.combining(c))
    return " ".join("".join(kept).split())


def base_forms(
    counts: Mapping[str, int],
    language: Language,
    openings: Collection[str] = (),
    surnames: Collection[str] = (),
) -> dict[str, str]:
    """Map every word to its base form: itself, or another of the words.

    Parameters
    ----------
    counts
        How often the corpus uses each word.
    openings
        Words that begin longer names: they may be given names that no text writes in base form.
    surnames
        Words that end longer names: Peters may then be another than Peter.
    """
    if language.genitive_s:
        return {word: _owner(word, counts, surnames) for word in counts}
    bases = {word: word for word in counts}
    if not language.endings:
        return bases
    groups: dict[str, list[str]] = defaultdict(list)
    for word in counts:
        groups[fold(word)[:MIN_STEM]].append(word)
    for group in groups.values():
        if not 1 < len(group) <= MAX_GROUP:
            continue
        group.sort(key=lambda word: (*_unlikeliness(word, language), -counts[word], word))
        stems = {word: stems_of(word, language) for word in group}
        for index, base in enumerate(group):
            if bases[base] != base:
                continue
            for word in group[index + 1 :]:
                if bases[word] == word and stems[word] & stems[base]:
                    bases[word] = base
    given = _given_stems(language.code)
    for word, base in bases.items():
        if base not in GIVEN_NAMES and (word in openings or is_oblique(base, language)):
            names = {given[stem] for stem in stems_of(base, language) if stem in given}
            if len(names) == 1:
                bases[word] = names.pop()
    return bases


def _unlikeliness(word: str, language: Language) -> tuple[bool, int]:
    """Rank words by how little they look like base forms."""
    return is_oblique(word, language), len(word)


def is_oblique(word: str, language: Language) -> bool:
    """Tell whether a word has the ending of a case other than the first."""
    return word.casefold().endswith(language.oblique)


def _owner(word: str, counts: Mapping[str, int], surnames: Collection[str]) -> str:
    """Take the s of the genitive off: Goethes, Berlins."""
    owner = word.removesuffix("s")
    if owner == word or owner not in counts or word in GIVEN_NAMES:
        return word
    return word if owner in GIVEN_NAMES and word in surnames else owner


def stems_of(word: str, language: Language) -> frozenset[str]:
    """Return what may be the stem of a word: what is left of it without one of the endings."""
    # Parts of a double name are inflected each by themselves: Skłodowskiej-Curie.
    parts = fold(word).split(" ")
    stems = [_stems(part, language.code) for part in parts]
    if len(parts) == 1:
        return stems[0]
    combined = {""}
    for options in stems:
        combined = {f"{left} {right}" for left in combined for right in options}
    return frozenset(combined)


def _stems(word: str, code: str) -> frozenset[str]:
    stems = {word}
    for ending in _folded_endings(code):
        if word.endswith(ending) and len(word) - len(ending) >= MIN_STEM:
            stems.add(word[: len(word) - len(ending)])
    fleeting = language_of(code).fleeting_vowel
    # Paweł, Pawła: the vowel before the last consonant comes and goes.
    if fleeting and len(word) > MIN_STEM and word[-2] == fleeting:
        stems.add(word[:-2] + word[-1])
    return frozenset(stems)


@cache
def _folded_endings(code: str) -> tuple[str, ...]:
    return tuple(sorted({fold(ending) for ending in language_of(code).endings}))


def is_given_name(word: str, language: Language) -> bool:
    """Tell whether a word is a known given name, in any of its cases."""
    if word in GIVEN_NAMES:
        return True
    if not language.endings:
        return False
    known = _given_stems(language.code)
    return any(stem in known for stem in stems_of(word, language))


@cache
def _given_stems(code: str) -> dict[str, str]:
    """Map the stems of given names to the names: without a final vowel, or in full."""
    stems: dict[str, str] = {}
    vowels = [fold(vowel) for vowel in "ia ja a o y i е я ий й а ь ος ης ας α".split()]
    fleeting = language_of(code).fleeting_vowel
    for name in sorted(GIVEN_NAMES):
        folded = fold(name)
        stems[folded] = name
        if fleeting and len(folded) > MIN_STEM and folded[-2] == fleeting:
            stems.setdefault(folded[:-2] + folded[-1], name)
        for vowel in vowels:
            if folded.endswith(vowel) and len(folded) - len(vowel) >= MIN_STEM:
                stems.setdefault(folded.removesuffix(vowel), name)
    return stems

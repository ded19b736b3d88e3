"""Find the base form of words in languages with cases.

There is no dictionary: two forms are one word if they share a stem and differ by
endings that the language knows, and the base form is the one that looks most like it.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cache

from graphrag_index.text.languages import MIN_STEM, Language, folded_endings, language_of, stems_of
from graphrag_index.text.normalize import fold
from graphrag_index.text.word_lists import read_lists, word_set

# Names that tell persons from places and firms of two words.
GIVEN_NAMES = frozenset().union(*map(word_set, read_lists("nlp/data/given_names").values()))
# Endings of given names with a shorter stem: Ewa, Ewy, Ewie.
_SHORT_ENDINGS = frozenset(("a", "e", "ie", "o", "ou", "u", "y"))
# Words with equal first letters are compared pairwise; larger groups are skipped.
MAX_GROUP = 200


def base_forms(
    counts: Mapping[str, int],
    language: Language,
    openings: Collection[str] = (),
    surnames: Collection[str] = (),
) -> dict[str, str]:
    """Map every word to its base form, which is one of the words.

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
    for word, base in bases.items():
        if base not in GIVEN_NAMES and (word in openings or is_oblique(base, language)):
            names = _given_names(base, language)
            # Dary are gifts, not a form of Daria, if nobody is called so. Adamem is Adam's.
            names &= counts.keys() | (names if _has_clear_case(base, language) else set())
            if len(names) == 1:
                bases[word] = names.pop()
    return bases


def _unlikeliness(word: str, language: Language) -> tuple[bool, bool, int]:
    """Rank words by how little they look like base forms."""
    return word not in GIVEN_NAMES, is_oblique(word, language), len(word)


def is_oblique(word: str, language: Language) -> bool:
    """Tell whether a word has the ending of a case other than the first."""
    return word.casefold().endswith(language.oblique)


def _has_clear_case(word: str, language: Language) -> bool:
    """Tell whether a word has an ending that few words but inflected names have."""
    ending = word.casefold().endswith
    return any(ending(oblique) for oblique in language.oblique if len(oblique) > 1)


def _owner(word: str, counts: Mapping[str, int], surnames: Collection[str]) -> str:
    """Remove the s of the genitive: Goethes, Berlins."""
    owner = word.removesuffix("s")
    if owner == word or owner not in counts or word in GIVEN_NAMES:
        return word
    return word if owner in GIVEN_NAMES and word in surnames else owner


def is_given_name(word: str, language: Language) -> bool:
    """Tell whether a word is a known given name, in any of its cases."""
    if word in GIVEN_NAMES:
        return True
    if not language.endings:
        return False
    return bool(_given_names(word, language))


def _given_names(word: str, language: Language) -> set[str]:
    """Return the given names that a word may be a form of."""
    known = _given_stems(language.code)
    names = {known[stem] for stem in stems_of(word, language) if stem in known}
    folded = fold(word)
    stem, ending = folded[: MIN_STEM - 1], folded[MIN_STEM - 1 :]
    if stem in known and ending in _SHORT_ENDINGS and ending in folded_endings(language.code):
        names.add(known[stem])
    return names


@cache
def _given_stems(code: str) -> dict[str, str]:
    """Map the stems of given names to the names: without a final vowel, or in full."""
    stems: dict[str, str] = {}
    vowels = [fold(vowel) for vowel in "a o y i e е я й а ь ος ης ας α".split()]
    fleeting = language_of(code).fleeting_vowel
    for name in sorted(GIVEN_NAMES):
        folded = fold(name)
        stems[folded] = name
        if fleeting and len(folded) > MIN_STEM and folded[-2] == fleeting:
            stems.setdefault(folded[:-2] + folded[-1], name)
        for vowel in vowels:
            short = vowel == "a" and len(folded) == MIN_STEM
            if folded.endswith(vowel) and (short or len(folded) - len(vowel) >= MIN_STEM):
                stems.setdefault(folded.removesuffix(vowel), name)
    return stems

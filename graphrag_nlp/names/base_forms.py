"""Base forms of inflected names: forms with a common stem and known endings are one word.

There is no dictionary of base forms. The form that looks most like a nominative is the base form.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cache

from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import GIVEN_NAMES, common_words
from graphrag_nlp.text import languages
from graphrag_nlp.text.languages import MIN_STEM, Language, find_stems
from graphrag_nlp.text.normalize import fold
from graphrag_nlp.text.places import large_place_names

# Endings of given names with a stem shorter than `MIN_STEM`: Ewa, Ewy, Ewie.
_SHORT_NAME_ENDINGS = frozenset(("a", "e", "ie", "o", "ou", "u", "y"))
# German genitives of organizations and laws: Waffengesetzes, Landtages, Auswärtigen Amtes.
_LONG_GENITIVE = re.compile(
    r"(?:[Gg]esetz|(?<![Gg]es)[Aa]mt|(?:undes|tadt|inister|icherheits)rat|(?:undes|and|eichs)tag"
    r"|[Vv]erband|[Gg]ericht)es$"
)
# Maximum number of words with equal first letters that are compared pairwise.
MAX_COMPARED_WORDS = 200


def find_base_forms(
    counts: Mapping[str, int],
    language: Language,
    openings: Collection[str] = (),
    surnames: Collection[str] = (),
) -> dict[str, str]:
    """Map each word to its base form. The base form is one of the words or a given name.

    `openings` are words that begin longer names. They may be given names whose base form does not
    occur in the corpus. `surnames` are words that end longer names. "Peters" in `surnames` is not
    a genitive of "Peter".
    """
    bases = {word: word for word in counts}
    if language.genitive_s:
        for word in counts:
            # Map German genitives: Goethes to Goethe, Berlins to Berlin.
            owner = word.removesuffix("s")
            is_surname = owner in GIVEN_NAMES and word in surnames
            # "Windows" is a known name: it is no genitive of "Window".
            is_own = find_known_type(word) not in ("", "person") and owner not in GIVEN_NAMES
            is_known = (owner in counts and not is_own) or (
                word not in surnames and _is_owning_place(owner, word)
            )
            if _LONG_GENITIVE.search(word):  # Gesetzes is a form of Gesetz, not of Gesetze
                bases[word] = word.removesuffix("es")
            elif is_known and word not in GIVEN_NAMES and not is_surname:
                bases[word] = owner
        return bases
    if not language.endings:
        return bases
    groups: dict[str, list[str]] = defaultdict(list)
    for word in counts:
        groups[fold(word)[:MIN_STEM]].append(word)
    for group in groups.values():
        if not 1 < len(group) <= MAX_COMPARED_WORDS:
            continue
        # Sort the words that look most like base forms first.
        group.sort(
            key=lambda word: (
                *(word not in GIVEN_NAMES, is_oblique(word, language), len(word)),
                *(-counts[word], word),
            )
        )
        stems = {word: find_stems(word, language) for word in group}
        for index, base in enumerate(group):
            if bases[base] != base:
                continue
            for word in group[index + 1 :]:
                if bases[word] == word and stems[word] & stems[base]:
                    bases[word] = base
    for word, base in bases.items():
        if base not in GIVEN_NAMES and (word in openings or is_oblique(base, language)):
            names = _find_given_names(base, language)
            # "Dary" (gifts) is a form of "Daria" only if the corpus contains "Daria". A long case
            # ending, as in "Adamem", is enough by itself: few other words have one.
            if not base.casefold().endswith(tuple(e for e in language.oblique if len(e) > 1)):
                names &= counts.keys()
            if len(names) == 1:
                bases[word] = names.pop()
    return bases


def _is_owning_place(owner: str, word: str) -> bool:
    """Return whether a German word is the genitive of a place, and no place itself: Dresdens."""
    places, lower = large_place_names(), owner.lower().replace("-", " ")
    known = lower in places or find_known_type(owner.replace("-", " ")) == "geo"
    is_place = owner != word and known and word.lower() not in places
    return is_place and lower not in common_words("de")


def is_oblique(word: str, language: Language) -> bool:
    """Return whether a word has the ending of a case other than the nominative."""
    return word.casefold().endswith(language.oblique)


def is_given_name(word: str, language: Language) -> bool:
    """Return whether a word is a known given name, in any inflected form."""
    return word in GIVEN_NAMES or bool(language.endings and _find_given_names(word, language))


def _find_given_names(word: str, language: Language) -> set[str]:
    known = _given_names_by_stem(language.code)
    names = {known[stem] for stem in find_stems(word, language) if stem in known}
    folded = fold(word)
    stem, ending = folded[: MIN_STEM - 1], folded[MIN_STEM - 1 :]
    is_short = stem in known and ending in _SHORT_NAME_ENDINGS
    if is_short and ending in languages.list_folded_endings(language.code):
        names.add(known[stem])
    return names


@cache
def _given_names_by_stem(code: str) -> dict[str, str]:
    """Map stems to given names. A stem is the whole name, or the name without its last vowel."""
    stems: dict[str, str] = {}
    vowels = [fold(vowel) for vowel in "a o y i e е я й а ь ος ης ας α".split()]
    fleeting = languages.language_of(code).fleeting_vowel
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

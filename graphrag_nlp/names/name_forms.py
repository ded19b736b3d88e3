"""Merging of the forms of one name: spellings, inflected forms, and names with a title.

Its classes are the input of all merging: the classified names, and the names in each document.
"""

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import eq

import numpy as np
import polars as pl

from graphrag_nlp.list_columns import distinct_pairs
from graphrag_nlp.names.base_forms import is_given_name, is_oblique
from graphrag_nlp.names.name_shapes import is_coded
from graphrag_nlp.names.name_words import (
    EVERYDAY_ACRONYMS,
    GIVEN_NAMES,
    TYPE_WORDS_OF_THINGS,
    is_general_organization,
    more_given_names,
)
from graphrag_nlp.text.languages import (
    NAMING_TITLES,
    PARTICLES,
    Language,
    n_titles,
    read_lists,
    word_set,
)
from graphrag_nlp.text.normalize import fold
from graphrag_nlp.text.type_words import TYPE_WORDS, TYPE_WORDS_IN_SURNAMES

# A name with at least this share of mentions after an article is a thing, not a person.
MIN_THING_SHARE = 0.25
# A name with at least this share of mentions after a preposition of place is a place.
MIN_PLACE_SHARE = 0.3
# Words before a name that make it another name: New South Wales is not South Wales.
DISTINCT_NAME_WORDS = word_set(read_lists("graphrag_nlp/names/data/words")["distinguishing"])
NO_ROLE_WORDS = DISTINCT_NAME_WORDS | TYPE_WORDS  # cannot be the role of a person
_JOINED_INITIAL = re.compile(r"[^\W\d_]\.(?=[^\W\d_]\.|$)")
_ADJECTIVE_ENDING = re.compile(r"(?<=[^\W\d_]{3})e[nmrs]?$")
# Capitalized words of headlines and titles that are in no name of a person.
_NO_SURNAMES = frozenset(("And", "At", "For", "From", "The", "With"))
Words = tuple[str, ...]
# Maps each form of a given name to its most frequent form: Mike to Michael.
_FULL_FORM: dict[str, str] = {
    form: group.split()[0]
    for group in read_lists("graphrag_nlp/names/data/words")["given_name_forms"].split("|")
    for form in group.split()
}
# Spellings of one ending of Slavic given names: Sergey, Sergei.
_SLAVIC_END = re.compile("(?:ey|ei|ej|iy|ij|ii|yi|yj|y)$")
_MIN_CHARS = 4


@dataclass(frozen=True)
class ClassifiedNames:
    """The names in all distinct spans.

    `parts` has one row per name in a span: `surface` (the number of the span), `name` (the number
    of the name), and the `offset` and `length` in characters. `bases` are the words of each name in
    base form. A share (0–1) is the part of a name's mentions next to a preposition of place, any
    preposition, an article (`determiner_share` includes articles of a noun after the name), or a
    verb for persons. `common` are the words of names that the corpus mostly writes in lower case,
    and `written_lower` those that it ever writes in lower case.
    """

    names: list[str]
    languages: list[Language]
    bases: list[tuple[str, ...]]
    parts: pl.DataFrame
    place_share: np.ndarray
    preposition_share: np.ndarray
    determiner_share: np.ndarray
    article_share: np.ndarray
    person_share: np.ndarray
    common: frozenset[str]
    written_lower: frozenset[str]
    # By type in `CUE_TYPES`: the share of the mentions beside a noun that shows the type.
    cue_shares: dict[str, np.ndarray]
    # By type in `HINT_TYPES`: the share beside another word that suggests the type.
    hint_shares: dict[str, np.ndarray]


class MergedNames:
    """Names with their words in base form, and a union-find that merges forms of one name."""

    def __init__(self, classified: ClassifiedNames, counts: list[int]) -> None:
        self.names = list(classified.names)
        self.languages = list(classified.languages)
        self.words: list[Words] = [_separate_initials(words) for words in classified.bases]
        self.counts = counts
        self.common = classified.common
        self.written_lower = classified.written_lower
        # Arrays of numbers and bytes: names are many, and each item of a list takes 8 to 40 bytes.
        self.parent = array("i", range(len(self.names)))
        self.number = {name: number for number, name in enumerate(self.names)}
        # True for names that often follow an article: articles before persons are rare. The article
        # of "the Biden administration" counts only in `has_article`.
        self.is_thing = bytearray(classified.article_share >= MIN_THING_SHARE)
        self.has_article = bytearray(classified.determiner_share >= MIN_THING_SHARE)
        self.is_place = bytearray(classified.place_share >= MIN_PLACE_SHARE)
        # True for names that sometimes follow a preposition of place, so they may not be persons.
        self.may_be_place = bytearray(classified.place_share >= MIN_PLACE_SHARE / 3)
        # True for names that occur next to a verb for persons, such as "said".
        self.has_person_verb = bytearray(classified.person_share > 0)
        # True for names beside such a verb, or beside another sign of a person: "SMITH: No."
        self.is_spoken_of = bytearray(
            (classified.person_share > 0) | (classified.cue_shares["person"] > 0)
        )
        # Pairs (word in capitals, the same word in title case) that are not merged yet.
        self.shouted: list[tuple[int, int]] = []
        # Numbers of names that are certainly names of persons.
        self.persons: set[int] = set()

    def find_root(self, name: int) -> int:
        parent = self.parent
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    def merge_names(self, name: int, into: int) -> None:
        if self.find_root(name) != self.find_root(into):
            self.parent[self.find_root(name)] = self.find_root(into)

    def merge_same_spelling(self) -> None:
        """Merge names that differ only in case, accents and punctuation."""
        spelled: dict[str, int] = {}
        # A long name in capitals gives way to the same name in title case: LONDON, London.
        shouted = np.array([name.isupper() and len(name) > 5 for name in self.names], bool)
        for number in np.lexsort((-np.array(self.counts, np.int64), shouted)).tolist():
            name = self.names[number]
            plain = name.isascii() and name.replace(" ", "").isalpha()
            key = name.casefold() if plain else fold(name) or name
            if name.isupper() and "." in name and " " not in name:
                key = "acronym " + name.casefold().replace(".", "")  # U.S. and US are one name
            elif name.isupper() and len(name) <= 5:
                key = "acronym " + key  # WHO and Who are two names
            first = spelled.setdefault(key, number)
            if shouted[number] and not shouted[first] and " " not in name:
                self.shouted.append((number, first))
            elif first != number:
                self.merge_names(number, first)

    def merge_shouted_words(self) -> None:
        """Merge words in capitals with title case, but not the place of a dateline with a person.

        Call it after short forms were merged with persons, such as "Austin" with Lloyd Austin.
        """
        persons = set(map(self.find_root, self.persons))
        for number, first in self.shouted:
            if self.is_spoken_of[number] or self.find_root(first) not in persons:
                self.merge_names(number, first)

    def merge_inflected(self) -> None:
        """Merge inflected forms of one name: names whose words have the same base forms."""
        forms: dict[tuple[str, Words], list[int]] = defaultdict(list)
        for number, words in enumerate(self.words):
            language = self.languages[number]
            if language.endings or language.genitive_s:
                forms[language.code, words].append(number)
        for (_, words), numbers in forms.items():
            base = self.number.get(" ".join(words))
            if base is None:
                first = _separate_initials(tuple(self.names[numbers[0]].split(" ")))
                # Add the base form if it is certain: in German, or if every word is inflected.
                if self.languages[numbers[0]].genitive_s or not any(map(eq, first, words)):
                    base = self._add_name(" ".join(words), words, like=numbers[0])
                else:
                    # Choose the form with the fewest case endings.
                    base = min(numbers, key=lambda n: (self._n_inflected(n), -self.counts[n], n))
            for number in numbers:
                self.merge_names(number, base)

    def merge_inflected_adjectives(self) -> None:
        """Merge German forms with inflected adjectives: "(der) Deutschen Bank" and "Deutsche Bank".

        The entity gets the nominative as its title, if the corpus contains the nominative.
        """
        forms: dict[Words, list[int]] = defaultdict(list)
        for number, words in enumerate(self.words):
            if self.languages[number].capitalizes_nouns and len(words) > 1:
                stems = tuple(
                    word if word in GIVEN_NAMES else _ADJECTIVE_ENDING.sub("", word)
                    for word in words[:-1]
                )
                if stems != words[:-1]:
                    forms[*stems, words[-1]].append(number)
        for name, numbers in list(forms.items()):
            for genitive in (name[-1] + "s", name[-1] + "es"):
                owners = forms.pop((*name[:-1], genitive), [])
                numbers.extend(n for n in owners if self._n_oblique_adjectives(n))
        for numbers in forms.values():
            # Choose the form that is most likely the nominative.
            n_oblique, counts = self._n_oblique_adjectives, self.counts
            base = min(numbers, key=lambda n: (n_oblique(n), len(self.words[n][-1]), -counts[n], n))
            for number in numbers:
                self.merge_names(number, base)

    def _n_oblique_adjectives(self, number: int) -> int:
        return sum(word.endswith(("en", "em")) for word in self.words[number][:-1])

    def _n_inflected(self, number: int) -> int:
        return sum(is_oblique(w, self.languages[number]) for w in self.names[number].split(" "))

    def merge_titled_names(self) -> None:
        """Merge "Agent Alex Mercer" into "Alex Mercer"; add the name without title if missing."""
        for number in range(len(self.names)):
            words = self.words[number]
            first = n_titles(words)
            if not first:
                # A common word before a name may be the role of a person: "Pilot Alex Mercer".
                has_role = len(words) >= 3 and words[0] in self.common
                known = self.number.get(" ".join(words[1:])) if has_role else None
                is_role = words[0].lower() not in NO_ROLE_WORDS
                if known is not None and is_role and not self.is_thing[known]:
                    self.merge_names(number, known)
                    if may_be_person(words[1:], self.common, self.languages[number]):
                        self.persons.add(known)
                continue
            is_thing = any(word.lower() in TYPE_WORDS_OF_THINGS for word in words[first:])
            if is_thing or is_general_organization(words):
                # Skip names that are not persons: King Edward VII Land, Major League Baseball.
                continue
            after = words[first]
            is_opening = after.lower() in self.languages[number].function_words
            if is_opening and len(words) - first > 1 and after not in more_given_names():
                continue  # two sentences: (said the) Professor | While Brexit
            self.persons.add(number)
            nominative = self.number.get(" ".join(("Herr", *words[1:])))
            if words[0] == "Herrn" and nominative is not None:
                self.merge_names(number, nominative)
            bare = " ".join(self.names[number].split(" ")[first:])
            known = self.number.get(bare)
            naming = any(word.lower().rstrip(".") in NAMING_TITLES for word in words[:first])
            if known is None and len(words) - first > 1 and not naming:
                known = self._add_name(bare, words[first:], number)
            if known is not None and (len(words) - first > 1 or not naming):
                self.merge_names(number, known)
                self.persons.add(known)

    def _add_name(self, name: str, words: Words, like: int) -> int:
        number = self.number[name] = len(self.names)
        self.names.append(name)
        self.words.append(words)
        self.languages.append(self.languages[like])
        self.counts.append(0)
        self.parent.append(number)
        for column in (
            *(self.is_thing, self.has_article, self.is_place, self.may_be_place),
            *(self.has_person_verb, self.is_spoken_of),
        ):
            column.append(False)
        return number


def _separate_initials(words: Words) -> Words:
    """Separate initials that are written together: "J.R. Sorley" becomes "J. R. Sorley"."""
    if len(words) == 1 or all(word.count(".") < 2 for word in words):
        return words
    return tuple(part for word in words for part in (_JOINED_INITIAL.findall(word) or [word]))


def may_be_person(words: Words, common: Collection[str], language: Language) -> bool:
    """Return whether a name can be a person's full name, by its words."""
    last = words[-1]
    if not 1 < len(words) <= 5 or (last.isupper() and len(last) > 3):
        return False
    if last.isupper() and last.lower() in EVERYDAY_ACRONYMS:
        return False  # a broadcaster: Richard Boone TV
    if words[0].isupper() and words[0].isalpha() and len(words[0]) > 2:
        return False  # "USS Missouri" is a ship
    if words[0].lower() in language.function_words and words[0] not in more_given_names():
        return False  # a new sentence: (Professor) | While Brexit
    if not _NO_SURNAMES.isdisjoint(words):
        return False  # the title of a work: Park With George
    if is_coded(" ".join(words)):
        return False
    for index, word in enumerate(words):
        lower = word.lower()
        if lower in PARTICLES and index:
            continue
        begins = word.removeprefix("al-")[:1].isupper()  # Ahmed al-Mismari
        if word in common or not begins or lower in DISTINCT_NAME_WORDS:
            return False
        is_surname = index == len(words) - 1 and lower in TYPE_WORDS_IN_SURNAMES
        if lower in TYPE_WORDS and not (is_surname and is_given_name(words[0], language)):
            return False
    return True


class NamesByDocument:
    """The distinct names of each document, as two columns in the order of first mention."""

    def __init__(self, document: np.ndarray, name: np.ndarray) -> None:
        self.document, self.name = document, name

    def __iter__(self) -> Iterator[tuple[int, list[int]]]:
        """Yield the number of each document with names, and the numbers of its names."""
        starts = np.flatnonzero(np.diff(self.document, prepend=-1))
        for start, end in pairwise([*starts.tolist(), len(self.document)]):
            yield int(self.document[start]), self.name[start:end].tolist()

    def of_documents_with(self, names: Collection[int]) -> "NamesByDocument":
        """Keep only the documents that have at least one of the given names."""
        numbers = np.fromiter(names, np.int64, len(names))
        is_wanted = np.zeros(max(numbers.max(initial=-1), self.name.max(initial=-1)) + 1, bool)
        is_wanted[numbers] = True
        has_wanted = np.zeros(self.document.max(initial=-1) + 1, bool)
        has_wanted[self.document[is_wanted[self.name]]] = True
        kept = has_wanted[self.document]
        return NamesByDocument(self.document[kept], self.name[kept])

    def count_documents(self, entity_of: Mapping[int, int]) -> Counter[int]:
        """Count the documents with each entity; `entity_of` maps some names to their entity."""
        entities = np.full(self.name.max(initial=-1) + 1, -1, np.int64)
        for name, entity in entity_of.items():
            if name < len(entities):  # a name that was added occurs in no document
                entities[name] = entity
        found = entities[self.name]
        is_wanted = found >= 0
        return Counter(distinct_pairs(self.document[is_wanted], found[is_wanted])[1].tolist())


def find_transcription_key(given_name: str) -> str:
    """Return a key that is the same for the transcriptions of a name: Alexey, Aleksei."""
    if len(given_name) < _MIN_CHARS:
        return given_name
    return _SLAVIC_END.sub("i", given_name.replace("ks", "x"))


def find_form_key(given_name: str) -> str:
    """Return a key that is the same for all forms of a given name: Michael, Mike."""
    return _FULL_FORM.get(given_name, find_transcription_key(given_name))

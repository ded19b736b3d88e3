"""Join the forms of one name: short, titled, abbreviated, inflected.

Alex, Alex Mercer and Agent Alex Mercer are one entity only where nothing else
could be meant: a short form joins the one longer name of its document, or of
the corpus, that contains it, and stays by itself if there are two.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_index.nlp.given_names import GIVEN_NAMES
from graphrag_index.nlp.inflection import is_given_name, is_oblique
from graphrag_index.nlp.name_classifier import Judged
from graphrag_index.nlp.type_keywords import KINDS, NAMING_TITLES, PARTICLES, SURNAMES, n_titles
from graphrag_index.text.languages import Language
from graphrag_index.text.normalize import fold

# A short form stands for the one that it means in this share of the documents that tell.
USUAL = 0.9
# An article or a preposition of place before so many mentions makes a thing of a name.
THING = 0.25
PLACE = 0.3
# Words that make another name of what they stand before: New South Wales is not South Wales.
_DISTINGUISHING = frozenset(
    (
        "new old great little upper lower north south east west northern southern eastern "
        "western central saint san santa mount lake cape fort port first second third royal "
        "national young"
    ).split()
)
_INITIAL = re.compile(r"[^\W\d_]\.(?=[^\W\d_]\.|$)")
_ADJECTIVE_ENDING = re.compile(r"(?<=[^\W\d_]{3})e[nmrs]?$")
Words = tuple[str, ...]


@dataclass(frozen=True)
class Variants:
    """Which entity each name stands for.

    `names` are those that were judged, and after them bare forms that the text never
    writes without their title. `entity_of[name]` holds everywhere but for the pairs in
    `in_document`, where (document, name) gives the entity. An entity is named by one
    of the names; `persons` are the entities that are people.
    """

    names: list[str]
    entity_of: np.ndarray
    in_document: dict[tuple[int, int], int]
    persons: frozenset[int]


def merge_variants(
    judged: Judged,
    counts: np.ndarray,
    documents_of: Sequence[tuple[int, int]],
    abbreviations: Sequence[tuple[int, int]],
) -> Variants:
    """Decide which names are forms of the same name.

    Parameters
    ----------
    counts
        Mentions of each name.
    documents_of
        Pairs (document, name), each once, in order.
    abbreviations
        Pairs (short, long) that the text itself explains: "Royal Geographical Society (RGS)".
    """
    merging = _Merging(judged, counts.tolist())
    merging.join_same_spelling()
    merging.join_inflected()
    merging.join_inflected_adjectives()
    merging.join_titled()
    for short, long in abbreviations:
        merging.join(short, long)
    merging.find_full_names()
    by_document = list(_by_document(documents_of))
    merging.join_initials(by_document)
    in_document = merging.join_short_forms(by_document)
    in_document |= merging.join_heads(by_document)
    root = merging.root
    return Variants(
        names=merging.names,
        entity_of=np.array([root(name) for name in range(len(merging.names))], dtype=np.int64),
        in_document={key: root(entity) for key, entity in in_document.items()},
        persons=frozenset(map(root, merging.persons)),
    )


def _by_document(documents_of: Sequence[tuple[int, int]]) -> Iterator[tuple[int, list[int]]]:
    """Group sorted pairs (document, name): each document with its names."""
    present: list[int] = []
    for index, (document, name) in enumerate(documents_of):
        present.append(name)
        if index + 1 == len(documents_of) or documents_of[index + 1][0] != document:
            yield document, present
            present = []


class _Merging:
    """Names by number, each with its words in base form, and which of them are joined."""

    def __init__(self, judged: Judged, counts: list[int]) -> None:
        self.names = list(judged.names)
        self.languages = list(judged.languages)
        self.words: list[Words] = [_apart(words) for words in judged.bases]
        self.counts = counts
        self.common = judged.common
        self.parent = list(range(len(self.names)))
        self.number = {name: number for number, name in enumerate(self.names)}
        # The article makes a thing of it; German gives one to persons too, if rarely.
        self.thing: list[bool] = (judged.determiner_share >= THING).tolist()
        self.place: list[bool] = (judged.place_share >= PLACE).tolist()
        # Used as a place often enough not to be the name of one who is not known for a person.
        self.placed: list[bool] = (judged.place_share >= PLACE / 3).tolist()
        self.told: list[bool] = (judged.person_share > 0).tolist()
        # Names that are people, beyond doubt.
        self.persons: set[int] = set()
        # What may be a person's name of several words, without its titles.
        self.full_names: dict[int, Words] = {}

    def root(self, name: int) -> int:
        parent = self.parent
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    def join(self, name: int, into: int) -> None:
        if self.root(name) != self.root(into):
            self.parent[self.root(name)] = self.root(into)

    def join_same_spelling(self) -> None:
        """Join names that differ in case, accents and punctuation only."""
        spelled: dict[str, int] = {}
        for number in sorted(range(len(self.names)), key=lambda n: (-self.counts[n], n)):
            name = self.names[number]
            plain = name.isascii() and name.replace(" ", "").isalpha()
            key = name.casefold() if plain else fold(name) or name
            if name.isupper() and "." in name and " " not in name:
                key = "acronym " + name.casefold().replace(".", "")  # U.S. is US
            elif name.isupper() and len(name) <= 5:
                key = "acronym " + key  # WHO is not Who
            first = spelled.setdefault(key, number)
            if first != number:
                self.join(number, first)

    def join_inflected(self) -> None:
        """Join the cases of a name: those whose words have the same base forms."""
        forms: dict[tuple[str, Words], list[int]] = defaultdict(list)
        for number, words in enumerate(self.words):
            language = self.languages[number]
            if language.endings or language.genitive_s:
                forms[language.code, words].append(number)
        for (_, words), numbers in forms.items():
            base = self.number.get(" ".join(words))
            if base is None and self._all_inflected(numbers[0]):
                base = self._add(" ".join(words), words, like=numbers[0])
            if base is None:
                base = min(numbers, key=lambda n: self._unlikeliness(n))
            for number in numbers:
                self.join(number, base)

    def join_inflected_adjectives(self) -> None:
        """German: join "(der) Deutschen Bank" to "Deutsche Bank", "Roten Kreuzes" to "Rote Kreuz".

        The forms differ in the endings of adjectives, and in the last word in that of the
        genitive. The first case names the entity, if the corpus has it.
        """
        forms: dict[Words, list[int]] = defaultdict(list)
        for number, words in enumerate(self.words):
            if self.languages[number].capitalizes_nouns and len(words) > 1:
                stems = tuple(map(_adjective_stem, words[:-1]))
                if stems != words[:-1]:
                    forms[*stems, words[-1]].append(number)
        for name, numbers in list(forms.items()):
            for genitive in (name[-1] + "s", name[-1] + "es"):
                owners = forms.pop((*name[:-1], genitive), [])
                numbers.extend(n for n in owners if self._n_oblique_adjectives(n))
        for numbers in forms.values():
            if len(numbers) > 1:
                base = min(numbers, key=self._unlikeliness_of_adjectives)
                for number in numbers:
                    self.join(number, base)

    def _unlikeliness_of_adjectives(self, number: int) -> tuple[int, int, int, int]:
        """Rank forms of a name by how little they look like the first case."""
        length = len(self.words[number][-1])
        return self._n_oblique_adjectives(number), length, -self.counts[number], number

    def _n_oblique_adjectives(self, number: int) -> int:
        return sum(word.endswith(("en", "em")) for word in self.words[number][:-1])

    def _all_inflected(self, number: int) -> bool:
        """Tell whether the base form of a name is known, though the text never writes it."""
        words = self.names[number].split(" ")
        if self.languages[number].genitive_s:
            return True
        return all(a != b for a, b in zip(words, self.words[number], strict=True))

    def _unlikeliness(self, number: int) -> tuple[int, int, int]:
        """Rank forms of a name by how little they look like the base form."""
        name, language = self.names[number], self.languages[number]
        oblique = sum(is_oblique(word, language) for word in name.split(" "))
        return oblique, -self.counts[number], number

    def join_titled(self) -> None:
        """Join "Agent Alex Mercer" to "Alex Mercer", which is added if the text never says it."""
        for number in range(len(self.names)):
            words = self.words[number]
            first = n_titles(words)
            if not first:
                if self._has_role(words):
                    known = self.number.get(" ".join(words[1:]))
                    if known is not None and not self.thing[known]:
                        self.join(number, known)
                        self.persons.add(known)
                continue
            if any(word.lower() in KINDS - SURNAMES for word in words[first:]):
                # King Edward VII Land is no king, Major League Baseball no officer.
                continue
            self.persons.add(number)
            bare = " ".join(self.names[number].split(" ")[first:])
            known = self.number.get(bare)
            naming = any(word.lower().rstrip(".") in NAMING_TITLES for word in words[:first])
            if known is None and len(words) - first > 1 and not naming:
                known = self._add(bare, words[first:], number)
            if known is not None and (len(words) - first > 1 or not naming):
                self.join(number, known)
                self.persons.add(known)

    def _has_role(self, words: Words) -> bool:
        """Tell whether a common word stands before what may be a person's name."""
        return (
            len(words) >= 3
            and words[0] in self.common
            and words[0].lower() not in _DISTINGUISHING
            and words[0].lower() not in KINDS
        )

    def _add(self, name: str, words: Words, like: int) -> int:
        number = self.number[name] = len(self.names)
        self.names.append(name)
        self.words.append(words)
        self.languages.append(self.languages[like])
        self.counts.append(0)
        self.parent.append(number)
        for column in (self.thing, self.place, self.placed, self.told):
            column.append(False)
        return number

    def find_full_names(self) -> None:
        """Find the full names that short forms can stand for, and who is a person for sure."""
        for number, words in enumerate(self.words):
            bare = words[n_titles(words) :]
            language = self.languages[number]
            if len(bare) == 1 and bare[0] in GIVEN_NAMES and not self.place[number]:
                self.persons.add(number)
            if len(bare) < 2 or (len(bare) == 2 and bare[0].lower() in PARTICLES):
                continue
            if number not in self.persons:
                if self.thing[number] or not _may_be_person(bare, self.common, language):
                    continue
                given = is_given_name(bare[0], language)
                if given or self.told[number] or _has_initial(bare):
                    self.persons.add(number)
            self.full_names[number] = bare

    def join_initials(self, by_document: Sequence[tuple[int, list[int]]]) -> None:
        """Join "R. F. Scott" and "Robert Scott" to the one "Robert Falcon Scott" of a document."""
        by_ends: dict[tuple[str, str], list[int]] = defaultdict(list)
        for number, words in self.full_names.items():
            by_ends[words[0][0], words[-1]].append(number)
        candidates = {
            short: long
            for group in by_ends.values()
            if 1 < len(group) <= 50
            for short in group
            if (long := [n for n in group if self._abbreviates(short, n)])
        }
        # Dudley Docker is Frank Dudley Docker.
        numbers = {words: number for number, words in self.full_names.items()}
        for number, words in self.full_names.items():
            behind = numbers.get(words[1:])
            if behind is not None and len(words) > 2:
                candidates.setdefault(behind, []).append(number)
        involved = set(candidates).union(*candidates.values())
        documents: dict[int, set[int]] = defaultdict(set)
        for document, present in by_document:
            for name in involved.intersection(present):
                documents[name].add(document)
        for short, long in candidates.items():
            together = [n for n in long if documents[n] & documents[short]]
            if len({self.root(n) for n in together}) == 1:
                self.join(short, together[0])

    def _abbreviates(self, short: int, long: int) -> bool:
        return _abbreviates(self.full_names[short], self.full_names[long])

    def join_short_forms(
        self, by_document: Sequence[tuple[int, list[int]]]
    ) -> dict[tuple[int, int], int]:
        """Let single words stand for the one full name that they are part of.

        Returns what they stand for in single documents only.
        """
        surnames: dict[str, set[int]] = defaultdict(set)
        given: dict[str, set[int]] = defaultdict(set)
        for number, words in self.full_names.items():
            surnames[words[-1]].add(number)
            if number in self.persons:
                given[words[0]].add(number)
        short: dict[int, str] = {}
        for number, words in enumerate(self.words):
            bare = words[n_titles(words) :]
            if len(bare) == 2 and bare[0].lower() in PARTICLES:
                bare = bare[1:]
            # A place or a ship that is named after a person is not the person.
            saint = words[0].lower() in ("st", "st.", "saint")
            other = (len(words) == 1 or saint) and (self.thing[number] or self.place[number])
            if len(bare) == 1 and not other and (bare[0] in surnames or bare[0] in given):
                short[number] = bare[0]
        alone = set(short.values())
        weak = self._weak_short_forms(by_document, short)
        for number in [n for n, words in self.full_names.items() if words[-1] in weak]:
            if number not in self.persons:
                del self.full_names[number]
                surnames[self.words[number][-1]].discard(number)
        self.persons |= {n for n, words in self.full_names.items() if words[-1] in alone}
        for number in self.persons & self.full_names.keys():
            given[self.full_names[number][0]].add(number)
        in_document: dict[tuple[int, int], int] = {}
        meant: dict[int, Counter[int]] = defaultdict(Counter)
        for document, present in by_document if short else ():
            for name, entity in self._meant_in(present, short):
                in_document[document, name] = entity
                meant[name][entity] += 1
        for name, word in short.items():
            self._join_short_form(name, surnames[word], given[word], meant[name])
        self.persons.update(in_document.values())
        return {k: n for k, n in in_document.items() if self.root(k[1]) != self.root(n)}

    def _weak_short_forms(
        self, by_document: Sequence[tuple[int, list[int]]], short: dict[int, str]
    ) -> set[str]:
        """Find single words that mostly stand where the longer name does not.

        They do not make a person of it: Canada is not short for Air Canada.
        """
        unsure = {
            number: words[-1]
            for number, words in self.full_names.items()
            if number not in self.persons
        }
        alone: Counter[str] = Counter()
        together: Counter[str] = Counter()
        for _, present in by_document if unsure else ():
            here = {short[name] for name in present if name in short}
            if here:
                alone.update(here)
                together.update(here & {unsure[name] for name in present if name in unsure})
        placed = {word for name, word in short.items() if self.placed[name]}
        weak = {word for word, count in alone.items() if together[word] * 2 < count}
        return weak | placed

    def _meant_in(self, present: list[int], short: dict[int, str]) -> Iterator[tuple[int, int]]:
        """Yield the short forms of a document, each with the one full name it can stand for."""
        shortened = [name for name in present if name in short]
        if not shortened:
            return
        surnames: dict[str, set[int]] = defaultdict(set)
        given: dict[str, set[int]] = defaultdict(set)
        # The entity's own name counts too: it may be written with its title only.
        for name in {*present, *map(self.root, present)} & self.full_names.keys():
            words = self.full_names[name]
            surnames[words[-1]].add(self.root(name))
            if name in self.persons:
                given[words[0]].add(self.root(name))
        for name in shortened:
            fitting = surnames.get(short[name]) or given.get(short[name]) or set()
            if len(fitting) == 1:
                yield name, min(fitting)

    def _join_short_form(
        self, name: int, surnames: set[int], given: set[int], meant: Counter[int]
    ) -> None:
        """Let a short form stand for one full name in the whole corpus, if no other fits."""
        candidates = {self.root(n) for n in surnames}
        usual = meant.most_common(1)
        if usual and usual[0][1] >= max(3, USUAL * sum(meant.values())):
            # Where several bear the name, the corpus may still nearly always mean one of them.
            candidates = {self.root(usual[0][0])}
        if not candidates:
            # Beyond its document a given name is too weak, unless it is always one person's.
            candidates = set(map(self.root, meant)) if len({*map(self.root, given)}) == 1 else set()
        mentions = sum(self.counts[n] for n in surnames | given)
        if len(candidates) == 1 and self.counts[name] <= 20 * mentions:
            self.join(name, min(candidates))
            self.persons.add(min(candidates))
        elif surnames & self.persons:
            self.persons.add(name)

    def join_heads(
        self, by_document: Sequence[tuple[int, list[int]]]
    ) -> dict[tuple[int, int], int]:
        """Let "(the) Institute" stand for the one "Radium Institute" of its document."""
        heads = {
            number: words[0]
            for number, words in enumerate(self.words)
            if len(words) == 1
            and self.root(number) == number
            and (words[0].lower() in KINDS or self.thing[number])
        }
        in_document = {}
        for document, present in by_document if heads else ():
            alone = [name for name in present if name in heads]
            if not alone:
                continue
            headed: dict[str, set[int]] = defaultdict(set)
            for name in present:
                if len(self.words[name]) > 1 and name not in self.full_names:
                    headed[_head(self.words[name])].add(self.root(name))
            for name in alone:
                fitting = headed.get(heads[name], set())
                if len(fitting) == 1:
                    in_document[document, name] = min(fitting)
        return in_document


def _apart(words: Words) -> Words:
    """Take initials apart that are written together: J.R. Sorley."""
    if len(words) == 1 or all(word.count(".") < 2 for word in words):
        return words
    return tuple(part for word in words for part in (_INITIAL.findall(word) or [word]))


def _adjective_stem(word: str) -> str:
    """German: return an adjective without its ending; other words as they are."""
    ending = _ADJECTIVE_ENDING.search(word)
    return word if ending is None or word in GIVEN_NAMES else word[: ending.start()]


def _head(words: Words) -> str:
    """Return the word of a name that says what kind of thing it names: University of Oslo."""
    particle = next((i for i, word in enumerate(words) if word.islower()), len(words))
    return words[particle - 1]


def _may_be_person(words: Words, common: Collection[str], language: Language) -> bool:
    """Tell whether a name can be a person's full name, by what it is made of."""
    if not 1 < len(words) <= 5 or (words[-1].isupper() and len(words[-1]) > 3):
        return False
    if words[0].isupper() and words[0].isalpha() and len(words[0]) > 2:
        # USS Missouri
        return False
    for index, word in enumerate(words):
        if word in PARTICLES:
            continue
        lower = word.lower()
        if word in common or not word[:1].isupper() or lower in _DISTINGUISHING:
            return False
        if lower in KINDS:
            surname = index == len(words) - 1 and lower in SURNAMES
            if not surname or not is_given_name(words[0], language):
                return False
    return True


def _has_initial(words: Words) -> bool:
    return any(len(word) == 2 and word[1] == "." for word in words[:-1])


def _abbreviates(short: Words, long: Words) -> bool:
    """Tell whether every word of `short` stands for a word of `long`, first and last alike."""
    if len(short) > len(long) or short == long:
        return False
    if len(short) == len(long) and not any(word.endswith(".") for word in short[:-1]):
        return False
    if not _stands_for(short[0], long[0]):
        return False
    position = 1
    for word in short[1:-1]:
        while position < len(long) - 1 and not _stands_for(word, long[position]):
            position += 1
        if position >= len(long) - 1:
            return False
        position += 1
    return True


def _stands_for(word: str, full: str) -> bool:
    return word == full or (word.endswith(".") and len(word) == 2 and full.startswith(word[0]))

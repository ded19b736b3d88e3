"""Merging of the variants of names: forms of one name, and short forms of full names.

"Alex", "Alex Mercer" and "Agent Alex Mercer" are merged into one entity only if the short form is
unambiguous: only one longer name in its document, or in the corpus, contains it. If two longer
names contain a short form, it is not merged.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from graphrag_nlp.names.abbreviations import merge_acronyms
from graphrag_nlp.names.base_forms import is_given_name
from graphrag_nlp.names.known_names import COUNTRY, find_known_type, is_country, rate_known_places
from graphrag_nlp.names.name_forms import (
    ClassifiedNames,
    MergedNames,
    NamesByDocument,
    Words,
    find_form_key,
    find_transcription_key,
    may_be_person,
)
from graphrag_nlp.names.name_shapes import is_plural_acronym, is_surname
from graphrag_nlp.names.name_words import DEMONYM_END, GIVEN_NAMES, PARTIES, more_given_names
from graphrag_nlp.text.languages import PARTICLES, TITLES_OF_WOMEN, Language, n_titles
from graphrag_nlp.text.type_words import TYPE_WORDS

# A short form is merged with a name in all documents if it means this name in at least this
# share of the documents in which it is unambiguous.
MIN_SHARE_OF_DOCUMENTS = 0.9
# Maximum number of names with an equal initial and surname that are compared pairwise.
MAX_COMPARED_NAMES = 50
# A surname alone means a famous person rather than a relative whom the document names in full, such
# as Ivanka Trump, if at least this many documents use the surname without a full name, and if this
# many times more documents name the famous person in full than the relative.
MIN_DOCUMENTS_OF_FAMOUS = 5
MIN_RATIO_OF_FAMOUS = 10
# A word may be the surname of one person and the given name of another. One of them is meant if at
# least this many documents mean that person, and this many times as many as mean the other.
MIN_DOCUMENTS_OF_USAGE = 3
MIN_RATIO_OF_USAGE = 2
# Many people have one of the short surnames of East Asia: Wang, Kim.
MAX_CHARS_OF_VAGUE_SURNAME = 4


@dataclass(frozen=True)
class Variants:
    """The entity of each name. The number of an entity is the number of one of its names.

    `names` are the classified names, followed by names that occur only with a title or inflected;
    `languages` are those of the texts that have them. `entity_of`
    maps a name to its entity. `in_document` maps (document, name) to another entity, and takes
    precedence. `persons` are the entities that are persons.
    """

    names: list[str]
    languages: list[Language]
    entity_of: np.ndarray
    in_document: dict[tuple[int, int], int]
    persons: frozenset[int]


def merge_variants(
    classified: ClassifiedNames,
    counts: np.ndarray,
    by_document: NamesByDocument,
    abbreviations: Sequence[tuple[int, int]],
) -> Variants:
    """Merge names that are forms of the same name.

    `counts` are the numbers of mentions of each name. `abbreviations` are the pairs (short, long)
    that a text explains, as in "Royal Geographical Society (RGS)".
    """
    names = MergedNames(classified, counts.tolist())
    names.merge_same_spelling()
    names.merge_inflected()
    names.merge_inflected_adjectives()
    names.merge_titled_names()
    for short, long in abbreviations:
        names.merge_names(short, long)
    short_forms = _ShortForms(names)
    short_forms.merge_given_name_forms()
    short_forms.merge_initials(by_document)
    in_document = short_forms.merge_single_words(by_document)
    names.merge_shouted_words()
    merge_acronyms(names, by_document)
    in_document |= resolve_head_nouns(names, short_forms.full_names, by_document)
    root = names.find_root
    return Variants(
        names=names.names,
        languages=names.languages,
        entity_of=np.fromiter(map(root, range(len(names.names))), np.int64),
        in_document={key: root(entity) for key, entity in in_document.items()},
        persons=frozenset(map(root, names.persons)),
    )


class _ShortForms:
    """Full names in a corpus, and methods that merge short forms with these names."""

    def __init__(self, names: MergedNames) -> None:
        self.names = names
        # The words, without titles, of each name that may be a person's full name.
        self.full_names: dict[int, Words] = {}
        for number, words in enumerate(names.words):
            bare = words[n_titles(words) :]
            language = names.languages[number]
            if len(bare) == 1 and bare[0] in GIVEN_NAMES and not names.is_place[number]:
                names.persons.add(number)
            if len(bare) < 2 or (len(bare) == 2 and bare[0].lower() in PARTICLES):
                continue
            if number not in names.persons:
                if names.is_thing[number] or not may_be_person(bare, names.common, language):
                    continue
                has_initial = any(len(word) == 2 and word[1] == "." for word in bare[:-1])
                has_given_name = is_given_name(bare[0], language) or bare[0] in more_given_names()
                if has_initial or names.has_person_verb[number] or has_given_name:
                    names.persons.add(number)
            self.full_names[number] = bare

    def merge_given_name_forms(self) -> None:
        """Merge "Sergey Lavrov" into "Sergei Lavrov", and "Mike Flynn" into "Michael Flynn".

        A short form of a given name is merged only if all given names with the surname are forms
        of one name.
        """
        transcribed: dict[Words, list[int]] = defaultdict(list)
        bearers: dict[str, list[int]] = defaultdict(list)
        persons = self.names.persons
        for number, words in self.full_names.items():
            transcribed[*map(find_transcription_key, words[:-1]), words[-1]].append(number)
        for numbers in transcribed.values():
            if len(numbers) > 1 and not persons.isdisjoint(numbers):
                persons.update(numbers)
                self._merge_with_most_frequent(numbers)
        for number in sorted(self.full_names.keys() & persons):
            bearers[self.full_names[number][-1]].append(number)
        for numbers in bearers.values():
            if len(numbers) > 1:
                given = (self.full_names[number][:-1] for number in numbers)
                if len({tuple(map(find_form_key, words)) for words in given}) == 1:
                    self._merge_with_most_frequent(numbers)

    def _merge_with_most_frequent(self, numbers: list[int]) -> None:
        usual = max(numbers, key=lambda number: (self.names.counts[number], -number))
        for number in numbers:
            self.names.merge_names(number, usual)

    def merge_initials(self, by_document: NamesByDocument) -> None:
        """Merge "R. F. Scott" into "Robert Falcon Scott" if only one full name fits."""
        by_ends: dict[tuple[str, str], list[int]] = defaultdict(list)
        full_names = self.full_names
        # (first letter, surname) of names with a middle name or initial: others have no short form.
        ends = {
            (words[0][0], words[-1])
            for words in full_names.values()
            if len(words) > 2 or words[0].endswith(".")
        }
        for number, words in full_names.items():
            if (words[0][0], words[-1]) in ends:
                by_ends[words[0][0], words[-1]].append(number)
        candidates: dict[int, list[int]] = defaultdict(list)
        for group in by_ends.values():
            for short, long in permutations(group, 2) if len(group) <= MAX_COMPARED_NAMES else ():
                if _is_abbreviated_form(full_names[short], full_names[long]):
                    candidates[short].append(long)
        # A name may lack the first word: "Dudley Docker" for "Frank Dudley Docker".
        tails = {words[1:] for words in full_names.values() if len(words) > 2}
        numbers = {words: number for number, words in full_names.items() if words in tails}
        for number, words in full_names.items():
            shorter = numbers.get(words[1:])
            is_role = words[0].isupper() and words[0].isalpha() and len(words[0]) > 1
            if shorter is not None and len(words) > 2 and not is_role:  # not VP Mike Pence
                candidates[shorter].append(number)
        involved = set(candidates).union(*candidates.values())
        documents: dict[int, set[int]] = defaultdict(set)
        for document, present in by_document.of_documents_with(involved):
            for name in involved.intersection(present):
                documents[name].add(document)
        for short, names in candidates.items():
            together = [n for n in names if documents[n] & documents[short]]
            if len({self.names.find_root(n) for n in together}) == 1:
                self.names.merge_names(short, together[0])

    def merge_single_words(self, by_document: NamesByDocument) -> dict[tuple[int, int], int]:
        """Merge single words, such as surnames, into the only full name that contains them.

        Returns the entity by (document, name) for words that are unambiguous only in that document.
        """
        persons, short = self.names.persons, self._find_short_forms()
        single = set(short.values())
        surnames: dict[str, set[int]] = defaultdict(set)
        given: dict[str, set[int]] = defaultdict(set)
        for number, words in self.full_names.items():
            if words[-1] in single:
                surnames[words[-1]].add(number)
            if words[0] in single and number in self.names.persons:
                given[words[0]].add(number)
        alone = single & (surnames.keys() | given.keys())
        short = {number: word for number, word in short.items() if word in alone}
        weak = self._find_weak_forms(by_document, short)
        places = self._find_places(short)
        short = {number: word for number, word in short.items() if word not in places}
        for number in [n for n, words in self.full_names.items() if words[-1] in weak]:
            if number not in self.names.persons:
                del self.full_names[number]
                surnames[self.names.words[number][-1]].discard(number)
        # If a surname alone is used for persons, all full names with it are persons.
        spoken = {w for n, w in short.items() if self.names.has_person_verb[n] or n in persons}
        persons |= {n for n, words in self.full_names.items() if words[-1] in spoken}
        for number in persons & self.full_names.keys():
            if self.full_names[number][0] in alone:
                given[self.full_names[number][0]].add(number)
        in_document: dict[tuple[int, int], int] = {}
        # By (document, short form): a name that begins with the word, if another name ends with it.
        surname_first: dict[tuple[int, int], int] = {}
        unnamed: Counter[str] = Counter()
        n_alone: Counter[int] = Counter()
        for document, present in by_document.of_documents_with(short):
            alone_here = {name: short[name] for name in present if name in short}
            for name, person, first in self._resolve_short_forms(present, alone_here):
                in_document[document, name] = person
                alone_here.pop(name)
                if first is not None:
                    surname_first[document, name] = first
            unnamed.update({*alone_here.values()})
            n_alone.update(alone_here.keys())
        root = self.names.find_root
        n_documents = by_document.count_documents({n: root(n) for n in self.full_names})
        bearers = {
            word: {root(number) for number in numbers & self.full_names.keys()}
            for word, numbers in surnames.items()
        }
        usage = ShortFormUsage(short, surname_first, unnamed, n_documents)
        prefer_usual_bearers(in_document, bearers, usage, self.names.words)
        meant: dict[int, Counter[int]] = defaultdict(Counter)
        for (_, name), entity in in_document.items():
            meant[name][entity] += 1
        vague = find_vague_surnames({short[name] for name in n_alone})
        for name, word in short.items():
            if _ends_like_people(word):
                continue  # Elsewhere, "English" is the language.
            n_other = n_alone[name] if word in vague else 0
            fitting = surnames[word], given[word]
            self._merge_short_form(name, *fitting, meant[name], n_other, n_documents)
        return {key: n for key, n in in_document.items() if root(key[1]) != root(n)}

    def _find_short_forms(self) -> dict[int, str]:
        """Map names that may be short for a person's full name to their word, without title."""
        short: dict[int, str] = {}
        for number, words in enumerate(self.names.words):
            bare = words[n_titles(words) :]
            if len(bare) == 2 and bare[0].lower() in PARTICLES:
                bare = bare[1:]
            # Do not merge a place or a ship with the person after whom it is named.
            saint = words[0].lower() in ("st", "st.", "saint")
            other = (len(words) == 1 or saint) and (
                self.names.is_thing[number] or self.names.is_place[number]
            )
            if len(bare) == 1 and not (other or self._is_no_surname(number)):
                short[number] = bare[0]
        return short

    def _find_places(self, short: dict[int, str]) -> set[str]:
        """Return the words of short forms that are places, and no surnames or given names."""
        # Angola is no short form of "Stephen L. Angola", but a city may share a surname.
        # Lorraine and Jordan are given names, too, if they are used for persons.
        placed = [n for n, w in short.items() if self.names.may_be_place[n] or w not in GIVEN_NAMES]
        ratings = rate_known_places([self.names.names[number] for number in placed])
        places = {
            short[number]
            for number, rating in zip(placed, ratings, strict=True)
            if rating == COUNTRY
            or (
                rating
                and self.names.may_be_place[number]
                and not self.names.has_person_verb[number]
            )
        }
        return places | {
            word
            for number, word in short.items()
            if word in GIVEN_NAMES
            and word == self.names.names[number]
            and not self.names.has_person_verb[number]
            and is_country(word)
            and not find_known_type(word)
        }

    def _is_no_surname(self, number: int) -> bool:
        """Return whether a word is no short form of a person: Republicans, MPs, NBA, Brexit."""
        word = self.names.names[number]
        if word.isupper() or is_plural_acronym(word) or word.lower() in PARTIES:
            return True
        if find_known_type(word) == "name" and not is_surname(word):
            return True
        # English, French and Irish are surnames, too.
        return _ends_like_people(word) and not self.names.has_person_verb[number]

    def _find_weak_forms(self, by_document: NamesByDocument, short: dict[int, str]) -> set[str]:
        """Return single words that mostly occur without their longer name: Canada (Air Canada)."""
        persons = self.names.persons
        words_of_short = set(short.values())
        unsure = {
            n: words[-1]
            for n, words in self.full_names.items()
            if n not in persons and words[-1] in words_of_short
        }
        alone: Counter[str] = Counter()
        together: Counter[str] = Counter()
        # If no name is unsure, no document must be read.
        for _, present in by_document.of_documents_with(short if unsure else ()):
            here = {short[name] for name in present if name in short}
            alone.update(here)
            together.update(here & {unsure[name] for name in present if name in unsure})
        placed = {word for name, word in short.items() if self.names.may_be_place[name]}
        weak = {word for word, count in alone.items() if together[word] * 2 < count}
        return weak | placed

    def _resolve_short_forms(
        self, present: list[int], shortened: dict[int, str]
    ) -> Iterator[tuple[int, int, int | None]]:
        """Yield (short form, full name, other) for each unambiguous short form in a document.

        `other` is the only other full name that begins with the short form, or None.
        """
        wanted = set(shortened.values())
        surnames: dict[str, set[int]] = defaultdict(set)
        given: dict[str, set[int]] = defaultdict(set)
        # Include the merged name: the document may contain a name only with its title.
        for name in {*present, *map(self.names.find_root, present)} & self.full_names.keys():
            words = self.full_names[name]
            if words[-1] in wanted:
                surnames[words[-1]].add(self.names.find_root(name))
            if words[0] in wanted and name in self.names.persons:
                given[words[0]].add(self.names.find_root(name))
        for name, word in list(shortened.items()):
            fitting = surnames.get(word) or given.get(word) or set()
            others = given.get(word, set()) - fitting
            if len(fitting) == 1:
                yield name, min(fitting), min(others) if len(others) == 1 else None

    def _merge_short_form(
        self,
        name: int,
        surnames: set[int],
        given: set[int],
        meant: Counter[int],
        n_alone: int,
        n_documents: Counter[int],
    ) -> None:
        """Merge a short form into a full name in the whole corpus if only one full name fits.

        `meant` counts the documents in which the short form means each full name, and `n_alone` is
        the number of documents in which it may mean somebody else.
        """
        candidates = {self.names.find_root(n) for n in surnames}
        for usual, count in meant.most_common(1):
            # If several names fit, the corpus may still use the short form for one of them.
            if count >= max(3, MIN_SHARE_OF_DOCUMENTS * sum(meant.values())):
                candidates = {self.names.find_root(usual)}
        # In the whole corpus, a given name is enough only if exactly one person has this name, and
        # most documents with it name this person in full.
        if not candidates and len({*map(self.names.find_root, given)}) == 1:
            candidates = set(map(self.names.find_root, meant)) if meant.total() > n_alone else set()
        mentions = sum(self.names.counts[n] for n in surnames | given)
        # Another document may mean another person: one document with a full name tells little.
        is_likely = all(n_documents[n] > 1 or meant[n] >= n_alone for n in candidates)
        if len(candidates) == 1 and is_likely and self.names.counts[name] <= 20 * mentions:
            self.names.merge_names(name, min(candidates))
        elif surnames & self.names.persons:
            self.names.persons.add(name)


def _is_abbreviated_form(short: Words, long: Words) -> bool:
    """Return whether every word of `short` is a word of `long` or its initial, in order."""
    if len(short) > len(long) or short == long or not _matches_word(short[0], long[0]):
        return False
    if len(short) == len(long) and not any(word.endswith(".") for word in short[:-1]):
        return False
    middle = iter(long[1:-1])
    return all(any(_matches_word(word, full) for full in middle) for word in short[1:-1])


def _matches_word(word: str, full: str) -> bool:
    return word == full or (word.endswith(".") and len(word) == 2 and full.startswith(word[0]))


def _ends_like_people(word: str) -> bool:
    """Return whether a word ends like the adjective of a people, as English, but not McNish."""
    is_demonym = word.istitle() and DEMONYM_END.search(word) is not None
    return is_demonym and word not in more_given_names()


@dataclass(frozen=True)
class ShortFormUsage:
    """The usage of short forms, and of full names, in the corpus.

    `short` has the word of each short form. `surname_first` maps (document, short form) to a name
    that begins with the word, if another name ends with it. `unnamed` counts the documents that use
    a word without one clear full name, and `n_documents` the documents with each full name.
    """

    short: dict[int, str]
    surname_first: dict[tuple[int, int], int]
    unnamed: Counter[str]
    n_documents: Counter[int]


def prefer_usual_bearers(
    in_document: dict[tuple[int, int], int],
    bearers: Mapping[str, Collection[int]],
    usage: ShortFormUsage,
    words: Sequence[Words],
) -> None:
    """Correct the short forms with which the corpus usually means another person.

    `in_document` maps (document, short form) to the person whom the document names in full, and is
    changed. `bearers` are the persons with each surname, and `words` are those of each name.
    """
    short, n_documents = usage.short, usage.n_documents
    # For each word, the person with this surname in the most documents.
    usual = {
        word: min(persons, key=lambda person: (-n_documents[person], person))
        for word, persons in bearers.items()
        if persons
    }
    n_meant = Counter((short[name], person) for (_, name), person in in_document.items())

    def is_usual(word: str, person: int, other: int) -> bool:
        n, n_other = n_meant[word, person], n_meant[word, other]
        return n >= MIN_DOCUMENTS_OF_USAGE and n >= MIN_RATIO_OF_USAGE * n_other

    for (document, name), entity in list(in_document.items()):
        word = short[name]
        person = usual.get(word, entity)
        ratio = n_documents[person] / max(1, n_documents[entity])
        is_famous = usage.unnamed[word] >= MIN_DOCUMENTS_OF_FAMOUS and ratio >= MIN_RATIO_OF_FAMOUS
        title = words[name][0].lower().rstrip(".")
        is_given_name = entity not in bearers.get(word, ())
        first = usage.surname_first.get((document, name))
        if is_famous and title not in TITLES_OF_WOMEN:
            in_document[document, name] = person
        elif is_given_name and person != entity and is_usual(word, person, entity):
            del in_document[document, name]
        elif first is not None and is_usual(word, first, entity):
            in_document[document, name] = first


def find_vague_surnames(words: Collection[str]) -> set[str]:
    """Return the surnames that many people have, or that are also a given name or a place."""
    names = sorted(words)
    ratings = rate_known_places(names)
    return {
        word
        for word, rating in zip(names, ratings, strict=True)
        if rating or len(word) <= MAX_CHARS_OF_VAGUE_SURNAME or word in more_given_names()
    }


def resolve_head_nouns(
    names: MergedNames, full_names: dict[int, Words], by_document: NamesByDocument
) -> dict[tuple[int, int], int]:
    """Map "(the) Institute" to the only name of an institute in its document.

    `full_names` are the names of persons. A word that mostly stands without a longer name is a
    name of its own, as Taliban is beside Pakistani Taliban. If the corpus also writes it in lower
    case, it may still be short for a name whose documents mostly use it.
    """
    heads = {
        number: words[0]
        for number, words in enumerate(names.words)
        if len(words) == 1
        and names.find_root(number) == number
        and (words[0].lower() in TYPE_WORDS or names.has_article[number])
    }
    found: dict[tuple[int, int], int] = {}
    n_documents: Counter[str] = Counter()
    n_headed: Counter[str] = Counter()
    for document, present in by_document.of_documents_with(heads):
        alone = [name for name in present if name in heads]
        headed: dict[str, set[int]] = defaultdict(set)
        for name in present:
            words = names.words[name]
            if len(words) > 1 and name not in full_names:
                # The head noun is before the particle: University of Oslo.
                particle = next((i for i, w in enumerate(words) if w.islower()), len(words))
                is_known = particle == len(words) and find_known_type(" ".join(words[-2:]))
                if is_known and words[-2].lower() not in TYPE_WORDS | PARTICLES:
                    continue  # The House is not the White House, but Baikal is Lake Baikal.
                headed[words[particle - 1]].add(names.find_root(name))
        here = {heads[name] for name in alone}
        n_documents.update(here)
        n_headed.update(here & headed.keys())
        for name in alone:
            fitting = headed.get(heads[name], set())
            if len(fitting) == 1:
                found[document, name] = min(fitting)
    used = {(heads[name], document): entity for (document, name), entity in found.items()}
    n_used = Counter((word, entity) for (word, _), entity in used.items())
    longer = set(found.values())
    roots = {number: names.find_root(number) for number in range(len(names.words))}
    n_longer = by_document.count_documents({n: r for n, r in roots.items() if r in longer})

    def is_short_form(word: str, entity: int) -> bool:
        if n_headed[word] * 2 >= n_documents[word]:
            return True
        is_noun = word in names.written_lower or word.lower() in names.written_lower
        return is_noun and n_used[word, entity] * 2 >= n_longer[entity]

    return {key: entity for key, entity in found.items() if is_short_form(heads[key[1]], entity)}

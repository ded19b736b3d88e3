"""Join the forms of one name: short, titled, abbreviated, inflected.

Alex, Alex Mercer and Agent Alex Mercer are one entity only where nothing else
could be meant: a short form joins the one longer name of its document, or of
the corpus, that contains it, and stays by itself if there are two.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_index.core.languages import Language
from graphrag_index.linguistics.kinds import EVENT_WORDS, ORGANIZATION_WORDS, PLACE_WORDS

# A short form stands for the one that it means in this share of the documents that tell.
USUAL = 0.9

Join = Callable[[int, int], None]
Root = Callable[[int], int]

HONORIFICS = frozenset(
    (
        "mr mrs ms miss mx dr prof professor doctor sir lady lord dame baron baroness count "
        "countess duke duchess prince princess king queen emperor empress tsar pope saint st "
        "father brother sister rev reverend bishop archbishop cardinal rabbi imam sheikh "
        "president chancellor minister premier senator governor mayor judge justice "
        "ambassador secretary chairman director captain lieutenant commander admiral colonel "
        "major general sergeant corporal private marshal officer agent inspector detective "
        "sheriff chief comrade madame monsieur mme mlle m signor signora señor señora don "
        "doña herr frau fräulein pan pani doktor profesor kapitan generał król królowa książę "
        "ksiądz prezydent minister präsident kanzler könig königin kaiser graf gräfin fürst "
        "freiherr kapitän oberst leutnant aunt uncle co-pilot surgeon lieut"
    ).split()
)
# Words that make another name of what they stand before: New South Wales is not South Wales.
_DISTINGUISHING = frozenset(
    (
        "new old great little upper lower north south east west northern southern eastern "
        "western central saint san santa mount lake cape fort port first second third royal "
        "national young"
    ).split()
)
_PERSON_PARTICLES = frozenset(
    "de von van der den del della di da la le bin ibn al zu zur af av".split()
)


@dataclass(frozen=True)
class Variants:
    """Which entity each name stands for.

    `entity_of[name]` holds everywhere but for the pairs in `in_document`, where
    (document, name) gives the entity. An entity is named by one of the names.
    """

    entity_of: np.ndarray
    in_document: dict[tuple[int, int], int]
    persons: frozenset[int]


def words_of(name: str) -> list[str]:
    return name.split(" ")


def merge_variants(
    names: Sequence[str],
    languages: Sequence[Language],
    counts: np.ndarray,
    place_share: np.ndarray,
    determiner_share: np.ndarray,
    common: frozenset[str],
    documents_of: Sequence[tuple[int, int]],
    abbreviations: Sequence[tuple[int, int]],
) -> Variants:
    """Decide which names are forms of the same name.

    Parameters
    ----------
    counts
        Mentions of each name.
    place_share
        Share of its mentions behind a preposition of place; a place is not a surname.
    determiner_share
        Share of its mentions behind an article; no person takes one ("the Discovery").
    common
        Words that the corpus mostly writes in lower case; they are no part of a person's name.
    documents_of
        Pairs (document, name), each once, in order.
    abbreviations
        Pairs (short, long) that the text itself explains: "Royal Geographical Society (RGS)".
    """
    parent = np.arange(len(names), dtype=np.int64)

    def root(name: int) -> int:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = int(parent[name])
        return name

    def join(name: int, into: int) -> None:
        if root(name) != root(into):
            parent[root(name)] = root(into)

    _join_same_spelling(names, counts, join)
    _join_inflected(names, languages, counts, join)
    split = [words_of(name) for name in names]
    numbers = {name: number for number, name in enumerate(names)}
    # The article makes a thing of it; German gives one to persons too, if rarely.
    thing = determiner_share >= 0.25
    persons = {n for n, words in enumerate(split) if not thing[n] and _may_be_person(words, common)}
    titled = _join_titled(split, numbers, common, join)
    for short, long in abbreviations:
        join(short, long)
    full_names = _full_names(split, persons, titled)
    _join_initials(full_names, documents_of, root, join)
    in_document, short_forms = _join_short_forms(
        split, counts, (place_share >= 0.3) | thing, documents_of, full_names, root, join
    )
    entity_of = np.array([root(name) for name in range(len(names))], dtype=np.int64)
    in_document = {key: root(entity) for key, entity in in_document.items()}
    proven = {root(name) for name in titled | short_forms} | set(in_document.values())
    proven |= {root(name) for name in persons if len(split[name]) > 1 and _has_initial(split[name])}
    return Variants(entity_of, in_document, frozenset(proven))


def fold(name: str) -> str:
    """Fold case, accents and punctuation: names that differ only there are spelled the same."""
    decomposed = unicodedata.normalize("NFKD", name.casefold()).replace("ł", "l")
    kept = "".join(c for c in decomposed if not unicodedata.combining(c))
    return re.sub(r"[^\w]+", " ", kept).strip()


def _join_same_spelling(names: Sequence[str], counts: np.ndarray, join: Join) -> None:
    spelled: dict[str, int] = {}
    for number in np.argsort(-counts, kind="stable").tolist():
        name = names[number]
        key = name if name.isascii() and name.replace(" ", "").isalpha() else fold(name) or name
        key = key.casefold()
        if name.isupper() and len(name) <= 5:
            key = "acronym " + key  # WHO is not Who
        first = spelled.setdefault(key, number)
        if first != number:
            join(number, first)


def _join_titled(
    split: Sequence[list[str]], numbers: dict[str, int], common: frozenset[str], join: Join
) -> set[int]:
    """Join "Agent Alex Mercer" to "Alex Mercer"; return the names that a title proves persons."""
    proven = set()
    for number, words in enumerate(split):
        first = 0
        while first < len(words) - 1 and words[first].lower().rstrip(".") in HONORIFICS:
            first += 1
        known = numbers.get(" ".join(words[first:])) if first else None
        if first and known is not None:
            join(number, known)
            proven.add(known)
            continue
        if first:
            proven.add(number)
            continue
        if len(words) < 3 or words[0].lower() in _DISTINGUISHING or words[0] not in common:
            continue
        known = numbers.get(" ".join(words[1:]))
        if known is not None:
            join(number, known)
            proven.add(known)
    return proven


def _may_be_person(words: list[str], common: frozenset[str]) -> bool:
    """Tell whether a name can be a person's full name, by what it is made of."""
    words = [word for word in words if word.lower().rstrip(".") not in HONORIFICS]
    if not 1 < len(words) <= 5 or words[-1].isupper():
        return False
    return all(
        word in _PERSON_PARTICLES
        or (
            word not in common
            and word[:1].isupper()
            and word.lower() not in ORGANIZATION_WORDS
            and word.lower() not in PLACE_WORDS
            and word.lower() not in EVENT_WORDS
            and word.lower() not in _DISTINGUISHING
        )
        for word in words
    )


def _has_initial(words: list[str]) -> bool:
    return any(len(word) == 2 and word[1] == "." for word in words[:-1])


def _full_names(
    split: Sequence[list[str]], persons: set[int], titled: set[int]
) -> dict[int, list[str]]:
    """Return the full names that short forms can stand for, without their titles."""
    full = {}
    for number in sorted(persons | titled):
        words = [w for w in split[number] if w.lower().rstrip(".") not in HONORIFICS]
        if len(words) > 1:
            full[number] = words
    return full


def _join_initials(
    full_names: dict[int, list[str]],
    documents_of: Sequence[tuple[int, int]],
    root: Root,
    join: Join,
) -> None:
    """Join "R. F. Scott" and "Robert Scott" to the one "Robert Falcon Scott" of their documents."""
    by_ends: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, words in full_names.items():
        by_ends[words[0][0], words[-1]].append(number)
    candidates = {
        short: long
        for group in by_ends.values()
        if 1 < len(group) <= 50
        for short in group
        if (long := [n for n in group if _abbreviates(full_names[short], full_names[n])])
    }
    involved = set(candidates).union(*candidates.values())
    documents: dict[int, set[int]] = defaultdict(set)
    for document, name in documents_of:
        if name in involved:
            documents[name].add(document)
    for short, long in candidates.items():
        together = [n for n in long if documents[n] & documents[short]]
        if len({root(n) for n in together}) == 1:
            join(short, together[0])


def _abbreviates(short: list[str], long: list[str]) -> bool:
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


def _join_short_forms(
    split: Sequence[list[str]],
    counts: np.ndarray,
    thing: np.ndarray,
    documents_of: Sequence[tuple[int, int]],
    full_names: dict[int, list[str]],
    root: Root,
    join: Join,
) -> tuple[dict[tuple[int, int], int], set[int]]:
    """Let single words stand for the one full name that they are part of.

    Returns what they stand for in single documents, and those that stand for it everywhere.
    """
    surnames: dict[str, set[int]] = defaultdict(set)
    given: dict[str, set[int]] = defaultdict(set)
    for number, words in full_names.items():
        surnames[words[-1]].add(number)
        given[words[0]].add(number)
    short: dict[int, str] = {}
    for number, words in enumerate(split):
        bare = [w for w in words if w.lower().rstrip(".") not in HONORIFICS]
        # A place or a ship that is named after a person is not the person.
        other = len(words) == 1 and thing[number]
        if len(bare) == 1 and not other and (bare[0] in surnames or bare[0] in given):
            short[number] = bare[0]
    if not short:
        return {}, set()
    in_document: dict[tuple[int, int], int] = {}
    meant: dict[int, Counter[int]] = defaultdict(Counter)
    position = 0
    while position < len(documents_of):
        document = documents_of[position][0]
        end = position
        while end < len(documents_of) and documents_of[end][0] == document:
            end += 1
        present = [name for _, name in documents_of[position:end]]
        position = end
        local = [name for name in present if name in full_names]
        for name in present:
            if name not in short:
                continue
            word = short[name]
            for index in (-1, 0):
                fitting = {root(n) for n in local if full_names[n][index] == word}
                if len(fitting) == 1:
                    in_document[document, name] = min(fitting)
                    meant[name][min(fitting)] += 1
                if fitting:
                    break
    joined = set()
    for name, word in short.items():
        candidates = {root(n) for n in surnames.get(word, ())}
        usual = meant[name].most_common(1)
        if usual and usual[0][1] >= max(3, USUAL * sum(meant[name].values())):
            # Where several bear the name, the corpus may still nearly always mean one of them.
            candidates = {root(usual[0][0])}
        if not candidates:
            # Beyond its document a given name is too weak, unless it is always one person's.
            candidates = set(meant[name]) if len(given[word]) == 1 else set()
        if len(candidates) == 1 and counts[name] <= 20 * sum(
            counts[n] for n in surnames.get(word, set()) | given.get(word, set())
        ):
            join(name, candidates.pop())
            joined.add(name)
    apart = {key: entity for key, entity in in_document.items() if root(key[1]) != root(entity)}
    return apart, joined


def _join_inflected(
    names: Sequence[str], languages: Sequence[Language], counts: np.ndarray, join: Join
) -> None:
    """Join case forms: names whose words share their stems, in languages that inflect names."""
    groups: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    for number, name in enumerate(names):
        if languages[number].endings:
            words = fold(name).split(" ")
            key = (languages[number].code, len(words), "|".join(word[:3] for word in words))
            groups[key].append(number)
    for (code, _, _), group in groups.items():
        if not 1 < len(group) <= 200:
            continue
        language = languages[group[0]]
        endings = sorted({fold(ending) for ending in language.endings} | {""}, key=len)
        stems = [_stems(fold(names[number]), endings) for number in group]
        # The most likely base form first, so that the others join it.
        order = sorted(
            range(len(group)),
            key=lambda i: (
                sum(word.endswith(language.oblique) for word in words_of(names[group[i]])),
                len(names[group[i]]),
                -int(counts[group[i]]),
                names[group[i]],
            ),
        )
        taken: set[int] = set()
        for i in order:
            if i in taken:
                continue
            for j in order:
                if j == i or j in taken:
                    continue
                if _same_stems(stems[i], stems[j]) and names[group[i]] != names[group[j]]:
                    if code == "de" and not names[group[j]].startswith(names[group[i]]):
                        continue
                    join(group[j], group[i])
                    taken.add(j)
            taken.add(i)


def _stems(name: str, endings: Sequence[str]) -> list[frozenset[str]]:
    """Return the possible stems of each word: three letters or more, without an ending."""
    return [
        frozenset(
            word[: len(word) - len(ending)]
            for ending in endings
            if word.endswith(ending) and len(word) - len(ending) >= 3
        )
        for word in name.split(" ")
    ]


def _same_stems(some: list[frozenset[str]], others: list[frozenset[str]]) -> bool:
    return len(some) == len(others) and all(a & b for a, b in zip(some, others, strict=True))

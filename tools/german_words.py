"""German common nouns, and English words in German texts, for `gazetteer.py`."""

import gzip
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from sources import read_package
from type_lists import read_persons

from graphrag_nlp.names.compounds import MIN_PART, is_made_of, is_made_only_of

# Endings of inflected nouns and of loan words, and the number of compounds of a common noun.
NOUN_ENDINGS = "e en er n es nen se ern innen in ien sse ssen".split()
LOAN_ENDINGS = re.compile("(?:i[ek]|ei|[ae]nz|t?ur|or|ose|age|ade|ette|[iü](?:ne|re)|itis|um|ma)$")
MIN_COMPOUNDS = 3
MAX_SIMPLE_LETTERS = 7
# A longer compound is left out if one of its parts is known, a shorter one if all are.
MAX_PART_LETTERS = 12
# A noun in the dictionary Ding is a name, too, if so many people with a page in Wikipedia have it,
# or a place.
MIN_PEOPLE = 10
_GENDERED = re.compile(r"(?:d(?:er|ie|as) )?([A-ZÄÖÜ][a-zäöüß]{2,}) \{(?:[mfn]|pl)\b")
# English words in German texts: the shortest length, nouns derived from verbs, and how much rarer
# they may be than in English texts, in centibels. Rarer ones are from English sentences.
MIN_ENGLISH_LETTERS = 4
_ENGLISH_DERIVED = re.compile("(.{5,}(?<!ing))er(?:s|n|in|innen)?")
MAX_RARER = 100


def read_gendered_nouns(folder: Path) -> set[str]:
    """Read the German nouns with a gender of the dictionary Ding, without names.

    A name has a capital in English, too, or is a term of geography.
    """
    nouns, places = set[str](), set[str]()
    for line in read_package(folder, "trans-de-en", "/share/trans/de-en").splitlines():
        german, _, english = line.partition(" :: ")
        for entry, meaning in zip(german.split(" | "), english.split(" | "), strict=False):
            found = {m[1] for part in entry.split("; ") if (m := _GENDERED.match(part))}
            if "[geogr.]" in german:
                places |= found
            elif meaning[:1].islower():
                nouns |= found
    return nouns - places


def read_people(folder: Path) -> set[str]:
    """Read the words that are part of the names of at least `MIN_PEOPLE` people in Wikipedia."""
    words = Counter(word for name in read_persons(folder) for word in name)
    return {word.lower() for word, times in words.items() if times >= MIN_PEOPLE}


def read_frequencies(archive: Path, code: str) -> dict[str, int]:
    """Read the words of a language with their rarity in centibels, the most frequent first."""
    import msgpack

    with zipfile.ZipFile(archive) as files:
        packed = gzip.decompress(files.read(f"wordfreq/data/large_{code}.msgpack.gz"))
    # After a header come lists of the words of equal frequency.
    lists = enumerate(msgpack.loads(packed)[1:])
    return {word: rarity for rarity, words in lists for word in words}


def find_loan_words(
    german: dict[str, int], english: dict[str, int], dictionary: set[str], names: set[str]
) -> Iterator[str]:
    """Yield the words of German texts that are English common words, or derived from some."""
    for word, rarity in german.items():
        if (
            len(word) < MIN_ENGLISH_LETTERS
            or not word.isalpha()
            or word in names
            or rarity - english.get(word, len(english)) > MAX_RARER
        ):
            continue
        stems = {word, word.removesuffix("s")}
        if derived := _ENGLISH_DERIVED.fullmatch(word):  # Influencerin
            stems |= {derived[1], f"{derived[1]}e"}
        if not dictionary.isdisjoint(stems - names):
            yield word


def find_german_words(
    words: Iterable[str], dictionary: set[str], gendered: set[str], names: set[str]
) -> Iterator[str]:
    """Yield the words in lower case that are no names.

    A capitalized word of the dictionary is a common noun if it has inflected forms or several
    compounds, or has a typical ending. Other nouns have to be in `gendered`.
    `names` are left out.
    """
    nouns = {word for word in dictionary if word[:1].isupper() and word[1:].islower()}
    # Number of longer words that begin, or end, with a word.
    n_compounds = Counter(
        noun[start:] for noun in nouns for start in range(3, len(noun) - MIN_PART + 1)
    )
    n_compounds.update(
        noun[:end].lower() for noun in nouns for end in range(MIN_PART, len(noun) - 3)
    )
    # The frequencies have "ss" for "ß".
    sharp = {word.casefold(): word.lower() for word in dictionary | gendered if "ß" in word}
    spellings = ((word, sharp[word]) if word in sharp else (word,) for word in words)
    for word in chain.from_iterable(spellings):
        noun = word.capitalize()
        if len(word) < 3 or word in names:
            continue
        if (
            word in dictionary
            or noun in gendered
            or (
                noun in nouns
                and (
                    n_compounds[word] >= MIN_COMPOUNDS
                    or LOAN_ENDINGS.search(word)
                    or any(noun + ending in nouns for ending in NOUN_ENDINGS)
                    or any(
                        noun.endswith(ending) and noun.removesuffix(ending) in nouns
                        for ending in NOUN_ENDINGS
                    )
                )
            )
        ):
            yield word


def find_simple_words(words: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the words that are not made of known words and earlier ones."""
    found: dict[str, None] = {}
    seen = set(known)
    for word in words:
        # Short compounds are parts of longer ones.
        is_made = is_made_of if len(word) > MAX_PART_LETTERS else is_made_only_of
        if word not in seen and (len(word) <= MAX_SIMPLE_LETTERS or not is_made(word, seen)):
            found[word] = None
            seen.add(word)
    return list(found)

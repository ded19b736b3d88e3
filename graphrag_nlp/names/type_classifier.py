"""A learned classifier that types the names of which no rule is sure.

Two logistic regressions (`tools/type_weights.py` fits them and names the texts). The first rates
the letters and words of a name; it knows how many persons and towns have each word in their name.
The second adds the usage of the name in the corpus, and what the rules say. All sums are of
integers, so that a name has the same type on every machine.
"""

import math
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml

from graphrag_nlp.names.name_words import common_words
from graphrag_nlp.text.normalize import fold

_DATA = Path(__file__).with_name("data")
# Sorted numbers: 24 bits of the hash of a word, and 8 bits for its `WordRating`.
WORDS_FILE = _DATA / "type_words.npy"
# Sorted numbers: 24 bits of the hash of a name in a dictionary, and a bit for each of `KINDS`.
NAMES_FILE = _DATA / "type_names.npy"
# Integers, one row per hash of a feature of the letters, one column per type in `TYPES`.
LETTERS_FILE = _DATA / "type_letters.npy"
# The weights of usage features, and by how much another type must win over that of the rules.
USAGE_FILE = _DATA / "type_weights.yaml"
# The types that the classifier tells from "name", whose score is 0.
TYPES = ("person", "geo", "organization")
KINDS = (*TYPES, "name")
N_BUCKETS = 1 << 15
# Weights of letters are stored times the first number. Features are integers in hundredths.
LETTER_SCALE, UNIT = 8, 100
MAX_LETTER_SCORE = 8 * UNIT
# Features of the letters and words of a name, in the order of the columns of `rate_names`.
LETTER_FEATURES = (
    *("bias", *TYPES),
    *(f"one_word_{kind}" for kind in TYPES),
    *(f"dictionary_{kind}" for kind in KINDS),
)
# The unit of a logarithm of odds in the sums.
LOGIT = 1000 * UNIT
# Usual share, among sure names, of other things than `TYPES`, and the largest share that counts.
USUAL_THING_SHARE, MAX_THING_SHARE = 0.25, 0.75
_LAST_LATIN = "\u024f"
_MAX_WORDS = 4
_LOW_BYTE = 0xFF


class WordRating(NamedTuple):
    """Levels of a word: people with this surname, with this given name, size of this town.

    0 means few or none; the highest levels are 4, 3 and 4.
    """

    surname: int
    given_name: int
    town: int

    def pack(self) -> int:
        return self.surname << 5 | self.given_name << 3 | self.town


def hash_word(text: str) -> int:
    """Return the hash of a word or the name of a town; the lowest 8 bits are 0."""
    return zlib.crc32((fold(text) or text).encode()) & ~_LOW_BYTE


@cache
def _read_words() -> np.ndarray:
    return np.asarray(np.load(WORDS_FILE, mmap_mode="r"))


@cache
def _read_names() -> np.ndarray:
    return np.asarray(np.load(NAMES_FILE, mmap_mode="r"))


@cache
def _read_letters() -> np.ndarray:
    return np.asarray(np.load(LETTERS_FILE, mmap_mode="r"))


@cache
def _read_usage() -> tuple[dict[str, list[int]], int]:
    content = yaml.load(USAGE_FILE.read_text(encoding="utf-8"), yaml.CSafeLoader)
    return content["weights"], content["margin"]


def rate_words(words: Sequence[str]) -> dict[str, WordRating]:
    """Look up the ratings of words and names."""
    found = _look_up(_read_words(), words).tolist()
    return {
        word: WordRating(bits >> 5, bits >> 3 & 3, bits & 7)
        for word, bits in zip(words, found, strict=True)
    }


def _look_up(table: np.ndarray, words: Sequence[str]) -> np.ndarray:
    """Return the lowest byte of the row of each word in a table of hashes; 0 if it has none."""
    hashes = np.fromiter(map(hash_word, words), np.uint32, len(words))
    at = np.minimum(np.searchsorted(table, hashes), len(table) - 1)
    return np.where(table[at] & ~np.uint32(_LOW_BYTE) == hashes, table[at] & _LOW_BYTE, 0)


def find_known_types(names: Sequence[str]) -> list[str]:
    """Return the type of each name in the dictionary; "" if it has none, several or "name".

    English words such as "State" have none.
    """
    kinds = {1 << bit: kind for bit, kind in enumerate(TYPES)}
    common, found = common_words("en"), _look_up(_read_names(), names).tolist()
    return [
        "" if name.lower() in common else kinds.get(bits, "")
        for name, bits in zip(names, found, strict=True)
    ]


def list_letter_features(name: str, rate: Callable[[str], WordRating]) -> set[int]:
    """Return the hashes of the features of a name: its words, their letters and their ratings."""
    words = name.split(" ")
    capitalized = [word for word in words if not word.islower()] or words
    first, last = capitalized[0], capitalized[-1]
    common = common_words("en")
    town = rate(name).town
    is_common = [int(word.lower() in common) for word in (first, last)]
    found = [f"n{min(len(words), _MAX_WORDS)}", f"n{len(capitalized)}"]
    ratings: tuple[int, ...] = (rate(last).surname, rate(first).given_name)
    if len(words) == 1:
        ratings = (*ratings, town)
        is_common.pop()
    elif len(words) > len(capitalized):
        found.append("small " + " ".join(filter(str.islower, words)))
    role = "o" if len(words) == 1 else "m"
    found += [f"{role}#{ratings}{is_common}", f"{role}common{is_common}", f"{role}town{town}"]
    found += [f"{role}{number}rated{rating}" for number, rating in enumerate(ratings)]
    for number, word in enumerate(words):
        if word.islower():
            continue
        if len(words) > 1:
            role = "f" if number == 0 else "l" if number == len(words) - 1 else "m"
        found += _list_features_of_word(word, role)
    return {zlib.crc32(feature.encode()) % N_BUCKETS for feature in found}


def _list_features_of_word(word: str, role: str) -> list[str]:
    """Return features of a word: letters at its ends and inside, shape; `role` is its position."""
    framed = f"^{word.lower()}$"
    found = [f"{role}={framed}"]
    found += [role + framed[-n:] for n in (2, 3, 4, 5) if len(framed) > n]
    found += [role + framed[:n] for n in (2, 3, 4) if len(framed) > n]
    found += ["g" + framed[i : i + n] for n in (3, 4) for i in range(1, len(framed) - n)]
    shapes = {
        "capitals": word.isupper(),
        "inner": any(map(str.isupper, word[1:])) and not word.isupper(),
        "digit": any(map(str.isdigit, word)),
        "hyphen": "-" in word,
        "apostrophe": "'" in word or "’" in word,
    }
    return found + [f"{role}#{shape}" for shape, has_shape in shapes.items() if has_shape]


def rate_names(names: Sequence[str]) -> np.ndarray:
    """Return one row per name, with the features in `LETTER_FEATURES` as columns."""
    texts = sorted({*names, *(word for name in names for word in name.split(" "))})
    rate = rate_words(texts).__getitem__
    weights = _read_letters()
    rows = np.zeros((len(names), len(LETTER_FEATURES)), np.int64)
    for row, name in zip(rows, names, strict=True):
        features = list_letter_features(name, rate)
        sums = weights[sorted(features)].sum(axis=0, dtype=np.int64)
        scores = np.rint(sums * UNIT / (LETTER_SCALE * math.sqrt(len(features))))
        row[0] = UNIT
        row[1:4] = np.clip(scores, -MAX_LETTER_SCORE, MAX_LETTER_SCORE)
        row[4:7] = 0 if " " in name else row[1:4]
    known = _look_up(_read_names(), names)[:, None] >> np.arange(len(KINDS)) & 1
    rows[:, 7:] = UNIT * known // np.maximum(known.sum(axis=1, keepdims=True), 1)
    return rows


def count_listed(kinds: Sequence[str], lists: np.ndarray) -> np.ndarray:
    """Count, by type, the entities beside each entity in enumerations; other names come last.

    `kinds` are the types of the entities that are sure, and "" for others. `lists` has the numbers
    of enumerations, and the entities in them.
    """
    numbers, entity = lists.T
    _, numbers = np.unique(numbers, return_inverse=True)
    columns = {"": -1, **{kind: column for column, kind in enumerate(TYPES)}}
    kind = np.array([columns.get(kind, len(TYPES)) for kind in kinds], np.int64)[entity]
    of_lists = np.zeros((len(numbers), len(TYPES) + 1))
    np.add.at(of_lists, (numbers[kind >= 0], kind[kind >= 0]), 1)
    counts = np.zeros((len(kinds), len(TYPES) + 1))
    np.add.at(counts, entity, of_lists[numbers])
    return counts


def share_of_things(kinds: Sequence[str]) -> float:
    """Return the share of the type "name" among the names whose type is sure (not "")."""
    sure = [kind for kind in kinds if kind]
    return sum(kind not in TYPES for kind in sure) / max(len(sure), 1)


def is_latin(name: str) -> bool:
    """Return whether a name has only letters of languages that the classifier has learned."""
    return name.isascii() or max(name) <= _LAST_LATIN or name.replace("’", "'").isascii()


def classify_types(
    names: Sequence[str],
    usages: Sequence[dict[str, float]],
    rules: Sequence[str],
    thing_share: float,
) -> list[str]:
    """Return the type of each name: that of the rules, unless another is surer.

    `usages` have shares and truth values (0–1) by feature; `rules` are the types that rules give.
    `thing_share` is the share of things among the sure names of the corpus: names of a manual are
    rarely those of persons.
    """
    if not names:
        return []
    weights, margin = _read_usage()
    features = rate_names(names)
    scores = features @ np.array([weights[name] for name in LETTER_FEATURES])
    usage = np.rint(UNIT * np.array([list(row.values()) for row in usages])).astype(np.int64)
    scores += usage @ np.array([weights[name] for name in usages[0]])
    kinds = ("name", *TYPES)
    things = min(max(thing_share, USUAL_THING_SHARE), MAX_THING_SHARE)
    odds = things / (1 - things) * (1 - USUAL_THING_SHARE) / USUAL_THING_SHARE
    scores -= round(math.log(odds) * LOGIT)
    all_scores = np.concatenate([np.zeros((len(names), 1), np.int64), scores], axis=1)
    own = all_scores[np.arange(len(names)), [kinds.index(rule) for rule in rules]]
    best = all_scores.argmax(axis=1)
    is_sure = all_scores.max(axis=1) > own + margin
    return [
        kinds[number] if sure and is_latin(name) else rule
        for name, number, sure, rule in zip(
            names, best.tolist(), is_sure.tolist(), rules, strict=True
        )
    ]

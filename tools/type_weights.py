"""Fit the classifier of `graphrag_nlp/names/type_classifier.py`, and write its files.

    python tools/type_weights.py FOLDER

FOLDER has the packages that `type_lists.py` names. Takes about two minutes of a processor core; the
same inputs give the same files on one machine.

1. The words table: how many people have a word as surname and as given name, and how many people
   live in a town of the name. The names table: names in WordNet and their types.
2. The letters are fitted to names of known types. Names of the labelled texts are left out, a
   person does not count for its own surname, and two in five towns are not looked up in the table.
3. The usage is fitted to labelled texts: the half `dev` of benchmarks/labelled, passages/ written
   for it, and the names in eighteen documents of the package nlp-corpus, which type_labels.yaml
   types by hand.

Prints how many names of no sure type are right before and after, by tenfold cross-validation. Texts
of benchmarks are no input, except the half `dev`.
"""

import math
import random
import zlib
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from type_lists import (
    check_sources,
    read_census_surnames,
    read_corpus,
    read_faker_surnames,
    read_firms,
    read_persons,
    read_towns,
    read_wordnet,
)
from type_usages import NO_NAME, Usages, read_labels, read_marks, read_usages

from graphrag_nlp.names.known_names import list_known_names
from graphrag_nlp.names.name_words import (
    FIRMS_FILE,
    common_words,
)
from graphrag_nlp.names.type_classifier import (
    KINDS,
    LETTER_FEATURES,
    LETTER_SCALE,
    LETTERS_FILE,
    N_BUCKETS,
    NAMES_FILE,
    TYPES,
    UNIT,
    USAGE_FILE,
    WORDS_FILE,
    WordRating,
    hash_word,
    list_letter_features,
    rate_names,
)
from graphrag_nlp.text.languages import languages

# Levels of the words table: numbers of people with a surname or a given name, and populations.
SURNAME_LEVELS, GIVEN_NAME_LEVELS = (3, 6, 16, 61), (3, 10, 51)
TOWN_LEVELS = (3_000, 5_000, 15_000, 100_000)
# Weight of all names of a type together, for names of known types.
CLASS_WEIGHTS = {"person": 1.0, "geo": 1.0, "organization": 0.4, "name": 1.0}
# Penalties for large weights.
LETTER_PENALTY, USAGE_PENALTY = 0.3, 0.3
# Weight of a marked name that the rules are sure of: it is unlike those that are classified.
SURE_WEIGHT = 0.15
# Weight of what is no name: it must not get a type, but the types of names matter more.
NO_NAME_WEIGHT = 0.3
# How much likelier, as a logarithm, another type than that of the rules has to be.
MARGIN = 0.4
# Unit of the weights of the usage.
WEIGHT_UNIT = 1000

Floats = npt.NDArray[np.float64]


class Counts(NamedTuple):
    """Numbers of people by hashed surname and given name, and populations by hashed town."""

    surnames: Mapping[int, int]
    given_names: Mapping[int, int]
    towns: Mapping[int, int]

    def rate(self, word: str, own: int = 0, is_town_known: bool = True) -> WordRating:
        """Return the ratings of a word, without `own` people of the surname."""
        key = hash_word(word)

        def level(count: int, levels: Sequence[int]) -> int:
            return sum(count >= least for least in levels)

        return WordRating(
            level(self.surnames.get(key, 0) - own, SURNAME_LEVELS),
            level(self.given_names.get(key, 0), GIVEN_NAME_LEVELS),
            level(self.towns.get(key, 0) * is_town_known, TOWN_LEVELS),
        )


class Example(NamedTuple):
    """A name of a known type."""

    name: str
    kind: str
    weight: float
    own: int = 0
    is_town_known: bool = True


def write_words(
    persons: Sequence[Sequence[str]], census: Mapping[str, float], towns: Mapping[str, int]
) -> Counts:
    """Count the words of names, and write the table of all that have a rating."""
    long = [words for words in persons if len(words) > 1]
    surnames = Counter(hash_word(words[-1]) for words in long)
    for name, share in census.items():
        surnames[hash_word(name)] += int(share * 1000)
    given_names = Counter(hash_word(words[0]) for words in long if len(words[0].strip(".")) > 1)
    populations = dict[int, int]()
    texts = [*{w for words in long for w in (words[0], words[-1])}, *census, *towns]
    for town, population in towns.items():
        key = hash_word(town)
        populations[key] = max(populations.get(key, 0), population)
    counts = Counts(surnames, given_names, populations)
    rows = {hash_word(text) | bits for text in texts if (bits := counts.rate(text).pack())}
    np.save(WORDS_FILE, np.array(sorted(rows), np.uint32))
    return counts


def write_names(names: Iterable[tuple[str, str]]) -> None:
    """Write the table of the names in a dictionary, with their types."""
    table = dict[int, int]()
    for name, kind in names:
        key = hash_word(name)
        table[key] = table.get(key, 0) | 1 << KINDS.index(kind)
    np.save(NAMES_FILE, np.array(sorted(key | bits for key, bits in table.items()), np.uint32))


def write_firms(firms: Iterable[str], counts: Counts) -> None:
    """Write the names of firms that mean nothing else, one a line."""
    words = frozenset().union(*(common_words(code) for code in languages()))
    kept = set[str]()
    for firm in firms:
        rating = counts.rate(firm)
        means_more = firm.lower() in words or rating.surname or rating.given_name or rating.town
        if len(firm) > 2 and not (means_more and " " not in firm) and "(" not in firm:
            kept.add(firm)
    FIRMS_FILE.write_text("\n".join(sorted(kept)) + "\n", encoding="utf-8")


def list_examples(
    folder: Path,
    persons: Sequence[Sequence[str]],
    towns: Mapping[str, int],
    counts: Counts,
) -> Iterator[Example]:
    """Yield names of known types, each with its weight."""
    rng = random.Random(1)
    long = [words for words in persons if 1 < len(words) < 5 and words[-1][0].isupper()]
    drawn = rng.sample(long, 70_000)
    yield from (Example(" ".join(words), "person", 1, 1) for words in drawn[:30_000])
    yield from (Example(words[-1], "person", 1, 1) for words in drawn[30_000:])
    surnames = sorted({words[-1] for words in long if len(words[-1]) > 2})
    given_names = sorted({w[0] for w in long if counts.rate(w[0]).given_name})
    alone = sorted({words[0] for words in persons if len(words) == 1 and words[0][0].isupper()})
    yield from (Example(word, "person", 0.6, 1) for word in rng.sample(surnames, 25_000))
    yield from (Example(word, "person", 0.6) for word in rng.sample(given_names, 6_000))
    pairs = zip(rng.sample(surnames, 6_000), rng.sample(surnames, 6_000), strict=True)
    yield from (Example("-".join(pair), "person", 0.5) for pair in pairs)
    yield from (Example(word, "person", 0.5) for word in rng.sample(alone, 6_000))
    yield from (Example(name, "person", 0.6) for name in read_faker_surnames(folder))
    for town in rng.sample(sorted(towns), len(towns) // 2):
        weight = max(0.15, math.log10(towns[town] + 1) - 2.5) * 0.6
        yield Example(town, "geo", weight, is_town_known=rng.random() >= 0.4)
    yield from (Example(name, "organization", 2) for name in read_firms(folder))
    for name, kind in sorted(list_known_names().items()):
        yield Example(name.title(), "name" if kind == "event" else kind, 1.5)
    found, lower = read_wordnet(folder)
    for name, kind in found:
        if name.count(" ") < 4:
            yield Example(name, kind, 0.4 if kind == "name" else 1.5)
    # Titles of works are made of any words.
    for word in lower:
        yield Example(word.title(), "name", 0.15 if " " in word else 0.35)
        if " " not in word and rng.random() < 0.25:
            yield Example(word.title() + "s", "name", 0.35)
    for code in ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "sv"):
        words = (word for word in sorted(common_words(code)) if len(word) > 2 and word.isalpha())
        yield from (Example(w.title(), "name", 0.7 if code == "en" else 0.2) for w in words)
    frequent = sorted(word for word in common_words("en") if len(word) > 2 and word.isalpha())
    for _ in range(6_000):
        title = " ".join(rng.choice(frequent).title() for _ in range(rng.choice((2, 2, 3))))
        yield Example(title, "name", 0.5)


def fit_letters(examples: Sequence[Example], counts: Counts) -> None:
    """Fit the letters of names to their types, and write the weights."""
    kinds = np.array([KINDS.index(example.kind) for example in examples])
    weights = np.array([example.weight for example in examples])
    for number, kind in enumerate(KINDS):
        chosen = kinds == number
        weights[chosen] *= CLASS_WEIGHTS[kind] * 60_000 / weights[chosen].sum()
    columns, values, bounds = list[int](), list[float](), [0]
    for _, example in enumerate(examples):
        found = sorted(
            list_letter_features(
                example.name,
                lambda word, e=example: counts.rate(word, e.own, e.is_town_known),
            )
        )
        columns += found
        values += [1 / math.sqrt(len(found))] * len(found)
        bounds.append(len(columns))
    shape = (len(examples), N_BUCKETS)
    fitted = fit(csr_matrix((values, columns, bounds), shape), kinds, weights, LETTER_PENALTY, 60)
    difference = fitted[:, : len(TYPES)] - fitted[:, len(TYPES) :]
    rounded = np.clip(np.rint(difference * LETTER_SCALE), -127, 127)
    np.save(LETTERS_FILE, rounded.astype(np.int8))


def fit(
    features: "csr_matrix | Floats",
    kinds: npt.NDArray[np.int64],
    weights: Floats,
    penalty: float,
    max_steps: int = 1000,
) -> Floats:
    """Return the weights of a logistic regression with several classes."""
    wanted = np.eye(len(KINDS))[kinds]
    shape = (features.shape[1], len(KINDS))
    turned = features.T.tocsr() if isinstance(features, csr_matrix) else features.T

    def loss(flat: Floats) -> tuple[float, Floats]:
        own = flat.reshape(shape)
        scores = features @ own
        scores -= scores.max(axis=1, keepdims=True)
        likely = np.exp(scores)
        sums = likely.sum(axis=1, keepdims=True)
        value = -(weights * ((scores * wanted).sum(axis=1) - np.log(sums[:, 0]))).sum()
        gradient = turned @ ((likely / sums - wanted) * weights[:, None]) + 2 * penalty * own
        total = weights.sum()
        return (value + penalty * (own**2).sum()) / total, gradient.ravel() / total

    options = {"maxiter": max_steps}
    found = minimize(loss, np.zeros(math.prod(shape)), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x.reshape(shape))


def fit_usage(parts: Sequence[Usages]) -> None:
    """Fit the usage of names to their types, write the weights, and print how good they are."""
    names, kinds, rules = (
        [value for part in parts for value in part[column]] for column in range(3)
    )
    usages = [usage for part in parts for usage in part.usages]
    is_unsure = np.array([flag for part in parts for flag in part.is_unsure])
    columns = (*LETTER_FEATURES, *usages[0])
    values = [list(usage.values()) for usage in usages]
    features = np.concatenate([rate_names(names) / UNIT, np.array(values, float)], axis=1)
    is_name = np.array([kind != NO_NAME for kind in kinds])
    wanted = np.array([KINDS.index(kind if kind != NO_NAME else "name") for kind in kinds])
    weights = np.where(is_unsure, 1.0, SURE_WEIGHT) * np.where(is_name, 1.0, NO_NAME_WEIGHT)
    folds = np.array([zlib.crc32(name.encode()) % 10 for name in names])
    scores = np.zeros((len(names), len(KINDS)))
    for fold in range(10):
        rest = folds != fold
        fitted = fit(features[rest], wanted[rest], weights[rest], USAGE_PENALTY)
        scores[~rest] = features[~rest] @ fitted
    counted = is_unsure & is_name
    print_accuracy(scores[counted], wanted[counted], np.array(rules)[counted])
    fitted = fit(features, wanted, weights, USAGE_PENALTY)
    rounded = np.rint((fitted[:, : len(TYPES)] - fitted[:, len(TYPES) :]) * WEIGHT_UNIT)
    rows = dict(zip(columns, rounded.astype(int).tolist(), strict=True))
    lines = [
        "# Weights of the usage of a name for the types person, geo and organization, and how much",
        "# larger the sum has to be than that of the type of the rules: tools/type_weights.py.",
        f"margin: {round(MARGIN * UNIT * WEIGHT_UNIT)}",
        "weights:",
        *(f"  {column}: {row}" for column, row in rows.items()),
    ]
    USAGE_FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def print_accuracy(
    scores: Floats, wanted: npt.NDArray[np.int64], rules: npt.NDArray[np.str_]
) -> None:
    """Print how many names are right by the rules alone, and with the classifier, by margin."""
    own = np.array([KINDS.index(rule) for rule in rules])
    rows = np.arange(len(own))
    print(f"{len(own)} names of no sure type; {(own == wanted).mean():.1%} right by the rules")
    for margin in (0.0, 0.2, MARGIN, 0.6, 0.8, 1.0):
        is_changed = scores.max(axis=1) > scores[rows, own] + margin
        found = np.where(is_changed, scores.argmax(axis=1), own)
        mended = ((found == wanted) & (own != wanted)).sum()
        spoilt = ((found != wanted) & (own == wanted)).sum()
        share = (found == wanted).mean()
        print(f"margin {margin}: {share:.1%} right, {mended} mended, {spoilt} spoilt")
    found = np.where(scores.max(axis=1) > scores[rows, own] + MARGIN, scores.argmax(axis=1), own)
    for number, kind in enumerate(KINDS):
        right = (found == number) & (wanted == number)
        print(
            f"{kind}: {(wanted == number).sum()} names; "
            f"{right.sum() / max(1, (found == number).sum()):.0%} precision, "
            f"{right.sum() / (wanted == number).sum():.0%} recall"
        )


def main(arguments: Iterable[str] | None = None) -> None:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--usage-only", action="store_true", help="keep the words and the letters")
    chosen = parser.parse_args(arguments if arguments is None else list(arguments))
    check_sources(chosen.folder)
    marked = [read_marks("dev"), read_marks("passages", Path(__file__).parent)]
    labels = dict(read_labels())
    if not chosen.usage_only:
        persons, towns = read_persons(chosen.folder), read_towns(chosen.folder)
        counts = write_words(persons, dict(read_census_surnames(chosen.folder)), towns)
        write_firms(read_firms(chosen.folder), counts)
        write_names(read_wordnet(chosen.folder)[0])
        left_out = set().union(*(marks for _, marks in marked), *labels.values())
        examples = [
            example
            for example in list_examples(chosen.folder, persons, towns, counts)
            if example.name not in left_out
        ]
        fit_letters(examples, counts)
    parts = [read_usages(texts, marks, only_unsure=False) for texts, marks in marked]
    for numbers, listed in labels.items():
        parts.append(read_usages(read_corpus(chosen.folder, numbers), listed, only_unsure=True))
    fit_usage(parts)


if __name__ == "__main__":
    main()

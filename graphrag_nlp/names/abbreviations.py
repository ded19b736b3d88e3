"""Abbreviations and the names for which they stand: FDA, Food and Drug Administration."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from graphrag_nlp.list_columns import Integers
from graphrag_nlp.names.known_names import find_known_type, rate_known_places
from graphrag_nlp.names.name_forms import MergedNames, NamesByDocument, Words
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.places import find_places

# Count the documents that have the acronym and any name with its initials. The acronym means one of
# these names if at least this share (0 to 1) have that name, and if in this share of those the name
# comes before the acronym. An acronym of two letters needs a larger share and this many documents.
MIN_SHARE, MIN_SHARE_OF_TWO_LETTERS, MIN_DOCUMENTS_OF_TWO_LETTERS = 0.5, 0.9, 3
MIN_LETTERS, MAX_LETTERS = 3, 8


def merge_acronyms(names: MergedNames, by_document: NamesByDocument) -> None:
    """Merge acronyms into the long names that documents use beside them, such as FDA."""
    acronyms: dict[int, str] = {}
    for number, name in enumerate(names.names):
        letters = name.replace(".", "")
        is_acronym = letters.isalpha() and letters.isupper() and 1 < len(letters) <= MAX_LETTERS
        is_other = number in names.persons or names.is_place[number]
        if is_acronym and not is_other and find_known_type(name) != "geo":
            acronyms[number] = letters
    fitting = _find_fitting_names(names, frozenset(acronyms.values()))
    n_common: Counter[str] = Counter()
    n_documents: Counter[tuple[str, Words]] = Counter()
    n_first: Counter[tuple[str, Words]] = Counter()
    for _, present in by_document.of_documents_with(acronyms):
        # Positions of names in the document: `present` is in the order of first mention.
        short = dict[str, int]()
        long = dict[tuple[str, Words], int]()
        for position, number in enumerate(present):
            if number in acronyms:
                short.setdefault(acronyms[number], position)
            for pair in fitting.get(number, ()):
                long.setdefault(pair, position)
        both = {pair: position for pair, position in long.items() if pair[0] in short}
        n_common.update({letters for letters, _ in both})
        n_documents.update(both.keys())
        n_first.update(pair for pair, position in both.items() if position < short[pair[0]])
    meant: dict[str, Words] = {}
    most: dict[str, int] = {}
    for (letters, words), n in n_documents.most_common():
        if letters in most:
            if n == most[letters]:  # Two names fit equally often: take neither.
                meant.pop(letters, None)
            continue
        most[letters] = n
        is_long = len(letters) >= MIN_LETTERS
        share = MIN_SHARE if is_long else MIN_SHARE_OF_TWO_LETTERS
        is_usual = n >= share * n_common[letters] and n_first[letters, words] >= share * n
        if is_usual and (is_long or n >= MIN_DOCUMENTS_OF_TWO_LETTERS):
            meant[letters] = words
    spellings: dict[tuple[str, Words], list[int]] = defaultdict(list)
    for number, pairs in fitting.items():
        for pair in pairs:
            spellings[pair].append(number)
    for number, letters in acronyms.items():
        # Leave out acronyms that are merged with a name already, since a text explains them.
        if letters in meant and names.find_root(number) in acronyms:
            own = spellings[letters, meant[letters]]
            usual = max(own, key=lambda n: (names.counts[n], -n))
            for spelling in (number, *own):
                names.merge_names(spelling, usual)


def _find_fitting_names(
    names: MergedNames, acronyms: frozenset[str]
) -> Mapping[int, list[tuple[str, Words]]]:
    """Map each name to the acronyms that may mean it, with its words without "the" or "U.S."."""
    found: dict[int, list[tuple[str, Words]]] = {}
    for number, words in enumerate(names.words) if acronyms else ():
        n_left_out = 2 if words[:2] == ("U.", "S.") else words[0] in ("The", "the", "US")
        bare = words[n_left_out:]
        if (
            len(bare) > 1
            and number not in names.persons
            and (fit := find_acronyms(bare) & acronyms)
        ):
            found[number] = [(letters, bare) for letters in sorted(fit)]
    ratings = rate_known_places([names.names[number] for number in found])
    return {n: pairs for (n, pairs), rated in zip(found.items(), ratings, strict=True) if not rated}


def find_acronyms(words: Words) -> frozenset[str]:
    """Return possible acronyms of a name: initials of its capitalized words, or of all words.

    The words before the last "and" may give an acronym, too: CDC for Centers for Disease Control
    and Prevention.
    """
    last_and = max((at for at, word in enumerate(words) if word == "and"), default=0)
    found = set()
    for part in (words, words[:last_and]):
        capitals = "".join(word[0] for word in part if word[0].isupper())
        every = "".join(word[0] for word in part).upper()
        found |= {a for a in (capitals, every) if part is words or len(a) >= MIN_LETTERS}
    return frozenset(found)


def find_known_abbreviations(names: Sequence[str], counts: Integers) -> list[tuple[int, int]]:
    """Return pairs (short, long) of the listed names of organizations: EU, European Union.

    If the long name occurs in several languages, the most frequent one is taken.
    """
    number_of = {name: number for number, name in enumerate(names)}
    pairs = []
    for entry in read_lists("graphrag_nlp/names/data/words")["abbreviations"].split("|"):
        short, _, long = entry.strip().partition(" = ")
        found = [number_of[name] for name in long.split(", ") if name in number_of]
        if short in number_of and found:
            pairs.append((number_of[short], max(found, key=lambda n: (int(counts[n]), -n))))
    return pairs


def find_country_abbreviations(names: Sequence[str], counts: np.ndarray) -> list[tuple[int, int]]:
    """Return pairs (short, long) of names of one country: US, and its most frequent longer name."""
    rows = find_places(pl.Series(names, dtype=pl.String)).filter(kind="country")
    # Leave out names that several countries have, such as "Kongo".
    rows = rows.filter(pl.len().over("row") == 1)
    rows = rows.with_columns(count=counts[rows["row"].to_numpy()])
    is_short = [names[row].replace(".", "").isupper() for row in rows["row"]]
    longest = rows.filter(~pl.Series(is_short, dtype=pl.Boolean))
    longest = longest.sort("count", "row", descending=[True, False]).unique("country", keep="first")
    pairs = rows.filter(pl.Series(is_short, dtype=pl.Boolean)).join(longest, on="country")
    return sorted(pairs.select("row", "row_right").iter_rows())

"""The words of the corpus as numbers, and recurring noun phrases in lower case.

A noun phrase such as "sea ice" is found without a part-of-speech tagger, by its context: an
article or preposition before it, and a function word or punctuation after it. Phrases that occur
everywhere in the corpus are not specific to a topic, and are left out.
"""

# Python before 3.12 cannot evaluate the annotation array[int]: keep annotations as strings.
from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_nlp.names.name_words import common_words
from graphrag_nlp.text.languages import (
    Language,
    map_words_to_languages,
    read_lists,
    word_set,
)

_WORDS = read_lists("graphrag_nlp/names/data/words")
_PHRASE_WORDS = read_lists("graphrag_nlp/text/data/phrase_words")
# Kinds of words, one bit each. These are for a word before a name, in upper or lower case.
ARTICLE, PLACE_PREPOSITION, OTHER_PREPOSITION = 1, 2, 4
# Bits for a word after a name; upper and lower case matter.
COPULA, PERSON_VERB, LOWER, FUNCTION = 8, 16, 32, 64
# Bits for a word before or after a noun phrase; upper and lower case matter.
OPENING, DETERMINER = 128, 256
# Bits for a word of a noun phrase, read without its punctuation.
BARE_FUNCTION, LETTERS, PUNCTUATED, NO_MODIFIER, NO_NOUN, WEAK_HEAD = (512 << n for n in range(6))
# Bits for a common noun that shows the type of a name beside it, in the order of `CUE_TYPES`, and
# for an indefinite article before an explanation.
CUE_NOUNS = tuple(1 << n for n in range(15, 19))
INDEFINITE = 1 << 19
# Bit for a word after which "in" shows no place: a stake in Taylor.
IN_THING = 1 << 20
# Bits for a word after a name, and for a noun after its possessive, that suggest a type, in the
# order of `HINT_TYPES`, and for a pronoun of persons.
HINT_WORDS, HINT_POSSESSIONS = (tuple(1 << n + m for m in range(3)) for n in (21, 24))
HUMAN_PRONOUN = 1 << 27
# Bit for a word that is a function word only in other languages.
FOREIGN = 1 << 28
# Bits for a German word in lower case: for an adjective, and for a word that ends like one.
ADJECTIVE, ADJECTIVE_ENDING = 1 << 29, 1 << 30
# Bits for a noun before "of" and a place, and for a word of address before a person.
OF_PLACE, ADDRESS = 1 << 31, 1 << 32
# Bits for a member of a parliament, and for a word between a member and a constituency.
MEMBER, MEMBER_JOINT = 1 << 33, 1 << 34
# Bit for a word between a place and another place: Hulcote, near Kiel.
NEARBY = 1 << 35
# Number of words of a block in which function words of other languages are counted, and the
# minimum number of them, and their share of those of the text's language, in a mixed block.
MIXED_BLOCK_WORDS, MIN_FOREIGN_WORDS, MIN_FOREIGN_SHARE = 64, 4, 0.5
CUE_TYPES = ("person", "organization", "geo", "name")
# Types that other words beside a name suggest, less surely than nouns that name its kind. Their
# numbers as cues follow those of `CUE_TYPES`.
HINT_TYPES = ("person", "organization", "geo")
FIRST_HINT = len(CUE_TYPES) + 1

FINAL_PUNCTUATION = ".,;:!?)"
_OUTER_PUNCTUATION = ".,;:!?()[]{}\"'“”„«»‘’*_"
# Maximum number of characters of a word. Without spaces, a whole paragraph looks like a word.
MAX_WORD_CHARS = 40
# Function words that precede verbs as well as nouns.
_WORDS_BEFORE_VERBS = frozenset(("to", "no", "any"))
# Endings of words that cannot end a noun phrase, and of words that cannot begin one.
_NO_NOUN_ENDINGS = ("ly", "ed", "ing", "est", "ous", "ful", "ive", "able", "ible")
_NO_MODIFIER_ENDINGS = ("ly", "iest")
_WEAK_MODIFIERS = word_set(_PHRASE_WORDS["weak_modifiers"])
_WEAK_HEAD_NOUNS = word_set(_PHRASE_WORDS["weak_heads"])

_GERMAN_ADJECTIVE = re.compile(_WORDS["german_certain_adjectives"])
_GERMAN_ADJECTIVE_ENDINGS = ("e", "en", "em", "er", "es")

_LISTS = read_lists("graphrag_nlp/names/data/entity_types")
_CUES = {
    word: bit
    for list_name, bit in zip(
        ("name_nouns", "place_nouns", "organization_nouns", "person_nouns"),
        reversed(CUE_NOUNS),
        strict=True,
    )
    for word in word_set(_LISTS[list_name])
}
# Verbs and adverbs that are such a noun in another language: "See BSD", German "See" (lake).
_OTHER_CUES = {("en", "see"), ("en", "editorial"), ("de", "nun")}
_IN_THINGS = word_set(_LISTS["in_things"])
_HINTS = dict.fromkeys(word_set(_LISTS["human_pronouns"]), HUMAN_PRONOUN)
for _part, _bits in (("words", HINT_WORDS), ("possessions", HINT_POSSESSIONS)):
    for _kind, _bit in zip(("human", "company", "place"), _bits, strict=True):
        for _word in word_set(_LISTS[f"{_kind}_{_part}"]):
            _HINTS[_word] = _HINTS.get(_word, 0) | _bit
_BEFORE_PLACES = word_set(_LISTS["before_places"])
_BEFORE_OF_PLACES = word_set(_LISTS["before_of_places"])
_MEMBERS = word_set(_LISTS["members"])
_NEARBY = word_set(_LISTS["nearby"])
_MEMBER_JOINTS = frozenset(("for", "from"))
_ADDRESS = word_set(_LISTS["address"])
_INDEFINITE_ARTICLES = word_set(_LISTS["indefinite"])


def cue_type(word: str) -> str:
    """Return the type of a name that a common noun beside the name shows; "" if none."""
    bit = _CUES.get(word.lower(), 0)
    return CUE_TYPES[CUE_NOUNS.index(bit)] if bit else ""


Integers = npt.NDArray[np.int64]


class DocumentWords(NamedTuple):
    """The words of one document, split at spaces and line ends. Double spaces give empty words.

    `numbers` are the numbers of the words in the vocabulary of their language, and `kinds` their
    kinds; `starts` and `ends` are offsets in characters.
    """

    numbers: Integers
    kinds: Integers
    starts: Integers
    ends: Integers


class Vocabulary(dict[str, int]):
    """The distinct words of one language, with a number for each.

    Number 0 stands for all words in scripts without upper and lower case, and for too long words.
    """

    def __init__(self, language: Language) -> None:
        super().__init__({"": 0})
        self._language = language
        self._kinds, self._counts = array("q", [0]), array("q")
        self._listed = _kinds_of_listed_words(language)

    def read_words(self, text: str) -> DocumentWords:
        """Return the words of a document with their kinds and offsets."""
        words = text.replace("\n", " ").split(" ")
        numbers = np.fromiter(map(self.__getitem__, words), np.int64, len(words))
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        ends = np.cumsum(lengths + 1) - 1
        kinds = np.frombuffer(self._kinds, np.int64)[numbers]
        return DocumentWords(numbers, kinds, ends - lengths, ends)

    def count_words(self, words: DocumentWords) -> None:
        """Add the words of a document to the counts."""
        self._counts.extend([0] * (len(self) - len(self._counts)))
        np.add.at(np.frombuffer(self._counts, np.int64), words.numbers, 1)

    def count_lower_words(self) -> Counter[str]:
        """Count the occurrences of words in lower case, without punctuation."""
        counts: Counter[str] = Counter()
        for word, kind, count in zip(self, self._kinds, self._counts, strict=True):
            if kind & LOWER:
                counts[word.strip(_OUTER_PUNCTUATION)] += count
        return counts

    def __missing__(self, word: str) -> int:
        if len(word) > MAX_WORD_CHARS or word.lower() == word.upper():
            return 0
        number = self[word] = len(self)
        self._kinds.append(self._kinds_of_word(word))
        return number

    def _kinds_of_word(self, word: str) -> int:
        bare, lower, listed = word.rstrip(FINAL_PUNCTUATION), word.lower(), self._listed
        kind = (
            listed.words.get(word, 0)
            | listed.lower.get(lower, 0)
            | listed.bare.get(bare, 0)
            | _CUES.get(bare.lower(), 0) * ((self._language.code, bare.lower()) not in _OTHER_CUES)
            | self._adjective_kind(word)
        )
        if word.islower():
            kind |= LOWER
            if bare.replace("-", "").isalpha():
                kind |= LETTERS
        if bare != word:
            kind |= PUNCTUATED
        if word.endswith(_NO_MODIFIER_ENDINGS):
            kind |= NO_MODIFIER
        return kind | NO_NOUN * bare.endswith(_NO_NOUN_ENDINGS)

    def _adjective_kind(self, word: str) -> int:
        """Return the bits for a word before a German noun: selbstgemachten (Cider)."""
        language = self._language
        if not language.capitalizes_nouns or not word.endswith(_GERMAN_ADJECTIVE_ENDINGS):
            return 0
        if not word.islower() or word in language.function_words:
            return 0
        return ADJECTIVE_ENDING | (ADJECTIVE if _GERMAN_ADJECTIVE.fullmatch(word) else 0)


class _ListedWords(NamedTuple):
    """The kinds of the words in lists, for words as written, in lower case, or bare."""

    words: dict[str, int]
    lower: dict[str, int]
    bare: dict[str, int]


@cache
def _kinds_of_listed_words(language: Language) -> _ListedWords:
    functions = language.function_words
    before_nouns = language.determiners | language.place_prepositions | language.other_prepositions
    foreign = (w for w, codes in map_words_to_languages().items() if language.code not in codes)
    before_names = language.articles | language.determiners | language.place_prepositions
    before_names |= _BEFORE_PLACES | language.other_prepositions
    return _ListedWords(
        words=_map_words_to_kinds(
            (COPULA, language.copulas),
            (FUNCTION, functions),
            (OPENING, before_nouns - _WORDS_BEFORE_VERBS),
            (DETERMINER, language.determiners),
            (NO_MODIFIER, _WEAK_MODIFIERS),
            (ADDRESS, _ADDRESS),
            (NEARBY, _NEARBY),
            (MEMBER_JOINT, _MEMBER_JOINTS),
            (INDEFINITE, _INDEFINITE_ARTICLES),
            (FOREIGN, foreign),
        ),
        lower=_map_words_to_kinds(
            *((kind_before_name(word, language), (word,)) for word in before_names),
            (IN_THING, _IN_THINGS),
            (OF_PLACE, _BEFORE_OF_PLACES),
            (MEMBER, _MEMBERS),
        ),
        bare=_map_words_to_kinds(
            *((kind, (word,)) for word, kind in _HINTS.items()),
            (PERSON_VERB, language.person_verbs),
            (BARE_FUNCTION, functions),
            (WEAK_HEAD, _WEAK_HEAD_NOUNS),
        ),
    )


def _map_words_to_kinds(*lists: tuple[int, Iterable[str]]) -> dict[str, int]:
    """Map each word to its kinds, joined as bits. `lists` are pairs of a kind and its words."""
    kinds: dict[str, int] = {}
    for kind, words in lists:
        for word in words:
            kinds[word] = kinds.get(word, 0) | kind
    return kinds


def mixes_languages(words: DocumentWords) -> bool:
    """Return whether a part of a document has many function words of other languages."""
    starts = np.arange(0, len(words.kinds), MIXED_BLOCK_WORDS)
    foreign = np.add.reduceat((words.kinds & FOREIGN) > 0, starts, dtype=np.int64)
    own = np.add.reduceat((words.kinds & FUNCTION) > 0, starts, dtype=np.int64)
    is_mixed = (foreign >= MIN_FOREIGN_WORDS) & (foreign >= MIN_FOREIGN_SHARE * own)
    return bool(is_mixed.any())


def kind_before_name(word: str, language: Language) -> int:
    """Return the kind of a word before a name: an article, a preposition, or 0."""
    lower = word.lower()
    if lower in (language.articles or language.determiners):
        return ARTICLE
    if lower in language.place_prepositions or lower in _BEFORE_PLACES:
        return PLACE_PREPOSITION
    return OTHER_PREPOSITION if lower in language.other_prepositions else 0


MAX_TERM_WORDS = 3  # in a noun phrase
# Number of characters of a block of text. A phrase that occurs in too many blocks is dropped;
# documents are not counted instead, because one may be long.
BLOCK_CHARS = 4_000
MIN_BLOCKS_TO_JUDGE = 8  # In a corpus with fewer blocks, no phrase is too common.
MAX_SHARE_OF_BLOCKS = 0.25  # A phrase in a larger share of the blocks is too common.
# A phrase of the most frequent words of its language, such as "hard work", says little. It is only
# kept if a block that has it repeats it: minimum number of occurrences for each block.
MAX_FREQUENT_RANK, MIN_VAGUE_PER_BLOCK = 1_000, 1.5


@dataclass
class TermCandidates:
    """Candidate noun phrases as columns, with one value per occurrence in the order of the text."""

    document: array[int] = field(default_factory=lambda: array("i"))
    start: array[int] = field(default_factory=lambda: array("i"))
    end: array[int] = field(default_factory=lambda: array("i"))
    phrase: array[int] = field(default_factory=lambda: array("i"))
    phrases: dict[str, int] = field(default_factory=dict)
    # By phrase: 1 if all its words are among the most frequent of the language.
    vague: array[int] = field(default_factory=lambda: array("b"))
    # The number of the block of each occurrence. Blocks of all documents are numbered in order.
    block: array[int] = field(default_factory=lambda: array("i"))
    n_blocks: int = 0

    def add_document(
        self, document: int, text: str, words: DocumentWords, language: Language, offset: int
    ) -> None:
        """Collect the candidate noun phrases of a part of a document that begins at `offset`."""
        first_block = self.n_blocks
        self.n_blocks += (len(text) + 1) // BLOCK_CHARS + 1
        if language.capitalizes_nouns or not language.function_words:
            return
        first, last = _find_noun_phrases(words.kinds)
        starts, frequent = words.starts[first], common_words(language.code, MAX_FREQUENT_RANK)
        for start, end in zip(starts.tolist(), words.ends[last].tolist(), strict=True):
            phrase = text[start:end].rstrip(FINAL_PUNCTUATION).replace("\n", " ")
            self.phrase.append(self._number_phrase(phrase, frequent.issuperset(phrase.split(" "))))
            self.end.append(offset + start + len(phrase))
        self.document.extend([document] * len(starts))
        self.start.frombytes((offset + starts).astype(np.int32).tobytes())
        self.block.frombytes((first_block + starts // BLOCK_CHARS).astype(np.int32).tobytes())

    def _number_phrase(self, phrase: str, is_vague: bool) -> int:
        number = self.phrases.setdefault(phrase, len(self.phrases))
        if number == len(self.vague):
            self.vague.append(is_vague)
        return number

    def to_frames(self) -> dict[str, pl.DataFrame]:
        """Return the candidates as frames, which `add_frames` adds to other candidates."""
        columns = ("document", "start", "end", "phrase", "block")
        arrays = {name: np.frombuffer(getattr(self, name), np.int32) for name in columns}
        return {
            "terms": pl.DataFrame(arrays),
            "phrases": pl.DataFrame(
                {"phrase": self.phrases.keys(), "vague": np.frombuffer(self.vague, np.bool_)},
                {"phrase": pl.String, "vague": pl.Boolean},
            ),
            "blocks": pl.DataFrame({"n_blocks": [self.n_blocks]}),
        }

    def add_frames(self, frames: Mapping[str, pl.DataFrame], first_document: int) -> None:
        """Add the candidates of later documents; their first has the number `first_document`."""
        numbers = [self._number_phrase(*row) for row in frames["phrases"].iter_rows()]
        terms = frames["terms"].with_columns(
            pl.col("document") + first_document,
            phrase=np.array(numbers, np.int32)[frames["terms"]["phrase"].to_numpy()],
            block=pl.col("block") + self.n_blocks,
        )
        for name in terms.columns:
            getattr(self, name).frombytes(terms[name].to_numpy().tobytes())
        self.n_blocks += frames["blocks"].item()

    def map_to_terms(self, min_frequency: int) -> np.ndarray:
        """Map each phrase to its singular; -1 if the phrase is too rare or too common."""
        n = len(self.phrases)
        if not n:
            return np.zeros(0, np.int32)
        singular = np.arange(n, dtype=np.int32)
        for text, number in self.phrases.items():
            if (plural := self.phrases.get(text + "s")) is not None:
                singular[plural] = number
        term = singular[np.frombuffer(self.phrase, np.int32)]
        block = np.frombuffer(self.block, np.int32)
        pairs = np.unique(term.astype(np.int64) * self.n_blocks + block)
        spread = np.bincount(pairs // self.n_blocks, minlength=n)
        times = np.bincount(term, minlength=n)
        is_vague = np.frombuffer(self.vague, np.bool_)
        accepted = (times >= min_frequency) & (~is_vague | (times >= MIN_VAGUE_PER_BLOCK * spread))
        if self.n_blocks >= MIN_BLOCKS_TO_JUDGE:
            accepted &= spread <= MAX_SHARE_OF_BLOCKS * self.n_blocks
        return np.where(accepted[singular], singular, np.int32(-1))


def _find_noun_phrases(kinds: Integers) -> tuple[Integers, Integers]:
    """Return the indexes of the first and the last word of each candidate noun phrase."""
    opening, function = (kinds & OPENING) > 0, (kinds & FUNCTION) > 0
    first = np.flatnonzero(opening[:-2] & ~function[1:-1] & ~function[2:]) + 1
    first = first[(kinds[first] & (LOWER | NO_MODIFIER)) == LOWER]
    # One row per phrase: its first word and the words after it, padded at the end of the text.
    padded = np.append(kinds, np.zeros(MAX_TERM_WORDS, np.int64))
    window = padded[first[:, None] + np.arange(MAX_TERM_WORDS + 1)]
    part = (window & (LETTERS | BARE_FUNCTION)) == LETTERS
    punctuated = (window & PUNCTUATED) > 0
    # A phrase ends at a word with punctuation, or before the first word that cannot belong to it.
    ends = ~part | punctuated
    end = ends.argmax(axis=1)
    row = np.arange(len(first))
    closing = window[row, end]
    # Reject a phrase before an article: its last word is a verb ("the polar party built a hut").
    framed = ((closing & BARE_FUNCTION) > 0) & ((closing & DETERMINER) == 0)
    length = np.where(part[row, end], end + 1, end)
    accepted = ends.any(axis=1) & (part[row, end] | framed)
    accepted &= (length >= 2) & (length <= MAX_TERM_WORDS)
    length -= (length > 2) & ((window[row, length - 1] & WEAK_HEAD) > 0)
    accepted &= (window[row, length - 1] & (NO_NOUN | WEAK_HEAD)) == 0
    return first[accepted], (first + length - 1)[accepted]

"""Usage of capitalized spans, told by the words before and after them."""

import numpy as np

from graphrag_index.nlp import word_table
from graphrag_index.nlp.name_words import word_before
from graphrag_index.nlp.word_table import DocumentWords, Integers
from graphrag_index.text.languages import Language

# Bit flags for the usage of a span at one position in a text.
INITIAL, DETERMINER, PLACE, DEFINED, PROSE, BEFORE_NOUN, PERSON, PREPOSITION = (
    *(1, 2, 4, 8, 16, 32, 64, 128),
)

# Temporary flags for `find_usage_flags`. WORD_BEFORE and WORD_AFTER: the word before or after the
# span shows the usage of the span. POSSESSIVE, COMMA: an apostrophe or a comma follows the span.
# SPEAKER: the span begins a line, and a colon follows.
WORD_BEFORE, WORD_AFTER, POSSESSIVE, COMMA, SPEAKER = 256, 512, 1024, 2048, 4096
# Maximum number of words from a name to the noun that explains the name: "was a late composer".
MAX_EXPLANATION_WORDS = 5


def find_usage_flags(
    text: str,
    words: DocumentWords,
    start: Integers,
    end: Integers,
    marks: Integers,
    language: Language,
) -> Integers:
    """Return the usage flags of spans: some flags of `marks`, and flags for the words around."""
    flags = marks & (PROSE | INITIAL | PERSON | PLACE)
    # Find the index of the last non-empty word before each word.
    written = np.where(words.ends > words.starts, np.arange(len(words.starts)), 0)
    earlier = np.append(0, np.maximum.accumulate(written)[:-1])
    at = np.searchsorted(words.starts, start, "right") - 1
    before = words.kinds[earlier[at]].astype(np.int64) * (at > 0)
    # Look again at the word before spans that begin inside a word: "l'Institut".
    for row in np.flatnonzero(words.starts[at] != start):
        before[row] = word_table.kind_before_name(word_before(text, int(start[row])), language)
    before[(marks & WORD_BEFORE) == 0] = 0
    placed, other = before & word_table.PLACE_PREPOSITION, before & word_table.OTHER_PREPOSITION
    flags |= np.where(before & word_table.ARTICLE, DETERMINER, 0)
    flags |= np.where(before & word_table.PERSON_VERB, PERSON, 0)  # "said Ellen Marrow"
    flags |= np.where(placed | other, PREPOSITION, 0)
    # "in Taylor's house" does not show that Taylor is a place.
    is_thing = words.kinds[earlier[np.maximum(earlier[at], 0)]] & word_table.IN_THING > 0
    flags |= np.where((placed > 0) & (marks & POSSESSIVE == 0) & ~is_thing, PLACE, 0)
    following = np.minimum(np.searchsorted(words.starts, end, "left"), len(words.starts) - 1)
    after = words.kinds[following].astype(np.int64)
    after[(marks & WORD_AFTER) == 0] = 0
    copula, verb = (after & word_table.COPULA) > 0, (after & word_table.PERSON_VERB) > 0
    flags |= np.where(copula, DEFINED, np.where(verb, PERSON, 0))
    noun = (after & (word_table.LOWER | word_table.FUNCTION)) == word_table.LOWER
    flags |= np.where(noun & ~copula & ~verb, BEFORE_NOUN, 0)
    return np.asarray(flags, np.int64)


def find_cues(words: DocumentWords, start: Integers, end: Integers, marks: Integers) -> Integers:
    """Return the type that a common noun beside each span shows, as in `NameCandidates.cue`.

    The noun stands before the span (driver Dwayne Tilley; the city of Fryeburg), or after a verb or
    a comma behind the span (Verdi was a composer; Zipvan, a van rental company).
    """
    kinds, nouns = words.kinds, sum(word_table.CUE_NOUNS)
    at = np.searchsorted(words.starts, start, "right") - 1
    has_before = (marks & WORD_BEFORE > 0) & (at > 0)
    before = np.where(has_before, kinds[np.maximum(at - 1, 0)], 0)
    found = np.where(before & word_table.PUNCTUATED, 0, before & nouns)
    # "city of Fryeburg": only nouns of places stand before a preposition and the name.
    of_place = (before & word_table.OTHER_PREPOSITION > 0) & (at > 1)
    found |= np.where(of_place, kinds[np.maximum(at - 2, 0)] & word_table.CUE_NOUNS[2], 0)
    following = np.minimum(np.searchsorted(words.starts, end, "left"), len(kinds) - 1)
    # Behind a comma, skip the comma, which is written as a part of the name's last word.
    first = kinds[following]
    is_defined = (marks & WORD_AFTER > 0) & (first & word_table.COPULA > 0)
    is_explained = (marks & COMMA > 0) & (first & (nouns | word_table.INDEFINITE) > 0)
    open_rows = np.flatnonzero((is_defined | is_explained) & (found == 0))
    for ahead in range(MAX_EXPLANATION_WORDS):
        kind = kinds[np.minimum(following[open_rows] + ahead, len(kinds) - 1)]
        found[open_rows] = kind & nouns
        open_rows = open_rows[kind & (nouns | word_table.PUNCTUATED) == 0]
    cues = np.zeros(len(start), np.int64)
    for number, bit in reversed([*enumerate(word_table.CUE_NOUNS, 1)]):
        cues[found & bit > 0] = number
    cues[marks & SPEAKER > 0] = 1
    return cues

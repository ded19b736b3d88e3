"""Usage of capitalized spans, told by the words before and after them."""

import numpy as np
import numpy.typing as npt

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
# SPEAKER: the span begins a line, and a colon follows. LISTED: only a comma or a conjunction stands
# between the span before it and this one. CONJOINED: that is a conjunction. QUOTED: the span is a
# whole title in quotation marks.
WORD_BEFORE, WORD_AFTER, POSSESSIVE, COMMA, SPEAKER, LISTED, CONJOINED, QUOTED = (
    1 << n for n in range(8, 16)
)
_PREPOSITIONS = word_table.PLACE_PREPOSITION | word_table.OTHER_PREPOSITION
# Maximum number of words from a name to the noun that explains the name: "was a late composer".
MAX_EXPLANATION_WORDS = 5
# Maximum number of words from a subject to a pronoun that refers to it: "Weir handed over his".
MAX_PRONOUN_WORDS = 7


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
    before = words.kinds[earlier[at]] * (at > 0)
    # Look again at the word before spans that begin inside a word: "l'Institut".
    for row in np.flatnonzero(words.starts[at] != start):
        before[row] = word_table.kind_before_name(word_before(text, int(start[row])), language)
    before[(marks & WORD_BEFORE) == 0] = 0
    placed, other = before & word_table.PLACE_PREPOSITION, before & word_table.OTHER_PREPOSITION
    is_determined = before & word_table.ARTICLE > 0
    if language.capitalizes_nouns:
        is_determined |= _follows_adjective(words, earlier[at], before) & (end <= words.ends[at])
    flags |= np.where(is_determined, DETERMINER, 0)
    flags |= np.where(before & word_table.PERSON_VERB, PERSON, 0)  # "said Ellen Marrow"
    # "in Taylor's house" and "a stake in Taylor" do not show that Taylor is a place.
    is_owner = marks & POSSESSIVE > 0
    is_thing = words.kinds[earlier[np.maximum(earlier[at], 0)]] & word_table.IN_THING > 0
    is_placed = (placed > 0) & ~is_owner & ~is_thing
    flags |= np.where(is_placed, PLACE, 0)
    flags |= np.where(is_placed | ((other > 0) & ~is_owner), PREPOSITION, 0)
    # A preposition governs the name behind a conjunction, too: in Java and Bali.
    conjoined = np.flatnonzero((marks & CONJOINED > 0) & ~is_owner)
    flags[conjoined] |= flags[conjoined - 1] & (PLACE | PREPOSITION)
    following = np.minimum(np.searchsorted(words.starts, end, "left"), len(words.starts) - 1)
    after = words.kinds[following]
    after[(marks & WORD_AFTER) == 0] = 0
    copula, verb = (after & word_table.COPULA) > 0, (after & word_table.PERSON_VERB) > 0
    flags |= np.where(copula, DEFINED, np.where(verb, PERSON, 0))
    noun = (after & (word_table.LOWER | word_table.FUNCTION)) == word_table.LOWER
    flags |= np.where(noun & ~copula & ~verb, BEFORE_NOUN, 0)
    return np.asarray(flags, np.int64)


def _follows_adjective(
    words: DocumentWords, at: Integers, before: Integers
) -> npt.NDArray[np.bool_]:
    """Return whether the word before each span, at index `at`, is a German adjective.

    Verbs end like adjectives, but do not stand behind an article or a preposition.
    """
    second = words.kinds[np.maximum(at - 1, 0)]
    is_governed = second & (word_table.ARTICLE | _PREPOSITIONS) > 0
    found = (before & word_table.ADJECTIVE > 0) | (
        (before & word_table.ADJECTIVE_ENDING > 0) & is_governed & (at > 0)
    )
    return np.asarray(found, np.bool_)


def find_cues(words: DocumentWords, start: Integers, end: Integers, marks: Integers) -> Integers:
    """Return the type that a common noun beside each span shows, as in `NameCandidates.cue`.

    The noun stands before the span (driver Dwayne Tilley; the city of Fryeburg), or after a verb or
    a comma behind the span (Verdi was a composer; Zipvan, a van rental company).
    """
    kinds, nouns = words.kinds, sum(word_table.CUE_NOUNS)
    at = np.searchsorted(words.starts, start, "right") - 1
    has_before = (marks & WORD_BEFORE > 0) & (at > 0)
    before = np.where(has_before, kinds[np.maximum(at - 1, 0)], 0)
    has_article = before & word_table.ARTICLE > 0
    of_articles = np.where(has_article & (at > 1), kinds[np.maximum(at - 2, 0)], 0)
    found = np.where(before & word_table.PUNCTUATED, 0, before & nouns)
    # "city of Fryeburg", "mayor of Fryeburg": such nouns stand before a preposition and the name.
    of_place = (before & word_table.OTHER_PREPOSITION > 0) & (at > 1)
    place, governing = word_table.CUE_NOUNS[2], kinds[np.maximum(at - 2, 0)]
    shown = np.where(governing & word_table.OF_PLACE > 0, place, governing & place)
    found |= np.where(of_place, shown, 0)
    following = np.minimum(np.searchsorted(words.starts, end, "left"), len(kinds) - 1)
    # Behind a comma, skip the comma, which is written as a part of the name's last word.
    first = kinds[following]
    # "the founder of Exco is": the definition is of the founder.
    is_governed = (before | of_articles) & _PREPOSITIONS > 0
    is_defined = (marks & WORD_AFTER > 0) & (first & word_table.COPULA > 0) & ~is_governed
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
    cues[marks & QUOTED > 0] = 1 + word_table.CUE_TYPES.index("name")
    hints = _find_hints(kinds, following, marks, before)
    return np.where(cues == 0, hints, cues)


def _find_hints(
    kinds: Integers, following: Integers, marks: Integers, before: Integers
) -> Integers:
    """Return the type that the word behind each span, or an address before it, suggests.

    "Weir nodded", "Weir's widow", "Weir handed over his key"; "Exco acquired"; "Auja village".
    `following` is the word behind each span, and `before` the kind of the word before it.
    """
    first = kinds[following]
    is_subject = marks & WORD_AFTER > 0
    hints = np.zeros(len(first), np.int64)
    bits = zip(word_table.HINT_WORDS, word_table.HINT_POSSESSIONS, strict=True)
    for number, (word, possession) in enumerate(bits, word_table.FIRST_HINT):
        hints[is_subject & (first & word > 0)] = number
        hints[(marks & POSSESSIVE > 0) & (first & possession > 0)] = number
    # el señor Llibre; two such surnames are no given name and surname
    hints[(before & word_table.ADDRESS > 0) & (hints == 0)] = word_table.FIRST_HINT
    functions = first & (word_table.FUNCTION | word_table.COPULA)
    is_verb = (first & word_table.LOWER > 0) & (functions != word_table.FUNCTION)
    is_free = before & (word_table.ARTICLE | _PREPOSITIONS) == 0
    open_rows = np.flatnonzero(is_subject & is_verb & is_free & (hints == 0))
    for ahead in range(MAX_PRONOUN_WORDS):
        kind = kinds[np.minimum(following[open_rows] + ahead, len(kinds) - 1)]
        hints[open_rows[kind & word_table.HUMAN_PRONOUN > 0]] = word_table.FIRST_HINT
        open_rows = open_rows[kind & (word_table.HUMAN_PRONOUN | word_table.PUNCTUATED) == 0]
    return hints

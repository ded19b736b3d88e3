"""Usage of capitalized spans, told by the words before and after them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from graphrag_nlp.names import word_table
from graphrag_nlp.names.name_words import word_before
from graphrag_nlp.names.word_table import DocumentWords, Integers
from graphrag_nlp.text.languages import Language

# Bit flags for the usage of a span at one position in a text.
INITIAL, DETERMINER, PLACE, DEFINED, PROSE, BEFORE_NOUN, PERSON, PREPOSITION = (
    *(1, 2, 4, 8, 16, 32, 64, 128),
)

# Temporary flags for `find_usage_flags`. WORD_BEFORE and WORD_AFTER: the word before or after the
# span shows the usage of the span. POSSESSIVE, COMMA: an apostrophe or a comma follows the span.
# SPEAKER: the span begins a line, and a colon follows. LISTED: only a comma or a conjunction stands
# between the span before it and this one. CONJOINED: it is only a conjunction, without a comma.
# BRACKETED: a bracket stands between the span and the word after.
WORD_BEFORE, WORD_AFTER, POSSESSIVE, COMMA, SPEAKER, LISTED, CONJOINED, BRACKETED = (
    1 << n for n in range(8, 16)
)
_PREPOSITIONS = word_table.PLACE_PREPOSITION | word_table.OTHER_PREPOSITION
# Maximum number of words from a name to the noun that explains the name: "was a late composer".
MAX_EXPLANATION_WORDS = 5
# Maximum number of words from a subject to a pronoun that refers to it: "Weir handed over his".
MAX_PRONOUN_WORDS = 7


class SpansOfPart(NamedTuple):
    """The spans of a part of a document, with offsets and marks, and the words of the part."""

    text: str
    words: DocumentWords
    language: Language
    start: Integers
    end: Integers
    marks: Integers


class _SpanPlaces(NamedTuple):
    """The positions of spans among the words of several parts of documents.

    `kinds` and `earlier` have one value per word: its kind, and the last word before it that is not
    empty. The others have one per span: the word in which it begins, the first word after it, and
    the first and the last word of its part. All words are indexes.
    """

    kinds: Integers
    earlier: Integers
    at: Integers
    following: Integers
    first: Integers
    last: Integers
    marks: Integers
    # Whether a span begins inside a word, and whether it ends in the word in which it begins.
    is_inside: npt.NDArray[np.bool_]
    is_one_word: npt.NDArray[np.bool_]
    is_english: npt.NDArray[np.bool_]

    def kinds_ahead(self, spans: Integers, n: int) -> Integers:
        """Return the kind of the word that is `n` words after the first word after each span."""
        words = np.minimum(self.following[spans] + n, self.last[spans])
        return np.asarray(self.kinds[words], np.int64)


def find_usage(parts: Sequence[SpansOfPart]) -> tuple[Integers, Integers]:
    """Return the usage flags and the cues of the spans of all parts.

    All parts are processed together: many operations on short arrays would take far longer.
    """
    places = _locate_spans(parts)
    return _find_usage_flags(places, parts), _find_cues(places)


def _locate_spans(parts: Sequence[SpansOfPart]) -> _SpanPlaces:
    n_words = np.array([len(part.words.kinds) for part in parts], np.int64)
    n_spans = np.array([len(part.start) for part in parts], np.int64)
    first = np.cumsum(n_words) - n_words
    # Offsets of the parts, as if all were one text.
    n_chars = np.array([len(part.text) + 1 for part in parts], np.int64)
    offset = np.cumsum(n_chars) - n_chars
    word_starts = np.concatenate([part.words.starts for part in parts]) + np.repeat(offset, n_words)
    word_ends = np.concatenate([part.words.ends for part in parts]) + np.repeat(offset, n_words)
    start = np.concatenate([part.start for part in parts]) + np.repeat(offset, n_spans)
    end = np.concatenate([part.end for part in parts]) + np.repeat(offset, n_spans)
    is_written = word_ends > word_starts
    is_written[first] = True
    written = np.where(is_written, np.arange(len(word_starts)), 0)
    earlier = np.append(0, np.maximum.accumulate(written)[:-1])
    earlier[first] = first
    at = np.searchsorted(word_starts, start, "right") - 1
    last = np.repeat(first + n_words - 1, n_spans)
    return _SpanPlaces(
        kinds=np.concatenate([part.words.kinds for part in parts]),
        earlier=earlier,
        at=at,
        following=np.minimum(np.searchsorted(word_starts, end, "left"), last),
        first=np.repeat(first, n_spans),
        last=last,
        marks=np.concatenate([part.marks for part in parts]),
        is_inside=word_starts[at] != start,
        is_one_word=end <= word_ends[at],
        is_english=np.repeat([part.language.code == "en" for part in parts], n_spans),
    )


def _find_usage_flags(places: _SpanPlaces, parts: Sequence[SpansOfPart]) -> Integers:
    """Return the usage flags of spans, from `marks` and from the words around the spans."""
    kinds, earlier, at, marks = places.kinds, places.earlier, places.at, places.marks
    flags = marks & (PROSE | INITIAL | PERSON | PLACE)
    before = kinds[earlier[at]] * (at > places.first)
    n_spans = [len(part.start) for part in parts]
    bounds = np.cumsum(n_spans)
    # Look again at the word before spans that begin inside a word: "l'Institut".
    for row in np.flatnonzero(places.is_inside).tolist():
        number = int(np.searchsorted(bounds, row, "right"))
        part = parts[number]
        start = int(part.start[row - bounds[number]])
        before[row] = word_table.kind_before_name(word_before(part.text, start), part.language)
    before[(marks & WORD_BEFORE) == 0] = 0
    placed, other = before & word_table.PLACE_PREPOSITION, before & word_table.OTHER_PREPOSITION
    is_determined = before & word_table.ARTICLE > 0
    is_german = np.repeat([part.language.capitalizes_nouns for part in parts], n_spans)
    is_determined |= _follows_adjective(places, before) & places.is_one_word & is_german
    flags |= np.where(is_determined, DETERMINER, 0)
    flags |= np.where(before & word_table.PERSON_VERB, PERSON, 0)  # "said Ellen Marrow"
    # "in Taylor's house" and "a stake in Taylor" do not show that Taylor is a place.
    is_owner = marks & POSSESSIVE > 0
    is_thing = kinds[earlier[earlier[at]]] & word_table.IN_THING > 0
    is_placed = (placed > 0) | _follows_member(places, earlier[at], before)
    is_placed &= ~is_owner & ~is_thing
    flags |= np.where(is_placed, PLACE, 0)
    flags |= np.where(is_placed | ((other > 0) & ~is_owner), PREPOSITION, 0)
    # A preposition governs the name after a conjunction, too: in Java and Bali.
    conjoined = np.flatnonzero((marks & CONJOINED > 0) & ~is_owner)
    flags[conjoined] |= flags[conjoined - 1] & (PLACE | PREPOSITION)
    after = kinds[places.following]
    after[(marks & WORD_AFTER) == 0] = 0
    copula, verb = (after & word_table.COPULA) > 0, (after & word_table.PERSON_VERB) > 0
    flags |= np.where(copula, DEFINED, np.where(verb, PERSON, 0))
    noun = (after & (word_table.LOWER | word_table.FUNCTION)) == word_table.LOWER
    noun &= marks & BRACKETED == 0
    flags |= np.where(noun & ~copula & ~verb, BEFORE_NOUN, 0)
    return np.asarray(flags, np.int64)


def _follows_member(places: _SpanPlaces, at: Integers, before: Integers) -> npt.NDArray[np.bool_]:
    """Return whether a member of a parliament stands before each name: the Member for Hyndburn.

    `at` and `before` are the index and the kind of the word before the name.
    """
    governing = places.kinds[np.maximum(at - 1, 0)]
    is_member = (before & word_table.MEMBER_JOINT > 0) & (governing & word_table.MEMBER > 0)
    return np.asarray(is_member & (at > places.first), np.bool_)


def _follows_adjective(places: _SpanPlaces, before: Integers) -> npt.NDArray[np.bool_]:
    """Return whether the word before each span is a German adjective.

    Verbs end like adjectives, but do not stand after an article or a preposition.
    """
    at = places.earlier[places.at]
    second = places.kinds[np.maximum(at - 1, 0)]
    is_governed = second & (word_table.ARTICLE | _PREPOSITIONS) > 0
    found = (before & word_table.ADJECTIVE > 0) | (
        (before & word_table.ADJECTIVE_ENDING > 0) & is_governed & (at > places.first)
    )
    return np.asarray(found, np.bool_)


def _find_cues(places: _SpanPlaces) -> Integers:
    """Return the type that a common noun beside each span shows, as in `NameCandidates.cue`.

    The noun stands before the span (driver Dwayne Tilley; the city of Fryeburg), or after a verb or
    a comma after the span (Verdi was a composer; Zipvan, a van rental company).
    """
    kinds, at, marks, first = places.kinds, places.at, places.marks, places.first
    nouns = sum(word_table.CUE_NOUNS)
    has_before = (marks & WORD_BEFORE > 0) & (at > first)
    before = np.where(has_before, kinds[np.maximum(at - 1, 0)], 0)
    has_article = before & word_table.ARTICLE > 0
    of_articles = np.where(has_article & (at > first + 1), kinds[np.maximum(at - 2, 0)], 0)
    found = np.where(before & word_table.PUNCTUATED, 0, before & nouns)
    # a name between commas: its correspondent, Lena Hart, said
    is_between = (before & word_table.PUNCTUATED > 0) & (marks & COMMA > 0)
    found |= np.where(is_between, before & word_table.CUE_NOUNS[0], 0)
    # "city of Fryeburg", "mayor of Fryeburg": such nouns stand before a preposition and the name.
    of_place = (before & word_table.OTHER_PREPOSITION > 0) & (at > first + 1)
    place, governing = word_table.CUE_NOUNS[2], kinds[np.maximum(at - 2, 0)]
    shown = np.where(governing & word_table.OF_PLACE > 0, place, governing & place)
    found |= np.where(of_place, shown, 0)
    found |= np.where(_follows_member(places, at - 1, before), place, 0)
    # A comma counts as a part of the last word of the name, so this is the word after the comma.
    after = kinds[places.following]
    # In "the founder of Exco is a pilot", the noun describes the founder, not Exco.
    is_governed = (before | of_articles) & _PREPOSITIONS > 0
    is_defined = (marks & WORD_AFTER > 0) & (after & word_table.COPULA > 0) & ~is_governed
    is_explained = (marks & COMMA > 0) & (after & (nouns | word_table.INDEFINITE) > 0)
    # The noun may begin another clause: They left Porto Alegre, | Mayor Chaise said.
    is_explained &= ~places.is_english | (after & word_table.LOWER > 0)
    # A word such as "near" shows a place: Hulcote, near Kiel.
    is_near = (marks & COMMA > 0) & (after & word_table.NEARBY > 0)
    found |= np.where(is_near & (found == 0), place, 0)
    open_rows = np.flatnonzero((is_defined | is_explained) & (found == 0))
    person = word_table.CUE_NOUNS[0]
    for ahead in range(MAX_EXPLANATION_WORDS):
        kind = places.kinds_ahead(open_rows, ahead)
        # a company executive: the last of two nouns counts
        behind = places.kinds_ahead(open_rows, ahead + 1)
        is_pair = (kind & nouns > 0) & (kind & word_table.PUNCTUATED == 0) & (behind & person > 0)
        found[open_rows] = np.where(is_pair, person, kind & nouns)
        open_rows = open_rows[kind & (nouns | word_table.PUNCTUATED) == 0]
    cues = np.zeros(len(at), np.int64)
    for number, bit in reversed([*enumerate(word_table.CUE_NOUNS, 1)]):
        cues[found & bit > 0] = number
    cues[marks & SPEAKER > 0] = 1
    hints = _find_hints(places, before)
    return np.where(cues == 0, hints, cues)


def _find_hints(places: _SpanPlaces, before: Integers) -> Integers:
    """Return the type that the word after each span, or a form of address before it, suggests.

    Persons: "Weir nodded", "Weir handed over his key"; others: "Exco acquired", "Auja village".
    `before` is the kind of the word before each span.
    """
    marks, first = places.marks, places.kinds[places.following]
    is_subject = marks & WORD_AFTER > 0
    hints = np.zeros(len(first), np.int64)
    bits = zip(word_table.HINT_WORDS, word_table.HINT_POSSESSIONS, strict=True)
    for number, (word, possession) in enumerate(bits, word_table.FIRST_HINT):
        hints[is_subject & (first & word > 0)] = number
        hints[(marks & POSSESSIVE > 0) & (first & possession > 0)] = number
    # A form of address shows a person: el señor Llibre.
    hints[(before & word_table.ADDRESS > 0) & (hints == 0)] = word_table.FIRST_HINT
    functions = first & (word_table.FUNCTION | word_table.COPULA)
    is_verb = (first & word_table.LOWER > 0) & (functions != word_table.FUNCTION)
    is_free = before & (word_table.ARTICLE | _PREPOSITIONS) == 0
    open_rows = np.flatnonzero(is_subject & is_verb & is_free & (hints == 0))
    for ahead in range(MAX_PRONOUN_WORDS):
        kind = places.kinds_ahead(open_rows, ahead)
        hints[open_rows[kind & word_table.HUMAN_PRONOUN > 0]] = word_table.FIRST_HINT
        open_rows = open_rows[kind & (word_table.HUMAN_PRONOUN | word_table.PUNCTUATED) == 0]
    return hints

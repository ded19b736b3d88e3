"""Sentences: their boundaries, headings, near-duplicates, and fitness for quotation.

Rules, not a model, find the boundaries of sentences. A full stop after an abbreviation, initial,
ordinal or number does not end a sentence. Short brackets and quotations are not split. Blank lines,
headings, list items and table rows end the sentence before them.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence, Set
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_nlp.list_columns import Integers
from graphrag_nlp.text.code import find_fenced_blocks, is_inside
from graphrag_nlp.text.languages import expand_pattern, read_lists, word_set
from graphrag_nlp.text.lines import LAYOUT, find_joins, find_letters, join_words, may_break_words


class Sentence(NamedTuple):
    """Offsets of a sentence, or of a heading, list item or table row."""

    start: int
    end: int
    # Whether this is a whole sentence, and not a heading, fragment or table row.
    prose: bool


_WORD_LISTS = read_lists("graphrag_nlp/text/data/sentences")
_PATTERNS = {
    **read_lists("graphrag_nlp/text/data/sentence_patterns"),
    "LABEL_WORDS": _WORD_LISTS["words_before_labels"].replace(" ", "|"),
    "RULERS": _WORD_LISTS["titles_before_numerals"].replace(" ", "|"),
}
_ABBREVIATIONS = word_set(_WORD_LISTS["abbreviations"])
_FINAL_ABBREVIATIONS = word_set(_WORD_LISTS["final_abbreviations"])
_SENTENCE_OPENERS = word_set(_WORD_LISTS["sentence_openers"])
_UNCASED_ABBREVIATIONS = word_set(_WORD_LISTS["uncased_abbreviations"])
_UNCASED_OPENERS = word_set(_WORD_LISTS["uncased_openers"])
_WORDS_AFTER_ORDINALS = word_set(_WORD_LISTS["after_ordinals"])
# Abbreviations with full stops between letters: J.R, J.-P, U.S, non-U.S, e.g, z.B, т.е.
_DOTTED_ABBREVIATION = re.compile(r"(?:\w+[-–/'’])?((?:[^\W\d_]\.-?)+[^\W\d_]{1,2})")
_SENTENCE_BOUNDARY = re.compile(expand_pattern(_PATTERNS, "BOUNDARY"), re.VERBOSE)
# By opening mark: pattern of a bracket or quotation that contains the end of a sentence.
_ENCLOSED_SENTENCE_ENDS = {
    opening: re.compile(
        rf"{re.escape(opening)}{condition}"
        rf"[^{marks}.!?…。！？]{{,200}}[.!?…。！？][^{marks}]{{,200}}{closing}"
    )
    for opening, condition, marks, closing in _WORD_LISTS["enclosed"]
}
# A longer bracket or quotation is split at sentence ends: its closing mark may be missing.
MAX_ENCLOSED_CHARACTERS = 200
# The dots between a heading and its page in a table of contents.
DOT_LEADER = re.compile(r"(?<!\.)(?<!\. )(?:\. ?){5,}+")
# A line of a log begins with a time stamp.
LOG_LINE = re.compile(rf"^{expand_pattern(_PATTERNS, 'STAMP')}[^\n]*", re.MULTILINE)
_LAYOUT_BREAK = re.compile(_PATTERNS["LAYOUT_BREAK"])
# Minimum length of a text without a capital letter whose sentences begin in lower case.
MIN_UNCASED_CHARACTERS = 200
# What a boundary can begin with. Searching for it first is much faster; of a run of stops, all have
# the same end.
_BOUNDARY_START = re.compile(r"[.!?…]+|[。！？｡؟۔।॥።\n#|]")
_LABEL_AT_END = re.compile(expand_pattern(_PATTERNS, "LABEL_AT_END"))
_LAST_WORD = re.compile(r"[^\s(\[\"“„«]+$")
_NEXT_WORD = re.compile(r"[\"'“„‘«(\[*_]*(\w+)")
_LIST_MARKER = re.compile(_PATTERNS["LIST_MARKER"])
_SENTENCE_END_MARK = re.compile(r"[.!?…。！？｡؟۔।॥።][\"'”’»)\]」』）》*_]*$")


def split_sentences(text: str, starts: Sequence[int] | None = None) -> list[Sentence]:
    """Split a text into sentences without list markers and surrounding white space.

    `starts` is the result of `find_segment_starts(text)`, if already computed.
    """
    sentences = []
    starts = find_segment_starts(text) if starts is None else starts
    is_uncased = _is_uncased(text)
    for start, end in pairwise([*starts, len(text)]):
        segment = text[start:end].rstrip()
        if not segment:
            continue
        end = start + len(segment)
        if not segment[0].isupper():
            stripped = segment.lstrip()
            start = end - len(stripped)
            marker = _LIST_MARKER.match(stripped)
            if marker and marker.end() < len(stripped):
                start += marker.end()
            if stripped[0] == "#":
                sentences.append(Sentence(start, end, False))
                continue
            segment = text[start:end]
        sentences.append(Sentence(start, end, _is_prose(segment, is_uncased)))
    return sentences


def find_segment_starts(text: str) -> list[int]:
    """Find the offsets at which segments start.

    A segment is a sentence with its list marker and the white space after it. The segments cover
    the whole text: the first start is 0, and an empty text has no segments.
    """
    starts = [0] if text else []
    is_uncased = _is_uncased(text)
    reached = 0
    for mark in _BOUNDARY_START.finditer(text):
        stop = mark.start()
        if stop < reached:
            continue
        if text[stop] == "." and _plainly_ends_sentence(text, stop):
            starts.append(stop + 2)
            continue
        match = _SENTENCE_BOUNDARY.match(text, stop)
        if match is None:
            continue
        reached = match.end()
        if match["stop"] is not None and not _ends_sentence(text, match, is_uncased):
            continue
        if reached < len(text):
            starts.append(reached)
    # Starts to drop, since they are inside short brackets or quotations.
    enclosed: set[int] = set()
    for opening, pattern in _ENCLOSED_SENTENCE_ENDS.items():
        # Search for the opening mark first, which is faster than the pattern.
        for match in pattern.finditer(text) if opening in text else ():
            begin, end = match.span()
            first, last = bisect_right(starts, begin), bisect_left(starts, end)
            is_short = end - begin <= MAX_ENCLOSED_CHARACTERS
            if first < last and is_short and not _LAYOUT_BREAK.search(match[0]):
                enclosed.update(starts[first:last])
    return [start for start in starts if start not in enclosed] if enclosed else starts


def _plainly_ends_sentence(text: str, stop: int) -> bool:
    """Return whether a full stop follows a whole word and precedes a capital letter."""
    after = text[stop + 1 : stop + 3]
    if after[:1] != " " or not after.isupper():
        return False
    word = text[text.rfind(" ", 0, stop) + 1 : stop]
    return len(word) > 1 and word.isalpha() and word.lower() not in _ABBREVIATIONS


def _is_uncased(text: str) -> bool:
    """Return whether a text is written in lower case, so that its sentences begin in it too."""
    return len(text) >= MIN_UNCASED_CHARACTERS and text.islower()


def _ends_sentence(text: str, match: re.Match[str], is_uncased: bool) -> bool:
    if "\n\n" in match["space"]:
        return True
    end = match.end()
    following = text[end : end + 1]
    if match["stop"] != ".":
        # Continue the sentence after "…" or "?!" if the next word begins in lower case.
        return is_uncased or not following.islower()
    if following.islower() and not is_uncased:
        return False
    begin = match.start()
    word_match = _LAST_WORD.search(text, max(0, begin - 20), begin)
    surface = word_match.group() if word_match else ""
    word = surface.lower()
    if len(word) == 1 and word.isalpha():
        # End the sentence after "I", a label or a numeral ("George V."), but not after an initial.
        before = text[max(0, begin - 60) : begin]
        is_initial = not before.endswith(" I") and _LABEL_AT_END.search(before) is None
        return text[begin - 1].isupper() and not is_initial
    dotted = _DOTTED_ABBREVIATION.fullmatch(surface) if "." in surface else None
    is_measure = is_uncased and word in _UNCASED_ABBREVIATIONS
    if dotted or is_measure or word in _ABBREVIATIONS:
        is_final = is_measure or word in _FINAL_ABBREVIATIONS
        if not (is_final or (dotted and dotted[1].isupper())):
            return False
        # "The firm is Acme Inc. In May it" has a capital, "acme inc. in may" goes on.
        openers = _UNCASED_OPENERS if is_uncased else _SENTENCE_OPENERS
        next_word = _NEXT_WORD.match(text, end)
        return next_word is not None and next_word[1].lower() in openers
    if word.isdigit() and len(word) <= 2:
        next_word = _NEXT_WORD.match(text, end)
        return not (next_word and next_word[1].lower() in _WORDS_AFTER_ORDINALS)
    return True


def _is_prose(sentence: str, is_uncased: bool) -> bool:
    """Return whether a segment is a whole sentence, not a heading, fragment or table row."""
    length, last, first = len(sentence), sentence[-1], sentence[0]
    if length > 700 or (last not in ".!?" and not _SENTENCE_END_MARK.search(sentence[-6:])):
        return False
    if first in "\"'“„‘«([*_":
        first = next((c for c in sentence[:5] if c.isalnum()), first)
    if (first.islower() and not is_uncased) or not first.isalnum() or "|" in sentence:
        return False
    if DOT_LEADER.search(sentence):
        return False
    count = sentence.count
    if count("(") != count(")") or count("[") != count("]"):
        return False
    # Require fewer characters in scripts without spaces.
    return length >= 5 if last in "。！？｡" else length >= 20 and sentence.count(" ") >= 3


_HEADING = re.compile("".join(_PATTERNS["HEADING"]), re.MULTILINE)


class Heading(NamedTuple):
    """A heading with its span, depth (1 is the top level) and words."""

    start: int
    end: int
    depth: int
    words: str


def find_headings(text: str) -> list[Heading]:
    """Find the Markdown headings of a text. Fenced blocks are skipped."""
    if "#" not in text and "\n==" not in text and "\n--" not in text:
        return []
    fences = find_fenced_blocks(text)
    headings = []
    for match in _HEADING.finditer(text):
        if not is_inside(fences, match.start()):
            depth = len(match["marks"]) if match["marks"] else 1 if match["line"][0] == "=" else 2
            headings.append(Heading(*match.span(), depth, match["words"] or match["over"]))
    return headings


def join_headings_above(headings: Sequence[Heading], position: int) -> str:
    """Join the headings above a position to "Top > Sub"; the top level comes first."""
    path: list[tuple[int, str]] = []
    for start, _, depth, words in headings:
        if start > position:
            break
        while path and path[-1][0] >= depth:
            path.pop()
        path.append((depth, words))
    return " > ".join(words for _, words in path)


# Maximum share of the distinctive words of the shorter of two sentences that both have. With a
# higher share, the sentences are near-duplicates. Distinctive words are long words and numbers.
MAX_COMMON_WORD_SHARE = 0.7
# Numbers, and words of four characters or more: shorter words are mostly function words.
_DISTINCTIVE_WORD = re.compile(r"\w{4,}|\d+")
_ANY_WORD = re.compile(r"\w+")


def distinctive_words(sentence: str) -> frozenset[str]:
    """Return the long words and numbers of a sentence in lower case.

    If a sentence has fewer than two long words and numbers, return all its words.
    """
    folded = sentence.lower()
    words = frozenset(_DISTINCTIVE_WORD.findall(folded))
    return words if len(words) > 1 else frozenset(_ANY_WORD.findall(folded))


def are_near_duplicates(a: Set[str], b: Set[str]) -> bool:
    """Return whether two sentences, given as sets of distinctive words, are near-duplicates."""
    return len(a & b) > MAX_COMMON_WORD_SHARE * min(len(a), len(b))


# Number of documents in one batch, to limit memory.
BATCH_DOCUMENTS = 512

# A line in this many documents, or this often in one document, is a page header or footer.
MIN_LINE_REPEATS = 3
# A document with at least this share of repeated lines is a copy: its lines can be quoted.
MIN_REPEATED_LINE_SHARE = 0.8
# E-mail quotation marks (">") at the start of a line, but not "> 5 mm" and ">= limit".
_EMAIL_QUOTE_MARKS = re.compile(r"^(?:[^\S\n]*>)+(?!=|[^\S\n]*\d)", re.MULTILINE)


def are_quotable(sentences: pl.DataFrame) -> pl.Series:
    """Return for each row of `sentences` whether it can be quoted.

    A row can be quoted if it is a whole sentence whose line is not repeated in the corpus as page
    headers and footers are. In copied documents, repeated lines can be quoted.
    """
    place = pl.col("document", "line")
    # Count adjacent sentences on the same line once.
    begins = pl.any_horizontal(place.ne_missing(place.shift()))
    lines = (
        sentences.select("document", "line", "quotable", run=begins.cum_sum())
        .with_row_index("row")
        .filter("quotable", pl.col("line") != 0)
        # Drop lines that occur once, which are most, to make the next steps fast.
        .filter(pl.len().over("line") >= MIN_LINE_REPEATS)
    )
    often = (
        lines.group_by("line", "document")
        .agg(times=pl.col("run").n_unique())
        .group_by("line")
        .agg(times=pl.max("times"), documents=pl.len())
        .filter(pl.max_horizontal("times", "documents") >= MIN_LINE_REPEATS)
    )
    repeated_lines = (
        lines.join(often, on="line", how="semi")
        .join(sentences.group_by("document").agg(sentences=pl.sum("quotable")), on="document")
        .filter(pl.len().over("document") < MIN_REPEATED_LINE_SHARE * pl.col("sentences"))
    )
    flags = sentences["quotable"].to_numpy(writable=True)
    flags[repeated_lines["row"].to_numpy()] = False
    return pl.Series("quotable", flags)


def join_lines(text: str) -> str:
    """Put a quotation on one line, without e-mail quotation marks, and join its words."""
    # Most quotations are on one line already. Of white space, only the space is printable.
    if text.isprintable() and "  " not in text:
        return text.strip(" ")
    if "\n" in text:
        text = _EMAIL_QUOTE_MARKS.sub("", text)
    return " ".join(join_words(text, find_joins(text)).split())


def find_quotation(quotation: str, text: str) -> tuple[int, int] | None:
    """Find the span of a quotation, also after `join_lines`; None if it is not in the text."""
    places, letters = find_letters(text), LAYOUT.sub("", quotation)
    at = "".join(text[place] for place in places).find(letters)
    return (places[at], places[at + len(letters) - 1] + 1) if at >= 0 and letters else None


class Quotations:
    """Selected sentences: their texts and their positions.

    `texts` has each sentence on one line. `places` has one row per sentence: `document` (the number
    of the document), `start_char` and `end_char`.
    """

    def __init__(self, documents: pl.LazyFrame, sentences: pl.DataFrame, rows: Integers) -> None:
        self.rows = np.unique(rows)
        self.places = sentences[self.rows].select("document", "start_char", "end_char")
        n_documents = documents.select(pl.len()).collect().item()
        steps = np.arange(0, n_documents + BATCH_DOCUMENTS, BATCH_DOCUMENTS)
        bounds = np.searchsorted(self.places["document"].to_numpy(), steps).tolist()
        parts = [pl.Series(dtype=pl.String)]
        for batch, (first, last) in enumerate(pairwise(bounds)):
            if first == last:
                continue
            offset = batch * BATCH_DOCUMENTS
            texts = documents.select("text").slice(offset, BATCH_DOCUMENTS).collect().to_series()
            found, may_break = list[str](), may_break_words(texts)
            for document, spans in groupby(self.places[first:last].iter_rows(), itemgetter(0)):
                text = texts[document - offset]
                joins = find_joins(text) if may_break[document - offset] else []
                found.extend(join_lines(join_words(text, joins, *span)) for _, *span in spans)
            parts.append(pl.Series(found, dtype=pl.String))
        # Store one Arrow column: a list of Python strings takes three times the memory.
        self.texts = pl.concat(parts)

    def map_sentence_rows(self, rows: Integers) -> Integers:
        """Map row numbers of sentences to row numbers in `texts` and `places`."""
        return np.searchsorted(self.rows, rows)

"""Sentences: boundaries, headings, near-duplicates, and sentences that can be quoted.

Boundaries follow rules, not a model. A full stop behind an abbreviation, initial, ordinal or
number ends no sentence; short brackets and quotations are kept whole; blank lines, headings,
list items and table rows end the sentence before them.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence, Set
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.text.languages import read_lists, word_set

Integers = npt.NDArray[np.int64]


class Sentence(NamedTuple):
    """A sentence or another unit of layout, as offsets into its text."""

    start: int
    end: int
    # A whole sentence that can be quoted by itself; not a heading, list stub or table row.
    prose: bool


_LISTS = read_lists("text/data/sentences")
_ABBREVIATIONS, _MAY_END = word_set(_LISTS["abbreviations"]), word_set(_LISTS["may_end"])
_OPENERS, _BEHIND_ORDINALS = word_set(_LISTS["openers"]), word_set(_LISTS["behind_ordinals"])
# Letters with full stops between them: J.R, J.-P, U.S, non-U.S, e.g, z.B, т.е.
_DOTTED = re.compile(r"(?:\w+[-–/'’])?((?:[^\W\d_]\.-?)+[^\W\d_]{1,2})")
_BOUNDARY = re.compile(
    r"""
      (?P<stop>[.!?…]+)["'”’»)\]*_]*(?P<space>\s+)   # a stop and a space
    | [。！？｡]+["'”’」』）》]*\s*                      # stops of scripts without spaces
    | [؟۔।॥።]+["'”’»)]*\s*                            # Arabic, Devanagari, Ethiopic
    | (?<![^\n])\#{1,6}[^\S\n][^\n]*\n\s*              # a heading, whole
    | \|[^\S\n]*\n\s*                                 # the end of a table row
    | \n[^\S\n]*\n\s*                                 # a blank line
    | \n(?=[^\S\n]*(?:\#{1,6}\s|[-*+•]\s|\d{1,3}[.)]\s|\|))   # a heading, list item or table row
    """,
    re.VERBOSE,
)
# Brackets and quotations that hold a stop, by the mark that opens them.
_ENCLOSED = {
    opening: re.compile(
        rf"{re.escape(opening)}{condition}"
        rf"[^{marks}.!?…。！？]{{,200}}[.!?…。！？][^{marks}]{{,200}}{closing}"
    )
    for opening, condition, marks, closing in _LISTS["enclosed"]
}
# An enclosure ends before so many characters, or does not count: a mark may be forgotten.
MAX_ENCLOSED = 200
# Ends of paragraphs, list items and table rows: an enclosure that contains one does not count.
_LAYOUT = re.compile(r"\n[^\S\n]*(?:\n|\#{1,6}\s|[-*+•]\s|\d{1,3}[.)]\s|\|)|\|[^\S\n]*\n")
# The characters at which a boundary can begin: to look for these first is much quicker.
_MARK = re.compile(r"[.!?…。！？｡؟۔।॥።\n#|]")
# A capital that is a label or a numeral and not an initial.
_LABEL = re.compile(
    rf"°[CF]$|\b(?:{_LISTS['labels'].replace(' ', '|')}) [A-Z]$"
    rf"|\b(?:{_LISTS['rulers'].replace(' ', '|')}) (?:\w+ ){{1,2}}[IVX]$"
)
_LAST_WORD = re.compile(r"[^\s(\[\"“„«]+$")
_NEXT_WORD = re.compile(r"[\"'“„‘«(\[*_]*(\w+)")
_MARKER = re.compile(r"(?:\#{1,6}\s+|[-*+•]\s+|\d{1,3}[.)]\s+|>\s+)+")
_TERMINAL = re.compile(r"[.!?…。！？｡؟۔।॥።][\"'”’»)\]」』）》*_]*$")


def split_sentences(text: str, starts: Sequence[int] | None = None) -> list[Sentence]:
    """Cut a text into its sentences, in order, without the space and list marks between them.

    `starts` are those of `segment_starts`, if they are known already.
    """
    sentences = []
    starts = segment_starts(text) if starts is None else starts
    for start, end in pairwise([*starts, len(text)]):
        segment = text[start:end].rstrip()
        if not segment:
            continue
        end = start + len(segment)
        if not segment[0].isupper():
            stripped = segment.lstrip()
            start = end - len(stripped)
            marker = _MARKER.match(stripped)
            if marker and marker.end() < len(stripped):
                start += marker.end()
            if stripped[0] == "#":
                sentences.append(Sentence(start, end, False))
                continue
            segment = text[start:end]
        sentences.append(Sentence(start, end, _is_prose(segment)))
    return sentences


def segment_starts(text: str) -> list[int]:
    """Return the starts of segments: sentences with their marks and the space behind.

    The first is 0; an empty text has none. Together the segments are the text.
    """
    starts = [0] if text else []
    reached = 0
    for mark in _MARK.finditer(text):
        stop = mark.start()
        if stop < reached:
            continue
        if text[stop] == "." and _plainly_ends_sentence(text, stop):
            starts.append(stop + 2)
            continue
        match = _BOUNDARY.match(text, stop)
        if match is None:
            continue
        reached = match.end()
        if match["stop"] is not None and not _ends_sentence(text, match):
            continue
        if reached < len(text):
            starts.append(reached)
    # Starts within short brackets or quotations, which are dropped.
    enclosed: set[int] = set()
    for opening, pattern in _ENCLOSED.items():
        # To look for the mark first is quicker than any pattern.
        for match in pattern.finditer(text) if opening in text else ():
            begin, end = match.span()
            first, last = bisect_right(starts, begin), bisect_left(starts, end)
            if first < last and end - begin <= MAX_ENCLOSED and not _LAYOUT.search(match[0]):
                enclosed.update(starts[first:last])
    return [start for start in starts if start not in enclosed] if enclosed else starts


def _plainly_ends_sentence(text: str, stop: int) -> bool:
    """Detect the common end of a sentence: a word, its full stop, a space, a capital."""
    after = text[stop + 1 : stop + 3]
    if after[:1] != " " or not after.isupper():
        return False
    word = text[text.rfind(" ", 0, stop) + 1 : stop]
    return len(word) > 1 and word.isalpha() and word.lower() not in _ABBREVIATIONS


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    if "\n\n" in match["space"]:
        return True
    end = match.end()
    following = text[end : end + 1]
    if match["stop"] != ".":
        # "…" and "?!" may occur inside a sentence, which continues in lower case.
        return not following.islower()
    if following.islower():
        return False
    begin = match.start()
    word_match = _LAST_WORD.search(text, max(0, begin - 20), begin)
    surface = word_match.group() if word_match else ""
    word = surface.lower()
    if len(word) == 1 and word.isalpha():
        # Such a capital may be a pronoun, a label or a number, and no initial: George V.
        before = text[max(0, begin - 60) : begin]
        is_initial = not before.endswith(" I") and _LABEL.search(before) is None
        return text[begin - 1].isupper() and not is_initial
    dotted = _DOTTED.fullmatch(surface) if "." in surface else None
    if dotted or word in _ABBREVIATIONS:
        if not (word in _MAY_END or (dotted and dotted[1].isupper())):
            return False
        next_word = _NEXT_WORD.match(text, end)
        return next_word is not None and next_word[1].lower() in _OPENERS
    if word.isdigit() and len(word) <= 2:
        next_word = _NEXT_WORD.match(text, end)
        return not (next_word and next_word[1].lower() in _BEHIND_ORDINALS)
    return True


def _is_prose(sentence: str) -> bool:
    """Tell whether a segment is a whole sentence: no heading, stub, or table row."""
    length, last, first = len(sentence), sentence[-1], sentence[0]
    if length > 700 or (last not in ".!?" and not _TERMINAL.search(sentence[-6:])):
        return False
    if first in "\"'“„‘«([*_":
        first = next((c for c in sentence[:5] if c.isalnum()), first)
    if first.islower() or not first.isalnum() or "|" in sentence:
        return False
    if any(sentence.count(opening) != sentence.count(closing) for opening, closing in ("()", "[]")):
        return False
    # Scripts without spaces say a sentence in few characters.
    return length >= 5 if last in "。！？｡" else length >= 20 and sentence.count(" ") >= 3


# "# Words" and "Words" over a line of = or -, indented by three spaces at most:
# https://spec.commonmark.org/0.31.2/#atx-headings and #setext-headings
_HEADING = re.compile(
    r"^ {0,3}(?P<marks>#{1,6})[^\S\n]+(?P<words>[^\n]+?)[^\S\n]*#*[^\S\n]*$"
    r"|(?:\A|(?<=\n\n)) {0,3}(?P<over>[^\s#>|*+=-][^\n|]{0,98}?)[^\S\n]*\n {0,3}"
    r"(?P<line>={2,}|-{3,})[^\S\n]*$",
    re.MULTILINE,
)
_FENCE = re.compile(r"^(```|~~~).*?^\1[^\S\n]*$", re.MULTILINE | re.DOTALL)


class Heading(NamedTuple):
    """A heading with its span, depth (1 is the outermost) and words."""

    start: int
    end: int
    depth: int
    words: str


def find_headings(text: str) -> list[Heading]:
    """Find Markdown headings outside of code."""
    if "#" not in text and "\n==" not in text and "\n--" not in text:
        return []
    may_be_fenced = "```" in text or "~~~" in text
    fences = [match.span() for match in _FENCE.finditer(text)] if may_be_fenced else []
    headings = []
    for match in _HEADING.finditer(text):
        if not any(start <= match.start() < end for start, end in fences):
            depth = len(match["marks"]) if match["marks"] else 1 if match["line"][0] == "=" else 2
            headings.append(Heading(*match.span(), depth, match["words"] or match["over"]))
    return headings


def breadcrumb(headings: Sequence[Heading], position: int) -> str:
    """Join the headings above a position, the outermost first."""
    path: list[tuple[int, str]] = []
    for start, _, depth, words in headings:
        if start > position:
            break
        while path and path[-1][0] >= depth:
            path.pop()
        path.append((depth, words))
    return " > ".join(words for _, words in path)


# Near-duplicates share more than this of the shorter sentence's telling words, in any order.
MAX_SHARED = 0.7
# Numbers, and words long enough not to be particles in most languages.
_TELLING = re.compile(r"\w{4,}|\d+")
_ANY_WORD = re.compile(r"\w+")


def telling_words(sentence: str) -> frozenset[str]:
    """Return the long words of a sentence in lower case; all words if fewer than two are long."""
    folded = sentence.lower()
    words = frozenset(_TELLING.findall(folded))
    return words if len(words) > 1 else frozenset(_ANY_WORD.findall(folded))


def are_near_duplicates(a: Set[str], b: Set[str]) -> bool:
    """Tell whether two sentences, as sets of telling words, say the same."""
    return len(a & b) > MAX_SHARED * min(len(a), len(b))


# Documents read at once: bounds memory, not results.
BATCH_DOCUMENTS = 512

# A line in so many documents, or so often in one, is a footer or header.
MIN_REPEATS = 3
# A document of so large a share of repeated lines is a copy of others, and keeps them.
COPIED_SHARE = 0.8
# Marks of quoted mail before a line, but not "> 5 mm".
_QUOTE_MARKS = re.compile(r"^(?:[^\S\n]*>)+(?![^\S\n]*\d)", re.MULTILINE)
# A word cut at the end of a line, but not "Vor- und Nachteile".
_HYPHEN = re.compile(
    r"(?<=([^\W\d_]))[-\u00ad\u2010]\s*\n\s*"
    rf"(?!(?:{_LISTS['behind_hyphens'].replace(' ', '|')})\b)(?=([^\W\d_]))"
)
_NO_LETTERS = re.compile(r"[\s>\-\u00ad\u2010]")


def quotable(sentences: pl.DataFrame) -> pl.Series:
    """Return a mask of the rows of `sentences` that can be quoted.

    Such a row is a whole sentence, and its line is not repeated throughout the corpus, as
    footers and running heads are. Copied documents keep their lines.
    """
    place = pl.col("document", "line")
    # A run of sentences on one line counts once.
    begins = pl.any_horizontal(place.ne_missing(place.shift()))
    lines = (
        sentences.select("document", "line", "quotable", run=begins.cum_sum())
        .with_row_index("row")
        .filter("quotable", pl.col("line") != 0)
        # Most lines occur once; without them the rest is quick.
        .filter(pl.len().over("line") >= MIN_REPEATS)
    )
    often = (
        lines.group_by("line", "document")
        .agg(times=pl.col("run").n_unique())
        .group_by("line")
        .agg(times=pl.max("times"), documents=pl.len())
        .filter(pl.max_horizontal("times", "documents") >= MIN_REPEATS)
    )
    furniture = (
        lines.join(often, on="line", how="semi")
        .join(sentences.group_by("document").agg(sentences=pl.sum("quotable")), on="document")
        .filter(pl.len().over("document") < COPIED_SHARE * pl.col("sentences"))
    )
    flags = sentences["quotable"].to_numpy(writable=True)
    flags[furniture["row"].to_numpy()] = False
    return pl.Series("quotable", flags)


def one_line(text: str) -> str:
    """Put a quotation on one line, without marks of quoted mail and hyphens of line ends."""

    def joined(hyphen: re.Match[str]) -> str:
        return "" if hyphen[1].islower() and hyphen[2].islower() else "-"

    if "\n" in text:
        text = _HYPHEN.sub(joined, _QUOTE_MARKS.sub("", text))
    return " ".join(text.split())


def find_quotation(quotation: str, text: str) -> tuple[int, int] | None:
    """Find a quotation that `one_line` may have changed; None if the text lacks it."""
    places = [at for at, c in enumerate(text) if not _NO_LETTERS.match(c)]
    letters = _NO_LETTERS.sub("", quotation)
    at = "".join(text[place] for place in places).find(letters)
    return (places[at], places[at + len(letters) - 1] + 1) if at >= 0 and letters else None


class Quotations:
    """Chosen sentences: their `texts` on one line each, and their `places`.

    `places` has one row per sentence: `document` (its number), `start_char`, `end_char`.
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
            found: list[str] = []
            for document, spans in groupby(self.places[first:last].iter_rows(), itemgetter(0)):
                text = texts[document - offset]
                found.extend(one_line(text[start:end]) for _, start, end in spans)
            parts.append(pl.Series(found, dtype=pl.String))
        # One Arrow column: a Python string for each would take three times the memory.
        self.texts = pl.concat(parts)

    def positions(self, rows: Integers) -> Integers:
        """Return the positions of sentences in `texts` and `places`."""
        return np.searchsorted(self.rows, rows)

"""Words and items that lines and spaces break, joined for reading, and the way back.

A hyphen at the end of a line, the end of a line inside a word of a script without spaces, soft
hyphens, and spaces between the letters of a word are layout: readers do not see a part of a word.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_nlp.list_columns import Integers
from graphrag_nlp.text.code import find_fenced_blocks, is_inside
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.normalize import UNSPACED, letters

_AFTER_HYPHENS = read_lists("graphrag_nlp/text/data/sentences")["after_hyphens"].replace(" ", "|")
_INDENT = r"[^\S\n]*\n[^\S\n]*"
# A soft hyphen, which some programs write as ¬, or a hyphen at the end of a line, but not
# "Vor- und Nachteile". A quoted letter has marks before its lines.
_HYPHEN = re.compile(
    rf"(?<=[^\W_])(?:[\u00ad¬](?:{_INDENT}(?:>[^\S\n]*)*)?|[-\u2010]{_INDENT}(?:>[^\S\n]*)*)"
    rf"(?=[^\W_])(?!(?:{_AFTER_HYPHENS})\b|\d{{1,3}}[.)]\s)"
)
# The end of a line in a script without spaces, before no field ("姓名：") or numbered item.
_UNSPACED_LINE_END = re.compile(
    rf"(?<={UNSPACED}){_INDENT}(?={UNSPACED})(?![^\n]{{1,10}}[:：]|[一二三四五六七八九十]{{1,3}}[、.．])"
)
# An item of a list, and indented lines that go on with it: no further items, fields or rows.
_MARKER = r"(?:[-*+•]|\d{1,3}[.)])"
_ITEM = re.compile(
    rf"^(?P<indent>[^\S\n]*){_MARKER}[^\S\n]+\S[^\n]*"
    rf"(?P<more>(?:\n(?P=indent)[^\S\n]+(?!{_MARKER}\s|[#>`|]|\w+:\s)\S[^\n]*)+)",
    re.MULTILINE,
)
_SPACED_WORDS = re.compile(r"(?<!\S)[^\W\d_](?:[ \u00a0\u3000]{1,4}[^\W\d_]){2,}(?![^\s.,:;!?)])")
# A text that this pattern does not match has no words to join. polars allows no look-around.
_MAY_BREAK = (
    rf"[\u00ad¬]|[\p{{L}}\p{{N}}][-\u2010]{_INDENT}[>\p{{L}}\p{{N}}]|{UNSPACED}{_INDENT}{UNSPACED}"
    rf"|(?m:^)[^\S\n]*{_MARKER}[^\S\n][^\n]*\n[^\S\n]+[^\s#>`|]"
    r"|(?:^|\s)\p{L}(?:[ \u00a0\u3000]{1,4}\p{L}){2}(?:\s|$|[.,:;!?)])"
)
_WORD_BEFORE, _WORD_AFTER = re.compile(r"[^\W_]+\Z"), re.compile(r"[^\W_]+")
# A word that a line end divides, or a whole word, as its group.
_WORD = r"[^\W_]++(?:[-\u2010][^\W_]++)*+"
_WHOLE_WORD = re.compile(rf"(?:{_WORD}[-\u2010]{_INDENT}(?:>[^\S\n]*)*)+{_WORD}|({_WORD})")
# Minimum number of letters of two words of a text to be one with a hyphen.
MIN_CHARS_OF_PART = 4
# Minimum number of characters of a full line in a script without spaces, and the minimum share of
# the longest line beside it: other lines end with a word, such as titles and those of a list. Lines
# with a mark between parts of sentences are no titles.
MIN_CHARS_OF_LINE, MIN_SHARE_OF_LINE = 10, 0.75
MIN_CHARS_OF_PROSE, MIN_SHARE_OF_PROSE = 6, 0.5
_PROSE_MARK = re.compile("[，、；。！？]")
# Minimum number of spaced letters: capitals, one of them a vowel, and those without spaces.
MIN_SPACED_CAPITALS, MIN_SPACED_UNSPACED = 4, 3
# Characters of a source that the text with joined words may lack.
LAYOUT = re.compile(r"[\s>\-\u00ad\u2010¬]")


class Join(NamedTuple):
    """Characters of a text that are layout inside a word, and what is read in their place."""

    start: int
    end: int
    text: str


def may_break_words(texts: pl.Series) -> pl.Series:
    """Return for each text whether it may have words to join, which few texts have."""
    return texts.str.contains(_MAY_BREAK)


def find_joins(text: str) -> list[Join]:
    """Find the layout inside words of a text, in order. Fenced blocks of code are skipped."""
    finders = (_find_hyphens, _find_line_ends, _find_item_lines, _find_spaces)
    found: list[Join] = []
    for join in sorted(chain.from_iterable(find(text) for find in finders)):
        if not found or join.start >= found[-1].end:
            found.append(join)
    code = find_fenced_blocks(text) if found else []
    return [join for join in found if not is_inside(code, join.start)] if code else found


def _find_item_lines(text: str) -> Iterator[Join]:
    for item in _ITEM.finditer(text):
        for end in re.finditer(r"\n[^\S\n]+", item["more"]):
            start = item.start("more")
            yield Join(start + end.start(), start + end.end(), " ")


def _find_hyphens(text: str) -> Iterator[Join]:
    words: HyphenatedWords | None = None
    for found in _HYPHEN.finditer(text):
        start, end = found.span()
        before = _WORD_BEFORE.search(text, max(0, start - 40), start)
        after = _WORD_AFTER.match(text, end)
        read = ""
        if found[0][0] in "-\u2010" and before and after:
            if words is None:
                words = HyphenatedWords(text)
            read = "-" * words.keep_hyphen(before[0], after[0])
        yield Join(start, end, read)


class HyphenatedWords:
    """The words of a text, by which a hyphen at a line end is one of a word, or divides it."""

    def __init__(self, text: str) -> None:
        self._whole, self._parts = Counter[str](), Counter[str]()
        self._pairs = Counter[tuple[str, str]]()
        for word in filter(None, _WHOLE_WORD.findall(text.lower())):
            first, *others = re.split("[-\u2010]", word)
            if others:
                self._parts.update((first, *others))
                self._pairs.update(pairwise((first, *others)))
            else:
                self._whole[first] += 1

    def keep_hyphen(self, before: str, after: str) -> bool:
        """Return whether the hyphen between two parts belongs to the word."""
        left, right = before.lower(), after.lower()
        n_whole = self._whole[left + right] + self._parts[left + right]
        if n_whole or self._pairs[left, right]:
            return self._pairs[left, right] > n_whole
        # Jean-Pierre, COVID-19
        is_lower = before[-1].islower() and after[0].islower()
        is_upper = min(len(before), len(after)) > 1 and f"{before}{after}".isupper()
        if not (is_lower or is_upper) or not (before.isalpha() and after.isalpha()):
            return True
        if self._parts[right] or (self._parts[left] and self._whole[right]):
            return True
        is_long = min(len(before), len(after)) >= MIN_CHARS_OF_PART
        return is_long and self._whole[left] > 0 and self._whole[right] > 0


def _find_line_ends(text: str) -> Iterator[Join]:
    for found in _UNSPACED_LINE_END.finditer(text) if not text.isascii() else ():
        start = text.rfind("\n", 0, found.start()) + 1
        above = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : max(0, start - 1)]
        stop = text.find("\n", found.end())
        line, below = text[start : found.start()], text[found.end() : stop if stop >= 0 else None]
        is_prose = _PROSE_MARK.search(line)
        least = MIN_CHARS_OF_PROSE if is_prose else MIN_CHARS_OF_LINE
        share = MIN_SHARE_OF_PROSE if is_prose else MIN_SHARE_OF_LINE
        longest = max(map(len, (above, line, below)))
        if len(line) >= max(least, share * longest) and line[0] != "#":
            yield Join(*found.span(), "")


def _find_spaces(text: str) -> Iterator[Join]:
    for found in _SPACED_WORDS.finditer(text):
        word = "".join(found[0].split())
        is_unspaced = re.fullmatch(f"{UNSPACED}{{{MIN_SPACED_UNSPACED},}}", word)
        # Not a list of letters, such as A B C D E, and no variables or keys: q w e r t y.
        steps = {ord(b) - ord(a) for a, b in pairwise(word)}
        plain = letters(word)
        has_vowel = not plain.isascii() or any(vowel in plain for vowel in "aeiouy")
        is_name = len(word) >= MIN_SPACED_CAPITALS and word.isupper() and has_vowel
        if is_unspaced or (is_name and len(steps) > 1):
            for gap in re.finditer(r"(?<=\S)\s(?=\S)", found[0]):
                yield Join(found.start() + gap.start(), found.start() + gap.end(), "")


def join_words(text: str, joins: Sequence[Join], start: int = 0, end: int | None = None) -> str:
    """Return a part of a text, with the words joined that `find_joins` found in the whole."""
    end = len(text) if end is None else end
    parts, reached = [], start
    for join in joins[bisect_left(joins, (start,)) :]:
        if join.end > end:
            break
        parts += [text[reached : join.start], join.text]
        reached = join.end
    return "".join((*parts, text[reached:end]))


def locate(text: str, source: str, start: int, end: int) -> tuple[int, int]:
    """Return the span of a source that is the span of a text read from it.

    The text may have joined words, and a header that the source lacks. The span of the header
    alone is that of the whole source.
    """
    if text.endswith(source):
        n_before = len(text) - len(source)
        start, end = max(start - n_before, 0), end - n_before
        return (start, end) if end > start else (0, len(source))
    own, of_source = find_letters(text), find_letters(source)
    n_before = len(own) - len(of_source)
    first = max(bisect_left(own, start) - n_before, 0)
    last = bisect_left(own, end) - n_before - 1
    return (of_source[first], of_source[last] + 1) if last >= first else (0, len(source))


def find_in_reading(text: str, source: str, start: int, end: int) -> tuple[int, int]:
    """Return the span of a text that is read from the span of its source, see `locate`."""
    if text == source:
        return start, end
    own, of_source = find_letters(text), find_letters(source)
    n_before = len(own) - len(of_source)
    first, last = (bisect_left(of_source, at) + n_before for at in (start, end))
    return (own[first], own[last - 1] + 1) if last > first else (0, 0)


@lru_cache(256)
def find_letters(text: str) -> list[int]:
    """Return the offsets of all characters of a text except spaces, hyphens and ">" marks."""
    return [at for at, character in enumerate(text) if not LAYOUT.match(character)]


class JoinedTexts:
    """Texts of documents with joined words, and the offsets of these in the documents.

    A function reads the documents in batches, with the columns `number` and `text`, in order.
    """

    def __init__(self, texts: Callable[[], Iterable[pl.DataFrame]]) -> None:
        self._texts = texts
        parts = [np.zeros((0, 4), np.int64)]
        for batch in texts():
            broken = batch.filter(may_break_words(batch["text"])).select("number", "text")
            for number, text in broken.iter_rows():
                rows = [(number, start, end, len(read)) for start, end, read in find_joins(text)]
                parts.append(np.array(rows, np.int64).reshape(-1, 4))
        self._document, self._start, self._end, n_read = np.concatenate(parts).T
        removed = self._end - self._start - n_read
        total = np.cumsum(removed)
        first = np.searchsorted(self._document, self._document)
        # Characters removed from the document up to each join, and those before it.
        self._with = total - (total - removed)[first]
        self._before = self._with - removed

    def read(self) -> Iterator[pl.DataFrame]:
        """Yield the batches with joined texts."""
        for batch in self._texts():
            rows = np.flatnonzero(np.isin(batch["number"].to_numpy(), self._document))
            joined = [join_words(text, find_joins(text)) for text in batch["text"].gather(rows)]
            yield batch.with_columns(batch["text"].scatter(rows, joined)) if joined else batch

    def join_spans(self, spans: pl.DataFrame) -> pl.DataFrame:
        """Replace `start_char` and `end_char` in a `document` by offsets in its joined text."""
        if not len(self._document):
            return spans
        documents = spans["document"].to_numpy().astype(np.int64)

        def move(name: str) -> pl.Series:
            offsets = spans[name].to_numpy()
            row, is_of = self._find_joins(documents, offsets, self._start)
            inside = np.minimum(offsets, self._start[row]) - self._before[row]
            moved = np.where(offsets < self._end[row], inside, offsets - self._with[row])
            return pl.Series(name, np.where(is_of, moved, offsets), dtype=spans[name].dtype)

        return spans.with_columns(move("start_char"), move("end_char"))

    def locate(self, spans: pl.DataFrame) -> pl.DataFrame:
        """Replace `start` and `end` in the joined text of a `document` by its own offsets."""
        if not len(self._document):
            return spans
        documents = spans["document"].to_numpy().astype(np.int64)

        def move(name: str, n_after: int) -> pl.Series:
            offsets = spans[name].to_numpy() - n_after
            row, is_of = self._find_joins(documents, offsets, self._end - self._with)
            moved = offsets + np.where(is_of, self._with[row], 0) + n_after
            return pl.Series(name, moved, dtype=spans[name].dtype)

        # The end of a span is one after its last character.
        return spans.with_columns(move("start", 0), move("end", 1))

    def _find_joins(
        self, documents: Integers, offsets: Integers, places: Integers
    ) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """Return the last join at or before each offset, and whether it is in the same document."""
        keys = (self._document << 40) + places
        row = np.searchsorted(keys, (documents << 40) + offsets, "right") - 1
        return row, (row >= 0) & (self._document[row] == documents)

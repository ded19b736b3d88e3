"""Cutting of documents into text units: passages that fit a prompt and are embedded."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import polars as pl

from graphrag_index.llm.tokens import TokenCounts, count_tokens, load_encoding
from graphrag_index.schema.settings.step_sections import CreateTextUnits
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.step import Progress, ShardFrames, Shards, step
from graphrag_index.storage.memo import (
    open_previous,
    read_batches,
    read_or_fallback,
    read_owned_rows,
    split_by_size,
)
from graphrag_index.storage.table_store import Previous
from graphrag_nlp.list_columns import Integers
from graphrag_nlp.text.code import find_code, is_inside
from graphrag_nlp.text.languages import detect_language
from graphrag_nlp.text.lines import find_joins, join_words, may_break_words
from graphrag_nlp.text.sentences import (
    Heading,
    find_headings,
    find_segment_starts,
    join_headings_above,
    split_sentences,
)
from graphrag_nlp.text.tables import find_tables, repeat_header

# Maximum number of documents in a shard, and of bytes of their texts if it has several documents.
# The numbers limit memory and do not change the results.
SHARD_DOCUMENTS = 256
SHARD_BYTES = 3_000_000
# Maximum number of pages that are read at once.
MAX_PAGES = 4_096
# Maximum number of characters of a line that may be a page header, repeated on many pages.
MAX_PAGE_HEADER_CHARACTERS = 200
# Maximum ratio of read rows to wanted rows. Rows of the last version are read as one range, from
# the first to the last wanted row. If the ratio is higher, no row is reused.
MAX_READ_RATIO = 4
# Columns of a document that its text units depend on.
INPUT_COLUMNS = ("id", "text", "metadata")

# Schemas of the rows of cut documents. `at` is the position of the document in its batch. Columns
# that depend on other documents are added later.
CUT_SCHEMAS = {
    name: pl.Schema({"at": pl.UInt32(), **{c: TABLES[name].schema[c] for c in columns}})
    for name, columns in {
        "documents": ["text_unit_ids", "language"],
        "base_text_units": [
            *("id", "text", "n_tokens", "document_id", "start_char", "end_char", "headings"),
            *("metadata", "reading"),
        ],
        "sentences": ["start_char", "end_char", "quotable", "line"],
    }.items()
}
_NO_ROWS = {name: pl.DataFrame(schema=schema) for name, schema in CUT_SCHEMAS.items()}


class Passage(NamedTuple):
    """A text unit of one document: its span, number of tokens, and headings."""

    start: int
    end: int
    n_tokens: int
    headings: str


class Segment(NamedTuple):
    """A sentence with the space after it, or a part of a sentence above the token limit."""

    start: int
    end: int
    n_tokens: int
    opens_section: bool


@step(writes=["documents", "pages", "base_text_units", "sentences"], code_version=10)
def create_text_units(
    loaded_documents: pl.LazyFrame,
    loaded_pages: pl.LazyFrame | None = None,
    *,
    settings: CreateTextUnits,
    previous: Previous,
    progress: Progress,
    shards: Shards,
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Cut each document at sentences and headings into text units of bounded length.

    A heading begins a new text unit if the current text unit has at least a quarter of
    `max_tokens` tokens. Each text unit repeats the last sentences of the text unit before, up to
    `overlap_tokens` tokens. A sentence longer than `max_tokens` is cut at a space, or anywhere if
    the sentence has no space. `text` is always ``documents.text[start_char:end_char]``. `reading`
    is the same text with joined words, below the header row of the table that it begins in; null
    if that is `text`. Rows of unchanged documents are reused from the last version. `pages` has the
    pages of documents whose text no step has changed. All tables are in the order of the documents.
    """
    progress.start(loaded_documents.select(pl.len()).collect().item(), "documents")
    n_documents = n_units = 0
    pages = None if loaded_pages is None else _LoadedPages(loaded_pages)
    figures = TABLES["loaded_pages"].empty().lazy() if loaded_pages is None else loaded_pages
    starts = figures.filter(kind="figure").group_by(id="document_id").agg(figures="start_char")
    work = _prepare_shards(loaded_documents, _PreviousRows(previous), starts.collect())
    for (batch, known), cut_now in shards.map(_cut_documents, work, settings):
        found = {
            name: pl.concat([rows, cut_now[name]]).sort("at", maintain_order=True)
            for name, rows in known.items()
        }
        number = pl.int_range(pl.len(), dtype=pl.Int64)
        tables = {
            "documents": batch.with_columns(
                found["documents"].drop("at"), human_readable_id=number + n_documents
            ),
            "base_text_units": found["base_text_units"].with_columns(
                human_readable_id=number + n_units
            ),
            "sentences": found["sentences"].with_columns(document=pl.col("at") + n_documents),
        }
        yield {name: rows.select(TABLES[name].cast_columns) for name, rows in tables.items()}
        if pages is not None:
            pages.add_documents(batch)
        n_documents += batch.height
        n_units += tables["base_text_units"].height
        progress.advance(batch.height)
    if pages is not None:
        yield from pages.read()


class _LoadedPages:
    """The pages of documents as they were read, of which those of changed texts are left out.

    A step of a user may change a text or leave out a document. The last page ends with the text.
    """

    def __init__(self, pages: pl.LazyFrame) -> None:
        self._pages = pages
        ends = pages.group_by("document_id").agg(pl.col("end_char").max())
        self._ends = ends.collect(engine="streaming")
        self._kept = [self._ends.clear()]

    def add_documents(self, documents: pl.DataFrame) -> None:
        if self._ends.height:
            length = pl.col("text").str.len_chars().cast(pl.Int64)
            ends = documents.select(document_id="id", end_char=length)
            self._kept.append(self._ends.join(ends, on=ends.columns, how="semi"))

    def read(self) -> Iterator[Mapping[str, pl.DataFrame]]:
        """Yield the pages of the documents that were added."""
        kept = pl.concat(self._kept)
        for batch in read_batches(self._pages, MAX_PAGES) if kept.height else ():
            rows = batch.join(kept, on="document_id", how="semi", maintain_order="left")
            yield {"pages": rows}


def _prepare_shards(
    loaded_documents: pl.LazyFrame, previous: "_PreviousRows", figures: pl.DataFrame
) -> Iterator[tuple[tuple[pl.DataFrame, Mapping[str, pl.DataFrame]], ShardFrames]]:
    """Yield ((documents, rows of unchanged documents), shard with the changed documents).

    `figures` has the offsets in the texts where the description of a figure starts.
    """
    for rows in read_batches(loaded_documents, SHARD_DOCUMENTS, has_long_texts=True):
        for batch in split_by_size(rows, SHARD_BYTES):
            places = batch.with_row_index("at")
            known = previous.find_rows(places)
            new = places.join(known["documents"], on="at", how="anti", maintain_order="left")
            new = new.join(figures, on="id", how="left", maintain_order="left")
            yield (batch, known), {"documents": new.select("at", *INPUT_COLUMNS, "figures")}


class _PreviousRows:
    """The rows of unchanged documents in the last version."""

    def __init__(self, previous: Previous) -> None:
        # Rows of each table, and the position of the first row of each document.
        self._tables: dict[str, tuple[pl.LazyFrame, Integers]] = {}
        if previous.is_same_step:
            tables = open_previous(previous, [TABLES[name] for name in CUT_SCHEMAS])
            if tables is not None:
                read_or_fallback(None, "documents", lambda: self._open_tables(*tables))

    def _open_tables(
        self, documents: pl.LazyFrame, text_units: pl.LazyFrame, sentences: pl.LazyFrame
    ) -> None:
        found = documents.select("id", n=pl.col("text_unit_ids").list.len()).collect()
        self._numbers = found.select("id", number=pl.int_range(pl.len()))
        owners = np.arange(found.height + 1)
        of_sentences = sentences.select("document").collect().to_series().to_numpy()
        self._tables = {
            "documents": (documents, owners),
            "base_text_units": (text_units, np.append(0, found["n"].cast(pl.Int64).cum_sum())),
            "sentences": (sentences, np.searchsorted(of_sentences, owners)),
        }

    def find_rows(self, documents: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """Return the rows of unchanged documents; the schemas are `CUT_SCHEMAS`."""
        if not self._tables:
            return _NO_ROWS
        return read_or_fallback(_NO_ROWS, "documents", lambda: self._read_rows(documents))

    def _read_rows(self, documents: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        known = documents.join(self._numbers, on="id").sort("number")
        numbers = known["number"]
        if known.is_empty() or numbers[-1] - numbers[0] >= MAX_READ_RATIO * known.height:
            return _NO_ROWS
        before = read_owned_rows(*self._tables["documents"], known.select("number"))
        same = known.join(before, on=("number", *INPUT_COLUMNS), how="semi", nulls_equal=True)
        owners = same.select("at", "number", owner="id")
        if owners.is_empty():
            return _NO_ROWS
        rows = {name: read_owned_rows(*t, owners) for name, t in self._tables.items()}
        # Reuse no rows if text units are not in the order of their documents, as in some imports.
        units = rows["base_text_units"]
        if (units["document_id"] != units["owner"]).any():
            return _NO_ROWS
        return {name: frame.select(CUT_SCHEMAS[name].names()) for name, frame in rows.items()}


def _cut_documents(shard: ShardFrames, settings: CreateTextUnits) -> ShardFrames:
    """Cut the documents of a shard; return their rows by table, with the schemas `CUT_SCHEMAS`."""
    rows: dict[str, list[Any]] = {name: [] for name in CUT_SCHEMAS}
    may_break = may_break_words(shard["documents"]["text"])
    documents = shard["documents"].iter_rows()
    for number, (at, document_id, text, metadata, figures) in enumerate(documents):
        headings, starts = find_cut_offsets(text)
        joins, tables = find_joins(text) if may_break[number] else [], list(find_tables(text))
        rows["sentences"] += make_sentence_rows(at, text, starts)
        ids = []
        passages = TextCutter(text, settings, starts, headings, figures or ()).passages()
        for start, end, n_tokens, path in passages:
            # The id contains the span, because one document may repeat a passage.
            words = text[start:end]
            ids.append(content_id("text unit", document_id, f"{start}:{end}", words))
            reading = repeat_header(tables, start) + join_words(text, joins, start, end)
            unit = (at, ids[-1], words, n_tokens, document_id, start, end, path, metadata)
            rows["base_text_units"].append((*unit, reading if reading != words else None))
        rows["documents"].append((at, ids, detect_language(text)))
    return {
        name: pl.DataFrame(rows[name], schema, orient="row") for name, schema in CUT_SCHEMAS.items()
    }


def find_cut_offsets(text: str) -> tuple[list[Heading], list[int]]:
    """Return the headings of a text, and the offsets where it may be cut."""
    headings = find_headings(text)
    # A heading is a separate sentence, so the text may be cut before and after a heading.
    edges = (edge for heading in headings for edge in (heading.start, heading.end + 1))
    return headings, sorted({*find_segment_starts(text), *(at for at in edges if at < len(text))})


def make_sentence_rows(
    document: int, text: str, starts: Sequence[int]
) -> Iterator[tuple[int, int, int, bool, int]]:
    """Yield one row of the table `sentences` per sentence of a document.

    `starts` are the offsets where a sentence or a heading starts, or the text after a heading.
    """
    end, line = -1, 0
    code = find_code(text)
    for sentence in split_sentences(text, starts):
        if sentence.start >= end:
            begin = text.rfind("\n", 0, sentence.start) + 1
            end = text.find("\n", sentence.start)
            end = len(text) if end < 0 else end
            words = text[begin:end].strip()
            # Hash the line to a signed integer; 0 if the line is too long for a page header.
            is_short = len(words) <= MAX_PAGE_HEADER_CHARACTERS
            line = crc32(words.encode("utf-8", "surrogatepass")) - (1 << 31) if is_short else 0
        is_prose = sentence.prose and not is_inside(code, sentence.start)
        yield document, sentence.start, sentence.end, is_prose, line


class TextCutter:
    """A text that is cut into passages of at most `max_tokens` tokens.

    The text may be cut only before the offsets in `starts`, and is cut before those in `figures`.
    Every character of the text that is not white space is in a passage. No passage is empty.
    """

    def __init__(
        self,
        text: str,
        settings: CreateTextUnits,
        starts: Sequence[int],
        headings: Sequence[Heading],
        figures: Collection[int] = (),
    ) -> None:
        self.text, self.headings, self.figures = text, headings, frozenset(figures)
        self.max_tokens, self.overlap_tokens = settings.max_tokens, settings.overlap_tokens
        self.encoding = load_encoding(settings.encoding)
        self.counts = TokenCounts(text, self.encoding)
        self.segments: list[Segment] = []
        opening = {heading.start for heading in headings}
        spans = pairwise([*starts, len(text)])
        for (start, end), n_tokens in zip(spans, self.counts.count_between(starts), strict=True):
            if n_tokens <= self.max_tokens:
                self.segments.append(Segment(start, end, n_tokens, start in opening))
            else:
                self.segments += [
                    Segment(*piece, self.counts.count_span(*piece), piece[0] in opening)
                    for piece in self._cut_segment(start, end)
                ]

    def passages(self) -> Iterator[Passage]:
        first = 0
        while first < len(self.segments):
            stop = self._find_passage_end(first)
            start, end, n_tokens = self._measure_segments(first, stop)
            # Shorten the passage if joined sentences have more tokens than the sentences had alone.
            while n_tokens > self.max_tokens and end - start > 1:
                if stop - first > 1:
                    stop -= 1
                else:
                    self._halve_segment(first)
                start, end, n_tokens = self._measure_segments(first, stop)
            if end > start:
                yield Passage(start, end, n_tokens, join_headings_above(self.headings, start))
            first = self._find_next_start(first, stop)

    def _cut_segment(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Cut a long sentence at spaces, if it has spaces, into pieces below the token limit."""
        while start < end:
            # Begin with four characters per token, which is about the average of prose.
            stop = min(end, start + self.max_tokens * 4)
            while (
                stop > start + 1
                and count_tokens(self.text[start:stop], self.encoding) > self.max_tokens
            ):
                stop = start + max(1, (stop - start) * 3 // 4)
            if stop < end:
                space = max(self.text.rfind(mark, start + 1, stop) for mark in " \n")
                stop = space + 1 if space > start + (stop - start) // 2 else stop
            yield start, stop
            start = stop

    def _find_passage_end(self, first: int) -> int:
        """Return the end (exclusive) of the passage that begins at segment `first`."""
        n_tokens = self.segments[first].n_tokens
        for stop in range(first + 1, len(self.segments)):
            segment = self.segments[stop]
            is_full = n_tokens + segment.n_tokens > self.max_tokens
            is_full |= segment.start in self.figures
            if is_full or (segment.opens_section and n_tokens * 4 >= self.max_tokens):
                return stop
            n_tokens += segment.n_tokens
        return len(self.segments)

    def _measure_segments(self, first: int, stop: int) -> tuple[int, int, int]:
        """Return (start, end, tokens) of joined segments, without surrounding space."""
        start = self.segments[first].start
        piece = self.text[start : self.segments[stop - 1].end]
        end = start + len(piece.rstrip())
        start += len(piece) - len(piece.lstrip())
        return start, end, self.counts.count_span(start, end)

    def _halve_segment(self, at: int) -> None:
        """Cut a segment into two segments, at a space near its middle if possible."""
        start, end, _, opens_section = self.segments[at]
        middle = (start + end) // 2
        space = self.text.rfind(" ", (start + middle) // 2, middle)
        cut_at = space + 1 if space > start else middle
        self.segments[at : at + 1] = [
            Segment(start, cut_at, self.counts.count_span(start, cut_at), opens_section),
            Segment(cut_at, end, self.counts.count_span(cut_at, end), False),
        ]

    def _find_next_start(self, first: int, stop: int) -> int:
        """Return the number of the first segment of the next passage, which may repeat segments."""
        segments = self.segments
        if stop >= len(segments) or segments[stop].opens_section:
            return stop
        begin, overlap = stop, 0
        # The next sentence must fit after the repeated sentences.
        max_overlap = min(self.overlap_tokens, self.max_tokens - segments[stop].n_tokens)
        while begin - 1 > first:
            previous = segments[begin - 1]
            overlap += previous.n_tokens
            if overlap > max_overlap:
                break
            begin -= 1
            if previous.opens_section:
                break
        return begin

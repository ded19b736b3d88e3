"""Documents made from rows that name no text unit. Each row becomes a line of a document.

An entity gets one document with its rows, and one with the relationships whose source it is. Each
of these documents has the title of the entity and the path of the file.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from typing import NamedTuple

import polars as pl

from graphrag_index.extraction.alignment import find_whole_words
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.readers.graph.given_graph import GivenGraph
from graphrag_index.readers.graph.graph_evidence import ENCODING, Evidence, FilePair, Passage, Span
from graphrag_index.readers.graph.graph_rows import FileRows
from graphrag_index.schema.tables import content_id
from graphrag_index.step import Progress
from graphrag_nlp.text.normalize import title_key
from graphrag_nlp.text.sentences import Sentence, find_segment_starts, split_sentences

# Function that cuts a text at some offsets into pieces: (start, end, number of tokens).
CutText = Callable[[str, Sequence[int]], list[tuple[int, int, int]]]

MAX_QUOTED_LINE_CHARS = 300  # a longer line is split into sentences


class _GraphRow(NamedTuple):
    """A row of an entity or relationship; `owner` is the number of the entity or source."""

    owner: int
    row: int
    target: int  # number of the target entity; -1 for the row of an entity
    type: str | None
    description: str
    link: int  # number of the relationship; -1 for the row of an entity


class _DocumentLine(NamedTuple):
    """A row written as a line of a document, with the spans of the entity names."""

    start: int
    end: int
    record: _GraphRow
    mentions: list[tuple[int, Span]]


class RowEvidence:
    """Builder of documents from the rows that name no text unit."""

    def __init__(
        self, given: GivenGraph, files: FilePair, max_tokens: int, cut: CutText, evidence: Evidence
    ) -> None:
        self.given, self.files = given, files
        self.max_tokens, self.cut, self.evidence = max_tokens, cut, evidence
        self.parts = _select_rows_without_text_units(given)
        self.n_rows = sum(map(len, self.parts))
        # Quote rows that consist only of names only if no row has a description or a type.
        has_content = ((pl.col("description") != "") | (pl.col("type") != "")).any()
        self.quotes_bare_rows = not any(part.select(has_content).item() for part in self.parts)

    def add_documents(self, progress: Progress) -> Iterator[dict[str, pl.DataFrame]]:
        """Add the documents to `evidence`; yield batches of table rows."""
        for rows, part in zip(self.files, self.parts, strict=True):
            if rows is None:
                continue
            records = map(_GraphRow._make, part.iter_rows())
            for owner, group in groupby(records, key=attrgetter("owner")):
                own = list(group)
                self._add_document(rows, owner, own)
                progress.advance(len(own))
                if self.evidence.is_batch_full:
                    yield self.evidence.take_batch()

    def _add_document(self, rows: FileRows, owner: int, records: Sequence[_GraphRow]) -> None:
        titles = self.given.entities.titles
        title = titles[owner]
        texts: list[str] = []
        lines: list[_DocumentLine] = []
        start = 0
        for record in records:
            target = titles[record.target] if record.link >= 0 else None
            line, spans = _format_row(title, target, record)
            mentions = [
                (end, (start + first, start + last))
                for end, (first, last) in zip((owner, record.target), spans, strict=False)
            ]
            lines.append(_DocumentLine(start, start + len(line), record, mentions))
            texts.append(line)
            start += len(line) + 1
        text = "\n".join(texts)
        kind = "relationships" if records[0].link >= 0 else "entity"
        identity = content_id("rows of a given graph", kind, title_key(title))
        passages = self._split_passages(identity, text, lines, rows.unit)
        sentences = [sentence for line in lines for sentence in self._split_line(text, line)]
        source = _format_row_numbers(rows.unit, lines)
        first_unit = self.evidence.add_document(
            identity, title, rows.name, text, passages, sentences, metadata=source
        )
        begins = [passage.start for passage in passages]

        def find_text_unit(at: int) -> int:
            return first_unit + max(bisect_right(begins, at) - 1, 0)

        for start, end, record, mentions in lines:
            for entity, span in mentions:
                self.evidence.add_mention(entity, find_text_unit(span[0]), span)
            if record.link < 0:
                self.evidence.add_entity_evidence(owner, (start, end))
            else:
                units = range(find_text_unit(start), find_text_unit(end - 1) + 1)
                self.evidence.add_relationship_evidence(record.link, (start, end), units)

    def _split_passages(
        self, document_id: str, text: str, lines: Sequence[_DocumentLine], noun: str
    ) -> list[Passage]:
        n_tokens = count_tokens(text, load_encoding(ENCODING))
        pieces = [(0, len(text), n_tokens)]
        if n_tokens > self.max_tokens:
            starts = {*find_segment_starts(text), *(line.start for line in lines)}
            pieces = self.cut(text, sorted(starts))
        passages = []
        for start, end, n in pieces:
            identity = content_id("text unit", document_id, f"{start}:{end}", text[start:end])
            own = [line for line in lines if line.start < end and start < line.end]
            passages.append(Passage(identity, start, end, n, _format_row_numbers(noun, own)))
        return passages

    def _split_line(self, text: str, line: _DocumentLine) -> list[Sentence]:
        """Return a short line as one sentence; split a long line into its sentences."""
        start, end, record, _ = line
        if end - start <= MAX_QUOTED_LINE_CHARS:
            has_content = bool(record.type or record.description)
            return [Sentence(start, end, self.quotes_bare_rows or has_content)]
        inside = split_sentences(text[start:end])
        return [Sentence(start + first, start + last, prose) for first, last, prose in inside]


def _select_rows_without_text_units(given: GivenGraph) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the entity rows and relationships that name no text unit, grouped by owner."""
    has_no_unit = pl.col("text_unit_ids").list.len() == 0
    number = pl.int_range(pl.len(), dtype=pl.Int64)
    none = pl.lit(-1, pl.Int64)
    entities = given.entities.frame.select("text_unit_ids", owner=number).filter(has_no_unit)
    entity_rows = (
        given.entities.descriptions.rename({"entity": "owner"})
        .join(entities, on="owner", how="semi")
        .with_columns(target=none, type=pl.lit(None, pl.String), link=none)
    )
    relationships = given.relationships.with_columns(link=number).filter(has_no_unit)
    return (
        entity_rows.select(_GraphRow._fields).sort("owner", "row"),
        relationships.rename({"source": "owner"}).select(_GraphRow._fields).sort("owner", "link"),
    )


def _format_row_numbers(noun: str, lines: Sequence[_DocumentLine]) -> str:
    """Format the line or row numbers in the file as JSON, such as {"lines": "2, 5-7"}."""
    numbers = sorted(line.record.row for line in lines)
    borders = [0, *(n for n, (a, b) in enumerate(pairwise(numbers), 1) if b > a + 1), len(numbers)]
    runs = [numbers[start:stop] for start, stop in pairwise(borders)]
    shown = ", ".join(str(r[0]) if r[0] == r[-1] else f"{r[0]}-{r[-1]}" for r in runs)
    return json.dumps({f"{noun}s": shown})


def _format_row(source: str, target: str | None, record: _GraphRow) -> tuple[str, list[Span]]:
    """Format a row as text with the spans of its names; `target` is None for an entity."""
    description = record.description
    one = next(find_whole_words(source, description), None)
    if target is None:
        return (description, [one]) if one else (f"{source}: {description}", [(0, len(source))])
    other = next(find_whole_words(target, description), None)
    if one and other and (one[1] <= other[0] or other[1] <= one[0]):
        return description, [one, other]
    head = " – ".join([source, record.type, target] if record.type else [source, target])
    places = [(0, len(source)), (len(head) - len(target), len(head))]
    return f"{head}: {description}" if description else f"{head}.", places

"""Documents, text units, mentions and evidence of the user's graph, built in batches.

`Evidence` collects the rows of these tables. `GivenTextUnits` adds the user's text units.
A row that names no text unit becomes a line of a document, made for its entity.
"""

import json
import logging
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import polars as pl

from graphrag_index.errors import InputError
from graphrag_index.extraction.alignment import Passage as Aligned
from graphrag_index.extraction.alignment import find_whole_words
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.readers.given_graph import GivenGraph
from graphrag_index.readers.graph_rows import FileRows
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.step import Progress
from graphrag_nlp.list_columns import find_rows, gather_by_owner
from graphrag_nlp.text.languages import detect_language
from graphrag_nlp.text.normalize import title_key
from graphrag_nlp.text.sentences import Sentence, find_segment_starts, split_sentences

logger = logging.getLogger(__name__)

ENCODING = "o200k_base"
BATCH_DOCUMENTS = 4_096  # documents in one batch, to limit memory
_TEXT_UNIT_SEPARATOR = "\n\n"  # joins the text units of a document whose text is not given

Span = tuple[int, int]  # (start, end) in characters
Row = dict[str, Any]
# (rows of the entities file, rows of the relationships file); None for a missing file.
FilePair = Sequence[FileRows | None]

_EVIDENCE_ROW_SCHEMA = dict.fromkeys(("owner", "document", "start_char", "end_char"), pl.Int64)
# Columns of the rows that `Evidence` keeps in memory until all documents are read.
_KEPT_TABLES: Mapping[str, Any] = {
    "mentions": dict.fromkeys(("entity", "text_unit", "start_char", "end_char"), pl.Int32),
    "entities": _EVIDENCE_ROW_SCHEMA,
    "relationships": _EVIDENCE_ROW_SCHEMA,
    "units": dict.fromkeys(("owner", "unit"), pl.Int64),
}
# Columns of the tables that are written batch by batch.
_WRITTEN_TABLES: Mapping[str, Any] = {
    name: TABLES[name].schema for name in ("documents", "base_text_units", "sentences")
}
# Function that cuts a text at some offsets into pieces: (start, end, number of tokens).
CutText = Callable[[str, Sequence[int]], list[tuple[int, int, int]]]

MAX_QUOTED_LINE_CHARS = 300  # a longer line is split into sentences


class Passage(NamedTuple):
    """A text unit of one document, with its span in characters."""

    id: str
    start: int
    end: int
    n_tokens: int
    metadata: str | None = None


class Evidence:
    """Collector of documents, and of the passages that support entities and relationships."""

    def __init__(self) -> None:
        self.n_documents = self.n_units = 0
        self._ids: list[str] = []  # ids of all documents
        # `_rows` has the rows since the last batch; `_parts` has kept rows of earlier batches.
        self._rows: dict[str, list[tuple[object, ...]]] = defaultdict(list)
        self._parts = {name: [pl.DataFrame(schema=schema)] for name, schema in _KEPT_TABLES.items()}

    @property
    def is_batch_full(self) -> bool:
        return len(self._rows["documents"]) >= BATCH_DOCUMENTS

    def add_document(
        self,
        identity: str,
        title: str,
        path: str,
        text: str,
        passages: Sequence[Passage],
        sentences: Iterable[Sentence],
        creation_date: str = "",
        metadata: str | None = None,
    ) -> int:
        """Add a document with its text units; return the number of its first text unit."""
        first = self.n_units
        self._ids.append(identity)
        self._rows["documents"].append(
            (
                *(identity, self.n_documents, title, text, [p.id for p in passages]),
                *(creation_date, None, path, metadata, detect_language(text)),
            )
        )
        for number, passage in enumerate(passages, first):
            words = text[passage.start : passage.end]
            self._rows["base_text_units"].append(
                (
                    *(passage.id, number, words, passage.n_tokens, identity),
                    *(passage.start, passage.end, "", passage.metadata, None),
                )
            )
        # Give sentences the line 0, so that none is taken for a repeated page header or footer.
        self._rows["sentences"] += [(self.n_documents, *sentence, 0) for sentence in sentences]
        self.n_documents += 1
        self.n_units += len(passages)
        return first

    def add_mention(self, entity: int, unit: int, span: Span) -> None:
        self._rows["mentions"].append((entity, unit, *span))

    def add_entity_evidence(self, entity: int, span: Span) -> None:
        """Record a span of the document added last as evidence of an entity."""
        self._rows["entities"].append((entity, self.n_documents - 1, *span))

    def add_relationship_evidence(self, number: int, span: Span, units: range) -> None:
        """Record a span of the document added last, and its text units, for a relationship."""
        self._rows["relationships"].append((number, self.n_documents - 1, *span))
        self._rows["units"] += [(number, unit) for unit in units]

    def take_batch(self) -> dict[str, pl.DataFrame]:
        """Return the documents, text units and sentences added since the last batch."""
        frames = {
            name: pl.DataFrame(self._rows[name], schema=schema, orient="row")
            for name, schema in {**_WRITTEN_TABLES, **_KEPT_TABLES}.items()
        }
        self._rows.clear()
        for name, parts in self._parts.items():
            parts.append(frames.pop(name))
        return frames

    def build_mention_table(self) -> pl.DataFrame:
        """Build the table `extracted_mentions` from the recorded mentions."""
        schema = TABLES["extracted_mentions"].schema
        rows = pl.concat(self._parts["mentions"]).unique()
        return rows.sort("text_unit", "start_char", "end_char", "entity").select(list(schema))

    def build_text_unit_column(self, n: int) -> pl.Series:
        """Build the column `text_units` of a table with `n` relationships."""
        units = pl.concat(self._parts["units"]).unique().sort("owner", "unit")
        return gather_by_owner(units, n).alias("text_units")

    def build_evidence_column(self, name: str, n: int) -> pl.Series:
        """Build the column `evidence` of a table with `n` entities or relationships."""
        rows = pl.concat(self._parts[name]).sort("owner", maintain_order=True)
        ids = pl.Series("document_id", self._ids, dtype=pl.String).gather(rows["document"])
        places = rows.select("owner", ids, "start_char", "end_char")
        return gather_by_owner(places, n).alias("evidence")


class GivenTextUnits:
    """Text units of the user's file, grouped by document.

    Raises InputError if a text unit has no text, if an id is repeated, or if a document is
    unknown.
    """

    def __init__(self, units: FileRows, documents: FileRows | None) -> None:
        units.check_unique_ids()
        frame = units.frame
        units.check_values("text", "add a text, or delete the row")
        rows = frame.select("row", "text").iter_rows()
        ids = [content_id("text unit", str(row), text) for row, text in rows]
        self.units, self.documents = units, documents
        frame = frame.with_columns(id=pl.coalesce("id", pl.Series(ids, dtype=pl.String)))
        self.frame = frame.with_columns(document_id=pl.coalesce("document_id", "id"))
        self.n_joined = 0
        if documents is None:
            return
        documents.check_unique_ids()
        documents.check_values("id", "add an id")
        known = find_rows(self.frame["document_id"], documents.frame["id"])
        unknown = self.frame.filter(pl.Series(known < 0))
        if len(unknown):
            raise InputError(
                f"{units.describe_row(unknown['row'][0])}: the document_id "
                f"{unknown['document_id'][0]!r} is not a document of {documents.name}: "
                "add the document, or correct the id."
            )

    def add_documents(
        self, given: GivenGraph, files: FilePair, evidence: Evidence
    ) -> Iterator[dict[str, pl.DataFrame]]:
        """Add the documents, their text units and their evidence; yield batches of rows."""
        entities = self._map_text_units_to_rows(given.entities.frame, files[0])
        links = self._map_text_units_to_rows(given.relationships, files[1])
        endpoints = given.relationships.select("source", "target")
        encoding = load_encoding(ENCODING)
        groups: dict[str, list[Row]] = defaultdict(list)
        for row in self.frame.iter_rows(named=True):
            groups[row["document_id"]].append(row)
        documents: Iterable[Row] = (
            {"id": identity, **dict.fromkeys(("title", "text", "path", "creation_date"))}
            for identity in groups
        )
        if self.documents is not None:
            documents = self.documents.frame.iter_rows(named=True)
        for document in documents:
            units = groups.get(document["id"], [])
            text, spans = self._locate_units(document["text"], [unit["text"] for unit in units])
            passages = [
                Passage(unit["id"], *span, count_tokens(unit["text"], encoding))
                for unit, span in zip(units, spans, strict=True)
            ]
            first = evidence.add_document(
                document["id"],
                document["title"] or document["id"],
                document["path"] or (self.documents or self.units).name,
                text,
                passages,
                split_sentences(text),
                document["creation_date"] or "",
            )
            for number, passage in enumerate(passages, first):
                of_unit = [(link, *endpoints.row(link)) for link in links[passage.id]]
                _add_text_unit_evidence(
                    given, text, passage, number, entities[passage.id], of_unit, evidence
                )
            if evidence.is_batch_full:
                yield evidence.take_batch()
        if self.n_joined:
            logger.warning(
                "%s: %d documents do not contain their text units word for word; the text of "
                "these documents is joined from their text units.",
                *(self.documents.name if self.documents else "", self.n_joined),
            )

    def _locate_units(self, text: str | None, units: Sequence[str]) -> tuple[str, list[Span]]:
        """Return the text of a document and the span of each of its text units.

        If `text` is None or lacks a text unit, the text is joined from the text units.
        """
        spans: list[Span] = []
        at = 0
        for unit in units if text else ():
            begin = (text or "").find(unit, at)
            if begin < 0:
                break
            spans.append((begin, begin + len(unit)))
            # Search on from the next character: text units may overlap.
            at = begin + 1
        if text and len(spans) == len(units):
            return text, spans
        self.n_joined += bool(text)
        spans, at = [], 0
        for unit in units:
            spans.append((at, at + len(unit)))
            at += len(unit) + len(_TEXT_UNIT_SEPARATOR)
        return _TEXT_UNIT_SEPARATOR.join(units), spans

    def _map_text_units_to_rows(
        self, table: pl.DataFrame, rows: FileRows | None
    ) -> dict[str, list[int]]:
        """Map each text unit id to the numbers of the rows of `table` that name this text unit."""
        pairs = table.select(
            number=pl.int_range(pl.len(), dtype=pl.Int64), id="text_unit_ids"
        ).explode("id", empty_as_null=False)
        unknown = pairs.filter(pl.Series(find_rows(pairs["id"], self.frame["id"]) < 0))
        if len(unknown) and rows is not None:
            identity = unknown["id"][0]
            row = rows.frame.filter(pl.col("text_unit_ids").list.contains(identity))["row"][0]
            raise InputError(
                f"{rows.describe_row(row)}: {identity!r} of its text_unit_ids is not a text unit "
                f"of {self.units.name}: add the text unit, or correct the id."
            )
        by_unit: dict[str, list[int]] = defaultdict(list)
        for number, identity in pairs.iter_rows():
            by_unit[identity].append(number)
        return by_unit


def _add_text_unit_evidence(
    given: GivenGraph,
    text: str,
    passage: Passage,
    number: int,
    entities: Sequence[int],
    links: Sequence[tuple[int, int, int]],
    evidence: Evidence,
) -> None:
    """Record mentions and evidence for the entities and relationships of one text unit."""
    titles = given.entities.titles
    aligned = Aligned(text[passage.start : passage.end])
    named = dict.fromkeys([*entities, *(end for _, *endpoints in links for end in endpoints)])
    places = aligned.align_names([titles[entity] for entity in named])

    def to_document_span(span: Span) -> Span:
        return passage.start + span[0], passage.start + span[1]

    for entity in named:
        spans = places[titles[entity]].spans
        for span in spans:
            evidence.add_mention(entity, number, to_document_span(span))
        if entity in entities:
            evidence.add_entity_evidence(
                entity, to_document_span(aligned.extend_to_sentences(*spans[0]))
            )
    for link, source, target in links:
        span = aligned.find_evidence(places[titles[source]], places[titles[target]])
        evidence.add_relationship_evidence(link, to_document_span(span), range(number, number + 1))


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

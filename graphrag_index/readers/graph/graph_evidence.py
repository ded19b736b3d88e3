"""Documents, text units, mentions and evidence of the user's graph, built in batches.

`Evidence` collects the rows of these tables. `GivenTextUnits` adds the user's text units.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from graphrag_index.errors import InputError
from graphrag_index.extraction.alignment import Passage as Aligned
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.readers.graph.given_graph import GivenGraph
from graphrag_index.readers.graph.graph_rows import FileRows
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_nlp.list_columns import find_rows, gather_by_owner
from graphrag_nlp.text.languages import detect_language
from graphrag_nlp.text.sentences import Sentence, split_sentences

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
                    *(passage.start, passage.end, "", passage.metadata),
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

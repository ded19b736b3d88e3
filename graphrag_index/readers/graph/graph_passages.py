"""Text units that the user provides, and their documents."""

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from graphrag_index.errors import InputError
from graphrag_index.extraction.alignment import Passage as Aligned
from graphrag_index.extraction.alignment import Places
from graphrag_index.readers.graph.given_graph import Given
from graphrag_index.readers.graph.graph_evidence import Evidence, Passage, Span
from graphrag_index.readers.graph.graph_rows import Rows
from graphrag_index.readers.graph.row_evidence import ENCODING
from graphrag_index.schema.list_columns import positions
from graphrag_index.schema.tables import content_id
from graphrag_index.text.sentences import split_sentences
from graphrag_index.text.tokens import count_tokens, load_encoding

logger = logging.getLogger(__name__)

# Joins the text units of a document whose text is not given.
_BETWEEN = "\n\n"

Row = dict[str, Any]


class Passages:
    """Text units of a file, grouped by document.

    Raises
    ------
    InputError
        A text unit has no text, ids are repeated, or a document is unknown.
    """

    def __init__(self, units: Rows, documents: Rows | None) -> None:
        units.check_ids()
        frame = units.frame
        bare = frame.filter(pl.col("text").is_null() | (pl.col("text") == ""))
        if len(bare):
            raise InputError(
                f"{units.place(bare['row'][0])} has no text: give it one, or delete it."
            )
        made = [
            content_id("text unit", str(row), text)
            for row, text in frame.select("row", "text").iter_rows()
        ]
        self.units, self.documents = units, documents
        self.frame = frame.with_columns(
            pl.coalesce("id", pl.Series(made, dtype=pl.String)).alias("id")
        ).with_columns(pl.coalesce("document_id", "id").alias("document_id"))
        if documents is not None:
            self._check_documents(documents)
        self.n_composed = 0

    def _check_documents(self, documents: Rows) -> None:
        documents.check_ids()
        nameless = documents.frame.filter(pl.col("id").is_null())
        if len(nameless):
            raise InputError(f"{documents.place(nameless['row'][0])} has no id: give it one.")
        known = positions(self.frame["document_id"], documents.frame["id"])
        lost = self.frame.filter(pl.Series(known < 0))
        if len(lost):
            raise InputError(
                f"{self.units.place(lost['row'][0])}: the document_id {lost['document_id'][0]!r} "
                f"is no document of {documents.name}: add it there, or correct it here."
            )

    def add(
        self, given: Given, files: Sequence[Rows | None], evidence: Evidence
    ) -> Iterator[dict[str, pl.DataFrame]]:
        """Add the documents, their text units and the evidence in them, batch by batch.

        `files` holds the entities file, if any, and the relationships file.
        """
        entities, links = self._named(given, files)
        titles = given.entities.titles
        ends = given.relationships.select("source", "target")
        groups: dict[str, list[Row]] = defaultdict(list)
        for row in self.frame.iter_rows(named=True):
            groups[row["document_id"]].append(row)
        for document in self._documents(groups):
            units = groups.get(document["id"], [])
            text, spans = self._place(document["text"], [unit["text"] for unit in units])
            encoding = load_encoding(ENCODING)
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
                own = [(link, *ends.row(link)) for link in links[passage.id]]
                named = dict.fromkeys(
                    [*entities[passage.id], *(end for _, *pair in own for end in pair)]
                )
                aligned = Aligned(text[passage.start : passage.end])
                places = aligned.align([titles[entity] for entity in named])
                _UnitEvidence(evidence, number, passage.start).add(
                    aligned,
                    places,
                    {entity: titles[entity] for entity in named},
                    set(entities[passage.id]),
                    own,
                )
            if evidence.is_full:
                yield evidence.batch()
        if self.n_composed:
            logger.warning(
                "%s: %d documents do not hold their text units word for word; the text of these "
                "is put together of the text units.",
                *(self.documents.name if self.documents else "", self.n_composed),
            )

    def _documents(self, groups: Mapping[str, Sequence[Row]]) -> Iterator[Row]:
        if self.documents is not None:
            yield from self.documents.frame.iter_rows(named=True)
            return
        for identity in groups:
            yield {"id": identity, **dict.fromkeys(("title", "text", "path", "creation_date"))}

    def _place(self, text: str | None, units: Sequence[str]) -> tuple[str, list[Span]]:
        """Locate text units in their document in order, or join them to a document."""
        spans: list[Span] = []
        at = 0
        for unit in units if text else ():
            begin = (text or "").find(unit, at)
            if begin < 0:
                break
            spans.append((begin, begin + len(unit)))
            # The next one may overlap this one.
            at = begin + 1
        if text and len(spans) == len(units):
            return text, spans
        self.n_composed += bool(text)
        spans, at = [], 0
        for unit in units:
            spans.append((at, at + len(unit)))
            at += len(unit) + len(_BETWEEN)
        return _BETWEEN.join(units), spans

    def _named(
        self, given: Given, files: Sequence[Rows | None]
    ) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        """Return the numbers of entities and of relationships by text unit."""
        found = []
        tables = (given.entities.frame, given.relationships)
        for rows, table in zip(files, tables, strict=True):
            pairs = table.select(
                number=pl.int_range(pl.len(), dtype=pl.Int64), id="text_unit_ids"
            ).explode("id", empty_as_null=False)
            known = positions(pairs["id"], self.frame["id"])
            lost = pairs.filter(pl.Series(known < 0))
            if len(lost) and rows is not None:
                raise self._unknown(rows, lost["id"][0])
            by_unit: dict[str, list[int]] = defaultdict(list)
            for number, identity in pairs.iter_rows():
                by_unit[identity].append(number)
            found.append(by_unit)
        return found[0], found[1]

    def _unknown(self, rows: Rows, identity: str) -> InputError:
        row = rows.frame.filter(pl.col("text_unit_ids").list.contains(identity))["row"][0]
        return InputError(
            f"{rows.place(row)}: {identity!r} of its text_unit_ids is no text unit of "
            f"{self.units.name}: add it there, or correct it here."
        )


class _UnitEvidence:
    """Evidence of one text unit."""

    def __init__(self, evidence: Evidence, number: int, start: int) -> None:
        self.evidence, self.number, self.start = evidence, number, start

    def add(
        self,
        text: Aligned,
        places: Mapping[str, Places],
        titles: Mapping[int, str],
        listed: set[int],
        links: Sequence[tuple[int, int, int]],
    ) -> None:
        for entity, title in titles.items():
            spans = places[title].spans
            for span in spans:
                self.evidence.mention(entity, self.number, self._moved(span))
            if entity in listed:
                said = text.sentences_around(*spans[0])
                self.evidence.prove_entity(entity, self._moved(said))
        for link, source, target in links:
            said = text.evidence(places[titles[source]], places[titles[target]])
            units = range(self.number, self.number + 1)
            self.evidence.prove_relationship(link, self._moved(said), units)

    def _moved(self, span: Span) -> Span:
        return self.start + span[0], self.start + span[1]

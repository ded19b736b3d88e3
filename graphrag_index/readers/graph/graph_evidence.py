"""Builder of documents, text units, mentions and evidence, in batches."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_index.schema.list_columns import gather_lists
from graphrag_index.schema.tables import TABLES
from graphrag_index.text.languages import detect_language
from graphrag_index.text.sentences import Sentence

# Documents per batch: bounds memory, not results.
BATCH_DOCUMENTS = 4_096

Span = tuple[int, int]


class Passage(NamedTuple):
    """A text unit of one document."""

    id: str
    start: int
    end: int
    n_tokens: int
    metadata: str | None = None


class Evidence:
    """Collector of the passages that prove entities and relationships, and of their documents."""

    def __init__(self) -> None:
        self.n_documents = self.n_units = 0
        self._documents: list[tuple[object, ...]] = []
        self._units: list[tuple[object, ...]] = []
        self._sentences: list[tuple[object, ...]] = []
        self._mentions: list[tuple[int, int, int, int]] = []
        self._ids: list[str] = []  # ids of all documents
        self._of_entities: list[tuple[int, int, int, int]] = []
        self._of_relationships: list[tuple[int, int, int, int]] = []
        self._units_of_relationships: list[tuple[int, int]] = []
        # Rows of earlier batches, as columns.
        self._parts: dict[str, list[pl.DataFrame]] = {name: [] for name in _SCHEMAS}

    @property
    def is_full(self) -> bool:
        return len(self._documents) >= BATCH_DOCUMENTS

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
        self._documents.append(
            (
                *(identity, self.n_documents, title, text, [p.id for p in passages]),
                *(creation_date, None, path, metadata, detect_language(text)),
            )
        )
        for number, passage in enumerate(passages, first):
            words = text[passage.start : passage.end]
            self._units.append(
                (
                    *(passage.id, number, words, passage.n_tokens, identity),
                    *(passage.start, passage.end, "", passage.metadata),
                )
            )
        # Line 0: never treated as a repeated page header or footer.
        self._sentences += [(self.n_documents, *sentence, 0) for sentence in sentences]
        self.n_documents += 1
        self.n_units += len(passages)
        return first

    def mention(self, entity: int, unit: int, span: Span) -> None:
        self._mentions.append((entity, unit, *span))

    def prove_entity(self, entity: int, span: Span) -> None:
        """Record a span of the last document as evidence of an entity."""
        self._of_entities.append((entity, self.n_documents - 1, *span))

    def prove_relationship(self, number: int, span: Span, units: range) -> None:
        """Record a span of the last document and its text units as evidence of a relationship."""
        self._of_relationships.append((number, self.n_documents - 1, *span))
        self._units_of_relationships += [(number, unit) for unit in units]

    def batch(self) -> dict[str, pl.DataFrame]:
        """Return the documents added since the last batch, with text units and sentences."""
        rows = {
            "documents": self._documents,
            "base_text_units": self._units,
            "sentences": self._sentences,
        }
        frames = {
            name: pl.DataFrame(values, schema=TABLES[name].schema, orient="row")
            for name, values in rows.items()
        }
        self._documents, self._units, self._sentences = [], [], []
        held: dict[str, Sequence[tuple[int, ...]]] = {
            "mentions": self._mentions,
            "entities": self._of_entities,
            "relationships": self._of_relationships,
            "units": self._units_of_relationships,
        }
        for name, values in held.items():
            self._parts[name].append(pl.DataFrame(values, schema=_SCHEMAS[name], orient="row"))
        self._mentions, self._of_entities = [], []
        self._of_relationships, self._units_of_relationships = [], []
        return frames

    def mentions(self) -> pl.DataFrame:
        """Return `extracted_mentions`."""
        schema = TABLES["extracted_mentions"].schema
        order = ("text_unit", "start_char", "end_char", "entity")
        return self._whole("mentions").unique().sort(order).select(list(schema))

    def of_entities(self, n: int) -> pl.Series:
        """Return the column `evidence` of the entities."""
        return self._places("entities", n)

    def of_relationships(self, n: int) -> list[pl.Series]:
        """Return the columns `evidence` and `text_units` of the relationships."""
        units = self._whole("units").unique().sort("owner", "unit")
        lists = gather_lists(units["owner"].to_numpy(), units["unit"], n)
        return [self._places("relationships", n), lists.alias("text_units")]

    def _places(self, name: str, n: int) -> pl.Series:
        rows = self._whole(name).sort("owner", maintain_order=True)
        ids = pl.Series("document_id", self._ids, dtype=pl.String).gather(rows["document"])
        places = rows.select(ids, "start_char", "end_char").to_struct()
        owners = rows["owner"].to_numpy().astype(np.int64)
        return gather_lists(owners, places, n).alias("evidence")

    def _whole(self, name: str) -> pl.DataFrame:
        return pl.concat([pl.DataFrame(schema=_SCHEMAS[name]), *self._parts[name]])


_PLACE: dict[str, type[pl.DataType]] = {
    "owner": pl.Int64,
    "document": pl.Int64,
    "start_char": pl.Int64,
    "end_char": pl.Int64,
}
_SCHEMAS: dict[str, dict[str, type[pl.DataType]]] = {
    "mentions": {
        "entity": pl.Int32,
        "text_unit": pl.Int32,
        "start_char": pl.Int32,
        "end_char": pl.Int32,
    },
    "entities": _PLACE,
    "relationships": _PLACE,
    "units": {"owner": pl.Int64, "unit": pl.Int64},
}

"""Entities and relationships of all text units, merged by name."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.core.lists import gather_lists
from graphrag_index.core.tables import TABLES, title_key
from graphrag_index.extraction.alignment import Passage, Places, Span
from graphrag_index.extraction.records import Found, FoundEntity, clean
from graphrag_index.extraction.schemas import type_key

# A passage of a document: the document's number, start and end.
Evidence = tuple[int, int, int]


@dataclass(frozen=True)
class TextUnit:
    """A text unit: its number, its place in its document, and its text."""

    number: int
    document_id: str
    start_char: int
    passage: Passage


class _Row:
    """What text units say of one entity or relationship; dictionaries stand for ordered sets."""

    __slots__ = ("descriptions", "evidence", "given", "text_units", "types")

    def __init__(self) -> None:
        # Each with the first text unit that gives it.
        self.descriptions: dict[str, int] = {}
        self.evidence: dict[Evidence, None] = {}
        self.text_units: list[int] = []
        # The type that each of them gives.
        self.given: list[str] = []
        # How often each spelling of the type was given.
        self.types: dict[str, int] = {}

    def add(self, text_unit: TextUnit, description: str, kind: str, evidence: Evidence) -> None:
        if description:
            self.descriptions.setdefault(description, text_unit.number)
        self.evidence[evidence] = None
        if not self.text_units or self.text_units[-1] != text_unit.number:
            self.text_units.append(text_unit.number)
            self.given.append("")
        self.given[-1] = self.given[-1] or kind
        if kind:
            self.types[kind] = self.types.get(kind, 0) + 1

    def type(self) -> str:
        """Return the type that most gave; the first of several."""
        counts: dict[str, int] = {}
        for kind, n in self.types.items():
            counts[type_key(kind)] = counts.get(type_key(kind), 0) + n
        most = max(counts, key=counts.__getitem__, default="")
        return next((kind for kind in self.types if type_key(kind) == most), "")


class _Entity(_Row):
    __slots__ = ("aliases", "names")

    def __init__(self) -> None:
        super().__init__()
        # How often each form of the name was given.
        self.names: dict[str, int] = {}
        self.aliases: dict[str, None] = {}

    def title(self) -> str:
        """Return the form of the name that most gave; the first of several."""
        return max(self.names, key=self.names.__getitem__)


class _Relationship(_Row):
    __slots__ = ("weight",)

    def __init__(self) -> None:
        super().__init__()
        self.weight = 0.0


class ExtractedGraph:
    """What was found so far; text units are added in their order."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._entities: list[_Entity] = []
        self._relationships: dict[tuple[int, int, str], _Relationship] = {}
        # Entity, text unit, start and end of each mention, one after the other.
        self._mentions = array("i")
        self._documents: dict[str, int] = {}

    def add(self, text_unit: TextUnit, found: Found, places: Mapping[str, Places]) -> None:
        """Add what was found in one text unit, and where it names each entity."""
        mentions: set[tuple[int, int, int]] = set()
        for entity in sorted(found.entities, key=lambda entity: places[entity.name].spans[0][0]):
            number = self._add_entity(entity, text_unit, places[entity.name])
            mentions.update((*span, number) for span in places[entity.name].spans)
        for start, end, number in sorted(mentions):
            span = text_unit.start_char + start, text_unit.start_char + end
            self._mentions.extend((number, text_unit.number, *span))
        links = [
            (text_unit.passage.evidence(places[link.source], places[link.target]), link)
            for link in found.relationships
        ]
        for span, link in sorted(links, key=lambda pair: pair[0]):
            source, target = (self._numbers[title_key(end)] for end in (link.source, link.target))
            key = source, target, type_key(link.type)
            row = self._relationships.get(key)
            if row is None:
                row = self._relationships[key] = _Relationship()
            row.add(text_unit, link.description, link.type, self._evidence(text_unit, span))
            row.weight += link.strength

    def _add_entity(self, entity: FoundEntity, text_unit: TextUnit, places: Places) -> int:
        number = self._numbers.setdefault(title_key(entity.name), len(self._entities))
        if number == len(self._entities):
            self._entities.append(_Entity())
        row = self._entities[number]
        span = text_unit.passage.sentences_around(*places.spans[0])
        row.add(text_unit, entity.description, entity.type, self._evidence(text_unit, span))
        row.names[entity.name] = row.names.get(entity.name, 0) + 1
        if places.whole:
            for start, end in places.spans:
                form = text_unit.passage.text[start:end]
                if form != entity.name:
                    row.aliases[clean(form)] = None
        return number

    def _evidence(self, text_unit: TextUnit, span: Span) -> Evidence:
        number = self._documents.setdefault(text_unit.document_id, len(self._documents))
        return number, text_unit.start_char + span[0], text_unit.start_char + span[1]

    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Return `extracted_entities`, `extracted_relationships` and `raw_mentions`."""
        links = self._relationships
        document_ids = pl.Series(list(self._documents), dtype=pl.String)
        titles = [entity.title() for entity in self._entities]
        mentions = np.frombuffer(self._mentions, np.int32).reshape(-1, 4)
        tables: dict[str, Mapping[str, Any]] = {
            "extracted_entities": {
                **_columns(self._entities, document_ids),
                "human_readable_id": range(len(titles)),
                "title": titles,
                "types": [entity.given for entity in self._entities],
                "aliases": [
                    [form for form in entity.aliases if title_key(form) != title_key(title)]
                    for entity, title in zip(self._entities, titles, strict=True)
                ],
            },
            "extracted_relationships": {
                **_columns(list(links.values()), document_ids),
                "source": [source for source, _, _ in links],
                "target": [target for _, target, _ in links],
                "weight": [row.weight for row in links.values()],
            },
            "raw_mentions": {
                name: np.ascontiguousarray(mentions[:, column])
                for column, name in enumerate(TABLES["raw_mentions"].columns)
            },
        }
        return {
            name: pl.DataFrame(
                pl.Series(column, columns[column], dtype)
                for column, dtype in TABLES[name].schema.items()
            )
            for name, columns in tables.items()
        }


def _columns(rows: Sequence[_Row], document_ids: pl.Series) -> dict[str, Any]:
    """Return the columns that entities and relationships have both."""
    places = [place for row in rows for place in row.evidence]
    document, start, end = np.array(places, np.int64).reshape(-1, 3).T
    evidence = pl.DataFrame(
        {
            "document_id": document_ids.gather(document),
            "start_char": start,
            "end_char": end,
        }
    ).to_struct()
    owners = np.repeat(np.arange(len(rows)), [len(row.evidence) for row in rows])
    return {
        "type": [row.type() for row in rows],
        "descriptions": [list(row.descriptions) for row in rows],
        "description_text_units": [list(row.descriptions.values()) for row in rows],
        "text_units": [row.text_units for row in rows],
        "evidence": gather_lists(owners, evidence, len(rows)),
    }

"""What was found in each text unit, as rows: names and offsets are those of the text unit alone.

So nothing in a row changes when other text units come or go, and a later run can take the rows
of text units that are as they were.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.extraction.alignment import Passage, Places
from graphrag_index.extraction.reply_records import Found, clean
from graphrag_index.schema.list_columns import gather_lists
from graphrag_index.schema.tables import TABLES
from graphrag_index.text.normalize import title_key

TABLE = TABLES["text_unit_findings"]
# Lists of structs: a row for each thing that was found.
_PARTS = ("entities", "mentions", "relationships")


class Findings:
    """What was found so far; text units are added in their order."""

    def __init__(self) -> None:
        self._units: dict[str, list[Any]] = {
            name: [] for name in ("text_unit", "input_hash", "request_keys", "dropped")
        }
        self._columns = {name: _Columns(name) for name in _PARTS}
        self._frames: list[pl.DataFrame] = []

    def add(
        self,
        number: int,
        passage: Passage,
        found: Found,
        places: Mapping[str, Places],
        *,
        input_hash: str = "",
        request_keys: Sequence[str] = (),
        dropped: int = 0,
    ) -> None:
        """Add what was found in one text unit, and where it names each entity."""
        units = self._units
        units["text_unit"].append(number)
        units["input_hash"].append(input_hash)
        units["request_keys"].append(request_keys)
        units["dropped"].append(dropped)
        entities = sorted(found.entities, key=lambda entity: places[entity.name].spans[0][0])
        at: dict[str, int] = {}
        mentions: dict[tuple[int, int, int], None] = {}
        for entity in entities:
            place = places[entity.name]
            n = at.setdefault(title_key(entity.name), len(at))
            forms: dict[str, None] = {}
            if place.whole:
                spelled = (passage.text[start:end] for start, end in place.spans)
                forms = {clean(form): None for form in spelled if form != entity.name}
            mentions.update(((n, *span), None) for span in place.spans)
            span = passage.sentences_around(*place.spans[0])
            self._columns["entities"].add(
                (n, entity.name, entity.type, entity.description, *span, list(forms))
            )
        for mention in mentions:
            self._columns["mentions"].add(mention)
        links = [
            (passage.evidence(places[link.source], places[link.target]), link)
            for link in found.relationships
        ]
        for span, link in sorted(links, key=lambda pair: pair[0]):
            ends = at[title_key(link.source)], at[title_key(link.target)]
            self._columns["relationships"].add(
                (*ends, link.type, link.description, link.strength, *span)
            )
        for columns in self._columns.values():
            columns.close_list()
        if len(units["text_unit"]) == BATCH:
            self._frames.append(self._frame())

    def frame(self) -> pl.DataFrame:
        """Return a row for each text unit that was added, with its number as `text_unit`."""
        return pl.concat([*self._frames, self._frame()])

    def _frame(self) -> pl.DataFrame:
        """Put what was added since the last time into a frame, which takes a tenth of the room."""
        schema: dict[str, Any] = {"text_unit": pl.Int64, **TABLE.columns}
        columns = {name: pl.Series(v, dtype=schema[name]) for name, v in self._units.items()}
        columns |= {name: part.lists() for name, part in self._columns.items()}
        for values in self._units.values():
            values.clear()
        return pl.DataFrame(columns)


# Text units that are held as Python's own objects.
BATCH = 1_024


class _Columns:
    """The lists of one column, as one flat column for each field of their structs."""

    def __init__(self, name: str) -> None:
        self._type: Any = TABLE.columns[name]
        self._clear()

    def _clear(self) -> None:
        self._fields: list[list[Any]] = [[] for _ in self._type.inner.fields]
        self._lengths: list[int] = []
        self._length = 0

    def add(self, values: Sequence[Any]) -> None:
        for field, value in zip(self._fields, values, strict=True):
            field.append(value)
        self._length += 1

    def close_list(self) -> None:
        """What is added from now on belongs to the next text unit."""
        self._lengths.append(self._length)
        self._length = 0

    def lists(self) -> pl.Series:
        parts = zip(self._type.inner.fields, self._fields, strict=True)
        values = pl.DataFrame(pl.Series(part.name, v, part.dtype) for part, v in parts).to_struct()
        owners = np.repeat(np.arange(len(self._lengths)), self._lengths)
        lists = gather_lists(owners, values, len(self._lengths))
        self._clear()
        return lists

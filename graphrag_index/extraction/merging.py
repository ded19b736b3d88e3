"""Records of text units as a table, and their entities and relationships merged by name.

Names and offsets in `text_unit_findings` are those of the text unit alone. So no row changes
when other text units change, and a later run can reuse the rows of unchanged text units.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.extraction.alignment import Passage, Places
from graphrag_index.extraction.reply_records import Found, clean
from graphrag_index.extraction.schema_history import type_key
from graphrag_index.schema.list_columns import Integers, gather_lists
from graphrag_index.schema.tables import TABLES
from graphrag_index.text.normalize import title_key

TABLE = TABLES["text_unit_findings"]
# Columns with a list of structs.
_PARTS = ("entities", "mentions", "relationships")
# Text units that are held as Python objects.
BATCH = 1_024


class Findings:
    """Builds the table `text_unit_findings`; text units are added in order."""

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
        """Add the records of one text unit, with the mentions of each entity."""
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
        """Return a row for each text unit, with its number as `text_unit`."""
        return pl.concat([*self._frames, self._frame()])

    def _frame(self) -> pl.DataFrame:
        """Move the rows added since the last call into a frame, to save memory."""
        schema: dict[str, Any] = {"text_unit": pl.Int64, **TABLE.columns}
        columns = {name: pl.Series(v, dtype=schema[name]) for name, v in self._units.items()}
        columns |= {name: part.lists() for name, part in self._columns.items()}
        for values in self._units.values():
            values.clear()
        return pl.DataFrame(columns)


class _Columns:
    """A column of lists, as a flat column for each field of the structs."""

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
        """Begin the list of the next text unit."""
        self._lengths.append(self._length)
        self._length = 0

    def lists(self) -> pl.Series:
        parts = zip(self._type.inner.fields, self._fields, strict=True)
        values = pl.DataFrame(pl.Series(part.name, v, part.dtype) for part, v in parts).to_struct()
        owners = np.repeat(np.arange(len(self._lengths)), self._lengths)
        lists = gather_lists(owners, values, len(self._lengths))
        self._clear()
        return lists


def merge_findings(findings: pl.DataFrame, text_units: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return `extracted_entities`, `extracted_relationships` and `extracted_mentions`.

    Parameters
    ----------
    findings
        Rows of `text_unit_findings`, ordered by `text_unit`.
    text_units
        `document_id` and `start_char` of each text unit, by number.
    """
    places = findings.select(pl.col("text_unit")).with_columns(
        text_units[findings["text_unit"]].select("document_id", start_of_unit="start_char")
    )
    entities = _explode(findings, places, "entities")
    links = _explode(findings, places, "relationships")
    mentions = _explode(findings, places, "mentions")
    keys = _map(entities["name"], title_key)
    numbers, firsts = _number_rows(keys.to_frame())
    entity_numbers = _EntityNumbers(entities, numbers)
    links = entity_numbers.replace(links, "source", "target")
    mentions = entity_numbers.replace(mentions, "entity")
    columns = TABLES["extracted_mentions"].columns
    return {
        "extracted_entities": _entities(entities, numbers, keys.gather(firsts)),
        "extracted_relationships": _relationships(links),
        "extracted_mentions": _drop_adjacent_repeats(
            mentions.select(pl.col(name).cast(kind) for name, kind in columns.items()).sort(
                "text_unit", "start_char", "end_char", "entity"
            )
        ),
    }


def _explode(findings: pl.DataFrame, places: pl.DataFrame, name: str) -> pl.DataFrame:
    """Explode a column of lists, with the text unit and the offsets in the document."""
    rows = places.with_columns(findings[name]).filter(pl.col(name).list.len() > 0)
    return (
        rows.explode(name)
        .unnest(name)
        .with_columns(pl.col("start_char", "end_char") + pl.col("start_of_unit"))
        .drop("start_of_unit")
    )


class _EntityNumbers:
    """Maps the number of an entity in a text unit to its number in the index."""

    def __init__(self, entities: pl.DataFrame, numbers: Integers) -> None:
        units, own = (entities[name].to_numpy() for name in ("text_unit", "number"))
        sizes = np.zeros(units.max(initial=-1) + 1, np.int64)
        np.maximum.at(sizes, units, own + 1)
        self._starts = np.cumsum(sizes) - sizes
        self._numbers = np.zeros(sizes.sum(), np.int64)
        self._numbers[self._starts[units] + own] = numbers

    def replace(self, rows: pl.DataFrame, *ends: str) -> pl.DataFrame:
        """Replace the numbers of entities in text units by those in the index."""
        starts = self._starts[rows["text_unit"].to_numpy()]
        return rows.with_columns(
            pl.Series(end, self._numbers[starts + rows[end].to_numpy()]) for end in ends
        )


def _entities(rows: pl.DataFrame, owners: Integers, keys: pl.Series) -> pl.DataFrame:
    """Return `extracted_entities`; `keys` are the identities of their titles."""
    n = len(keys)
    rows = _by_owner(rows, owners)
    forms = rows.select("owner", "forms").filter(pl.col("forms").list.len() > 0).explode("forms")
    is_other = _map(forms["forms"], title_key) != keys.gather(forms["owner"])
    return pl.DataFrame(
        {
            **_columns(rows, n),
            "types": _types(rows, n),
            "human_readable_id": np.arange(n),
            "title": _most_frequent(rows["owner"], rows["name"], rows["name"], n),
            "aliases": _lists(_drop_repeats(forms.filter(is_other)), n),
        }
    ).select(pl.col(n).cast(t) for n, t in TABLES["extracted_entities"].columns.items())


def _relationships(rows: pl.DataFrame) -> pl.DataFrame:
    """Return `extracted_relationships`."""
    ends = rows.select("source", "target")
    owners, firsts = _number_rows(ends.with_columns(_map(rows["type"], type_key).alias("type")))
    n = len(firsts)
    return pl.DataFrame(
        {
            **_columns(_by_owner(rows, owners), n),
            **ends[firsts].to_dict(),
            # Summed in order, so that the result is the same to the last bit.
            "weight": np.bincount(owners, rows["strength"].to_numpy(), n).astype(np.float64),
        }
    ).select(pl.col(n).cast(t) for n, t in TABLES["extracted_relationships"].columns.items())


def _by_owner(rows: pl.DataFrame, owners: Integers) -> pl.DataFrame:
    """Group the rows of each owner, in their order."""
    return rows.with_columns(owner=owners).sort("owner", maintain_order=True)


def _columns(rows: pl.DataFrame, n: int) -> dict[str, pl.Series]:
    """Return the columns that entities and relationships share."""
    typed = rows.filter(pl.col("type") != "")
    # Each with the first text unit that has it.
    descriptions = rows.select("owner", "description", "text_unit").filter(
        pl.col("description") != ""
    )
    described = _drop_repeats(descriptions, "owner", "description")
    places = rows.select("owner", "document_id", "start_char", "end_char")
    return {
        "type": _most_frequent(typed["owner"], typed["type"], _map(typed["type"], type_key), n),
        "description": pl.repeat("", n, dtype=pl.String, eager=True),
        "descriptions": _lists(described.select("owner", "description"), n),
        "description_text_units": _lists(described.select("owner", "text_unit"), n),
        "text_units": _lists(_drop_adjacent_repeats(rows.select("owner", "text_unit")), n),
        "evidence": _lists(_drop_repeats(places), n),
    }


def _number_rows(keys: pl.DataFrame) -> tuple[Integers, Integers]:
    """Return the number of each row among the distinct rows, and the first row of each."""
    firsts = _drop_repeats(keys.with_row_index("first"), *keys.columns)
    numbers = keys.join(
        firsts.with_row_index("number"), on=keys.columns, how="left", maintain_order="left"
    )
    return numbers["number"].cast(pl.Int64).to_numpy(), firsts["first"].cast(pl.Int64).to_numpy()


def _drop_repeats(rows: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Keep the first of equal rows, or of rows with equal values in some columns.

    Faster than `unique`, which sorts to keep the order.
    """
    columns = names or rows.columns
    together = pl.struct(columns) if len(columns) > 1 else pl.col(columns)
    return rows.filter(together.is_first_distinct())


def _drop_adjacent_repeats(rows: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Do the same if equal rows are adjacent."""
    columns = pl.col(names or rows.columns)
    return rows.filter(pl.any_horizontal(columns.ne_missing(columns.shift())))


def _map(values: pl.Series, function: Callable[[str], str]) -> pl.Series:
    """Apply a function once to each distinct value."""
    different = values.unique()
    results = pl.Series(list(map(function, different)), dtype=pl.String)
    return values.replace_strict(different, results, return_dtype=pl.String)


def _most_frequent(owners: pl.Series, values: pl.Series, keys: pl.Series, n: int) -> pl.Series:
    """Return for each owner the first value of its most frequent key; empty if it has none.

    Of equally frequent keys the first is chosen.
    """
    rows = pl.DataFrame({"owner": owners, "key": keys, "at": np.arange(len(owners))})
    best = (
        rows.group_by("owner", "key")
        .agg(times=pl.len(), at=pl.col("at").min())
        .sort("owner", "times", "at", descending=[False, True, False])
        .filter(pl.col("owner").is_first_distinct())
    )
    chosen = pl.DataFrame({"owner": best["owner"], "value": values.gather(best["at"])})
    everyone = pl.DataFrame({"owner": np.arange(n)})
    found = everyone.join(chosen, on="owner", how="left", maintain_order="left")
    return found["value"].fill_null("")


def _types(rows: pl.DataFrame, n: int) -> pl.Series:
    """Return the types of each `owner`: of each text unit the first that is not empty."""
    given = rows.select("owner", "text_unit", "type")
    # Rows without a type come last in their text unit.
    ordered = given.sort("owner", "text_unit", pl.col("type") == "", maintain_order=True)
    return _lists(_drop_adjacent_repeats(ordered, "owner", "text_unit").drop("text_unit"), n)


def _lists(rows: pl.DataFrame, n: int) -> pl.Series:
    """Collect the values of each `owner` into a list, in the order of the rows."""
    things = rows.drop("owner")
    values = things.to_struct() if things.width > 1 else things.to_series()
    return gather_lists(rows["owner"].to_numpy(), values, n)

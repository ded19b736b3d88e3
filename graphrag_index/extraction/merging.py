"""A table of the records in each text unit, and the merging of these records by name.

Names and offsets in `text_unit_findings` depend only on the text unit. So no row changes when
other text units change, and a later run can reuse the rows of unchanged text units.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.extraction.alignment import NameMentions, Passage
from graphrag_index.extraction.graph_reply import type_key
from graphrag_index.extraction.reply_records import FoundRecords, clean_line
from graphrag_index.llm.request import Outcome
from graphrag_index.schema.list_columns import Integers, gather_by_owner
from graphrag_index.schema.tables import TABLES
from graphrag_index.text.normalize import title_key

FINDINGS = TABLES["text_unit_findings"]
# Columns of `text_unit_findings` that contain a list of records.
_LIST_COLUMNS = ("entities", "mentions", "relationships")
# Maximum number of text units that are kept as Python objects. More are moved into a frame.
MAX_TEXT_UNITS_IN_MEMORY = 1_024


class FindingsBuilder:
    """Builder of the table `text_unit_findings`. Text units are added in order."""

    def __init__(self) -> None:
        self._units: list[tuple[int, str, Sequence[str], int]] = []
        # Rows of each list column. A row begins with the index of its text unit in `_units`.
        self._rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _LIST_COLUMNS}
        self._frames: list[pl.DataFrame] = []

    def add_text_unit(
        self,
        number: int,
        passage: Passage,
        found: FoundRecords,
        places: Mapping[str, NameMentions],
        input_hash: str,
        outcome: Outcome,
    ) -> None:
        """Add the records of one text unit and the mentions of its entities."""
        if len(self._units) == MAX_TEXT_UNITS_IN_MEMORY:
            self._frames.append(self._flush_rows())
        unit = len(self._units)
        self._units.append((number, input_hash, outcome.keys, outcome.dropped))
        at: dict[str, int] = {}
        mentions: dict[tuple[int, ...], None] = {}
        for entity in sorted(found.entities, key=lambda e: places[e.name].spans[0][0]):
            place = places[entity.name]
            n = at.setdefault(title_key(entity.name), len(at))
            forms: dict[str, None] = {}
            if place.whole:
                spelled = (passage.text[start:end] for start, end in place.spans)
                forms = {clean_line(form): None for form in spelled if form != entity.name}
            mentions.update(((unit, n, *span), None) for span in place.spans)
            span = passage.extend_to_sentences(*place.spans[0])
            self._rows["entities"].append((unit, n, *entity, *span, list(forms)))
        self._rows["mentions"].extend(mentions)
        links = [
            (passage.find_evidence(places[link.source], places[link.target]), link)
            for link in found.relationships
        ]
        for span, (source, target, *record) in sorted(links, key=itemgetter(0)):
            endpoints = at[title_key(source)], at[title_key(target)]
            self._rows["relationships"].append((unit, *endpoints, *record, *span))

    def to_frame(self) -> pl.DataFrame:
        """Return one row per text unit. The column `text_unit` has its number."""
        return pl.concat([*self._frames, self._flush_rows()])

    def _flush_rows(self) -> pl.DataFrame:
        """Move the rows that were added since the last call into a frame, to save memory."""
        names = ("input_hash", "request_keys", "dropped")
        schema = {"text_unit": pl.Int64, **{name: FINDINGS.columns[name] for name in names}}
        units = pl.DataFrame(self._units, schema, orient="row")
        for name, rows in self._rows.items():
            kind: Any = FINDINGS.columns[name]
            fields = {"owner": pl.Int64, **kind.inner.to_schema()}
            lists = gather_by_owner(pl.DataFrame(rows, fields, orient="row"), len(units))
            units = units.with_columns(lists.alias(name))
            rows.clear()
        self._units.clear()
        return units


def merge_findings(findings: pl.DataFrame, text_units: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the tables `extracted_entities`, `extracted_relationships`, `extracted_mentions`.

    `findings` are the rows of `text_unit_findings`, sorted by `text_unit`. `text_units` has the
    columns `document_id` and `start_char`; its row index is the number of the text unit.
    """
    places = findings.select(pl.col("text_unit")).with_columns(
        text_units[findings["text_unit"]].select("document_id", start_of_unit="start_char")
    )
    entities, mentions, links = (_explode_records(findings, places, name) for name in _LIST_COLUMNS)
    keys = _apply_to_distinct(entities["name"], title_key)
    numbers, firsts = _number_rows(keys.to_frame())
    of_units = entities.select("text_unit", "number", index=numbers).unique()
    for end in ("source", "target"):
        links = _replace_entity_numbers(links, end, of_units)
    mentions = _replace_entity_numbers(mentions, "entity", of_units)
    mentions = mentions.select(TABLES["extracted_mentions"].cast_columns)
    return {
        "extracted_entities": _merge_entities(entities, numbers, keys.gather(firsts)),
        "extracted_relationships": _merge_relationships(links),
        "extracted_mentions": _drop_equal_rows(
            mentions.sort("text_unit", "start_char", "end_char", "entity")
        ),
    }


def _explode_records(findings: pl.DataFrame, places: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return one row per record of a list column, with the offsets in the document."""
    rows = places.with_columns(findings[name]).filter(pl.col(name).list.len() > 0)
    return (
        rows.explode(name)
        .unnest(name)
        .with_columns(pl.col("start_char", "end_char") + pl.col("start_of_unit"))
        .drop("start_of_unit")
    )


def _replace_entity_numbers(rows: pl.DataFrame, end: str, of_units: pl.DataFrame) -> pl.DataFrame:
    """Replace entity numbers that count within a text unit by those of the whole index."""
    on = ["text_unit", end]
    found = rows.join(of_units.rename({"number": end}), on=on, how="left", maintain_order="left")
    return found.drop(end).rename({"index": end})


def _merge_entities(rows: pl.DataFrame, owners: Integers, keys: pl.Series) -> pl.DataFrame:
    """Return the table `extracted_entities`. `keys` are the `title_key` of each entity."""
    n = len(keys)
    rows = rows.with_columns(owner=owners).sort("owner", maintain_order=True)
    forms = rows.select("owner", "forms").filter(pl.col("forms").list.len() > 0).explode("forms")
    # The types of an entity: the first type in each of its text units, if one has a type.
    typed = rows.select("owner", "text_unit", "type").sort(
        "owner", "text_unit", pl.col("type") == "", maintain_order=True
    )
    types = _drop_equal_rows(typed, "owner", "text_unit").drop("text_unit")
    is_other = _apply_to_distinct(forms["forms"], title_key) != keys.gather(forms["owner"])
    return pl.DataFrame(
        {
            **_merge_shared_columns(rows, n),
            "types": gather_by_owner(types, n),
            "human_readable_id": np.arange(n),
            "title": _most_frequent(rows["owner"], rows["name"], rows["name"], n),
            "aliases": gather_by_owner(_drop_equal_rows(forms.filter(is_other)), n),
        }
    ).select(TABLES["extracted_entities"].cast_columns)


def _merge_relationships(rows: pl.DataFrame) -> pl.DataFrame:
    endpoints = rows.select("source", "target")
    owners, firsts = _number_rows(
        endpoints.with_columns(_apply_to_distinct(rows["type"], type_key).alias("type"))
    )
    n = len(firsts)
    # `bincount` adds in the order of the rows, so repeated runs give the same sums.
    weights = np.bincount(owners, rows["strength"].to_numpy(), n).astype(np.float64)
    rows = rows.with_columns(owner=owners).sort("owner", maintain_order=True)
    return pl.DataFrame(
        {**_merge_shared_columns(rows, n), **endpoints[firsts].to_dict(), "weight": weights}
    ).select(TABLES["extracted_relationships"].cast_columns)


def _merge_shared_columns(rows: pl.DataFrame, n: int) -> dict[str, pl.Series]:
    typed = rows.filter(pl.col("type") != "")
    # Keep equal descriptions of an entity once, with the first text unit that contains them.
    descriptions = rows.select("owner", "description", "text_unit").filter(
        pl.col("description") != ""
    )
    described = _drop_equal_rows(descriptions, "owner", "description")
    places = rows.select("owner", "document_id", "start_char", "end_char")
    return {
        "type": _most_frequent(
            typed["owner"], typed["type"], _apply_to_distinct(typed["type"], type_key), n
        ),
        "description": pl.repeat("", n, dtype=pl.String, eager=True),
        "descriptions": gather_by_owner(described.select("owner", "description"), n),
        "description_text_units": gather_by_owner(described.select("owner", "text_unit"), n),
        "text_units": gather_by_owner(_drop_equal_rows(rows.select("owner", "text_unit")), n),
        "evidence": gather_by_owner(_drop_equal_rows(places), n),
    }


def _number_rows(keys: pl.DataFrame) -> tuple[Integers, Integers]:
    """Give equal rows the same number. Return the number per row, and the first row per number."""
    firsts = _drop_equal_rows(keys.with_row_index("first"), *keys.columns)
    numbers = keys.join(
        firsts.with_row_index("number"), on=keys.columns, how="left", maintain_order="left"
    )
    return numbers["number"].cast(pl.Int64).to_numpy(), firsts["first"].cast(pl.Int64).to_numpy()


def _drop_equal_rows(rows: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Keep the first of equal rows, or of rows with equal values in the columns `names`.

    This is faster than `unique`, which sorts to keep the order.
    """
    columns = names or rows.columns
    together = pl.struct(columns) if len(columns) > 1 else pl.col(columns)
    return rows.filter(together.is_first_distinct())


def _apply_to_distinct(values: pl.Series, function: Callable[[str], str]) -> pl.Series:
    different = values.unique()
    results = pl.Series(list(map(function, different)), dtype=pl.String)
    return values.replace_strict(different, results, return_dtype=pl.String)


def _most_frequent(owners: pl.Series, values: pl.Series, keys: pl.Series, n: int) -> pl.Series:
    """Return one value per owner: the first value with the owner's most frequent key.

    On a tie, the key that occurs first wins. An owner without values gets "".
    """
    rows = pl.DataFrame({"owner": owners, "key": keys, "at": np.arange(len(owners))})
    best = (
        rows.group_by("owner", "key")
        .agg(times=pl.len(), at=pl.col("at").min())
        .sort("owner", "times", "at", descending=[False, True, False])
        .filter(pl.col("owner").is_first_distinct())
    )
    nothing = pl.repeat("", n, dtype=pl.String, eager=True)
    return nothing.scatter(best["owner"], values.gather(best["at"]))

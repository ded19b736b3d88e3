"""The table `text_unit_findings`: the records of the replies about each text unit.

Names and offsets in this table depend only on the text unit. So no row changes when other text
units change, and a later run can reuse the rows of unchanged text units.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from graphrag_index.extraction.alignment import NameMentions, Passage
from graphrag_index.extraction.reply_records import (
    FoundEntity,
    FoundRecords,
    FoundRelationship,
    clean_line,
)
from graphrag_index.schema.settings.step_sections import Star
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import ShardFrames
from graphrag_nlp.list_columns import gather_by_owner
from graphrag_nlp.text.normalize import title_key

FINDINGS = TABLES["text_unit_findings"]
# Columns of `text_unit_findings` that contain a list of records.
LIST_COLUMNS = ("entities", "mentions", "relationships")
# Number of text units in a shard. It limits memory and does not change the results.
SHARD_TEXT_UNITS = 1_024


class UnitReplies(NamedTuple):
    """A text unit with the records of its replies, before names are located in its text."""

    text_unit: int  # number of the text unit
    text: str
    language: str
    key: str  # name of the entity that stands for the document, see `Star`; may be empty
    input_hash: str
    request_keys: tuple[str, ...]
    dropped: int
    found: FoundRecords


_UNIT_SCHEMA: dict[str, Any] = {
    "text_unit": pl.Int64,
    **dict.fromkeys(("text", "language", "key", "input_hash"), pl.String),
    "request_keys": pl.List(pl.String),
    "dropped": pl.Int64,
}
_TEXTS = dict.fromkeys(("name", "type", "description"), pl.String)
_RECORD_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "entities": {"owner": pl.Int64, **_TEXTS},
    "relationships": {
        "owner": pl.Int64,
        **dict.fromkeys(("source", "target", "type", "description"), pl.String),
        "strength": pl.Float64,
    },
}


def make_shards(replies: Iterable[UnitReplies]) -> Iterator[tuple[None, ShardFrames]]:
    """Yield shards of text units with their records, for `align_records`."""
    units: list[tuple[Any, ...]] = []
    records: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _RECORD_SCHEMAS}

    def make_shard() -> tuple[None, ShardFrames]:
        frames = {"units": pl.DataFrame(units, _UNIT_SCHEMA, orient="row")}
        for name, schema in _RECORD_SCHEMAS.items():
            frames[name] = pl.DataFrame(records[name], schema, orient="row")
            records[name].clear()
        units.clear()
        return None, frames

    for *unit, found in replies:
        for name, rows in records.items():
            rows += ((len(units), *record) for record in getattr(found, name))
        units.append(tuple(unit))
        if len(units) == SHARD_TEXT_UNITS:
            yield make_shard()
    if units:
        yield make_shard()


def align_records(shard: ShardFrames, star: Star | None) -> ShardFrames:
    """Locate the names of a shard in its texts.

    The result has one row of `text_unit_findings` per text unit, without the hashes of the replies.
    The column `text_unit` has the number of the text unit.
    """
    units = shard["units"]
    # Rows of each list column. A row begins with the index of its text unit in the shard.
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in LIST_COLUMNS}
    columns = units.select("text", "language", "key").iter_rows()
    for unit, ((text, language, key), found) in enumerate(
        zip(columns, _read_records(shard), strict=True)
    ):
        passage = Passage(text, language)
        places: Mapping[str, NameMentions] = passage.align_names(
            entity.name for entity in found.entities
        )
        if key and star:
            found, places = _add_document_entity(found, places, passage, key, star)
        _add_rows(rows, unit, passage, found, places)
    findings = units.drop("text", "language", "key")
    for name in LIST_COLUMNS:
        kind: Any = FINDINGS.columns[name]
        fields = {"owner": pl.Int64, **kind.inner.to_schema()}
        lists = gather_by_owner(pl.DataFrame(rows[name], fields, orient="row"), units.height)
        findings = findings.with_columns(lists.alias(name))
    return {"findings": findings}


def _read_records(shard: ShardFrames) -> Iterator[FoundRecords]:
    """Yield the records of each text unit of a shard."""
    indexes = np.arange(shard["units"].height + 1)
    rows = [shard[name].drop("owner").rows() for name in _RECORD_SCHEMAS]
    bounds = [
        pairwise(np.searchsorted(shard[name]["owner"].to_numpy(), indexes).tolist())
        for name in _RECORD_SCHEMAS
    ]
    entities, links = rows
    for (start, end), (first_link, last_link) in zip(*bounds, strict=True):
        yield FoundRecords(
            tuple(map(FoundEntity._make, entities[start:end])),
            tuple(map(FoundRelationship._make, links[first_link:last_link])),
        )


def _add_rows(
    rows: Mapping[str, list[tuple[Any, ...]]],
    unit: int,
    passage: Passage,
    found: FoundRecords,
    places: Mapping[str, NameMentions],
) -> None:
    """Add the records of one text unit and the mentions of its entities."""
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
        rows["entities"].append((unit, n, *entity, *span, list(forms)))
    rows["mentions"].extend(mentions)
    links = [
        (passage.find_evidence(places[link.source], places[link.target]), link)
        for link in found.relationships
    ]
    for span, (source, target, *record) in sorted(links, key=itemgetter(0)):
        endpoints = at[title_key(source)], at[title_key(target)]
        rows["relationships"].append((unit, *endpoints, *record, *span))


def _add_document_entity(
    found: FoundRecords, places: Mapping[str, NameMentions], passage: Passage, key: str, star: Star
) -> tuple[FoundRecords, Mapping[str, NameMentions]]:
    """Add the entity of the document, and its relationships to all other entities."""
    mentions = passage.find_name(key) or NameMentions(((0, len(passage.text)),), False)
    others = {title_key(entity.name): entity.name for entity in found.entities}
    others.pop(title_key(key), None)
    links = [FoundRelationship(key, name, star.relationship, "", 1) for name in others.values()]
    starred = FoundRecords(
        (FoundEntity(key, star.type), *found.entities), (*links, *found.relationships)
    )
    return starred, {**places, key: mentions}

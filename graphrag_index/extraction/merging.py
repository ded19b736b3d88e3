"""Merging of the records of all text units by name, in partitions that fit into memory.

In the table `text_unit_findings`, names and offsets depend only on the text unit, so a later run
reuses the rows of unchanged text units. The partition of a record is a hash of its key, so it
has all records of its entities or relationships, and any process merges it alone. An entity is
known by the number of its first record, until the entities have their final numbers.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from graphrag_index.extraction.alignment import NameMentions, Passage, Span
from graphrag_index.extraction.graph_reply import (
    FoundEntity,
    FoundRecords,
    FoundRelationship,
    clean_line,
    type_key,
)
from graphrag_index.schema.settings.step_sections import Star
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Partitions, ShardFrames, Shards
from graphrag_index.storage.memo import regroup_batches
from graphrag_index.storage.partitions import hash_partitions
from graphrag_nlp.list_columns import Integers, gather_by_owner
from graphrag_nlp.text.lines import locate
from graphrag_nlp.text.normalize import title_key

FINDINGS = TABLES["text_unit_findings"]
# Columns of `text_unit_findings` that contain a list of records.
LIST_COLUMNS = ("entities", "mentions", "relationships")
# Number of text units in a shard. It limits memory and does not change the results.
SHARD_TEXT_UNITS = 1_024


class UnitReplies(NamedTuple):
    """A text unit with the records of its replies, before names are located in its text."""

    text_unit: int  # number of the text unit
    text: str  # the reading of the text unit
    source: str  # its characters in the document
    language: str
    subject: str  # lines of the prompt that tell what the document is about
    key: str  # name of the entity that stands for the document, see `Star`; may be empty
    input_hash: str
    request_keys: tuple[str, ...]
    dropped: int
    found: FoundRecords


_UNIT_SCHEMA: dict[str, Any] = {
    "text_unit": pl.Int64,
    **dict.fromkeys(("text", "source", "language", "subject", "key", "input_hash"), pl.String),
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
    columns = units.select("text", "source", "language", "subject", "key").iter_rows()
    for unit, ((text, source, language, subject, key), found) in enumerate(
        zip(columns, _read_records(shard), strict=True)
    ):
        passage = Passage(text, language, subject)
        places: Mapping[str, NameMentions] = passage.align_names(
            entity.name for entity in found.entities
        )
        if key and star:
            found, places = _add_document_entity(found, places, passage, key, star)
        _add_rows(rows, unit, passage, source, found, places)
    findings = units.drop("text", "source", "language", "subject", "key")
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
    source: str,
    found: FoundRecords,
    places: Mapping[str, NameMentions],
) -> None:
    """Add the records of one text unit and the mentions of its entities, as spans of `source`.

    An entity whose mention is the whole text is mentioned where its relationships are stated.
    """
    links = [
        (passage.find_evidence(places[link.source], places[link.target]), link)
        for link in found.relationships
    ]
    stated: dict[str, set[Span]] = {}
    for span, link in links:
        for end in (link.source, link.target):
            if places[end].spans == ((0, len(passage.text)),):
                stated.setdefault(end, set()).add(span)
    own = {name: NameMentions(tuple(sorted(spans)), False) for name, spans in stated.items()}
    places = {**places, **own}
    at: dict[str, int] = {}
    mentions: dict[tuple[int, ...], None] = {}
    place_in_source = partial(locate, passage.text, source)
    for entity in sorted(found.entities, key=lambda e: places[e.name].spans[0][0]):
        place = places[entity.name]
        n = at.setdefault(title_key(entity.name), len(at))
        forms: dict[str, None] = {}
        if place.whole:
            spelled = (passage.text[start:end] for start, end in place.spans)
            forms = {clean_line(form): None for form in spelled if form != entity.name}
        mentions.update(((unit, n, *place_in_source(*span)), None) for span in place.spans)
        span = place_in_source(*passage.extend_to_sentences(*place.spans[0]))
        rows["entities"].append((unit, n, *entity, *span, list(forms)))
    rows["mentions"].extend(mentions)
    for span, (source, target, *record) in sorted(links, key=itemgetter(0)):
        endpoints = at[title_key(source)], at[title_key(target)]
        rows["relationships"].append((unit, *endpoints, *record, *place_in_source(*span)))


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


# Number of text units per partition. It limits memory and does not change the results.
PARTITION_TEXT_UNITS = 4_096
_ENTITIES, _RELATIONSHIPS, _MENTIONS = (
    TABLES[name] for name in ("extracted_entities", "extracted_relationships", "extracted_mentions")
)
# A record with its number, which counts the records of all text units.
_RECORD = {
    "record": pl.Int64,
    **{"text_unit": pl.Int64, "type": pl.String, "description": pl.String},
    **{"document_id": pl.String, "start_char": pl.Int64, "end_char": pl.Int64},
}
# `number` counts the entities of the text unit.
_ENTITY_RECORD = {
    **_RECORD,
    **{"number": pl.Int32, "name": pl.String, "forms": pl.List(pl.String), "key": pl.String},
}
_LINK_RECORD = {**_RECORD, "source": pl.Int32, "target": pl.Int32, "strength": pl.Float64}
_KEYED_LINK = {**_LINK_RECORD, "source": pl.Int64, "target": pl.Int64, "type_key": pl.String}
_MENTION = {
    **{"text_unit": pl.Int64, "entity": pl.Int32, "start_char": pl.Int64, "end_char": pl.Int64}
}
# `first` is the number of the first record of an entity.
_UNIT_ENTITY = {"text_unit": pl.Int64, "number": pl.Int32, "first": pl.Int64}


def merge_findings(
    findings: Iterable[pl.DataFrame], text_units: pl.DataFrame, shards: Shards
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Yield the tables of `extract_graph` in batches; `findings` are rows of the first table.

    `findings` are sorted by their column `text_unit`, the number of the text unit. `text_units` has
    the columns `document_id` and `start_char`; its row index is the number of the text unit.
    """
    n = count_partitions(text_units.height)
    with (
        shards.open_partitions(n, _ENTITY_RECORD) as entities,
        shards.open_partitions(n, _MENTION) as mentions,
        shards.open_partitions(n, _LINK_RECORD) as links,
        shards.open_partitions(n, _UNIT_ENTITY) as of_units,
        shards.open_partitions(n, _KEYED_LINK) as keyed_links,
    ):
        n_records, n_links = yield from _partition_findings(
            findings, text_units, n, entities, mentions, links
        )
        firsts = [np.zeros(0, np.int64)]

        def merge_entities() -> Iterator[pl.DataFrame]:
            for _, merged in shards.map(merge_entity_records, _make_shards(entities)):
                of_units.append(merged["of_units"], find_partitions(merged["of_units"]))
                firsts.append(merged["entities"]["first"].to_numpy())
                yield merged["entities"]

        n_entities = 0
        for rows in _sort_by_first(merge_entities(), n, n_records, shards):
            numbers = n_entities + pl.int_range(rows.height)
            n_entities += rows.height
            numbered = rows.with_columns(human_readable_id=numbers)
            yield {_ENTITIES.name: numbered.select(_ENTITIES.cast_columns)}
        numbers_of_firsts = np.sort(np.concatenate(firsts))

        def number_mentions() -> Iterator[pl.DataFrame]:
            for number in range(n):
                of_unit = of_units.read(number)
                entity = np.searchsorted(numbers_of_firsts, of_unit["first"].to_numpy())
                of_unit = of_unit.select("text_unit", "number", index=entity)
                rows = links.read(number)
                for end in ("source", "target"):
                    rows = _replace_entity_numbers(rows, end, of_unit)
                rows = rows.with_columns(type_key=_apply_to_distinct(rows["type"], type_key))
                pairs = rows.select(pl.col("source") * n_entities + pl.col("target")).to_series()
                keyed_links.append(rows, hash_partitions(pairs, n))
                named = _replace_entity_numbers(mentions.read(number), "entity", of_unit)
                named = named.select(_MENTIONS.cast_columns)
                yield _drop_equal_rows(named.sort("text_unit", "start_char", "end_char", "entity"))

        for rows in regroup_batches(number_mentions()):
            yield {_MENTIONS.name: rows}
        merged_links = (
            merged["relationships"]
            for _, merged in shards.map(merge_link_records, _make_shards(keyed_links))
        )
        for rows in _sort_by_first(merged_links, n, n_links, shards):
            yield {_RELATIONSHIPS.name: rows.select(_RELATIONSHIPS.cast_columns)}


def _partition_findings(
    findings: Iterable[pl.DataFrame],
    text_units: pl.DataFrame,
    n: int,
    entities: Partitions,
    mentions: Partitions,
    links: Partitions,
) -> Generator[Mapping[str, pl.DataFrame], None, tuple[int, int]]:
    """Yield the rows of the first table; return the numbers of records of entities and of links.

    The records go to partitions: those of entities by their names, all others by text units.
    """
    n_records = n_links = 0
    for batch in findings:
        yield {FINDINGS.name: batch.select(list(FINDINGS.columns))}
        entity_rows, mention_rows, link_rows = _explode_records(batch, text_units)
        keys = _apply_to_distinct(entity_rows["name"], title_key)
        records = n_records + pl.int_range(entity_rows.height)
        numbered = entity_rows.with_columns(key=keys, record=records)
        entities.append(numbered, hash_partitions(keys, n))
        n_records += entity_rows.height
        mentions.append(mention_rows, find_partitions(mention_rows))
        records = n_links + pl.int_range(link_rows.height)
        links.append(link_rows.with_columns(record=records), find_partitions(link_rows))
        n_links += link_rows.height
    return n_records, n_links


def count_partitions(n_text_units: int) -> int:
    """Return the number of partitions for this number of text units; at least one."""
    return max(1, -(-n_text_units // PARTITION_TEXT_UNITS))


def find_partitions(rows: pl.DataFrame) -> Integers:
    """Return the partition of each row: its range of text units, from the column `text_unit`."""
    partitions: Integers = rows["text_unit"].to_numpy() // PARTITION_TEXT_UNITS
    return partitions


def _make_shards(partitions: Partitions) -> Iterator[tuple[None, ShardFrames]]:
    return ((None, {"records": rows}) for _, rows in partitions)


def _sort_by_first(
    merged: Iterator[pl.DataFrame], n: int, n_records: int, shards: Shards
) -> Iterator[pl.DataFrame]:
    """Sort rows by their column `first`, a number below `n_records`, in `n` partitions."""
    first = next(merged, None)
    if first is None:
        return
    with shards.open_partitions(n, first.schema) as ranges:
        for rows in chain([first], merged):
            ranges.append(rows, rows["first"].to_numpy() * n // n_records)
        yield from regroup_batches(rows.sort("first") for _, rows in ranges)


def _explode_records(findings: pl.DataFrame, text_units: pl.DataFrame) -> list[pl.DataFrame]:
    """Return one frame per list column, one row per record, with the offsets in the document."""
    places = findings.select("text_unit").with_columns(
        text_units[findings["text_unit"]].select("document_id", start_of_unit="start_char")
    )
    return [
        places.with_columns(findings[name])
        .filter(pl.col(name).list.len() > 0)
        .explode(name)
        .unnest(name)
        .with_columns(pl.col("start_char", "end_char") + pl.col("start_of_unit"))
        for name in LIST_COLUMNS
    ]


def _replace_entity_numbers(rows: pl.DataFrame, end: str, of_units: pl.DataFrame) -> pl.DataFrame:
    """Replace entity numbers that count within a text unit by those of the whole index."""
    on = ["text_unit", end]
    found = rows.join(of_units.rename({"number": end}), on=on, how="left", maintain_order="left")
    return found.drop(end).rename({"index": end})


def merge_entity_records(shard: ShardFrames) -> ShardFrames:
    """Merge the records of entities by their `key`.

    `entities` has the columns of `extracted_entities` without the number, and `first`: the number
    of the first record. `of_units` has the entities of each text unit.
    """
    rows = shard["records"]
    owners, firsts = _number_rows(rows.select("key"))
    keys, n = rows["key"].gather(firsts), len(firsts)
    first_records = rows["record"].gather(firsts)
    of_units = rows.select("text_unit", "number", first=first_records.gather(owners))
    rows = rows.with_columns(owner=owners).sort("owner", maintain_order=True)
    forms = rows.select("owner", "forms").filter(pl.col("forms").list.len() > 0).explode("forms")
    # The types of an entity: the first type in each of its text units, if one has a type.
    typed = rows.select("owner", "text_unit", "type").sort(
        "owner", "text_unit", pl.col("type") == "", maintain_order=True
    )
    types = _drop_equal_rows(typed, "owner", "text_unit").drop("text_unit")
    is_other = _apply_to_distinct(forms["forms"], title_key) != keys.gather(forms["owner"])
    entities = pl.DataFrame(
        {
            **_merge_shared_columns(rows, n),
            "first": first_records,
            "types": gather_by_owner(types, n),
            "title": _most_frequent(rows["owner"], rows["name"], rows["name"], n),
            "aliases": gather_by_owner(_drop_equal_rows(forms.filter(is_other)), n),
        }
    )
    return {"entities": entities, "of_units": _drop_equal_rows(of_units)}


def merge_link_records(shard: ShardFrames) -> ShardFrames:
    """Merge the records of relationships by source, target and type.

    `relationships` has the columns of `extracted_relationships`, and `first`: the number of the
    first record.
    """
    rows = shard["records"]
    endpoints = rows.select("source", "target")
    owners, firsts = _number_rows(rows.select("source", "target", "type_key"))
    n = len(firsts)
    # `bincount` adds in the order of the rows, so repeated runs give the same sums.
    weights = np.bincount(owners, rows["strength"].to_numpy(), n).astype(np.float64)
    first_records = rows["record"].gather(firsts)
    rows = rows.with_columns(owner=owners).sort("owner", maintain_order=True)
    relationships = pl.DataFrame(
        {
            **_merge_shared_columns(rows, n),
            **endpoints[firsts].to_dict(),
            "first": first_records,
            "weight": weights,
        }
    )
    return {"relationships": relationships}


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

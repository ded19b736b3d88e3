"""Search tables: inverted links, sorted names, and rows by number.

The step `create_search_tables` writes the tables. For an index of Microsoft GraphRAG they are
built when the index is opened.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import polars as pl

from graphrag_index.schema.tables import PLACES, TABLES
from graphrag_index.storage.memo import read_batches
from graphrag_index.storage.text_unit_topics import (
    LINKS_PER_BATCH,
    list_entity_names,
    list_title_variants,
    normalize_names,
    pair_text_units_with_entities,
)
from graphrag_nlp.list_columns import find_rows, gather_lists, spread_lists
from graphrag_nlp.text.normalize import fold_names, phonetic_keys

# Rows per batch of tables without and with texts. They limit memory.
ROWS_PER_BATCH = 131_072
LONG_ROWS_PER_BATCH = 16_384
# Value of `report` in the table `community_places` for a community without a report.
NO_REPORT = -1

Frames = Iterator[dict[str, pl.DataFrame]]


def create_search_tables(
    documents: pl.LazyFrame,
    text_units: pl.LazyFrame,
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
    mentions: pl.LazyFrame,
    communities: pl.LazyFrame,
    community_reports: pl.LazyFrame | None = None,
    covariates: pl.LazyFrame | None = None,
) -> Frames:
    """Yield the batches of all search tables: links by number, sorted names, and rows.

    The number of an item is its row number. Only communities keep the number of the column
    `community`, which has gaps. Large tables are read and written in batches, so that only the
    numbers of links are in memory.
    """
    links = []
    for batch in pair_text_units_with_entities(mentions, entities, text_units, documents):
        yield {"entities_of_text_units": batch}
        links.append(batch)
    yield from _sort_by_entity("text_units_of_entities", links, "text_unit")
    links.clear()
    tables = {"document": documents, "text_unit": text_units, "entity": entities}
    ids = {name: table.select("id").collect()["id"] for name, table in tables.items()}
    yield from _copy_columns("document_rows", documents, ROWS_PER_BATCH)
    yield from _text_unit_tables(text_units, ids["document"])
    yield from _entity_tables(entities, ids["document"])
    yield from _relationship_tables(relationships, ids)
    yield from _community_tables(communities, ids["entity"])
    yield from _theme_tables(communities, ids["text_unit"])
    if community_reports is None:
        community_reports = TABLES["community_reports"].empty().lazy()
    # The length of the full content in bytes; searches read the content beside its vector.
    reports = community_reports.with_columns(n_bytes=pl.col("full_content").str.len_bytes())
    yield from _copy_columns("report_rows", reports, LONG_ROWS_PER_BATCH)
    yield from _community_place_tables(communities, community_reports)
    names = list_entity_names(entities).sort("name", "entity").collect()
    yield from _split_into_batches("entity_names", names)
    number = pl.col("human_readable_id").cast(pl.Int32)
    titles = normalize_names(documents.select(name=list_title_variants("title"), document=number))
    yield from _split_into_batches("title_names", titles.sort("name", "document").collect())
    if covariates is not None:
        yield from _claim_tables(covariates.collect(), names, ids["text_unit"])
    degrees = entities.select(pl.col("degree").cast(pl.Int32)).collect()["degree"]
    yield from _word_tables(names, degrees)


def _split_into_batches(name: str, rows: pl.DataFrame) -> Frames:
    return ({name: batch} for batch in rows.iter_slices(LINKS_PER_BATCH) if batch.height)


def _sort_by_entity(name: str, parts: Sequence[pl.DataFrame], *order: str | pl.Expr) -> Frames:
    """Sort links by entity, then by `order`; yield one range of entities at a time."""
    if not parts:
        return
    counts = np.bincount(np.concatenate([part["entity"].to_numpy() for part in parts]))
    limits = np.arange(0, counts.sum(), LINKS_PER_BATCH)
    firsts = np.searchsorted(np.cumsum(counts), limits, "right").tolist()
    for first, last in pairwise([*dict.fromkeys(firsts), len(counts)]):
        is_in_range = pl.col("entity").is_between(first, last, closed="left")
        links = pl.concat([part.filter(is_in_range) for part in parts])
        yield {name: links.sort("entity", *order)}


def _find_row_numbers(ids: pl.Series, known: pl.Series) -> pl.Series:
    return pl.Series(ids.name, find_rows(ids, known).astype(np.int32))


def _replace_ids(lists: pl.Series, known: pl.Series) -> pl.Series:
    """Replace the ids in lists by row numbers; leave out unknown ids."""
    owners, ids = spread_lists(lists)
    numbers = find_rows(ids, known)
    is_known = numbers >= 0
    values = pl.Series(numbers[is_known].astype(np.int32))
    return gather_lists(owners[is_known], values, len(lists)).alias(lists.name)


def _replace_document_ids(evidence: pl.Series, document_ids: pl.Series) -> pl.Series:
    """Replace the document ids in evidence by row numbers of documents."""
    owners, places = spread_lists(evidence)
    if not len(places):
        return pl.Series("evidence", [[]], dtype=PLACES).new_from_index(0, len(evidence))
    fields = places.struct.unnest()
    numbered = fields.select(
        _find_row_numbers(fields["document_id"], document_ids).alias("document"),
        pl.col("start_char", "end_char").cast(pl.Int32),
    ).to_struct()
    return gather_lists(owners, numbered, len(evidence)).alias("evidence")


def _copy_columns(name: str, rows: pl.LazyFrame, size: int) -> Frames:
    batches = read_batches(rows.select(TABLES[name].cast_columns), size)
    return ({name: batch} for batch in batches)


def _text_unit_tables(text_units: pl.LazyFrame, document_ids: pl.Series) -> Frames:
    columns = list(TABLES["text_unit_rows"].columns)
    places = pl.col("start_char", "end_char", "n_tokens").cast(pl.Int32)
    rows = text_units.select("id", "document_id", places, "text", "headings", "metadata")
    for batch in read_batches(rows, LONG_ROWS_PER_BATCH):
        document = _find_row_numbers(batch["document_id"], document_ids).alias("document")
        yield {"text_unit_rows": batch.with_columns(document).select(columns)}


def _entity_tables(entities: pl.LazyFrame, document_ids: pl.Series) -> Frames:
    columns = list(TABLES["entity_rows"].columns)
    for batch in read_batches(entities.select(columns), ROWS_PER_BATCH):
        evidence = _replace_document_ids(batch["evidence"], document_ids)
        counts = pl.col("degree", "frequency").cast(pl.Int32)
        yield {"entity_rows": batch.with_columns(counts, evidence)}


def _relationship_tables(relationships: pl.LazyFrame, ids: dict[str, pl.Series]) -> Frames:
    links: list[pl.DataFrame] = []
    n_rows = 0
    texts = ("type", "description")
    columns = ("source_id", "target_id", "text_unit_ids", "evidence", *texts)
    weight = pl.col("weight").cast(pl.Float32)
    for batch in read_batches(relationships.select(*columns, weight), ROWS_PER_BATCH):
        both = find_rows(pl.concat([batch["source_id"], batch["target_id"]]), ids["entity"])
        source, target = both.astype(np.int32).reshape(2, -1)
        rows = batch.select(*texts, "weight").with_columns(
            pl.Series("source", source),
            pl.Series("target", target),
            _replace_ids(batch["text_unit_ids"], ids["text_unit"]).alias("text_units"),
            _replace_document_ids(batch["evidence"], ids["document"]),
        )
        yield {"relationship_rows": rows}
        links.append(_make_entity_links(rows, n_rows))
        n_rows += rows.height
    yield from _sort_by_entity(
        "relationships_of_entities", links, -pl.col("weight"), "relationship"
    )


def _make_entity_links(relationships: pl.DataFrame, first: int) -> pl.DataFrame:
    """Return two rows for each relationship, one for each of its ends; `first` is its number."""
    # Skip relationships with unknown or equal ends, which an imported index may have.
    source, target = pl.col("source"), pl.col("target")
    numbered = relationships.with_row_index("relationship", first)
    linked = numbered.filter((source >= 0) & (target >= 0) & (source != target))
    relationship = pl.col("relationship").cast(pl.Int32)
    return pl.concat(
        linked.select(one.alias("entity"), other.alias("neighbour"), relationship, "weight")
        for one, other in ((source, target), (target, source))
    )


def _community_tables(communities: pl.LazyFrame, entity_ids: pl.Series) -> Frames:
    members: list[pl.DataFrame] = []
    numbers = pl.col("community", "level", "parent", "size").cast(pl.Int32)
    columns = communities.select(
        numbers, "title", pl.col("children").cast(pl.List(pl.Int32)), "entity_ids"
    )
    for batch in read_batches(columns, LONG_ROWS_PER_BATCH):
        entities = _replace_ids(batch["entity_ids"], entity_ids).list.sort().alias("entities")
        rows = batch.with_columns(entities)
        yield {"community_rows": rows.select(list(TABLES["community_rows"].columns))}
        row, entity = spread_lists(entities)
        members.append(batch.select("level", "community")[row].with_columns(entity.alias("entity")))
    if members:
        order = ("entity", "level", "community")
        yield from _split_into_batches("communities_of_entities", pl.concat(members).sort(order))


def _theme_tables(communities: pl.LazyFrame, text_unit_ids: pl.Series) -> Frames:
    themes = communities.filter("theme")
    rows = themes.select(pl.col("level", "community").cast(pl.Int32), "text_unit_ids").collect()
    position, units = spread_lists(_replace_ids(rows["text_unit_ids"], text_unit_ids))
    links = rows.select("level", "community")[position].with_columns(units.alias("text_unit"))
    # In an index of an older version, the themes of one level share text units.
    if not links.select("text_unit", "level").is_duplicated().any():
        ordered = links.sort("text_unit", "level")
        yield from _split_into_batches("themes_of_text_units", ordered)


def _community_place_tables(communities: pl.LazyFrame, reports: pl.LazyFrame) -> Frames:
    def rows(table: pl.LazyFrame, name: str) -> pl.LazyFrame:
        return table.select(
            pl.col("community").cast(pl.Int32), pl.int_range(pl.len(), dtype=pl.Int32).alias(name)
        )

    places = (
        rows(communities, "row")
        .join(rows(reports, "report"), on="community", how="left")
        .with_columns(pl.col("report").fill_null(NO_REPORT))
        .sort("community")
        .collect()
    )
    yield from _split_into_batches("community_places", places)


def _word_tables(names: pl.DataFrame, degrees: pl.Series) -> Frames:
    words = names.select("entity", word=pl.col("name").str.split(" ")).explode("word").unique()
    listed = (
        words.with_columns(degrees.gather(words["entity"]).alias("degree"))
        .sort("word", "degree", "entity", descending=[False, True, False])
        .group_by("word", maintain_order=True)
        .agg(entities="entity")
    )
    yield from _split_into_batches("name_words", listed)
    sounds = (
        listed.select(sound=phonetic_keys(pl.col("word")))
        .with_columns(word=pl.int_range(pl.len(), dtype=pl.Int32))
        .filter(pl.col("sound") != "")
        .sort("sound", "word")
        .group_by("sound", maintain_order=True)
        .agg(words="word")
    )
    yield from _split_into_batches("name_sounds", sounds)


def _claim_tables(
    covariates: pl.DataFrame, names: pl.DataFrame, text_unit_ids: pl.Series
) -> Frames:
    columns = TABLES["claim_rows"].columns
    text_unit = _find_row_numbers(covariates["text_unit_id"], text_unit_ids).alias("text_unit")
    renamed = covariates.rename({"subject_id": "subject", "object_id": "object"})
    yield {"claim_rows": renamed.with_columns(text_unit).select(list(columns))}
    parties = pl.concat_list("subject", "object")
    ends_of_claims = (
        renamed.select(claim=pl.int_range(pl.len(), dtype=pl.Int32), name=parties)
        .explode("name")
        .with_columns(fold_names(pl.col("name")))
        .join(names, on="name")
        .select("entity", "claim")
        .unique()
        .sort("entity", "claim")
    )
    yield from _split_into_batches("claims_of_entities", ends_of_claims)

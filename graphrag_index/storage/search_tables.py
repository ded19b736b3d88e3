"""Search tables: inverted links, sorted names, and rows by number.

The step `create_search_tables` writes the tables. For an index of Microsoft GraphRAG they are
built when the index is opened.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.schema.tables import PLACES, READING, TABLES
from graphrag_index.storage.memo import read_batches
from graphrag_nlp.list_columns import Integers, find_rows, gather_lists, spread_lists
from graphrag_nlp.text.document_dates import stated_date
from graphrag_nlp.text.normalize import fold_name, fold_names, phonetic_keys
from graphrag_nlp.text.subjects import HEAD_CHARS, find_subject

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
    pages: pl.LazyFrame | None = None,
) -> Frames:
    """Yield the batches of all search tables: links by number, sorted names, and rows.

    The number of an item is its row number. Only communities keep the number of the column
    `community`, which has gaps. Large tables are read and written in batches, so that only the
    numbers of links are in memory.
    """
    subjects: list[pl.DataFrame] = []
    things: list[pl.DataFrame] = []
    yield from _subject_tables(documents, subjects, things)
    links = []
    titles = pl.concat([*subjects, *things]).lazy()
    for batch in pair_text_units_with_entities(mentions, entities, text_units, documents, titles):
        yield {"entities_of_text_units": batch}
        links.append(batch)
    yield from _sort_by_entity("text_units_of_entities", links, "text_unit")
    links.clear()
    tables = {"document": documents, "text_unit": text_units, "entity": entities}
    ids = {name: table.select("id").collect()["id"] for name, table in tables.items()}
    yield from _copy_columns("document_rows", documents, ROWS_PER_BATCH)
    if pages is not None:
        for batch in read_batches(pages.drop("boxes"), ROWS_PER_BATCH):
            document = _find_row_numbers(batch["document_id"], ids["document"]).alias("document")
            yield {
                "page_rows": batch.with_columns(document).select(TABLES["page_rows"].cast_columns)
            }
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
    yield from _subject_name_tables(pl.concat(subjects))
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
    source = pl.when(pl.col("reading").is_not_null()).then("text").alias("source")
    text = READING.alias("text")
    rows = text_units.select("id", "document_id", places, text, "headings", "metadata", source)
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


def _subject_tables(
    documents: pl.LazyFrame, found: list[pl.DataFrame], things: list[pl.DataFrame]
) -> Frames:
    """Yield the subjects of documents; add their names to `found` as (name, document).

    `things` gets the key entities in the same form: a title has further words beside its name.
    """
    head = pl.col("text").str.slice(0, HEAD_CHARS)
    columns = documents.select("title", "path", head, "metadata", stated_date())
    schema = {
        **{"label": pl.String, "entity": pl.String, "first_day": pl.Int32, "last_day": pl.Int32},
        **{"is_fiscal": pl.Boolean, "fiscal_shift": pl.Int32},
    }
    n_rows = 0
    found.append(pl.DataFrame(schema={"name": pl.String, "document": pl.Int32}))
    for batch in read_batches(columns, LONG_ROWS_PER_BATCH):
        filled = batch.with_columns(pl.col("title", "path", "text").fill_null(""))
        subjects = [find_subject(*row) for row in filled.iter_rows()]
        periods = [subject.period for subject in subjects]
        days = [
            (p.first.toordinal(), p.last.toordinal(), bool(p.is_fiscal), p.shift)
            if p
            else (0, 0, False, 0)
            for p in periods
        ]
        rows = [(s.label, s.entity, *span) for s, span in zip(subjects, days, strict=True)]
        yield {"document_subjects": pl.DataFrame(rows, schema, orient="row")}
        names = pl.Series("name", [s.names for s in subjects], pl.List(pl.String)).to_frame()
        document = pl.int_range(n_rows, n_rows + len(rows), dtype=pl.Int32).alias("document")
        found.append(names.with_columns(document).explode("name").drop_nulls())
        entities = pl.DataFrame({"name": [fold_name(s.entity) for s in subjects]})
        things.append(entities.with_columns(document))
        n_rows += len(rows)


def _subject_name_tables(names: pl.DataFrame) -> Frames:
    listed = (
        names.sort("name", "document")
        .group_by("name", maintain_order=True)
        .agg(documents=pl.col("document"))
    )
    yield from _split_into_batches("subject_names", listed)
    words = (
        listed.select(
            name=pl.int_range(pl.len(), dtype=pl.Int32), word=pl.col("name").str.split(" ")
        )
        .explode("word")
        .unique()
        .sort("word", "name")
        .group_by("word", maintain_order=True)
        .agg(names=pl.col("name"))
    )
    yield from _split_into_batches("subject_words", words)


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


# Rows per batch of links. They limit memory.
LINKS_PER_BATCH = 1_000_000
# Maximum number of characters, such as "The " or a quotation mark, before the topic of a text unit.
MAX_CHARS_BEFORE_TOPIC = 12
_TEXT_IN_BRACKETS = r"\s*\([^()]*\)"


def pair_text_units_with_entities(
    mentions: pl.LazyFrame,
    entities: pl.LazyFrame,
    text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
    subjects: pl.LazyFrame,
) -> Iterator[pl.DataFrame]:
    """Pair text units with the entities they name; `about` is true for a topic of the text unit.

    A text unit is about the entities in the title of its document (with or without the text in
    brackets), and in the headings above the text unit. If there are no such entities, it is about
    the entity that it names first: below headings, anywhere; otherwise, at its beginning. If this
    is a person with middle names, it is also about a person with the same name without them: a
    text about Ada Mary King is about Ada King. Yields batches with one row per text unit and
    entity, in this order, with `about` and `n_mentions`. The first text unit of a document also
    has a row for each entity in the title, and each text unit one for the entity that is the
    subject of its document. `subjects` has the names of these subjects and key entities.
    """
    names = list_entity_names(entities).collect().lazy()  # it is read three times
    titled = _entities_in_titles(names, text_units, documents, subjects)
    short_forms = _find_short_forms(names, entities)
    del names
    units = text_units.select("start_char", is_headed=pl.col("headings") != "").collect()
    start = 0
    columns = mentions.select("text_unit", "entity", "start_char")
    for named, end in _split_by_text_unit(columns):
        bounds = np.searchsorted(titled["text_unit"].to_numpy(), [start, end]).tolist()
        start = end
        text_unit = named["text_unit"]
        keys = _pack_pairs(text_unit, named["entity"])
        own = units[text_unit]
        begins = named["start_char"] - own["start_char"] <= MAX_CHARS_BEFORE_TOPIC
        is_first = text_unit.ne_missing(text_unit.shift()) & (begins | own["is_headed"])
        first = keys[is_first.to_numpy()]
        titled_here = titled[slice(*bounds)]
        titled_keys = _pack_pairs(titled_here["text_unit"], titled_here["entity"])
        is_opening, is_titled = (titled_here[name].to_numpy() for name in ("opening", "titled"))
        topics = titled_keys[is_opening | (is_titled & _are_among(titled_keys, np.sort(keys)))]
        first = first[~_are_among(first >> 32, topics >> 32)]
        shortened = _unpack_pairs(first).join(short_forms, on="entity")
        short = _pack_pairs(shortened["text_unit"], shortened["short_form"])
        # These pairs get a row, but do not count as mentions.
        unmentioned = np.unique(np.append(titled_keys[is_opening | ~is_titled], short))
        pairs, n_mentions = np.unique(np.append(keys, unmentioned), return_counts=True)
        n_mentions[np.searchsorted(pairs, unmentioned)] -= 1
        about = _are_among(pairs, np.sort(np.concatenate([topics, first, short])))
        counts = n_mentions.astype(np.int32)
        yield _unpack_pairs(pairs).with_columns(about=about, n_mentions=counts)


def _find_short_forms(names: pl.LazyFrame, entities: pl.LazyFrame) -> pl.DataFrame:
    """Pair each person with middle names with persons of the same name without them.

    The columns are `entity` and `short_form`.
    """
    number = pl.col("human_readable_id").cast(pl.Int32).alias("entity")
    is_person = pl.col("type").str.to_lowercase() == "person"
    persons = names.join(entities.filter(is_person).select(number), on="entity", how="semi")
    words = pl.col("name").str.split(" ")
    ends = pl.concat_str(words.list.first(), words.list.last(), separator=" ")
    return (
        persons.filter(words.list.len() > 2)
        .with_columns(ends.alias("name"))
        .join(persons.rename({"entity": "short_form"}), on="name")
        .filter(pl.col("entity") != pl.col("short_form"))
        .select("entity", "short_form")
        .unique()
        .collect()
    )


def _split_by_text_unit(mentions: pl.LazyFrame) -> Iterator[tuple[pl.DataFrame, int]]:
    """Yield mentions in batches, each with the number of the first text unit after the batch.

    The mentions are in order of their text units, and those of a text unit are in one batch.
    """
    rest = mentions.clear().collect()
    for batch in read_batches(mentions, LINKS_PER_BATCH):
        rows = pl.concat([rest, batch])
        last = int(rows["text_unit"][-1])
        n_complete = int(np.searchsorted(rows["text_unit"].to_numpy(), last))
        yield rows[:n_complete], last
        rest = rows[n_complete:]
    yield rest, np.iinfo(np.int32).max


def _entities_in_titles(
    names: pl.LazyFrame,
    text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
    subjects: pl.LazyFrame,
) -> pl.DataFrame:
    """Return pairs of a text unit and an entity in its headings, title or subject.

    `opening` is true if the entity is in the title and the text unit opens the document, and
    `titled` is false if it is only the subject of the document.
    """
    units = text_units.select(
        pl.col("human_readable_id").cast(pl.Int32).alias("text_unit"), "document_id", "headings"
    )
    own = documents.select(document_id="id", document=pl.int_range(pl.len(), dtype=pl.Int32))
    by_subject = (
        subjects.join(names, on="name")
        .join(own, on="document")
        .join(units, on="document_id")
        .select("text_unit", "entity", opening=pl.lit(False), titled=pl.lit(False))
    )
    titles = (
        normalize_names(documents.select(document_id="id", name=list_title_variants("title")))
        .join(names, on="name")
        .select("document_id", "entity")
        .unique()
    )
    by_title = units.join(titles, on="document_id").select(
        "text_unit",
        "entity",
        opening=pl.col("text_unit") == pl.col("text_unit").min().over("document_id"),
        titled=pl.lit(True),
    )
    headings = (
        units.filter(pl.col("headings") != "")
        .select("text_unit", heading=pl.col("headings").str.split(" > "))
        .explode("heading")
        .select("text_unit", name=list_title_variants("heading"))
    )
    by_heading = normalize_names(headings).join(names, on="name")
    by_heading = by_heading.select(
        "text_unit", "entity", opening=pl.lit(False), titled=pl.lit(True)
    )
    return (
        pl.concat([by_title, by_heading, by_subject])
        .group_by("text_unit", "entity")
        .agg(pl.col("opening", "titled").any())
        .sort("text_unit", "entity")
        .collect()
    )


def list_title_variants(column: str) -> pl.Expr:
    """Return a list for each title: the title with and without its text in brackets."""
    return pl.concat_list(column, pl.col(column).str.replace_all(_TEXT_IN_BRACKETS, ""))


def list_entity_names(entities: pl.LazyFrame) -> pl.LazyFrame:
    """Return a row for each normalized name of each entity."""
    return normalize_names(
        entities.select(
            name=pl.concat_list(pl.concat_list("title"), "aliases"),
            entity=pl.col("human_readable_id").cast(pl.Int32),
        )
    )


def normalize_names(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Split lists in the column `name` into a row per normalized name; drop duplicates."""
    return (
        rows.explode("name")
        .with_columns(fold_names(pl.col("name")))
        .filter(pl.col("name") != "")
        .unique()
    )


def _pack_pairs(high: pl.Series, low: pl.Series) -> Integers:
    """Pack each pair of 32-bit numbers into one number; the numbers sort like the pairs."""
    keys: Integers = high.to_numpy().astype(np.int64) << 32
    keys |= low.to_numpy()
    return keys


def _unpack_pairs(pairs: Integers) -> pl.DataFrame:
    columns = {"text_unit": pairs >> 32, "entity": pairs & 0xFFFFFFFF}
    return pl.DataFrame({name: values.astype(np.int32) for name, values in columns.items()})


def _are_among(values: Integers, ascending: Integers) -> npt.NDArray[np.bool_]:
    places = np.searchsorted(ascending, values)
    # Append -1 for values above the last: it equals no value, since none is negative.
    return np.asarray(np.append(ascending, -1)[places] == values)

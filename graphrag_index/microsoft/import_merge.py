"""Merging of imported rows with the rows of new documents; evidence of imported reports."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.microsoft.import_folder import BATCH_ROWS, ImportedIndex
from graphrag_index.microsoft.read_positions import find_first_rows, find_row_pairs
from graphrag_index.reports.report import CitedReport, CommunityMembers, Finding, Report
from graphrag_index.reports.report_evidence import PROMPT_HASH_OF_IMPORTS, CommunityEvidence
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.memo import read_batches
from graphrag_nlp.list_columns import RowGroups, find_rows, gather_by_owner, gather_lists
from graphrag_nlp.text.citations import renumber_citations
from graphrag_nlp.text.normalize import title_key

Row = dict[str, Any]


class ImportMerge:
    """Merger of imported rows with the rows of new documents into the tables of a run."""

    def __init__(self, imported: ImportedIndex) -> None:
        self.imported = imported
        self.unit_ids = imported.scan("text_units").select("id").collect()["id"]
        self.entity_ids = imported.scan("entities").select("id").collect()["id"]
        self.n_documents = imported.scan("documents").select(pl.len()).collect().item()

    def merge_documents(self, new: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Yield imported documents, then new ones; correct `text_unit_ids` of imported documents.

        Documents of Microsoft GraphRAG may name text units that no longer exist.
        """
        rows = self.imported.scan("documents").select("id", "text_unit_ids").collect()
        units = self.imported.scan("text_units").select("document_id").collect()
        named = RowGroups.from_ids(rows["text_unit_ids"], self.unit_ids)
        owners = find_rows(units["document_id"], rows["id"])
        is_known = owners >= 0
        found = RowGroups(
            np.append(named.owners, owners[is_known]),
            np.append(named.rows, is_known.nonzero()[0]),
            self.n_documents,
        )
        lists = gather_lists(found.owners, self.unit_ids.gather(found.rows), self.n_documents)
        start = 0
        documents = self.imported.scan("documents")
        for batch in read_batches(documents, BATCH_ROWS, has_long_texts=True):
            yield batch.with_columns(text_unit_ids=lists.slice(start, batch.height))
            start += batch.height
        yield from shift_rows(new, human_readable_id=start)

    def append_rows(
        self, imported: str, table: str, new: pl.LazyFrame | None
    ) -> Iterator[pl.DataFrame]:
        """Yield the imported rows with the columns of `table`, then the new rows."""
        n_rows = 0
        rows = self.imported.scan(imported).select(list(TABLES[table].columns))
        for batch in read_batches(rows, BATCH_ROWS):
            yield batch
            n_rows += batch.height
        if new is not None:
            yield from shift_rows(new, human_readable_id=n_rows)

    def merge_graph(
        self, entities: pl.DataFrame, relationships: pl.DataFrame, mentions: pl.DataFrame
    ) -> dict[str, pl.DataFrame]:
        """Merge extracted entities and relationships into imported rows, or append them.

        A new entity is merged into the imported entity with the same title. A new relationship is
        merged into the imported relationship between the same two entities, unless the types
        differ. A merged row has the descriptions of both rows.
        """
        found = self.read_imported_graph()
        before, links = found["extracted_entities"], found["extracted_relationships"]
        keys_before, keys = (
            pl.Series(map(title_key, rows["title"]), dtype=pl.String) for rows in (before, entities)
        )
        numbers = pl.Series(find_first_rows(keys, keys_before))
        is_new = numbers < 0
        new_numbers = is_new.cum_sum().cast(pl.Int64) + len(before) - 1
        numbers = new_numbers.zip_with(is_new, numbers)
        entities = self._shift_units(entities).with_columns(human_readable_id=numbers)
        merged = _merge_rows(before, entities.filter(~is_new), "human_readable_id")
        found["extracted_entities"] = pl.concat([merged, entities.filter(is_new)])
        relationships = self._shift_units(relationships).with_columns(
            numbers.gather(relationships[end]).alias(end) for end in ("source", "target")
        )
        rows = pl.Series("row", _find_imported_links(links, relationships), dtype=pl.Int64)
        merged = _merge_rows(
            links.select(pl.int_range(pl.len(), dtype=pl.Int64).alias("row"), pl.all()),
            relationships.with_columns(rows).filter(pl.col("row") >= 0),
            "row",
        ).drop("row")
        found["extracted_relationships"] = pl.concat([merged, relationships.filter(rows < 0)])
        mentions = _shift_columns(mentions, text_unit=len(self.unit_ids)).with_columns(
            entity=numbers.gather(mentions["entity"]).cast(pl.Int32)
        )
        found["extracted_mentions"] = pl.concat([found["extracted_mentions"], mentions])
        return found

    def append_graph_of_rules(
        self, entities: pl.DataFrame, relationships: pl.DataFrame, mentions: pl.DataFrame
    ) -> dict[str, pl.DataFrame]:
        """Append entities and relationships that were extracted by rules to the imported rows.

        The step `finalize_graph` merges entities with equal titles later, and keeps the imported
        description.
        """
        found = self.read_imported_graph()
        n = len(self.entity_ids)
        relationships = _shift_columns(relationships, source=n, target=n)
        new = {
            "extracted_entities": _shift_columns(entities, human_readable_id=n),
            "extracted_relationships": self._shift_units(relationships),
        }
        for name, rows in new.items():
            found[name] = pl.concat([_move_description(found[name]), rows])
        mentions = _shift_columns(mentions, entity=n, text_unit=len(self.unit_ids))
        found["extracted_mentions"] = pl.concat([found["extracted_mentions"], mentions])
        return found

    def read_imported_graph(self) -> dict[str, pl.DataFrame]:
        """Return the imported graph as the tables that extraction writes, in the imported order.

        `given_ids` has the ids of the rows. A relationship with an unknown entity is left out.
        """
        columns = ("title", "type", "description", "aliases", "evidence", "text_unit_ids")
        entities = self.imported.scan("entities").select(columns).collect()
        units = self._find_unit_numbers(entities["text_unit_ids"])
        entities = entities.with_columns(
            human_readable_id=pl.int_range(pl.len(), dtype=pl.Int64),
            text_units=units,
            types=pl.col("type").repeat_by(units.list.len()),
        )
        columns = ("id", "description", "weight", "evidence", "type", "text_unit_ids")
        rows = self.imported.scan("relationships")
        links = rows.select(*columns, source="source_id", target="target_id").collect()
        links = links.with_columns(
            pl.Series(end, find_rows(links[end], self.entity_ids)) for end in ("source", "target")
        ).filter(pl.col("source") >= 0, pl.col("target") >= 0)
        # Replace weights that finalize_graph rejects: weights must be positive and finite.
        is_valid = (pl.col("weight") > 0) & pl.col("weight").is_finite()
        links = links.with_columns(
            text_units=self._find_unit_numbers(links["text_unit_ids"]),
            weight=pl.when(is_valid).then("weight").otherwise(1.0),
        )
        entity_ids = pl.DataFrame({"id": self.entity_ids}).select(
            table=pl.lit("entities"),
            number=pl.int_range(pl.len(), dtype=pl.Int64),
            target=pl.lit(None, pl.Int64),
            id="id",
        )
        link_ids = links.select(
            table=pl.lit("relationships"), number="source", target="target", id="id"
        )
        mentions = self.imported.scan("mentions").select(list(TABLES["extracted_mentions"].columns))
        return {
            "extracted_entities": _to_extracted_rows(entities, "extracted_entities"),
            "extracted_relationships": _to_extracted_rows(links, "extracted_relationships"),
            "extracted_mentions": mentions.collect(),
            "given_ids": pl.concat([entity_ids, link_ids]),
        }

    def _find_unit_numbers(self, lists: pl.Series) -> pl.Series:
        """Replace the ids of text units by row numbers in ascending order; drop unknown ids."""
        found = RowGroups.from_ids(lists, self.unit_ids)
        return gather_lists(found.owners, pl.Series(found.rows), len(lists))

    def _shift_units(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Add the number of imported text units to the text unit numbers of new rows."""
        columns = pl.col("text_units", "description_text_units")
        return rows.with_columns(columns.list.eval(pl.element() + len(self.unit_ids)))


def _move_description(rows: pl.DataFrame) -> pl.DataFrame:
    """Move the first description from its list to the column `description`."""
    lists = {"descriptions", "description_text_units", "types"} & set(rows.columns)
    if "types" in lists:
        lists.add("text_units")
    return rows.with_columns(
        pl.col("descriptions").list.get(0, null_on_oob=True).fill_null("").alias("description"),
        pl.col(sorted(lists)).list.head(0),
    )


def _to_extracted_rows(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Move the description to a list; its text unit is the first of the row, or -1."""
    is_described = pl.col("description") != ""
    first = pl.col("text_units").list.get(0, null_on_oob=True).fill_null(-1)
    made = rows.with_columns(
        description=pl.lit(""),
        descriptions=pl.when(is_described).then(pl.concat_list("description")).otherwise([]),
        description_text_units=pl.when(is_described).then(pl.concat_list(first)).otherwise([]),
    )
    return made.select(TABLES[name].cast_columns)


def _find_imported_links(links: pl.DataFrame, new: pl.DataFrame) -> list[int]:
    """Return, for each new relationship, the row of the equal imported relationship, or -1."""
    known: dict[frozenset[int], list[tuple[int, str]]] = defaultdict(list)
    columns = ("source", "target", "type")
    for row, (source, target, kind) in enumerate(links.select(columns).rows()):
        known[frozenset((source, target))].append((row, title_key(kind)))
    found = []
    for source, target, kind in new.select(columns).rows():
        same, key = known.get(frozenset((source, target)), []), title_key(kind)
        found.append(next((row for row, own in same if not own or not key or own == key), -1))
    return found


def _merge_rows(before: pl.DataFrame, new: pl.DataFrame, key: str) -> pl.DataFrame:
    """Merge new rows into the imported rows that have the same key."""
    found: dict[int, list[Row]] = defaultdict(list)
    for row in new.iter_rows(named=True):
        found[row[key]].append(row)
    if not found:
        return before
    is_changed = pl.col(key).is_in(list(found))
    changed = before.filter(is_changed)
    merged = [_merge_row(row, found[row[key]]) for row in changed.iter_rows(named=True)]
    rows = pl.DataFrame(merged, schema=before.schema, infer_schema_length=None)
    return pl.concat([before.filter(~is_changed), rows]).sort(key)


def _merge_row(row: Row, new: list[Row]) -> Row:
    """Merge new rows into one imported entity or relationship."""
    descriptions: dict[str, int] = {}
    for one in (row, *new):
        for text, unit in zip(one["descriptions"], one["description_text_units"], strict=True):
            descriptions.setdefault(text, unit)
    units = {unit for one in new for unit in one["text_units"]}
    merged = {
        **row,
        "type": row["type"] or next((one["type"] for one in new if one["type"]), ""),
        "descriptions": list(descriptions),
        "description_text_units": list(descriptions.values()),
        "text_units": [*row["text_units"], *sorted(units)],
        "evidence": [*row["evidence"], *(place for one in new for place in one["evidence"])],
    }
    if "weight" in row:
        return {**merged, "weight": row["weight"] + sum(one["weight"] for one in new)}
    forms = [row["title"], *row["aliases"]]
    forms += [form for one in new for form in (one["title"], *one["aliases"])]
    types = [*row["types"], *(kind for one in new for kind in one["types"])]
    # The first name is the title; the others are aliases.
    return {**merged, "aliases": list(dict.fromkeys(forms))[1:], "types": types}


def shift_rows(rows: pl.LazyFrame, **by: int) -> Iterator[pl.DataFrame]:
    """Yield rows in batches, and add the numbers `by` to the columns of the same name."""
    for batch in read_batches(rows, BATCH_ROWS):
        yield _shift_columns(batch, **by)


def _shift_columns(rows: pl.DataFrame, **by: int) -> pl.DataFrame:
    """Add a number to each named column, and keep the types of the columns."""
    return rows.with_columns(
        (pl.col(name) + number).cast(rows.schema[name]) for name, number in by.items()
    )


def make_evidence_of_reports(
    imported: Mapping[str, pl.LazyFrame], now: Mapping[str, pl.LazyFrame]
) -> pl.DataFrame:
    """Return the table `report_evidence` for imported reports.

    `now` has the entities, relationships and text units of the first run after the import. That
    run merges names that differ only in case, and drops relationships with an unknown entity.
    """
    entities = now["entities"].select("id", "title").collect()
    links = now["relationships"].select("id", "source_id", "target_id").collect()
    before = imported["entities"].select("id", "title").collect()
    row_of = {title_key(title): row for row, title in enumerate(entities["title"])}
    rows_now = np.array([row_of[title_key(title)] for title in before["title"]], np.int64)
    pairs = links.select(
        pl.Series(e, find_rows(links[f"{e}_id"], entities["id"])) for e in ("source", "target")
    )
    link_row = {frozenset(pair): row for row, pair in enumerate(pairs.rows())}
    # Give an unknown source or target the row -1, so that its relationship is not found.
    padded_rows, old_links = np.append(rows_now, -1), imported["relationships"]
    old_ids = old_links.select("source_id", "target_id").collect()
    old_pairs = zip(
        *(padded_rows[find_rows(column, before["id"])].tolist() for column in old_ids), strict=True
    )
    communities = imported["communities"].select("community", "entity_ids").collect()
    rows, members = find_row_pairs(communities["entity_ids"], before["id"])
    held = pl.DataFrame({"row": rows, "entity": rows_now[members]}).unique().sort("row", "entity")
    ids, n_rows = entities["id"].gather(held["entity"]), communities.height
    communities = communities.with_columns(
        entity_ids=gather_lists(held["row"].to_numpy(), ids, n_rows),
        relationship_ids=_find_relationships_within(held, links.select("id").hstack(pairs), n_rows),
    )
    graph, covariates = (now["entities"], now["relationships"]), imported["covariates"]
    contents = CommunityMembers(communities, *graph, covariates)
    evidence = CommunityEvidence(contents, *graph, now["base_text_units"])
    keys = {
        "Reports": communities["community"],
        "Entities": entities["id"],
        "Relationships": links["id"],
        "Claims": covariates.select("id").collect()["id"],
    }
    community_row = {number: row for row, number in enumerate(keys["Reports"])}
    new_links = [link_row.get(frozenset(pair), -1) for pair in old_pairs]
    new_rows: dict[str, Mapping[int, int]] = {
        "Entities": dict(enumerate(rows_now.tolist())),
        "Relationships": dict(enumerate(new_links)),
        "Claims": dict(enumerate(range(len(keys["Claims"])))),
        "Reports": community_row,
    }
    columns = ("community", "title", "summary", "findings", "rank", "rating_explanation")
    reports = imported["community_reports"].select(columns).collect()
    written = {
        community_row[row["community"]]: _renumber_report(row, new_rows)
        for row in reports.iter_rows(named=True)
        if row["community"] in community_row
    }
    return evidence.make_evidence_rows(written, keys, PROMPT_HASH_OF_IMPORTS)


def _renumber_report(
    row: Mapping[str, Any], new_rows: Mapping[str, Mapping[int, int]]
) -> CitedReport:
    """Renumber the rows that a report cites from 0, also in the citations of the report."""
    rows: dict[str, list[int]] = {}

    def find_local_number(section: str, number: int) -> int | None:
        at = new_rows.get(section, {}).get(number, -1)
        if at < 0:
            return None
        cited = rows.setdefault(section, [])
        if at not in cited:
            cited.append(at)
        return cited.index(at)

    def renumber(value: object) -> str:
        return renumber_citations(str(value), find_local_number)[0]

    report = Report(
        renumber(row["title"]),
        renumber(row["summary"]),
        tuple(Finding(renumber(f["summary"]), renumber(f["explanation"])) for f in row["findings"]),
        row["rank"],
        renumber(row["rating_explanation"]),
    )
    return CitedReport(report, rows)


def _find_relationships_within(held: pl.DataFrame, links: pl.DataFrame, n_rows: int) -> pl.Series:
    """Return, for each community, the sorted ids of relationships between its members.

    `held` has the `row` of a community and the row number of an `entity` in it. `links` has an `id`
    and the row numbers of `source` and `target`, which are negative for an unknown entity.
    """
    inside = (
        links.filter(pl.col("source") >= 0, pl.col("target") >= 0)
        .join(held, left_on="source", right_on="entity")
        .join(held, left_on=["target", "row"], right_on=["entity", "row"])
        .select("id", owner="row")
        .unique()
        .sort("owner", "id")
    )
    return gather_by_owner(inside, n_rows)

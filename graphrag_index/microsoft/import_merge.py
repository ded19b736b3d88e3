"""Merge the rows of new documents behind the imported rows."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.microsoft.import_folder import Imported, row_batches
from graphrag_index.schema.list_columns import distinct_pairs, gather_lists, positions, spread_lists
from graphrag_index.schema.tables import TABLES
from graphrag_index.text.normalize import title_key

Row = dict[str, Any]


class ImportMerge:
    """Imported rows in the form of a run's tables, followed by the rows of new documents."""

    def __init__(self, imported: Imported) -> None:
        self.imported = imported
        self.unit_ids = imported.scan("text_units").select("id").collect()["id"]
        self.entity_ids = imported.scan("entities").select("id").collect()["id"]
        self.n_documents = imported.scan("documents").select(pl.len()).collect().item()

    def documents(self, new: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Yield all documents; the text unit ids of imported ones are checked and completed.

        Microsoft's documents may name text units that are gone.
        """
        rows = self.imported.scan("documents").select("id", "text_unit_ids").collect()
        unit_documents = self.imported.scan("text_units").select("document_id").collect()
        owners, named = spread_lists(rows["text_unit_ids"])
        documents = np.append(owners, positions(unit_documents["document_id"], rows["id"]))
        units = np.append(positions(named, self.unit_ids), np.arange(len(self.unit_ids)))
        known = (documents >= 0) & (units >= 0)
        lists = self._gather(documents[known], units[known], self.unit_ids, self.n_documents)
        start = 0
        for batch in self._imported_batches("documents", "documents"):
            own = lists.slice(start, batch.height).alias("text_unit_ids")
            yield batch.with_columns(own)
            start += batch.height
        yield from _shifted(new, human_readable_id=self.n_documents)

    def text_units(self, new: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        yield from self._imported_batches("text_units", "base_text_units")
        yield from _shifted(new, human_readable_id=len(self.unit_ids))

    def new_sentences(self, new: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        yield from _shifted(new, document=self.n_documents)

    def covariates(self, new: pl.LazyFrame | None) -> Iterator[pl.DataFrame]:
        n_rows = self.imported.scan("covariates").select(pl.len()).collect().item()
        yield from self._imported_batches("covariates", "covariates")
        if new is not None:
            yield from _shifted(new, human_readable_id=n_rows)

    def _imported_batches(self, name: str, as_table: str) -> Iterator[pl.DataFrame]:
        return row_batches(self.imported.scan(name).select(list(TABLES[as_table].columns)))

    def graph(
        self, entities: pl.DataFrame, relationships: pl.DataFrame, mentions: pl.DataFrame
    ) -> dict[str, pl.DataFrame]:
        """Merge extracted entities and relationships into the imported ones.

        An entity with the title of an imported one adds its descriptions to that one. So does a
        relationship between the same two entities, unless both have different types.

        Returns
        -------
        extracted_entities, extracted_relationships, extracted_mentions
            The imported rows in their order, then the new ones.
        given_ids
            The ids of the imported rows.
        """
        before, links = self.imported_entities(), self.imported_relationships()
        number_of: dict[str, int] = {}
        for number, title in enumerate(before["title"]):
            number_of.setdefault(title_key(title), number)
        known = [number_of.get(title_key(title), -1) for title in entities["title"]]
        numbers = pl.Series("number", known, dtype=pl.Int64)
        is_new = numbers < 0
        numbers = pl.select(
            pl.when(is_new).then(len(before) + is_new.cum_sum() - 1).otherwise(numbers)
        ).to_series()
        entities = self._shift_units(entities).with_columns(human_readable_id=numbers)
        merged = _merge_rows(before, entities.filter(~is_new), "human_readable_id", _merge_entities)
        relationships = self._shift_units(relationships).with_columns(
            numbers.gather(relationships[end]).alias(end) for end in ("source", "target")
        )
        rows = pl.Series("row", _imported_links(links, relationships), dtype=pl.Int64)
        known_links = relationships.with_columns(rows).filter(pl.col("row") >= 0)
        merged_links = _merge_rows(
            links.select(pl.int_range(pl.len(), dtype=pl.Int64).alias("row"), pl.all()),
            known_links,
            "row",
            _merge_relationships,
        ).drop("row")
        mentions = mentions.with_columns(
            numbers.gather(mentions["entity"]).cast(pl.Int32).alias("entity"),
            pl.col("text_unit") + len(self.unit_ids),
        )
        return {
            "extracted_entities": pl.concat([merged, entities.filter(is_new)]),
            "extracted_relationships": pl.concat([merged_links, relationships.filter(rows < 0)]),
            "extracted_mentions": pl.concat([self.imported_mentions(), mentions]),
            "given_ids": self.given_ids(),
        }

    def graph_of_rules(
        self, entities: pl.DataFrame, relationships: pl.DataFrame, mentions: pl.DataFrame
    ) -> dict[str, pl.DataFrame]:
        """Append entities and relationships that rules extracted as rows of their own.

        `finalize_graph` merges equal titles, and keeps the description of the imported one.
        """
        before, links = self.imported_entities(), self.imported_relationships()
        n, n_units = len(before), len(self.unit_ids)
        relationships = _shift(relationships, {"source": n, "target": n}).with_columns(
            pl.col("text_units").list.eval(pl.element() + n_units)
        )
        mentions = _shift(mentions, {"entity": n, "text_unit": n_units})
        return {
            "extracted_entities": pl.concat(
                [_with_one_description(before), _shift(entities, {"human_readable_id": n})]
            ),
            "extracted_relationships": pl.concat([_with_one_description(links), relationships]),
            "extracted_mentions": pl.concat([self.imported_mentions(), mentions]),
            "given_ids": self.given_ids(),
        }

    def imported_mentions(self) -> pl.DataFrame:
        mentions = self.imported.scan("mentions").collect()
        return mentions.select(list(TABLES["extracted_mentions"].columns))

    def imported_entities(self) -> pl.DataFrame:
        """Return the imported entities as `extracted_entities`, in their order."""
        columns = ("title", "type", "description", "aliases", "evidence", "text_unit_ids")
        rows = self.imported.scan("entities").select(columns).collect()
        units = self._unit_numbers(rows["text_unit_ids"])
        rows = rows.with_columns(
            human_readable_id=pl.int_range(pl.len(), dtype=pl.Int64),
            text_units=units,
            types=pl.col("type").repeat_by(units.list.len()),
        )
        return _as_extracted(rows, "extracted_entities")

    def imported_relationships(self) -> pl.DataFrame:
        """Return those with two known ends as `extracted_relationships`, in their order."""
        rows = self._links()
        # finalize_graph refuses any other weight.
        is_valid = (pl.col("weight") > 0) & pl.col("weight").is_finite()
        rows = rows.with_columns(
            text_units=self._unit_numbers(rows["text_unit_ids"]),
            weight=pl.when(is_valid).then("weight").otherwise(1.0),
        )
        return _as_extracted(rows, "extracted_relationships")

    def given_ids(self) -> pl.DataFrame:
        """Return the table `given_ids`."""
        entities = pl.DataFrame({"id": self.entity_ids}).select(
            table=pl.lit("entities"),
            number=pl.int_range(pl.len(), dtype=pl.Int64),
            target=pl.lit(None, pl.Int64),
            id="id",
        )
        links = self._links().select(
            table=pl.lit("relationships"), number="source", target="target", id="id"
        )
        return pl.concat([entities, links])

    def _links(self) -> pl.DataFrame:
        """Return the relationships between two known entities, with the numbers of both."""
        columns = ("id", "description", "weight", "evidence", "type", "text_unit_ids")
        rows = self.imported.scan("relationships")
        found = rows.select(*columns, source="source_id", target="target_id").collect()
        return found.with_columns(
            pl.Series(end, positions(found[end], self.entity_ids)) for end in ("source", "target")
        ).filter(pl.col("source") >= 0, pl.col("target") >= 0)

    def _unit_numbers(self, lists: pl.Series) -> pl.Series:
        """Replace the ids of text units by their numbers, ascending; unknown ids are dropped."""
        owners, ids = spread_lists(lists)
        numbers = positions(ids, self.unit_ids)
        values = pl.Series(np.arange(len(self.unit_ids)))
        found = self._gather(owners[numbers >= 0], numbers[numbers >= 0], values, len(lists))
        return found.cast(pl.List(pl.Int64))

    def _gather(self, owners: Any, rows: Any, values: pl.Series, n_lists: int) -> pl.Series:
        owners, rows = distinct_pairs(owners, rows)
        return gather_lists(owners, values.gather(rows), n_lists)

    def _shift_units(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Shift the text unit numbers of new rows behind the imported ones."""
        columns = pl.col("text_units", "description_text_units")
        return rows.with_columns(columns.list.eval(pl.element() + len(self.unit_ids)))


def _with_one_description(rows: pl.DataFrame) -> pl.DataFrame:
    """Describe imported rows as rules describe theirs: by one description, without lists."""
    lists = {"descriptions", "description_text_units", "types"} & set(rows.columns)
    if "types" in lists:
        lists.add("text_units")
    return rows.with_columns(
        pl.col("descriptions").list.get(0, null_on_oob=True).fill_null("").alias("description"),
        pl.col(sorted(lists)).list.head(0),
    )


def _as_extracted(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Turn the description into a list, attributed to the first text unit (-1 if none)."""
    is_described = pl.col("description") != ""
    first = pl.col("text_units").list.get(0, null_on_oob=True).fill_null(-1)
    made = rows.with_columns(
        description=pl.lit(""),
        descriptions=pl.when(is_described).then(pl.concat_list("description")).otherwise([]),
        description_text_units=pl.when(is_described).then(pl.concat_list(first)).otherwise([]),
    )
    return made.select(pl.col(c).cast(kind) for c, kind in TABLES[name].columns.items())


def _imported_links(links: pl.DataFrame, new: pl.DataFrame) -> list[int]:
    """Return the row of the imported relationship that equals each new one, -1 if none does."""
    known: dict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
    columns = ("source", "target", "type")
    for row, (source, target, kind) in enumerate(links.select(columns).rows()):
        known[min(source, target), max(source, target)].append((row, title_key(kind)))
    found = []
    for source, target, kind in new.select(columns).rows():
        same = known.get((min(source, target), max(source, target)), [])
        key = title_key(kind)
        found.append(next((row for row, own in same if not own or not key or own == key), -1))
    return found


def _merge_rows(
    before: pl.DataFrame, new: pl.DataFrame, key: str, merge: Callable[[Row, list[Row]], Row]
) -> pl.DataFrame:
    """Merge new rows into the rows of the same key."""
    found: dict[int, list[Row]] = defaultdict(list)
    for row in new.iter_rows(named=True):
        found[row[key]].append(row)
    if not found:
        return before
    is_changed = pl.col(key).is_in(list(found))
    changed = before.filter(is_changed)
    merged = [merge(row, found[row[key]]) for row in changed.iter_rows(named=True)]
    rows = pl.DataFrame(merged, schema=before.schema, infer_schema_length=None)
    return pl.concat([before.filter(~is_changed), rows]).sort(key)


def _merge_entities(row: Row, new: list[Row]) -> Row:
    forms = [row["title"], *row["aliases"]]
    forms += [form for one in new for form in (one["title"], *one["aliases"])]
    types = [*row["types"], *(kind for one in new for kind in one["types"])]
    # The first form is the title.
    return {**_merge_common(row, new), "aliases": list(dict.fromkeys(forms))[1:], "types": types}


def _merge_relationships(row: Row, new: list[Row]) -> Row:
    weight = row["weight"] + sum(one["weight"] for one in new)
    return {**_merge_common(row, new), "weight": weight}


def _merge_common(row: Row, new: list[Row]) -> Row:
    """Merge the columns that entities and relationships share."""
    descriptions: dict[str, int] = {}
    for one in (row, *new):
        for text, unit in zip(one["descriptions"], one["description_text_units"], strict=True):
            descriptions.setdefault(text, unit)
    units = {unit for one in new for unit in one["text_units"]}
    return {
        **row,
        "type": row["type"] or next((one["type"] for one in new if one["type"]), ""),
        "descriptions": list(descriptions),
        "description_text_units": list(descriptions.values()),
        "text_units": [*row["text_units"], *sorted(units)],
        "evidence": [*row["evidence"], *(place for one in new for place in one["evidence"])],
    }


def _shifted(rows: pl.LazyFrame, **by: int) -> Iterator[pl.DataFrame]:
    for batch in row_batches(rows):
        yield _shift(batch, by)


def _shift(rows: pl.DataFrame, by: Mapping[str, int]) -> pl.DataFrame:
    """Add numbers to columns, keeping their types."""
    return rows.with_columns(
        (pl.col(name) + number).cast(rows.schema[name]) for name, number in by.items()
    )

"""What was imported and what was found in new documents, as one: the imported rows come first."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.microsoft.import_folder import Imported
from graphrag_index.schema.list_columns import distinct_pairs, gather_lists, positions, spread_lists
from graphrag_index.schema.tables import TABLES
from graphrag_index.text.normalize import title_key

# Rows read and written at once: bounds memory, not results.
BATCH = 8_192

Row = dict[str, Any]


class Joining:
    """Puts imported rows before those of the same table that were found now."""

    def __init__(self, imported: Imported) -> None:
        self.imported = imported
        self.unit_ids = imported.scan("text_units").select("id").collect()["id"]
        self.n_documents = imported.scan("documents").select(pl.len()).collect().item()

    @property
    def n_units(self) -> int:
        return len(self.unit_ids)

    def documents(self, new: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Give imported documents, each with its text units, and the new ones.

        What Microsoft's tables say of text units may name some that are gone.
        """
        ids = self.imported.scan("documents").select("id", "text_unit_ids").collect()
        of_units = self.imported.scan("text_units").select("document_id").collect()["document_id"]
        owners, named = spread_lists(ids["text_unit_ids"])
        documents = np.append(owners, positions(of_units, ids["id"]))
        units = np.append(positions(named, self.unit_ids), np.arange(self.n_units))
        known = (documents >= 0) & (units >= 0)
        owners, units = distinct_pairs(documents[known], units[known])
        lists = gather_lists(owners, self.unit_ids.gather(units), self.n_documents)
        start = 0
        for batch in self._batches("documents", "documents"):
            own = lists.slice(start, batch.height).alias("text_unit_ids")
            yield batch.with_columns(own)
            start += batch.height
        yield from _shifted(new, human_readable_id=self.n_documents)

    def text_units(self, new: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        yield from self._batches("text_units", "base_text_units")
        yield from _shifted(new, human_readable_id=self.n_units)

    def sentences(self, new: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Number the documents of new sentences; those of imported ones are not in it."""
        yield from _shifted(new, document=self.n_documents)

    def covariates(self, new: pl.LazyFrame | None) -> Iterator[pl.DataFrame]:
        rows = self.imported.scan("covariates")
        n_rows = rows.select(pl.len()).collect().item()
        yield from self._batches("covariates", "covariates")
        if new is not None:
            yield from _shifted(new, human_readable_id=n_rows)

    def _batches(self, name: str, as_table: str) -> Iterator[pl.DataFrame]:
        rows = self.imported.scan(name).select(list(TABLES[as_table].columns))
        return _batches(rows)

    def graph(
        self, entities: pl.DataFrame, relationships: pl.DataFrame, mentions: pl.DataFrame
    ) -> dict[str, pl.DataFrame]:
        """Put the imported graph before the one that was found now.

        What has the title of an imported entity is that entity, with its descriptions beside
        the imported one; so are relationships between the same two, unless each has another
        type.

        Returns
        -------
        extracted_entities, extracted_relationships, raw_mentions
            The imported ones in their order, then those that are new.
        given_ids
            The ids of what was imported.
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
        entities = self._with_units(entities).with_columns(human_readable_id=numbers)
        joined = _joined(before, entities.filter(~is_new), _one_entity)
        relationships = self._with_units(relationships).with_columns(
            numbers.gather(relationships[end]).alias(end) for end in ("source", "target")
        )
        rows = pl.Series(_same_links(links, relationships), dtype=pl.Int64)
        again = relationships.filter(rows >= 0).with_columns(number=rows.filter(rows >= 0))
        links_before = links.with_row_index("number").cast({"number": pl.Int64})
        joined_links = _joined(links_before, again, _one_relationship).drop("number")
        mentions = mentions.with_columns(
            numbers.gather(mentions["entity"]).cast(pl.Int32).alias("entity"),
            pl.col("text_unit") + self.n_units,
        )
        return {
            "extracted_entities": pl.concat([joined, entities.filter(is_new)]),
            "extracted_relationships": pl.concat([joined_links, relationships.filter(rows < 0)]),
            "raw_mentions": pl.concat([self.imported_mentions(), mentions]),
            "given_ids": self.given_ids(),
        }

    def raw_graph(
        self, entities: pl.DataFrame, relationships: pl.DataFrame, mentions: pl.DataFrame
    ) -> dict[str, pl.DataFrame]:
        """Do the same with `raw_entities` and `raw_relationships`, which stay rows of their own.

        Where titles are the same, `finalize_graph` makes them one, and keeps the description of
        the imported one.
        """
        before, links = self.imported_entities(), self.imported_relationships()
        shift = {"human_readable_id": len(before)}
        entities = _shift(entities, shift)
        ends = {"source": len(before), "target": len(before)}
        relationships = _shift(relationships, ends).with_columns(
            pl.col("text_units").list.eval(pl.element() + self.n_units)
        )
        mentions = _shift(mentions, {"entity": len(before), "text_unit": self.n_units})
        return {
            "raw_entities": pl.concat([as_raw(before, "raw_entities"), entities]),
            "raw_relationships": pl.concat([as_raw(links, "raw_relationships"), relationships]),
            "raw_mentions": pl.concat([self.imported_mentions(), mentions]),
            "given_ids": self.given_ids(),
        }

    def imported_mentions(self) -> pl.DataFrame:
        mentions = self.imported.scan("mentions").collect()
        return mentions.select(list(TABLES["raw_mentions"].columns))

    def imported_entities(self) -> pl.DataFrame:
        """Return the imported entities as `extracted_entities`, in their order."""
        columns = ("title", "type", "description", "aliases", "evidence", "text_unit_ids")
        rows = self.imported.scan("entities").select(columns).collect()
        units = self._units(rows["text_unit_ids"])
        return _extracted(
            rows.with_columns(
                human_readable_id=pl.int_range(pl.len(), dtype=pl.Int64), text_units=units
            ).with_columns(types=pl.col("type").repeat_by(pl.col("text_units").list.len())),
            "extracted_entities",
        )

    def imported_relationships(self) -> pl.DataFrame:
        """Return those with two ends as `extracted_relationships`, in their order."""
        rows, ends = self._links()
        return _extracted(
            rows.with_columns(
                *ends,
                text_units=self._units(rows["text_unit_ids"]),
                # A weight that is none would end the run.
                weight=pl.when(pl.col("weight") > 0, pl.col("weight").is_finite())
                .then("weight")
                .otherwise(1.0),
            ),
            "extracted_relationships",
        )

    def given_ids(self) -> pl.DataFrame:
        """Return the table `given_ids`."""
        entities = self.imported.scan("entities").select("id").collect()
        rows, (source, target) = self._links()
        parts = [
            entities.select(
                table=pl.lit("entities"),
                number=pl.int_range(pl.len(), dtype=pl.Int64),
                target=pl.lit(None, pl.Int64),
                id="id",
            ),
            rows.select(
                table=pl.lit("relationships"), number=source, target=target, id="id"
            ),
        ]  # fmt: skip
        return pl.concat(parts)

    def _links(self) -> tuple[pl.DataFrame, tuple[pl.Series, pl.Series]]:
        """Return the relationships whose ends are both entities, and the numbers of the ends."""
        ids = self.imported.scan("entities").select("id").collect()["id"]
        columns = ("id", "description", "weight", "evidence", "type", "text_unit_ids")
        rows = self.imported.scan("relationships").select(*columns, "source_id", "target_id")
        found = rows.collect()
        ends = [positions(found[f"{end}_id"], ids) for end in ("source", "target")]
        is_link = (ends[0] >= 0) & (ends[1] >= 0)
        source, target = (
            pl.Series(name, numbers[is_link])
            for name, numbers in zip(("source", "target"), ends, strict=True)
        )
        return found.filter(pl.Series(is_link)), (source, target)

    def _units(self, lists: pl.Series) -> pl.Series:
        """Put numbers of text units in the place of their ids, ascending."""
        owners, ids = spread_lists(lists)
        numbers = positions(ids, self.unit_ids)
        owners, numbers = distinct_pairs(owners[numbers >= 0], numbers[numbers >= 0])
        return gather_lists(owners, pl.Series(numbers), len(lists)).cast(pl.List(pl.Int64))

    def _with_units(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Number the text units of what was found now."""
        columns = pl.col("text_units", "description_text_units")
        return rows.with_columns(columns.list.eval(pl.element() + self.n_units))


def as_raw(extracted: pl.DataFrame, name: str) -> pl.DataFrame:
    """Make rows of `raw_entities` or `raw_relationships` of imported ones, with one description."""
    said = pl.col("descriptions").list.get(0, null_on_oob=True).fill_null("")
    return extracted.with_columns(description=said).select(list(TABLES[name].columns))


def _extracted(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Make a list of the one description, with the first text unit; -1 stands for none."""
    is_said = pl.col("description") != ""
    first = pl.col("text_units").list.get(0, null_on_oob=True).fill_null(-1)
    made = rows.with_columns(
        descriptions=pl.when(is_said).then(pl.concat_list("description")).otherwise([]),
        description_text_units=pl.when(is_said).then(pl.concat_list(first)).otherwise([]),
    )
    return made.select(pl.col(c).cast(kind) for c, kind in TABLES[name].columns.items())


def _same_links(links: pl.DataFrame, new: pl.DataFrame) -> list[int]:
    """Find for each new relationship the imported one that tells of the same, -1 if none does."""
    known: dict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
    for row, (source, target, kind) in enumerate(links.select("source", "target", "type").rows()):
        known[min(source, target), max(source, target)].append((row, title_key(kind)))
    found = []
    for source, target, kind in new.select("source", "target", "type").rows():
        same = known.get((min(source, target), max(source, target)), [])
        key = title_key(kind)
        found.append(next((row for row, own in same if not own or not key or own == key), -1))
    return found


def _joined(before: pl.DataFrame, new: pl.DataFrame, together: Any) -> pl.DataFrame:
    """Join new rows to those before of the same number, which is in the first column of both."""
    number = "number" if "number" in before.columns else "human_readable_id"
    found: dict[int, list[Row]] = defaultdict(list)
    for row in new.iter_rows(named=True):
        found[row[number]].append(row)
    if not found:
        return before
    is_touched = pl.col(number).is_in(list(found))
    rows = [
        together(row, found[row[number]])
        for row in before.filter(is_touched).iter_rows(named=True)
    ]  # fmt: skip
    changed = pl.DataFrame(rows, schema=before.schema, infer_schema_length=None)
    return pl.concat([before.filter(~is_touched), changed]).sort(number)


def _one_entity(row: Row, new: list[Row]) -> Row:
    made = _one(row, new)
    forms = [row["title"], *row["aliases"]]
    made["aliases"] = list(
        dict.fromkeys([*forms, *(form for one in new for form in (one["title"], *one["aliases"]))])
    )[1:]
    made["types"] = [*row["types"], *(kind for one in new for kind in one["types"])]
    return made


def _one_relationship(row: Row, new: list[Row]) -> Row:
    return {**_one(row, new), "weight": row["weight"] + sum(one["weight"] for one in new)}


def _one(row: Row, new: list[Row]) -> Row:
    """Join what entities and relationships have both; text units of new ones come behind."""
    said: dict[str, int] = {}
    for one in (row, *new):
        for text, unit in zip(one["descriptions"], one["description_text_units"], strict=True):
            said.setdefault(text, unit)
    units = [unit for one in new for unit in one["text_units"]]
    return {
        **row,
        "type": row["type"] or next((one["type"] for one in new if one["type"]), ""),
        "descriptions": list(said),
        "description_text_units": list(said.values()),
        "text_units": [*row["text_units"], *_in_order(units)],
        "evidence": [*row["evidence"], *(place for one in new for place in one["evidence"])],
    }


def _in_order(units: list[int]) -> list[int]:
    ordered: list[int] = np.unique(units).tolist()
    return ordered


def _shifted(rows: pl.LazyFrame, **by: int) -> Iterator[pl.DataFrame]:
    for batch in _batches(rows):
        yield _shift(batch, by)


def _shift(rows: pl.DataFrame, by: Mapping[str, int]) -> pl.DataFrame:
    """Make numbers greater, and leave their type."""
    return rows.with_columns(
        (pl.col(name) + number).cast(rows.schema[name]) for name, number in by.items()
    )


def _batches(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    n_rows = rows.select(pl.len()).collect().item()
    for start in range(0, n_rows, BATCH):
        yield rows.slice(start, BATCH).collect()

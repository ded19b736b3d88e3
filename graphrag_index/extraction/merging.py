"""Entities and relationships of all text units, merged by name.

By columns: the rows of an index come to millions, and most are there already on an update.
"""

from collections.abc import Callable

import numpy as np
import polars as pl

from graphrag_index.extraction.schema_history import type_key
from graphrag_index.schema.list_columns import Integers, gather_lists
from graphrag_index.schema.tables import TABLES
from graphrag_index.text.normalize import title_key


def merge_findings(findings: pl.DataFrame, text_units: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return `extracted_entities`, `extracted_relationships` and `extracted_mentions`.

    Parameters
    ----------
    findings
        What was found in each text unit, ordered by `text_unit`.
    text_units
        `document_id` and `start_char` of each text unit, by its number.
    """
    places = findings.select(pl.col("text_unit")).with_columns(
        text_units[findings["text_unit"]].select("document_id", start_of_unit="start_char")
    )
    entities = _spread(findings, places, "entities")
    links = _spread(findings, places, "relationships")
    mentions = _spread(findings, places, "mentions")
    keys = _map(entities["name"], title_key)
    numbers, firsts = _number(keys.to_frame())
    named = _Named(entities, numbers)
    links = named.give_numbers(links, "source", "target")
    mentions = named.give_numbers(mentions, "entity")
    columns = TABLES["extracted_mentions"].columns
    return {
        "extracted_entities": _entities(entities, numbers, keys.gather(firsts)),
        "extracted_relationships": _relationships(links),
        "extracted_mentions": _unrepeated(
            mentions.select(pl.col(name).cast(kind) for name, kind in columns.items()).sort(
                "text_unit", "start_char", "end_char", "entity"
            )
        ),
    }


def _spread(findings: pl.DataFrame, places: pl.DataFrame, name: str) -> pl.DataFrame:
    """Give each thing of a column of lists a row, with its text unit and place in the document."""
    rows = places.with_columns(findings[name]).filter(pl.col(name).list.len() > 0)
    return (
        rows.explode(name)
        .unnest(name)
        .with_columns(pl.col("start_char", "end_char") + pl.col("start_of_unit"))
        .drop("start_of_unit")
    )


class _Named:
    """Which entity is meant by a number that it has in one text unit."""

    def __init__(self, entities: pl.DataFrame, numbers: Integers) -> None:
        units, own = (entities[name].to_numpy() for name in ("text_unit", "number"))
        sizes = np.zeros(units.max(initial=-1) + 1, np.int64)
        np.maximum.at(sizes, units, own + 1)
        self._starts = np.cumsum(sizes) - sizes
        self._numbers = np.zeros(sizes.sum(), np.int64)
        self._numbers[self._starts[units] + own] = numbers

    def give_numbers(self, rows: pl.DataFrame, *ends: str) -> pl.DataFrame:
        """Put the numbers of entities in place of those that they have in the text units."""
        starts = self._starts[rows["text_unit"].to_numpy()]
        return rows.with_columns(
            pl.Series(end, self._numbers[starts + rows[end].to_numpy()]) for end in ends
        )


def _entities(rows: pl.DataFrame, owners: Integers, keys: pl.Series) -> pl.DataFrame:
    """Return `extracted_entities`; `keys` are those of their titles."""
    n = len(keys)
    rows = _by_owner(rows, owners)
    forms = rows.select("owner", "forms").filter(pl.col("forms").list.len() > 0).explode("forms")
    is_other = _map(forms["forms"], title_key) != keys.gather(forms["owner"])
    return pl.DataFrame(
        {
            **_columns(rows, n),
            "types": _given(rows, n),
            "human_readable_id": np.arange(n),
            "title": _most(rows["owner"], rows["name"], rows["name"], n),
            "aliases": _lists(_each_once(forms.filter(is_other)), n),
        }
    ).select(pl.col(n).cast(t) for n, t in TABLES["extracted_entities"].columns.items())


def _relationships(rows: pl.DataFrame) -> pl.DataFrame:
    """Return `extracted_relationships`."""
    ends = rows.select("source", "target")
    owners, firsts = _number(ends.with_columns(_map(rows["type"], type_key).alias("type")))
    n = len(firsts)
    return pl.DataFrame(
        {
            **_columns(_by_owner(rows, owners), n),
            **ends[firsts].to_dict(),
            # Added up in order, so that it is the same to the last bit.
            "weight": np.bincount(owners, rows["strength"].to_numpy(), n).astype(np.float64),
        }
    ).select(pl.col(n).cast(t) for n, t in TABLES["extracted_relationships"].columns.items())


def _by_owner(rows: pl.DataFrame, owners: Integers) -> pl.DataFrame:
    """Put the rows of each owner together, in the order in which they are."""
    return rows.with_columns(owner=owners).sort("owner", maintain_order=True)


def _columns(rows: pl.DataFrame, n: int) -> dict[str, pl.Series]:
    """Return the columns that entities and relationships have both."""
    typed = rows.filter(pl.col("type") != "")
    # Each with the first text unit that gives it.
    told = rows.select("owner", "description", "text_unit").filter(pl.col("description") != "")
    described = _each_once(told, "owner", "description")
    places = rows.select("owner", "document_id", "start_char", "end_char")
    return {
        "type": _most(typed["owner"], typed["type"], _map(typed["type"], type_key), n),
        "description": pl.repeat("", n, dtype=pl.String, eager=True),
        "descriptions": _lists(described.select("owner", "description"), n),
        "description_text_units": _lists(described.select("owner", "text_unit"), n),
        "text_units": _lists(_unrepeated(rows.select("owner", "text_unit")), n),
        "evidence": _lists(_each_once(places), n),
    }


def _number(keys: pl.DataFrame) -> tuple[Integers, Integers]:
    """Number different rows in their order; returns the number of each, and where each is first."""
    firsts = _each_once(keys.with_row_index("first"), *keys.columns)
    numbers = keys.join(
        firsts.with_row_index("number"), on=keys.columns, how="left", maintain_order="left"
    )
    return numbers["number"].cast(pl.Int64).to_numpy(), firsts["first"].cast(pl.Int64).to_numpy()


def _each_once(rows: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Keep the first row of those that are equal, or are in some columns.

    In a third of the time that `unique` takes where the order is to stay.
    """
    columns = names or rows.columns
    # A struct is written out before it is compared.
    together = pl.struct(columns) if len(columns) > 1 else pl.col(columns)
    return rows.filter(together.is_first_distinct())


def _unrepeated(rows: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Do the same where equal rows stand together."""
    columns = pl.col(names or rows.columns)
    return rows.filter(pl.any_horizontal(columns.ne_missing(columns.shift())))


def _map(values: pl.Series, function: Callable[[str], str]) -> pl.Series:
    """Apply a function to each different value once."""
    different = values.unique()
    results = pl.Series(list(map(function, different)), dtype=pl.String)
    return values.replace_strict(different, results, return_dtype=pl.String)


def _most(owners: pl.Series, values: pl.Series, keys: pl.Series, n: int) -> pl.Series:
    """Return for each owner the first value of the key that it has most often, of several the
    first; empty if it has none.
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


def _given(rows: pl.DataFrame, n: int) -> pl.Series:
    """Return the type that each text unit gives an `owner`: the first that is not empty."""
    given = rows.select("owner", "text_unit", "type")
    # Both in their order, those without a type last among equals.
    ordered = given.sort("owner", "text_unit", pl.col("type") == "", maintain_order=True)
    return _lists(_unrepeated(ordered, "owner", "text_unit").drop("text_unit"), n)


def _lists(rows: pl.DataFrame, n: int) -> pl.Series:
    """List what each `owner` has beside it, in the order of the rows."""
    things = rows.drop("owner")
    values = things.to_struct() if things.width > 1 else things.to_series()
    return gather_lists(rows["owner"].to_numpy(), values, n)

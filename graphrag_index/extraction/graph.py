"""Entities and relationships of all text units, merged by name.

By columns: the rows of an index come to millions, and most are there already on an update.
"""

from collections.abc import Callable

import numpy as np
import polars as pl

from graphrag_index.core.lists import Integers, gather_lists
from graphrag_index.core.tables import TABLES, title_key
from graphrag_index.extraction.schemas import type_key


def merge_findings(findings: pl.DataFrame, text_units: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return `extracted_entities`, `extracted_relationships` and `raw_mentions`.

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
    # The entities of a text unit have numbers of their own there.
    names = entities.select("text_unit", "number", entity=numbers).unique()
    for name in ("source", "target"):
        links = _number_end(links, name, names)
    mentions = _number_end(mentions, "entity", names)
    return {
        "extracted_entities": _entities(entities, numbers, keys.gather(firsts)),
        "extracted_relationships": _relationships(links),
        "raw_mentions": mentions.select(list(TABLES["raw_mentions"].columns))
        .unique()
        .sort("text_unit", "start_char", "end_char", "entity")
        .cast(TABLES["raw_mentions"].schema),
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


def _number_end(rows: pl.DataFrame, name: str, names: pl.DataFrame) -> pl.DataFrame:
    """Put the number of the entity in place of its number in the text unit."""
    keys = ["text_unit", "number"]
    found = rows.select("text_unit", number=name).join(
        names, on=keys, how="left", maintain_order="left"
    )
    return rows.with_columns(found["entity"].alias(name))


def _entities(rows: pl.DataFrame, owners: Integers, keys: pl.Series) -> pl.DataFrame:
    """Return `extracted_entities`; `keys` are those of their titles."""
    n = len(keys)
    forms = rows.select(owner=owners, form="forms").filter(pl.col("form").list.len() > 0)
    forms = forms.explode("form")
    is_other = _map(forms["form"], title_key) != keys.gather(forms["owner"])
    return pl.DataFrame(
        {
            **_columns(rows, owners, n),
            "types": _given(rows.select("text_unit", "type", owner=owners), n),
            "human_readable_id": np.arange(n),
            "title": _most(owners, rows["name"], rows["name"], n),
            "aliases": _lists(forms.filter(is_other), n),
        }
    ).select(pl.col(n).cast(t) for n, t in TABLES["extracted_entities"].columns.items())


def _relationships(rows: pl.DataFrame) -> pl.DataFrame:
    """Return `extracted_relationships`."""
    ends = rows.select("source", "target")
    owners, firsts = _number(ends.with_columns(_map(rows["type"], type_key).alias("type")))
    n = len(firsts)
    return pl.DataFrame(
        {
            **_columns(rows, owners, n),
            **ends[firsts].to_dict(),
            # Added up in order, so that it is the same to the last bit.
            "weight": np.bincount(owners, rows["strength"].to_numpy(), n).astype(np.float64),
        }
    ).select(pl.col(n).cast(t) for n, t in TABLES["extracted_relationships"].columns.items())


def _columns(rows: pl.DataFrame, owners: Integers, n: int) -> dict[str, pl.Series]:
    """Return the columns that entities and relationships have both."""
    told = rows.select(
        "text_unit", "type", "description", "document_id", "start_char", "end_char", owner=owners
    )
    typed = told.filter(pl.col("type") != "")
    described = (
        told.select("owner", "description", "text_unit")
        .filter(pl.col("description") != "")
        # Each with the first text unit that gives it.
        .unique(["owner", "description"], keep="first", maintain_order=True)
    )
    evidence = told.select("owner", "document_id", "start_char", "end_char")
    return {
        "type": _most(typed["owner"].to_numpy(), typed["type"], _map(typed["type"], type_key), n),
        "descriptions": _lists(described.drop("text_unit"), n),
        # Not by _lists, which would name a text unit once that gives two.
        "description_text_units": _gathered(described.drop("description"), n),
        "text_units": _lists(told.select("owner", "text_unit"), n),
        "evidence": _lists(evidence, n),
    }


def _number(keys: pl.DataFrame) -> tuple[Integers, Integers]:
    """Number different rows in their order; returns the number of each, and where each is first."""
    firsts = keys.with_row_index("first").unique(keys.columns, keep="first", maintain_order=True)
    numbers = keys.join(
        firsts.with_row_index("number"), on=keys.columns, how="left", maintain_order="left"
    )
    return numbers["number"].cast(pl.Int64).to_numpy(), firsts["first"].cast(pl.Int64).to_numpy()


def _map(values: pl.Series, function: Callable[[str], str]) -> pl.Series:
    """Apply a function to each different value once."""
    different = values.unique()
    results = pl.Series(list(map(function, different)), dtype=pl.String)
    return values.replace_strict(different, results, return_dtype=pl.String)


def _most(owners: Integers, values: pl.Series, keys: pl.Series, n: int) -> pl.Series:
    """Return for each owner the first value of the key that it has most often, of several the
    first; empty if it has none.
    """
    rows = pl.DataFrame({"owner": owners, "key": keys, "at": np.arange(len(owners))})
    best = (
        rows.group_by("owner", "key")
        .agg(times=pl.len(), at=pl.col("at").min())
        .sort("owner", "times", "at", descending=[False, True, False])
        .unique("owner", keep="first", maintain_order=True)
    )
    chosen = pl.DataFrame({"owner": best["owner"], "value": values.gather(best["at"])})
    everyone = pl.DataFrame({"owner": np.arange(n)})
    found = everyone.join(chosen, on="owner", how="left", maintain_order="left")
    return found["value"].fill_null("")


def _given(rows: pl.DataFrame, n: int) -> pl.Series:
    """Return the type that each text unit gives an `owner`: the first that is not empty."""
    firsts = rows.sort(pl.col("type") == "", maintain_order=True).unique(
        ["owner", "text_unit"], keep="first", maintain_order=True
    )
    return _gathered(firsts.sort("text_unit").select("owner", "type"), n)


def _lists(rows: pl.DataFrame, n: int) -> pl.Series:
    """List what each `owner` has beside it, each thing once, in the order of the rows."""
    return _gathered(rows.unique(maintain_order=True), n)


def _gathered(rows: pl.DataFrame, n: int) -> pl.Series:
    """List what each `owner` has beside it, in the order of the rows."""
    rows = rows.sort("owner", maintain_order=True)
    things = rows.drop("owner")
    values = things.to_struct() if things.width > 1 else things.to_series()
    return gather_lists(rows["owner"].to_numpy(), values, n)

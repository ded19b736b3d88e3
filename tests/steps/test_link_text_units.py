from collections.abc import Iterator

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_index.schema.tables import TABLES
from graphrag_index.steps.link_text_units import link_text_units
from tests.fixtures.examples import examples


def base_text_units(*ids: str) -> pl.LazyFrame:
    columns = {
        "id": list(ids),
        "human_readable_id": list(range(len(ids))),
        "text": [f"text of {id}" for id in ids],
        "n_tokens": [3] * len(ids),
        "document_id": ["d"] * len(ids),
        "start_char": [0] * len(ids),
        "end_char": [10] * len(ids),
        "headings": [""] * len(ids),
        "metadata": [None] * len(ids),
    }
    return pl.LazyFrame(columns, schema=TABLES["base_text_units"].schema)


def naming(rows: dict[str, list[str]]) -> pl.LazyFrame:
    """A table whose rows, numbered in this order, name text units."""
    columns = {
        "id": list(rows),
        "human_readable_id": range(len(rows)),
        "text_unit_ids": list(rows.values()),
    }
    schema = {"id": pl.String, "human_readable_id": pl.Int64, "text_unit_ids": pl.List(pl.String)}
    return pl.LazyFrame(columns, schema=schema)


def link(*tables: pl.LazyFrame) -> pl.DataFrame:
    batches = link_text_units(*tables)
    assert isinstance(batches, Iterator)
    return pl.concat(batches)


def test_links_are_turned_round_in_order_of_number_and_never_null():
    linked = link(
        base_text_units("t0", "t1", "t2"),
        naming({"e9": ["t1", "t0"], "e1": [], "e5": ["t1"]}),
        naming({"r": ["t0"]}),
        pl.LazyFrame(
            {"id": ["c7", "c2"], "human_readable_id": [0, 1], "text_unit_id": ["t2", "t2"]}
        ),
    )
    expected = (
        base_text_units("t0", "t1", "t2")
        .collect()
        .with_columns(
            pl.Series("entity_ids", [["e9"], ["e9", "e5"], []]),
            pl.Series("relationship_ids", [["r"], [], []], dtype=pl.List(pl.String)),
            pl.Series("covariate_ids", [[], [], ["c7", "c2"]]),
        )
        .select(TABLES["text_units"].schema.names())
    )
    assert_frame_equal(linked, expected)


def test_without_claims_the_lists_are_empty():
    linked = link(base_text_units("t0"), naming({}), naming({}))
    assert linked["covariate_ids"].to_list() == [[]]
    assert linked.schema == TABLES["text_units"].schema


def test_without_text_units_there_is_one_empty_batch():
    batches = link_text_units(base_text_units(), naming({}), naming({}))
    assert isinstance(batches, Iterator)
    (batch,) = batches
    assert isinstance(batch, pl.DataFrame)
    assert batch.is_empty()
    assert batch.schema == TABLES["text_units"].schema


def test_batches_keep_the_order_of_the_rows():
    ids = [f"t{i}" for i in range(45_000)]
    batches = link_text_units(
        base_text_units(*ids), naming({"e": ["t3", "t20000", "t44999"]}), naming({})
    )
    assert isinstance(batches, Iterator)
    frames = list(batches)
    assert len(frames) > 1
    linked = pl.concat(frames)  # type: ignore[type-var]
    assert linked["id"].to_list() == ids
    assert linked.filter(pl.col("entity_ids").list.len() > 0)["id"].to_list() == [
        "t3",
        "t20000",
        "t44999",
    ]


NAMED = st.lists(st.lists(st.sampled_from([f"t{i}" for i in range(6)]), unique=True), max_size=8)


@given(entities=NAMED, relationships=NAMED)
@examples(50)
def test_links_agree_in_both_directions(entities, relationships):
    tables = {
        "entity_ids": {f"e{i}": named for i, named in enumerate(entities)},
        "relationship_ids": {f"r{i}": named for i, named in enumerate(relationships)},
    }
    linked = link(base_text_units(*(f"t{i}" for i in range(6))), *map(naming, tables.values()))
    for column, rows in tables.items():
        there = {(row, unit) for row, units in rows.items() for unit in units}
        back = {(row, unit) for unit, found in linked.select("id", column).rows() for row in found}
        assert there == back

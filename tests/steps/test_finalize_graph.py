"""The graph, and the links of text units to it."""

import math
from collections.abc import Iterator

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_index.errors import TableError
from graphrag_index.schema.settings.step_sections import FinalizeGraph
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.step import SerialShards
from graphrag_index.steps.finalize_graph import finalize_graph, link_text_units
from graphrag_index.storage.memo import join_batches
from graphrag_index.storage.table_writer import cast_to_table
from tests.fixtures.examples import examples

TEXT_UNITS = pl.DataFrame({"id": ["t0", "t1", "t2"], "human_readable_id": [0, 1, 2]})


def extracted_entities(*titles: str, **columns: list[object]) -> pl.DataFrame:
    rows = {
        "human_readable_id": list(range(len(titles))),
        "title": list(titles),
        "type": ["name"] * len(titles),
        "description": [f"About {title}." for title in titles],
    }
    lists = ("descriptions", "description_text_units", "text_units", "types", "aliases", "evidence")
    rows |= {name: [[] for _ in titles] for name in lists}
    return pl.DataFrame({**rows, **columns}, schema=TABLES["extracted_entities"].schema)


def extracted_relationships(*rows: dict[str, object]) -> pl.DataFrame:
    default: dict[str, object] = {"description": "", "weight": 1.0, "type": ""}
    lists = ("descriptions", "description_text_units", "text_units", "evidence")
    default |= {name: [] for name in lists}
    return pl.DataFrame(
        [{**default, **row} for row in rows], schema=TABLES["extracted_relationships"].schema
    )


def extracted_mentions(*rows: tuple[int, int, int, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=TABLES["extracted_mentions"].schema, orient="row")


def finalize(
    entities: pl.DataFrame,
    relationships: pl.DataFrame,
    mentions: pl.DataFrame,
    layout: bool = False,
) -> dict[str, pl.DataFrame]:
    batches = finalize_graph(
        entities.lazy(),
        relationships.lazy(),
        mentions.lazy(),
        TEXT_UNITS.lazy(),
        settings=FinalizeGraph(layout=layout),
        shards=SerialShards(),
    )
    tables = join_batches(batches)
    return {
        one.name: cast_to_table(tables[one.name], one) if one.name in tables else one.empty()
        for one in finalize_graph.writes
    }


def span(start: int) -> dict[str, object]:
    return {"document_id": "d", "start_char": start, "end_char": start + 1}


ADA, BYRON = content_id("entity", "ada"), content_id("entity", "byron")
CARL = content_id("entity", "carl")


def test_rows_between_the_same_two_entities_become_one():
    tables = finalize(
        extracted_entities("Ada", "Byron", "Carl"),
        extracted_relationships(
            {"source": 2, "target": 0, "description": "first", "text_units": [2]},
            {
                "source": 0,
                "target": 1,
                "weight": 1.0,
                "description": "light",
                "type": "knows",
                "text_units": [1],
                "evidence": [span(5)],
            },
            {
                "source": 1,
                "target": 0,
                "weight": 2.5,
                "description": "heavy",
                "type": "writes to",
                "text_units": [0, 1],
                "evidence": [span(3)],
            },
        ),
        extracted_mentions((0, 0, 0, 3), (1, 0, 4, 9), (1, 1, 4, 9), (2, 2, 20, 24)),
    )
    expected = pl.DataFrame(
        {
            "id": [
                content_id("relationship", *sorted([ADA, CARL])),
                content_id("relationship", *sorted([ADA, BYRON])),
            ],
            "human_readable_id": [0, 1],
            "source": ["Carl", "Ada"],
            "target": ["Ada", "Byron"],
            "description": ["first", "heavy light"],
            "weight": [1.0, 3.5],
            "combined_degree": [3, 3],
            "text_unit_ids": [["t2"], ["t0", "t1"]],
            "source_id": [CARL, ADA],
            "target_id": [ADA, BYRON],
            "evidence": [[], [span(5), span(3)]],
            "type": ["", "writes to"],
        },
        schema=TABLES["relationships"].schema,
    )
    assert_frame_equal(tables["relationships"], expected)
    assert tables["entities"]["degree"].to_list() == [2, 1, 1]


def test_entities_with_the_same_title_but_for_case_width_and_spacing_become_one():
    tables = finalize(
        extracted_entities(
            "Ada",
            "Byron",
            "ＡＤＡ ",
            aliases=[["Lady Ada"], [], ["A. L.", "Lady Ada", "Ada"]],
            evidence=[[span(1)], [], [span(7)]],
        ),
        extracted_relationships({"source": 0, "target": 2}, {"source": 2, "target": 1}),
        extracted_mentions((2, 1, 9, 12), (0, 1, 2, 5), (0, 0, 0, 3), (1, 2, 0, 5)),
    )
    expected = pl.DataFrame(
        {
            "id": [ADA, BYRON],
            "human_readable_id": [0, 1],
            "title": ["Ada", "Byron"],
            "type": ["name", "name"],
            "description": ["About Ada.", "About Byron."],
            "text_unit_ids": [["t0", "t1"], ["t2"]],
            "frequency": [2, 1],
            "degree": [1, 1],
            "x": [None, None],
            "y": [None, None],
            "aliases": [["Lady Ada", "A. L.", "ＡＤＡ "], []],
            "evidence": [[span(1), span(7)], []],
        },
        schema=TABLES["entities"].schema,
    )
    assert_frame_equal(tables["entities"], expected)
    assert_frame_equal(
        tables["mentions"],
        pl.DataFrame(
            [(0, 0, 0, 3), (0, 1, 2, 5), (0, 1, 9, 12), (1, 2, 0, 5)],
            schema=TABLES["mentions"].schema,
            orient="row",
        ),
    )
    assert tables["relationships"].select("source", "target").rows() == [("Ada", "Byron")]


def test_loops_and_unknown_ends_are_dropped_and_isolated_entities_kept():
    tables = finalize(
        extracted_entities("Ada", "Byron"),
        extracted_relationships(
            {"source": 0, "target": 0}, {"source": 0, "target": 7}, {"source": -1, "target": 1}
        ),
        extracted_mentions((1, 0, 0, 5), (9, 0, 0, 5)),
    )
    assert tables["relationships"].is_empty()
    assert tables["entities"].select("title", "degree", "frequency").rows() == [
        ("Ada", 0, 0),
        ("Byron", 0, 1),
    ]
    assert tables["entities"]["text_unit_ids"].to_list() == [[], ["t0"]]
    assert tables["mentions"].rows() == [(1, 0, 0, 5)]


def test_equal_mentions_are_one_in_order_of_the_text():
    tables = finalize(
        extracted_entities("Ada", "Ada Byron"),
        extracted_relationships(),
        extracted_mentions((1, 1, 0, 9), (0, 1, 0, 3), (0, 0, 8, 9), (1, 1, 0, 9)),
    )
    assert tables["mentions"].rows() == [(0, 0, 8, 9), (0, 1, 0, 3), (1, 1, 0, 9)]


def test_nothing_gives_empty_tables():
    for layout in (False, True):
        tables = finalize(
            extracted_entities(), extracted_relationships(), extracted_mentions(), layout
        )
        assert [len(frame) for frame in tables.values()] == [0, 0, 0]


def test_one_entity_has_a_place():
    entities = finalize(
        extracted_entities("Ada"), extracted_relationships(), extracted_mentions(), True
    )["entities"]
    assert entities.select("x", "y").rows() == [(0.0, 0.0)]


@pytest.mark.parametrize("weight", [math.nan, math.inf, 0.0, -1.0, None])
def test_a_weight_that_is_none_is_refused_by_its_row(weight):
    rows = extracted_relationships(
        {"source": 0, "target": 1}, {"source": 1, "target": 0, "weight": weight}
    )
    with pytest.raises(TableError, match=r"extracted_relationships.*row 1 \(1 – 0\)"):
        finalize(extracted_entities("Ada", "Byron"), rows, extracted_mentions())


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=30
    ),
    st.randoms(use_true_random=False),
)
@examples(20)
def test_order_and_direction_of_rows_change_neither_ids_nor_weights_nor_places(edges, random):
    entities = extracted_entities(*"abcdefghij")
    turned = [edge if random.random() < 0.5 else (edge[1], edge[0], edge[2]) for edge in edges]
    random.shuffle(turned)
    one, two = (
        finalize(
            entities,
            extracted_relationships(
                *({"source": s, "target": t, "weight": float(w)} for s, t, w in rows)
            ),
            extracted_mentions(),
            layout=True,
        )
        for rows in (edges, turned)
    )
    columns = ["id", "combined_degree", "weight"]
    assert_frame_equal(
        one["relationships"].select(columns).sort("id"),
        two["relationships"].select(columns).sort("id"),
    )
    assert_frame_equal(one["entities"], two["entities"], abs_tol=1e-6)


@given(
    edges=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(1, 3))),
    mentions=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2), st.integers(0, 2))),
)
@examples(20)
def test_the_number_of_rows_per_batch_does_not_change_the_tables(edges, mentions):
    made = []
    for n_rows in (1, 3, 100):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("graphrag_index.steps.finalize_graph.BATCH_ROWS", n_rows)
            patch.setattr("graphrag_index.steps.finalize_graph.BATCH_TEXT_UNITS", n_rows)
            made.append(
                finalize(
                    extracted_entities("a", "b", "c", "A", "d", "B", aliases=[["x"], ["y"]] * 3),
                    extracted_relationships(
                        *(
                            {"source": s, "target": t, "weight": w, "description": f"{s}{w}"}
                            for s, t, w in edges
                        )
                    ),
                    extracted_mentions(*((e, unit, at, at + 1) for e, unit, at in mentions)),
                )
            )
    for tables in made[1:]:
        for name, table in tables.items():
            assert_frame_equal(table, made[0][name])


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
        "reading": [None] * len(ids),
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
    batches = link_text_units(*tables, shards=SerialShards())
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
    batches = link_text_units(base_text_units(), naming({}), naming({}), shards=SerialShards())
    assert isinstance(batches, Iterator)
    (batch,) = batches
    assert isinstance(batch, pl.DataFrame)
    assert batch.is_empty()
    assert batch.schema == TABLES["text_units"].schema


def test_batches_keep_the_order_of_the_rows():
    ids = [f"t{i}" for i in range(45_000)]
    batches = link_text_units(
        base_text_units(*ids),
        naming({"e": ["t3", "t20000", "t44999"]}),
        naming({}),
        shards=SerialShards(),
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

import logging
import math
from itertools import combinations
from pathlib import Path

import polars as pl
import pytest
from graspologic_native import hierarchical_leiden
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_index.errors import SettingsError, TableError
from graphrag_index.schema.settings.project_settings import parse_settings
from graphrag_index.schema.settings.step_sections import CreateCommunities
from graphrag_index.schema.tables import TABLES, content_id
from tests.fixtures.community_tables import (
    CommunityRuns,
    document_table,
    entity_table,
    relationship_table,
    text_unit_table,
)
from tests.fixtures.examples import examples

ENGINES = ["native", "igraph", "leidenalg", "microsoft"]


def communities_of(
    entities: pl.DataFrame,
    relationships: pl.DataFrame,
    text_units: pl.DataFrame | None = None,
    documents: pl.DataFrame | None = None,
    **values: object,
) -> pl.DataFrame:
    """The communities of a first run."""
    text_units = text_unit_table(10) if text_units is None else text_units
    documents = document_table(*[""] * 5) if documents is None else documents
    tables = (entities, relationships, text_units, documents)
    settings = CreateCommunities.model_validate(values)
    found = CommunityRuns(Path("nowhere")).create(*tables, settings=settings)["communities"]
    assert found.schema == TABLES["communities"].schema
    check_hierarchy(found, entities["id"].to_list())
    return found


def check_hierarchy(communities: pl.DataFrame, entity_ids: list[str]) -> None:
    """Hold what every hierarchy promises."""
    rows = communities.to_dicts()
    assert [row["community"] for row in rows] == list(range(len(rows)))
    assert [row["human_readable_id"] for row in rows] == list(range(len(rows)))
    assert [row["level"] for row in rows] == sorted(row["level"] for row in rows)
    top = [id for row in rows if row["level"] == 0 for id in row["entity_ids"]]
    assert sorted(top) == sorted(entity_ids)
    for row in rows:
        assert row["size"] == len(row["entity_ids"]) == len(set(row["entity_ids"]))
        assert row["children"] == [
            child["community"] for child in rows if child["parent"] == row["community"]
        ]
        if row["level"] == 0:
            assert row["parent"] == -1
        else:
            assert rows[row["parent"]]["level"] == row["level"] - 1
        if row["children"]:
            assert len(row["children"]) > 1
            below = [id for child in row["children"] for id in rows[child]["entity_ids"]]
            assert sorted(below) == row["entity_ids"]
    assert len({row["id"] for row in rows}) == len(rows)


TWO_TRIANGLES_AND_A_BRIDGE = relationship_table(
    ("a", "b", 1.0, ["t3", "t0"]),
    ("b", "c", 1.0, ["t0"]),
    ("c", "a", 1.0, []),
    ("d", "e", 1.0, ["t9"]),
    ("e", "f", 1.0, ["t8"]),
    ("d", "f", 1.0, ["t9"]),
    ("c", "d", 1.0, ["t5"]),
)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_triangles_and_a_bridge(engine):
    found = communities_of(
        entity_table({id: ["t1"] for id in "fedcba"}),
        TWO_TRIANGLES_AND_A_BRIDGE,
        documents=document_table("2021-05-01T10:00:00", "2023-01-01", "", None, ""),
        engine=engine,
    )
    expected = pl.DataFrame(
        {
            "id": [content_id("community", "0", "a,b,c"), content_id("community", "0", "d,e,f")],
            "human_readable_id": [0, 1],
            "community": [0, 1],
            "level": [0, 0],
            "parent": [-1, -1],
            "children": [[], []],
            "title": ["Community 0", "Community 1"],
            "entity_ids": [["a", "b", "c"], ["d", "e", "f"]],
            "relationship_ids": [["a-b", "b-c", "c-a"], ["d-e", "d-f", "e-f"]],
            "text_unit_ids": [["t0", "t3"], ["t8", "t9"]],
            "period": ["2023-01-01", ""],
            "size": [3, 3],
            "island": [False, False],
            "theme": [False, False],
        },
        schema=TABLES["communities"].schema,
    )
    assert_frame_equal(found, expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_unconnected_triangles_are_never_joined(engine):
    apart = TWO_TRIANGLES_AND_A_BRIDGE.filter(pl.col("id") != "c-d")
    found = communities_of(
        entity_table({id: [] for id in "abcdef"}), apart, engine=engine, resolution=0.01
    )
    assert found["entity_ids"].to_list() == [["a", "b", "c"], ["d", "e", "f"]]


@pytest.mark.parametrize("engine", ENGINES)
def test_no_entities_no_communities(engine):
    assert communities_of(entity_table({}), relationship_table(), engine=engine).is_empty()


@pytest.mark.parametrize("engine", ENGINES)
def test_one_entity_is_an_island_with_the_text_units_that_name_it(engine):
    found = communities_of(
        entity_table({"a": ["t4", "t2"]}),
        relationship_table(),
        documents=document_table("2020", "2021-02-03", "1999", "2030", ""),
        engine=engine,
    )
    columns = ["title", "entity_ids", "relationship_ids", "text_unit_ids", "period", "island"]
    assert found.select(columns).rows() == [
        ("Island 0 (entities with few or no links)", ["a"], [], ["t2", "t4"], "2021-02-03", True)
    ]


def test_islands_follow_the_documents():
    # d0 is t0 and t1, and so on. u and v are a linked pair; all others stand alone.
    found = communities_of(
        entity_table(
            {
                "k": ["t1"],
                "l": ["t0", "t4"],
                "m": ["t0", "t1", "t4"],
                "u": ["t5"],
                "v": ["t2", "t5", "t4"],
                "w": ["t4"],
                "x": ["t7"],
                "y": ["t9"],
                "z": [],
            }
        ),
        relationship_table(("u", "v", 1.0, ["t5"])),
    )
    assert found.select("entity_ids", "island").rows() == [
        (["k", "l", "m"], True),
        (["u", "v", "w"], True),
        (["x", "y", "z"], True),
    ]
    # An island speaks of everything that names its entities.
    assert found["text_unit_ids"].to_list() == [
        ["t0", "t1", "t4"],
        ["t2", "t4", "t5"],
        ["t7", "t9"],
    ]
    assert found["relationship_ids"].to_list() == [[], ["u-v"], []]


def test_islands_are_no_larger_than_a_community_that_is_not_split():
    found = communities_of(
        entity_table({f"e{i:02}": ["t0"] for i in range(23)}), relationship_table()
    )
    assert found["size"].to_list() == [10, 10, 3]


def test_islands_come_after_the_communities_of_level_0():
    found = communities_of(
        entity_table({id: ["t0"] for id in [*"abc", *(f"alone{i}" for i in range(8))]}),
        TWO_TRIANGLES_AND_A_BRIDGE.head(3),
    )
    assert found.select("size", "island").rows() == [(3, False), (8, True)]


def cliques(n_cliques: int, size: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cliques in a ring; with many of them, modularity joins neighbours at the top."""
    names = [[f"c{i}n{j}" for j in range(size)] for i in range(n_cliques)]
    inner = [(a, b, 1.0, ["t0"]) for clique in names for a, b in combinations(clique, 2)]
    outer = [
        (clique[0], names[(i + 1) % n_cliques][1], 1.0, ["t1"]) for i, clique in enumerate(names)
    ]
    entities = entity_table({name: ["t0"] for clique in names for name in clique})
    return entities, relationship_table(*inner, *outer)


@pytest.mark.parametrize("engine", ENGINES)
def test_large_communities_are_split_down_to_the_cliques(engine):
    entities, relationships = cliques(60, 6)
    found = communities_of(entities, relationships, engine=engine)
    assert found["level"].max() > 0
    leaves = found.filter(pl.col("children").list.len() == 0)["entity_ids"].to_list()
    for clique in range(60):
        assert any({f"c{clique}n{j}" for j in range(6)} <= set(leaf) for leaf in leaves)


def test_cpm_splits_further_down_too():
    entities, relationships = cliques(12, 6)
    found = communities_of(
        entities,
        relationships,
        engine="leidenalg",
        quality="cpm",
        resolution=0.001,
        max_cluster_size=5,
        max_levels=12,
    )
    assert found["level"].max() > 0


def test_relationships_to_entities_that_do_not_exist_are_left_out():
    found = communities_of(
        entity_table({id: [] for id in "abc"}),
        TWO_TRIANGLES_AND_A_BRIDGE.filter(pl.col("id") != "d-e"),
    )
    assert found["relationship_ids"].to_list() == [["a-b", "b-c", "c-a"]]


def test_microsoft_finds_what_its_function_finds_on_edges_sorted_by_title():
    entities, relationships = cliques(60, 6)
    edges = sorted(
        (*sorted([source.upper(), target.upper()]), weight)
        for source, target, weight in relationships.select("source", "target", "weight").rows()
    )
    expected: dict[tuple[int, int], set[str]] = {}
    for part in hierarchical_leiden(
        edges,
        max_cluster_size=10,
        seed=0xDEADBEEF,
        resolution=1.0,
        randomness=0.001,
        use_modularity=True,
        iterations=1,
    ):
        expected.setdefault((part.level, part.cluster), set()).add(part.node)
    # Ids in another order than titles, as hashes are.
    title_of = {content_id("entity", title): title for title in entities["title"]}
    id_of = {title: id for id, title in title_of.items()}
    ids = pl.col("title").replace_strict(id_of)
    ends = {f"{end}_id": pl.col(end).replace_strict(id_of) for end in ("source", "target")}
    found = communities_of(
        entities.with_columns(id=ids), relationships.with_columns(**ends), engine="microsoft"
    )
    assert max(level for level, _ in expected) > 0
    assert sorted(
        (level, sorted(title_of[id].upper() for id in ids))
        for level, ids in found.select("level", "entity_ids").rows()
    ) == sorted((level, sorted(members)) for (level, _), members in expected.items())


def test_cpm_is_refused_where_an_engine_lacks_it():
    with pytest.raises(SettingsError, match="microsoft supports only the quality modularity"):
        parse_settings({"create_communities": {"engine": "microsoft", "quality": "cpm"}})


@pytest.mark.parametrize("weight", [math.nan, math.inf, 0.0, -2.0, None])
def test_a_weight_that_is_none_is_refused_by_its_row(weight):
    rows = TWO_TRIANGLES_AND_A_BRIDGE.with_columns(
        pl.when(id="e-f").then(pl.lit(weight)).otherwise("weight").alias("weight")
    )
    with pytest.raises(TableError, match=r"relationships.*row 4 \(e – f\)"):
        communities_of(entity_table({id: [] for id in "abcdef"}), rows)


def test_documents_that_name_no_entity_are_counted(caplog):
    with caplog.at_level(logging.WARNING):
        communities_of(entity_table({"a": ["t4"]}), relationship_table())
    assert [record.message for record in caplog.records] == [
        "4 documents name no entity: they are in no community, but a search can find them."
    ]


@pytest.mark.parametrize("engine", ENGINES)
@given(data=st.data())
@examples(12)
def test_the_order_of_rows_changes_nothing(engine, data):
    names = [f"e{i:02}" for i in range(data.draw(st.integers(1, 30)))]
    unit = st.sampled_from([f"t{i}" for i in range(10)])
    units = st.lists(unit, unique=True, max_size=3)
    entities = entity_table({name: data.draw(units) for name in names})
    name = st.sampled_from(names)
    drawn = data.draw(st.lists(st.tuples(name, name), unique=True, max_size=60))
    pairs = [(source, target) for source, target in drawn if source < target]
    weight = st.floats(0.1, 9)
    relationships = relationship_table(
        *((source, target, data.draw(weight), data.draw(units)) for source, target in pairs)
    )
    seed = data.draw(st.integers(0, 1000))
    one, two = (
        communities_of(*tables, engine=engine, max_cluster_size=4)
        for tables in (
            (entities, relationships),
            (
                entities.sample(fraction=1, shuffle=True, seed=seed),
                relationships.sample(fraction=1, shuffle=True, seed=seed),
            ),
        )
    )
    assert_frame_equal(one, two)

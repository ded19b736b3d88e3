"""The graph in the forms that programs for drawing and computing read."""

import json
import math
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_index.errors import ExportError
from graphrag_index.export.exported_graph import (
    escape_xml,
    quote_text,
    replace_control_characters,
    stream_rows,
)
from graphrag_index.export.graph_files import write_gexf, write_graphml, write_node_link
from tests.fixtures.page_parser import FORBIDDEN
from tests.fixtures.small_graph import NASTY, graph_of, numbered
from tests.fixtures.small_index import table, write_index


def read(form: Any, output: Path, path: Path, **filters: Any) -> Any:
    """Write a form and let networkx read it, with warnings as errors."""
    form(graph_of(output, **filters), path)
    if form is write_graphml:
        return nx.read_graphml(path)
    if form is write_gexf:
        return nx.read_gexf(path, version="1.3")
    return nx.node_link_graph(json.loads(path.read_text(encoding="utf-8")))


def titles(output: Path, **filters: Any) -> list[str]:
    graph = graph_of(output, **filters)
    return [title for batch in graph.stream_nodes() for title in batch["title"]]


def test_graphml_has_all_attributes(small: Path, tmp_path: Path) -> None:
    found = read(write_graphml, small, tmp_path / "graph")
    assert type(found) is nx.Graph
    assert list(found) == ["a", "b", "c", "d"]
    assert found.nodes["a"] == {
        **{"label": "Ann", "type": "person", "description": "", "number": 0},
        **{"degree": 1, "frequency": 1, "x": 250.0, "y": -500.0},
        **{"community": 0, "community_level_0": 0, "community_level_1": 2},
    }
    assert found.nodes["d"] == {
        **{"label": "Dee", "type": "place", "description": "", "number": 3},
        **{"degree": 0, "frequency": 0, "community": 1, "community_level_0": 1},
    }
    assert list(found.edges) == [("a", "b"), ("b", "c")]
    assert found.edges["a", "b"] == {
        **{"id": "ab", "weight": 2.0, "type": "knows", "description": ""},
        **{"number": 0, "text_units": 2},
    }


def test_gexf_is_drawn_as_the_layout_says(small: Path, tmp_path: Path) -> None:
    found = read(write_gexf, small, tmp_path / "graph")
    ann, dee = found.nodes["a"], found.nodes["d"]
    assert ann["viz"]["position"] == {"x": 250.0, "y": -500.0, "z": 0.0}
    assert "position" not in dee["viz"]
    # Of one community one colour, of two communities two.
    assert ann["viz"]["color"] == found.nodes["c"]["viz"]["color"] != dee["viz"]["color"]
    assert (ann["viz"]["size"], dee["viz"]["size"]) == (14.0, 10.0)
    assert (ann["label"], ann["type"], ann["community_level_1"]) == ("Ann", "person", 2)
    assert found.edges["b", "c"]["weight"] == 0.5
    assert found.edges["b", "c"]["description"] == "paid"


def test_gexf_has_the_elements_of_its_schema_in_their_order(nasty: Path, tmp_path: Path) -> None:
    write_gexf(graph_of(nasty), tmp_path / "graph")
    root = ElementTree.parse(tmp_path / "graph").getroot()
    space, viz = "{http://gexf.net/1.3}", "{http://gexf.net/1.3/viz}"
    assert (root.tag, root.get("version")) == (f"{space}gexf", "1.3")
    assert [part.tag for part in root] == [f"{space}meta", f"{space}graph"]
    (graph,) = root.findall(f"{space}graph")
    names = ["attributes", "attributes", "nodes", "edges"]
    assert [part.tag for part in graph] == [f"{space}{name}" for name in names]
    declared = {
        part.get("class"): [one.get("id") for one in part]
        for part in graph.findall(f"{space}attributes")
    }
    for node in graph.iter(f"{space}node"):
        assert node.keys() == ["id", "label"]
        drawn = [f"{viz}{name}" for name in ("color", "position", "size")]
        assert [part.tag for part in node] == [f"{space}attvalues", *drawn]
        assert {one.get("for") for one in node[0]} <= set(declared["node"])
        assert all(0 <= int(node[1].get(name, "")) <= 255 for name in "rgb")
    for edge in graph.iter(f"{space}edge"):
        assert edge.keys() == ["id", "source", "target", "weight"]
        assert [one.get("for") for one in edge[0]] == declared["edge"]


def test_node_link_json_is_as_networkx_writes_it(small: Path, tmp_path: Path) -> None:
    found = read(write_node_link, small, tmp_path / "graph")
    assert type(found) is nx.Graph
    assert found.nodes["a"]["aliases"] == ["Annie", "A; B"]
    assert (found.nodes["a"]["x"], found.nodes["a"]["y"]) == (0.25, -0.5)
    assert "x" not in found.nodes["d"]
    assert found.edges["a", "b"] == {
        **{"id": "ab", "number": 0, "type": "knows", "description": "", "weight": 2.0},
        "text_units": 2,
    }
    written = json.loads((tmp_path / "graph").read_text(encoding="utf-8"))
    ours, theirs = written, nx.node_link_data(found)
    assert {key: ours[key] for key in ours if key != "edges"} == {
        key: theirs[key] for key in theirs if key != "edges"
    }
    assert ours["edges"] == theirs["edges"]


def test_relationships_between_the_same_two_are_all_kept(tmp_path: Path) -> None:
    links = [
        {"id": name, "source_id": source, "target_id": target, "weight": 1.0}
        for name, source, target in (("r", "a", "b"), ("s", "b", "a"), ("t", "a", "a"))
    ]
    people = [{"id": "a", "title": "Ann"}, {"id": "b", "title": "Bob"}]
    output = write_index(
        tmp_path / "output",
        entities=table("entities", *numbered(people)),
        relationships=table("relationships", *numbered(links)),
    )
    for form in (write_graphml, write_node_link):
        found = read(form, output, tmp_path / "graph")
        assert found.is_multigraph()
        assert found.number_of_edges() == 3


@pytest.mark.parametrize("form", [write_graphml, write_gexf, write_node_link])
def test_hard_texts_come_back(form: Any, nasty: Path, tmp_path: Path) -> None:
    found = read(form, nasty, tmp_path / "graph")
    texts = NASTY if form is write_node_link else [FORBIDDEN.sub("\ufffd", text) for text in NASTY]
    name = "title" if form is write_node_link else "label"
    assert [node[name] for node in found.nodes.values()] == texts
    back = [text[::-1] for text in texts]
    assert [node["description"] for node in found.nodes.values()] == back
    edges = sorted(found.edges.values(), key=lambda edge: edge["number"])
    assert [edge["description"] for edge in edges] == texts


@settings(max_examples=25)
@given(st.lists(st.text(), min_size=5))
def test_any_text_can_stand_in_xml_and_json(texts: list[str]) -> None:
    column = pl.DataFrame({"text": texts}).select(
        plain="text",
        clean=replace_control_characters("text"),
        xml=escape_xml("text"),
        quoted=quote_text("text"),
    )
    for plain, cleaned, escaped, json_text in column.iter_rows():
        assert cleaned == FORBIDDEN.sub("\ufffd", plain)
        element = ElementTree.fromstring(f'<a b="{escaped}">{escaped}</a>')
        assert (element.get("b"), element.text or "") == (cleaned, cleaned)
        assert json.loads(json_text) == plain
        assert json_text.isprintable() or not re.search("[\x00-\x1f\x7f]", json_text)


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ({}, ["Ann", "Bob", "Cee", "Dee"]),
        ({"types": ("PERSON",)}, ["Ann", "Bob"]),
        ({"types": ("office", "place")}, ["Cee", "Dee"]),
        ({"min_degree": 1}, ["Ann", "Bob", "Cee"]),
        ({"min_degree": 2}, ["Bob"]),
        ({"level": 0}, ["Ann", "Bob", "Cee", "Dee"]),
        ({"level": 1}, ["Ann", "Bob"]),
        ({"community": 0}, ["Ann", "Bob", "Cee"]),
        ({"community": 2}, ["Ann", "Bob"]),
        ({"community": 0, "types": ("office",)}, ["Cee"]),
        ({"community": 1, "types": ("office",)}, []),
    ],
)
def test_filters_leave_what_passes_all_of_them(
    small: Path, filters: dict[str, Any], left: list[str]
) -> None:
    assert titles(small, **filters) == left


def test_relationships_need_both_ends(small: Path) -> None:
    for filters, ids, n_dangling in (
        ({}, ["ab", "bc"], 1),
        ({"types": ("person",)}, ["ab"], 1),
        ({"types": ("place",)}, [], 1),
    ):
        graph = graph_of(small, **filters)
        assert [id for batch in graph.stream_edges() for id in batch["id"]] == ids
        assert (graph.n_edges, graph.n_dangling) == (len(ids), n_dangling)


def test_the_level_that_is_asked_for_gives_community_and_colour(small: Path) -> None:
    for filters, expected in (({}, [0, 0, 0, 1]), ({"level": 1}, [2, 2])):
        (nodes,) = graph_of(small, **filters).stream_nodes()
        assert nodes["community"].to_list() == expected


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"level": 2}, "There is no level 2: the levels of the index are 0, 1."),
        ({"community": 9}, "There is no community 9: the index has numbers 0 to 2."),
        (
            {"types": ("person", "ship")},
            "No entity has the type 'ship': the types are 'person', 'Office', 'place'.",
        ),
        ({"min_degree": 3}, "No entity has 3 neighbours: the maximum is 2."),
    ],
)
def test_a_filter_that_nothing_can_pass_is_refused(
    small: Path, filters: dict[str, Any], message: str
) -> None:
    with pytest.raises(ExportError, match=f"^{re.escape(message)}$"):
        graph_of(small, **filters)


@pytest.mark.parametrize("form", [write_graphml, write_gexf, write_node_link])
def test_an_empty_graph_is_a_valid_file(form: Any, tmp_path: Path) -> None:
    names = ("entities", "relationships")
    output = write_index(tmp_path / "output", **{name: table(name) for name in names})
    found = read(form, output, tmp_path / "graph")
    assert (type(found), len(found), found.size()) == (nx.Graph, 0, 0)


@pytest.mark.parametrize("form", [write_graphml, write_gexf, write_node_link])
def test_a_row_without_texts_is_written_too(form: Any, tmp_path: Path) -> None:
    bare = {"title": None, "type": None, "description": None, "aliases": None}
    people = numbered([{"id": "a", **bare}, {"id": "b", **bare}])
    link = {"id": "r", "source_id": "a", "target_id": "b", "weight": math.nan, "type": None}
    output = write_index(
        tmp_path / "output",
        entities=table("entities", *people),
        relationships=table("relationships", link),
    )
    found = read(form, output, tmp_path / "graph")
    assert list(found.edges) == [("a", "b")]
    # GEXF gives an edge without a weight the weight 1.
    assert found.edges["a", "b"].get("weight", 1.0) == 1.0


def test_an_index_without_a_graph_is_refused(tmp_path: Path) -> None:
    output = write_index(tmp_path, documents=table("documents"))
    with pytest.raises(ExportError, match="no entities and relationships"):
        graph_of(output)


def test_rows_are_read_in_equal_batches_and_in_order() -> None:
    rows = pl.LazyFrame({"n": range(1_000)})
    batches = list(stream_rows(rows, 64))
    assert [batch.height for batch in batches] == [64] * 15 + [40]
    assert pl.concat(batches)["n"].to_list() == list(range(1_000))
    filtered = stream_rows(rows.filter(pl.col("n") % 3 == 0), 64)
    assert [batch.height for batch in filtered] == [64] * 5 + [14]

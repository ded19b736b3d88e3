"""The graph in the forms that databases are filled from, read back as those databases would."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_index.export.graph_files import (
    KUZU_FILES,
    NEO4J_FILES,
    write_cypher,
    write_kuzu,
    write_neo4j,
)
from tests.fixtures.page_parser import FORBIDDEN
from tests.fixtures.small_graph import NASTY, graph_of
from tests.fixtures.small_index import table, write_index


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def neo4j_files(output: Path, folder: Path, **filters: Any) -> dict[str, list[dict[str, str]]]:
    folder.mkdir()
    write_neo4j(graph_of(output, **filters), folder)
    assert {path.name for path in folder.iterdir()} == NEO4J_FILES
    return {path.stem: rows_of(path) for path in folder.iterdir()}


def test_neo4j_files_have_the_headers_of_the_importer(small: Path, tmp_path: Path) -> None:
    write_neo4j(graph_of(small), tmp_path)
    heads = {path.stem: path.read_text("utf-8").split("\n")[0] for path in tmp_path.iterdir()}
    assert heads["entities"] == (
        "id:ID(Entity),number:long,title,type,description,aliases:string[],degree:long,"
        "frequency:long,x:double,y:double,community:long,community_level_0:long,"
        "community_level_1:long"
    )
    assert heads["related"] == (
        ":START_ID(Entity),:END_ID(Entity),id,number:long,type,description,weight:double,"
        "text_unit_ids:string[]"
    )
    assert heads["mentions"] == ":START_ID(TextUnit),:END_ID(Entity)"
    assert heads["communities"].startswith("id:ID(Community),community:long,level:long,title,")


def test_neo4j_files_link_documents_text_units_entities_and_communities(
    small: Path, tmp_path: Path
) -> None:
    files = neo4j_files(small, tmp_path / "csv")
    links = {
        name: [tuple(row.values())[:2] for row in files[name]]
        for name in ("related", "part_of", "mentions", "in_community", "parent")
    }
    assert links == {
        "related": [("a", "b"), ("b", "c")],
        "part_of": [("t0", "d0"), ("t1", "d1")],
        "mentions": [("t0", "a"), ("t0", "b"), ("t1", "b"), ("t1", "c")],
        "in_community": [*((id, "c0") for id in "abc"), ("d", "c1"), ("a", "c2"), ("b", "c2")],
        "parent": [("c2", "c0")],
    }
    ann, dee = files["entities"][0], files["entities"][3]
    assert ann["aliases:string[]"] == "Annie;A, B"
    # Not quoted and so null, as no empty text is.
    assert (ann["x:double"], dee["x:double"]) == ("0.25", "")
    assert [row["title"] for row in files["communities"]] == ["Money", "", ""]
    assert files["communities"][1]["island:boolean"] == "true"
    assert len(files["documents"]) == len(files["text_units"]) == 3


def test_neo4j_files_hold_what_belongs_to_the_entities_that_are_left(
    small: Path, tmp_path: Path
) -> None:
    files = neo4j_files(small, tmp_path / "csv", types=("office",))
    first = {name: [next(iter(row.values())) for row in rows] for name, rows in files.items()}
    assert first == {
        **{"entities": ["c"], "text_units": ["t1"], "documents": ["d1"], "communities": ["c0"]},
        **{"related": [], "part_of": ["t1"], "mentions": ["t1"], "in_community": ["c"]},
        "parent": [],
    }


def test_hard_texts_come_back_from_neo4j_files(nasty: Path, tmp_path: Path) -> None:
    files = neo4j_files(nasty, tmp_path / "csv")
    texts = [FORBIDDEN.sub("\ufffd", text) for text in NASTY]
    assert [row["title"] for row in files["entities"]] == texts
    assert [row["type"] for row in files["related"]] == texts
    aliases = [row["aliases:string[]"] for row in files["entities"]]
    assert aliases == [f"{text.replace(';', ',')};plain" for text in texts]
    assert files["text_units"][0]["text"] == "".join(texts)


def test_the_import_command_names_every_file(small: Path, tmp_path: Path) -> None:
    _, command = write_neo4j(graph_of(small), tmp_path)
    assert set(re.findall(r"=(\w+\.csv)", command)) == NEO4J_FILES
    assert "--multiline-fields=true" in command


_STATEMENT = re.compile(r"UNWIND (\[.*\]) AS row (.*);")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|([a-z_0-9]+)(?=:)')


def statements(text: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """Read a script: what each statement does, and its rows. A map needs its keys quoted."""
    found = []
    for line in text.split("\n")[:-1]:
        if line.startswith("CREATE CONSTRAINT"):
            continue
        parts = _STATEMENT.fullmatch(line)
        assert parts, line
        rows = _TOKEN.sub(lambda token: f'"{token[1]}"' if token[1] else token[0], parts[1])
        found.append((parts[2], json.loads(rows)))
    return found


def test_the_script_makes_constraints_then_nodes_then_links(small: Path, tmp_path: Path) -> None:
    write_cypher(graph_of(small), tmp_path / "graph")
    text = (tmp_path / "graph").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines[0] == (
        "CREATE CONSTRAINT graphrag_entity_id IF NOT EXISTS FOR (n:Entity) REQUIRE n.id IS UNIQUE;"
    )
    assert [line.startswith("CREATE CONSTRAINT") for line in lines] == [True] * 4 + [False] * 9
    found = statements(text)
    does = [what for what, _ in found]
    assert does[:2] == [
        "MERGE (n:Entity {id: row.id}) SET n += row",
        "MERGE (n:Document {id: row.id}) SET n += row",
    ]
    assert does[4:6] == [
        "MATCH (a:Entity {id: row.source}) MATCH (b:Entity {id: row.target}) "
        "MERGE (a)-[r:RELATED {id: row.id}]->(b) SET r.number = row.number, r.type = row.type, "
        "r.description = row.description, r.weight = row.weight, "
        "r.text_unit_ids = row.text_unit_ids",
        "MATCH (a:TextUnit {id: row.source}) MATCH (b:Document {id: row.target}) "
        "MERGE (a)-[r:PART_OF]->(b)",
    ]
    ann, *_, dee = found[0][1]
    assert ann["aliases"] == ["Annie", "A; B"]
    assert "x" not in dee
    assert [(row["source"], row["target"]) for row in found[4][1]] == [("a", "b"), ("b", "c")]


def test_hard_texts_stay_in_their_quotation_marks(nasty: Path, tmp_path: Path) -> None:
    write_cypher(graph_of(nasty), tmp_path / "graph")
    found = statements((tmp_path / "graph").read_bytes().decode())
    assert [row["title"] for row in found[0][1]] == NASTY
    assert [row["aliases"] for row in found[0][1]] == [[text, "plain"] for text in NASTY]
    related = next(rows for what, rows in found if ":RELATED" in what)
    assert [row["type"] for row in related] == NASTY


def test_a_statement_has_at_most_a_hundred_rows(tmp_path: Path) -> None:
    people = [{"id": f"e{i}", "human_readable_id": i} for i in range(250)]
    output = write_index(
        tmp_path / "output",
        entities=table("entities", *people),
        relationships=table("relationships"),
    )
    write_cypher(graph_of(output), tmp_path / "graph")
    found = statements((tmp_path / "graph").read_text(encoding="utf-8"))
    assert [len(rows) for _, rows in found] == [100, 100, 50]


def test_parquet_begins_with_the_keys(small: Path, tmp_path: Path) -> None:
    write_kuzu(graph_of(small), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == KUZU_FILES
    nodes, edges = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("nodes", "edges"))
    assert (nodes.columns[0], edges.columns[:2]) == ("id", ["from", "to"])
    assert edges.select("from", "to", "weight").rows() == [("a", "b", 2.0), ("b", "c", 0.5)]
    assert nodes["x"].to_list() == [0.25, 0.0, 0.0, None]
    assert nodes["community_level_1"].to_list() == [2, 2, None, None]


@pytest.mark.parametrize("filters", [{}, {"community": 1, "types": ("person",)}])
def test_a_graph_database_loads_the_parquet_files(
    nasty: Path, small: Path, tmp_path: Path, filters: dict[str, Any]
) -> None:
    kuzu = pytest.importorskip("real_ladybug")
    output = small if filters else nasty
    folder = tmp_path / "graph"
    folder.mkdir()
    write_kuzu(graph_of(output, **filters), folder)
    connection = kuzu.Connection(kuzu.Database(str(tmp_path / "database")))
    connection.execute(f"IMPORT DATABASE '{folder}'")
    found = connection.execute("MATCH (n:Entity) RETURN n.title ORDER BY n.number")
    titles = [row[0] for row in found.get_all()]
    assert titles == ([] if filters else NASTY)
    found = connection.execute("MATCH (:Entity)-[r:RELATED]->(:Entity) RETURN count(r)")
    assert found.get_all() == [[len(titles)]]


def test_an_empty_graph_is_a_valid_script(tmp_path: Path) -> None:
    names = ("entities", "relationships")
    output = write_index(tmp_path / "output", **{name: table(name) for name in names})
    write_cypher(graph_of(output), tmp_path / "graph")
    assert statements((tmp_path / "graph").read_text(encoding="utf-8")) == []

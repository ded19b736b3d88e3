"""Tables and graphs of a user that cannot be read."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_index.errors import ExitCode, InputError
from tests.fixtures.given_graph import read, write

BOMB = """<?xml version="1.0"?><!DOCTYPE g [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>
<graphml><graph><node id="&b;"/></graph></graphml>"""
NODES, EDGES = "id,name\n1,Ada\n2,Bo\n", "source,target,weight\n1,2,3\n"
GIVEN = {"entities": "nodes.csv", "relationships": "edges.csv"}


@pytest.mark.parametrize(
    ("files", "section", "said"),
    [
        ({}, {}, "There is no graph to read: name your files in read_graph.relationships"),
        ({}, {"relationships": "e.xlsx"}, "e.xlsx is of a type that is not read here: name"),
        ({}, {"relationships": "e.csv"}, "e.csv does not exist: name an existing file."),
        ({"nodes_csv": NODES}, {"entities": "nodes.csv"}, "nodes.csv holds entities only"),
        ({"edges_csv": ""}, GIVEN | {"entities": None}, "edges.csv is empty"),
        ({"edges_csv": "source,target\n"}, GIVEN | {"entities": None}, "edges.csv has no row"),
        (
            {"edges_csv": "a,b\n1,2\n"},
            GIVEN | {"entities": None},
            "edges.csv has no column for the source (known names: source, from, start, subject, "
            "head, src, startid, sourceid): name it with read_graph.relationship_columns, such as "
            "{source: COLUMN}; its columns are a, b.",
        ),
        (
            {"edges_csv": EDGES},
            {"relationships": "edges.csv", "relationship_columns": {"weight": "kg"}},
            "edges.csv has no column 'kg', which read_graph.relationship_columns names as the "
            "weight: name one of the columns source, target, weight.",
        ),
        (
            {"edges_csv": EDGES},
            {"relationships": "edges.csv", "attributes": ["kg"]},
            "read_graph.attributes: edges.csv has no column 'kg'",
        ),
        (
            {"nodes_csv": NODES, "edges_csv": "source,target\n1,2\n\n1,Cy\nDee,1\n"},
            GIVEN,
            "edges.csv, line 4: the target 'Cy' is not an entity of nodes.csv (and in 1 more rows)"
            ": add it there, correct it here, or set read_graph.add_missing_entities to true.",
        ),
        (
            {"edges_csv": "source,target\nAda,\n"},
            {"relationships": "edges.csv"},
            "edges.csv, line 2 has no target: name the entity, or delete the row.",
        ),
        *(
            (
                {"edges_csv": f"source,target,weight\n1,2,\n1,2,{weight}\n"},
                {"relationships": "edges.csv"},
                f"edges.csv, line 3: the weight '{weight}' is not a number greater than 0",
            )
            for weight in ("0", "-2", "nan", "inf", "1e308", "heavy", "1;5")
        ),
        (
            {"edges_csv": "source,target\n1,2\n1,2,3\n"},
            {"relationships": "edges.csv"},
            "edges.csv, line 3 has 3 fields and the header 2: put quotation marks around a field "
            "that holds ','.",
        ),
        *(
            (
                {"edges_csv": text},
                {"relationships": "edges.csv"},
                f"edges.csv, line {line} is not valid CSV: a quotation mark is not closed.",
            )
            for line, text in ((1, '"source,target\n1,2\n'), (3, 'source,target\n1,2\n"1,2\n3,4\n'))
        ),
        (
            {"edges_csv": "source,source,target\n"},
            {"relationships": "edges.csv"},
            "edges.csv has two columns 'source': rename one of them.",
        ),
        (
            {"nodes_csv": "id,name\n1,Ada\n1,Bo\n", "edges_csv": EDGES},
            GIVEN,
            "nodes.csv, line 3: 'Bo' has the id '1' of 'Ada' in line 2: give each entity its own",
        ),
        (
            {"nodes_csv": "id,name\n1,\n", "edges_csv": EDGES},
            GIVEN,
            "nodes.csv, line 2 has no title",
        ),
        (
            {"edges_csv": "id,source,target\nx,1,2\nx,2,3\n"},
            {"relationships": "edges.csv"},
            "edges.csv, line 3 has the id 'x' of line 2: give each its own",
        ),
        (
            {"edges_csv": EDGES, "docs_csv": "id\n1\n"},
            {"relationships": "edges.csv", "documents": "docs.csv"},
            "read_graph.documents goes with read_graph.text_units",
        ),
        (
            {
                "edges_csv": "source,target,text_unit_ids\n1,2,u9\n",
                "units_csv": "id,text\nu1,Hm.\n",
            },
            {"relationships": "edges.csv", "text_units": "units.csv"},
            "edges.csv, line 2: 'u9' of its text_unit_ids is not a text unit of units.csv",
        ),
        (
            {"edges_csv": EDGES, "units_csv": "id,text\nu1,\n"},
            {"relationships": "edges.csv", "text_units": "units.csv"},
            "units.csv, line 2 has no text",
        ),
        (
            {
                "edges_csv": EDGES,
                "units_csv": "id,text,document_id\nu1,Hm.,d2\n",
                "docs_csv": "id\nd1\n",
            },
            {"relationships": "edges.csv", "text_units": "units.csv", "documents": "docs.csv"},
            "units.csv, line 2: the document_id 'd2' is not a document of docs.csv",
        ),
        ({"g_graphml": BOMB}, {"relationships": "g.graphml"}, "g.graphml declares XML entities"),
        (
            {"g_graphml": "<graphml><graph></graph></graphml>"},
            {"relationships": "g.graphml"},
            "g.graphml has no node: name the file with the graph.",
        ),
        (
            {"g_graphml": "<graphml>\n<graph><node id='a'/>\n<node id='b'"},
            {"relationships": "g.graphml"},
            "g.graphml, line 3 is not valid XML (unclosed token)",
        ),
        (
            {"g_graphml": "<graphml><graph>\n<node/></graph></graphml>"},
            {"relationships": "g.graphml"},
            "g.graphml, line 2: <node> has no id",
        ),
        (
            {"g_graphml": "<g><node id='a'/>\n<edge source='a' target='b'/></g>"},
            {"relationships": "g.graphml"},
            "g.graphml, line 2: the target 'b' is not an entity of g.graphml",
        ),
    ],
)
def test_what_cannot_be_read_is_named_with_what_to_do(
    tmp_path: Path, files: dict[str, str], section: dict[str, Any], said: str
) -> None:
    write(tmp_path, **files)
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        read(tmp_path, section)
    assert caught.value.exit_code == ExitCode.WRONG_USE
    assert "\n" not in str(caught.value)


def test_another_encoding_is_named_or_read(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_bytes("source,target\nAda,Bo\nZoë,Bo\n".encode("cp1252"))
    with pytest.raises(
        InputError, match=r"edges\.csv, line 3 is not utf-8: .*read_graph\.encoding"
    ):
        read(tmp_path, {"relationships": "edges.csv"})
    tables = read(tmp_path, {"relationships": "edges.csv", "encoding": "cp1252"})
    assert "Zoë" in tables["extracted_entities"]["title"]
    (tmp_path / "edges.csv").write_bytes("source,target\nZoë,Bo\n".encode("utf-16"))
    with pytest.raises(InputError, match=r"edges\.csv is not utf-8: "):
        read(tmp_path, {"relationships": "edges.csv"})


def test_a_damaged_table_and_one_of_other_types_are_named(tmp_path: Path) -> None:
    path = tmp_path / "edges.parquet"
    pl.DataFrame({"source": ["a"] * 99, "target": ["b"] * 99}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"edges\.parquet is not a complete Parquet file"):
        read(tmp_path, {"relationships": "edges.parquet"})
    pl.DataFrame({"source": [{"a": 1}], "target": ["b"]}).write_parquet(path)
    with pytest.raises(InputError, match="the column 'source' has the type Struct"):
        read(tmp_path, {"relationships": "edges.parquet"})

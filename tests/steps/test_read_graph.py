"""A graph of one's own, read from files."""

import logging
import random
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_index.readers import graph_evidence as evidence
from tests.fixtures.cases import cases
from tests.fixtures.examples import examples
from tests.fixtures.given_graph import LINKS, PEOPLE, finalize, frames, read, write, write_graph

FORMS = ("csv", "tsv", "parquet", "graphml")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_entities_and_relationships_of_its_rows(
    tmp_path: Path, form: str
) -> None:
    made = finalize(read(tmp_path, write_graph(tmp_path, form)))
    entities, relationships = made["entities"], made["relationships"]
    assert entities.select("id", "title", "type", "description").rows() == [
        (identity, name, kind, said or "") for identity, name, kind, said in PEOPLE
    ]
    assert entities["degree"].to_list() == [2, 2, 3, 3, 2, 2]
    titles = {identity: name for identity, name, *_ in PEOPLE}
    found = relationships.select("id", "source", "target", "weight", "type", "description")
    expected = [
        (identity, titles[source], titles[target], float(weight), kind, said or "")
        for identity, source, target, weight, kind, said in LINKS
    ]
    assert found.rows() == expected


def test_the_forms_of_one_graph_give_equal_tables(tmp_path: Path) -> None:
    tables = {form: read(tmp_path / form, write_graph(tmp_path / form, form)) for form in FORMS}
    for form in FORMS[1:]:
        for name, expected in tables["csv"].items():
            # Paths, and the lines that rows stand in, are those of the files.
            columns = [c for c in expected.columns if c not in ("path", "metadata")]
            assert_frame_equal(tables[form][name].select(columns), expected.select(columns))


def test_what_names_no_text_unit_is_a_line_of_a_document_that_proves_it(tmp_path: Path) -> None:
    tables = read(tmp_path, write_graph(tmp_path, "csv"))
    documents = tables["documents"].select("title", "path", "text", "metadata").rows()
    assert documents[:3] == [
        ("Ada", "people.csv", "Ada paints.", '{"lines": "2"}'),
        ("Bo", "people.csv", "Bo: Sculptor in Ghent.", '{"lines": "3"}'),
        ("Dee", "people.csv", "Dee sails.", '{"lines": "5"}'),
    ]
    assert documents[3:5] == [
        ("Ada", "links.csv", "Ada taught Bo.\nAda – Cy.", '{"lines": "2-3"}'),
        ("Bo", "links.csv", "Bo – knows – Cy.", '{"lines": "4"}'),
    ]
    texts = dict(tables["documents"].select("id", "text").iter_rows())
    for row in tables["extracted_relationships"].iter_rows(named=True):
        (place,) = row["evidence"]
        said = texts[place["document_id"]][place["start_char"] : place["end_char"]]
        for end in ("source", "target"):
            assert tables["extracted_entities"]["title"][row[end]] in said
    units = tables["base_text_units"]
    names = units["document_id"].replace_strict(texts)
    for entity, unit, start, end in tables["extracted_mentions"].iter_rows():
        assert names[unit][start:end] == tables["extracted_entities"]["title"][entity]


@cases("entities, relationships")
def test_usual_names_of_columns_are_known(
    tmp_path: Path, entities: str, relationships: str
) -> None:
    write(tmp_path, nodes_csv=entities, edges_csv=relationships)
    tables = read(tmp_path, {"entities": "nodes.csv", "relationships": "edges.csv"})
    assert tables["extracted_entities"].select("title", "type").rows() == [
        ("Ada", "person"),
        ("Bo", "person"),
    ]
    assert tables["extracted_relationships"].select("source", "target", "weight").rows() == [
        (0, 1, 2.0)
    ]


def test_a_file_of_a_spreadsheet_is_read(tmp_path: Path) -> None:
    # A mark of the encoding, semicolons, decimal commas, and rows in which nothing is left.
    write(
        tmp_path,
        edges_csv='\ufeffVon;Source;Target;Weight;"a, b, c, d"\r\n'
        ";Jürgen;Köln;2,5;x\r\n;;;;\r\n;;; ;\r\n",
    )
    tables = read(tmp_path, {"relationships": "edges.csv"})
    assert tables["extracted_entities"]["title"].to_list() == ["Jürgen", "Köln"]
    assert tables["extracted_relationships"]["weight"].to_list() == [2.5]


@cases("edges, types")
def test_how_gephi_draws_an_edge_is_no_type(tmp_path: Path, edges: str, types: list[str]) -> None:
    write(tmp_path, edges_csv=edges)
    tables = read(tmp_path, {"relationships": "edges.csv"})
    assert tables["extracted_relationships"]["type"].to_list() == types


def test_names_in_a_cell_keep_their_apostrophes(tmp_path: Path) -> None:
    cells = [
        ("O'Brien; Jeanne d'Arc", ["O'Brien", "Jeanne d'Arc"]),
        ("""['B', "O'Neill"]""", ["B", "O'Neill"]),
        ('["Caf\\u00e9", "B, the sailor"]', ["Café", "B, the sailor"]),
        ("Smith, John|Jo", ["Smith, John", "Jo"]),
        ("Jo, Johnny", ["Jo", "Johnny"]),
        ("[]", []),
    ]
    nodes = pl.DataFrame(
        {"name": list("abcdef"), "aliases": [cell for cell, _ in cells], "row": range(6)}
    )
    nodes.write_csv(tmp_path / "nodes.csv")
    nodes.write_parquet(tmp_path / "nodes.parquet")
    write(tmp_path, edges_csv="source,target\na,b\n")
    for form in ("csv", "parquet"):
        # An own column may be called as the number of the row is.
        files = {"entities": f"nodes.{form}", "relationships": "edges.csv", "attributes": ["row"]}
        found = read(tmp_path, files)["extracted_entities"]
        assert found["aliases"].to_list() == [names for _, names in cells]
        assert found["description"].to_list() == [f"row: {number}" for number in range(6)]


def test_the_settings_name_columns_and_leave_others_unused(tmp_path: Path) -> None:
    write(
        tmp_path, nodes_csv="who,id,born\nAda,x,1901\nBo,x,\n", edges_csv="a,b,weight\nAda,Bo,-1\n"
    )
    tables = read(
        tmp_path,
        {
            "entities": "nodes.csv",
            "relationships": "edges.csv",
            "entity_columns": {"title": "who", "id": None},
            "relationship_columns": {"source": "a", "target": "b", "weight": None},
            "attributes": ["born"],
        },
    )
    assert tables["extracted_entities"].select("title", "description").rows() == [
        ("Ada", "born: 1901"),
        ("Bo", ""),
    ]
    assert tables["extracted_relationships"]["weight"].to_list() == [1.0]
    assert tables["given_ids"].is_empty()


def test_without_entities_the_ends_of_the_relationships_are_they(tmp_path: Path) -> None:
    write(tmp_path, edges_csv="source,target\nAda,Bo\nCy,ada\nBo,Ada\nBo,Bo\n")
    made = finalize(read(tmp_path, {"relationships": "edges.csv"}))
    assert made["entities"]["title"].to_list() == ["Ada", "Bo", "Cy"]
    assert made["relationships"].select("source", "target", "weight").rows() == [
        ("Ada", "Bo", 2.0),
        ("Cy", "Ada", 1.0),
    ]


def test_missing_entities_are_added_where_that_is_wanted(tmp_path: Path) -> None:
    write(tmp_path, nodes_csv="name\nAda\n", edges_csv="source,target\nAda,Bo\nCy,Bo\n")
    tables = read(
        tmp_path,
        {"entities": "nodes.csv", "relationships": "edges.csv", "add_missing_entities": True},
    )
    assert tables["extracted_entities"]["title"].to_list() == ["Ada", "Bo", "Cy"]
    assert tables["extracted_relationships"].select("source", "target").rows() == [(0, 1), (2, 1)]


def test_rows_of_one_title_are_one_entity_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(
        tmp_path,
        nodes_csv="id,name,type,description\n1,Ada,,Paints.\n2,ADA,person,Sings.\n3,Bo,,\n",
        edges_csv="source,target\n2,3\n1,3\n",
    )
    with caplog.at_level(logging.WARNING):
        tables = read(tmp_path, {"entities": "nodes.csv", "relationships": "edges.csv"})
    assert caplog.messages == [
        "nodes.csv: repeated titles become one entity: 1 in all, the first 'Ada', in the lines "
        "2 and 3."
    ]
    assert tables["extracted_entities"].select(
        "title", "type", "description", "aliases"
    ).rows() == [("Ada", "person", "Paints. Sings.", ["ADA"]), ("Bo", "", "", [])]
    made = finalize(tables)
    assert made["entities"]["id"].to_list() == ["1", "3"]
    assert made["relationships"]["weight"].to_list() == [2.0]


TEXTS = "Ada met Bo in Ghent. It rained."


def test_given_text_units_prove_what_names_them(tmp_path: Path) -> None:
    write(
        tmp_path,
        nodes_csv="name,text_unit_ids\nAda,u1;u2\nBo,\"['u1']\"\nCy,\n",
        edges_csv='source,target,description,text_unit_ids\nAda,Bo,met,"[""u1""]"\nAda,Cy,paid,\n',
        units_csv=f"id,text,document_id\nu1,{TEXTS},d1\nu2,Ada left.,d1\nu3,Alone.,\n",
        docs_csv=f"id,title,text,date\nd1,Diary,{TEXTS} Ada left.,1901-02-03\nu3,Note,,\n",
    )
    tables = read(
        tmp_path,
        {
            "entities": "nodes.csv",
            "relationships": "edges.csv",
            "text_units": "units.csv",
            "documents": "docs.csv",
        },
    )
    documents = tables["documents"]
    assert documents.select("id", "title", "path", "creation_date", "text").rows()[:2] == [
        ("d1", "Diary", "docs.csv", "1901-02-03", f"{TEXTS} Ada left."),
        ("u3", "Note", "docs.csv", "", "Alone."),
    ]
    assert documents["text"][2:].to_list() == ["Ada – Cy: paid"]
    units = tables["base_text_units"]
    assert units.select("id", "start_char", "end_char").rows()[:3] == [
        ("u1", 0, 31),
        ("u2", 32, 41),
        ("u3", 0, 6),
    ]
    texts = documents["text"].to_list()
    assert [
        (entity, unit, texts[0 if unit < 2 else unit - 1][start:end])
        for entity, unit, start, end in tables["extracted_mentions"].iter_rows()
    ] == [(0, 0, "Ada"), (1, 0, "Bo"), (0, 1, "Ada"), (0, 3, "Ada"), (2, 3, "Cy")]
    links = tables["extracted_relationships"]
    assert links["text_units"].to_list() == [[0], [3]]
    (place,) = links["evidence"][0]
    assert texts[0][place["start_char"] : place["end_char"]] == "Ada met Bo in Ghent."


def test_text_units_may_overlap_in_their_document(tmp_path: Path) -> None:
    write(
        tmp_path,
        edges_csv="source,target,text_unit_ids\nAda,Bo,u1 u2\n",
        units_csv="id,text,document_id\nu1,Ada met Bo.,d1\nu2,Bo. Bo slept.,d1\n",
        docs_csv="id,text\nd1,Ada met Bo. Bo slept.\n",
    )
    files = {"relationships": "edges.csv", "text_units": "units.csv", "documents": "docs.csv"}
    tables = read(tmp_path, files)
    assert tables["documents"]["text"].to_list() == ["Ada met Bo. Bo slept."]
    assert tables["base_text_units"].select("start_char", "end_char").rows() == [(0, 11), (8, 21)]


def test_a_long_row_is_quoted_by_its_sentences(tmp_path: Path) -> None:
    said = " ".join(f"In the year {year} Ada met Bo by the sea." for year in range(1800, 1810))
    write(tmp_path, edges_csv=f"source,target,description\nAda,Bo,{said}\n")
    tables = read(tmp_path, {"relationships": "edges.csv"})
    assert len(tables["documents"]) == 1
    assert len(tables["sentences"]) == 10


def test_what_is_written_batch_by_batch_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_graph(tmp_path, "csv")
    whole = read(tmp_path, files)
    monkeypatch.setattr(evidence, "BATCH_DOCUMENTS", 2)
    for name, frame in read(tmp_path, files).items():
        assert_frame_equal(frame, whole[name])


def test_bare_rows_are_quoted_where_no_row_says_more(tmp_path: Path) -> None:
    write(
        tmp_path,
        bare_csv="source,target\nAda,Bo\n",
        more_csv="source,target,type\nAda,Bo,\nAda,Cy,owes\n",
    )
    for name, quotable in (("bare.csv", [True]), ("more.csv", [False, True])):
        tables = read(tmp_path, {"relationships": name})
        assert tables["sentences"]["quotable"].to_list() == quotable


def test_a_long_document_of_rows_is_cut_and_each_row_is_in_its_text_units(tmp_path: Path) -> None:
    said = "word " * 30
    rows = "".join(f"Hub,N{number},{said}\n" for number in range(40))
    write(tmp_path, edges_csv=f"source,target,description\n{rows}")
    tables = read(tmp_path, {"relationships": "edges.csv", "max_tokens": 100})
    units = tables["base_text_units"]
    assert len(units) > 10
    assert units["n_tokens"].max() <= 100
    (text,) = tables["documents"]["text"]
    for row in tables["extracted_relationships"].iter_rows(named=True):
        (place,) = row["evidence"]
        line = text[place["start_char"] : place["end_char"]]
        assert line.startswith(f"Hub – N{row['target'] - 1}:")
        for number in row["text_units"]:
            unit = units.row(number, named=True)
            assert unit["start_char"] < place["end_char"]
            assert place["start_char"] < unit["end_char"]


@examples(12)
@given(st.randoms(use_true_random=False))
def test_the_order_and_repetition_of_rows_change_no_weight(
    tmp_path_factory: pytest.TempPathFactory, chance: random.Random
) -> None:
    root = tmp_path_factory.mktemp("shuffled")
    people, links = frames()
    order = chance.sample(range(len(links)), len(links))
    again = chance.randrange(len(links))
    rows = pl.concat([links[order], links[again]]).drop("id")
    # The same relationship the other way round.
    rows = rows.with_columns(
        source=pl.when(pl.int_range(pl.len()) == len(links)).then("target").otherwise("source"),
        target=pl.when(pl.int_range(pl.len()) == len(links)).then("source").otherwise("target"),
    )
    people[chance.sample(range(len(people)), len(people))].write_parquet(root / "people.parquet")
    rows.write_parquet(root / "links.parquet")
    made = finalize(read(root, {"entities": "people.parquet", "relationships": "links.parquet"}))
    titles = {identity: name for identity, name, *_ in PEOPLE}
    expected = {
        frozenset((titles[source], titles[target])): float(weight) * (1 + (number == again))
        for number, (_, source, target, weight, *_) in enumerate(LINKS)
    }
    found = made["relationships"].select("source", "target", "weight").iter_rows()
    assert {frozenset((s, t)): weight for s, t, weight in found} == expected
    assert set(made["entities"]["id"]) == set(titles)


YED = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrafting.org/xmlns"
 xmlns:y="http://www.yworks.com/xml/graphml">
<key for="node" id="d5" yfiles.type="nodegraphics"/>
<key for="edge" id="d9" yfiles.type="edgegraphics"/>
<key for="node" attr.name="description" id="d4"><default>Nothing is known.</default></key>
<graph edgedefault="directed" id="G">
<node id="n0"><data key="d5"><y:ShapeNode><y:Fill color="#FF"/><y:NodeLabel>Ada</y:NodeLabel>
</y:ShapeNode></data><data key="d4"><![CDATA[Paints & sings.]]></data>
<graph id="n0:"><node id="n0::n0"><data key="d5"><y:NodeLabel>Bo</y:NodeLabel></data></node>
</graph></node>
<edge id="e0" source="n0" target="n0::n0"><data key="d9"><y:EdgeLabel>taught</y:EdgeLabel></data>
</edge></graph></graphml>
"""


def test_labels_defaults_and_nested_graphs_of_graphml_are_read(tmp_path: Path) -> None:
    write(tmp_path, g_graphml=YED)
    tables = read(tmp_path, {"relationships": "g.graphml"})
    assert tables["extracted_entities"].select("title", "description").rows() == [
        ("Ada", "Paints & sings."),
        ("Bo", "Nothing is known."),
    ]
    assert tables["extracted_relationships"].select("source", "target", "type").rows() == [
        (0, 1, "taught")
    ]
    assert tables["given_ids"].rows() == [
        ("entities", 0, None, "n0"),
        ("entities", 1, None, "n0::n0"),
        ("relationships", 0, 1, "e0"),
    ]


def test_numbers_in_a_table_are_names_and_its_lists_are_lists(tmp_path: Path) -> None:
    pl.DataFrame({"id": [1, 2], "name": ["Ada", "Bo"], "aliases": [["A."], None]}).write_parquet(
        tmp_path / "nodes.parquet"
    )
    # As pandas has whole numbers where one is missing.
    pl.DataFrame({"source": [1.0], "target": [2.0], "weight": [3]}).write_parquet(
        tmp_path / "edges.parquet"
    )
    tables = read(tmp_path, {"entities": "nodes.parquet", "relationships": "edges.parquet"})
    assert tables["extracted_entities"].select("title", "aliases").rows() == [
        ("Ada", ["A."]),
        ("Bo", []),
    ]
    assert tables["extracted_relationships"].select("source", "target", "weight").rows() == [
        (0, 1, 3.0)
    ]

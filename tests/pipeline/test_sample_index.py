"""The rules of every table, checked on the index of the sample: Microsoft's and ours."""

import json
import re
from itertools import combinations
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from graphrag_index.llm.local.local_models import load_embedding_model
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.table_store import open_index
from graphrag_index.storage.vector_store import VectorTable
from graphrag_nlp.text.sentences import are_near_duplicates, distinctive_words, join_lines

PUBLIC = [
    *("documents", "text_units", "entities", "relationships", "communities"),
    "community_reports",
]
# The columns of Microsoft GraphRAG 3 in its order, and the Arrow types of its files.
MICROSOFT = {
    "documents": {
        **{"id": "s", "human_readable_id": "i", "title": "s", "text": "s", "text_unit_ids": "[s]"},
        **{"creation_date": "s", "raw_data": "s"},
    },
    "text_units": {
        **{"id": "s", "human_readable_id": "i", "text": "s", "n_tokens": "i", "document_id": "s"},
        **{"entity_ids": "[s]", "relationship_ids": "[s]", "covariate_ids": "[s]"},
    },
    "entities": {
        **{"id": "s", "human_readable_id": "i", "title": "s", "type": "s", "description": "s"},
        **{"text_unit_ids": "[s]", "frequency": "i", "degree": "i"},
    },
    "relationships": {
        **{"id": "s", "human_readable_id": "i", "source": "s", "target": "s", "description": "s"},
        **{"weight": "f", "combined_degree": "i", "text_unit_ids": "[s]"},
    },
    "communities": {
        **{"id": "s", "human_readable_id": "i", "community": "i", "level": "i", "parent": "i"},
        **{"children": "[i]", "title": "s", "entity_ids": "[s]", "relationship_ids": "[s]"},
        **{"text_unit_ids": "[s]", "period": "s", "size": "i"},
    },
    "community_reports": {
        **{"id": "s", "human_readable_id": "i", "community": "i", "level": "i", "parent": "i"},
        **{"children": "[i]", "title": "s", "summary": "s", "full_content": "s", "rank": "f"},
        **{"rating_explanation": "s", "findings": "[{explanation, summary}]"},
        **{"full_content_json": "s", "period": "s", "size": "i"},
    },
}
ARROW = {
    "s": "large_string",
    "i": "int64",
    "f": "double",
    "[s]": "list<element: large_string>",
    "[i]": "list<element: int64>",
    "[{explanation, summary}]": (
        "list<element: struct<explanation: large_string, summary: large_string>>"
    ),
}


@pytest.fixture(scope="module")
def output(sample_project: Path) -> Path:
    return sample_project / "output"


@pytest.fixture(scope="module")
def tables(output: Path) -> dict[str, pl.DataFrame]:
    return {name: pl.read_parquet(output / f"{name}.parquet") for name in [*PUBLIC, "mentions"]}


@pytest.mark.parametrize("name", PUBLIC)
def test_files_begin_with_microsofts_columns_and_types(output: Path, name: str) -> None:
    schema = pq.read_schema(output / f"{name}.parquet")
    expected = MICROSOFT[name]
    assert schema.names[: len(expected)] == list(expected)
    assert [str(schema.field(column).type) for column in expected] == [
        ARROW[kind] for kind in expected.values()
    ]
    assert schema.names == list(TABLES[name].columns)


@pytest.mark.parametrize("name", PUBLIC)
def test_rows_are_numbered_and_ids_unique(tables: dict[str, pl.DataFrame], name: str) -> None:
    table = tables[name]
    assert table.height > 0
    assert table["id"].n_unique() == table.height
    assert table["id"].str.contains(r"^[0-9a-f]{32}$").all()
    numbers = table["human_readable_id"].to_list()
    if name == "community_reports":
        assert numbers == table["community"].to_list()
    else:
        assert numbers == list(range(table.height))


@pytest.mark.parametrize("name", PUBLIC)
def test_only_what_may_be_missing_is_null(tables: dict[str, pl.DataFrame], name: str) -> None:
    nullable = {"raw_data", "metadata", "reading"}
    nulls = tables[name].null_count().row(0, named=True)
    assert {column for column, count in nulls.items() if count} <= nullable


def test_the_sample_has_what_it_should(tables: dict[str, pl.DataFrame]) -> None:
    documents = tables["documents"]
    assert documents.height >= 25
    assert documents["text"].str.count_matches(r"\S+").sum() >= 12_000
    suffixes = documents["path"].str.extract(r"\.(\w+)$").unique().to_list()
    assert {"md", "txt", "html", "csv", "json", "jsonl"} <= set(suffixes)


def test_text_units_are_slices_with_their_tokens(tables: dict[str, pl.DataFrame]) -> None:
    texts = dict(tables["documents"].select("id", "text").iter_rows())
    encoding = load_encoding("o200k_base")
    for unit in tables["text_units"].iter_rows(named=True):
        document = texts[unit["document_id"]]
        assert document[unit["start_char"] : unit["end_char"]] == unit["text"]
        assert unit["n_tokens"] == count_tokens(unit["text"], encoding) <= 240


def links(table: pl.DataFrame, column: str) -> set[tuple[str, str]]:
    return set(table.select("id", column).explode(column).drop_nulls().iter_rows())


def test_documents_and_text_units_name_each_other(tables: dict[str, pl.DataFrame]) -> None:
    forth = links(tables["documents"], "text_unit_ids")
    back = set(tables["text_units"].select("document_id", "id").iter_rows())
    assert forth == back


@pytest.mark.parametrize("kind", ["entities", "relationships"])
def test_entities_and_relationships_and_text_units_name_each_other(
    tables: dict[str, pl.DataFrame], kind: str
) -> None:
    column = {"entities": "entity_ids", "relationships": "relationship_ids"}[kind]
    forth = {(unit, thing) for thing, unit in links(tables[kind], "text_unit_ids")}
    assert forth == links(tables["text_units"], column) != set()


def test_frequency_and_degree_are_counts(tables: dict[str, pl.DataFrame]) -> None:
    entities, relationships = tables["entities"], tables["relationships"]
    assert (entities["frequency"] == entities["text_unit_ids"].list.len()).all()
    assert (entities["text_unit_ids"].list.n_unique() == entities["frequency"]).all()
    ends = pl.concat(
        [
            relationships.select(entity="source", other="target"),
            relationships.select(entity="target", other="source"),
        ]
    )
    neighbours = dict(ends.group_by("entity").agg(pl.col("other").n_unique()).iter_rows())
    degrees = dict(entities.select("title", "degree").iter_rows())
    assert degrees == {title: neighbours.get(title, 0) for title in degrees}
    combined = [
        degrees[source] + degrees[target]
        for source, target in relationships.select("source", "target").iter_rows()
    ]
    assert relationships["combined_degree"].to_list() == combined


def test_relationships_join_two_entities_once(tables: dict[str, pl.DataFrame]) -> None:
    titles = dict(tables["entities"].select("title", "id").iter_rows())
    assert len(titles) == tables["entities"].height
    pairs = set()
    for row in tables["relationships"].iter_rows(named=True):
        assert row["source_id"] == titles[row["source"]]
        assert row["target_id"] == titles[row["target"]]
        assert row["source"] != row["target"]
        assert 0 < row["weight"] < float("inf")
        pairs.add(frozenset((row["source"], row["target"])))
    assert len(pairs) == tables["relationships"].height


def test_descriptions_are_their_evidence(tables: dict[str, pl.DataFrame]) -> None:
    texts = dict(tables["documents"].select("id", "text").iter_rows())
    for name in ("entities", "relationships"):
        for description, evidence in tables[name].select("description", "evidence").iter_rows():
            sentences = [
                " ".join(texts[e["document_id"]][e["start_char"] : e["end_char"]].split())
                for e in evidence
            ]
            assert " ".join(sentences) == description


def test_mentions_name_their_entity_inside_of_their_text_unit(
    tables: dict[str, pl.DataFrame],
) -> None:
    units = tables["text_units"].select("document_id", "start_char", "end_char").rows()
    texts = dict(tables["documents"].select("id", "text").iter_rows())
    forms = {
        number: {title, *aliases}
        for number, title, aliases in tables["entities"]
        .select("human_readable_id", "title", "aliases")
        .iter_rows()
    }
    for entity, unit, start, end in tables["mentions"].iter_rows():
        document, first, last = units[unit]
        assert first <= start < end <= last
        assert " ".join(texts[document][start:end].split()) in forms[entity]


def test_levels_are_nested_and_all_is_covered(tables: dict[str, pl.DataFrame]) -> None:
    communities = tables["communities"]
    assert communities.select("level", "community").rows() == sorted(
        communities.select("level", "community").rows()
    )
    by_number = {row["community"]: row for row in communities.iter_rows(named=True)}
    for row in by_number.values():
        assert row["size"] == len(row["entity_ids"]) == len(set(row["entity_ids"]))
        children = [by_number[child] for child in row["children"]]
        assert all(child["parent"] == row["community"] for child in children)
        assert all(child["level"] == row["level"] + 1 for child in children)
        if children:
            members = [member for child in children for member in child["entity_ids"]]
            assert sorted(members) == sorted(row["entity_ids"])
        assert (row["parent"] == -1) == (row["level"] == 0)
    top = communities.filter(level=0)["entity_ids"].explode()
    assert sorted(top) == sorted(tables["entities"]["id"])


def test_every_document_belongs_to_a_community(tables: dict[str, pl.DataFrame]) -> None:
    document_of = dict(tables["text_units"].select("id", "document_id").iter_rows())
    named = tables["communities"].filter(level=0)["text_unit_ids"].explode()
    assert {document_of[unit] for unit in named} == set(tables["documents"]["id"])


def test_communities_hold_the_relationships_between_their_members(
    tables: dict[str, pl.DataFrame],
) -> None:
    ends = tables["relationships"].select("id", "source_id", "target_id").rows()
    for row in tables["communities"].iter_rows(named=True):
        members = set(row["entity_ids"])
        inside = sorted(id for id, a, b in ends if a in members and b in members)
        assert row["relationship_ids"] == inside


def test_every_community_has_a_report_deepest_first(tables: dict[str, pl.DataFrame]) -> None:
    communities, reports = tables["communities"], tables["community_reports"]
    order = [(-level, number) for level, number in reports.select("level", "community").rows()]
    assert order == sorted(order)
    copied = ["community", "level", "parent", "children", "period", "size"]
    assert reports.sort("community").select(copied).rows() == communities.select(copied).rows()


CITATION = re.compile(
    # The first sentence of a document mentions none of the entities of some reports.
    r"\[Data: (?:Entities \((?P<entities>[^)]*)\)"
    r"(?:; Relationships \((?P<relationships>[^)]*)\))?; )?Sources \((?P<source>\d+)\)\]"
)


def test_reports_quote_whole_sentences_with_citations_that_resolve(
    tables: dict[str, pl.DataFrame],
) -> None:
    units = tables["text_units"]["text"].to_list()
    relationships = tables["relationships"].select("source_id", "target_id").rows()
    ids = tables["entities"]["id"].to_list()
    members = dict(tables["communities"].select("community", "entity_ids").iter_rows())
    n_citations = n_without_entities = 0
    for report in tables["community_reports"].iter_rows(named=True):
        parts = [report["summary"], *(f["explanation"] for f in report["findings"])]
        assert report["full_content"] == "\n\n".join(
            [
                f"# {report['title']}",
                report["summary"],
                *(f"## {f['summary']}\n\n{f['explanation']}" for f in report["findings"]),
            ]
        )
        said = set()
        for part in parts:
            start = 0
            for match in CITATION.finditer(part):
                sentence = part[start : match.start()].strip()
                start = match.end()
                assert sentence not in said
                said.add(sentence)
                assert sentence[-1] in '.!?"”'
                assert " ".join(units[int(match["source"])].split()).count(sentence)
                inside = set(members[report["community"]])
                for number in re.findall(r"\d+", match["entities"] or ""):
                    assert ids[int(number)] in inside
                for number in re.findall(r"\d+", match["relationships"] or ""):
                    assert inside.issuperset(relationships[int(number)])
                n_citations += 1
                n_without_entities += match["entities"] is None
    assert n_citations > 100
    assert n_without_entities < n_citations / 20


def test_report_json_says_what_the_columns_say(tables: dict[str, pl.DataFrame]) -> None:
    for report in tables["community_reports"].iter_rows(named=True):
        content = json.loads(report["full_content_json"])
        assert list(content) == ["title", "summary", "findings", "rating", "rating_explanation"]
        assert content["title"] == report["title"]
        assert content["rating"] == report["rank"]
        assert 0 <= report["rank"] <= 10
        assert content["findings"] == [
            {"summary": f["summary"], "explanation": f["explanation"]} for f in report["findings"]
        ]
        assert report["full_content_json"] == json.dumps(content, ensure_ascii=False, indent=4)


def test_communities_are_visibly_apart_in_the_drawing(tables: dict[str, pl.DataFrame]) -> None:
    entities = tables["entities"]
    place = {id: (x, y) for id, x, y in entities.select("id", "x", "y").iter_rows()}
    assert all(-1.001 <= c <= 1.001 for xy in place.values() for c in xy)
    home = {
        member: row["community"]
        for row in tables["communities"].filter(level=0, island=False).iter_rows(named=True)
        for member in row["entity_ids"]
    }
    nearest_is_own = 0
    for member, community in home.items():
        x, y = place[member]
        nearest = min(
            (other for other in home if other != member),
            key=lambda other: (place[other][0] - x) ** 2 + (place[other][1] - y) ** 2,
        )
        nearest_is_own += home[nearest] == community
    assert nearest_is_own >= 0.9 * len(home)


@pytest.mark.parametrize(
    ("vectors", "table", "text"),
    [
        ("text_unit_text", "text_units", pl.col("text")),
        ("entity_description", "entities", pl.col("title") + ":" + pl.col("description")),
        ("community_full_content", "community_reports", pl.col("full_content")),
    ],
)
def test_vectors_belong_to_their_rows(
    output: Path, tables: dict[str, pl.DataFrame], vectors: str, table: str, text: pl.Expr
) -> None:
    _, version = open_index(output)
    opened = VectorTable.open(output / "lancedb", vectors, version.tables[vectors].lance_version)
    rows = opened.lazy().collect()
    assert opened.dimension == load_embedding_model("static").dimension
    assert rows["id"].to_list() == tables[table]["id"].to_list()
    assert rows["text"].to_list() == tables[table].select(text).to_series().to_list()
    lengths = rows["vector"].cast(pl.List(pl.Float64)).list.eval(pl.element() ** 2).list.sum()
    assert ((lengths - 1).abs() < 1e-5).all()


def test_statistics_tell_what_each_step_cost(output: Path) -> None:
    statistics = json.loads((output / "stats.json").read_text(encoding="utf-8"))
    assert list(statistics["steps"]) == [
        *("load_documents", "create_text_units", "extract_graph_nlp", "resolve_entities"),
        *("finalize_graph", "create_communities", "link_text_units"),
        "create_community_reports_nlp",
        *("generate_text_embeddings", "create_search_tables"),
    ]
    for step in statistics["steps"].values():
        assert step["rows"]
        assert step["seconds"] >= 0
        assert step["cpu_seconds"] >= 0
        assert step["peak_memory_bytes"] is None or step["peak_memory_bytes"] > 10_000_000


def test_titles_and_headings_of_reports_are_told_apart(tables: dict[str, pl.DataFrame]) -> None:
    reports = tables["community_reports"]
    assert reports["title"].is_unique().all()
    for title, findings in reports.select("title", "findings").iter_rows():
        headings = [finding["summary"] for finding in findings]
        assert len({title, *headings}) == 1 + len(headings)


def test_statements_of_reports_have_the_spans_of_their_sentences(
    tables: dict[str, pl.DataFrame],
) -> None:
    texts = dict(tables["documents"].select("id", "text").iter_rows())
    units = {row["id"]: row for row in tables["text_units"].iter_rows(named=True)}
    n_several = 0
    for report in tables["community_reports"].iter_rows(named=True):
        parts = {None: report["summary"]} | dict(enumerate(report["findings"]))
        for said in report["statements"]:
            part = parts[said["finding"]]
            assert said["text"] in (part if isinstance(part, str) else part["explanation"])
            unit = units[said["text_unit_id"]]
            assert unit["document_id"] == said["document_id"]
            assert unit["start_char"] <= said["start_char"] < unit["end_char"]
            n_several += said["n_documents"] > 1
        for said in {one["statement"]: one for one in reversed(report["statements"])}.values():
            span = texts[said["document_id"]][said["start_char"] : said["end_char"]]
            assert said["text"] in join_lines(span)
    assert n_several


def test_no_report_says_a_sentence_twice(tables: dict[str, pl.DataFrame]) -> None:
    cited = re.compile(r"\s*\[Data: [^\]]*\]\s*")
    for content in tables["community_reports"]["full_content"]:
        parts = [part for part in content.split("\n\n") if not part.startswith("#")]
        said = [distinctive_words(text) for part in parts for text in cited.split(part) if text]
        assert not any(are_near_duplicates(one, other) for one, other in combinations(said, 2))

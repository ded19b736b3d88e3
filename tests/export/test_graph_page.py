import math
import tempfile
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.errors import TableError
from graphrag_index.export.graph_page import write_page
from tests.fixtures.examples import examples
from tests.fixtures.page_parser import HOSTILE, Page
from tests.fixtures.small_index import table, write_index


def draw(output: Path, **limits: int) -> Page:
    file = output / "page" / "graph.html"
    write_page(output, file, **limits)
    return Page(file.read_text(encoding="utf-8"))


def entity(number: int, **columns: object) -> dict[str, object]:
    return {"id": f"e{number}", "human_readable_id": number, "title": f"Entity {number}", **columns}


def relationship(number: int, source: int, target: int, weight: float) -> dict[str, object]:
    return {
        "human_readable_id": number,
        "source_id": f"e{source}",
        "target_id": f"e{target}",
        "weight": weight,
        "description": f"{source} met {target}.",
    }


@pytest.fixture
def expedition(tmp_path: Path) -> Path:
    """Three entities in a community that is split, and one entity outside of any link."""
    return write_index(
        tmp_path,
        documents=table(
            "documents",
            *({"id": f"d{n}", "human_readable_id": n, "title": f"Document {n}"} for n in range(3)),
        ),
        text_units=table(
            "text_units",
            {"id": "t0", "document_id": "d2"},
            {"id": "t1", "document_id": "d1"},
            {"id": "t2", "document_id": "d1"},
        ),
        entities=table(
            "entities",
            entity(0, degree=1, x=0.1, y=0.2, text_unit_ids=["t0", "t1", "t2"], aliases=["Zero"]),
            entity(1, degree=2, x=0.3, y=0.4, type="person", description="About 1."),
            entity(2, degree=1, x=0.5, y=0.6),
            entity(3, degree=0, x=0.7, y=0.8),
        ),
        relationships=table(
            "relationships", relationship(0, 0, 1, 0.5), relationship(1, 2, 1, 12.34567)
        ),
        communities=table(
            "communities",
            {"community": 7, "parent": -1, "size": 3, "entity_ids": ["e0", "e1", "e2"]},
            {"community": 8, "parent": -1, "size": 1, "island": True, "entity_ids": ["e3"]},
            {"community": 9, "level": 1, "parent": 7, "size": 2, "entity_ids": ["e1", "e2"]},
        ),
        community_reports=table(
            "community_reports", {"community": 9, "title": "Ships", "summary": "They sail."}
        ),
    )


def test_entities_come_with_most_neighbours_first_and_relationships_with_the_strongest(expedition):
    data = draw(expedition).data
    assert data["entities"]["number"] == [1, 0, 2, 3]
    assert data["entities"]["x"] == [0.3, 0.1, 0.5, 0.7]
    assert data["entities"]["type"] == ["person", "", "", ""]
    assert data["entities"]["description"] == ["About 1.", "", "", ""]
    assert data["entities"]["aliases"] == [[], ["Zero"], [], []]
    # Ends are rows of the entities in the page.
    assert data["relationships"] == {
        "source": [2, 1],
        "target": [0, 0],
        "weight": [12.35, 0.5],
        "sentence": [0, 1],
    }
    assert data["sentences"] == ["2 met 1.", "0 met 1."]


def test_entities_of_a_theme_are_drawn_together_whatever_their_positions(tmp_path):
    parts = [{"e0", "e1"}, {"e2", "e3"}, {"e4", "e5"}, {"e6", "e7"}]
    themes = [parts[0] | parts[2], parts[1] | parts[3]]
    rows = [
        {"community": n, "level": level, "theme": level == 0, "size": len(ids), "parent": -1}
        | {"entity_ids": sorted(ids)}
        for n, (level, ids) in enumerate(
            [*((0, ids) for ids in themes), *((1, ids) for ids in parts)]
        )
    ]
    page = write_index(
        tmp_path,
        documents=table("documents"),
        text_units=table("text_units"),
        entities=table("entities", *(entity(n, degree=1, x=0.0, y=0.0) for n in range(8))),
        relationships=table("relationships", *(relationship(n, n, n + 1, 1) for n in (0, 2, 4, 6))),
        communities=table("communities", *rows),
        community_reports=table("community_reports"),
    )
    drawn = draw(page).data["entities"]
    place = dict(zip(drawn["number"], zip(drawn["x"], drawn["y"], strict=True), strict=True))
    apart = {
        (one, other): math.dist(place[one], place[other])
        for one in range(8)
        for other in range(one)
    }
    same = [{int(id[1:]) for id in ids} for ids in themes]
    inside = [gap for pair, gap in apart.items() if any(set(pair) <= ids for ids in same)]
    across = [gap for pair, gap in apart.items() if not any(set(pair) <= ids for ids in same)]
    assert sum(inside) / len(inside) < sum(across) / len(across)
    assert min(apart.values()) > 0


def test_each_entity_names_its_deepest_community_and_each_community_its_parent(expedition):
    data = draw(expedition).data
    assert data["communities"]["number"] == [7, 8, 9]
    assert data["communities"]["level"] == [0, 0, 1]
    assert data["communities"]["parent"] == [-1, -1, 0]
    assert data["communities"]["title"] == ["", "", "Ships"]
    assert data["communities"]["summary"] == ["", "", "They sail."]
    assert data["communities"]["island"] == [False, True, False]
    assert data["entities"]["community"] == [2, 0, 2, 1]


def test_each_entity_names_the_documents_that_mention_it_most_often_first(expedition):
    data = draw(expedition).data
    assert data["documents"]["title"] == ["Document 1", "Document 2"]
    assert data["entities"]["documents"] == [[], [[0, 2], [1, 1]], [], []]
    assert data["entities"]["n_documents"] == [0, 2, 0, 0]


def test_the_table_serves_those_who_cannot_see_the_drawing(expedition):
    page = draw(expedition)
    assert page.cells[:8] == ["Entity 1", "person", "2", "0", "Entity 0", "", "1", "0"]
    assert "4 entities, 2 relationships, 3 communities on all levels, 3 documents" in page.text
    assert "Drawn:" not in page.text


def test_of_a_large_graph_the_main_part_is_drawn_and_the_page_says_so(expedition):
    page = draw(expedition, max_entities=3, max_relationships=1)
    assert page.data["entities"]["number"] == [1, 0, 2]
    assert page.data["relationships"]["weight"] == [12.35]
    assert page.data["communities"]["number"] == [7, 9]
    assert "the 3 entities with the most neighbours and the 1 strongest" in page.text

    page = draw(expedition, max_relationships=1)
    assert page.data["relationships"]["weight"] == [12.35]
    assert "Drawn: the 1 strongest relationships." in page.text


def test_nothing_in_a_name_becomes_markup(tmp_path):
    plain, hostile = (
        write_index(
            tmp_path / name,
            documents=table("documents", {"id": "d", "title": text, "path": text}),
            text_units=table("text_units", {"id": "t", "document_id": "d"}),
            entities=table(
                "entities",
                entity(0, title=text, type=text, description=text, aliases=[text]),
                entity(1, title=text, text_unit_ids=["t"]),
            ),
            relationships=table(
                "relationships", {**relationship(0, 0, 1, 1.0), "description": text}
            ),
            communities=table("communities", {"title": text, "entity_ids": ["e0", "e1"]}),
            community_reports=table("community_reports", {"title": text, "summary": text}),
        )
        for name, text in (("plain", "Fram"), ("hostile", HOSTILE))
    )
    page = draw(hostile)
    assert page.tags == draw(plain).tags
    assert len(page.scripts) == 2
    assert page.cells[0] == HOSTILE
    data = page.data
    assert data["entities"]["title"] == [HOSTILE, HOSTILE]
    assert data["entities"]["description"] == [HOSTILE, ""]
    assert data["sentences"] == [HOSTILE]
    assert data["communities"]["summary"] == [HOSTILE]
    assert data["documents"] == {"title": [HOSTILE], "path": [HOSTILE]}


@examples(25)
@given(st.lists(st.text(), min_size=1, max_size=4))
def test_every_name_arrives_as_it_is(names):
    with tempfile.TemporaryDirectory() as folder:
        rows = [entity(n, title=name) for n, name in enumerate(names)]
        page = draw(write_index(Path(folder), entities=table("entities", *rows)))
    assert page.data["entities"]["title"] == names
    assert page.tags.count("script") == 2
    assert "img" not in page.tags


def test_the_page_needs_nothing_but_itself_and_runs_nothing_but_its_program(expedition):
    page = draw(expedition)
    links = {value for name, value in page.attributes if name in ("src", "href")}
    assert all(str(link).startswith(("#", "data:")) for link in links)
    digest = b64encode(sha256(page.scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page.policy
    assert page.policy.startswith("default-src 'none'")


def test_one_entity_without_relationships_communities_or_layout_is_drawn(tmp_path):
    write_index(tmp_path, entities=table("entities", entity(0, x=None, y=None)))
    data = draw(tmp_path).data
    assert data["entities"]["title"] == ["Entity 0"]
    assert data["entities"]["community"] == [-1]
    assert (data["entities"]["x"], data["entities"]["y"]) == ([0.0], [0.0])


def test_entities_without_a_layout_get_one(tmp_path):
    write_index(
        tmp_path,
        entities=table("entities", *(entity(n, x=None, y=None) for n in range(6))),
        relationships=table("relationships", *(relationship(n, n, n + 1, 1.0) for n in range(5))),
    )
    entities = draw(tmp_path).data["entities"]
    places = set(zip(entities["x"], entities["y"], strict=True))
    assert len(places) == 6
    assert all(-1 <= x <= 1 and -1 <= y <= 1 for x, y in places)


def test_long_texts_are_cut(tmp_path):
    write_index(tmp_path, entities=table("entities", entity(0, description="x" * 601)))
    assert draw(tmp_path).data["entities"]["description"] == ["x" * 599 + "…"]


def test_the_same_index_gives_the_same_page(expedition):
    pages = [expedition / "first.html", expedition / "second.html"]
    for page in pages:
        write_page(expedition, page)
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_a_page_that_cannot_be_finished_leaves_the_old_one(tmp_path):
    file = tmp_path / "graph.html"
    file.write_text("the old page", encoding="utf-8")
    # JSON has no such number, which shows only when half of the page is written.
    broken = table("entities", entity(0)).with_columns(x=pl.lit(float("nan")))
    write_index(tmp_path / "output", entities=broken)
    with pytest.raises(ValueError):
        write_page(tmp_path / "output", file)
    assert file.read_text(encoding="utf-8") == "the old page"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["graph.html"]


@pytest.mark.parametrize(
    ("tables", "message"), [({}, "has no entities to draw"), (None, "run `graphrag-index run`")]
)
def test_where_nothing_can_be_drawn_it_says_so_in_a_sentence(tmp_path, tables, message):
    if tables is not None:
        write_index(tmp_path, **tables)
    with pytest.raises(TableError, match=message):
        draw(tmp_path)

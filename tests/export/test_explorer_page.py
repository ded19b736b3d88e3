import gzip
import json
import re
import runpy
from base64 import b64decode, b64encode
from graphlib import TopologicalSorter
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_index.errors import TableError
from graphrag_index.export.explorer_page import PartLimits, embed_index, write_page
from graphrag_index.storage.table_store import open_index
from tests.conftest import REPOSITORY
from tests.fixtures.page_parser import HOSTILE, Page
from tests.fixtures.small_index import table, write_index

WHOLE = PartLimits(entities=100, relationships=100, characters=1000)
TEXTS = {"d0": "Fram sailed. 🚢 Nansen sailed.", "d1": "Nobody sailed."}
PAGE = files("graphrag_index.export").joinpath("explorer.html").read_text(encoding="utf-8")


def span(start: int, end: int, document: str = "d0") -> dict[str, object]:
    return {"document_id": document, "start_char": start, "end_char": end}


def entity(number: int, **columns: object) -> dict[str, object]:
    return {"id": f"e{number}", "human_readable_id": number, "title": f"Entity {number}", **columns}


def write_expedition(output: Path, name: str = "Fram") -> Path:
    """Write two entities in a community of a theme, and one entity beside them."""
    return write_index(
        output,
        documents=table(
            "documents",
            *(
                {"id": key, "human_readable_id": at, "title": name, "text": text}
                for at, (key, text) in enumerate(TEXTS.items())
            ),
        ),
        text_units=table(
            "text_units",
            {"id": "t0", "document_id": "d0", "start_char": 0, "end_char": 29},
            {"id": "t1", "human_readable_id": 1, "document_id": "d1", "end_char": 14},
        ),
        mentions=table("mentions", {"entity": 7, "text_unit": 0, "start_char": 0, "end_char": 4}),
        entities=table(
            "entities",
            entity(7, title=name, degree=2, text_unit_ids=["t0"], evidence=[span(0, 12)]),
            entity(8, degree=1, text_unit_ids=["t0", "t1"]),
            entity(9, degree=0),
        ),
        relationships=table(
            "relationships",
            {"source_id": "e7", "target_id": "e8", "weight": 2.0, "evidence": [span(13, 29)]},
            {"human_readable_id": 1, "source_id": "e8", "target_id": "e9", "weight": 1.0},
        ),
        communities=table(
            "communities",
            {"community": 4, "parent": -1, "size": 3, "entity_ids": ["e7", "e8", "e9"]},
            {"community": 5, "level": 1, "parent": 4, "size": 2, "entity_ids": ["e7", "e8"]},
        ),
        community_reports=table(
            "community_reports", {"community": 5, "title": name, "full_content": "They sail."}
        ),
    )


def embed(output: Path, limits: PartLimits = WHOLE) -> dict[str, Any]:
    tables: dict[str, Any] = embed_index(*open_index(output), limits)["tables"]
    return tables


def read_data(page: Page) -> Any:
    return json.loads(gzip.decompress(b64decode(page.scripts[-1])))


def test_rows_keep_their_numbers_and_refer_to_documents_and_text_units_by_number(tmp_path):
    tables = embed(write_expedition(tmp_path))
    assert tables["entities"]["number"] == [7, 8, 9]
    assert tables["entities"]["evidence"] == [[[0, 0, 12]], [], []]
    assert tables["relationships"]["source"] == [7, 8]
    assert tables["relationships"]["evidence"] == [[[0, 13, 29]], []]
    assert tables["relationships"]["stated"] == [True, False]
    assert tables["documents"]["text"] == list(TEXTS.values())
    assert tables["text_units"]["document"] == [0, 1]
    assert tables["mentions"]["entity"] == [7]


def test_an_index_without_a_map_gets_places_in_discs_inside_discs(tmp_path):
    tables = embed(write_expedition(tmp_path))
    assert tables["entities"]["community"] == [5, 5, 4]
    discs = tables["communities"]
    assert discs["parent"] == [-1, 4]
    assert discs["title"] == ["", "Fram"]
    places = zip(discs["x"], discs["y"], discs["radius"], strict=True)
    assert all((x**2 + y**2) ** 0.5 + radius <= 1.001 for x, y, radius in places)


def test_of_a_large_index_the_entities_with_most_neighbours_are_embedded(tmp_path):
    limits = PartLimits(entities=2, relationships=5, characters=29)
    tables = embed(write_expedition(tmp_path), limits)
    assert tables["entities"]["number"] == [7, 8]
    assert tables["relationships"]["number"] == [0]
    # The text of the document that names most of them fits into the limit.
    assert tables["documents"]["number"] == [0]
    assert tables["text_units"]["number"] == [0]
    assert embed_index(*open_index(tmp_path), limits)["rows"]["entities"] == 3


def test_a_text_that_is_too_long_alone_leaves_room_for_the_others(tmp_path):
    # The document that names most entities has 29 characters, the other one 14.
    limits = PartLimits(entities=3, relationships=5, characters=20)
    tables = embed(write_expedition(tmp_path), limits)
    assert tables["documents"]["number"] == [1]
    assert tables["text_units"]["number"] == [1]


def test_what_the_page_holds_is_told(tmp_path):
    told = write_page(write_expedition(tmp_path / "output"), tmp_path / "page.html", name="Fram")
    assert told == "3 of 3 entities, the texts of 2 of 2 documents"


def test_the_page_is_no_larger_than_its_limit_if_less_can_be_embedded(tmp_path):
    write_expedition(tmp_path / "output")
    text = "".join(sha256(str(n).encode()).hexdigest() for n in range(9_000))
    long = table("documents", {"id": "d0", "text": text}, {"id": "d1", "text": "short"})
    write_index(tmp_path / "large", documents=long, entities=table("entities", entity(0)))
    for name in ("output", "large"):
        write_page(tmp_path / name, tmp_path / f"{name}.html", name="Fram")
    small = (tmp_path / "output.html").stat().st_size
    write_page(tmp_path / "large", tmp_path / "cut.html", name="Fram", max_bytes=small + 2_000)
    assert (tmp_path / "large.html").stat().st_size > small + 2_000
    assert (tmp_path / "cut.html").stat().st_size <= small + 2_000


def test_nothing_in_a_name_becomes_markup_and_only_the_program_runs(tmp_path):
    pages = []
    for name in ("Fram", HOSTILE):
        file = tmp_path / "page.html"
        write_page(write_expedition(tmp_path / str(len(pages)), name), file, name=name)
        pages.append(Page(file.read_text(encoding="utf-8")))
    plain, hostile = pages
    assert hostile.tags == plain.tags
    assert read_data(hostile)["name"] == HOSTILE
    assert read_data(hostile)["tables"]["entities"]["title"][0] == HOSTILE
    digest = b64encode(sha256(hostile.scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in hostile.policy
    assert "connect-src 'none'" in hostile.policy


def test_the_same_index_gives_the_same_page(tmp_path):
    write_expedition(tmp_path / "output")
    pages = [tmp_path / "first.html", tmp_path / "second.html"]
    for page in pages:
        write_page(tmp_path / "output", page, name="Fram")
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_a_page_that_cannot_be_finished_leaves_the_old_one(tmp_path):
    file = tmp_path / "page.html"
    file.write_text("the old page", encoding="utf-8")
    # JSON has no such number.
    broken = table("relationships", {"source_id": "e0", "target_id": "e0"})
    broken = broken.with_columns(weight=pl.lit(float("nan")))
    write_index(tmp_path / "output", entities=table("entities", entity(0)), relationships=broken)
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_page(tmp_path / "output", file, name="Fram")
    assert file.read_text(encoding="utf-8") == "the old page"


@pytest.mark.parametrize(
    ("tables", "message"), [({}, "has no entities to draw"), (None, "run `graphrag-index run`")]
)
def test_where_nothing_can_be_drawn_it_says_so_in_a_sentence(tmp_path, tables, message):
    if tables is not None:
        write_index(tmp_path, **tables)
    with pytest.raises(TableError, match=message):
        write_page(tmp_path, tmp_path / "page.html", name="Fram")


def test_the_built_file_is_that_of_the_sources() -> None:
    digest = runpy.run_path(str(REPOSITORY / "explorer" / "digest.py"))["digest_sources"]()
    assert f'<meta name="source-digest" content="{digest}">' in PAGE, "run explorer/build"


def test_the_sources_import_in_one_direction() -> None:
    sources = REPOSITORY / "explorer" / "src"
    imports = {
        file: {
            found
            for name in re.findall(r'^(?:im|ex)port [^;]*?"(\.[^"]+)";$', file.read_text(), re.M)
            for found in [(file.parent / f"{name}{suffix}").resolve() for suffix in (".ts", ".tsx")]
            if found.is_file()
        }
        for file in sources.rglob("*.ts*")
    }
    assert sum(map(len, imports.values())) > 200
    list(TopologicalSorter(imports).static_order())  # raises CycleError


def test_the_page_is_small_and_loads_nothing() -> None:
    assert len(PAGE.encode()) < 450_000
    assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(?!data:)', PAGE)

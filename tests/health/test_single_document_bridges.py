"""Documents that alone join two parts of a graph."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.health.checked_index import CheckedIndex, Finding, open_for_check
from graphrag_index.health.checks import check_index
from graphrag_index.health.single_document_bridges import (
    Links,
    find_bridges,
    find_single_document_bridges,
)
from graphrag_index.schema.settings.health import Check
from graphrag_index.schema.tables import TABLES
from tests.conftest import copy_project, run_project

# Two triangles, each pair of which two documents name.
TRIANGLES = dict.fromkeys(("ab", "bc", "ac", "de", "ef", "df"), "xy")


def find(links: dict[str, str], min_entities: int = 3) -> list[Finding]:
    """Return the findings of a graph: pairs of entities with the letters of their documents."""
    return list(find_single_document_bridges(make_index(links), min_entities).findings)


def make_index(links: dict[str, str], *, has_ids: bool = True) -> CheckedIndex:
    entities = sorted({name for pair in links for name in pair})
    documents = sorted({name for named in links.values() for name in named})
    ids = ["source_id", "target_id"] if has_ids else []
    rows: dict[str, list[dict[str, object]]] = {
        "entities": [{"id": name, "title": name} for name in entities],
        "documents": [{"id": name, "title": f"Letter {name}"} for name in documents],
        "text_units": [{"id": f"u{name}", "document_id": name} for name in documents],
        "relationships": [
            {
                "source": pair[0],
                "target": pair[1],
                **dict(zip(ids, pair, strict=False)),
                "text_unit_ids": [f"u{name}" for name in named],
            }
            for pair, named in links.items()
        ],
    }
    frames = {
        name: pl.DataFrame(
            values, {key: TABLES[name].columns[key] for row in values for key in row}
        ).lazy()
        for name, values in rows.items()
    }
    return CheckedIndex(Path("literal"), "a test", None, frames)


@pytest.mark.parametrize("has_ids", [True, False])
def test_a_bridge_of_one_document_is_found(has_ids: bool) -> None:
    index = make_index({**TRIANGLES, "cd": "z"}, has_ids=has_ids)
    result = find_single_document_bridges(index, 3)
    (finding,) = result.findings
    assert (result.of, finding.count, finding.table) == (3, 1, "relationships")
    assert finding.examples == ("Letter z: c – d; joins 3 entities to 3",)
    assert "1 of 3 documents alone join two parts of the graph, of at least 3 ent" in finding.means


@pytest.mark.parametrize(
    ("more", "count"),
    [
        pytest.param({}, 0, id="no join"),
        pytest.param({"cd": "xz"}, 0, id="a bridge of two documents"),
        pytest.param({"cd": "z", "be": "w"}, 0, id="two bridges of two documents"),
        pytest.param({"cd": "z", "be": "z"}, 1, id="two bridges of one document"),
        pytest.param({"cg": "z", "gd": "z"}, 1, id="a bridge over an entity of the document"),
        pytest.param({"cg": "z", "gd": "w"}, 2, id="a path of two documents"),
        pytest.param({"cd": "z", "gh": "w", "dc": "w"}, 0, id="the same two in both directions"),
        pytest.param({"cg": "z", "gh": "z", "hi": "z"}, 0, id="a part of one document"),
    ],
)
def test_only_what_one_document_alone_joins_is_found(more: dict[str, str], count: int) -> None:
    assert sum(finding.count for finding in find({**TRIANGLES, **more})) == count


def test_small_parts_do_not_count() -> None:
    assert find({**TRIANGLES, "cd": "z"}, 4) == []


def test_a_relationship_between_large_parts_is_the_example() -> None:
    (finding,) = find({**TRIANGLES, "ag": "z", "cd": "z"})
    assert finding.examples == ("Letter z: c – d; joins 3 entities to 3",)


def test_relationships_without_known_documents_are_no_bridges() -> None:
    index = make_index({**TRIANGLES, "cd": "z"})
    index.tables["text_units"] = index.tables["text_units"].filter(pl.col("id") != "uz")
    assert find_single_document_bridges(index, 3).count == 0
    bare = CheckedIndex(Path("bare"), "a test", None, {"entities": index.tables["entities"]})
    assert find_single_document_bridges(bare, 3).of is None


def test_an_index_without_relationships_has_no_bridges() -> None:
    index = make_index({"ab": "x"})
    empty = {name: rows.clear() for name, rows in index.tables.items()}
    result = find_single_document_bridges(CheckedIndex(Path("empty"), "", None, empty), 3)
    assert (result.of, result.count) == (0, 0)


def test_titles_that_repeat_are_one_entity() -> None:
    # Microsoft GraphRAG has an entity for each title and type.
    index = make_index({**TRIANGLES, "cd": "z"}, has_ids=False)
    again = index.tables["entities"].filter(pl.col("id") == "a").with_columns(id=pl.lit("a2"))
    index.tables["entities"] = pl.concat([index.tables["entities"], again])
    assert find_single_document_bridges(index, 3).count == 1


def test_the_sample_has_no_bridge_of_ten_entities(sample_project: Path) -> None:
    index = open_for_check(sample_project / "output")
    assert find_single_document_bridges(index, 10).count == 0
    assert find_single_document_bridges(index, 1).of == 63


N_ENTITIES = 9
LINKS = st.lists(
    st.tuples(st.integers(0, N_ENTITIES - 1), st.integers(0, N_ENTITIES - 1), st.integers(-1, 6)),
    max_size=24,
    unique_by=lambda link: (min(link[:2]), max(link[:2])),
)


def make_links(links: list[tuple[int, int, int]]) -> Links:
    """Return pairs of entities with their document; loops are left out."""
    rows = np.array([link for link in links if link[0] != link[1]], np.int64).reshape(-1, 3)
    return Links(rows[:, 0], rows[:, 1], rows[:, 2], np.arange(len(rows)))


def merge(parts: list[set[int]], pairs: list[tuple[int, int]]) -> list[set[int]]:
    """Merge the parts that the pairs join."""
    for pair in pairs:
        touched = [part for part in parts if part & {*pair}]
        parts = [part for part in parts if not part & {*pair}] + [set().union(*touched)]
    return parts


@given(LINKS, st.integers(1, 4))
def test_bridges_are_those_of_each_document_in_turn(
    links: list[tuple[int, int, int]], min_entities: int
) -> None:
    expected: dict[int, tuple[int, int]] = {}
    for document in range(7):
        others = [link[:2] for link in links if link[2] != document]
        parts = merge([{entity} for entity in range(N_ENTITIES)], others)
        whole = merge(parts, [link[:2] for link in links])
        for joined in whole:
            sizes = sorted(len(part) for part in parts if part <= joined)
            if len(sizes) > 1 and sizes[-2] >= min_entities:
                best = max(expected.get(document, (0, 0)), (sizes[-2], sizes[-1]))
                expected[document] = best
    links = [link for link in links if link[0] != link[1]]
    found = find_bridges(N_ENTITIES, make_links(links), min_entities)
    assert {bridge.document: bridge.size for bridge in found} == {
        document: size for document, (size, _) in expected.items()
    }
    for bridge in found:
        assert links[bridge.link][2] == bridge.document
    assert [bridge.size for bridge in found] == sorted(
        (bridge.size for bridge in found), reverse=True
    )


def test_many_documents_are_halved_down_to_each() -> None:
    # A path of 1,000 entities, each link of a document of its own.
    links = make_links([(at, at + 1, at) for at in range(999)])
    found = find_bridges(1_000, links, 100)
    assert {bridge.document for bridge in found} == set(range(99, 900))
    assert found[0].size == found[0].other_size == 500
    assert found[0].link == 499


def test_a_planted_document_is_named(tmp_path: Path) -> None:
    root = copy_project(tmp_path / "project")
    shutil.rmtree(root / "input")
    (root / "input").mkdir()
    texts = {
        "harbour": "Anna Keller met Boris Petrov in Hamburg. Boris Petrov wrote to Anna Keller.",
        "harbour again": "In Hamburg, Anna Keller and Boris Petrov bought a boat.",
        "vineyard": "Elena Rossi met Daniel Ortiz in Madrid. Daniel Ortiz wrote to Elena Rossi.",
        "vineyard again": "In Madrid, Elena Rossi and Daniel Ortiz sold wine.",
    }
    for name, text in texts.items():
        (root / "input" / f"{name}.txt").write_text(text, encoding="utf-8")
    limits = Check(bridged_entities=3, max_single_document_bridges=0.0)
    run_project(root)
    assert not check_index(open_for_check(root), limits).failed
    planted = "Anna Keller paid Daniel Ortiz."
    (root / "input" / "planted.txt").write_text(planted, encoding="utf-8")
    run_project(root)
    health = check_index(open_for_check(root), limits)
    assert health.failed
    (outcome,) = (one for one in health.outcomes if one.name == "single_document_bridges")
    assert outcome.result.findings[0].examples == (
        "planted.txt: Anna Keller – Daniel Ortiz; joins 3 entities to 3",
    )

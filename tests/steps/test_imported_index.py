"""The steps that put new documents behind an imported index, on tables written by hand."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_index.errors import WorkflowError
from graphrag_index.microsoft.import_folder import ImportedIndex, open_source, write_imported
from graphrag_index.microsoft.import_merge import ImportMerge
from graphrag_index.pipeline.import_version import add_merge_steps, replace_workflow
from graphrag_index.schema.tables import TABLES
from graphrag_index.steps.imported_index import skip_imported
from tests.fixtures.microsoft_index import TEXTS, version_3, write
from tests.fixtures.small_index import table


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with the index of version 3 in `imported`."""
    source = open_source(write(tmp_path / "theirs", version_3()))
    write_imported(tmp_path, source, ("theirs", None))
    return tmp_path


def entity(number: int, title: str, unit: int, said: str, kind: str = "") -> dict[str, Any]:
    return {
        "human_readable_id": number,
        "title": title,
        "type": kind,
        "descriptions": [said],
        "description_text_units": [unit],
        "text_units": [unit],
        "types": [kind],
    }


def link(source: int, target: int, said: str, weight: float, kind: str = "") -> dict[str, Any]:
    return {
        "source": source,
        "target": target,
        "type": kind,
        "descriptions": [said],
        "description_text_units": [0],
        "weight": weight,
        "text_units": [0],
    }


def test_what_is_found_again_is_the_imported_entity_and_what_is_new_comes_behind(
    root: Path,
) -> None:
    entities = table(
        "extracted_entities",
        entity(0, "Eve", 0, "Eve sails.", "person"),
        entity(1, "Ada  Byron", 0, "Ada sails.", "writer"),
        entity(2, "Fay", 1, "Fay waits.", "person"),
        entity(3, "di", 1, "Di left.", "person"),
    )
    links = table(
        "extracted_relationships",
        link(1, 0, "Ada knows Eve.", 5.0),
        link(3, 1, "Di wrote to Ada.", 4.0, "wrote"),
        link(0, 2, "Eve knows Fay.", 3.0),
    )
    mentions = pl.DataFrame(
        {"entity": [1, 0, 3], "text_unit": [0, 0, 1], "start_char": [0, 5, 9], "end_char": 3},
        schema=TABLES["extracted_mentions"].schema,
    )
    found = ImportMerge(ImportedIndex(root)).merge_graph(entities, links, mentions)
    rows = found["extracted_entities"]
    assert rows["title"].to_list() == ["ADA BYRON", "BO", "CY", "DI", "Eve", "Fay"]
    assert rows["human_readable_id"].to_list() == [0, 1, 2, 3, 4, 5]
    ada = rows.row(0, named=True)
    assert ada["type"] == "PERSON"
    assert ada["types"] == ["PERSON", "PERSON", "writer"]
    assert ada["descriptions"] == ["Ada Byron writes.", "Ada sails."]
    assert ada["description_text_units"] == [0, 3]
    assert ada["text_units"] == [0, 1, 3]
    assert ada["aliases"] == ["Ada  Byron"]
    # An imported entity without a type takes the one that is found now.
    assert rows["type"].to_list() == ["PERSON"] * 3 + ["person"] * 3
    assert rows["text_units"].to_list()[3:] == [[2, 4], [3], [4]]
    # That which ends at no entity is gone; the number of text units is behind the imported ones.
    joined = found["extracted_relationships"]
    assert joined.select("source", "target", "weight").rows() == [
        (0, 1, 2.0),
        (1, 2, 1.0),
        (2, 1, 1.0),
        (0, 4, 5.0),
        (3, 0, 4.0),
        (4, 5, 3.0),
    ]
    assert found["extracted_mentions"].tail(3).rows() == [(0, 3, 0, 3), (4, 3, 5, 3), (3, 4, 9, 3)]
    assert found["given_ids"].rows() == [
        *(("entities", number, None, f"e{number}") for number in range(4)),
        ("relationships", 0, 1, "r0"),
        ("relationships", 1, 2, "r1"),
        ("relationships", 2, 1, "r2"),
    ]


@pytest.mark.parametrize(
    ("kinds", "n_rows"), [(("", ""), 1), (("", "knows"), 1), (("knows", "likes"), 2)]
)
def test_relationships_of_two_types_stay_two(
    root: Path, kinds: tuple[str, str], n_rows: int
) -> None:
    path = root / "imported" / "relationships.parquet"
    rows = pl.read_parquet(path).head(1).with_columns(type=pl.lit(kinds[0]))
    rows.write_parquet(path)
    _forget_sizes(root)
    entities = table(
        "extracted_entities", entity(0, "Bo", 0, "Bo."), entity(1, "ada byron", 0, "Ada.")
    )
    links = table("extracted_relationships", link(0, 1, "Bo met Ada.", 3.0, kinds[1]))
    mentions = TABLES["extracted_mentions"].empty()
    found = ImportMerge(ImportedIndex(root)).merge_graph(entities, links, mentions)[
        "extracted_relationships"
    ]
    assert found.height == n_rows
    if n_rows == 1:
        assert found.select("weight", "type", "descriptions").row(0) == (
            5.0,
            kinds[1],
            ["Ada met Bo.", "Bo met Ada."],
        )


def _forget_sizes(root: Path) -> None:
    """Describe the files of `imported` as they are now."""
    path = root / "imported" / "import.json"
    about = json.loads(path.read_text())
    for name, file in about["files"].items():
        file["bytes"] = (root / "imported" / name).stat().st_size
    path.write_text(json.dumps(about))


def test_without_anything_new_the_imported_rows_are_all(root: Path) -> None:
    nothing = [
        TABLES[name].empty()
        for name in ("extracted_entities", "extracted_relationships", "extracted_mentions")
    ]
    found = ImportMerge(ImportedIndex(root)).merge_graph(*nothing)
    assert found["extracted_entities"]["descriptions"].to_list() == [
        ["Ada Byron writes."],
        ["Bo travels."],
        ["Cy is met."],
        ["Di lives alone."],
    ]
    assert found["extracted_relationships"].height == 3


def test_rows_of_rules_come_behind_with_their_own_numbers(root: Path) -> None:
    entities = table("extracted_entities", {"human_readable_id": 0, "title": "BO"})
    links = table(
        "extracted_relationships", {"source": 0, "target": 0, "weight": 1.0, "text_units": [0, 1]}
    )
    mentions = pl.DataFrame(
        [(0, 1, 2, 4)], schema=TABLES["extracted_mentions"].schema, orient="row"
    )
    found = ImportMerge(ImportedIndex(root)).append_graph_of_rules(entities, links, mentions)
    assert found["extracted_entities"]["human_readable_id"].to_list() == [0, 1, 2, 3, 4]
    assert found["extracted_entities"]["description"][:4].to_list()[0] == "Ada Byron writes."
    last = found["extracted_relationships"].row(-1, named=True)
    assert (last["source"], last["target"], last["text_units"]) == (4, 4, [3, 4])
    assert found["extracted_mentions"].row(-1) == (4, 4, 2, 4)


def test_text_units_that_are_gone_are_not_named_by_documents(tmp_path: Path) -> None:
    tables = version_3()
    tables["documents"] = tables["documents"].with_columns(
        text_unit_ids=pl.Series([["u1", "gone"], []], dtype=pl.List(pl.String))
    )
    write_imported(tmp_path, open_source(write(tmp_path / "theirs", tables)), ("theirs", None))
    merge = ImportMerge(ImportedIndex(tmp_path))
    new = table("documents", {"id": "n", "human_readable_id": 0, "text_unit_ids": ["u9"]})
    rows = pl.concat(merge.merge_documents(new.lazy()))
    assert rows["human_readable_id"].to_list() == [0, 1, 2]
    assert rows["text_unit_ids"].to_list() == [["u0", "u1"], ["u2"], ["u9"]]


@pytest.mark.parametrize(
    ("id", "text", "is_new"),
    [
        ("n", TEXTS[0], False),
        ("n", "\ufeff" + TEXTS[0].replace("\n", "\r\n") + "\n ", False),
        ("n", TEXTS[0].lower(), True),
        ("n", "", True),
        ("d1", "Another text under the id of an imported document.", False),
    ],
)
def test_documents_that_were_imported_are_passed_over(
    root: Path, caplog: pytest.LogCaptureFixture, id: str, text: str, is_new: bool
) -> None:
    rows = table("loaded_documents", {"id": id, "text": text, "path": "new.txt"}).lazy()
    left = pl.concat(skip_imported(rows, root=root))
    assert left["id"].to_list() == [id] * is_new
    assert ("the imported document is kept (new.txt (d1))" in caplog.text) == (id == "d1")


def test_a_workflow_that_goes_on_has_the_steps_of_the_one_before() -> None:
    standard = (
        "load_documents create_text_units my:own extract_graph resolve_entities "
        "extract_covariates create_search_tables"
    ).split()
    made = add_merge_steps(standard)
    assert (
        made
        == (
            "load_documents skip_imported create_text_units my:own extract_graph "
            "extract_covariates add_imported resolve_entities create_search_tables"
        ).split()
    )
    assert add_merge_steps(made) == made
    fast = add_merge_steps(["load_documents", "create_text_units", "extract_graph_nlp"])
    assert fast[-1] == "add_imported_nlp"
    with pytest.raises(WorkflowError, match="needs load_documents"):
        add_merge_steps(["read_graph", "finalize_graph"])


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("a: 1\nworkflow: fast # why\nb: 2\n", "a: 1\nworkflow: fast_imported # why\nb: 2\n"),
        ("a:\n  workflow: fast\n", None),
        ("workflow: lazy\n", None),
        ("", None),
    ],
)
def test_one_line_of_the_settings_is_changed(tmp_path: Path, text: str, after: str | None) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    assert replace_workflow(path, "fast", "fast_imported") == (after is not None)
    assert path.read_text() == (after or text)

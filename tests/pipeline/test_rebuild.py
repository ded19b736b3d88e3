"""The same documents and settings give the same index, wherever and whenever it is made."""

import shutil
from pathlib import Path

import polars as pl

from graphrag_index.storage.table_store import open_index
from tests.conftest import copy_project, run_project

WITHOUT_VECTORS = "workflow=without_vectors"


def leave_out_vectors(root: Path) -> None:
    steps = (root / "workflows" / "embedded.yaml").read_text(encoding="utf-8")
    text = steps.replace("- generate_text_embeddings\n", "")
    (root / "workflows" / "without_vectors.yaml").write_text(text, encoding="utf-8")


def files_of(output: Path) -> dict[str, bytes]:
    paths = sorted([*output.glob("versions/*/*.parquet"), *output.glob("versions/*/*.arrow")])
    return {path.name: path.read_bytes() for path in paths}


def test_tables_of_two_runs_are_byte_identical(sample_project: Path, tmp_path: Path) -> None:
    other = copy_project(tmp_path / "elsewhere")
    leave_out_vectors(other)
    for path in other.glob("input/**/*.*"):
        path.touch()
    run_project(other, WITHOUT_VECTORS)
    first, second = files_of(sample_project / "output"), files_of(other / "output")
    vectors = {name for name in first if name.startswith("text_unit_vectors-")}
    assert len(vectors) == 1
    assert first.keys() - vectors == second.keys() != set()
    assert {name: first[name] for name in second} == second


def small_project(folder: Path) -> Path:
    root = copy_project(folder)
    shutil.rmtree(root / "input")
    shutil.copytree(Path(__file__).parents[2] / "input" / "places", root / "input")
    return root


def vectors_of(output: Path) -> dict[str, pl.DataFrame]:
    store, version = open_index(output)
    return {
        name: store.scan(name, table).collect()
        for name, table in version.tables.items()
        if table.lance_version is not None or name == "text_unit_vectors"
    }


def test_vectors_of_two_runs_are_equal(tmp_path: Path) -> None:
    roots = [small_project(tmp_path / name) for name in ("one", "two")]
    for root in roots:
        run_project(root)
    one, two = (vectors_of(root / "output") for root in roots)
    assert (
        one.keys()
        == two.keys()
        == {
            *("text_unit_text", "entity_description", "community_full_content"),
            "text_unit_vectors",
        }
    )
    for name in one:
        assert one[name].equals(two[name])


def test_a_renamed_file_keeps_every_id(tmp_path: Path) -> None:
    root = small_project(tmp_path)
    run_project(root)
    before = pl.read_parquet(root / "output" / "entities.parquet")
    file = root / "input" / "ross-ice-shelf.md"
    file.rename(file.with_name("zz-renamed.md"))
    run_project(root)
    after = pl.read_parquet(root / "output" / "entities.parquet")
    assert set(before["id"]) == set(after["id"])
    documents = pl.read_parquet(root / "output" / "documents.parquet")
    assert "zz-renamed.md" in documents["path"].to_list()

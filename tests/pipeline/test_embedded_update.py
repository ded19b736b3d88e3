"""An update without a model gives the tables of a new index, and makes anew what changed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from graphrag_index.storage.table_store import open_index
from graphrag_index.storage.versions import INDEX_FILE
from tests.conftest import copy_project, run_project
from tests.fixtures.commands import command, environment

OVERRIDES = ("create_communities.stability=rebuild",)
# What depends on the last version: what became of its communities.
OF_LAST_VERSION = {"community_lineage"}
WITHOUT_VECTORS = "workflow=without_vectors"


def assert_same(root: Path, rebuilt: Path) -> None:
    """Compare an index with one that is built from nothing out of the same documents."""
    digests = [
        {name: t.digest for name, t in version.tables.items() if name not in OF_LAST_VERSION}
        for _, version in (open_index(root / "output"), open_index(rebuilt / "output"))
    ]
    assert digests[0].keys() == digests[1].keys()
    assert [name for name in digests[0] if digests[0][name] != digests[1][name]] == []
    updated, new = map(search, (root, rebuilt))
    assert updated == new


def search(root: Path) -> list[list[tuple[object, ...]]]:
    """Search the text units by words and by vectors."""
    store, version = open_index(root / "output")
    table = store.vectors("text_unit_text", version.tables["text_unit_text"])
    columns = ["human_readable_id", "id"]
    words = ("Crean Kerry", "Mawson Aurora", "Amundsen", "ice", "sledge dogs")
    found = [table.find_matching_rows(text, 20, columns).rows() for text in words]
    assert all(found)
    vectors = np.random.default_rng(1).normal(size=(5, table.dimension)).astype(np.float32)
    return found + [table.nearest(vector, 20, columns).rows() for vector in vectors]


def change(root: Path) -> None:
    """Add a document, edit one in the middle, and remove one."""
    (root / "tom-crean.txt").rename(root / "input" / "people" / "tom-crean.txt")
    edited = root / "input" / "people" / "douglas-mawson.txt"
    first, *others = edited.read_text(encoding="utf-8").split("\n\n")
    edited.write_text("\n\n".join([*others, first]), encoding="utf-8")
    (root / "input" / "expeditions" / "gauss.md").unlink()


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of a part of the sample. Tests must not change it."""
    root = copy_project(tmp_path_factory.mktemp("before") / "project")
    for folder in ("data", "science", "themes", "places"):
        shutil.rmtree(root / "input" / folder)
    for path in (root / "input" / "expeditions").iterdir():
        if path.stem not in ("aurora-mawson", "belgica", "fram-south-pole", "gauss"):
            path.unlink()
    (root / "input" / "people" / "tom-crean.txt").rename(root / "tom-crean.txt")
    run_project(root, *OVERRIDES)
    return root


@pytest.fixture
def changed(before: Path, tmp_path: Path) -> Path:
    """The same index, with changed documents that no run has read yet."""
    root = tmp_path / "project"
    shutil.copytree(before, root, symlinks=True)
    change(root)
    return root


@pytest.fixture(scope="module")
def rebuilt(before: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of the changed documents that is built from nothing. Tests must not change it."""
    root = tmp_path_factory.mktemp("rebuilt") / "project"
    shutil.copytree(before, root, ignore=shutil.ignore_patterns("output"))
    change(root)
    run_project(root, *OVERRIDES)
    return root


def test_documents_are_added_edited_and_removed(changed: Path, rebuilt: Path) -> None:
    run_project(changed, *OVERRIDES)
    assert_same(changed, rebuilt)


def test_an_index_of_another_program_is_updated(changed: Path, rebuilt: Path) -> None:
    # As an earlier program wrote it: other code of the steps.
    for file in changed.glob(f"output/**/{INDEX_FILE}"):
        described = json.loads(file.read_text(encoding="utf-8"))
        for step in described["steps"]:
            step["made_by"] = step["key"] = "of an earlier program"
        file.write_text(json.dumps(described), encoding="utf-8")
    run_project(changed, *OVERRIDES)
    assert_same(changed, rebuilt)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_an_update_that_was_killed_goes_on(changed: Path, rebuilt: Path) -> None:
    settings = [part for value in OVERRIDES for part in ("--set", value)]
    process = subprocess.Popen(
        command("run", "--quiet", "--root", str(changed), *settings), env=environment()
    )
    # Kill the run when it has resolved the names, while it reads or writes reports.
    journal = changed / "output" / "versions" / "2" / "steps.json"
    while process.poll() is None:
        if journal.is_file() and '"resolve_entities"' in journal.read_text(encoding="utf-8"):
            os.kill(process.pid, signal.SIGKILL)
            break
        time.sleep(0.01)
    assert process.wait() == -signal.SIGKILL
    run_project(changed, *OVERRIDES)
    assert_same(changed, rebuilt)


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


def test_vectors_of_two_runs_are_equal_and_a_renamed_file_keeps_every_id(tmp_path: Path) -> None:
    roots = [small_project(tmp_path / name) for name in ("one", "two")]
    for root in roots:
        run_project(root)
    one, two = (vectors_of(root / "output") for root in roots)
    names = ("text_unit_text", "entity_description", "community_full_content", "text_unit_vectors")
    assert one.keys() == two.keys() == {*names}
    for name in one:
        assert one[name].equals(two[name])

    before = pl.read_parquet(root / "output" / "entities.parquet")
    file = root / "input" / "ross-ice-shelf.md"
    file.rename(file.with_name("zz-renamed.md"))
    run_project(root)
    after = pl.read_parquet(root / "output" / "entities.parquet")
    assert set(before["id"]) == set(after["id"])
    documents = pl.read_parquet(root / "output" / "documents.parquet")
    assert "zz-renamed.md" in documents["path"].to_list()

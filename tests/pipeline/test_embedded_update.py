"""An update without a model gives the tables of a new index, and makes anew what changed."""

import shutil
from pathlib import Path

import polars as pl
import pytest

from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import Version
from tests.conftest import copy_project, run_project

OVERRIDES = ("create_communities.stability=rebuild",)
# What depends on the last version: what became of its communities.
OF_LAST_VERSION = {"community_lineage"}


def read_version(root: Path) -> tuple[TableStore, Version]:
    store = TableStore(root / "output")
    version = store.read_pointer()
    assert version is not None
    return store, version


def assert_same_as_new(root: Path, folder: Path) -> None:
    """Compare an index with one that is built from nothing out of the same documents."""
    clean = copy_project(folder)
    shutil.rmtree(clean / "input")
    shutil.copytree(root / "input", clean / "input")
    run_project(clean, *OVERRIDES)
    (_, updated), (_, new) = read_version(root), read_version(clean)
    assert updated.tables.keys() == new.tables.keys()
    digests = [
        {name: t.digest for name, t in version.tables.items() if name not in OF_LAST_VERSION}
        for version in (updated, new)
    ]
    assert [name for name in digests[0] if digests[0][name] != digests[1][name]] == []


def read(root: Path, name: str) -> pl.DataFrame:
    store, version = read_version(root)
    return store.scan(name, version.tables[name]).collect()


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of the sample without one of its documents."""
    root = copy_project(tmp_path_factory.mktemp("changing") / "project")
    (root / "input" / "people" / "tom-crean.txt").rename(root / "tom-crean.txt")
    run_project(root, *OVERRIDES)
    return root


def test_documents_are_added_edited_and_removed(changing: Path, tmp_path: Path) -> None:
    before = read(changing, "report_choices")
    (changing / "tom-crean.txt").rename(changing / "input" / "people" / "tom-crean.txt")
    edited = changing / "input" / "people" / "douglas-mawson.txt"
    first, *others = edited.read_text(encoding="utf-8").split("\n\n")
    edited.write_text("\n\n".join([*others, first]), encoding="utf-8")
    (changing / "input" / "expeditions" / "gauss.md").unlink()
    run_project(changing, *OVERRIDES)
    assert_same_as_new(changing, tmp_path / "new")
    # Some communities have the same sentences as before.
    assert read(changing, "report_choices").join(before, on="input_hash", how="semi").height

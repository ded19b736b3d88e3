"""Each command on an index in a bucket, given on another machine, does what it does on a folder."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.conftest import copy_project
from tests.fixtures.commands import REPOSITORY
from tests.fixtures.in_process import call_here
from tests.fixtures.object_server import new_bucket, serve_objects, set_credentials

PLACE = r"\S*/output\b|s3://[^\s,:]+|\n (output|copy of the bucket)"
EXPEDITIONS = REPOSITORY / "input" / "expeditions"
QUESTION = "Who led the expedition?"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serve_objects() as address:
        yield address


class Project:
    """A project with a few documents. Each command is given on a new machine."""

    def __init__(self, folder: Path, address: str | None) -> None:
        self.root, self.address, self.n_machines = folder / "project", address, 0
        copy_project(self.root)
        shutil.rmtree(self.root / "input")
        (self.root / "input").mkdir()
        for name in ("aurora-mawson.md", "discovery.md", "scotia.md"):
            shutil.copy(EXPEDITIONS / name, self.root / "input")

    def __call__(self, program: str, *arguments: str) -> str:
        """Give a command; return what it prints, without times, places and sizes."""
        self.n_machines += 1
        output = [] if self.address is None else ["--set", f"output={self.address}"]
        cache = str(self.root.parent / f"machine-{self.n_machines}")
        done = call_here(
            f"graphrag-{program}",
            [*arguments, "--root", str(self.root), *output],
            self.root.parent,
            {"GRAPHRAG_INDEX_CACHE": cache},
        )
        assert done.returncode == 0, done.stderr
        printed = re.sub(" +", " ", done.stdout.replace(str(self.root.parent), "*"))
        return re.sub(rf"{PLACE}|\d[\d.]* [kM]?B|[\d.]+ s\b|\d+:\d+", "*", printed)


def give_all(project: Project) -> dict[str, str]:
    """Give all commands that read or change an index; return what they print."""
    told = {}

    def give(program: str, *arguments: str) -> None:
        told[f"{len(told)} {arguments[0]}"] = project(program, *arguments)

    give("index", "run", "--quiet")
    shutil.copy(EXPEDITIONS / "belgica.md", project.root / "input")
    (project.root / "input" / "aurora-mawson.md").unlink()
    give("index", "run", "--quiet", "--purge")
    give("index", "diff", "1", "2")
    give("query", "local", QUESTION)
    give("query", "global", QUESTION)
    give("query", "basic", QUESTION, "--as-of", "1")
    give("index", "export", str(project.root.parent / "exported"), "--to", "microsoft")
    give("index", "rollback", "1")
    give("query", "basic", QUESTION)
    give("index", "versions")
    give("index", "gc", "--keep", "1")
    give("index", "check")
    give("index", "show")
    give("index", "status")
    return told


def test_commands_do_in_a_bucket_what_they_do_in_a_folder(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_credentials(monkeypatch)
    on_disk = Project(tmp_path / "disk", None)
    in_bucket = Project(tmp_path / "bucket", new_bucket(server))
    told = give_all(in_bucket)
    assert told == give_all(on_disk)
    exported, other = (one.root.parent / "exported" for one in (in_bucket, on_disk))
    tables = [path.name for path in exported.glob("*.parquet")]
    assert "entities.parquet" in tables
    for name in tables:
        assert_frame_equal(pl.read_parquet(exported / name), pl.read_parquet(other / name))
    # What was exported is imported into another bucket, and read from there.
    imported = Project(tmp_path / "imported", new_bucket(server))
    imported("index", "import", str(exported), "--quiet")
    assert imported("query", "local", QUESTION) == told["3 local"]

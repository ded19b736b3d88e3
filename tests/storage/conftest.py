"""Machines that share an index in a bucket, and the tables that they should read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_index.pipeline.run import run_workflow
from graphrag_index.storage import working_copy
from tests.fixtures.kill_history import WITH_VECTORS, Machines, Tables, numbers_of, read
from tests.fixtures.object_server import new_bucket, serve_objects, set_credentials


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serve_objects() as address:
        yield address


@pytest.fixture
def machines(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    set_credentials(monkeypatch)
    monkeypatch.setattr(working_copy, "SECONDS_BETWEEN_REFRESHES", 0)
    return Machines(tmp_path, new_bucket(server), monkeypatch)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Tables]:
    """The tables of the generations 1 to 3, made in a folder."""
    root = tmp_path_factory.mktemp("expected")
    for generation in (1, 2, 3):
        run_workflow(WITH_VECTORS, numbers_of(generation), root, {})
    return [read(root / "output", number) for number in (1, 2, 3)]

"""A server of models, a project, and an index of Microsoft GraphRAG to import into it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.importing import write_project, write_theirs
from tests.fixtures.microsoft_index import WIDTH
from tests.model_server import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(dimensions=WIDTH) as server:
        yield server


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    return write_theirs(tmp_path / "theirs")


@pytest.fixture
def project(tmp_path: Path, server: Server) -> Path:
    server.requests.clear()
    return write_project(tmp_path / "project", server.url)

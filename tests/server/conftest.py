"""A server of the sample, called inside this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from graphrag_server.app import create_app
from graphrag_server.server_settings import ServerSettings

# A server without keys answers only to the names of loopback.
ADDRESS = "http://127.0.0.1"


@pytest.fixture(scope="module")
def sample_client(sample_project: Path) -> Iterator[TestClient]:
    """A client of a server whose index `sample` is that of the sample; tests must not change it."""
    with TestClient(
        create_app(ServerSettings(indexes={"sample": sample_project})),
        base_url=ADDRESS,
        raise_server_exceptions=False,
    ) as client:
        yield client

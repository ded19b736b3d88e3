"""A server of models for the runs of a file."""

from collections.abc import Iterator

import pytest

from tests.model_server import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(dimensions=32) as server:
        yield server

"""A server, and the official client to it."""

from collections.abc import Iterator

import pytest
from openai import OpenAI

from tests.model_server import Server


@pytest.fixture
def server(model_server: Server) -> Server:
    return model_server


@pytest.fixture
def client(server: Server) -> Iterator[OpenAI]:
    with OpenAI(base_url=server.url, api_key="sk-secret", max_retries=0) as client:
        yield client

"""Models that tests open, closed after each test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_index.llm.chat_model import ChatModel, LoopThread
from graphrag_index.llm.embeddings import RemoteEmbeddingModel
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.limits import Budget
from graphrag_index.llm.registry import Models
from graphrag_index.schema.settings.models import ModelSettings
from tests.fixtures.chat_requests import KEY
from tests.model_server import Server

OPENED: list[Models] = []


@pytest.fixture(autouse=True)
def _close_models() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


def embedding(server: Server, output: Path | None, **settings: Any) -> RemoteEmbeddingModel:
    values = {"model": "test-embedding", "base_url": server.url, "api_key": "k", **settings}
    OPENED.append(Models({"e": ModelSettings.model_validate(values)}, output))
    return OPENED[-1].open_embedding_model("e", "step")


@pytest.fixture
def open_model(tmp_path: Path) -> Iterator[Callable[..., ChatModel]]:
    """Open a chat model of a server, with settings and the ledger of the test."""
    loop, opened = LoopThread(), []

    def open(
        server: Server, output: Path = tmp_path, budget: Budget | None = None, **settings: Any
    ) -> ChatModel:
        values = {"model": "test-model", "base_url": server.url, "api_key": KEY, **settings}
        known = ModelSettings.model_validate(values)
        opened.append(ChatModel("chat", known, "step", Ledger(output, version=1), loop, budget))
        return opened[-1]

    yield open
    for chat in opened:
        chat.close()
        chat.ledger.close()
    loop.close()

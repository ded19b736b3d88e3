"""Models that tests open, closed after each test."""

from collections.abc import Iterator

import pytest

from graphrag_index.llm.registry import Models

OPENED: list[Models] = []


@pytest.fixture(autouse=True)
def _close_models() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()

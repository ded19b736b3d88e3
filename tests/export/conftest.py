"""The two indexes that the tests of all formats export."""

from pathlib import Path

import pytest

from tests.fixtures.small_graph import write_nasty_index, write_small_index


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_index(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_nasty_index(tmp_path_factory.mktemp("nasty"))

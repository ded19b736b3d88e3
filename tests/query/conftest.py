"""The index of the sample, opened once for each file of tests."""

from pathlib import Path

import pytest

import graphrag_query
from graphrag_query.index import Index
from graphrag_query.store.index_store import IndexStore


@pytest.fixture(scope="module")
def index(sample_project: Path) -> Index:
    return graphrag_query.open(sample_project / "output")


@pytest.fixture(scope="module")
def store(index: Index) -> IndexStore:
    return index.store

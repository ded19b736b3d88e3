from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from graphrag_index.llm.local.kept_vectors import KeptVectors, delete_kept_vectors


class LengthModel:
    """A model whose vector of a text is its length and 1; remembers what it embedded."""

    name, dimension = "length", 2

    def __init__(self, version: str = "1") -> None:
        self.identity: tuple[str, int | None] = (f"length {version}", None)
        self.embedded: list[str] = []

    def embed(
        self,
        texts: Sequence[str],
        advance: Callable[[int], None] | None = None,
        *,
        are_queries: bool = False,
    ) -> npt.NDArray[np.float32]:
        self.embedded += texts
        return np.array([[len(text), 1] for text in texts], np.float32)


def test_a_passage_is_embedded_once_for_each_model(tmp_path: Path) -> None:
    model, other = LengthModel(), LengthModel("2")
    for _ in range(2):
        vectors = KeptVectors(tmp_path / "v")
        assert vectors.embed(model, ["a", "bb", "a"]).tolist() == [[1, 1], [2, 1], [1, 1]]
        assert vectors.embed(other, ["bb"]).tolist() == [[2, 1]]
        vectors.close()
    assert (model.embedded, other.embedded) == (["a", "bb"], ["bb"])


@pytest.mark.parametrize("content", [None, b"no database, but many other bytes " * 100])
def test_vectors_are_kept_in_memory_where_no_file_can_be_used(
    content: bytes | None, tmp_path: Path
) -> None:
    path = tmp_path / "missing" / "v"
    if content is not None:
        path.parent.mkdir()
        path.write_bytes(content)
    model, vectors = LengthModel(), KeptVectors(path)
    for _ in range(2):
        assert vectors.embed(model, ["a"]).tolist() == [[1, 1]]
    vectors.close()
    assert model.embedded == ["a"]
    assert (path.read_bytes() if path.exists() else None) == content


def test_kept_vectors_can_be_deleted(tmp_path: Path) -> None:
    vectors = KeptVectors(tmp_path / "rerank_vectors.sqlite")
    vectors.embed(LengthModel(), ["a"])
    vectors.close()
    for _ in range(2):
        delete_kept_vectors(tmp_path)
        assert not list(tmp_path.iterdir())

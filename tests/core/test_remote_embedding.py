"""Vectors over HTTP, from a server that behaves and misbehaves like the real ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphrag_index.core.errors import ModelError, SettingsError
from graphrag_index.core.models.embedding import MAX_TEXTS, RemoteEmbeddingModel
from graphrag_index.core.models.registry import Models
from graphrag_index.core.models.settings import ModelSettings
from tests.server import Faults, Server

MADE: list[Models] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while MADE:
        MADE.pop().close()


def embedding(server: Server, output: Path | None, **settings: Any) -> RemoteEmbeddingModel:
    values = {"model": "test-embedding", "base_url": server.url, "api_key": "k", **settings}
    MADE.append(Models({"e": ModelSettings.model_validate(values)}, output))
    return MADE[-1].embedding("e", "step")


def asked(server: Server) -> int:
    return sum(request.path == "/v1/embeddings" for request in server.requests)


def test_vectors_come_in_order_of_length_one_and_are_paid_once(tmp_path: Path) -> None:
    texts = [f"text {n}" for n in range(MAX_TEXTS + 10)]
    with Server(dimensions=32) as server:
        model = embedding(server, tmp_path)
        vectors = model.embed(texts)
        assert vectors.shape == (len(texts), 32) == (len(texts), model.dimension)
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
        # One to tell the dimension, two for the texts.
        assert asked(server) == 3
        again = embedding(server, tmp_path).embed(texts[::-1])
        assert np.array_equal(again[::-1], vectors)
        assert asked(server) == 3
        assert embedding(server, tmp_path).embed([]).shape == (0, 32)


def test_a_server_that_knows_floats_only_is_asked_for_floats(tmp_path: Path) -> None:
    faults = Faults(rate=1, kinds=["unsupported:encoding_format"])
    with Server(faults=faults) as server:
        assert embedding(server, tmp_path).embed(["a"]).shape == (1, 64)


@pytest.mark.parametrize("kind", ["500", "429_retry_ms", "fewer_vectors", "close", "hang"])
def test_a_fault_that_passes_costs_nothing(kind: str, tmp_path: Path) -> None:
    faults = Faults(by_text={"poison": f"{kind}*1"}, retry_after=0.1)
    with Server() as plain, Server(faults=faults) as server:
        expected = embedding(plain, tmp_path / "a").embed(["poison", "b"])
        model = embedding(server, tmp_path / "b", timeout=0.5)
        assert np.array_equal(model.embed(["poison", "b"]), expected)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("nan_vectors", "gave a vector without direction"),
        ("wrong_size", "gave vectors of"),
        ("401", "does not accept the key"),
    ],
)
def test_what_does_not_pass_is_one_sentence(kind: str, sentence: str, tmp_path: Path) -> None:
    with Server(faults=Faults(by_text={"poison": kind})) as server:
        model = embedding(server, tmp_path)
        with pytest.raises(ModelError, match=sentence):
            model.embed(["poison", *(f"text {n}" for n in range(MAX_TEXTS))])


def test_models_are_checked_before_any_is_asked(tmp_path: Path) -> None:
    def models(server: Server, **last: Any) -> Models:
        base = {"model": "test-model", "base_url": server.url, "api_key": "good"}
        settings = {
            "chat": ModelSettings.model_validate(base),
            "e": ModelSettings.model_validate({**base, "model": "test-embedding", **last}),
        }
        MADE.append(Models(settings, tmp_path, needed=("chat", "e")))
        return MADE[-1]

    with Server(api_keys=["good"], models=["test-model", "test-embedding"]) as server:
        models(server).chat("chat", "step")
        for wrong, sentence in (
            ({"api_key": "bad"}, "Model e: .* does not accept the key"),
            ({"model": "other"}, r"has no model 'other'; it has test-embedding, test-model\."),
            ({"base_url": "http://127.0.0.1:9/v1"}, "no server answers at http://127.0.0.1:9/v1"),
        ):
            with pytest.raises(ModelError, match=sentence):
                models(server, **wrong).chat("chat", "step")
        with pytest.raises(SettingsError, match="which the section models does not have"):
            models(server).chat("none", "step")
        assert {request.path for request in server.requests} == {"/v1/models"}

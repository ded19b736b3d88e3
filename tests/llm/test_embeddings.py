"""Vectors over HTTP, from a server that behaves and misbehaves like the real ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphrag_index.errors import ModelError, SettingsError
from graphrag_index.llm.embeddings import (
    MAX_TEXTS,
    PROBE_TEXT,
    RemoteReranker,
    read_scores,
)
from graphrag_index.llm.registry import Models
from graphrag_index.llm.request import Spending
from graphrag_index.schema.settings.models import ModelSettings, Price
from tests.llm.conftest import OPENED, embedding
from tests.model_server import Faults, Server

PASSAGES = ["a ship of coal", "the ice", "ice and a ship"]


def asked(server: Server) -> int:
    return sum(request.path == "/v1/embeddings" for request in server.requests)


def test_vectors_come_in_order_of_length_one_and_are_paid_once(tmp_path: Path) -> None:
    texts = [PROBE_TEXT, *(f"text {n}" for n in range(MAX_TEXTS + 10))]
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


def test_a_server_without_base64_is_asked_for_floats(tmp_path: Path) -> None:
    faults = Faults(rate=1, kinds=["unsupported:encoding_format"])
    with Server(faults=faults) as server:
        assert embedding(server, tmp_path).embed(["a"]).shape == (1, 64)


@pytest.mark.parametrize(
    "kind", ["500", "429_retry_ms", "fewer_vectors", "reversed_vectors", "close", "hang"]
)
def test_a_transient_fault_loses_nothing(kind: str, tmp_path: Path) -> None:
    faults = Faults(by_text={"poison": f"{kind}*1"}, retry_after=0.1)
    with Server() as plain, Server(faults=faults) as server:
        expected = embedding(plain, tmp_path / "a").embed(["poison", "b"])
        model = embedding(server, tmp_path / "b", timeout=0.5)
        assert np.array_equal(model.embed(["poison", "b"]), expected)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("nan_vectors", "its vector is zero or not finite"),
        ("wrong_size", "its vector has 7 numbers and not 64"),
        ("400_content_filter", "HTTP 400"),
    ],
)
def test_a_text_without_a_vector_is_quarantined_alone(
    kind: str, reason: str, tmp_path: Path
) -> None:
    texts = [*(f"text {n}" for n in range(6)), "poison", *(f"text {n}" for n in range(6, 20))]
    with Server(faults=Faults(by_text={"poison": kind})) as server:
        n_asked = []
        for _ in range(2):
            vectors = embedding(server, tmp_path).embed(texts)
            assert [texts[row] for row in np.flatnonzero(~vectors.any(axis=1))] == ["poison"]
            (put_aside,) = OPENED[-1].ledger.quarantined_requests(["step"])
            assert (put_aside.unit, put_aside.reason[: len(reason)]) == ("poison", reason)
            n_asked.append(asked(server))
        # The second time it is left alone.
        assert n_asked[0] == n_asked[1]
        server.faults = Faults()
        assert OPENED[-1].ledger.reopen_quarantined(["step"]) == 1
        assert embedding(server, tmp_path).embed(texts).any(axis=1).all()


def test_vectors_are_normalized(tmp_path: Path) -> None:
    with Server() as plain, Server(faults=Faults(rate=1, kinds=["long_vectors"])) as server:
        expected = embedding(plain, tmp_path / "a").embed(["a", "b"])
        vectors = embedding(server, tmp_path / "b").embed(["a", "b"])
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
        assert np.allclose(vectors, expected, atol=1e-6)


def test_a_model_without_the_parameter_may_have_the_wanted_dimension(tmp_path: Path) -> None:
    faults = Faults(rate=1, kinds=["unsupported:dimensions"])
    with Server(faults=faults, dimensions=48) as server:
        assert embedding(server, tmp_path / "a", dimensions=48).embed(["a"]).shape == (1, 48)
        with pytest.raises(ModelError, match=r"vectors of 48 numbers.*set this to 48 or null"):
            embedding(server, tmp_path / "b", dimensions=16)


def test_a_budget_needs_the_prices_of_all_models(tmp_path: Path) -> None:
    base = {"model": "unheard-of", "base_url": "http://127.0.0.1:9/v1"}
    settings = {name: ModelSettings.model_validate(base) for name in ("chat", "e")}
    settings["chat"] = settings["chat"].model_copy(update={"price": Price()})
    OPENED.append(Models(settings, tmp_path, needed={"chat": "", "e": "step"}, budget=5.0))
    with pytest.raises(SettingsError, match="the price of 'unheard-of', model e, is not in"):
        OPENED[-1].open_chat_model("chat", "step")


def test_another_model_of_the_same_name_recomputes_all_vectors(tmp_path: Path) -> None:
    with Server(dimensions=32) as server:
        embedding(server, tmp_path).embed(["a", "b"])
        server.dimensions = 48
        with pytest.raises(ModelError, match="vectors of 48 numbers instead of 32 as before"):
            embedding(server, tmp_path).embed(["a", "c"])
        assert embedding(server, tmp_path).embed(["a", "b", "c"]).shape == (3, 48)


def test_all_models_are_checked_before_the_first_request(tmp_path: Path) -> None:
    def models(server: Server, **last: Any) -> Models:
        base = {"model": "test-model", "base_url": server.url, "api_key": "good"}
        settings = {
            "chat": ModelSettings.model_validate(base),
            "e": ModelSettings.model_validate({**base, "model": "test-embedding", **last}),
        }
        OPENED.append(Models(settings, tmp_path, needed={"chat": "", "e": "step"}))
        return OPENED[-1]

    with Server(api_keys=["good"], models=["test-model", "test-embedding"]) as server:
        for wrong, sentence in (
            ({"api_key": "bad"}, "Model e: .* does not accept the key"),
            ({"model": "other"}, r"has no model 'other'; it has test-embedding, test-model\."),
            ({"base_url": "http://127.0.0.1:9/v1"}, "no server answers at http://127.0.0.1:9/v1"),
        ):
            with pytest.raises(ModelError, match=sentence):
                models(server, **wrong).open_chat_model("chat", "step")
        with pytest.raises(SettingsError, match="but the section models has no such model"):
            models(server).open_chat_model("none", "step")
        assert {request.path for request in server.requests} == {"/v1/models"}
        # One vector tells whether all will fit, before a chat is paid for.
        models(server).open_chat_model("chat", "step")
        assert asked(server) == 1


def reranker(server: Server, output: Path | None = None, **settings: Any) -> RemoteReranker:
    values = {"model": "r", "base_url": server.url, "api_key": "k", "price": {"input": 1e6}}
    OPENED.append(
        Models({"r": ModelSettings.model_validate({**values, **settings})}, output, check=False)
    )
    return OPENED[-1].open_reranker("r", "search")


@pytest.mark.parametrize("is_tei", [False, True])
def test_scores_come_in_the_order_of_the_passages_and_are_paid_once(
    is_tei: bool, tmp_path: Path
) -> None:
    with Server(is_tei=is_tei) as server:
        spent = Spending()
        model = reranker(server, tmp_path)
        assert model.score("ice ship", PASSAGES, spent) == (0.5, 0.5, 1.0)
        # TEI counts no tokens, so that they are estimated.
        assert spent == Spending(1, spent.usage, float(spent.usage.prompt))
        assert spent.usage.prompt > 0
        n_sent = len(server.requests)
        assert n_sent == (2 if is_tei else 1)
        assert model.score("ice ship", PASSAGES, spent) == (0.5, 0.5, 1.0)
        assert reranker(server, tmp_path).score("ice ship", PASSAGES, spent)[2] == 1.0
        assert (len(server.requests), spent.calls) == (n_sent, 1)
        # The form of requests is found out once.
        assert model.score("coal", PASSAGES, spent) == (1.0, 0.0, 0.0)
        assert len(server.requests) == n_sent + 1
        assert OPENED[-1].spent(0).usage.prompt == spent.usage.prompt


@pytest.mark.parametrize("is_tei", [False, True])
@pytest.mark.parametrize(
    "kind", ["fewer_scores", "doubled_scores", "nan_scores", "wrong_index", "400"]
)
def test_unusable_scores_are_an_error_that_costs_the_call_and_is_not_kept(
    kind: str, is_tei: bool
) -> None:
    with Server(is_tei=is_tei) as server:
        model, spent = reranker(server), Spending()
        assert model.score("ship", PASSAGES, spent) == (1.0, 0.0, 1.0)
        server.faults = Faults(rate=1, kinds=[kind])
        with pytest.raises(ModelError, match=r"^Model r returns no scores: .+[^.][.]$"):
            model.score("ice", PASSAGES, spent)
        assert spent.calls == (1 if kind.startswith("400") else 2)
        server.faults = Faults()
        assert model.score("ice", PASSAGES, spent) == (0.0, 1.0, 1.0)


@pytest.mark.parametrize(
    "answer",
    [
        *(None, [], {}, {"results": None}, {"results": "ab"}, [1, 2], [[], []]),
        [{"index": 0, "score": 1}, {"index": 1}],
        [{"index": 0, "score": 1}, {"index": "1", "score": 1}],
        [{"index": 0, "score": 1}, {"index": 1, "score": 10**400}],
        [{"index": 0, "score": 1}, {"index": [], "score": 1}],
    ],
)
def test_an_answer_without_a_score_for_each_passage_has_none(answer: Any) -> None:
    assert read_scores(answer, 2) is None

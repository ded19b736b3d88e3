"""Scores of passages over HTTP, in both forms of requests."""

from pathlib import Path
from typing import Any

import pytest

from graphrag_index.errors import ModelError
from graphrag_index.llm.registry import Models
from graphrag_index.llm.request import Spending
from graphrag_index.llm.rerank import RemoteReranker, read_scores
from graphrag_index.schema.settings.models import ModelSettings
from tests.llm.conftest import OPENED
from tests.model_server import Faults, Server

PASSAGES = ["a ship of coal", "the ice", "ice and a ship"]


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


def test_a_wrong_key_is_told_in_one_sentence() -> None:
    with Server(api_keys=["right"]) as server, pytest.raises(ModelError) as raised:
        reranker(server, api_key="wrong", retry_seconds=5).score("ice", PASSAGES, Spending())
    assert "does not accept the key: set api_key of this model" in str(raised.value)
    assert "wrong" not in str(raised.value)


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

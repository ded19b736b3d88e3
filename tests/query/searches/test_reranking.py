"""Reranking of the best passages, by a server and by a model on this machine."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import graphrag_query
from graphrag_index.errors import ModelError, SettingsError
from graphrag_index.llm.local.local_models import VECTORS_FILE
from graphrag_index.llm.request import Spending
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_query.answer import Answer, Outcome
from graphrag_query.index import Index
from graphrag_query.rerank import Reranking
from tests.model_server import Faults, Server

QUESTION = "Who was Tom Crean?"


class GivenScores:
    """A reranker with given scores; None is a failure."""

    def __init__(self, scores: Sequence[float] | None) -> None:
        self.scores, self.n_calls = scores, 0

    def score(self, question: str, passages: Sequence[str], spent: Spending) -> Sequence[float]:
        self.n_calls += 1
        if self.scores is None:
            raise ModelError("Model r is down.")
        return self.scores

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("scores", "refined"),
    [
        # The mean 0.4 and the deviation 0.2 stay, whatever the scale of the scores is.
        ([10, -10], [0.6, 0.2]),
        ([-0.002, -0.001], [0.2, 0.6]),
        ([7, 7], [0.2, 0.6]),
        (None, [0.2, 0.6]),
    ],
)
def test_scores_get_the_scale_of_the_similarities(
    scores: Sequence[float] | None, refined: Sequence[float]
) -> None:
    reranker = GivenScores(scores)
    look = Reranking(lambda: reranker)
    for _ in range(2):
        assert np.allclose(look.refine_similarities("q", ["a", "b"], [0.2, 0.6]), refined)
    warning = "The passages were ranked without the reranker: Model r is down."
    assert look.warnings == ([warning] if scores is None else [])
    # A model that has failed is not called again for this question.
    assert reranker.n_calls == (1 if scores is None else 2)
    assert look.refine_similarities("q", [], []) == []


def test_equal_scores_change_nothing() -> None:
    # The mean of three times 0.1 is not 0.1, because of rounding.
    look = Reranking(lambda: GivenScores([0.1] * 3))
    assert look.refine_similarities("q", ["a", "b", "c"], [0.2, 0.6, 0.7]) == [0.2, 0.6, 0.7]


@pytest.fixture
def index(sample_project: Path, model_server: Server) -> Iterator[Index]:
    model = f"{{model: r, base_url: '{model_server.url}', retry_seconds: 0.2, timeout: 0.5, "
    overrides = (f"models.finer={model}price: {{input: 1}}}}", "search.rerank_model=finer")
    settings = load_settings(sample_project, overrides)
    with graphrag_query.open(sample_project / "output", settings, sample_project) as opened:
        yield opened


def sources(answer: Answer) -> list[int]:
    assert answer.context is not None
    return answer.context.tables["Sources"]["id"].to_list()


def test_a_server_moves_the_passage_that_it_prefers_to_the_top(
    index: Index, model_server: Server, sample_project: Path
) -> None:
    with graphrag_query.open(sample_project / "output") as plain_index:
        plain = plain_index.local(QUESTION)
    # The spread of the similarities bounds how far one of them rises: not from the very end.
    preferred = sources(plain)[len(sources(plain)) // 2]
    text = index.store.text_units([preferred])[preferred]["text"]
    model_server.score = lambda question, passage: float(passage == text)
    answer = index.local(QUESTION)
    assert sources(answer)[0] == preferred
    assert (answer.usage.calls, answer.usage.cost) == (1, answer.usage.prompt_tokens / 1e6)
    assert plain.usage.calls == 0
    assert sources(index.drift(QUESTION, rounds=0))
    # The same passages are not paid for again, also not for the context alone.
    n_sent = len(model_server.requests)
    assert index.context(QUESTION).tables["Sources"]["id"][0] == preferred
    assert index.local(QUESTION).usage.calls == 0
    assert len(model_server.requests) == n_sent
    # Filters hold for what is shown to the model.
    index.where({"path": "people/*"}).local(QUESTION)
    known = {
        unit["text"]
        for unit in index.store.text_units(range(10_000)).values()
        if unit["path"].startswith("people/")
    }
    assert known.issuperset(model_server.requests[-1].json["documents"])


@pytest.mark.parametrize("kind", ["500", "401", "hang", "nan_scores", "fewer_scores"])
def test_without_usable_scores_the_answer_stays_and_a_note_says_why(
    kind: str, index: Index, model_server: Server, sample_project: Path
) -> None:
    with graphrag_query.open(sample_project / "output") as plain_index:
        plain = plain_index.local(QUESTION)
    model_server.faults = Faults(rate=1.0, kinds=[kind])
    answer = index.local(QUESTION)
    assert (answer.outcome, answer.text) == (Outcome.ANSWERED, plain.text)
    assert sources(answer) == sources(plain)
    [note] = set(answer.notes) - set(plain.notes)
    assert note.startswith("The passages were ranked without the reranker: Model finer")
    assert note.endswith(".")
    # The next question asks the server again.
    model_server.faults = Faults()
    assert index.local(QUESTION).notes == plain.notes


def test_a_model_on_this_machine_keeps_its_vectors_beside_the_index(
    sample_project: Path, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(sample_project, tmp_path / "project", symlinks=True))
    kept = root / "output" / VECTORS_FILE
    settings = load_settings(root, ("search.rerank_model=static",))
    with graphrag_query.open(root / "output", settings, root) as index:
        answer = index.local(QUESTION)
    assert (answer.outcome, answer.notes, answer.usage.calls) == (Outcome.ANSWERED, (), 0)
    assert kept.exists()


def test_an_unknown_model_is_an_error_of_the_settings(sample_project: Path) -> None:
    settings = load_settings(sample_project, ("search.rerank_model=finest",))
    with (
        graphrag_query.open(sample_project / "output", settings, sample_project) as index,
        pytest.raises(SettingsError, match="There is no embedding model 'finest'"),
    ):
        index.local(QUESTION)

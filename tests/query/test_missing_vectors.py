"""Searches in an index whose texts got no vectors, and prompts that a server refuses."""

from collections.abc import Callable
from pathlib import Path

import pytest

import graphrag_query
from graphrag_index.llm.ledger import FILE
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import Message
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_query.answer import Outcome
from graphrag_query.llm import LLM, run_within_limits
from tests.conftest import REPOSITORY
from tests.fixtures.chat_requests import refuses
from tests.fixtures.model_project import KEY, run, write_project
from tests.fixtures.served import project_with_model
from tests.llm.conftest import open_model
from tests.model_server import Server
from tests.model_server.chat import Json

__all__ = ["open_model"]


def refuse_reports(endpoint: str, body: Json) -> tuple[int, Json] | None:
    """Refuse the vectors of reports, which begin with a heading."""
    if not any(text.startswith("# ") for text in body.get("input", ())):
        return None
    return 400, {"error": {"message": "The input was flagged by moderation."}}


def test_missing_vectors_are_never_missing_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)
    with Server(refuse=refuse_reports) as server:
        root = write_project(tmp_path / "project", server.url, 1)
        done = run(root)
        assert done.returncode == 3, done.stderr
        assert "would refuse" in done.stderr
        assert "graphrag-index retry" not in done.stderr
        index = graphrag_query.open(root)
        for method in ("global", "basic", "lazy", "local", "drift"):
            for question in ("What are the main themes?", "Who was there?"):
                outcome = index.search(method, question).outcome
                assert outcome is not Outcome.NO_EVIDENCE, (method, question)
        assert index.search("global", "What happened?").outcome is Outcome.ANSWERED
        index.close()


@pytest.mark.parametrize("message", ["maximum context length is 3000 tokens, not {}", "Too much!"])
def test_a_search_is_run_again_with_shorter_prompts(
    message: str, open_model: Callable[..., object]
) -> None:
    with Server(answer=lambda chat: "An answer.", refuse=refuses(9000, message)) as server:
        chat = open_model(server, context_window=12_000, max_output_tokens=400)
        llm = LLM(chat, Prompts(REPOSITORY, "graphrag_query"), chat)  # type: ignore[arg-type]

        def search() -> str:
            text = "word " * (llm.max_prompt_tokens * 3 // 5)
            return llm.write("question", [Message(role="user", content=text)])[0]

        assert run_within_limits(search, llm) == "An answer."
        n_sent = len(server.requests)
        assert run_within_limits(search, llm) == "An answer."
        assert len(server.requests) <= n_sent + 1


@pytest.mark.parametrize("is_writable", [True, False])
def test_a_search_keeps_the_limits_of_a_server(
    is_writable: bool, sample_project: Path, tmp_path: Path
) -> None:
    message = "maximum context length is 3000 tokens, not {}"
    with Server(answer=lambda chat: "An answer.", refuse=refuses(9000, message)) as server:
        root = project_with_model(tmp_path / "project", sample_project, server.url)
        if not is_writable:
            (root / "output" / FILE).mkdir()
        refused = []
        for question in ("Who was Tom Crean?", "Who was Fridtjof Nansen?"):
            n_before = len(server.requests)
            with graphrag_query.open(root, load_settings(root)) as index:
                assert index.local(question).outcome is Outcome.ANSWERED
            refused.append(sum(r.status == 400 for r in server.requests[n_before:]))
    assert refused[0] > 0
    assert (refused[1] == 0) == is_writable

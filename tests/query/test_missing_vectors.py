"""Searches in an index whose texts got no vectors, and prompts that a server refuses."""

from collections.abc import Callable
from pathlib import Path

import pytest

import graphrag_query
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import Message
from graphrag_query.answer import Outcome
from graphrag_query.llm import LLM, run_within_limits
from tests.conftest import REPOSITORY
from tests.fixtures.chat_requests import refuses
from tests.fixtures.model_project import KEY, run, write_project
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

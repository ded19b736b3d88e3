"""Batches that are killed, refused or damaged: no request is paid twice."""

import json
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graphrag_index.errors import ModelError, WaitingError
from graphrag_index.llm.batch import BatchChatModel
from graphrag_index.llm.request import Attempt, Outcome
from tests.fixtures.batches import ask, model, models, n_asked, waits
from tests.fixtures.chat_requests import KEY, words_of_text
from tests.llm.conftest import OPENED
from tests.model_server import ChatRequest, Faults, Server


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(answer=words_of_text) as server:
        yield server


def n_sent(server: Server, ending: str) -> int:
    """How many requests were sent to paths with an ending."""
    return sum(asked.path.endswith(ending) for asked in server.requests)


def right_when_corrected(chat: ChatRequest) -> str:
    """The words of the text, but of one text only when the model is shown what was wrong."""
    text, last = (str(chat.messages[at]["content"]) for at in (1, -1))
    return json.dumps({"wrong": 1} if text == last == "passes" else {"words": text.split()})


def test_a_bad_line_fails_only_its_request(server: Server, tmp_path: Path) -> None:
    server.answer = right_when_corrected
    server.faults = Faults(
        by_text={
            "never": "wrong_schema",
            "filtered": "content_filter",
            "refused": "refusal",
            "server": "500*1",
            "down": "503",
            "context": "context_length",
            "long": "length*1",
            "empty": "empty_choices*1",
        }
    )
    texts = ["good", "passes", "never", "filtered", "refused", "server", "down", "context"]
    texts += ["long one", "empty"]
    rounds = [waits(model(server, tmp_path), *texts) for _ in range(3)]
    assert rounds == [
        "10 requests of step are submitted in batch batch_1.",
        # With less room for its reply, a prompt may fit the context.
        "6 requests of step are submitted in batch batch_2.",
        # The fault of "empty" hits each body once, and its body has less room too.
        "2 requests of step are submitted in batch batch_3.",
    ]
    outcomes = {outcome.unit: outcome for outcome in ask(model(server, tmp_path), *texts)}
    assert {unit: outcome.failure for unit, outcome in outcomes.items() if outcome.failure} == {
        "never": "the reply is invalid: " + outcomes["never"].failure.partition(": ")[2],
        "filtered": "the model refused (content_filter)",
        "refused": "the model refused (refusal): I'm sorry, I can't help with that.",
        "down": outcomes["down"].failure,
        "context": outcomes["context"].failure,
    }
    assert outcomes["down"].failure.startswith("failed in 3 batches: HTTP 503")
    assert "HTTP 400" in outcomes["context"].failure
    # Cut off at the longest: what was whole of it counts.
    assert outcomes["long one"].values == ([],)
    assert outcomes["long one"].dropped > 0
    assert ask(model(server, tmp_path), "long one") == [outcomes["long one"]]
    assert outcomes["empty"].values == (["empty"],)
    assert outcomes["passes"].values == (["passes"],)
    # The model is shown its reply once.
    bodies = [json.loads(asked.body) for asked in server.requests if "chat" in asked.path]
    shown = [body for body in bodies if "cannot be used" in body["messages"][-1]["content"]]
    assert [body["messages"][1]["content"] for body in shown] == ["passes", "never"]
    assert {body["max_tokens"] for body in bodies} == {8_192, 8_103, 8_104}
    # Who asks again for what is quarantined gets it in a batch.
    server.faults = Faults()
    assert OPENED[-1].reopen_requests(["step"]) == ["step"]
    OPENED[-1].mark_finished()
    assert waits(model(server, tmp_path), *texts).startswith("5 requests")
    assert not any(outcome.failure for outcome in ask(model(server, tmp_path), *texts))


@pytest.mark.parametrize(("code", "corrected"), [("64", False), ("64c", True), ("64cl", True)])
def test_every_attempt_in_a_batch_is_the_last(code: str, corrected: bool) -> None:
    # An earlier version wrote "l" after the last attempt.
    assert Attempt.decode(code) == Attempt(64, corrected, is_last=True)


def test_an_unsupported_parameter_is_left_out_of_the_next_batch(
    server: Server, tmp_path: Path
) -> None:
    server.faults = Faults(rate=1, kinds=["unsupported:temperature"])
    waits(model(server, tmp_path), "a", "b")
    waits(model(server, tmp_path), "a", "b")
    assert [outcome.values for outcome in ask(model(server, tmp_path), "a", "b")] == [
        (["a"],),
        (["b"],),
    ]
    assert n_asked(server) == 4


@pytest.mark.parametrize("end", ["expired", "cancelled"])
def test_unanswered_requests_are_submitted_again(
    end: str, server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.batch_seconds = None
    texts = [f"text {n}" for n in range(10)]
    waits(model(server, tmp_path), *texts)
    server.finish_batches(end)
    with caplog.at_level(logging.WARNING):
        said = waits(model(server, tmp_path), *texts)
    assert said == "5 requests of step are submitted in batch batch_2."
    assert f"batch_1 of step has ended as {end}: 5 of 10 requests" in caplog.text
    assert len(server.batches.files) == 1  # of the second
    server.finish_batches()
    assert [outcome.unit for outcome in ask(model(server, tmp_path), *texts)] == texts
    assert n_asked(server) == 10
    assert server.batches.files == {}


def test_a_batch_that_fails_is_submitted_once_more(server: Server, tmp_path: Path) -> None:
    server.batch_seconds = None

    def fail() -> None:
        for batch in server.batches.batches.values():
            if batch["status"] == "in_progress":
                message = "Enqueued token limit reached."
                batch["errors"] = {"object": "list", "data": [{"code": "c", "message": message}]}
                batch["status"] = "failed"

    waits(model(server, tmp_path), "a", "b")
    fail()
    assert "batch_2" in waits(model(server, tmp_path), "a", "b")
    fail()
    with pytest.raises(ModelError, match=r"batch_2 failed \(Enqueued .*set batch\.max_tokens"):
        ask(model(server, tmp_path), "a", "b")
    assert "batch_3" in waits(model(server, tmp_path), "a", "b")
    server.finish_batches()
    assert len(ask(model(server, tmp_path), "a", "b")) == 2


class KilledError(BaseException):
    """The end of a process."""


class Killing:
    """Calls through to a batch endpoint or ledger until the call at which the process is killed."""

    def __init__(self, inner: Any, names: tuple[str, ...], at: int, after: bool) -> None:
        self.inner, self.names, self.at, self.after = inner, names, at, after
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.inner, name)
        if name not in self.names:
            return value
        kill = self.calls == self.at
        self.calls += 1

        def call(*arguments: Any) -> Any:
            if kill and not self.after:
                raise KilledError
            result = value(*arguments)
            if kill:
                raise KilledError
            return result

        return call


CALLS = ("upload_file", "create_batch", "get_status", "download_file")
NOTES = ("record_batch", "update_batch", "record_results")
REPLIES = ("record_replies", "record_failure")


# A kill after a note is one before the next call, and the same for replies.
@pytest.mark.parametrize(
    ("names", "after"), [(CALLS, False), (CALLS, True), (NOTES, False), (REPLIES, False)]
)
def test_a_kill_at_any_stage_makes_no_request_paid_twice(
    names: tuple[str, ...], after: bool, server: Server, tmp_path: Path
) -> None:
    server.faults = Faults(by_text={"refused": "refusal"})
    texts = ["a b", "c", "d e", "refused", "f"]
    n_kills = 0
    for at in range(100):
        output = tmp_path / str(at)
        n_before = n_asked(server)
        outcomes: list[Outcome] = []
        kills_here = 0
        killing = Killing(None, names, at, after)
        for _ in range(10):
            chat = model(server, output, batch={"max_requests": 3})
            owner: Any = chat if names is REPLIES else chat.queue
            part = "endpoint" if names is CALLS else "ledger"
            killing.inner = getattr(owner, part)
            setattr(owner, part, killing)
            try:
                outcomes = ask(chat, *texts)
                break
            except WaitingError:
                pass  # The batch is still under way: ask again.
            except KilledError:
                kills_here += 1
        assert [bool(outcome.failure) for outcome in outcomes] == [False] * 3 + [True, False]
        assert n_asked(server) - n_before == 5, f"killed at call {at}"
        n_kills += kills_here
        if not kills_here:
            break
        with closing(sqlite3.connect(output / "ledger.sqlite")) as database:
            assert database.execute("SELECT count(*) FROM calls").fetchone() == (5,)
    assert n_kills >= (5 if names is REPLIES else 8)


def test_a_batch_whose_creation_was_not_confirmed_is_found(server: Server, tmp_path: Path) -> None:
    # models, files, batches
    server.faults = Faults(by_number=[None, None, "close"])
    waits(model(server, tmp_path), "a")
    # The creation, and the list of batches.
    assert n_sent(server, "/batches") == 2
    assert len(server.batches.batches) == 1
    assert len(ask(model(server, tmp_path), "a")) == 1


@pytest.mark.parametrize("kind", ["close", "close_half", "500"])
def test_a_download_that_breaks_off_is_retried(kind: str, server: Server, tmp_path: Path) -> None:
    waits(model(server, tmp_path), "a b", "c")
    # models, the batch, its two requests, its output
    server.faults = Faults(by_number=[None, None, None, None, kind])
    outcomes = ask(model(server, tmp_path), "a b", "c")
    assert [outcome.values for outcome in outcomes] == [(["a", "b"],), (["c"],)]
    assert n_sent(server, "/content") == 2


def test_a_malformed_answer_is_retried_until_the_time_is_up(server: Server, tmp_path: Path) -> None:
    server.faults = Faults(by_number=[None, "truncated_json", None, None])
    waits(model(server, tmp_path / "once"), "a")
    assert n_sent(server, "/files") == 2
    server.faults = Faults(by_number=[None, "truncated_json"])
    with pytest.raises(
        ModelError, match=r"has not answered for 0\.1 s \(the answer is malformed: "
    ):
        ask(model(server, tmp_path / "always", retry_seconds=0.1), "a")


def test_a_refused_key_is_one_sentence_without_it(server: Server, tmp_path: Path) -> None:
    server.faults = Faults(by_number=[None, "401"])
    with pytest.raises(ModelError, match=r"does not accept the key: .* \(HTTP 401: ") as caught:
        ask(model(server, tmp_path), "a")
    assert KEY not in str(caught.value)


def test_a_refused_batch_is_deleted_at_the_provider(server: Server, tmp_path: Path) -> None:
    server.faults = Faults(by_number=[None, None, "400"])
    with pytest.raises(ModelError, match=r"refuses the batch: HTTP 400: "):
        ask(model(server, tmp_path), "a")
    assert server.batches.files == {}


def test_a_server_without_batches_is_one_sentence(server: Server, tmp_path: Path) -> None:
    server.faults = Faults(rate=1, kinds=["404"])
    with pytest.raises(ModelError, match=r"does not support batches \(HTTP 404\): run without"):
        ask(model(server, tmp_path), "a")
    server.faults = Faults()
    chat = models(server, tmp_path, batched=False).open_chat_model("chat", "step")
    assert ask(chat, "a")[0].values == (["a"],)


def test_a_batch_of_another_account_is_one_sentence(server: Server, tmp_path: Path) -> None:
    waits(model(server, tmp_path), "a")
    del server.batches.batches["batch_1"]
    with pytest.raises(ModelError, match="does not know batch batch_1, which has 1 requests of"):
        ask(model(server, tmp_path), "a")
    chat = models(server, tmp_path)
    chat.reopen_requests(["step"])
    given_up = chat.open_chat_model("chat", "step")
    assert isinstance(given_up, BatchChatModel)
    assert "submitted in batch" in waits(given_up, "a")


def test_a_run_without_batches_refuses_requests_in_a_batch(server: Server, tmp_path: Path) -> None:
    waits(model(server, tmp_path), "a", "b")
    with pytest.raises(ModelError, match=r"2 requests of step are in a batch \(batch_1\)"):
        models(server, tmp_path, batched=False).open_chat_model("chat", "step")

"""The chat model in batches, against a server with files and batches."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_index.errors import BudgetError, WaitingError
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.ledger import StepStatus
from graphrag_index.llm.request import Outcome
from graphrag_index.llm.request import Request as Asked
from graphrag_index.schema.tables import Table
from graphrag_index.step import step
from tests.fixtures.batches import ask, model, models, n_asked, waits
from tests.fixtures.chat_requests import KEY, request, words_of_text
from tests.fixtures.commands import call, write_project
from tests.fixtures.small_index import read_table
from tests.llm.conftest import OPENED
from tests.model_server import Faults, Server


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(answer=words_of_text) as server:
        yield server


def states(output: Path) -> dict[str, str]:
    with closing(sqlite3.connect(output / "ledger.sqlite")) as database:
        return dict(database.execute("SELECT unit, state FROM requests").fetchall())


def status(output: Path) -> StepStatus:
    (row,) = OPENED[-1].ledger.step_statuses()
    return row


def test_a_batch_is_submitted_waited_for_and_collected(server: Server, tmp_path: Path) -> None:
    server.batch_seconds = None
    texts = ["a b", "c", "d e", "c"]
    said = waits(model(server, tmp_path), *texts)
    assert said == "3 requests of step are submitted in batch batch_1."
    assert set(states(tmp_path).values()) == {"open"}
    said = waits(model(server, tmp_path), *texts)
    assert said == "Batch batch_1 of step is in progress: 0 of 3 requests are done."
    assert n_asked(server) == 0

    server.finish_batches()
    outcomes = ask(model(server, tmp_path), *texts)
    assert [outcome.values for outcome in outcomes] == [
        (["a", "b"],),
        (["c"],),
        (["d", "e"],),
        (["c"],),
    ]
    assert (n_asked(server), len(server.batches.batches)) == (3, 1)
    # Nothing of the documents stays at the provider.
    assert server.batches.files == {}
    # Once more: nothing is asked of the server at all.
    n_requests = len(server.requests)
    chat = model(server, tmp_path)
    assert ask(chat, *texts) == outcomes
    assert len(server.requests) == n_requests + 1  # the check of the key
    # Nor by a run without batches, which has the same keys.
    assert (
        ask(models(server, tmp_path, batched=False).open_chat_model("chat", "step"), *texts)
        == outcomes
    )
    assert n_asked(server) == 3
    assert list((tmp_path / "batches").iterdir()) == []
    for path in tmp_path.glob("*.sqlite*"):
        assert KEY.encode() not in path.read_bytes()


def test_requests_over_the_limits_are_split_into_batches(server: Server, tmp_path: Path) -> None:
    texts = [f"text {n}" for n in range(7)]
    said = waits(model(server, tmp_path, batch={"max_requests": 3}), *texts)
    assert said == "7 requests of step are submitted in the batches batch_1, batch_2, batch_3."
    size = len(server.batches.files["file-1"][1])
    assert len(ask(model(server, tmp_path), *texts)) == 7
    texts = [f"other {n}" for n in range(7)]
    waits(model(server, tmp_path, batch={"max_bytes": size}), *texts)
    inputs = [
        name for name, (file, _) in server.batches.files.items() if file["purpose"] == "batch"
    ]
    assert all(len(server.batches.files[name][1]) <= size for name in inputs)
    assert n_asked(server) == 7
    assert [outcome.values for outcome in ask(model(server, tmp_path), *texts)] == [
        (text.split(),) for text in texts
    ]


def test_a_batch_costs_half(server: Server, tmp_path: Path) -> None:
    price = {"input": 1_000.0, "output": 1_000.0}
    texts = ["a b", "c"]
    waits(model(server, tmp_path / "batch", price=price), *texts)
    ask(model(server, tmp_path / "batch", price=price), *texts)
    half = status(tmp_path / "batch")
    ask(
        models(server, tmp_path / "plain", batched=False, price=price).open_chat_model(
            "chat", "step"
        ),
        *texts,
    )
    full = status(tmp_path / "plain")
    assert (half.prompt_tokens, half.completion_tokens) == (
        full.prompt_tokens,
        full.completion_tokens,
    )
    assert half.cost is not None
    assert full.cost is not None
    assert half.cost == pytest.approx(full.cost / 2)
    assert half.cost > 0


def test_two_follow_ups_take_three_batches(server: Server, tmp_path: Path) -> None:
    def then(words: list[str]) -> Asked | None:
        return request(" ".join(words[1:]), then=then) if len(words) > 1 else None

    def replies() -> list[Outcome]:
        long, short = request("a b c", then=then), request("d", then=then)
        return list(model(server, tmp_path).replies([long, short]))

    for n_requests in (2, 1, 1):
        with pytest.raises(WaitingError, match=f"^{n_requests} request"):
            replies()
    assert [outcome.values for outcome in replies()] == [
        (["a", "b", "c"], ["b", "c"], ["c"]),
        (["d"],),
    ]
    assert (n_asked(server), len(server.batches.batches)) == (4, 3)


def test_the_budget_holds_a_whole_batch_before_it_is_submitted(
    server: Server, tmp_path: Path
) -> None:
    # Half a dollar a token of a reply: eight dollars each at most, less than one in truth.
    more: dict[str, Any] = {"price": {"input": 0.0, "output": 1_000_000.0}, "max_output_tokens": 16}
    texts = [f"text {n}" for n in range(5)]
    with pytest.raises(BudgetError, match=r"The budget of \$5\.00 would be exceeded"):
        ask(model(server, tmp_path, 5.0, **more), *texts)
    assert len(server.batches.batches) == 0
    server.batch_seconds = None
    said = waits(model(server, tmp_path, 20.0, **more), *texts)
    assert said == (
        "2 requests of step are submitted in batch batch_1; 3 more follow when these are done."
    )
    # What is held for that batch is held in the next run too.
    said = waits(model(server, tmp_path, 20.0, **more), *texts)
    assert said.endswith("0 of 2 requests are done; 3 more follow when these are done.")
    server.finish_batches()
    server.batch_seconds = 0.0
    for _ in range(5):
        try:
            outcomes = ask(model(server, tmp_path, 20.0, **more), *texts)
        except WaitingError:
            continue
        except BudgetError:
            outcomes = []
        break
    assert OPENED[-1].ledger.spent_so_far() <= 20.0
    while len(outcomes) < 5:
        try:
            outcomes = ask(model(server, tmp_path, 1_000.0, **more), *texts)
        except WaitingError:
            continue
    assert n_asked(server) == 5


def test_waiting_tokens_stay_within_the_account_limit(server: Server, tmp_path: Path) -> None:
    more: dict[str, Any] = {"batch": {"max_tokens": 150}, "max_output_tokens": 16}
    texts = [f"text {n}" for n in range(5)]
    said = waits(model(server, tmp_path, **more), *texts)
    assert "more follow" in said
    for _ in range(5):
        try:
            assert len(ask(model(server, tmp_path, **more), *texts)) == 5
            break
        except WaitingError:
            continue
    assert n_asked(server) == 5


WORD_LISTS = Table("word_lists", "one word", "that of the texts", {"word": pl.String})


@step(writes=[WORD_LISTS])
def list_words(*, chat_model: ChatModel) -> pl.DataFrame:
    """List the words of some texts, then the letters of the first, in two rounds."""

    def then(words: list[str]) -> Asked:
        return request(" ".join(words[0]))

    asked = (request(text, then=then) for text in ("ab c", "def g"))
    outcomes = list(chat_model.replies(asked))
    words = [word for outcome in outcomes for words in outcome.values for word in words]
    return pl.DataFrame({"word": words}, schema=WORD_LISTS.schema)


def project(server: Server, root: Path) -> Path:
    settings = (
        f"models: {{chat: {{model: test-model, base_url: '{server.url}', api_key: {KEY}, "
        "batch: {poll_seconds: 0.05}}}\n"
    )
    return write_project(root, ["tests.llm.test_batch:list_words"], settings)


def words_of(root: Path) -> list[str]:
    return read_table(root, "word_lists")["word"].to_list()


WORDS = ["ab", "c", "a", "b", "def", "g", "d", "e", "f"]


def test_the_command_submits_and_the_same_command_collects(server: Server, tmp_path: Path) -> None:
    server.batch_seconds = None
    root = project(server, tmp_path / "p")
    first = call(root, "run", "--batch")
    assert (first.returncode, first.stdout, first.stderr) == (
        5,
        f"Model chat: test-model at {server.url} (reply format not known before the first "
        "request)\n"
        "2 requests of list_words are submitted in batch batch_1. "
        "The same command collects the replies later.\n",
        "",
    )
    assert call(root, "run", "--batch").returncode == 5
    shown = call(root, "status").stdout
    assert "Batch batch_1 of list_words (chat), submitted " in shown
    assert "in progress, 0 of 2 requests are done." in shown
    plain = call(root, "run")
    assert plain.returncode == 1
    assert "are in a batch (batch_1) and would be paid twice" in plain.stderr

    server.finish_batches()
    assert "submitted in batch batch_2" in call(root, "run", "--batch").stdout
    server.finish_batches()
    last = call(root, "run", "--batch")
    assert (last.returncode, last.stderr) == (0, "")
    assert words_of(root) == WORDS
    assert "batch_2" not in call(root, "status").stdout
    n_requests = len(server.requests)
    assert "Nothing changed" in call(root, "run", "--batch").stdout
    assert len(server.requests) == n_requests
    assert n_asked(server) == 4


def test_the_command_waits_for_batches_on_request(server: Server, tmp_path: Path) -> None:
    server.batch_seconds = 0.2
    server.faults = Faults(by_text={"def g": "wrong_schema"})
    root = project(server, tmp_path / "p")
    done = call(root, "run", "--batch", "--wait")
    assert done.returncode == 3
    assert "0 of 2 requests in batches are done" in done.stdout
    assert "list_words, def g: the reply is invalid" in done.stderr
    assert words_of(root) == WORDS[:4]
    server.faults = Faults()
    # What is quarantined goes into a batch too; a plain `run` knows that the step goes on.
    retried = call(root, "retry", "--batch")
    assert retried.returncode == 5
    assert "\n1 request of list_words is submitted" in retried.stdout
    assert call(root, "run", "--batch", "--wait").returncode == 0
    assert words_of(root) == WORDS
    wrong = call(root, "run", "--wait")
    assert wrong.returncode == 2
    assert "--wait needs --batch" in wrong.stderr

"""The chat model against a server that behaves and misbehaves like the real ones."""

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from graphrag_index.errors import BudgetError, ModelError
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.embeddings import text_key
from graphrag_index.llm.limits import Budget
from graphrag_index.llm.request import Message, Outcome, estimate_tokens, request_key
from graphrag_index.llm.request import Request as Asked
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.steps.extract_covariates import CLAIMS_FORMAT
from tests.fixtures.chat_requests import KEY, WORDS, request, words_of_text
from tests.model_server import Faults, Server

Open = Callable[..., ChatModel]


@pytest.fixture
def model(open_model: Open) -> Open:
    return partial(open_model, timeout=2.0, concurrency=8)


def ask(chat: ChatModel, *texts: str) -> list[Outcome]:
    return list(chat.replies([request(text) for text in texts]))


def states(output: Path) -> dict[str, str]:
    with closing(sqlite3.connect(output / "ledger.sqlite")) as database:
        return dict(database.execute("SELECT unit, state FROM requests").fetchall())


def test_outcomes_come_in_the_order_of_the_requests(tmp_path: Path, model: Open) -> None:
    with Server(answer=words_of_text, jitter=0.05) as server:
        outcomes = ask(model(server), *(f"text {n}" for n in range(50)))
    assert [outcome.values for outcome in outcomes] == [(["text", str(n)],) for n in range(50)]
    assert set(states(tmp_path).values()) == {"done"}


def test_a_cached_reply_is_not_requested_again(model: Open) -> None:
    with Server(answer=words_of_text) as server:
        first = ask(model(server), "a b", "c")
        asked = len(server.requests)
        assert ask(model(server), "a b", "c") == first
        assert len(server.requests) == asked == 2
        # Another temperature is another question.
        ask(model(server, temperature=1.0), "c")
        assert len(server.requests) == 3


def test_equal_requests_are_sent_once(model: Open) -> None:
    def then(words: list[str]) -> Asked | None:
        return request(" ".join(words[1:]), then=then) if len(words) > 1 else None

    texts = ["a b", "a b", "c", "a b"]
    with Server(answer=words_of_text, latency=0.1) as server:
        outcomes = list(model(server).replies([request(text, then=then) for text in texts]))
        assert len(server.requests) == 3
    expected = {"a b": (["a", "b"], ["b"]), "c": (["c"],)}
    assert [outcome.values for outcome in outcomes] == [expected[text] for text in texts]
    assert [outcome.spent.calls for outcome in outcomes] == [2, 0, 1, 0]


def test_a_request_that_fails_fails_for_all_equal_ones(model: Open) -> None:
    faults = Faults(by_text={"poison": "refusal"})
    with Server(answer=words_of_text, latency=0.1, faults=faults) as server:
        outcomes = ask(model(server), "poison b", "a", "poison b")
    assert [bool(outcome.failure) for outcome in outcomes] == [True, False, True]
    assert sum(b"poison" in asked.body for asked in server.requests) == 1


def test_cache_keys_are_stable() -> None:
    # Every reply that was ever paid for is found by such a key.
    settings = ModelSettings(model="test-model")
    other = ModelSettings(model="m", temperature=None, parameters={"seed": 7})
    assert request_key(request("Tom Crean"), settings) == "1771c1e395bf6bfc0a13469374d72a50"
    assert request_key(request("Zoë", max_output_tokens=100), other) == (
        "ac1ee36b1f8c03fec57c0ab025b59ca6"
    )
    assert text_key("Tom Crean", settings) == "7138389b5d112731c4518bcc7ef22d81"


def test_a_follow_up_depends_on_the_value_of_a_reply(model: Open) -> None:
    def then(words: list[str]) -> Asked | None:
        return request(" ".join(words[1:]), then=then) if len(words) > 1 else None

    with Server(answer=words_of_text) as server:
        for _ in range(2):
            (outcome,) = model(server).replies([request("a b c", then=then)])
            assert outcome.values == (["a", "b", "c"], ["b", "c"], ["c"])
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    "kind",
    ["408", "409", "429", "429_retry_after", "500", "502_html", "503", "close", "close_half",
     "truncated_json", "empty_choices", "malformed_content",
     "null_content", "empty_content", "prose", "fences", "think"]
)  # fmt: skip
def test_a_transient_fault_loses_nothing(kind: str, model: Open) -> None:
    faults = Faults(by_text={"poison": f"{kind}*1"}, retry_after=0.2)
    with Server(answer=words_of_text, faults=faults) as server:
        # The fault hits each body once: the limit of tokens must be the same in all attempts.
        chat = model(server, timeout=0.5, max_output_tokens=1_000)
        outcomes = ask(chat, "a", "poison b", "c")
    assert [outcome.values for outcome in outcomes] == [(["a"],), (["poison", "b"],), (["c"],)]


@pytest.mark.parametrize("kind", ["wrong_schema", "length"])
def test_an_invalid_reply_is_requested_once_more(kind: str, model: Open) -> None:
    with Server(answer=words_of_text, faults=Faults(by_number=[kind])) as server:
        (outcome,) = ask(model(server), "first of all")
        assert outcome.failure == ""
        bodies = [json.loads(asked.body) for asked in server.requests]
    if kind == "wrong_schema":
        # It is shown its reply and what is wrong with it.
        assert outcome.values
        assert "no list `words`" in bodies[1]["messages"][-1]["content"]
    else:
        assert outcome.values == (["first", "of", "all"],)
        assert bodies[0]["max_tokens"] < bodies[1]["max_tokens"] == 8_192


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("content_filter", "refused"), ("refusal", "refused"), ("wrong_schema", "no list `words`")],
)
def test_a_request_that_never_succeeds_is_quarantined_alone(
    kind: str, reason: str, tmp_path: Path, model: Open
) -> None:
    with Server(answer=words_of_text, faults=Faults(by_text={"poison": kind})) as server:
        outcomes = ask(model(server), "a", "poison b", "c")
        assert [bool(outcome.failure) for outcome in outcomes] == [False, True, False]
        assert reason in outcomes[1].failure
        assert states(tmp_path) == {"a": "done", "poison b": "quarantined", "c": "done"}
        # It stays aside until it is released.
        asked = len(server.requests)
        chat = model(server)
        assert ask(chat, "poison b")[0].failure == outcomes[1].failure
        assert len(server.requests) == asked
        server.faults = Faults()
        assert chat.ledger.reopen_quarantined(["step"]) == 1
        assert ask(chat, "poison b")[0].values == (["poison", "b"],)


def test_calls_that_wait_for_a_rate_limit_end_with_the_run(model: Open) -> None:
    # One is told to come back in an hour, and the others wait with it; that is too long.
    faults = Faults(rate=1, kinds=["429_retry_after"], retry_after=3_600)
    with Server(answer=words_of_text, faults=faults) as server:
        chat = model(server, retry_seconds=1)
        with pytest.raises(ModelError, match=r"has not answered for 1 s \(HTTP 429"):
            ask(chat, *(f"text {n}" for n in range(40)))


def test_a_prompt_longer_than_the_context_window_is_not_sent(model: Open) -> None:
    with Server(answer=words_of_text) as server:
        chat = model(server, context_window=1_000, max_output_tokens=500)
        fits, too_long = ask(chat, "a" + " " * 2_000, "b " * 5_000)
        assert fits.values == (["a"],)
        assert "does not fit the context window of 1000" in too_long.failure
        (asked,) = server.requests
        # What the window leaves to the reply is less than what it may have at most.
        assert json.loads(asked.body)["max_tokens"] < 500
        assert chat.ledger.step_statuses()[0].quarantined == 1


def test_a_prompt_that_may_not_fit_is_counted_exactly(model: Open) -> None:
    # Runes take three times as many tokens as their bytes would have it.
    runes = "ᚠᛇᚻᛒᛦ" * 150
    assert estimate_tokens(runes) < 700 < 1_000 < count_tokens(runes, load_encoding("o200k_base"))
    with Server(answer=words_of_text) as server:
        chat = model(server, context_window=1_000, max_output_tokens=300)
        (outcome,) = ask(chat, runes)
        assert "does not fit the context window" in outcome.failure
        assert not server.requests


def test_a_correction_fits_the_window_and_describes_the_format(model: Open) -> None:
    with Server(answer=lambda _: "Nothing but prose. " * 60) as server:
        chat = model(server, context_window=1_000, max_output_tokens=600)
        (outcome,) = ask(chat, "a b")
        assert "the reply is invalid" in outcome.failure
        (put_aside,) = chat.ledger.quarantined_requests(["step"])
        assert put_aside.raw == "Nothing but prose. " * 60
        first, second = (json.loads(asked.body) for asked in server.requests)
    for body in (first, second):
        n_tokens = sum(estimate_tokens(message["content"]) for message in body["messages"])
        assert n_tokens + body["max_tokens"] <= 1_000
    *_, shown, correction = second["messages"]
    assert shown["content"].startswith("Nothing but prose.")
    assert WORDS.instructions in correction["content"]


def test_a_reply_truncated_before_its_first_record_is_invalid(tmp_path: Path, model: Open) -> None:
    with Server(answer=lambda _: '{"claims": [' + "\n" * 9_000) as server:
        chat = model(server, max_output_tokens=500)
        messages = [Message(role="user", content="text")]
        (outcome,) = chat.replies([Asked("text", messages, CLAIMS_FORMAT)])
    assert "contains no complete record" in outcome.failure
    assert states(tmp_path) == {"text": "quarantined"}


def test_a_wrong_key_is_one_message_and_is_written_to_no_file(tmp_path: Path, model: Open) -> None:
    with (
        Server(answer=words_of_text, api_keys=["another"]) as server,
        pytest.raises(ModelError, match=r"does not accept the key: set api_key") as error,
    ):
        ask(model(server), "a", "b", "c")
    assert KEY not in str(error.value)
    assert len(server.requests) == 3
    for path in tmp_path.iterdir():
        assert KEY.encode() not in path.read_bytes()


def test_a_budget_below_a_cent_is_shown_in_full() -> None:
    assert "The budget of $0.0040 would be" in str(Budget(0.004).exceeded_error(1.0))


def test_the_budget_stops_before_it_is_exceeded(tmp_path: Path, model: Open) -> None:
    price = {"input": 0.0, "output": 1_000_000.0}  # a dollar a token
    budget = Budget(30.0)
    with Server(answer=words_of_text) as server:
        chat = model(server, budget=budget, price=price, max_output_tokens=16)
        with pytest.raises(BudgetError, match=r"The budget of \$30\.00 would be exceeded"):
            ask(chat, *(f"text {n}" for n in range(30)))
        done = sum(state == "done" for state in states(tmp_path).values())
        assert 0 < done < 30
        spent = chat.ledger.spent_so_far()
        assert spent <= 30.0
        assert budget.spent == pytest.approx(spent)
        chat = model(server, budget=Budget(1000.0, spent), price=price, max_output_tokens=16)
        assert all(not outcome.failure for outcome in ask(chat, *(f"text {n}" for n in range(30))))
        assert len(server.requests) == 30


def test_calls_are_paced_by_the_rate_limit(model: Open) -> None:
    with Server(answer=words_of_text) as server:
        chat = model(server, requests_per_minute=1200)
        began = time.monotonic()
        ask(chat, *(f"text {n}" for n in range(65)))
        # Sixty at once, the other five at twenty a second.
        assert time.monotonic() - began >= 0.2


def test_concurrent_calls_keep_the_budget(tmp_path: Path, model: Open) -> None:
    # Digits have a token for each two or three bytes, and a reply that is cut off is asked again.
    texts = [" ".join(str(number * 7919 + k) for k in range(150)) for number in range(40)]
    price = {"input": 1_000.0, "output": 3_000.0}
    faults = Faults(rate=0.3, kinds=["wrong_schema", "length", "500"], redraw=True)
    for limit in (20.0, 30.0):
        with Server(answer=words_of_text, jitter=0.02, faults=faults) as server:
            chat = model(
                server,
                output=tmp_path / str(limit),
                budget=Budget(limit),
                price=price,
                max_output_tokens=1_500,
                concurrency=16,
                retry_seconds=20,
            )
            with pytest.raises(BudgetError, match="would be exceeded"):
                ask(chat, *texts)
            assert 0 < chat.ledger.spent_so_far() <= limit


@pytest.mark.parametrize("kind", ["hang", "close_half", "truncated_json"])
def test_a_lost_response_counts_at_its_maximum_cost(kind: str, model: Open) -> None:
    price = {"input": 0.0, "output": 1_000_000.0}
    budget = Budget(1_000.0)
    with Server(answer=words_of_text, faults=Faults(by_number=[kind])) as server:
        chat = model(server, budget=budget, price=price, max_output_tokens=100, timeout=0.3)
        ask(chat, "a b")
        (row,) = chat.ledger.step_statuses()
    assert budget.spent == row.cost == 100 + row.completion_tokens


def test_tokens_are_estimated_where_the_server_counts_none(model: Open) -> None:
    # A stream that repeats itself is left before the server says what it took.
    price = {"input": 1.0, "output": 1_000_000.0}
    with Server(answer=words_of_text, faults=Faults(by_number=["endless"])) as server:
        chat = model(server, price=price, stream=True, max_output_tokens=2_000)
        ask(chat, "a b")
        n_asked = len(server.requests)
        rows = chat.ledger.fetch_rows("SELECT prompt_tokens, completion_tokens, cost FROM calls")
    assert len(rows) == n_asked
    assert all(prompt > 0 and completion > 0 and cost > 0 for prompt, completion, cost in rows)

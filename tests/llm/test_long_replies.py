"""Replies that are too long or too slow: of models that babble, repeat themselves, or reason."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.errors import ModelError, let_ctrl_c_end_waits
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.limits import ReplyLimit, TokenLimits
from graphrag_index.llm.reply_parser import is_repetitive
from graphrag_index.llm.request import EXPECTED_TOKENS, Attempt, expected_tokens
from graphrag_index.schema.settings.models import ModelSettings
from tests.fixtures.chat_requests import request, words_of_text
from tests.model_server import ChatRequest, Faults, Server

Open = Callable[..., ChatModel]


def limits(server: Server) -> list[int]:
    """Return the limit of tokens of each request."""
    bodies = [asked.json for asked in server.requests if asked.path.endswith("/completions")]
    return [body.get("max_completion_tokens") or body["max_tokens"] for body in bodies]


def ask(chat: ChatModel, *texts: str) -> list[Any]:
    return list(chat.replies([request(text) for text in texts]))


def many_words(_: ChatRequest) -> dict[str, Any]:
    return {"words": [f"word{n}" for n in range(2_000)]}


def test_the_limit_of_a_reply_follows_from_the_text(open_model: Open) -> None:
    with Server(answer=words_of_text) as server:
        ask(open_model(server), "short", "long " * 400)
        short, long = limits(server)
    assert EXPECTED_TOKENS < short < 1_200 < 5_000 < long < 8_192


def test_a_model_that_needs_more_tokens_gets_them_from_then_on(open_model: Open) -> None:
    # As a model that reasons before it replies.
    with Server(answer=many_words) as server:
        for text in ("a", "b"):
            (outcome,) = ask(open_model(server), text)
            assert len(outcome.values[0]) == 2_000
        first, *others = limits(server)
    assert first < 1_200
    assert others == [8_192, 8_192]


def test_an_invalid_reply_is_requested_again_with_more_tokens(open_model: Open) -> None:
    def answer(chat: ChatRequest) -> Any:
        return many_words(chat) if "cannot be used" in str(chat.messages[-1]) else "Sorry."

    with Server(answer=answer) as server:
        (outcome,) = ask(open_model(server), "a")
        first, second = limits(server)
    assert (len(outcome.values[0]), outcome.dropped) == (2_000, 0)
    assert first < 1_200 < second == 8_192


@pytest.mark.parametrize(
    ("is_lifted", "corrected", "expected"),
    [(False, False, True), (True, False, False), (False, True, False)],
)
def test_a_slow_reply_makes_truncated_ones_accepted_only_of_a_model_that_may_not_stop(
    is_lifted: bool, corrected: bool, expected: bool
) -> None:
    limit = ReplyLimit(is_lifted)
    limit.note_timeout(Attempt(8_192, corrected, is_last=True), request("a"))
    assert limit.accepts_truncated is expected


def test_a_babbling_model_costs_neither_the_run_nor_its_complete_records(open_model: Open) -> None:
    faults = Faults(by_text={"poison": "babble"})
    with Server(answer=words_of_text, faults=faults, tokens_per_second=2_000) as server:
        chat = open_model(server, timeout=1.5)
        calm, babbled, again = ask(chat, "calm", "poison a b c d e f", "poison h i j k l m")
        assert calm.values == (["calm"],)
        # The limit, more, less after a timeout; then truncated replies are accepted at once.
        assert max(limits(server)) == 8_192
    for outcome in (babbled, again):
        assert outcome.failure == ""
        assert outcome.values[0][0] == "poison"
        assert outcome.dropped > 0


def test_a_reply_slower_than_the_timeout_is_quarantined_alone(open_model: Open) -> None:
    with Server(answer=words_of_text, faults=Faults(by_text={"poison": "hang"})) as server:
        outcomes = ask(open_model(server, timeout=0.4), "a", "poison b", "c")
        first, second = (
            limit
            for asked, limit in zip(
                [r for r in server.requests if r.path.endswith("completions")],
                limits(server),
                strict=True,
            )
            if b"poison" in asked.body
        )
    assert [bool(outcome.failure) for outcome in outcomes] == [False, True, False]
    assert "no reply within 0.4 s, although the server answers" in outcomes[1].failure
    assert "raise timeout of this model" in outcomes[1].failure
    assert second <= first // 2


def test_a_reply_that_is_late_once_is_requested_again(open_model: Open) -> None:
    with Server(answer=words_of_text, faults=Faults(by_number=["hang"])) as server:
        (outcome,) = ask(open_model(server, timeout=0.4), "a b")
    assert outcome.values == (["a", "b"],)


def test_a_run_ends_if_the_server_lives_but_no_reply_is_in_time(open_model: Open) -> None:
    with Server(answer=words_of_text, tokens_per_second=2) as server:
        chat = open_model(server, timeout=0.2, retry_seconds=600)
        with pytest.raises(ModelError, match="the server answers, but no reply was complete"):
            ask(chat, *(f"text {n}" for n in range(20)))


def test_a_repeating_reply_is_cut_off_while_it_is_streamed(open_model: Open) -> None:
    faults = Faults(rate=1, kinds=["endless"])
    with Server(answer=many_words, faults=faults, tokens_per_second=20_000) as server:
        (outcome,) = ask(open_model(server, stream=True), "words " * 2_000)
        (asked,) = server.requests
    # The client left before the end, and no second request was sent.
    assert asked.status == 0
    assert outcome.values[0][:2] == ["word0", "word1"]
    assert outcome.dropped > 0


def test_a_truncated_reply_counts_alike_from_the_server_and_from_the_ledger(
    open_model: Open,
) -> None:
    with Server(answer=many_words) as server:
        chat = open_model(server, max_output_tokens=1_000)
        first, again = ask(chat, "a"), ask(chat, "a")
        assert len(server.requests) == 1
    assert first == again
    assert first[0].dropped > 0


def test_a_repeating_reply_is_not_requested_with_more_tokens(open_model: Open) -> None:
    with Server(answer=many_words, faults=Faults(rate=1, kinds=["endless"])) as server:
        (outcome,) = ask(open_model(server), "words " * 2_000)
        assert len(server.requests) == 1
    assert outcome.values[0][0] == "word0"


def test_another_limit_is_sent_to_a_server_that_ignores_the_first(open_model: Open) -> None:
    faults = Faults(rate=1, kinds=["ignores:max_tokens"])
    with Server(answer=many_words, faults=faults) as server:
        chat = open_model(server)
        assert [len(ask(chat, text)[0].values[0]) for text in ("a", "b")] == [2_000, 2_000]
        bodies = [json.loads(asked.body) for asked in server.requests]
    assert "max_tokens" in bodies[0]
    assert "max_completion_tokens" in bodies[1]


@pytest.mark.parametrize("text", ["", "a", '{"words": []}', "word " * 20])
def test_a_short_text_is_not_repetitive(text: str) -> None:
    assert not is_repetitive(text)


def test_streams_that_a_server_ends_for_each_other_are_sent_one_by_one(open_model: Open) -> None:
    # llama-cpp-python ends a stream when another request arrives.
    with Server(answer=words_of_text, chunk_delay=0.03) as server:
        server.streams_at_once = 1
        chat = open_model(server, stream=True, retry_seconds=60)
        outcomes = ask(chat, *(" ".join(f"word{n}{i}" for i in range(60)) for n in range(4)))
    assert [bool(outcome.values) for outcome in outcomes] == [True] * 4


@given(st.text(min_size=1, max_size=120), st.text(max_size=300))
def test_repetition_is_found_after_any_text(part: str, before: str) -> None:
    assert is_repetitive(before + part * (400 // len(part) + 5))


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=200, unique=True))
def test_a_list_of_different_records_is_not_repetitive(numbers: list[int]) -> None:
    assert not is_repetitive(json.dumps([{"title": str(n), "type": "person"} for n in numbers]))


@given(st.text(max_size=2_000), st.integers(16, 20_000))
def test_a_first_limit_never_exceeds_the_setting(text: str, max_tokens: int) -> None:
    settings = ModelSettings(model="m", max_output_tokens=max_tokens)
    attempt = ReplyLimit().first_attempt(request(text), TokenLimits(settings), 100)
    assert attempt.max_tokens == min(max_tokens, expected_tokens(request(text)))


def test_replies_truncated_by_the_first_limit_do_not_count_against_the_format(
    open_model: Open,
) -> None:
    with Server(answer=many_words) as server:
        for text in "abcd":
            assert ask(open_model(server), text)[0].values
        assert all("response_format" in asked.json for asked in server.requests if asked.body)


def test_a_server_that_refuses_every_request_ends_the_run_also_if_it_takes_its_time(
    open_model: Open,
) -> None:
    with Server(faults=Faults(rate=1, kinds=["400"]), latency=0.05) as server:
        chat = open_model(server, concurrency=4)
        with pytest.raises(ModelError, match="refuses every request"):
            ask(chat, *(f"text {n}" for n in range(60)))


def test_a_complete_reply_counts_if_its_stream_breaks_afterwards(open_model: Open) -> None:
    faults = Faults(rate=1, kinds=["close_done"])
    with Server(answer=words_of_text, faults=faults) as server:
        (outcome,) = ask(open_model(server, stream=True, retry_seconds=5), "a b")
        assert len(server.requests) == 1
    assert outcome.values == (["a", "b"],)


def test_ctrl_c_ends_the_wait_for_running_calls(open_model: Open) -> None:
    # One request fails for good, while another one is answered after a long time.
    faults = Faults(by_text={"refused": "401", "slow": "hang"})
    with Server(answer=words_of_text, faults=faults) as server:
        chat = open_model(server, timeout=60)
        chat._client.calls.first_delay = 0.01
        requests = [request("good"), request("refused"), request("slow")]
        outcomes = chat.replies(requests)
        assert next(outcomes).values == (["good"],)
        # Commands do the same when they begin.
        let_ctrl_c_end_waits()
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            list(outcomes)
        assert time.monotonic() - start < 30

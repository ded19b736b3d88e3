"""What a failed call means for itself and for those beside it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import closing

import pytest

from graphrag_index.errors import ModelError
from graphrag_index.llm.caller import MAX_FAILING, Caller
from graphrag_index.llm.failures import RejectedError, RetryError
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.pacing import Pace, reset_after
from graphrag_index.llm.prices import Budget
from graphrag_index.llm.request import Usage
from graphrag_index.schema.settings.models import ModelSettings

Ask = Callable[[], Awaitable[tuple[str, Usage]]]


def outcomes(
    *asks: Ask, retry_seconds: float = 60.0, once_answered: bool = True
) -> list[str | BaseException]:
    """Make calls at once, and say what became of each."""

    async def call(ledger: Ledger) -> list[str | BaseException]:
        settings = ModelSettings(model="m", concurrency=64, retry_seconds=retry_seconds)
        caller = Caller("chat", settings, ledger, Budget(None))
        caller.first_delay = 0.01
        if once_answered:
            await caller.call(answering(), 10, 10)
        calls = [caller.call(ask, 10, 10) for ask in asks]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    with closing(Ledger(None)) as ledger:
        return asyncio.run(call(ledger))


def answering(after: int = 0, error: Exception | None = None) -> Ask:
    """A call that fails so many times before it succeeds."""
    times = 0

    async def ask() -> tuple[str, Usage]:
        nonlocal times
        times += 1
        if times <= after and error is not None:
            raise error
        await asyncio.sleep(0.01)
        return "answer", Usage()

    return ask


DENIED = ModelError("does not accept the key")
ALWAYS = 1_000_000


def test_a_denial_among_answers_passes() -> None:
    assert outcomes(answering(2, DENIED), *(answering() for _ in range(3))) == ["answer"] * 4


def test_who_is_always_denied_among_answers_is_at_fault() -> None:
    denied, *others = outcomes(answering(ALWAYS, DENIED), *(answering() for _ in range(3)))
    assert isinstance(denied, RejectedError)
    assert others == ["answer"] * 3


def test_a_key_that_is_revoked_stops_all_with_its_sentence() -> None:
    found = outcomes(*(answering(ALWAYS, DENIED) for _ in range(20)))
    assert {str(error) for error in found} == {str(DENIED)}


def test_a_key_that_is_wrong_is_tried_three_times() -> None:
    n_sent = 0

    async def ask() -> tuple[str, Usage]:
        nonlocal n_sent
        n_sent += 1
        raise DENIED

    found = outcomes(*(ask for _ in range(20)), once_answered=False)
    assert {str(error) for error in found} == {str(DENIED)}
    assert n_sent == 3


def test_an_outage_costs_no_request() -> None:
    # As many failures in a row as would make one request a faulty one.
    down = [answering(7, RetryError("HTTP 503")) for _ in range(MAX_FAILING + 1)]
    assert outcomes(*down, answering()) == ["answer"] * (MAX_FAILING + 2)


def test_who_fails_alone_at_the_end_is_at_fault() -> None:
    failing, other = outcomes(answering(ALWAYS, RetryError("HTTP 500")), answering())
    assert isinstance(failing, RejectedError)
    assert str(failing) == "failed 6 times: HTTP 500"
    assert other == "answer"


def test_an_outage_that_lasts_ends_the_run() -> None:
    (error,) = outcomes(answering(ALWAYS, RetryError("HTTP 503")), retry_seconds=0.1)
    assert isinstance(error, ModelError)
    assert "has not answered for 0.1 s (HTTP 503)" in str(error)


def test_where_nothing_remains_the_reset_is_waited_for() -> None:
    spent = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2s"}
    tokens = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms"}
    assert reset_after(spent) == 2
    assert reset_after(tokens) == pytest.approx(0.12)
    assert reset_after({**spent, **tokens}) == 2
    assert reset_after({**spent, "x-ratelimit-remaining-requests": "1"}) is None
    assert reset_after({"x-ratelimit-remaining-tokens": "0"}) is None

    async def enter() -> float:
        pace = Pace(4)
        pace.told(tokens)
        began = time.monotonic()
        async with pace.turn(1):
            return time.monotonic() - began

    assert asyncio.run(enter()) >= 0.1

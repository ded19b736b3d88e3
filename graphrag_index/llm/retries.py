"""Calls to one model: retried while a failure may pass, within its limits and the budget."""

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from graphrag_index.errors import ModelError, OutageError
from graphrag_index.llm.limits import MAX_SLEEP, Budget, Pace, cost_of, max_cost_of, price_of
from graphrag_index.llm.request import Usage
from graphrag_index.schema.settings.models import ModelSettings

# Seconds before the first retry, with jitter, and the longest delay.
FIRST_DELAY, MAX_DELAY = 0.5, 30.0
# Refused requests in a row, before any is answered, that end the run.
MAX_REFUSALS = 5
# Failures that reject a request while others succeed.
MAX_FAILURES = 6
# Requests that may fail in a row; with more of them the server is at fault.
MAX_FAILING = 5
# Requests that may be denied access before any is answered.
MAX_DENIED = 2
# Seconds after which a request that is not refused counts as accepted.
GRACE = 0.02

T = TypeVar("T")


class RetryError(Exception):
    """The call failed for a reason that may pass."""

    def __init__(
        self,
        reason: str,
        after: float | None = None,
        rate: bool = False,
        denied: ModelError | None = None,
        lost: bool = False,
    ) -> None:
        super().__init__(reason)
        self.after = after  # seconds that the server asks to wait
        self.rate = rate  # whether the provider refused the call for its rate
        self.denied = denied  # the error to raise if access stays denied
        self.lost = lost  # whether the request was sent, and may have been charged for


class RejectedError(Exception):
    """The server refuses this request; a retry does not help."""


class UnsupportedError(Exception):
    """The server does not support a parameter or the reply format of the request."""


def redact(text: str, secret: str) -> str:
    """Replace a key in a text; providers repeat parts of it in their messages."""
    if len(secret) >= 4:
        text = text.replace(secret, "***")
    return re.sub(r"\b(sk|key|Bearer)[-_ ][\w*.-]{4,}", r"\1-***", text)


def backoff(failures: int, first: float = FIRST_DELAY) -> float:
    """Return the seconds before a retry: twice as long after each failure, with jitter."""
    delay = min(MAX_DELAY, first * 2 ** (failures - 1))
    return random.uniform(delay / 2, delay)


class _Failures:
    """Times at which one request has failed."""

    def __init__(self) -> None:
        self.times = 0
        self.began = time.monotonic()
        # The first, the last but one, and the last.
        self.first = self.before = self.last = 0.0

    def add(self) -> None:
        now = time.monotonic()
        self.times += 1
        self.first = self.first or now
        self.before, self.last = self.last, now


class RetriedCalls:
    """The calls of one client. Lives in one event loop."""

    def __init__(
        self, name: str, settings: ModelSettings, budget: Budget, keeps_replies: bool
    ) -> None:
        self.price = price_of(settings)
        # Headers of the last response.
        self.headers: Mapping[str, str] = {}
        # Seconds before the second attempt, with jitter; doubled for each further one.
        self.first_delay = FIRST_DELAY
        self._name, self._settings, self._budget = name, settings, budget
        self._keeps_replies = keeps_replies
        self._pace = Pace(settings)
        self._probe = asyncio.Lock()
        self._works = False
        self._last_success = 0.0
        self._n_refusals = 0
        # Calls that have failed since the last success, and those that were denied access.
        self._failing: set[object] = set()
        self._denied: set[object] = set()
        self._stopped: Exception | None = None

    def stop(self, error: Exception) -> None:
        """Let every further call fail with this error; calls under way end."""
        self._stopped = error
        self._pace.stop()

    async def call(
        self,
        send: Callable[[], Awaitable[tuple[T, Usage]]],
        n_tokens: int,
        max_tokens: int,
        before_send: Callable[[], None] = lambda: None,
    ) -> T:
        """Make a call within the limits, again and again while its failures may pass.

        It sends about `n_tokens`, and its reply has at most `max_tokens`; `before_send` is
        called right before each attempt. A request at fault raises `RejectedError`; a server
        that does not answer for as long as the settings allow, `ModelError`; a call that could
        cost more than the budget leaves, `BudgetError`.
        """
        failures = _Failures()
        max_cost = max_cost_of(n_tokens, max_tokens, self.price) or 0.0
        while True:
            try:
                async with (
                    self._budget.reserve(max_cost),
                    self._pace.slot(n_tokens + max_tokens // 8),
                ):
                    result, usage = await self._probe_first(send, before_send)
                    self._pace.note_success(self.headers)
                    self._last_success = time.monotonic()
                    self._failing.clear()
                    self._denied.clear()
                    self._budget.spend(cost_of(usage, self.price))
                    return result
            except RejectedError as error:
                self._n_refusals += 1
                if not self._works and self._n_refusals >= MAX_REFUSALS:
                    reason = redact(str(error), self._settings.key)
                    message = f"Model {self._name} refuses every request: {reason}."
                    raise ModelError(message) from None
                raise
            except RetryError as error:
                self._budget.spend(max_cost if error.lost else 0.0)
                delay = self._delay_after(error, failures)
                self._give_up_if_hopeless(error, failures, delay)
            # Wake up when all is stopped.
            until = time.monotonic() + delay
            while self._stopped is None and (left := until - time.monotonic()) > 0:
                await asyncio.sleep(min(left, MAX_SLEEP))

    async def _probe_first(
        self, send: Callable[[], Awaitable[T]], before_send: Callable[[], None]
    ) -> T:
        """Let one call find out what the server supports before all others follow.

        A request that is not refused at once is being answered: the others need not wait
        for the whole reply.
        """
        if self._works:
            return await self._attempt(send, before_send)
        async with self._probe:
            attempt = asyncio.ensure_future(self._attempt(send, before_send))
            if not self._works:
                try:
                    await asyncio.wait({attempt}, timeout=GRACE)
                except asyncio.CancelledError:
                    attempt.cancel()
                    raise
                self._works = not attempt.done() or attempt.exception() is None
        return await attempt

    async def _attempt(
        self, send: Callable[[], Awaitable[T]], before_send: Callable[[], None]
    ) -> T:
        if self._stopped is not None:
            raise self._stopped
        before_send()
        try:
            return await send()
        except ModelError as error:
            # A gateway may deny one call of many.
            raise RetryError(str(error), denied=error) from None

    def _delay_after(self, error: RetryError, failures: _Failures) -> float:
        """Note a failure; returns the seconds until the next attempt."""
        failures.add()
        after = error.after
        if error.rate:
            after = self._pace.note_refusal(after, self.headers)
        else:
            self._failing.add(failures)
        if after is None:
            return backoff(failures.times, self.first_delay)
        # A little longer, so that calls refused together do not return together.
        return after + random.uniform(0, 0.1) * after

    def _give_up_if_hopeless(self, error: RetryError, failures: _Failures, delay: float) -> None:
        reason = redact(str(error), self._settings.key)
        seconds = self._settings.retry_seconds
        too_long = time.monotonic() - failures.began + delay > seconds
        # In an outage all requests fail; at the end of a run those are left that always fail.
        others_succeed = self._last_success > failures.first and (
            self._last_success > failures.before or len(self._failing) <= MAX_FAILING
        )
        if others_succeed and (too_long or (failures.times >= MAX_FAILURES and not error.rate)):
            raise RejectedError(f"failed {failures.times} times: {reason}") from None
        if error.denied is not None:
            self._denied.add(failures)
            max_denied = MAX_FAILING if self._last_success else MAX_DENIED
            if too_long or failures.times > max_denied or len(self._denied) > max_denied:
                self.stop(error.denied)
                raise error.denied
        if too_long:
            run_again = "run again when it does; what was answered is kept"
            advice = run_again if self._keeps_replies else "ask again when it does"
            raise OutageError(
                f"Model {self._name} has not answered for {seconds:g} s ({reason}): {advice}."
            ) from None

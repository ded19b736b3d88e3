"""Calls to one model: retries after temporary failures, within rate limits and the budget."""

import asyncio
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from graphrag_index.errors import ModelError, OutageError
from graphrag_index.llm.limits import (
    MAX_SLEEP_SECONDS,
    Budget,
    LengthRefusal,
    RateLimiter,
    cost_of,
    max_cost_of,
    price_of_model,
)
from graphrag_index.llm.request import Usage
from graphrag_index.schema.settings.models import ModelSettings

# Delay before the first retry, and maximum delay before a retry, in seconds, with jitter.
FIRST_DELAY, MAX_DELAY = 0.5, 30.0
# After this many seconds without a reply, say so once.
MAX_SILENT_SECONDS = 20.0
# If the server refuses this many requests before it answers any request, the run ends.
MAX_REFUSALS = 5
# If a request fails this many times while other requests succeed, it is rejected.
MAX_FAILURES = 6
# Maximum number of requests that fail since the last success. If more requests fail, the
# server is at fault, not the requests.
MAX_FAILING = 5
# If the server answers, but this many replies are too slow before any reply is complete, the run
# ends.
MAX_SLOW_REPLIES = 10
# Maximum number of requests that are denied access before the server answers any request.
MAX_DENIED = 2
# If the server does not refuse a request within this many seconds, it has accepted the request.
GRACE_SECONDS = 0.02

T = TypeVar("T")

logger = logging.getLogger(__name__)


class RetryError(Exception):
    """A temporary failure of a call: a retry may succeed."""

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
        self.rate = rate  # whether the provider refused the call because of a rate limit
        self.denied = denied  # the error to raise if the server denies access again
        self.lost = lost  # whether the request was sent, so that it may cost money


class ServerError(RetryError):
    """An HTTP status of 500 or above: an outage, or a server that cannot handle the request."""


class ReplyTimeoutError(RetryError):
    """A call whose reply was not complete within `timeout` seconds."""


class StreamEndedError(RetryError):
    """A stream that ended before the reply was complete; some servers end one to start another."""


class SlowReplyError(Exception):
    """The reply to this request is too slow, although the server answers other requests."""


class RejectedError(Exception):
    """The server refuses this request, and would refuse a retry too."""


class RefusedContentError(RejectedError):
    """The server refuses the content of a request, of whatever length."""


class LengthError(RejectedError):
    """The request is too long. `refusal` is None if the server does not name a limit."""

    def __init__(self, reason: str, refusal: LengthRefusal | None = None) -> None:
        super().__init__(reason)
        self.refusal = refusal


class UnsupportedError(RejectedError):
    """The server does not support a parameter or the reply format of the request."""


class AddressError(ModelError):
    """The address of a model leads to another server, or to one without a valid certificate."""


def redact(text: str, secret: str) -> str:
    """Replace API keys in a text by asterisks: error messages may contain parts of a key."""
    if len(secret) >= 4:
        text = text.replace(secret, "***")
    # A key has a digit or asterisks: "API key provided" has none.
    return re.sub(
        r"\b(sk[-_]|(?:key|Bearer)[-_ ](?=[\w.-]*[\d*]))[\w*.-]{3,}[\w*-]", r"\1***", text
    )


def backoff_seconds(failures: int, first: float = FIRST_DELAY) -> float:
    """Return the seconds to wait before a retry; the delay doubles with each failure."""
    delay = min(MAX_DELAY, first * 2 ** (failures - 1))
    return random.uniform(delay / 2, delay)


@dataclass(eq=False)
class _RequestFailures:
    """The start of a request and the times of its failures, on the monotonic clock."""

    began: float = field(default_factory=time.monotonic)
    times: list[float] = field(default_factory=list)


class RetriedCalls:
    """The calls of one client with their retries, for use in one event loop only."""

    def __init__(
        self, name: str, settings: ModelSettings, budget: Budget, keeps_replies: bool
    ) -> None:
        self.price = price_of_model(settings)
        # Headers of the last response.
        self.headers: Mapping[str, str] = {}
        # Delay before the first retry, in seconds; it doubles before each further retry.
        self.first_delay = FIRST_DELAY
        self._name, self._settings, self._budget = name, settings, budget
        self._keeps_replies = keeps_replies
        self._rate_limiter = RateLimiter(settings)
        self._probe = asyncio.Lock()
        self._has_succeeded = False
        # Time of the last reply, by `time.monotonic`; 0: none yet.
        self.last_success = 0.0
        self._has_replied = False
        self._n_refusals = 0
        self._n_slow = 0
        # Calls that have failed since the last success, and calls that were denied access.
        self._failing: set[object] = set()
        self._denied: set[object] = set()
        self._stopped: Exception | None = None
        self._has_warned = False

    def note_probe(self, usage: Usage) -> None:
        """Note that the server has answered a probe, so that it is not down."""
        self.last_success = time.monotonic()
        self._budget.add_cost(cost_of(usage, self.price))

    def stop_calls(self, error: Exception) -> None:
        """Make every further call fail with this error; waiting calls stop waiting."""
        self._stopped = error
        self._rate_limiter.stop()

    async def call_with_retries(
        self, send: Callable[[], Awaitable[tuple[T, Usage]]], n_tokens: int, max_tokens: int
    ) -> T:
        """Make a call within the limits, and retry it after temporary failures.

        `send` sends about `n_tokens`, and the reply has at most `max_tokens`. Raises
        `RejectedError` if the request is at fault, `SlowReplyError` if its reply is too slow,
        `ModelError` if the server does not answer within the time limit of the settings or
        refuses all requests, and `BudgetError` if the call could exceed the budget.
        """
        failures = _RequestFailures()
        max_cost = max_cost_of(n_tokens, max_tokens, self.price) or 0.0
        while True:
            try:
                async with (
                    self._budget.reserve_cost(max_cost),
                    self._rate_limiter.wait_for_slot(n_tokens + max_tokens // 8),
                ):
                    result, usage = await self._probe_first(send)
                    self._note_success(usage)
                    return result
            except SlowReplyError:
                self._budget.add_cost(max_cost)
                self._note_slow_reply()
                raise
            except RetryError as error:
                self._budget.add_cost(max_cost if error.lost else 0.0)
                delay = self._delay_after(error, failures)
                self._raise_unless_retryable(error, failures, delay)
            # Sleep in short intervals, so that `stop_calls` ends the wait.
            until = time.monotonic() + delay
            while self._stopped is None and (left := until - time.monotonic()) > 0:
                await asyncio.sleep(min(left, MAX_SLEEP_SECONDS))

    def _note_success(self, usage: Usage) -> None:
        self._rate_limiter.note_success(self.headers)
        self.last_success = time.monotonic()
        self._has_replied = True
        self._failing.clear()
        self._denied.clear()
        self._has_warned = False
        self._budget.add_cost(cost_of(usage, self.price))

    def note_refusal(self, error: RejectedError) -> None:
        """Count a refusal; raise `ModelError` if the server has refused every request so far."""
        self._n_refusals += 1
        # Refusals of calls that run together may arrive before the first reply.
        together = self._settings.concurrency if self._has_succeeded else 0
        if not self._has_replied and self._n_refusals >= MAX_REFUSALS + together:
            reason = redact(str(error), self._settings.key)
            raise ModelError(f"Model {self._name} refuses every request: {reason}.") from None

    def _note_slow_reply(self) -> None:
        """Count a slow reply; raise `ModelError` if no reply was complete in time so far."""
        self._n_slow += 1
        if self._n_slow == 1:
            logger.warning(
                "Model %s: a reply was not complete within %g s, although the server answers. The "
                "request is sent once more, with a lower limit of tokens.",
                self._name,
                self._settings.timeout,
            )
        if not self.last_success and self._n_slow >= MAX_SLOW_REPLIES:
            raise ModelError(
                f"Model {self._name}: the server answers, but no reply was complete within "
                f"{self._settings.timeout:g} s: raise timeout of this model, set its stream to "
                "true, or use a faster model."
            ) from None

    async def _probe_first(self, send: Callable[[], Awaitable[T]]) -> T:
        """Make a call; before the first success, make only one call at a time.

        The first call finds out the parameters that the server supports. If the server does not
        refuse this call within `GRACE_SECONDS`, the other calls start before the reply arrives.
        """
        if self._has_succeeded:
            return await self._attempt_call(send)
        async with self._probe:
            attempt = asyncio.ensure_future(self._attempt_call(send))
            if not self._has_succeeded:
                try:
                    await asyncio.wait({attempt}, timeout=GRACE_SECONDS)
                except asyncio.CancelledError:
                    attempt.cancel()
                    # The call records that it was lost before its caller goes on.
                    await asyncio.wait({attempt})
                    raise
                self._has_succeeded = not attempt.done() or attempt.exception() is None
        return await attempt

    async def _attempt_call(self, send: Callable[[], Awaitable[T]]) -> T:
        if self._stopped is not None:
            raise self._stopped
        try:
            return await send()
        except AddressError:
            raise
        except ModelError as error:
            # A gateway may deny access to single calls, so that a retry can succeed.
            raise RetryError(str(error), denied=error) from None

    def _delay_after(self, error: RetryError, failures: _RequestFailures) -> float:
        """Record a failure; returns the seconds until the next attempt."""
        failures.times.append(time.monotonic())
        after = error.after
        if error.rate:
            after = self._rate_limiter.note_refusal(after, self.headers)
        else:
            self._failing.add(failures)
            if isinstance(error, StreamEndedError):
                self._rate_limiter.lower_concurrency()
        if after is None:
            return backoff_seconds(len(failures.times), self.first_delay)
        # Add jitter, so that calls that were refused together are not repeated together.
        return after + random.uniform(0, 0.1) * after

    def _raise_unless_retryable(
        self, error: RetryError, failures: _RequestFailures, delay: float
    ) -> None:
        """Raise the final error of a request, unless a retry in `delay` seconds makes sense."""
        reason = redact(str(error), self._settings.key)
        seconds, n_failures = self._settings.retry_seconds, len(failures.times)
        too_long = time.monotonic() - failures.began + delay > seconds
        # In an outage all requests fail. If other requests succeed, this request is at fault. At
        # the end of a run only faulty requests are left: a few failing requests are no outage.
        first, last_but_one = failures.times[0], failures.times[-2:][0]
        others_succeed = self.last_success > first and (
            self.last_success > last_but_one or len(self._failing) <= MAX_FAILING
        )
        if others_succeed and (too_long or (n_failures >= MAX_FAILURES and not error.rate)):
            raise RejectedError(f"failed {n_failures} times: {reason}") from None
        if error.denied is not None:
            self._denied.add(failures)
            max_denied = MAX_FAILING if self.last_success else MAX_DENIED
            if too_long or n_failures > max_denied or len(self._denied) > max_denied:
                self.stop_calls(error.denied)
                raise error.denied
        if too_long:
            kept = "run again when it does; received replies are kept"
            advice = kept if self._keeps_replies else "ask again when it does"
            raise OutageError(
                f"Model {self._name} has not answered for {seconds:g} s ({reason}): {advice}."
            ) from None
        silent = time.monotonic() - max(failures.began, self.last_success)
        if silent > MAX_SILENT_SECONDS and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "Model %s has not answered for %.0f s (%s). Requests are repeated for up to %g s.",
                self._name,
                silent,
                reason,
                seconds,
            )

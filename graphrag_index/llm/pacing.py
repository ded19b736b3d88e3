"""Pacing of calls: concurrency, rate limits, and the delays between retries.

Concurrency adapts to the provider's limit: it is cut when the provider refuses a call for
its rate, and grows by one a round while none is refused (additive increase, multiplicative
decrease [1]_).

References
----------
.. [1] Chiu & Jain, Analysis of the increase and decrease algorithms for congestion
   avoidance in computer networks, 1989.
"""

import asyncio
import random
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

DECREASE = 0.7
# Seconds between two looks whether all was stopped.
MAX_SLEEP = 0.5
MINUTE = 60.0
# Seconds before a retry: about the first, and at most.
FIRST_DELAY, MAX_DELAY = 0.5, 30.0


class Pace:
    """Limits of the calls to one model. Lives in one event loop."""

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
    ) -> None:
        self.max_limit = concurrency
        self.limit = float(concurrency)
        self.running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._stopped = False
        self._not_before = 0.0
        self._cut_at = 0.0
        self._requests = _Bucket(requests_per_minute)
        self._tokens = _Bucket(tokens_per_minute)

    @asynccontextmanager
    async def slot(self, n_tokens: int) -> AsyncIterator[None]:
        """Wait for a free slot for a call of so many tokens, and hold it."""
        await self._enter()
        try:
            while (delay := self._delay(n_tokens)) > 0 and not self._stopped:
                await asyncio.sleep(min(delay, MAX_SLEEP))
            self._requests.take(1)
            self._tokens.take(n_tokens)
            yield
        finally:
            self.running -= 1
            self._wake()

    async def _enter(self) -> None:
        if self.running < int(self.limit) and not self._waiting:
            self.running += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.running -= 1
                self._wake()
            raise

    def _wake(self) -> None:
        while self._waiting and self.running < int(self.limit):
            place = self._waiting.popleft()
            if not place.done():
                self.running += 1
                place.set_result(None)

    def _delay(self, n_tokens: int) -> float:
        """Return how long the next call must wait, in seconds."""
        return max(
            self._not_before - time.monotonic(),
            self._requests.delay(1),
            self._tokens.delay(n_tokens),
        )

    def stop(self) -> None:
        """Let nobody wait any longer; the caller refuses whoever is let through."""
        self._stopped = True

    def note_success(self, headers: Mapping[str, str]) -> None:
        """Raise the concurrency; where `x-ratelimit-*` leave nothing, wait for their reset."""
        if self.limit < self.max_limit:
            self.limit = min(float(self.max_limit), self.limit + 1 / self.limit)
            self._wake()
        reset = reset_after(headers)
        if reset is not None:
            self._not_before = max(self._not_before, time.monotonic() + reset)

    def note_refusal(self, after: float | None, headers: Mapping[str, str]) -> float | None:
        """Cut the concurrency, since a call was refused for its rate.

        Returns the seconds that all calls wait now: `after`, or what the headers ask for.
        """
        after = reset_after(headers) if after is None else after
        now = time.monotonic()
        # Calls that were under way together are refused together: that is one event.
        if now - self._cut_at > 1.0:
            self.limit = max(1.0, self.limit * DECREASE)
            self._cut_at = now
        if after is not None:
            self._not_before = max(self._not_before, now + after)
        return after


class Failures:
    """Times at which one request has failed."""

    def __init__(self) -> None:
        self.times = 0
        self.began = time.monotonic()
        # The first, the last but one, and the last.
        self.first = self.before = self.last = 0.0

    def add(self, now: float) -> None:
        """Count a failure."""
        self.times += 1
        self.first = self.first or now
        self.before, self.last = self.last, now


def backoff(failures: int, first: float = FIRST_DELAY) -> float:
    """Return the seconds before a retry: twice as long after each failure, with jitter."""
    delay = min(MAX_DELAY, first * 2 ** (failures - 1))
    return random.uniform(delay / 2, delay)


def jitter(seconds: float) -> float:
    """Lengthen a delay at random, so that calls refused together do not return together."""
    return seconds + random.uniform(0, 0.1) * seconds


def reset_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until a used-up rate limit is reset, by `x-ratelimit-*`, if one is."""
    resets = [
        parse_duration(headers.get(f"x-ratelimit-reset-{kind}", ""))
        for kind in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{kind}", "").strip() == "0"
    ]
    return max((min(reset, MINUTE) for reset in resets if reset is not None), default=None)


class _Bucket:
    """Token bucket, refilled continuously; one call may overdraw it."""

    def __init__(self, per_minute: int | None) -> None:
        self.rate = per_minute / MINUTE if per_minute else None
        # A twentieth of a minute's worth may go at once.
        self.capacity = max(1.0, per_minute / 20) if per_minute else 0.0
        self.level = self.capacity
        self.at = time.monotonic()

    def _refill(self) -> None:
        now = time.monotonic()
        self.level = min(self.capacity, self.level + (now - self.at) * (self.rate or 0))
        self.at = now

    def delay(self, amount: float) -> float:
        if self.rate is None:
            return 0.0
        self._refill()
        return max(0.0, (min(amount, self.capacity) - self.level) / self.rate)

    def take(self, amount: float) -> None:
        if self.rate is not None:
            self._refill()
            self.level -= amount


_NUMBER = r"(?:\d+\.?\d*|\.\d+)"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str) -> float | None:
    """Parse a duration in a header into seconds: "1.5", "2s", "120ms", "6m0s", "1h2m"."""
    text = text.strip()
    if not text:
        return None
    if re.fullmatch(rf"-?{_NUMBER}", text):
        return max(0.0, float(text))
    if not re.fullmatch(rf"(?:{_NUMBER}(?:{'|'.join(_SECONDS)}))+", text):
        return None
    parts = re.findall(rf"({_NUMBER})({'|'.join(_SECONDS)})", text)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)

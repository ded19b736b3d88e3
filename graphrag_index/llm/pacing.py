"""How many calls run at once, and how fast they follow each other.

The number at once finds the provider's limit by itself: it is cut when the provider refuses
a call for its rate, and grows by one a round while none is refused (additive increase,
multiplicative decrease [1]_). All waiting is asyncio's.

References
----------
.. [1] Chiu & Jain, Analysis of the increase and decrease algorithms for congestion
   avoidance in computer networks, 1989.
"""

import asyncio
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

DECREASE = 0.7
# Seconds after which who waits looks whether all has been stopped.
LONGEST_SLEEP = 0.5
MINUTE = 60.0


class Pace:
    """Lets calls through; made and used inside of one event loop."""

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
    ) -> None:
        self.most = concurrency
        self.limit = float(concurrency)
        self.running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._stopped = False
        self._not_before = 0.0
        self._cut_at = 0.0
        self._requests = _Bucket(requests_per_minute)
        self._tokens = _Bucket(tokens_per_minute)

    @asynccontextmanager
    async def turn(self, n_tokens: int) -> AsyncIterator[None]:
        """Wait until a call of so many tokens may be made, and count it while it runs."""
        await self._enter()
        try:
            while (delay := self._delay(n_tokens)) > 0 and not self._stopped:
                await asyncio.sleep(min(delay, LONGEST_SLEEP))
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
        """Let nobody wait any longer; whoever is let through is told so by the caller."""
        self._stopped = True

    def accepted(self) -> None:
        """Note that a call was not refused for its rate."""
        if self.limit < self.most:
            self.limit = min(float(self.most), self.limit + 1 / self.limit)
            self._wake()

    def refused(self, retry_after: float | None) -> None:
        """Note that a call was refused for its rate; all others wait as long as it is told to."""
        now = time.monotonic()
        # Calls that were under way together are refused together: that is one event.
        if now - self._cut_at > 1.0:
            self.limit = max(1.0, self.limit * DECREASE)
            self._cut_at = now
        if retry_after is not None:
            self._not_before = max(self._not_before, now + retry_after)

    def told(self, headers: Mapping[str, str]) -> None:
        """Heed `x-ratelimit-*`: where nothing remains, wait for the reset."""
        reset = reset_after(headers)
        if reset is not None:
            self._not_before = max(self._not_before, time.monotonic() + reset)


def reset_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until something remains, by `x-ratelimit-*`; None if something does."""
    resets = [
        parse_duration(headers.get(f"x-ratelimit-reset-{what}", ""))
        for what in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{what}", "").strip() == "0"
    ]
    return max((min(reset, MINUTE) for reset in resets if reset is not None), default=None)


class _Bucket:
    """What may be spent a minute, refilled all the time; it may be overdrawn by one call."""

    def __init__(self, per_minute: int | None) -> None:
        self.rate = per_minute / MINUTE if per_minute else None
        # A twentieth of a minute's worth may go at once.
        self.most = max(1.0, per_minute / 20) if per_minute else 0.0
        self.level = self.most
        self.at = time.monotonic()

    def _refill(self) -> None:
        now = time.monotonic()
        self.level = min(self.most, self.level + (now - self.at) * (self.rate or 0))
        self.at = now

    def delay(self, amount: float) -> float:
        if self.rate is None:
            return 0.0
        self._refill()
        return max(0.0, (min(amount, self.most) - self.level) / self.rate)

    def take(self, amount: float) -> None:
        if self.rate is not None:
            self._refill()
            self.level -= amount


_NUMBER = r"(?:\d+\.?\d*|\.\d+)"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str) -> float | None:
    """Read what headers say of time: "1.5" and "2s" seconds, "120ms", "6m0s", "1h2m"."""
    text = text.strip()
    if not text:
        return None
    if re.fullmatch(rf"-?{_NUMBER}", text):
        return max(0.0, float(text))
    if not re.fullmatch(rf"(?:{_NUMBER}(?:{'|'.join(_SECONDS)}))+", text):
        return None
    parts = re.findall(rf"({_NUMBER})({'|'.join(_SECONDS)})", text)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)

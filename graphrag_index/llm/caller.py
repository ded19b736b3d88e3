"""Makes calls to one model: paced, within the budget, again and again while failures may pass."""

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from graphrag_index.errors import ModelError, OutageError
from graphrag_index.llm.endpoint import Endpoint
from graphrag_index.llm.failures import RejectedError, RetryError, hide
from graphrag_index.llm.ledger import IN_MEMORY, Ledger
from graphrag_index.llm.pacing import LONGEST_SLEEP, Pace, reset_after
from graphrag_index.llm.prices import Budget, cost_of, price_of
from graphrag_index.llm.request import Usage
from graphrag_index.schema.settings.models import ModelSettings

# So many requests are refused one after the other before it is clear that all will be.
MAX_REFUSALS = 5
# A request that keeps failing while others succeed is at fault itself.
MAX_FAILURES = 6
# When more than so many fail one after the other, it is the endpoint that fails.
MAX_FAILING = 5
# So many calls may be denied before any is answered.
MAX_DENIED = 2
# Seconds after which a request that is not refused is taken to be accepted.
GRACE = 0.02
FIRST_DELAY, LONGEST_DELAY = 0.5, 30.0

T = TypeVar("T")


class Caller:
    """One model, with its limits. Its calls run in one event loop."""

    def __init__(self, name: str, settings: ModelSettings, ledger: Ledger, budget: Budget) -> None:
        self.name, self.settings = name, settings
        self.endpoint = Endpoint(name, settings, ledger)
        # Searches keep their replies in memory.
        self._is_kept = ledger.path != IN_MEMORY
        self.price = price_of(settings)
        self._budget = budget
        self._pace = Pace(
            settings.concurrency, settings.requests_per_minute, settings.tokens_per_minute
        )
        self._probe = asyncio.Lock()
        self._works = False
        self._last_success = 0.0
        self._refusals = 0
        # Calls that have failed since the last success, and those to which all access was denied.
        self._failing: set[object] = set()
        self._denied: set[object] = set()
        self._stopped: Exception | None = None
        # Seconds before the second attempt, about; then twice as long each time.
        self.first_delay = FIRST_DELAY

    def stop(self, error: Exception) -> None:
        """Let no further call be made; those under way end."""
        self._stopped = error
        self._pace.stop()

    async def call(
        self,
        ask: Callable[[], Awaitable[tuple[T, Usage]]],
        n_tokens: int,
        max_tokens: int,
        note: Callable[[], None] = lambda: None,
    ) -> T:
        """Make a call of about so many tokens, whose reply has at most so many.

        `note` is called each time right before the request is sent.

        Raises
        ------
        RejectedError
            This request is at fault: refused, or failing again and again while others succeed.
        ModelError
            The endpoint is: it has not answered for as long as the settings allow.
        BudgetError
            The call could cost more than the budget leaves.
        """
        failed = _Failures()
        most = self.most(n_tokens, max_tokens) or 0.0
        while True:
            try:
                async with self._budget.reserve(most), self._pace.turn(n_tokens + max_tokens // 8):
                    result, usage = await self._alone_at_first(ask, note)
                    self._pace.accepted()
                    self._pace.told(self.endpoint.headers)
                    self._last_success = time.monotonic()
                    self._failing.clear()
                    self._denied.clear()
                    self._budget.spend(cost_of(usage, self.price))
                    return result
            except RejectedError as error:
                self._refusals += 1
                if not self._works and self._refusals >= MAX_REFUSALS:
                    raise ModelError(
                        f"Model {self.name} refuses every request: {self.hide(str(error))}."
                    ) from None
                raise
            except RetryError as error:
                self._budget.spend(most if error.lost else 0.0)
                delay = self._delay_after(error, failed)
                self._give_up_if_hopeless(error, failed, delay)
            await self._sleep(delay)

    def most(self, n_tokens: int, max_tokens: int) -> float | None:
        """Return the most that a call can cost, in dollars; None where the price is not known."""
        # No text has more tokens than bytes, and what is guessed is more than a quarter of these.
        return cost_of(Usage(4 * n_tokens, 0, max_tokens), self.price)

    def _delay_after(self, error: RetryError, failed: "_Failures") -> float:
        """Note a failure; returns how long to wait before the next call, in seconds."""
        failed.add(time.monotonic())
        after = error.after
        if error.rate:
            if after is None:
                after = reset_after(self.endpoint.headers)
            self._pace.refused(after)
        else:
            self._failing.add(failed)
        # Those that were refused together are not to come back at the same moment.
        return (
            backoff(failed.times, self.first_delay)
            if after is None
            else after + random.uniform(0, 0.1) * after
        )

    async def _alone_at_first(self, ask: Callable[[], Awaitable[T]], note: Callable[[], None]) -> T:
        """Let one call find out what the endpoint supports before all others follow.

        A request that is not refused at once is being answered: the others need not wait
        for the whole reply.
        """
        if self._works:
            return await self._send(ask, note)
        async with self._probe:
            sent = asyncio.ensure_future(self._send(ask, note))
            if not self._works:
                try:
                    await asyncio.wait({sent}, timeout=GRACE)
                except asyncio.CancelledError:
                    sent.cancel()
                    raise
                self._works = not sent.done() or sent.exception() is None
        return await sent

    async def _send(self, ask: Callable[[], Awaitable[T]], note: Callable[[], None]) -> T:
        if self._stopped is not None:
            raise self._stopped
        note()
        try:
            return await ask()
        except ModelError as error:
            # A gateway may deny one call of many.
            raise RetryError(str(error), denied=error) from None

    def _give_up_if_hopeless(self, error: RetryError, failed: "_Failures", delay: float) -> None:
        reason = self.hide(str(error))
        too_long = time.monotonic() - failed.began + delay > self.settings.retry_seconds
        # In an outage all fail; at the end of a run those alone are left that always do.
        others_succeed = self._last_success > failed.first and (
            self._last_success > failed.before or len(self._failing) <= MAX_FAILING
        )
        if others_succeed and (too_long or (failed.times >= MAX_FAILURES and not error.rate)):
            raise RejectedError(f"failed {failed.times} times: {reason}") from None
        if error.denied is not None:
            self._denied.add(failed)
            most = MAX_FAILING if self._last_success else MAX_DENIED
            if too_long or failed.times > most or len(self._denied) > most:
                self.stop(error.denied)
                raise error.denied
        if too_long:
            raise OutageError(
                f"Model {self.name} has not answered for {self.settings.retry_seconds:g} s "
                f"({reason}): {self._advice}."
            ) from None

    @property
    def _advice(self) -> str:
        if self._is_kept:
            return "run again when it does; what was answered is kept"
        return "ask again when it does"

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but no longer than until all is stopped."""
        until = time.monotonic() + seconds
        while self._stopped is None and (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, LONGEST_SLEEP))

    def hide(self, text: str) -> str:
        """Take the key out of a text."""
        return hide(text, self.settings.key)


class _Failures:
    """When one request has failed."""

    def __init__(self) -> None:
        self.times = 0
        self.began = time.monotonic()
        # The first time, the last but one, the last.
        self.first = self.before = self.last = 0.0

    def add(self, now: float) -> None:
        self.times += 1
        self.first = self.first or now
        self.before, self.last = self.last, now


class LoopThread:
    """An event loop in a thread of its own, for code that is not asynchronous."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="models", daemon=True)
        self._thread.start()

    def start(self, coroutine: Any) -> "Future[Any]":
        """Run a coroutine there."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self) -> None:
        """End the loop; what still runs there is dropped."""
        self.start(_settle()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _settle() -> None:
    """Cancel what still runs, and let what is closing close."""
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    # A connection lets go of its socket in a turn of the loop after it was closed.
    for _ in range(3):
        await asyncio.sleep(0)


def estimate_tokens(text: str) -> int:
    """Guess the tokens of a text from its length, rather too many: to count takes longer."""
    n_bytes = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return n_bytes * 10 // 35 + 8


def backoff(failures: int, first: float = FIRST_DELAY) -> float:
    """Wait twice as long after each failure, and not all at the same moment."""
    longest = min(LONGEST_DELAY, first * 2 ** (failures - 1))
    return random.uniform(longest / 2, longest)

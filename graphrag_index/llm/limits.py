"""Limits of the calls to a model: concurrency, rates, reply tokens, a budget in dollars.

The concurrency adapts to the provider's rate limit. It is multiplied by `DECREASE_FACTOR` when the
provider refuses a call because of a rate limit, and grows slowly with every successful call
(additive increase, multiplicative decrease: Chiu & Jain, Analysis of the increase and decrease
algorithms for congestion avoidance in computer networks, 1989).
"""

import asyncio
import json
import math
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from graphrag_index.errors import BudgetError
from graphrag_index.llm.ledger import TOKEN_LIMITS, Ledger
from graphrag_index.llm.request import (
    EXPECTED_TOKENS,
    MIN_REPLY_TOKENS,
    TOO_LONG,
    Attempt,
    QuarantinedError,
    Reply,
    Request,
    Usage,
    expected_tokens,
    prompt_tokens,
    request_key,
)
from graphrag_index.schema.settings.models import ModelSettings, Price

# Factor of the concurrency when a call is refused because of a rate limit.
DECREASE_FACTOR = 0.7
# Maximum seconds until a waiting call checks whether all calls were stopped.
MAX_SLEEP_SECONDS = 0.5
MINUTE = 60.0
MILLION = 1_000_000


class RateLimiter:
    """Concurrency and rate limits of the calls to one model, for use in one event loop only."""

    def __init__(self, settings: ModelSettings) -> None:
        self.max_limit = self.limit = float(settings.concurrency)
        self.running = 0
        self._freed = asyncio.Condition()
        self._stopped = False
        self._not_before = 0.0
        self._lowered_at = 0.0
        self._requests = _TokenBucket(settings.requests_per_minute)
        self._tokens = _TokenBucket(settings.tokens_per_minute)

    @asynccontextmanager
    async def wait_for_slot(self, n_tokens: int) -> AsyncIterator[None]:
        """Wait until the limits allow a call of `n_tokens`, and count the call as running."""
        async with self._freed:
            await self._freed.wait_for(lambda: self.running < int(self.limit))
            self.running += 1
        try:
            while not self._stopped:
                delay = max(
                    self._not_before - time.monotonic(),
                    self._requests.seconds_until(1),
                    self._tokens.seconds_until(n_tokens),
                )
                if delay <= 0:
                    break
                await asyncio.sleep(min(delay, MAX_SLEEP_SECONDS))
            self._requests.level -= 1
            self._tokens.level -= n_tokens
            yield
        finally:
            self.running -= 1
            async with self._freed:
                self._freed.notify(int(self.limit) - self.running)

    def stop(self) -> None:
        """Stop waiting in all calls of `wait_for_slot`; the caller must cancel these calls."""
        self._stopped = True

    def note_success(self, headers: Mapping[str, str]) -> None:
        """Raise the concurrency after a successful call.

        If the headers `x-ratelimit-*` show a used-up limit, delay all calls until its reset.
        """
        self.limit = min(self.max_limit, self.limit + 1 / self.limit)
        self._delay_calls(reset_after(headers))

    def note_refusal(self, after: float | None, headers: Mapping[str, str]) -> float | None:
        """Lower the concurrency after a call was refused because of a rate limit.

        Returns the seconds by which all calls are delayed: `after`, or the value in the headers.
        """
        after = reset_after(headers) if after is None else after
        self.lower_concurrency()
        self._delay_calls(after)
        return after

    def lower_concurrency(self) -> None:
        """Allow fewer concurrent calls than are running now."""
        now = time.monotonic()
        # Several failures within a second count once: these calls were running concurrently.
        if now - self._lowered_at > 1.0:
            # `running` no longer counts the call that failed.
            self.limit = max(1.0, min(self.limit, self.running + 1) * DECREASE_FACTOR)
            self._lowered_at = now

    def _delay_calls(self, seconds: float | None) -> None:
        """Delay all further calls by this number of seconds."""
        if seconds is not None:
            self._not_before = max(self._not_before, time.monotonic() + seconds)


class _TokenBucket:
    """Token bucket of a rate limit: refilled continuously, and `level` may become negative."""

    def __init__(self, per_minute: int | None) -> None:
        # Amount per second; 0 means no limit.
        self.rate = (per_minute or 0) / MINUTE
        # Maximum amount that may be used at one moment: the amount of three seconds.
        self.capacity = max(1.0, self.rate * MINUTE / 20)
        self.level = self.capacity
        self.updated_at = time.monotonic()

    def seconds_until(self, amount: float) -> float:
        """Return the seconds until the bucket has this amount, or is full."""
        if not self.rate:
            return 0.0
        now = time.monotonic()
        self.level = min(self.capacity, self.level + (now - self.updated_at) * self.rate)
        self.updated_at = now
        return max(0.0, (min(amount, self.capacity) - self.level) / self.rate)


class ReplyLimit:
    """Token limit of the first attempts at requests to one model; it adapts to the replies.

    The limit is in proportion to the request, because a model that does not stop would otherwise
    write up to `max_output_tokens`. A truncated reply is requested again with
    `max_output_tokens`: if that reply is complete, the model needs more tokens, for example to
    reason, and the limit is lifted, which saves requests and changes no reply. If that attempt
    times out, the model does not stop, and truncated replies are accepted from then on.
    """

    def __init__(self, is_lifted: bool = False) -> None:
        self.is_lifted, self.accepts_truncated = is_lifted, False

    def first_attempt(self, request: Request, tokens: "TokenLimits", n_tokens: int) -> Attempt:
        """Return the first attempt at a request whose prompt has about `n_tokens`.

        Raises `QuarantinedError` if the prompt does not fit the context window.
        """
        most = tokens.max_reply_tokens(request, n_tokens)
        expected = expected_tokens(request)
        # A streamed answer is shown while it arrives, so it is not requested twice.
        is_limited = self.accepts_truncated or not self.is_lifted
        if not is_limited or request.sink is not None or expected >= most:
            return Attempt(most, is_last=True)
        return Attempt(expected, is_last=self.accepts_truncated, raised_tokens=most)

    def note_reply(self, attempt: Attempt, reply: Reply, request: Request) -> bool:
        """Note a reply; True if it lifts the limit: it is complete, with a raised limit."""
        is_second = attempt.is_last and self._is_raised(attempt, request)
        is_lifting = is_second and reply.finish != "length" and not self.is_lifted
        self.is_lifted = self.is_lifted or is_lifting
        return is_lifting

    def note_timeout(self, attempt: Attempt, request: Request) -> None:
        """Note that an attempt timed out, although the server was answering."""
        # A lifted limit shows that the model stops: one slow reply does not tell otherwise.
        if not self.is_lifted and self._is_raised(attempt, request):
            self.accepts_truncated = True

    def _is_raised(self, attempt: Attempt, request: Request) -> bool:
        if request.sink is not None or attempt.corrected:
            return False
        return attempt.max_tokens > expected_tokens(request)


# A whole number in a message, which is not a part of a name or of a fraction.
_COUNT = r"(?<![\w.-])(\d{1,3}(?:,\d{3})+|\d+)(?!\w|\.\d)"
# Ways in which servers name a limit, the surest first. The words are those before a number, since
# they are the same in the messages of many servers.
_LIMITS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\[\d+, ?{_COUNT}\]",
        rf"[<>≤]=? ?{_COUNT}",
        rf"(?:max|limit|window|context (?:length|size)|(?:token|batch) size|up to|at most|less than"
        rf"|exceed).{{0,60}}?{_COUNT}",
        rf"{_COUNT} (?:tokens? )?max",
    )
]
# What is no limit of tokens: names of parameters, the excess over a limit, times, counts of texts.
_NO_LIMITS = re.compile(
    r"\w*max_\w+|exceed\w* by [\d,]+|context deadline.*|\barray (?:too|with)\b.*", re.IGNORECASE
)
_LENGTH_WORDS = re.compile("token|context|length|character|too (?:long|large)", re.IGNORECASE)
_PROMPT_WORDS = re.compile("context|input|prompt|messages|text|sequence", re.IGNORECASE)
_REPLY_WORDS = re.compile(r"max_\w*tokens|maximum tokens|completion|output", re.IGNORECASE)
_REQUESTED = re.compile(rf"requested\D{{0,20}}{_COUNT}", re.IGNORECASE)
# A smaller limit is not one of the length of a text.
MIN_LIMIT = 64
# A server that seems to count more tokens than this, for a token of ours, counts something else.
MAX_RATIO = 8.0
# Shorter prompts tell little, because servers add tokens of their own.
MIN_COUNTED_TOKENS = 256


class LengthRefusal(NamedTuple):
    """The limit that a server names when it refuses a request, and the other numbers it names."""

    limit: int
    counts: tuple[int, ...]
    is_of_reply: bool  # whether the limit is one of replies alone
    is_final: bool  # whether the request alone exceeds the limit, even one per minute


def read_length_refusal(message: str) -> LengthRefusal | None:
    """Read the limit of length in the error message of a server; None if it names none."""
    text = _NO_LIMITS.sub(" ", message)
    found = next((place for pattern in _LIMITS if (place := pattern.search(text))), None)
    if found is None or not _LENGTH_WORDS.search(message):
        return None
    limit, *others = (int(n.replace(",", "")) for n in (found[1], *re.findall(_COUNT, text)))
    if limit < MIN_LIMIT:
        return None
    counts = tuple(n for n in others if n not in (0, limit))
    is_of_reply = bool(_REPLY_WORDS.search(message)) and not _PROMPT_WORDS.search(text)
    requested = _REQUESTED.search(text)
    is_final = requested is not None and int(requested[1].replace(",", "")) > limit
    return LengthRefusal(limit, counts, is_of_reply, is_final)


class TokenLimits:
    """Learned token limits of a model on its server, and how the server counts tokens.

    It is kept in the ledger, beside the other capabilities of the server. Prompts are measured as
    this program counts them, `n_tokens`; `ratio` is the server's count of one of these tokens.
    """

    def __init__(self, settings: ModelSettings, ledger: Ledger | None = None) -> None:
        self._settings, self._ledger = settings, ledger
        self._name = f"{TOKEN_LIMITS}{settings.model} at {settings.base_url}"
        known = json.loads((ledger and ledger.get_meta(self._name)) or "{}")
        # Maximum tokens of prompt and reply, and of a reply, as the server counts them.
        self.limit: int | None = known.get("limit")
        self.max_reply: int | None = known.get("max_reply")
        # Tokens from which a prompt is too long, where the server does not say.
        self.refused: int | None = known.get("refused")
        self.ratio: float = known.get("ratio", 1.0)
        # Tokens of the longest prompt that was answered.
        self.n_answered = 0

    @property
    def window(self) -> int:
        """Maximum tokens of prompt and reply together, as the server counts them."""
        return min(self._settings.context_window, self.limit or self._settings.context_window)

    @property
    def max_prompt(self) -> int:
        """Maximum tokens of a prompt; a long one leaves at least half of the room for a reply."""
        reserved = min(self._settings.max_output_tokens // 2, self.window // 3)
        return self._cap((self.window - reserved) / self.ratio)

    @property
    def max_text(self) -> int:
        """Maximum tokens of a text to embed."""
        return self._cap((self.limit or math.inf) / self.ratio)

    def _cap(self, n_tokens: float) -> int:
        return int(min(n_tokens, (self.refused or 1 << 40) - 1))

    def max_reply_tokens(self, request: Request, n_tokens: int) -> int:
        """Return the maximum number of tokens of a reply to a prompt of about `n_tokens`.

        Raises `QuarantinedError` if the prompt does not fit the context window.
        """
        if self.window - n_tokens < MIN_REPLY_TOKENS:
            raise QuarantinedError(
                f"{TOO_LONG}: the prompt of about {n_tokens} tokens does not fit the context "
                f"window of {self.window}"
            )
        room = max(self.window - math.ceil(n_tokens * self.ratio), MIN_REPLY_TOKENS)
        wanted = request.max_output_tokens or self._settings.max_output_tokens
        return min(wanted, room, self.max_reply or wanted)

    def note_answer(self, n_tokens: int, n_counted: int) -> None:
        """Learn from an answered prompt: the server counted its tokens as `n_counted`."""
        self.n_answered = max(self.n_answered, n_tokens)
        if n_tokens >= MIN_COUNTED_TOKENS:
            self._learn(ratio=n_counted / n_tokens)

    def note_refusal(self, n_tokens: int, max_tokens: int, refusal: LengthRefusal | None) -> None:
        """Note that a prompt with at most `max_tokens` for its reply was refused as too long."""
        if refusal is None:
            # Look for the limit in large steps.
            self._learn(refused=n_tokens // 2 + 1)
            return
        limit = refusal.limit
        if refusal.is_of_reply and limit <= max_tokens:
            self._learn(max_reply=limit)
            return
        # The server's count of the prompt is the number that is most like ours.
        counts = [n for n in refusal.counts if n != max_tokens and n + max_tokens > limit]
        counted = min(counts, key=lambda n: abs(math.log(n / n_tokens)), default=0)
        self._learn(limit=limit, ratio=counted / n_tokens)
        if n_tokens * self.ratio + max_tokens <= limit:
            # The limit is in another unit.
            self._learn(refused=n_tokens // 2 + 1)

    def set_refused(self, n_tokens: int | None) -> None:
        """Correct what was learned from refusals without a reason."""
        self.refused = n_tokens
        self._save()

    def forget(self) -> None:
        """Forget what was learned: the server may have changed."""
        self.limit, self.max_reply, self.ratio = None, None, 1.0
        self.set_refused(None)

    def _learn(self, ratio: float = 1.0, **limits: int) -> None:
        before = dict(vars(self))
        for name, limit in limits.items():
            setattr(self, name, min(limit, getattr(self, name) or limit))
        if ratio <= MAX_RATIO:
            self.ratio = max(self.ratio, math.ceil(20 * ratio) / 20)
        if vars(self) != before:
            self._save()

    def _save(self) -> None:
        names = ("limit", "max_reply", "refused", "ratio")
        if self._ledger is not None:
            known = {name: getattr(self, name) for name in names}
            self._ledger.set_meta(self._name, json.dumps(known))


_NUMBER = r"(?:\d+\.?\d*|\.\d+)"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = re.compile(rf"({_NUMBER})({'|'.join(_SECONDS)})")


def parse_duration(text: str) -> float | None:
    """Parse a duration in a header, such as "1.5", "120ms" or "6m0s"; returns seconds."""
    text = text.strip()
    if re.fullmatch(rf"-?{_NUMBER}", text):
        return max(0.0, float(text))
    parts = _DURATION_PART.findall(text)
    if not parts or _DURATION_PART.sub("", text):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def reset_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until used-up rate limits are reset, from headers `x-ratelimit-*`.

    Returns None if no limit is used up.
    """
    resets = [
        parse_duration(headers.get(f"x-ratelimit-reset-{unit}", ""))
        for unit in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{unit}", "").strip() == "0"
    ]
    return max((min(reset, MINUTE) for reset in resets if reset is not None), default=None)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait, from `retry-after-ms` or `retry-after`."""
    milliseconds = parse_duration(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    seconds = parse_duration(value)
    if seconds is None and value:
        with suppress(ValueError):
            return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    return seconds


def price_of_model(settings: ModelSettings) -> Price | None:
    """Return the price of a model from its settings or the price list; None if unknown."""
    if settings.price is not None:
        return settings.price
    if settings.base_url and "openai" not in settings.base_url:
        return None
    known = _price_list()["models"]
    # A name may end with a date: "gpt-5-mini-2025-08-07" has the price of "gpt-5-mini".
    names = [name for name in known if (settings.model + "-20").startswith(name + "-20")]
    return Price.model_validate(known[max(names, key=len)]) if names else None


def estimate_requests(
    requests: Iterable[Request], settings: ModelSettings
) -> tuple[int, int, float | None]:
    """Return the number of different requests, the tokens of their prompts, and their cost.

    The cost in dollars is about the highest; None if the price of the model is not known.
    """
    different = {request_key(request, settings): request for request in requests}
    n_tokens = sum(prompt_tokens(request, settings) for request in different.values())
    price = price_of_model(settings)
    if price is None:
        return len(different), n_tokens, None
    n_reply = len(different) * EXPECTED_TOKENS
    cost = (n_tokens * price.input + n_reply * price.output) / MILLION
    return len(different), n_tokens, cost


def price_list_date() -> str:
    """Return the date of the price list, as YYYY-MM-DD."""
    return str(_price_list()["date"])


@cache
def _price_list() -> dict[str, Any]:
    import yaml

    text = files("graphrag_index.llm").joinpath("prices.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


def max_cost_of(n_tokens: int, max_tokens: int, price: Price | None) -> float | None:
    """Return the maximum cost of a call of about `n_tokens`, in dollars; None without a price."""
    # A text has at most one token per byte, and `n_tokens` is more than a quarter of the bytes.
    return cost_of(Usage(4 * n_tokens, 0, max_tokens), price)


def cost_of(usage: Usage, price: Price | None) -> float | None:
    """Return the cost of a call in dollars; None if the price is not known."""
    if price is None:
        return None
    cached = price.input if price.cached_input is None else price.cached_input
    prompt = (usage.prompt - usage.cached) * price.input + usage.cached * cached
    return (prompt + usage.completion * price.output) / MILLION


class Budget:
    """A budget in dollars. Each call reserves its maximum cost before it is sent."""

    def __init__(self, limit: float | None, spent: float = 0.0) -> None:
        self.limit, self.spent = limit, spent
        # Maximum cost of the batches that are not collected yet, in dollars.
        self.held_for_batches = 0.0
        self._reserved = 0.0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def reserve_cost(self, max_cost: float) -> AsyncIterator[None]:
        """Reserve the maximum cost of a call while the call runs.

        If the cost exceeds the rest of the budget, waits until running calls have ended and
        freed their reservations. Raises `BudgetError` if no call is running.
        """
        if self.limit is None:
            yield
            return
        async with self._changed:
            while self.spent + self.held_for_batches + self._reserved + max_cost > self.limit:
                if self._reserved <= 1e-12:
                    raise self.exceeded_error(max_cost)
                await self._changed.wait()
            self._reserved += max_cost
        try:
            yield
        finally:
            async with self._changed:
                self._reserved = max(0.0, self._reserved - max_cost)
                self._changed.notify_all()

    def allows(self, max_cost: float) -> bool:
        """Tell whether the budget allows `max_cost` more dollars; ignores reservations."""
        return self.limit is None or self.spent + self.held_for_batches + max_cost <= self.limit

    def exceeded_error(self, max_cost: float) -> BudgetError:
        """Return the error for a call that would exceed the budget."""
        held, limit = self.held_for_batches, self.limit or 0
        batches = f", ${held:.4f} is held for batches" if held else ""
        digits = 2 if round(limit, 2) == limit else 4
        return BudgetError(
            f"The budget of ${limit:.{digits}f} would be exceeded: ${self.spent:.4f} is "
            f"spent{batches}, and the next call may cost ${max_cost:.4f}. Run again with a larger "
            "--budget to go on; received replies are kept."
        )

    def add_cost(self, cost: float | None) -> None:
        """Add the cost of a call, in dollars, to the amount spent."""
        self.spent += cost or 0.0

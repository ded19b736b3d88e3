"""HTTP client of one model: sends requests, paces them, retries, and keeps the budget."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_index.errors import ModelError, OutageError
from graphrag_index.llm.call_errors import (
    ErrorTexts,
    HttpResponse,
    RejectedError,
    RetryError,
    UnsupportedError,
    redact,
)
from graphrag_index.llm.http_replies import StreamedReply, read_chat, read_embeddings, read_events
from graphrag_index.llm.http_session import (
    MAX_CONNECT_SECONDS,
    cause_of,
    close_when_dropped,
    new_session,
    proxy_for,
)
from graphrag_index.llm.ledger import IN_MEMORY, Ledger
from graphrag_index.llm.pacing import FIRST_DELAY, MAX_SLEEP, Failures, Pace, backoff, jitter
from graphrag_index.llm.prices import Budget, cost_of, price_of
from graphrag_index.llm.request import Message, Reply, ReplyFormat, TextSink, Usage
from graphrag_index.llm.request_body import RequestWriter, encode
from graphrag_index.schema.settings.models import ModelSettings

if TYPE_CHECKING:
    import aiohttp

# So many requests are refused one after the other before all are taken to be refused.
MAX_REFUSALS = 5
# A request that keeps failing while others succeed is at fault itself.
MAX_FAILURES = 6
# When more than so many requests fail one after the other, the server is at fault.
MAX_FAILING = 5
# So many requests may be denied before any is answered.
MAX_DENIED = 2
# Seconds after which a request that is not refused counts as accepted.
GRACE = 0.02
# The server where neither the settings nor the environment name one.
OPENAI = "https://api.openai.com/v1"

T = TypeVar("T")


class LLMClient:
    """Client of one model, with its limits. Lives in one event loop.

    Every method that sends raises the same errors:

    Raises
    ------
    RetryError
        The failure may pass.
    RejectedError
        This request will never be answered.
    ModelError
        No request will: a wrong key, an unknown model, a wrong address.
    """

    def __init__(
        self, name: str, settings: ModelSettings, ledger: Ledger, budget: Budget | None = None
    ) -> None:
        self.name, self.settings = name, settings
        self.writer = RequestWriter(name, settings, ledger)
        self.address = settings.base_url or "api.openai.com"
        self.error_texts = ErrorTexts(name, self.address, self.writer.model, settings.key)
        self.price = price_of(settings)
        # Searches keep their replies in memory.
        self._keeps_replies = ledger.path != IN_MEMORY
        self._budget = budget or Budget(None)
        self._pace = Pace(
            settings.concurrency, settings.requests_per_minute, settings.tokens_per_minute
        )
        self._session: aiohttp.ClientSession | None = None
        # Of the last response.
        self._headers: Mapping[str, str] = {}
        self._probe = asyncio.Lock()
        self._works = False
        self._last_success = 0.0
        self._n_refusals = 0
        # Calls that have failed since the last success, and those that were denied access.
        self._failing: set[object] = set()
        self._denied: set[object] = set()
        self._stopped: Exception | None = None
        # Seconds before the second attempt, about; then twice as long each time.
        self.first_delay = FIRST_DELAY

    def stop(self, error: Exception) -> None:
        """Let every further call fail with this error; calls under way end."""
        self._stopped = error
        self._pace.stop()

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def max_cost(self, n_tokens: int, max_tokens: int) -> float | None:
        """Return the most that a call can cost, in dollars; None where the price is not known."""
        # No text has more tokens than bytes, and the estimate is more than a quarter of these.
        return cost_of(Usage(4 * n_tokens, 0, max_tokens), self.price)

    def redact(self, text: str) -> str:
        """Replace the key in a text."""
        return redact(text, self.settings.key)

    async def call(
        self,
        send: Callable[[], Awaitable[tuple[T, Usage]]],
        n_tokens: int,
        max_tokens: int,
        before_send: Callable[[], None] = lambda: None,
    ) -> T:
        """Make a call within the limits, again and again while its failures may pass.

        Parameters
        ----------
        n_tokens
            About so many tokens are sent.
        max_tokens
            The reply has at most so many.
        before_send
            Called right before each attempt.

        Raises
        ------
        RejectedError
            The request is at fault: refused, or failing again and again while others succeed.
        ModelError
            The server is at fault: no answer for as long as the settings allow.
        BudgetError
            The call could cost more than the budget leaves.
        """
        failures = Failures()
        max_cost = self.max_cost(n_tokens, max_tokens) or 0.0
        while True:
            try:
                async with (
                    self._budget.reserve(max_cost),
                    self._pace.slot(n_tokens + max_tokens // 8),
                ):
                    result, usage = await self._probe_first(send, before_send)
                    self._note_success()
                    self._budget.spend(cost_of(usage, self.price))
                    return result
            except RejectedError as error:
                self._n_refusals += 1
                if not self._works and self._n_refusals >= MAX_REFUSALS:
                    raise ModelError(
                        f"Model {self.name} refuses every request: {self.redact(str(error))}."
                    ) from None
                raise
            except RetryError as error:
                self._budget.spend(max_cost if error.lost else 0.0)
                delay = self._delay_after(error, failures)
                self._give_up_if_hopeless(error, failures, delay)
            await self._sleep(delay)

    async def chat(
        self,
        messages: Sequence[Message],
        format: ReplyFormat,
        max_tokens: int,
        sink: TextSink | None = None,
    ) -> Reply:
        """Send a chat request once, dropping on the way what the server does not support.

        With a `sink` the text of the reply is streamed into it.
        """
        while True:
            stream, sent = self.settings.stream or sink is not None, self.writer.capabilities
            body = self.writer.chat_body(messages, format, max_tokens, stream)
            try:
                if "stream" in body:
                    data = await self._stream("/chat/completions", body, sink)
                else:
                    data = await self._post("/chat/completions", body)
            except UnsupportedError as error:
                if not self.writer.adapt(error, body, sent):
                    raise RejectedError(str(error)) from None
                continue
            return replace(read_chat(data), response_format=sent.response_format)

    async def embed(self, texts: Sequence[str]) -> tuple[list[list[float]], Usage]:
        """Request the vectors of some texts, in their order."""
        while True:
            body = self.writer.embedding_body(texts)
            try:
                data = await self._post("/embeddings", body)
            except UnsupportedError as error:
                if not self.writer.adapt_embedding(error, body):
                    raise RejectedError(str(error)) from None
                continue
            return read_embeddings(data, len(texts))

    async def check(self) -> None:
        """Check that the server answers, accepts the key and knows the model, at no cost.

        Raises
        ------
        ModelError
            It does not.
        """
        import aiohttp

        try:
            async with self._request("GET", "/models") as response:
                answer = await _read(response)
        except aiohttp.SocketTimeoutError:
            return  # A slow one may still answer.
        except (aiohttp.ClientError, OSError) as error:
            raise ModelError(
                f"Model {self.name}: no server answers at {self.address} ({cause_of(error)}): "
                "start it, or set base_url of this model."
            ) from None
        if answer.status in (401, 403):
            raise ModelError(self.error_texts.explain(answer.status, answer.error_message()))
        # Not every server lists its models; Azure lists models, not deployments.
        if answer.status >= 400 or self.settings.provider == "azure":
            return
        try:
            known = [str(model["id"]) for model in answer.json()["data"]]
        except (ValueError, KeyError, TypeError):
            return
        # Ollama adds a tag to the names of its models.
        wanted = self.settings.model
        if known and not any(id == wanted or id.split(":")[0] == wanted for id in known):
            shown = ", ".join(sorted(known)[:8]) + (", ..." if len(known) > 8 else "")
            raise ModelError(
                f"Model {self.name}: {self.address} has no model {wanted!r}; it has {shown}."
            )

    async def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send JSON, and parse the JSON that comes back."""
        async with self._open(path, body) as response:
            answer = await _read(response)
        if answer.status >= 400:
            raise answer.to_error(self.error_texts)
        try:
            return answer.json()
        except ValueError:
            raise RetryError("the answer was no JSON", lost=True) from None

    async def _stream(self, path: str, body: Mapping[str, Any], sink: TextSink | None) -> Any:
        """Put a streamed reply together to the JSON of one that is not streamed."""
        async with self._open(path, body) as response:
            if response.status >= 400:
                raise (await _read(response)).to_error(self.error_texts)
            streamed = StreamedReply(sink)
            try:
                async for event in read_events(response.content.iter_any()):
                    streamed.add(event)
                    if streamed.is_loop:
                        break
            finally:
                streamed.end()
        return streamed.response()

    @asynccontextmanager
    async def _open(
        self, path: str, body: Mapping[str, Any]
    ) -> AsyncIterator["aiohttp.ClientResponse"]:
        """Send JSON, and open the response; failures while it is read are mapped as well."""
        import aiohttp

        try:
            async with self._request("POST", path, encode(body)) as response:
                self._headers = response.headers
                yield response
        except aiohttp.ClientConnectorError as error:
            raise RetryError(cause_of(error)) from None
        except aiohttp.ConnectionTimeoutError:
            seconds = min(MAX_CONNECT_SECONDS, self.settings.timeout)
            raise RetryError(f"no connection within {seconds:g} s") from None
        except TimeoutError:
            reason = f"no answer within {self.settings.timeout:g} s"
            raise RetryError(reason, lost=True) from None
        except (aiohttp.ClientError, OSError) as error:
            raise RetryError(cause_of(error), lost=True) from None

    def _request(
        self, method: str, path: str, content: bytes | None = None
    ) -> "aiohttp.client._RequestContextManager":
        base = self.settings.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI
        if self._session is None:
            self._session = new_session(self.settings, base)
            close_when_dropped(self, self._session)
        parameters = None
        if self.settings.provider == "azure":
            base = f"{base.rstrip('/')}/openai"
            parameters = {"api-version": self.settings.api_version}
            if content is not None:
                base = f"{base}/deployments/{self.writer.model}"
        headers = {"content-type": "application/json"} if content is not None else None
        url = base.rstrip("/") + path
        return self._session.request(
            method, url, data=content, params=parameters, headers=headers, proxy=proxy_for(url)
        )

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

    def _note_success(self) -> None:
        self._pace.note_success(self._headers)
        self._last_success = time.monotonic()
        self._failing.clear()
        self._denied.clear()

    def _delay_after(self, error: RetryError, failures: Failures) -> float:
        """Note a failure; returns the seconds until the next attempt."""
        failures.add(time.monotonic())
        after = error.after
        if error.rate:
            after = self._pace.note_refusal(after, self._headers)
        else:
            self._failing.add(failures)
        return backoff(failures.times, self.first_delay) if after is None else jitter(after)

    def _give_up_if_hopeless(self, error: RetryError, failures: Failures, delay: float) -> None:
        reason = self.redact(str(error))
        too_long = time.monotonic() - failures.began + delay > self.settings.retry_seconds
        # In an outage all fail; at the end of a run only those are left that always do.
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
            advice = "ask again when it does"
            if self._keeps_replies:
                advice = "run again when it does; what was answered is kept"
            raise OutageError(
                f"Model {self.name} has not answered for {self.settings.retry_seconds:g} s "
                f"({reason}): {advice}."
            ) from None

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but wake up when all is stopped."""
        until = time.monotonic() + seconds
        while self._stopped is None and (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, MAX_SLEEP))


async def _read(response: "aiohttp.ClientResponse") -> HttpResponse:
    return HttpResponse(response.status, response.headers, await response.read())

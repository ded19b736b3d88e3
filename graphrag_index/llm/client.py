"""HTTP client of one model: session, requests, and mapping of server errors to exceptions."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphrag_index.errors import ModelError
from graphrag_index.llm.ledger import IN_MEMORY, Ledger
from graphrag_index.llm.limits import Budget, retry_after
from graphrag_index.llm.probe import ServerProbe, Trial, UnansweredError
from graphrag_index.llm.protocol import (
    StreamedReply,
    encode_json,
    error_message,
    parse_json,
    read_chat,
    read_embeddings,
    read_events,
)
from graphrag_index.llm.request import Message, Reply, ReplyFormat, TextSink, Usage
from graphrag_index.llm.request_writer import Capabilities, RequestWriter
from graphrag_index.llm.retries import (
    RejectedError,
    ReplyTimeoutError,
    RetriedCalls,
    RetryError,
    ServerError,
    SlowReplyError,
    UnsupportedError,
    redact,
)
from graphrag_index.llm.transport import Transport
from graphrag_index.schema.settings.models import ModelSettings

if TYPE_CHECKING:
    import aiohttp

# Maximum time for the list of models, by which a server shows that it is alive.
MAX_LIST_SECONDS = 10.0

# HTTP statuses below 500 of temporary failures.
_RETRYABLE_STATUSES = frozenset((408, 409, 425, 429))
# Words in an error that concerns the text of one request, not its parameters.
_CONTENT_ERROR_WORDS = ("content_filter", "content_policy", "context_length", "string_above_max")


class LoopThread:
    """An event loop in a separate thread, for callers that are not asynchronous."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="models", daemon=True)
        self._thread.start()

    def start_coroutine(self, coroutine: Any) -> "Future[Any]":
        """Start a coroutine in the loop, without waiting for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def run_coroutine(self, coroutine: Any) -> Any:
        """Run a coroutine in the loop, wait for it, and return its result."""
        future = self.start_coroutine(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Stop the loop; running tasks are cancelled."""

        async def cancel_others() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.run_coroutine(cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class LLMClient:
    """HTTP client of one model, to be used in one event loop only.

    Methods that send a request raise `RetryError` after a temporary failure, `RejectedError` if
    the server will never answer this request, and `ModelError` if it will not answer any request,
    because the key, the model or the address is wrong.
    """

    def __init__(
        self, name: str, settings: ModelSettings, ledger: Ledger, budget: Budget | None = None
    ) -> None:
        self.name, self.settings = name, settings
        self.writer = RequestWriter(name, settings, ledger)
        self.transport = Transport(name, settings)
        self.address = self.transport.address
        # Searches use a ledger in memory, so that their replies are not kept.
        keeps_replies = ledger.path != IN_MEMORY
        self.calls = RetriedCalls(name, settings, budget or Budget(None), keeps_replies)
        self.probe = ServerProbe(self.writer, self.calls, self._post)

    async def close(self) -> None:
        await self.transport.close()

    def redact(self, text: str) -> str:
        """Replace the API key in a text by asterisks."""
        return redact(text, self.settings.key)

    async def send_chat(
        self,
        messages: Sequence[Message],
        format: ReplyFormat,
        max_tokens: int,
        sink: TextSink | None = None,
    ) -> Reply:
        """Send a chat request; send it again without parameters that the server rejects.

        With a `sink`, the text of the reply is streamed into the sink. Raises `SlowReplyError` if
        the reply is not complete in time, although the server answers.
        """
        began = time.monotonic()
        while True:
            stream, sent = self.settings.stream or sink is not None, self.writer.capabilities
            sent_at = time.monotonic()
            body = self.writer.chat_body(messages, format, max_tokens, stream)
            try:
                if "stream" in body:
                    reply = await self._stream_reply(body, sink)
                else:
                    reply = read_chat(parse_json(await self._post("/chat/completions", body)))
            except (UnsupportedError, ServerError) as error:
                if not await self.probe.adapt_to_error(error, body, format, sent, sent_at):
                    raise
                continue
            except ReplyTimeoutError as error:
                if self.calls.last_success > began or await self._lists_models():
                    raise SlowReplyError(str(error)) from None
                raise
            self.writer.note_answer(body)
            return replace(reply, response_format=sent.response_format)

    async def request_vectors(self, texts: Sequence[str]) -> tuple[list[list[float]], Usage]:
        """Request the vectors of some texts, in the order of the texts."""
        while True:
            body, sent = self.writer.embedding_body(texts), self.writer.capabilities
            sent_at = time.monotonic()
            try:
                data = parse_json(await self._post("/embeddings", body))
            except (UnsupportedError, ServerError) as error:
                if not await self.probe.adapt_to_error(error, body, None, sent, sent_at):
                    raise
                continue
            self.writer.note_answer(body)
            return read_embeddings(data, len(texts))

    async def _lists_models(self) -> bool:
        """Return whether the server answers a request for its models in time."""
        try:
            async with (
                asyncio.timeout(MAX_LIST_SECONDS),
                self.transport.open_response("GET", "/models") as response,
            ):
                return response.status < 500
        except (RetryError, TimeoutError):
            return False

    async def check_server(self) -> None:
        """Check, without cost, that the server answers, accepts the key and has the model.

        Raises `ModelError` if the server does not.
        """
        try:
            async with (
                asyncio.timeout(MAX_LIST_SECONDS),
                self.transport.open_response("GET", "/models") as response,
            ):
                status, content = response.status, await response.read()
        except (ReplyTimeoutError, TimeoutError):
            return  # The server is slow, but it may still answer requests.
        except RetryError as error:
            raise ModelError(
                f"Model {self.name}: no server answers at {self.address} ({error}): start it, or "
                "set base_url of this model."
            ) from None
        if status in (401, 403):
            raise self._settings_error(status, _parse_error(content))
        # Some servers do not list their models. Azure lists models, but requests use deployments.
        if status >= 400 or self.settings.provider == "azure":
            return
        try:
            known = [str(model["id"]) for model in json.loads(content)["data"]]
        except (ValueError, KeyError, TypeError):
            return
        # Ollama adds a tag to the names of its models, such as "llama3:latest".
        wanted = self.settings.model
        if known and not any(id == wanted or id.split(":")[0] == wanted for id in known):
            shown = ", ".join(sorted(known)[:8]) + (", ..." if len(known) > 8 else "")
            raise ModelError(
                f"Model {self.name}: {self.address} has no model {wanted!r}; it has {shown}."
            )

    async def probe_server(self, embeds: bool) -> list[Trial]:
        """Send a tiny request of each kind; remember the parts of requests that are refused.

        Raises `ModelError` if the server does not answer, or refuses what every request needs.
        """
        await self.check_server()
        # Forget which parts of requests the server has refused.
        self.writer.capabilities = Capabilities.from_json(self.settings, None)
        probe = self.probe
        try:
            trials = await (probe.probe_vectors() if embeds else probe.probe_chat(is_checked=True))
            answers = [trial.answer for trial in trials if not trial.reason]
            if embeds:
                (vector,), _ = read_embeddings(parse_json(answers[-1]), 1)
                check_dimension(self.name, self.settings, len(vector))
            else:
                read_chat(parse_json(answers[0]))
        except (UnansweredError, RejectedError, RetryError) as error:
            raise ModelError(
                f"Model {self.name}: {self.address} does not answer a tiny request "
                f"({self.redact(str(error))}): see the messages of the server."
            ) from None
        return [replace(trial, reason=self.redact(trial.reason)) for trial in trials]

    def response_error(self, status: int, headers: Mapping[str, str], content: bytes) -> Exception:
        """Return the exception for a response with an error status."""
        return self.status_error(status, _parse_error(content), retry_after(headers))

    def status_error(self, status: int, message: str, after: float | None = None) -> Exception:
        """Map an HTTP status and the provider's message to the exception to raise.

        `after` is the number of seconds that the server asks to wait.
        """
        reason = f"HTTP {status}: {message}"
        if status in _RETRYABLE_STATUSES or status >= 500:
            if status == 429 and "quota" in message.lower() and "insufficient" in message.lower():
                return self._settings_error(status, message)
            if status >= 500:
                return ServerError(reason, after)
            return RetryError(reason, after, rate=status == 429)
        # OpenRouter answers 404 if no provider of the model supports a part of the request.
        if status == 404 and "endpoints found that support" in message:
            return UnsupportedError(reason)
        if status in (401, 403, 404):
            return self._settings_error(status, message)
        is_about_content = any(word in message.lower() for word in _CONTENT_ERROR_WORDS)
        if status in (400, 405, 415, 422) and not is_about_content:
            return UnsupportedError(reason)
        return RejectedError(reason)

    def _settings_error(self, status: int, message: str) -> ModelError:
        """Return the error for a status that the user must fix in the settings or the account."""
        reason = {
            401: "does not accept the key: set api_key of this model",
            403: "refuses access: see what the key may do",
            404: f"does not know the model {self.writer.model!r} or this address: "
            "set model or base_url",
            429: "says that the account has no quota left",
        }[status]
        message = self.redact(message)
        return ModelError(f"Model {self.name}: {self.address} {reason} (HTTP {status}: {message}).")

    async def _post(self, path: str, body: Mapping[str, Any]) -> bytes:
        """Send a JSON body, and read the content of the response within `timeout` seconds."""
        deadline = asyncio.get_running_loop().time() + self.settings.timeout
        async with self._open_response(path, body) as response, asyncio.timeout_at(deadline):
            return await response.read()

    async def _stream_reply(self, body: Mapping[str, Any], sink: TextSink | None) -> Reply:
        """Send a chat request, and read its streamed reply."""
        streamed = StreamedReply(sink)
        try:
            async with self._open_response("/chat/completions", body) as response:
                try:
                    await self._read_stream(response, streamed)
                finally:
                    streamed.finish_text()
        except RetryError:
            # The connection may break between the end of the reply and the end of the stream.
            if not streamed.is_complete:
                raise
        return streamed.get_reply()

    @staticmethod
    async def _read_stream(response: "aiohttp.ClientResponse", streamed: StreamedReply) -> None:
        """Read the events of a stream, until the model repeats itself."""
        if response.content_type == "application/json":
            # The server does not stream, but sends the whole reply at once.
            streamed.add_event(parse_json(await response.read()))
            return
        async for event in read_events(response.content.iter_any()):
            streamed.add_event(event)
            if streamed.is_loop:
                return

    @asynccontextmanager
    async def _open_response(
        self, path: str, body: Mapping[str, Any]
    ) -> AsyncIterator["aiohttp.ClientResponse"]:
        """Send a JSON body, and open the response; raise the error of an error response."""
        async with self.transport.open_response("POST", path, encode_json(body)) as response:
            self.calls.headers = response.headers
            if response.status >= 400:
                content = await response.read()
                raise self.response_error(response.status, response.headers, content)
            yield response


def check_dimension(name: str, settings: ModelSettings, dimension: int) -> None:
    """Raise `ModelError` if a model returns vectors of another dimension than its settings say."""
    if settings.dimensions not in (None, dimension):
        raise ModelError(
            f"Model {name} returns vectors of {dimension} numbers and ignores `dimensions`: set "
            f"this to {dimension} or null."
        )


def _parse_error(content: bytes) -> str:
    """Return the error message in the body of a response, on one line, with the error code."""
    try:
        body = json.loads(content)
    except ValueError:
        body = content.decode("utf-8", "replace")[:200]
    return error_message(body) or " ".join(str(body).split())[:200]

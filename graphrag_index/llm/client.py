"""HTTP client of one model: requests, redirects, streamed replies, checks of its server."""

import asyncio
import functools
import os
import ssl
import sys
import time
import weakref
from codecs import BOM_UTF8
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from graphrag_index.errors import ModelError
from graphrag_index.llm.ledger import IN_MEMORY, Ledger
from graphrag_index.llm.limits import Budget, TokenLimits, read_length_refusal, retry_after
from graphrag_index.llm.probe import ServerProbe, Trial, UnansweredError
from graphrag_index.llm.protocol import (
    REFUSAL_WORDS,
    UNKNOWN_WORDS,
    Capabilities,
    RequestWriter,
    encode_json,
    error_in_body,
    has_picture,
    is_blind,
    join_parts,
    mark_reasoning,
    parse_error,
    parse_json,
    read_chat,
    read_embeddings,
    read_finish,
    read_reasoning,
    read_usage,
    server_address,
    tool_arguments,
)
from graphrag_index.llm.reply_parser import VisibleText, is_repetitive
from graphrag_index.llm.request import Message, Reply, ReplyFormat, TextSink, Usage
from graphrag_index.llm.retries import (
    AddressError,
    LengthError,
    RefusedContentError,
    RejectedError,
    ReplyTimeoutError,
    RetriedCalls,
    RetryError,
    ServerError,
    SlowReplyError,
    StreamEndedError,
    UnsupportedError,
    redact,
)
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_nlp.text.normalize import join_surrogates, replace_surrogates

if TYPE_CHECKING:
    import aiohttp

# Maximum time for the list of models, by which a server shows that it is alive.
MAX_LIST_SECONDS = 10.0
MAX_REDIRECTS = 5
DEFAULT_PORTS = {"http": 80, "https": 443}

# HTTP statuses below 500 of temporary failures.
_RETRYABLE_STATUSES = frozenset((408, 409, 425, 429))
# HTTP statuses of errors that may name a number, but not of the length of a request.
_OF_NO_LENGTH = frozenset((401, 402, 403, 404, 408, 429, 502, 503, 504, 529))


class LLMClient:
    """HTTP client of one model, to be used in one event loop only.

    Methods that send a request raise `RetryError` after a temporary failure, `RejectedError` if
    the server will never answer this request, and `ModelError` if it will not answer any request,
    because the key, the model or the address is wrong.
    """

    def __init__(
        self,
        name: str,
        settings: ModelSettings,
        ledger: Ledger,
        budget: Budget | None = None,
    ) -> None:
        self.name, self.settings = name, settings
        self.writer = RequestWriter(name, settings, ledger)
        self.tokens = TokenLimits(settings, ledger)
        self.address = self.writer.address
        self._session: aiohttp.ClientSession | None = None
        # Searches use a ledger in memory, so that their replies are not kept.
        keeps_replies = ledger.path != IN_MEMORY
        self.calls = RetriedCalls(name, settings, budget or Budget(None), keeps_replies)
        self.probe = ServerProbe(self.writer, self.calls, self.post)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

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
                    reply = read_chat(await self.post("/chat/completions", body))
            except (UnsupportedError, ServerError) as error:
                if has_picture(body) and is_blind(error):
                    raise ModelError(
                        f"Model {self.name}: {self.settings.model} at {self.address} does not see "
                        f"pictures ({self.redact(str(error))}): name a model that does."
                    ) from None
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
                data = await self.post("/embeddings", body)
            except (UnsupportedError, ServerError) as error:
                if not await self.probe.adapt_to_error(error, body, None, sent, sent_at):
                    raise
                continue
            self.writer.note_answer(body)
            return read_embeddings(data, len(texts))

    async def request_models(self) -> tuple[int, bytes]:
        """Request the list of models; returns the HTTP status and the content of the response.

        Raises `RetryError` or `TimeoutError` if the server does not answer in time.
        """
        async with (
            asyncio.timeout(MAX_LIST_SECONDS),
            self._open_response("GET", "/models") as response,
        ):
            return response.status, await response.read()

    async def _lists_models(self) -> bool:
        """Return whether the server answers a request for its models in time."""
        try:
            status, _ = await self.request_models()
        except (RetryError, TimeoutError):
            return False
        return status < 500

    def response_error(self, status: int, headers: Mapping[str, str], content: bytes) -> Exception:
        """Return the exception for a response with an error status."""
        return self.status_error(status, parse_error(content), retry_after(headers))

    def status_error(
        self, status: int, message: str, after: float | None = None, *, is_in_body: bool = False
    ) -> Exception:
        """Map an HTTP status and the provider's message to the exception to raise.

        `after` is the number of seconds that the server asks to wait. With `is_in_body`, the
        status stands for the code of an error in a body.
        """
        reason = f"error in the answer: {message}" if is_in_body else f"HTTP {status}: {message}"
        is_refused = status < 500 and status not in (401, 404, *_RETRYABLE_STATUSES)
        if is_refused and REFUSAL_WORDS.search(message) and not UNKNOWN_WORDS.search(message):
            return RefusedContentError(reason)
        length = read_length_refusal(message)
        if length is not None and (status not in _OF_NO_LENGTH or length.is_final):
            return LengthError(reason, length)
        if status in _RETRYABLE_STATUSES or status >= 500:
            if status == 429 and "quota" in message.lower() and "insufficient" in message.lower():
                return self.settings_error(status, message)
            if status >= 500:
                return ServerError(reason, after)
            return RetryError(reason, after, rate=status == 429)
        # OpenRouter answers 404 if no provider of the model supports a part of the request.
        if status == 404 and "endpoints found that support" in message:
            return UnsupportedError(reason)
        if status in (401, 402, 403, 404):
            return self.settings_error(status, message)
        if status in (400, 405, 415, 422):
            return UnsupportedError(reason)
        return RejectedError(reason)

    def settings_error(self, status: int, message: str) -> ModelError:
        """Return the error for a status that the user must fix in the settings or the account."""
        demands = "does not accept the key" if self.settings.key else "demands a key"
        has_path = self.settings.provider == "azure" or "/v1" in self.address
        setting = "model or base_url" if has_path else f"model, or base_url to {self.address}/v1"
        reason = {
            401: f"{demands}: set api_key of this model",
            402: "says that the account has no credit left",
            403: "refuses access: see what the key may do",
            404: f"does not know the model {self.writer.model!r} or this address: set {setting}",
            429: "says that the account has no quota left",
        }[status]
        message = self.redact(message)
        return ModelError(f"Model {self.name}: {self.address} {reason} (HTTP {status}: {message}).")

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a JSON body, and parse the response, which must arrive within `timeout` seconds.

        Returns the data of the response; None if the body asks for a stream.
        """
        deadline = asyncio.get_running_loop().time() + self.settings.timeout
        async with (
            self._open_response("POST", path, encode_json(body)) as response,
            asyncio.timeout_at(deadline),
        ):
            await self._check_status(response)
            content = await response.read()
        return None if body.get("stream") else self._check_body(parse_json(content))

    def _check_body(self, data: Any) -> Any:
        """Return the data of a response; raise the error that it reports in spite of its status."""
        if (error := error_in_body(data)) is not None:
            status, message = error
            raise self.status_error(status, replace_surrogates(message), is_in_body=True)
        return data

    async def _stream_reply(self, body: Mapping[str, Any], sink: TextSink | None) -> Reply:
        """Send a chat request, and read its streamed reply."""
        streamed = StreamedReply(sink)
        try:
            # An error of the sink must not be taken for one of the connection, and be retried.
            async with aclosing(self._stream_events(body)) as events:
                async for event in events:
                    streamed.add_event(event)
                    if streamed.is_loop:
                        break
        except RetryError:
            # The connection may break between the end of the reply and the end of the stream.
            if not streamed.is_complete:
                raise
        finally:
            streamed.finish_text()
        return streamed.get_reply()

    async def _stream_events(self, body: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Send a chat request, and yield the events of its streamed reply."""
        content = encode_json(body)
        async with self._open_response("POST", "/chat/completions", content) as response:
            await self._check_status(response)
            if response.content_type == "application/json":
                # The server does not stream, but sends the whole reply at once.
                yield self._check_body(parse_json(await response.read()))
                return
            async for event in read_events(response.content.iter_any()):
                try:
                    data = self._check_body(event)
                except RetryError as error:
                    # A part of the reply may have been paid for.
                    error.lost = True
                    raise
                yield data

    async def _check_status(self, response: "aiohttp.ClientResponse") -> None:
        """Note the headers of a response; raise the error of an error response."""
        self.calls.headers = response.headers
        if response.status >= 400:
            content = await response.read()
            raise self.response_error(response.status, response.headers, content)

    @asynccontextmanager
    async def _open_response(
        self, method: str, path: str, content: bytes | None = None
    ) -> AsyncIterator["aiohttp.ClientResponse"]:
        """Send a request with a JSON body, and open the response.

        Raises `RetryError` after a temporary failure, also of the reading of the response, and
        `AddressError` if the address leads to a server that must not get the key.
        """
        import aiohttp

        base, parameters = self.address, None
        if self.settings.provider == "azure":
            base, parameters = f"{base}/openai", {"api-version": self.settings.api_version}
            if content is not None:
                base = f"{base}/deployments/{self.settings.deployment or self.settings.model}"
        url = base + path
        try:
            for _ in range(MAX_REDIRECTS + 1):
                async with self._start_request(method, url, content, parameters) as response:
                    if not 300 <= response.status < 400:
                        yield response
                        return
                    location = response.headers.get("location", "")
                # The address of a redirect has parameters of its own.
                url, parameters = self._redirect_target(response.status, url, location, path), None
            raise AddressError(
                f"Model {self.name}: {self.address} redirects more than {MAX_REDIRECTS} times: "
                "set base_url of this model to the final address."
            )
        except aiohttp.ClientConnectorCertificateError as error:
            raise AddressError(
                f"Model {self.name}: the certificate of {urlsplit(url).netloc} is not valid "
                f"({root_cause_message(error)}): set base_url to the host that the certificate "
                "names, or the environment variable SSL_CERT_FILE to the certificate of the "
                "authority that signed it."
            ) from None
        except aiohttp.ClientConnectorError as error:
            if getattr(error.os_error, "reason", "") in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
                raise AddressError(
                    f"Model {self.name}: the server at {self.address} does not use TLS: set "
                    f"base_url of this model to {self.address.replace('https', 'http', 1)}."
                ) from None
            raise RetryError(f"{root_cause_message(error)}{self._advise_on_tls()}") from None
        except aiohttp.ConnectionTimeoutError:
            seconds = min(MAX_CONNECT_SECONDS, self.settings.timeout)
            reason = f"no connection within {seconds:g} s{self._advise_on_tls()}"
            raise RetryError(reason) from None
        except TimeoutError:
            reason = f"no answer within {self.settings.timeout:g} s"
            raise ReplyTimeoutError(reason, lost=True) from None
        except (aiohttp.ClientError, OSError) as error:
            raise RetryError(root_cause_message(error), lost=True) from None

    def _advise_on_tls(self) -> str:
        """Return advice if a server may not use TLS: one of the internet does, at its own port."""
        address = urlsplit(self.address)
        has_tls = address.scheme == "https" and address.port in (None, DEFAULT_PORTS["https"])
        is_sure = has_tls or address.scheme == "http"
        return "" if is_sure else "; http:// is for a server without TLS"

    def _start_request(
        self, method: str, url: str, content: bytes | None, parameters: dict[str, str] | None
    ) -> "aiohttp.client._RequestContextManager":
        if self._session is None:
            self._session = open_session(self.settings, self)
        return self._session.request(
            method,
            url,
            data=content,
            params=parameters,
            headers={"content-type": "application/json"} if content is not None else None,
            proxy=proxy_for(url),
            ssl=ssl_context() if url.startswith("https") else True,
            # aiohttp would repeat a POST as a GET, without its body.
            allow_redirects=False,
        )

    def _redirect_target(self, status: int, url: str, location: str, path: str) -> str:
        """Return the address that a redirect leads to; raise `AddressError` for another server."""
        try:
            target = urljoin(url, location) if location else ""
            old, new = urlsplit(url), urlsplit(target)
            is_upgrade = (old.scheme, new.scheme) == ("http", "https")
            is_same = is_upgrade and old.hostname == new.hostname
            # 303 asks for another method, and other codes have no location.
            if status in (301, 302, 307, 308) and (is_same or _origin(old) == _origin(new)):
                return target
        except ValueError:  # The location is not a valid URL.
            target = location
        shown = replace_surrogates(target).partition("?")[0].removesuffix(path)
        raise AddressError(
            f"Model {self.name}: {self.address} redirects (HTTP {status}) to "
            f"{shown or 'no address'}, and requests with the key are not sent on to another "
            "server: set base_url of this model to the address that you trust."
        )


def _origin(address: SplitResult) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port of an address."""
    return address.scheme, address.hostname, address.port or DEFAULT_PORTS.get(address.scheme)


@functools.cache
def ssl_context() -> ssl.SSLContext:
    """Return the TLS context, with the certificates of the system or of `SSL_CERT_*`."""
    if sys.platform == "linux" or {"SSL_CERT_FILE", "SSL_CERT_DIR"} & os.environ.keys():
        return ssl.create_default_context()
    import truststore

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def proxy_for(url: str) -> str | None:
    """Return the proxy for an address from the environment variables; None if none is set."""
    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.netloc):
        return None
    scheme, has_scheme, _ = proxy.partition("://")
    if has_scheme and scheme not in ("http", "https"):
        raise ModelError(
            f"The environment sets a proxy of the kind {scheme}, which is not supported: set an "
            f"HTTP proxy, or name {parts.hostname} in NO_PROXY."
        )
    return proxy if has_scheme else f"http://{proxy}"


def root_cause_message(error: BaseException) -> str:
    """Return the message of the first exception in the chain that led to this error."""
    while error.__cause__ is not None:
        error = error.__cause__
    return replace_surrogates(" ".join(str(error).split())) or type(error).__name__


# Maximum idle time of a connection. A server may close a connection that is idle for longer,
# in the moment when the next request is sent.
MAX_IDLE_SECONDS = 5.0
MAX_CONNECT_SECONDS = 30.0
MAX_HEADER_BYTES = 100_000


def open_session(settings: ModelSettings, owner: object) -> "aiohttp.ClientSession":
    """Open the HTTP session of one model; it is closed when `owner` is garbage-collected."""
    import aiohttp

    # Local servers need no key, but the header must not be empty.
    key = settings.require_key() or "none"
    is_azure = settings.provider == "azure"
    login = {"api-key": key} if is_azure else {"authorization": f"Bearer {key}"}
    session = aiohttp.ClientSession(
        headers={"accept": "application/json", "user-agent": "graphrag-index", **login},
        timeout=aiohttp.ClientTimeout(
            total=None,
            sock_connect=min(MAX_CONNECT_SECONDS, settings.timeout),
            sock_read=settings.timeout,
        ),
        # `RateLimiter` limits the number of concurrent calls, so the session does not.
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=MAX_IDLE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
    )
    # The finalizer must not refer to the owner itself.
    weakref.finalize(owner, _schedule_close, session, asyncio.get_running_loop())
    return session


def _schedule_close(session: "aiohttp.ClientSession", loop: asyncio.AbstractEventLoop) -> None:
    """Close the session of a garbage-collected client, in the session's event loop."""
    if not session.closed and loop.is_running():
        asyncio.run_coroutine_threadsafe(session.close(), loop)


async def read_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[Any]:
    """Parse server-sent events up to `[DONE]`; yield the JSON data of each event.

    The format is specified in https://html.spec.whatwg.org/multipage/server-sent-events.html.
    """
    data: list[bytes] = []
    async for line in _split_lines(chunks):
        if line.startswith(b"data:"):
            data.append(line[5:])
        if line or not data:
            continue
        text, data = b"\n".join(data).strip(), []
        if text == b"[DONE]":
            return
        yield parse_json(text, is_part=True)


async def _split_lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Split chunks of bytes into lines.

    Yields an empty line at the end, because it ends the last event and some servers omit it.
    """
    rest, opening = b"", BOM_UTF8
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            # A byte-order mark is ignored.
            yield line.removeprefix(opening).strip()
            opening = b""
    yield rest.removeprefix(opening).strip()
    yield b""


class StreamedReply:
    """A reply assembled from the events of a stream. Its text is also written to a `sink`."""

    def __init__(self, sink: TextSink | None = None) -> None:
        self._visible = VisibleText(sink) if sink else None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        # Half of a character, whose other half begins the next event.
        self._half = ""
        self._tool: list[str] = []
        self._refusal = ""
        self._finish: str | None = None
        self._usage: Any = None
        # Whether the model repeats the same text again and again.
        self.is_loop = False

    def add_event(self, event: Any) -> None:
        """Add the next event of the stream; raises `RetryError` if it is malformed."""
        try:
            self._usage = event.get("usage") or self._usage
            choice = next(iter(event.get("choices") or [{}]))
            delta = choice.get("delta") or choice.get("message") or {}
            piece = self._half + join_parts(delta.get("content"))
            self._reasoning.append(read_reasoning(delta))
            self._refusal += delta.get("refusal") or ""
            self._tool += map(tool_arguments, delta.get("tool_calls") or ())
            self._finish = choice.get("finish_reason") or self._finish
        except (AttributeError, TypeError):
            raise RetryError("the stream contains an invalid event", lost=True) from None
        self._half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""
        self._add_text(piece.removesuffix(self._half))
        # Check for repetition only after every 50 pieces, since the check takes time.
        if len(self._text) >= 200 and len(self._text) % 50 == 0:
            # A model may repeat its content or the arguments of its tool call.
            self.is_loop = any(
                is_repetitive("".join(part[-800:])) for part in (self._text, self._tool)
            )
        if self.is_loop:
            self._finish = "length"

    def _add_text(self, piece: str) -> None:
        self._text.append(join_surrogates(piece))
        if self._visible:
            self._visible.write(self._text[-1])

    @property
    def is_complete(self) -> bool:
        """Whether the reply has ended."""
        return self._finish is not None

    def finish_text(self) -> None:
        """End the text in the sink, or discard it if the stream ended too early."""
        self._add_text(self._half)
        if self._visible:
            self._visible.end(broken=not self.is_complete)

    def get_reply(self) -> Reply:
        """Return the whole reply; raises `RetryError` if the stream ended too early."""
        if self._finish is None:
            raise StreamEndedError("the stream ended early", lost=True)
        text, finish = "".join(self._tool) or "".join(self._text), read_finish(self._finish)
        text = text or mark_reasoning("".join(self._reasoning))
        if self._refusal:
            text, finish = self._refusal, "refusal"
        return Reply(join_surrogates(text), finish, read_usage(self._usage))


async def check_server(client: LLMClient) -> None:
    """Check, without cost, that the server answers, accepts the key and has the model.

    Raises `ModelError` if the server does not.
    """
    name, address, settings = client.name, client.address, client.settings
    try:
        status, content = await client.request_models()
    except (ReplyTimeoutError, TimeoutError):
        return  # The server is slow, but it may still answer requests.
    except RetryError as error:
        raise ModelError(
            f"Model {name}: no server answers at {address} ({error}): start it, or "
            "set base_url of this model."
        ) from None
    if status in (401, 403):
        raise client.settings_error(status, parse_error(content))
    # An unlisted model may exist: some servers list none, and on Azure it is a deployment's name.
    known = _read_model_names(content) if status < 400 and settings.provider != "azure" else None
    # Ollama adds a tag to the names of its models, such as "llama3:latest".
    wanted = settings.model
    if known and not any(id == wanted or id.split(":")[0] == wanted for id in known):
        shown = ", ".join(sorted(get_close_matches(wanted, known, n=8, cutoff=0)))
        more = ", ..." if len(known) > 8 else ""
        raise ModelError(f"Model {name}: {address} has no model {wanted!r}; it has {shown}{more}.")


async def find_server(models: Mapping[str, ModelSettings]) -> tuple[str, str]:
    """Find the address at which the server of some models lists them, and check the models.

    It is the address of the settings, with or without `/v1` behind it, or one above it. Returns the
    address, and why no such address was found, or empty. Raises `ModelError` as `check_server`.
    """
    address = server_address(next(iter(models.values())))
    folders = [address.rsplit("/", n)[0] for n in range(urlsplit(address).path.count("/") + 1)]
    for candidate in dict.fromkeys(a for folder in folders for a in (folder, f"{folder}/v1")):
        settings = {name: one.with_values({"base_url": candidate}) for name, one in models.items()}
        clients = [LLMClient(name, one, Ledger(None)) for name, one in settings.items()]
        try:
            status, content = await clients[0].request_models()
            if status in (401, 403) or (status < 400 and _read_model_names(content) is not None):
                for client in clients:
                    await check_server(client)
                return candidate, ""
        except (RetryError, TimeoutError) as error:
            reason = str(error) or f"no answer within {MAX_LIST_SECONDS:g} s"
            return address, f"no server answers at {address} ({reason})"
        finally:
            for client in clients:
                await client.close()
    return address, f"{address} lists no models"


def _read_model_names(content: bytes) -> list[str] | None:
    """Read the names in a list of models; None if the content is something else."""
    try:
        return [str(model["id"]) for model in parse_json(content)["data"]]
    except (RetryError, KeyError, TypeError):
        return None


async def probe_server(client: LLMClient, embeds: bool) -> list[Trial]:
    """Send a tiny request of each kind; remember the parts of requests that are refused.

    Raises `ModelError` if the server does not answer, or refuses what every request needs.
    """
    await check_server(client)
    # Forget which parts and lengths of requests the server has refused.
    client.tokens.forget()
    client.writer.capabilities = Capabilities.from_json(client.settings, None)
    probe = client.probe
    try:
        trials = await (probe.probe_vectors() if embeds else probe.probe_chat(is_checked=True))
        answers = [trial.answer for trial in trials if not trial.reason]
        if embeds:
            (vector,), _ = read_embeddings(answers[-1], 1)
            check_dimension(client.name, client.settings, len(vector))
        else:
            read_chat(answers[0])
    except RejectedError as error:
        raise ModelError(
            f"Model {client.name}: {client.address} answers, but not in the format of the settings "
            f"({client.redact(str(error))})."
        ) from None
    except (UnansweredError, RetryError) as error:
        raise ModelError(
            f"Model {client.name}: {client.address} does not answer a tiny request "
            f"({client.redact(str(error))}): see the messages of the server."
        ) from None
    return [replace(trial, reason=client.redact(trial.reason)) for trial in trials]


def check_dimension(name: str, settings: ModelSettings, dimension: int) -> None:
    """Raise `ModelError` if a model returns vectors of another dimension than its settings say."""
    if settings.dimensions not in (None, dimension):
        raise ModelError(
            f"Model {name} returns vectors of {dimension} numbers and ignores `dimensions`: set "
            f"this to {dimension} or null."
        )

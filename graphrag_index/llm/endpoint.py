"""One call to a model over HTTP: what is sent, what the endpoint can do, and what went wrong.

How it gets there is told in `client`. The retries of the `openai` package are off, since they
know no time budget.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphrag_index.errors import ModelError
from graphrag_index.llm.capabilities import (
    OPTIONAL,
    RESPONSE_FORMATS,
    Capabilities,
    does_not_know,
    is_about_format,
)
from graphrag_index.llm.client import Answer, Client
from graphrag_index.llm.failures import (
    RejectedError,
    RetryError,
    UnsupportedError,
    hide,
    retry_after,
    said_in,
)
from graphrag_index.llm.http_replies import read_chat, read_embeddings
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.request import Message, Reply, ReplyFormat, TextSink, Usage
from graphrag_index.llm.streaming import Streamed
from graphrag_index.schema.settings.models import ModelSettings

if TYPE_CHECKING:
    import openai

logger = logging.getLogger(__name__)

_RETRIED = frozenset((408, 409, 425, 429))
# So many replies that are no good, and none that is, show that a format is taken but not heeded.
MAX_UNHEEDED = 3


class Endpoint:
    """A model behind an address. Lives in one event loop."""

    def __init__(self, name: str, settings: ModelSettings, ledger: Ledger) -> None:
        self.name, self.settings, self._ledger = name, settings, ledger
        self._fact = Capabilities.cache_key(settings)
        self.capabilities = Capabilities.of(settings, ledger.get_meta(self._fact))
        self._heeds, self._n_unheeded = False, 0
        self.headers: Mapping[str, str] = {}
        self._http: Client | None = None

    @property
    def http(self) -> Client:
        """The HTTP client, made at first use."""
        if self._http is None:
            self._http = Client(self.settings)
        return self._http

    @property
    def client(self) -> "openai.AsyncOpenAI":
        """The client of the `openai` package."""
        return self.http.openai

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    async def chat(
        self,
        messages: Sequence[Message],
        format: ReplyFormat,
        max_tokens: int,
        sink: TextSink | None = None,
    ) -> Reply:
        """Ask once; parameters that the endpoint does not know are dropped on the way.

        With a `sink` the text is written into it as it comes.

        Raises
        ------
        RetryError
            Try again later.
        RejectedError
            This request will never be answered.
        ModelError
            No request will: a wrong key, an unknown model, a wrong address.
        """
        while True:
            stream = self.settings.stream or sink is not None
            body, sent = self.body(messages, format, max_tokens, stream), self.capabilities
            try:
                data = await self._post("/chat/completions", body, sink)
            except UnsupportedError as error:
                if not self.adapt(error, body, sent):
                    raise RejectedError(str(error)) from None
                continue
            return replace(read_chat(data), response_format=sent.response_format)

    async def embed(self, texts: Sequence[str]) -> tuple[list[list[float]], Usage]:
        """Ask for the vectors of some texts, in their order. Raises as `chat` does."""
        body: dict[str, Any] = {"model": self._model(), "input": list(texts)}
        if self.settings.dimensions and "dimensions" not in self.capabilities.dropped:
            body["dimensions"] = self.settings.dimensions
        if "encoding_format" not in self.capabilities.dropped:
            body["encoding_format"] = "base64"
        try:
            data = await self._post("/embeddings", body)
        except UnsupportedError as error:
            said = str(error).lower()
            # A model that cannot shorten its vectors may have as many numbers all the same.
            unknown = "dimensions" if does_not_know(said, "dimensions") else "encoding_format"
            if unknown in said and unknown in body:
                self._learn(self.capabilities.without(unknown))
                return await self.embed(texts)
            raise RejectedError(str(error)) from None
        return read_embeddings(data, len(texts))

    async def check(self) -> None:
        """See that the server answers, takes the key and knows the model, at no cost.

        Raises
        ------
        ModelError
            It does not.
        """
        import httpx2

        try:
            answer = await self.http.get("/models")
        except httpx2.TimeoutException:
            return  # A slow one may still answer.
        except (httpx2.HTTPError, OSError) as error:
            raise ModelError(self._unreachable(error)) from None
        if answer.status in (401, 403):
            raise ModelError(self._explain(answer.status, _said_by(answer)[1]))
        if answer.status >= 400:
            return  # Not every server lists its models.
        if self.settings.provider == "azure":
            return  # Azure lists models, not deployments.
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

    def _model(self) -> str:
        return self.settings.deployment or self.settings.model

    def body(
        self,
        messages: Sequence[Message],
        format: ReplyFormat,
        max_tokens: int,
        stream: bool = False,
    ) -> dict[str, Any]:
        """Write a request as the endpoint is known to take it."""
        settings, response_format = (
            self.settings,
            self.capabilities.response_format if format.schema else "plain",
        )
        body: dict[str, Any] = {"model": self._model(), "messages": list(messages)}
        body["max_completion_tokens"] = max_tokens
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        if stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        for name in self.capabilities.dropped:
            value = body.pop(name, None)
            other = OPTIONAL.get(name)
            if other is not None and value is not None:
                body[other] = value
        own = settings.parameters.items()
        body.update({name: value for name, value in own if name not in self.capabilities.dropped})
        if response_format == "json_schema":
            schema = {"name": format.name, "strict": True, "schema": format.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif response_format == "tool":
            function = {"name": format.name, "parameters": format.schema}
            body["tools"] = [{"type": "function", "function": function}]
            body["tool_choice"] = {"type": "function", "function": {"name": format.name}}
        elif response_format == "json_object":
            body["response_format"] = {"type": "json_object"}
        if response_format in ("json_object", "text"):
            body["messages"] = _with_format(messages, format)
        return body

    def adapt(self, error: "UnsupportedError", body: Mapping[str, Any], sent: Capabilities) -> bool:
        """Do without what the endpoint does not support; False if the request is at fault.

        `sent` is what was known when it was sent: another may have learnt more meanwhile.
        """
        return self.capabilities != sent or self._give_up(error, body)

    def _give_up(self, error: "UnsupportedError", body: Mapping[str, Any]) -> bool:
        """Do without what the endpoint does not support; False if there is nothing to give up."""
        text = str(error).lower()
        name = self.capabilities.refused(text, body, self.settings)
        if name is not None:
            if name in self.settings.parameters:
                logger.warning(
                    "Model %s: %s does not know the parameter %s, which is left out from now on",
                    *(self.name, self.address, name),
                )
            self._learn(self.capabilities.without(name))
            return True
        if self.settings.structured != "auto" or not is_about_format(text, body):
            return False
        return self._step_down()

    def note_compliance(self, is_good: bool, response_format: str) -> None:
        """Learn from the first reply to a request whether the endpoint heeds the format.

        Some servers take a schema and pass it over; their model was told nothing of the format.
        """
        self._heeds = self._heeds or is_good
        if (
            self._heeds
            or response_format not in RESPONSE_FORMATS[:2]
            or response_format != self.capabilities.response_format
        ):
            return
        self._n_unheeded += 1
        if self._n_unheeded == MAX_UNHEEDED and self.settings.structured == "auto":
            self._n_unheeded = 0
            self._step_down()

    def _step_down(self) -> bool:
        """Ask for a format in the next best way from now on; False if there is none."""
        lower = self.capabilities.lower()
        if lower is not None:
            self._learn(lower)
        return lower is not None

    def _learn(self, capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self._ledger.set_meta(self._fact, capabilities.json())

    async def _post(self, path: str, body: Mapping[str, Any], sink: TextSink | None = None) -> Any:
        with self.errors():
            if body.get("stream"):
                return await self._stream(path, body, sink)
            answer = await self.http.post(path, body)
            self.headers = answer.headers
            if answer.status < 400:
                return answer.json()
        raise self._refusal(answer)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Tell by whose turn it is to mend it what goes wrong in a call. Raises as `chat` does."""
        import httpx2

        try:
            yield
        except httpx2.TimeoutException:
            raise self._out_of_time() from None
        except (ValueError, UnicodeDecodeError):
            raise RetryError("the answer was no JSON", lost=True) from None
        except _transport_errors() as error:
            raise RetryError(_cause(error), lost=_was_sent(error)) from None
        except _package_errors() as error:
            raise self._of_package(error) from None

    def _of_package(self, error: BaseException) -> Exception:
        """Return what an error of the `openai` package means; raised as by `chat`."""
        import openai

        if isinstance(error, openai.APIStatusError):
            self.headers = error.response.headers
            code = str(getattr(error, "code", "") or "")
            return self.failure(
                error.status_code, _said(error), code, retry_after(error.response.headers)
            )
        if isinstance(error, openai.APITimeoutError):
            return self._out_of_time()
        if isinstance(error, openai.APIConnectionError):
            return RetryError(_cause(error), lost=_was_sent(error))
        return RetryError(_said(error), lost=True)  # in the middle of a stream

    def _out_of_time(self) -> RetryError:
        return RetryError(f"no answer within {self.settings.timeout:g} s", lost=True)

    async def _stream(
        self, path: str, body: Mapping[str, Any], sink: TextSink | None = None
    ) -> Any:
        """Put the pieces of a streamed reply together to what it would be in one piece."""
        streamed = Streamed(sink)
        stream: Any = await self.client.chat.completions.create(**body)
        try:
            async with stream:
                self.headers = stream.response.headers
                async for chunk in stream:
                    streamed.add(chunk)
                    if streamed.is_loop:
                        break
        finally:
            streamed.end()
        return streamed.whole()

    def _refusal(self, answer: Answer) -> Exception:
        """Return what an answer that is none means; raised as by `chat`."""
        code, said = _said_by(answer)
        return self.failure(answer.status, said, code, retry_after(answer.headers))

    def failure(
        self, status: int, said: str, code: str = "", after: float | None = None
    ) -> Exception:
        """Return what an HTTP status and the provider's words mean; raised as by `chat`."""
        if status in _RETRIED or status >= 500:
            if status == 429 and "quota" in said.lower() and "insufficient" in said.lower():
                return ModelError(self._explain(status, said))
            return RetryError(f"HTTP {status}: {said}", after, rate=status == 429)
        if status in (401, 403, 404):
            return ModelError(self._explain(status, said))
        about_content = ("content_filter", "content_policy", "context_length", "string_above_max")
        if any(word in f"{code} {said}".lower() for word in about_content):
            return RejectedError(f"HTTP {status}: {said}")
        if status in (400, 405, 415, 422, 501):
            return UnsupportedError(f"HTTP {status}: {said}")
        return RejectedError(f"HTTP {status}: {said}")

    @property
    def address(self) -> str:
        """Where the server is, for messages."""
        return self.settings.base_url or "api.openai.com"

    def _explain(self, status: int, said: str) -> str:
        said = hide(said, self.settings.key)
        what = {
            401: "does not accept the key: set api_key of this model",
            403: "refuses access: see what the key may do",
            404: f"does not know the model {self._model()!r} or this address: set model or "
            "base_url",
            429: "says that the account has no quota left",
        }.get(status, f"answers {status}")
        return f"Model {self.name}: {self.address} {what} (HTTP {status}: {said})."

    def _unreachable(self, error: Exception) -> str:
        return (
            f"Model {self.name}: no server answers at {self.address} ({_cause(error)}): "
            "start it, or set base_url of this model."
        )


def _transport_errors() -> tuple[type[BaseException], ...]:
    import httpx2

    return (httpx2.TransportError, httpx2.StreamError, asyncio.IncompleteReadError, OSError)


def _package_errors() -> tuple[type[BaseException], ...]:
    """What the `openai` package raises. It is loaded here if it is not: other errors are rare."""
    import openai

    return (openai.APIError,)


def _with_format(messages: Sequence[Message], format: ReplyFormat) -> list[Message]:
    """Say in words what the reply must hold: at the end of the first message."""
    first, *rest = messages
    content = f"{first['content']}\n\n{format.instructions}"
    return [Message(role=first["role"], content=content), *rest]


def _said(error: BaseException) -> str:
    body = getattr(error, "body", None)
    return said_in(body) or " ".join(str(getattr(error, "message", error)).split())[:500]


def _said_by(answer: Answer) -> tuple[str, str]:
    """Return the provider's code for an error, and its words."""
    try:
        body = answer.json()
    except ValueError:
        body = answer.content.decode("utf-8", "replace")[:200]
    inner = body.get("error", body) if isinstance(body, dict) else {}
    code = str(inner.get("code") or "") if isinstance(inner, dict) else ""
    return code, said_in(body) or " ".join(str(body).split())[:200]


def _was_sent(error: BaseException | None) -> bool:
    """Tell whether a connection failed after there was one."""
    import httpx2

    while error is not None and not isinstance(error, (httpx2.ConnectError, httpx2.PoolTimeout)):
        error = error.__cause__
    return error is None


def _cause(error: BaseException) -> str:
    """Name the innermost reason of a failed connection."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split()) or type(error).__name__

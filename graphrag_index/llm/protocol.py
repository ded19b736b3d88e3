"""OpenAI's protocol: request bodies without unsupported parameters, parsing of responses."""

import base64
import json
import logging
import re
from codecs import BOM_UTF8
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.reply_parser import VisibleText, is_repetitive
from graphrag_index.llm.request import Message, Reply, ReplyFormat, TextSink, Usage
from graphrag_index.llm.retries import RetryError, UnsupportedError
from graphrag_index.schema.settings.models import ModelSettings

logger = logging.getLogger(__name__)

# Ways to request a reply in a given format, best first.
RESPONSE_FORMATS = ("json_schema", "tool", "json_object", "text")
# Maps each parameter that a server may not support to its replacement; None: omit it.
OPTIONAL_PARAMETERS = {
    "max_completion_tokens": "max_tokens",
    "temperature": None,
    "stream_options": None,
    "stream": None,
}
# After this many invalid replies and no valid reply, assume that the server ignores the format.
MAX_INVALID_REPLIES = 3
# Words in an error message about the format of the reply.
_FORMAT_WORDS = re.compile("schema|tool|function|format|json_object|unsupported|not support")
# Words in an error message about an unknown parameter.
_UNKNOWN_WORDS = re.compile("unsupported|not support|unrecognized|unknown|unexpected|extra")


@dataclass(frozen=True)
class Capabilities:
    """The best response format that a server supports, and the parameters that it rejects."""

    response_format: str
    dropped: tuple[str, ...] = ()  # rejected parameters, which requests omit

    def to_json(self) -> str:
        """Serialize the capabilities for the ledger."""
        return json.dumps({"response_format": self.response_format, "dropped": list(self.dropped)})

    @classmethod
    def from_json(cls, settings: ModelSettings, known: str | None) -> "Capabilities":
        """Deserialize capabilities; None means full support.

        The setting `structured`, unless it is "auto", overrides the response format.
        """
        found: Any = json.loads(known) if known else {"response_format": RESPONSE_FORMATS[0]}
        chosen = found["response_format"] if settings.structured == "auto" else settings.structured
        return cls(chosen, tuple(found.get("dropped", ())))

    @staticmethod
    def cache_key(settings: ModelSettings) -> str:
        """Return the name of the ledger's metadata entry for the capabilities."""
        return f"endpoint capabilities: {settings.model} at {settings.base_url}"


class RequestWriter:
    """Writer of request bodies for one model. It omits parameters that the server rejects."""

    def __init__(self, name: str, settings: ModelSettings, ledger: Ledger) -> None:
        self.name, self.settings, self._ledger = name, settings, ledger
        # The name of the model on the server.
        self.model = settings.deployment or settings.model
        self._cache_key = Capabilities.cache_key(settings)
        self.capabilities = Capabilities.from_json(settings, ledger.get_meta(self._cache_key))
        self._has_valid_reply, self._n_invalid = False, 0

    def chat_body(
        self,
        messages: Sequence[Message],
        format: ReplyFormat,
        max_tokens: int,
        stream: bool = False,
    ) -> dict[str, Any]:
        """Write the body of a chat request."""
        settings, dropped = self.settings, self.capabilities.dropped
        response_format = self.capabilities.response_format if format.schema else "plain"
        body: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        body["max_completion_tokens"] = max_tokens
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        if stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        for name in dropped:
            value, replacement = body.pop(name, None), OPTIONAL_PARAMETERS.get(name)
            if replacement is not None and value is not None:
                body[replacement] = value
        body |= {name: v for name, v in settings.parameters.items() if name not in dropped}
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
            # Describe the format in words at the end of the first message.
            first, *rest = messages
            content = f"{first['content']}\n\n{format.instructions}"
            body["messages"] = [Message(role=first["role"], content=content), *rest]
        return body

    def embedding_body(self, texts: Sequence[str]) -> dict[str, Any]:
        """Write the body of an embedding request."""
        body: dict[str, Any] = {"model": self.model, "input": list(texts)}
        if self.settings.dimensions and "dimensions" not in self.capabilities.dropped:
            body["dimensions"] = self.settings.dimensions
        if "encoding_format" not in self.capabilities.dropped:
            body["encoding_format"] = "base64"
        return body

    def adapt_to_chat_error(
        self, error: UnsupportedError, body: Mapping[str, Any], sent: Capabilities
    ) -> bool:
        """Drop the parameter or the response format that the server rejects in an error.

        `sent` are the capabilities when the request was sent. If another call has changed the
        capabilities since then, nothing is dropped. Returns False if the error is not about a
        parameter or the format, so that a retry would fail too.
        """
        if self.capabilities != sent:
            return True
        text = str(error).lower()
        name = self._refused_parameter(text, body)
        if name is not None:
            if name in self.settings.parameters:
                logger.warning(
                    "Model %s: %s does not support the parameter %s; further requests omit it.",
                    self.name,
                    self.settings.base_url or "api.openai.com",
                    name,
                )
            self._drop_parameter(name)
            return True
        if self.settings.structured != "auto" or not body.keys() & {"response_format", "tools"}:
            return False
        return _FORMAT_WORDS.search(text) is not None and self._fall_back_to_next_format()

    def adapt_to_embedding_error(self, error: UnsupportedError, body: Mapping[str, Any]) -> bool:
        """Drop the parameter that the server rejects in an error; False if it rejects none."""
        text = str(error).lower()
        # Without `dimensions`, the vectors of the model may have the wanted dimension anyway.
        name = "dimensions" if _reports_unknown_parameter(text, "dimensions") else "encoding_format"
        if name in text and name in body:
            self._drop_parameter(name)
            return True
        return False

    def note_length(self, n_tokens: int, max_tokens: int) -> None:
        """Limit replies by `max_tokens` if the server ignores `max_completion_tokens`."""
        name = "max_completion_tokens"
        if n_tokens > 2 * max_tokens + 100 and name not in self.capabilities.dropped:
            self._drop_parameter(name)

    def note_compliance(self, is_valid: bool, response_format: str) -> None:
        """Note whether the first reply to a request was valid.

        Some servers accept a schema and ignore it, so that the model never sees the format. If
        only invalid replies arrive, further requests use the next response format.
        """
        self._has_valid_reply = self._has_valid_reply or is_valid
        is_current = response_format == self.capabilities.response_format
        if self._has_valid_reply or response_format not in RESPONSE_FORMATS[:2] or not is_current:
            return
        self._n_invalid += 1
        if self._n_invalid == MAX_INVALID_REPLIES and self.settings.structured == "auto":
            self._n_invalid = 0
            self._fall_back_to_next_format()

    def _refused_parameter(self, text: str, body: Mapping[str, Any]) -> str | None:
        """Return the parameter that an error message (in lower case) rejects, or None."""
        for name in (*OPTIONAL_PARAMETERS, *filter(None, OPTIONAL_PARAMETERS.values())):
            # Not within a word: "stream" is no part of "upstream".
            is_named = name in body and re.search(rf"(?<!\w){name}", text)
            if is_named and name not in self.capabilities.dropped:
                return name
        for name in self.settings.parameters:
            if name in body and _reports_unknown_parameter(text, name.lower()):
                return name
        return None

    def _drop_parameter(self, name: str) -> None:
        """Omit a parameter from all further requests."""
        dropped = (*self.capabilities.dropped, name)
        self._save_capabilities(replace(self.capabilities, dropped=dropped))

    def _fall_back_to_next_format(self) -> bool:
        """Use the next response format for all further requests; False if there is none."""
        position = RESPONSE_FORMATS.index(self.capabilities.response_format) + 1
        if position == len(RESPONSE_FORMATS):
            return False
        next_format = RESPONSE_FORMATS[position]
        self._save_capabilities(replace(self.capabilities, response_format=next_format))
        return True

    def _save_capabilities(self, capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self._ledger.set_meta(self._cache_key, capabilities.to_json())


def _reports_unknown_parameter(text: str, name: str) -> bool:
    """Tell whether an error says that a parameter is unknown, not that its value is wrong."""
    is_named = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)
    return bool(is_named and "value" not in text and _UNKNOWN_WORDS.search(text))


def encode_json(body: Mapping[str, Any]) -> bytes:
    """Encode a body as JSON in UTF-8; a lone surrogate becomes `?`."""
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def read_chat(data: Any) -> Reply:
    """Parse the response of `/chat/completions`, from OpenAI or a compatible server."""
    try:
        choice = data["choices"][0]
        message = choice.get("message") or {}
    except (KeyError, IndexError, TypeError, AttributeError):
        raise RetryError("the answer contains no reply") from None
    text = message.get("content") or ""
    if isinstance(text, list):  # a list of content parts
        text = "".join(str(part.get("text", "")) for part in text if isinstance(part, dict))
    # Some models split the reply over several tool calls.
    text = "\n".join(filter(None, map(_tool_arguments, message.get("tool_calls") or []))) or text
    finish = str(choice.get("finish_reason") or "stop")
    if message.get("refusal"):
        text, finish = str(message["refusal"]), "refusal"
    return Reply(text, finish, read_usage(data.get("usage")))


def _tool_arguments(call: Any) -> str:
    """Return the arguments of a tool call as JSON text."""
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    return arguments or "" if isinstance(arguments, str | None) else json.dumps(arguments)


def read_usage(usage: Any) -> Usage:
    """Parse the token counts of a call; a missing count is 0."""
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details") or {}
    return Usage(
        int(usage.get("prompt_tokens") or 0),
        int(details.get("cached_tokens") or 0) if isinstance(details, dict) else 0,
        int(usage.get("completion_tokens") or 0),
    )


def read_embeddings(data: Any, n_texts: int) -> tuple[list[list[float]], Usage]:
    """Parse the response of `/embeddings`: one vector for each text, in the order of the texts."""
    import numpy as np

    try:
        rows = sorted(data["data"], key=lambda row: row["index"])
        vectors = [
            np.frombuffer(base64.b64decode(row["embedding"]), "<f4").tolist()
            if isinstance(row["embedding"], str)
            else [float(value) for value in row["embedding"]]
            for row in rows
        ]
    except (KeyError, TypeError, ValueError):
        raise RetryError("the answer contains no vectors") from None
    if len(vectors) != n_texts:
        raise RetryError(f"the answer contains {len(vectors)} vectors for {n_texts} texts")
    return vectors, read_usage(data.get("usage"))


def error_message(body: Any) -> str:
    """Return the message, code and parameter of an error response, on one line; "" if absent."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(inner, dict) or not inner.get("message"):
        return ""
    parts = [str(inner["message"])[:500], inner.get("code"), inner.get("param")]
    return " ".join(" ".join(str(part) for part in parts if part).split())


async def read_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[Any]:
    """Parse server-sent events up to `[DONE]`; yield the JSON data of each event.

    The format is specified in https://html.spec.whatwg.org/multipage/server-sent-events.html.
    Raises `RetryError` if the server reports an error in the middle of the stream.
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
        try:
            event = json.loads(text)
        except ValueError:
            raise RetryError("the answer is not valid JSON", lost=True) from None
        if isinstance(event, dict) and event.get("error"):
            raise RetryError(error_message(event) or str(event["error"])[:500], lost=True)
        yield event


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
        self._tool: list[str] = []
        self._refusal = ""
        self._finish: str | None = None
        self._usage: Any = None
        # Whether the model repeats the same text again and again.
        self.is_loop = False

    def add_event(self, event: dict[str, Any]) -> None:
        """Add the next event of the stream."""
        self._usage = event.get("usage") or self._usage
        for choice in (event.get("choices") or [])[:1]:
            delta = choice.get("delta") or choice.get("message") or {}
            piece = delta.get("content") or ""
            self._text.append(piece)
            if self._visible:
                self._visible.write(piece)
            self._refusal += delta.get("refusal") or ""
            self._tool += map(_tool_arguments, delta.get("tool_calls") or ())
            self._finish = choice.get("finish_reason") or self._finish
        # Check for repetition only after every 50 pieces, since the check takes time.
        if len(self._text) >= 200 and len(self._text) % 50 == 0:
            # A model may repeat its content or the arguments of its tool call.
            self.is_loop = any(
                is_repetitive("".join(part[-800:])) for part in (self._text, self._tool)
            )
        if self.is_loop:
            self._finish = "length"

    def finish_text(self) -> None:
        """End the text in the sink, or discard it if the stream ended too early."""
        if self._visible:
            self._visible.end(broken=self._finish is None)

    def get_reply(self) -> Reply:
        """Return the whole reply; raises `RetryError` if the stream ended too early."""
        if self._finish is None:
            raise RetryError("the stream ended early", lost=True)
        text, finish = "".join(self._tool) or "".join(self._text), self._finish
        if self._refusal:
            text, finish = self._refusal, "refusal"
        return Reply(text, finish, read_usage(self._usage))

"""OpenAI's protocol: encoding of request bodies, parsing of responses and streams."""

import base64
import json
from codecs import BOM_UTF8
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from typing import Any

from graphrag_index.llm.reply_parser import VisibleText, is_repetitive
from graphrag_index.llm.request import Reply, TextSink, Usage
from graphrag_index.llm.retries import RetryError, StreamEndedError
from graphrag_index.text.normalize import replace_surrogates


def encode_json(body: Mapping[str, Any]) -> bytes:
    """Encode a body as JSON in UTF-8; a lone surrogate becomes U+FFFD."""
    return replace_surrogates(json.dumps(body, ensure_ascii=False)).encode()


def parse_json(content: bytes) -> Any:
    """Parse the JSON of a response; raises `RetryError` if it is invalid."""
    try:
        return json.loads(content)
    except ValueError:
        raise RetryError("the answer is not valid JSON", lost=True) from None


def read_chat(data: Any) -> Reply:
    """Parse the response of `/chat/completions`, from OpenAI or a compatible server."""
    try:
        choice = data["choices"][0]
        message = choice.get("message") or {}
        text = _join_parts(message.get("content"))
    except (KeyError, IndexError, TypeError, AttributeError):
        raise RetryError("the answer contains no reply") from None
    # Some models split the reply over several tool calls.
    text = "\n".join(filter(None, map(_tool_arguments, message.get("tool_calls") or []))) or text
    finish = str(choice.get("finish_reason") or "stop")
    if message.get("refusal"):
        text, finish = str(message["refusal"]), "refusal"
    return Reply(text, finish, read_usage(data.get("usage")))


def _join_parts(content: Any) -> str:
    """Return the text of a message, which may be a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content or ""


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
    if isinstance(inner, dict) and inner.get("detail"):
        return _validation_message(inner["detail"])
    if not isinstance(inner, dict) or not inner.get("message"):
        return ""
    parts = [str(inner["message"])[:500], inner.get("code"), inner.get("param")]
    return " ".join(" ".join(str(part) for part in parts if part).split())


def _validation_message(detail: Any) -> str:
    """Return the message of an error that FastAPI writes, with the place of each invalid value."""
    entries = detail if isinstance(detail, list) else [detail]
    messages = [
        f"{'.'.join(map(str, entry.get('loc') or ()))}: {entry.get('msg')}"
        if isinstance(entry, dict)
        else str(entry)
        for entry in entries
    ]
    return " ".join("; ".join(messages)[:500].split())


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
        event = parse_json(text)
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
            piece = _join_parts(delta.get("content"))
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

    @property
    def is_complete(self) -> bool:
        """Whether the reply has ended."""
        return self._finish is not None

    def finish_text(self) -> None:
        """End the text in the sink, or discard it if the stream ended too early."""
        if self._visible:
            self._visible.end(broken=not self.is_complete)

    def get_reply(self) -> Reply:
        """Return the whole reply; raises `RetryError` if the stream ended too early."""
        if self._finish is None:
            raise StreamEndedError("the stream ended early", lost=True)
        text, finish = "".join(self._tool) or "".join(self._text), self._finish
        if self._refusal:
            text, finish = self._refusal, "refusal"
        return Reply(text, finish, read_usage(self._usage))

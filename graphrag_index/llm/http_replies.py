"""Parsing of what an OpenAI-compatible server sends: chat replies, streams, vectors."""

import base64
import json
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from typing import Any

from graphrag_index.llm.call_errors import RetryError, message_in
from graphrag_index.llm.parsing.reply import VisibleText
from graphrag_index.llm.request import Reply, TextSink, Usage


def read_chat(data: Any) -> Reply:
    """Parse the response of `/chat/completions`, as OpenAI or as others write it."""
    try:
        choice = data["choices"][0]
        message = choice.get("message") or {}
    except (KeyError, IndexError, TypeError, AttributeError):
        raise RetryError("the answer has no choice") from None
    calls = message.get("tool_calls") or []
    text = message.get("content") or ""
    if isinstance(text, list):  # in parts
        text = "".join(str(part.get("text", "")) for part in text if isinstance(part, dict))
    # Some models call the tool several times, with a part of the reply each.
    text = "\n".join(filter(None, map(_arguments, calls))) or text
    finish = str(choice.get("finish_reason") or "stop")
    if message.get("refusal"):
        text, finish = str(message["refusal"]), "refusal"
    return Reply(text, finish, read_usage(data.get("usage")))


def _arguments(call: Any) -> str:
    """Return the arguments of a tool call, as text."""
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments)


def read_usage(usage: Any) -> Usage:
    """Parse the tokens of a call; 0 where the server does not count."""
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details") or {}
    return Usage(
        int(usage.get("prompt_tokens") or 0),
        int(details.get("cached_tokens") or 0) if isinstance(details, dict) else 0,
        int(usage.get("completion_tokens") or 0),
    )


def read_embeddings(data: Any, n_texts: int) -> tuple[list[list[float]], Usage]:
    """Parse the response of `/embeddings`: a vector for each text, in their order."""
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
        raise RetryError("the answer holds no vectors") from None
    if len(vectors) != n_texts:
        raise RetryError(f"the answer holds {len(vectors)} vectors for {n_texts} texts")
    return vectors, read_usage(data.get("usage"))


async def read_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[Any]:
    """Parse server-sent events [1]_ into the JSON of their data, up to `[DONE]`.

    Raises
    ------
    RetryError
        The server reports an error in the middle of the stream.

    References
    ----------
    .. [1] https://html.spec.whatwg.org/multipage/server-sent-events.html
    """
    data: list[bytes] = []
    rest = b""
    async for chunk in _with_end(chunks):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in map(bytes.strip, lines):
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
                raise RetryError("the answer was no JSON", lost=True) from None
            if isinstance(event, dict) and event.get("error"):
                raise RetryError(message_in(event) or str(event["error"])[:500], lost=True)
            yield event


async def _with_end(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Add the empty line that ends the last event, where the server leaves it out."""
    async for chunk in chunks:
        yield chunk
    yield b"\n\n"


class StreamedReply:
    """A reply put together from the events of a stream, whose text goes on into a `sink`."""

    def __init__(self, sink: TextSink | None = None) -> None:
        self._visible = VisibleText(sink) if sink else None
        self._text: list[str] = []
        self._tool: list[str] = []
        self._refusal = ""
        self._finish: str | None = None
        self._usage: Any = None

    def add(self, event: dict[str, Any]) -> None:
        """Take the next event."""
        self._usage = event.get("usage") or self._usage
        for choice in (event.get("choices") or [])[:1]:
            delta = choice.get("delta") or {}
            piece = delta.get("content") or ""
            self._text.append(piece)
            if self._visible:
                self._visible.write(piece)
            self._refusal += delta.get("refusal") or ""
            self._tool += map(_arguments, delta.get("tool_calls") or ())
            self._finish = choice.get("finish_reason") or self._finish
        if self.is_loop:
            self._finish = "length"

    @property
    def is_loop(self) -> bool:
        """Whether the model repeats itself, so that nothing new is to be expected."""
        return _repeats_itself(self._text)

    def end(self) -> None:
        """Tell the sink that the text is complete, or void."""
        if self._visible:
            self._visible.end(broken=self._finish is None)

    def response(self) -> dict[str, Any]:
        """Return the response as one that was not streamed.

        Raises
        ------
        RetryError
            The stream ended early.
        """
        if self._finish is None:
            raise RetryError("the stream ended early", lost=True)
        message: dict[str, Any] = {
            "content": "".join(self._text),
            "refusal": self._refusal or None,
        }
        if self._tool:
            message["tool_calls"] = [{"function": {"arguments": "".join(self._tool)}}]
        choice = {"message": message, "finish_reason": self._finish}
        return {"choices": [choice], "usage": self._usage}


def _repeats_itself(pieces: Sequence[str]) -> bool:
    """Tell whether the last words of a stream are repeated over and over."""
    if len(pieces) < 400 or len(pieces) % 50:
        return False
    tail = "".join(pieces[-400:])
    last = tail[-40:]
    return len(last) == 40 and tail.count(last) > 12

"""Streamed replies: server-sent events, and their text."""

from codecs import BOM_UTF8
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from graphrag_index.llm.protocol import (
    error_message,
    join_parts,
    parse_json,
    read_usage,
    tool_arguments,
)
from graphrag_index.llm.reply_parser import VisibleText, is_repetitive
from graphrag_index.llm.request import Reply, TextSink
from graphrag_index.llm.retries import RetryError, StreamEndedError


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

    def add_event(self, event: Any) -> None:
        """Add the next event of the stream; raises `RetryError` if it is malformed."""
        try:
            self._usage = event.get("usage") or self._usage
            choice = next(iter(event.get("choices") or [{}]))
            delta = choice.get("delta") or choice.get("message") or {}
            piece = join_parts(delta.get("content"))
            self._refusal += delta.get("refusal") or ""
            self._tool += map(tool_arguments, delta.get("tool_calls") or ())
            self._finish = choice.get("finish_reason") or self._finish
        except (AttributeError, TypeError):
            raise RetryError("the stream contains an invalid event", lost=True) from None
        self._text.append(piece)
        if self._visible:
            self._visible.write(piece)
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

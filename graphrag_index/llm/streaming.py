"""The pieces of a streamed reply, put together to what it would be in one piece."""

from collections.abc import Sequence
from typing import Any

from graphrag_index.llm.failures import RetryError
from graphrag_index.llm.parsing.reasoning import Spoken
from graphrag_index.llm.request import TextSink


class Streamed:
    """Takes the chunks of one stream; its text goes on into the `sink`, if there is one."""

    def __init__(self, sink: TextSink | None = None) -> None:
        self._spoken = Spoken(sink) if sink else None
        self._text: list[str] = []
        self._tool: list[str] = []
        self._refusal = ""
        self._finish: str | None = None
        self._usage: Any = None

    def add(self, chunk: Any) -> None:
        """Take the next chunk, as the `openai` package reads it."""
        self._usage = chunk.usage.model_dump() if chunk.usage else self._usage
        for choice in chunk.choices[:1]:
            delta = choice.delta
            self._text.append(delta.content or "")
            if self._spoken:
                self._spoken.write(delta.content or "")
            self._refusal += getattr(delta, "refusal", None) or ""
            for call in delta.tool_calls or ():
                self._tool.append(str(call.function.arguments if call.function else ""))
            self._finish = choice.finish_reason or self._finish
        if self.is_loop:
            self._finish = "length"

    @property
    def is_loop(self) -> bool:
        """Whether the model says the same over and over: nothing else will come."""
        return _repeats_itself(self._text)

    def end(self) -> None:
        """Tell the sink that the text is whole, or void."""
        if self._spoken:
            self._spoken.end(broken=self._finish is None)

    def whole(self) -> dict[str, Any]:
        """Return the reply.

        Raises
        ------
        RetryError
            The stream ended before it.
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
    """Tell whether a model has fallen into a loop: its last words over and over."""
    if len(pieces) < 400 or len(pieces) % 50:
        return False
    tail = "".join(pieces[-400:])
    last = tail[-40:]
    return len(last) == 40 and tail.count(last) > 12

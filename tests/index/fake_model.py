"""A chat model that is a function: for tests of the steps that ask one."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from graphrag_index.core.models.request import Outcome, ReplyError, Request
from graphrag_index.core.models.settings import ModelSettings

Answer = Callable[[Request], Any]


class FakeChatModel:
    """Answers each request with what a function makes of it: an object, or None for a failure."""

    def __init__(self, answer: Answer, max_prompt_tokens: int = 8_000) -> None:
        self.answer = answer
        self.max_prompt_tokens = max_prompt_tokens
        self.settings = ModelSettings(model="fake")
        self.asked: list[Request] = []

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        for request in requests:
            yield self._converse(request)

    def known(self, request: Request) -> tuple[Any, ...]:
        """No reply is kept."""
        return ()

    def recall(self, name: str) -> str | None:
        """Nothing is remembered."""
        return None

    def remember(self, name: str, value: str) -> None:
        """What is told is forgotten."""

    def use(self, keys: Iterable[str]) -> None:
        """Nothing is noted."""

    def _converse(self, request: Request) -> Outcome:
        values: list[Any] = []
        dropped = 0
        asked: Request | None = request
        while asked is not None:
            self.asked.append(asked)
            answer = self.answer(asked)
            try:
                if answer is None:
                    raise ReplyError("it is empty")
                reading = asked.format.read(answer)
            except ReplyError as error:
                return Outcome(request.unit, tuple(values), dropped, str(error))
            values.append(reading.value)
            dropped += reading.dropped
            asked = asked.then(reading.value) if asked.then else None
        return Outcome(request.unit, tuple(values), dropped)

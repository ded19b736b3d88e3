"""A chat model that is a function: for tests of the steps that ask one."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from graphrag_index.llm.request import Outcome, ReplyError, Request
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.storage.versions import StepRecord

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

    def reply_hashes(self, keys: Iterable[str]) -> list[str]:
        """No reply is kept."""
        return ["" for _ in keys]

    def recall(self, name: str) -> str | None:
        """Nothing is remembered."""
        return None

    def remember(self, name: str, value: str) -> None:
        """What is told is forgotten."""

    def use(self, keys: Iterable[str]) -> None:
        """Nothing is noted."""

    def _converse(self, request: Request) -> Outcome:
        values: list[Any] = []
        keys: list[str] = []
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
                return Outcome(request.unit, tuple(values), dropped, str(error), keys=tuple(keys))
            keys.append(str(asked.messages))
            values.append(reading.value)
            dropped += reading.dropped
            asked = asked.then(reading.value) if asked.then else None
        return Outcome(request.unit, tuple(values), dropped, keys=tuple(keys))


class KeepingModel(FakeChatModel):
    """Keeps what it has answered under the messages, as a ledger does."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(self._keep)
        self.function = answer
        self.kept: dict[str, Any] = {}
        # The keys of requests whose replies were not read again.
        self.used: list[str] = []

    def _keep(self, request: Request) -> Any:
        key = str(request.messages)
        if key not in self.kept and (said := self.function(request)) is not None:
            self.kept[key] = said
        return self.kept.get(key)

    def reply_hashes(self, keys: Iterable[str]) -> list[str]:
        return [json.dumps(self.kept[key]) if key in self.kept else "" for key in keys]

    def use(self, keys: Iterable[str]) -> None:
        self.used += keys


class EarlierTables:
    """What a step wrote, as the last run's tables: stands in for `Previous`."""

    def __init__(
        self,
        tables: Mapping[str, pl.DataFrame | pl.LazyFrame] | None = None,
        is_same_step: bool = True,
    ) -> None:
        self.tables, self.is_same_step = tables or {}, is_same_step
        self.settings: Mapping[str, Any] = {}

    def scan(self, name: str) -> pl.LazyFrame | None:
        return self.tables[name].lazy() if name in self.tables else None

    def written_by(self, name: str) -> StepRecord | None:
        """No step left a mark."""
        return None

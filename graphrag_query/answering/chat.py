"""A language model as the searches ask it: every call is counted for the answer."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from graphrag_index.errors import ModelError, OutageError
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import (
    PLAIN_TEXT,
    Message,
    Outcome,
    Request,
    Spent,
    TextSink,
)
from graphrag_query.answer import Usage


class AsksModel(Protocol):
    """What a search needs of a chat model; tests give a function this shape."""

    @property
    def max_prompt_tokens(self) -> int:
        """How long a prompt may be, in tokens."""

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Give the outcomes in the order of the requests."""


class Written(NamedTuple):
    """A text that a model wrote, and whether it was cut off at its longest."""

    text: str
    is_cut_off: bool


class Chat:
    """One or two models for one question: `model` writes, `rating_model` answers what is asked
    often. What their calls use is summed up in `usage`. If the second does not answer,
    `on_outage` is called, so that nobody waits for the first as well where both lie together.
    """

    def __init__(
        self,
        model: AsksModel,
        prompts: Prompts,
        rating_model: AsksModel | None = None,
        on_outage: Callable[[OutageError], None] = lambda error: None,
    ) -> None:
        self.model, self.prompts = model, prompts
        self._rating_model = rating_model or model
        self._on_outage = on_outage
        self.spent = Spent()

    @property
    def max_prompt_tokens(self) -> int:
        """How long a prompt may be, in tokens."""
        return min(self.model.max_prompt_tokens, self._rating_model.max_prompt_tokens)

    @property
    def usage(self) -> Usage:
        """What all calls so far have used."""
        tokens = self.spent.usage
        return Usage(self.spent.calls, tokens.prompt, tokens.completion, self.spent.cost)

    def replies(self, requests: Iterable[Request], rating: bool = False) -> list[Outcome]:
        """Ask many things at once; an outcome with a `failure` cost that one request.

        With `rating` the cheaper model is asked.

        Raises
        ------
        ModelError
            The model does not answer at all.
        """
        model = self._rating_model if rating else self.model
        try:
            outcomes = list(model.replies(requests))
        except OutageError as error:
            if model is not self.model:
                self._on_outage(error)
            raise
        for outcome in outcomes:
            self._count(outcome)
        return outcomes

    def write(
        self,
        unit: str,
        messages: Sequence[Message],
        sink: TextSink | None = None,
        max_output_tokens: int | None = None,
    ) -> Written:
        """Let the model write a text, into the `sink` while it is being written.

        Raises
        ------
        ModelError
            There is none.
        """
        request = Request(unit, messages, PLAIN_TEXT, max_output_tokens, sink=sink)
        [outcome] = self.model.replies([request])
        self._count(outcome)
        if outcome.failure:
            raise ModelError(f"The model gave no answer: {outcome.failure.rstrip('.')}.")
        return Written(str(outcome.values[0]), outcome.dropped > 0)

    def messages(self, prompt: str, asked: str, **values: str) -> list[Message]:
        """Fill a prompt, which comes first so that a provider's cache serves it, and what is
        asked of it behind.
        """
        return [
            Message(role="system", content=self.prompts.fill(prompt, values)),
            Message(role="user", content=asked),
        ]

    def _count(self, outcome: Outcome) -> None:
        spent = outcome.spent
        self.spent.calls += spent.calls
        self.spent.usage += spent.usage
        total = self.spent.cost
        self.spent.cost = None if total is None or spent.cost is None else total + spent.cost

"""One question, with all that a search needs to answer it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from graphrag_index.llm.request import TextSink
from graphrag_index.schema.settings.searches import Search
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.chat import Chat
from graphrag_query.retrieval.index_store import KnowledgeModel

if TYPE_CHECKING:
    import numpy as np

# For the instructions around a context.
TOKENS_OF_PROMPT = 1_000


@dataclass(frozen=True)
class Question:
    """A question to one index.

    Without a `chat` the answer is made of sentences of the documents. With a `sink` the text
    goes there while it is being written. `counts` are what a search has looked at so far, for
    the answer if a model fails before there is one.
    """

    text: str
    model: KnowledgeModel
    chat: Chat | None = None
    search: Search = field(default_factory=Search)
    sink: TextSink | None = None
    counts: dict[str, int] = field(default_factory=dict)

    @cached_property
    def vector(self) -> "np.ndarray[Any, Any]":
        """The question's vector, of length 1."""
        vector: np.ndarray[Any, Any] = self.model.embed([self.text])[0]
        return vector

    def max_context_tokens(self, limit: int) -> int:
        """How long a context may be: `limit`, or less in a smaller window of the model."""
        if self.chat is None:
            return limit
        return max(0, min(limit, self.chat.max_prompt_tokens - TOKENS_OF_PROMPT))

    def answer(
        self,
        text: str,
        method: str,
        parameters: Mapping[str, Any],
        looked_at: Mapping[str, int],
        outcome: Outcome = Outcome.ANSWERED,
        **more: Any,
    ) -> Answer:
        """Make the answer to this question; what it used is that of the chat so far."""
        if self.chat is not None:
            more["usage"] = self.chat.usage
        return Answer(
            question=self.text,
            text=text,
            outcome=outcome,
            method=method,
            parameters=parameters,
            looked_at=looked_at,
            version=self.model.version.number,
            **more,
        )

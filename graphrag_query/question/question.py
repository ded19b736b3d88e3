"""A question, its parts that searches share, and the answer to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from graphrag_index.llm.request import TextSink
from graphrag_index.schema.settings.searches import LocalSearch, Search
from graphrag_index.text.languages import Language
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.llm import LLM
from graphrag_query.question.content_words import content_words, language_in
from graphrag_query.question.mentions import Mentions
from graphrag_query.retrieval.index_store import IndexStore

# Reserved for the instructions around a context.
PROMPT_TOKENS = 1_000


@dataclass(frozen=True)
class Question:
    """A question to one index.

    Without an `llm` the answer consists of sentences of the documents. A `sink` receives the text
    while it is being written. `counts` are what a search has read so far: if the model fails, the
    answer tells them. `names` are those of entities, where a search was given them instead of
    a question.
    """

    text: str
    index: IndexStore
    llm: LLM | None = None
    search: Search = field(default_factory=Search)
    local: LocalSearch = field(default_factory=LocalSearch)
    sink: TextSink | None = None
    counts: dict[str, int] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    @cached_property
    def vector(self) -> "np.ndarray[Any, Any]":
        """The question's vector, of length 1."""
        vector: np.ndarray[Any, Any] = self.index.embed([self.text])[0]
        return vector

    @cached_property
    def language(self) -> Language:
        """The question's language."""
        return language_in(self.text)

    @cached_property
    def mentions(self) -> Mentions:
        """The names in the question, linked to entities."""
        return Mentions(self.index, self.text, self.language)

    @cached_property
    def content_words(self) -> list[str]:
        """The stems of the words that carry the question's meaning."""
        return content_words(self.text, self.language)

    def max_context_tokens(self, limit: int) -> int:
        """Return the longest context allowed: `limit`, or less in a smaller context window."""
        if self.llm is None:
            return limit
        return max(0, min(limit, self.llm.max_prompt_tokens - PROMPT_TOKENS))

    def answer(
        self,
        text: str,
        method: str,
        parameters: Mapping[str, Any],
        looked_at: Mapping[str, int],
        outcome: Outcome = Outcome.ANSWERED,
        **more: Any,
    ) -> Answer:
        """Build the answer to this question, with the usage of the model so far."""
        if self.llm is not None:
            more["usage"] = self.llm.usage
        return Answer(
            question=self.text,
            text=text,
            outcome=outcome,
            method=method,
            parameters=parameters,
            looked_at=looked_at,
            version=self.index.version.number,
            **more,
        )

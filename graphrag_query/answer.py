"""The result of a search: text, citations, outcome and usage."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from graphrag_query.display.notebook import as_html, as_markdown

if TYPE_CHECKING:
    from graphrag_query.answering.written_answer import Context
    from graphrag_query.display.subgraph import Subgraph


class Outcome(StrEnum):
    """The outcome of a search. Missing evidence and a failure are never the same."""

    ANSWERED = "answered"
    NO_EVIDENCE = "no_evidence"  # the corpus was searched and has no record
    PROVIDER_ERROR = "provider_error"  # a model did not answer
    INDEX_INCOMPLETE = "index_incomplete"  # the index lacks a table of this search


@dataclass(frozen=True)
class Citation:
    """A passage that supports a sentence of the answer, cited there as [`number`].

    `quote` is ``documents.text[start_char:end_char]`` of the document. `cited_as` is the row
    that was cited: the passage itself, or a row that it supports, such as ``Reports (3)``.
    """

    number: int
    document: str  # its title
    document_id: str
    path: str  # of its file, relative to the input folder
    start_char: int
    end_char: int
    quote: str
    text_unit: int  # human_readable_id
    cited_as: str = ""


@dataclass(frozen=True)
class Usage:
    """The calls, tokens and cost of an answer; zero without a language model.

    `cost` is in dollars; None if the price of a model is unknown.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        known = self.cost is not None and other.cost is not None
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            (self.cost or 0.0) + (other.cost or 0.0) if known else None,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True)
class Answer:
    """An answer with its evidence.

    `looked_at` counts the rows that were read ("reports": 12), so that "no evidence" differs
    from "nothing was read". `parameters` are the settings of the search. `context` holds the rows
    that a model was given, or would be. `notes` are for the reader: citations that were removed,
    quotations that are not in the passage, failed calls, missing parts of the index.
    """

    question: str
    text: str
    outcome: Outcome
    method: str = ""
    citations: tuple[Citation, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    looked_at: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    version: int = 0
    notes: tuple[str, ...] = ()
    follow_ups: tuple[str, ...] = ()  # questions that could be asked next
    left_out: tuple[int, ...] = ()  # reports that a global search did not use
    context: "Context | None" = None
    graph: "Subgraph | None" = None  # the result of a search of the graph

    def to_dict(self, with_context: bool = False) -> dict[str, Any]:
        """Return the answer for JSON, its text under `answer`."""
        content: dict[str, Any] = {"answer": self.text}
        for name in (f.name for f in fields(self) if f.name not in ("text", "context", "graph")):
            content[name] = getattr(self, name)
        content["citations"] = [vars(citation) for citation in self.citations]
        content["usage"] = vars(self.usage)
        if with_context and self.context is not None:
            content["context"] = self.context.to_dict()
        if with_context and self.graph is not None:
            content["graph"] = self.graph.to_dict()
        return content

    def __str__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        """Show the answer in a notebook."""
        return as_markdown(self)

    def _repr_html_(self) -> str:
        """Show the answer with a picture of its sub-graph."""
        return as_html(self)

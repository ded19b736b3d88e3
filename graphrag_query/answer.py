"""What a search returns: the text, the passages that prove it, and how it came about."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphrag_query.answering.context import Context
    from graphrag_query.display.subgraph import Subgraph


class Outcome(StrEnum):
    """How a search ended. Missing evidence and a failure are never the same."""

    ANSWERED = "answered"
    NO_EVIDENCE = "no_evidence"  # the corpus was searched, and has no record
    PROVIDER_ERROR = "provider_error"  # a model did not answer
    INDEX_INCOMPLETE = "index_incomplete"  # the index lacks what this search reads


@dataclass(frozen=True)
class Citation:
    """A passage that proves a sentence of the answer, which names it as [`number`].

    `quote` is ``documents.text[start_char:end_char]`` of the document. `cited_as` is the row
    that was cited: a passage itself, or what led to it, such as ``Reports (3)``.
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
    """What an answer cost. The embedded searches call no model that is paid for.

    `cost` is in dollars; None where the price of a model is not known.
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

    `looked_at` counts what the search read ("reports": 12), so that "no evidence" can
    be told from "nothing was looked at". `parameters` are those that the search ran with.
    `context` holds the tables that were read, as far as a model was or would be shown them.
    `notes` tell what a reader should know: citations that were removed, quotations that are
    not in the passage, calls that failed, parts of the index that are missing.
    """

    question: str
    text: str
    outcome: Outcome
    method: str
    citations: tuple[Citation, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    looked_at: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    version: int = 0
    notes: tuple[str, ...] = ()
    follow_ups: tuple[str, ...] = ()  # questions that could be asked next
    left_out: tuple[int, ...] = ()  # reports that a global search did not show to the model
    context: "Context | None" = None
    graph: "Subgraph | None" = None  # what a search of the graph found

    def to_dict(self, with_context: bool = False) -> dict[str, Any]:
        """Return the answer as JSON knows it; the text is under `answer`."""
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
        from graphrag_query.display.notebook import as_markdown

        return as_markdown(self)

    def _repr_html_(self) -> str:
        """Show the answer with a picture of what it found in the graph."""
        from graphrag_query.display.notebook import as_html

        return as_html(self)

"""The result of a search: text, citations, outcome and usage."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from graphrag_index.errors import quote_argument
from graphrag_query.display.notebook import as_html, as_markdown

if TYPE_CHECKING:
    from graphrag_query.answering.written_answer import Context
    from graphrag_query.display.subgraph import Subgraph


class Outcome(StrEnum):
    """The outcome of a search. Missing evidence and a failure are different outcomes."""

    ANSWERED = "answered"
    NO_EVIDENCE = "no_evidence"  # the search worked, but the documents contain no answer
    PROVIDER_ERROR = "provider_error"  # a model did not answer
    INDEX_INCOMPLETE = "index_incomplete"  # the index lacks a table that the search needs

    @property
    def is_failure(self) -> bool:
        """Whether the search did not work: it says nothing about the documents."""
        return self in (Outcome.PROVIDER_ERROR, Outcome.INDEX_INCOMPLETE)


@dataclass(frozen=True)
class Citation:
    """A passage that supports a sentence of the answer. The answer cites it as [`number`].

    `quote` is ``documents.text[start_char:end_char]`` of the document. `cited_as` is the row
    that the model cited: the text unit of the passage, or a row that the passage supports, such
    as ``Reports (3)``. `prepended` has the metadata that Microsoft GraphRAG put before the text
    unit; it is not part of the quotation.
    """

    number: int
    document: str  # title of the document
    document_id: str
    path: str  # path of the document's file, relative to the input folder
    start_char: int
    end_char: int
    quote: str
    text_unit: int  # human_readable_id of the text unit
    cited_as: str = ""
    prepended: str = ""


@dataclass(frozen=True)
class Passage:
    """A text unit that fits a question: ``documents.text[start_char:end_char]``."""

    number: int  # human_readable_id of the text unit
    score: float  # 0 to 1
    document: int  # human_readable_id of the document
    title: str
    path: str
    start_char: int
    end_char: int
    text: str


@dataclass(frozen=True)
class RatedReport:
    """A report that a search compared with the question.

    `score` is what the search orders the reports by: the rating of a model, the similarity to the
    question with the rank of the report, the rank, or the share of the documents.
    """

    community: int
    title: str
    score: float


@dataclass(frozen=True)
class SubQuestion:
    """A question that a search asked on its way to the answer.

    `answer` is empty, and `score` None, if the search only looked for passages.
    """

    question: str
    answer: str = ""
    score: float | None = None  # 0 to 100


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
class Suggestion:
    """Another search, which finds evidence where the search of the answer found none.

    In Python, run it with ``index.search(method, *arguments)``.
    """

    method: str
    arguments: tuple[str, ...]  # the question, or names of entities
    why: str
    options: tuple[str, ...] = ()  # options of the command, such as --root

    @property
    def command(self) -> str:
        """The command that runs the search."""
        # Without "--", a question that begins with a dash is read as an option.
        end = ["--"] if any(text.startswith("-") for text in self.arguments) else []
        words = [self.method, *self.options, *end, *self.arguments]
        return " ".join(["graphrag-query", *map(quote_argument, words)])

    def to_dict(self) -> dict[str, Any]:
        """Return the suggestion as values for JSON."""
        names = ("method", "arguments", "why", "command")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        return f"{self.why} Try: {self.command}"


@dataclass(frozen=True)
class Answer:
    """An answer with its evidence.

    `looked_at` has the numbers of rows that the search has read, such as
    ``{"community_reports": 12}``, also without evidence. `parameters` are the settings of the
    search. `context` has the rows of the prompt, or those read without a model. `notes` are
    messages for the user: removed citations, quotations that are not in the passage, failed
    calls, missing parts of the index.
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
    suggestion: Suggestion | None = None  # another search, if this one found no evidence
    # The rows of a count, such as {"name": "Oslo", "documents": 12}.
    table: tuple[Mapping[str, Any], ...] = ()
    context: "Context | None" = None
    graph: "Subgraph | None" = None  # sub-graph that a path or neighbourhood search found
    reports: tuple[RatedReport, ...] = ()  # the best first
    sub_questions: tuple[SubQuestion, ...] = ()  # in the order in which they were asked

    @property
    def source_count(self) -> str:
        """The number of documents that the answer cites, as " from one document alone".

        Nothing that is cited confirms a single document. Empty without citations. A count rests
        on all documents that were counted, of which it cites examples.
        """
        cited = len({citation.document_id for citation in self.citations})
        n = self.looked_at.get("documents_counted", cited) if cited else 0
        return f" from {n:,} documents" if n > 1 else " from one document alone" if n else ""

    def with_options(self, options: tuple[str, ...]) -> "Answer":
        """Add options to the command of the suggestion."""
        if self.suggestion is None:
            return self
        return replace(self, suggestion=replace(self.suggestion, options=options))

    def to_dict(self, with_context: bool = False) -> dict[str, Any]:
        """Return the answer as values for JSON. The key `answer` has its text."""
        content = {"answer": self.text, **vars(self)}
        content |= {"citations": list(map(vars, self.citations)), "usage": vars(self.usage)}
        if self.suggestion is not None:
            content["suggestion"] = self.suggestion.to_dict()
        rows = {name: content.pop(name) for name in ("reports", "sub_questions")}
        parts = {name: content.pop(name) for name in ("text", "context", "graph")}
        if with_context:
            content |= {name: list(map(vars, found)) for name, found in rows.items()}
            for name in ("context", "graph"):
                if parts[name] is not None:
                    content[name] = parts[name].to_dict()
        return content

    def __str__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        """Show the answer in a notebook."""
        return as_markdown(self)

    def _repr_html_(self) -> str:
        """Show the answer with a picture of its sub-graph."""
        return as_html(self)

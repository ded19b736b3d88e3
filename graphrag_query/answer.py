"""The result of a search: text, citations, outcome and usage; how a notebook shows it.

In a notebook, texts, titles and quotations are escaped, so that they cannot contain links, images
or scripts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from graphrag_index.errors import format_count, quote_argument

if TYPE_CHECKING:
    import polars as pl

    from graphrag_nlp.text.periods import Period
    from graphrag_query.subgraph import Subgraph

# Maximum number of characters of a quotation; a longer one is shortened in the middle.
MAX_QUOTE_CHARS = 500
_MARKDOWN_CHARACTER = re.compile(r"([\\`*_{}\[\]#!|~$])")
_LIST_MARK = re.compile(r"^(\d*)([-+.)])")
_FOOTNOTE = re.compile(r"\[(\d{1,4})\]")
_TABLE = re.compile(r"^\|.*\|\n\|[ :|-]+\|(?:\n\|.*\|)*", re.MULTILINE)
_BOLD_TEXT = re.compile(r"\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*")


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
    unit; it is not part of the quotation. `page` is the number of its page of a PDF, slide or row
    of a sheet, from 1; None for other texts. `location` says where a person finds it, such as
    ``p. iv``, ``slide 3``, ``sheet Costs, row 14`` or ``section Methods``; empty if unknown.
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
    page: int | None = None
    location: str = ""

    @classmethod
    def within(cls, number: int, unit: Mapping[str, Any], start: int, end: int) -> "Citation":
        """Cite the characters `start` to `end` of a text unit's text (see `IndexStore`)."""
        # Import this module only here: a command begins without it.
        from graphrag_nlp.text.lines import locate

        start, end = locate(unit["text"], unit["source"], start, end)
        return cls(
            number=number,
            document=unit["title"],
            document_id=unit["document_id"],
            path=unit["path"],
            start_char=unit["start_char"] + start,
            end_char=unit["start_char"] + end,
            quote=unit["source"][start:end],
            text_unit=unit["human_readable_id"],
            cited_as=f"Sources ({unit['human_readable_id']})",
            prepended=unit["prepended"],
        )

    @property
    def place(self) -> str:
        """The file path and the place of the quotation: its page, else its characters."""
        characters = f"characters {self.start_char:,} to {self.end_char:,}"
        parts = (self.path, self.location, characters * (self.page is None))
        place = ", ".join(filter(None, parts))
        return f"{place} – {self.prepended}" if self.prepended else place

    @property
    def anchor(self) -> str:
        """The end of an address that opens a PDF at the page; empty for other documents."""
        return f"#page={self.page}" if self.location.startswith(("p. ", "pp. ")) else ""

    @property
    def name(self) -> str:
        """The title of the document and the place in it, such as ``report.pdf, p. 12``."""
        return ", ".join(filter(None, (self.document, self.location)))

    @property
    def source(self) -> str:
        """The document and the place of the quotation; only the place if the title is the path."""
        return self.place if self.document == self.path else f"{self.document} ({self.place})"


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
class Cell:
    """A thing and a period that a question names, and what the documents have on them.

    `state` is `found`, or says what is missing: `no_thing` (no document mentions it), `no_period`
    (its documents are about the periods `covered`), `no_passage` (no passage of its documents has a
    word of the topic), or `no_statement` (no statement answers clearly; the nearest is cited).
    `value` is the figure in the statement, as it is written, and `citations` are the numbers of its
    citations.
    """

    thing: str
    period: str  # "" if the question names none and the documents are of several
    state: Literal["found", "no_thing", "no_period", "no_passage", "no_statement"]
    documents: tuple[int, ...] = ()  # human_readable_id of the documents that were searched
    text_units: tuple[int, ...] = ()  # human_readable_id of the passages, the best first
    covered: str = ""
    value: str = ""
    citations: tuple[int, ...] = ()
    days: "Period | None" = field(default=None, repr=False, compare=False)
    # Whether the documents say of themselves that they are about these days.
    is_dated: bool = field(default=True, repr=False, compare=False)

    @property
    def label(self) -> str:
        """The thing and the period."""
        return ", ".join(filter(None, (self.thing, self.period)))

    def to_dict(self) -> dict[str, Any]:
        """Return the cell as values for JSON."""
        names = "thing period state covered value citations documents text_units".split()
        return {name: getattr(self, name) for name in names}


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
class Context:
    """The rows of one prompt by section, and their text."""

    tables: "Mapping[str, pl.DataFrame]"
    text: str
    n_tokens: int  # length of the text in tokens
    n_left_out: Mapping[str, int]  # number of rows that did not fit, by section

    @property
    def shown(self) -> dict[str, set[int]]:
        """The numbers of the rows that may be cited, by section."""
        return {name: set(rows.to_series(0).to_list()) for name, rows in self.tables.items()}

    @property
    def is_empty(self) -> bool:
        """Whether no section has a row."""
        return not any(rows.height for rows in self.tables.values())

    def n_rows(self, section: str) -> int:
        """Return the number of rows of a section in this context."""
        return self.tables[section].height if section in self.tables else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the rows of each section as values for JSON."""
        return {name: rows.to_dicts() for name, rows in self.tables.items()}


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
    cells: tuple[Cell, ...] = ()  # of a question that names several things or periods
    # The rows of a count, such as {"name": "Oslo", "documents": 12}, or of a comparison.
    table: tuple[Mapping[str, Any], ...] = ()
    context: Context | None = None
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

    @property
    def counts_of_rows(self) -> str:
        """The rows that the search has read; zeros are left out, unless it has read nothing."""
        counts = {name: n for name, n in self.looked_at.items() if n} or self.looked_at
        return ", ".join(format_count(name, n) for name, n in counts.items())

    def with_options(self, options: tuple[str, ...]) -> "Answer":
        """Add options to the command of the suggestion."""
        if self.suggestion is None:
            return self
        return replace(self, suggestion=replace(self.suggestion, options=options))

    def to_dict(self, with_context: bool = False) -> dict[str, Any]:
        """Return the answer as values for JSON. The key `answer` has its text."""
        content = {"answer": self.text, **vars(self)}
        content |= {"citations": list(map(vars, self.citations)), "usage": vars(self.usage)}
        content["cells"] = [cell.to_dict() for cell in self.cells]
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


def as_markdown(answer: Answer) -> str:
    """Write an answer as Markdown: text, outcome, citations and notes."""
    # Escape brackets, which may begin links, and dollar signs, which may begin formulas.
    text = escape(answer.text, quote=False).replace("$", r"\$")
    parts = [re.sub(r"([\[\]])", r"\\\1", text), f"*{_escape_markdown(_describe_outcome(answer))}*"]
    if answer.citations:
        rows = ["| | document | place | quotation |", "|---|---|---|---|"]
        for citation in answer.citations:
            cells = (
                str(citation.number),
                citation.document,
                citation.place,
                _shorten_quotation(citation),
            )
            rows.append(f"| {' | '.join(map(_escape_markdown, cells))} |")
        parts.append("\n".join(rows))
    for title, lines in _note_lists(answer):
        parts.append("\n".join([f"{title}:\n", *(f"- {_escape_markdown(line)}" for line in lines)]))
    return "\n\n".join(part for part in parts if part)


def as_html(answer: Answer) -> str:
    """Write an answer as HTML: text, outcome, a table of citations, notes, and the graph."""
    name = "gq-" + sha256(f"{answer.question}\0{answer.text}".encode()).hexdigest()[:10]
    known = {citation.number for citation in answer.citations}

    def link_footnote(footnote: re.Match[str]) -> str:
        if int(footnote[1]) not in known:
            return footnote.group()
        return f'<a href="#{name}-{footnote[1]}">{footnote.group()}</a>'

    text = _BOLD_TEXT.sub(r"<b>\1</b>", _FOOTNOTE.sub(link_footnote, escape(answer.text)))
    text = _TABLE.sub(_as_html_table, text)
    # Text and background have the colours of the page, so a dark page is readable too.
    style = Path(__file__).with_name("answer.css").read_text(encoding="utf-8")
    is_answered = "" if answer.outcome == "answered" else " gq-not"
    parts = [
        f"<style>\n{style}</style>",
        f'<div class="gq-text">{text}</div>',
        f'<p class="gq-small{is_answered}">{escape(_describe_outcome(answer))}</p>',
    ]
    if answer.citations:
        rows = "".join(
            f'<tr id="{name}-{citation.number}"><td>{citation.number}</td>'
            f"<td>{escape(citation.document)}</td><td>{escape(citation.place)}</td>"
            f"<td>{escape(_shorten_quotation(citation))}</td></tr>"
            for citation in answer.citations
        )
        head = "<th></th><th>document</th><th>place</th><th>quotation</th>"
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
    for title, lines in _note_lists(answer):
        items = "".join(f"<li>{escape(line)}</li>" for line in lines)
        parts.append(f'<div class="gq-small">{title}:<ul>{items}</ul></div>')
    if answer.graph is not None and answer.graph.relationships.height:
        parts.append(answer.graph._repr_svg_())
    # The classes prevent MathJax from rendering text between dollars as formulas.
    return f'<div class="gq-answer tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'


def _as_html_table(table: re.Match[str]) -> str:
    """Convert a Markdown table to HTML. The second line only aligns the columns."""
    head, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table[0].strip().split("\n")
    )
    titles = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _describe_outcome(answer: Answer) -> str:
    """Describe the outcome of a search, the number of rows that it read, and its cost."""
    looked = answer.counts_of_rows
    outcome = f"{answer.outcome.replace('_', ' ')}{answer.source_count}"
    parts = [f"{outcome} by {answer.method} search"]
    if looked:
        parts.append(f"looked at {looked}")
    usage = answer.usage
    if usage.calls:
        tokens = usage.prompt_tokens + usage.completion_tokens
        cost = f", ${usage.cost:.4f}" if usage.cost is not None else ""
        parts.append(f"{format_count('calls', usage.calls)}, {tokens:,} tokens{cost}")
    return "; ".join([*parts, f"{usage.seconds:.1f} s"])


def _note_lists(answer: Answer) -> Iterator[tuple[str, Sequence[str]]]:
    if answer.notes:
        yield "Notes", answer.notes
    if answer.suggestion is not None:
        yield "Another search", (str(answer.suggestion),)
    if answer.follow_ups:
        yield "Ask next", answer.follow_ups


def _shorten_quotation(citation: Citation) -> str:
    quote = " ".join(citation.quote.split())
    if len(quote) <= MAX_QUOTE_CHARS:
        return quote
    half = MAX_QUOTE_CHARS // 2
    return f"{quote[:half].rstrip()} … {quote[-half:].lstrip()}"


def _escape_markdown(text: str) -> str:
    """Convert a text to one line, and escape it for Markdown."""
    line = _MARKDOWN_CHARACTER.sub(r"\\\1", " ".join(text.split()))
    # Escape "-", "+", "*" or "1." at the start, which begin a list item.
    return escape(_LIST_MARK.sub(r"\1\\\2", line), quote=False)

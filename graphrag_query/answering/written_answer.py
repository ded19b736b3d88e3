"""Answers that a model writes: the rows of its context, and the check of its citations."""

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.llm.prompts import RenderedRows, TokenBudget, csv_line, n_prompt_tokens
from graphrag_index.llm.request import TextSink
from graphrag_nlp.text.citations import ShownRows, find_cited_rows
from graphrag_nlp.text.languages import Language
from graphrag_query.answer import Answer, Cell, Context, Outcome
from graphrag_query.answering.cited_text import CitedText
from graphrag_query.question.question import Question
from graphrag_query.question.refusals import format_absence

# Tokens reserved for the heading lines of each section.
HEADING_TOKENS = 24
EMPTY_CONTEXT_TEXT = "The index holds nothing about this question."
OUTPUT_LIMIT_NOTE = "The model reached its output limit: raise max_output_tokens of this model."
# Maximum number of missing quotations that the notes list; a last note counts the rest.
MAX_QUOTATIONS = 3
NO_RECORD_TEXT = "The documents that were read hold no record of this."
# Text between an interrupted answer and its second attempt.
RESTART_TEXT = "\n\n[The model stopped. The answer begins again:]\n\n"


@dataclass(frozen=True)
class Section:
    """A table of rows for a context: the first column is the number, the best row comes first.

    Citations use the `name` of the section, such as Sources. `share` is its share of the token
    budget, relative to the other sections. Tokens that a short section does not need go to the
    other sections, in their order. `groups` maps the numbers of rows to their groups: of the rows
    that fit, those of a group stand together.
    """

    name: str
    rows: pl.DataFrame
    share: float
    groups: Mapping[int, int] = field(default_factory=dict)


class DeferredContext(Context):
    """A context that is packed when a field is read, for answers without a model.

    Counting tokens loads an encoding of 200,000 tokens, which takes a fifth of the time of a
    first question. `pack` packs the rows that the search has found into a number of tokens.
    """

    def __init__(self, pack: Callable[[int], Context], max_tokens: int) -> None:
        object.__setattr__(self, "within", pack)
        object.__setattr__(self, "_max_tokens", max_tokens)

    within: Callable[[int], Context]
    _max_tokens: int

    @cached_property
    def _packed(self) -> Context:
        return self.within(self._max_tokens)

    def __getattr__(self, name: str) -> Any:
        if name not in Context.__dataclass_fields__:
            raise AttributeError(name)
        return getattr(self._packed, name)


def pack_sections(sections: Sequence[Section], max_tokens: int) -> Context:
    """Pack the best rows of each section into a context of at most `max_tokens`.

    A row takes at most a quarter of the token budget; longer rows are shortened.
    """
    sections = [section for section in sections if section.rows.height]
    left = max(0, max_tokens - HEADING_TOKENS * len(sections))
    budget = TokenBudget(max(4, left), 1 << 40)
    # Each row has at least one token: `left` rows are enough.
    rendered = [RenderedRows.from_rows(section.rows.head(left), budget) for section in sections]
    costs = [np.cumsum(rows.cost) for rows in rendered]
    total = sum(section.share for section in sections) or 1.0
    taken = [
        int(np.searchsorted(cost, left * section.share / total, side="right"))
        for section, cost in zip(sections, costs, strict=True)
    ]
    used = [int(cost[n - 1]) if n else 0 for cost, n in zip(costs, taken, strict=True)]
    for i, cost in enumerate(costs):
        room = left - sum(used) + used[i]
        taken[i] = int(np.searchsorted(cost, room, side="right"))
        used[i] = int(cost[taken[i] - 1]) if taken[i] else 0
    parts, tables, left_out = [], {}, {}
    for section, rows, n in zip(sections, rendered, taken, strict=True):
        left_out[section.name] = section.rows.height - n
        if n:
            shown, lines = section.rows.head(n), rows.text.head(n)
            if section.groups:
                last = len(section.groups)
                group = [section.groups.get(number, last) for number in shown.to_series(0)]
                order = np.argsort(group, kind="stable")
                shown, lines = shown[order], lines[order]
            tables[section.name] = shown
            heading = ",".join(["id", *section.rows.columns[1:]])
            parts.append(f"-----{section.name}-----\n{heading}\n{''.join(lines.to_list())}")
    headings = HEADING_TOKENS * len(parts)
    return Context(tables, "\n".join(parts), sum(used) + headings, left_out)


def describe_place(text_unit: Mapping[str, Any]) -> str:
    """Return the headings of a text unit and the metadata before it, joined by ` > `."""
    return " > ".join(filter(None, (text_unit["headings"], text_unit["prepended"])))


def source_rows(text_units: Mapping[int, Mapping[str, Any]]) -> pl.DataFrame:
    """Return text units as rows of a section, in the same order.

    A row says what its document is about, and of which period, in an index with periods.
    """
    units = text_units.items()
    rows = pl.DataFrame(
        [
            (number, unit["subject"], unit["period"], describe_place(unit), unit["text"])
            for number, unit in units
        ],
        dict.fromkeys(("id", "document", "period", "headings", "text"), pl.String)
        | {"id": pl.Int64},
        orient="row",
    )
    return rows.drop("period") if rows["period"].is_null().all() else rows


def source_context(
    question: Question, text_units: Mapping[int, Mapping[str, Any]], max_tokens: int
) -> Context:
    """Pack text units into a context with the section Sources; the best text unit is first.

    Text units of one cell of the question stand together, see `pack_for_question`.
    """
    section = Section("Sources", source_rows(text_units), 1.0)
    return pack_for_question(question, [section], max_tokens)


def pack_for_question(question: Question, sections: Sequence[Section], max_tokens: int) -> Context:
    """Pack sections behind a list of the cells of the question, if it has any."""
    cells, limit = question.cell_coverage.cells, question.max_context_tokens(max_tokens)
    if not cells:
        return pack_sections(sections, limit)
    return pack_with_cells(sections, dict(enumerate(cells)), limit, question.language)


def pack_with_cells(
    sections: Sequence[Section],
    cells: Mapping[int, Cell],
    max_tokens: int,
    language: Language,
    *,
    is_numbered: bool = False,
) -> Context:
    """Pack sections behind a list of cells, with the sources by cell.

    The list says which sources are about each thing and period, and where nothing was found; with
    `is_numbered`, it begins with the numbers of the cells.
    """
    groups: dict[int, int] = {}
    for place, cell in cells.items():
        for number in cell.text_units:
            groups.setdefault(number, place)

    def list_cells(shown: Set[int]) -> str:
        heading = [*["cell"] * is_numbered, "thing", "period", "sources"]
        lines = ["-----Coverage-----\n", csv_line(heading)]
        for place, cell in cells.items():
            sources = " ".join(str(n) for n in cell.text_units if n in shown)
            if not sources and (cell.state != "found" or not cell.text_units):
                is_empty = cell.state == "found"
                sources = "nothing found" if is_empty else format_absence(cell, language)
            lines.append(csv_line([*[str(place)] * is_numbered, cell.thing, cell.period, sources]))
        return "".join(lines)

    sections = [replace(one, groups=groups) if one.name == "Sources" else one for one in sections]
    # The list is short: reserve room for it before it is known which sources fit.
    reserved = n_prompt_tokens(list_cells(set(groups)))
    context = pack_sections(sections, max(max_tokens - reserved, 0))
    listed = list_cells(context.shown.get("Sources", set()))
    text = f"{listed}\n{context.text}"
    return replace(context, text=text, n_tokens=context.n_tokens + n_prompt_tokens(listed))


def pack_statements(
    name: str, columns: Mapping[str, Any], sources: Context, max_tokens: int
) -> tuple[Context, int]:
    """Pack the best statements into a context. The answer may cite rows that they cite.

    The last of `columns` has the texts of the statements. `sources` has the rows that they may
    cite. Returns the context and the number of packed statements; 0 if none of them cites a row.
    """
    rows = pl.DataFrame(columns).with_row_index("id", 1)
    packed = pack_sections([Section(name, rows, 1.0)], max_tokens)
    n_packed = packed.n_rows(name)
    numbers = find_cited_rows("\n".join(rows.to_series(-1)[:n_packed]))
    tables = {
        section: table.filter(table.to_series(0).is_in(sorted(numbers.get(section, ()))))
        for section, table in sources.tables.items()
    }
    packed = replace(packed, tables=tables)
    return packed, 0 if packed.is_empty else n_packed


def merge_contexts(contexts: Sequence[Context]) -> Context:
    """Merge the contexts of several calls, without duplicate rows."""
    tables: dict[str, pl.DataFrame] = {}
    for context in contexts:
        for name, rows in context.tables.items():
            known = [tables[name]] if name in tables else []
            # The contexts of two calls may have different columns of a table.
            together = pl.concat([*known, rows], how="diagonal_relaxed")
            tables[name] = together.unique(together.columns[0], keep="first", maintain_order=True)
    return Context(
        tables,
        "\n".join(context.text for context in contexts),
        sum(context.n_tokens for context in contexts),
        dict.fromkeys(tables, 0),
    )


def write_answer(
    question: Question,
    prompt: str,
    context: Context,
    notes: tuple[str, ...] = (),
    shown: ShownRows | None = None,
) -> Answer:
    """Let the question's model write an answer from a context, with the prompt of this name.

    `shown` has the rows that may be cited; by default, all rows of the context. The outcome is
    `no_evidence` if the context is empty (then the model is not called), or if the model replies
    that the context contains no answer. Raises `ModelError` if the call fails.
    """
    llm = question.llm
    assert llm is not None
    if context.is_empty:
        return question.answer(EMPTY_CONTEXT_TEXT, Outcome.NO_EVIDENCE, context=context)
    citable = context.shown if shown is None else shown
    cited = CitedText(question.index, citable, question.search.citations)
    asked = f"{context.text}\nQuestion: {question.text}"
    messages = llm.messages(prompt, asked, response=question.search.response)
    sink = CheckedSink(question.sink, cited) if question.sink else None
    question.tell_writing()
    written, is_cut_off = llm.write(question.text, messages, sink)
    text = (sink.end(written) if sink else cited.add_piece(written, is_last=True)).strip()
    if is_cut_off:
        notes = (*notes, OUTPUT_LIMIT_NOTE)
    return question.answer(
        text or NO_RECORD_TEXT,
        Outcome.NO_EVIDENCE if cited.has_no_record or not text else Outcome.ANSWERED,
        # An answer without a record may cite related passages.
        citations=tuple(cited.citations),
        notes=(*notes, *(describe_citation_errors(cited) if citable else ())),
        context=context,
    )


def describe_citation_errors(cited: CitedText) -> tuple[str, ...]:
    """Describe the errors in the citations of a text."""
    notes = []
    if n := cited.n_removed_citations:
        removed = "citation was" if n == 1 else "citations were"
        notes.append(f"{n} {removed} removed, because the context has no such row.")
    if cited.has_begun and not (cited.citations or cited.has_no_record):
        notes.append("The model cites no passage for this.")
    not_found = list(dict.fromkeys(cited.missing_quotations))
    listed = not_found if len(not_found) <= MAX_QUOTATIONS + 1 else not_found[:MAX_QUOTATIONS]
    notes += [f"This quotation is not in the cited passage: “{quotation}”." for quotation in listed]
    if len(listed) < len(not_found):
        more = len(not_found) - len(listed)
        notes.append(f"{more} more quotations are not in the cited passages.")
    return tuple(notes)


class CheckedSink:
    """A receiver of text that checks citations and passes the checked text to `sink`."""

    def __init__(self, sink: TextSink, cited: CitedText) -> None:
        self._sink, self._cited = sink, cited
        self._parts: list[str] = []

    def write(self, piece: str) -> None:
        """Check the citations in a piece of text, and pass on the text."""
        self._write_checked(self._cited.add_piece(piece))

    def restart(self) -> None:
        """Discard the text that was written so far."""
        self._cited.restart()
        if self._parts:
            self._sink.restart()
        self._parts.clear()

    def end(self, written: str) -> str:
        """Write the rest of the text and return the whole text.

        `written` is the whole reply. It is used only if nothing was streamed.
        """
        rest = "" if self._parts or self._cited.has_begun else written
        self._write_checked(self._cited.add_piece(rest, is_last=True))
        return "".join(self._parts)

    def _write_checked(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._sink.write(text)


class AnswerStream:
    """An answer that can be read while it is being written.

    Iteration yields pieces of the text; `answer` waits for the whole answer. If a call was
    interrupted, the pieces contain both attempts, but the text of `answer` has only the last one.
    """

    def __init__(self, ask: Callable[[TextSink], Answer]) -> None:
        self._pieces: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._future: Future[Answer] = Future()
        threading.Thread(target=self._run_search, args=(ask,), daemon=True).start()

    def write(self, piece: str) -> None:
        """Add a piece of text from the search."""
        self._pieces.put(piece)

    def restart(self) -> None:
        """Add a line that says that the text starts again."""
        self._pieces.put(RESTART_TEXT)

    def __iter__(self) -> Iterator[str]:
        while (piece := self._pieces.get()) is not None:
            yield piece
        # Put the end marker back for another iteration.
        self._pieces.put(None)
        self._future.result()

    @property
    def answer(self) -> Answer:
        """The whole answer. Waits until the search ends, and raises the error of the search."""
        return self._future.result()

    def _run_search(self, ask: Callable[[TextSink], Answer]) -> None:
        try:
            self._future.set_result(ask(self))
        except BaseException as error:  # noqa: BLE001 - raised where the answer is read
            self._future.set_exception(error)
        finally:
            self._pieces.put(None)


class CountingSink:
    """A receiver of text that passes it to `sink` and records whether there was any."""

    def __init__(self, sink: TextSink) -> None:
        self._sink, self.is_empty = sink, True

    def write(self, piece: str) -> None:
        """Pass a piece of text to `sink`."""
        self.is_empty = False
        self._sink.write(piece)

    def restart(self) -> None:
        """Tell `sink` that the text starts again."""
        self.is_empty = True
        self._sink.restart()

    def status(self, stage: str, message: str) -> None:
        """Tell `sink` what the search does, if it has a method for that."""
        status = getattr(self._sink, "status", None)
        if status is not None:
            status(stage, message)

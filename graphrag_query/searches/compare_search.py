"""Compare search: one topic over several things or periods, as a table with citations."""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Any

from graphrag_index.errors import ModelError
from graphrag_index.llm.request import ParsedReply, Request
from graphrag_index.schema.settings.searches import CompareSearch
from graphrag_nlp.text.normalize import letters
from graphrag_query.answer import Answer, Context, Outcome
from graphrag_query.answering.cell_answer import CellTable, fill_cells, read_value
from graphrag_query.answering.extractive import Candidate, TextUnit, add_citation
from graphrag_query.answering.written_answer import (
    DeferredContext,
    Section,
    merge_contexts,
    pack_with_cells,
    source_context,
    source_rows,
)
from graphrag_query.llm import (
    LLM,
    REPLY_FIELDS,
    clean_text,
    find_records,
    first_field,
    reply_format,
)
from graphrag_query.question.question import Question
from graphrag_query.question.refusals import format_absence, format_refusal

# Mark of a cell without a statement.
EMPTY = "–"
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def compare_search(question: Question, settings: CompareSearch) -> Answer:
    """Compare the things or periods that a question names, in a table.

    `Answer.table` has a row for each cell: thing, period, state, value, amount, unit, statement and
    citations. A model fills the cells from their own passages; a value that its sources do not have
    is dropped. Without a model, statements of the documents fill them. The outcome is `no_evidence`
    if the question names no things or periods of a series, or if no cell has a statement.
    """
    if refusal := question.refuse():
        return refusal
    cells = question.cell_coverage.cells
    if not cells:
        text = format_refusal("nothing_to_compare", question.language)
        return question.answer(text, Outcome.NO_EVIDENCE)
    most = settings.top_k_text_units
    numbers = dict.fromkeys(number for cell in cells for number in cell.text_units[:most])
    found = question.index.text_units(numbers)
    units = {number: found[number] for number in numbers}
    question.counts.update(cells=len(cells), text_units=len(units))
    notes: tuple[str, ...] = ()
    if question.llm is not None:
        table, context, notes = _fill_by_model(question, question.llm, units, settings)
    else:
        from graphrag_query.answering.quoted_answer import read_passages

        passages = read_passages(question, units, {}, {})
        table = fill_cells(question, passages, units, settings.min_similarity)
        pack = partial(source_context, question, units)
        context = DeferredContext(pack, settings.max_context_tokens)
    return question.answer(
        _write_table(question, table),
        Outcome.ANSWERED if table.citations else Outcome.NO_EVIDENCE,
        citations=tuple(table.citations),
        context=context,
        cells=tuple(table.cells),
        table=tuple(_as_rows(table)),
        notes=notes,
    )


def _as_rows(table: CellTable) -> list[dict[str, Any]]:
    """Return the cells as the rows of `Answer.table`, with the amounts that can be compared."""
    return [
        {
            "thing": cell.thing,
            "period": cell.period,
            "state": cell.state,
            "value": cell.value,
            "amount": value.value if value else None,
            "unit": value.unit if value else None,
            "statement": text,
            "citations": list(cell.citations),
        }
        for cell, text, value in zip(table.cells, table.texts, table.values, strict=True)
    ]


def _write_table(question: Question, table: CellTable) -> str:
    """Write the cells as a table in Markdown: a row for each thing, a column for each period."""
    things = list(dict.fromkeys(cell.thing for cell in table.cells))
    periods = list(dict.fromkeys(cell.period for cell in table.cells))
    shown: dict[tuple[str, str], str] = {}
    for cell, text in zip(table.cells, table.texts, strict=True):
        marks = "".join(f" [{number}]" for number in cell.citations)
        key = cell.thing, cell.period
        is_found = cell.state == "found" and bool(text)
        shown[key] = f"{cell.value}{marks}" if cell.value else text if is_found else EMPTY
    rows = [[thing, *(shown.get((thing, p), EMPTY) for p in periods)] for thing in things]
    head = ["", *periods]
    if len(things) == 1 < len(periods):
        rows, head = [[p, shown.get((things[0], p), EMPTY)] for p in periods], ["", things[0]]
    lines = [head, ["---"] * len(head), *rows]
    text = "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )
    missing = dict.fromkeys(
        f"{cell.label}: {text}" if text else format_absence(cell, question.language)
        for cell, text in zip(table.cells, table.texts, strict=True)
        if cell.state != "found"
    )
    parts = [table.describe_order(question), text, "\n".join(f"- {line}" for line in missing)]
    return "\n\n".join(filter(None, parts))


def _fill_by_model(
    question: Question, llm: LLM, units: Mapping[int, TextUnit], settings: CompareSearch
) -> tuple[CellTable, Context, tuple[str, ...]]:
    """Let a model fill the cells that have passages, some cells a call."""
    cells = question.cell_coverage.cells
    places = [place for place, cell in enumerate(cells) if cell.text_units]
    step = settings.cells_per_call
    chunks = [places[at : at + step] for at in range(0, len(places), step)]
    limit = question.max_context_tokens(settings.max_context_tokens)
    contexts = [_pack_cells(question, chunk, units, limit) for chunk in chunks]
    question.tell_writing()
    outcomes = llm.replies(
        [
            cells_request(llm, question, context, chunk)
            for context, chunk in zip(contexts, chunks, strict=True)
        ]
    )
    failures = [outcome.failure for outcome in outcomes if outcome.failure]
    if failures and len(failures) == len(outcomes):
        raise ModelError(f"The model filled no cell: {failures[0]}.")
    filled: dict[int, tuple[str, str, list[int]]] = {}
    n_dropped = 0
    for outcome in outcomes:
        if not outcome.failure:
            filled |= outcome.values[0]
            n_dropped += outcome.dropped
    table = CellTable()
    for place, cell in enumerate(cells):
        if place not in filled:
            state: Any = "no_statement" if cell.state == "found" else cell.state
            table.add(replace(cell, state=state))
            continue
        value, statement, sources = filled[place]
        numbers = [_cite(table, units[n], value or statement) for n in sources]
        marks = "".join(f" [{number}]" for number in numbers)
        cell = replace(cell, state="found", value=value, citations=tuple(numbers))
        table.add(cell, f"{statement}{marks}", read_value(value, question.language.code))
    n_cells = "1 cell" if n_dropped == 1 else f"{n_dropped} cells"
    notes = [f"Dropped {n_cells} of the model without a figure of its sources."] * bool(n_dropped)
    notes += [f"A call failed ({failure})." for failure in failures]
    return table, merge_contexts(contexts), tuple(notes)


def _pack_cells(
    question: Question, places: Sequence[int], units: Mapping[int, TextUnit], limit: int
) -> Context:
    """Pack the passages of some cells, given by their places, the best of each cell first."""
    cells = {place: question.cell_coverage.cells[place] for place in places}
    turns = [
        (turn, number)
        for cell in cells.values()
        for turn, number in enumerate(n for n in cell.text_units if n in units)
    ]
    numbers = dict.fromkeys(number for _, number in sorted(turns, key=lambda turn: turn[0]))
    sections = [Section("Sources", source_rows({n: units[n] for n in numbers}), 1.0)]
    return pack_with_cells(sections, cells, limit, question.language, is_numbered=True)


def cells_request(llm: LLM, question: Question, context: Context, places: Sequence[int]) -> Request:
    """Build the request that fills some cells, given by their places among all."""
    texts = dict(context.tables["Sources"].select("id", "text").iter_rows())
    shown = {
        place: {n for n in question.cell_coverage.cells[place].text_units if n in texts}
        for place in places
    }
    messages = llm.messages("compare_cells", f"{context.text}\nQuestion: {question.text}")
    return Request(
        f"{len(places)} cells",
        messages,
        reply_format("cells", partial(_read_cells, shown, texts)),
    )


def _read_cells(shown: Mapping[int, Set[int]], texts: Mapping[int, str], data: Any) -> ParsedReply:
    """Parse the cells of a reply.

    A cell without a source of its own, or with a value that none of them has, is dropped.
    """
    records = find_records(data, "cells", ("cell", *REPLY_FIELDS["sources"]))
    cells: dict[int, tuple[str, str, list[int]]] = {}
    for record in records:
        if not isinstance(record, Mapping) or not isinstance(record.get("cell"), int):
            continue
        own = shown.get(record["cell"], set())
        value = clean_text(record.get("value")).strip()
        statement = clean_text(record.get("statement")).strip()
        listed = first_field(record, REPLY_FIELDS["sources"])
        sources = [n for n in listed if n in [*own]] if isinstance(listed, list) else []
        if value:
            # The figure must stand in a source of this cell, whichever the model cites.
            sources = [n for n in (*sources, *sorted(own)) if _holds(texts[n], value)][:1]
        if sources and (value or statement):
            cells[record["cell"]] = value, statement or value, sources
    return ParsedReply(cells, len(records) - len(cells))


def _holds(text: str, value: str) -> bool:
    """Return whether a text has a value with its numbers, of which "6%" is none in "16%"."""
    numbers = {*_NUMBER.findall(text)}
    return letters(value) in letters(text) and numbers.issuperset(_NUMBER.findall(value))


def _cite(table: CellTable, unit: TextUnit, text: str) -> int:
    """Cite the sentence of a text unit that has a text, or the whole text unit."""
    from graphrag_nlp.text.sentences import split_sentences

    wanted = letters(text)
    spans = ((s.start, s.end) for s in split_sentences(unit["text"]))
    held = (span for span in spans if wanted in letters(unit["text"][slice(*span)]))
    start, end = next(held, (0, len(unit["text"])))
    cited_as = f"Sources ({unit['human_readable_id']})"
    return add_citation(table.citations, Candidate.within(unit, start, end), unit, cited_as)

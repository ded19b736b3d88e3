"""Answers by cell, without a model: a line for each thing and period that a question names."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphrag_nlp.answers.cells import MIN_SHARE, CellStatement, Topic, rank_values
from graphrag_nlp.answers.kinds import find_wanted_answer
from graphrag_nlp.answers.statements import Passage
from graphrag_query.answer import Answer, Cell, Citation, Outcome
from graphrag_query.answering.extractive import Candidate, TextUnit, add_citation
from graphrag_query.question.question import Question
from graphrag_query.question.refusals import format_absence, format_refusal

if TYPE_CHECKING:
    from graphrag_query.answer import Context

# Kinds of questions that one statement answers, whichever period it is of.
KINDS_OF_ONE = frozenset(("person", "title", "date", "time", "reason"))
# Maximum number of statements of a cell without a clear one that are compared by their vectors.
MAX_COMPARED = 12


def may_answer_by_cell(question: Question) -> bool:
    """Return whether each cell of a question wants a line of its own."""
    facets, found = question.facets, question.coverage.found
    if not question.coverage.cells:
        return False
    kind = find_wanted_answer(question.text, question.language).kind
    return len(facets.things) > 1 or len(found) < 2 or kind not in KINDS_OF_ONE


def answer_by_cell(
    question: Question,
    passages: Sequence[Passage],
    text_units: Mapping[int, TextUnit],
    context: "Context",
    min_similarity: float,
) -> Answer:
    """Answer with the statement of each cell, or with what is missing in it.

    The outcome is `no_evidence` if no cell has a statement. If all have a value of one kind, their
    order stands before them.
    """
    cells, facets = question.coverage.cells, question.facets
    by_number = {passage.number: passage for passage in passages}
    own = [
        [by_number[number] for number in cell.text_units if number in by_number] for cell in cells
    ]
    topics = [Topic(part, own, question.language) for part in facets.parts or ((),)]
    citations: list[Citation] = []
    lines, filled, values = list[str](), list[Cell](), dict[str, CellStatement]()
    is_sure = len(topics) == 1
    for place, cell in enumerate(cells):
        if cell.state != "found":
            filled.append(cell)
            lines.append(format_absence(cell, question.language))
            continue
        said, numbers, states = list[str](), list[int](), list[str]()
        for topic in topics:
            chosen, is_clear = _choose(question, topic, place, cell, min_similarity)
            if chosen is None:
                continue
            candidate = Candidate.of_statement(chosen.statement, chosen.passage)
            unit = text_units[candidate.text_unit]
            number = add_citation(citations, candidate, unit, f"Sources ({candidate.text_unit})")
            note = "" if is_clear else f"{format_refusal('nearest', question.language)} "
            said.append(f"{note}{candidate.quotation} [{number}]")
            states.append("found" if is_clear else "no_statement")
            numbers.append(number)
            is_sure = is_sure and is_clear
            values[cell.label] = chosen
        state: Any = "found" if "found" in states else "no_statement"
        value = values[cell.label].value if said and is_sure else None
        shown = (
            values[cell.label].statement.text[value.start_char : value.end_char] if value else ""
        )
        cell = replace(cell, state=state, citations=tuple(numbers), value=shown)
        filled.append(cell)
        lines.append(
            f"{cell.label}: {' '.join(said)}" if said else format_absence(cell, question.language)
        )
    text = lines[0] if len(lines) == 1 else "\n".join(f"- {line}" for line in lines)
    found = {label: one.value for label, one in values.items()}
    if is_sure and len(found) == len(cells) and (order := rank_values(found)):
        listed = ", ".join(
            f"{label} ({next(c.value for c in filled if c.label == label)})" for label in order
        )
        opening = format_refusal("order", question.language, listed=listed)
        text = f"{opening}\n{text}"
    outcome = Outcome.ANSWERED if citations else Outcome.NO_EVIDENCE
    return question.answer(
        text, outcome, citations=tuple(citations), context=context, cells=tuple(filled)
    )


def _choose(
    question: Question, topic: Topic, place: int, cell: Cell, min_similarity: float
) -> tuple[CellStatement | None, bool]:
    """Return the statement of a cell, and whether it is clear; else the nearest one."""
    found = topic.choose(place, cell.days, question.text)
    if found and topic.is_clear(found[0]):
        return found[0], True
    near = [one for one in found if one.share >= MIN_SHARE]
    if near or topic.wants_value or not found:
        return (near[0] if near else None), False
    compared = found[:MAX_COMPARED]
    vectors = question.index.embedder.embed([one.statement.text_to_embed for one in compared])
    similar = vectors @ question.vector
    best = int(similar.argmax())
    return (compared[best] if similar[best] >= min_similarity else None), False

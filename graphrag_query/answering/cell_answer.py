"""Answers by cell: a line for each thing and period that a question names.

Without a model, the statement that answers best of the documents of a cell fills it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from graphrag_nlp.text.values import FoundNumber, find_numbers
from graphrag_query.answer import Answer, Cell, Citation, Outcome
from graphrag_query.answering.extractive import Candidate, TextUnit, add_citation
from graphrag_query.question.question import Question
from graphrag_query.question.refusals import format_absence, format_refusal

if TYPE_CHECKING:
    from graphrag_nlp.answers.cells import CellStatement, Topic
    from graphrag_nlp.answers.statements import Passage
    from graphrag_query.answer import Context

# Kinds of questions that one statement answers, whichever period it is of.
KINDS_OF_ONE = frozenset(("person", "title", "date", "time", "reason"))
# Maximum number of statements of a cell that are compared by their vectors.
MAX_COMPARED = 12
# Maximum number of passages of other documents that tell how they state a topic.
MAX_OTHERS = 24


@dataclass
class CellTable:
    """The cells of a question, with what was found in each.

    `texts` has the statements of each cell with their citations, empty where nothing was found.
    `values` has the figure of a cell, if it has one.
    """

    cells: list[Cell] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    values: list[FoundNumber | None] = field(default_factory=list)
    citations: list[Citation] = field(default_factory=list)

    def add(self, cell: Cell, text: str = "", value: FoundNumber | None = None) -> None:
        """Add a cell."""
        self.cells.append(cell)
        self.texts.append(text)
        self.values.append(value)

    def order(self) -> list[Cell] | None:
        """Return the cells by their values, the highest first; None if that is not certain.

        All cells must have a value of one kind and unit.
        """
        pairs = [
            (value, cell) for value, cell in zip(self.values, self.cells, strict=True) if value
        ]
        is_certain = len({(value.kind, value.unit) for value, _ in pairs}) == 1
        if len(pairs) < max(2, len(self.cells)) or not is_certain:
            return None
        return [cell for _, cell in sorted(pairs, key=lambda pair: -pair[0].value)]

    def describe_order(self, question: Question) -> str:
        """Write the order of the values, if it is certain."""
        ordered = self.order()
        if ordered is None:
            return ""
        listed = ", ".join(f"{cell.label} ({cell.value})" for cell in ordered)
        return format_refusal("order", question.language, listed=listed)


def may_answer_by_cell(question: Question) -> bool:
    """Return whether each cell of a question wants a line of its own."""
    from graphrag_nlp.answers.kinds import find_wanted_answer

    facets, found = question.facets, question.cell_coverage.found
    if not question.cell_coverage.cells:
        return False
    kind = find_wanted_answer(question.text, question.language).kind
    return len(facets.things) > 1 or len(found) < 2 or kind not in KINDS_OF_ONE


def answer_by_cell(
    question: Question,
    passages: Sequence["Passage"],
    text_units: Mapping[int, TextUnit],
    context: "Context",
    min_similarity: float,
) -> Answer:
    """Answer with the statement of each cell, or with what is missing in it.

    The outcome is `no_evidence` if no cell has a statement. If all have a value of one kind, their
    order stands before them.
    """
    table = fill_cells(question, passages, text_units, min_similarity)
    lines = [
        f"{cell.label}: {text}" if text else format_absence(cell, question.language)
        for cell, text in zip(table.cells, table.texts, strict=True)
    ]
    text = lines[0] if len(lines) == 1 else "\n".join(f"- {line}" for line in lines)
    if order := table.describe_order(question):
        text = f"{order}\n{text}"
    return question.answer(
        text,
        Outcome.ANSWERED if table.citations else Outcome.NO_EVIDENCE,
        citations=tuple(table.citations),
        context=context,
        cells=tuple(table.cells),
    )


def fill_cells(
    question: Question,
    passages: Sequence["Passage"],
    text_units: Mapping[int, TextUnit],
    min_similarity: float,
) -> CellTable:
    """Fill each cell of a question with the statement of its passages that answers best."""
    from graphrag_nlp.answers.cells import Topic

    cells = question.cell_coverage.cells
    by_number = {passage.number: passage for passage in passages}
    own = [[by_number[n] for n in cell.text_units if n in by_number] for cell in cells]
    topics = [Topic(part, own, question.language) for part in question.cell_coverage.parts]
    table = CellTable()
    chosen = {
        place: [_choose(question, topic, place, cell, min_similarity) for topic in topics]
        for place, cell in enumerate(cells)
        if cell.state == "found" or _is_record(topics[0], place)
    }
    # That several documents all lack a figure is less likely than that they name it differently.
    shows_all = len(chosen) > 1 and all(one.is_absent for own in chosen.values() for one in own)
    for place, cell in enumerate(cells):
        if place not in chosen:
            table.add(cell)
            continue
        said, numbers, clear = list[str](), list[int](), list["CellStatement"]()
        for best, is_clear, is_absent in chosen[place]:
            if best is None or (is_absent and not shows_all):
                continue
            unit = text_units[best.passage.number]
            candidate = Candidate.of_statement(best.statement, unit)
            cited_as = f"Sources ({candidate.text_unit})"
            number = add_citation(table.citations, candidate, unit, cited_as)
            note = "" if is_clear else f"{format_refusal('nearest', question.language)} "
            said.append(f"{note}{candidate.quotation} [{number}]")
            numbers.append(number)
            clear += [best] if is_clear else []
        value = clear[0].value if len(clear) == len(topics) == 1 else None
        written = "; ".join(filter(None, (one.written_value for one in clear)))
        state: Any = "found" if clear else "no_statement"
        filled = replace(cell, state=state, value=written, citations=tuple(numbers))
        table.add(filled, " ".join(said), value)
    return table


def read_value(text: str, language: str) -> FoundNumber | None:
    """Return the only number in a text; None if there is none, or several."""
    found = list(find_numbers(text, language))
    return found[0] if len(found) == 1 else None


class _Choice(NamedTuple):
    """The statement of a cell, whether it is clear, and whether others state the topic instead."""

    best: "CellStatement | None"
    is_clear: bool = False
    is_absent: bool = False


def _choose(
    question: Question, topic: "Topic", place: int, cell: Cell, min_similarity: float
) -> _Choice:
    from graphrag_nlp.answers.cells import MAX_WORDS_BEFORE_AT_ONCE, MIN_SHARE

    found = topic.choose(place, cell.days, question.text, is_dated=cell.is_dated)
    if found and _is_record(topic, place):
        # All that is known of a record is its row, which words such as "deeper" need not repeat.
        is_clear = found[0].share >= MIN_SHARE
        is_near = is_clear or len(question.cell_coverage.cells) > 1 or not question.unseen_words
        return _Choice(found[0] if is_near else None, is_clear=is_clear)
    if found and found[0].has_figure and topic.is_clear(found[0], MAX_WORDS_BEFORE_AT_ONCE):
        return _Choice(found[0], is_clear=True)
    if not topic.has_read_others:
        topic.read_others(_read_others(question, topic), question.text)
    found = topic.choose(place, cell.days, question.text, is_dated=cell.is_dated)
    if found and topic.is_clear(found[0]):
        return _Choice(found[0], is_clear=True)
    near = next((one for one in found if one.share >= MIN_SHARE), None)
    if near or topic.wants_figure or not found:
        return _Choice(near, is_absent=topic.wants_figure and topic.is_outdone(near))
    compared = found[:MAX_COMPARED]
    vectors = question.index.embedder.embed([one.statement.text_to_embed for one in compared])
    similar = vectors @ question.vector
    best = int(similar.argmax())
    return _Choice(compared[best] if similar[best] >= min_similarity else None)


def _is_record(topic: "Topic", place: int) -> bool:
    return len(topic.statements[place]) == 1 and bool(topic.statements[place][0][0].cells)


def _read_others(question: Question, topic: "Topic") -> list["Passage"]:
    """Read the passages of other documents that say most of the words of a topic."""
    from graphrag_nlp.answers.statements import Passage

    if not topic.words:
        return []
    own = {number for cell in question.cell_coverage.cells for number in cell.text_units}
    index, columns = question.index, ["human_readable_id"]
    table, words = index.vectors("text_unit_text"), " ".join(topic.words)
    found = table.find_matching_rows(words, MAX_OTHERS, columns)["human_readable_id"]
    numbers = [number for number in found if number not in own]
    units = index.open_mapped("text_unit_rows").rows(numbers, "document", "text")
    things = index.open_mapped("document_subjects").rows(units["document"], "entity")["entity"]
    return list(map(Passage, numbers, units["text"], things))

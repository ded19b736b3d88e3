"""The passages that a search read, and the gold spans or documents in them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from graphrag_evaluation.questions import EvaluationQuestion, GoldSpan
from graphrag_evaluation.systems import System
from graphrag_index.text.normalize import fold
from graphrag_query.answer import Answer

CUTOFFS = (2, 5, 10)
# A passage has a gold span if it has this share of its characters.
MIN_SPAN_SHARE = 0.5


def ranked_passages(system: System, question: EvaluationQuestion, answer: Answer) -> list[int]:
    """Return the numbers of the text units that the search read, the best first."""
    if system.method in ("local", "basic"):
        ranking: Literal["local", "basic"] = "basic" if system.method == "basic" else "local"
        found = system.index.passages(question.text, max(CUTOFFS), ranking)
        return [passage.number for passage in found]
    tables = answer.context.tables if answer.context is not None else {}
    return tables["Sources"]["id"].to_list() if "Sources" in tables else []


def find_gold(
    system: System, question: EvaluationQuestion, passages: Sequence[int]
) -> tuple[list[set[Any]], dict[Any, str]]:
    """Find the gold spans in each passage, or the gold documents if there are no spans.

    Returns the gold items of each position of the ranking, and the names of all gold items. A
    ranking of documents has each document once.
    """
    rows = system.index.store.text_units(passages)
    units = [rows[number] for number in passages if number in rows]
    numbers = system.document_numbers
    if question.spans:
        held = [
            {
                span
                for span in question.spans
                if has_span(unit, span, numbers.get(span.document, -1))
            }
            for unit in units
        ]
        return held, {span: span.document or span.text for span in question.spans}
    gold = {numbers.get(name, name): name for name in question.documents}
    documents = dict.fromkeys(unit["document"] for unit in units)
    return [{document} for document in documents], gold


def has_span(unit: Mapping[str, Any], span: GoldSpan, document: int) -> bool:
    """Return whether a text unit has a gold span; `document` is the number of its document."""
    if not span.end_char:
        return fold(span.text) in fold(unit["text"])
    overlap = min(unit["end_char"], span.end_char) - max(unit["start_char"], span.start_char)
    wanted = MIN_SPAN_SHARE * (span.end_char - span.start_char)
    return bool(unit["document"] == document and overlap >= max(1, wanted))

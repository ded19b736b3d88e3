"""Structured search: a model writes a query, and the answer from its rows."""

from dataclasses import replace

import polars as pl

from graphrag_index.errors import SettingsError
from graphrag_index.llm.request import Message
from graphrag_index.schema.settings.searches import LocalSearch, StructuredSearch
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.context import Context, Section, pack
from graphrag_query.answering.written_answer import write_answer
from graphrag_query.question.question import Question
from graphrag_query.retrieval.index_store import KnowledgeModel
from graphrag_query.structured.identified_rows import identified
from graphrag_query.structured.samples import names_near, sampled_schema
from graphrag_query.structured.written_query import Tried, first_messages, write_query

NO_MODEL = (
    "Structured search needs a chat model, which writes the query: name one in search.model, or "
    'write the query yourself with `graphrag-query sql "SELECT ..."`.'
)
NO_RECORD = "No record: no query found anything, and nothing in the documents is close to this."
# Of what resembles a text of the query, so many names are told to the model.
MOST_NAMES = 10


def structured_search(question: Question, settings: StructuredSearch, local: LocalSearch) -> Answer:
    """Answer a question by a query in SQL that a model writes.

    The query is run under the limits of all queries, and is shown in the notes. What is wrong
    with it is told to the model. If it finds nothing, the model may write it once more over the
    names that resemble those it asked for; if that finds nothing either, or no query works, local
    search answers. The outcome is `no_evidence` if nothing is close to the question.

    Raises
    ------
    SettingsError
        There is no chat model.
    """
    if question.chat is None:
        raise SettingsError(NO_MODEL)
    model = question.model
    names = names_near(model, [question.text], MOST_NAMES)
    messages = first_messages(question, sampled_schema(model, settings.sample_values), names)
    tried = write_query(question, messages, settings)
    if tried.result is not None and tried.is_empty:
        tried = _over_names_alike(question, tried, settings)
    if tried.result is not None and not tried.is_empty:
        return _from_rows(question, tried, settings)
    return _from_passages(question, tried, settings, local)


def _over_names_alike(question: Question, tried: Tried, settings: StructuredSearch) -> Tried:
    """Let the model write the query once more, over names that resemble those it asked for."""
    names = names_near(question.model, tried.texts, MOST_NAMES)
    if not names:
        return tried
    listed = ", ".join(names)
    asked = (
        "This query found nothing. Names in the index that resemble those in it: "
        f"{listed}. If one of them is what the question means, write the query with it; if not, "
        "give an empty query."
    )
    message = Message(role="user", content=asked)
    again = write_query(question, [*tried.messages, message], settings)
    if again.result is None:
        return replace(tried, notes=(*tried.notes, *again.notes))
    found = f"Query that found nothing: {tried.sql}"
    return replace(again, notes=(*tried.notes, found, *again.notes))


def _from_rows(question: Question, tried: Tried, settings: StructuredSearch) -> Answer:
    """Let the model write the answer from the rows of its query."""
    result = tried.result
    assert result is not None
    name, rows = identified(question.model, result.frame)
    packed = pack(
        [Section(name, rows, 1.0)], question.max_context_tokens(settings.max_context_tokens)
    )
    notes = (*tried.notes, f"Query: {tried.sql}")
    if result.is_cut:
        notes += (f"The query has more rows than the {len(result):,} that were read (max_rows).",)
    left_out = sum(packed.n_left_out.values())
    if left_out:
        notes += (f"{left_out:,} rows had no room in what the model was shown.",)
    cut = "The rows were cut; there are more.\n" if result.is_cut or left_out else ""
    context = replace(packed, text=f"Query: {tried.sql}\n{cut}\n{packed.text}")
    return write_answer(
        question,
        "structured_answer",
        context,
        method="structured",
        parameters=settings.model_dump(),
        looked_at={"queries": 1, "rows": len(result)},
        notes=notes,
        shown=context.shown if name != "Rows" else {},
    )


def _from_passages(
    question: Question, tried: Tried, settings: StructuredSearch, local: LocalSearch
) -> Answer:
    """Answer by local search, if anything in the documents is close to the question."""
    notes = tried.notes
    if tried.result is not None:
        notes += (f"Query that found nothing: {tried.sql}",)
    if not is_anything_close(question, settings.min_similarity):
        return question.answer(
            NO_RECORD,
            "structured",
            settings.model_dump(),
            {"queries": 1 if tried.sql else 0, "rows": 0},
            Outcome.NO_EVIDENCE,
            notes=notes,
            context=Context({}, "", 0, {}),
        )
    from graphrag_query.searches.local_search import local_search

    found = local_search(question, local)
    notes += ("Answered by local search from passages, since no query found anything.",)
    return replace(
        found,
        method="structured",
        parameters=settings.model_dump(),
        notes=(*notes, *found.notes),
    )


def is_anything_close(question: Question, min_similarity: float) -> bool:
    """Tell whether any passage or entity is as similar to the question as that."""
    model = question.model
    return any(
        _best(model, table, question) >= min_similarity
        for table in ("text_unit_text", "entity_description")
        if model.has(table)
    )


def _best(model: KnowledgeModel, table: str, question: Question) -> float:
    found = model.vectors(table).nearest(question.vector, 1, ["human_readable_id"])
    best: float = found.select(pl.col("similarity").max()).item()
    return best if best is not None else -1.0

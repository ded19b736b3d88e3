"""Basic search: answer from the passages that resemble a question, without the graph."""

from functools import partial

from graphrag_index.schema.settings.searches import BasicSearch
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.context import Section, pack, source_rows
from graphrag_query.answering.extractive_answer import (
    NOTHING_ANSWERS,
    choose_sentences,
    write_sentences,
)
from graphrag_query.answering.sentence_ranking import content_words
from graphrag_query.answering.written_answer import write_answer
from graphrag_query.question.question import Question
from graphrag_query.question.question_names import not_mentioned, unknown_names

# Added to a rank before it is turned round, from the paper.
RANK_OFFSET = 60
# Rows of each ranking that are joined, for each text unit that is read.
REACH = 4
LEAST_REACH = 50


def basic_search(question: Question, settings: BasicSearch) -> Answer:
    """Answer a question from the text units that resemble it most.

    A model writes the answer from what fits its context; without one, it is made of the
    sentences that answer best. The outcome is `no_evidence` if nothing read is similar enough
    to the question, or if it names what the documents do not.
    """
    model = question.model
    scores = rank_text_units(question, settings)
    units = model.text_units(scores)
    units = {number: units[number] for number in scores}
    parameters = settings.model_dump()
    looked_at = {"text_units": len(units)}
    answer = partial(question.answer, method="basic", parameters=parameters, looked_at=looked_at)
    unknown = unknown_names(model, question.text, [unit["text"] for unit in units.values()])
    if unknown:
        return answer(not_mentioned(unknown), outcome=Outcome.NO_EVIDENCE)
    context = pack(
        [Section("Sources", source_rows(units), 1.0)],
        question.max_context_tokens(settings.max_context_tokens),
    )
    if question.chat is not None:
        return write_answer(
            question,
            "basic_search",
            context,
            method="basic",
            parameters=parameters,
            looked_at=looked_at,
        )
    chosen = choose_sentences(
        question,
        units,
        scores,
        max_sentences=settings.max_sentences,
        min_similarity=settings.min_similarity,
    )
    if not chosen:
        return answer(NOTHING_ANSWERS, outcome=Outcome.NO_EVIDENCE, context=context)
    text, citations = write_sentences(chosen, units)
    return answer(text, citations=citations, context=context)


def rank_text_units(question: Question, settings: BasicSearch) -> dict[int, float]:
    """Score the text units that resemble a question most, by number, the best first.

    By vector the score is the cosine; by full text (BM25) and by both it is a share of the
    best possible. Both are joined by reciprocal rank fusion [1]_. Ties go by number.

    References
    ----------
    .. [1] Cormack, Clarke & Büttcher, Reciprocal Rank Fusion Outperforms Condorcet and
       Individual Rank Learning Methods, SIGIR 2009.
    """
    table = question.model.vectors("text_unit_text")
    top_k = settings.top_k_text_units
    reach = top_k if settings.mode != "hybrid" else max(REACH * top_k, LEAST_REACH)
    near: dict[int, float] = {}
    matching: dict[int, float] = {}
    if settings.mode != "text":
        near = dict(table.nearest(question.vector, reach, ["human_readable_id"]).iter_rows())
    if settings.mode != "vector":
        words = " ".join(content_words(question.text)) or question.text
        matching = dict(table.matching(words, reach, ["human_readable_id"]).iter_rows())
    if settings.mode == "vector":
        return near
    if settings.mode == "text":
        best = max(matching.values(), default=1.0) or 1.0
        return {number: score / best for number, score in matching.items()}
    fused: dict[int, float] = {}
    for ranking in (near, matching):
        for rank, number in enumerate(ranking):
            share = (RANK_OFFSET + 1) / (RANK_OFFSET + 1 + rank) / 2
            fused[number] = fused.get(number, 0.0) + share
    numbers = sorted(fused, key=lambda number: (-fused[number], number))[:top_k]
    return {number: fused[number] for number in numbers}

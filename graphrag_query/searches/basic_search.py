"""Basic search: answer from the passages that resemble a question, without the graph."""

from functools import partial

from graphrag_index.schema.settings.searches import BasicSearch
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.context import Section, pack, source_rows
from graphrag_query.answering.extractive import (
    NOTHING_ANSWERS,
    choose_sentences,
    write_sentences,
)
from graphrag_query.answering.written_answer import write_answer
from graphrag_query.question.mentions import not_mentioned
from graphrag_query.question.question import Question

# Constant of reciprocal rank fusion, from the paper.
RANK_OFFSET = 60
# Rows of each ranking that are fused, for each text unit that is read.
REACH = 4
MIN_REACH = 50


def basic_search(question: Question, settings: BasicSearch) -> Answer:
    """Answer a question from the text units most similar to it.

    A model writes the answer from what fits its context; without one, the answer consists of the
    sentences that answer best. The outcome is `no_evidence` if nothing is similar enough to the
    question, or if it names something that the documents do not mention.
    """
    index = question.index
    scores = rank_text_units(question, settings)
    units = index.text_units(scores)
    units = {number: units[number] for number in scores}
    parameters = settings.model_dump()
    looked_at = {"text_units": len(units)}
    answer = partial(question.answer, method="basic", parameters=parameters, looked_at=looked_at)
    unmentioned = question.mentions.unmentioned(unit["text"] for unit in units.values())
    if unmentioned:
        return answer(not_mentioned(unmentioned), outcome=Outcome.NO_EVIDENCE)
    context = pack(
        [Section("Sources", source_rows(units), 1.0)],
        question.max_context_tokens(settings.max_context_tokens),
    )
    if question.llm is not None:
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
    """Score the text units most similar to a question, by number, the best first.

    The score is the cosine by vector, and by full text (BM25) or both a share of the best
    possible score. Both rankings are joined by reciprocal rank fusion [1]_. Ties go by number.

    References
    ----------
    .. [1] Cormack, Clarke & Büttcher, Reciprocal Rank Fusion Outperforms Condorcet and
       Individual Rank Learning Methods, SIGIR 2009.
    """
    table = question.index.vectors("text_unit_text")
    top_k = settings.top_k_text_units
    reach = top_k if settings.mode != "hybrid" else max(REACH * top_k, MIN_REACH)
    near: dict[int, float] = {}
    matching: dict[int, float] = {}
    if settings.mode != "text":
        near = dict(table.nearest(question.vector, reach, ["human_readable_id"]).iter_rows())
    if settings.mode != "vector":
        words = " ".join(question.content_words) or question.text
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

"""Basic search: answer from the passages most similar to a question, without the graph."""

from functools import partial

import numpy as np

from graphrag_index.schema.settings.searches import BasicSearch
from graphrag_query.answer import Answer
from graphrag_query.answering.written_answer import DeferredContext, source_context, write_answer
from graphrag_query.question.question import Question
from graphrag_query.retrieval.text_unit_ranking import full_text_shares

# Weight of the full-text score in the merged ranking; the similarity has the rest. Means of the
# recall of the static model and all-MiniLM-L6-v2 are best between 0.4 and 0.6.
FULL_TEXT_WEIGHT = 0.5
# Number of rows that each ranking contributes, per text unit of the result. The similarities of a
# vector index are rounded, so the exact ones are compared also without a fusion.
REACH_FACTOR = 4
# Minimum number of rows that each ranking contributes.
MIN_REACH = 50


def basic_search(question: Question, settings: BasicSearch) -> Answer:
    """Answer a question from the text units most similar to it.

    A model writes the answer from the text units that fit its context. Without a model, the
    answer consists of the sentences that answer best. The outcome is `no_evidence` if nothing is
    similar enough to the question, or if the question names something that the documents do not
    mention.
    """
    scores = question.cell_coverage.score_first(
        rank_text_units(question, settings), settings.top_k_text_units
    )
    found = question.index.text_units(scores)
    units = {number: found[number] for number in scores}
    question.counts["text_units"] = len(units)
    if refusal := question.refuse(unit["text"] for unit in units.values()):
        return refusal
    pack, limit = partial(source_context, question, units), settings.max_context_tokens
    if question.llm is not None:
        return write_answer(question, "basic_search", pack(limit))
    context = DeferredContext(pack, limit)
    from graphrag_query.answering.quoted_answer import quote_answer

    return quote_answer(question, units, scores, settings, context)


def rank_text_units(question: Question, settings: BasicSearch) -> dict[int, float]:
    """Map the numbers of the text units most similar to a question to scores, best first.

    With the mode `vector`, the score is the cosine similarity. With the mode `text` (BM25), the
    score is divided by the best score of the question. With the mode `hybrid`, the score is the
    weighted mean of both; the cosine similarities are first scaled to lie between 0 and 1 [1]_.
    Equal scores are ordered by number.

    References
    ----------
    .. [1] Bruch, Gai & Ingber, An Analysis of Fusion Functions for Hybrid Retrieval, ACM
       Transactions on Information Systems 42 (2023).
    """
    index = question.index
    table, top_k = index.vectors("text_unit_text"), settings.top_k_text_units
    reach = top_k if settings.mode == "text" else max(REACH_FACTOR * top_k, MIN_REACH)
    near: list[int] = []
    matching: dict[int, float] = {}
    if settings.mode != "text":
        rows = table.nearest(question.vector, reach, ["human_readable_id"])
        near = rows["human_readable_id"].to_list()
    if settings.mode != "vector":
        words = " ".join(question.content_words) or question.text
        matching = full_text_shares(table, words, reach)
    if settings.mode == "text" or not (near or matching):
        return matching
    numbers = sorted({*near, *matching})
    vectors = index.open_mapped("text_unit_vectors").matrix("vector", numbers)
    scores = vectors @ question.vector
    if settings.mode == "hybrid":
        lowest = scores.min()
        scaled = (scores - lowest) / max(scores.max() - lowest, 1e-6)
        shares = np.array([matching.get(number, 0.0) for number in numbers])
        scores = (1 - FULL_TEXT_WEIGHT) * scaled.astype(float) + FULL_TEXT_WEIGHT * shares
    score_of = dict(zip(numbers, scores.tolist(), strict=True))
    best = sorted(numbers, key=lambda number: (-score_of[number], number))[:top_k]
    return {number: score_of[number] for number in best}

"""Basic search: answer from the passages most similar to a question, without the graph."""

from functools import partial

from graphrag_index.schema.settings.searches import BasicSearch
from graphrag_query.answer import Answer
from graphrag_query.answering.short_answer import answer_from_sentences
from graphrag_query.answering.written_answer import DeferredContext, source_context, write_answer
from graphrag_query.question.question import Question
from graphrag_query.retrieval.text_unit_ranking import full_text_shares

# Constant k of reciprocal rank fusion, from the paper of Cormack et al. (see below).
FUSION_RANK_OFFSET = 60
# Number of rows that each ranking contributes to the fusion, per text unit of the result.
FUSION_FACTOR = 4
# Minimum number of rows that each ranking contributes to the fusion.
MIN_FUSION_ROWS = 50


def basic_search(question: Question, settings: BasicSearch) -> Answer:
    """Answer a question from the text units most similar to it.

    A model writes the answer from the text units that fit its context. Without a model, the
    answer consists of the sentences that answer best. The outcome is `no_evidence` if nothing is
    similar enough to the question, or if the question names something that the documents do not
    mention.
    """
    scores = rank_text_units(question, settings)
    found = question.index.text_units(scores)
    units = {number: found[number] for number in scores}
    question.counts["text_units"] = len(units)
    if refusal := question.refuse(unit["text"] for unit in units.values()):
        return refusal
    pack, limit = partial(source_context, question, units), settings.max_context_tokens
    if question.llm is not None:
        return write_answer(question, "basic_search", pack(limit))
    context = DeferredContext(pack, limit)
    return answer_from_sentences(question, units, scores, settings, context)


def rank_text_units(question: Question, settings: BasicSearch) -> dict[int, float]:
    """Map the numbers of the text units most similar to a question to scores, best first.

    With the mode `vector`, the score is the cosine similarity. With the mode `text` (BM25), the
    score is divided by the best score of the question. With the mode `hybrid`, both rankings
    are merged by reciprocal rank fusion [1]_, and the score is a share (0 to 1) of the best
    possible score. Equal scores are ordered by number.

    References
    ----------
    .. [1] Cormack, Clarke & Büttcher, Reciprocal Rank Fusion Outperforms Condorcet and
       Individual Rank Learning Methods, SIGIR 2009.
    """
    table = question.index.vectors("text_unit_text")
    top_k = settings.top_k_text_units
    reach = top_k if settings.mode != "hybrid" else max(FUSION_FACTOR * top_k, MIN_FUSION_ROWS)
    near: dict[int, float] = {}
    matching: dict[int, float] = {}
    if settings.mode != "text":
        near = dict(table.nearest(question.vector, reach, ["human_readable_id"]).iter_rows())
    if settings.mode != "vector":
        words = " ".join(question.content_words) or question.text
        matching = full_text_shares(table, words, reach)
    if settings.mode != "hybrid":
        return near or matching
    fused: dict[int, float] = {}
    for ranking in (near, matching):
        for rank, number in enumerate(ranking):
            share = (FUSION_RANK_OFFSET + 1) / (FUSION_RANK_OFFSET + 1 + rank) / 2
            fused[number] = fused.get(number, 0.0) + share
    numbers = sorted(fused, key=lambda number: (-fused[number], number))[:top_k]
    return {number: fused[number] for number in numbers}

"""Order the sentences of text units by how likely they answer a question."""

from collections.abc import Mapping, Sequence

import numpy as np

from graphrag_query.answering.answer_features import COLUMN, FEATURES, AnswerFeatures
from graphrag_query.answering.extractive import Candidate, RankedSentence
from graphrag_query.question.question import Question

# Maximum number of sentences that are searched for parts of the wanted kind, and maximum number of
# sentences whose vectors are compared with the question. The best by cheaper features are taken,
# and some with the most words of the question.
MAX_SEARCHED_SENTENCES = 60
MAX_EMBEDDED_SENTENCES = 18
MAX_BY_WORDS = 8
# Weights of the features, fitted by `tools/answer_weights.py`: a logistic regression over the
# sentences that were read for a question. Those of bridges are a little lower than fitted, so that
# sentences that answer alone stay first.
WEIGHTS: Mapping[str, float] = {
    "names": 3.2,
    "words": 7.2,
    "related": 4.8,
    "layout": 4.8,
    "context": 2.9,
    "bridge_to_subject": 8.5,
    "bridge_to_name": 30.0,
    "text_unit_rank": 2.6,
    "is_first": 0.9,
    "noun": 1.6,
    "definition": 4.0,
    "speaker": 0.8,
    "reply": 7.3,
    "is_short": -0.3,
    "is_question": -1.4,
    "name_fit": 2.1,
    "value_fit": 3.4,
    "near_words": 2.0,
    "similarity": 1.4,
}


def rank_answers(
    question: Question, candidates: Sequence[Candidate], types: Mapping[str, str]
) -> list[RankedSentence]:
    """Order sentences by how likely they answer a question, the likeliest first.

    The sentences of the best text unit come first, and those of a text unit in their order.
    `types` maps names of entities in lower case to their types. The scores of two sentences
    differ by the logarithm of how much likelier one of them answers than the other.
    """
    candidates = without_copies(candidates)
    if not candidates:
        return []
    found = AnswerFeatures(question, candidates)
    features, weights = found.values, np.array([WEIGHTS[name] for name in FEATURES])
    order = np.argsort(-(features @ weights), kind="stable")[:MAX_SEARCHED_SENTENCES]
    for i in order.tolist():
        found.add_spans(i, types)
    order = order[np.argsort(-(features[order] @ weights), kind="stable")][:MAX_EMBEDDED_SENTENCES]
    # The sentences with most words of the question tell whether there is any evidence.
    most_words = np.argsort(-np.array(found.coverage), kind="stable")[:MAX_BY_WORDS]
    order = np.array(list(dict.fromkeys([*order, *most_words])))
    vectors = question.index.embedder.embed([candidates[i].text_to_embed for i in order])
    similarities = vectors @ question.vector
    features[order, COLUMN["similarity"]] = similarities
    ranked = [
        RankedSentence(
            candidates[i],
            float(features[i] @ weights),
            float(similarity),
            found.coverage[i],
            vector,
            is_translated=found.is_translated(i),
            is_about_name=found.is_about_name(i),
            led_by=found.find_leading(i),
        )
        for i, similarity, vector in zip(order, similarities, vectors, strict=True)
    ]
    return sorted(ranked, key=lambda r: (-r.score, r.candidate.text_unit, r.candidate.start_char))


def without_copies(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Keep the first of equal sentences at one place: text units may overlap."""
    by_place: dict[tuple[str, int], Candidate] = {}
    for candidate in candidates:
        by_place.setdefault((candidate.text, candidate.start_char), candidate)
    return list(by_place.values())

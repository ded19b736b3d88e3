"""An answer without a model: the sentences of some text units that answer a question best."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_query.answer import Citation
from graphrag_query.question import Question
from graphrag_query.question_names import missing_names
from graphrag_query.sentence_ranking import (
    SHARE_OF_BEST,
    Ranked,
    as_prose,
    candidates_of,
    cite,
    content_words,
    rank_sentences,
    without_repetition,
)

NOTHING_ANSWERS = "No passage that was read answers this."

TextUnits = Mapping[int, Mapping[str, Any]]


def choose_sentences(
    question: Question,
    text_units: TextUnits,
    priors: Mapping[int, float],
    *,
    max_sentences: int,
    min_similarity: float,
    named: Sequence[str] = (),
    bonuses: Mapping[tuple[str, int], float] | None = None,
) -> list[Ranked]:
    """Choose the sentences that answer a question best; none if the evidence is too thin.

    `priors` tell how well each text unit fits the question. `named` are the names of the
    entities that the question names, as the index knows them; `bonuses` are for sentences by
    document id and start.
    """
    candidates = candidates_of(text_units.values(), priors, bonuses or {})
    ranked = rank_sentences(question.text, question.vector, candidates, question.model.embed, named)
    evidence = [
        sentence
        for sentence in ranked
        if sentence.similarity >= min_similarity
        and (sentence.coverage > 0 or sentence.similarity >= 2 * min_similarity)
    ]
    if not evidence or _is_beside_the_point(question.text, named, evidence, min_similarity):
        return []
    # Far below the best sentence is padding, not an answer.
    evidence = [s for s in evidence if s.score >= SHARE_OF_BEST * evidence[0].score]
    return without_repetition(evidence, max_sentences)


def _is_beside_the_point(
    question: str, named: Sequence[str], evidence: Sequence[Ranked], min_similarity: float
) -> bool:
    """Tell whether sentences hold so little of the question that similarity alone would answer.

    Without a name that the index knows, they must hold a third of its words and whatever
    name it has. With one, they must hold something of what is asked about it.
    """
    similarity = max(sentence.similarity for sentence in evidence)
    texts = [sentence.candidate.text for sentence in evidence]
    if not named:
        held = any(sentence.coverage >= 0.34 for sentence in evidence)
        return similarity < 2 * min_similarity and (
            not held or bool(missing_names(question, texts))
        )
    asked = set(content_words(question)) - {w for n in named for w in content_words(n)}
    said = {word for text in texts for word in content_words(text)}
    return bool(asked) and not asked & said and similarity < 1.6 * min_similarity


def write_sentences(
    chosen: Sequence[Ranked], text_units: TextUnits
) -> tuple[str, tuple[Citation, ...]]:
    """Put sentences one behind the other, each with its citation."""
    citations = tuple(
        cite(number, sentence.candidate, text_units[sentence.candidate.text_unit])
        for number, sentence in enumerate(chosen, 1)
    )
    text = " ".join(f"{as_prose(citation.quote)} [{citation.number}]" for citation in citations)
    return text, citations

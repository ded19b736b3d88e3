"""Answers without a model: the sentences of text units that answer a question best."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_query.answer import Citation
from graphrag_query.answering.sentence_ranking import (
    SHARE_OF_BEST,
    RankedSentence,
    as_prose,
    candidates_of,
    cite,
    rank_sentences,
    without_repetition,
)
from graphrag_query.question.content_words import content_words, is_unreadable, share_words
from graphrag_query.question.question import Question

# Coverage from which a sentence holds all words of a question: coverage is a sum of fractions.
ALL_WORDS = 0.999
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
) -> list[RankedSentence]:
    """Choose the sentences that answer a question best; none if the evidence is too weak.

    `priors` are scores of the text units. `named` are titles and aliases of the entities that
    the question names; `bonuses` are for sentences, by document id and start.
    """

    def ranked(prose: bool) -> list[RankedSentence]:
        candidates = candidates_of(text_units.values(), priors, bonuses or {}, prose)
        return rank_sentences(question, candidates, named)

    evidence = _evidence(question, ranked(prose=True), named, min_similarity)
    if not evidence:
        # A line that is no sentence answers only if it holds all words of the question.
        evidence = [line for line in ranked(prose=False) if line.coverage > ALL_WORDS]
    if not evidence:
        return []
    # Sentences far below the best are padding.
    evidence = [s for s in evidence if s.score >= SHARE_OF_BEST * evidence[0].score]
    return without_repetition(evidence, max_sentences)


def _evidence(
    question: Question,
    ranked: Sequence[RankedSentence],
    named: Sequence[str],
    min_similarity: float,
) -> list[RankedSentence]:
    """Return the sentences that are relevant; none if all of them miss the point."""
    if is_unreadable(question.index, question.text):
        return [s for s in ranked if share_words(question.text, s.candidate.text)]
    has_number = any(letter.isdigit() for letter in question.text)
    evidence = [s for s in ranked if _is_evidence(s, min_similarity, has_number)]
    if evidence and _misses_the_point(question, named, evidence, min_similarity):
        return []
    return evidence


def _is_evidence(sentence: RankedSentence, min_similarity: float, has_number: bool) -> bool:
    """Tell whether a sentence is similar enough to a question.

    A number, such as that of a ticket, is similar to nothing: a sentence may hold all words of
    a question with a number instead.
    """
    if has_number and sentence.coverage > ALL_WORDS:
        return True
    near = sentence.similarity >= min_similarity
    return near and (sentence.coverage > 0 or sentence.similarity >= 2 * min_similarity)


def _misses_the_point(
    question: Question,
    named: Sequence[str],
    evidence: Sequence[RankedSentence],
    min_similarity: float,
) -> bool:
    """Tell whether sentences hold too little of the question, however similar they are.

    If the index knows none of its names, they must hold a third of its words and all its names.
    Otherwise they must hold one word of what is asked about the named entities.
    """
    similarity = max(sentence.similarity for sentence in evidence)
    texts = [sentence.candidate.text for sentence in evidence]
    if not named:
        held = any(sentence.coverage >= 0.34 for sentence in evidence)
        return similarity < 2 * min_similarity and (
            not held or bool(question.mentions.missing_from(texts))
        )
    asked = set(question.content_words) - {w for n in named for w in content_words(n)}
    words = {word for text in texts for word in content_words(text)}
    return bool(asked) and not asked & words and similarity < 1.6 * min_similarity


def write_sentences(
    chosen: Sequence[RankedSentence], text_units: TextUnits
) -> tuple[str, tuple[Citation, ...]]:
    """Join sentences, each with its citation."""
    citations = tuple(
        cite(number, sentence.candidate, text_units[sentence.candidate.text_unit])
        for number, sentence in enumerate(chosen, 1)
    )
    text = " ".join(f"{as_prose(citation.quote)} [{citation.number}]" for citation in citations)
    return text, citations

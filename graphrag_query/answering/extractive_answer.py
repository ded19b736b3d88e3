"""An answer without a model: the sentences of some text units that answer a question best."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_query.answer import Citation
from graphrag_query.answering.sentence_ranking import (
    SHARE_OF_BEST,
    Ranked,
    as_prose,
    candidates_of,
    cite,
    content_words,
    rank_sentences,
    without_repetition,
)
from graphrag_query.question.question import Question
from graphrag_query.question.question_names import missing_names
from graphrag_query.question.unsupported_scripts import is_unread, share_words

# A share of the words of a question; shares are sums of fractions.
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
) -> list[Ranked]:
    """Choose the sentences that answer a question best; none if the evidence is too thin.

    `priors` tell how well each text unit fits the question. `named` are the names of the
    entities that the question names, as the index knows them; `bonuses` are for sentences by
    document id and start.
    """

    def ranked(prose: bool) -> list[Ranked]:
        candidates = candidates_of(text_units.values(), priors, bonuses or {}, prose)
        embed = question.model.embed
        return rank_sentences(question.text, question.vector, candidates, embed, named)

    evidence = _evidence(question, ranked(prose=True), named, min_similarity)
    if not evidence:
        # What is no sentence answers only if it has all that was asked for.
        evidence = [line for line in ranked(prose=False) if line.coverage > ALL_WORDS]
    if not evidence:
        return []
    # Far below the best sentence is padding, not an answer.
    evidence = [s for s in evidence if s.score >= SHARE_OF_BEST * evidence[0].score]
    return without_repetition(evidence, max_sentences)


def _evidence(
    question: Question, ranked: Sequence[Ranked], named: Sequence[str], min_similarity: float
) -> list[Ranked]:
    """Return the sentences that bear on a question; none if they are beside its point."""
    if is_unread(question.model, question.text):
        return [s for s in ranked if share_words(question.text, s.candidate.text)]
    has_number = any(letter.isdigit() for letter in question.text)
    evidence = [s for s in ranked if _is_evidence(s, min_similarity, has_number)]
    if evidence and _is_beside_the_point(question.text, named, evidence, min_similarity):
        return []
    return evidence


def _is_evidence(sentence: Ranked, min_similarity: float, has_number: bool) -> bool:
    """Tell whether a sentence is similar enough to a question. A number, such as that of a
    ticket, resembles nothing: with one, it may hold all words of the question instead.
    """
    if has_number and sentence.coverage > ALL_WORDS:
        return True
    near = sentence.similarity >= min_similarity
    return near and (sentence.coverage > 0 or sentence.similarity >= 2 * min_similarity)


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

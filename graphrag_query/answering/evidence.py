"""Evidence for an answer without a model: the relevant sentences, if they suffice."""

from collections.abc import Sequence

from graphrag_query.answering.extractive import (
    FULL_WORD_COVERAGE,
    HIGH_SIMILARITY_FACTOR,
    MIN_WORD_COVERAGE,
    RankedSentence,
    is_doubtful,
)
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import (
    STEMS_ABOUT_CORPUS,
    TextWords,
    content_words,
    is_unreadable,
    share_words,
)

# Minimum similarity of a sentence about other names than the question that is quoted beside one
# about its names.
MIN_SIMILARITY_OF_OTHER = 0.2


def select_evidence(
    question: Question,
    ranked: Sequence[RankedSentence],
    named: Sequence[str],
    min_similarity: float,
) -> list[RankedSentence]:
    """Return the sentences that are relevant to the question; empty if the evidence is too weak.

    Embeddings do not represent numbers well, such as the number of a ticket. If the question
    has a number, a sentence is also relevant if it contains all words of the question.
    """
    if is_unreadable(question.index, question.text):
        return [s for s in ranked if share_words(question.text, s.candidate.text)]
    has_number = any(letter.isdigit() for letter in question.text)
    evidence = [
        s
        for s in ranked
        if (has_number and s.coverage > FULL_WORD_COVERAGE)
        or (s.similarity >= min_similarity and (s.coverage or s.similarity >= 2 * min_similarity))
    ]
    sentences = [s for s in evidence if s.candidate.prose]
    is_weak = not sentences or _is_evidence_too_weak(question, named, sentences, min_similarity)
    # Similarities say little about sentences in another language.
    if is_weak and not any(sentence.is_translated for sentence in ranked):
        return []
    # With evidence, the likeliest sentence may answer in other words: "Do you like it?" - "Yes".
    return [s for s in ranked if s is ranked[0] or s.coverage or s.similarity >= min_similarity]


def _is_evidence_too_weak(
    question: Question,
    named: Sequence[str],
    evidence: Sequence[RankedSentence],
    min_similarity: float,
) -> bool:
    """Return whether the sentences contain too few of the question's words and names.

    If the index knows no name of the question, the sentences must contain all its names and at
    least `MIN_WORD_COVERAGE` of its words: with a higher similarity fewer words, and no words at
    `HIGH_SIMILARITY_FACTOR`. If the index knows a name, the sentences must contain at least one
    further word of the question, unless the similarity is high.
    """
    if is_doubtful(question, evidence, min_similarity):
        return True
    similarity = max(sentence.similarity for sentence in evidence)
    texts = [sentence.candidate.text for sentence in evidence]
    if not named:
        coverage = max(sentence.coverage for sentence in evidence)
        is_held = (
            coverage >= MIN_WORD_COVERAGE
            and similarity + coverage * min_similarity >= HIGH_SIMILARITY_FACTOR * min_similarity
        )
        return similarity < HIGH_SIMILARITY_FACTOR * min_similarity and (
            not is_held
            or bool(TextWords(texts, question.language).missing_names(question.mentions.spans))
        )
    asked = {*question.content_words, *question.stems_of_forms} - STEMS_ABOUT_CORPUS
    asked -= {w for n in named for w in content_words(n)}
    words = {word for text in texts for word in content_words(text)}
    return bool(asked) and not asked & words and similarity < 1.6 * min_similarity


def keep_related(
    question: Question, evidence: Sequence[RankedSentence]
) -> Sequence[RankedSentence]:
    """Keep sentences with a word or name of a yes-or-no question, if the best one has none.

    If none has any, nothing is evidence. In a chat, a reply needs none; a sentence in another
    language has other words.
    """
    best = evidence[0]
    is_related = best.coverage or best.is_about_name or best.candidate.in_turn
    if question.wanted.kind != "yes_no" or is_related or best.is_translated:
        return evidence
    return [s for s in evidence if s.coverage or s.is_about_name]


def leave_out_unrelated(
    question: Question, evidence: Sequence[RankedSentence]
) -> list[RankedSentence]:
    """Leave out sentences beside the best one that are neither about its names nor similar.

    They share a word with the question by chance. Other languages write names in other ways.
    """
    best, *others = evidence
    if not question.mentions.spans or not best.is_about_name:
        return list(evidence)
    if question.index.main_languages - {question.language.code}:
        return list(evidence)
    kept = [
        s
        for s in others
        if s.is_about_name or s.similarity >= MIN_SIMILARITY_OF_OTHER or s.candidate.in_turn
    ]
    return [best, *kept]

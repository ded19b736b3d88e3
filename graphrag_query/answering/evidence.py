"""Whether the statements that were found are evidence for an answer at all."""

from collections.abc import Sequence

from graphrag_nlp.answers.kinds import VALUES, find_answer_spans, find_wanted_answer
from graphrag_nlp.answers.rank_statements import Ranked, SentenceAnswer
from graphrag_query.answering.extractive import (
    FULL_WORD_COVERAGE,
    HIGH_SIMILARITY_FACTOR,
    MIN_WORD_COVERAGE,
    UNSEEN_WORD_FACTOR,
)
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import (
    STEMS_ABOUT_CORPUS,
    WORD,
    TextWords,
    content_words,
    is_unreadable,
)

# Similarity of evidence without a further word of the question beside names that the index knows,
# as a multiple of `min_similarity`.
NAMED_FACTOR = 1.6
# The same without the names, for what a question asks about them and no statement says in its
# words; how much more similar a single word must be, and the number of statements with such words.
REST_FACTOR, WORD_FACTOR, N_COMPARED = 0.6, 2.5, 3


def is_evidence_enough(
    question: Question, found: SentenceAnswer, named: Sequence[str], min_similarity: float
) -> bool:
    """Return whether statements contain enough of the question's words and names.

    Embeddings do not represent numbers well, such as the number of a ticket. If the question has
    one, a statement with all its words is evidence. Similarities say little about statements in
    another language.
    """
    if is_unreadable(question.index, question.text) or any(r.is_foreign for r in found.ranked):
        return True
    has_number = any(letter.isdigit() for letter in question.text)
    evidence = [
        one
        for one in found.ranked
        if (has_number and one.coverage > FULL_WORD_COVERAGE)
        or (
            one.similarity >= min_similarity
            and (one.coverage or one.similarity >= 2 * min_similarity)
        )
    ]
    return bool(evidence) and not _is_too_weak(question, named, evidence, min_similarity)


def _is_too_weak(
    question: Question, named: Sequence[str], evidence: Sequence[Ranked], min_similarity: float
) -> bool:
    """Return whether the statements contain too few of the question's words and names.

    If no document contains some word of the question, or if the index knows no name of it, the
    statements must contain all its names and at least `MIN_WORD_COVERAGE` of its words: with a
    higher similarity fewer words, and no words at `HIGH_SIMILARITY_FACTOR`. If the index knows a
    name, they must contain a further word of the question, unless the similarity is high, also that
    of what is asked to what they say beside the name, or they have a value of the kind it wants.
    """
    strength = max(one.similarity + one.coverage * min_similarity for one in evidence)
    if strength < UNSEEN_WORD_FACTOR * min_similarity and question.unseen_words:
        return True
    similarity = max(one.similarity for one in evidence)
    texts = [one.statement.text for one in evidence]
    if not named:
        coverage = max(one.coverage for one in evidence)
        is_held = (
            coverage >= MIN_WORD_COVERAGE and strength >= HIGH_SIMILARITY_FACTOR * min_similarity
        )
        return similarity < HIGH_SIMILARITY_FACTOR * min_similarity and (
            not is_held
            or bool(TextWords(texts, question.language).missing_names(question.mentions.spans))
        )
    of_names = {word for name in named for word in content_words(name)}
    asked = frozenset(question.content_words) - STEMS_ABOUT_CORPUS - of_names
    stems = (one.statement.stems | one.statement.label_stems for one in evidence)
    said = frozenset[str]().union(*stems)
    if not asked or asked & said:
        return False
    if similarity < NAMED_FACTOR * min_similarity:
        return True
    texts = [one.statement.text for one in sorted(evidence, key=lambda one: -one.similarity)]
    wanted = find_wanted_answer(question.text, question.language)
    has_value = wanted.kind in VALUES and any(
        find_answer_spans(text, frozenset(), wanted, question.language, {}) for text in texts
    )
    # The built-in model compares single words of other languages badly.
    if has_value or question.language.code != "en":
        return False
    return _similarity_beside_names(question, asked, texts) < REST_FACTOR * min_similarity


def _similarity_beside_names(
    question: Question, asked: frozenset[str], texts: Sequence[str]
) -> float:
    """Return the similarity of the asked words to what statements say in words of their own.

    A statement that repeats a name is similar to every question about it. Each statement counts as
    a whole, and so do the single words of the best, divided by `WORD_FACTOR`.
    """

    def words_of(text: str, stems: frozenset[str]) -> list[str]:
        found = ((word, {*content_words(word, question.language)}) for word in WORD.findall(text))
        return [word for word, own in found if own and stems.issuperset(own)]

    said = [
        words_of(text, frozenset(content_words(text)).difference(question.content_words))
        for text in texts
    ]
    words = list({word for own in said[:N_COMPARED] for word in own})
    rest, wholes = " ".join(words_of(question.text, asked)), [" ".join(own) for own in said if own]
    if not rest or not wholes:
        return 0.0
    vectors = question.index.embedder.embed([rest, *wholes, *words])
    similar = vectors[1:] @ vectors[0]
    similar[len(wholes) :] /= WORD_FACTOR
    return float(similar.max())

"""The sentences about the subject of a question: those with its words or with related ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from graphrag_index.text.normalize import fold, stem_word
from graphrag_query.answering.extractive import (
    Candidate,
    RankedSentence,
    TextUnit,
    is_doubtful,
    rank_sentences,
    split_into_candidates,
)
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import (
    WORD,
    WORD_LISTS,
    content_words,
    is_unreadable,
    share_words,
)
from graphrag_query.retrieval.related_words import Floats, RelatedWords
from graphrag_query.retrieval.report_sentences import locate_sentence
from graphrag_query.retrieval.theme_passages import (
    relevant_text_units,
    stands_out,
    text_units_in_other_languages,
    weigh_words,
)

# Maximum number of sentences whose vectors are compared with the question.
MAX_EMBEDDED_SENTENCES = 64
# Minimum cosine similarity between the best sentence and the question, and minimum share (0 to 1)
# of the question's words in it, weighted by rarity. With the high similarity, no word is needed.
MIN_SENTENCE_SIMILARITY = 0.3
MIN_WORD_COVERAGE = 0.15
HIGH_SIMILARITY = 0.48
# Weight of the coverage of the question's words in the relevance of a sentence.
COVERAGE_WEIGHT = 0.35
# Weight of the share of the question's words to which a sentence has related words.
RELATED_WEIGHT = 1.0
# Share (0 to 1) of the question's words to which a text unit in another language must have related
# words to be evidence.
MIN_RELATED_SHARE = 0.5
# Added to the score of the first sentence of a document, which often sums the document up.
FIRST_SENTENCE_BONUS = 0.1
# Subtracted from the score of a sentence that cannot be understood alone.
DEPENDENT_SENTENCE_PENALTY = 0.25
OPENING_QUOTATION_MARKS = "\"'“„«‘「『"
PRONOUNS = {
    fold(word) for words in WORD_LISTS["personal_pronouns"].values() for word in words.split()
}


class SubjectSentence(NamedTuple):
    """A sentence and the number of its text unit; `relevance` is its match without its source."""

    text: str
    text_unit: int
    score: float
    relevance: float
    ranked: RankedSentence


@dataclass(frozen=True)
class SubjectMatches:
    """The text units that match the subject of a question, with their scores.

    `question` has the words of the subject only. `rarity` maps their stems to weights, and
    `weights` are those of the words of `related`. `related_share` is the highest share (0 to 1) of
    words with a related word in a text unit in another language.
    """

    question: Question
    text_units: Mapping[int, float]
    rarity: Mapping[str, float]
    related: RelatedWords
    weights: Floats
    related_share: float

    def is_answered_by(self, ranked: Sequence[SubjectSentence], question: Question) -> bool:
        """Return whether sentences are evidence for an answer; `question` has all its words."""
        return bool(ranked) and (
            self.related_share >= MIN_RELATED_SHARE
            or _is_evidence(question, [s.ranked for s in ranked])
            or stands_out(self.question, self.text_units)
        )


def find_subject_matches(question: Question, subject: Sequence[str]) -> SubjectMatches:
    """Find the text units on the subject of a question, also in other languages.

    `subject` has the stems of the words of the subject.
    """
    kept = [w for w in WORD.findall(question.text) if set(subject) & set(content_words(w))]
    asked = replace(question, text=" ".join(kept)) if kept else question
    index, language = question.index, question.language
    rarity = weigh_words(index, asked.content_words)
    words = [word for word in WORD.findall(asked.text.lower()) if stem_word(word) in rarity]
    related = RelatedWords.find(words, language, index.languages - {language.code})
    weights = np.array([rarity[stem_word(word)] for word in words])
    found = relevant_text_units(asked)
    foreign = text_units_in_other_languages(asked, related, weights * related.subject_shares)
    best = max(found.values(), default=1.0)
    for number, share in foreign.items():
        found[number] = max(found.get(number, 0.0), share * best)
    related_share = max(foreign.values(), default=0.0)
    return SubjectMatches(asked, found, rarity, related, weights, related_share)


def rank_subject_sentences(
    subject: SubjectMatches,
    units: Mapping[int, TextUnit],
    scores: Mapping[int, float],
    written: Sequence[tuple[str, int]],
) -> list[SubjectSentence]:
    """Order the sentences of text units and reports by their match with a subject, best first.

    `units` and `scores` are those of the text units of the subject and of the reports; `written`
    are the sentences of the reports, each with its text unit.
    """
    found = subject.text_units
    candidates = split_into_candidates((units[number] for number in found), found)
    candidates = [candidate for candidate in candidates if candidate.prose]
    known = {(candidate.text, candidate.text_unit) for candidate in candidates}
    new = [pair for pair in written if pair not in known]
    candidates += _place_report_sentences(new, units, scores)
    # Squared, so that words all over the corpus count little.
    weights = subject.weights**2
    matches = subject.related.match([c.text for c in candidates]) @ weights
    shares = (matches / (weights.sum() or 1.0)).tolist()
    share_of = dict(zip(((c.text, c.text_unit) for c in candidates), shares, strict=True))
    placed = [
        replace(c, bonus=_bonus_of(c) + share) for c, share in zip(candidates, shares, strict=True)
    ]
    ranked = []
    for sentence in rank_sentences(
        subject.question, placed, rarity=subject.rarity, most=MAX_EMBEDDED_SENTENCES
    ):
        text, number = sentence.candidate.text, sentence.candidate.text_unit
        share = share_of[text, number]
        score = sentence.score + RELATED_WEIGHT * share
        relevance = sentence.similarity + COVERAGE_WEIGHT * sentence.coverage + share
        ranked.append(SubjectSentence(text, number, score, relevance, sentence))
    ranked.sort(key=lambda s: (-s.score, s.text_unit, s.ranked.candidate.start_char))
    return ranked


def _place_report_sentences(
    written: Sequence[tuple[str, int]], units: Mapping[int, TextUnit], scores: Mapping[int, float]
) -> list[Candidate]:
    """Return the sentences of reports at their places in the text units.

    A sentence that a model wrote has no place.
    """
    found = []
    for text, source in dict.fromkeys(written):
        placed = locate_sentence(text, units[source]) or Candidate(text, source, -1, -1)
        found.append(replace(placed, prior=scores[source]))
    return found


def _bonus_of(candidate: Candidate) -> float:
    """Return the bonus of a sentence at the start of a document, less a penalty.

    A sentence that begins with a quotation mark or a pronoun cannot be understood alone.
    """
    first_word = WORD.search(candidate.text)
    is_dependent = candidate.text[0] in OPENING_QUOTATION_MARKS or (
        first_word is not None and fold(first_word.group()) in PRONOUNS
    )
    bonus = FIRST_SENTENCE_BONUS if candidate.start_char == 0 else 0.0
    return bonus - (DEPENDENT_SENTENCE_PENALTY if is_dependent else 0.0)


def _is_evidence(question: Question, ranked: Sequence[RankedSentence]) -> bool:
    """Return whether the best sentences are similar enough to the question for an answer."""
    if is_unreadable(question.index, question.text):
        return any(share_words(question.text, s.candidate.text) for s in ranked)
    compared = [replace(s, similarity=float(s.vector @ question.vector)) for s in ranked]
    is_similar = any(
        s.similarity >= HIGH_SIMILARITY
        or (s.similarity >= MIN_SENTENCE_SIMILARITY and s.coverage >= MIN_WORD_COVERAGE)
        for s in compared
    )
    return is_similar and not is_doubtful(question, compared, question.local.min_similarity)

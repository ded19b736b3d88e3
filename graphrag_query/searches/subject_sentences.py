"""The sentences about the subject of a question: those with its words or with related ones."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from graphrag_nlp.text.languages import expand_pattern, read_lists
from graphrag_nlp.text.normalize import stem_word
from graphrag_nlp.text.standalone import stand_alone
from graphrag_query.answering.extractive import (
    Candidate,
    RankedSentence,
    TextUnit,
    as_one_line,
    is_doubtful,
    is_question,
    rank_sentences,
    split_into_candidates,
)
from graphrag_query.answering.page_parts import LINK, cut_link
from graphrag_query.answering.report_sentences import longest_turns
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import (
    WORD,
    content_words,
    is_unreadable,
    share_words,
    stop_words_of,
)
from graphrag_query.retrieval.related_words import Floats, RelatedWords
from graphrag_query.retrieval.theme_passages import (
    MAX_TEXT_UNITS,
    MIN_SAMPLE,
    relevant_text_units,
    sample_text_units,
    stands_out,
    text_units_in_other_languages,
    weigh_words,
)
from graphrag_query.retrieval.typical_words import find_common_words

if TYPE_CHECKING:
    import numpy.typing as npt

    Vector = npt.NDArray[np.float32]

# Maximum number of sentences whose vectors are compared with the question.
MAX_EMBEDDED_SENTENCES = 160
# Number of the last text units that a search found. If some of them are relevant, others are too.
N_LAST_TEXT_UNITS = 8
# Minimum cosine similarity between the best sentence and the question, and minimum share (0 to 1)
# of the question's words in it, weighted by rarity. With the high similarity, no word is needed.
MIN_SENTENCE_SIMILARITY = 0.3
MIN_WORD_COVERAGE = 0.15
HIGH_SIMILARITY = 0.48
# Weights in the relevance of a sentence, beside its similarity to the question: the share of the
# question's words in the sentence, and the share to which it has related words. Together they are
# limited, because a question may have one word only.
COVERAGE_WEIGHT, RELATED_WEIGHT = 0.2, 0.6
MAX_WORD_RELEVANCE = 0.6
# Weight in the score of a sentence of its similarity to its text unit, whose gist it should say.
CENTRALITY_WEIGHT = 0.3
# Minimum number of words beside those of the question in a sentence that says something.
MIN_NEW_WORDS = 4
# Minimum number of words of a sentence that says something in any case.
N_WORDS_OF_LONG_SENTENCE = 12
# Share (0 to 1) of the question's words to which a text unit in another language must have related
# words to be evidence.
MIN_RELATED_SHARE = 0.5
# Added to the score of the first sentence of a document, which often sums the document up.
FIRST_SENTENCE_BONUS = 0.1
# Subtracted from the score of a sentence that cannot be understood alone, and from that of a short
# one that only refers to a place in the documents, or greets or thanks.
DEPENDENT_SENTENCE_PENALTY = POOR_SENTENCE_PENALTY = 0.25
# Maximum number of words of such a sentence. What parentheses hold does not count.
MAX_WORDS_OF_POOR_SENTENCE = 20
# Maximum number of characters of a sentence that belongs to the procedure of a debate.
MAX_CHARS_OF_PROCEDURE = 140
_PATTERNS = read_lists("data/poor_sentences", Path(__file__).parent)
_POOR = {
    name: "(?i)" + expand_pattern(_PATTERNS, name).replace("\n", "")
    for name in _PATTERNS
    if name.islower()
}
_PROCEDURE = re.compile(_POOR.pop("procedure"))
_IN_PARENTHESES = r"\([^()]*\)"


class SubjectSentence(NamedTuple):
    """A sentence and the number of its text unit.

    `relevance` is how well the sentence and its text unit match the subject. `score` also counts
    how well the sentence stands alone and for its text unit.
    """

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
    words with a related word in a text unit in another language. `last` are the text units with
    the lowest scores, if the search found as many as it may.
    """

    question: Question
    text_units: Mapping[int, float]
    rarity: Mapping[str, float]
    related: RelatedWords
    weights: Floats
    related_share: float
    last: Set[int]

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
    last = set(list(found)[MAX_TEXT_UNITS - N_LAST_TEXT_UNITS :])
    foreign = text_units_in_other_languages(asked, related, weights * related.subject_shares)
    best = max(found.values(), default=1.0)
    for number, share in foreign.items():
        found[number] = max(found.get(number, 0.0), share * best)
    related_share = max(foreign.values(), default=0.0)
    return SubjectMatches(asked, found, rarity, related, weights, related_share, last)


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
    question = subject.question
    candidates, shares = _choose_candidates(subject, units, scores, written)
    added = {
        (candidate.text, candidate.text_unit): (share, bonus)
        for candidate, share, bonus in zip(
            candidates, shares, _bonuses_of(candidates, units), strict=True
        )
    }
    stop_words = stop_words_of(question.language)
    # In a chat, most words are of any chat: "really", "haha", "thing".
    is_chat = 2 * sum(bool(candidate.label) for candidate in candidates) > len(candidates)
    small_words = stop_words | find_common_words(question.index) if is_chat else stop_words
    sentences = rank_sentences(
        question, candidates, rarity=subject.rarity, most=MAX_EMBEDDED_SENTENCES
    )
    if not sentences:
        return []
    table = question.index.open_mapped("text_unit_vectors")
    sources = [sentence.candidate.text_unit for sentence in sentences]
    own = np.array([sentence.vector for sentence in sentences]).reshape(len(sources), -1)
    of_sources = table.matrix("vector", sources)
    similarities = ((own + of_sources) @ _distinct_vector(question)).tolist()
    centralities = np.einsum("ij,ij->i", own, of_sources).tolist()
    ranked = []
    for sentence, similarity, centrality in zip(sentences, similarities, centralities, strict=True):
        text, number = sentence.candidate.text, sentence.candidate.text_unit
        share, bonus = added[text, number]
        by_words = COVERAGE_WEIGHT * sentence.coverage + RELATED_WEIGHT * share
        relevance = similarity + min(by_words, MAX_WORD_RELEVANCE)
        if sentence.candidate.label or text.count(" ") < N_WORDS_OF_LONG_SENTENCE:
            words = {word for word in WORD.findall(text.lower()) if len(word) > 2}
            words -= small_words if sentence.candidate.label else stop_words
            new_words = set(map(stem_word, words)) - subject.rarity.keys()
            if not new_words:
                continue
            relevance *= min(1.0, len(new_words) / MIN_NEW_WORDS)
        score = relevance + CENTRALITY_WEIGHT * centrality + bonus
        ranked.append(SubjectSentence(text, number, score, relevance, sentence))
    ranked.sort(key=lambda s: (-s.score, s.text_unit, s.ranked.candidate.start_char))
    return ranked


def _choose_candidates(
    subject: SubjectMatches,
    units: Mapping[int, TextUnit],
    scores: Mapping[int, float],
    written: Sequence[tuple[str, int]],
) -> tuple[list[Candidate], list[float]]:
    """Return the likeliest sentences, and their shares of the words of the subject."""
    found = subject.text_units
    candidates = split_into_candidates((units[number] for number in found), found)
    known = {(candidate.text, candidate.text_unit) for candidate in candidates}
    placed = _place_report_sentences([p for p in written if p not in known], units, scores)
    # A report may quote a turn of a chat with its speaker, so that only the ends are equal.
    ends = {(candidate.text_unit, candidate.end_char) for candidate in candidates}
    candidates += [c for c in placed if (c.text_unit, c.end_char) not in ends]
    candidates = keep_statements(candidates)
    # Squared, so that words all over the corpus count little.
    weights = subject.weights**2
    matches = subject.related.match([c.text for c in candidates]) @ weights
    shares = matches / (weights.sum() or 1.0)
    priors = np.array([candidate.prior for candidate in candidates])
    likely = np.sort(np.argsort(-(priors + shares), kind="stable")[:MAX_EMBEDDED_SENTENCES])
    return [candidates[at] for at in likely], shares[likely].tolist()


def _distinct_vector(question: Question) -> "Vector":
    """Return the vector of a question without the part that all texts of the corpus share.

    Where all texts are about expeditions, the similarity to "expeditions" tells nothing.
    """
    sample = sample_text_units(question.index)
    if len(sample) < MIN_SAMPLE:
        return question.vector
    mean = question.index.open_mapped("text_unit_vectors").matrix("vector", sample).mean(axis=0)
    length = float(mean @ mean) or 1.0
    distinct: Vector = question.vector - float(question.vector @ mean) / length * mean
    return distinct


def _place_report_sentences(
    written: Sequence[tuple[str, int]], units: Mapping[int, TextUnit], scores: Mapping[int, float]
) -> list[Candidate]:
    """Return the sentences of reports at their places in the text units.

    A sentence that a model wrote has no place.
    """
    distinct = list(dict.fromkeys(written))
    return [
        replace(placed or Candidate(text, source, -1, -1), prior=scores[source])
        for (text, source), placed in zip(distinct, longest_turns(distinct, units), strict=True)
    ]


def _bonuses_of(candidates: Sequence[Candidate], units: Mapping[int, TextUnit]) -> list[float]:
    """Return for each sentence its bonus at the start of a document, less a penalty.

    The penalties are for a sentence that cannot be understood alone, and for one that says nothing
    on a subject. A statement with a label, such as its speaker, can be understood.
    """
    languages = [units[candidate.text_unit]["language"] for candidate in candidates]
    texts = pl.Series([candidate.text for candidate in candidates], dtype=pl.String)
    stands, poor = stand_alone(texts, pl.Series(languages, dtype=pl.String)), are_poor(texts)
    return [
        (FIRST_SENTENCE_BONUS if candidate.start_char == 0 else 0.0)
        - (0.0 if is_clear or candidate.label else DEPENDENT_SENTENCE_PENALTY)
        - (POOR_SENTENCE_PENALTY if is_poor else 0.0)
        for candidate, is_clear, is_poor in zip(candidates, stands, poor, strict=True)
    ]


def are_poor(texts: pl.Series) -> pl.Series:
    """Return for each sentence whether it only refers to a place in the documents, or greets.

    A sentence in parentheses is poor, too: it may be a note on what an audience does.
    """
    plain = texts.str.replace_all(_IN_PARENTHESES, "")
    is_short = plain.str.count_matches(" ", literal=True) < MAX_WORDS_OF_POOR_SENTENCE
    is_poor = plain.str.contains(r"^\W*$")
    for kind in ("references", "small_talk", "thanks"):
        is_poor |= plain.str.contains(_POOR[kind])
    return is_short & is_poor


def are_procedure(texts: Iterable[str]) -> list[bool]:
    """Return for each sentence whether it only opens, closes or puts to the vote a debate."""
    # Long sentences say something, and to search them takes time.
    return [
        len(text) <= MAX_CHARS_OF_PROCEDURE and bool(_PROCEDURE.match(text) or LINK.match(text))
        for text in texts
    ]


def have_unnamed_speaker(texts: pl.Series) -> pl.Series:
    """Return for each sentence whether it says what somebody said who is not named in it."""
    return texts.str.contains(_POOR["unnamed_speaker"])


def keep_statements(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the prose without questions, heads of quoted letters and links to articles.

    In a chat, questions need no question mark.
    """
    prose = [_without_link(c) for c in candidates if c.prose and not is_question(c.text)]
    # Only texts with a label or one of these marks can match, which saves time.
    may_match = [bool(c.label) or ":" in c.text or c.text[0] in "-[" for c in prose]
    texts = pl.Series(
        [as_one_line(c.text) if may else "" for c, may in zip(prose, may_match, strict=True)],
        dtype=pl.String,
    )
    has_label = pl.Series([bool(c.label) for c in prose], dtype=pl.Boolean)
    is_none = texts.str.contains(_POOR["letters"])
    is_none |= pl.Series(are_procedure(c.text for c in prose), dtype=pl.Boolean)
    is_none |= has_label & texts.str.contains(_POOR["unmarked_questions"])
    return [candidate for candidate, left_out in zip(prose, is_none, strict=True) if not left_out]


def _without_link(candidate: Candidate) -> Candidate:
    text = cut_link(candidate.text)
    if text == candidate.text:
        return candidate
    # The sentence of a report that a model wrote has no place.
    cut = len(candidate.text) - len(text) if candidate.start_char >= 0 else 0
    return replace(candidate, text=text, start_char=candidate.start_char + cut)


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

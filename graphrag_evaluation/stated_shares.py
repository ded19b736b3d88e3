"""Coverage of statements by texts: a lexical test that needs no model."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from graphrag_nlp.text.languages import language_of
from graphrag_nlp.text.sentences import split_sentences
from graphrag_query.question.question_words import content_words, language_in

Matrix = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

# A statement is covered from this score on. Of statements on similar subjects that a text of 12,000
# tokens does not state, one in twenty reaches this score by chance.
THRESHOLD = 0.19
# Weight of a word that stands near the window, where a pronoun may refer to it.
NEAR_WEIGHT = 0.5
# Number of sentences on either side of a window that are near it.
N_NEAR_SENTENCES = 3
# Maximum number of sentences of a window.
MAX_WINDOW_SENTENCES = 3
# Penalty if all numbers of the statement are missing in the window and near it.
MISSING_NUMBERS_PENALTY = 0.15
# Information (sum of the weights of its words) at which a statement proves half as much as its
# share of words says: a text has all words of a short and general statement by chance.
HALF_INFORMATION = 60.0
# Number of words of a stretch of text, in which a repeated word counts once.
STRETCH_WORDS = 100


class WordWeights:
    """The information of words: the logarithm of their inverse frequency in stretches of texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._counts: Counter[str] = Counter()
        self._n_stretches = 0
        for text in texts:
            words = text.split()
            language = language_in(text[:1_000])
            for start in range(0, len(words), STRETCH_WORDS):
                stretch = " ".join(words[start : start + STRETCH_WORDS])
                self._counts.update(content_words(stretch, language))
                self._n_stretches += 1

    def weight(self, word: str) -> float:
        """Return the weight of a stem; an unknown stem counts as one that occurs once."""
        return math.log((self._n_stretches + 2) / (self._counts.get(word, 1) + 0.5))


def statement_scores(
    statements: Sequence[str], texts: Sequence[str], weights: WordWeights
) -> list[float]:
    """Return for each statement how surely the texts state it.

    A score of `THRESHOLD` or more means that the texts cover the statement. The score is that of
    `stated_shares`, lowered for statements that say little: a long text has their words by
    chance. Compare systems under the same budget of tokens only.
    """
    shares = stated_shares(statements, texts, weights)
    language = language_in(" ".join(statements))
    total = [
        sum(map(weights.weight, content_words(statement, language))) for statement in statements
    ]
    return [
        share * said / (said + HALF_INFORMATION) for share, said in zip(shares, total, strict=True)
    ]


def stated_shares(
    statements: Sequence[str], texts: Sequence[str], weights: WordWeights
) -> list[float]:
    """Return how much of each statement the best window of sentences in the texts states.

    The share is that of the statement's words, by stem and weighted by their information, in a
    window of one to three sentences; see the constants of this module. The test is lexical:
    negations, roles and paraphrases without shared words are not seen.
    """
    language = language_in(" ".join(statements))
    stems = [frozenset(content_words(statement, language)) for statement in statements]
    vocabulary = sorted(frozenset().union(*stems))
    best = np.zeros(len(statements))
    if not vocabulary:
        return best.tolist()
    has_word = np.array([[word in found for word in vocabulary] for found in stems], dtype=float)
    is_number = np.array([word[0].isdigit() for word in vocabulary], dtype=float)
    shares = _normalize_rows(has_word * [weights.weight(word) for word in vocabulary])
    numbers = _normalize_rows(has_word * is_number)
    for text in texts:
        sentences = _sentence_words(text, language.code)
        if any(not words.isdisjoint(vocabulary) for words in sentences):
            held = np.array([[word in words for words in sentences] for word in vocabulary])
            best = np.maximum(best, _window_scores(shares, numbers, held))
    return best.tolist()


def _normalize_rows(rows: Matrix) -> Matrix:
    """Divide each row by its sum; a row without values stays zero."""
    return rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-9)  # type: ignore[no-any-return]


def _window_scores(shares: Matrix, numbers: Matrix, held: Flags) -> Matrix:
    """Return the best window's score for each statement; `held`: words (rows) of each sentence."""
    near = _any_within(held, N_NEAR_SENTENCES, N_NEAR_SENTENCES)
    best = np.zeros(len(shares))
    for size in range(1, min(MAX_WINDOW_SENTENCES, held.shape[1]) + 1):
        # Column i is the window that begins at sentence i; near words are around this sentence.
        window = _any_within(held, 0, size - 1)
        around = window | near
        inside, about = shares @ window, shares @ around
        missing = numbers.sum(axis=1, keepdims=True) - numbers @ around
        scores = inside + NEAR_WEIGHT * (about - inside) - MISSING_NUMBERS_PENALTY * missing
        best = np.maximum(best, scores.max(axis=1))
    return best


def _any_within(held: Flags, n_before: int, n_after: int) -> Flags:
    """Return for each sentence which words it or its neighbours have."""
    found = held.copy()
    for step in range(1, n_before + 1):
        found[:, step:] |= held[:, :-step]
    for step in range(1, n_after + 1):
        found[:, :-step] |= held[:, step:]
    return found


@lru_cache(maxsize=20_000)
def _sentence_words(text: str, language: str) -> tuple[frozenset[str], ...]:
    """Return the stems of the content words of each sentence."""
    return tuple(
        frozenset(content_words(text[sentence.start : sentence.end], language_of(language)))
        for sentence in split_sentences(text)
    )

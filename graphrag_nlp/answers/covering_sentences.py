"""Sentences that together cover what passages say, within a number of words, by theme.

The choice is greedy facility location [1]_: each sentence of the pool is covered as well as its
most similar chosen sentence is similar to it, and counts by its score.

References
----------
.. [1] Lin & Bilmes, A Class of Submodular Functions for Document Summarization, ACL (2011).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphrag_nlp.text.normalize import count_words
from graphrag_nlp.text.sentences import split_sentences

Floats = npt.NDArray[np.floating]

# Numbers of words of a sentence that can be chosen.
MIN_WORDS, MAX_WORDS = 6, 30
# Weight of the similarity of a sentence's passage beside that of the sentence.
PASSAGE_WEIGHT = 0.3
# Maximum number of sentences in the pool: those with the best scores.
MAX_POOL = 150
# The level of the themes is the coarsest one on which no theme has more than this share (0 to 1)
# of the sentences.
MAX_SHARE_OF_THEME = 0.4


@dataclass(frozen=True)
class PassageSentence:
    """A sentence on one line, the number of its passage, and its offsets in the passage."""

    text: str
    passage: int
    start: int
    end: int

    @property
    def n_words(self) -> int:
        """The number of words, which the budget of an answer counts."""
        return count_words(self.text)


def split_passages(passages: Iterable[tuple[int, str]]) -> list[PassageSentence]:
    """Split passages, given as (number, text), into the sentences that an answer may quote.

    Left out are fragments, questions, sentences outside `MIN_WORDS` and `MAX_WORDS`, and
    repetitions.
    """
    found: dict[str, PassageSentence] = {}
    for number, text in passages:
        for sentence in split_sentences(text):
            said = " ".join(text[sentence.start : sentence.end].split())
            is_fitting = MIN_WORDS <= count_words(said) <= MAX_WORDS
            if sentence.prose and is_fitting and said[-1] not in "?？":
                found.setdefault(said, PassageSentence(said, number, sentence.start, sentence.end))
    return list(found.values())


def remove_common_part(vectors: Floats, common: Floats) -> Floats:
    """Return vectors at length 1 without their part in the direction of another vector.

    `common` is the mean of a corpus: where all texts are about expeditions, the similarity to
    "expeditions" tells nothing.
    """
    parts = np.outer(vectors @ common, common / (float(common @ common) or 1.0))
    rest = vectors - parts
    lengths = np.linalg.norm(rest, axis=1, keepdims=True)
    found: Floats = rest / np.where(lengths > 0, lengths, 1.0)
    return found


def score_sentences(sentences: Floats, passages: Floats, targets: Floats) -> Floats:
    """Return the similarity of sentences to a target, and a part of that of their passages.

    There is one row per sentence; the target is the vector of a question, or one per sentence.
    """
    scores: Floats = ((sentences + PASSAGE_WEIGHT * passages) * targets).sum(axis=1)
    return scores


def choose_sentences(
    vectors: Floats,
    scores: Floats,
    n_words: Sequence[int],
    max_words: int,
    themes: Sequence[Any] | None = None,
) -> list[int]:
    """Choose sentences that cover the best ones, of at most `max_words` words together.

    `vectors` has one row of length 1 per sentence, and `n_words` its words. With `themes`, one
    per sentence, each theme has a first sentence before any has a second one. Returns the rows in
    the order of the choice.
    """
    pool = np.argsort(-scores, kind="stable")[:MAX_POOL]
    if themes is not None:
        # The best sentences of each theme belong to the pool, however low their scores.
        firsts: dict[Any, list[int]] = {}
        for row in np.argsort(-scores, kind="stable").tolist():
            firsts.setdefault(themes[row], []).append(row)
        most = MAX_POOL // (len(firsts) or 1) or 1
        pool = np.array([row for rows in firsts.values() for row in rows[:most]])
    if not len(pool):
        return []
    similarity = np.maximum(vectors[pool] @ vectors[pool].T, 0)
    weights = scores[pool] - scores[pool].min() + 1e-6
    costs, keys = np.array(n_words)[pool], [themes[row] if themes else None for row in pool]
    covered, free, told = np.zeros(len(pool)), np.ones(len(pool), bool), set[Any]()
    chosen, left = list[int](), max_words
    while (fits := free & (costs <= left)).any():
        is_new = fits & np.array([key not in told for key in keys])
        gains = np.einsum("ij,j->i", np.maximum(similarity - covered, 0), weights)
        best = int(np.where(is_new if themes and is_new.any() else fits, gains, -1.0).argmax())
        chosen.append(int(pool[best]))
        left -= int(costs[best])
        free[best] = False
        told.add(keys[best])
        covered = np.maximum(covered, similarity[best])
    return chosen


def group_by_theme(
    paths: Sequence[Sequence[int]], level: int | None = None
) -> tuple[dict[int | None, list[int]], int]:
    """Group rows by community, the group with the first row first; return the level, too.

    `paths` has the communities of each row, that of level 0 first. The level is `level`, or the
    coarsest on which no theme has more than `MAX_SHARE_OF_THEME` of the rows. Rows without a
    community come last, under None.
    """
    deepest = max(max(map(len, paths), default=1) - 1, 0)
    levels = range(deepest + 1) if level is None else [min(level, deepest)]
    groups: dict[int | None, list[int]] = {}
    for level in levels:
        groups = {}
        for row, path in enumerate(paths):
            groups.setdefault(path[min(level, len(path) - 1)] if path else None, []).append(row)
        if max(map(len, groups.values()), default=0) <= MAX_SHARE_OF_THEME * len(paths):
            break
    if None in groups:
        groups[None] = groups.pop(None)
    return groups, level or 0

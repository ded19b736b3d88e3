"""Find the text units that are relevant to a question, and group them by community.

A community of the chosen level is a theme of the corpus. The index knows the text units of the
themes that it made. Below them, and without them, a text unit belongs to the community of most of
the entities that it names; a rare entity counts more than a frequent one.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_query.answering.extractive import word_weight
from graphrag_query.question.question import Question
from graphrag_query.retrieval.related_words import Floats, RelatedWords
from graphrag_query.retrieval.stem_matching import match_stems
from graphrag_query.retrieval.text_unit_ranking import (
    SIMILARITY_WEIGHT,
    rarity_of,
    start_search,
)
from graphrag_query.store.index_store import IndexStore

# Maximum number of text units that are read for one question.
MAX_TEXT_UNITS = 64
# Maximum number of text units from which shares of the whole corpus are estimated.
MAX_SAMPLED_TEXT_UNITS = 512
# Maximum number of text units in other languages that are compared with a question.
MAX_COMPARED_TEXT_UNITS = 8_192
# Minimum number of text units for an estimate of their usual similarity to a question.
MIN_SAMPLE = 50
# Number of standard deviations by which the best text unit of a question stands out.
MIN_DEVIATIONS = 1.6
# Minimum score of a relevant text unit, as a share (0 to 1) of the n-th best score: one text unit
# on a thing that the question names must not outdo all others.
MIN_SHARE_OF_BEST_SCORE, NTH_BEST = 0.35, 3
# The level of the themes is the coarsest one on which no theme has more than this share (0 to 1)
# of the relevant text units.
MAX_SHARE_OF_THEME = 0.4
# Weight of an entity that a text unit describes. An entity that it only names has the weight 1.
WEIGHT_OF_SUBJECT = 2.0


@dataclass(frozen=True)
class Theme:
    """A community with its relevant text units, the best first.

    `community` is None for text units whose entities are in no community. `weight` is the sum of
    the text units' scores.
    """

    community: int | None
    text_units: tuple[int, ...]
    weight: float


def relevant_text_units(question: Question) -> dict[int, float]:
    """Map the text units that match a question best to their scores, the best first."""
    ranked = sorted(start_search(question)(), key=lambda unit: (-unit.own_score, unit.number))
    best = ranked[:MAX_TEXT_UNITS]
    scores = [unit.own_score for unit in best[:NTH_BEST]]
    min_score = MIN_SHARE_OF_BEST_SCORE * min(scores, default=0.0)
    return {unit.number: unit.own_score for unit in best if unit.own_score >= min_score}


def text_units_in_other_languages(
    question: Question, related: RelatedWords, weights: Floats
) -> dict[int, float]:
    """Map text units in other languages to the share of the question's words that they answer.

    A word is answered by a related word. The shares (0 to 1) are weighted by `weights`, one for
    each word. Of a large corpus, only every n-th text unit is read. The embedding model may read
    one language only, so words decide.
    """
    index = question.index
    if not any(related.patterns):
        return {}
    table = index.open_mapped("text_unit_rows")
    numbers = np.array(sample_text_units(index, MAX_COMPARED_TEXT_UNITS), np.int64)
    documents = table.rows(numbers.tolist(), "document")["document"]
    languages = index.open_mapped("document_rows").rows(documents.to_list(), "language")["language"]
    numbers = numbers[(languages != question.language.code).to_numpy()]
    matches = related.match_other_languages(table.rows(numbers.tolist(), "text")["text"])
    shares = matches @ weights / (weights.sum() or 1.0)
    best = np.lexsort((numbers, -shares))[:MAX_TEXT_UNITS]
    return {int(numbers[at]): float(shares[at]) for at in best if shares[at] > 0}


def score_text_units(
    question: Question, known: Mapping[int, float], more: Iterable[int]
) -> dict[int, float]:
    """Add the scores of more text units, from their similarity to the question, to `known`."""
    new = sorted(set(more) - known.keys())
    if not new:
        return dict(known)
    vectors = question.index.open_mapped("text_unit_vectors").matrix("vector", new)
    similarities = SIMILARITY_WEIGHT * (vectors @ question.vector)
    return {**known, **dict(zip(new, similarities.tolist(), strict=True))}


def group_by_theme(
    index: IndexStore, scores: Mapping[int, float], level: int | None = None
) -> tuple[list[Theme], int]:
    """Group text units by community, the theme with the highest scores first.

    Returns the themes and their level: `level`, or else the coarsest level that spreads the text
    units over several themes.
    """
    paths = community_paths(index, scores)
    deepest = max(map(len, paths.values()), default=1) - 1
    levels = range(deepest + 1) if level is None else [min(level, deepest)]
    themes: list[Theme] = []
    for level in levels:
        themes = _group_at_level(scores, paths, level)
        if max((len(t.text_units) for t in themes), default=0) <= MAX_SHARE_OF_THEME * len(scores):
            break
    return themes, level or 0


def _group_at_level(
    scores: Mapping[int, float], paths: Mapping[int, Sequence[int]], level: int
) -> list[Theme]:
    groups: dict[int | None, list[int]] = {}
    for number in scores:
        path = paths[number]
        groups.setdefault(path[min(level, len(path) - 1)] if path else None, []).append(number)
    themes = [
        Theme(community, tuple(numbers), sum(scores[n] for n in numbers))
        for community, numbers in groups.items()
    ]
    return sorted(themes, key=lambda theme: (-theme.weight, theme.text_units))


def weigh_words(index: IndexStore, words: Sequence[str]) -> dict[str, float]:
    """Map each stem to its weight: the fewer text units contain it, the higher.

    Of a large corpus, only every n-th text unit is read.
    """
    sample = sample_text_units(index)
    table = index.open_mapped("text_unit_rows")
    held = match_stems(table.rows(sample, "text")["text"], words).sum(axis=0).tolist()
    return {word: word_weight(n, len(sample)) for word, n in zip(words, held, strict=True)}


def stands_out(question: Question, text_units: Iterable[int]) -> bool:
    """Return whether the best text unit is much more similar to a question than chance allows.

    The best of n similarities that are normally distributed is expected at the square root of
    2 ln n standard deviations above their mean. Mean and deviation are those of a sample.
    """
    index = question.index
    vectors = index.open_mapped("text_unit_vectors")
    sample, found = sample_text_units(index), sorted(text_units)
    if len(sample) < MIN_SAMPLE or not found:
        return False
    usual = vectors.matrix("vector", sample) @ question.vector
    best = float((vectors.matrix("vector", found) @ question.vector).max())
    expected = math.sqrt(2 * math.log(index.links.n_text_units))
    return best >= float(usual.mean() + (expected + MIN_DEVIATIONS) * usual.std())


def sample_text_units(index: IndexStore, most: int = MAX_SAMPLED_TEXT_UNITS) -> list[int]:
    """Return every n-th text unit that the filters keep, at most `most`."""
    n_text_units = index.links.n_text_units
    numbers = range(0, n_text_units, -(-n_text_units // most) or 1)
    kept = index.row_flags("text_units")
    return list(numbers) if kept is None else [number for number in numbers if kept[number]]


def community_paths(
    index: IndexStore, text_units: Iterable[int], n_levels: int | None = None
) -> dict[int, list[int]]:
    """Map each text unit to its communities, the community of level 0 first.

    The list ends with a community without children, or after `n_levels`. It is empty if the text
    unit has no theme, and no entity of it is in a community.
    """
    numbers = list(text_units)
    if not index.has_table("themes_of_text_units"):
        paths = {number: list[int]() for number in numbers}
    else:
        paths = dict(zip(numbers, index.links.themes_of(numbers), strict=True))
    if n_levels is not None:
        paths = {number: path[:n_levels] for number, path in paths.items()}
    open_paths = [n for n, path in paths.items() if n_levels is None or len(path) < n_levels]
    for number, votes in _collect_votes(index, open_paths).items():
        paths[number] = _elect_path(votes, paths[number])[:n_levels]
    return paths


def _collect_votes(
    index: IndexStore, text_units: Iterable[int]
) -> dict[int, list[tuple[Sequence[int], float]]]:
    """Map each text unit to the communities of its entities, each list with its weight."""
    named = {number: index.links.entities_of(number) for number in text_units}
    entities = np.unique(np.concatenate([np.zeros(0, np.int32), *(n for n, _ in named.values())]))
    counts = index.links.n_text_units_of(entities)
    n_text_units = index.links.n_text_units
    weight_of = {
        entity: 0.1 + rarity_of(max(count, 1), n_text_units)
        for entity, count in zip(entities.tolist(), counts.tolist(), strict=True)
    }
    # Read the rows of all entities at once, which is faster than entity by entity.
    table = index.open_mapped("communities_of_entities")
    communities = table.slice("community", 0, len(table))
    bounds = zip(*table.bounds("entity", entities), strict=True)
    path_of = {
        entity: communities[first:stop].tolist()
        for entity, (first, stop) in zip(weight_of, bounds, strict=True)
    }
    return {
        number: [
            (path_of[entity], weight_of[entity] * (WEIGHT_OF_SUBJECT if about else 1.0))
            for entity, about in zip(numbers.tolist(), is_subject.tolist(), strict=True)
        ]
        for number, (numbers, is_subject) in named.items()
    }


def _elect_path(votes: Sequence[tuple[Sequence[int], float]], start: Sequence[int]) -> list[int]:
    """Choose the community with the most votes at each level, below the communities in `start`."""
    path = list(start)
    while True:
        counted: dict[int, float] = defaultdict(float)
        for communities, weight in votes:
            if len(communities) > len(path) and list(communities[: len(path)]) == path:
                counted[communities[len(path)]] += weight
        if not counted:
            return path
        path.append(max(counted, key=lambda community: (counted[community], -community)))

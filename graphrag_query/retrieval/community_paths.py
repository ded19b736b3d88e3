"""The communities of text units, from the coarsest to the finest.

The index knows the text units of the themes that it made. Below them, and without them, a text unit
belongs to the community of most of the entities that it names; a rare entity counts more than a
frequent one.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from graphrag_query.retrieval.text_unit_ranking import rarity_of
from graphrag_query.store.index_store import IndexStore

# Maximum number of text units from which shares of the whole corpus are estimated.
MAX_SAMPLED_TEXT_UNITS = 512
# Weight of an entity that a text unit describes. An entity that it only names has the weight 1.
WEIGHT_OF_SUBJECT = 2.0


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
    below = [vote for vote in votes if list(vote[0][: len(path)]) == path]
    while below := [vote for vote in below if len(vote[0]) > len(path)]:
        counted: dict[int, float] = defaultdict(float)
        for communities, weight in below:
            counted[communities[len(path)]] += weight
        best = max(counted, key=lambda community: (counted[community], -community))
        below = [vote for vote in below if vote[0][len(path)] == best]
        path.append(best)
    return path

"""From pairs to groups: each entity joins a centre that it matches itself, never by way of another.

A chain, in which every name is like the next and the last is nothing like the first, is how
thousands of entities become one. Here the most mentioned entity is a centre first, and whatever
it does not match by itself stays out.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

from graphrag_index.resolution.scoring import Pair


def group(
    order: Sequence[int],
    pairs: Iterable[Pair],
    never: Collection[frozenset[int]],
    are_apart: Callable[[int, int], bool],
) -> dict[int, Pair]:
    """Choose for each entity the centre that it joins.

    Parameters
    ----------
    order
        The entities, the most mentioned first: the order in which they become centres.
    pairs
        Those that are sure enough to be merged.
    never
        Pairs of which no group may hold both.
    are_apart
        Whether two members of one group contradict each other.

    Returns
    -------
    joined
        The pair by which each entity joins its centre; centres and others are no keys.
    """
    matches: dict[int, dict[int, Pair]] = defaultdict(dict)
    for pair in pairs:
        if frozenset((pair.left, pair.right)) not in never:
            matches[pair.left][pair.right] = matches[pair.right][pair.left] = pair
    rank = {number: position for position, number in enumerate(order)}
    joined: dict[int, Pair] = {}
    centres: set[int] = set()
    for centre in order:
        if centre in joined or centre not in matches:
            continue
        members = [centre]
        best = sorted(matches[centre].items(), key=lambda item: (-item[1].score, rank[item[0]]))
        for number, pair in best:
            if number in joined or number in centres:
                continue
            if any(
                frozenset((number, member)) in never or are_apart(number, member)
                for member in members
            ):
                continue
            joined[number] = pair
            members.append(number)
        centres.add(centre)
    return joined

"""The entities to be resolved: one for each name, or for each name that a person has given."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import polars as pl

from graphrag_index.resolution.decisions_file import Decisions
from graphrag_index.resolution.parsed_name import Name, kind_of_type
from graphrag_index.text.normalize import title_key


@dataclass
class Node:
    """One name, with the extracted entities, or parts of them, that bear it."""

    key: str
    title: str
    type: str
    frequency: int  # text units that name it
    # Numbers of the entities and parts; the first stands for all.
    numbers: list[int]
    # Titles that a person has put under this name, and the name of those who bore it.
    decided: list[str] = field(default_factory=list)

    @property
    def name(self) -> Name:
        return Name(self.title, kind_of_type(self.type))


# Number, title, type and number of text units of an entity or part.
Row = tuple[int, str, str, int]
_frequency: Callable[[Row], int] = itemgetter(3)


def make_nodes(rows: Iterable[Row], decisions: Decisions) -> tuple[list[Node], dict[str, int]]:
    """Put together what has one name, or is given one by a person.

    Parameters
    ----------
    rows
        Of each entity and part.

    Returns
    -------
    nodes
        The most mentioned first, then by key.
    places
        The node of each key: of the titles that were found, and of those that a person gives.
    """
    by_key: dict[str, list[Row]] = {}
    for row in sorted(rows):
        by_key.setdefault(title_key(row[1]), []).append(row)
    nodes: dict[str, Node] = {}
    moved: dict[str, list[str]] = {}  # keys by those that a person gives instead
    for key, members in by_key.items():
        title = decisions.titles.get(key)
        target = key if title is None else title_key(title)
        # Of the forms of one name the most frequent, the first of several.
        best = max(members, key=_frequency) if len(members) > 1 else members[0]
        found = Node(key, best[1], best[2], sum(map(_frequency, members)), [best[0]])
        found.numbers += [row[0] for row in members if row is not best]
        node = nodes.get(target)
        if title is not None:
            found.decided = [found.title]
            moved.setdefault(target, []).append(key)
        if node is None:
            nodes[target] = found
        else:
            _join(node, found)
        if title is not None:
            nodes[target].title, nodes[target].key = title, target
    ordered = sorted(nodes.values(), key=lambda node: (-node.frequency, node.key))
    places = {
        key: at for at, node in enumerate(ordered) for key in (*moved.get(node.key, ()), node.key)
    }
    return ordered, places


def _join(node: Node, other: Node) -> None:
    """Put what a person says has one name under the node that is there; the larger leads."""
    if (other.frequency, node.numbers[0]) > (node.frequency, other.numbers[0]):
        node.numbers = [*other.numbers, *node.numbers]
        node.type = other.type or node.type
    else:
        node.numbers = [*node.numbers, *other.numbers]
        node.type = node.type or other.type
    node.frequency += other.frequency
    node.decided += other.decided


def documents_and_links(
    places: Mapping[int, int], mentions: pl.DataFrame, documents: pl.DataFrame, links: pl.LazyFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Say in which documents each node is, and beside which others.

    `places` are the nodes of entities and parts, `mentions` their text units, `documents` the
    document of each text unit. Entities that were split have no links: they are of its parts.
    """
    node_of = pl.DataFrame(
        {"number": list(places), "node": list(places.values())},
        schema={"number": pl.Int64, "node": pl.Int64},
    )
    named = (
        mentions.join(node_of, left_on="entity", right_on="number")
        .join(documents, on="text_unit")
        .select(entity="node", document="document")
        .unique()
    )
    ends = links.select("source", "target").unique().collect()
    pairs = ends.join(node_of, left_on="source", right_on="number").join(
        node_of, left_on="target", right_on="number", suffix="_right"
    )
    one = pairs.select(entity="node", neighbour="node_right")
    other = pairs.select(entity="node_right", neighbour="node")
    both = pl.concat([one, other]).filter(pl.col("entity") != pl.col("neighbour")).unique()
    return named, both


def never_pairs(decisions: Decisions, places: Mapping[str, int]) -> Collection[frozenset[int]]:
    """Return the pairs of nodes that a person keeps apart."""
    return {
        frozenset((places[one], places[other]))
        for one, other in decisions.never_pairs()
        if one in places and other in places and places[one] != places[other]
    }


def unknown_names(decisions: Decisions, found: Collection[str]) -> list[tuple[str, str]]:
    """Return what a person names that no document does: name and section.

    The new titles are not among them.
    """
    new = {title_key(title) for title in decisions.titles.values()}
    return [
        (name, section)
        for key, (name, section) in decisions.named.items()
        if key not in found and key not in new
    ]


def titles_of(nodes: Sequence[Node], joined: Mapping[int, int]) -> list[str]:
    """Return the title that each node ends with: that of its centre."""
    return [nodes[joined.get(at, at)].title for at in range(len(nodes))]

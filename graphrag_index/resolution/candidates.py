"""The entities to resolve: one per name, after the decisions of a person."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import polars as pl

from graphrag_index.resolution.decisions_file import Decisions
from graphrag_index.resolution.parsed_name import Name, kind_of_type
from graphrag_index.resolution.splitting import Piece, split_entities, units_of_entities
from graphrag_index.text.normalize import title_key


@dataclass
class Node:
    """One name with its extracted entities, or parts of them."""

    key: str
    title: str
    type: str
    frequency: int  # text units that name it
    # Numbers of the entities and parts; the first represents the node.
    numbers: list[int]
    # Titles that a person has put under this name, and the name of those who bore it.
    decided: list[str] = field(default_factory=list)

    @property
    def name(self) -> Name:
        return Name(self.title, kind_of_type(self.type))


# Number, title, type and number of text units of an entity or part.
Row = tuple[int, str, str, int]
_frequency: Callable[[Row], int] = itemgetter(3)


@dataclass(frozen=True)
class Found:
    """The extracted entities, with the parts of names that a person has split.

    `mentions` has `entity` and `text_unit`, each pair once, by the numbers of parts where there
    are some; `documents` has the `document` of each `text_unit`.
    """

    numbers: Sequence[int]
    titles: Sequence[str]
    types: Sequence[str]
    mentions: pl.DataFrame
    documents: pl.DataFrame
    pieces: Sequence[Piece]

    @classmethod
    def read(
        cls,
        entities: pl.LazyFrame,
        extracted_mentions: pl.LazyFrame,
        base_text_units: pl.LazyFrame,
        documents: pl.LazyFrame | None,
        decisions: Decisions,
    ) -> "Found":
        told = entities.select("human_readable_id", "title", "type").collect()
        number = pl.col("entity", "text_unit").cast(pl.Int64)
        mentions = extracted_mentions.select(number).unique().collect().sort("entity", "text_unit")
        units = base_text_units.select(
            pl.col("human_readable_id").cast(pl.Int64).alias("text_unit"),
            pl.col("document_id").rank("dense").cast(pl.Int64).alias("document"),
        ).collect()
        pieces: list[Piece] = []
        wanted = [row for row in told.iter_rows() if title_key(row[1]) in decisions.split]
        if wanted:
            numbers = [row[0] for row in wanted]
            full = entities.select("human_readable_id", "text_units", "types").collect()
            of = units_of_entities(numbers, full, mentions, base_text_units, documents)
            first = max(told["human_readable_id"].to_list()) + 1
            pieces = split_entities(wanted, of, decisions.split, first)
            moved = {
                (piece.entity, u.number): piece.number for piece in pieces for u in piece.units
            }
            mentions = mentions.with_columns(
                entity=pl.Series(
                    (
                        moved.get((e, u), e)
                        for e, u in mentions.select("entity", "text_unit").rows()
                    ),
                    dtype=pl.Int64,
                )
            )
        return cls(
            told["human_readable_id"].to_list(),
            told["title"].to_list(),
            told["type"].to_list(),
            mentions,
            units,
            pieces,
        )

    def rows(self) -> Iterator[tuple[int, str, str, int]]:
        """Yield number, title, type and number of text units of each entity and part."""
        counted = self.mentions.group_by("entity").len()
        counts = dict(zip(counted["entity"], counted["len"], strict=True))
        divided = {piece.entity for piece in self.pieces}
        for number, title, kind in zip(self.numbers, self.titles, self.types, strict=True):
            if number not in divided:
                yield number, title, kind, counts.get(number, 0)
        for piece in self.pieces:
            yield piece.number, piece.title, piece.type, counts.get(piece.number, 0)

    def origin(self, number: int) -> int:
        """Return the extracted entity of a part, or the entity itself."""
        return next((p.entity for p in self.pieces if p.number == number), number)

    def places(self, nodes: Sequence[Node]) -> dict[int, int]:
        """Return the node of each entity and part."""
        return {number: at for at, node in enumerate(nodes) for number in node.numbers}


def make_nodes(rows: Iterable[Row], decisions: Decisions) -> tuple[list[Node], dict[str, int]]:
    """Group entities by name, or by the title that a person gave them.

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
    """Merge a node into another; the more frequent one leads."""
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
    """Return the documents of each node, and its neighbours.

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
    """Return the names in the decisions that no document has, with their section.

    The new titles are not among them.
    """
    new = {title_key(title) for title in decisions.titles.values()}
    return [
        (name, section)
        for key, (name, section) in decisions.named.items()
        if key not in found and key not in new
    ]

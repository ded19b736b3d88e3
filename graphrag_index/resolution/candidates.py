"""The entities to resolve: one per name, after the decisions of a person.

A person may give names one title, or split a name that stands for several things by text units.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import polars as pl

from graphrag_index.resolution.decisions_file import Decisions, Part
from graphrag_index.resolution.parsed_name import Name, kind_of_type
from graphrag_index.text.normalize import title_key


@dataclass(frozen=True)
class Unit:
    """A text unit with the marks by which parts are distinguished."""

    number: int
    id: str
    document_id: str
    title: str  # of the document
    path: str
    start_char: int
    end_char: int
    type: str  # that the reply about it gives the entity


@dataclass(frozen=True)
class Piece:
    """One part of a split entity, with its own number and text units."""

    entity: int
    number: int
    title: str
    type: str
    units: tuple[Unit, ...]


def split_entities(
    entities: Sequence[tuple[int, str, str]],
    units_of: Mapping[int, Sequence[Unit]],
    split: Mapping[str, tuple[Part, ...]],
    first_number: int,
) -> list[Piece]:
    """Split entities into the parts of their names.

    Parameters
    ----------
    entities
        Number, title and type of those whose titles are split, in order.
    first_number
        That of the first part; they are numbered in order of entity, then of first mention.

    Returns
    -------
    pieces
        Parts that some text unit means. What none of them is keeps the name.
    """
    pieces: list[Piece] = []
    for number, title, kind in entities:
        parts = split[title_key(title)]
        held: dict[str, list[Unit]] = {}
        for unit in units_of.get(number, ()):
            part = next((part for part in parts if means(part, unit)), None)
            held.setdefault(title if part is None else part.title, []).append(unit)
        for name, units in held.items():
            types = [unit.type for unit in units if unit.type]
            # The type that most text units give, the first of several.
            most = max(types, key=types.count) if types else kind
            pieces.append(Piece(number, first_number + len(pieces), name, most, tuple(units)))
    return pieces


def means(part: Part, unit: Unit) -> bool:
    """Tell whether a text unit means a part; a part without marks is meant in any."""
    documents = {title_key(name) for name in part.documents}
    return (
        (not part.paths or any(_matches(pattern, unit.path) for pattern in part.paths))
        and (
            not documents or bool(documents & {title_key(unit.title), title_key(unit.document_id)})
        )
        and (not part.text_units or unit.id in part.text_units)
        and (not part.types or title_key(unit.type) in map(title_key, part.types))
    )


def _matches(pattern: str, path: str) -> bool:
    """Match a path as load_documents does: * within a name, ** through folders."""
    made = "".join(_pieces(pattern))
    return re.fullmatch(made, path) is not None


def _pieces(pattern: str) -> Iterator[str]:
    for piece in re.split(r"(\*\*/|\*\*|\*|\?)", pattern):
        known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
        yield known.get(piece, re.escape(piece))


def units_of_entities(
    numbers: Sequence[int],
    found: pl.DataFrame,
    mentions: pl.DataFrame,
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame | None,
) -> dict[int, list[Unit]]:
    """Describe the text units of some entities, in their order.

    `found` has the lists `text_units` and `types`, of what a model's reply about each said.
    """
    wanted = mentions.filter(pl.col("entity").is_in(numbers)).sort("entity", "text_unit")
    columns = base_text_units.select(
        pl.col("human_readable_id").cast(pl.Int64).alias("text_unit"),
        pl.col("id").alias("unit_id"),
        *("document_id", "start_char", "end_char"),
    )
    rows = columns.filter(
        pl.col("text_unit").is_in(wanted["text_unit"].unique().implode())
    ).collect()
    if documents is None:
        rows = rows.with_columns(title=pl.lit(""), path=pl.lit(""))
    else:
        named = documents.select(pl.col("id").alias("document_id"), "title", "path").collect()
        rows = rows.join(named, on="document_id", how="left")
    types: dict[tuple[int, int], str] = {}
    told = found.filter(pl.col("human_readable_id").is_in(numbers))
    for number, units, kinds in told.select("human_readable_id", "text_units", "types").rows():
        types.update({(number, unit): kind for unit, kind in zip(units, kinds, strict=True)})
    made: dict[int, list[Unit]] = {}
    joined = wanted.join(rows, on="text_unit", maintain_order="left")
    for row in joined.iter_rows(named=True):
        number, unit = row["entity"], row["text_unit"]
        made.setdefault(number, []).append(
            Unit(
                number=unit,
                id=row["unit_id"],
                document_id=row["document_id"],
                title=row["title"] or "",
                path=row["path"] or "",
                start_char=row["start_char"],
                end_char=row["end_char"],
                type=types.get((number, unit), ""),
            )
        )
    return made


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

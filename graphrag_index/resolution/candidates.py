"""The entities to resolve: one node per name, after the decisions of a person are applied.

A person may merge names under one title. A person may also split a name that several things
have, so that each text unit with the name refers to one of these things.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from graphrag_index.resolution.decisions_file import Decisions, PartConditions
from graphrag_index.resolution.parsed_name import Name, kind_of_type
from graphrag_index.text.normalize import title_key, translate_glob


@dataclass(frozen=True)
class SplitTextUnit:
    """A text unit that mentions a split entity, with the fields that decide on the part."""

    number: int
    id: str
    document_id: str
    title: str  # of the document
    path: str  # of the document
    start_char: int
    end_char: int
    type: str  # type of the entity in the reply about this text unit


@dataclass(frozen=True)
class SplitEntityPart:
    """One part of a split entity, with a new number and the text units that mention it."""

    entity: int
    number: int
    title: str
    type: str
    units: tuple[SplitTextUnit, ...]


def _split_entities(
    entities: Sequence[tuple[int, str, str]],
    units_of: Mapping[int, Sequence[SplitTextUnit]],
    split: Mapping[str, tuple[PartConditions, ...]],
    first: int,
) -> list[SplitEntityPart]:
    """Split entities into parts, each with the text units that refer to the part.

    `entities` are (number, title, type). A text unit that matches no part refers to a part with
    the title of the entity. Parts are numbered from `first` on, by entity and first mention.
    """
    parts: list[SplitEntityPart] = []
    for number, title, kind in entities:
        units_by_title: dict[str, list[SplitTextUnit]] = {}
        for unit in units_of.get(number, ()):
            matching = (part.title for part in split[title_key(title)] if _matches_part(part, unit))
            units_by_title.setdefault(next(matching, title), []).append(unit)
        for name, units in units_by_title.items():
            types = [unit.type for unit in units if unit.type]
            # Take the most frequent type in the text units; of equally frequent ones, the first.
            type_ = max(types, key=types.count, default=kind)
            parts.append(SplitEntityPart(number, first + len(parts), name, type_, tuple(units)))
    return parts


def _matches_part(part: PartConditions, unit: SplitTextUnit) -> bool:
    """Tell whether a text unit refers to a part; a part without conditions matches every unit."""
    documents = set(map(title_key, part.documents))
    return (
        (not part.paths or any(translate_glob(path).fullmatch(unit.path) for path in part.paths))
        and (
            not documents
            or not documents.isdisjoint(map(title_key, (unit.title, unit.document_id)))
        )
        and (not part.text_units or unit.id in part.text_units)
        and (not part.types or title_key(unit.type) in map(title_key, part.types))
    )


def _read_text_units_of_entities(
    numbers: Sequence[int],
    entities: pl.LazyFrame,
    mentions: pl.DataFrame,
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
) -> dict[int, list[SplitTextUnit]]:
    """Return the text units that mention each entity, sorted by the text unit's number."""
    is_wanted = pl.col("entity").is_in(numbers)
    types = (
        entities.select(entity="human_readable_id", text_unit="text_units", type="types")
        .filter(is_wanted)
        .explode("text_unit", "type")
    )
    titles = documents.select("title", "path", document_id="id")
    rows = (
        mentions.lazy()
        .filter(is_wanted)
        .join(base_text_units.rename({"human_readable_id": "text_unit"}), on="text_unit")
        .join(titles, on="document_id", how="left")
        .join(types, on=["entity", "text_unit"], how="left")
        .select(
            *("entity", "text_unit", "id", "document_id"),
            pl.col("title", "path").fill_null(""),
            *("start_char", "end_char"),
            pl.col("type").fill_null(""),
        )
        .sort("entity", "text_unit")
        .collect()
    )
    units_of: dict[int, list[SplitTextUnit]] = {}
    for entity, *values in rows.iter_rows():
        units_of.setdefault(entity, []).append(SplitTextUnit(*values))
    return units_of


@dataclass
class Node:
    """A name, and the extracted entities or parts of split entities that have this name."""

    key: str
    title: str
    type: str
    frequency: int  # number of text units that mention the name
    # Numbers of the entities and parts; the first number represents the node.
    numbers: list[int]
    # Extracted titles that a person has merged into this node.
    decided: list[str] = field(default_factory=list)

    @property
    def name(self) -> Name:
        return Name(self.title, kind_of_type(self.type))


class ExtractedEntities:
    """The extracted entities, and the parts of the entities that a person has split.

    `mentions` has the columns `entity` and `text_unit`, without duplicates; for a split entity,
    `entity` is the number of the part. `documents` has the `document` of each `text_unit`.
    """

    def __init__(
        self,
        entities: pl.LazyFrame,
        extracted_mentions: pl.LazyFrame,
        base_text_units: pl.LazyFrame,
        documents: pl.LazyFrame,
        decisions: Decisions,
    ) -> None:
        # Rows (number, title, type) of all extracted entities.
        self.rows = entities.select("human_readable_id", "title", "type").collect().rows()
        self.titles = {number: title for number, title, _ in self.rows}
        number = pl.col("entity", "text_unit").cast(pl.Int64)
        mentions = extracted_mentions.select(number).unique().collect()
        self.mentions = mentions.sort("entity", "text_unit")
        document = pl.col("document_id").rank("dense").cast(pl.Int64)
        self.documents = base_text_units.select(
            text_unit="human_readable_id", document=document
        ).collect()
        self.parts: list[SplitEntityPart] = []
        wanted = [row for row in self.rows if title_key(row[1]) in decisions.split]
        if not wanted:
            return
        units_of = _read_text_units_of_entities(
            [row[0] for row in wanted], entities, self.mentions, base_text_units, documents
        )
        first_number = max(self.titles) + 1
        self.parts = _split_entities(wanted, units_of, decisions.split, first_number)
        moved = {
            (part.entity, unit.number): part.number for part in self.parts for unit in part.units
        }
        entity = [moved.get(pair, pair[0]) for pair in self.mentions.rows()]
        self.mentions = self.mentions.with_columns(entity=pl.Series(entity, dtype=pl.Int64))

    def find_origin(self, number: int) -> int:
        """Return the number of the split entity for a part's number, else the number itself."""
        return next((p.entity for p in self.parts if p.number == number), number)

    def find_documents_and_neighbours(
        self, nodes: Sequence[Node], links: pl.LazyFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return two tables: the documents of each node, and the neighbours of each node.

        The first table has the columns `entity` and `document`, the second table `entity` and
        `neighbour`, with a link in both directions. A split entity has no links, since links
        refer to whole entities.
        """
        numbers = [(number, at) for at, node in enumerate(nodes) for number in node.numbers]
        schema = {"number": pl.Int64, "node": pl.Int64}
        node_of = pl.DataFrame(numbers, schema=schema, orient="row")
        named = (
            self.mentions.join(node_of, left_on="entity", right_on="number")
            .join(self.documents, on="text_unit")
            .select("document", entity="node")
            .unique()
        )
        endpoints = links.select("source", "target").unique().collect()
        pairs = endpoints.join(node_of, left_on="source", right_on="number").join(
            node_of, left_on="target", right_on="number", suffix="_right"
        )
        one = pairs.select(entity="node", neighbour="node_right")
        other = pairs.select(entity="node_right", neighbour="node")
        both = pl.concat([one, other]).filter(pl.col("entity") != pl.col("neighbour")).unique()
        return named, both


def make_nodes(found: ExtractedEntities, decisions: Decisions) -> tuple[list[Node], dict[str, int]]:
    """Group entities and parts of entities by name, or by the title that a person has chosen.

    Returns the nodes, sorted by descending number of mentions, then by key; and the position of
    each node by the keys of its extracted titles and of its chosen title.
    """
    counts = dict(found.mentions.group_by("entity").len().iter_rows())
    divided = {part.entity for part in found.parts}
    rows = [row for row in found.rows if row[0] not in divided]
    rows += [(part.number, part.title, part.type) for part in found.parts]
    by_key: dict[str, list[tuple[int, str, str]]] = {}
    for row in sorted(rows):
        by_key.setdefault(title_key(row[1]), []).append(row)
    nodes: dict[str, Node] = {}
    moved: dict[str, list[str]] = {}  # keys of merged names, by the key of the chosen title
    for key, members in by_key.items():
        title = decisions.titles.get(key)
        target = key if title is None else title_key(title)
        # Take the most frequent spelling of the name; of equally frequent ones, the first.
        best = max(members, key=lambda row: counts.get(row[0], 0))
        numbers = [best[0], *(row[0] for row in members if row is not best)]
        frequency = sum(counts.get(number, 0) for number in numbers)
        node = Node(key, best[1], best[2], frequency, numbers)
        if title is not None:
            node.decided = [node.title]
            moved.setdefault(target, []).append(key)
        if target in nodes:
            _merge_nodes(nodes[target], node)
        else:
            nodes[target] = node
        if title is not None:
            nodes[target].title, nodes[target].key = title, target
    ordered = sorted(nodes.values(), key=lambda node: (-node.frequency, node.key))
    places = {
        key: at for at, node in enumerate(ordered) for key in (*moved.get(node.key, ()), node.key)
    }
    return ordered, places


def _merge_nodes(node: Node, other: Node) -> None:
    """Merge `other` into `node`; keep the type of the more frequent of these nodes."""
    if (other.frequency, node.numbers[0]) > (node.frequency, other.numbers[0]):
        node.numbers = [*other.numbers, *node.numbers]
        node.type = other.type or node.type
    else:
        node.numbers += other.numbers
        node.type = node.type or other.type
    node.frequency += other.frequency
    node.decided += other.decided


def forbidden_pairs(decisions: Decisions, places: Mapping[str, int]) -> Collection[frozenset[int]]:
    """Return the pairs of nodes that must not be merged because a person decided so."""
    return {
        frozenset((places[one], places[other]))
        for one, other in decisions.forbidden_pairs()
        if one in places and other in places and places[one] != places[other]
    }


def find_unknown_names(decisions: Decisions, found: Collection[str]) -> list[tuple[str, str]]:
    """Return (name, section) for names in the decisions that no entity or new title has.

    `found` has the keys of extracted names.
    """
    known = {*found, *map(title_key, decisions.titles.values())}
    return [named for key, named in decisions.named.items() if key not in known]

"""The entities to resolve: one node per name, after the decisions of a person are applied.

A person may merge names under one title. A person may also split a name that several things
have, so that each text unit with the name refers to one of these things.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from graphrag_index.resolution.decisions_file import Decisions, PartConditions
from graphrag_index.resolution.name_similarity import Name, kind_of_type
from graphrag_nlp.text.normalize import title_key, translate_glob


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
    mentions: pl.LazyFrame,
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
        mentions.filter(is_wanted)
        .unique()
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

    @cached_property
    def name(self) -> Name:
        return Name(self.title, kind_of_type(self.type))


class ExtractedEntities:
    """The extracted entities, and the parts of the entities that a person has split.

    `rows` has one row per entity: `number`, `title`, `type`, the `key` of the title, and
    `frequency`, the number of text units that mention the entity. `mentions` has the columns
    `entity` and `text_unit`.
    """

    def __init__(
        self,
        entities: pl.LazyFrame,
        extracted_mentions: pl.LazyFrame,
        base_text_units: pl.LazyFrame,
        documents: pl.LazyFrame,
        decisions: Decisions,
    ) -> None:
        rows = entities.select("title", "type", number="human_readable_id").collect()
        self.mentions = extracted_mentions.select(pl.col("entity", "text_unit").cast(pl.Int64))
        self.base_text_units = base_text_units
        self.rows = rows.join(
            _count_text_units(self.mentions), on="number", how="left", maintain_order="left"
        ).select(
            *("number", "title", "type"),
            key=pl.Series(list(map(title_key, rows["title"])), dtype=pl.String),
            frequency=pl.col("frequency").fill_null(0),
        )
        split = self.rows.filter(pl.col("key").is_in(list(decisions.split)))
        self.parts: list[SplitEntityPart] = []
        if split.height:
            units_of = _read_text_units_of_entities(
                split["number"].to_list(), entities, self.mentions, base_text_units, documents
            )
            first_number: int = self.rows["number"].max() + 1  # type: ignore[assignment, operator]
            named = split.select("number", "title", "type").rows()
            self.parts = _split_entities(named, units_of, decisions.split, first_number)

    def find_titles(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return the titles of some entities by number; parts of entities are left out."""
        rows = self.rows.filter(pl.col("number").is_in(list(numbers)))
        return dict(rows.select("number", "title").iter_rows())

    def find_known_keys(self, keys: Iterable[str]) -> set[str]:
        """Return the keys that are the key of an entity."""
        return set(self.rows["key"].filter(self.rows["key"].is_in(list(keys))))

    def find_origin(self, number: int) -> int:
        """Return the number of the split entity for a part's number, else the number itself."""
        return next((p.entity for p in self.parts if p.number == number), number)

    def find_documents(self, nodes: Mapping[int, Node]) -> pl.DataFrame:
        """Return the documents that mention each node, as rows (`entity`, `document`)."""
        rows = [(number, at) for at, node in nodes.items() for number in node.numbers]
        node_of = pl.LazyFrame(rows, {"entity": pl.Int64, "node": pl.Int64}, orient="row")
        units = [(part.number, unit.number) for part in self.parts for unit in part.units]
        of_parts = pl.LazyFrame(units, {"entity": pl.Int64, "text_unit": pl.Int64}, orient="row")
        document = pl.col("document_id").rank("dense").cast(pl.Int64)
        documents = self.base_text_units.select(
            text_unit="human_readable_id", document=document
        ).collect()
        return (
            pl.concat([self.mentions, of_parts])
            .join(node_of, on="entity")
            .join(documents.lazy(), on="text_unit")
            .select("document", entity="node")
            .unique()
            .collect(engine="streaming")
        )


def _count_text_units(mentions: pl.LazyFrame) -> pl.DataFrame:
    """Count the text units that mention each entity: rows (`number`, `frequency`)."""
    # Sort each pair as one number: this takes less memory than a group for each entity.
    pair = pl.col("entity") * 2**32 + pl.col("text_unit")
    pairs = mentions.select(pair).collect().to_series().sort()
    entities = (pairs.unique(maintain_order=True) // 2**32).rle().struct.unnest()
    return entities.select(number="value", frequency=pl.col("len").cast(pl.Int64))


class Nodes:
    """All nodes as a table, sorted by descending number of mentions, then by key.

    `rows` has the columns `key`, `title`, `type`, `frequency` and `number`, the first number of
    the node. The position of a row identifies the node.
    """

    def __init__(self, found: ExtractedEntities, decisions: Decisions) -> None:
        divided = [part.entity for part in found.parts]
        parts = [
            (part.number, part.title, part.type, title_key(part.title), len(part.units))
            for part in found.parts
        ]
        undivided = found.rows.filter(~pl.col("number").is_in(divided))
        rows = pl.concat([undivided, pl.DataFrame(parts, undivided.schema, orient="row")])
        targets = {key: title_key(title) for key, title in decisions.titles.items()}
        key = pl.col("key")
        is_grouped = key.replace(targets).is_duplicated() | key.is_in(list(targets))
        grouped, moved = _group_rows(rows.filter(is_grouped).sort("number"), decisions)
        columns = ("key", "title", "type", "frequency", "number")
        made = [(n.key, n.title, n.type, n.frequency, n.numbers[0]) for n in grouped.values()]
        single = rows.filter(~is_grouped).select(columns)
        self.rows = pl.concat([single, pl.DataFrame(made, single.schema, orient="row")]).sort(
            "frequency", "key", descending=[True, False]
        )
        known = {*decisions.named, *grouped}
        wanted = self.rows.with_row_index("at").filter(key.is_in(list(known)))
        positions = dict(wanted.select("key", "at").iter_rows())
        # Nodes of several entities, and nodes whose title a person has decided, by position.
        self.grouped = {positions[key]: node for key, node in grouped.items()}
        # Positions of the nodes of the names in the decisions, and of the titles of these nodes.
        self.places = {
            name: at for key, at in positions.items() for name in (*moved.get(key, ()), key)
        }

    def load(self, positions: Iterable[int]) -> dict[int, Node]:
        """Return some nodes by position, in the order of the table."""
        at = sorted(set(positions))
        return {
            position: self.grouped.get(position) or Node(key, title, kind, frequency, [number])
            for position, (key, title, kind, frequency, number) in zip(
                at, self.rows[at].iter_rows(), strict=True
            )
        }

    def load_decided(self) -> dict[int, Node]:
        """Return the nodes whose title a person has decided."""
        return {at: node for at, node in sorted(self.grouped.items()) if node.decided}

    def find_neighbours(self, nodes: Mapping[int, Node], links: pl.LazyFrame) -> pl.DataFrame:
        """Return the neighbours of each node, as rows (`entity`, `neighbour`).

        The rows of other nodes are not complete. A split entity has no links, since links refer
        to whole entities.
        """
        rows = [(number, at) for at, node in self.grouped.items() for number in node.numbers[1:]]
        node_of = pl.concat(
            [
                self.rows.select("number", node=pl.int_range(pl.len())),
                pl.DataFrame(rows, {"number": pl.Int64, "node": pl.Int64}, orient="row"),
            ]
        )
        numbers = [number for node in nodes.values() for number in node.numbers]
        wanted = pl.LazyFrame({"number": numbers}, {"number": pl.Int64})
        ends = links.select("source", "target")
        near = [
            ends.join(wanted, left_on=end, right_on="number", how="semi")
            for end in ("source", "target")
        ]
        pairs = (
            pl.concat(near)
            .join(node_of.lazy(), left_on="source", right_on="number")
            .join(node_of.lazy(), left_on="target", right_on="number", suffix="_right")
            .select(entity="node", neighbour="node_right")
            .filter(pl.col("entity") != pl.col("neighbour"))
            .collect(engine="streaming")
        )
        return pl.concat([pairs, pairs.select(entity="neighbour", neighbour="entity")]).unique()


def _group_rows(
    rows: pl.DataFrame, decisions: Decisions
) -> tuple[dict[str, Node], dict[str, list[str]]]:
    """Group entities by name, or by the title that a person has chosen.

    Returns the nodes by key, and the keys of merged names by the key of the chosen title.
    """
    by_key: dict[str, list[tuple[int, str, str, int]]] = {}
    for *row, key in rows.select("number", "title", "type", "frequency", "key").iter_rows():
        by_key.setdefault(key, []).append(tuple(row))
    nodes: dict[str, Node] = {}
    moved: dict[str, list[str]] = {}
    for key, members in by_key.items():
        title = decisions.titles.get(key)
        target = key if title is None else title_key(title)
        # Take the most frequent spelling of the name; of equally frequent ones, the first.
        best = max(members, key=lambda row: row[3])
        numbers = [best[0], *(row[0] for row in members if row is not best)]
        node = Node(key, best[1], best[2], sum(row[3] for row in members), numbers)
        if title is not None:
            node.decided = [node.title]
            moved.setdefault(target, []).append(key)
        if target in nodes:
            _merge_nodes(nodes[target], node)
        else:
            nodes[target] = node
        if title is not None:
            nodes[target].title, nodes[target].key = title, target
    return nodes, moved


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

"""Parts of the map of an index as typed arrays: communities, or the entities of one.

A part begins with the length of its header (uint32, little-endian), then the header as JSON, padded
with spaces to a multiple of 8 bytes, then its arrays. `arrays` in the header names each array with
its type (i32, f32, u8), its first byte after the header, and its number of values.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from graphrag_index.export.explorer_page import layout_map
from graphrag_index.storage.mapped_table import MappedTable
from graphrag_query.store.index_store import IndexStore

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]

# Maximum number of communities or entities of a part, and of relationships between them.
MAX_THINGS = 3_000
MAX_LINKS = 6_000
# Types of entities that are counted by themselves; the explorer has a colour for each.
MAX_TYPES = 8
ROOT = -1
_TYPES = {"i32": "<i4", "f32": "<f4", "u8": "u1"}


class Disc(NamedTuple):
    """The place of a community, or with radius 0 of an entity, in the unit disc of the map."""

    number: int
    x: float
    y: float
    radius: float


class GraphMap:
    """The map of an index at one version. Several threads may use it."""

    def __init__(self, store: IndexStore) -> None:
        self._store = store

    def read_part(self, community: int) -> bytes | None:
        """Return the part inside a community, or the coarsest level for `ROOT`.

        Returns None if there is no such community.
        """
        if community != ROOT and not len(self._discs.find_rows("community", community)):
            return None
        children = self._children(community)
        if len(children) or community == ROOT:
            return self._write_communities(community, children)
        return self._write_entities(community)

    def place_communities(self, numbers: Sequence[int]) -> list[Disc]:
        """Return the discs of communities in the unit disc of the whole map.

        Unknown numbers are left out.
        """
        discs = []
        for number in numbers:
            x, y, radius, above = 0.0, 0.0, 1.0, number
            chain = []
            while above >= 0 and (rows := self._discs.find_rows("community", above)):
                chain.append(rows.start)
                above = int(self._discs.slice("parent", rows.start, rows.stop)[0])
            for row in reversed(chain):
                inner = [self._discs.slice(name, row, row + 1)[0] for name in ("x", "y", "radius")]
                x, y = x + radius * float(inner[0]), y + radius * float(inner[1])
                radius *= float(inner[2])
            if chain:
                discs.append(Disc(number, x, y, radius))
        return discs

    def place_entities(self, numbers: Sequence[int]) -> list[Disc]:
        """Return the places of entities in the unit disc of the whole map, with radius 0.

        Unknown numbers, and entities without a community, are left out.
        """
        known = [number for number in numbers if 0 <= number < len(self._places)]
        rows = self._places.rows(known)
        discs = {
            disc.number: disc
            for disc in self.place_communities(rows["community"].unique().to_list())
        }
        return [
            Disc(entity, home.x + home.radius * x, home.y + home.radius * y, 0.0)
            for entity, community, x, y in rows.iter_rows()
            if (home := discs.get(community))
        ]

    @cached_property
    def _tables(self) -> tuple[MappedTable, MappedTable]:
        """The discs of communities, and the places of entities."""
        if self._store.has_table("map_communities"):
            return self._store.open_mapped("map_communities"), self._store.open_mapped(
                "map_entities"
            )
        # An index of Microsoft GraphRAG or of an older version of this program.
        scan = self._store.scan
        chosen = scan("entities").select("id", entity="human_readable_id").collect()
        links = self._store.open_mapped("relationship_rows").columns("source", "target", "weight")
        known = (pl.col("source") >= 0) & (pl.col("target") >= 0) & (pl.col("weight") > 0)
        places, discs = layout_map(scan, chosen, links.filter(known))
        return MappedTable.of(discs), MappedTable.of(places)

    def _disc_column(self, name: str) -> "Numbers":
        column: Numbers = self._discs.slice(name, 0, len(self._discs))
        return column

    @property
    def _discs(self) -> MappedTable:
        return self._tables[0]

    @property
    def _places(self) -> MappedTable:
        return self._tables[1]

    @cached_property
    def _rows_of_parent(self) -> tuple[Any, Any]:
        """The rows of communities sorted by parent, and the sorted parents."""
        parent = self._disc_column("parent")
        order = np.argsort(parent, kind="stable")
        return order, parent[order]

    def _children(self, community: int) -> "Numbers":
        """Return the rows of the children of a community in the table of discs."""
        order, parents = self._rows_of_parent
        first, stop = np.searchsorted(parents, (community, community + 1))
        children: Numbers = order[first:stop]
        return children

    @cached_property
    def _ends(self) -> tuple[Any, Any, Any, Any]:
        """Both ends of each relationship, its weight, and whether a text states it."""
        table = self._store.open_mapped("relationship_rows")
        rows = table.columns("source", "target", "weight", "type", "evidence").select(
            "source",
            "target",
            "weight",
            stated=(pl.col("type").fill_null("") != "") | (pl.col("evidence").list.len() > 0),
        )
        source, target, weight, stated = (column.to_numpy() for column in rows.iter_columns())
        return source, target, weight, stated

    @cached_property
    def _types(self) -> tuple[list[str], "Numbers"]:
        """The most frequent types of entities, and for each entity the position of its type.

        The position of other types and of none is the number of these types.
        """
        types = self._store.open_mapped("entity_rows").columns("type")["type"].fill_null("")
        counts = (
            types.filter(types != "").value_counts().sort("count", "type", descending=[True, False])
        )
        names = counts["type"].head(MAX_TYPES)
        position = pl.DataFrame({"type": names, "at": np.arange(len(names), dtype=np.int32)})
        found = types.to_frame().join(position, on="type", how="left", maintain_order="left")
        return names.to_list(), found["at"].fill_null(len(names)).to_numpy()

    @cached_property
    def _parent_of(self) -> "Numbers":
        """The parent of each community by number; -1 for none and for unknown numbers."""
        numbers = self._disc_column("community")
        # The last element is that of the number -1.
        parents = np.full(int(numbers.max(initial=-1)) + 2, -1, np.int32)
        parents[numbers] = self._disc_column("parent")
        return parents

    def _child_of_entities(self, numbers: "Numbers") -> "Numbers":
        """Return for each entity the position of its community in `numbers`, or -1."""
        position = np.full(len(self._parent_of), -1, np.int32)
        position[numbers] = np.arange(len(numbers))
        ancestor = np.arange(len(position))
        ancestor[-1] = -1
        while True:
            open_ = (ancestor >= 0) & (position[ancestor] < 0)
            if not open_.any():
                break
            ancestor[open_] = self._parent_of[ancestor[open_]]
        homes = self._places.slice("community", 0, len(self._places))
        found: Numbers = position[ancestor][homes]
        return found

    def _write_communities(self, community: int, rows: "Numbers") -> bytes:
        store = self._store
        radius = self._disc_column("radius")[rows]
        # The largest communities have the largest discs.
        kept = rows[np.argsort(-radius, kind="stable")][:MAX_THINGS]
        numbers = self._disc_column("community")[kept]
        found = store.communities(numbers.tolist())
        titles = dict(zip(found["community"].to_list(), found["title"].to_list(), strict=True))
        if store.has_table("report_rows"):
            titles |= dict(store.reports(numbers.tolist()).select("community", "title").iter_rows())
        place = self._child_of_entities(numbers)
        source, target, weight, _ = self._ends
        links = _sum_links(place[source], place[target], weight, len(kept))
        names, types = self._types
        n_types = len(names) + 1
        inside = place >= 0
        type_counts = np.bincount(
            place[inside] * n_types + types[inside], minlength=len(kept) * n_types
        )
        arrays = {
            "number": ("i32", numbers),
            "size": ("i32", found["size"]),
            "children": ("i32", found["children"].list.len()),
            **{name: ("f32", self._disc_column(name)[kept]) for name in ("x", "y", "radius")},
            # For each community, its entities of each type, and then those of other types.
            "type_counts": ("i32", type_counts),
            **links,
        }
        header = {
            "kind": "communities",
            "title": [titles[number] for number in numbers.tolist()],
            "types": names,
            "left_out": len(rows) - len(kept),
        }
        return self._write(community, header, arrays)

    def _write_entities(self, community: int) -> bytes:
        store = self._store
        places = self._places
        homes = places.slice("community", 0, len(places))
        members = np.flatnonzero(homes == community)
        degrees = store.open_mapped("entity_rows").slice("degree", 0, store.n_rows("entity_rows"))
        kept = members[np.argsort(-degrees[members], kind="stable")][:MAX_THINGS]
        rows = store.entities(kept.tolist())
        position = np.full(len(homes), -1, np.int32)
        position[kept] = np.arange(len(kept))
        source, target, weight, stated = self._ends
        inside = np.flatnonzero((position[source] >= 0) & (position[target] >= 0))
        inside = inside[np.argsort(-weight[inside], kind="stable")][:MAX_LINKS]
        arrays = {
            "number": ("i32", kept),
            "size": ("i32", degrees[kept]),
            **{name: ("f32", places.slice(name, 0, len(places))[kept]) for name in ("x", "y")},
            "source": ("i32", position[source[inside]]),
            "target": ("i32", position[target[inside]]),
            "weight": ("f32", weight[inside]),
            "relationship": ("i32", inside),
            "stated": ("u8", stated[inside]),
        }
        header = {
            "kind": "entities",
            "title": rows["title"].fill_null("").to_list(),
            "type": rows["type"].fill_null("").to_list(),
            "left_out": len(members) - len(kept),
        }
        return self._write(community, header, arrays)

    def _write(
        self, community: int, header: dict[str, Any], arrays: Mapping[str, tuple[str, Any]]
    ) -> bytes:
        parts, described, offset = [], {}, 0
        for name, (kind, values) in arrays.items():
            content = np.asarray(values).astype(_TYPES[kind]).tobytes()
            described[name] = {"type": kind, "offset": offset, "length": len(values)}
            # Arrays of 4 bytes must begin at a multiple of 4.
            content += bytes(-len(content) % 8)
            parts.append(content)
            offset += len(content)
        values = {"version": self._store.version.number, "community": community, **header}
        text = json.dumps({**values, "arrays": described}, ensure_ascii=False).encode()
        text += b" " * ((-4 - len(text)) % 8)
        return b"".join([len(text).to_bytes(4, "little"), text, *parts])


def _sum_links(source: Any, target: Any, weight: Any, n: int) -> dict[str, tuple[str, Any]]:
    """Sum the weights of the relationships between each two of `n` communities."""
    between = (source >= 0) & (target >= 0) & (source != target)
    low = np.minimum(source[between], target[between]).astype(np.int64)
    high = np.maximum(source[between], target[between])
    keys, pair = np.unique(low * n + high, return_inverse=True)
    total = np.bincount(pair, weight[between], len(keys))
    best = np.argsort(-total, kind="stable")[:MAX_LINKS]
    return {
        "source": ("i32", keys[best] // max(n, 1)),
        "target": ("i32", keys[best] % max(n, 1)),
        "weight": ("f32", total[best]),
    }

"""Links between text units, entities, relationships, communities and claims, by number."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from graphrag_index.storage.mapped_table import MappedTable

    Numbers = npt.NDArray[np.int32]
    Flags = npt.NDArray[np.bool_]


class LinkedRows(NamedTuple):
    """Entities of a text unit, or text units of an entity, ordered by number."""

    numbers: "Numbers"
    is_subject: "Flags"  # true if the text unit describes the entity, false if it only names it


class Neighbours(NamedTuple):
    """The relationships of one entity, and the other entity of each relationship.

    The relationship with the highest weight comes first.
    """

    entities: "Numbers"
    relationships: "Numbers"
    weights: "npt.NDArray[np.float32]"


class Links:
    """Links between text units, entities, relationships and communities, by number.

    The time of a look-up depends on the size of its result, not on the size of the index. An
    unknown number, or a number without links, returns empty arrays. Arrays may be part of a
    memory-mapped file: do not write to them. Several threads may share an instance.
    """

    def __init__(self, open_table: "Callable[[str], MappedTable]", n_text_units: int) -> None:
        self._open = open_table
        self.n_text_units = n_text_units
        # The best links of text units, kept by `TextUnitRanking`: the searches of one question
        # and its follow-up searches start from the same text units.
        self.kept_links: dict[int, dict[int, tuple[float, int | None]]] = {}

    def entities_of(self, text_unit: int) -> LinkedRows:
        """Return the entities that a text unit names."""
        return self._read_linked("entities_of_text_units", "text_unit", text_unit, "entity")

    def text_units_of(self, entity: int) -> LinkedRows:
        """Return the text units that name an entity."""
        return self._read_linked("text_units_of_entities", "entity", entity, "text_unit")

    def n_text_units_of(self, entities: "npt.ArrayLike") -> "npt.NDArray[np.int64]":
        """Count the text units that name each of these entities, without reading them."""
        return self._count_links("text_units_of_entities", entities)

    def relationships_of(self, entity: int, most: int | None = None) -> Neighbours:
        """Return the relationships of an entity, at most `most` with the highest weights."""
        table, first, stop = self._find_rows("relationships_of_entities", "entity", entity, most)
        columns = ("neighbour", "relationship", "weight")
        return Neighbours(*(table.slice(name, first, stop) for name in columns))

    def n_relationships_of(self, entities: "npt.ArrayLike") -> "npt.NDArray[np.int64]":
        """Count the relationships of each of these entities, without reading them."""
        return self._count_links("relationships_of_entities", entities)

    @cached_property
    def degrees(self) -> "npt.NDArray[np.int64]":
        """The number of relationships of each entity."""
        table = self._open("relationships_of_entities")
        entities = table.slice("entity", 0, len(table))
        return np.bincount(entities, minlength=len(self._open("entity_rows")))

    def communities_of(self, entity: int) -> "tuple[Numbers, Numbers]":
        """Return the levels and numbers of an entity's communities, the coarsest level first."""
        table, first, stop = self._find_rows("communities_of_entities", "entity", entity)
        return table.slice("level", first, stop), table.slice("community", first, stop)

    def themes_of(self, text_units: "npt.ArrayLike") -> "list[list[int]]":
        """Return the themes of each of these text units, the coarsest first.

        The lists are empty if the index has no themes, or does not know their text units.
        """
        table = self._open("themes_of_text_units")
        first, stop = table.bounds("text_unit", np.asarray(text_units, np.int32))
        rows = table.slice("community", 0, len(table))
        return [
            rows[start:end].tolist()
            for start, end in zip(first.tolist(), stop.tolist(), strict=True)
        ]

    def claims_of(self, entity: int) -> "Numbers":
        """Return the claims about an entity, in the order of `covariates`."""
        table, first, stop = self._find_rows("claims_of_entities", "entity", entity)
        return table.slice("claim", first, stop)

    def _read_linked(self, name: str, key: str, number: int, column: str) -> LinkedRows:
        table, first, stop = self._find_rows(name, key, number)
        return LinkedRows(table.slice(column, first, stop), table.flags("about", first, stop))

    def _count_links(self, name: str, entities: "npt.ArrayLike") -> "npt.NDArray[np.int64]":
        first, stop = self._open(name).bounds("entity", np.asarray(entities, np.int32))
        return stop - first

    def _find_rows(
        self, name: str, key: str, number: int, most: int | None = None
    ) -> "tuple[MappedTable, int, int]":
        table = self._open(name)
        rows = table.find_rows(key, number)[:most]
        return table, rows.start, rows.stop

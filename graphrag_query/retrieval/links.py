"""Links between text units, entities, relationships and communities, by number.

They are read from mapped tables, one neighbourhood at a time.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from graphrag_index.storage.mapped_table import MappedTable

    Numbers = npt.NDArray[np.int32]
    Flags = npt.NDArray[np.bool_]


class LinkedRows(NamedTuple):
    """Entities of a text unit, or text units of an entity, by ascending number.

    `is_subject` tells for each whether the text unit tells about the entity, beyond naming it.
    """

    numbers: "Numbers"
    is_subject: "Flags"


class Neighbours(NamedTuple):
    """The relationships of one entity, the heaviest first, and the entities at the other ends."""

    entities: "Numbers"
    relationships: "Numbers"
    weights: "npt.NDArray[np.float32]"


class Links:
    """The links of an index. A look-up costs what it returns, however large the index is.

    An unknown or unlinked number returns empty arrays. Arrays may lie in a mapped file: do not
    write to them. Threads may share an instance.
    """

    def __init__(self, open_table: "Callable[[str], MappedTable]", n_text_units: int) -> None:
        self._open = open_table
        self.n_text_units = n_text_units

    def entities_of(self, text_unit: int) -> LinkedRows:
        """Return the entities that a text unit names."""
        return self._linked("entities_of_text_units", "text_unit", text_unit, "entity")

    def text_units_of(self, entity: int) -> LinkedRows:
        """Return the text units that name an entity."""
        return self._linked("text_units_of_entities", "entity", entity, "text_unit")

    def n_text_units_of(self, entities: "npt.ArrayLike") -> "npt.NDArray[np.int64]":
        """Count the text units that name each of these entities, without reading them."""
        return self._counts("text_units_of_entities", entities)

    def relationships_of(self, entity: int, most: int | None = None) -> Neighbours:
        """Return the relationships of an entity, or its `most` heaviest."""
        table, first, stop = self._rows("relationships_of_entities", "entity", entity)
        if most is not None:
            stop = min(stop, first + most)
        columns = ("neighbour", "relationship", "weight")
        return Neighbours(*(table.slice(name, first, stop) for name in columns))

    def n_relationships_of(self, entities: "npt.ArrayLike") -> "npt.NDArray[np.int64]":
        """Count the relationships of each of these entities, without reading them."""
        return self._counts("relationships_of_entities", entities)

    def communities_of(self, entity: int) -> "tuple[Numbers, Numbers]":
        """Return the levels and numbers of an entity's communities, the coarsest first."""
        table, first, stop = self._rows("communities_of_entities", "entity", entity)
        return table.slice("level", first, stop), table.slice("community", first, stop)

    def claims_of(self, entity: int) -> "Numbers":
        """Return the claims about an entity, in the order of `covariates`."""
        table, first, stop = self._rows("claims_of_entities", "entity", entity)
        return table.slice("claim", first, stop)

    def _linked(self, name: str, key: str, number: int, column: str) -> LinkedRows:
        table, first, stop = self._rows(name, key, number)
        return LinkedRows(table.slice(column, first, stop), table.flags("about", first, stop))

    def _counts(self, name: str, entities: "npt.ArrayLike") -> "npt.NDArray[np.int64]":
        first, stop = self._open(name).bounds("entity", np.asarray(entities, np.int32))
        return stop - first

    def _rows(self, name: str, key: str, number: int) -> "tuple[MappedTable, int, int]":
        table = self._open(name)
        rows = table.range_of(key, number)
        return table, rows.start, rows.stop

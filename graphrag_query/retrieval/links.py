"""What is linked with what, by number: read from mapped tables, a neighbourhood at a time."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from graphrag_index.storage.mapped_table import MappedTable

    Numbers = npt.NDArray[np.int32]
    Flags = npt.NDArray[np.bool_]


class Neighbours(NamedTuple):
    """The relationships of one entity, the heaviest first."""

    entities: "Numbers"  # at the other ends
    relationships: "Numbers"
    weights: "npt.NDArray[np.float32]"


class Links:
    """The links of an index. A look-up costs what it returns, however large the index is.

    What is not linked, and a number that nothing has, gives empty arrays. Arrays may lie in
    the mapped file: they are not to be written to. Threads may share it.
    """

    def __init__(self, open_table: "Callable[[str], MappedTable]", n_text_units: int) -> None:
        self._open = open_table
        self.n_text_units = n_text_units

    def entities_of(self, text_unit: int) -> "tuple[Numbers, Flags]":
        """Return the entities that a text unit names, ascending, and which it tells about."""
        return self._pairs("entities_of_text_units", "text_unit", text_unit, "entity")

    def text_units_of(self, entity: int) -> "tuple[Numbers, Flags]":
        """Return the text units that name an entity, ascending, and which tell about it."""
        return self._pairs("text_units_of_entities", "entity", entity, "text_unit")

    def n_text_units_of(self, entities: "npt.ArrayLike") -> "npt.NDArray[np.int64]":
        """Count the text units that name each of these entities, without reading them."""
        import numpy as np

        table = self._open("text_units_of_entities")
        first, stop = table.bounds("entity", np.asarray(entities, np.int32))
        return stop - first

    def relationships_of(self, entity: int, most: int | None = None) -> Neighbours:
        """Return the relationships of an entity, or its `most` heaviest."""
        table, first, stop = self._rows("relationships_of_entities", "entity", entity)
        if most is not None:
            stop = min(stop, first + most)
        columns = ("neighbour", "relationship", "weight")
        return Neighbours(*(table.slice(name, first, stop) for name in columns))

    def n_relationships_of(self, entities: "npt.ArrayLike") -> "npt.NDArray[np.int64]":
        """Count the relationships of each of these entities, without reading them."""
        import numpy as np

        table = self._open("relationships_of_entities")
        first, stop = table.bounds("entity", np.asarray(entities, np.int32))
        return stop - first

    def communities_of(self, entity: int) -> "tuple[Numbers, Numbers]":
        """Return the levels and numbers of an entity's communities, the coarsest first."""
        table, first, stop = self._rows("communities_of_entities", "entity", entity)
        return table.slice("level", first, stop), table.slice("community", first, stop)

    def claims_of(self, entity: int) -> "Numbers":
        """Return the claims about an entity, in the order of `covariates`."""
        table, first, stop = self._rows("claims_of_entities", "entity", entity)
        return table.slice("claim", first, stop)

    def _pairs(self, name: str, key: str, number: int, column: str) -> "tuple[Numbers, Flags]":
        table, first, stop = self._rows(name, key, number)
        return table.slice(column, first, stop), table.flags("about", first, stop)

    def _rows(self, name: str, key: str, number: int) -> "tuple[MappedTable, int, int]":
        """Find the rows of a number; the table is in its order."""
        table = self._open(name)
        rows = table.range_of(key, number)
        return table, rows.start, rows.stop

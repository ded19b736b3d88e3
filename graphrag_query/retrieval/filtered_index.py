"""An index as filters leave it: every look-up of a search is held to the scope.

What lies outside is not found, not linked and not read, so that no search needs to know of
filters. Texts that were written over all of the corpus (descriptions, reports) stay whole.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_query.retrieval.filters import Filters, Scope
from graphrag_query.retrieval.index_store import KnowledgeModel
from graphrag_query.retrieval.links import Links, Neighbours

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from graphrag_index.storage.vector_store import VectorTable
    from graphrag_query.retrieval.in_memory_vectors import HeldVectors
    from graphrag_query.retrieval.links import Flags, Numbers

# How much more is fetched at each try, where the vector store does not know the filter.
WIDEN = 4


class ScopedModel(KnowledgeModel):
    """A knowledge model that holds only what is in a scope."""

    def __init__(self, whole: KnowledgeModel, filters: Filters) -> None:
        super().__init__(whole.store, whole.version, whole.models)
        self.whole = whole
        self.scope = Scope(whole, filters)
        self._scoped: dict[str, ScopedVectors] = {}

    @property
    def filters(self) -> Mapping[str, Any]:
        """The filters of the scope."""
        return self.scope.filters.to_dict()

    def holds(self, entity: int) -> bool:
        """Tell whether an entity is inside."""
        return bool(self.scope.entities[entity])

    def holds_text_units(self, numbers: "npt.NDArray[np.int64]") -> "Flags":
        """Tell which text units are inside."""
        flags: Flags = self.scope.text_units[numbers]
        return flags

    @cached_property
    def links(self) -> Links:
        """What is linked with what, inside."""
        return ScopedLinks(self, self.scope)

    @property
    def embedding_model(self) -> Any:
        """The model that made the vectors, loaded once for the whole index."""
        return self.whole.embedding_model

    @property
    def threads(self) -> Any:
        """The threads of the whole index."""
        return self.whole.threads

    def vectors(self, table: str) -> Any:
        """Open a vector table; its searches find what is inside."""
        if table not in self._scoped:
            found = self.whole.vectors(table)
            keys: dict[str, tuple[str, Callable[[pl.Series], pl.Series]]] = {
                "text_unit_text": ("human_readable_id", self._flagged(self.scope.text_units)),
                "entity_description": ("human_readable_id", self._flagged(self.scope.entities)),
                "community_full_content": (
                    "community",
                    lambda numbers: numbers.is_in(self.scope.communities),
                ),
            }
            where = self.scope.where if table == "text_unit_text" else None
            self._scoped[table] = ScopedVectors(found, *keys[table], where)
        return self._scoped[table]

    def scan(self, table: str) -> pl.LazyFrame:
        """Open a table; of communities and reports only those inside."""
        rows = self.whole.scan(table)
        if table in ("communities", "community_reports"):
            return rows.filter(pl.col("community").is_in(list(self.scope.communities)))
        return rows

    def reports(self, communities: Iterable[int]) -> pl.DataFrame:
        """Fetch the reports on communities that are inside."""
        return super().reports(n for n in communities if n in self.scope.communities)

    def text_units_behind(self, name: str, number: int) -> list[int]:
        """Return the text units inside that a row rests on."""
        inside = self.scope.text_units
        return [n for n in super().text_units_behind(name, number) if inside[n]]

    def _flagged(self, flags: "npt.NDArray[np.bool_]") -> Callable[[pl.Series], pl.Series]:
        return lambda numbers: pl.Series(flags[numbers.to_numpy()])


class ScopedVectors:
    """A vector table whose searches find only rows inside.

    `key` is the column by whose numbers `holds` tells which they are. `where` says the same to
    the vector store, if it can; else more is fetched until enough of it is inside.
    """

    def __init__(
        self,
        table: "VectorTable | HeldVectors",
        key: str,
        holds: Callable[[pl.Series], pl.Series],
        where: str | None,
    ) -> None:
        self._table, self._key, self._holds, self._where = table, key, holds, where

    def __len__(self) -> int:
        return len(self._table)

    def nearest(
        self, vector: "np.ndarray", top_k: int, columns: Sequence[str], where: str | None = None
    ) -> pl.DataFrame:
        """Return the rows inside nearest to a vector, as `VectorTable.nearest` does."""
        return self._sifted(
            lambda n, asked, told: self._table.nearest(vector, n, asked, told),
            top_k, columns, where,
        )  # fmt: skip

    def matching(
        self,
        words: str,
        top_k: int,
        columns: Sequence[str],
        column: str = "text",
        where: str | None = None,
    ) -> pl.DataFrame:
        """Return the rows inside that match words best, as `VectorTable.matching` does."""
        return self._sifted(
            lambda n, asked, told: self._table.matching(words, n, asked, column, told),
            top_k, columns, where,
        )  # fmt: skip

    def at(self, numbers: Sequence[int], columns: Sequence[str]) -> pl.DataFrame:
        """Fetch rows by number."""
        return self._table.at(numbers, columns)

    def rows(self, ids: Iterable[str], columns: Sequence[str]) -> pl.DataFrame:
        """Fetch rows by id."""
        return self._table.rows(ids, columns)

    def _sifted(
        self,
        search: Callable[[int, list[str], str | None], pl.DataFrame],
        top_k: int,
        columns: Sequence[str],
        where: str | None,
    ) -> pl.DataFrame:
        told = " AND ".join(f"({part})" for part in (where, self._where) if part) or None
        asked = list(dict.fromkeys([*columns, self._key]))
        n_fetched = top_k
        while True:
            rows = search(n_fetched, asked, told)
            inside = rows.filter(self._holds(rows[self._key])) if rows.height else rows
            is_all = rows.height < n_fetched or n_fetched >= len(self._table)
            if inside.height >= top_k or is_all:
                extra = [name for name in asked if name not in columns]
                return inside.head(top_k).drop(extra)
            n_fetched = min(n_fetched * WIDEN, len(self._table))


class ScopedLinks(Links):
    """The links between what is inside."""

    def __init__(self, model: ScopedModel, scope: Scope) -> None:
        super().__init__(model.map, model.whole.links.n_text_units)
        self._model, self._scope = model, scope

    def entities_of(self, text_unit: int) -> "tuple[Numbers, Flags]":
        """Return the entities inside that a text unit names."""
        entities, is_about = super().entities_of(text_unit)
        inside = self._scope.entities[entities]
        return entities[inside], is_about[inside]

    def text_units_of(self, entity: int) -> "tuple[Numbers, Flags]":
        """Return the text units inside that name an entity."""
        numbers, is_about = super().text_units_of(entity)
        inside = self._scope.text_units[numbers]
        return numbers[inside], is_about[inside]

    def relationships_of(self, entity: int, most: int | None = None) -> Neighbours:
        """Return the relationships of an entity inside: both ends are, and a text unit of it."""
        import numpy as np

        found = super().relationships_of(entity)
        rows = self._model.map("relationship_rows")
        inside = self._scope.entities[found.entities]
        # A hub has many thousands: all are looked up at once.
        text_units, lengths = rows.lists("text_units", found.relationships)
        belongs_to = np.repeat(np.arange(len(lengths)), lengths)
        n_held = np.bincount(belongs_to[self._scope.text_units[text_units]], minlength=len(lengths))
        inside &= n_held > 0
        return Neighbours(
            found.entities[inside][:most],
            found.relationships[inside][:most],
            found.weights[inside][:most],
        )

    def communities_of(self, entity: int) -> "tuple[Numbers, Numbers]":
        """Return the communities inside to which an entity belongs."""
        import numpy as np

        levels, communities = super().communities_of(entity)
        inside = np.array([n in self._scope.communities for n in communities.tolist()], bool)
        return levels[inside], communities[inside]

    def claims_of(self, entity: int) -> "Numbers":
        """Return the claims inside about an entity."""
        import numpy as np

        claims = super().claims_of(entity)
        columns = ("text_unit", "start_date", "end_date")
        rows = self._model.map("claim_rows").rows(claims, *columns).iter_rows()
        inside = np.array([self._scope.holds_claim(*row) for row in rows], bool)
        held: Numbers = claims[inside]
        return held

"""An index restricted by filters: every look-up returns only the rows that the filters keep.

The searches themselves need no code for filters. Descriptions and reports are written from the
whole corpus, and filters do not change them.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from graphrag_index.errors import SettingsError
from graphrag_nlp.text.document_dates import ISO_DATE
from graphrag_query.store.index_store import IndexStore
from graphrag_query.store.links import LinkedRows, Links, Neighbours

if TYPE_CHECKING:
    import numpy.typing as npt

    from graphrag_index.microsoft.microsoft_store import InMemoryVectors
    from graphrag_index.storage.vector_store import VectorTable
    from graphrag_query.store.index_store import Flags, Numbers

# Factor for the number of rows of the next attempt if too few rows pass the filters.
FETCH_GROWTH_FACTOR = 4
# Columns of documents that filters can use, besides the keys of the documents' metadata.
FILTER_COLUMNS = ("path", "title", "language")
# A community is kept if the filters keep at least this share (0 to 1) of its entities.
MIN_COMMUNITY_SHARE = 0.5
# Maximum number of document ids in a condition for the vector store. With more documents, the
# results of the vector store are filtered instead.
MAX_DOCUMENTS_IN_CONDITION = 2_000


@dataclass(frozen=True)
class Filters:
    """Conditions on documents and entities.

    `documents` maps a column or a metadata key to patterns like those for file names. A document
    must match one pattern of each column and key. `since` and `until` are the first and the last
    date, in the format of the documents' dates: `until` 1914 includes all of 1914. If a date is
    set, documents without a date do not match. Raises `SettingsError` if a value is not a date.
    """

    documents: Mapping[str, Sequence[str]] = field(default_factory=dict)
    entity_types: Sequence[str] = ()
    since: str = ""
    until: str = ""

    def __post_init__(self) -> None:
        for name in ("since", "until"):
            date = getattr(self, name)
            if date and not ISO_DATE.match(date):
                raise SettingsError(
                    f"{name} {date!r} is not a date: write a year, a month or a day, such as 1914, "
                    "1914-08 or 1914-08-01."
                )

    def to_dict(self) -> dict[str, Any]:
        """Return the conditions that are set."""
        documents: dict[str, Any] = {name: list(values) for name, values in self.documents.items()}
        others = {"entity_types": list(self.entity_types), "since": self.since, "until": self.until}
        return documents | {name: value for name, value in others.items() if value}

    def __str__(self) -> str:
        """Return the conditions in words, such as `path=people/* or path=ships/*, since 1914`."""
        columns = self.documents.items()
        parts = [" or ".join(f"{name}={value}" for value in values) for name, values in columns]
        dates = {"since": self.since, "until": self.until}
        parts += [f"{name} {date}" for name, date in dates.items() if date]
        return ", ".join(parts)

    def overlaps(self, first: str | None, last: str | None) -> bool:
        """Return whether the dates `first` to `last` overlap `since` to `until`.

        If only one of `first` and `last` is set, it is used for both.
        """
        first, last = first or last or "", last or first or ""
        return (
            bool(first)
            and last[: len(self.since)] >= self.since
            and (not self.until or first[: len(self.until)] <= self.until)
        )


class FilterMasks:
    """Boolean masks of the rows that the filters keep, computed when they are first read.

    With `within`, only rows that those masks keep are kept. Raises `SettingsError` if no document
    has a column or key of the filters, or if the filters keep no row.
    """

    def __init__(
        self, index: IndexStore, filters: Filters, within: "FilterMasks | None" = None
    ) -> None:
        self.index, self.filters, self.within = index, filters, within
        if not self.documents.any():
            raise SettingsError(f"No document matches the filter: {filters}.")

    @cached_property
    def documents(self) -> "Flags":
        """The documents that match the filters."""
        rows = self.index.documents(range(len(self.index.open_mapped("document_rows"))))
        kept = np.ones(rows.height, bool) if self.within is None else self.within.documents.copy()
        metadata = [json.loads(text) if text else {} for text in rows["metadata"].to_list()]
        keys = sorted({key for fields in metadata for key in fields})
        for name, patterns in self.filters.documents.items():
            if name in FILTER_COLUMNS:
                values = rows[name].to_list()
            elif name in keys:
                values = [fields.get(name) for fields in metadata]
            else:
                known = ", ".join([*FILTER_COLUMNS, *keys])
                raise SettingsError(f"No document has the key {name!r}. The keys are: {known}.")
            kept &= np.array([_matches_pattern(value, patterns) for value in values], bool)
        if self.filters.since or self.filters.until:
            dates = self.index.document_dates.to_list()
            kept &= np.array([self.filters.overlaps(date, date) for date in dates], bool)
        return kept

    @cached_property
    def text_units(self) -> "Flags":
        """The text units of the matching documents."""
        table = self.index.open_mapped("text_unit_rows")
        flags: Flags = self.documents[table.slice("document", 0, len(table))]
        return flags

    @cached_property
    def entities(self) -> "Flags":
        """The entities of the wanted types that the kept text units name."""
        kept = np.zeros(self.index.n_rows("entity_rows"), bool)
        table = self.index.open_mapped("entities_of_text_units")
        text_units = table.slice("text_unit", 0, len(table))
        kept[table.slice("entity", 0, len(table))[self.text_units[text_units]]] = True
        if self.filters.entity_types:
            types = self.index.open_mapped("entity_rows").columns("type")["type"]
            wanted = [kind.lower() for kind in self.filters.entity_types]
            matching = types.str.to_lowercase().is_in(wanted).to_numpy()
            if not matching.any():
                known = ", ".join(sorted(types.unique().to_list()))
                raise SettingsError(
                    f"No entity has the type {' or '.join(self.filters.entity_types)}. "
                    f"The types are: {known}."
                )
            kept &= matching
        return kept if self.within is None else kept & self.within.entities

    @cached_property
    def relationships(self) -> "Flags":
        """The relationships that one of the kept text units supports."""
        table = self.index.open_mapped("relationship_rows")
        text_units, lengths = table.lists("text_units", np.arange(len(table)))
        relationships = np.repeat(np.arange(len(lengths)), lengths)
        kept: Flags = np.zeros(len(lengths), bool)
        kept[relationships[self.text_units[text_units]]] = True
        return kept

    @cached_property
    def communities(self) -> set[int]:
        """The numbers of the communities with enough kept entities."""
        table = self.index.open_mapped("communities_of_entities")
        communities = table.slice("community", 0, len(table))
        kept = self.entities[table.slice("entity", 0, len(table))]
        places = self.index.open_mapped("community_places")
        numbers = places.slice("community", 0, len(places))
        rows = np.searchsorted(numbers, communities)
        sizes = np.bincount(rows, minlength=len(numbers))
        held = np.bincount(rows[kept], minlength=len(numbers))
        enough = (held >= MIN_COMMUNITY_SHARE * sizes) & (held > 0)
        return set(numbers[enough].tolist())

    @cached_property
    def document_condition(self) -> str | None:
        """The SQL condition on documents for the vector store.

        None means that all documents match, or too many to list.
        """
        if self.documents.all() or self.documents.sum() > MAX_DOCUMENTS_IN_CONDITION:
            return None
        ids = self.index.documents(np.flatnonzero(self.documents).tolist())["id"]
        quoted = "', '".join(ids.str.replace_all("'", "''", literal=True))
        return f"document_id IN ('{quoted}')"

    def keeps_claim(self, text_unit: int, start: str | None, end: str | None) -> bool:
        """Return whether the filters keep a claim with this text unit and these dates."""
        if not 0 <= text_unit < len(self.text_units) or not self.text_units[text_unit]:
            return False
        if self.within is not None and not self.within.keeps_claim(text_unit, start, end):
            return False
        return not (start or end) or self.filters.overlaps(start, end)


class FilteredIndex(IndexStore):
    """An index store that contains only the rows that the filters keep."""

    def __init__(self, whole: IndexStore, filters: Filters) -> None:
        super().__init__(whole.backend, whole.version, whole.models, whole.root)
        self.whole = whole
        self.embedder, self.threads = whole.embedder, whole.threads
        within = whole.masks if isinstance(whole, FilteredIndex) else None
        self.masks: FilterMasks = FilterMasks(whole, filters, within)
        self._filtered: dict[str, FilteredVectors] = {}

    @property
    def filters(self) -> Mapping[str, Any]:
        """The filters of this index. `within` has those of the index that it restricts further."""
        within = {"within": self.whole.filters} if self.whole.filters else {}
        return self.masks.filters.to_dict() | within

    def keeps_entity(self, entity: int) -> bool:
        """Return whether the filters keep an entity."""
        return bool(self.masks.entities[entity])

    def row_flags(self, name: Literal["documents", "text_units", "entities"]) -> "Flags | None":
        """Return for each row whether the filters keep the row."""
        flags: Flags = getattr(self.masks, name)
        return flags

    @cached_property
    def links(self) -> Links:
        """The links between rows that the filters keep."""
        return FilteredLinks(self, self.masks)

    def vectors(self, table: str) -> Any:
        """Open a vector table whose searches return only the rows that the filters keep."""
        if table not in self._filtered:
            masks = self.masks
            flags = {"text_unit_text": masks.text_units, "entity_description": masks.entities}

            def is_kept(numbers: pl.Series) -> pl.Series:
                if table in flags:
                    return pl.Series(flags[table][numbers.to_numpy()])
                return numbers.is_in(masks.communities)

            vectors = self.whole.vectors(table)
            key = "human_readable_id" if table in flags else "community"
            where = masks.document_condition if table == "text_unit_text" else None
            self._filtered[table] = FilteredVectors(vectors, key, is_kept, where)
        return self._filtered[table]

    def scan(self, table: str) -> pl.LazyFrame:
        """Open a table lazily. Only communities are filtered."""
        rows = self.whole.scan(table)
        if table == "communities":
            return rows.filter(pl.col("community").is_in(list(self.masks.communities)))
        return rows

    @cached_property
    def report_list(self) -> pl.DataFrame:
        """The reports on communities that the filters keep, without their texts."""
        is_kept = pl.col("community").is_in(list(self.masks.communities))
        return self.whole.report_list.filter(is_kept)

    def reports(self, communities: Iterable[int], *columns: str) -> pl.DataFrame:
        """Fetch the reports on communities that the filters keep."""
        return super().reports((n for n in communities if n in self.masks.communities), *columns)

    def text_units_behind(self, name: str, number: int) -> list[int]:
        """Return the text units that support a row and that the filters keep."""
        kept = self.masks.text_units
        return [n for n in super().text_units_behind(name, number) if kept[n]]


@dataclass(frozen=True)
class FilteredVectors:
    """A vector table whose searches return only the rows that the filters keep.

    `is_kept` returns a flag for each number in the column `key`. `where` is the same condition in
    SQL for the vector store. If `where` is None, more rows are fetched until enough rows pass.
    """

    _table: "VectorTable | InMemoryVectors"
    _key: str
    _is_kept: Callable[[pl.Series], pl.Series]
    _where: str | None

    def __len__(self) -> int:
        return len(self._table)

    def nearest(
        self, vector: "np.ndarray", top_k: int, columns: Sequence[str], where: str | None = None
    ) -> pl.DataFrame:
        """Return the kept rows nearest to a vector, see `VectorTable.nearest`."""
        return self._search_kept_rows(partial(self._table.nearest, vector), top_k, columns, where)

    def find_matching_rows(
        self, words: str, top_k: int, columns: Sequence[str], where: str | None = None
    ) -> pl.DataFrame:
        """Return the kept rows that match the words best, see `VectorTable.find_matching_rows`."""
        return self._search_kept_rows(
            partial(self._table.find_matching_rows, words), top_k, columns, where
        )

    def at(self, numbers: Sequence[int], columns: Sequence[str]) -> pl.DataFrame:
        """Fetch rows by number."""
        return self._table.at(numbers, columns)

    def _search_kept_rows(
        self,
        search: Callable[..., pl.DataFrame],
        top_k: int,
        columns: Sequence[str],
        where: str | None,
    ) -> pl.DataFrame:
        condition = " AND ".join(f"({part})" for part in (where, self._where) if part) or None
        wanted = list(dict.fromkeys([*columns, self._key]))
        n_fetched = top_k
        while True:
            rows = search(n_fetched, wanted, where=condition)
            kept = rows.filter(self._is_kept(rows[self._key])) if rows.height else rows
            is_all = rows.height < n_fetched or n_fetched >= len(self._table)
            if kept.height >= top_k or is_all:
                return kept.head(top_k).drop([name for name in wanted if name not in columns])
            n_fetched = min(n_fetched * FETCH_GROWTH_FACTOR, len(self._table))


class FilteredLinks(Links):
    """The links between rows that the filters keep."""

    def __init__(self, index: FilteredIndex, masks: FilterMasks) -> None:
        super().__init__(index.open_mapped, index.whole.links.n_text_units)
        self._masks = masks

    def _read_linked(self, name: str, key: str, number: int, column: str) -> LinkedRows:
        numbers, is_subject = super()._read_linked(name, key, number, column)
        kept = (self._masks.entities if column == "entity" else self._masks.text_units)[numbers]
        return LinkedRows(numbers[kept], is_subject[kept])

    def relationships_of(self, entity: int, most: int | None = None) -> Neighbours:
        """Return the relationships of an entity for which the filters keep both entities.

        The filters must also keep one of the text units of the relationship.
        """
        found = super().relationships_of(entity)
        kept = self._masks.entities[found.entities] & self._masks.relationships[found.relationships]
        return Neighbours._make(values[kept][:most] for values in found)

    def n_relationships_of(self, entities: "npt.ArrayLike") -> "npt.NDArray[np.int64]":
        """Count the relationships of each entity for which the filters keep both entities."""
        counts: npt.NDArray[np.int64] = self.degrees[np.asarray(entities, np.int32)]
        return counts

    @cached_property
    def degrees(self) -> "npt.NDArray[np.int64]":
        """The number of relationships of each entity for which the filters keep both entities."""
        table = self._open("relationships_of_entities")
        entities, neighbours, relationships = (
            table.slice(name, 0, len(table)) for name in ("entity", "neighbour", "relationship")
        )
        kept = self._masks.entities[neighbours] & self._masks.relationships[relationships]
        return np.bincount(entities[kept], minlength=len(self._masks.entities))

    def communities_of(self, entity: int) -> "tuple[Numbers, Numbers]":
        """Return the kept communities to which an entity belongs."""
        levels, communities = super().communities_of(entity)
        kept = np.array([n in self._masks.communities for n in communities.tolist()], bool)
        return levels[kept], communities[kept]

    def claims_of(self, entity: int) -> "Numbers":
        """Return the kept claims about an entity."""
        claims = super().claims_of(entity)
        columns = ("text_unit", "start_date", "end_date")
        rows = self._open("claim_rows").rows(claims, *columns).iter_rows()
        kept: Numbers = claims[np.array([self._masks.keeps_claim(*row) for row in rows], bool)]
        return kept


def _matches_pattern(value: Any, patterns: Sequence[str]) -> bool:
    """Return whether a value matches one of the patterns.

    A value that is not a string is written as JSON before it is compared.
    """
    if value is None:
        return False
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return any(fnmatchcase(text.casefold(), pattern.casefold()) for pattern in patterns)

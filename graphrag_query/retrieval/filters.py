"""Filters, and which documents, entities and reports of an index they keep."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from graphrag_index.errors import SettingsError

if TYPE_CHECKING:
    import numpy.typing as npt

    from graphrag_query.retrieval.index_store import IndexStore

    Flags = npt.NDArray[np.bool_]
    Numbers = npt.NDArray[np.int32]

# ISO 8601 sorts as text; a time may follow the day.
_DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01])([T ].*)?)?)?$")
# Columns of documents that patterns may name, beside the keys of their metadata.
COLUMNS = ("path", "title", "language")
# Share of a community's entities that must be kept for the community to be.
MIN_COMMUNITY_SHARE = 0.5
# The vector store is given the ids of at most so many documents; of more, its results are filtered.
MAX_LISTED_IDS = 2_000


@dataclass(frozen=True)
class Filters:
    """Conditions on documents and entities.

    `documents` has patterns, as for file names, by column or by key of the metadata; a document
    must match one pattern of each. `since` and `until` are dates as documents state them, and
    both belong to the span: until 1914 includes all of that year. A document without a date is
    in no span.

    Raises
    ------
    SettingsError
        `since` or `until` is no date.
    """

    documents: Mapping[str, Sequence[str]] = field(default_factory=dict)
    entity_types: Sequence[str] = ()
    since: str = ""
    until: str = ""

    def __post_init__(self) -> None:
        for name in ("since", "until"):
            date = getattr(self, name)
            if date and not _DATE.match(date):
                raise SettingsError(
                    f"{name} {date!r} is no date: write a year, a month or a day, such as 1914, "
                    "1914-08 or 1914-08-01."
                )

    def to_dict(self) -> dict[str, Any]:
        """Return the conditions that are set."""
        given = {"since": self.since, "until": self.until}
        chosen: dict[str, Any] = {name: list(values) for name, values in self.documents.items()}
        if self.entity_types:
            chosen["entity_types"] = list(self.entity_types)
        return chosen | {name: value for name, value in given.items() if value}


class FilterMasks:
    """Boolean masks of the rows that filters keep, computed when they are first read.

    Raises
    ------
    SettingsError
        No document has such a column or key, or no row is kept.
    """

    def __init__(self, index: "IndexStore", filters: Filters) -> None:
        self.index, self.filters = index, filters
        if not self.documents.any():
            raise SettingsError(f"No document fits the filter {filters.to_dict()}.")

    @cached_property
    def documents(self) -> "Flags":
        """The documents that match."""
        rows = self.index.documents(range(len(self.index.map("document_rows"))))
        kept = np.ones(rows.height, bool)
        metadata = [json.loads(text) if text else {} for text in rows["metadata"].to_list()]
        for name, patterns in self.filters.documents.items():
            if name in COLUMNS:
                values = rows[name].to_list()
            else:
                values = [_as_text(of_one.get(name)) for of_one in metadata]
                if not any(name in of_one for of_one in metadata):
                    keys = sorted({key for of_one in metadata for key in of_one})
                    known = ", ".join([*COLUMNS, *keys])
                    raise SettingsError(f"No document has {name!r}; they have: {known}.")
            kept &= np.array(
                [any(_matches(value, pattern) for pattern in patterns) for value in values], bool
            )
        since, until = self.filters.since, self.filters.until
        if since or until:
            dates = rows["creation_date"].to_list()
            kept &= np.array([_is_between(date or "", since, until) for date in dates], bool)
        return kept

    @cached_property
    def text_units(self) -> "Flags":
        """The text units of these documents."""
        table = self.index.map("text_unit_rows")
        flags: Flags = self.documents[table.slice("document", 0, len(table))]
        return flags

    @cached_property
    def entities(self) -> "Flags":
        """The entities of the wanted types that these text units name."""
        kept = np.zeros(self.index.rows("entity_rows"), bool)
        table = self.index.map("entities_of_text_units")
        text_units = table.slice("text_unit", 0, len(table))
        kept[table.slice("entity", 0, len(table))[self.text_units[text_units]]] = True
        if self.filters.entity_types:
            types = self.index.map("entity_rows").rows(range(len(kept)), "type")["type"]
            wanted = [kind.lower() for kind in self.filters.entity_types]
            matching = types.str.to_lowercase().is_in(wanted).to_numpy()
            if not matching.any():
                known = ", ".join(sorted(types.unique().to_list()))
                raise SettingsError(
                    f"No entity is of type {' or '.join(self.filters.entity_types)}; "
                    f"there are: {known}."
                )
            kept &= matching
        return kept

    @cached_property
    def communities(self) -> set[int]:
        """The numbers of the communities with enough kept entities."""
        table = self.index.map("communities_of_entities")
        communities = table.slice("community", 0, len(table))
        kept = self.entities[table.slice("entity", 0, len(table))]
        places = self.index.map("community_places")
        numbers = places.slice("community", 0, len(places))
        rows = np.searchsorted(numbers, communities)
        sizes = np.bincount(rows, minlength=len(numbers))
        held = np.bincount(rows[kept], minlength=len(numbers))
        enough = (held >= MIN_COMMUNITY_SHARE * sizes) & (held > 0)
        return set(numbers[enough].tolist())

    @cached_property
    def document_ids(self) -> list[str]:
        """The ids of the documents that match."""
        found = self.index.documents(np.flatnonzero(self.documents).tolist())
        return list(found["id"])

    @property
    def where(self) -> str | None:
        """The condition on documents for the vector store; None if they are too many to list."""
        if not self.documents.all() and len(self.document_ids) <= MAX_LISTED_IDS:
            quoted = (id.replace("'", "''") for id in self.document_ids)
            named = ", ".join(f"'{id}'" for id in quoted)
            return f"document_id IN ({named})"
        return None

    def keeps_claim(self, text_unit: int, start: str | None, end: str | None) -> bool:
        """Tell whether a claim is kept, by its text unit and its span of time."""
        if not 0 <= text_unit < len(self.text_units) or not self.text_units[text_unit]:
            return False
        since, until = self.filters.since, self.filters.until
        first, last = start or end or "", end or start or ""
        if not first or not (since or until):
            return True
        return (not since or last[: len(since)] >= since) and (
            not until or first[: len(until)] <= until
        )


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _matches(value: str | None, pattern: str) -> bool:
    return value is not None and fnmatchcase(value.casefold(), pattern.casefold())


def _is_between(date: str, since: str, until: str) -> bool:
    return bool(date) and date[: len(since)] >= since and (not until or date[: len(until)] <= until)

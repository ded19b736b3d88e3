"""A part of the corpus: the documents, entities and reports to which a question is held."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any

from graphrag_index.errors import SettingsError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from graphrag_query.retrieval.index_store import KnowledgeModel

    Flags = npt.NDArray[np.bool_]
    Numbers = npt.NDArray[np.int32]

# ISO 8601, which sorts as text; what follows the day is a time.
_DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01])([T ].*)?)?)?$")
# Columns of documents by which they can be chosen, beside the keys of their metadata.
COLUMNS = ("path", "title", "language")
# A community belongs to a scope if so large a share of its entities does.
SHARE_OF_COMMUNITY = 0.5
# More documents than this are not named one by one to the vector store: what it finds is sifted.
MOST_NAMED = 2_000


@dataclass(frozen=True)
class Filters:
    """What a document, and an entity, must be like.

    `documents` has patterns (`*` and `?` stand for what they do in file names) by column, or
    by key of the metadata; a document must fit one pattern of each. `since` and `until` are
    dates as documents state them, as long as is meant: until 1914 holds all of that year. A
    document without a date is in no span of time.

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
        given = {"since": self.since, "until": self.until}
        chosen: dict[str, Any] = {name: list(values) for name, values in self.documents.items()}
        if self.entity_types:
            chosen["entity_types"] = list(self.entity_types)
        return chosen | {name: value for name, value in given.items() if value}


class Scope:
    """The rows of an index that filters leave: one flag for each, found when it is first asked.

    Raises
    ------
    SettingsError
        No document has such a column or key, or nothing is left.
    """

    def __init__(self, model: "KnowledgeModel", filters: Filters) -> None:
        self.model, self.filters = model, filters
        if not self.documents.any():
            raise SettingsError(f"No document fits the filter {filters.to_dict()}.")

    @cached_property
    def documents(self) -> "Flags":
        """Which documents are in it."""
        import numpy as np

        rows = self.model.documents(range(len(self.model.map("document_rows"))))
        inside = np.ones(rows.height, bool)
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
            inside &= np.array(
                [any(_fits(value, pattern) for pattern in patterns) for value in values], bool
            )
        since, until = self.filters.since, self.filters.until
        if since or until:
            dates = rows["creation_date"].to_list()
            inside &= np.array([_is_between(date or "", since, until) for date in dates], bool)
        return inside

    @cached_property
    def text_units(self) -> "Flags":
        """Which text units are in it: those of its documents."""
        table = self.model.map("text_unit_rows")
        flags: Flags = self.documents[table.slice("document", 0, len(table))]
        return flags

    @cached_property
    def entities(self) -> "Flags":
        """Which entities are in it: those of the types asked for that its text units name."""
        import numpy as np

        inside = np.zeros(self.model.rows("entity_rows"), bool)
        table = self.model.map("entities_of_text_units")
        text_units = table.slice("text_unit", 0, len(table))
        inside[table.slice("entity", 0, len(table))[self.text_units[text_units]]] = True
        if self.filters.entity_types:
            types = self.model.map("entity_rows").rows(range(len(inside)), "type")["type"]
            wanted = [kind.lower() for kind in self.filters.entity_types]
            fitting = types.str.to_lowercase().is_in(wanted).to_numpy()
            if not fitting.any():
                known = ", ".join(sorted(types.unique().to_list()))
                raise SettingsError(
                    f"No entity is of type {' or '.join(self.filters.entity_types)}; "
                    f"there are: {known}."
                )
            inside &= fitting
        return inside

    @cached_property
    def communities(self) -> set[int]:
        """The communities in it: those of whose entities most are."""
        import numpy as np

        table = self.model.map("communities_of_entities")
        communities = table.slice("community", 0, len(table))
        inside = self.entities[table.slice("entity", 0, len(table))]
        places = self.model.map("community_places")
        numbers = places.slice("community", 0, len(places))
        rows = np.searchsorted(numbers, communities)
        sizes = np.bincount(rows, minlength=len(numbers))
        held = np.bincount(rows[inside], minlength=len(numbers))
        enough = (held >= SHARE_OF_COMMUNITY * sizes) & (held > 0)
        return set(numbers[enough].tolist())

    @cached_property
    def document_ids(self) -> list[str]:
        """The ids of the documents in it."""
        import numpy as np

        found = self.model.documents(np.flatnonzero(self.documents).tolist())
        return list(found["id"])

    @property
    def where(self) -> str | None:
        """What the vector store is told of the documents; None if they are too many to name."""
        if not self.documents.all() and len(self.document_ids) <= MOST_NAMED:
            quoted = (id.replace("'", "''") for id in self.document_ids)
            named = ", ".join(f"'{id}'" for id in quoted)
            return f"document_id IN ({named})"
        return None

    def holds_claim(self, text_unit: int, start: str | None, end: str | None) -> bool:
        """Tell whether a claim of a text unit, about a span of time, is in it."""
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


def _fits(value: str | None, pattern: str) -> bool:
    return value is not None and fnmatchcase(value.casefold(), pattern.casefold())


def _is_between(date: str, since: str, until: str) -> bool:
    return bool(date) and date[: len(since)] >= since and (not until or date[: len(until)] <= until)

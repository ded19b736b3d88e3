"""An index opened for looking over: its tables, with the names and types that ours have."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import polars as pl

from graphrag_index.errors import describe_error
from graphrag_index.health.finding import SINGULAR, Finding

# What the checks read. One name of those with | between is enough.
READ: Mapping[str, tuple[str, ...]] = {
    "documents": ("id", "text", "text_unit_ids"),
    "text_units": ("id", "text", "document_id|document_ids", "entity_ids", "relationship_ids"),
    "entities": ("id", "title", "description", "text_unit_ids"),
    "relationships": ("id", "source", "target", "text_unit_ids"),
    "communities": (
        *("community", "level", "parent", "entity_ids"),
        *("relationship_ids", "text_unit_ids"),
    ),
    "community_reports": ("id", "community", "full_content"),
    "covariates": ("id", "text_unit_id"),
}
# Without it nothing is missing: claims are extracted on demand.
_OPTIONAL = ("covariates",)
# The name of an embedding model as its server knows it, and the number of dimensions asked for.
ModelIdentity = tuple[str, int | None]
# Rows read at once where a whole table is read.
_AT_ONCE = 65_536


class Vectors(Protocol):
    """The rows of one vector table."""

    @property
    def dimension(self) -> int: ...

    def batches(self) -> Iterator[pl.DataFrame]:
        """Give `id`, `vector` (an array) and, where it is kept, the `text` that was embedded."""


@dataclass
class Opened:
    """An index. `tables` have the columns of ours, as far as the files have them."""

    place: Path
    made_by: str
    version: int | None  # None: another program's, which keeps none
    tables: dict[str, pl.LazyFrame] = field(default_factory=dict)
    vectors: dict[str, Vectors] = field(default_factory=dict)
    search_tables: dict[str, pl.LazyFrame] = field(default_factory=dict)
    damaged: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what is not looked at, and why
    made_vectors: Mapping[str, ModelIdentity] = field(default_factory=dict)  # where it is known
    embeds_questions: ModelIdentity | None = None  # by the settings; None: there are none
    as_imported: bool = False  # a version of ours that holds another program's rows as they were

    def __post_init__(self) -> None:
        self._columns = {name: set(t.collect_schema()) for name, t in self.tables.items()}

    @property
    def is_own(self) -> bool:
        """Whether its rows are as this program makes them."""
        return self.version is not None and not self.as_imported

    def has(self, name: str, *columns: str) -> bool:
        return name in self._columns and self._columns[name].issuperset(columns)

    def label(self, name: str) -> str:
        """Return the column that names a row of a table best: its number, if it has one."""
        if name == "community_reports" and self.has(name, "community"):
            return "community"
        return "human_readable_id" if self.has(name, "human_readable_id") else "id"

    def text_unit_documents(self) -> pl.LazyFrame | None:
        """Return which text unit (`id`) belongs to which document (`document_id`)."""
        if self.has("text_units", "id", "document_id"):
            return self.tables["text_units"].select("id", "document_id")
        if self.has("text_units", "id", "document_ids"):
            return explode(
                self.tables["text_units"].select("id", document_id="document_ids"), "document_id"
            )
        return None

    def drop_unreadable(self) -> bool:
        """Read all tables to the end and put those aside that cannot be; tell if there are any."""
        n_before = len(self.damaged)
        for tables in (self.tables, self.search_tables):
            for name, rows in list(tables.items()):
                reason = _failure(rows)
                if reason is not None:
                    del tables[name]
                    self._columns.pop(name, None)
                    self.damaged.append(damaged_table(name, reason))
        return len(self.damaged) > n_before

    def gaps(self) -> list[str]:
        """Say which tables and columns are missing, so that they are not looked at."""
        said = []
        damaged = {finding.table for finding in self.damaged}
        for name, columns in READ.items():
            if name not in self._columns:
                if name not in (*_OPTIONAL, *damaged):
                    said.append(f"There is no table {name}: what needs it is not looked at.")
                continue
            lacking = [c for c in columns if not self._columns[name].intersection(c.split("|"))]
            if lacking:
                names = ", ".join(column.split("|")[0] for column in lacking)
                said.append(f"{name} has no {names}: what needs that is not looked at.")
        return said


def explode(rows: pl.LazyFrame, column: str) -> pl.LazyFrame:
    """Give each value of a list a row; empty lists and nulls have none."""
    return rows.explode(column).drop_nulls(column)


def name_row(table: str, label: object) -> str:
    """Name a row for a person: "entity 12"."""
    if table == "community_reports":
        return f"report on community {label}"
    return f"{SINGULAR.get(table, table)} {label}"


def damaged_table(name: str, reason: str, place: Path | None = None) -> Finding:
    means = (
        f"The table {name} cannot be read ({reason[:160]}): restore its file, or make the index "
        "again."
    )
    return Finding(name, 1, 1, (str(place),) if place else (), means)


def _failure(rows: pl.LazyFrame) -> str | None:
    """Read a table to its end; return why that cannot be done."""
    try:
        n_rows = rows.select(pl.len()).collect().item()
        for start in range(0, n_rows, _AT_ONCE):
            rows.slice(start, _AT_ONCE).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        return describe_error(error)
    return None

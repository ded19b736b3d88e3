"""An index of Microsoft's, opened where it lies; it replaces a `TableStore`.

The search tables are made in memory on first use, from the tables that `read_tables` reads.
Vectors are read when a search first compares them.
"""

import shutil
import threading
import weakref
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.microsoft.in_memory_vectors import InMemoryVectors
from graphrag_index.microsoft.read_files import name_damaged_file
from graphrag_index.microsoft.read_tables import MicrosoftIndex, renumbered
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.schema.table import Table
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.mapped_table import MappedTable
from graphrag_index.storage.search_tables import create_search_tables
from graphrag_index.storage.table_writer import conform
from graphrag_index.storage.versions import StepRecord, StoredTable, Vectors, Version

if TYPE_CHECKING:
    from graphrag_index.schema.settings.models import ModelSettings

# Vector tables, with the public table of their rows and the rows in words.
_EMBEDDED = {
    "text_unit_text": ("text_units", "text units"),
    "entity_description": ("entities", "entities"),
    "community_full_content": ("community_reports", "reports"),
}
# Public tables with as many rows as a mapped table.
_ROWS_OF = {
    "document_rows": "documents",
    "text_unit_rows": "text_units",
    "text_unit_vectors": "text_units",
    "entity_rows": "entities",
    "relationship_rows": "relationships",
    "community_rows": "communities",
    "community_places": "communities",
    "report_rows": "community_reports",
    "claim_rows": "covariates",
}
# Microsoft's null in claims.
_NONE = "NONE"
# Its index keeps no versions.
VERSION = 0
# Values of an unknown document that are not the empty text.
_BLANK: Mapping[str, Any] = {
    "human_readable_id": 0,
    "text_unit_ids": [],
    "language": "und",
    "raw_data": None,
    "metadata": None,
}


class MicrosoftStore:
    """The tables and vectors of an index of Microsoft's, with the interface of `TableStore`.

    `is_ours` tells them apart. `lacks_vectors` is the reason why no vectors are compared, empty if
    they are. `gaps` are notes for answers.
    """

    is_ours = False

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.index = MicrosoftIndex(folder)
        self.output = self.index.place.absolute()
        self._lock = threading.RLock()
        self._vectors: dict[str, InMemoryVectors] = {}
        self._written: dict[str, Path] = {}
        self._widths = {name: v.dimension for name, v in self.index.vectors.items()}
        # Of several dimensions, only the most frequent can be compared with one question.
        widths = list(self._widths.values())
        self.dimension = max(widths, key=widths.count) if widths else 1
        self._usable = {name for name, n in self._widths.items() if n == self.dimension}
        self.lacks_vectors = self._why_no_vectors(settings)
        self.version = self._described(settings)

    @property
    def gaps(self) -> tuple[str, ...]:
        """The faults of this index that answers report, one sentence each."""
        notes = [self.lacks_vectors] if self.lacks_vectors else []
        lacking = [name for name in self._embedded() if name not in self._usable]
        if lacking and not self.lacks_vectors:
            rows = " and ".join(_EMBEDDED[name][1] for name in lacking)
            notes.append(
                f"There are no vectors of {rows} of {self.dimension:,} numbers in "
                f"{self.output / 'lancedb'}: these are found by names and words alone."
            )
        # The search that is answered has computed it.
        are_found = self.index.positions.text_units["is_found"]
        n_lost = int((~are_found).sum())
        if n_lost:
            notes.append(
                f"{n_lost:,} of {len(are_found):,} text units do not stand in their documents as "
                "they are: characters of what they prove are counted from their own beginning."
            )
        return tuple(notes)

    def _embedded(self) -> list[str]:
        return [name for name, (table, _) in _EMBEDDED.items() if table in self.index.tables]

    def _why_no_vectors(self, settings: Settings) -> str:
        """Return the reason why a question cannot be compared with vectors; empty if it can."""
        by_words = "it was searched by names and words alone"
        if not self._usable:
            damaged = "; ".join(
                f"{path} cannot be opened ({why[:120]})"
                for path, why in self.index.damaged_vectors.values()
            )
            where = damaged or f"{self.output} has no vectors in lancedb/"
            return f"{where}: {by_words}."
        from graphrag_index.llm.local_embeddings import DIMENSION

        name = settings.generate_text_embeddings.model
        if name not in settings.models and self.dimension != DIMENSION:
            return (
                f"The vectors of {self.output} have {self.dimension:,} numbers, and {name} gives "
                f"{DIMENSION}: {by_words}. Name the model that made them in the section models, "
                "and set generate_text_embeddings.model to it."
            )
        return ""

    def _described(self, settings: Settings) -> Version:
        """Describe the index as a version of ours."""
        counts = {name: self.index.n_rows(name) for name in self.index.files if name in TABLES}
        tables = {
            name: StoredTable(rows, "")
            for name, rows in counts.items()
            if name in self.index.tables
        }
        for name, table in TABLES.items():
            if table.kind == "mapped":
                rows = counts.get(_ROWS_OF.get(name, ""), 0)
                tables[name] = StoredTable(rows, "")
        tables["mentions"] = StoredTable(0, "")
        for name in self._embedded():
            rows = counts[_EMBEDDED[name][0]]
            tables[name] = StoredTable(rows, "", vectors=Vectors(self.dimension, True))
        # A model wrote the reports: that of our step answers, if it is configured.
        wrote = settings.models.get(settings.create_community_reports.model)
        step = "create_community_reports" if wrote and _is_reachable(wrote) else "microsoft"
        name = f"Microsoft GraphRAG {self.index.generation}"
        secret: Any = {"models": {"__all__": {"api_key"}}}
        return Version(
            VERSION,
            f"that of {name}",
            name,
            (StepRecord(step, "", tables),),
            settings.model_dump(mode="json", exclude=secret),
        )

    def is_gone(self, number: int) -> bool:
        """Tell whether the folder was deleted since it was opened."""
        return not self.output.is_dir()

    def read_pointer(self) -> Version | None:
        """Return the only version."""
        return self.version

    @cached_property
    def tables(self) -> Mapping[str, pl.LazyFrame]:
        """The public tables, with the row number as human_readable_id."""
        with self._lock, name_damaged_file(self.index.files):
            tables = renumbered(self.index.tables)
            tables["documents"] = _add_missing_documents(tables["documents"], tables["text_units"])
            if "community_reports" in tables:
                tables["communities"] = _add_missing_communities(
                    tables["communities"], tables["community_reports"]
                )
            if "covariates" in tables:
                names = ("object_id", "status", "start_date", "end_date")
                values = pl.col(names)
                tables["covariates"] = tables["covariates"].with_columns(
                    pl.when(values != _NONE).then(values)
                )
            return tables

    def scan(self, name: str, table: StoredTable) -> pl.LazyFrame:
        """Open a public table."""
        return self.tables[name]

    def map(self, name: str, table: StoredTable) -> MappedTable:
        """Open a mapped table; the first call makes all of them."""
        with self._lock:
            if name == "text_unit_vectors":
                return self.vectors("text_unit_text", table).as_mapped()
            return self._mapped[name]

    @cached_property
    def _mapped(self) -> dict[str, MappedTable]:
        parts: dict[str, list[pl.DataFrame]] = {}
        with name_damaged_file(self.index.files):
            tables = {
                # Read once: otherwise each part of a table would read its file again.
                name: (rows.drop("text") if name == "documents" else rows).collect().lazy()
                for name, rows in self.tables.items()
            }
        for frames in create_search_tables(**tables):
            for name, frame in frames.items():
                parts.setdefault(name, []).append(frame)
        return {
            name: MappedTable.of(_whole(table, parts.get(name, [])))
            for name, table in TABLES.items()
            if table.kind == "mapped" and name != "text_unit_vectors"
        }

    def public_files(self) -> Mapping[str, Path]:
        """Write the public tables as temporary Parquet files, for queries."""
        with self._lock, name_damaged_file(self.index.files):
            if not self._written:
                for name, rows in self.tables.items():
                    path = self._scratch / f"{name}.parquet"
                    rows.collect().write_parquet(path)
                    self._written[name] = path
            return self._written

    @property
    def graphs(self) -> Path:
        """The temporary folder of the graph database for Cypher."""
        return self._scratch / "cypher"

    @cached_property
    def _scratch(self) -> Path:
        folder = mkdtemp(prefix="graphrag-query-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def vectors(self, name: str, table: StoredTable) -> InMemoryVectors:
        """Open a vector table lazily."""
        with self._lock:
            if name not in self._vectors:
                usable = name in self._usable and not self.lacks_vectors
                vectors = self.index.vectors[name] if usable else None
                width = 1 if self.lacks_vectors else self.dimension
                rows = _embedded_rows(name, self.tables)
                # Equal rows share an id and a vector.
                ids = self.index.tables[_EMBEDDED[name][0]].select("id")
                self._vectors[name] = InMemoryVectors(rows, ids, vectors, width, str(self.output))
            return self._vectors[name]


def _whole(table: Table, parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Concatenate the parts of a table."""
    return conform(pl.concat(parts), table) if parts else table.empty()


def _is_reachable(model: "ModelSettings") -> bool:
    """Tell whether a model is configured."""
    return bool(model.api_key or model.base_url)


def _embedded_rows(name: str, tables: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    """Return the columns of a vector table beside the vector."""
    text = {
        "text_unit_text": pl.col("text"),
        "entity_description": pl.concat_str("title", "description", separator=":"),
        "community_full_content": pl.col("full_content"),
    }[name]
    columns = [column for column in TABLES[name].columns if column not in ("text", "vector")]
    return tables[_EMBEDDED[name][0]].select(*columns, text.alias("text"))


def _add_missing_documents(documents: pl.LazyFrame, text_units: pl.LazyFrame) -> pl.LazyFrame:
    """Add an empty document for each id that text units refer to and no row has."""
    known = documents.select("id").collect()["id"]
    named = text_units.select("document_id").collect()["document_id"].unique(maintain_order=True)
    unknown = named.filter(~named.is_in(known.implode()))
    if not len(unknown):
        return documents
    table = TABLES["documents"].empty()
    blank = pl.DataFrame([{name: _BLANK.get(name, "") for name in table.columns}] * len(unknown))
    names = [unknown.alias(name) for name in ("id", "title", "path")]
    numbers = pl.int_range(len(known), len(known) + len(unknown), dtype=pl.Int64, eager=True)
    rows = blank.with_columns(*names, numbers.alias("human_readable_id"))
    return pl.concat([documents, rows.cast(table.schema).lazy()])


def _add_missing_communities(communities: pl.LazyFrame, reports: pl.LazyFrame) -> pl.LazyFrame:
    """Add a community without members for each that a report refers to and no row has."""
    known = communities.select("community")
    unknown = (
        reports.join(known, on="community", how="anti", maintain_order="left")
        .unique("community", keep="first", maintain_order=True)
        .select("community", "level", "parent", "children", "title", "period")
        .collect()
    )
    if unknown.is_empty():
        return communities
    blank = pl.lit([], pl.List(pl.String))
    rows = unknown.with_columns(
        id=pl.format("unknown-{}", "community"),
        human_readable_id="community",
        entity_ids=blank,
        relationship_ids=blank,
        text_unit_ids=blank,
        size=pl.lit(0, pl.Int64),
        island=pl.lit(False),
    )
    order = list(TABLES["communities"].columns)
    return pl.concat([communities, rows.select(order).lazy()])

"""An index of Microsoft's in the place of one of ours: opened where it lies, nothing is copied.

What searches look up is made in memory when the first search asks for it, from the tables that
`graphrag_index.microsoft.read_tables` reads. Vectors are read when the first search compares them.
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

from graphrag_index.microsoft.read_files import name_damaged_file
from graphrag_index.microsoft.read_tables import MicrosoftIndex, renumbered
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.schema.table import Table
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.mapped_table import MappedTable
from graphrag_index.storage.search_tables import create_search_tables
from graphrag_index.storage.table_writer import conform
from graphrag_index.storage.versions import StepRecord, StoredTable, Vectors, Version
from graphrag_query.retrieval.in_memory_vectors import HeldVectors
from graphrag_query.retrieval.missing_rows import with_unknown_communities, with_unknown_documents

if TYPE_CHECKING:
    from graphrag_index.schema.settings.models import ModelSettings

# What is embedded of each table, and how a person calls its rows.
_EMBEDDED = {
    "text_unit_text": ("text_units", "text units"),
    "entity_description": ("entities", "entities"),
    "community_full_content": ("community_reports", "reports"),
}
# Whose rows are those of which table.
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
# Microsoft's word for nothing in a claim.
_NONE = "NONE"
# It keeps no versions.
VERSION = 0


class MicrosoftStore:
    """Stands where `TableStore` stands for an index of ours.

    `is_ours` tells them apart. `lacks_vectors` says why no vectors are compared, if none are;
    `gaps` say what answers are to say of the index.
    """

    is_ours = False

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.index = MicrosoftIndex(folder)
        self.output = self.index.place.absolute()
        self._lock = threading.RLock()
        self._vectors: dict[str, HeldVectors] = {}
        self._written: dict[str, Path] = {}
        self._widths = {name: v.dimension for name, v in self.index.vectors.items()}
        # Tables of another width than most cannot be compared with the same question.
        widths = list(self._widths.values())
        self.dimension = max(widths, key=widths.count) if widths else 1
        self._usable = {name for name, n in self._widths.items() if n == self.dimension}
        self.lacks_vectors = self._why_no_vectors(settings)
        self.version = self._described(settings)

    @property
    def gaps(self) -> tuple[str, ...]:
        """What an answer is to say of this index, a sentence each."""
        said = [self.lacks_vectors] if self.lacks_vectors else []
        lacking = [name for name in self._embedded() if name not in self._usable]
        if lacking and not self.lacks_vectors:
            what = " and ".join(_EMBEDDED[name][1] for name in lacking)
            said.append(
                f"There are no vectors of {what} of {self.dimension:,} numbers in "
                f"{self.output / 'lancedb'}: these are found by names and words alone."
            )
        # Known by now: the search that is answered has asked for it.
        are_found = self.index.positions.text_units["is_found"]
        n_lost = int((~are_found).sum())
        if n_lost:
            said.append(
                f"{n_lost:,} of {len(are_found):,} text units do not stand in their documents as "
                "they are: characters of what they prove are counted from their own beginning."
            )
        return tuple(said)

    def _embedded(self) -> list[str]:
        return [name for name, (table, _) in _EMBEDDED.items() if table in self.index.tables]

    def _why_no_vectors(self, settings: Settings) -> str:
        """Tell why a question cannot be compared with vectors; empty if it can."""
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
        """Describe the index as a run of ours describes one."""
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
        # A model wrote the reports: of ours, that of the same step answers, if it can be reached.
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
        """Return the one version that there is."""
        return self.version

    @cached_property
    def tables(self) -> Mapping[str, pl.LazyFrame]:
        """Our public tables, in which every number is that of the row."""
        with self._lock, name_damaged_file(self.index.files):
            tables = renumbered(self.index.tables)
            tables["documents"] = with_unknown_documents(tables["documents"], tables["text_units"])
            if "community_reports" in tables:
                tables["communities"] = with_unknown_communities(
                    tables["communities"], tables["community_reports"]
                )
            if "covariates" in tables:
                names = ("object_id", "status", "start_date", "end_date")
                said = pl.col(names)
                tables["covariates"] = tables["covariates"].with_columns(
                    pl.when(said != _NONE).then(said)
                )
            return tables

    def scan(self, name: str, table: StoredTable) -> pl.LazyFrame:
        """Open a public table."""
        return self.tables[name]

    def map(self, name: str, table: StoredTable) -> MappedTable:
        """Open a mapped table; all are made when the first is asked for."""
        with self._lock:
            if name == "text_unit_vectors":
                return self.vectors("text_unit_text", table).as_mapped()
            return self._mapped[name]

    @cached_property
    def _mapped(self) -> dict[str, MappedTable]:
        parts: dict[str, list[pl.DataFrame]] = {}
        with name_damaged_file(self.index.files):
            tables = {
                # Read once: each part of a table would read its file anew.
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
        """Write the public tables as Parquet files, for queries, until the program ends."""
        with self._lock, name_damaged_file(self.index.files):
            if not self._written:
                for name, rows in self.tables.items():
                    path = self._scratch / f"{name}.parquet"
                    rows.collect().write_parquet(path)
                    self._written[name] = path
            return self._written

    @property
    def graphs(self) -> Path:
        """Where questions in Cypher keep their database, until the program ends."""
        return self._scratch / "cypher"

    @cached_property
    def _scratch(self) -> Path:
        folder = mkdtemp(prefix="graphrag-query-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def vectors(self, name: str, table: StoredTable) -> HeldVectors:
        """Open a table of vectors; nothing is read yet."""
        with self._lock:
            if name not in self._vectors:
                usable = name in self._usable and not self.lacks_vectors
                vectors = self.index.vectors[name] if usable else None
                width = 1 if self.lacks_vectors else self.dimension
                rows = _embedded_rows(name, self.tables)
                # Equal rows share an id, and a vector: those that were told apart have it too.
                ids = self.index.tables[_EMBEDDED[name][0]].select("id")
                self._vectors[name] = HeldVectors(rows, ids, vectors, width, str(self.output))
            return self._vectors[name]


def _whole(table: Table, parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Put the parts of a table together."""
    return conform(pl.concat(parts), table) if parts else table.empty()


def _is_reachable(model: "ModelSettings") -> bool:
    """Tell whether a model is one that somebody has set up."""
    return bool(model.api_key or model.base_url)


def _embedded_rows(name: str, tables: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    """Return what a vector table of ours says of each row, beside the vector."""
    text = {
        "text_unit_text": pl.col("text"),
        "entity_description": pl.concat_str("title", "description", separator=":"),
        "community_full_content": pl.col("full_content"),
    }[name]
    columns = [column for column in TABLES[name].columns if column not in ("text", "vector")]
    return tables[_EMBEDDED[name][0]].select(*columns, text.alias("text"))

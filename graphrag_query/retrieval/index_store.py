"""The tables and vectors of an index, opened for reading at one version."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import StoredTable, Version
from graphrag_query.retrieval.links import Links
from graphrag_query.retrieval.question_embedding import VECTOR_TABLES, QuestionEmbedder

if TYPE_CHECKING:
    import numpy.typing as npt

    from graphrag_index.microsoft.microsoft_store import InMemoryVectors, MicrosoftStore
    from graphrag_index.schema.settings.models import ModelSettings
    from graphrag_index.storage.mapped_table import MappedTable
    from graphrag_index.storage.vector_store import VectorTable

MAX_CONCURRENT_SEARCHES = 8


class IndexStore:
    """Tables and vectors of one version. Opening reads the pointer alone; the rest when needed.

    The version is pinned: a run that finishes meanwhile does not change what is read.
    `models` are those of today's settings, with the keys that the index does not keep.
    """

    def __init__(
        self,
        backend: "TableStore | MicrosoftStore",
        version: Version,
        models: "Mapping[str, ModelSettings] | None" = None,
    ) -> None:
        self.backend = backend
        self.models = models or {}
        self.version = version
        self._vectors: dict[str, VectorTable | InMemoryVectors] = {}
        self._mapped: dict[str, MappedTable] = {}

    @classmethod
    def open(
        cls,
        output: Path,
        models: "Mapping[str, ModelSettings] | None" = None,
        as_of: int | None = None,
    ) -> "IndexStore":
        """Open the index in an output folder, at its current version or an earlier one.

        Raises
        ------
        TableError
            There is no index, or it cannot be read.
        """
        backend = TableStore(output)
        version = backend.read_pointer() if as_of is None else backend.read_version(as_of)
        if version is None:
            raise TableError(f"There is no index in {output}: make one with `graphrag-index run`.")
        return cls(backend, version, models)

    @cached_property
    def settings(self) -> Settings:
        """The settings that the index was made with."""
        return Settings.model_validate(self.version.settings)

    @property
    def filters(self) -> Mapping[str, Any]:
        """The filters that this index is restricted to."""
        return {}

    def holds(self, entity: int) -> bool:
        """Tell whether the filters keep an entity."""
        return True

    def holds_text_units(self, numbers: "npt.NDArray[np.int64]") -> "npt.NDArray[np.bool_]":
        """Tell which of these text units the filters keep."""
        return np.ones(len(numbers), bool)

    @cached_property
    def links(self) -> Links:
        """The links between rows, by number."""
        return Links(self.map, self.rows("text_unit_rows"))

    @cached_property
    def embedder(self) -> QuestionEmbedder:
        """The model for questions."""
        return QuestionEmbedder(self)

    @cached_property
    def threads(self) -> "ThreadPoolExecutor":
        """Threads for searches of vector tables, and nothing else.

        A task that waits for such a search must not take one of their threads.
        """
        return ThreadPoolExecutor(MAX_CONCURRENT_SEARCHES, "graphrag-search")

    def check_version(self) -> None:
        """Check that this version was not deleted since it was opened.

        Raises
        ------
        TableError
            It was.
        """
        if self.backend.is_gone(self.version.number):
            raise TableError(
                f"Version {self.version.number} of {self.backend.output} was deleted while it was "
                "open: open the index again."
            )

    @contextmanager
    def pinned_version(self) -> Iterator[None]:
        """Replace any failure inside by the deletion of this version, if that caused it."""
        self.check_version()
        try:
            yield
        except Exception as error:
            try:
                self.check_version()
            except TableError as gone:
                raise gone from error
            raise

    def check_search_tables(self) -> None:
        """Check that the index has the tables that searches read.

        Raises
        ------
        TableError
            Its workflow does not write them.
        """
        lacks_vectors = self.has("text_unit_text") and not self.has("text_unit_vectors")
        if lacks_vectors or not self.has("community_places"):
            raise TableError(
                f"The index in {self.backend.output} has no tables for searches yet: see that "
                f"workflows/{self.version.workflow}.yaml ends with the step create_search_tables, "
                "and run `graphrag-index run`."
            )

    def has(self, table: str) -> bool:
        """Tell whether the workflow of this index writes a table."""
        return table in self.version.tables

    def rows(self, table: str) -> int:
        """Return the number of rows of a table."""
        return self._stored(table).rows

    def scan(self, table: str) -> pl.LazyFrame:
        """Open a table lazily."""
        self.check_version()
        return self.backend.scan(table, self._stored(table))

    def map(self, table: str) -> "MappedTable":
        """Open a mapped table, for rows by number; nothing is loaded."""
        if table not in self._mapped:
            self.check_version()
            self._mapped[table] = self.backend.map(table, self._stored(table))
        return self._mapped[table]

    def vectors(self, table: str) -> "VectorTable | InMemoryVectors":
        """Open a vector table at the version that belongs to this index."""
        if table not in self._vectors:
            self.check_version()
            self._vectors[table] = self.backend.vectors(table, self._stored(table))
        return self._vectors[table]

    def _stored(self, table: str) -> StoredTable:
        tables = self.version.tables
        if table in VECTOR_TABLES and not any(map(self.has, VECTOR_TABLES)):
            raise TableError(
                f"The index in {self.backend.output} has no vectors, which this search compares: "
                "`graphrag-index run` makes them with a workflow that has the step "
                "generate_text_embeddings, or for what was imported alone with "
                "`--set workflow=imported`."
            )
        if table not in tables:
            raise TableError(
                f"The index in {self.backend.output} has no table {table}: its workflow, "
                f"{self.version.workflow}, does not write it."
            )
        return tables[table]

    @cached_property
    def dimension(self) -> int:
        """The dimension of the vectors.

        Raises
        ------
        TableError
            There are no vectors.
        """
        table = next(filter(self.has, VECTOR_TABLES), VECTOR_TABLES[0])
        vectors = self._stored(table).vectors
        return vectors.dimension if vectors else self.vectors(table).dimension

    def embed(self, texts: list[str]) -> "np.ndarray[Any, Any]":
        """Return one vector a text, see `QuestionEmbedder.embed`."""
        return self.embedder.embed(texts)

    def text_unit_vectors(self, numbers: Iterable[int]) -> "np.ndarray[Any, Any]":
        """Fetch the vectors of text units, in the order given."""
        return self.map("text_unit_vectors").matrix("vector", numbers)

    def text_units(self, numbers: Iterable[int]) -> dict[int, Mapping[str, Any]]:
        """Fetch text units with the title and path of their documents, by ascending number.

        A number that no text unit has is left out.
        """
        known = range(self.rows("text_unit_rows"))
        wanted = sorted({number for number in numbers if number in known})
        found = self._numbered("text_unit_rows", wanted)
        columns = (pl.col("id").alias("document_id"), "title", "path", "language")
        documents = self.documents(found["document"]).select(columns)
        joined = pl.concat([found, documents], how="horizontal")
        return {row["human_readable_id"]: row for row in joined.iter_rows(named=True)}

    def text_unit_texts(self, numbers: Iterable[int]) -> list[str]:
        """Fetch the texts of text units alone."""
        table = self.map("text_unit_rows")
        return [table.text("text", number) for number in numbers]

    def documents(self, numbers: Iterable[int]) -> pl.DataFrame:
        """Fetch documents without their texts."""
        return self._numbered("document_rows", numbers)

    def entities(self, numbers: Iterable[int]) -> pl.DataFrame:
        """Fetch entities; `evidence` has numbers of documents."""
        return self._numbered("entity_rows", numbers)

    def claims(self, numbers: Iterable[int]) -> pl.DataFrame:
        """Fetch claims."""
        return self._numbered("claim_rows", numbers)

    def relationships(self, numbers: Iterable[int]) -> pl.DataFrame:
        """Fetch relationships.

        `source` and `target` are titles, `source_entity` and `target_entity` the numbers
        of these entities; `evidence` has numbers of documents.
        """
        found = self._numbered("relationship_rows", numbers)
        ends = pl.concat([found["source"], found["target"]])
        # An end that is no entity, possible in an index of Microsoft's, has no title.
        rows = self.map("entity_rows").rows(ends.clip(lower_bound=0), "title")
        titles = rows.select(pl.when(ends >= 0).then("title").otherwise(pl.lit("")))["title"]
        return found.rename({"source": "source_entity", "target": "target_entity"}).with_columns(
            titles[: found.height].alias("source"), titles[found.height :].alias("target")
        )

    def _numbered(self, table: str, numbers: Iterable[int]) -> pl.DataFrame:
        wanted = pl.Series("human_readable_id", list(numbers), dtype=pl.Int64)
        found = self.map(table).rows(wanted)
        return found.insert_column(0, wanted)

    def communities(self, numbers: Iterable[int]) -> pl.DataFrame:
        """Fetch communities by number; unknown numbers are left out."""
        return self.map("community_rows").rows(self._rows_of_communities(numbers, "row"))

    def reports(self, communities: Iterable[int]) -> pl.DataFrame:
        """Fetch the reports on communities; those without a report are left out.

        `row` is their row in `community_reports`.
        """
        rows = self._rows_of_communities(communities, "report")
        rows = rows.filter(rows >= 0)
        return self.map("report_rows").rows(rows).with_columns(rows.alias("row"))

    def _rows_of_communities(self, numbers: Iterable[int], column: str) -> pl.Series:
        table = self.map("community_places")
        # A model that cites may name any number; those of communities have 32 bits.
        wanted = np.array([number for number in numbers if 0 <= number < 2**31], np.int32)
        first, stop = table.bounds("community", wanted)
        return table.rows(first[stop > first], column)[column]

    def report(self, community: int) -> Mapping[str, Any] | None:
        """Fetch the report on a community with its text; None if there is none."""
        found = self.reports([community])
        if not found.height:
            return None
        text = self.vectors("community_full_content").at(found["row"].to_list(), ["text"])
        return {**found.row(0, named=True), "full_content": text["text"][0]}

    @cached_property
    def report_list(self) -> pl.DataFrame:
        """All reports without their texts: place in the hierarchy, title, rank, length."""
        columns = ("community", "level", "parent", "children", "title", "rank", "size")
        n_bytes = pl.col("full_content").str.len_bytes().cast(pl.Int64).alias("n_bytes")
        rows = self.scan("community_reports").select(*columns, n_bytes)
        return rows.sort("level", "community").collect()

    def with_texts(self, reports: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Add columns of texts to rows of `report_list`: summary, findings, full_content."""
        found = self.reports(reports["community"])
        texts = [found[name] for name in columns if name != "full_content"]
        if "full_content" in columns:
            rows = sorted(found["row"])
            read = self.vectors("community_full_content").at(rows, ["text"])["text"]
            by_row = dict(zip(rows, read, strict=True))
            texts.append(
                pl.Series("full_content", [by_row[row] for row in found["row"]], pl.String)
            )
        return reports.with_columns(texts)

    def text_units_behind(self, name: str, number: int) -> list[int]:
        """Return the numbers of the text units that support a row, ascending.

        `name` is how its table is cited: Sources, Entities, Relationships or Claims.
        An unknown number has none.
        """
        if name == "Entities":
            return list(map(int, self.links.text_units_of(number)[0]))
        table = {
            "Sources": "text_unit_rows",
            "Relationships": "relationship_rows",
            "Claims": "claim_rows",
        }[name]
        if not 0 <= number < self.rows(table):
            return []
        if name == "Sources":
            return [number]
        if name == "Claims":
            return list(self.map(table).rows([number], "text_unit")["text_unit"])
        return list(map(int, self.map(table).numbers("text_units", number)))

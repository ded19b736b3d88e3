"""The index, opened for reading at one version."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.errors import ModelError, TableError
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import StoredTable, Version
from graphrag_query.retrieval.links import Links
from graphrag_query.retrieval.vector_identity import other_dimension, other_model

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np
    import numpy.typing as npt

    from graphrag_index.llm.embeddings import RemoteEmbeddingModel
    from graphrag_index.llm.local_embeddings import EmbeddingModel
    from graphrag_index.schema.settings.models import ModelSettings
    from graphrag_index.storage.mapped_table import MappedTable
    from graphrag_index.storage.vector_store import VectorTable
    from graphrag_query.retrieval.in_memory_vectors import HeldVectors
    from graphrag_query.retrieval.microsoft_store import MicrosoftStore

VECTOR_TABLES = ("text_unit_text", "entity_description", "community_full_content")
SEARCHES_AT_ONCE = 8
# Texts of which the vectors are kept: the rounds of a search ask for the same sentences again.
MOST_EMBEDDED = 2_048


class KnowledgeModel:
    """Tables and vectors of one version. Opening reads the pointer alone; the rest when needed.

    The version is pinned: a run that finishes meanwhile does not change what is read.
    """

    def __init__(
        self,
        store: "TableStore | MicrosoftStore",
        version: Version,
        models: "Mapping[str, ModelSettings]",
    ) -> None:
        self.store = store
        self.models = models
        self.version = version
        self._vectors: dict[str, VectorTable | HeldVectors] = {}
        self._mapped: dict[str, MappedTable] = {}
        self._embedded: dict[str, np.ndarray[Any, Any]] = {}

    @classmethod
    def open(
        cls,
        output: Path,
        models: "Mapping[str, ModelSettings] | None" = None,
        as_of: int | None = None,
    ) -> "KnowledgeModel":
        """Open the index in an output folder, at its current version or an earlier one.

        `models` are those of today's settings, with their keys, which the index does not keep.

        Raises
        ------
        TableError
            There is no index, or it cannot be read.
        """
        store = TableStore(output)
        version = store.read_pointer() if as_of is None else store.read_version(as_of)
        if version is None:
            raise TableError(f"There is no index in {output}: make one with `graphrag-index run`.")
        return cls(store, version, models or {})

    @classmethod
    def open_microsoft(cls, folder: Path, settings: Settings) -> "KnowledgeModel":
        """Open the index of Microsoft GraphRAG in a folder.

        Raises
        ------
        TableError
            A table is missing or cut off, or lacks a column.
        """
        from graphrag_query.retrieval.microsoft_store import MicrosoftStore

        store = MicrosoftStore(folder, settings)
        return cls(store, store.version, settings.models)

    @cached_property
    def settings(self) -> Settings:
        """The settings that the index was made with."""
        return Settings.model_validate(self.version.settings)

    @property
    def filters(self) -> Mapping[str, Any]:
        """The filters to which it is held, if it is."""
        return {}

    def holds(self, entity: int) -> bool:
        """Tell whether an entity of this number may be found."""
        return True

    def holds_text_units(self, numbers: "npt.NDArray[np.int64]") -> "npt.NDArray[np.bool_]":
        """Tell which text units of these numbers may be found."""
        import numpy as np

        return np.ones(len(numbers), bool)

    def check_kept(self) -> None:
        """See that this version was not deleted since it was opened.

        Raises
        ------
        TableError
            It was.
        """
        if self.store.is_gone(self.version.number):
            raise TableError(
                f"Version {self.version.number} of {self.store.output} was deleted while it was "
                "open: open the index again."
            )

    @contextmanager
    def while_kept(self) -> Iterator[None]:
        """Say of whatever fails since this version was deleted meanwhile that this is why."""
        self.check_kept()
        try:
            yield
        except Exception as error:
            try:
                self.check_kept()
            except TableError as gone:
                raise gone from error
            raise

    def scan(self, table: str) -> pl.LazyFrame:
        """Open a table; nothing is read yet."""
        self.check_kept()
        return self.store.scan(table, self._stored(table))

    def rows(self, table: str) -> int:
        return self._stored(table).rows

    def vectors(self, table: str) -> "VectorTable | HeldVectors":
        """Open a vector table at the version that belongs to this index."""
        if table not in self._vectors:
            self.check_kept()
            self._vectors[table] = self.store.vectors(table, self._stored(table))
        return self._vectors[table]

    @cached_property
    def embedding_model(self) -> "EmbeddingModel | RemoteEmbeddingModel":
        """The model that made the vectors.

        Raises
        ------
        ModelError
            It is not on this machine, or does not answer.
        SettingsError
            The settings no longer name it.
        """
        name = self.settings.generate_text_embeddings.model
        made_with = self.settings.models.get(name)
        if made_with is None:
            from graphrag_index.llm.local_embeddings import load_embedding_model

            return load_embedding_model(name)
        from graphrag_index.llm.registry import Models

        if name in self.models:
            # It may be called otherwise by now.
            candidates = (self.models[name], *self.models.values())
            fitting = [m for m in candidates if m.vector_identity() == self.vector_identity]
            if not fitting:
                raise other_model(self, self.models[name].vector_identity())
            made_with = fitting[0]
        return Models({name: made_with}).embedding(name, "query")

    @cached_property
    def vector_identity(self) -> tuple[str, int | None]:
        """The model that made the vectors, and the number of dimensions that it was asked for."""
        for table in VECTOR_TABLES:
            vectors = self.version.tables[table].vectors if self.has(table) else None
            if vectors is not None and vectors.identity is not None:
                return vectors.identity
        # An earlier program noted them in the settings alone.
        from graphrag_index.schema.settings.models import vector_identity

        settings = self.settings
        return vector_identity(settings.models, settings.generate_text_embeddings.model)

    @cached_property
    def dimension(self) -> int:
        """How many numbers a vector has.

        Raises
        ------
        TableError
            There are no vectors.
        """
        table = next(filter(self.has, VECTOR_TABLES), VECTOR_TABLES[0])
        vectors = self._stored(table).vectors
        return vectors.dimension if vectors else self.vectors(table).dimension

    def embed(self, texts: list[str]) -> "np.ndarray[Any, Any]":
        """Give each text a vector; those of the newest texts are kept.

        Raises
        ------
        ModelError
            The model does not answer, has no vector for one of them, or is another one.
        """
        import numpy as np

        if self.store.lacks_vectors:
            # As near to everything as to nothing.
            return np.zeros((len(texts), 1), np.float32)
        kept = self._embedded
        known = {text: kept[text] for text in texts if text in kept}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new or not texts:
            vectors = self.embedding_model.embed(new)
            if vectors.shape[1] != self.dimension:
                raise other_dimension(self, vectors.shape[1])
            if not vectors.any(axis=1).all():
                name = self.settings.generate_text_embeddings.model
                raise ModelError(
                    f"Model {name} gives no vector for this question: ask it otherwise."
                )
            if not texts:
                return vectors
            made = dict(zip(new, vectors, strict=True))
            known |= made
            # Replaced whole, so that no other thread misses what it has seen there.
            self._embedded = dict([*kept.items(), *made.items()][-MOST_EMBEDDED:])
        return np.array([known[text] for text in texts])

    @cached_property
    def threads(self) -> "ThreadPoolExecutor":
        """For searches of vector tables that need not wait for each other, and nothing else:
        what waits for such a search must not take their threads.
        """
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(SEARCHES_AT_ONCE, "graphrag-search")

    def map(self, table: str) -> "MappedTable":
        """Open a mapped table, for rows by number; nothing is loaded."""
        if table not in self._mapped:
            self.check_kept()
            self._mapped[table] = self.store.map(table, self._stored(table))
        return self._mapped[table]

    @cached_property
    def links(self) -> Links:
        """What is linked with what, by number."""
        return Links(self.map, self.rows("text_unit_rows"))

    def text_units(self, numbers: Iterable[int]) -> dict[int, Mapping[str, Any]]:
        """Fetch text units by number, with the title and path of their documents.

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
        """Fetch the texts of text units alone, in the order given."""
        table = self.map("text_unit_rows")
        return [table.text("text", number) for number in numbers]

    def text_unit_vectors(self, numbers: Iterable[int]) -> "np.ndarray[Any, Any]":
        """Fetch the vectors of text units, in the order given."""
        return self.map("text_unit_vectors").matrix("vector", numbers)

    def documents(self, numbers: Iterable[int]) -> pl.DataFrame:
        """Fetch documents by number, in the order given, without their texts."""
        return self._numbered("document_rows", numbers)

    def entities(self, numbers: Iterable[int]) -> pl.DataFrame:
        """Fetch entities by number, in the order given; `evidence` has numbers of documents."""
        return self._numbered("entity_rows", numbers)

    def relationships(self, numbers: Iterable[int]) -> pl.DataFrame:
        """Fetch relationships by number, in the order given.

        `source` and `target` are titles, `source_entity` and `target_entity` the numbers
        of these entities; `evidence` has numbers of documents.
        """
        found = self._numbered("relationship_rows", numbers)
        ends = pl.concat([found["source"], found["target"]])
        # An end that is no entity, as another program may have it, has no title.
        rows = self.map("entity_rows").rows(ends.clip(lower_bound=0), "title")
        titles = rows.select(pl.when(ends >= 0).then("title").otherwise(pl.lit("")))["title"]
        return found.rename({"source": "source_entity", "target": "target_entity"}).with_columns(
            titles[: found.height].alias("source"), titles[found.height :].alias("target")
        )

    def communities(self, numbers: Iterable[int]) -> pl.DataFrame:
        """Fetch communities by number, in the order given; without numbers that none has."""
        return self.map("community_rows").rows(self._rows_of_communities(numbers, "row"))

    def reports(self, communities: Iterable[int]) -> pl.DataFrame:
        """Fetch the reports on communities, in the order given; without those that have none.

        `row` is their row in `community_reports`.
        """
        rows = self._rows_of_communities(communities, "report")
        rows = rows.filter(rows >= 0)
        return self.map("report_rows").rows(rows).with_columns(rows.alias("row"))

    def _rows_of_communities(self, numbers: Iterable[int], column: str) -> pl.Series:
        """Look up the rows of communities: their numbers have gaps."""
        import numpy as np

        table = self.map("community_places")
        # No community has a wider number, but a model that cites may name any.
        wanted = np.array([number for number in numbers if 0 <= number < 2**31], np.int32)
        first, stop = table.bounds("community", wanted)
        return table.rows(first[stop > first], column)[column]

    @cached_property
    def report_list(self) -> pl.DataFrame:
        """All reports without their texts: their places in the hierarchy, titles and ranks, and
        how long they are.
        """
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
            places = dict(zip(rows, read, strict=True))
            whole = [places[row] for row in found["row"]]
            texts.append(pl.Series("full_content", whole, pl.String))
        return reports.with_columns(texts)

    def claims(self, numbers: Iterable[int]) -> pl.DataFrame:
        """Fetch claims by number, in the order given."""
        return self._numbered("claim_rows", numbers)

    def _numbered(self, table: str, numbers: Iterable[int]) -> pl.DataFrame:
        wanted = pl.Series("human_readable_id", list(numbers), dtype=pl.Int64)
        found = self.map(table).rows(wanted)
        return found.insert_column(0, wanted)

    def check_search_tables(self) -> None:
        """See that the index has what searches look up.

        Raises
        ------
        TableError
            An earlier program made it, or its workflow does not write them.
        """
        lacks_vectors = self.has("text_unit_text") and not self.has("text_unit_vectors")
        if lacks_vectors or not self.has("community_places"):
            raise TableError(
                f"The index in {self.store.output} has no tables for searches yet: see that "
                f"workflows/{self.version.workflow}.yaml ends with the step create_search_tables, "
                "and run `graphrag-index run`."
            )

    def report(self, community: int) -> Mapping[str, Any] | None:
        """Fetch the report on a community, all of it; None if there is none."""
        found = self.reports([community])
        if not found.height:
            return None
        text = self.vectors("community_full_content").at(found["row"].to_list(), ["text"])
        return {**found.row(0, named=True), "full_content": text["text"][0]}

    def text_units_behind(self, name: str, number: int) -> list[int]:
        """Return the numbers of the text units that a row rests on, in order.

        `name` is how its table is cited: Sources, Entities, Relationships or Claims.
        A number that no row has gives none.
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

    def has(self, table: str) -> bool:
        """Tell whether the workflow of this index writes a table."""
        return table in self.version.tables

    def _stored(self, table: str) -> StoredTable:
        tables = self.version.tables
        if table in VECTOR_TABLES and not any(map(self.has, VECTOR_TABLES)):
            raise TableError(
                f"The index in {self.store.output} has no vectors, which this search compares: "
                "`graphrag-index run` makes them with a workflow that has the step "
                "generate_text_embeddings, or for what was imported alone with "
                "`--set workflow=imported`."
            )
        if table not in tables:
            raise TableError(
                f"The index in {self.store.output} has no table {table}: its workflow, "
                f"{self.version.workflow}, does not write it."
            )
        return tables[table]

"""The index, opened for reading at one version."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.core.errors import ModelError, SettingsError, TableError
from graphrag_index.core.settings import Settings
from graphrag_index.core.table_store import TableStore
from graphrag_index.core.versions import StoredTable, Version

if TYPE_CHECKING:
    import numpy as np

    from graphrag_index.core.embedding_model import EmbeddingModel
    from graphrag_index.core.models.embedding import RemoteEmbeddingModel
    from graphrag_index.core.models.settings import ModelSettings
    from graphrag_index.core.vector_store import VectorTable


class KnowledgeModel:
    """Tables and vectors of one version. Opening reads the pointer alone; the rest when needed.

    The version is pinned: a run that finishes meanwhile does not change what is read.
    """

    def __init__(
        self, store: TableStore, version: Version, models: "Mapping[str, ModelSettings]"
    ) -> None:
        self.store = store
        self.models = models
        self.version = version
        self._vectors: dict[str, VectorTable] = {}

    @classmethod
    def open(
        cls, output: Path, models: "Mapping[str, ModelSettings] | None" = None
    ) -> "KnowledgeModel":
        """Open the index in an output folder.

        `models` are those of today's settings, with their keys, which the index does not keep.

        Raises
        ------
        TableError
            There is no index, or it cannot be read.
        """
        store = TableStore(output)
        version = store.read_pointer()
        if version is None:
            raise TableError(f"There is no index in {output}: make one with `graphrag-index run`.")
        return cls(store, version, models or {})

    @cached_property
    def settings(self) -> Settings:
        """The settings that the index was made with."""
        return Settings.model_validate(self.version.settings)

    def scan(self, table: str) -> pl.LazyFrame:
        """Open a table; nothing is read yet."""
        return self.store.scan(table, self._stored(table))

    def rows(self, table: str) -> int:
        return self._stored(table).rows

    def vectors(self, table: str) -> "VectorTable":
        """Open a vector table at the version that belongs to this index."""
        from graphrag_index.core.vector_store import VectorTable

        if table not in self._vectors:
            self._vectors[table] = VectorTable.open(
                self.store.lancedb, table, self._stored(table).lance_version
            )
        return self._vectors[table]

    @cached_property
    def embedding_model(self) -> "EmbeddingModel | RemoteEmbeddingModel":
        """The model that made the vectors.

        Raises
        ------
        ModelError
            It is not on this machine, or does not answer.
        SettingsError
            The settings name another one by now.
        """
        name = self.settings.generate_text_embeddings.model
        made_with = self.settings.models.get(name)
        if made_with is None:
            from graphrag_index.core.embedding_model import load_embedding_model

            return load_embedding_model(name)
        from graphrag_index.core.models.registry import Models

        now = self.models.get(name, made_with)
        if now.identity() != made_with.identity():
            raise SettingsError(
                f"The vectors of {self.store.output} were made by {made_with.model}, and the "
                f"settings now say {now.model} for {name!r}: run `graphrag-index run`, or set it "
                "back."
            )
        return Models({name: now}).embedding(name, "query")

    def embed(self, texts: list[str]) -> "np.ndarray[Any, Any]":
        """Give each text a vector.

        Raises
        ------
        ModelError
            The model does not answer, or has no vector for one of them.
        """
        vectors = self.embedding_model.embed(texts)
        if not vectors.any(axis=1).all():
            name = self.settings.generate_text_embeddings.model
            raise ModelError(f"Model {name} gives no vector for this question: ask it otherwise.")
        return vectors

    def text_units(self, numbers: Iterable[int]) -> dict[int, Mapping[str, Any]]:
        """Fetch text units by number, with the title and path of their documents."""
        wanted = sorted(set(numbers))
        units = (
            self.scan("text_units")
            .filter(pl.col("human_readable_id").is_in(wanted))
            .select("human_readable_id", "id", "document_id", "text", "start_char", "headings")
            .collect()
        )
        documents = (
            self.scan("documents")
            .filter(pl.col("id").is_in(units["document_id"].unique().to_list()))
            .select("title", "path", "language", document_id="id")
            .collect()
        )
        joined = units.join(documents, on="document_id", how="left")
        return {row["human_readable_id"]: row for row in joined.iter_rows(named=True)}

    def report(self, community: int) -> Mapping[str, Any] | None:
        """Fetch the report on a community; None if there is none."""
        rows = self.scan("community_reports").filter(pl.col("community") == community).collect()
        return rows.row(0, named=True) if rows.height else None

    def text_units_behind(self, name: str, number: int) -> list[int]:
        """Return the numbers of the text units that a row rests on, in order.

        `name` is how its table is cited: Sources, Entities, Relationships or Claims.
        """
        if name == "Sources":
            return [number]
        table, column = {
            "Entities": ("entities", pl.col("text_unit_ids")),
            "Relationships": ("relationships", pl.col("text_unit_ids")),
            "Claims": ("covariates", pl.concat_list("text_unit_id")),
        }[name]
        ids = self.scan(table).filter(pl.col("human_readable_id") == number).select(ids=column)
        units = self.scan("text_units").select("human_readable_id", ids="id")
        found = ids.explode("ids").join(units, on="ids", how="inner").collect()
        return sorted(found["human_readable_id"].to_list())

    def has(self, table: str) -> bool:
        """Tell whether the workflow of this index writes a table."""
        return table in self.version.tables

    def _stored(self, table: str) -> StoredTable:
        tables = self.version.tables
        if table not in tables:
            raise TableError(
                f"The index in {self.store.output} has no table {table}: its workflow, "
                f"{self.version.workflow}, does not write it."
            )
        return tables[table]

"""Vectors of questions, from the same embedding model as the vectors of the index."""

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from graphrag_index.errors import ModelError, SettingsError
from graphrag_index.llm.local.local_models import (
    EmbeddingModel,
    find_vector_identity,
    load_embedding_model,
)
from graphrag_index.schema.settings.models import describe_vector_identity
from graphrag_index.schema.tables import EMBEDDED_COLUMNS

if TYPE_CHECKING:
    from graphrag_index.llm.registry import Models
    from graphrag_index.microsoft.microsoft_store import InMemoryVectors, MicrosoftStore
    from graphrag_index.schema.settings.models import ModelSettings
    from graphrag_index.schema.settings.project_settings import Settings
    from graphrag_index.storage.table_store import TableStore
    from graphrag_index.storage.vector_store import VectorTable
    from graphrag_index.storage.versions import Version

    # (name of the model on its server, requested number of dimensions)
    ModelIdentity = tuple[str, int | None]

# Maximum number of texts in the cache; the rounds of a search embed the same sentences again.
MAX_CACHED_TEXTS = 2_048


class QuestionEmbedder:
    """An embedder with the model that made the vectors of an index, loaded on first use.

    `made_with` are the settings that the index was made with, and `models` the models of the
    current settings. `open_vectors` opens a vector table.
    """

    def __init__(
        self,
        backend: "TableStore | MicrosoftStore",
        version: "Version",
        made_with: "Settings",
        models: "Mapping[str, ModelSettings]",
        open_vectors: "Callable[[str], VectorTable | InMemoryVectors]",
    ) -> None:
        self._backend, self._version, self._settings = backend, version, made_with
        self._current_models, self._open_vectors = models, open_vectors
        # The vector of each text.
        self._cache: dict[str, np.ndarray[Any, Any]] = {}
        self._lock = Lock()
        self._models: Models | None = None

    def close(self) -> None:
        """Close the connection to the model, if it was opened; the next use opens it again."""
        models, self._models = self._models, None
        if models is not None:
            self.__dict__.pop("model", None)
            models.close()

    @cached_property
    def model(self) -> EmbeddingModel:
        """The model that made the vectors.

        Raises `ModelError` if the model is not on this machine or does not answer, and
        `SettingsError` if the settings no longer name it.
        """
        settings, models = self._settings, self._current_models
        name = settings.generate_text_embeddings.model
        made_with = settings.models.get(name)
        if made_with is None:
            model = load_embedding_model(name)
            if model.identity != self.identity:
                raise self._other_model_error(model.identity)
            return model
        from graphrag_index.llm.registry import Models

        if name in models:
            # Compare all models, because this one may now have another name in the settings.
            candidates = (models[name], *models.values())
            fitting = [model for model in candidates if model.vector_identity() == self.identity]
            if not fitting:
                raise self._other_model_error(models[name].vector_identity())
            made_with = fitting[0]
        self._models = Models({name: made_with})
        self._models.close_with(self)
        if self._backend.is_ours:
            self._models.ledger.share_capabilities(self._backend.output)
        return self._models.open_embedding_model(name, "query")

    @cached_property
    def identity(self) -> "ModelIdentity":
        """The model that made the vectors, and the requested number of dimensions."""
        tables = self._version.tables
        for table in EMBEDDED_COLUMNS:
            vectors = tables[table].vectors if table in tables else None
            if vectors is not None and vectors.identity is not None:
                return vectors.identity
        # An index of Microsoft GraphRAG does not store the identity: take it from the settings.
        return find_vector_identity(self._settings)

    @cached_property
    def dimension(self) -> int:
        """The dimension of the index's vectors. Raises `TableError` if it has no vectors."""
        tables = self._version.tables
        table = next((name for name in EMBEDDED_COLUMNS if name in tables), "text_unit_text")
        stored = tables[table].vectors if table in tables else None
        return stored.dimension if stored else self._open_vectors(table).dimension

    def check_settings(self, settings: "Settings") -> None:
        """Raise `SettingsError` if the current settings name another model for the vectors."""
        if "text_unit_text" not in self._version.tables:
            return
        current = find_vector_identity(settings)
        if current != self.identity:
            raise self._other_model_error(current)

    def embed(self, texts: list[str]) -> "np.ndarray[Any, Any]":
        """Return one vector of length 1 per text. Known texts are read from the cache.

        Raises `ModelError` if the model does not answer, returns no vector for a text, or has
        another number of dimensions than the index.
        """
        if self._backend.lacks_vectors:
            # Return zero vectors, which have the same similarity to all texts.
            return np.zeros((len(texts), 1), np.float32)
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        cache = self._cache
        # Other threads may remove texts from the cache.
        found = ((text, cache.get(text)) for text in texts)
        known = {text: vector for text, vector in found if vector is not None}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            vectors = self.model.embed(new)
            if self._models is not None:
                self._models.ledger.limit_replies(MAX_CACHED_TEXTS)
            if vectors.shape[1] != self.dimension:
                raise self._other_dimension_error(vectors.shape[1])
            if not vectors.any(axis=1).all():
                name = self._settings.generate_text_embeddings.model
                raise ModelError(
                    f"Model {name} gives no vector for this question: ask in other words."
                )
            made = dict(zip(new, vectors, strict=True))
            known |= made
            with self._lock:
                cache.update(made)
                for text in [*islice(cache, max(0, len(cache) - MAX_CACHED_TEXTS))]:
                    del cache[text]
        return np.array([known[text] for text in texts])

    def _other_model_error(self, current: "ModelIdentity") -> SettingsError:
        """Build the error that the settings name another model than the index's vectors have."""
        newest = self._backend.read_pointer()
        is_newest = newest is not None and newest.number == self._version.number
        fix = f"{'run `graphrag-index run`, or ' if is_newest else ''}restore the setting"
        version = "" if is_newest else f", version {self._version.number},"
        return SettingsError(
            f"The vectors of {self._backend.place}{version} were made by "
            f"{describe_vector_identity(self.identity)}, and the settings now say "
            f"{describe_vector_identity(current)}: {fix}."
        )

    def _other_dimension_error(self, n_numbers: int) -> ModelError:
        """Build the error that the model and the index have different numbers of dimensions."""
        name = self._settings.generate_text_embeddings.model
        if not self._backend.is_ours:
            return ModelError(
                f"The vectors of {self._backend.place} have {self.dimension:,} numbers, and "
                f"model {name} gives {n_numbers:,} for a question: set "
                "generate_text_embeddings.model to the model that made these vectors, or "
                f"models.{name}.dimensions to {self.dimension}."
            )
        return ModelError(
            f"The vectors of {self._backend.place} have {self.dimension} numbers, and model "
            f"{name} gives {n_numbers} for a question: another model now has this name. Restore "
            f"the old model, or set models.{name}.dimensions to {n_numbers} and run "
            "`graphrag-index run`."
        )

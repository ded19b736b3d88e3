"""Embedding models that run on this machine, found by their names in the settings."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from graphrag_index.errors import SettingsError
from graphrag_index.llm.local.model_package import MINILM, model_folder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from graphrag_index.schema.settings.project_settings import Settings

# The table of word pieces in this package.
STATIC = "static"
# The models that need no entry in the settings.
BUILT_IN_MODELS = (STATIC, MINILM.model)


class EmbeddingModel(Protocol):
    """A model that turns texts into vectors, on this machine or on a server."""

    name: str
    # Number of components of a vector.
    dimension: int

    @property
    def identity(self) -> tuple[str, int | None]:
        """The name that the vectors are recorded with, and the requested number of dimensions.

        Two models with equal identities give equal vectors.
        """

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Return a unit vector for each text: an array of shape (texts, dimension).

        A vector of zeros stands for a text whose request failed. `advance` is called with the
        number of texts finished since its last call.
        """


def load_embedding_model(name: str) -> EmbeddingModel:
    """Load an embedding model by its name in the settings.

    Raises `SettingsError` if no model has this name, and `ModelError` if a file of the model is
    missing or damaged.
    """
    if name == STATIC:
        from graphrag_index.llm.local.static_model import load_static_model

        return load_static_model()
    if name != MINILM.model:
        raise SettingsError(
            f"There is no embedding model {name!r}; known: {', '.join(BUILT_IN_MODELS)}."
        )
    folder = model_folder()
    from graphrag_index.llm.local.onnx_model import OnnxModel

    return OnnxModel(name, folder)


def check_embedding_model(name: str) -> None:
    """Check the files of a model. Raises the same exceptions as `load_embedding_model`."""
    if name == MINILM.model:
        # Loading takes long, and a file of the right size has been checked by its download.
        model_folder()
    else:
        load_embedding_model(name)


def find_vector_identity(settings: "Settings") -> tuple[str, int | None]:
    """Return the identity of the embedding model in the settings, without loading the model."""
    name = settings.generate_text_embeddings.model
    if name in settings.models:
        return settings.models[name].vector_identity()
    if name == STATIC:
        from graphrag_index.llm.local.static_model import read_static_identity

        return read_static_identity()
    return name, None

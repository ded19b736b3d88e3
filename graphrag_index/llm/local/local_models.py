"""Embedding models that run on this machine, found by their names in the settings."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from graphrag_index.errors import SettingsError
from graphrag_index.llm.local.model_package import MINILM, model_folder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class EmbeddingModel(Protocol):
    """A model that turns texts into vectors, on this machine or on a server."""

    name: str
    # Number of components of a vector.
    dimension: int

    @property
    def identity(self) -> object:
        """The settings that the vectors depend on; None if the name alone identifies them."""

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Return a unit vector for each text: an array of shape (texts, dimension).

        A vector of zeros stands for a text whose request failed. `advance` is called with the
        number of texts finished since its last call.
        """


def load_embedding_model(name: str) -> EmbeddingModel:
    """Load an embedding model by its name in the settings.

    Raises `SettingsError` if no model has this name, and `ModelError` if the files of the model
    are not on this machine.
    """
    from graphrag_index.llm.local.onnx_model import OnnxModel

    return OnnxModel(name, check_embedding_model(name))


def check_embedding_model(name: str) -> Path:
    """Return the folder of a model. Raises the same exceptions as `load_embedding_model`."""
    if name != MINILM.model:
        raise SettingsError(f"There is no embedding model {name!r}; known: {MINILM.model}.")
    return model_folder()

"""Embedding models that run on this machine, found by their names in the settings."""

from collections.abc import Callable, Sequence
from pathlib import Path
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
        self,
        texts: Sequence[str],
        advance: Callable[[int], None] | None = None,
        *,
        are_queries: bool = False,
    ) -> "npt.NDArray[np.float32]":
        """Return a unit vector for each text: an array of shape (texts, dimension).

        `are_queries` distinguishes questions from passages. A vector of zeros stands for a text
        whose request failed. `advance` is called with the number of texts finished since its
        last call.
        """


def load_embedding_model(name: str, root: Path = Path()) -> EmbeddingModel:
    """Load an embedding model by its name, or by its folder relative to `root`.

    Raises `SettingsError` if there is no such model, and `ModelError` if a library is not
    installed, or a file of the model is missing, damaged or of another kind.
    """
    if name == STATIC:
        from graphrag_index.llm.local.static_model import load_static_model

        return load_static_model()
    if name == MINILM.model:
        folder = _find_minilm()
        from graphrag_index.llm.local.onnx_model import OnnxModel, minilm_files

        return OnnxModel(name, (name, None), minilm_files(folder))
    if not (root / name).is_dir():
        raise SettingsError(
            f"There is no embedding model {name!r}: it is none of {', '.join(BUILT_IN_MODELS)}, no "
            f"name in the section models, and no folder in {root.absolute()}."
        )
    from graphrag_index.llm.local.own_model import load_own_model

    return load_own_model(name, root / name)


def check_embedding_model(name: str, root: Path = Path()) -> None:
    """Check the files of a model. Raises the same exceptions as `load_embedding_model`."""
    if name == MINILM.model:
        # Loading takes long, and the download has checked the files.
        _find_minilm()
    else:
        load_embedding_model(name, root)


def _find_minilm() -> Path:
    from graphrag_index.llm.local.word_pieces import check_libraries

    check_libraries(f"embedding model {MINILM.model}", "onnxruntime", "tokenizers")
    return model_folder()


def find_vector_identity(settings: "Settings", root: Path = Path()) -> tuple[str, int | None]:
    """Return the identity of the embedding model in the settings, without loading the model."""
    name = settings.generate_text_embeddings.model
    if name in settings.models:
        return settings.models[name].vector_identity()
    if name == STATIC:
        from graphrag_index.llm.local.static_model import read_static_identity

        return read_static_identity()
    if name != MINILM.model and (root / name).is_dir():
        from graphrag_index.llm.local.own_model import read_model_folder

        return read_model_folder(root / name).identity
    return name, None

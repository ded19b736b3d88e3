"""Sentence transformers that onnxruntime runs on the CPU.

The model all-MiniLM-L6-v2 (Reimers & Gurevych, Sentence-BERT, EMNLP 2019; Wang et al., MiniLM,
NeurIPS 2020) is one of them. onnxruntime memory-maps its published weights; its ONNX graph is a
file of this package, built by `tools/embedding_graph.py`.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from graphrag_index.errors import ModelError
from graphrag_index.llm.local.onnx_session import OnnxSession, batch_rows
from graphrag_index.llm.local.word_pieces import encode_texts, open_tokenizer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Of all-MiniLM-L6-v2: the dimension, and the maximum number of word pieces of a text, as in its
# training. The rest of a text is ignored.
DIMENSION = 384
MAX_WORD_PIECES = 256
GRAPH_FILE = "all-MiniLM-L6-v2.onnx"
WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"

# Maximum difference to 1 of the length of a vector that is taken as it is.
MAX_LENGTH_ERROR = 0.01
# Pooling of the vectors of tokens; none: the graph has an output with one vector per text.
Pooling = Literal["mean", "cls", "last", "none"]


@dataclass(frozen=True)
class OnnxFiles:
    """The files of an ONNX model, and its properties that the files lack."""

    graph: Path
    tokenizer: Path
    pooling: Pooling
    max_tokens: int  # maximum number of tokens of a text; the rest of the text is ignored
    normalize: bool  # scale vectors to length 1; False: the vectors of the graph have length 1
    # Folder of the weights, if the graph does not lie beside them.
    weights: Path | None = None


def minilm_files(folder: Path) -> OnnxFiles:
    """Return the files of all-MiniLM-L6-v2, whose weights and tokenizer lie in a folder."""
    graph = Path(str(files("graphrag_index.llm.local").joinpath(GRAPH_FILE)))
    return OnnxFiles(graph, folder / TOKENIZER_FILE, "none", MAX_WORD_PIECES, False, folder)


class OnnxModel:
    """An embedding model that onnxruntime runs.

    Raises `ModelError` if a library is missing, or if the files are not those of such a model.
    """

    def __init__(self, name: str, identity: tuple[str, int | None], model: OnnxFiles) -> None:
        import numpy as np

        self.name = name
        self.identity = identity
        self._model = model
        self._tokenizer = open_tokenizer(model.tokenizer, f"embedding model {name}")
        self._tokenizer.enable_truncation(model.max_tokens)
        self._session = OnnxSession(model.graph, model.weights)
        n_axes = 2 if model.pooling == "none" else 3
        outputs = self._session.outputs
        fitting = [output for output, axes in outputs.items() if axes == n_axes]
        if not fitting:
            raise ModelError(
                f"{model.graph} has no output for the pooling {model.pooling}, which needs one "
                f"with {n_axes} axes; it has: "
                + ", ".join(f"{output} with {axes}" for output, axes in outputs.items())
                + "."
            )
        self._output = fitting[0]
        (vector,) = self._run(np.zeros((1, 1), np.int64))
        self.dimension = len(vector)

    def embed(
        self,
        texts: Sequence[str],
        advance: Callable[[int], None] | None = None,
        *,
        are_queries: bool = False,
    ) -> "npt.NDArray[np.float32]":
        """Return a unit vector for each text: an array of shape (texts, dimension).

        `advance` is called with the number of texts finished since its last call. A batch contains
        only texts with the same number of tokens, so that no text is padded: on one machine, the
        vector of a text by all-MiniLM-L6-v2 is always identical to the last bit. One call with
        many texts is faster than many calls with few texts. An empty text has a vector too; a
        lone surrogate counts as U+FFFD.
        """
        import numpy as np

        # A tokenizer without special tokens finds no token in an empty text.
        tokens = [ids or [0] for ids in encode_texts(self._tokenizer, texts)]
        vectors = np.empty((len(texts), self.dimension), np.float32)

        def embed_batch(rows: list[int]) -> int:
            vectors[rows] = self._run(np.array([tokens[row] for row in rows], np.int64))
            return len(rows)

        with ThreadPoolExecutor(os.cpu_count()) as threads:
            # The loop waits for all batches, and raises the exception of a failed thread.
            for done in threads.map(embed_batch, batch_rows([len(ids) for ids in tokens])):
                if advance is not None:
                    advance(done)
        return vectors

    def _run(self, tokens: "npt.NDArray[np.int64]") -> "npt.NDArray[np.float32]":
        import numpy as np

        (vectors,) = self._session.run([self._output], tokens)
        if self._model.pooling == "mean":
            vectors = vectors.mean(axis=1)
        elif self._model.pooling != "none":
            vectors = vectors[:, 0 if self._model.pooling == "cls" else -1]
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if self._model.normalize:
            return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
        if np.abs(lengths - 1).max() > MAX_LENGTH_ERROR:
            raise ModelError(
                f"{self._model.graph} gives vectors of length {lengths.max():.3g} instead of 1: "
                "set normalize to true."
            )
        return vectors

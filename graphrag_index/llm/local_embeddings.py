"""The embedded embedding model: a small sentence-transformer that runs on the processor.

The model is all-MiniLM-L6-v2 [1]_ [2]_. Its weights stay as they were published, in a file
that onnxruntime maps; the graph that computes with them is a file of this package, which
`tools/embedding_graph.py` builds.

References
----------
.. [1] Reimers & Gurevych, Sentence-BERT, EMNLP 2019.
.. [2] Wang et al., MiniLM, NeurIPS 2020
"""

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_index.errors import SettingsError
from graphrag_index.llm.model_files import MINILM, model_folder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DIMENSION = 384
MAX_WORD_PIECES = 256  # the rest of a text is cut off; the model was trained so

# Word pieces of a batch. More gain nothing and cost memory: a matrix of so many rows keeps
# one core busy, and the cores work on several batches side by side.
BATCH_WORD_PIECES = 256

GRAPH_FILE = "all-MiniLM-L6-v2.onnx"
WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"


class EmbeddingModel:
    """A model on this machine; `load_embedding_model` loads one by its name."""

    def __init__(self, name: str, folder: Path) -> None:
        import onnxruntime
        import tokenizers

        self.name = name
        self.dimension = DIMENSION
        # Its name alone identifies it.
        self.identity: object = None
        self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        self._tokenizer.enable_truncation(MAX_WORD_PIECES)
        self._tokenizer.no_padding()

        options = onnxruntime.SessionOptions()
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(folder.resolve())
        )
        # One thread a batch, so that the number of cores cannot show in the vectors.
        options.intra_op_num_threads = 1
        # The graph is built as it should run; optimizing it would cost time at each load.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3  # errors
        graph = files("graphrag_index.llm").joinpath(GRAPH_FILE).read_bytes()
        self._session = onnxruntime.InferenceSession(
            graph, options, providers=["CPUExecutionProvider"]
        )

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Return a vector of length 1 for each text, in the order of the texts.

        `advance` is called with the number of texts done since its last call.

        On one machine a text's vector is the same to the last bit, whatever other texts are
        embedded with it: only texts of equally many word pieces share a batch, so that
        nothing is padded. It pays to hand over a thousand texts at once rather than ten.
        A text without a word has a vector too; a lone surrogate counts as U+FFFD.

        Returns
        -------
        vectors
            Shape (texts, dimension).
        """
        import numpy as np

        encodings = self._tokenizer.encode_batch_fast([_valid_unicode(text) for text in texts])
        word_pieces = [encoding.ids for encoding in encodings]
        vectors = np.empty((len(texts), self.dimension), np.float32)

        def embed_batch(rows: list[int]) -> int:
            batch = np.array([word_pieces[row] for row in rows], np.int64)
            (vectors[rows],) = self._session.run(None, {"word_pieces": batch})
            return len(rows)

        with ThreadPoolExecutor(os.cpu_count()) as threads:
            # The loop waits for all, and raises the error of a thread.
            for done in threads.map(embed_batch, _batches([len(ids) for ids in word_pieces])):
                if advance is not None:
                    advance(done)
        return vectors


def load_embedding_model(name: str) -> EmbeddingModel:
    """Load an embedding model by its name in the settings.

    Raises
    ------
    SettingsError
        No such model.
    ModelError
        Its files are not on this machine.
    """
    return EmbeddingModel(name, check_embedding_model(name))


def check_embedding_model(name: str) -> Path:
    """Return the folder of a model, without loading it; raises as `load_embedding_model` does."""
    if name != MINILM.model:
        raise SettingsError(f"There is no embedding model {name!r}; known: {MINILM.model}.")
    return model_folder()


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Group rows of equal length; the longest first, so that the threads end together."""
    rows_of_length: dict[int, list[int]] = defaultdict(list)
    for row, length in enumerate(lengths):
        rows_of_length[length].append(row)
    batches = []
    for length, rows in sorted(rows_of_length.items(), reverse=True):
        size = max(1, BATCH_WORD_PIECES // length)
        batches += [rows[start : start + size] for start in range(0, len(rows), size)]
    return batches


def _valid_unicode(text: str) -> str:
    """Join the surrogates that make pairs; replace the others, which tokenizers refuses."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

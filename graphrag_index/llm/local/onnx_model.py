"""Sentence transformers that onnxruntime runs on the CPU.

The model is all-MiniLM-L6-v2 (Reimers & Gurevych, Sentence-BERT, EMNLP 2019; Wang et al.,
MiniLM, NeurIPS 2020). onnxruntime memory-maps its published weights. The ONNX graph is a file of
this package, built by `tools/embedding_graph.py`.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DIMENSION = 384
# Maximum number of word pieces of a text, as in the training of the model. The rest is ignored.
MAX_WORD_PIECES = 256

# Maximum number of word pieces in a batch. A larger batch needs more memory and is not faster:
# this many rows keep one core busy, and the cores process several batches in parallel.
BATCH_WORD_PIECES = 256

GRAPH_FILE = "all-MiniLM-L6-v2.onnx"
WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"


class OnnxModel:
    """An embedding model that onnxruntime runs."""

    def __init__(self, name: str, folder: Path) -> None:
        import onnxruntime
        import tokenizers

        self.name = name
        self.dimension = DIMENSION
        # No settings change the vectors of this model: its name alone identifies them.
        self.identity: tuple[str, int | None] = (name, None)
        self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        self._tokenizer.enable_truncation(MAX_WORD_PIECES)
        self._tokenizer.no_padding()

        options = onnxruntime.SessionOptions()
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(folder.resolve())
        )
        # Use one thread per batch, so that the vectors do not depend on the number of cores.
        options.intra_op_num_threads = 1
        # The graph in the file is optimized already; optimizing it again would slow down loading.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3  # errors
        graph = files("graphrag_index.llm.local").joinpath(GRAPH_FILE).read_bytes()
        self._session = onnxruntime.InferenceSession(
            graph, options, providers=["CPUExecutionProvider"]
        )

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Return a unit vector for each text: an array of shape (texts, dimension).

        `advance` is called with the number of texts finished since its last call. On one
        machine, the vector of a text is always identical to the last bit: a batch contains only
        texts with the same number of word pieces, so that no text is padded. One call with many
        texts is faster than many calls with few texts. An empty text has a vector too; a lone
        surrogate counts as U+FFFD.
        """
        import numpy as np

        # The library `tokenizers` rejects surrogates: join pairs of them, and replace the others.
        valid = [
            text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts
        ]
        encodings = self._tokenizer.encode_batch_fast(valid)
        word_pieces = [encoding.ids for encoding in encodings]
        vectors = np.empty((len(texts), self.dimension), np.float32)

        def embed_batch(rows: list[int]) -> int:
            batch = np.array([word_pieces[row] for row in rows], np.int64)
            (vectors[rows],) = self._session.run(None, {"word_pieces": batch})
            return len(rows)

        with ThreadPoolExecutor(os.cpu_count()) as threads:
            # The loop waits for all batches, and raises the exception of a failed thread.
            for done in threads.map(embed_batch, _batch_rows([len(ids) for ids in word_pieces])):
                if advance is not None:
                    advance(done)
        return vectors


def _batch_rows(lengths: Sequence[int]) -> list[list[int]]:
    """Split row numbers into batches of texts with the same number of word pieces (`lengths`).

    The longest texts come first, so that all threads end at about the same time.
    """
    batches = []
    ordered = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    for length, group in groupby(ordered, key=lengths.__getitem__):
        rows, size = list(group), max(1, BATCH_WORD_PIECES // length)
        batches += [rows[start : start + size] for start in range(0, len(rows), size)]
    return batches

"""Turns texts into vectors, with a small sentence-transformer that runs on the processor.

The model is all-MiniLM-L6-v2 [1]_ [2]_. Its weights stay as they were published: the graph
that computes with them is written here, at each load, and onnxruntime maps the file.

References
----------
.. [1] Reimers & Gurevych, Sentence-BERT, EMNLP 2019.
.. [2] Wang et al., MiniLM, NeurIPS 2020
"""

import json
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_index.errors import SettingsError
from graphrag_index.llm.model_files import MINILM, find_model
from graphrag_index.llm.onnx_graph import OnnxGraph, StoredTensor

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

N_LAYERS = 6
N_HEADS = 12
DIMENSION = 384
MAX_WORD_PIECES = 256  # what follows in a text is not seen; the model was trained so
EPSILON = 1e-12  # of the layer normalizations

# Word pieces computed at once. More gain nothing and cost memory: a matrix of so many rows
# keeps one core busy, and the cores work on several batches side by side.
BATCH_WORD_PIECES = 256

WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"


class EmbeddingModel:
    """A model of this machine, ready to embed; `load_embedding_model` gives it by its name."""

    def __init__(self, name: str, folder: Path) -> None:
        import onnxruntime
        import tokenizers

        self.name = name
        self.dimension = DIMENSION
        # Beside its name nothing tells it from others.
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
        # The graph is written as it should run; to look for improvements costs time at each load.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3  # errors
        graph = encode_sentence_transformer(read_weights(folder / WEIGHTS_FILE))
        self._session = onnxruntime.InferenceSession(
            graph, options, providers=["CPUExecutionProvider"]
        )

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Give each text a vector of length 1, in the order of the texts.

        `advance` is called with the number of texts that are done, as they are.

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
            # The loop waits for all, and raises what went wrong in a thread.
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
    """See that a model is known and its files are here; return their folder.

    Raises as `load_embedding_model` does, but loads nothing.
    """
    if name != MINILM.model:
        raise SettingsError(f"There is no embedding model {name!r}; known: {MINILM.model}.")
    return find_model()


def read_weights(path: Path) -> dict[str, StoredTensor]:
    """Where each weight lies in a safetensors file: a length, a header in JSON, then the data."""
    with path.open("rb") as file:
        n_header_bytes = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(n_header_bytes))
    header.pop("__metadata__", None)
    weights = {}
    for name, tensor in header.items():
        start, end = tensor["data_offsets"]
        offset = 8 + n_header_bytes + start
        weights[name] = StoredTensor(tuple(tensor["shape"]), offset, end - start)
    return weights


def encode_sentence_transformer(weights: Mapping[str, StoredTensor]) -> bytes:
    """Write BERT, the mean of its word pieces and the division by their length as a graph.

    Input: `word_pieces` (texts, length), without padding. Output: one vector a text. Every
    operator works on a row or a text alone, so that the others cannot show in its vector.
    """
    graph = OnnxGraph(WEIGHTS_FILE)

    def weight(name: str) -> str:
        return graph.stored(name, weights[name])

    def linear(x: str, name: str) -> str:
        return graph.add("Gemm", x, weight(f"{name}.weight"), weight(f"{name}.bias"), transB=1)

    def normalize(x: str, name: str) -> str:
        name = f"{name}.LayerNorm"
        scale, shift = weight(f"{name}.weight"), weight(f"{name}.bias")
        return graph.add("LayerNormalization", x, scale, shift, axis=-1, epsilon=EPSILON)

    shape = graph.add("Shape", "word_pieces")
    length = graph.add("Shape", "word_pieces", start=1)
    rows = graph.integers(-1, DIMENSION)  # one row a word piece, the texts one after the other
    heads = graph.add("Concat", shape, graph.integers(N_HEADS, DIMENSION // N_HEADS), axis=0)
    texts = graph.add("Concat", shape, graph.integers(DIMENSION), axis=0)

    words = graph.add("Gather", weight("embeddings.word_embeddings.weight"), "word_pieces")
    zero, one = graph.integers(0), graph.integers(1)
    places = graph.add("Slice", weight("embeddings.position_embeddings.weight"), zero, length)
    # Every word piece is of the first of two types: pairs of texts are not embedded.
    kind = graph.add("Slice", weight("embeddings.token_type_embeddings.weight"), zero, one)
    x = graph.add("Add", words, graph.add("Add", places, kind))
    x = graph.add("Reshape", normalize(x, "embeddings"), rows)

    for layer in range(N_LAYERS):
        name = f"encoder.layer.{layer}"

        def by_head(x: str, part: str, perm: Sequence[int], name: str = name) -> str:
            projected = linear(x, f"{name}.attention.self.{part}")
            return graph.add("Transpose", graph.add("Reshape", projected, heads), perm=perm)

        query = by_head(x, "query", [0, 2, 1, 3])
        key = by_head(x, "key", [0, 2, 3, 1])
        value = by_head(x, "value", [0, 2, 1, 3])
        scale = graph.number((DIMENSION // N_HEADS) ** -0.5)
        attention = graph.add("MatMul", graph.add("Mul", query, scale), key)
        seen = graph.add("MatMul", graph.add("Softmax", attention, axis=-1), value)
        seen = graph.add("Reshape", graph.add("Transpose", seen, perm=[0, 2, 1, 3]), rows)
        seen = linear(seen, f"{name}.attention.output.dense")
        x = normalize(graph.add("Add", seen, x), f"{name}.attention.output")
        hidden = graph.add("Gelu", linear(x, f"{name}.intermediate.dense"))
        hidden = linear(hidden, f"{name}.output.dense")
        x = normalize(graph.add("Add", hidden, x), f"{name}.output")

    # The sum has the direction of the mean. As a product, because onnxruntime's ReduceSum and
    # ReduceMean add up in another order when there is one text than when there are several.
    ones = graph.add("Expand", graph.number(1.0), graph.add("Concat", one, length, axis=0))
    total = graph.add("MatMul", ones, graph.add("Reshape", x, texts))
    vectors = graph.add("LpNormalization", graph.add("Reshape", total, rows), axis=-1, p=2)
    return graph.encode({"word_pieces": ["texts", "length"]}, {vectors: ["texts", DIMENSION]})


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Rows of equal length together; the longest first, so that the threads end together."""
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

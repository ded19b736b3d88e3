"""Graphs that onnxruntime runs on the CPU, and the sentence transformer all-MiniLM-L6-v2.

The model (Reimers & Gurevych, Sentence-BERT, EMNLP 2019; Wang et al., MiniLM, NeurIPS 2020) is
built in. onnxruntime memory-maps its published weights; its ONNX graph is a
file of this package, built by `tools/embedding_graph.py`.
"""

import importlib.util
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_index.errors import ModelError, describe_error
from graphrag_nlp.text.normalize import join_surrogates

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Tokens = npt.NDArray[np.int64]

# Maximum number of tokens in a batch. A larger batch needs more memory and is not faster: this
# many rows keep one core busy, and the cores process several batches in parallel.
BATCH_TOKENS = 256
# Known inputs of a graph → their values for the tokens of a batch without padding.
INPUTS: "dict[str, Callable[[npt.NDArray[Any]], npt.NDArray[Any]]]" = {
    "input_ids": lambda tokens: tokens,
    "word_pieces": lambda tokens: tokens,
    "attention_mask": lambda tokens: tokens * 0 + 1,
    "token_type_ids": lambda tokens: tokens * 0,
    "position_ids": lambda tokens: (tokens * 0 + 1).cumsum(axis=1) - 1,
}


class OnnxSession:
    """A graph whose inputs are tokens; several threads may use it.

    `weights` is the folder of the weights, if the graph does not lie beside them. Raises
    `ModelError` if the graph cannot be loaded, or has an unknown input.
    """

    def __init__(self, graph: Path, weights: Path | None = None) -> None:
        import numpy as np

        self.graph = graph
        self._session = _open_session(graph, weights)
        inputs = {value.name: value.type for value in self._session.get_inputs()}
        if unknown := sorted(inputs.keys() - INPUTS.keys()):
            raise ModelError(
                f"{graph} has the input {unknown[0]}, which is not known; known: "
                f"{', '.join(INPUTS)}."
            )
        self._inputs = {name: np.dtype(kind[len("tensor(") : -1]) for name, kind in inputs.items()}
        self.outputs = [value.name for value in self._session.get_outputs()]

    def run(
        self, outputs: Sequence[str], tokens: "Tokens", token_types: "Tokens | None" = None
    ) -> "list[npt.NDArray[np.float32]]":
        """Compute some outputs for the tokens of a batch without padding.

        `token_types` tells a first text from a second one; None: there is only one.
        """
        import numpy as np

        given = {} if token_types is None else {"token_type_ids": token_types}
        values = {
            name: (given[name] if name in given else INPUTS[name](tokens)).astype(kind)
            for name, kind in self._inputs.items()
        }
        try:
            found = self._session.run(outputs, values)
        except _runtime_errors() as error:
            raise ModelError(
                f"onnxruntime cannot run {self.graph}: {describe_error(error)[:200]}."
            ) from error
        return [output.astype(np.float32, copy=False) for output in found]


def batch_rows(lengths: Sequence[int]) -> list[list[int]]:
    """Split row numbers into batches of texts with the same number of tokens (`lengths`).

    The longest texts come first, so that all threads end at about the same time.
    """
    batches = []
    ordered = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    for length, group in groupby(ordered, key=lengths.__getitem__):
        rows, size = list(group), max(1, BATCH_TOKENS // length)
        batches += [rows[start : start + size] for start in range(0, len(rows), size)]
    return batches


def _open_session(graph: Path, weights: Path | None) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # Use one thread per batch, so that the results do not depend on the number of cores.
    options.intra_op_num_threads = 1
    options.log_severity_level = 3  # errors
    content: str | bytes = str(graph)
    if weights is not None:
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(weights.resolve())
        )
        # The packaged graph is optimized already; optimizing it again would slow down loading.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        content = graph.read_bytes()
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except _runtime_errors() as error:
        raise ModelError(
            f"onnxruntime cannot load {graph}: {describe_error(error)[:200]}; get the file again."
        ) from error


def _runtime_errors() -> tuple[type[Exception], ...]:
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    # The errors of the library have no base class of their own.
    names = "Fail InvalidArgument InvalidGraph InvalidProtobuf NoSuchFile NotImplemented"
    return tuple(getattr(state, name) for name in [*names.split(), "RuntimeException"])


def check_libraries(model: str, *libraries: str) -> None:
    """Raise `ModelError` if a library that a model, such as "reader x", needs is missing."""
    for library in libraries:
        if importlib.util.find_spec(library) is None:
            raise ModelError(
                f"The {model} needs the library {library}, which is not installed: "
                'install it with `pip install "graphrag-index[minilm]"`.'
            )


def open_tokenizer(path: Path, model: str) -> Any:
    """Open the `tokenizer.json` of a model, such as "reader x", without padding and truncation."""
    import tokenizers

    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library has no class of its errors
        raise ModelError(
            f"{path}, the tokenizer of the {model}, cannot be read: "
            f"{describe_error(error)[:200]}; get the file again."
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


# Of all-MiniLM-L6-v2: the dimension, and the maximum number of word pieces of a text, as in its
# training. The rest of a text is ignored.
DIMENSION = 384
MAX_WORD_PIECES = 256
GRAPH_FILE = "all-MiniLM-L6-v2.onnx"
WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"


class OnnxModel:
    """The model all-MiniLM-L6-v2, whose weights and tokenizer lie in a folder.

    Raises `ModelError` if a library is missing, or if the files are not those of the model.
    """

    dimension = DIMENSION

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.identity = name, None
        self._tokenizer = open_tokenizer(folder / TOKENIZER_FILE, f"embedding model {name}")
        self._tokenizer.enable_truncation(MAX_WORD_PIECES)
        graph = Path(str(files("graphrag_index.llm.local").joinpath(GRAPH_FILE)))
        self._session = OnnxSession(graph, folder)
        [self._output] = self._session.outputs

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Return a unit vector for each text, see `EmbeddingModel`; an empty text has one too.

        A batch contains only texts with the same number of tokens, so that no text is padded: on
        one machine, the vector of a text is always identical to the last bit.
        """
        import numpy as np

        # The library rejects lone surrogates.
        valid = [*map(join_surrogates, texts)]
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch_fast(valid)]
        vectors = np.empty((len(texts), self.dimension), np.float32)

        def embed_batch(rows: list[int]) -> int:
            batch = np.array([tokens[row] for row in rows], np.int64)
            (vectors[rows],) = self._session.run([self._output], batch)
            return len(rows)

        with ThreadPoolExecutor(os.cpu_count()) as threads:
            # The loop waits for all batches, and raises the exception of a failed thread.
            for done in threads.map(embed_batch, batch_rows([len(ids) for ids in tokens])):
                if advance is not None:
                    advance(done)
        return vectors

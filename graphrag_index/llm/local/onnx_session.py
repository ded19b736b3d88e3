"""ONNX graphs of models that read tokens, run by onnxruntime on the CPU."""

from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_index.errors import ModelError, describe_error

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
        # The name of each output → its number of axes.
        self.outputs = {value.name: len(value.shape) for value in self._session.get_outputs()}

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

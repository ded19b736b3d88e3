"""Build the graph of the embedded embedding model as an ONNX file of the package.

    python tools/embedding_graph.py

The weights stay in the safetensors file that `graphrag-index download-model` fetches: the
graph refers to their places in it. Run this after a change of the graph or of the weights;
needs the package `onnx`, and the model on this machine.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from onnx import ModelProto, TensorProto, checker, helper

from graphrag_index.llm.local.local_models import model_folder
from graphrag_index.llm.local.onnx_model import DIMENSION, GRAPH_FILE, WEIGHTS_FILE

TARGET = Path(__file__).parents[1] / "graphrag_index" / "llm" / "local" / GRAPH_FILE
N_LAYERS = 6
N_HEADS = 12
EPSILON = 1e-12  # of the layer normalizations
OPSET = 20
IR_VERSION = 9  # the first that knows opset 20


class GraphBuilder:
    """A graph under construction: tensors are known by name, and every call adds one."""

    def __init__(self, weights: Path) -> None:
        with weights.open("rb") as file:
            n_header_bytes = int.from_bytes(file.read(8), "little")
            self._header = json.loads(file.read(n_header_bytes))
        self._data_start = 8 + n_header_bytes
        self._nodes: list[object] = []
        self._tensors: dict[str, TensorProto] = {}

    def weight(self, name: str) -> str:
        """Refer to a weight in the safetensors file."""
        start, end = self._header[name]["data_offsets"]
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT)
        tensor.dims.extend(self._header[name]["shape"])
        tensor.data_location = TensorProto.EXTERNAL
        place = {
            "location": WEIGHTS_FILE,
            "offset": str(self._data_start + start),
            "length": str(end - start),
        }
        for key, value in place.items():
            tensor.external_data.add(key=key, value=value)
        self._tensors[name] = tensor
        return name

    def integers(self, *values: int) -> str:
        """Add a constant vector of integers; equal ones are kept once."""
        name = "integers:" + ",".join(map(str, values))
        self._tensors[name] = helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
        return name

    def number(self, value: float) -> str:
        """Add a constant scalar."""
        name = f"number:{value!r}"
        self._tensors[name] = helper.make_tensor(name, TensorProto.FLOAT, [], [value])
        return name

    def add(self, operator: str, *inputs: str, **attributes: int | float | Sequence[int]) -> str:
        """Apply an operator of the standard set; returns the name of its result."""
        output = f"{operator}:{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [output], output, **attributes))
        return output

    def model(self, output: str) -> ModelProto:
        """Return the model whose result is this tensor."""
        shape = ["texts", "length"]
        graph = helper.make_graph(
            self._nodes,
            "sentence_transformer",
            [helper.make_tensor_value_info("word_pieces", TensorProto.INT64, shape)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["texts", DIMENSION])],
            list(self._tensors.values()),
        )
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def sentence_transformer(weights: Path) -> ModelProto:
    """Build BERT, the mean of its word pieces and the division by their length.

    Input: `word_pieces` (texts, length), without padding. Output: one vector a text. Every
    operator works on a row or a text alone, so that the others cannot show in its vector.
    """
    graph = GraphBuilder(weights)

    def linear(x: str, name: str) -> str:
        weight, bias = graph.weight(f"{name}.weight"), graph.weight(f"{name}.bias")
        return graph.add("Gemm", x, weight, bias, transB=1)

    def normalize(x: str, name: str) -> str:
        name = f"{name}.LayerNorm"
        scale, shift = graph.weight(f"{name}.weight"), graph.weight(f"{name}.bias")
        return graph.add("LayerNormalization", x, scale, shift, axis=-1, epsilon=EPSILON)

    shape = graph.add("Shape", "word_pieces")
    length = graph.add("Shape", "word_pieces", start=1)
    rows = graph.integers(-1, DIMENSION)  # one row a word piece, the texts one after the other
    heads = graph.add("Concat", shape, graph.integers(N_HEADS, DIMENSION // N_HEADS), axis=0)
    texts = graph.add("Concat", shape, graph.integers(DIMENSION), axis=0)

    words = graph.add("Gather", graph.weight("embeddings.word_embeddings.weight"), "word_pieces")
    zero, one = graph.integers(0), graph.integers(1)
    places = graph.add("Slice", graph.weight("embeddings.position_embeddings.weight"), zero, length)
    # Every word piece is of the first of two types: pairs of texts are not embedded.
    kind = graph.add("Slice", graph.weight("embeddings.token_type_embeddings.weight"), zero, one)
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
    return graph.model(vectors)


def main() -> None:
    weights = model_folder() / WEIGHTS_FILE
    model = sentence_transformer(weights)
    TARGET.write_bytes(model.SerializeToString(deterministic=True))
    beside_weights = weights.with_name("check.onnx")
    beside_weights.write_bytes(TARGET.read_bytes())
    try:
        checker.check_model(beside_weights, full_check=True)
    finally:
        beside_weights.unlink()
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

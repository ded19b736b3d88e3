"""Writes an ONNX model: operators in order, small constants, and weights that stay in their file.

An ONNX model is a protocol-buffers message [1]_; the few kinds of field that a graph of
tensors needs are encoded here, so that no library for it has to be installed. Weights are
"external data": the model only says where in a file beside it they lie.

References
----------
.. [1] onnx.proto of https://onnx.ai; the numbers of the fields stand there.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FLOAT, INT64 = 1, 7  # TensorProto.DataType
OPSET = 20
IR_VERSION = 9  # the first that knows opset 20

Value = int | float | str | bytes
Dimension = int | str  # a size, or the name of one that is known only when the model runs


@dataclass(frozen=True)
class StoredTensor:
    """Where in a file the float32 values of a tensor lie."""

    shape: tuple[int, ...]
    offset: int  # bytes from the start of the file
    n_bytes: int


class OnnxGraph:
    """A graph under construction: tensors are known by name, and every call adds one.

    `weights_file` is the name of the file that stored tensors lie in.
    """

    def __init__(self, weights_file: str) -> None:
        self._weights_file = weights_file
        self._nodes: list[bytes] = []
        self._tensors: dict[str, bytes] = {}

    def stored(self, name: str, tensor: StoredTensor) -> str:
        """Take a weight from the file."""
        place = {
            "location": self._weights_file,
            "offset": str(tensor.offset),
            "length": str(tensor.n_bytes),
        }
        entries = [(13, _message([(1, key), (2, value)])) for key, value in place.items()]
        dimensions = [(1, size) for size in tensor.shape]
        self._tensors[name] = _message([*dimensions, (2, FLOAT), (8, name), *entries, (14, 1)])
        return name

    def integers(self, *values: int) -> str:
        """Take a constant vector of integers; equal ones are kept once."""
        name = "integers:" + ",".join(map(str, values))
        raw = struct.pack(f"<{len(values)}q", *values)
        self._tensors[name] = _message([(1, len(values)), (2, INT64), (8, name), (9, raw)])
        return name

    def number(self, value: float) -> str:
        """Take a constant scalar."""
        name = f"number:{value!r}"
        self._tensors[name] = _message([(2, FLOAT), (8, name), (9, struct.pack("<f", value))])
        return name

    def add(self, operator: str, *inputs: str, **attributes: int | float | Sequence[int]) -> str:
        """Apply an operator of the standard set; the result's name comes back."""
        output = f"{operator}:{len(self._nodes)}"
        self._nodes.append(
            _message(
                [
                    *((1, name) for name in inputs),
                    (2, output),
                    (3, output),
                    (4, operator),
                    *((5, _attribute(name, value)) for name, value in attributes.items()),
                ]
            )
        )
        return output

    def encode(
        self, inputs: dict[str, Sequence[Dimension]], outputs: dict[str, Sequence[Dimension]]
    ) -> bytes:
        """The model as bytes: integer `inputs` by name and shape, float `outputs` likewise."""
        graph = _message(
            [
                *((1, node) for node in self._nodes),
                (2, "graph"),
                *((5, tensor) for tensor in self._tensors.values()),
                *((11, _signature(name, INT64, shape)) for name, shape in inputs.items()),
                *((12, _signature(name, FLOAT, shape)) for name, shape in outputs.items()),
            ]
        )
        return _message([(1, IR_VERSION), (7, graph), (8, _message([(1, ""), (2, OPSET)]))])


def _attribute(name: str, value: int | float | Sequence[int]) -> bytes:
    if isinstance(value, int):
        return _message([(1, name), (3, value), (20, 2)])
    if isinstance(value, float):
        return _message([(1, name), (2, value), (20, 1)])
    return _message([(1, name), *((8, item) for item in value), (20, 7)])


def _signature(name: str, data_type: int, shape: Sequence[Dimension]) -> bytes:
    dimensions = [(1, _message([(1 if isinstance(size, int) else 2, size)])) for size in shape]
    tensor = _message([(1, data_type), (2, _message(dimensions))])
    return _message([(1, name), (2, _message([(1, tensor)]))])


def _message(fields: Iterable[tuple[int, Value]]) -> bytes:
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: Value) -> bytes:
    """One field: its number and wire type, then the value (0 varint, 2 counted bytes, 5 float)."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, str):
        value = value.encode()
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; negative numbers as 64 bits in two's complement."""
    value &= 2**64 - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)

"""Static embedding models: one vector for each word piece, and a mean of vectors for a text.

A model is a table in a safetensors file (model2vec, Tulkens & van Dongen, 2024). The table of this
package is memory-mapped and has integers, so that sums are exact: a text has the same vector, to
the last bit, on every machine. `tools/static_table.py` makes the table of all-MiniLM-L6-v2.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from graphrag_index.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from graphrag_index.llm.local.word_pieces import Integers

# The table of this package.
TABLE_FILE = Path(__file__).with_name("static.safetensors")
ADVICE = "install graphrag-index again"
# Maximum number of texts that are cut and summed at once. The number does not change the vectors.
BATCH_TEXTS = 1_024
# Number of bits of the components that the length of a vector is computed of.
LENGTH_BITS = 25
# Names of number types in safetensors files → names in numpy.
TYPES = {"I8": "<i1", "U8": "<u1", "U16": "<u2", "F16": "<f2", "F32": "<f4", "F64": "<f8"}


class SafetensorsFile(NamedTuple):
    """The tensors of a file as memory-mapped arrays, its metadata, and the bytes of the tensors."""

    tensors: "Mapping[str, npt.NDArray[Any]]"
    metadata: Mapping[str, str]
    data: "npt.NDArray[np.uint8]"


class StaticModel:
    """A model that embeds a text as the weighted sum of the vectors of its word pieces.

    `rows` has one vector per piece, and `weights` has the weight of each vector. `cut` returns
    the numbers of the pieces of all texts, and how many pieces each text has. `unknown` is the
    number of the piece that stands for unknown words.
    """

    def __init__(
        self,
        name: str,
        identity: tuple[str, int | None],
        rows: "npt.NDArray[Any]",
        weights: "npt.NDArray[Any]",
        cut: "Callable[[Sequence[str]], tuple[Integers, Integers]]",
        unknown: int,
    ) -> None:
        import numpy as np

        self.name = name
        self.identity = identity
        self.dimension = int(rows.shape[1])
        # Plain arrays: rows of a `memmap` are slow to select.
        self._rows, self._weights, self._cut = np.asarray(rows), np.asarray(weights), cut
        unknown_row = rows[unknown].astype(np.float64)
        # The vector of a text without a piece that has a weight.
        self._unknown = unknown_row if unknown_row.any() else np.ones(self.dimension)

    def embed(
        self,
        texts: Sequence[str],
        advance: Callable[[int], None] | None = None,
        *,
        are_queries: bool = False,
    ) -> "npt.NDArray[np.float32]":
        """Return a unit vector for each text, see `EmbeddingModel`; the whole text counts.

        All texts without a known word piece, such as an empty text, have the same vector.
        """
        import numpy as np

        vectors = np.empty((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), BATCH_TEXTS):
            batch = texts[start : start + BATCH_TEXTS]
            vectors[start : start + len(batch)] = _normalize_rows(self._sum_pieces(batch))
            if advance is not None:
                advance(len(batch))
        return vectors

    def _sum_pieces(self, texts: Sequence[str]) -> "npt.NDArray[np.float64]":
        """Return the weighted sum of the vectors of each text's pieces."""
        import numpy as np

        numbers, lengths = self._cut(texts)
        # Count equal pieces of a text.
        owners = np.repeat(np.arange(len(texts)), lengths)
        keys = np.sort(owners * len(self._rows) + numbers)
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        counts = np.diff(first, append=len(keys)).astype(np.float64)
        owners, numbers = np.divmod(keys[first], len(self._rows))
        factors = counts * self._weights[numbers]
        bounds = np.searchsorted(owners, np.arange(len(texts) + 1)).tolist()
        sums = np.empty((len(texts), self.dimension))
        for text, (start, stop) in enumerate(pairwise(bounds)):
            # The numbers of the packaged table are integers below 2**53 and stay so in every sum:
            # no order of the additions can change a sum.
            sums[text] = factors[start:stop] @ self._rows[numbers[start:stop]].astype(np.float64)
        sums[~sums.any(axis=1)] = self._unknown
        return sums


def _normalize_rows(sums: "npt.NDArray[np.float64]") -> "npt.NDArray[np.float32]":
    """Scale rows to length 1, with the same bits on every machine."""
    import numpy as np

    # Shift each row by a power of 2 and round it to integers whose squares int64 adds exactly.
    _, exponents = np.frexp(np.abs(sums).max(axis=1, keepdims=True))
    integers = np.rint(np.ldexp(sums, LENGTH_BITS - exponents)).astype(np.int64)
    lengths = np.sqrt((integers**2).sum(axis=1, keepdims=True).astype(np.float64))
    vectors: npt.NDArray[np.float32] = (integers / lengths).astype(np.float32)
    return vectors


@cache
def load_static_model(path: Path = TABLE_FILE) -> StaticModel:
    """Load the table of this package, once in each process.

    Raises `ModelError` if the file is missing or damaged.
    """
    from graphrag_index.llm.local.word_pieces import WordPieces

    tensors, metadata, data = read_safetensors(path, ADVICE)
    # The hash takes a few milliseconds, and no search ever uses a damaged table.
    if hashlib.sha256(data.data).hexdigest() != metadata.get("sha256"):
        raise ModelError(f"{path} is damaged (its hash has changed): {ADVICE}.")
    word_pieces = WordPieces(tensors["vocabulary"].tobytes().decode().split("\n"))
    identity = _get_identity(metadata)
    rows, weights, unknown = tensors["vectors"], tensors["scales"], word_pieces.unknown
    return StaticModel("static", identity, rows, weights, word_pieces.cut, unknown)


def read_static_identity(path: Path = TABLE_FILE) -> tuple[str, int | None]:
    """Read the identity of the table of this package, which changes with the table."""
    return _get_identity(read_safetensors(path, ADVICE).metadata)


def _get_identity(metadata: Mapping[str, str]) -> tuple[str, int | None]:
    return f"static {metadata.get('sha256', '')[:8]}", None


def read_safetensors(path: Path, advice: str) -> SafetensorsFile:
    """Memory-map the tensors of a safetensors file.

    Raises `ModelError`, which ends with the advice, if the file is missing, truncated, or no
    safetensors file.
    """
    import numpy as np

    try:
        with path.open("rb") as file:
            n_header_bytes = int.from_bytes(file.read(8), "little")
            n_bytes = path.stat().st_size
            if n_header_bytes > n_bytes - 8:
                raise ValueError("it ends within its header")
            header = json.loads(file.read(n_header_bytes))
        metadata = header.pop("__metadata__", {})
        unknown = {tensor["dtype"] for tensor in header.values()} - TYPES.keys()
        if unknown:
            raise ValueError(f"its numbers have the type {unknown.pop()}, which is not supported")
        n_data_bytes = max((tensor["data_offsets"][1] for tensor in header.values()), default=0)
        if n_bytes != 8 + n_header_bytes + n_data_bytes:
            raise ValueError(
                f"it has {n_bytes:,} bytes instead of {8 + n_header_bytes + n_data_bytes:,}"
            )
        data = np.memmap(path, np.uint8, "r", offset=8 + n_header_bytes)
        tensors = {
            name: data[slice(*tensor["data_offsets"])]
            .view(TYPES[tensor["dtype"]])
            .reshape(tensor["shape"])
            for name, tensor in header.items()
        }
    except FileNotFoundError:
        raise ModelError(f"There is no file {path}: {advice}.") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        is_ours = type(error) is ValueError
        reason = error if is_ours else "its header is not the header of a safetensors file"
        raise ModelError(f"{path} is damaged ({reason}): {advice}.") from error
    return SafetensorsFile(tensors, metadata, data)

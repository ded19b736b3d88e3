"""The static embedding model: a vector for each word piece; their weighted sum for a text.

The model is a table in a safetensors file (model2vec, Tulkens & van Dongen, 2024). The table of
this package is memory-mapped and has integers, so that sums are exact: a text has the same vector,
to the last bit, on every machine. `tools/static_table.py` makes the table of all-MiniLM-L6-v2.

Word pieces are the tokens of BERT. The rules are those of BERT without case (Devlin et al., NAACL
2019; Wu et al., 2016): lower case, no accents, a Chinese character or a punctuation mark is a word,
and a word is cut from left to right into the longest pieces of the vocabulary. In two cases the
rules differ from BERT, so that a symbol does not hide the word beside it: a character that is
neither a letter nor a digit nor a piece of the vocabulary ends a word, and control characters
within ASCII do so too.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import category, normalize

from graphrag_index.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Integers = npt.NDArray[np.integer[Any]]

# The table of this package.
TABLE_FILE = Path(__file__).with_name("static.safetensors")
ADVICE = "install graphrag-index again"
# Maximum number of texts that are cut and summed at once. The number does not change the vectors.
BATCH_TEXTS = 1_024
# Number of bits of the components that the length of a vector is computed of.
LENGTH_BITS = 25
# Names of number types in safetensors files → names in numpy.
TYPES = {"I8": "<i1", "U8": "<u1", "U16": "<u2"}
# Maximum number of characters of a word; a longer word is unknown.
MAX_CHARACTERS = 100
UNKNOWN = "[UNK]"
# A run of letters, digits and characters outside ASCII, or one ASCII punctuation mark; a regular
# expression of Rust.
_RUN = r"[0-9a-z\x{80}-\x{10ffff}]+|[!-/:-@\[-`{-~]"
# Maximum number of runs of characters whose pieces are kept in memory.
MAX_CACHED_RUNS = 1 << 17
# Chinese characters, each of which is a word: the blocks that BERT lists.
_CHINESE = re.compile(
    "[\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    "\U0002b820-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f]"
)


class SafetensorsFile(NamedTuple):
    """The tensors of a file as memory-mapped arrays, its metadata, and the bytes of the tensors."""

    tensors: "Mapping[str, npt.NDArray[Any]]"
    metadata: Mapping[str, str]
    data: "npt.NDArray[np.uint8]"


class WordPieces:
    """A vocabulary of word pieces. A piece that continues a word begins with `##`."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._numbers = dict(zip(vocabulary, range(len(vocabulary)), strict=True))
        self.unknown = self._numbers[UNKNOWN]
        self._vocabulary = vocabulary
        self._cut_run = lru_cache(MAX_CACHED_RUNS)(self._cut_into_pieces)

    @cached_property
    def _alphabet(self) -> frozenset[str]:
        return frozenset("".join(self._vocabulary))

    def cut(self, texts: Sequence[str]) -> "tuple[Integers, Integers]":
        """Return the numbers of the pieces of all texts, and how many pieces each text has."""
        import numpy as np
        import polars as pl

        # Lone surrogates are no characters, and polars does not store them.
        lowered = [text.encode("utf-8", "ignore").decode().lower() for text in texts]
        runs = pl.Series(lowered, dtype=pl.String).str.extract_all(_RUN)
        n_runs = runs.list.len().to_numpy()
        all_runs = runs.filter(n_runs > 0).explode()
        # Equal runs are cut once.
        distinct = all_runs.unique(maintain_order=True)
        run = all_runs.cast(pl.Enum(distinct)).to_physical().to_numpy()
        pieces = [self._cut_run(text) for text in distinct]
        n_pieces = np.fromiter(map(len, pieces), np.int64, len(pieces))
        numbers = np.fromiter(chain.from_iterable(pieces), np.int64)
        starts, lengths = (np.cumsum(n_pieces) - n_pieces)[run], n_pieces[run]
        ends = np.cumsum(lengths)
        # The position in `numbers` is the first of the run, plus the position within the run.
        positions = np.arange(lengths.sum()) + np.repeat(starts - ends + lengths, lengths)
        text_ends = np.append(0, ends)[np.cumsum(n_runs)]
        return numbers[positions], np.diff(text_ends, prepend=0)

    def _cut_into_pieces(self, run: str) -> list[int]:
        words = [run] if run.isascii() else self._split_words(run)
        return [number for word in words for number in self._cut_word(word)]

    def _split_words(self, run: str) -> Iterator[str]:
        word = ""
        for character in normalize("NFD", run).lower():
            kind = category(character)
            if kind == "Mn" or kind.startswith("C"):
                continue  # accents, and characters without width such as the soft hyphen
            is_alone = kind.startswith("P") or _CHINESE.match(character)
            if not is_alone and (character in self._alphabet or character.isalnum()):
                word += character
                continue
            if word:
                yield word
            word = ""
            if character in self._numbers:
                yield character
        if word:
            yield word

    def _cut_word(self, word: str) -> list[int]:
        if (whole := self._numbers.get(word)) is not None:
            return [whole]
        if len(word) > MAX_CHARACTERS:
            return [self.unknown]
        pieces: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            for end in range(len(word), start, -1):
                number = self._numbers.get(prefix + word[start:end])
                if number is not None:
                    break
            else:
                return [self.unknown]
            pieces.append(number)
            start, prefix = end, "##"
        return pieces


class StaticModel:
    """The model that embeds a text as the weighted sum of the vectors of its word pieces.

    Raises `ModelError` if its file is missing or damaged.
    """

    name = "static"

    def __init__(self, path: Path) -> None:
        import numpy as np

        tensors, metadata, data = read_safetensors(path)
        # The hash takes a few milliseconds, and no search ever uses a damaged table.
        if hashlib.sha256(data.data).hexdigest() != metadata.get("sha256"):
            raise ModelError(f"{path} is damaged (its hash has changed): {ADVICE}.")
        self.identity = _get_identity(metadata)
        self._pieces = WordPieces(tensors["vocabulary"].tobytes().decode().split("\n"))
        # Plain arrays: rows of a `memmap` are slow to select.
        self._rows, self._weights = np.asarray(tensors["vectors"]), np.asarray(tensors["scales"])
        self.dimension = int(self._rows.shape[1])
        # The vector of a text without a piece that has a weight.
        self._unknown = self._rows[self._pieces.unknown].astype(np.float64)

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
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

        numbers, lengths = self._pieces.cut(texts)
        # Count equal pieces of a text.
        owners = np.repeat(np.arange(len(texts)), lengths)
        # The keys are sorted by owner already, for which a stable sort is faster.
        keys = np.sort(owners * len(self._rows) + numbers, kind="stable")
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        counts = np.diff(first, append=len(keys)).astype(np.float64)
        owners, numbers = np.divmod(keys[first], len(self._rows))
        factors = counts * self._weights[numbers]
        bounds = np.searchsorted(owners, np.arange(len(texts) + 1)).tolist()
        sums = np.empty((len(texts), self.dimension))
        for text, (start, stop) in enumerate(pairwise(bounds)):
            # The numbers are integers below 2**53 and stay so in every sum: no order of the
            # additions can change a sum.
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
    """Load the table of this package, once in each process."""
    return StaticModel(path)


def read_static_identity(path: Path = TABLE_FILE) -> tuple[str, int | None]:
    """Read the identity of the table of this package, which changes with the table."""
    return _get_identity(read_safetensors(path).metadata)


def _get_identity(metadata: Mapping[str, str]) -> tuple[str, int | None]:
    return f"static {metadata.get('sha256', '')[:8]}", None


def read_safetensors(path: Path) -> SafetensorsFile:
    """Memory-map the tensors of a safetensors file.

    Raises `ModelError` if the file is missing, truncated, or no safetensors file.
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
        raise ModelError(f"There is no file {path}: {ADVICE}.") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        is_ours = type(error) is ValueError
        reason = error if is_ours else "its header is not the header of a safetensors file"
        raise ModelError(f"{path} is damaged ({reason}): {ADVICE}.") from error
    return SafetensorsFile(tensors, metadata, data)

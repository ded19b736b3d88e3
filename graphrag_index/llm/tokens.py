"""Token counts with the encodings of OpenAI's models.

The encodings are stored in `encodings/`, as published for tiktoken but gzipped, because tiktoken
would download them at first use.
"""

import binascii
import functools
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphrag_index.errors import SettingsError
from graphrag_nlp.list_columns import Integers
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.normalize import replace_surrogates

if TYPE_CHECKING:
    import tiktoken

# Maximum length of a text that is encoded in one call. The regular expressions of tiktoken
# overflow their stack on several hundred thousand adjacent spaces.
MAX_PIECE_CHARACTERS = 100_000


def load_encoding(name: str) -> "tiktoken.Encoding":
    """Load an encoding from the files of this package; raise `SettingsError` if it is unknown."""
    return _load_encoding_and_lengths(name)[0]


@functools.cache
def _load_encoding_and_lengths(name: str) -> "tuple[tiktoken.Encoding, Integers]":
    import tiktoken

    encodings = read_lists("graphrag_index/llm/encodings/encodings")
    if name not in encodings:
        raise SettingsError(f"There is no encoding {name!r}: use {' or '.join(encodings)}.")
    path = Path(__file__).parent / "encodings" / f"{name}.tiktoken.gz"
    # Each line has a base64 token and its rank. Lines are sorted by rank without gaps.
    lines = gzip.decompress(path.read_bytes()).split()[::2]
    tokens = list(map(binascii.a2b_base64, lines))
    ranks = {token: rank for rank, token in enumerate(tokens)}
    encoding = tiktoken.Encoding(name, mergeable_ranks=ranks, **encodings[name])
    # tiktoken only needs this copy of the ranks, some 30 MB, to pickle an encoding.
    del encoding._mergeable_ranks
    return encoding, np.fromiter(map(len, tokens), np.int64, len(tokens))


def count_tokens(text: str, encoding: "tiktoken.Encoding") -> int:
    """Count the tokens of a text.

    Text that looks like a special token (`<|endoftext|>`) is counted as ordinary text. Pieces of
    `MAX_PIECE_CHARACTERS` are counted separately, which can add a token at each boundary.
    """
    return sum(
        len(encoding.encode_ordinary(text[start : start + MAX_PIECE_CHARACTERS]))
        for start in range(0, len(text), MAX_PIECE_CHARACTERS)
    )


class TokenCounts:
    """Token counts of spans of one text, which is encoded only once.

    A certain split is an offset at which every encoding splits the text. A part is the text
    between two certain splits: its tokens do not depend on the text around it.
    """

    def __init__(self, text: str, encoding: "tiktoken.Encoding"):
        self._text, self._encoding = text, encoding
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        self._starts = _find_certain_splits(codes)
        # Whether a part begins with a space.
        self._spaced = np.append(codes, 0)[self._starts] == ord(" ")
        # Replace lone surrogates by U+FFFD, which has as many tokens in each encoding.
        plain = replace_surrogates(text)
        # `ends` of tokens and `begins` of parts, as offsets in bytes.
        lengths = _load_encoding_and_lengths(encoding.name)[1]
        ends = np.cumsum(lengths[_encode_in_pieces(plain, self._starts, encoding)])
        begins = self._starts
        if not plain.isascii():
            data = np.frombuffer(plain.encode(), np.uint8)
            begins = np.append(np.flatnonzero(data & 0xC0 != 0x80), len(data))[begins]
        # Number of tokens before each part.
        self._before = np.searchsorted(ends, begins, "right")

    def count_span(self, start: int, end: int) -> int:
        """Count the tokens of the span from `start` to `end`."""
        first = int(np.searchsorted(self._starts, start, "right")) - 1
        last = int(np.searchsorted(self._starts, end, "left")) - 1
        if first >= last:
            return count_tokens(self._text[start:end], self._encoding)
        head = self._text[start : self._starts[first + 1]]
        tail = self._text[self._starts[last] : end]
        between = int(self._before[last] - self._before[first + 1])
        return count_tokens(head, self._encoding) + between + count_tokens(tail, self._encoding)

    def count_between(self, starts: Sequence[int]) -> list[int]:
        """Count the tokens from each offset to the next offset, or to the end of the text.

        A single space before an offset belongs to the token after it, and is counted there.
        """
        bounds = np.append(np.asarray(starts, np.int64), len(self._text))
        part = np.searchsorted(self._starts, bounds, "right") - 1
        into_part = bounds - self._starts[part]
        at_split = (into_part == 0) | ((into_part == 1) & self._spaced[part])
        counts = np.diff(self._before[part])
        for row in np.flatnonzero(~(at_split[1:] & at_split[:-1])):
            counts[row] = count_tokens(self._text[bounds[row] : bounds[row + 1]], self._encoding)
        return list(map(int, counts))


# By code point: whether the character is white space. No higher one is white space.
_IS_WHITE_SPACE = np.array([chr(code).isspace() for code in range(0x3002)])


def _find_certain_splits(codes: npt.NDArray[np.uint32]) -> Integers:
    """Find offsets at which every encoding splits a text, including its start and end.

    In each encoding, a single space can only begin a token, and a line end can only end a token.
    """
    if not len(codes):
        return np.zeros(1, np.int64)
    is_space = _IS_WHITE_SPACE.take(codes, mode="clip")
    is_split = np.zeros(len(codes) + 1, bool)
    is_split[[0, -1]] = True
    is_split[1:-2] |= (codes[1:-1] == ord(" ")) & ~is_space[:-2] & ~is_space[2:]
    is_split[1:-1] |= (codes[:-1] == ord("\n")) & ~is_space[1:] & (codes[1:] != ord("/"))
    return np.flatnonzero(is_split)


def _encode_in_pieces(
    text: str, splits: Integers, encoding: "tiktoken.Encoding"
) -> npt.NDArray[np.uint32]:
    """Encode a text in pieces of at most `MAX_PIECE_CHARACTERS`, cut at `splits` if possible."""
    found, start = [np.zeros(0, np.uint32)], 0
    while start < len(text):
        longest = start + MAX_PIECE_CHARACTERS
        split = int(splits[np.searchsorted(splits, longest, "right") - 1])
        stop = split if split > start else min(longest, len(text))
        found.append(encoding.encode_to_numpy(text[start:stop], disallowed_special=()))
        start = stop
    return np.concatenate(found)

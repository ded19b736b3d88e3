"""Token counts as OpenAI's models count.

The ranks of both encodings lie in `encodings/` as tiktoken publishes them [1]_, gzipped,
because tiktoken itself downloads them at first use.

References
----------
.. [1] https://github.com/openai/tiktoken, MIT licence; patterns and special tokens too.
"""

import binascii
import functools
import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphrag_index.errors import SettingsError

if TYPE_CHECKING:
    import tiktoken

Integers = npt.NDArray[np.int64]

# How each encoding splits a text before it merges bytes.
PATTERNS = {
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+|"
        r" ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k_base": (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}
SPECIAL_TOKENS = {
    "cl100k_base": {
        "<|endoftext|>": 100257,
        "<|fim_prefix|>": 100258,
        "<|fim_middle|>": 100259,
        "<|fim_suffix|>": 100260,
        "<|endofprompt|>": 100276,
    },
    "o200k_base": {"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
}

# tiktoken's regular expressions overflow their stack on some hundred thousand blanks in a row.
MAX_PIECE = 100_000  # characters
# A lone surrogate counts as the replacement character.
_LONE = re.compile("[\ud800-\udfff]")


def load_encoding(name: str) -> "tiktoken.Encoding":
    """Build an encoding from the ranks in this package; nothing is downloaded.

    Raises
    ------
    SettingsError
        No such encoding.
    """
    return _load_with_lengths(name)[0]


@functools.cache
def _load_with_lengths(name: str) -> "tuple[tiktoken.Encoding, Integers]":
    import tiktoken

    if name not in PATTERNS:
        raise SettingsError(f"There is no encoding {name!r}; known: {', '.join(PATTERNS)}.")
    path = Path(__file__).parent / "encodings" / f"{name}.tiktoken.gz"
    # Lines of a token in base64 and its rank, in the order of the ranks, none left out.
    lines = gzip.decompress(path.read_bytes()).split()[::2]
    tokens = list(map(binascii.a2b_base64, lines))
    encoding = tiktoken.Encoding(
        name,
        pat_str=PATTERNS[name],
        mergeable_ranks={token: rank for rank, token in enumerate(tokens)},
        special_tokens=SPECIAL_TOKENS[name],
    )
    return encoding, np.fromiter(map(len, tokens), np.int64, len(tokens))


def count_tokens(text: str, encoding: "tiktoken.Encoding") -> int:
    """Count the tokens of a text.

    What looks like a special token (`<|endoftext|>`) counts as the ordinary text that it is,
    and a lone surrogate as the replacement character U+FFFD. Beyond `MAX_PIECE`
    characters the pieces are counted one by one, which can add a token at each border.
    """
    return sum(
        len(encoding.encode_ordinary(text[start : start + MAX_PIECE]))
        for start in range(0, len(text), MAX_PIECE)
    )


class TokenCounts:
    """Token counts of spans of one text, which is encoded once.

    A text is parted at its seams: where the patterns of both encodings part it, whatever
    stands there. The tokens between two seams are therefore those of the span by itself.
    """

    def __init__(self, text: str, encoding: "tiktoken.Encoding"):
        self._text, self._encoding = text, encoding
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        self._starts = _seams(codes)
        # Whether a part begins with a space.
        self._spaced = np.append(codes, 0)[self._starts] == ord(" ")
        plain = _LONE.sub("\ufffd", text)
        # Where tokens end and parts begin, in bytes.
        ends = np.cumsum(
            _load_with_lengths(encoding.name)[1][_encode_pieces(plain, self._starts, encoding)]
        )
        begins = self._starts
        if not plain.isascii():
            data = np.frombuffer(plain.encode(), np.uint8)
            begins = np.append(np.flatnonzero(data & 0xC0 != 0x80), len(data))[begins]
        # Number of tokens before each part.
        self._before = np.searchsorted(ends, begins, "right")

    def of(self, start: int, end: int) -> int:
        """Count the tokens of a span."""
        first = int(np.searchsorted(self._starts, start, "right")) - 1
        last = int(np.searchsorted(self._starts, end, "left")) - 1
        if first >= last:
            return count_tokens(self._text[start:end], self._encoding)
        head = self._text[start : self._starts[first + 1]]
        tail = self._text[self._starts[last] : end]
        between = int(self._before[last] - self._before[first + 1])
        return count_tokens(head, self._encoding) + between + count_tokens(tail, self._encoding)

    def between(self, starts: Sequence[int]) -> list[int]:
        """Count the tokens from each offset to the next, the last to the end of the text.

        A space before a place counts with what follows it, as encodings do.
        """
        bounds = np.append(np.asarray(starts, np.int64), len(self._text))
        part = np.searchsorted(self._starts, bounds, "right") - 1
        into_part = bounds - self._starts[part]
        at_seam = (into_part == 0) | ((into_part == 1) & self._spaced[part])
        counts = np.diff(self._before[part])
        for row in np.flatnonzero(~(at_seam[1:] & at_seam[:-1])):
            counts[row] = count_tokens(self._text[bounds[row] : bounds[row + 1]], self._encoding)
        return list(map(int, counts))


# Whether each character is space, as far as the last one that is.
_IS_SPACE = np.array([chr(code).isspace() for code in range(0x3002)])


def _seams(codes: npt.NDArray[np.uint32]) -> Integers:
    """Return the offsets that both encodings split a text at, and its end.

    Both encodings let a single space only begin a token, and a line end only end one.
    """
    if not len(codes):
        return np.zeros(1, np.int64)
    is_space = _IS_SPACE.take(codes, mode="clip")
    is_seam = np.zeros(len(codes) + 1, bool)
    is_seam[[0, -1]] = True
    is_seam[1:-2] |= (codes[1:-1] == ord(" ")) & ~is_space[:-2] & ~is_space[2:]
    is_seam[1:-1] |= (codes[:-1] == ord("\n")) & ~is_space[1:] & (codes[1:] != ord("/"))
    return np.flatnonzero(is_seam)


def _encode_pieces(
    text: str, seams: Integers, encoding: "tiktoken.Encoding"
) -> npt.NDArray[np.uint32]:
    """Encode a text in pieces, which end at seams where possible."""
    found, start = [np.zeros(0, np.uint32)], 0
    while start < len(text):
        longest = start + MAX_PIECE
        seam = int(seams[np.searchsorted(seams, longest, "right") - 1])
        stop = seam if seam > start else min(longest, len(text))
        found.append(encoding.encode_to_numpy(text[start:stop], disallowed_special=()))
        start = stop
    return np.concatenate(found)

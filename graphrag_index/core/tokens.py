"""Counts tokens as OpenAI's models do.

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
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_index.core.errors import SettingsError

if TYPE_CHECKING:
    import tiktoken

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
LONGEST_PIECE = 100_000  # characters


@functools.cache
def load_encoding(name: str) -> "tiktoken.Encoding":
    """Build an encoding from the ranks in this package; nothing is downloaded.

    Raises
    ------
    SettingsError
        No such encoding.
    """
    import tiktoken

    if name not in PATTERNS:
        raise SettingsError(f"There is no encoding {name!r}; known: {', '.join(PATTERNS)}.")
    path = Path(__file__).parent / "encodings" / f"{name}.tiktoken.gz"
    # Lines of a token in base64 and its rank, in the order of the ranks, none left out.
    tokens = gzip.decompress(path.read_bytes()).split()[::2]
    return tiktoken.Encoding(
        name,
        pat_str=PATTERNS[name],
        mergeable_ranks={binascii.a2b_base64(token): rank for rank, token in enumerate(tokens)},
        special_tokens=SPECIAL_TOKENS[name],
    )


def forget_encodings() -> None:
    """Let go of the encodings, which hold 80 MB; the next who counts builds them again."""
    _counts_of_words.cache_clear()
    load_encoding.cache_clear()


def count_tokens(text: str, encoding: "tiktoken.Encoding") -> int:
    """How many tokens a text is; 0 for an empty one.

    What looks like a special token (`<|endoftext|>`) counts as the ordinary text that it is,
    and a lone surrogate as the replacement character U+FFFD. Beyond `LONGEST_PIECE`
    characters the pieces are counted one by one, which can add a token at each border.
    """
    return sum(
        len(encoding.encode_ordinary(text[start : start + LONGEST_PIECE]))
        for start in range(0, len(text), LONGEST_PIECE)
    )


class TokenCounts:
    """Counts the tokens of spans of one text, most words of a corpus only once.

    A text is parted at its seams: where the patterns of both encodings part it, whatever
    stands there. Tokens of the parts therefore add up, and a part that came before, such
    as " the", need not be encoded again.
    """

    def __init__(self, text: str, encoding: "tiktoken.Encoding"):
        import numpy as np

        self._text, self._encoding = text, encoding
        behind_space, at_start = _counts_of_words(encoding.name)
        words: list[str] = []
        firsts = []
        lines = [0, *(match.end() for match in _LINE_SEAM.finditer(text)), len(text)]
        for start, end in pairwise(lines):
            firsts.append(len(words))
            words += _SPACE_SEAM.split(text[start:end])
        sizes = np.fromiter(map(len, words), np.int64, len(words)) + 1
        sizes[firsts] -= 1
        counts = np.fromiter(map(behind_space.__getitem__, words), np.int64, len(words))
        counts[firsts] = [at_start[words[first]] for first in firsts]
        # Where the parts begin, whether with a space, and how many tokens stand before them.
        self._starts = np.append(0, np.cumsum(sizes))
        self._spaced = np.ones(len(self._starts), bool)
        self._spaced[firsts] = False
        self._before = np.append(0, np.cumsum(counts))

    def of(self, start: int, end: int) -> int:
        """`count_tokens` of a span."""
        import numpy as np

        first = int(np.searchsorted(self._starts, start, "right")) - 1
        last = int(np.searchsorted(self._starts, end, "left")) - 1
        if first >= last:
            return count_tokens(self._text[start:end], self._encoding)
        head = self._text[start : self._starts[first + 1]]
        tail = self._text[self._starts[last] : end]
        between = int(self._before[last] - self._before[first + 1])
        return count_tokens(head, self._encoding) + between + count_tokens(tail, self._encoding)

    def between(self, starts: Sequence[int]) -> list[int]:
        """Tokens from each of some places to the next, the last to the end of the text.

        A space before a place counts with what follows it, as encodings do.
        """
        import numpy as np

        bounds = np.append(np.asarray(starts, np.int64), len(self._text))
        part = np.searchsorted(self._starts, bounds, "right") - 1
        into_part = bounds - self._starts[part]
        at_seam = (into_part == 0) | ((into_part == 1) & self._spaced[part])
        counts = np.diff(self._before[part])
        for row in np.flatnonzero(~(at_seam[1:] & at_seam[:-1])):
            counts[row] = count_tokens(self._text[bounds[row] : bounds[row + 1]], self._encoding)
        return [int(count) for count in counts]


# Both encodings let a single space only begin a token, and a line end only end one.
_SPACE_SEAM = re.compile(r" (?<=\S )(?=\S)")
_LINE_SEAM = re.compile(r"\n(?=[^\s/])")
# Longer words are not remembered, and no more words than these.
_LONGEST_WORD = 32
_MAX_WORDS = 500_000


class _WordTokens(dict[str, int]):
    """The tokens of words behind a space or a line end, counted at first use."""

    def __init__(self, encoding: "tiktoken.Encoding", before: str):
        self._encoding, self._before = encoding, before

    def __missing__(self, word: str) -> int:
        n_tokens = count_tokens(self._before + word, self._encoding)
        if len(word) <= _LONGEST_WORD:
            if len(self) >= _MAX_WORDS:
                self.clear()
            self[word] = n_tokens
        return n_tokens


@functools.cache
def _counts_of_words(name: str) -> tuple[_WordTokens, _WordTokens]:
    return _WordTokens(load_encoding(name), " "), _WordTokens(load_encoding(name), "")

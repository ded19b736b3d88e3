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
from collections.abc import Iterable
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


def count_tokens_of_each(texts: Iterable[str], encoding: "tiktoken.Encoding") -> list[int]:
    """`count_tokens` of every text, in their order."""
    return [count_tokens(text, encoding) for text in texts]

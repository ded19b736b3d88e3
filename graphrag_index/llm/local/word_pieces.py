"""Word pieces: the tokens of BERT, cut from text without a library.

The rules are those of BERT without case (Devlin et al., NAACL 2019; Wu et al., 2016): lower case,
no accents, a Chinese character or a punctuation mark is a word, and a word is cut from left to
right into the longest pieces of the vocabulary. In two cases the rules differ from BERT, so that
a symbol does not hide the word beside it: a character that is neither a letter nor a digit nor a
piece of the vocabulary ends a word, and control characters within ASCII do so too.
"""

import importlib.util
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import category, normalize

from graphrag_index.errors import ModelError, describe_error

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Integers = npt.NDArray[np.integer[Any]]

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

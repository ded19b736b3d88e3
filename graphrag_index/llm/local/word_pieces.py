"""Word pieces: the tokens of BERT, cut from text without a library.

The rules are those of BERT without case (Devlin et al., NAACL 2019; Wu et al., 2016): lower case,
no accents, a Chinese character or a punctuation mark is a word, and a word is cut from left to
right into the longest pieces of the vocabulary. In two cases the rules differ from BERT, so that
a symbol does not hide the word beside it: a character that is neither a letter nor a digit nor a
piece of the vocabulary ends a word, and control characters within ASCII do so too.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from unicodedata import category, normalize

# Maximum number of characters of a word; a longer word is unknown.
MAX_CHARACTERS = 100
UNKNOWN = "[UNK]"
# A run of letters, digits and characters outside ASCII, or one ASCII punctuation mark.
_RUN = re.compile(r"[0-9a-z\x80-\U0010ffff]+|[!-/:-@\[-`{-~]")
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

    @cached_property
    def _alphabet(self) -> frozenset[str]:
        return frozenset("".join(self._vocabulary))

    @staticmethod
    def split_runs(text: str) -> list[str]:
        """Split a text into runs of characters: words, or words and symbols outside ASCII."""
        return _RUN.findall(text.lower())

    def cut(self, run: str) -> list[int]:
        """Return the numbers of the pieces of a run, as `split_runs` returns runs."""
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
            ends = range(len(word), start, -1)
            found = ((self._numbers.get(prefix + word[start:end]), end) for end in ends)
            number, start = next(((n, end) for n, end in found if n is not None), (None, 0))
            if number is None:
                return [self.unknown]
            pieces.append(number)
            prefix = "##"
        return pieces

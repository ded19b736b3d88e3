"""Letters and words, as names are compared by them."""

import re
import unicodedata
from functools import cached_property

from graphrag_index.text.inflection import stems_of
from graphrag_index.text.languages import Language
from graphrag_index.text.normalize import UNSPACED_OR_HANGUL, letters

# Letters by which two forms of a word may differ at the end, in languages without known endings.
MAX_ENDING = 3
MIN_ALIKE = 4
_WORD = re.compile(r"[^\W_]+")
_is_joined = re.compile(UNSPACED_OR_HANGUL).match


def is_form(form: str, word: str, language: Language) -> bool:
    """Tell whether two folded words may be forms of one: nothing but their endings differs."""
    if form == word:
        return True
    if not word.isalpha():
        return False
    if language.endings:
        return bool(stems_of(form, language) & stems_of(word, language))
    longer, shorter = max(len(form), len(word)), min(len(form), len(word))
    alike = next((n for n in range(shorter) if form[n] != word[n]), shorter)
    return alike >= MIN_ALIKE and longer - alike <= MAX_ENDING and alike * 5 >= longer * 3


class Words:
    """The words of a text: as they are, their letters, and where each begins."""

    def __init__(self, text: str) -> None:
        self.forms: list[str] = _WORD.findall(text)
        self.letters = list(map(letters, self.forms))
        self._text = text

    def __len__(self) -> int:
        return len(self.forms)

    @cached_property
    def starts(self) -> list[int]:
        return [match.start() for match in _WORD.finditer(self._text)]

    def span(self, first: int, stop: int) -> tuple[int, int]:
        """Return where the words from `first` up to `stop` stand."""
        return self.starts[first], self.starts[stop - 1] + len(self.forms[stop - 1])

    def is_capital(self, number: int) -> bool:
        return self.forms[number][0].isupper()


def is_whole(text: str, start: int, end: int) -> bool:
    """Tell whether a span begins and ends where words do."""
    return not (
        (start > 0 and _are_joined(text[start - 1], text[start]))
        or (end < len(text) and _are_joined(text[end - 1], text[end]))
    )


def _are_joined(left: str, right: str) -> bool:
    """Tell whether two characters are of one word."""
    if not left.isalnum():
        return False
    if not right.isalnum():
        return right > "\u02ff" and unicodedata.category(right)[0] == "M"
    return not (_is_joined(left) or _is_joined(right))

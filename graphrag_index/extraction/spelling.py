"""Letters and words, as names are compared by them."""

import re
import unicodedata
from functools import cached_property, lru_cache

from graphrag_index.nlp.inflection import stems_of
from graphrag_index.text.languages import Language, language_of

# Letters by which two forms of a word may differ at the end, in languages without known endings.
MAX_ENDING = 3
MIN_ALIKE = 4
_WORD = re.compile(r"[^\W_]+")
# Scripts that do not part words, or (Hangul) join particles to them.
JOINED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
    r"\uf900-\ufaff\U00020000-\U0003ffff]"
)


class _Folded(dict[str, str]):
    """The letters and digits that a character is, without case, accent and width."""

    def __missing__(self, character: str) -> str:
        folded = unicodedata.normalize("NFKD", character).casefold()
        folded = unicodedata.normalize("NFKD", folded).replace("ł", "l")
        kept = "".join(
            c
            for c in folded
            if c.isalnum() or (unicodedata.category(c)[0] == "M" and not unicodedata.combining(c))
        )
        self[character] = kept
        return kept


FOLDED = _Folded()


def fold(text: str) -> str:
    """The letters and digits of a text, without case, accents and width."""
    return "".join([FOLDED[c] for c in text])


def is_form(form: str, word: str, language: Language) -> bool:
    """Tell whether two folded words may be forms of one: nothing but their endings differs."""
    if form == word:
        return True
    if not word.isalpha():
        return False
    if language.endings:
        return bool(_stems(form, language.code) & _stems(word, language.code))
    longer, shorter = max(len(form), len(word)), min(len(form), len(word))
    alike = next((n for n in range(shorter) if form[n] != word[n]), shorter)
    return alike >= MIN_ALIKE and longer - alike <= MAX_ENDING and alike * 5 >= longer * 3


@lru_cache(maxsize=65_536)
def _stems(word: str, code: str) -> frozenset[str]:
    return stems_of(word, language_of(code))


class Words:
    """The words of a text: as they are, their letters, and where each begins."""

    def __init__(self, text: str) -> None:
        self.forms: list[str] = _WORD.findall(text)
        self.letters = list(map(_folded_word, self.forms))
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


@lru_cache(maxsize=65_536)
def _folded_word(word: str) -> str:
    return fold(word)


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
    return not (JOINED.match(left) or JOINED.match(right))

"""What stands for a document in which no name and no term was found."""

import re
from collections import Counter

from graphrag_index.nlp.uncased import UNSPACED
from graphrag_index.text.languages import language_of

MAX_CHARS = 40
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_TOKEN = re.compile(r"\S+")


def find_stand_in(text: str, code: str) -> tuple[int, int]:
    """Choose a part of a text that is not blank: start and end.

    It is the most frequent word that has a meaning by itself; of equally frequent
    ones the longest, then the first. A text without words gives its first token.
    """
    function_words = language_of(code).function_words
    places: dict[str, tuple[int, int]] = {}
    counts: Counter[str] = Counter()
    for match in _WORD.finditer(text):
        start, end = match.span()
        # Without spaces a match is a whole clause; its first characters are as good as any.
        end = min(end, start + (4 if code in UNSPACED else MAX_CHARS))
        word = text[start:end].casefold()
        if word not in function_words and not word.isdigit():
            counts[word] += 1
            places.setdefault(word, (start, end))
    if counts:
        return places[max(counts, key=lambda word: (counts[word], len(word)))]
    token = _TOKEN.search(text)
    start, end = token.span() if token else (0, len(text))
    return start, min(end, start + MAX_CHARS)

"""The fallback for scripts that do not mark names: what recurs is taken for a name."""

from collections.abc import Callable, Iterable, Iterator

from graphrag_index.nlp.uncased_spaced import SpacedNames
from graphrag_index.nlp.uncased_unspaced import find_unspaced, unspaced_names

UNSPACED = frozenset(("zh", "ja", "th", "lo", "my", "km"))
SPACED = frozenset(
    ("ar", "he", "hi", "bn", "pa", "gu", "ta", "te", "kn", "ml", "si", "ka", "am", "ko")
)
CODES = UNSPACED | SPACED

# Number, text and language of each document; they can be streamed several times.
Texts = Callable[[], Iterable[tuple[int, str, str]]]


def find_caseless(
    texts: Texts, codes: Iterable[str], min_frequency: int
) -> Iterator[tuple[int, int, int, str]]:
    """Yield document, start, end and name of all that recurs in texts of caseless scripts.

    `codes` are the languages of the texts; each is counted by itself.
    """
    for code in sorted(CODES.intersection(codes)):

        def of_language(code: str = code) -> Iterator[str]:
            return (text for _, text, language in texts() if language == code)

        if code in UNSPACED:
            names = unspaced_names(of_language, code, min_frequency)
        else:
            spaced = SpacedNames(of_language, code, min_frequency)
        for number, text, language in texts():
            if language == code:
                found = find_unspaced(text, names) if code in UNSPACED else spaced.find(text)
                yield from ((number, *place) for place in found)

"""Words of a statement and of the sentences that may state it."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from graphrag_nlp.text.normalize import stem_word
from graphrag_nlp.text.sentences import distinctive_words

# A sentence states a statement if it has at least these shares (0 to 1) of its names and of its
# other words, and all of its numbers.
MIN_SHARE_OF_NAMES, MIN_SHARE_OF_WORDS = 0.5, 0.6
# Maximum number of sentences that are stored for a statement, of different documents.
MAX_SPANS = 5


class SourceSpan(NamedTuple):
    """A sentence of a document: row numbers of its text unit and document, and its position."""

    text_unit: int
    document: int
    start_char: int
    end_char: int


class StatementWords(NamedTuple):
    """The words or stems of a statement: names, numbers, and others, which tell what is said."""

    names: frozenset[str]
    numbers: frozenset[str]
    others: frozenset[str]

    @classmethod
    def split(cls, words: frozenset[str], names: Collection[str]) -> "StatementWords":
        """Split the distinctive words of a text; `names` are the words of titles."""
        numbers = frozenset(word for word in words if word[0].isdigit())
        named = frozenset(word for word in words - numbers if word in names)
        return cls(named, numbers, words - numbers - named)

    def score(self, sentence: frozenset[str]) -> float:
        """Return how surely a sentence, given by its words, states this: 0 (not) to 2."""
        if not self.numbers <= sentence:
            return 0.0
        named, said = (_share_in(words, sentence) for words in (self.names, self.others))
        # A statement of names alone is stated if all of them stand together.
        lowest = MIN_SHARE_OF_NAMES if self.others or self.numbers else 1.0
        return named + said if named >= lowest and said >= MIN_SHARE_OF_WORDS else 0.0


def _share_in(words: frozenset[str], sentence: frozenset[str]) -> float:
    return len(words & sentence) / len(words) if words else 1.0


def stem_words(text: str) -> frozenset[str]:
    """Return the stems of the distinctive words of a text."""
    return frozenset(map(stem_word, distinctive_words(text)))


def choose_spans(found: Iterable[tuple[float, SourceSpan]]) -> tuple[int, list[SourceSpan]]:
    """Choose the best sentence of each document; return the number of documents, and the spans.

    `found` has the score of each sentence. Of equal scores, the earlier sentence is better.
    """
    best: dict[int, tuple[float, SourceSpan]] = {}
    for score, span in found:
        known = best.get(span.document)
        if known is None or (-score, span[2:]) < (-known[0], known[1][2:]):
            best[span.document] = score, span
    ranked = sorted(best.values(), key=lambda one: (-one[0], one[1].document))
    return len(best), [span for _, span in ranked[:MAX_SPANS]]

"""Statements of reports, and the sentences of documents that state them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from graphrag_index.schema.tables import TABLES
from graphrag_nlp.list_columns import gather_by_owner
from graphrag_nlp.text.normalize import stem_word
from graphrag_nlp.text.sentences import distinctive_words

# Minimum share (0 to 1) of the words of a statement that a sentence has which states it: of the
# names, and of the other words. A sentence must have all numbers of the statement.
MIN_SHARE_OF_NAMES, MIN_SHARE_OF_WORDS = 0.5, 0.6
# Maximum number of sentences that are stored for a statement, of different documents.
MAX_SPANS = 5
_COLUMN = TABLES["community_reports"].schema["statements"]


class SourceSpan(NamedTuple):
    """A sentence of a document: row numbers of its text unit and document, and its position."""

    text_unit: int
    document: int
    start_char: int
    end_char: int


@dataclass(frozen=True)
class Statement:
    """A statement of a report.

    `finding` is the number of its finding, from 0; None: the summary. `n_documents` is the number
    of documents with a sentence that states it. `spans` are such sentences, the best first.
    """

    finding: int | None
    text: str
    n_documents: int
    spans: Sequence[SourceSpan]


class StatementWords(NamedTuple):
    """The words of a statement, or their stems; names do not tell what is said of the named."""

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


def make_statement_column(
    reports: Sequence[Sequence[Statement]],
    text_unit_ids: Mapping[int, str],
    document_ids: Mapping[int, str],
) -> pl.Series:
    """Return the column `statements` of reports; a statement has one record for each span.

    A statement without a span has one record without a place. `text_unit_ids` and `document_ids`
    map row numbers to ids.
    """
    rows = [
        (
            at,
            number,
            said.finding,
            said.text,
            said.n_documents,
            *(
                (text_unit_ids[span[0]], document_ids[span[1]], span.start_char, span.end_char)
                if span
                else (None, None, None, None)
            ),
        )
        for at, statements in enumerate(reports)
        for number, said in enumerate(statements)
        for span in (said.spans or (None,))
    ]
    fields = {field.name: field.dtype for field in _COLUMN.inner.fields}  # type: ignore[attr-defined]
    frame = pl.DataFrame(rows, {"owner": pl.Int64, **fields}, orient="row")
    if not rows:
        return pl.Series("statements", [[] for _ in reports], _COLUMN)
    return gather_by_owner(frame, len(reports)).alias("statements")

"""Sentences of an index that stand alone, with the names in them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import polars as pl

from graphrag_evaluation.questions import GoldSpan
from graphrag_index.errors import TableError
from graphrag_nlp.text.sentences import split_sentences
from graphrag_nlp.text.standalone import stand_alone
from graphrag_query.index import Index

# Text units that sentences are read from, evenly spaced; more would only add to the choice.
MAX_TEXT_UNITS = 4_000
MIN_SENTENCE_CHARS, MAX_SENTENCE_CHARS = 40, 300


@dataclass(frozen=True)
class Mention:
    """The name of an entity in a sentence, with its place there."""

    start: int
    end: int
    title: str
    type: str
    aliases: tuple[str, ...]


@dataclass(frozen=True)
class Sentence:
    """A sentence that a reader understands alone; `mentions` are ordered, the longest first."""

    span: GoldSpan
    language: str
    mentions: tuple[Mention, ...]

    @property
    def text(self) -> str:
        return self.span.text


def read_sentences(index: Index) -> list[Sentence]:
    """Read the sentences of an index that stand alone, in the order of the text units.

    Raises `TableError` if the index has no table of mentions, which says where names stand.
    """
    store = index.store
    if not store.has_table("mentions"):
        raise TableError(
            "Questions cannot be made from this index: it has no table mentions, which says where "
            "names stand. Build it with `graphrag-index run`."
        )
    step = max(1, -(-store.n_rows("text_units") // MAX_TEXT_UNITS))
    columns = ("human_readable_id", "text", "start_char", "document_id")
    units = (
        store.scan("text_units")
        .filter(pl.col("human_readable_id") % step == 0)
        .select(columns)
        .join(store.scan("documents").select("language", document_id="id"), on="document_id")
        .sort("human_readable_id")
        .collect()
    )
    mentions = store.scan("mentions").filter(pl.col("text_unit") % step == 0).collect()
    titles = store.scan("entities").select("human_readable_id", "title", "type", "aliases")
    entities = {row[0]: row[1:] for row in titles.collect().iter_rows()}
    of_unit: dict[int, list[Mention]] = defaultdict(list)
    for entity, unit, start, end in mentions.sort("start_char").iter_rows():
        title, kind, aliases = entities[entity]
        of_unit[unit].append(Mention(start, end, title, kind or "", tuple(aliases)))
    spans, languages, within = [], [], []
    for unit in units.iter_rows(named=True):
        for span in _split_unit(unit):
            spans.append(span)
            languages.append(unit["language"])
            within.append(unit["human_readable_id"])
    said = pl.Series([span.text for span in spans], dtype=pl.String)
    alone = stand_alone(said, pl.Series(languages, dtype=pl.String))
    found: dict[tuple[str, int], Sentence] = {}
    for span, language, number, stands in zip(spans, languages, within, alone, strict=True):
        named = _mentions_in(span, of_unit[number])
        if stands and named:
            # Text units overlap.
            found.setdefault((span.document, span.start_char), Sentence(span, language, named))
    return list(found.values())


def _split_unit(unit: Mapping[str, Any]) -> Iterator[GoldSpan]:
    """Yield the sentences of a text unit that are neither short nor long."""
    text, offset = unit["text"], unit["start_char"]
    for sentence in split_sentences(text):
        start, end = sentence.start, sentence.end
        if sentence.prose and MIN_SENTENCE_CHARS <= end - start <= MAX_SENTENCE_CHARS:
            yield GoldSpan(unit["document_id"], start + offset, end + offset, text[start:end])


def _mentions_in(span: GoldSpan, mentions: Sequence[Mention]) -> tuple[Mention, ...]:
    """Return the mentions of a text unit in a sentence; of names at one place, the longest."""
    first, last = span.start_char, span.end_char
    inside = [one for one in mentions if first <= one.start and one.end <= last]
    placed = sorted(inside, key=lambda one: (one.start, -one.end))
    return tuple(
        Mention(one.start - first, one.end - first, one.title, one.type, one.aliases)
        for _, (one, *_) in groupby(placed, key=lambda one: one.start)
    )

"""Sentences of an index that stand alone, with the names in them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import polars as pl

from graphrag_evaluation.questions import GoldSpan
from graphrag_index.errors import TableError
from graphrag_index.text.sentences import split_sentences
from graphrag_index.text.standalone import stand_alone
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
    found: dict[tuple[str, int], Sentence] = {}
    for unit in units.iter_rows(named=True):
        # Text units overlap.
        for sentence in _sentences_of(unit, of_unit[unit["human_readable_id"]]):
            found.setdefault((sentence.span.document, sentence.span.start_char), sentence)
    return list(found.values())


def _sentences_of(unit: Mapping[str, Any], mentions: Sequence[Mention]) -> Iterator[Sentence]:
    text, offset, language = unit["text"], unit["start_char"], unit["language"]
    sentences = [
        sentence
        for sentence in split_sentences(text)
        if sentence.prose
        and MIN_SENTENCE_CHARS <= sentence.end - sentence.start <= MAX_SENTENCE_CHARS
    ]
    if not sentences:
        return
    said = pl.Series([text[one.start : one.end] for one in sentences], dtype=pl.String)
    alone = stand_alone(said, pl.repeat(language, len(said), eager=True))
    for sentence, stands in zip(sentences, alone, strict=True):
        first, last = sentence.start + offset, sentence.end + offset
        inside = [one for one in mentions if first <= one.start and one.end <= last]
        if not stands or not inside:
            continue
        placed = sorted(inside, key=lambda one: (one.start, -one.end))
        yield Sentence(
            GoldSpan(unit["document_id"], first, last, text[sentence.start : sentence.end]),
            language,
            tuple(
                Mention(one.start - first, one.end - first, one.title, one.type, one.aliases)
                # Of names at the same place, the longest counts.
                for _, (one, *_) in groupby(placed, key=lambda one: one.start)
            ),
        )

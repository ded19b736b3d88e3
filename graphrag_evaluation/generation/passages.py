"""Passages of an index that a model is shown to make questions from."""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from graphrag_evaluation.generation.make_questions import MIN_DOCUMENTS, split_of
from graphrag_evaluation.questions import GoldSpan
from graphrag_nlp.text.sentences import find_quotation, split_sentences
from graphrag_query.index import Index

# Text units that passages are chosen from, evenly spaced: bounds memory and time.
MAX_TEXT_UNITS = 20_000
# A shorter text unit is a heading or a fragment.
MIN_PASSAGE_TOKENS = 30
# A longer passage is cut: a question needs few sentences.
MAX_PASSAGE_CHARS = 4_000
# A name in more text units than this joins passages that have little else in common.
MAX_NAMED_TEXT_UNITS = 30
# Passages that a question on the whole corpus is made from, each of another document.
MAX_THEME_PASSAGES = 8


@dataclass(frozen=True)
class Passage:
    """The text of a text unit, with its place in the document."""

    document: str
    start_char: int
    text: str

    def find_sentences(self, quotation: str) -> GoldSpan | None:
        """Return the span of the sentences that a quotation is in; None if it is not there."""
        found = find_quotation(quotation, self.text)
        if found is None:
            return None
        around = [
            sentence
            for sentence in split_sentences(self.text)
            if sentence.start < found[1] and found[0] < sentence.end
        ]
        start = min([found[0], *(sentence.start for sentence in around)])
        end = max([found[1], *(sentence.end for sentence in around)])
        return GoldSpan(
            self.document, self.start_char + start, self.start_char + end, self.text[start:end]
        )


@dataclass(frozen=True)
class Source:
    """The passages of one question; `topic` is what they have in common."""

    kind: str
    split: str
    passages: tuple[Passage, ...]
    topic: str = ""


class PassageSources:
    """A seeded choice of passages for questions of each kind, of one split at a time."""

    def __init__(self, index: Index, seed: int) -> None:
        self._store, self._seed = index.store, seed
        step = max(1, -(-self._store.n_rows("text_units") // MAX_TEXT_UNITS))
        units = (
            self._store.scan("text_units")
            .filter(pl.col("human_readable_id") % step == 0)
            .filter(pl.col("n_tokens") >= MIN_PASSAGE_TOKENS)
            .select("id", "document_id", number="human_readable_id")
            .collect()
        )
        documents = units["document_id"].unique(maintain_order=True).to_list()
        splits = {document: split_of(document, seed) for document in documents}
        self._units = units.with_columns(
            split=pl.col("document_id").replace_strict(splits, return_dtype=pl.String)
        )

    def list_sources(self, kind: str, split: str) -> Iterator[Source]:
        """Yield the passages for one question after the other."""
        mixer = random.Random(f"{self._seed} {split} {kind}")
        units = self._units.filter(split=split)
        if kind == "whole-corpus":
            yield from self._list_themes(units, split, mixer)
        elif kind in ("two-hop", "comparison"):
            yield from self._list_pairs(units, kind, split, mixer)
        else:
            for number in _one_of_each_document(units, mixer):
                yield Source(kind, split, self._read([number]))

    def _list_pairs(
        self, units: pl.DataFrame, kind: str, split: str, mixer: random.Random
    ) -> Iterator[Source]:
        """Yield pairs of passages that name the same entity, of two documents if there are."""
        if not self._store.has_table("mentions"):
            return
        entities = self._store.scan("entities").select("title", entity="human_readable_id")
        named = (
            self._store.scan("mentions")
            .select("entity", number=pl.col("text_unit").cast(pl.Int64))
            .unique()
            .join(units.lazy().select("number", "document_id"), on="number")
            .filter(pl.len().over("entity").is_between(2, MAX_NAMED_TEXT_UNITS))
            .join(entities, on="entity")
            .sort("entity", "number")
            .group_by("entity", maintain_order=True)
            .agg(pl.first("title"), "number", "document_id")
            .collect()
        )
        rows = list(named.iter_rows())
        mixer.shuffle(rows)
        for _, title, numbers, documents in rows:
            places = list(zip(numbers, documents, strict=True))
            mixer.shuffle(places)
            first, document = places[0]
            others = [number for number, other in places if other != document]
            # Text units of one document that follow each other overlap.
            others = others or [number for number, _ in places if abs(number - first) > 1]
            if others:
                yield Source(kind, split, self._read([first, others[0]]), title)

    def _list_themes(
        self, units: pl.DataFrame, split: str, mixer: random.Random
    ) -> Iterator[Source]:
        """Yield passages of communities that several documents tell of, with their reports."""
        if not self._store.has_table("community_reports"):
            return
        columns = ("community", "title", "summary")
        reports = self._store.scan("community_reports").select(columns).collect()
        texts = {row[0]: f"{row[1]}\n{row[2]}" for row in reports.iter_rows()}
        members = (
            self._store.scan("communities")
            .select("community", id="text_unit_ids")
            .explode("id")
            .join(units.lazy(), on="id")
            .sort("community", "number")
            .group_by("community", maintain_order=True)
            .agg("number", "document_id", n=pl.col("document_id").n_unique())
            .filter(pl.col("n") >= MIN_DOCUMENTS)
            .collect()
        )
        rows = list(members.iter_rows())
        mixer.shuffle(rows)
        for community, numbers, documents, _ in rows:
            inside = pl.DataFrame({"number": numbers, "document_id": documents})
            chosen = _one_of_each_document(inside, mixer)[
                : min(MAX_THEME_PASSAGES, len(set(documents)))
            ]
            if community in texts:
                passages = self._read(chosen)
                yield Source("whole-corpus", split, passages, texts[community])

    def _read(self, numbers: Sequence[int]) -> tuple[Passage, ...]:
        found = self._store.text_units(numbers)
        return tuple(_passage(found[number]) for number in numbers)


def _passage(unit: Mapping[str, object]) -> Passage:
    text, start = str(unit["text"]), unit["start_char"]
    assert isinstance(start, int)
    return Passage(str(unit["document_id"]), start, text[:MAX_PASSAGE_CHARS])


def _one_of_each_document(units: pl.DataFrame, mixer: random.Random) -> list[int]:
    """Shuffle text units so that each document gives one before a document gives two."""
    of_document: dict[str, list[int]] = defaultdict(list)
    for number, document in units.select("number", "document_id").iter_rows():
        of_document[document].append(number)
    ranked = []
    for numbers in of_document.values():
        mixer.shuffle(numbers)
        ranked += [(place, mixer.random(), number) for place, number in enumerate(numbers)]
    return [number for *_, number in sorted(ranked)]

"""Offsets of text units in Microsoft's documents, and of names in text units.

A text unit may begin with metadata lines that its document lacks, such as `title: Polar Times.`
The sentences around the names are the evidence of entities and relationships.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_index.extraction.alignment import NameMentions, Passage, Span, find_whole_words
from graphrag_index.microsoft.prepended_text import CUT_MARK
from graphrag_index.schema.tables import EVIDENCE, TABLES, parse_columns
from graphrag_index.storage.memo import read_batches
from graphrag_nlp.list_columns import (
    Integers,
    RowGroups,
    find_rows,
    gather_by_owner,
    spread_lists,
)
from graphrag_nlp.text.normalize import fold_in_place

_WORD = re.compile(r"\w+")
# Minimum length of a word of a name that may be found instead of the name.
_MIN_WORD_LENGTH = 4
_MAX_SENTENCES = 5  # sentences of the evidence of a relationship in one text unit
_BATCH_ROWS = 4_096  # text units per batch
_Place = tuple[int, int, int]  # start and end in a text, and the row that belongs there


def find_first_rows(ids: pl.Series, known: pl.Series) -> Integers:
    """Return the first row of each id in `known`, which may have duplicates; -1 if absent."""
    is_first = known.is_first_distinct()
    rows = is_first.arg_true().to_numpy().astype(np.int64)
    places = find_rows(ids, known.filter(is_first))
    found: Integers = np.where(places >= 0, np.append(rows, -1)[places], -1)
    return found


def find_row_pairs(lists: pl.Series, known: pl.Series) -> tuple[Integers, Integers]:
    """Return (row in `lists`, row in `known`) for each id in the lists; drop unknown ids."""
    owners, ids = spread_lists(lists)
    rows = find_first_rows(ids, known)
    return owners[rows >= 0], rows[rows >= 0]


class TextPositions(NamedTuple):
    """Offsets of names, and the evidence sentences around the names."""

    mentions: pl.DataFrame
    # Per entity: the sentence of its first mention in each text unit.
    entity_evidence: pl.DataFrame
    # Per relationship: the sentences from source to target in each text unit.
    relationship_evidence: pl.DataFrame


def compute_positions(tables: Mapping[str, pl.LazyFrame]) -> TextPositions:
    """Locate names in text units, and the sentences around them, in one pass.

    The texts of the text units are without the characters that their documents lack.
    """
    entities = tables["entities"].select("id", "title", "text_unit_ids").collect()
    links = tables["relationships"].select("source", "target", "text_unit_ids").collect()
    text_units = tables["text_units"].select("id", "entity_ids").collect()
    unit_ids = text_units["id"]
    # Entities may name their text units, and text units may name their entities: read both.
    owners, units = find_row_pairs(entities["text_unit_ids"], unit_ids)
    more_units, more = find_row_pairs(text_units["entity_ids"], entities["id"])
    of_units = RowGroups(np.append(units, more_units), np.append(owners, more), len(unit_ids))
    owners, units = find_row_pairs(links["text_unit_ids"], unit_ids)
    links_of_units = RowGroups(units, owners, len(unit_ids))
    titles = entities["title"].to_list()
    endpoints = links.select("source", "target").rows()

    mentions: list[tuple[int, int, int, int]] = []
    of_entities: list[tuple[int, str, int, int]] = []
    of_links: list[tuple[int, str, int, int]] = []
    rows = tables["text_units"].select("text", "document_id", "start_char")
    batches = chain.from_iterable(batch.iter_rows() for batch in read_batches(rows, _BATCH_ROWS))
    for number, (text, document_id, offset) in enumerate(batches):
        named, around, between = _locate_names(
            text,
            {entity: titles[entity] for entity in of_units[number].tolist()},
            {link: endpoints[link] for link in links_of_units[number].tolist()},
        )
        mentions += [(number, row, offset + start, offset + end) for start, end, row in named]
        for places, evidence in ((around, of_entities), (between, of_links)):
            evidence += [
                (row, document_id, offset + start, offset + end) for start, end, row in places
            ]
    columns = ["text_unit", "entity", "start_char", "end_char"]
    mention_rows = pl.DataFrame(np.array(mentions, np.int64).reshape(-1, 4), schema=columns)
    return TextPositions(
        mention_rows.select(TABLES["mentions"].cast_columns),
        _build_evidence_column(of_entities, len(titles)),
        _build_evidence_column(of_links, len(endpoints)),
    )


def _locate_names(
    text: str, titles: Mapping[int, str], endpoints: Mapping[int, tuple[str, str]]
) -> tuple[list[_Place], list[_Place], list[_Place]]:
    """Locate the mentions of entities in a text, and the evidence of entities and relationships.

    `titles` has the title of each entity, and `endpoints` the source and target of each
    relationship.
    """
    wanted = list(dict.fromkeys([*titles.values(), *chain.from_iterable(endpoints.values())]))
    if not wanted:
        return [], [], []
    found = dict(zip(wanted, locate_names(text, wanted), strict=True))
    passage = Passage(text)
    spans = {entity: found[title].spans for entity, title in titles.items()}
    named = sorted((*span, entity) for entity in spans for span in spans[entity])
    around = [(*passage.extend_to_sentences(*spans[entity][0]), entity) for entity in spans]
    between = []
    for link, (source, target) in endpoints.items():
        one, other = found[source], found[target]
        # Skip a name that the text lacks: its span is the whole text, which starts at 0.
        if all(name.whole or name.spans[0][0] > 0 for name in (one, other)):
            start, end = passage.find_evidence(one, other)
            if passage.count_sentences(start, end) <= _MAX_SENTENCES:
                between.append((start, end, link))
    return named, around, between


def _build_evidence_column(rows: list[tuple[int, str, int, int]], n_rows: int) -> pl.DataFrame:
    """Group spans (row, document id, start, end) into one evidence list per row."""
    columns = "owner: int64, document_id, start_char: int64, end_char: int64"
    places = pl.DataFrame(rows, schema=parse_columns(columns), orient="row")
    lists = gather_by_owner(places.sort("owner", maintain_order=True), n_rows)
    return pl.DataFrame({"evidence": lists.cast(EVIDENCE)})


def locate_names(text: str, titles: Sequence[str]) -> list[NameMentions]:
    """Find the mentions of entities in a text, ignoring case.

    A span inside the mention of a longer name among `titles` is not a mention. If the text lacks a
    name, the span is that of its longest word in the text, or else the whole text.
    """
    folded = fold_in_place(text)
    names = [fold_in_place(title).strip() for title in titles]
    found: dict[str, list[Span]] = {}
    taken: list[Span] = []
    for name in sorted(set(names), key=lambda name: (-len(name), name)):
        found[name] = [
            (start, end)
            for start, end in _find_name(name, folded)
            if not any(first <= start and end <= last for first, last in taken)
        ]
        taken += found[name]
    mentions = []
    for name in names:
        # If a name occurs only inside longer names, use these occurrences.
        spans = found[name] or _find_name(name, folded)
        words = [word for word in _WORD.findall(name) if len(word) >= _MIN_WORD_LENGTH]
        parts = (find_whole_words(word, folded) for word in sorted(words, key=len, reverse=True))
        fallback = next(chain.from_iterable(parts), (0, len(text)))
        mentions.append(NameMentions(tuple(spans) or (fallback,), bool(spans)))
    return mentions


def _find_name(name: str, text: str) -> list[Span]:
    """Find a name as whole words; `ss` also matches `ß`, since capital letters write SS."""
    if "ss" not in name or "\u00df" not in text:
        return list(find_whole_words(name, text))
    either = re.escape(name).replace("ss", "(?:ss|\u00df)")
    spellings = {name, *re.findall(either, text)}
    return sorted(span for spelling in spellings for span in find_whole_words(spelling, text))


_METADATA_LINE = re.compile(r"[^\n:]{1,100}: [^\n]*\.\n")
# The start of metadata whose values may have line breaks, and the end of such a value.
_METADATA_START, _VALUE_END = re.compile(r"[^\n]{1,100}?: "), re.compile(r"\.\n")
# The first `n_before` and the last `n_after` characters of a text unit are not in its document. The
# span is that of the other characters; it starts at 0 if the document lacks them.
SPAN_COLUMNS = pl.Schema(
    parse_columns(
        "start_char: int64, end_char: int64, n_before: int64, n_after: int64, is_found: bool"
    )
)


class Place(NamedTuple):
    """Offset of a text unit in its document, and counts of characters that the document lacks."""

    start: int
    n_before: int
    n_after: int


def locate_text_units(tables: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    """Return one row with `SPAN_COLUMNS` for each text unit."""
    unit_documents = tables["text_units"].select("document_id").collect()["document_id"]
    rows = find_first_rows(unit_documents, tables["documents"].select("id").collect()["id"])
    # By document row: the offset of the last text unit so far, and the metadata found so far.
    latest: dict[int, int] = {}
    prepended: dict[int, list[str]] = {}
    texts: dict[int, str] = {}
    spans: list[tuple[int, int, int, int, bool]] = []
    for first in range(0, len(unit_documents), _BATCH_ROWS):
        units = tables["text_units"].select("text").slice(first, _BATCH_ROWS).collect()["text"]
        here = np.unique(rows[first : first + len(units)])
        texts = _read_document_texts(tables["documents"], here[here >= 0].tolist(), texts)
        for number, text in enumerate(units.to_list(), first):
            document_row = int(rows[number])
            known = prepended.setdefault(document_row, [])
            place = None
            if document_row >= 0:
                earliest = latest.get(document_row, -1) + 1
                place = find_text_unit(text, texts[document_row], earliest, known)
            if place is None:
                spans.append((0, len(text), 0, 0, False))
                continue
            latest[document_row] = place.start
            length = len(text) - place.n_before - place.n_after
            spans.append((place.start, place.start + length, *place[1:], True))
            head = text[: place.n_before].rstrip(CUT_MARK)
            if head and head not in known:
                known.append(head)
    return pl.DataFrame(spans, schema=SPAN_COLUMNS, orient="row")


def find_text_unit(
    text: str, document: str, earliest: int = 0, prepended: Sequence[str] = ()
) -> Place | None:
    """Return the place of a text unit in its document; None if the document lacks the text.

    The search begins at `earliest`, one character after the start of the previous text unit, since
    text units overlap and may be equal. `prepended` has the metadata before other text units of the
    document. Lines that the document has are text, even if they look like metadata.
    """
    for head in _propose_metadata(text, document, prepended):
        body = text[len(head) :]
        if head and not body and document and head not in prepended:
            continue
        # First search with the marks of cuts: the document may have the same character.
        for part in dict.fromkeys((body, body.strip(CUT_MARK))):
            at = document.find(part, earliest)
            if (at := at if at >= 0 else document.find(part)) >= 0:
                n_before = len(head) + body.index(part)
                return Place(at, n_before, len(text) - n_before - len(part))
    return None


def _propose_metadata(text: str, document: str, prepended: Sequence[str]) -> Iterator[str]:
    """Yield possible metadata at the start of a text unit, the most probable first."""
    yield ""
    yield from filter(text.startswith, prepended)
    yield from _find_metadata_lines(text)
    # If values have line breaks, the first text unit of a document shows where they end.
    if _METADATA_START.match(text):
        for end in (found.end() for found in _VALUE_END.finditer(text)):
            is_first = text[end:] and document.startswith(text[end:].rstrip(CUT_MARK))
            if is_first or not document:
                yield text[:end]


def _find_metadata_lines(text: str) -> Iterator[str]:
    """Yield the first metadata line at the start of a text, then the first two, and so on."""
    end = 0
    while line := _METADATA_LINE.match(text, end):
        end = line.end()
        yield text[:end]


def _read_document_texts(
    documents: pl.LazyFrame, rows: list[int], known: Mapping[int, str]
) -> dict[int, str]:
    """Return the texts of documents by row; read only the texts that `known` lacks."""
    found = {row: known[row] for row in rows if row in known}
    if new := [row for row in rows if row not in known]:
        read = documents.select("text").slice(new[0], new[-1] - new[0] + 1)
        read = read.with_row_index("row", new[0]).filter(pl.col("row").is_in(new))
        found |= dict(read.collect().iter_rows())
    return found

"""Offsets of names in the text units of Microsoft's tables, and evidence around the names."""

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_index.extraction.alignment import NameMentions, Passage, Span, find_whole_words
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
_BATCH_ROWS = 4_096  # text units that are read at once
_Place = tuple[int, int, int]  # start and end in a text, and the row of what is there


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
    found = dict(zip(wanted, find_names(text, wanted), strict=True))
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


def find_names(text: str, titles: Sequence[str]) -> list[NameMentions]:
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

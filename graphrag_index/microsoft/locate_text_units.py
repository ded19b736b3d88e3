"""Spans of Microsoft's text units in their documents.

A text unit may begin with metadata lines that its document lacks, such as `title: Polar Times.`
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_index.microsoft.prepended_text import CUT_MARK
from graphrag_index.microsoft.read_positions import find_first_rows
from graphrag_index.schema.tables import parse_columns

# A metadata line; the group is the key of the line.
_METADATA_LINE = re.compile(r"([^\n:]{1,100}): [^\n]*\.\n")
# The start of metadata whose values may have line breaks, and the end of such a value.
_METADATA_START, _VALUE_END = re.compile(r"[^\n]{1,100}?: "), re.compile(r"\.\n")
_BATCH_ROWS = 4_096  # text units that are read at once
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
    """Return one row with `SPAN_COLUMNS` for each text unit.

    If a document is missing or lacks the text, the metadata of the text unit is recognized by the
    keys in other text units.
    """
    unit_documents = tables["text_units"].select("document_id").collect()["document_id"]
    rows = find_first_rows(unit_documents, tables["documents"].select("id").collect()["id"])
    # By document row: the offset of the last text unit so far, and the metadata found so far.
    latest: dict[int, int] = {}
    prepended: dict[int, list[str]] = {}
    texts: dict[int, str] = {}
    spans: list[tuple[int, int, int, int, bool]] = []
    lost: dict[int, str] = {}
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
                lost[number] = text
                spans.append((0, len(text), 0, 0, False))
                continue
            latest[document_row] = place.start
            length = len(text) - place.n_before - place.n_after
            spans.append((place.start, place.start + length, *place[1:], True))
            head = text[: place.n_before].rstrip(CUT_MARK)
            if head and head not in known:
                known.append(head)
    keys = {keys for heads in prepended.values() for head in heads if (keys := _parse_keys(head))}
    for number, text in lost.items():
        known = [head for head in prepended[int(rows[number])] if text.startswith(head)]
        known += [head for head in _find_metadata_lines(text) if _parse_keys(head) in keys]
        if known:
            n_before = len(max(known, key=len))
            spans[number] = (0, len(text) - n_before, n_before, 0, False)
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


def _parse_keys(head: str) -> tuple[str, ...]:
    """Return the keys of metadata lines; empty if a value has line breaks."""
    return tuple(_METADATA_LINE.findall(head)) if head in _find_metadata_lines(head) else ()


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

"""Spans of documents: the passages that support a row, with their texts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel

from graphrag_query.store.index_store import IndexStore
from graphrag_server.table_pages import number_in

# Maximum number of spans of one row.
MAX_SPANS = 200


class Span(BaseModel):
    """A passage: ``documents.text[start_char:end_char]`` of the document of this number.

    `text_unit` is the first text unit that contains the passage.
    """

    document: int
    title: str
    start_char: int
    end_char: int
    text: str
    text_unit: int | None = None


def read_spans(store: IndexStore, places: Sequence[Mapping[str, Any]] | None) -> list[Span]:
    """Read the texts of the places of a row, at most `MAX_SPANS`."""
    places = list(places or ())[:MAX_SPANS]
    documents = sorted({place["document"] for place in places})
    titles = dict(zip(documents, store.documents(documents)["title"], strict=True))
    spans = [_read_span(store, place, titles[place["document"]] or "") for place in places]
    # A place that no text unit contains: only the table of documents has its text.
    texts = read_texts(store, sorted({span.document for span in spans if span.text_unit is None}))
    for span in spans:
        if span.text_unit is None:
            span.text = texts[span.document][span.start_char : span.end_char]
    return spans


def _read_span(store: IndexStore, place: Mapping[str, Any], title: str) -> Span:
    """Read a place from the first text unit that contains it; without one, leave its text empty."""
    document, start, end = place["document"], place["start_char"], place["end_char"]
    span = Span(document=document, title=title, start_char=start, end_char=end, text="")
    units = store.open_mapped("text_unit_rows")
    found = units.find_rows("document", document)
    firsts = units.slice("start_char", found.start, found.stop)
    ends = units.slice("end_char", found.start, found.stop)
    holding = np.flatnonzero((firsts <= start) & (ends >= end))
    if len(holding):
        at = int(holding[0])
        text = units.rows([found.start + at], "text")["text"][0]
        first = int(firsts[at])
        # A text unit that begins with metadata has other offsets: its text is longer than its span.
        if len(text) == ends[at] - first:
            span.text_unit, span.text = found.start + at, text[start - first : end - first]
    return span


def read_texts(store: IndexStore, documents: Sequence[int]) -> dict[int, str]:
    """Read the texts of documents by number."""
    if not documents:
        return {}
    rows = store.scan("documents").select("human_readable_id", "text")
    return dict(rows.filter(number_in(documents)).collect().iter_rows())

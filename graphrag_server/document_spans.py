"""Spans of documents: the passages that support a row, with their texts."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pydantic import BaseModel

from graphrag_query.retrieval.index_store import IndexStore

# Maximum number of spans of one row.
MAX_SPANS = 200


class Span(BaseModel):
    """A passage: ``documents.text[start_char:end_char]`` of the document of this number."""

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
    texts = read_texts(store, documents)
    titles = dict(zip(documents, store.documents(documents)["title"], strict=True))
    return [
        Span(
            document=place["document"],
            title=titles[place["document"]] or "",
            start_char=place["start_char"],
            end_char=place["end_char"],
            text=texts[place["document"]][place["start_char"] : place["end_char"]],
        )
        for place in places
    ]


def read_texts(store: IndexStore, documents: Sequence[int]) -> dict[int, str]:
    """Read the texts of documents by number."""
    if not documents:
        return {}
    wanted = pl.Series(documents, dtype=pl.Int64).implode()
    rows = (
        store.scan("documents")
        .select("human_readable_id", "text")
        .filter(pl.col("human_readable_id").is_in(wanted))
        .collect()
    )
    return dict(rows.iter_rows())

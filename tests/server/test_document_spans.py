"""Spans of documents are read from text units, or else from the documents."""

from pathlib import Path

import graphrag_query
from graphrag_server.document_spans import read_spans, read_texts


def test_spans_have_the_texts_of_their_places(sample_project: Path) -> None:
    with graphrag_query.open(sample_project / "output") as index:
        store = index.store
        evidence = [
            place for row in store.entities(range(20))["evidence"].to_list() for place in row or ()
        ]
        texts = read_texts(store, range(store.n_rows("document_rows")))
        longest = max(texts, key=lambda number: len(texts[number]))
        whole = {"document": longest, "start_char": 0, "end_char": len(texts[longest])}
        spans = read_spans(store, [*evidence[:100], whole])
    assert len(spans) > 20
    for span in spans:
        assert span.text == texts[span.document][span.start_char : span.end_char]
    # No text unit holds the whole of the longest document.
    assert [span.text_unit is None for span in spans] == [False] * (len(spans) - 1) + [True]

"""References for the graph of an index: marked files, or indexes of the same documents."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from graphrag_evaluation.graph_quality.marked_passages import (
    MarkedPassage,
    build_marked_graph,
    read_marked_passages,
)
from graphrag_evaluation.graph_quality.reference_comparison import (
    ReferenceComparison,
    compare_graphs,
)
from graphrag_evaluation.graph_quality.stated_graph import (
    PASSAGES,
    StatedGraph,
    read_stated_graph,
)
from graphrag_index.errors import InputError
from graphrag_index.health.checked_index import CheckedIndex, count_rows
from graphrag_nlp.text.normalize import fold_name

# Names of a document, best first.
_NAMES_OF_DOCUMENTS = ("id", "path", "title")


class Reference(NamedTuple):
    """A reference that was opened: a marked file or an index."""

    name: str
    source: Sequence[MarkedPassage] | CheckedIndex


class _Common(NamedTuple):
    """Passages that an index and a reference have, and what the reference states about them."""

    passages: pl.DataFrame
    wanted: StatedGraph
    not_found: list[str]


def open_marked_file(path: Path) -> Reference:
    """Read a file of marked passages; raise `InputError` if a line is wrong."""
    return Reference(str(path), read_marked_passages(path))


def compare_with_reference(
    index: CheckedIndex, reference: Reference, seed: int
) -> ReferenceComparison:
    """Compare the graph of an index with a reference, on the documents that both have.

    Raises `InputError` if they have no document in common, and if an index lacks the tables.
    """
    _check_tables(index)
    if isinstance(reference.source, CheckedIndex):
        _check_tables(reference.source)
        common = _find_common_documents(index, reference.source)
    else:
        common = _find_marked_passages(index, reference.source)
    if common.passages.is_empty():
        raise InputError(
            f"The index in {index.path} has no document of the reference {reference.name}: "
            "documents are found by their text, id, path or title."
        )
    stated = read_stated_graph(index, common.passages)
    documents = common.passages["document"]
    figures, lists = compare_graphs(stated, common.wanted, documents, seed)
    return ReferenceComparison(
        reference.name,
        documents.n_unique(),
        count_rows(index.tables["documents"]),
        tuple(common.not_found),
        figures,
        lists,
    )


def _check_tables(index: CheckedIndex) -> None:
    has_entities = index.has("entities", "title", "text_unit_ids")
    has_documents = index.has("documents", "id") and index.has("text_units", "id")
    if not (has_entities and has_documents and index.text_unit_documents() is not None):
        raise InputError(
            f"The index in {index.path} cannot be compared: it lacks entities, text units or "
            "documents."
        )


def _find_marked_passages(index: CheckedIndex, marked: Sequence[MarkedPassage]) -> _Common:
    """Find the passages of a file in the documents of an index."""
    wanted = {passage.document for passage in marked}
    by_name: dict[str, list[int]] = defaultdict(list)
    for column in _document_columns(index):
        names = index.tables["documents"].select(column).collect().to_series()
        for row, name in enumerate(names):
            if name in wanted and row not in by_name[name]:
                by_name[name].append(row)
    texts = _read_texts(index, {row for rows in by_name.values() for row in rows})
    places: list[tuple[int, int, str | None]] = []
    found: list[MarkedPassage] = []
    not_found: dict[str, None] = {}
    for passage in marked:
        rows = by_name.get(passage.document, [])
        if passage.text is None and len(rows) > 1:
            raise InputError(
                f"{passage.where}: {len(rows)} documents are named {passage.document!r}; use the "
                "id of the document, or give the text of the passage."
            )
        place = _locate(passage, rows, texts)
        if place is None:
            not_found[passage.document + " (no such passage)" * bool(rows)] = None
        else:
            places.append((len(found), *place))
            found.append(passage)
    return _Common(
        pl.DataFrame(places, PASSAGES, orient="row"),
        build_marked_graph(found),
        list(not_found),
    )


def _locate(
    passage: MarkedPassage, rows: Sequence[int], texts: dict[int, str]
) -> tuple[int, str | None] | None:
    """Return the document and the normalized text of a passage; None if not found.

    The text is None if the passage is the whole document.
    """
    for row in rows:
        text = texts.get(row, "")
        if passage.text is None or passage.text.strip() == text.strip():
            return row, None
        if passage.text in text:
            return row, fold_name(passage.text)
    return None


def _find_common_documents(index: CheckedIndex, reference: CheckedIndex) -> _Common:
    """Pair documents of two indexes by a unique text, else by a unique name."""
    ours, theirs = _document_keys(index), _document_keys(reference)
    pairs = (
        ours.join(theirs, on="key", suffix="_reference")
        .sort(pl.col("rank") + pl.col("rank_reference"), "document", "document_reference")
        .unique("document", keep="first", maintain_order=True)
        .unique("document_reference", keep="first", maintain_order=True)
        .sort("document")
        .with_row_index("passage")
    )
    names = reference.tables["documents"].select(_document_columns(reference)[-1]).collect()
    is_found = pl.Series(range(len(names)), dtype=pl.UInt32).is_in(
        pairs["document_reference"].implode()
    )
    passages, of_reference = (
        pairs.select("passage", document=column, text=pl.lit(None, pl.String))
        for column in ("document", "document_reference")
    )
    return _Common(
        passages,
        read_stated_graph(reference, of_reference),
        names.to_series().filter(~is_found).cast(pl.String).to_list(),
    )


def _document_columns(index: CheckedIndex) -> list[str]:
    return [name for name in _NAMES_OF_DOCUMENTS if index.has("documents", name)]


def _document_keys(index: CheckedIndex) -> pl.DataFrame:
    """Return the unique keys of documents: the hashed names and texts, with their rank."""
    documents = index.tables["documents"].with_row_index("document")
    columns = [*(["text"] if index.has("documents", "text") else []), *_document_columns(index)]
    keys = []
    for rank, name in enumerate(columns):
        # A text is no name: the two are hashed with different seeds.
        text = pl.col(name).cast(pl.String)
        is_text = name == "text"
        key = text.str.strip_chars().hash(seed=1) if is_text else text.hash()
        rows = documents.filter(text.fill_null("") != "").select("document", key=key, rank=rank)
        keys.append(rows.with_columns(pl.col("rank").cast(pl.Int32)))
    found = pl.concat(keys).collect(engine="streaming")
    n_documents = pl.col("document").n_unique().over("key")
    return found.filter(n_documents == 1).sort("rank").unique(["document", "key"], keep="first")


def _read_texts(index: CheckedIndex, rows: Iterable[int]) -> dict[int, str]:
    if not index.has("documents", "text"):
        return {}
    wanted = pl.Series(sorted(rows), dtype=pl.UInt32)
    texts = index.tables["documents"].select(pl.col("text").fill_null("")).with_row_index("row")
    return dict(texts.filter(pl.col("row").is_in(wanted.implode())).collect().iter_rows())

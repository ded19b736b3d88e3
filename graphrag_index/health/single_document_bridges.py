"""Check for documents that alone join two parts of the graph."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.communities.simple_graph import Integers
from graphrag_index.health.checked_index import (
    EXPLANATIONS,
    MAX_EXAMPLES,
    NOT_CHECKED,
    CheckedIndex,
    CheckResult,
    Finding,
    count_rows,
)
from graphrag_index.storage.memo import read_batches
from graphrag_nlp.list_columns import find_rows, keep_first_keys, spread_lists

# Relationships that are read at once: bounds the memory.
_BATCH_ROWS = 262_144


class Links(NamedTuple):
    """Pairs of entities with a relationship, without loops; parallel relationships are merged.

    `document` is the row of the only document with the relationships of a pair; -1 if there are
    several, or if it is unknown. `row` is the row of the first relationship.
    """

    sources: Integers
    targets: Integers
    document: Integers
    row: Integers


class Bridge(NamedTuple):
    """Two parts of the graph that only one document joins, the two largest if there are more."""

    document: int
    size: int  # entities of the smaller part
    other_size: int
    link: int  # position in the links: a relationship of the document with the smaller part


def find_single_document_bridges(index: CheckedIndex, min_entities: int) -> CheckResult:
    """Find documents without whose relationships two parts of the graph are not connected.

    Both parts have at least `min_entities` entities. Only relationships count that no other
    document has. A bridge of the graph, in the sense of graph theory, is the case of one
    relationship.
    """
    found = _read_links(index)
    label = index.first_column("documents", "title", "path", "id")
    if found is None or label is None:
        return NOT_CHECKED
    n_entities, n_documents, links = found
    bridges = find_bridges(n_entities, links, min_entities)
    if not bridges:
        return CheckResult(n_documents)
    first = bridges[:MAX_EXAMPLES]
    names = index.tables["documents"].select(label).collect().to_series()
    rows = pl.Series([int(links.row[bridge.link]) for bridge in first], dtype=pl.UInt32)
    pairs = (
        index.tables["relationships"]
        .select("source", "target")
        .with_row_index("row")
        .filter(pl.col("row").is_in(rows.implode()))
        .collect(engine="streaming")
    )
    named = {row: f"{source} – {target}" for row, source, target in pairs.iter_rows()}
    examples = tuple(
        f"{names[bridge.document]}: {named[row]}; joins {bridge.size:,} entities to "
        f"{bridge.other_size:,}"
        for bridge, row in zip(first, rows, strict=True)
    )
    explanation = EXPLANATIONS["single_document_bridges"].replace("MIN", f"{min_entities:,}")
    means = f"{len(bridges):,} of {n_documents:,} {explanation}"
    finding = Finding("relationships", len(bridges), n_documents, examples, means)
    return CheckResult(n_documents, [finding])


def find_bridges(n_entities: int, links: Links, min_entities: int) -> list[Bridge]:
    """Return the documents that alone join parts of a graph, the largest smaller part first.

    Removing the links of each document in turn would take a pass over the graph for each. Instead
    the documents are halved again and again: each half has the graph in which the links of all
    other documents are contracted, so that a link takes part in one graph of each size.
    """
    is_kept = links.document < 0
    part = _find_parts(n_entities, links.sources[is_kept], links.targets[is_kept])
    weights = np.bincount(part, minlength=1)
    link = np.flatnonzero(~is_kept)
    document = links.document[link]
    ends = np.stack([part[links.sources[link]], part[links.targets[link]]])
    size = 1 << int(document.max(initial=0)).bit_length()
    while size > 1 and len(link):
        size //= 2
        # Node v has the copies 2 v and 2 v + 1, in the graphs of the even and of the odd half.
        half = document // size & 1
        part = _find_parts(2 * len(weights), *(2 * ends + 1 - half))
        weights = np.bincount(part, np.repeat(weights, 2)).astype(np.int64)
        ends = part[2 * ends + half]
        # The other documents join these ends already.
        is_left = ends[0] != ends[1]
        link, document = link[is_left], document[is_left]
        used, numbers = np.unique(ends[:, is_left], return_inverse=True)
        weights, ends = weights[used], numbers.reshape(2, -1)
    # Now each document has its own graph, in which the links of all others are contracted.
    is_large = weights >= min_entities
    joined = _find_parts(len(weights), *ends)
    n_large = np.bincount(joined, is_large, minlength=1)
    bridges: dict[int, Bridge] = {}
    for group in np.flatnonzero(n_large > 1).tolist():
        parts = np.flatnonzero((joined == group) & is_large)
        largest, second = parts[np.lexsort((parts, -weights[parts]))[:2]].tolist()
        # A relationship between two large parts tells more than one with a small part.
        touching = np.flatnonzero((ends == second).any(axis=0))
        is_between = is_large[ends[:, touching]].all(axis=0)
        best = touching[np.lexsort((links.row[link[touching]], ~is_between))[0]]
        bridge = Bridge(
            int(document[best]), int(weights[second]), int(weights[largest]), int(link[best])
        )
        known = bridges.get(bridge.document)
        if known is None or bridge.size > known.size:
            bridges[bridge.document] = bridge
    return sorted(bridges.values(), key=lambda bridge: (-bridge.size, bridge.document))


def _find_parts(n: int, sources: Integers, targets: Integers) -> Integers:
    """Return the number of each node's connected component."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones: npt.NDArray[np.int8] = np.ones(len(sources), np.int8)
    matrix = coo_array((ones, (sources, targets)), shape=(n, n))
    return np.asarray(connected_components(matrix, directed=False)[1], np.int64)


def _read_links(index: CheckedIndex) -> tuple[int, int, Links] | None:
    """Return the number of entities, of documents, and the links."""
    units = index.text_unit_documents()
    key, ends = "id", ["source_id", "target_id"]
    if not index.has("relationships", *ends):
        key, ends = "title", ["source", "target"]
    columns = (*ends, "source", "target", "text_unit_ids")
    if units is None or not (
        index.has("entities", key)
        and index.has("relationships", *columns)
        and index.has("documents", "id")
    ):
        return None
    keys = keep_first_keys(index.tables["entities"].select(pl.col(key).hash()).collect()[key])
    documents = index.tables["documents"].select(key=pl.col("id").hash())
    # A text unit of several documents, or of an unknown one, has no single document.
    of_units = (
        units.join(documents.with_row_index("document"), on="key", how="left")
        .group_by("unit")
        .agg(first=pl.col("document").min(), last=pl.col("document").max())
        .with_columns(pl.col("first", "last").cast(pl.Int64).fill_null(-1))
        .collect(engine="streaming")
    )
    relationships = index.tables["relationships"].select(*ends, unit="text_unit_ids")
    parts = [
        _read_batch(batch, ends, keys, of_units)
        for batch in read_batches(relationships, _BATCH_ROWS, at_least_one=True)
    ]
    low, high, first, last = np.concatenate(parts, axis=1)
    row = np.flatnonzero((low >= 0) & (low < high))
    links = (
        pl.DataFrame({"pair": low[row] * len(keys) + high[row], "row": row})
        .with_columns(first=first[row], last=last[row])
        .group_by("pair")
        .agg(pl.col("row", "first").min(), pl.col("last").max())
        .sort("row")
    )
    sources, targets = np.divmod(links["pair"].to_numpy(), max(len(keys), 1))
    is_single = pl.col("first") == pl.col("last")
    document = links.select(pl.when(is_single).then("last").otherwise(-1)).to_series()
    found = Links(sources, targets, document.to_numpy(), links["row"].to_numpy())
    return len(keys), count_rows(index.tables["documents"]), found


def _read_batch(
    batch: pl.DataFrame, ends: Sequence[str], keys: pl.Series, of_units: pl.DataFrame
) -> Integers:
    """Return four rows: the lower and the higher entity, and the first and last document.

    -1 means that an entity or a document is not known.
    """
    entities = np.stack([find_rows(batch[end].hash(), keys) for end in ends])
    owners, stated = spread_lists(batch["unit"])
    found = find_rows(stated.hash(), of_units["unit"])
    first, last = np.full(len(batch), np.iinfo(np.int64).max), np.full(len(batch), -1)
    for column, limits, choose in (("first", first, np.minimum), ("last", last, np.maximum)):
        documents = np.append(of_units[column].to_numpy(), -1)
        # Row -1, of an unknown text unit, is the last one.
        choose.at(limits, owners, documents[found])
    first[last < 0] = -1
    return np.stack([entities.min(axis=0), entities.max(axis=0), first, last])

"""Stability of communities: stored communities, compared with those of fewer documents."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_evaluation.graph_quality.graph_figures import MAX_EXAMPLES, Figure, Figures
from graphrag_evaluation.statistics import bootstrap_interval
from graphrag_index.communities.leiden import build_hierarchy
from graphrag_index.communities.simple_graph import (
    Floats,
    Graph,
    Integers,
    build_graph,
    count_neighbours,
)
from graphrag_index.health.checked_index import CheckedIndex, explode_lists
from graphrag_index.schema.settings.project_settings import read_recorded_settings
from graphrag_index.schema.settings.step_sections import CreateCommunities
from graphrag_index.steps.create_communities import build_microsoft_levels
from graphrag_index.storage.table_store import TableStore
from graphrag_nlp.list_columns import find_rows, keep_first_keys

# Share of the documents that each resample leaves out.
DROPPED_SHARE = 0.1
# Relationships of all resamples together: bounds the time. A large graph has fewer resamples.
MAX_RESAMPLED_EDGES = 10_000_000
MIN_RESAMPLES = 3
# With fewer documents, text units are left out instead.
MIN_DOCUMENTS = 10

Build = Callable[[Graph], list[Integers]]


class EvidenceGraph(NamedTuple):
    """The relationships of an index with their documents, and its entities, sorted by id.

    If the index has few documents, its text units take their place.
    """

    ids: pl.Series
    titles: pl.Series
    sources: Integers
    targets: Integers
    weights: Floats
    # Pairs of (row of a relationship, number of a document with it).
    rows: Integers
    documents: Integers
    n_documents: int

    def resample(self, is_kept: npt.NDArray[np.bool_]) -> Graph:
        """Return the graph of the kept documents, with the same nodes.

        The weight of a relationship is that of the share of its documents that are kept.
        """
        n = len(self.weights)
        n_kept = np.bincount(self.rows, is_kept[self.documents], n)
        share = n_kept / np.maximum(np.bincount(self.rows, minlength=n), 1)
        links = np.flatnonzero(share > 0)
        weights = self.weights[links] * share[links]
        return build_graph(len(self.ids), self.sources[links], self.targets[links], weights)


def measure_stability(index: CheckedIndex, n_resamples: int, seed: int) -> Figures:
    """Compare the stored communities with those of random samples of the documents.

    Each sample leaves out a tenth of the documents (of the text units if there are fewer than ten
    documents), and the engine and the settings of the index make communities of the rest.
    Entities that have a relationship there are compared, level by level: an entity that is not
    split further stays in its last community. Themes and islands are left out: they do not follow
    from relationships alone. The measure is Hennig's [1]_, the mean overlap of a community with
    the most similar one of each sample; 0.75 is usually called stable.

    References
    ----------
    .. [1] Hennig, Cluster-wise assessment of cluster stability, CSDA 52 (2007).
    """
    evidence = read_evidence_graph(index)
    if evidence is None or not index.has("communities", "community", "level", "entity_ids"):
        return {
            "stable_communities": "the index lacks relationships with documents, or communities"
        }
    if evidence.n_documents < 2 or not len(evidence.weights):
        return {"stable_communities": "the graph has relationships in fewer than two text units"}
    levels = _read_levels(index, evidence.ids)
    if not levels:
        return {"stable_communities": "the index has no communities of linked entities"}
    build = _make_builder(index, evidence.titles)
    n_samples = max(MIN_RESAMPLES, min(n_resamples, MAX_RESAMPLED_EDGES // len(evidence.weights)))
    random = np.random.default_rng(seed)
    n_dropped = max(1, round(DROPPED_SHARE * evidence.n_documents))
    overlaps: dict[int, list[float]] = {}
    for _ in range(min(n_samples, n_resamples)):
        is_kept = np.ones(evidence.n_documents, dtype=bool)
        is_kept[random.choice(evidence.n_documents, n_dropped, replace=False)] = False
        for stored, found in _pair_levels(evidence.resample(is_kept), levels, build):
            for community, overlap in best_overlaps(stored, found).items():
                overlaps.setdefault(community, []).append(overlap)
    means = {community: float(np.mean(values)) for community, values in overlaps.items()}
    worst = sorted(means.items(), key=lambda item: (item[1], item[0]))[:MAX_EXAMPLES]
    examples = [f"community {community}: {overlap:.2f}" for community, overlap in worst]
    interval = bootstrap_interval(list(means.values()), seed)
    none = "no community has two entities with a relationship"
    return {"stable_communities": Figure(interval, examples) if interval else none}


def best_overlaps(first: Integers, second: Integers) -> Mapping[int, float]:
    """Return the Jaccard overlap of each part of the first partition with the best part.

    Parts with a single member are left out.
    """
    numbers, one, n_first = np.unique(first, return_inverse=True, return_counts=True)
    _, two, n_second = np.unique(second, return_inverse=True, return_counts=True)
    n_parts = max(1, len(n_second))
    pairs, n_both = np.unique(one * n_parts + two, return_counts=True)
    of_first, of_second = np.divmod(pairs, n_parts)
    overlap = n_both / (n_first[of_first] + n_second[of_second] - n_both)
    best = np.zeros(len(n_first))
    np.maximum.at(best, of_first, overlap)
    kept = n_first > 1
    return dict(zip(numbers[kept].tolist(), best[kept].tolist(), strict=True))


def _pair_levels(
    graph: Graph, levels: list[Integers], build: Build
) -> list[tuple[Integers, Integers]]:
    """Return the stored and the new community of each entity that can be compared, by level."""
    # In a graph of all nodes, those without relationships would be communities of their own.
    nodes = np.flatnonzero((count_neighbours(graph) > 0) & (levels[0] >= 0))
    new = _fill_levels(build(graph))
    return [
        (stored[nodes], new[min(level, len(new) - 1)][nodes])
        for level, stored in enumerate(_fill_levels(levels))
    ]


def _fill_levels(levels: list[Integers]) -> list[Integers]:
    """Give nodes that are not split again the community of the level above.

    Communities of different levels have different numbers afterwards, if they had before.
    """
    filled = [levels[0]]
    for labels in levels[1:]:
        filled.append(np.where(labels >= 0, labels + filled[-1].max() + 1, filled[-1]))
    return filled


def _make_builder(index: CheckedIndex, titles: pl.Series) -> Build:
    """Return a function that makes communities with the engine and the settings of the index."""
    settings = CreateCommunities(engine="microsoft")
    if index.version is not None and not index.is_imported:
        version = TableStore(index.path).read_version(index.version)
        settings = read_recorded_settings(version.settings).create_communities
    if settings.engine == "microsoft":
        return partial(build_microsoft_levels, titles, settings=settings)
    return partial(build_hierarchy, settings=settings)


def read_evidence_graph(index: CheckedIndex) -> EvidenceGraph | None:
    """Read the entities and relationships with the documents of their text units."""
    units = index.text_unit_documents()
    key, ends = index.relationship_keys()
    columns = (*ends, "text_unit_ids")
    if units is None or not (
        index.has("entities", "id", "title") and index.has("relationships", *columns)
    ):
        return None
    entities = index.tables["entities"].select("id", "title").sort("id").collect()
    links = index.tables["relationships"]
    weight = (
        pl.col("weight").cast(pl.Float64) if index.has("relationships", "weight") else pl.lit(1.0)
    )
    rows = links.select(pl.col(ends), weight=weight).collect(engine="streaming")
    # Microsoft GraphRAG has an entity for each title and type: the first of a title is meant.
    keys = keep_first_keys(entities[key])
    sources, targets = (find_rows(rows[end], keys) for end in ends)
    weights = rows["weight"].fill_null(0).to_numpy()
    pairs = (
        explode_lists(links.select(unit="text_unit_ids").with_row_index("row"), "unit")
        .with_columns(pl.col("unit").hash())
        .join(units, on="unit")
        .collect(engine="streaming")
    )
    named = "key" if pairs["key"].n_unique() >= MIN_DOCUMENTS else "unit"
    pairs = pairs.select("row", key=named).unique()
    is_known = (sources >= 0) & (targets >= 0) & np.isfinite(weights) & (weights > 0)
    number = np.cumsum(is_known) - 1
    names = pairs["key"].unique().sort()
    row = pairs["row"].to_numpy().astype(np.int64)
    kept = is_known[row]
    return EvidenceGraph(
        entities["id"],
        entities["title"],
        sources[is_known],
        targets[is_known],
        weights[is_known],
        number[row[kept]],
        find_rows(pairs["key"], names)[kept],
        len(names),
    )


def _read_levels(index: CheckedIndex, ids: pl.Series) -> list[Integers]:
    """Return the community of each entity by level, from the first level without themes on.

    -1 means that an entity is in no community of the level that can be compared.
    """
    communities = index.tables["communities"]
    for flag in ("island", "theme"):
        if index.has("communities", flag):
            communities = communities.filter(~pl.col(flag).fill_null(False))
    rows = explode_lists(communities.select("level", "community", id="entity_ids"), "id").collect()
    if not len(rows):
        return []
    nodes = find_rows(rows["id"], ids)
    first, last = int(rows["level"].min()), int(rows["level"].max())  # type: ignore[arg-type]
    levels = [np.full(len(ids), -1) for _ in range(first, last + 1)]
    columns = (rows["level"].to_numpy(), rows["community"].to_numpy())
    for number, labels in enumerate(levels):
        chosen = (columns[0] == first + number) & (nodes >= 0)
        labels[nodes[chosen]] = columns[1][chosen]
    return levels

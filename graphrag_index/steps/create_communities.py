"""From the entity graph to a hierarchy of communities that leaves nobody out."""

import html
import logging
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.core.lists import distinct_pairs, gather_lists, spread_lists
from graphrag_index.core.settings import CreateCommunities
from graphrag_index.core.tables import TABLES, content_id
from graphrag_index.graph.leiden import ENGINES, hierarchy, hierarchy_microsoft
from graphrag_index.graph.simple_graph import Graph, Integers, components, simple_graph
from graphrag_index.graph.weights import check_weights
from graphrag_index.step import step

logger = logging.getLogger(__name__)


@step(writes=["communities"])
def create_communities(
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
    *,
    settings: CreateCommunities,
) -> pl.DataFrame:
    """Split the entity graph into a hierarchy of communities.

    Hierarchical Leiden: level 0 partitions all entities, and a community of
    more than `max_cluster_size` entities is split again one level down, if it
    can be. The parts of a community are all of it; what is not split does not
    appear again. Connected components of fewer than `min_component_size`
    entities are gathered into islands by the documents that name them, and
    so every entity is in one community of level 0.

    The result depends on the ids of the entities, not on the order of any rows.

    Raises
    ------
    TableError
        The weight of a relationship is not a number greater than 0.
    """
    check_weights("relationships", relationships)
    # Sorted by id: entity, relationship, text unit number i below is row i here.
    nodes = entities.select("id", "title").sort("id").collect()
    links = relationships.select("id", "source_id", "target_id", "weight").sort("id").collect()
    text_units = _text_units(base_text_units, documents)
    links, ends = _ends(links, nodes["id"])
    graph = simple_graph(len(nodes), ends[:, 0], ends[:, 1], links["weight"].to_numpy())
    named = _pairs(entities, nodes["id"], text_units["id"])
    shown = _pairs(relationships, links["id"], text_units["id"])
    _log_unnamed_documents(named, text_units)

    levels, is_island = _with_islands(
        graph, _levels(graph, nodes["title"], settings), named, text_units, settings
    )
    communities, levels = _number(levels, is_island)
    return _rows(communities, levels, ends, named, shown, nodes["id"], links["id"], text_units)


def _text_units(base_text_units: pl.LazyFrame, documents: pl.LazyFrame) -> pl.DataFrame:
    """Text units by id: `position` in reading order, number of the `document`, its `date`."""
    known = (
        documents.select("id", "human_readable_id", date=pl.col("creation_date").str.head(10))
        .with_columns(pl.col("date").fill_null(""))
        .collect()
    )
    return (
        base_text_units.select("id", "human_readable_id", "document_id")
        .collect()
        .join(known.rename({"human_readable_id": "document"}), left_on="document_id", right_on="id")
        .sort("id")
        .select("id", "document", "date", position="human_readable_id")
    )


def _ends(links: pl.DataFrame, ids: pl.Series) -> tuple[pl.DataFrame, Integers]:
    """Relationships between known entities, and the numbers of their two ends."""
    ends = np.stack([_numbers(links[end], ids) for end in ("source_id", "target_id")], axis=1)
    is_known = (ends >= 0).all(axis=1)
    return links.filter(pl.Series(is_known)), ends[is_known]


def _pairs(table: pl.LazyFrame, ids: pl.Series, text_unit_ids: pl.Series) -> Integers:
    """Number of the row and of the text unit, for each text unit that a row names."""
    rows = table.select("id", "text_unit_ids").collect()
    row, named = spread_lists(rows["text_unit_ids"])
    pairs = np.stack([_numbers(rows["id"], ids)[row], _numbers(named, text_unit_ids)], axis=1)
    known: Integers = pairs[(pairs >= 0).all(axis=1)]
    return known


def _numbers(wanted: pl.Series, ids: pl.Series) -> Integers:
    """Where in `ids` each wanted one stands, -1 if nowhere."""
    places = pl.DataFrame({"id": ids, "number": np.arange(len(ids))})
    found = pl.DataFrame({"id": wanted}, schema={"id": pl.String}).join(
        places, on="id", how="left", maintain_order="left"
    )
    return found["number"].fill_null(-1).to_numpy()


def _log_unnamed_documents(named: Integers, text_units: pl.DataFrame) -> None:
    document = text_units["document"].to_numpy()
    n_unnamed = len(np.setdiff1d(document, document[named[:, 1]]))
    if n_unnamed:
        logger.warning(
            "%d documents name no entity: no community speaks of them, a search in the texts does.",
            n_unnamed,
        )


def _levels(graph: Graph, titles: pl.Series, settings: CreateCommunities) -> list[Integers]:
    if settings.engine != "microsoft":
        return hierarchy(
            graph,
            engine=ENGINES[settings.engine],
            quality=settings.quality,
            resolution=settings.resolution,
            scale_resolution=settings.scale_resolution,
            iterations=settings.iterations,
            seed=settings.seed,
            max_cluster_size=settings.max_cluster_size,
            max_levels=settings.max_levels,
        )
    # Microsoft sorts the edges by the titles, after this clean-up.
    cleaned = [html.unescape(title).upper().strip() for title in titles]
    number = np.empty(len(cleaned), dtype=np.int64)
    number[sorted(range(len(cleaned)), key=cleaned.__getitem__)] = np.arange(len(cleaned))
    by_title = simple_graph(
        graph.n_nodes, number[graph.sources], number[graph.targets], graph.weights
    )
    return [labels[number] for labels in hierarchy_microsoft(by_title)]


def _with_islands(
    graph: Graph,
    levels: list[Integers],
    named: Integers,
    text_units: pl.DataFrame,
    settings: CreateCommunities,
) -> tuple[list[Integers], npt.NDArray[np.bool_]]:
    """Join small components at level 0; also tells which of its communities are islands."""
    component = components(graph)
    size = np.bincount(component)
    limit = min(settings.min_component_size, settings.max_cluster_size + 1)
    is_loose = size[component] < limit
    loose = np.flatnonzero(is_loose)
    island = _islands(component, loose, named, text_units, settings)
    top = levels[0].copy()
    n_others = int(top.max(initial=-1)) + 1
    top[loose] = n_others + island[component[loose]]
    kept, top = np.unique(top, return_inverse=True)
    deeper = [np.where(is_loose, -1, labels) for labels in levels[1:]]
    return [top, *(labels for labels in deeper if labels.max() >= 0)], kept >= n_others


def _islands(
    component: Integers,
    loose: Integers,
    named: Integers,
    text_units: pl.DataFrame,
    settings: CreateCommunities,
) -> Integers:
    """The island of each small component; -1 for the others.

    Small components of one document make an island; documents with few of
    them share one with those that follow. None has more than
    `max_cluster_size` entities.
    """
    n_components = int(component.max(initial=-1)) + 1
    size = np.bincount(component[loose], minlength=n_components)
    document, position = _home(component, named, text_units, n_components)
    small = np.flatnonzero(size)
    # The first entity of a component decides between those that begin in the same text unit.
    first = np.full(n_components, len(component))
    np.minimum.at(first, component, np.arange(len(component)))
    small = small[np.lexsort((first[small], position[small], document[small]))]

    island = np.full(n_components, -1)
    starts = np.flatnonzero(np.diff(document[small], prepend=-1))
    current, filled = 0, 0
    # One island after the other is filled, so this cannot be done by columns.
    for members in np.split(small, starts[1:]):
        n_members = int(size[members].sum())
        fits = filled + n_members <= settings.max_cluster_size
        if filled >= settings.min_component_size or not fits:
            current, filled = current + 1, 0
        for member, n in zip(members.tolist(), size[members].tolist(), strict=True):
            if filled + n > settings.max_cluster_size:
                current, filled = current + 1, 0
            island[member] = current
            filled += n
    return island


def _home(
    component: Integers, named: Integers, text_units: pl.DataFrame, n_components: int
) -> tuple[Integers, Integers]:
    """The document that names each component most, and the first text unit of it that does."""
    found = (
        pl.DataFrame(
            {
                "component": component[named[:, 0]],
                "document": text_units["document"].gather(named[:, 1]),
                "position": text_units["position"].gather(named[:, 1]),
            }
        )
        .group_by("component", "document")
        .agg(pl.len().alias("n"), pl.col("position").min())
        .sort("component", "n", "document", descending=[False, True, False])
        .unique("component", keep="first", maintain_order=True)
    )
    # What no text unit names comes last.
    document = np.full(n_components, 2**62)
    position = np.full(n_components, 2**62)
    document[found["component"]] = found["document"]
    position[found["component"]] = found["position"]
    return document, position


def _number(
    levels: Sequence[Integers], is_island: npt.NDArray[np.bool_]
) -> tuple[pl.DataFrame, list[Integers]]:
    """Number the communities through all levels.

    Within a level by parent; then islands last, the largest first, then the smallest entity.

    Returns
    -------
    communities
        One row per community: community, level, parent, size, island.
    levels
        The community of each node, or -1, level by level.
    """
    frames = []
    numbered: list[Integers] = []
    n_before = 0
    for level, labels in enumerate(levels):
        nodes = np.flatnonzero(labels >= 0)
        _, first, part, size = np.unique(
            labels[nodes], return_index=True, return_inverse=True, return_counts=True
        )
        first = nodes[first]
        parent = numbered[-1][first] if level else np.full(len(first), -1)
        island = is_island if level == 0 else np.zeros(len(first), dtype=bool)
        order = np.lexsort((first, -size, island, parent))
        number = np.empty(len(first), dtype=np.int64)
        number[order] = n_before + np.arange(len(first))
        numbered.append(np.full(len(labels), -1))
        numbered[-1][nodes] = number[part]
        frames.append(
            pl.DataFrame(
                {
                    "community": number[order],
                    "level": np.full(len(first), level),
                    "parent": parent[order],
                    "size": size[order],
                    "island": island[order],
                }
            )
        )
        n_before += len(first)
    return pl.concat(frames), numbered


def _rows(
    communities: pl.DataFrame,
    levels: Sequence[Integers],
    ends: Integers,
    named: Integers,
    shown: Integers,
    entity_ids: pl.Series,
    relationship_ids: pl.Series,
    text_units: pl.DataFrame,
) -> pl.DataFrame:
    """Complete the rows with members, links, text units, names and dates.

    `ends` are the two entities of each relationship; `named` are pairs of an
    entity, `shown` of a relationship, with a text unit.
    """
    n = len(communities)
    is_island = communities["island"].to_numpy()
    # Number of the community and of its member, relationship or text unit.
    members, inner, texts = [], [], []
    for labels in levels:
        of_link = np.where(labels[ends[:, 0]] == labels[ends[:, 1]], labels[ends[:, 0]], -1)
        members.append(_known(labels, np.arange(len(labels))))
        inner.append(_known(of_link, np.arange(len(ends))))
        texts.append(_known(of_link[shown[:, 0]], shown[:, 1]))
        # An island shows all that names its entities; so does what has no relationship.
        is_silent = np.ones(n, dtype=bool)
        is_silent[texts[-1][:, 0]] = False
        of_entity = labels[named[:, 0]]
        by_entity = (of_entity >= 0) & (is_silent | is_island)[of_entity]
        texts.append(np.stack([of_entity, named[:, 1]], axis=1)[by_entity])
    owners, shown_there = distinct_pairs(*np.concatenate(texts).T)

    # Rank 0 is the empty date.
    dates = pl.concat([pl.Series("date", [""]), text_units["date"]]).unique().sort()
    date_rank = dates.search_sorted(text_units["date"]).to_numpy()
    latest = np.zeros(n, dtype=np.int64)
    np.maximum.at(latest, owners, date_rank[shown_there])

    child = communities.filter(pl.col("parent") >= 0)
    number = pl.col("community").cast(pl.String)
    rows = communities.with_columns(
        pl.col("community").alias("human_readable_id"),
        pl.when("island")
        .then("Island " + number + " (entities with few or no links)")
        .otherwise("Community " + number)
        .alias("title"),
        gather_lists(child["parent"].to_numpy(), child["community"], n).alias("children"),
        _lists(np.concatenate(members), entity_ids, n).alias("entity_ids"),
        _lists(np.concatenate(inner), relationship_ids, n).alias("relationship_ids"),
        gather_lists(owners, text_units["id"].gather(shown_there), n).alias("text_unit_ids"),
        dates.gather(latest).alias("period"),
    )
    names = rows.select("level", pl.col("entity_ids").list.join(",")).iter_rows()
    ids = [content_id("community", str(level), ids) for level, ids in names]
    schema = TABLES["communities"].schema
    return rows.with_columns(pl.Series("id", ids, dtype=pl.String)).select(
        pl.col(name).cast(schema[name]) for name in schema
    )


def _known(owners: Integers, values: Integers) -> Integers:
    """Pairs of owner and value, without those that nothing owns."""
    return np.stack([owners, values], axis=1)[owners >= 0]


def _lists(pairs: Integers, ids: pl.Series, n: int) -> pl.Series:
    """The ids that each community owns, sorted; `ids` are sorted."""
    owners, values = distinct_pairs(*pairs.T)
    return gather_lists(owners, ids.gather(values), n)

"""Structure of a graph: equal names, entities alone, and connected components."""

import numpy as np
import polars as pl

from graphrag_evaluation.graph_quality.graph_figures import MAX_EXAMPLES, Figure, Figures
from graphrag_evaluation.graph_quality.graph_figures import share_figure as share
from graphrag_evaluation.statistics import SEED
from graphrag_index.communities.simple_graph import count_neighbours, find_components
from graphrag_index.health.checked_index import CheckedIndex
from graphrag_index.health.index_statistics import read_entity_graph
from graphrag_index.storage.table_store import TableStore
from graphrag_index.text.normalize import fold_names

# Connected components with fewer entities are small.
MIN_COMPONENT_SIZE = 3
NO_ENTITIES = "the index has no entities"


def measure_structure(index: CheckedIndex, seed: int = SEED) -> Figures:
    """Measure equal and doubtful names, entities alone, and connected components."""
    return {**_measure_names(index, seed), **_measure_components(index, seed)}


def _measure_names(index: CheckedIndex, seed: int) -> Figures:
    if not index.has("entities", "title"):
        return dict.fromkeys(("duplicate_names", "doubtful_names"), NO_ENTITIES)
    entities = (
        index.tables["entities"]
        .select("title", name=fold_names(pl.col("title")))
        .with_columns(is_equal=pl.col("name").is_duplicated() & (pl.col("name") != ""))
        .collect()
    )
    groups = entities.filter("is_equal").group_by("name", maintain_order=True).agg("title")
    examples = [" = ".join(titles) for titles in groups["title"].head(MAX_EXAMPLES)]
    is_equal = entities["is_equal"]
    return {
        "duplicate_names": share(
            is_equal, np.ones(len(is_equal)), examples, none=NO_ENTITIES, seed=seed
        ),
        "doubtful_names": _measure_doubtful_names(index, entities["title"], seed),
    }


def _measure_doubtful_names(index: CheckedIndex, titles: pl.Series, seed: int) -> Figure | str:
    if index.version is None:
        return "Microsoft GraphRAG does not compare names"
    store = TableStore(index.path)
    tables = store.read_version(index.version).tables
    if "doubtful_pairs" not in tables:
        return "the workflow of the index has no step resolve_entities"
    pairs = store.scan("doubtful_pairs", tables["doubtful_pairs"]).collect()
    is_doubtful = titles.is_in(pl.concat([pairs["title"], pairs["other"]]).implode())
    examples = [f"{one} = {other}?" for one, other in pairs.select("title", "other").iter_rows()]
    return share(is_doubtful, np.ones(len(titles)), examples, none=NO_ENTITIES, seed=seed)


def _measure_components(index: CheckedIndex, seed: int) -> Figures:
    names = ("alone", "small_components", "largest_component")
    found = read_entity_graph(index)
    if found is None:
        return dict.fromkeys(names, "the index has no tables of entities and relationships")
    graph = found[1]
    component, each = find_components(graph), np.ones(graph.n_nodes)
    if not graph.n_nodes:
        return dict.fromkeys(names, NO_ENTITIES)
    sizes = np.bincount(component)
    shares = {
        "alone": count_neighbours(graph) == 0,
        "small_components": sizes[component] < MIN_COMPONENT_SIZE,
        "largest_component": component == sizes.argmax(),
    }
    return {
        name: share(values, each, none=NO_ENTITIES, seed=seed) for name, values in shares.items()
    }

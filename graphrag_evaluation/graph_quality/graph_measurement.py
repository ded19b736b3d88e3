"""Measurement of the graph of an index: all measures at one version."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from graphrag_evaluation.graph_quality.grounding import (
    MAX_EXAMPLES,
    Figure,
    Figures,
    measure_grounding,
    measure_report_claims,
    share_figure,
)
from graphrag_evaluation.graph_quality.reference_comparison import (
    ReferenceComparison,
    compare_with_reference,
)
from graphrag_evaluation.systems import Place
from graphrag_index.communities.simple_graph import count_neighbours, find_components
from graphrag_index.errors import TableError, describe_error
from graphrag_index.health.checked_index import CheckedIndex, open_for_check
from graphrag_index.health.index_statistics import read_entity_graph
from graphrag_index.schema.settings.project_settings import SETTINGS_FILE, load_settings
from graphrag_index.step import Progress
from graphrag_index.storage.table_store import TableStore
from graphrag_nlp.text.normalize import fold_names

# Connected components with fewer entities are small.
MIN_COMPONENT_SIZE = 3
NO_ENTITIES = "the index has no entities"


def measure_structure(index: CheckedIndex) -> Figures:
    """Measure equal and doubtful names, entities without links, and connected components."""
    return {**_measure_names(index), **_measure_components(index)}


def _measure_names(index: CheckedIndex) -> Figures:
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
        "duplicate_names": share_figure(
            is_equal, np.ones(len(is_equal)), examples, none=NO_ENTITIES
        ),
        "doubtful_names": _measure_doubtful_names(index, entities["title"]),
    }


def _measure_doubtful_names(index: CheckedIndex, titles: pl.Series) -> Figure | str:
    if index.version is None:
        return "Microsoft GraphRAG does not compare names"
    store = TableStore(index.path)
    tables = store.read_version(index.version).tables
    if "doubtful_pairs" not in tables:
        return "the workflow of the index has no step resolve_entities"
    pairs = store.scan("doubtful_pairs", tables["doubtful_pairs"]).collect()
    is_doubtful = titles.is_in(pl.concat([pairs["title"], pairs["other"]]).implode())
    examples = [f"{one} = {other}?" for one, other in pairs.select("title", "other").iter_rows()]
    return share_figure(is_doubtful, np.ones(len(titles)), examples, none=NO_ENTITIES)


def _measure_components(index: CheckedIndex) -> Figures:
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
    return {name: share_figure(values, each, none=NO_ENTITIES) for name, values in shares.items()}


@dataclass(frozen=True)
class GraphQuality:
    """The figures of one index, and the reasons why other measures do not apply."""

    name: str
    figures: dict[str, Figure]
    not_measured: dict[str, str]
    comparison: ReferenceComparison | None = None  # None without a reference

    def to_dict(self) -> dict[str, Any]:
        figures = {name: figure.to_dict() for name, figure in self.figures.items()}
        found: dict[str, Any] = {"measures": figures, "not_measured": self.not_measured}
        if self.comparison is not None:
            found["reference"] = self.comparison.to_dict()
        return found


def measure_graph(
    place: Place, *, progress: Progress, reference: Place | None = None
) -> GraphQuality:
    """Measure the graph of an index of graphrag-index or of Microsoft GraphRAG.

    Raises `TableError` if there is no index or a table is damaged, and `InputError` if the index
    has no document of the reference.
    """
    index = open_place(place)
    comparison = None
    found: dict[str, Figure | str] = {}
    if reference is not None:
        # Open the reference first, so that an error in it is reported early.
        other = open_place(reference)
        with explain_damage(index, other):
            comparison = compare_with_reference(index, str(reference), other)
    parts = (measure_grounding, measure_structure, measure_report_claims)
    progress.start(len(parts), "parts")
    for part in parts:
        with explain_damage(index):
            found |= part(index)
        progress.advance()
    if comparison is not None:
        found |= comparison.figures
    return GraphQuality(
        str(place),
        {name: figure for name, figure in found.items() if isinstance(figure, Figure)},
        {name: figure for name, figure in found.items() if isinstance(figure, str)},
        comparison,
    )


@contextmanager
def explain_damage(*indexes: CheckedIndex) -> Iterator[None]:
    """Raise `TableError` for a table of the indexes that cannot be read."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        places = " or in ".join(str(index.path) for index in indexes)
        raise TableError(
            f"A table of the index in {places} cannot be read "
            f"({describe_error(error)[:160]}): `graphrag-index check` names it."
        ) from error


def open_place(place: Place) -> CheckedIndex:
    """Open the index of a project or of an output folder; raise `TableError` if damaged."""
    folder = place.folder
    if (folder / SETTINGS_FILE).is_file():
        folder /= load_settings(folder).output
    index = open_for_check(folder, place.version)
    if index.damaged:
        raise TableError(f"The index in {index.path} is damaged. {index.damaged[0].means}")
    return index

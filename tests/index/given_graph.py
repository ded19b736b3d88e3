"""A small graph in files of every type, and the step that reads it."""

from pathlib import Path
from typing import Any

import networkx as nx
import polars as pl

from graphrag_index.progress import Silent
from graphrag_index.schema.settings.graph_files import ReadGraph
from graphrag_index.schema.settings.settings import FinalizeGraph
from graphrag_index.schema.tables import TABLES
from graphrag_index.steps.finalize_graph import finalize_graph
from graphrag_index.steps.read_graph import read_graph

Frames = dict[str, pl.DataFrame]

# Two triangles and a bridge.
PEOPLE = [
    ("p1", "Ada", "person", "Ada paints."),
    ("p2", "Bo", "person", "Sculptor in Ghent."),
    ("p3", "Cy", "person", None),
    ("p4", "Dee", "person", "Dee sails."),
    ("p5", "Eli", "person", None),
    ("p6", "Fay", "ship", None),
]
LINKS = [
    ("r1", "p1", "p2", "2.5", "knows", "Ada taught Bo."),
    ("r2", "p1", "p3", "1.0", "", None),
    ("r3", "p2", "p3", "1.0", "knows", None),
    ("r4", "p3", "p4", "0.5", "owes", "A debt of 1901."),
    ("r5", "p4", "p5", "1.0", "", None),
    ("r6", "p4", "p6", "1.0", "", None),
    ("r7", "p5", "p6", "1.0", "", None),
]
ENTITY_COLUMNS = ("id", "name", "type", "description")
LINK_COLUMNS = ("id", "source", "target", "weight", "type", "description")


def frames() -> tuple[pl.DataFrame, pl.DataFrame]:
    return (
        pl.DataFrame(PEOPLE, schema=list(ENTITY_COLUMNS), orient="row"),
        pl.DataFrame(LINKS, schema=list(LINK_COLUMNS), orient="row"),
    )


def write_graph(root: Path, form: str) -> dict[str, str]:
    """Write the graph in a form; returns the settings that name its files."""
    root.mkdir(parents=True, exist_ok=True)
    people, links = frames()
    if form == "graphml":
        graph = nx.MultiDiGraph()
        for identity, name, kind, said in PEOPLE:
            told = {"description": said} if said else {}
            graph.add_node(identity, label=name, type=kind, **told)
        for identity, source, target, weight, kind, said in LINKS:
            told = {"description": said} if said else {}
            values = {"weight": float(weight), "type": kind, **told}
            graph.add_edge(source, target, key=identity, **values)
        nx.write_graphml(graph, root / "graph.graphml")
        return {"relationships": "graph.graphml"}
    names = {"entities": f"people.{form}", "relationships": f"links.{form}"}
    for frame, name in ((people, names["entities"]), (links, names["relationships"])):
        if form == "parquet":
            weights = [pl.col("weight").cast(pl.Float32)] if "weight" in frame.columns else []
            frame.with_columns(weights).write_parquet(root / name)
        else:
            frame.write_csv(root / name, separator="\t" if form == "tsv" else ",")
    return names


def read(root: Path, settings: dict[str, Any]) -> Frames:
    """Run the step; every table whole."""
    parts: dict[str, list[pl.DataFrame]] = {}
    section = ReadGraph.model_validate(settings)
    for batch in read_graph(settings=section, root=root, progress=Silent()):
        for name, frame in batch.items():
            parts.setdefault(name, []).append(frame)
    tables = {name: pl.concat(frames) for name, frames in parts.items()}
    for name, frame in tables.items():
        assert frame.schema == TABLES[name].schema
    return tables


def finalize(tables: Frames) -> Frames:
    """Make entities and relationships of what was read."""
    parts: dict[str, list[pl.DataFrame]] = {}
    for batch in finalize_graph(
        tables["raw_entities"],
        tables["raw_relationships"].lazy(),
        tables["raw_mentions"].lazy(),
        tables["base_text_units"].lazy(),
        None,
        tables["given_ids"],
        settings=FinalizeGraph(layout=False),
    ):
        for name, frame in batch.items():
            parts.setdefault(name, []).append(frame)
    return {name: pl.concat(frames) for name, frames in parts.items()}

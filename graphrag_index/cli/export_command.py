"""The command `graphrag-index export`: an index or its graph in another program's format."""

import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from graphrag_index.cli.options import Root, Set

if TYPE_CHECKING:
    from graphrag_index.export.exported_graph import Filters
    from graphrag_index.storage.table_store import TableStore
    from graphrag_index.storage.versions import Version


class GraphForm(NamedTuple):
    """A format of the graph: a module in `export/`, and the function that writes it.

    The function takes a graph and a path, and returns lines to print, in which TARGET stands for
    the target. `files` names a set in the module: the names that
    a folder of this format may hold; empty for a single file.
    """

    description: str
    module: str
    writer: str
    files: str = ""


# Formats of the whole index: a module with the function `export`.
FORMS: dict[str, str] = {"microsoft": "graphrag_index.microsoft.export_index"}
GRAPH_FORMS = {
    "graphml": GraphForm(
        "GraphML, for Gephi, yEd, Cytoscape, igraph and networkx", "graph_files", "write_graphml"
    ),
    "gexf": GraphForm(
        "GEXF 1.3, drawn: positions, sizes, a colour for each community",
        "graph_files",
        "write_gexf",
    ),
    "node-link": GraphForm("node-link JSON, for networkx and d3", "graph_files", "write_node_link"),
    "neo4j": GraphForm(
        "a folder of CSV files for neo4j-admin database import",
        "graph_databases",
        "write_neo4j",
        "NEO4J_FILES",
    ),
    "cypher": GraphForm(
        "a script of MERGE statements for cypher-shell", "graph_databases", "write_cypher"
    ),
    "parquet": GraphForm(
        "a folder of nodes and edges in Parquet, for Kùzu and its like",
        "graph_databases",
        "write_kuzu",
        "KUZU_FILES",
    ),
    "ntriples": GraphForm("RDF 1.1 N-Triples", "ntriples", "write_ntriples"),
}


def _help() -> str:
    forms = "; ".join(f"{name}: {form.description}" for name, form in GRAPH_FORMS.items())
    return f"The form: {forms}; microsoft: a folder as Microsoft GraphRAG 3 writes it."


def export(
    target: Annotated[Path, typer.Argument(help="File or folder to write.", metavar="TARGET")],
    to: Annotated[str, typer.Option("--to", help=_help(), metavar="FORM")],
    root: Root = Path(),
    as_of: Annotated[
        int | None, typer.Option("--as-of", help="Number of an earlier version.", metavar="N")
    ] = None,
    level: Annotated[
        int | None,
        typer.Option(
            "--level",
            help="Only entities in communities of this level, coloured by them; 0 is the coarsest.",
            metavar="N",
        ),
    ] = None,
    community: Annotated[
        int | None,
        typer.Option("--community", help="Only entities of this community.", metavar="N"),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", help="Only entities of this type; may be repeated.", metavar="TYPE"),
    ] = None,
    min_degree: Annotated[
        int,
        typer.Option(
            "--min-degree",
            min=0,
            help="Only entities with so many neighbours or more.",
            metavar="N",
        ),
    ] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what an earlier export has written.")
    ] = False,
    set_: Set = None,
) -> None:
    """Write the index, or its graph, in the form that another program reads."""
    if to not in FORMS and to not in GRAPH_FORMS:
        raise typer.BadParameter(f"--to takes one of: {', '.join([*FORMS, *GRAPH_FORMS])}.")
    from graphrag_index.export.exported_graph import Filters
    from graphrag_index.pipeline.history import current_version
    from graphrag_index.schema.settings.settings import load_settings
    from graphrag_index.storage.atomic import check_outside
    from graphrag_index.storage.table_store import TableStore

    # `kill` and `docker stop` leave nothing behind, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    filters = Filters(level, community, tuple(types or ()), min_degree)
    settings = load_settings(root, tuple(set_ or ()))
    store = TableStore(root / settings.output)
    version = current_version(store) if as_of is None else store.read_version(as_of)
    check_outside(target, store.output)
    if to in GRAPH_FORMS:
        lines = _export_graph(store, version, target, to, filters, overwrite)
    elif filters:
        raise typer.BadParameter(f"--to {to} writes the whole index: filters do not go with it.")
    else:
        write: Callable[..., list[str]] = import_module(FORMS[to]).export
        lines = write(store, version, target, overwrite=overwrite)
    for line in lines:
        print(line)


def _export_graph(
    store: "TableStore",
    version: "Version",
    target: Path,
    form: str,
    filters: "Filters",
    overwrite: bool,
) -> list[str]:
    from graphrag_index.cli.terminal import passing_bar
    from graphrag_index.export.exported_graph import select_graph
    from graphrag_index.storage.atomic import new_file, new_folder

    description = GRAPH_FORMS[form]
    module = import_module(f"graphrag_index.export.{description.module}")
    if description.files:
        names = getattr(module, description.files)
        place = new_folder(target, names, overwrite=overwrite)
    else:
        place = new_file(target, overwrite=overwrite)
    with place as path, passing_bar(sys.stderr, f"export to {form}") as progress:
        graph = select_graph(store, version, filters, progress)
        lines: list[str] = getattr(module, description.writer)(graph, path)
    messages = [
        f"Wrote {graph.n_nodes:,} entities and {graph.n_edges:,} relationships of version "
        f"{version.number} to {target}."
    ]
    if graph.n_dangling:
        were = "relationship was" if graph.n_dangling == 1 else "relationships were"
        messages.append(f"{graph.n_dangling:,} {were} left out: an end is no entity of the index.")
    return messages + [line.replace("TARGET", str(target)) for line in lines]


def add_commands(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(export)

"""The command `graphrag-index export`: an index, or its graph, in the form of another program."""

import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_index.cli.options import Root, Set

if TYPE_CHECKING:
    from graphrag_index.export.exported_graph import Filters
    from graphrag_index.storage.table_store import TableStore
    from graphrag_index.storage.versions import Version

# Forms of the whole index: the module has a function `export` from the store, the version and
# the target to what is to be told about it, line by line.
FORMS: dict[str, str] = {"microsoft": "graphrag_index.microsoft.export_index"}
# Forms of the graph, by name, and what they are. The module of that name in `export/` has a
# function `write` from the graph and a path to such lines, in which TARGET stands for where that
# will be; and `FILES`, the names in it, if what it writes is a folder.
GRAPH_FORMS = {
    "graphml": "GraphML, for Gephi, yEd, Cytoscape, igraph and networkx",
    "gexf": "GEXF 1.3, drawn: positions, sizes, a colour for each community",
    "node-link": "node-link JSON, for networkx and d3",
    "neo4j": "a folder of CSV files for neo4j-admin database import",
    "cypher": "a script of MERGE statements for cypher-shell",
    "parquet": "a folder of nodes and edges in Parquet, for Kùzu and its like",
    "ntriples": "RDF 1.1 N-Triples",
}


def _help() -> str:
    forms = "; ".join(f"{name}: {what}" for name, what in GRAPH_FORMS.items())
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
    from graphrag_index.pipeline.history.version_list import current_version
    from graphrag_index.schema.settings.settings import load_settings
    from graphrag_index.storage.export_target import check_outside
    from graphrag_index.storage.table_store import TableStore

    # `kill` and `docker stop` leave nothing behind, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    filters = Filters(level, community, tuple(types or ()), min_degree)
    settings = load_settings(root, tuple(set_ or ()))
    store = TableStore(root / settings.output)
    version = current_version(store) if as_of is None else store.read_version(as_of)
    check_outside(target, store)
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
    from graphrag_index.storage.export_target import new_file, new_folder

    module = import_module(f"graphrag_index.export.{form.replace('-', '_')}")
    if hasattr(module, "FILES"):
        place = new_folder(target, module.FILES, overwrite=overwrite)
    else:
        place = new_file(target, overwrite=overwrite)
    with place as path, passing_bar(sys.stderr, f"export to {form}") as progress:
        graph = select_graph(store, version, filters, progress)
        lines: list[str] = module.write(graph, path)
    told = [
        f"Wrote {graph.n_nodes:,} entities and {graph.n_edges:,} relationships of version "
        f"{version.number} to {target}."
    ]
    if graph.n_dangling:
        were = "relationship was" if graph.n_dangling == 1 else "relationships were"
        told.append(f"{graph.n_dangling:,} {were} left out: an end is no entity of the index.")
    return told + [line.replace("TARGET", str(target)) for line in lines]


def add_commands(app: typer.Typer) -> None:
    app.command()(export)

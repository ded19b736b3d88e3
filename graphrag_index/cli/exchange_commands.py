"""The commands `export` (to other formats) and `import` (from Microsoft GraphRAG)."""

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_index.cli import (
    Root,
    Set,
    exit_on_ctrl_c,
    load_project_settings,
    open_store,
    root_option,
)
from graphrag_index.cli.run_commands import Quiet
from graphrag_index.errors import format_count, print_lines

if TYPE_CHECKING:
    from graphrag_index.export.exported_graph import Filters
    from graphrag_index.pipeline.import_version import ImportResult
    from graphrag_index.schema.settings.project_settings import Settings
    from graphrag_index.storage.table_store import TableStore
    from graphrag_index.storage.versions import Version


# Formats of a graph, and their descriptions. `graphrag_index.export` has their writers.
GRAPH_FORMATS = {
    "graphml": "GraphML, for Gephi, yEd, Cytoscape, igraph and networkx",
    "gexf": "GEXF 1.3 with positions, sizes, and a colour for each community",
    "node-link": "node-link JSON, for networkx and d3",
    "neo4j": "a folder of CSV files for neo4j-admin database import",
    "cypher": "a script of MERGE statements for cypher-shell",
    "parquet": "a folder of nodes and edges in Parquet, for Kùzu and similar databases",
}
_FORMATS_HELP = "; ".join(f"{name}: {description}" for name, description in GRAPH_FORMATS.items())


def export(
    target: Annotated[Path, typer.Argument(help="File or folder to write.", metavar="TARGET")],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help=f"{_FORMATS_HELP}; microsoft: an index of Microsoft GraphRAG 3.",
            metavar="FORM",
        ),
    ],
    root: Root = Path(),
    as_of: Annotated[
        int | None, typer.Option("--as-of", help="Export this earlier version.", metavar="VERSION")
    ] = None,
    level: Annotated[
        int | None,
        typer.Option(
            "--level",
            help="Only entities in communities of this level (0: coarsest), coloured by community.",
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
            help="Only entities with at least this number of neighbours.",
            metavar="N",
        ),
    ] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file or folder of an earlier export.")
    ] = False,
    set_: Set = None,
) -> None:
    """Export the index or its graph to a file format of another program."""
    if to != "microsoft" and to not in GRAPH_FORMATS:
        names = ", ".join(["microsoft", *GRAPH_FORMATS])
        raise typer.BadParameter(f"--to takes one of: {names}.")
    from graphrag_index.export.exported_graph import Filters
    from graphrag_index.microsoft.export_index import export as export_index
    from graphrag_index.pipeline.history import current_version
    from graphrag_index.storage.atomic import check_outside

    # Handle SIGTERM (`kill`, `docker stop`) like Ctrl-C, which deletes unfinished files.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    filters = Filters(level, community, tuple(types or ()), min_degree)
    store = open_store(root, set_)
    version = current_version(store) if as_of is None else store.read_version(as_of)
    check_outside(target, store.output)
    if to == "microsoft":
        if filters:
            raise typer.BadParameter(f"--to {to} exports the whole index: leave out the filters.")
        print(*export_index(store, version, target, overwrite=overwrite), sep="\n")
    else:
        _export_graph(store, version, filters, to, target, overwrite)


def _export_graph(
    store: "TableStore",
    version: "Version",
    filters: "Filters",
    to: str,
    target: Path,
    overwrite: bool,
) -> None:
    """Write the graph in one of `GRAPH_FORMATS`, and print what was written."""
    from graphrag_index.cli.terminal import temporary_bar
    from graphrag_index.export import FOLDER_FILES, WRITERS
    from graphrag_index.export.exported_graph import select_graph
    from graphrag_index.storage.atomic import new_file, new_folder

    place = new_file(target, overwrite=overwrite)
    if to in FOLDER_FILES:
        place = new_folder(target, FOLDER_FILES[to], overwrite=overwrite)
    with place as path, temporary_bar(sys.stderr, f"export to {to}") as progress:
        graph = select_graph(store, version, filters, progress)
        lines = WRITERS[to](graph, path)
    print(
        f"Wrote {graph.n_nodes:,} entities and {graph.n_edges:,} relationships of version "
        f"{version.number} to {target}."
    )
    if graph.n_dangling:
        print(f"Left out: {graph.n_dangling:,} relationships to unknown entities.")
    for line in lines:
        print(line.replace("TARGET", str(target)))


def import_(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Project or output folder of Microsoft GraphRAG, or of export --to microsoft.",
            metavar="DIR",
        ),
    ],
    root: Root = Path(),
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the existing index of the project.")
    ] = False,
    vectors: Annotated[
        bool, typer.Option(help="Import the vectors too; otherwise the next run computes new ones.")
    ] = True,
    quiet: Quiet = False,
    set_: Set = None,
) -> None:
    """Import an index of Microsoft GraphRAG with its ids and numbers; no model is asked."""
    # Handle SIGTERM (`kill`, `docker stop`) like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from graphrag_index.cli.terminal import TerminalWatcher
    from graphrag_index.pipeline.import_version import import_index
    from graphrag_index.pipeline.run import Watcher

    settings = load_project_settings(root, set_)
    watcher = Watcher() if quiet else TerminalWatcher(bars=True)
    with exit_on_ctrl_c("Stopped. The index has not changed: import it again."):
        result = import_index(
            folder, settings, root, replace=replace, vectors=vectors, watcher=watcher
        )
    for line in [*_import_lines(folder, result, root), *_write_updating_workflow(settings, root)]:
        if not quiet:
            print_lines(line)


def _import_lines(folder: Path, result: "ImportResult", root: Path) -> list[str]:
    names = "documents text_units entities relationships communities community_reports covariates"
    rows = {name.replace("_", " "): result.version.tables[name].rows for name in names.split()}
    counts = ", ".join(format_count(name, n) for name, n in rows.items() if n)
    lines = [
        f"Imported {folder} ({result.generation}) as version {result.version.number}: {counts}.",
        "No model was asked. The imported tables are in imported/, a folder of the project.",
    ]
    run = f"`graphrag-index run --set workflow=imported{root_option(root)}`"
    if not result.without_vectors:
        lines.append(f"The index has no vectors, which most searches need: {run} computes them.")
    lacking = [f"{n:,} rows of {name}" for name, n in result.without_vectors.items() if n]
    if lacking:
        lines.append(f"Rows without a vector: {', '.join(lacking)}. {run} computes the vectors.")
    counts_of_changes = {
        "relationships are merged with their reverse": result.n_both_ways,
        "relationships with an unknown source or target are dropped": result.n_dangling,
        "entities without a community are assigned to one": result.n_outside,
    }
    changes = [f"{n:,} {what}" for what, n in counts_of_changes.items() if n]
    if changes:
        lines.append(f"Searches use the tables unchanged. In the first run {'; '.join(changes)}.")
    return lines


def _write_updating_workflow(settings: "Settings", root: Path) -> list[str]:
    """Write a workflow that extends the imported index; return lines that explain its use."""
    from graphrag_index.errors import WorkflowError
    from graphrag_index.microsoft.import_folder import ImportedIndex
    from graphrag_index.pipeline.import_version import replace_workflow, write_updating_workflow
    from graphrag_index.schema.settings.project_settings import (
        SETTINGS_FILE,
        write_missing_workflows,
    )

    write_missing_workflows(root)
    try:
        name = write_updating_workflow(root, settings.workflow)
    except (OSError, ValueError, WorkflowError) as error:
        return [f"A workflow that updates the imported index could not be written: {error}"]
    lines = []
    steps = (root / "workflows" / f"{name}.yaml").read_text(encoding="utf-8")
    if (
        ImportedIndex(root).has_table("community_reports")
        and "create_community_reports_nlp" in steps
    ):
        lines.append(
            f"The workflow {name} replaces the imported reports by reports made of sentences. To "
            "keep them, use the step create_community_reports instead, which asks a model."
        )
    path, run = root / SETTINGS_FILE, f"`graphrag-index run{root_option(root)}`"
    if name == settings.workflow:
        lines.append(f"{run} updates the imported index with the workflow {name}.")
    elif replace_workflow(path, settings.workflow, name):
        lines.append(
            f"{path} now has `workflow: {name}` (before: {settings.workflow}), so that {run} "
            "updates the imported index."
        )
    else:
        lines.append(f"Write `workflow: {name}` into {path}, so that {run} updates the index.")
    return lines

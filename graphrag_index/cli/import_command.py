"""The command `graphrag-index import`: an index of Microsoft GraphRAG becomes one of ours."""

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_index.cli.options import Root, Set, root_option
from graphrag_index.errors import ExitCode

if TYPE_CHECKING:
    from graphrag_index.pipeline.import_version import ImportResult
    from graphrag_index.schema.settings.settings import Settings

# The tables whose rows are counted in the message.
# fmt: off
_COUNTED = (
    "documents", "text_units", "entities", "relationships", "communities", "community_reports",
    "covariates",
)
# fmt: on


def import_(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder of its tables, or around it; or one that export --to microsoft wrote.",
            metavar="DIR",
        ),
    ],
    root: Root = Path(),
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the index that is there.")
    ] = False,
    vectors: Annotated[
        bool, typer.Option(help="Import its vectors; otherwise a run makes new ones.")
    ] = True,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
    set_: Set = None,
) -> None:
    """Import an index of Microsoft GraphRAG with its ids and numbers; no model is asked."""
    # `kill` and `docker stop` stop it as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from graphrag_index.cli.terminal import TerminalWatcher
    from graphrag_index.pipeline.import_version import import_index
    from graphrag_index.pipeline.run import Watcher
    from graphrag_index.schema.settings.settings import load_settings

    settings = load_settings(root, tuple(set_ or ()))
    watcher = Watcher() if quiet else TerminalWatcher(bars=True)
    try:
        result = import_index(
            folder, settings, root, replace=replace, vectors=vectors, watcher=watcher
        )
    except KeyboardInterrupt:
        print("Stopped. The index is as it was: the same command begins again.", file=sys.stderr)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    for line in [*_import_lines(folder, result, root), *_continue_from_import(settings, root)]:
        if not quiet:
            print(line)


def _import_lines(folder: Path, result: "ImportResult", root: Path) -> list[str]:
    tables = result.version.tables
    counts = ", ".join(
        f"{tables[name].rows:,} {name.replace('_', ' ')}" for name in _COUNTED if tables[name].rows
    )
    lines = [
        f"Imported {folder} ({result.generation}) as version {result.version.number}: {counts}.",
        "No model was asked. What was imported lies in imported/, and belongs to the project.",
    ]
    embed = f"`graphrag-index run --set workflow=imported{root_option(root)}` makes them"
    if not result.has_vectors:
        lines.append(f"There are no vectors: {embed}; path and neighbourhood need none.")
    lacking = [f"{n:,} rows of {name}" for name, n in result.without_vectors.items() if n]
    if lacking:
        lines.append(f"Without a vector are {', '.join(lacking)}: {embed}.")
    changes = [
        f"{number:,} {what}"
        for number, what in (
            (result.n_both_ways, "relationships are merged with their reverse"),
            (result.n_dangling, "relationships with an unknown end are dropped"),
            (result.n_outside, "entities outside of any community get one"),
        )
        if number
    ]
    if changes:
        lines.append(f"Searches use it as it is. In the first run {'; '.join(changes)}.")
    return lines


def _continue_from_import(settings: "Settings", root: Path) -> list[str]:
    """Write and name a workflow that extends the imported index; return lines that say so."""
    from graphrag_index.errors import WorkflowError
    from graphrag_index.pipeline.import_version import set_workflow, write_continuing_workflow
    from graphrag_index.schema.settings.project_files import write_missing_workflows
    from graphrag_index.schema.settings.settings import SETTINGS_FILE

    write_missing_workflows(root)
    try:
        name = write_continuing_workflow(root, settings.workflow)
    except (OSError, ValueError, WorkflowError) as error:
        return [f"No workflow goes on from it: {error}"]
    path, run = root / SETTINGS_FILE, f"`graphrag-index run{root_option(root)}`"
    lines = _warn_of_new_reports(root, name)
    if name == settings.workflow:
        lines.append(f"{run} goes on from here with the workflow {name}.")
    elif set_workflow(path, settings.workflow, name):
        lines.append(
            f"{path} says `workflow: {name}` now (before: {settings.workflow}), so that {run} goes "
            "on from here."
        )
    else:
        lines.append(f"Write `workflow: {name}` into {path}, so that {run} goes on from here.")
    return lines


def _warn_of_new_reports(root: Path, workflow: str) -> list[str]:
    """Warn if a run would replace the imported reports."""
    from graphrag_index.microsoft.import_folder import Imported

    steps = (root / "workflows" / f"{workflow}.yaml").read_text(encoding="utf-8")
    if not Imported(root).has("community_reports") or "create_community_reports_nlp" not in steps:
        return []
    return [
        f"The workflow {workflow} writes all reports anew from sentences; to keep those that were "
        "imported, put create_community_reports, which asks a model, into it."
    ]


def add_commands(app: typer.Typer) -> None:
    app.command("import")(import_)

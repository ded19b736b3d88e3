"""The commands on an index: `show`, `check` and `resolve`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from graphrag_index.cli.options import Root, Set
from graphrag_index.errors import ExitCode


def show(
    root: Root = Path(),
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write a page with a drawing of the graph.", metavar="FILE"),
    ] = None,
    set_: Set = None,
) -> None:
    """Print the size of everything, the largest communities and the top entities."""
    from graphrag_index.cli.overview_tables import write_overview
    from graphrag_index.schema.settings.settings import load_settings

    settings = load_settings(root, tuple(set_ or ()))
    if html is None:
        write_overview(root / settings.output, sys.stdout)
        return
    from graphrag_index.export.graph_page import write_page

    write_page(root / settings.output, html)
    print(f"Wrote {html}")


def check(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="An index, also of Microsoft GraphRAG; default: the index of the project."
        ),
    ] = None,
    root: Root = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page with plots.", metavar="FILE")
    ] = None,
    as_of: Annotated[
        int | None, typer.Option("--as-of", min=1, help="An earlier version.", metavar="VERSION")
    ] = None,
    set_: Set = None,
) -> None:
    """Check an index: inconsistencies, missing parts, and statistics."""
    from graphrag_index.schema.settings.settings import load_settings

    settings = load_settings(root, tuple(set_ or ()), needed=folder is None)
    import json

    from graphrag_index.cli.terminal import passing_bar
    from graphrag_index.health.checked_index import open_for_check, open_own
    from graphrag_index.health.checks import check_index
    from graphrag_index.health.health_page import write_page
    from graphrag_index.health.health_text import as_json as to_json
    from graphrag_index.health.health_text import as_text
    from graphrag_index.schema.settings.models import vector_identity

    own = root / settings.output
    if folder is None:
        index = open_own(own, as_of)
        if as_of is None:
            model = settings.generate_text_embeddings.model
            index.question_model = vector_identity(settings.models, model)
    else:
        index = open_for_check(folder, as_of)
    with passing_bar(sys.stderr, "check") as progress:
        health = check_index(index, settings.check, progress)
    if as_json:
        print(json.dumps(to_json(health), ensure_ascii=False, indent=1, allow_nan=False))
    else:
        print(as_text(health), end="")
    if html is not None:
        write_page(health, html)
        print(f"Wrote {html}", file=sys.stderr if as_json else sys.stdout)
    if health.failed:
        raise typer.Exit(ExitCode.FAILED)


def resolve(
    root: Root = Path(),
    merge: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--merge", help="Merge two names; the first becomes the title.", metavar="A B"
        ),
    ] = None,
    never: Annotated[
        tuple[str, str] | None,
        typer.Option("--never", help="Never merge two names.", metavar="A B"),
    ] = None,
    undo: Annotated[
        tuple[str, str] | None,
        typer.Option("--undo", help="Undo a decision about two names.", metavar="A B"),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Print merged names and doubtful pairs.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
    set_: Set = None,
) -> None:
    """Decide which names are one thing: stored in resolutions.yaml, applied by the next run."""
    from graphrag_index.cli import resolve_dialog as dialog
    from graphrag_index.schema.settings.settings import load_settings

    settings = load_settings(root, tuple(set_ or ()))
    path, output = root / settings.resolve_entities.file, root / settings.output
    if sum((merge is not None, never is not None, undo is not None, list_ or as_json)) > 1:
        raise typer.BadParameter("give one of --merge, --never, --undo and --list.")
    if merge is not None:
        dialog.merge(path, merge, sys.stdout)
    elif never is not None:
        dialog.never(path, never, sys.stdout)
    elif undo is not None:
        dialog.undo(output, path, *undo, sys.stdout)
    elif list_ or as_json or not sys.stdin.isatty():
        dialog.write_list(output, path, as_json, sys.stdout)
    else:
        dialog.ask(output, path, sys.stdout)


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    for command in (show, check, resolve):
        app.command()(command)

"""The command `graphrag-index export`: an index, or its graph, in the form of another program."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from graphrag_index.options import Root, Set

# The form by its name, and the module that writes it: each has a function `export` from the
# store, the version and the target to what is to be told about it, line by line.
FORMS: dict[str, str] = {}


def export(
    target: Annotated[Path, typer.Argument(help="File or folder to write.", metavar="TARGET")],
    to: Annotated[str, typer.Option("--to", help="The form.", metavar="FORM")],
    root: Root = Path(),
    as_of: Annotated[
        int | None, typer.Option("--as-of", help="Number of an earlier version.", metavar="N")
    ] = None,
    set_: Set = None,
) -> None:
    """Write the index, or its graph, in the form that another program reads."""
    from graphrag_index.core.settings import load_settings
    from graphrag_index.core.table_store import TableStore
    from graphrag_index.history.versions import current_version

    if to not in FORMS:
        raise typer.BadParameter(f"--to takes one of: {', '.join(FORMS)}.")
    settings = load_settings(root, tuple(set_ or ()))
    store = TableStore(root / settings.output)
    version = current_version(store) if as_of is None else store.read_version(as_of)
    write: Callable[..., list[str]] = import_module(FORMS[to]).export
    for line in write(store, version, target):
        print(line)


def add_commands(app: typer.Typer) -> None:
    app.command()(export)

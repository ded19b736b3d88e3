"""The commands about versions: versions, diff, rollback, gc."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_index.cli.options import Root, Set, root_option

if TYPE_CHECKING:
    from graphrag_index.storage.table_store import TableStore

Json = Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")]


def versions(root: Root = Path(), as_json: Json = False, set_: Set = None) -> None:
    """List the versions of the index: when they were made, what they hold, what they cost."""
    from graphrag_index.pipeline.history import version_list as history

    store = _store(root, set_)
    current = history.current_version(store).number
    found = history.read_versions(store)
    if as_json:
        _print_json([history.as_json(version, current) for version in found])
        return
    history.write_versions(found, current, sys.stdout)


def diff(
    before: Annotated[int, typer.Argument(help="Number of a version.", metavar="A")],
    after: Annotated[
        int | None, typer.Argument(help="Of another; the current one if left out.", metavar="B")
    ] = None,
    root: Root = Path(),
    as_json: Json = False,
    set_: Set = None,
) -> None:
    """Tell what was added, removed and changed between two versions."""
    from graphrag_index.pipeline.history import difference
    from graphrag_index.pipeline.history.version_list import current_version

    store = _store(root, set_)
    current = current_version(store)
    old = store.read_version(before)
    new = current if after is None else store.read_version(after)
    found = difference.compare(store, old, new)
    if as_json:
        _print_json(difference.as_json(old, new, found))
        return
    difference.write_difference(old, new, found, sys.stdout)


def rollback(
    number: Annotated[int, typer.Argument(help="Number of the version.", metavar="N")],
    root: Root = Path(),
    set_: Set = None,
) -> None:
    """Make an earlier version the index again, as a new version; nothing is lost."""
    from graphrag_index.pipeline.history.rollback import roll_back
    from graphrag_index.pipeline.history.version_list import current_version

    store = _store(root, set_)
    before = current_version(store).number
    version = roll_back(store, number)
    if version.number == before:
        print(f"Nothing changed: the index has the tables of version {number} (version {before}).")
        return
    print(f"The index has the tables of version {number} again (version {version.number}).")
    print(
        "The next `graphrag-index run` brings it up to what the input folder and the settings "
        f"then are; `graphrag-index rollback {before}{root_option(root)}` undoes this."
    )


def gc(
    keep: Annotated[
        int, typer.Option("--keep", min=1, help="How many versions stay.", metavar="N")
    ] = 5,
    root: Root = Path(),
    set_: Set = None,
) -> None:
    """Delete all versions but the last ones, with the files and vectors that only they have."""
    from graphrag_index.pipeline.history.garbage import collect_garbage

    freed = collect_garbage(_store(root, set_), keep)
    gone = ", ".join(map(str, freed.deleted))
    what = "no version" if not gone else f"version{'s' * (len(freed.deleted) > 1)} {gone}"
    kept = ", ".join(map(str, freed.kept))
    print(f"Deleted {what}; {freed.n_bytes / 1e6:,.1f} MB are free. Kept: {kept}.")
    if freed.in_use:
        print(
            f"{len(freed.in_use)} files are in use by another program, such as "
            f"{freed.in_use[0]}: the next gc deletes them.",
            file=sys.stderr,
        )


def add_commands(app: typer.Typer) -> None:
    """Make these commands those of a command line."""
    for command in (versions, diff, rollback, gc):
        app.command()(command)


def _store(root: Path, overrides: list[str] | None) -> "TableStore":
    from graphrag_index.schema.settings.settings import load_settings
    from graphrag_index.storage.table_store import TableStore

    return TableStore(root / load_settings(root, tuple(overrides or ())).output)


def _print_json(content: object) -> None:
    print(json.dumps(content, ensure_ascii=False, indent=2))

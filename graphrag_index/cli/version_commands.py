"""The commands `graphrag-index versions`, `diff`, `rollback` and `gc`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_index.cli.options import Root, Set, root_option

if TYPE_CHECKING:
    from graphrag_index.storage.table_store import TableStore

Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]


def versions(root: Root = Path(), as_json: Json = False, set_: Set = None) -> None:
    """List the versions of the index, with their dates, sizes and costs."""
    from graphrag_index.cli.version_tables import version_as_json, write_versions
    from graphrag_index.pipeline.history import current_version, read_versions

    store = _store(root, set_)
    current = current_version(store).number
    found = read_versions(store)
    if as_json:
        _print_json([version_as_json(version, current) for version in found])
        return
    write_versions(found, current, sys.stdout)


def diff(
    before: Annotated[int, typer.Argument(help="Number of a version.", metavar="A")],
    after: Annotated[
        int | None,
        typer.Argument(help="Number of another version; the current one by default.", metavar="B"),
    ] = None,
    root: Root = Path(),
    as_json: Json = False,
    set_: Set = None,
) -> None:
    """Print the rows added, removed and changed between two versions."""
    from graphrag_index.cli.version_tables import difference_as_json, write_difference
    from graphrag_index.pipeline.changes import compare
    from graphrag_index.pipeline.history import current_version

    store = _store(root, set_)
    current = current_version(store)
    old = store.read_version(before)
    new = current if after is None else store.read_version(after)
    found = compare(store, old, new)
    if as_json:
        _print_json(difference_as_json(old, new, found))
        return
    write_difference(old, new, found, sys.stdout)


def rollback(
    number: Annotated[int, typer.Argument(help="Number of the version.", metavar="N")],
    root: Root = Path(),
    set_: Set = None,
) -> None:
    """Restore the tables of an earlier version, as a new version; nothing is lost."""
    from graphrag_index.pipeline.history import current_version, roll_back

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
        int, typer.Option("--keep", min=1, help="Number of versions to keep.", metavar="N")
    ] = 5,
    root: Root = Path(),
    set_: Set = None,
) -> None:
    """Delete old versions, with the files and vectors that only they use."""
    from graphrag_index.pipeline.garbage import collect_garbage

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
    """Add the commands of this module to the command line."""
    for command in (versions, diff, rollback, gc):
        app.command()(command)


def _store(root: Path, overrides: list[str] | None) -> "TableStore":
    from graphrag_index.schema.settings.settings import load_settings
    from graphrag_index.storage.table_store import TableStore

    return TableStore(root / load_settings(root, tuple(overrides or ())).output)


def _print_json(content: object) -> None:
    import json

    print(json.dumps(content, ensure_ascii=False, indent=2))

"""Where an export is written: under a hidden name, which it changes when it is whole."""

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from graphrag_index.errors import ExportError
from graphrag_index.storage.atomic import temporary_path
from graphrag_index.storage.table_store import TableStore


def check_outside(target: Path, store: TableStore) -> None:
    """See that an export does not lie among the files of the index.

    Raises
    ------
    ExportError
        It does: the next run would take it for its own, or this would destroy the index.
    """
    output = store.output.resolve()
    if target.resolve() == output or output in target.resolve().parents:
        raise ExportError(f"{target} lies in the folder of the index, {output}: name another.")


@contextmanager
def new_file(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give the path of a file to write; it takes the name `target` when the block has ended.

    A link stays a link: what it leads to is written.

    Raises
    ------
    ExportError
        There is a folder of that name, a device, or a file and not `overwrite`, or another
        export writes it.
    """
    place = target.resolve()
    if place.is_dir():
        raise ExportError(f"{target} is a folder, and this form is a file: name a file in it.")
    if place.exists() and not place.is_file():
        raise ExportError(f"{target} is no plain file: name another, and read that.")
    if place.exists() and not overwrite:
        raise _taken(target)
    _make_parent(place)
    temporary = temporary_path(place)
    with _alone(place):
        try:
            _remove(temporary)
            yield temporary
            _flush(temporary)
            temporary.replace(place)
        finally:
            _remove(temporary)


@contextmanager
def new_folder(target: Path, names: Collection[str], *, overwrite: bool) -> Iterator[Path]:
    """Give the path of a folder to fill; it takes the name `target` when the block has ended.

    An empty folder may stand there already, and with `overwrite` an earlier export: one that
    holds nothing but files and folders of these names. A link stays a link: the folder that it
    leads to is replaced.

    Raises
    ------
    ExportError
        There is a file of that name, or a folder that may not be replaced, or another export
        writes it.
    """
    place = target.resolve()
    if place.exists() and not place.is_dir():
        raise ExportError(f"{target} is a file, and this form is a folder: name another.")
    present = sorted(path.name for path in place.iterdir()) if place.is_dir() else []
    foreign = [name for name in present if name not in names]
    if foreign:
        raise ExportError(
            f"{target} holds {foreign[0]}, which is not of an export: name another folder."
        )
    if present and not overwrite:
        raise _taken(target)
    if place == Path.cwd():
        # Who stands in a folder that is replaced stands in none.
        raise ExportError(f"{target} is the folder that you are in: name a new one in it.")
    _make_parent(place)
    temporary, replaced = temporary_path(place), place.with_name(f".{place.name}.old.tmp")
    with _alone(place):
        try:
            _remove(temporary, replaced)
            temporary.mkdir()
            yield temporary
            for path in temporary.rglob("*"):
                if path.is_file():
                    _flush(path)
            # A folder that is not empty cannot be replaced in one go.
            if place.exists():
                place.replace(replaced)
            temporary.replace(place)
        finally:
            if replaced.exists() and not place.exists():
                # Stopped between the two.
                replaced.replace(place)
            _remove(temporary, replaced)


def _make_parent(place: Path) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ExportError(
            f"{place.parent} is no folder, and cannot become one: name another target."
        ) from error


def _taken(target: Path) -> ExportError:
    return ExportError(f"{target} is there already: name another, or replace it with --overwrite.")


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Keep a second export off the same target."""
    from filelock import FileLock, Timeout

    path = target.with_name(f".{target.name}.lock")
    try:
        with FileLock(path, timeout=0):
            try:
                yield
            finally:
                # Windows deletes no file that is open.
                with suppress(OSError):
                    path.unlink()
    except Timeout:
        raise ExportError(f"Another export is writing {target}: wait for it to finish.") from None


def _remove(*paths: Path) -> None:
    """Delete what an export has left, this one or one that was killed."""
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    # The name must not reach the disk before what it names.
    with path.open("r+b") as file:
        os.fsync(file.fileno())

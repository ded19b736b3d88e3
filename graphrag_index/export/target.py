"""Where an export is written: under a hidden name, which it changes when it is whole."""

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from graphrag_index.core.atomic import temporary_path
from graphrag_index.core.errors import ExportError
from graphrag_index.core.table_store import TableStore


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

    Raises
    ------
    ExportError
        There is a folder of that name, or a file and not `overwrite`, or another export
        writes it.
    """
    if target.is_dir():
        raise ExportError(f"{target} is a folder, and this form is a file: name a file in it.")
    if target.exists() and not overwrite:
        raise _taken(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(target)
    with _alone(target):
        try:
            _remove(temporary)
            yield temporary
            _flush(temporary)
            temporary.replace(target)
        finally:
            _remove(temporary)


@contextmanager
def new_folder(target: Path, names: Collection[str], *, overwrite: bool) -> Iterator[Path]:
    """Give the path of a folder to fill; it takes the name `target` when the block has ended.

    An empty folder may stand there already, and with `overwrite` an earlier export: one that
    holds nothing but files and folders of these names.

    Raises
    ------
    ExportError
        There is a file of that name, or a folder that may not be replaced, or another export
        writes it.
    """
    if target.exists() and not target.is_dir():
        raise ExportError(f"{target} is a file, and this form is a folder: name another.")
    present = sorted(path.name for path in target.iterdir()) if target.is_dir() else []
    foreign = [name for name in present if name not in names]
    if foreign:
        raise ExportError(
            f"{target} holds {foreign[0]}, which is not of an export: name another folder."
        )
    if present and not overwrite:
        raise _taken(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary, replaced = temporary_path(target), target.with_name(f".{target.name}.old.tmp")
    with _alone(target):
        try:
            _remove(temporary, replaced)
            temporary.mkdir()
            yield temporary
            for path in temporary.rglob("*"):
                if path.is_file():
                    _flush(path)
            # A folder that is not empty cannot be replaced in one go.
            if target.exists():
                target.replace(replaced)
            temporary.replace(target)
        finally:
            _remove(temporary, replaced)


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
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    # The name must not reach the disk before what it names.
    with path.open("r+b") as file:
        os.fsync(file.fileno())

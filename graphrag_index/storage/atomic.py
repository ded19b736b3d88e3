"""Atomic writing of files and folders: a reader never sees a half-written file."""

import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import EISDIR
from hashlib import blake2b, file_digest
from pathlib import Path

from graphrag_index.errors import ExportError


def write_json(path: Path, content: object) -> None:
    """Write a small JSON file atomically."""
    write_text_file(path, [json.dumps(content, ensure_ascii=False, indent=1)])


def write_text_file(path: Path, parts: Iterable[str], *, secret: bool = False) -> None:
    """Write the parts of a text to a file atomically; line breaks are not converted.

    If the path is a link, its target is replaced. An existing file keeps its permissions. A
    `secret` file can be read by its owner only.
    """
    if path.is_dir():
        raise IsADirectoryError(EISDIR, "This is a folder, name a file in it", str(path))
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        descriptor = os.open(temporary, flags, 0o600 if secret else 0o666)
        with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        if path.exists() and not secret:
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def digest_file(path: Path) -> str:
    """Return a hash of the content of a file: 32 hex digits."""
    with path.open("rb") as file:
        return file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()


def hash_files(paths: Iterable[Path]) -> str:
    """Return a hash of the contents of files; one that cannot be read has none."""
    whole = blake2b(digest_size=16)
    for path in paths:
        with suppress(OSError):
            whole.update(digest_file(path).encode("ascii"))
    return whole.hexdigest()


def temporary_path(path: Path) -> Path:
    """Return the path of a file until it is complete; `remove_leftovers` deletes such files."""
    return path.with_name(f".{path.name}.tmp")


def check_outside(target: Path, output: Path) -> None:
    """Raise ExportError if an export would overwrite the output folder of the index."""
    output = output.resolve()
    if target.resolve() == output or output in target.resolve().parents:
        raise ExportError(f"{target} lies in the index folder {output}: name another target.")


@contextmanager
def new_file(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield the path of a new file. At the end of the `with` block it is renamed to `target`.

    If `target` is a link, the file that the link leads to is replaced. Raises ExportError if
    `target` is a folder or a device, if it exists and `overwrite` is false, or if another export
    is writing it.
    """
    path = target.resolve()
    if path.is_dir():
        raise ExportError(f"{target} is a folder, but this format is a file: name a file in it.")
    if path.exists() and not path.is_file():
        raise ExportError(f"{target} is not a plain file: name another target.")
    if path.exists() and not overwrite:
        raise _existing_target_error(target)
    temporary = temporary_path(path)
    with lock_target(path):
        try:
            _remove_paths(temporary)
            yield temporary
            flush_file(temporary)
            temporary.replace(path)
        finally:
            _remove_paths(temporary)


@contextmanager
def new_folder(target: Path, names: Collection[str], *, overwrite: bool) -> Iterator[Path]:
    """Yield the path of a new folder. At the end of the `with` block it is renamed to `target`.

    The target may be an empty folder. With `overwrite` it may also be an earlier export: a folder
    that contains only files in `names`. If the target is a link, the folder that the link leads to
    is replaced. Raises ExportError if the target is a file or another folder, or if another
    export is writing it.
    """
    place = target.resolve()
    if place.exists() and not place.is_dir():
        raise ExportError(f"{target} is a file, but this format is a folder: name another target.")
    present = sorted(path.name for path in place.iterdir()) if place.is_dir() else []
    for name in present:
        if name not in names:
            raise ExportError(
                f"{target} holds {name}, which is not part of an export: name another folder."
            )
    if present and not overwrite:
        raise _existing_target_error(target)
    if place == Path.cwd():
        # Replacing the current folder of the shell would leave the shell in a deleted folder.
        raise ExportError(f"{target} is the current folder: name a new folder inside it.")
    temporary, replaced = temporary_path(place), place.with_name(f".{place.name}.old.tmp")
    with lock_target(place):
        try:
            _remove_paths(temporary, replaced)
            temporary.mkdir()
            yield temporary
            for path in temporary.rglob("*"):
                if path.is_file():
                    flush_file(path)
            # Only an empty folder can be replaced atomically, so move the old folder away first.
            if place.exists():
                place.replace(replaced)
            temporary.replace(place)
        finally:
            if replaced.exists() and not place.exists():
                # The new folder is not in place, since the export was stopped: restore the old one.
                replaced.replace(place)
            _remove_paths(temporary, replaced)


def _existing_target_error(target: Path) -> ExportError:
    return ExportError(f"{target} already exists: name another target, or use --overwrite.")


@contextmanager
def lock_target(target: Path, writer: str = "export") -> Iterator[None]:
    """Create the parent folder of the target, and lock the target against a second writer.

    Raises ExportError, which names the `writer`, if another process has locked the target.
    """
    from filelock import FileLock, Timeout

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ExportError(
            f"{target.parent} cannot be a folder, since a file is there: name another target."
        ) from error
    path = target.with_name(f".{target.name}.lock")
    try:
        with FileLock(path, timeout=0):
            try:
                yield
            finally:
                # Ignore the error on Windows, which cannot delete an open file.
                with suppress(OSError):
                    path.unlink()
    except Timeout:
        raise ExportError(f"Another {writer} is writing {target}: wait for it to finish.") from None


def _remove_paths(*paths: Path) -> None:
    """Delete files and folders that this export, or a killed one, has left behind."""
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def flush_file(path: Path) -> None:
    """Flush the content of a file to the disk. This must happen before the file is renamed."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())

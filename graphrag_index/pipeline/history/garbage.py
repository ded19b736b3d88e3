"""Deleting old versions, and what only they have."""

import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from graphrag_index.errors import TableError
from graphrag_index.pipeline.history.version_list import current_version
from graphrag_index.pipeline.run import lock
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.table_store import INDEX_FILE, JOURNAL_FILE, TableStore
from graphrag_index.storage.table_writer import MAPPED_SUFFIX, SUFFIX
from graphrag_index.storage.versions import StoredTable


@dataclass(frozen=True)
class Freed:
    """Which versions were deleted, which are kept, and the bytes that it freed."""

    deleted: tuple[int, ...]
    kept: tuple[int, ...]
    n_bytes: int
    in_use: tuple[Path, ...]  # files that could not be deleted


def collect_garbage(store: TableStore, keep: int) -> Freed:
    """Delete all versions but the last so many, and what only they have.

    What a kept version names stays, whichever version wrote it, and so does what an interrupted
    run has finished. Who reads a version that is deleted is told so by the next question.

    Raises
    ------
    TableError
        There is no index, or a version to keep cannot be read; nothing was deleted.
    WorkflowError
        A run is writing.
    """
    current_version(store)
    with lock(store):
        current = current_version(store)
        before = _size(store.output)
        numbers = store.versions()
        kept = numbers[-keep:]
        named = [*current.tables.items()]
        for number in kept:
            named += store.read_version(number).tables.items()
        unfinished = store.next_number()
        for record in store.read_journal(unfinished):
            named += record.tables.items()
        missing = [name for name, table in current.tables.items() if not store.exists(name, table)]
        if missing:
            raise TableError(
                f"Nothing was deleted, since the index lacks its table {missing[0]}: run "
                "`graphrag-index run` to write it again."
            )
        deleted = numbers[: len(numbers) - len(kept)]
        old_vectors = _vectors_of(store, deleted)
        # Versions first: whoever finds a file missing then finds that its version is gone.
        for number in deleted:
            for file in (INDEX_FILE, JOURNAL_FILE):
                (store.folder(number) / file).unlink(missing_ok=True)
        in_use = tuple(_delete_files(store, {table.file for _, table in named}, unfinished))
        _delete_vectors(store, named, current.tables, old_vectors)
        in_use += tuple(_delete_graphs(store, kept))
        store.remove_leftovers(keep=unfinished)
        freed = max(0, before - _size(store.output))
        return Freed(tuple(deleted), tuple(kept), freed, in_use)


def _vectors_of(store: TableStore, numbers: list[int]) -> set[str]:
    """Return the LanceDB tables that are ours: of the program, and of these versions."""
    found = {name for name, table in TABLES.items() if table.kind == "vectors"}
    for number in numbers:
        # That it is damaged is no reason to keep it.
        with suppress(TableError):
            tables = store.read_version(number).tables
            found |= {name for name, table in tables.items() if table.lance_version is not None}
    return found


def _delete_files(store: TableStore, named: set[str | None], unfinished: int) -> Iterator[Path]:
    """Delete tables that nothing names, and empty folders; yields what is in use."""
    for folder in store.output.glob("versions/*"):
        if not folder.name.isdecimal():
            continue
        for path in folder.iterdir():
            is_table = path.suffix in (SUFFIX, MAPPED_SUFFIX)
            if is_table and path.relative_to(store.output).as_posix() not in named:
                try:
                    path.unlink()
                except PermissionError:
                    # Windows does not delete what somebody reads.
                    yield path
        if int(folder.name) != unfinished and not any(folder.iterdir()):
            folder.rmdir()


def _delete_graphs(store: TableStore, kept: list[int]) -> Iterator[Path]:
    """Delete databases of versions that are gone; yields what is in use."""
    for path in store.graphs.glob("[0-9]*-*"):
        if path.name.partition("-")[0] not in map(str, kept):
            try:
                path.unlink()
            except PermissionError:
                yield path


def _delete_vectors(
    store: TableStore,
    named: list[tuple[str, StoredTable]],
    current: dict[str, StoredTable],
    ours: set[str],
) -> None:
    """Delete versions of LanceDB tables that nothing names, and tables of which none is named."""
    vectors = [(name, table) for name, table in named if table.lance_version is not None]
    versions: dict[str, set[int]] = defaultdict(set)
    for name, table in vectors:
        if store.exists(name, table):
            versions[name].add(table.lance_version or 0)
    for folder in sorted(store.lancedb.glob("*.lance")):
        name = folder.stem
        if name in ours and name not in dict(vectors):
            shutil.rmtree(folder)
        if name not in versions:
            continue
        from graphrag_index.storage.vector_versions import delete_versions

        newest = current[name].lance_version if name in current else None
        delete_versions(store.lancedb, name, versions[name], newest or max(versions[name]))


def _size(output: Path) -> int:
    """Return the bytes of all tables, vectors and databases."""
    files = (
        *output.glob("versions/*/*"),
        *output.glob("lancedb/**/*"),
        *output.glob("cypher/*"),
    )
    return sum(path.stat().st_size for path in files if path.is_file())

"""Deletion of what is no longer needed: old versions, and requests to models."""

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from graphrag_index.errors import TableError
from graphrag_index.llm.embeddings import text_key
from graphrag_index.llm.registry import Models, Purged, purge
from graphrag_index.pipeline.history import current_version, lock
from graphrag_index.pipeline.run import RunResult
from graphrag_index.pipeline.workflow import Workflow, check_settings
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import MODELS
from graphrag_index.steps.generate_text_embeddings import EMBEDDED, generate_text_embeddings
from graphrag_index.storage.table_store import INDEX_FILE, JOURNAL_FILE, TableStore
from graphrag_index.storage.table_writer import MAPPED_SUFFIX, SUFFIX
from graphrag_index.storage.versions import StoredTable, Version


@dataclass(frozen=True)
class Freed:
    """The result of a garbage collection."""

    deleted: tuple[int, ...]
    kept: tuple[int, ...]
    n_bytes: int
    in_use: tuple[Path, ...]  # files that could not be deleted


def collect_garbage(store: TableStore, keep: int) -> Freed:
    """Delete all but the last `keep` versions, with the tables that only they use.

    The finished steps of an interrupted run stay. A reader of a deleted version gets an error
    that says so.

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
        # Descriptions first: a reader that misses a file then finds that its version is gone.
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
    """Return the names of the LanceDB tables of the program and of some versions."""
    found = {name for name, table in TABLES.items() if table.kind == "vectors"}
    for number in numbers:
        # A damaged version is deleted, too.
        with suppress(TableError):
            tables = store.read_version(number).tables
            found |= {name for name, table in tables.items() if table.lance_version is not None}
    return found


def _delete_files(store: TableStore, named: set[str | None], unfinished: int) -> Iterator[Path]:
    """Delete unused tables and empty folders; yield the files that are in use."""
    for folder in store.output.glob("versions/*"):
        if not folder.name.isdecimal():
            continue
        for path in folder.iterdir():
            is_table = path.suffix in (SUFFIX, MAPPED_SUFFIX)
            if is_table and path.relative_to(store.output).as_posix() not in named:
                try:
                    path.unlink()
                except PermissionError:
                    # Windows does not delete a file that is open.
                    yield path
        if int(folder.name) != unfinished and not any(folder.iterdir()):
            folder.rmdir()


def _delete_graphs(store: TableStore, kept: list[int]) -> Iterator[Path]:
    """Delete the databases of deleted versions; yield the files that are in use."""
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
    """Delete unused versions of LanceDB tables, and tables without a used version."""
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
        from graphrag_index.storage.vector_store import delete_versions

        newest = current[name].lance_version if name in current else None
        delete_versions(store.lancedb, name, versions[name], newest or max(versions[name]))


def _size(output: Path) -> int:
    """Return the size of all tables, vectors and databases in bytes."""
    files = (
        *output.glob("versions/*/*"),
        *output.glob("lancedb/**/*"),
        *output.glob("cypher/*"),
    )
    return sum(path.stat().st_size for path in files if path.is_file())


class Purge:
    """Deletes the requests in the ledger that the index no longer uses, at the end of a run.

    All steps that ask a model run again; the requests that they look up in the ledger stay.
    Nothing is deleted unless `is_whole`: requests about missing parts would be paid again.
    """

    def __init__(
        self,
        models: Models,
        workflow: Workflow,
        settings: Settings,
        store: TableStore,
        is_whole: Callable[[RunResult], bool],
    ) -> None:
        self._models, self._workflow, self._settings = models, workflow, settings
        self._store, self._is_whole = store, is_whole
        self.purged: Purged | None = None

    def begin(self) -> list[str]:
        """Begin to record which requests are used; return the names of the steps that must run."""
        self._models.track_use()
        sections = check_settings(self._workflow, self._settings)
        return [
            step.name
            for step in self._workflow.steps
            # Requests for vectors are known by the texts in the tables.
            if step != generate_text_embeddings
            and set(MODELS).intersection(step.needs(sections.get(step.name)))
        ]

    def end(self, result: RunResult) -> None:
        """Delete the unused requests; no other run can begin meanwhile.

        Raises
        ------
        GraphRAGError
            A batch is open, or the ledger is in use or cannot be written.
        """
        if not self._is_whole(result):
            return
        self.purged = Purged(0, 0, 0)
        if self._models.has_ledger:
            keys = _embedded(self._settings, self._store, result.version)
            self.purged = purge(self._models.ledger, self._store.output, keys)


def _embedded(settings: Settings, store: TableStore, version: Version) -> Iterator[str]:
    """Yield the keys of the texts with vectors of a remote model."""
    model = settings.models.get(settings.generate_text_embeddings.model)
    if model is None:
        return
    for name, embedded in EMBEDDED.items():
        if name in version.tables:
            for text in store.scan(name, version.tables[name]).select(embedded).collect()["text"]:
                yield text_key(text, model)

"""History of an index: finish, roll back and delete versions; delete unused requests."""

import shutil
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_index.errors import SettingsError, TableError, WorkflowError
from graphrag_index.llm.ledger import FILE, Ledger
from graphrag_index.llm.request import Spending
from graphrag_index.pipeline.workflow import Workflow, select_sections
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import MODELS
from graphrag_index.storage.atomic import write_json
from graphrag_index.storage.table_store import JOURNAL_FILE, Previous, TableStore, open_index
from graphrag_index.storage.table_writer import MAPPED_SUFFIX, SUFFIX
from graphrag_index.storage.versions import INDEX_FILE, StoredTable, Version, VersionOrigin
from graphrag_index.storage.working_copy import LOCK_FILE

if TYPE_CHECKING:
    from graphrag_index.llm.registry import Models, PurgeCounts


def lock_output(store: TableStore) -> Any:
    """Lock the output folder against other runs; raise WorkflowError if it is locked.

    Readers of the index need no lock.
    """
    from filelock import FileLock, Timeout

    try:
        store.output.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise make_output_folder_error(store) from error
    try:
        # acquire() returns a context manager that releases the lock at the end of `with`.
        lock = FileLock(store.output / LOCK_FILE, timeout=0).acquire()
    except Timeout:
        raise WorkflowError(
            f"Another run is writing to {store.place}: wait for it to finish, "
            "or give this one another folder with `--set output=FOLDER`."
        ) from None
    if store.working_copy is not None:
        try:
            store.working_copy.pull(for_writing=True)
        except BaseException:
            lock.__exit__(None, None, None)
            raise
    return lock


def is_locked(store: TableStore) -> bool:
    """Return whether a run of this machine is writing to the output folder."""
    from filelock import FileLock, Timeout

    if not (store.output / LOCK_FILE).exists():
        return False
    try:
        with FileLock(store.output / LOCK_FILE, timeout=0):
            return False
    except Timeout:
        return True


def make_output_folder_error(store: TableStore) -> SettingsError:
    """Return the error for an output path that is not a folder."""
    return SettingsError(
        f"The output {store.place} is not a folder: name another with `--set output=FOLDER`."
    )


def make_version_record(spent: Spending, **fields: Any) -> VersionOrigin:
    """Return the origin of a version that is finished now; `fields` are its other fields."""
    return VersionOrigin(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        calls=spent.calls,
        prompt_tokens=spent.usage.prompt,
        completion_tokens=spent.usage.completion,
        cost=spent.cost,
        **fields,
    )


def clean_up_output(store: TableStore, version: Version) -> None:
    """Delete unused files; update the links to public tables, and the file `stats.json`."""
    store.remove_leftovers()
    store.remove_old_parts(version)
    store.link_public_tables(version)
    statistics = {
        "version": version.number,
        "workflow": version.workflow,
        "program": version.program,
        "steps": {
            record.name: {
                "rows": {name: table.rows for name, table in record.tables.items()},
                "seconds": record.seconds,
                "cpu_seconds": record.cpu_seconds,
                "peak_memory_bytes": record.peak_memory_bytes,
                "quarantined": record.quarantined,
            }
            for record in version.steps
        },
        "tables": {name: asdict(table) for name, table in version.tables.items()},
    }
    write_json(store.output / "stats.json", statistics)


def current_version(store: TableStore) -> Version:
    """Return the current version; raise TableError if it is missing or damaged."""
    return open_index(store.output)[1]


def roll_back(store: TableStore, number: int) -> Version:
    """Create a new version with the tables of an earlier version, and return it.

    Later versions are not deleted. The finished steps of an interrupted run are dropped. If the
    current version already has these tables, no version is created.
    Raises TableError if the earlier version or one of its tables is missing.
    """
    current_version(store)
    with lock_output(store):
        earlier, current = store.read_version(number), current_version(store)
        missing = [name for name, table in earlier.tables.items() if not store.exists(name, table)]
        if missing:
            raise TableError(
                f"Version {number} cannot be made current: {missing[0]} is missing or damaged in "
                f"{store.place}. The index is as it was."
            )
        if replace(earlier, number=current.number) == current:
            return current
        store.remove_leftovers()
        new, spent = store.next_number(), Spending()
        if (store.output / FILE).exists():
            # The model usage of an interrupted run is added to the new version.
            with closing(Ledger(store.output, new)) as ledger:
                spent = ledger.spent_for(new)
        version = replace(earlier, number=new, made=make_version_record(spent, tables_of=number))
        numbers = {name: table.lance_version for name, table in version.tables.items()}
        vectors = {name: number for name, number in numbers.items() if number is not None}
        if vectors:
            from graphrag_index.storage.vector_store import make_versions_newest

            make_versions_newest(store.lancedb, vectors)
        store.make_current(version)
        clean_up_output(store, version)
        return version


@dataclass(frozen=True)
class CollectedGarbage:
    """The result of a garbage collection."""

    deleted: tuple[int, ...]
    kept: tuple[int, ...]
    n_bytes: int
    in_use: tuple[Path, ...]  # files that could not be deleted because they are open


def collect_garbage(store: TableStore, keep: int) -> CollectedGarbage:
    """Delete old versions with their tables; keep the last `keep` versions.

    Tables of kept versions and of an interrupted run are not deleted. A reader of a deleted version
    gets an error that says that the version was deleted. Raises TableError, and deletes nothing, if
    a version to keep cannot be read.
    """
    current_version(store)
    with lock_output(store):
        current = current_version(store)
        before = _measure_index_size(store.output)
        numbers = store.versions()
        kept = numbers[-keep:]
        unfinished = store.next_number()
        records = [
            *current.steps,
            *(record for number in kept for record in store.read_version(number).steps),
            *store.read_journal(unfinished),
        ]
        used = [item for record in records for item in record.tables.items()]
        missing = [name for name, table in current.tables.items() if not store.exists(name, table)]
        if missing:
            raise TableError(
                f"Nothing was deleted, since the index lacks its table {missing[0]}: run "
                "`graphrag-index run` to write it again."
            )
        deleted = numbers[: len(numbers) - len(kept)]
        old_vectors = _find_vector_tables(store, deleted)
        # Delete the descriptions of versions first. If a table file is missing, a reader then
        # finds out that the version was deleted.
        for number in deleted:
            for file in (INDEX_FILE, JOURNAL_FILE):
                (store.folder(number) / file).unlink(missing_ok=True)
        files = {table.file for _, table in used if table.file is not None}
        in_use = _delete_tables(store, files, unfinished)
        _delete_vectors(store, used, current.tables, old_vectors)
        databases = store.graphs.glob("[0-9]*-*")
        names = {str(number) for number in kept}
        in_use += _delete_files(
            path for path in databases if path.name.partition("-")[0] not in names
        )
        store.remove_leftovers(keep=unfinished)
        if store.working_copy is not None:
            described = {f"versions/{number}/{INDEX_FILE}" for number in kept}
            store.working_copy.collect_garbage(current.number, described | files)
        freed = max(0, before - _measure_index_size(store.output))
        return CollectedGarbage(tuple(deleted), tuple(kept), freed, tuple(in_use))


def _find_vector_tables(store: TableStore, numbers: list[int]) -> set[str]:
    """Return the names of the vector tables of the program, and of those in these versions."""
    found = {name for name, table in TABLES.items() if table.kind == "vectors"}
    for number in numbers:
        # Skip a damaged version: its tables are unknown, but the version is deleted anyway.
        with suppress(TableError):
            tables = store.read_version(number).tables
            found |= {name for name, table in tables.items() if table.lance_version is not None}
    return found


def _delete_tables(store: TableStore, used: set[str], unfinished: int) -> list[Path]:
    """Delete unused table files, and the folders of versions that are empty then.

    The folder of the `unfinished` run stays. Returns the files that are open.
    """
    folders = [path for path in store.output.glob("versions/*") if path.name.isdecimal()]
    in_use = _delete_files(
        path
        for folder in folders
        for path in folder.iterdir()
        if path.suffix in (SUFFIX, MAPPED_SUFFIX)
        and path.relative_to(store.output).as_posix() not in used
    )
    for folder in folders:
        if int(folder.name) != unfinished and not any(folder.iterdir()):
            folder.rmdir()
    return in_use


def _delete_files(paths: Iterable[Path]) -> list[Path]:
    """Delete files; return the files that Windows does not delete because they are open."""
    in_use = []
    for path in paths:
        try:
            path.unlink()
        except PermissionError:
            in_use.append(path)
    return in_use


def _delete_vectors(
    store: TableStore,
    used: list[tuple[str, StoredTable]],
    current: dict[str, StoredTable],
    ours: set[str],
) -> None:
    """Delete unused versions of LanceDB tables, and LanceDB tables that no version uses.

    `used` has the name and the record of each table in use. `ours` has the names of the tables that
    this program writes; a table of another program is not deleted.
    """
    versions: dict[str, set[int]] = defaultdict(set)
    for name, table in used:
        if table.lance_version is not None:
            # Add a table in use even if its version is missing, so that the table is not deleted.
            versions[name] |= {table.lance_version} if store.exists(name, table) else set()
    for folder in sorted(store.lancedb.glob("*.lance")):
        name = folder.stem
        if name in ours and name not in versions:
            shutil.rmtree(folder)
        if versions.get(name):
            from graphrag_index.storage.vector_store import delete_versions

            newest = current[name].lance_version if name in current else None
            delete_versions(store.lancedb, name, versions[name], newest or max(versions[name]))


def _measure_index_size(output: Path) -> int:
    """Return the size of all tables, vectors, graph databases and parts, in bytes."""
    patterns = ("versions/*/*", "lancedb/**/*", "cypher/*", "parts/*/*")
    files = (path for pattern in patterns for path in output.glob(pattern))
    return sum(path.stat().st_size for path in files if path.is_file())


def begin_purge(models: "Models", workflow: Workflow, settings: Settings) -> list[str]:
    """Begin to record used requests; return the names of steps that must run again for this.

    The returned steps have no function that lists their requests. A request counts as used if a
    step looks it up in the ledger, the cache of replies.
    """
    models.track_use()
    sections = select_sections(workflow, settings)
    return [
        step.name
        for step in workflow.steps
        if step.request_keys is None
        and (set(MODELS) & {*step.needs(sections.get(step.name))} or models.has_requests(step.name))
    ]


def end_purge(
    models: "Models", workflow: Workflow, settings: Settings, store: TableStore, version: Version
) -> "PurgeCounts":
    """Delete cached requests and replies that no step has used since `begin_purge`.

    The vectors that searches have kept are deleted too. Raises GraphRAGError if a batch is open,
    or if the ledger is in use or cannot be written.
    """
    from graphrag_index.llm.local.local_models import delete_vector_cache
    from graphrag_index.llm.registry import PurgeCounts, purge_ledger

    delete_vector_cache(store.output)
    if not models.has_ledger:
        return PurgeCounts(0, 0, 0)
    sections = select_sections(workflow, settings)
    tables = Previous(store, version)
    keys = (
        key
        for step in workflow.steps
        if step.request_keys is not None
        for key in step.request_keys(sections.get(step.name), settings.models, tables)
    )
    return purge_ledger(models.ledger, store.output, keys)

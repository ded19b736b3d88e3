"""The versions of an index: finishing one, listing them, and rolling back."""

from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graphrag_index.errors import SettingsError, TableError, WorkflowError
from graphrag_index.llm.ledger import FILE, Ledger
from graphrag_index.llm.request import Spent
from graphrag_index.storage.atomic import write_json
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import Made, Version


def lock(store: TableStore) -> Any:
    """Lock the output folder against a second run; readers need no lock.

    Raises
    ------
    WorkflowError
        Another run holds it.
    """
    from filelock import FileLock, Timeout

    try:
        store.output.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise no_folder(store) from error
    try:
        # The proxy that acquire() returns releases the lock when its `with` block ends.
        return FileLock(store.output / ".lock", timeout=0).acquire()
    except Timeout:
        raise WorkflowError(
            f"Another run is writing to {store.output}: wait for it to finish, "
            "or give this one another folder with `--set output=FOLDER`."
        ) from None


def no_folder(store: TableStore) -> SettingsError:
    """Return the error for an output that cannot be a folder."""
    return SettingsError(
        f"The output {store.output} is not a folder: name another with `--set output=FOLDER`."
    )


def made(spent: Spent, steps_run: tuple[str, ...] = (), tables_of: int | None = None) -> Made:
    """Describe how the version that has just finished was made."""
    return Made(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        steps_run=steps_run,
        calls=spent.calls,
        prompt_tokens=spent.usage.prompt,
        completion_tokens=spent.usage.completion,
        cost=spent.cost,
        tables_of=tables_of,
    )


def tidy(store: TableStore, version: Version) -> None:
    """Update links and statistics after a run, and remove leftovers."""
    store.remove_leftovers()
    store.link_public_tables(version)
    write_json(store.output / "stats.json", statistics(version))


def statistics(version: Version) -> dict[str, Any]:
    """Return the content of `output/stats.json`: rows, time and memory of each step."""
    return {
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


def current_version(store: TableStore) -> Version:
    """Return the version that readers open.

    Raises
    ------
    TableError
        There is no index, or its description is damaged.
    """
    version = store.read_pointer()
    if version is None:
        raise TableError(
            f"There is no index in {store.output}: make one with `graphrag-index run`."
        )
    return version


def read_versions(store: TableStore) -> list[Version]:
    """Return the finished versions that can be opened, oldest first.

    Raises
    ------
    TableError
        The description of one is damaged.
    """
    return [store.read_version(number) for number in store.versions()]


def roll_back(store: TableStore, number: int) -> Version:
    """Make a new version with the tables of an earlier one.

    The versions in between stay; the finished steps of an interrupted run are dropped. The
    current version is returned if it already has these tables.

    Raises
    ------
    TableError
        The version does not exist, or one of its tables is missing.
    WorkflowError
        A run is writing.
    """
    current_version(store)
    with lock(store):
        earlier, current = store.read_version(number), current_version(store)
        missing = [name for name, table in earlier.tables.items() if not store.exists(name, table)]
        if missing:
            raise TableError(
                f"Version {number} cannot be made current: {missing[0]} is missing or damaged in "
                f"{store.output}. The index is as it was."
            )
        if replace(earlier, number=current.number) == current:
            return current
        store.remove_leftovers()
        new = store.next_number()
        version = replace(
            earlier, number=new, made=made(_spent(store.output, new), tables_of=number)
        )
        vectors = {
            name: table.lance_version
            for name, table in version.tables.items()
            if table.lance_version is not None
        }
        if vectors:
            from graphrag_index.storage.vector_store import show_versions

            show_versions(store.lancedb, vectors)
        store.move_pointer(version)
        tidy(store, version)
        return version


def _spent(output: Path, version: int) -> Spent:
    """Return the usage of an interrupted run, which belongs to this version now."""
    if not (output / FILE).exists():
        return Spent()
    ledger = Ledger(output, version)
    try:
        return ledger.spent_for(version)
    finally:
        ledger.close()

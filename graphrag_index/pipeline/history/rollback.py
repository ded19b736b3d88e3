"""Going back to an earlier version, by making it the newest."""

from dataclasses import replace
from pathlib import Path

from graphrag_index.errors import TableError
from graphrag_index.llm.ledger import FILE, Ledger
from graphrag_index.llm.request import Spent
from graphrag_index.pipeline.history.version_list import current_version
from graphrag_index.pipeline.run import lock, made, tidy
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import Version


def roll_back(store: TableStore, number: int) -> Version:
    """Make a new version whose tables are those of an earlier one.

    Nothing is lost: the versions in between stay. What an interrupted run has finished is
    dropped. The current version is returned if it has these tables already.

    Raises
    ------
    TableError
        There is no such version, or a table of it is missing.
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
            from graphrag_index.storage.vector_versions import show_versions

            show_versions(store.lancedb, vectors)
        store.move_pointer(version)
        tidy(store, version)
        return version


def _spent(output: Path, version: int) -> Spent:
    """Return what an interrupted run has paid for, which belongs to this version now."""
    if not (output / FILE).exists():
        return Spent()
    ledger = Ledger(output, version)
    try:
        return ledger.spent_for(version)
    finally:
        ledger.close()

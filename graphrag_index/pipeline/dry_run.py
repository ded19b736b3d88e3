"""The steps that a run would execute, and their price; nothing is written or sent."""

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_index.pipeline.changes import (
    BATCH_DOCUMENTS,
    Changes,
    compare_documents,
    digest_documents,
)
from graphrag_index.pipeline.estimate import Estimate, estimate
from graphrag_index.pipeline.history import no_folder
from graphrag_index.pipeline.run import Watcher, finished_steps, is_whole, step_key
from graphrag_index.pipeline.services import asking_steps, services_of
from graphrag_index.pipeline.workflow import Workflow, check_settings
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.steps.load_documents import load_documents
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import StepRecord, StoredTable, Version

# The documents as `load_documents` writes them.
INPUT = "loaded_documents"


@dataclass(frozen=True)
class Plan:
    """The names of the steps that would run and would be kept, in their order."""

    run: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True)
class DryRun:
    """The result of a dry run.

    `version` is the number of the current version, None if there is none. `changes` is None if
    the documents were not compared: the input has not changed, or `load_documents` is not in the
    workflow. `unread` are files and records that cannot be read, each with its reason. `estimate`
    is None if no step that would run asks a model.
    """

    output: Path
    version: int | None
    plan: Plan
    changes: Changes | None
    unread: Sequence[tuple[str, str]]
    estimate: Estimate | None


def dry_run(
    workflow: Workflow,
    settings: Settings,
    root: Path,
    max_documents: int,
    watcher: Watcher | None = None,
    batch: bool = False,
) -> DryRun:
    """Predict the steps and the price of `run_workflow`.

    An update counts all documents; a first run is estimated from a sample of `max_documents`.
    With `batch`, chats have the price of a batch.

    Raises
    ------
    InputError
        There is nothing to read.
    """
    store = TableStore(root / settings.output)
    if store.output.exists() and not store.output.is_dir():
        raise no_folder(store)
    current = store.read_pointer()
    before = _loaded(store, current)
    found = plan_steps(workflow, settings, root)
    changes, unread = None, _unread(store, before)
    if load_documents in workflow.steps and load_documents.name in found.run:
        now, unread = _read_input(settings, root, watcher or Watcher())
        if before is not None or current is None:
            changes = compare_documents(_digests(store, before), now)
        if before is not None and not changes and unread == _unread(store, before):
            found = plan_steps(workflow, settings, root, same=(load_documents.name,))
    costs = None
    if asking_steps(workflow, settings) & set(found.run):
        n_documents = max_documents if current is None else sys.maxsize
        costs = estimate(workflow, settings, root, n_documents, watcher, batch, found.run)
    number = current.number if current else None
    return DryRun(store.output, number, found, changes, unread, costs)


def changes_since(store: TableStore, version: Version | None, record: StepRecord) -> Changes | None:
    """Compare the documents that `load_documents` has just read with those of the index.

    None if they are equal, if there are none to compare with, or for another step.
    """
    if record.name != load_documents.name:
        return None
    before = _loaded(store, version)
    if before is None or before.tables[INPUT].digest == record.tables[INPUT].digest:
        return None
    return compare_documents(_digests(store, before), _digests(store, record))


def plan_steps(
    workflow: Workflow, settings: Settings, root: Path, same: Collection[str] = ()
) -> Plan:
    """Compare each step with its last finished run, as a run does; nothing is written.

    The output of a step that would run is unknown, so all steps that read it count as running,
    though a run keeps them if the output is unchanged. The steps in `same` are known to write
    the same tables again.

    Raises
    ------
    InputError
        There is nothing to read.
    """
    sections, services = check_settings(workflow, settings), services_of(settings, None, root)
    store = TableStore(root / settings.output)
    current = store.read_pointer()
    known = finished_steps(store, current, store.next_number())
    before = {record.name: record for record in (current.steps if current else ())}
    tables: dict[str, StoredTable] = {}
    unknown: set[str] = set()
    run: list[str] = []
    kept: list[str] = []
    for step in workflow.steps:
        written = {table.name for table in step.writes}
        record = None
        if not unknown & {read.table for read in step.reads}:
            record = known.get(step_key(step, sections.get(step.name), tables, services, root))
        if record is not None and is_whole(store, record):
            kept.append(step.name)
        else:
            run.append(step.name)
            record = before.get(step.name) if step.name in same else None
        if record is None:
            unknown |= written
        else:
            unknown -= written
            tables.update(record.tables)
    return Plan(tuple(run), tuple(kept))


def _loaded(store: TableStore, version: Version | None) -> StepRecord | None:
    """Return the record of `load_documents`, if its tables still exist."""
    for record in version.steps if version else ():
        if record.name == load_documents.name and is_whole(store, record):
            return record
    return None


def _digests(store: TableStore, record: StepRecord | None) -> pl.DataFrame:
    def batches(stored: StoredTable) -> Iterator[pl.DataFrame]:
        for start in range(0, stored.rows, BATCH_DOCUMENTS):
            yield store.scan(INPUT, stored).slice(start, BATCH_DOCUMENTS).collect()

    return digest_documents(batches(record.tables[INPUT]) if record else [])


def _unread(store: TableStore, record: StepRecord | None) -> list[tuple[str, str]]:
    if record is None:
        return []
    return store.scan("unread_files", record.tables["unread_files"]).collect().rows()


def _read_input(
    settings: Settings, root: Path, watcher: Watcher
) -> tuple[pl.DataFrame, list[tuple[str, str]]]:
    """Read the documents as a run would; keep only the compared columns."""
    unread: list[tuple[str, str]] = []

    def documents() -> Iterator[pl.DataFrame]:
        progress = watcher.step_started(load_documents, 1, 1)
        read: Any = load_documents(settings=settings.load_documents, root=root, progress=progress)
        for frames in read:
            unread.extend(frames["unread_files"].rows())
            yield frames[INPUT]

    with closing(watcher):
        return digest_documents(documents()), unread

"""What a run would do and what it would cost; nothing is written to the output, nothing is sent."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

import polars as pl

from graphrag_index.pipeline.changes import (
    KINDS,
    UNCHANGED,
    Changes,
    as_json,
    compare_documents,
    digest_documents,
)
from graphrag_index.pipeline.estimate.cost import Estimate, asking_steps, estimate, write_estimate
from graphrag_index.pipeline.plan import Plan, plan
from graphrag_index.pipeline.run import Watcher, is_whole, no_folder
from graphrag_index.pipeline.workflow import Workflow
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.steps.load_documents import load_documents
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import StepRecord, StoredTable, Version

# The table of what was read, as the step that reads it left it.
INPUT = "loaded_documents"
# Names of documents and files that one line tells.
MOST_NAMES = 5
# Documents read at once.
BATCH = 1_024


@dataclass(frozen=True)
class DryRun:
    """What a run would do.

    `version` is the number of the index, None if there is none yet. `changes` is None if the
    documents were not compared: the input is as it was, or the workflow does not read it with
    `load_documents`. `unread` are files and records that would not be read, each with its reason.
    `estimate` is None if no step that would run asks a model.
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
    """Find out what `run_workflow` would do.

    For an update all documents are counted; for a first run at most `max_documents` stand for
    all. With `batch` chats have the price that they have in batches.

    Raises
    ------
    InputError
        There is nothing to read: what a run would raise.
    """
    store = TableStore(root / settings.output)
    if store.output.exists() and not store.output.is_dir():
        raise no_folder(store)
    current = store.read_pointer()
    before = _loaded(store, current)
    found = plan(workflow, settings, root)
    changes, unread = None, _unread(store, before)
    if load_documents in workflow.steps and load_documents.name in found.run:
        now, unread = _read_input(settings, root, watcher or Watcher())
        if before is not None or current is None:
            changes = compare_documents(_digests(store, before), now)
        if before is not None and not changes and unread == _unread(store, before):
            found = plan(workflow, settings, root, same=(load_documents.name,))
    costs = None
    if asking_steps(workflow, settings) & set(found.run):
        n_documents = max_documents if current is None else sys.maxsize
        costs = estimate(workflow, settings, root, n_documents, watcher, batch, found.run)
    number = current.number if current else None
    return DryRun(store.output, number, found, changes, unread, costs)


def changes_since(store: TableStore, version: Version | None, record: StepRecord) -> Changes | None:
    """Compare the documents that `load_documents` has just read with those of the index.

    None if they are the same, or if there are none to compare with.
    """
    before = _loaded(store, version)
    if before is None or before.tables[INPUT].digest == record.tables[INPUT].digest:
        return None
    return compare_documents(_digests(store, before), _digests(store, record))


def write_dry_run(found: DryRun, out: TextIO) -> None:
    """Print what changed in the input, the steps that would run, and what they would ask."""
    is_update = found.version is not None
    if not found.plan.run:
        print(
            f"Nothing would change: {found.output} is up to date (version {found.version}).",
            file=out,
        )
    elif found.changes is not None:
        since = f"Since version {found.version}" if is_update else "There is no index yet"
        print(f"{since}: {found.changes}, {found.changes.count(UNCHANGED):,} unchanged.", file=out)
        for kind in KINDS:
            names = found.changes.names(kind)
            if names:
                print(f"  {kind:<8} {_some(names)}", file=out)
    elif load_documents.name in found.plan.run:
        print("Which documents the index was made of is not known: all are read anew.", file=out)
    elif load_documents.name in found.plan.kept:
        print("The input is as it was.", file=out)
    if found.unread:
        n = len(found.unread)
        what = "file or record" if n == 1 else "files or records"
        print(f"{n:,} {what} would not be read:", file=out)
        for path, reason in found.unread[:MOST_NAMES]:
            print(f"  {path}: {reason}", file=out)
        if n > MOST_NAMES:
            print(f"  ... and {n - MOST_NAMES:,} more", file=out)
    if not found.plan.run:
        return
    print(f"Steps that would run: {', '.join(found.plan.run)}.", file=out)
    if found.plan.kept:
        print(f"Steps whose input is as it was: {', '.join(found.plan.kept)}.", file=out)
    if found.estimate is None:
        print("None of them asks a model: it costs nothing.", file=out)
        return
    print(file=out)
    write_estimate(found.estimate, out)
    if is_update and any(line.reply_tokens for line in found.estimate.lines):
        print(
            "What is asked of each text unit is counted exactly. What is asked of descriptions and "
            "reports is a guess: which names a model finds in what is new is not known yet.",
            file=out,
        )


def dry_run_as_json(found: DryRun) -> str:
    """Make the same for programs."""
    return json.dumps(
        {
            "version": found.version,
            "documents": as_json(found.changes) if found.changes is not None else None,
            "unread": [{"path": path, "reason": reason} for path, reason in found.unread],
            "steps": asdict(found.plan),
            "requests": [asdict(line) for line in found.estimate.lines] if found.estimate else [],
        },
        indent=2,
        ensure_ascii=False,
    )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _loaded(store: TableStore, version: Version | None) -> StepRecord | None:
    """Return the record of `load_documents`, if its documents are still there."""
    for record in version.steps if version else ():
        if record.name == load_documents.name and is_whole(store, record):
            return record
    return None


def _digests(store: TableStore, record: StepRecord | None) -> pl.DataFrame:
    def batches(stored: StoredTable) -> Iterator[pl.DataFrame]:
        for start in range(0, stored.rows, BATCH):
            yield store.scan(INPUT, stored).slice(start, BATCH).collect()

    return digest_documents(batches(record.tables[INPUT]) if record else [])


def _unread(store: TableStore, record: StepRecord | None) -> list[tuple[str, str]]:
    if record is None:
        return []
    return store.scan("unread_files", record.tables["unread_files"]).collect().rows()


def _read_input(
    settings: Settings, root: Path, watcher: Watcher
) -> tuple[pl.DataFrame, list[tuple[str, str]]]:
    """Read the documents as a run would, and keep only what is compared."""
    unread: list[tuple[str, str]] = []

    def documents() -> Iterator[pl.DataFrame]:
        progress = watcher.step_started(load_documents, 1, 1)
        read: Any = load_documents(settings=settings.load_documents, root=root, progress=progress)
        for frames in read:
            unread.extend(frames["unread_files"].rows())
            yield frames[INPUT]

    with closing(watcher):
        return digest_documents(documents()), unread

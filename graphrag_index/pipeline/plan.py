"""Which steps a run would do, told without doing any."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from graphrag_index.pipeline.run import finished_steps, is_whole, step_key
from graphrag_index.pipeline.workflow import Workflow, check_settings
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import StoredTable


@dataclass(frozen=True)
class Plan:
    """The names of steps, in their order."""

    run: tuple[str, ...]
    kept: tuple[str, ...]


def plan(workflow: Workflow, settings: Settings, root: Path, same: Collection[str] = ()) -> Plan:
    """Compare each step with its last finished run, as a run does; nothing is written.

    What a step will write is not known before it has run: all that read it count as steps that
    run, though a run keeps those whose input comes out as it was. Of the steps that `same`
    names it is known that their tables will be as they were.

    Raises
    ------
    InputError
        There is nothing to read.
    """
    sections = check_settings(workflow, settings)
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
            record = known.get(step_key(step, sections.get(step.name), tables, settings, root))
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

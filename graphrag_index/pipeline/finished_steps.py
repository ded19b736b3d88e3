"""Steps that have finished before, in the current version or in an interrupted run.

A step is known by a hash of its code, its settings and its inputs.
"""

import inspect
import json
import sys
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from graphrag_index import __version__
from graphrag_index.pipeline.workflow import Service
from graphrag_index.step import Step
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import StepRecord, StoredTable, Version


def hash_step_inputs(
    step: Step,
    section: Any,
    tables: Mapping[str, StoredTable],
    services: Mapping[str, Service],
    root: Path,
) -> str:
    """Hash the code, the settings and the inputs of a step.

    `tables` are the tables that the earlier steps have written.
    """
    needs = [name for name in step.needs(section) if name in services]
    parts: list[Any] = [
        hash_step_code(step, section),
        [(r.table, tables[r.table].digest) for r in step.reads if r.table in tables],
        [table.name for table in step.writes],
        *([name, services[name].identity(step, section)] for name in needs),
    ]
    if step.fingerprint is not None:
        parts.append(step.fingerprint(section, root))
    return _hash_values(parts)


def hash_step_code(step: Step, section: Any) -> str:
    """Hash the code and the settings of a step, without its inputs."""
    values = section.model_dump(mode="json") if isinstance(section, BaseModel) else section
    code = __version__
    if not step.is_shipped:
        try:
            # Hash the source of the whole module, because the step may call functions of it.
            code = inspect.getsource(sys.modules[step.function.__module__])
        except (OSError, TypeError):  # the step is defined in an interactive session
            code = inspect.getsource(step.function)
    return _hash_values([step.name, code, step.code_version, values])


def _hash_values(parts: list[Any]) -> str:
    return blake2b(json.dumps(parts, default=str).encode(), digest_size=16).hexdigest()


def find_finished_steps(
    store: TableStore, current: Version | None, number: int
) -> dict[str, StepRecord]:
    """Return finished steps of the current version and an interrupted run, by input hash."""
    records = (*(current.steps if current else ()), *store.read_journal(number))
    return {record.key: record for record in records}


def is_complete(store: TableStore, record: StepRecord) -> bool:
    """Return True if all tables of a step still exist."""
    return all(store.exists(name, table) for name, table in record.tables.items())

"""Run of the steps of a workflow.

A step runs only if its code, its settings or its input tables have changed since the step last
finished. The last result may be in the current version or in an interrupted run. After all steps
have finished, the new version becomes the current version.
"""

import inspect
import json
import logging
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from pydantic import BaseModel

from graphrag_index import __version__
from graphrag_index.errors import GraphRAGError, StepError, TableError, WaitingError, describe_error
from graphrag_index.llm.request import Spending
from graphrag_index.pipeline.history import clean_up_output, lock_output, make_version_record
from graphrag_index.pipeline.shards import LocalRunner, Runner, StepShards
from graphrag_index.pipeline.workflow import (
    Service,
    Workflow,
    check_services,
    find_last_code_line,
    select_sections,
)
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.tables import Table
from graphrag_index.spans import span
from graphrag_index.step import Frames, Progress, Silent, Step
from graphrag_index.storage.table_store import Previous, TableStore
from graphrag_index.storage.table_writer import TableCheck, TableWriter
from graphrag_index.storage.vector_store import VectorWriter
from graphrag_index.storage.versions import StepRecord, StoredTable, Version
from graphrag_index.storage.working_copy import locate_output

if TYPE_CHECKING:
    from graphrag_index.llm.registry import Models


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


logger = logging.getLogger(__name__)

# Secret settings, which are never written to a file.
SECRET_SETTINGS: Any = {"models": {"__all__": {"api_key"}}}


@dataclass(frozen=True)
class RunResult:
    """The outcome of a run; if nothing changed, `version` is the version of the last run."""

    version: Version
    steps_run: tuple[str, ...]
    new_version: bool


class Watcher:
    """Receiver of the events of a run. This class ignores all events.

    The command line has a subclass that shows the events as progress bars.
    """

    def step_started(self, step: Step, number: int, of: int) -> Progress:
        return Silent()

    def step_finished(self, record: StepRecord, reused: bool) -> None: ...

    def close(self) -> None:
        """Clean up after the end or the failure of a run."""


@dataclass(frozen=True, kw_only=True)
class RunSetup:
    """The helpers and the options of a run; the defaults are those of a run without models."""

    watcher: Watcher = field(default_factory=Watcher)
    # Makes the parts of shards.
    runner: Runner = field(default_factory=LocalRunner)
    # Counts the requests of the run, and names steps whose failed requests are sent again.
    models: "Models | None" = None
    # Names of steps that must run even if nothing has changed.
    forced_steps: Collection[str] = ()
    # Called when requests wait in a batch. It returns when the workflow shall run again, or raises.
    wait: Callable[[WaitingError], None] | None = None
    # Called at the end of the run, before the lock is released.
    at_end: Callable[[RunResult], None] = lambda result: None


def run_workflow(
    workflow: Workflow,
    settings: Settings,
    root: Path,
    services: Mapping[str, Service],
    setup: RunSetup | None = None,
) -> RunResult:
    """Update the index: run the steps whose inputs changed, then make the new version current.

    Raises StepError if a step raises an error that is no `GraphRAGError` and no `OSError`.
    """
    check_services(workflow, select_sections(workflow, settings), services)
    store, setup = TableStore(locate_output(root, settings)), setup or RunSetup()
    while True:
        try:
            with (
                closing(setup.watcher),
                lock_output(store),
                closing(setup.runner),
                span("run", workflow=workflow.name),
            ):
                run = _WorkflowRun(workflow, settings, root, services, setup)
                forced = {*setup.forced_steps, *run.reopened_steps()}
                for number, step in enumerate(workflow.steps, 1):
                    run.run_step(step, number, step.name in forced)
                result = run.finish()
                setup.at_end(result)
                if copy := run.store.working_copy:
                    copy.push(result.version.number)  # The ledger may have changed anyway.
                return result
        except WaitingError as error:
            if setup.wait is None:
                raise
            setup.wait(error)


class _WorkflowRun:
    """The state of one run: the current version, and the steps that have finished."""

    def __init__(
        self,
        workflow: Workflow,
        settings: Settings,
        root: Path,
        services: Mapping[str, Service],
        setup: RunSetup,
    ) -> None:
        self.workflow, self.settings, self.root = workflow, settings, root
        self.services, self.watcher, self.runner = services, setup.watcher, setup.runner
        self.models = setup.models
        self.sections = select_sections(workflow, settings)
        self.store = TableStore(locate_output(root, settings))
        self.current = self.store.read_pointer()
        self.earlier = self.current.steps if self.current else ()
        self.number = self.store.next_number()
        self.store.remove_leftovers(keep=self.number)
        self.known = find_finished_steps(self.store, self.current, self.number)
        self.done: list[StepRecord] = []
        self.steps_run: list[str] = []

    def run_step(self, step: Step, number: int, forced: bool) -> None:
        """Run a step, or reuse its tables if its code, settings and inputs are unchanged."""
        section = self.sections.get(step.name)
        with _wrap_failures(step):
            key = hash_step_inputs(step, section, self.tables, self.services, self.root)
        record = None if forced else self.known.get(key)
        reused = record is not None and is_complete(self.store, record)
        if record is None or not reused:
            progress = self.watcher.step_started(step, number, len(self.workflow.steps))
            logger.debug("%s runs with %r", step.name, section or "no settings")
            parts = self.store.parts_folder(step.name, key)
            shards = StepShards(
                self.runner, parts, hash_step_code(step, section), self.current is not None
            )
            wall, cpu = time.perf_counter(), self.runner.count_cpu_seconds()
            with span("step", step=step.name), _wrap_failures(step):
                opened = self._open_services(step, progress, shards)
                services = {**dict.fromkeys(step.services), **opened}
                result = step.function(*self._read_inputs(step), **services)
                tables = self._write_tables(step, key, result)
                for name, service in opened.items():
                    if name in self.services:
                        tables = self.services[name].close(service, tables)
            failed = self.models.quarantined_requests([step.name]) if self.models else []
            record = StepRecord(
                name=step.name,
                key=key,
                tables={name: self._keep_unchanged(name, table) for name, table in tables.items()},
                made_by=hash_step_code(step, section),
                seconds=round(time.perf_counter() - wall, 3),
                cpu_seconds=round(self.runner.count_cpu_seconds() - cpu, 3),
                peak_memory_bytes=self.runner.measure_peak_memory(),
                quarantined=len(failed),
            )
            self.steps_run.append(step.name)
        self.done.append(record)
        for name, table in record.tables.items():
            location = table.file or f"LanceDB, version {table.lance_version}"
            logger.debug("%s: %d rows in %s", name, table.rows, location)
        if not reused:
            self.store.write_journal(self.number, self.done)
            shards.remove_files()
        self.watcher.step_finished(record, reused)

    def reopened_steps(self) -> list[str]:
        """Return the steps whose failed requests are sent again."""
        return self.models.reopened_steps() if self.models else []

    @property
    def tables(self) -> dict[str, StoredTable]:
        """The tables of the steps that have finished, by name."""
        return {name: table for record in self.done for name, table in record.tables.items()}

    def _read_inputs(self, step: Step) -> Iterator[pl.LazyFrame | pl.DataFrame | None]:
        for read in step.reads:
            table = self.tables.get(read.table)
            frame = self.store.scan(read.table, table) if table else None
            yield frame if frame is None or read.lazy else frame.collect()

    def _open_services(self, step: Step, progress: Progress, shards: StepShards) -> dict[str, Any]:
        """Open the services that a step needs with its settings."""
        section = self.sections.get(step.name)
        made_by = {record.name: record.made_by for record in self.earlier}.get(step.name)
        is_made_alike = made_by == hash_step_code(step, section)
        built_in = {
            "settings": section,
            "root": self.root,
            "progress": progress,
            "previous": Previous(self.store, self.current, is_made_alike),
            "shards": shards,
        }
        return {
            name: self.services[name].open(step, section)
            if name in self.services
            else built_in[name]
            for name in step.needs(section)
        }

    def _write_tables(
        self, step: Step, key: str, result: Frames | Iterator[Frames]
    ) -> Mapping[str, StoredTable]:
        tables = {table.name: table for table in step.writes}
        before = {r.table: self.tables[r.table] for r in step.reads if r.table in self.tables}
        unchanged: dict[str, StoredTable] = {}
        checks = {name: TableCheck(step.name, table) for name, table in tables.items()}
        with ExitStack() as stack:
            writers: dict[str, TableWriter | VectorWriter] = {}

            def append(name: str, frame: pl.DataFrame) -> None:
                if name not in writers:
                    if tables[name].kind == "vectors":
                        # Build the indexes of the last vector table while the step goes on.
                        for writer in writers.values():
                            if isinstance(writer, VectorWriter):
                                writer.finish()
                    writers[name] = self._open_writer(tables[name], key)
                    stack.enter_context(writers[name])
                writers[name].append(frame)

            for batch in result if isinstance(result, Iterator) else [result]:
                for name, frame in _check_batch(step, tables, before, batch).items():
                    if frame is None:
                        unchanged[name] = before[name]
                    else:
                        checks[name].add(frame)
                        append(name, frame)
            for name, check in checks.items():
                check.finish()
                if name not in writers and name not in unchanged:
                    append(name, tables[name].empty())
        return {**unchanged, **{name: writer.stored for name, writer in writers.items()}}

    def _open_writer(self, table: Table, key: str) -> TableWriter | VectorWriter:
        return self.store.writer(
            self.number,
            table,
            # The file name contains the key of the step. So a file of this run never overwrites a
            # file of an interrupted run with other settings.
            f"{table.name}-{key[:12]}",
            min_indexed_rows=self.settings.generate_text_embeddings.min_indexed_rows,
            kept_digests=[earlier.digest for earlier in self._find_earlier(table.name)],
        )

    def _keep_unchanged(self, name: str, table: StoredTable) -> StoredTable:
        """Return the table of the current version if its content is equal, else the new table."""
        for earlier in self._find_earlier(name):
            if earlier.digest == table.digest:
                return replace(earlier, vectors=table.vectors)
        return table

    def _find_earlier(self, name: str) -> Iterator[StoredTable]:
        """Yield the tables with this name that the steps of the current version have written."""
        for record in self.earlier:
            earlier = record.tables.get(name)
            if earlier and self.store.exists(name, earlier):
                yield earlier

    def finish(self) -> RunResult:
        """Make the new version the current version, if something has changed."""
        spent = self.models.spent(self.number) if self.models else Spending()
        version = Version(
            number=self.number,
            workflow=self.workflow.name,
            program=__version__,
            steps=tuple(self.done),
            settings=self.settings.model_dump(mode="json", exclude=SECRET_SETTINGS),
            made=make_version_record(spent, steps_run=tuple(self.steps_run)),
        )
        if self.current and replace(version, number=self.current.number) == self.current:
            version = self.current
        else:
            # Use the description that a killed run has written, if it describes the same version.
            described = self.store.read_written_version(self.number)
            self.store.make_current(described if described == version else version)
        clean_up_output(self.store, version)
        return RunResult(version, tuple(self.steps_run), version is not self.current)


@contextmanager
def _wrap_failures(step: Step) -> Iterator[None]:
    """Wrap unexpected errors in a StepError with the name of the step.

    Interruptions, OSError and GraphRAGError are raised unchanged.
    """
    try:
        yield
    # Raise GeneratorExit unchanged too, because it means that the run was interrupted.
    except (KeyboardInterrupt, GeneratorExit, GraphRAGError, OSError):
        raise
    # Catch BaseException, because code of a user may raise it, and so does a panic in Rust code.
    except BaseException as error:
        logger.debug("%s failed:", step.name, exc_info=True)
        where = "" if step.is_shipped else find_last_code_line(error, step.function.__module__)
        hint = " This is a bug in the program: --verbose shows where." * step.is_shipped
        raise StepError(
            f"Step {step.name}{where} failed: {describe_error(error)}.{hint}"
        ) from error


def _check_batch(
    step: Step, tables: Mapping[str, Table], before: Collection[str], frames: Frames
) -> Mapping[str, pl.DataFrame | None]:
    """Return the result of a step as a mapping from table names to frames, after checks.

    A step returns or yields one frame, or a mapping. None means that the step does not change the
    table. Raises TableError for any other result.
    """
    if isinstance(frames, pl.DataFrame) and len(tables) == 1:
        frames = dict.fromkeys(tables, frames)
    if isinstance(frames, Mapping) and all(
        name in tables and (isinstance(frame, pl.DataFrame) or (frame is None and name in before))
        for name, frame in frames.items()
    ):
        return frames
    what = "a pl.DataFrame" if len(tables) == 1 else "a mapping from their names to frames"
    found = type(frames).__name__
    if isinstance(frames, Mapping):
        found = ", ".join(f"{name}: {type(rows).__name__}" for name, rows in frames.items())
    raise TableError(
        f"Step {step.name} writes {', '.join(tables)}: it must return or yield {what}, not {found}."
    )

"""Run the steps of a workflow.

A step is run only if the code, the settings or the tables that it depends on
have changed since it last finished, in the current version or in a run that was
interrupted. When all steps are done, the new version becomes the index by moving
one pointer.
"""

import inspect
import json
import logging
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from pydantic import BaseModel

from graphrag_index import __version__
from graphrag_index.errors import (
    GraphRAGError,
    SettingsError,
    StepError,
    TableError,
    WorkflowError,
    describe_error,
)
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import Spent
from graphrag_index.pipeline.workflow import (
    Service,
    Workflow,
    check_services,
    check_settings,
    last_line,
)
from graphrag_index.schema.settings.models import identity, vector_identity
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.schema.table import Table
from graphrag_index.step import Frames, Progress, Silent, Step
from graphrag_index.storage.atomic import write_json
from graphrag_index.storage.table_check import TableCheck
from graphrag_index.storage.table_store import Previous, TableStore
from graphrag_index.storage.table_writer import TableWriter
from graphrag_index.storage.versions import Made, StepRecord, StoredTable, Version

if TYPE_CHECKING:
    from graphrag_index.storage.vector_store import VectorWriter

logger = logging.getLogger(__name__)

# What of the settings no file may show.
SECRET: Any = {"models": {"__all__": {"api_key"}}}


@dataclass(frozen=True)
class RunResult:
    """What a run did. `version.number` is that of the previous run if nothing changed."""

    version: Version
    steps_run: tuple[str, ...]
    steps_kept: tuple[str, ...]
    new_version: bool


class Watcher:
    """What a run tells about itself; the command line draws it, others may ignore it."""

    def step_started(self, step: Step, number: int, of: int) -> Progress:
        return Silent()

    def step_finished(self, record: StepRecord, kept: bool) -> None: ...

    def close(self) -> None:
        """Clear up; the run has ended, well or not."""


def run_workflow(
    workflow: Workflow,
    settings: Settings,
    root: Path,
    services: Mapping[str, Service],
    watcher: Watcher | None = None,
    *,
    quarantined: Callable[[str], int] = lambda step: 0,
    again: Collection[str] = (),
    spent: Callable[[int], Spent] = lambda version: Spent(),
    at_end: Callable[[RunResult], None] = lambda result: None,
) -> RunResult:
    """Bring the index up to date: run the steps whose inputs changed, then move the pointer.

    `services` gives what steps ask for by name beyond tables and settings; each is
    called with the step, and only for a step that runs. `quarantined` counts the requests
    to a model that a step got no answer to; the steps named by `again` run in any case.
    `spent` tells what was asked of models for a version. `at_end` is called when all is done
    and no other run can have begun.
    """
    sections = check_settings(workflow, settings)
    check_services(workflow, services)
    store = TableStore(root / settings.output)
    with closing(watcher or Watcher()) as watcher, lock(store):
        run = _Run(workflow, settings, root, services, watcher, sections, store, quarantined, spent)
        result = run.run(again)
        at_end(result)
        return result


class _Run:
    """One run: what is current, what an interrupted run left, and what is done so far."""

    def __init__(
        self,
        workflow: Workflow,
        settings: Settings,
        root: Path,
        services: Mapping[str, Service],
        watcher: Watcher,
        sections: Mapping[str, Any],
        store: TableStore,
        quarantined: Callable[[str], int],
        spent: Callable[[int], Spent],
    ) -> None:
        self.quarantined, self.spent = quarantined, spent
        self.workflow, self.settings, self.root = workflow, settings, root
        self.services, self.watcher, self.sections, self.store = services, watcher, sections, store
        self.current = store.read_pointer()
        self.number = store.next_number()
        store.remove_leftovers(keep=self.number)
        self.known = finished_steps(store, self.current, self.number)
        self.done: list[StepRecord] = []

    def run(self, again: Collection[str]) -> RunResult:
        """Run the steps that are not current, and those named.

        Raises
        ------
        StepError
            A step raised what is none of the program's own errors; it is the cause.
        """
        steps_run: list[str] = []
        steps_kept: list[str] = []
        for number, step in enumerate(self.workflow.steps, 1):
            with _failures_of(step):
                key = self._key(step)
            record = None if step.name in again else self.known.get(key)
            kept = record is not None and is_whole(self.store, record)
            if record is None or not kept:
                progress = self.watcher.step_started(step, number, len(self.workflow.steps))
                logger.debug(
                    "%s runs with %r", step.name, self.sections.get(step.name, "no settings")
                )
                with _failures_of(step):
                    record = self._run_step(step, key, progress)
            (steps_kept if kept else steps_run).append(step.name)
            self.done.append(record)
            for name, table in record.tables.items():
                place = table.file or f"LanceDB, version {table.lance_version}"
                logger.debug("%s: %d rows in %s", name, table.rows, place)
            if not kept:
                self.store.write_journal(self.number, self.done)
            self.watcher.step_finished(record, kept)
        return self._finish(tuple(steps_run), tuple(steps_kept))

    def _key(self, step: Step) -> str:
        section = self.sections.get(step.name)
        return step_key(step, section, self._tables(), self.settings, self.root)

    def _tables(self) -> dict[str, StoredTable]:
        return {name: table for record in self.done for name, table in record.tables.items()}

    def _run_step(self, step: Step, key: str, progress: Progress) -> StepRecord:
        wall, cpu = time.perf_counter(), time.process_time()
        needed = step.needs(self.sections.get(step.name))
        services = {
            name: self._service(name, step, progress) if name in needed else None
            for name in step.services
        }
        stored = self._write(step, key, step(*self._inputs(step), **services))
        if services.get("embedding_model") is not None:
            stored = _name_model(stored, services["embedding_model"])
        stored = {name: self._keep_unchanged(name, table) for name, table in stored.items()}
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return StepRecord(
            name=step.name,
            key=key,
            tables=stored,
            made_by=step_made_by(step, self.sections.get(step.name)),
            seconds=round(wall, 3),
            cpu_seconds=round(cpu, 3),
            peak_memory_bytes=peak_memory(),
            quarantined=self.quarantined(step.name),
        )

    def _inputs(self, step: Step) -> Iterator[pl.LazyFrame | pl.DataFrame | None]:
        tables = self._tables()
        for read in step.reads:
            if read.table not in tables:
                yield None
                continue
            frame = self.store.scan(read.table, tables[read.table])
            yield frame if read.lazy else frame.collect()

    def _service(self, name: str, step: Step, progress: Progress) -> Any:
        match name:
            case "settings":
                return self.sections[step.name]
            case "progress":
                return progress
            case "root":
                return self.root
            case "previous" if name not in self.services:
                made_by = step_made_by(step, self.sections.get(step.name))
                last = {record.name: record.made_by for record in self._earlier_steps()}
                return Previous(self.store, self.current, last.get(step.name) == made_by)
        return self.services[name](step)

    def _earlier_steps(self) -> Sequence[StepRecord]:
        return self.current.steps if self.current else ()

    def _write(
        self, step: Step, key: str, result: Frames | Iterator[Frames]
    ) -> dict[str, StoredTable]:
        tables = {table.name: table for table in step.writes}
        checks = {table.name: TableCheck(step.name, table) for table in step.writes}
        with ExitStack() as stack:
            writers: dict[str, TableWriter | VectorWriter] = {}
            for name, table in tables.items():
                # With the key in its name no file replaces another that the journal names, not
                # even if the settings changed after a run was interrupted.
                writer = self.store.writer(self.number, table, f"{name}-{key[:12]}")
                stack.enter_context(writer)
                writers[name] = writer
            written: set[str] = set()
            for frames in _batches(step, tables, result):
                for name, frame in frames.items():
                    checks[name].add(frame)
                    writers[name].append(frame)
                    written.add(name)
            for check in checks.values():
                check.finish()
            for name in tables.keys() - written:
                writers[name].append(tables[name].empty())
        return {name: writer.stored for name, writer in writers.items()}

    def _keep_unchanged(self, name: str, table: StoredTable) -> StoredTable:
        """Name the current version's file instead of a new one with the same bytes."""
        earlier = self.current.tables.get(name) if self.current else None
        if earlier and earlier.digest == table.digest and self.store.exists(name, earlier):
            return replace(earlier, vectors=table.vectors)
        return table

    def _finish(self, steps_run: tuple[str, ...], steps_kept: tuple[str, ...]) -> RunResult:
        version = Version(
            number=self.number,
            workflow=self.workflow.name,
            program=__version__,
            steps=tuple(self.done),
            settings=self.settings.model_dump(mode="json", exclude=SECRET),
            made=made(self.spent(self.number), steps_run),
        )
        current = self.current
        if current is not None and replace(version, number=current.number) == current:
            version, new = current, False
        else:
            # A run that was killed here had made the same.
            described = self.store.described(self.number)
            self.store.move_pointer(described if described == version else version)
            new = True
        tidy(self.store, version)
        return RunResult(version, steps_run, steps_kept, new)


def step_key(
    step: Step, section: Any, tables: Mapping[str, StoredTable], settings: Settings, root: Path
) -> str:
    """Hash all that a step's result depends on; `tables` are those of the steps before it."""
    parts = [
        *_own_parts(step, section),
        [(r.table, tables[r.table].digest) for r in step.reads if r.table in tables],
        [table.name for table in step.writes],
    ]
    replies = _replies(step, section, settings)
    if replies is not None:
        parts.append(replies)
    if "prompts" in step.services:
        parts.append(Prompts(root).own())
    if step.fingerprint is not None:
        parts.append(step.fingerprint(section, root))
    return _hash(parts)


def step_made_by(step: Step, section: Any) -> str:
    """Hash what a step is, whatever it reads: its code and its settings."""
    return _hash(_own_parts(step, section))


def _own_parts(step: Step, section: Any) -> list[Any]:
    given = section.model_dump(mode="json") if isinstance(section, BaseModel) else section
    return [step.name, _code(step), step.code_version, given]


def _hash(parts: list[Any]) -> str:
    return blake2b(json.dumps(parts, default=str).encode(), digest_size=16).hexdigest()


def finished_steps(
    store: TableStore, current: Version | None, number: int
) -> dict[str, StepRecord]:
    """Return what need not run again, by key: of the index, and of a run that was interrupted."""
    records = (*(current.steps if current else ()), *store.read_journal(number))
    return {record.key: record for record in records}


def is_whole(store: TableStore, record: StepRecord) -> bool:
    """Tell whether all that a step wrote is still there."""
    return all(store.exists(name, table) for name, table in record.tables.items())


def made(spent: Spent, steps_run: tuple[str, ...] = (), tables_of: int | None = None) -> Made:
    """Say how a version that is finished now was made."""
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
    """Do what follows when the pointer has moved, or stays: links, statistics, no leftovers."""
    store.remove_leftovers()
    store.link_public_tables(version)
    write_json(store.output / "stats.json", statistics(version))


@contextmanager
def _failures_of(step: Step) -> Iterator[None]:
    """Name the step in whatever it raises, but for interruptions and the system's own errors."""
    try:
        yield
    except (KeyboardInterrupt, GraphRAGError, OSError):
        raise
    # A step may be someone else's code, and a library in Rust panics past Exception.
    except BaseException as error:
        logger.debug("%s failed:", step.name, exc_info=True)
        where = "" if step.is_shipped else last_line(error, step.function.__module__)
        hint = " This is a mistake of the program: --verbose shows where." * step.is_shipped
        raise StepError(
            f"Step {step.name}{where} failed: {describe_error(error)}.{hint}"
        ) from error


def _batches(
    step: Step, tables: Mapping[str, Table], result: Frames | Iterator[Frames]
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """See every form of a step's result as batches of named frames."""
    for frames in result if isinstance(result, Iterator) else [result]:
        if isinstance(frames, pl.DataFrame) and len(tables) == 1:
            frames = dict.fromkeys(tables, frames)
        if not isinstance(frames, Mapping) or not all(
            name in tables and isinstance(frame, pl.DataFrame) for name, frame in frames.items()
        ):
            what = "a pl.DataFrame" if len(tables) == 1 else "a mapping from their names to frames"
            raise TableError(
                f"Step {step.name} writes {', '.join(tables)}: it must return or yield {what}, "
                f"not {_what(frames)}."
            )
        yield frames


def _what(frames: object) -> str:
    if not isinstance(frames, Mapping):
        return type(frames).__name__
    return ", ".join(f"{name}: {type(frame).__name__}" for name, frame in frames.items())


def _replies(step: Step, section: Any, settings: Settings) -> Any:
    """Return what the replies and vectors of a step's models depend on; None if it asks none."""
    asked = step.needs(section)
    chat = identity(settings.models, section)
    if "embedding_model" not in asked:
        return chat if "chat_model" in asked else None
    vectors = vector_identity(settings.models, settings.generate_text_embeddings.model)
    return [chat, vectors] if "chat_model" in asked else vectors


def _name_model(stored: Mapping[str, StoredTable], model: Any) -> dict[str, StoredTable]:
    """Note which model made the vectors of a step."""
    # One of this machine has nothing but its name.
    name, dimensions = model.identity or (model.name, None)
    return {
        table_name: replace(
            table, vectors=replace(table.vectors, model=name, dimensions=dimensions)
        )
        if table.vectors
        else table
        for table_name, table in stored.items()
    }


def _code(step: Step) -> str:
    """What stands for a step's code: the program's version, or the text of a user's own module."""
    if step.is_shipped:
        return __version__
    try:
        # All of the module, since a function beside the step may have changed.
        return inspect.getsource(sys.modules[step.function.__module__])
    except (OSError, TypeError):  # typed into an interpreter
        return inspect.getsource(step.function)


def lock(store: TableStore) -> Any:
    """Keep a second run off the same output folder; readers need no lock.

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
    """Say that the output cannot be a folder."""
    return SettingsError(
        f"The output {store.output} is not a folder: name another with `--set output=FOLDER`."
    )


def peak_memory() -> int | None:
    """Return the peak of this process's resident memory so far, in bytes; None on Windows."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def statistics(version: Version) -> dict[str, Any]:
    """Describe a version for `output/stats.json`: what each step wrote and what it cost."""
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

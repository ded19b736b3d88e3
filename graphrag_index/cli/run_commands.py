"""The commands that send or count model requests: `run`, `retry`, `status` and `estimate`."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_index.cli import Json, Root, Set, exit_on_ctrl_c, load_project, root_option, traced
from graphrag_index.errors import (
    ExitCode,
    SettingsError,
    WaitingError,
    format_count,
    let_ctrl_c_end_waits,
    print_lines,
    quote_argument,
)
from graphrag_index.storage.working_copy import locate_output

if TYPE_CHECKING:
    from graphrag_index.llm.registry import PurgeCounts
    from graphrag_index.pipeline.run import RunResult, Watcher
    from graphrag_index.pipeline.shards import Runner
    from graphrag_index.schema.settings.project_settings import Settings
    from graphrag_index.storage.versions import StepRecord


class RunnerName(StrEnum):
    """Who makes the shards of a run: processes of this machine, or a Ray cluster."""

    LOCAL = "local"
    RAY = "ray"


@dataclass(frozen=True)
class RunOptions:
    """The command-line options of `run` and `retry`."""

    quiet: bool
    verbose: bool
    budget: float | None
    allowed_share: float
    batch: bool
    wait: bool
    n_workers: int | None
    runner: RunnerName = RunnerName.LOCAL
    retry: bool = False
    purge: bool = False


@contextmanager
def open_session(
    root: Path, overrides: list[str] | None, options: RunOptions
) -> "Iterator[RunSession]":
    """Open a project and its models for a run; on Ctrl-C, print a message and exit."""
    if options.wait and not options.batch:
        raise typer.BadParameter("--wait needs --batch.")
    import logging

    from graphrag_index.cli.terminal import MessageHandler

    level = logging.ERROR if options.quiet else logging.WARNING
    logging.basicConfig(
        format="%(levelname)s: %(message)s", level=logging.WARNING, handlers=[MessageHandler()]
    )
    logging.getLogger("graphrag_index").setLevel(logging.DEBUG if options.verbose else level)
    # Handle SIGTERM (`kill`, `docker stop`) like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    told = (
        "Stopped. The index has not changed, and finished steps are kept: "
        f"`graphrag-index run{' --batch' * options.batch}{root_option(root)}` continues with the "
        "interrupted step."
    )
    with exit_on_ctrl_c(told):
        session = RunSession(root, overrides, options)
        let_ctrl_c_end_waits()
        with closing(session.models):
            yield session


class RunSession:
    """A run of a workflow from the command line, with its progress and its report."""

    def __init__(self, root: Path, overrides: list[str] | None, options: RunOptions) -> None:
        self.started = time.perf_counter()
        self.root, self.options = root, options
        # An index that only an option names is asked with the same option.
        places = [text for text in overrides or () if text.startswith("output=")]
        self.query_options = root_option(root) + "".join(
            f" --set {quote_argument(place)}" for place in places
        )
        self.settings, self.workflow = load_project(root, overrides)
        from graphrag_index.pipeline.history import begin_purge
        from graphrag_index.pipeline.run import RunSetup
        from graphrag_index.pipeline.workflow import (
            check_keys,
            check_workflow,
            make_services,
            open_models,
        )
        from graphrag_index.storage.table_store import TableStore

        self.store = TableStore(locate_output(root, self.settings))
        announce = (lambda line: None) if options.quiet else print_lines
        self.models = open_models(
            self.workflow, self.settings, root, options.budget, options.batch, announce
        )
        services = make_services(self.settings, self.models, root)
        check_workflow(self.workflow, self.settings, root, services)
        check_keys(self.workflow, self.settings)
        self._restore_imported()
        if options.retry:
            self._reopen_requests()
        self.purged: PurgeCounts | None = None
        self.project = self.workflow, self.settings, root, services
        # A purge records the used requests, for which some steps must run.
        project = self.models, self.workflow, self.settings
        self.setup = RunSetup(
            watcher=self._open_watcher(),
            runner=self._open_runner(),
            models=self.models,
            forced_steps=begin_purge(*project) if options.purge else (),
            wait=self._wait_for_batch,
            at_end=self._purge_if_complete,
        )

    def _open_watcher(self) -> "Watcher":
        from graphrag_index.cli.terminal import TerminalWatcher
        from graphrag_index.pipeline.run import Watcher

        if self.options.quiet:
            return Watcher()
        return TerminalWatcher(bars=not self.options.verbose, remark=self._remark)

    def _open_runner(self) -> "Runner":
        from graphrag_index.pipeline.shards import LocalRunner, count_cores

        if self.options.runner == RunnerName.RAY:
            from graphrag_index.pipeline.ray_runner import RayRunner

            return RayRunner(self.options.n_workers or count_cores())
        return LocalRunner(self.options.n_workers)

    def _restore_imported(self) -> None:
        """Make the imported version again, if the run starts from it and it is gone."""
        from graphrag_index.pipeline.import_version import restore_imported

        project = self.workflow, self.settings, self.root
        restored = restore_imported(*project, self._open_watcher())
        if restored and not self.options.quiet:
            version = f"The imported index is version {restored.number} again"
            print_lines(f"{version}; this run updates it.\n")

    def _reopen_requests(self) -> None:
        """Send the quarantined requests of all steps again."""
        from graphrag_index.pipeline.history import lock_output

        # Lock the output folder, so that no other run sends requests at the same time.
        with lock_output(self.store):
            self.models.reopen_requests([step.name for step in self.workflow.steps])

    def _purge_if_complete(self, result: "RunResult") -> None:
        """Purge unused replies, unless the run is incomplete: a purged reply must be paid again."""
        from graphrag_index.pipeline.history import end_purge

        if self.options.purge and self._is_complete(result):
            self.purged = end_purge(
                self.models, self.workflow, self.settings, self.store, result.version
            )

    def _wait_for_batch(self, error: WaitingError) -> None:
        """With `--wait`, wait until a batch has ended; else exit. A later run gets the replies."""
        from graphrag_index.cli.terminal import wait_for_batches

        out = None if self.options.quiet else sys.stdout
        if out is not None:
            later = "" if self.options.wait else " The same command collects the replies later."
            print_lines(f"{error}{later}")
        if not self.options.wait:
            raise typer.Exit(error.exit_code)
        queue = self.models.newest_queue
        wait_for_batches(queue.get_progress, queue.settings.batch.poll_seconds, out)

    def _remark(self, record: "StepRecord") -> str:
        """Describe the changes of the loaded documents since the last run."""
        from graphrag_index.pipeline.changes import compare_with_index

        version, loader = self.store.read_pointer(), self.workflow.loader
        if loader is None or record.name != loader.name:
            return ""
        changes = compare_with_index(self.store, version, loader, record)
        return f"Since version {version.number}: {changes}." if version and changes else ""

    def _is_complete(self, result: "RunResult") -> bool:
        """Return whether all input was read and no more requests failed than allowed."""
        steps = (record.name for record in result.version.steps if record.quarantined)
        share = max(map(self.models.quarantined_share, steps), default=0.0)
        return share <= self.options.allowed_share and not self._unread_files(result)

    def _unread_files(self, result: "RunResult") -> list[tuple[str, str]]:
        from graphrag_index.storage.table_store import scan_table

        return scan_table(self.store, result.version, "unread_files").collect().rows()

    def print_report(self, result: "RunResult") -> ExitCode:
        """Print the result of the run; return its exit code: the index may be incomplete."""
        from graphrag_index.cli.printed_tables import describe_quarantined, describe_unread_files
        from graphrag_index.storage.skipped_files import describe_skipped, read_skipped

        self.models.mark_finished()
        skipped = describe_skipped(read_skipped(self.store, result.version))
        if not self.options.quiet:
            self._print_summary(result, skipped)
        unread = self._unread_files(result)
        if unread:
            print_lines(describe_unread_files(unread, bool(skipped)), sys.stderr, indent=2)
        failed = self.models.quarantined_requests(
            [r.name for r in result.version.steps if r.quarantined]
        )
        if failed:
            n_final = sum(row.is_final for row in failed)
            hint = f"`graphrag-index retry{root_option(self.root)}` sends them again."
            if n_final:
                hint = f"{hint} " if n_final < len(failed) else ""
                hint += f"The server would refuse {n_final} of them again: see the reasons."
            print_lines(f"\n{describe_quarantined(failed)}\n{hint}", sys.stderr, indent=2)
        if self._is_complete(result):
            return ExitCode.DONE
        if self.options.purge:
            why = "the next run would have to pay again for replies about the missing parts"
            print_lines(f"Nothing was purged, since the index is incomplete: {why}.", sys.stderr)
        return ExitCode.QUARANTINED

    def _print_summary(self, result: "RunResult", skipped: str) -> None:
        tables, number = result.version.tables, result.version.number
        if not result.steps_run:
            print_lines(f"\nNothing changed: {self.store.place} is up to date (version {number}).")
        else:
            names = ("documents", "text_units", "entities", "relationships", "communities")
            counts = [format_count(n, tables[n].rows) for n in names if n in tables]
            seconds = time.perf_counter() - self.started
            print_lines(f"\n{', '.join(counts) or 'Done'} in {seconds:.1f} s.")
            print_lines(f"The tables are in {self.store.place} (version {number}).")
        if skipped:
            hint = f"`graphrag-index status --all{root_option(self.root)}` lists them."
            print_lines(f"{skipped} {hint}")
        print(f'Ask it: graphrag-query global "What are the main themes?"{self.query_options}')
        if self.purged:
            from graphrag_index.cli.printed_tables import describe_purge

            print_lines(describe_purge(self.purged, self.root, root_option(self.root)))


SAMPLE_DOCUMENTS = 100  # number of documents in the sample of an estimate

Budget = Annotated[
    float | None,
    typer.Option("--budget", min=0, help="Stop before calls exceed this cost.", metavar="DOLLARS"),
]
AllowPartial = Annotated[
    str,
    typer.Option(
        "--allow-partial",
        help="Succeed if at most this share of the requests of each step fails.",
        metavar="SHARE",
    ),
]
Batch = Annotated[
    bool, typer.Option("--batch", help="Send chat requests as provider batches, at half the price.")
]
Wait = Annotated[
    bool, typer.Option("--wait", help="With --batch: wait until the batches are done.")
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", min=1, help="Maximum number of processes; default: all cores."
    ),
]
RunnerOption = Annotated[
    RunnerName,
    typer.Option(
        "--runner",
        metavar="RUNNER",
        help="Make shards by processes of this machine, or by a Ray cluster.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print details for debugging.")]


def run(
    root: Root = Path(),
    set_: Set = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    budget: Budget = None,
    allow_partial: AllowPartial = "0%",
    batch: Batch = False,
    wait: Wait = False,
    workers: Workers = None,
    runner: RunnerOption = RunnerName.LOCAL,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print steps to run and their price; change nothing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="With --dry-run: print JSON.")] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="After the run, delete replies about deleted documents.")
    ] = False,
) -> None:
    """Bring the index up to date: run the steps whose input has changed."""
    if json and not dry_run:
        raise typer.BadParameter("--json needs --dry-run.")
    if purge and dry_run:
        raise typer.BadParameter("--purge cannot be used with --dry-run, which deletes nothing.")
    if dry_run:
        _print_dry_run(root, set_, batch, json)
        return
    from graphrag_index.pipeline.run import run_workflow

    share = parse_share(allow_partial)
    options = RunOptions(quiet, verbose, budget, share, batch, wait, workers, runner, purge=purge)
    with traced(), open_session(root, set_, options) as session:
        if exit_code := session.print_report(run_workflow(*session.project, session.setup)):
            raise typer.Exit(exit_code)


def retry(
    root: Root = Path(),
    set_: Set = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    budget: Budget = None,
    allow_partial: AllowPartial = "0%",
    batch: Batch = False,
    wait: Wait = False,
    workers: Workers = None,
    runner: RunnerOption = RunnerName.LOCAL,
) -> None:
    """Send requests without a valid reply again, and bring the index up to date."""
    from graphrag_index.pipeline.run import run_workflow

    share = parse_share(allow_partial)
    options = RunOptions(quiet, verbose, budget, share, batch, wait, workers, runner, retry=True)
    with traced(), open_session(root, set_, options) as session:
        if exit_code := session.print_report(run_workflow(*session.project, session.setup)):
            raise typer.Exit(exit_code)


def status(
    root: Root = Path(),
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="List all quarantined requests, and all files not in the index."
        ),
    ] = False,
    save: Annotated[
        bool, typer.Option("--save", help="Store the ledger in the bucket of the output, now.")
    ] = False,
    set_: Set = None,
) -> None:
    """Print the version, whether a run goes on, and the requests to models with their cost."""
    settings, workflow = load_project(root, set_)
    from graphrag_index.cli.printed_tables import describe_state, write_status
    from graphrag_index.pipeline.workflow import open_models
    from graphrag_index.storage.table_store import TableStore

    store = TableStore(locate_output(root, settings))
    print_lines("\n".join(describe_state(store, root_option(root), every)))
    with closing(open_models(workflow, settings, root)) as models:
        if not models.has_ledger:
            print("No model was asked.")
            return
        if save:
            _save_ledger(root, settings)
        rows = models.ledger.step_statuses()
        quarantined = models.quarantined_requests(list(dict.fromkeys(row.step for row in rows)))
        batches = models.open_batches()
    write_status(rows, [] if every else quarantined, sys.stdout, batches)
    for row in quarantined if every else ():
        print(f"\n{row.step}, {row.unit}: {row.reason}\n{row.raw}".rstrip())


def _save_ledger(root: Path, settings: "Settings") -> None:
    from graphrag_index.pipeline.history import lock_output
    from graphrag_index.storage.table_store import TableStore

    store = TableStore(locate_output(root, settings))
    if store.working_copy is None:
        raise SettingsError(f"The ledger stays in {store.output}: the output is not in a bucket.")
    with lock_output(store):
        store.working_copy.push_ledger()
    print(f"The ledger is in {store.place}.")


def estimate(
    root: Root = Path(),
    sample: Annotated[
        int, typer.Option("--sample", min=1, help="Estimate from this many documents.", metavar="N")
    ] = SAMPLE_DOCUMENTS,
    set_: Set = None,
    batch: Annotated[bool, typer.Option("--batch", help="Use prices of run --batch.")] = False,
    json: Json = False,
) -> None:
    """Estimate the requests of a run and their price; nothing is sent."""
    settings, workflow = load_project(root, set_)
    from graphrag_index.cli.printed_tables import estimate_as_json, write_estimate
    from graphrag_index.cli.terminal import BarWatcher
    from graphrag_index.pipeline.estimate import estimate
    from graphrag_index.pipeline.workflow import check_steps

    check_steps(workflow, settings, root)
    watcher = BarWatcher(out=sys.stderr if json else sys.stdout)
    found = estimate(workflow, settings, root, sample, watcher, batch)
    if json:
        print(estimate_as_json(found))
        return
    if not found.lines:
        print_lines(f"The workflow {workflow.name} asks no model: a run costs nothing.")
    write_estimate(found, sys.stdout)


def _print_dry_run(root: Path, overrides: list[str] | None, batch: bool, as_json: bool) -> None:
    settings, workflow = load_project(root, overrides)
    from graphrag_index.cli.printed_tables import dry_run_as_json, write_dry_run
    from graphrag_index.cli.terminal import BarWatcher
    from graphrag_index.pipeline.changes import dry_run
    from graphrag_index.pipeline.workflow import check_workflow, make_services

    check_workflow(workflow, settings, root, make_services(settings, None, root))
    watcher = BarWatcher(out=sys.stderr if as_json else sys.stdout)
    found = dry_run(workflow, settings, root, SAMPLE_DOCUMENTS, watcher, batch)
    if as_json:
        print(dry_run_as_json(found))
    else:
        write_dry_run(found, sys.stdout)


def parse_share(text: str) -> float:
    """Parse a share such as "2%" or "0.02" to a number from 0 to 1."""
    number, percent, rest = text.partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if rest or not 0 <= share <= 1:
        raise typer.BadParameter("--allow-partial takes a share such as 2%.")
    return share

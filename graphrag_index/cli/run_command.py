"""The commands `graphrag-index run` and `retry`, and what they say of what came of it."""

import logging
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from graphrag_index.cli.options import SAMPLE, Root, Set, load, root_option
from graphrag_index.errors import ExitCode

if TYPE_CHECKING:
    from graphrag_index.llm.ledger import Quarantined
    from graphrag_index.llm.registry import Models, Purged
    from graphrag_index.pipeline.run import RunResult
    from graphrag_index.schema.settings.settings import Settings
    from graphrag_index.storage.table_store import TableStore
    from graphrag_index.storage.versions import StepRecord

Budget = Annotated[
    float | None,
    typer.Option("--budget", min=0, help="Stop before the models cost more.", metavar="DOLLARS"),
]
AllowPartial = Annotated[
    str,
    typer.Option(
        "--allow-partial", help="Succeed if no more of a step's requests fail.", metavar="SHARE"
    ),
]
Batch = Annotated[
    bool,
    typer.Option(
        "--batch", help="Ask chat models through batches of the provider, for half the price."
    ),
]
Wait = Annotated[
    bool, typer.Option("--wait", help="With --batch: wait until the batches are done.")
]
PurgeToo = Annotated[
    bool,
    typer.Option("--purge", help="Then forget what models were asked about what is gone."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print what happens inside.")]


def run(
    root: Root = Path(),
    set_: Set = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    budget: Budget = None,
    allow_partial: AllowPartial = "0%",
    batch: Batch = False,
    wait: Wait = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would happen and its price; do nothing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="With --dry-run: print JSON.")] = False,
    purge: PurgeToo = False,
) -> None:
    """Bring the index up to date: run the steps whose input has changed."""
    if json and not dry_run:
        raise typer.BadParameter("--json goes with --dry-run.")
    if purge and dry_run:
        raise typer.BadParameter("--purge does not go with --dry-run, which deletes nothing.")
    if dry_run:
        _dry_run(root, set_, batch, json)
        return
    ways = _Ways(quiet, budget, _share(allow_partial), batch, wait, purge=purge)
    _run_safely(root, set_, verbose, ways)


def retry(
    root: Root = Path(),
    set_: Set = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    budget: Budget = None,
    allow_partial: AllowPartial = "0%",
    batch: Batch = False,
    wait: Wait = False,
) -> None:
    """Ask the models again for what is quarantined, and bring the index up to date."""
    ways = _Ways(quiet, budget, _share(allow_partial), batch, wait, retry=True)
    _run_safely(root, set_, verbose, ways)


def _dry_run(root: Path, overrides: list[str] | None, batch: bool, as_json: bool) -> None:
    settings, workflow = load(root, overrides)
    from graphrag_index.cli.terminal import BarWatcher
    from graphrag_index.pipeline.dry_run import dry_run, dry_run_as_json, write_dry_run
    from graphrag_index.pipeline.input import check_input
    from graphrag_index.pipeline.services import check_models

    check_input(workflow, settings, root)
    check_models(workflow, settings)
    watcher = BarWatcher(out=sys.stderr if as_json else sys.stdout)
    found = dry_run(workflow, settings, root, SAMPLE, watcher, batch)
    if as_json:
        print(dry_run_as_json(found))
    else:
        write_dry_run(found, sys.stdout)


class _Ways(NamedTuple):
    """The ways in which a run may go."""

    quiet: bool
    budget: float | None
    allowed_share: float
    batch: bool
    wait: bool
    retry: bool = False
    purge: bool = False


def _run_safely(root: Path, overrides: list[str] | None, verbose: bool, ways: _Ways) -> None:
    if ways.wait and not ways.batch:
        raise typer.BadParameter("--wait goes with --batch.")
    _configure_logging(ways.quiet, verbose)
    # `kill` and `docker stop` stop a run as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _run(root, overrides, verbose, ways)
    except KeyboardInterrupt:
        print(
            "Stopped. The index is as it was, and finished steps are kept: "
            f"`graphrag-index run{' --batch' * ways.batch}{root_option(root)}` goes on with the "
            "step that was under way.",
            file=sys.stderr,
        )
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _run(root: Path, overrides: list[str] | None, verbose: bool, ways: _Ways) -> None:
    started = time.perf_counter()
    settings, workflow = load(root, overrides)
    from graphrag_index.cli.terminal import TerminalWatcher
    from graphrag_index.pipeline.history.forget import Purge
    from graphrag_index.pipeline.input import check_input
    from graphrag_index.pipeline.run import RunResult, Watcher, lock, run_workflow
    from graphrag_index.pipeline.services import (
        check_decisions,
        check_models,
        models_of,
        services_of,
    )
    from graphrag_index.storage.table_store import TableStore

    check_input(workflow, settings, root)
    check_models(workflow, settings)
    check_decisions(workflow, settings, root)
    store = TableStore(root / settings.output)

    def new_watcher() -> Watcher:
        if ways.quiet:
            return Watcher()
        return TerminalWatcher(bars=not verbose, remark=partial(_changes, store))

    if any(step.name == "skip_imported" for step in workflow.steps):
        from graphrag_index.pipeline.import_version import restore_imported

        restored = restore_imported(settings, root, new_watcher())
        if restored and not ways.quiet:
            print(f"What was imported is version {restored.number} again; this goes on from it.\n")
    watcher = new_watcher()
    with closing(models_of(workflow, settings, root, ways.budget, ways.batch)) as models:
        if ways.retry:
            # Not while another run asks.
            with lock(store):
                models.release([step.name for step in workflow.steps])
        purge: Purge | None = None
        if ways.purge:

            def is_whole(result: RunResult) -> bool:
                share = _quarantined(result, models)[1]
                return not _unread_files(result, store) and share <= ways.allowed_share

            purge = Purge(models, workflow, settings, store, is_whole)

        def attempt() -> RunResult:
            return run_workflow(
                workflow,
                settings,
                root,
                services_of(settings, models, root),
                watcher,
                quarantined=lambda step: len(models.quarantined([step])),
                again=[*models.released(), *(purge.begin() if purge else ())],
                spent=models.spent,
                at_end=purge.end if purge else lambda result: None,
            )

        result = _collect_all(attempt, models, ways)
        models.finished()
        failed, share = _quarantined(result, models)
    if not ways.quiet:
        _summarize(result, root, settings, time.perf_counter() - started)
        if purge and purge.purged:
            print(_describe_purged(purge.purged, root))
    unread = _unread_files(result, store)
    if unread:
        print(_describe_unread(unread), file=sys.stderr)
    if failed:
        from graphrag_index.pipeline.request_status import describe_quarantined

        hint = f"`graphrag-index retry{root_option(root)}` asks for them again."
        print(f"\n{describe_quarantined(failed)}\n{hint}", file=sys.stderr)
    if unread or share > ways.allowed_share:
        if purge:
            why = "what is asked about it would have to be paid again"
            print(f"Nothing was purged, since something is missing: {why}.", file=sys.stderr)
        raise typer.Exit(ExitCode.QUARANTINED)


def _changes(store: "TableStore", record: "StepRecord") -> str:
    """Say what changed in the input, as soon as it has been read."""
    from graphrag_index.pipeline.dry_run import changes_since
    from graphrag_index.steps.load_documents import load_documents

    version = store.read_pointer()
    changes = changes_since(store, version, record) if record.name == load_documents.name else None
    if version is None or changes is None:
        return ""
    return f"Since version {version.number}: {changes}."


def _quarantined(result: "RunResult", models: "Models") -> "tuple[list[Quarantined], float]":
    """Return what gave nothing, and the largest share of a step's requests that this is."""
    incomplete = [record.name for record in result.version.steps if record.quarantined]
    share = max((models.quarantined_share(step) for step in incomplete), default=0.0)
    return models.quarantined(incomplete), share


def _describe_purged(purged: "Purged", root: Path) -> str:
    n, kept = purged.n_deleted, purged.n_kept
    return (
        f"Purged: {n:,} request{'' if n == 1 else 's'} forgotten, {kept:,} kept. Earlier versions "
        f"still hold what was deleted: `graphrag-index gc --keep 1{root_option(root)}` deletes "
        "them."
    )


def _collect_all(attempt: "Callable[[], RunResult]", models: "Models", ways: _Ways) -> "RunResult":
    """Run until no request is in a batch, or end when one is; nothing but batches waits."""
    from graphrag_index.cli.terminal import wait_for_batches
    from graphrag_index.errors import WaitingError

    while True:
        try:
            return attempt()
        except WaitingError as error:
            if not ways.quiet:
                later = "" if ways.wait else " The same command collects the replies later."
                print(f"{error}{later}", flush=True)
            if not ways.wait:
                raise typer.Exit(error.exit_code) from None
        wait_for_batches(
            models.batch_progress, models.poll_seconds, None if ways.quiet else sys.stdout
        )


def _share(text: str) -> float:
    """Read "2%" or "0.02"."""
    number, percent, rest = text.partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if rest or not 0 <= share <= 1:
        raise typer.BadParameter("--allow-partial takes a share such as 2%.")
    return share


def _summarize(result: "RunResult", root: Path, settings: "Settings", seconds: float) -> None:
    tables = result.version.tables
    output = root / settings.output
    if not result.steps_run:
        print(f"\nNothing changed: {output} is up to date (version {result.version.number}).")
    else:
        names = ("documents", "text_units", "entities", "relationships", "communities")
        counts = [f"{tables[n].rows:,} {n.replace('_', ' ')}" for n in names if n in tables]
        print(f"\n{', '.join(counts) or 'Done'} in {seconds:.1f} s.")
        print(f"The tables lie in {output} (version {result.version.number}).")
    print(f'Ask it: graphrag-query global "What are the main themes?"{root_option(root)}')


def _unread_files(result: "RunResult", store: "TableStore") -> list[tuple[str, str]]:
    table = result.version.tables.get("unread_files")
    if table is None or not table.rows:
        return []
    return list(store.scan("unread_files", table).collect().iter_rows())


def _describe_unread(unread: list[tuple[str, str]], most: int = 20) -> str:
    n = len(unread)
    lines = [
        f"\n{n} file or record was not read:"
        if n == 1
        else f"\n{n} files or records were not read:"
    ]
    lines += [f"  {path}: {reason}" for path, reason in unread[:most]]
    if n > most:
        lines.append(f"  ... and {n - most} more, all in the table unread_files.")
    lines.append("All others are in the index. Mend or remove these files and run again.")
    return "\n".join(lines)


def _configure_logging(quiet: bool, verbose: bool) -> None:
    level = logging.ERROR if quiet else logging.DEBUG if verbose else logging.WARNING
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    logging.getLogger("graphrag_index").setLevel(level)


def add_commands(app: typer.Typer) -> None:
    """Make these commands those of a command line."""
    app.command()(run)
    app.command()(retry)

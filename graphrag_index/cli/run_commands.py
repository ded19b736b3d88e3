"""The commands that send or count model requests: `run`, `retry`, `status` and `estimate`."""

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_index.cli import Root, Set, load_project, root_option, traced
from graphrag_index.cli.run_session import RunnerName, RunOptions, open_session
from graphrag_index.errors import SettingsError, print_lines
from graphrag_index.storage.working_copy import locate_output

if TYPE_CHECKING:
    from graphrag_index.schema.settings.project_settings import Settings

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
    share = parse_share(allow_partial)
    options = RunOptions(quiet, verbose, budget, share, batch, wait, workers, runner, purge=purge)
    from graphrag_index.pipeline.run import run_workflow

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
    share = parse_share(allow_partial)
    options = RunOptions(quiet, verbose, budget, share, batch, wait, workers, runner, retry=True)
    from graphrag_index.pipeline.run import run_workflow

    with traced(), open_session(root, set_, options) as session:
        if exit_code := session.print_report(run_workflow(*session.project, session.setup)):
            raise typer.Exit(exit_code)


def status(
    root: Root = Path(),
    every: Annotated[
        bool, typer.Option("--all", help="List all quarantined requests, with their replies.")
    ] = False,
    save: Annotated[
        bool, typer.Option("--save", help="Store the ledger in the bucket of the output, now.")
    ] = False,
    set_: Set = None,
) -> None:
    """Print the version, whether a run goes on, and the requests to models with their cost."""
    settings, workflow = load_project(root, set_)
    from graphrag_index.cli.index_tables import describe_state
    from graphrag_index.cli.request_tables import write_status
    from graphrag_index.pipeline.workflow import open_models
    from graphrag_index.storage.table_store import TableStore

    store = TableStore(locate_output(root, settings))
    print_lines("\n".join(describe_state(store, root_option(root))))
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
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Estimate the requests of a run, their price and its time; nothing is sent."""
    settings, workflow = load_project(root, set_)
    from graphrag_index.cli.request_tables import estimate_as_json, write_estimate
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
    from graphrag_index.cli.request_tables import dry_run_as_json, write_dry_run
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

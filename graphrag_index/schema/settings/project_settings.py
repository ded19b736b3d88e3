"""Settings of a project: loading of `settings.yaml`, and the files of a new project."""

import copy
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, SecretStr, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo

from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings import searches
from graphrag_index.schema.settings import step_sections as sections
from graphrag_index.schema.settings.models import UNSET_KEY, ModelSettings
from graphrag_index.schema.settings.section import (
    Section,
    describe_validation_error,
    read_settings_yaml,
    read_text_file,
    setting,
)
from graphrag_index.schema.settings.step_sections import Check

# Models of a project whose settings.yaml has no models.
DEFAULT_MODELS = {
    "chat": {"model": "gpt-5-mini", "api_key": "${OPENAI_API_KEY:-}"},
    "embedding": {"model": "text-embedding-3-small", "api_key": "${OPENAI_API_KEY:-}"},
}


class Settings(Section):
    """The settings of one project."""

    workflow: str = setting("embedded", "Name of a file in workflows/, without .yaml.")
    output: str = setting(
        "output",
        "Folder of the index, relative to settings.yaml; or in a bucket, such as s3://bucket/folder.",
        min_length=1,
    )
    models: dict[str, ModelSettings] = setting(
        {name: ModelSettings(model=known["model"]) for name, known in DEFAULT_MODELS.items()},
        "Models behind an OpenAI-compatible API, by the names that other settings use. A workflow "
        "that uses none of them needs no API key.",
    )
    load_documents: sections.LoadDocuments = sections.LoadDocuments()
    read_graph: sections.ReadGraph = sections.ReadGraph()
    describe_figures: sections.DescribeFigures = sections.DescribeFigures()
    create_text_units: sections.CreateTextUnits = sections.CreateTextUnits()
    extract_graph_nlp: sections.ExtractGraphNlp = sections.ExtractGraphNlp()
    extract_graph: sections.ExtractGraph = sections.ExtractGraph()
    resolve_entities: sections.ResolveEntities = sections.ResolveEntities()
    summarize_descriptions: sections.SummarizeDescriptions = sections.SummarizeDescriptions()
    extract_covariates: sections.ExtractCovariates = sections.ExtractCovariates()
    finalize_graph: sections.FinalizeGraph = sections.FinalizeGraph()
    create_communities: sections.CreateCommunities = sections.CreateCommunities()
    create_community_reports_nlp: sections.CreateCommunityReportsNlp = (
        sections.CreateCommunityReportsNlp()
    )
    create_community_reports: sections.CreateCommunityReports = sections.CreateCommunityReports()
    generate_text_embeddings: sections.GenerateTextEmbeddings = sections.GenerateTextEmbeddings()
    search: searches.Search = searches.Search()
    basic_search: searches.BasicSearch = searches.BasicSearch()
    local_search: searches.LocalSearch = searches.LocalSearch()
    global_search: searches.GlobalSearch = searches.GlobalSearch()
    drift_search: searches.DriftSearch = searches.DriftSearch()
    lazy_search: searches.LazySearch = searches.LazySearch()
    path_search: searches.PathSearch = searches.PathSearch()
    neighbourhood_search: searches.NeighbourhoodSearch = searches.NeighbourhoodSearch()
    compare_search: searches.CompareSearch = searches.CompareSearch()
    structured_search: searches.StructuredSearch = searches.StructuredSearch()
    check: Check = Check()
    steps: dict[str, dict[str, Any]] = setting(
        {}, "Settings of your own steps, by the name of the step's function."
    )

    @field_validator("output")
    @classmethod
    def _expand_home(cls, folder: str) -> str:
        return os.path.expanduser(folder)

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_sections(cls, values: Any) -> Any:
        # Drop null sections, whose keys are all commented out: they get the defaults.
        if not isinstance(values, dict):
            return values
        is_empty = {key for key in cls.model_fields if values.get(key) is None}
        return {key: value for key, value in values.items() if key not in is_empty}


SETTINGS_FILE = "settings.yaml"


def load_settings(root: Path, overrides: tuple[str, ...] = (), *, needed: bool = True) -> Settings:
    """Read `settings.yaml` in `root`, expand `${ENV}`, and apply `section.key=value` overrides.

    Variables come from the environment, then from the file `.env` next to `settings.yaml`. If the
    file is missing and not `needed`, the defaults are used. Raises SettingsError if the file is
    missing or not valid YAML, if a key is unknown, if a value has the wrong type, or if a
    variable is not set, except that of an API key, which only requests to its model need.
    """
    path = root / SETTINGS_FILE
    text = read_text_file(path)
    if text is None and needed:
        raise SettingsError(
            f"There is no {SETTINGS_FILE} in {root}: name another folder with --root, "
            "or write a first one with `graphrag-index init`."
        )
    values = read_settings_yaml(text or "", str(path))
    values = {} if values is None else values
    if not isinstance(values, dict):
        what = "a list" if isinstance(values, list) else "a single value"
        raise SettingsError(f"{path} must hold sections of `key: value`, not {what}.")
    if values.get("models") is None:
        values["models"] = copy.deepcopy(DEFAULT_MODELS)
    variables = {**read_env_file(root / ".env"), **os.environ}
    _keep_unset_keys(values, variables)
    values = _expand_variables(values, variables, str(path))
    for override in overrides:
        _apply_override(values, override, variables)
    return parse_settings(values, f"{path} with --set" if overrides else str(path))


def parse_settings(values: dict[str, Any], where: str = SETTINGS_FILE) -> Settings:
    """Validate the values of all sections; SettingsError has one sentence for each mistake."""
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError(describe_validation_error(error, Settings, where)) from None


def read_recorded_settings(values: Mapping[str, Any]) -> Settings:
    """Return the settings that a version records; keys and values unknown today are left out."""
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        kept: Any = copy.deepcopy(dict(values))
        for *path, key in (mistake["loc"] for mistake in error.errors()):
            node = kept
            for name in path:
                # A setting of several types has a path that also names the type, which is no key.
                if isinstance(name, int) or name in node:
                    node = node[name]
            if isinstance(node, dict):
                node.pop(key, None)
        return Settings.model_validate(kept)


_VARIABLE_PATTERN = re.compile(r"\$\$|\$\{([^}]*)\}?")
_NAME_AND_DEFAULT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


def _keep_unset_keys(values: dict[str, Any], variables: Mapping[str, str]) -> None:
    """Keep an API key whose variable is not set or empty as it is written, until it is needed.

    Nothing but requests to this model needs the key: an import, a check or an estimate works
    without it.
    """
    models = values["models"]
    for model in models.values() if isinstance(models, dict) else ():
        key = model.get("api_key") if isinstance(model, dict) else None
        unset = UNSET_KEY.fullmatch(key) if isinstance(key, str) else None
        if unset is not None and not variables.get(unset[1]):
            model["api_key"] = f"${key}"  # an escaped dollar sign


def _expand_variables(value: Any, variables: Mapping[str, str], where: str) -> Any:
    """Expand `${NAME}` and `${NAME:-default}` in every string; `$$` becomes a dollar sign.

    The default is used for an unset or empty variable, as in a shell. The value of a variable is
    a string; validation converts the string to the type of the setting.
    """
    if isinstance(value, dict):
        return {key: _expand_variables(item, variables, where) for key, item in value.items()}
    if isinstance(value, list):
        return [_expand_variables(item, variables, where) for item in value]
    if not isinstance(value, str):
        return value

    def replace_variable(found: re.Match[str]) -> str:
        if found.group() == "$$":
            return "$"
        parts = _NAME_AND_DEFAULT.fullmatch(found[1])
        if parts is None or not found.group().endswith("}"):
            raise SettingsError(
                f"{where} has {found.group()!r}: write ${{NAME}} or ${{NAME:-default}}, "
                "or $$ for a dollar sign."
            )
        name, default = parts.groups()
        if default is not None:
            return variables.get(name) or str(default)
        if name not in variables:
            raise SettingsError(
                f"{where} uses ${{{name}}}, which is not set: export {name} or write it into .env."
            )
        return variables[name]

    return _VARIABLE_PATTERN.sub(replace_variable, value)


# Pattern of NAME=value, with or without `export`; the value is in quotes, or ends at a comment.
_ENV_LINE_PATTERN = re.compile(
    r"""(?:export\s+)?([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|(.*?))\s*(?:(?<=\s)\#.*)?"""
)


def read_env_file(path: Path) -> dict[str, str]:
    """Read `NAME=value` lines, with `#` comments, `export` and quotes."""
    text = read_text_file(path) or ""
    variables = {}
    if "\0" in text:
        raise SettingsError(f"{path} has a null character, which no variable can have.")
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        found = _ENV_LINE_PATTERN.fullmatch(line)
        if found is None:
            raise SettingsError(f"{path}, line {number}: expected NAME=value.")
        name, *values = found.groups()
        variables[name] = next(value for value in values if value is not None)
    return variables


def _apply_override(values: dict[str, Any], override: str, variables: Mapping[str, str]) -> None:
    """Apply the override `section.key=value`; the value is YAML, such as `[a, b]` or `null`."""
    keys, equals, text = override.partition("=")
    if not equals or not keys:
        raise SettingsError(f"--set {override}: expected section.key=value.")
    where = f"--set {override}"
    # These signs have a meaning in YAML that is of no use here: "*" is the name of all columns.
    parsed = text if text[:1] in tuple("*&%@`") else read_settings_yaml(text, where)
    value = _expand_variables(parsed, variables, where)
    *parents, last = keys.split(".")
    for parent in parents:
        if values.get(parent) is None:
            values[parent] = {}
        values = values[parent]
        if not isinstance(values, dict):
            raise SettingsError(f"--set {override}: {parent} is a value, not a section.")
    values[last] = value


def init_project(
    folder: Path, input_folder: Path | None = None, values: Mapping[str, Any] | None = None
) -> list[Path]:
    """Write `settings.yaml` with all settings and their descriptions, and the workflows.

    Returns the written files. `input_folder` is the folder of the documents; if it is None, an
    empty folder `input` is created. `values` replace defaults, as in `settings_text`. If
    `settings.yaml` already exists, raises SettingsError and writes nothing.
    """
    settings_path = folder / SETTINGS_FILE
    own_folders = [folder / "input"] if input_folder is None else []
    check_new_project(folder, input_folder, folder / "workflows", *own_folders)
    folder.mkdir(parents=True, exist_ok=True)
    documents = "input"
    if input_folder is None:
        (folder / documents).mkdir(exist_ok=True)
    elif input_folder.resolve() != (folder / documents).resolve():
        documents = format_documents_folder(input_folder, folder)
    text = settings_text({**(values or {}), "load_documents": {"folder": documents}})
    settings_path.write_text(text, encoding="utf-8")
    return [settings_path, *write_missing_workflows(folder)]


def write_missing_workflows(folder: Path) -> list[Path]:
    """Write the workflows of this program that are missing in a project."""
    (folder / "workflows").mkdir(exist_ok=True)
    texts = {
        folder / "workflows" / f"{name}.yaml": text for name, text in shipped_workflows().items()
    }
    missing = [path for path in texts if not path.exists()]
    for path in missing:
        path.write_text(texts[path], encoding="utf-8")
    return missing


def check_new_project(folder: Path, input_folder: Path | None, *own_folders: Path) -> None:
    """Raise SettingsError if a project and its own folders cannot be written to `folder`."""
    if (folder / SETTINGS_FILE).exists():
        raise SettingsError(f"{folder / SETTINGS_FILE} already exists: nothing was written.")
    if input_folder is not None and not input_folder.is_dir():
        is_file = input_folder.exists()
        why = "is a file: name the folder in which it lies;" if is_file else "does not exist:"
        raise SettingsError(f"The input folder {input_folder} {why} nothing was written.")
    for path in (folder, *own_folders):
        there = next((part for part in (path, *path.parents) if os.path.lexists(part)), path)
        if os.path.lexists(there) and not there.is_dir():
            raise SettingsError(
                f"{there} is not a folder: name another one for the project, or move what is "
                "there; nothing was written."
            )


def format_documents_folder(documents: Path, project: Path) -> str:
    """Format `load_documents.folder`; a folder inside the project becomes a relative path."""
    path = documents.resolve()
    if path.is_relative_to(project.resolve()):
        path = path.relative_to(project.resolve())
    # Escape dollar signs in the path, which would begin variables.
    return path.as_posix().replace("$", "$$")


def settings_text(values: Mapping[str, Any] | None = None, heading: Sequence[str] = ()) -> str:
    """Return all settings with their defaults and descriptions, as YAML with comments.

    `values` replace the defaults: each key of a section, but `models` as a whole. `heading` has
    the lines of a comment at the top.
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
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, Section):
            section = type(field.default)
            summary = (section.__doc__ or "").splitlines()[0]
            lines += ["", f"# {summary}", f"{name}:"]
            lines += _format_keys(section.model_fields, values.get(name, {}), "  ")
        elif name == "models":
            models = _format_models(values.get("models", DEFAULT_MODELS))
            lines += ["", f"# {field.description}", "models:", *models]
        elif name != "steps":
            lines += ["", *_format_keys({name: field}, values)]
    return "\n".join(lines) + "\n"


def _format_keys(
    fields: Mapping[str, FieldInfo], values: Mapping[str, Any], indent: str = ""
) -> Iterator[str]:
    """Yield the lines of each key of a section: its description, then its value or default."""
    for key, field in fields.items():
        yield f"{indent}# {field.description}"
        yield f"{indent}{key}: {_format_yaml(values.get(key, field.default))}"


def _format_models(models: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the lines of `models`: all keys of the first model, changed keys of the others."""
    lines: list[str] = []
    for name, values in models.items():
        fields = ModelSettings.model_fields
        if lines:
            fields = {key: field for key, field in fields.items() if key in values}
        lines += [f"  # The model {name} of the steps.", f"  {_format_yaml(name)}:"]
        lines += _format_keys(fields, values, "    ")
    return lines


def _format_yaml(value: Any) -> str:
    """Return a value as one line of YAML."""
    if isinstance(value, BaseModel):
        value = value.model_dump()
    elif isinstance(value, SecretStr):
        # This is the default of an API key, which is not a secret.
        value = value.get_secret_value()
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.strip().removesuffix("...").strip()


def shipped_workflows() -> dict[str, str]:
    """Return the YAML text of each workflow of this program, by the name of the workflow."""
    package = Path(str(files("graphrag_index")))
    folders = (package / "workflows", package.parent / "workflows")
    found = next(filter(None, (sorted(folder.glob("*.yaml")) for folder in folders)), [])
    return {path.stem: path.read_text(encoding="utf-8") for path in found}

"""Conversion of a Microsoft GraphRAG project to our format: `graphrag-index init --from`.

Only keys in the settings file are converted; all other settings keep our defaults.
"""

import difflib
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphrag_index.errors import SettingsError
from graphrag_index.llm.prompts import FOLDER
from graphrag_index.microsoft.migrate_project import (
    PROMPT_KEYS,
    RULES,
    SKIPPED_PROMPTS,
    UNKNOWN_KEY,
    ConversionError,
    ConvertedPrompts,
    ConvertedSettings,
    MicrosoftProject,
    UnsetVariableError,
    check_value,
    escape_dollars,
    find_parent_key,
    find_variables,
    flatten,
    format_value,
    invert_section,
    read_project,
    read_prompts,
)
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.project_settings import (
    DEFAULT_MODELS,
    SETTINGS_FILE,
    Settings,
    check_new_project,
    format_documents_folder,
    load_settings,
    read_env_file,
    settings_text,
    shipped_workflows,
)
from graphrag_index.storage.atomic import write_text_file

# By Microsoft's key: our key for the model of a step, or the reason for skipping the key.
STEP_MODELS, _SKIPPED = invert_section("step_models"), invert_section("skipped_keys")
# Our workflow `standard` always extracts claims; Microsoft GraphRAG only if they are enabled.
WORKFLOW_WITHOUT_CLAIMS = "standard_without_claims"
# Names of text unit columns, which cannot be names of metadata columns.
_TEXT_UNIT_COLUMNS = {"id", "title", "text", "creation_date"}
# A regular expression for file name extensions: `.*\.txt$` or `.*\.(md|txt)$`.
_EXTENSION_PATTERN = re.compile(r"\^?(?:\.\*)?\\\.(?:(\w+)|\((?:\?:)?(\w+(?:\|\w+)*)\))\$?")
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


def convert_settings(project: MicrosoftProject) -> ConvertedSettings:
    """Convert a project to our settings, with a report on each key of the Microsoft settings."""
    result = ConvertedSettings(project)
    models = convert_models(result)
    if models:
        result.values["models"] = models
    _convert_input_folder(result)
    _convert_input_pattern(result)
    for key, value in project.all_values():
        for new_key in (new_key for new_key, keys in RULES["settings"].items() if key in keys):
            _convert_setting(result, key, new_key, value)
        if key in STEP_MODELS:
            _convert_step_model(result, key, STEP_MODELS[key], value)
    _convert_search_models(result)
    _choose_workflow(result)
    _limit_overlap(result)
    _report_other_keys(result)
    return result


def _convert_input_folder(result: ConvertedSettings) -> None:
    project = result.project
    key = next((key for key in RULES["input_folders"] if project.get(key) is not None), "")
    kind = project.get("input_storage.type", "input.storage.type", "input.type")
    if kind in ("blob", "cosmosdb", "memory"):
        if key:
            result.skip_key(key, "documents are read from a local folder only: copy them into one")
        return
    with result.record_errors(key):
        folder = str(project.expand(project.get(key))) if key else "input"
        path = Path(os.path.abspath(project.root / folder))
        result.values["load_documents"] = {"folder": str(path)}
        if key:
            result.keep_key(key, "load_documents.folder", path)


def _convert_input_pattern(result: ConvertedSettings) -> None:
    project = result.project
    key = "input.file_type" if project.get("input.file_type") else "input.type"
    kind = str(project.get(key) or "")
    endings = [RULES["input_types"][kind]] if kind in RULES["input_types"] else []
    pattern = project.get("input.file_pattern")
    if pattern is not None:
        key = "input.file_pattern"
        try:
            expression = str(project.expand(pattern))
        except ConversionError as error:
            result.skip_key(key, error)
            return
        if found := _EXTENSION_PATTERN.fullmatch(expression):
            endings = (found[1] or found[2]).split("|")
        else:
            why = f"the regular expression {expression} is not a list of file types"
            result.skip_key(key, f"{why}: write load_documents.include")
    if endings:
        include = [f"**/*.{ending}" for ending in endings]
        result.values.setdefault("load_documents", {})["include"] = include
        result.keep_key(key, "load_documents.include", format_value(include))


def _convert_setting(result: ConvertedSettings, old_key: str, new_key: str, value: Any) -> None:
    """Convert a value to our setting, or record why the setting rejects the value."""
    section, _, key = new_key.partition(".")
    with result.record_errors(old_key):
        if key in result.values.get(section, {}):
            raise ConversionError(f"{new_key} is set already")
        expanded = result.project.expand(value)
        new_value = _CONVERTERS[new_key](expanded) if new_key in _CONVERTERS else expanded
        # `_limit_overlap` checks size and overlap together.
        trial = {**RULES["checked_with"].get(new_key, {}), key: new_value}
        check_value(Settings.model_fields[section].annotation, trial, new_key)
        # Keep the variable in the settings unless its value was converted.
        is_same = new_value == expanded and not isinstance(new_value, list)
        kept = value if is_same and find_variables(value) else escape_dollars(new_value)
        result.values.setdefault(section, {})[key] = kept
        result.keep_key(old_key, new_key, format_value(kept))


def _convert_step_model(result: ConvertedSettings, old_key: str, new_key: str, value: Any) -> None:
    section, _, key = new_key.partition(".")
    if (name := result.names.get(str(value))) is None:
        result.skip_key(old_key, f"no model is called {value}")
        return
    if name != Settings.model_fields[section].default.model:
        result.values.setdefault(section, {})[key] = name
    result.keep_key(old_key, new_key, name)


def _convert_search_models(result: ConvertedSettings) -> None:
    """Set the embedding model, and `search.model` if all searches use the same model."""
    found = ((key, result.project.get(key)) for key in RULES["answering_models"])
    named = {key: str(value) for key, value in found if value is not None}
    names = {result.names.get(value, "") for value in named.values()}
    name = names.pop() if len(names) == 1 else ""
    if name or result.names:
        # The default `auto` is the model that wrote the reports, which no imported index names.
        result.values["search"] = {"model": name or "chat"}
    for key, value in named.items():
        own = result.names.get(value)
        if own is None:
            result.skip_key(key, f"no model is called {value}")
        elif len({*named.values()}) > 1:
            result.skip_key(key, "one model answers all questions: name it in search.model")
        else:
            result.keep_key(key, "search.model", own)
    for key in RULES["question_embedding_models"]:
        if result.project.get(key) is not None:
            result.skip_key(key, "not needed: questions are embedded by the model of the index")
    # Name the model, since our default is a local model, which did not make these vectors.
    if "embedding" in result.names.values():
        section = result.values.setdefault("generate_text_embeddings", {})
        section.setdefault("model", "embedding")


def _choose_workflow(result: ConvertedSettings) -> None:
    """Choose our workflow that extracts the same data as the Microsoft project."""
    project = result.project
    listed = project.get("workflows")
    key = "extract_claims.enabled"
    has_claims = project.get_expanded(key) is True
    is_fast = isinstance(listed, list) and "extract_graph_nlp" in listed
    name = "fast" if is_fast else "standard" if has_claims else WORKFLOW_WITHOUT_CLAIMS
    result.values["workflow"] = name
    if listed is not None:
        result.keep_key("workflows", "workflow", name)
    if is_fast and has_claims:
        result.skip_key(key, "the workflow fast has no claims: use standard for claims")
    elif project.get(key) is not None:
        result.keep_key(key, "workflow", name)


def _limit_overlap(result: ConvertedSettings) -> None:
    """Reduce the overlap to our maximum, half of the tokens of a text unit."""
    project, section = result.project, result.values.get("create_text_units", {})
    default: Any = Settings.model_fields["create_text_units"].default
    size = project.expand(section.get("max_tokens", default.max_tokens))
    overlap = project.expand(section.get("overlap_tokens", default.overlap_tokens))
    if isinstance(size, int) and isinstance(overlap, int) and overlap * 2 > size:
        section["overlap_tokens"] = size // 2
        key = "chunks.overlap" if project.get("chunks") else "chunking.overlap"
        result.skip_key(key, f"the maximum is half of max_tokens: {size // 2}")


def _report_other_keys(result: ConvertedSettings) -> None:
    """Report why the remaining keys are not converted; report a known parent key once."""
    reported = {key for key, _ in (*result.kept, *result.skipped)}
    convertible = [*invert_section("settings"), *STEP_MODELS, *PROMPT_KEYS, *SKIPPED_PROMPTS]
    for key, _ in result.project.all_values():
        if key in reported or key in convertible or find_parent_key(key, RULES["handled"]):
            continue
        if prefix := find_parent_key(key, _SKIPPED):
            if prefix not in reported:
                reported.add(prefix)
                result.skip_key(prefix, _SKIPPED[prefix])
        # Keys with these endings only name a part of Microsoft GraphRAG: do not report them.
        elif not f".{key}".endswith((".model_instance_name", ".vector_store_id", "_model_id")):
            close = difflib.get_close_matches(key, [*convertible, *_SKIPPED], n=1, cutoff=0.8)
            result.skip_key(key, UNKNOWN_KEY + (f"; did you mean {close[0]}?" if close else ""))


def _convert_metadata(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise ConversionError("not a list of fields: set load_documents.metadata_columns")
    columns = [str(name) for name in value if str(name) not in _TEXT_UNIT_COLUMNS]
    if not columns:
        fields = ", ".join(sorted(_TEXT_UNIT_COLUMNS))
        raise ConversionError(f"not needed: columns exist for {fields}")
    return columns


def _convert_encoding(value: Any) -> str:
    if value in ("o200k_base", "cl100k_base"):
        return str(value)
    raise ConversionError("only o200k_base and cl100k_base are known: create_text_units.encoding")


def _convert_level_number(value: Any) -> int:
    if not isinstance(value, int):
        raise ConversionError("the value is not a number")
    # Microsoft's value is the number of the deepest level, from 0; our value is a count.
    return value + 1


# Functions that convert a Microsoft value to ours, by our key.
_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "load_documents.metadata_columns": _convert_metadata,
    "create_text_units.encoding": _convert_encoding,
    "global_search.max_levels": _convert_level_number,
}


# Names of the models that a step uses if its settings name no model.
_DEFAULT_MODEL_NAMES = ("default_completion_model", "default_chat_model", "default_embedding_model")
_NEW_KEYS, _SKIPPED_OF_MODELS = invert_section("model"), invert_section("skipped_model_keys")
# Request parameters with these names may be secrets: do not copy them into our settings.
_SECRET_NAME = re.compile(r"key|secret|password|credential|auth|header|token$", re.IGNORECASE)
# Settings that identify the model: keep them even if their variable is not set.
_IDENTIFYING_KEYS = ("model", "base_url", "deployment")


def convert_models(result: ConvertedSettings) -> dict[str, dict[str, Any]]:
    """Return our section `models`; record in `result` whether each Microsoft key is converted."""
    models: dict[str, dict[str, Any]] = {}
    for path, values, is_embedding in _read_models(result.project):
        old_name = path.rpartition(".")[2]
        # Our steps use `chat` and `embedding` by default.
        name = "embedding" if is_embedding else "chat"
        if name in models:
            name = old_name if old_name not in models else f"{old_name}_{len(models)}"
        model = _ModelConversion(result, path, name, values)
        if "model" not in model.old:
            result.skip_key(path, "this section names no model")
            continue
        models[name] = model.convert()
        result.names[old_name] = name
    if (shared := result.project.get("concurrent_requests")) is not None:
        result.keep_key("concurrent_requests", "concurrency of each model", shared)
    if models and "chat" not in models:
        models["chat"] = dict(DEFAULT_MODELS["chat"])
    return models


def _read_models(project: MicrosoftProject) -> list[tuple[str, Mapping[str, Any], bool]]:
    """Return (key, settings, whether the model embeds) of each model; default models come first."""
    found: list[tuple[str, Any, bool]] = []
    for section in ("completion_models", "embedding_models", "models"):
        named = project.get(section)
        for name, values in named.items() if isinstance(named, Mapping) else ():
            kind = values.get("type", "") if isinstance(values, Mapping) else ""
            is_embedding = "embedding" in (str(kind) if section == "models" else section)
            found.append((f"{section}.{name}", values, is_embedding))
    found.sort(key=lambda entry: entry[0].rpartition(".")[2] not in _DEFAULT_MODEL_NAMES)
    return [entry for entry in found if isinstance(entry[1], Mapping)]


class _ModelConversion:
    """The conversion of one model: each setting moves to `new`, or is skipped for a reason."""

    def __init__(
        self, result: ConvertedSettings, path: str, name: str, values: Mapping[str, Any]
    ) -> None:
        self.result, self.path, self.name = result, path, name
        # Version 3 limits the requests of all models by one key.
        shared = {"concurrent_requests": result.project.get("concurrent_requests")}
        settings = {**shared, **dict(flatten(values))}
        self.old = {key: value for key, value in settings.items() if value not in (None, {})}
        self.new: dict[str, Any] = {}

    def convert(self) -> dict[str, Any]:
        """Return the settings of the model in our section `models`."""
        self._convert_setting("model", "model", self.old.pop("model"))
        self._convert_address()
        self._convert_key()
        for old_key, new_key in _NEW_KEYS.items():
            if old_key in self.old:
                value = self.old.pop(old_key)
                if new_key in self.new:
                    self._skip_key(old_key, f"{new_key} is set already")
                else:
                    self._convert_setting(old_key, new_key, value)
        self._convert_parameters()
        for old_key in dict.fromkeys(
            find_parent_key(key, _SKIPPED_OF_MODELS) or key for key in self.old
        ):
            self._skip_key(old_key, _SKIPPED_OF_MODELS.get(old_key, UNKNOWN_KEY))
        return self.new

    def _convert_address(self) -> None:
        """Convert provider and address: Azure, or a server with an OpenAI-compatible API."""
        # Version 2 names the provider in the type, such as `azure_openai_chat`.
        given = self.old.pop("model_provider", None)
        provider = str(given or self.old.get("type") or "openai")
        base, old_key = self.old.pop("api_base", None), "api_base"
        if provider.startswith("azure"):
            self._convert_setting("model_provider" if given else "type", "provider", "azure")
            # Settings for Azure are invalid without an address: write a placeholder.
            base = base or "https://NAME.openai.azure.com"
        elif provider.startswith(("openai", "chat", "embedding")):
            if given:
                self.result.keep_key(
                    f"{self.path}.model_provider", self._new_path("provider"), provider
                )
            if base is None:
                return
        elif base is None:
            base, old_key = RULES["addresses"].get(provider, ""), "model_provider"
        elif provider.startswith("ollama") and "$" not in str(base):
            base = str(base).rstrip("/").removesuffix("/v1") + "/v1"
        if base:
            self._convert_setting(old_key, "base_url", base)
        if "base_url" not in self.new:
            # With a variable, no request goes to OpenAI by default.
            variable = f"GRAPHRAG_API_BASE_{_to_variable_part(self.name)}"
            self.new["base_url"] = f"${{{variable}}}"
            self._skip_key(
                old_key,
                f"set the variable {variable} to the address of an OpenAI-compatible API",
            )

    def _convert_key(self) -> None:
        """Convert the API key: keep a variable, and move a literal key to a variable in `.env`."""
        if {"api_key"} != {self.old.get(k, "api_key") for k in ("auth_method", "auth_type")}:
            self.new["api_key"] = "${AZURE_OPENAI_API_KEY:-}"
        if (key := self.old.pop("api_key", None)) is None:
            return
        names, path = find_variables(key), f"{self.path}.api_key"
        with self.result.record_errors(path):
            shown = variable = str(key)
            if not names or variable != f"${{{names[0]}}}":
                name = f"GRAPHRAG_API_KEY_{_to_variable_part(self.name)}"
                self.result.secrets[name] = str(self.result.project.expand(key))
                variable = f"${{{name}}}"
                shown = f"{variable}; the key is in .env"
            self.new["api_key"] = variable
            self.result.keep_key(path, self._new_path("api_key"), shown)

    def _convert_parameters(self) -> None:
        """Convert the parameters that are sent with each request."""
        for old_key in list(self.old):
            name = old_key.removeprefix("call_args.")
            is_sent = old_key.startswith("call_args.") and "." not in name
            if name == "n" or not (is_sent or old_key in RULES["model_parameters"]):
                continue
            value = self.old.pop(old_key)
            if _SECRET_NAME.search(name):
                self._skip_key(old_key, "this value may be a secret: use api_key")
            else:
                self.new.setdefault("parameters", {})[name] = value
                path = self._new_path(f"parameters.{name}")
                self.result.keep_key(f"{self.path}.{old_key}", path, value)

    def _convert_setting(self, old_key: str, new_key: str, value: Any) -> None:
        """Convert a value to a setting of our model, or record why the value is invalid."""
        old_path = f"{self.path}.{old_key}"
        try:
            expanded = self.result.project.expand(value)
            if new_key in ("model", "deployment", "api_version"):
                expanded = str(expanded)
            trial = {"model": "m", "context_window": 1 << 30, new_key: expanded}
            if new_key == "provider":
                trial["base_url"] = "https://x"
            # An address may contain an API key, which must not be shown.
            check_value(
                ModelSettings, trial, self._new_path(new_key), is_shown=new_key != "base_url"
            )
        except ConversionError as error:
            if isinstance(error, UnsetVariableError) and new_key in _IDENTIFYING_KEYS:
                self.new[new_key] = value
                self.result.keep_key(
                    old_path, self._new_path(new_key), f"{value}, which is not set"
                )
            else:
                self.result.skip_key(old_path, error)
            return
        if new_key == "max_output_tokens" and expanded >= 128_000:
            self.new["context_window"] = int(expanded) + 128_000
        self.new[new_key] = value if find_variables(value) else escape_dollars(expanded)
        self.result.keep_key(old_path, self._new_path(new_key), self.new[new_key])

    def _skip_key(self, old_key: str, why: object) -> None:
        self.result.skip_key(f"{self.path}.{old_key}", why)

    def _new_path(self, new_key: str) -> str:
        return f"models.{self.name}.{new_key}"


def _to_variable_part(name: str) -> str:
    """Convert the name of a model to capital letters that fit into a variable name."""
    return re.sub(r"\W", "_", name.upper(), flags=re.ASCII)

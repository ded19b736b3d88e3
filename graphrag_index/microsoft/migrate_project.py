"""The settings, `.env` and prompts of a Microsoft GraphRAG project.

A prompt of Microsoft GraphRAG contains the data, through `{name}` fields of Python's str.format.
Our prompts are instructions, and the data follows them. So the conversion replaces a data field by
words that refer to the data, a settings field by our `{{name}}`, and doubled braces by single ones.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter, Template
from typing import Any

from pydantic import ValidationError

from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.project_settings import read_env_file
from graphrag_index.schema.settings.section import (
    describe_validation_error,
    read_text_file,
    read_yaml,
)
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.normalize import fit_line

# Rules of the conversion; the comments in `migrate_keys.yaml` describe the sections.
RULES = read_lists("graphrag_index/microsoft/migrate_keys")


def invert_section(section: str) -> dict[str, str]:
    """Invert a section of `RULES`: map each Microsoft key to our key or to a reason."""
    return {old_key: new_key for new_key, keys in RULES[section].items() for old_key in keys}


# By Microsoft's key: the name of our prompt, or the reason why a prompt is not converted.
PROMPT_KEYS = {key: name for name, prompt in RULES["prompts"].items() for key in prompt["keys"]}
SKIPPED_PROMPTS = invert_section("skipped_prompts")
# A field of our prompts, such as `{{max_words}}`.
_PROMPT_FIELD = re.compile(r"\{\{(\w+)\}\}")
# The reason why a key that `migrate_keys.yaml` does not list is not converted.
UNKNOWN_KEY = "this key is not known to this program"
_SETTINGS_FILES = ("settings.yaml", "settings.yml", "settings.json")
# `$$`, `$NAME` or `${NAME}`: the syntax of Python's string.Template.
_VARIABLE = re.compile(r"\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
# Private-use characters that replace `${`, `}` and `$$` while YAML is parsed.
_OPEN, _CLOSE, _DOLLAR = "\ue0f0", "\ue0f1", "\ue0f2"
_MARKED_VARIABLE = re.compile(f"{_OPEN}([A-Za-z0-9_]+){_CLOSE}")
_MAX_VALUE_COLUMNS = 80  # maximum terminal columns of a value in a message


class ConversionError(Exception):
    """A setting or prompt that cannot be converted; the message is the reason."""


class UnsetVariableError(ConversionError):
    """A setting that uses a variable without a value."""


@dataclass(frozen=True)
class MicrosoftProject:
    """The settings of a Microsoft GraphRAG project, before variables are expanded.

    As in our settings, a variable in `values` is `${NAME}`, and `$$` is a dollar sign.
    `variables` come from the project's `.env`. `environment` also has the environment variables of
    the process, which override `.env`.
    """

    root: Path
    path: Path
    version: int
    values: Mapping[str, Any]
    variables: Mapping[str, str] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)

    def expand(self, value: Any) -> Any:
        """Expand the variables in a value; parse the text as YAML if it has any variable."""
        if isinstance(value, list):
            return [self.expand(part) for part in value]
        if isinstance(value, dict):
            return {key: self.expand(part) for key, part in value.items()}
        if not isinstance(value, str) or "$" not in value:
            return value
        try:
            text = Template(value).substitute(self.environment)
        except KeyError as error:
            message = f"the value uses the variable {error.args[0]}, which is not set"
            raise UnsetVariableError(message) from None
        try:
            return read_yaml(text) if find_variables(value) else text
        except ValueError:
            return text

    def get_expanded(self, *keys: str) -> Any:
        """Return the expanded value of the first key that has one; None if a variable is unset."""
        try:
            return self.expand(self.get(*keys))
        except UnsetVariableError:
            return None

    def all_values(self) -> Iterator[tuple[str, Any]]:
        """Yield dotted keys and their values in file order; skip empty values."""
        return (
            (key, value) for key, value in flatten(self.values) if value not in (None, [], {}, "")
        )

    def get(self, *keys: str) -> Any:
        """Return the value of the first dotted key that has one; None if no key has."""
        for key in keys:
            value: Any = self.values
            for part in key.split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
            if value is not None:
                return value
        return None


@dataclass
class ConvertedSettings:
    """The converted settings, and a report on each key of the Microsoft settings."""

    project: MicrosoftProject = field(repr=False)
    values: dict[str, Any] = field(default_factory=dict)
    # API keys by variable name; they are written into `.env`.
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    # Our model name by Microsoft's model name.
    names: dict[str, str] = field(default_factory=dict)
    # `kept`: Microsoft's key, and our key with its value. `skipped`: Microsoft's key, and a reason.
    kept: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def keep_key(self, old_key: str, new_key: str, value: object) -> None:
        self.kept.append((old_key, f"{new_key}: {value}"))

    def skip_key(self, old_key: str, why: object) -> None:
        self.skipped.append((old_key, str(why)))

    @contextmanager
    def record_errors(self, old_key: str) -> Iterator[None]:
        """Catch a `ConversionError` and record it as the reason for leaving out a key."""
        try:
            yield
        except ConversionError as error:
            self.skip_key(old_key, error)


@dataclass
class ConvertedPrompts:
    """The converted prompts by our prompt names, and reasons why prompts are not converted."""

    texts: dict[str, str] = field(default_factory=dict)
    # By our prompt name: Microsoft's key with the file name.
    sources: dict[str, str] = field(default_factory=dict)
    # By Microsoft's setting key: the reason why the prompt is not converted.
    skipped: dict[str, str] = field(default_factory=dict)


def read_project(root: Path) -> MicrosoftProject:
    """Read the settings of a project of Microsoft GraphRAG."""
    if not root.is_dir():
        raise SettingsError(
            f"{root} is not a folder: name the folder with the settings.yaml of Microsoft GraphRAG."
        )
    path = next((root / name for name in _SETTINGS_FILES if (root / name).is_file()), None)
    if path is None:
        raise SettingsError(
            f"There is no settings.yaml, settings.yml or settings.json in {root}: name the folder "
            "of a project of Microsoft GraphRAG."
        )
    values, variables = _read_settings_file(path), read_env_file(root / ".env")
    environment = {**variables, **os.environ}
    return MicrosoftProject(
        root, path, _detect_version(values, path), values, variables, environment
    )


def find_variables(value: object) -> list[str]:
    """Return the names of the environment variables in a string; [] for any other value."""
    return Template(value).get_identifiers() if isinstance(value, str) else []


def check_value(model: Any, values: Mapping[str, Any], key: str, *, is_shown: bool = True) -> None:
    """Raise ConversionError if values are invalid; show them in the message if `is_shown`."""
    try:
        model.model_validate(values)
    except ValidationError as error:
        why = describe_validation_error(error, model, "").partition(": ")[2].rstrip(".")
        raise ConversionError(
            f"{key} cannot have this value" + (f" ({why})" if is_shown else "")
        ) from None


def format_value(value: Any) -> str:
    """Format a value for a message, and shorten a long text."""
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return fit_line(str(value), _MAX_VALUE_COLUMNS)


def escape_dollars(value: Any) -> Any:
    """Double the dollar signs of a value, since `$$` is a dollar sign in our settings."""
    if isinstance(value, list):
        return [escape_dollars(part) for part in value]
    return value.replace("$", "$$") if isinstance(value, str) else value


def flatten(values: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted keys and values of nested mappings."""
    if isinstance(values, Mapping) and values:
        for name, part in values.items():
            yield from flatten(part, f"{key}.{name}" if key else str(name))
    elif key:
        yield key, values


def find_parent_key(key: str, keys: Any) -> str | None:
    """Return the longest of `keys` that equals this dotted key or is a parent of it."""
    parts = key.split(".")
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((name for name in names if name in keys), None)


def _read_settings_file(path: Path) -> dict[str, Any]:
    marked = _VARIABLE.sub(
        lambda found: _DOLLAR if found[1] else f"{_OPEN}{found[2] or found[3]}{_CLOSE}",
        read_text_file(path) or "",
    )
    try:
        # JSON is YAML too.
        values = read_yaml(marked)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path} is not valid YAML: {_restore_text(str(error))}.") from error
    if not isinstance(values, dict):
        raise SettingsError(f"{path} is empty or holds no settings: nothing can be converted.")
    unmarked: dict[str, Any] = _restore_text(values)
    return unmarked


def _restore_text(value: Any) -> Any:
    """Replace the private-use characters: variables become `${NAME}`, dollar signs `$$`."""
    if isinstance(value, dict):
        return {str(_restore_text(key)): _restore_text(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_restore_text(part) for part in value]
    if not isinstance(value, str):
        return value
    # A dollar sign that begins no variable name, such as `$5`, is literal.
    value = value.replace("$", "$$").replace(_DOLLAR, "$$")
    return _MARKED_VARIABLE.sub(r"${\1}", value)


def _detect_version(values: Mapping[str, Any], path: Path) -> int:
    """Detect the version of Microsoft GraphRAG from the setting keys."""
    if "load_documents" in values or "create_text_units" in values:
        raise SettingsError(
            f"{path} has settings of this program: --from takes a project of Microsoft GraphRAG."
        )
    if isinstance(values.get("completion_models") or values.get("embedding_models"), dict):
        return 3
    if isinstance(values.get("models"), dict):
        return 2
    if early := [key for key in RULES["early_keys"] if key in values]:
        raise SettingsError(
            f"{path} has {early[0]}, settings of Microsoft GraphRAG 0 or 1, which are not "
            "supported: write settings of version 3 with `graphrag init --force`, or a new project "
            "with `graphrag-index init`."
        )
    for version, keys in RULES["versions"].items():
        if any(key in values for key in keys):
            return int(version)
    some = ", ".join(list(values)[:5]) or "nothing"
    raise SettingsError(
        f"{path} has none of the keys of Microsoft GraphRAG 2 or 3, such as completion_models or "
        f"models; it has: {some}."
    )


def read_prompts(project: MicrosoftProject) -> ConvertedPrompts:
    """Read the prompt files that the settings name, and convert them where possible."""
    prompts = ConvertedPrompts()
    numbers = {}
    for field_name, (key, default) in RULES["prompt_numbers"].items():
        number = project.get_expanded(key)
        numbers[field_name] = str(number if isinstance(number, int) else default)
    for key in (*PROMPT_KEYS, *SKIPPED_PROMPTS):
        value = project.get(key)
        if value is None:
            continue
        try:
            path = Path(project.root / str(project.expand(value)))
            if key in SKIPPED_PROMPTS:
                raise ConversionError(SKIPPED_PROMPTS[key])
            name = PROMPT_KEYS[key]
            if name in prompts.texts:
                raise ConversionError(f"the prompt {name} was already converted from another file")
            text = path.read_text(encoding="utf-8-sig")
            prompts.texts[name] = convert_prompt(text, name, numbers)
            prompts.sources[name] = f"{key}: {value}"
        except FileNotFoundError:
            prompts.skipped[key] = f"there is no file {value}"
        except ConversionError as error:
            prompts.skipped[key] = str(error)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise SettingsError(f"The prompt {path} cannot be read: {why}.") from error
    return prompts


def convert_prompt(text: str, name: str, numbers: Mapping[str, str]) -> str:
    """Convert a prompt of Microsoft GraphRAG to our prompt of this name."""
    replacements: Mapping[str, str] = RULES["prompts"][name]["fields"]
    try:
        parts = list(Formatter().parse(text))
    except ValueError as error:
        raise ConversionError(f"the braces are not valid for str.format ({error})") from None
    whole = ""
    for literal, key, form, conversion in parts:
        whole += literal
        if key is None:
            continue
        if key not in replacements or form or conversion:
            known = ", ".join(f"{{{other}}}" for other in replacements)
            raise ConversionError(f"the prompt has the unknown field {{{key}}}; known: {known}")
        whole += numbers.get(replacements[key], replacements[key])
    for found in _PROMPT_FIELD.finditer(whole):
        if found.group() not in replacements.values():
            raise ConversionError(f"the prompt has {found.group()}, a field of our prompts")
    added = [RULES["no_record"]] if RULES["prompts"][name].get("answers") else []
    return "\n".join([f"{whole.rstrip()}\n", *added, RULES["no_instructions"], ""])

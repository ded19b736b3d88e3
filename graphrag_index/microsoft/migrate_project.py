"""The settings file and the `.env` of a project of Microsoft GraphRAG, read and not expanded."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.settings import read_env_file
from graphrag_index.schema.yaml_text import read_yaml

# In the order in which they are looked for there.
NAMES = ("settings.yaml", "settings.yml", "settings.json")
# Keys by which a version is known, the newest first.
_VERSIONS = {
    3: ("completion_models", "embedding_models", "input_storage", "output_storage", "chunking"),
    2: ("models", "extract_graph", "extract_claims", "output", "extract_graph_nlp"),
    1: ("llm", "embeddings", "entity_extraction", "claim_extraction", "storage"),
}
# A dollar sign, or a variable with braces or without, as Python's string.Template reads them.
_VARIABLE = re.compile(r"\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
# Stand for a variable, and for a dollar sign, while YAML is read: no file has these characters.
_OPEN, _CLOSE, _DOLLAR = "\ue0f0", "\ue0f1", "\ue0f2"
_MARKED = re.compile(f"{_OPEN}([A-Za-z0-9_]+){_CLOSE}")


class UnsetVariableError(Exception):
    """A value uses a variable that is not set; the message is its name."""


@dataclass(frozen=True)
class MicrosoftProject:
    """A project as it lies there.

    `values` are those of its settings, with variables as `${NAME}` and a dollar sign as `$$`,
    as our settings write them. `variables` are those of its `.env`, and `environment` those
    that a value is expanded by: the environment goes first, as there.
    """

    root: Path
    path: Path
    version: int
    values: Mapping[str, Any]
    variables: Mapping[str, str] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)

    def expand(self, value: Any) -> Any:
        """Return a value with its variables replaced, typed as YAML types it.

        Raises
        ------
        UnsetVariableError
            One of them is not set.
        """
        if isinstance(value, list):
            return [self.expand(part) for part in value]
        if isinstance(value, dict):
            return {key: self.expand(part) for key, part in value.items()}
        if not isinstance(value, str) or "$" not in value:
            return value

        def replaced(found: re.Match[str]) -> str:
            name = found[2] or found[3]
            if name and name not in self.environment:
                raise UnsetVariableError(name)
            return self.environment[name] if name else "$"

        text = _VARIABLE.sub(replaced, value)
        if references(value):
            try:
                return read_yaml(text)
            except ValueError:
                return text
        return text

    def leaves(self) -> Iterator[tuple[str, Any]]:
        """Give each key that has a value, with dots, in the order of the file."""
        yield from _leaves("", self.values)

    def get(self, *keys: str) -> Any:
        """Return the first of some keys, with dots, that has a value; else None."""
        for key in keys:
            value: Any = self.values
            for part in key.split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
            if value is not None:
                return value
        return None


def read_project(root: Path) -> MicrosoftProject:
    """Read the settings of a project of Microsoft GraphRAG.

    Raises
    ------
    SettingsError
        There are none, they are broken, or they are not those of Microsoft GraphRAG.
    """
    if not root.is_dir():
        raise SettingsError(
            f"{root} is no folder: name the one with the settings.yaml of Microsoft GraphRAG."
        )
    path = next((root / name for name in NAMES if (root / name).is_file()), None)
    if path is None:
        raise SettingsError(
            f"There is no settings.yaml, settings.yml or settings.json in {root}: name the folder "
            "of a project of Microsoft GraphRAG."
        )
    values = _parsed(path)
    variables = read_env_file(root / ".env")
    version = _version(values, path)
    return MicrosoftProject(root, path, version, values, variables, {**variables, **os.environ})


def references(value: object) -> list[str]:
    """Return the names of the variables that a text uses."""
    found = _VARIABLE.findall(value) if isinstance(value, str) else []
    return [bare or braced for _, bare, braced in found if bare or braced]


def _parsed(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8: save it in that encoding.") from error
    marked = _VARIABLE.sub(
        lambda found: _DOLLAR if found[1] else f"{_OPEN}{found[2] or found[3]}{_CLOSE}", text
    )
    try:
        values = json.loads(marked) if path.suffix == ".json" else read_yaml(marked)
    except (ValueError, RecursionError) as error:
        kind = "JSON" if path.suffix == ".json" else "YAML"
        raise SettingsError(f"{path} is not valid {kind}: {_unmarked(str(error))}.") from error
    if not isinstance(values, dict):
        raise SettingsError(f"{path} is empty or holds no settings: nothing can be taken from it.")
    read: dict[str, Any] = _unmarked(values)
    return read


def _unmarked(value: Any) -> Any:
    """Write variables and dollar signs as our settings have them."""
    if isinstance(value, dict):
        return {str(_unmarked(key)): _unmarked(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_unmarked(part) for part in value]
    if not isinstance(value, str):
        return value
    # What is no variable there, such as a dollar sign before a digit, is none here.
    value = value.replace("$", "$$").replace(_DOLLAR, "$$")
    return _MARKED.sub(r"${\1}", value)


def _version(values: Mapping[str, Any], path: Path) -> int:
    """Tell by its keys which version wrote a file."""
    if "load_documents" in values or "create_text_units" in values:
        raise SettingsError(
            f"{path} is of this program already: --from takes a project of Microsoft GraphRAG."
        )
    if isinstance(values.get("completion_models") or values.get("embedding_models"), dict):
        return 3
    if isinstance(values.get("models"), dict) and "llm" not in values:
        return 2
    found = {number: sum(key in values for key in keys) for number, keys in _VERSIONS.items()}
    best = max(found, key=lambda number: found[number])
    if not found[best]:
        some = ", ".join(list(values)[:5]) or "nothing"
        raise SettingsError(
            f"{path} has none of the keys of Microsoft GraphRAG 1, 2 or 3, such as "
            f"completion_models, models or llm; it has: {some}."
        )
    return best


def _leaves(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for name, part in value.items():
            yield from _leaves(f"{key}.{name}" if key else str(name), part)
    elif key:
        yield key, value


# Why a key is not carried over that stands in no table of ours.
UNKNOWN = "it is not known to this program"


@dataclass(frozen=True)
class Line:
    """What became of one setting: ours and its value as shown, or why it has none."""

    theirs: str
    ours: str = ""
    shown: str = ""
    why: str = ""


@dataclass
class Carried:
    """What is taken over, and what is to be said about it."""

    values: dict[str, Any] = field(default_factory=dict)
    # Keys that stood in the settings themselves, and go into .env.
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    # Names of the models here, by those that they have there.
    names: dict[str, str] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)

    def left(self, theirs: str, why: str) -> None:
        self.lines.append(Line(theirs, why=why))

    def kept(self, theirs: str, ours: str, value: object) -> None:
        self.lines.append(Line(theirs, ours, str(value)))


def shown(value: Any) -> str:
    """Write a value as it is told."""
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    text = " ".join(str(value).split())
    return text if len(text) <= 80 else f"{text[:79]}…"

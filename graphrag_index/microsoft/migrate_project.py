"""The settings and `.env` of a Microsoft GraphRAG project, and what is carried over of them."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.settings import read_env_file
from graphrag_index.schema.yaml_text import read_yaml

# The fate of each setting key; `migrate_keys.yaml` describes its sections.
KEYS: Mapping[str, Any] = read_yaml(
    files("graphrag_index").joinpath("microsoft", "migrate_keys.yaml").read_text(encoding="utf-8")
)
# The reason for a key that no table knows.
UNKNOWN = "it is not known to this program"
_SETTINGS_FILES = ("settings.yaml", "settings.yml", "settings.json")
# Keys that tell the versions apart, the newest first.
_VERSION_KEYS = {
    3: ("completion_models", "embedding_models", "input_storage", "output_storage", "chunking"),
    2: ("models", "extract_graph", "extract_claims", "output", "extract_graph_nlp"),
    1: ("llm", "embeddings", "entity_extraction", "claim_extraction", "storage"),
}
# `$$`, `$NAME` or `${NAME}`, as Python's string.Template reads them.
_VARIABLE = re.compile(r"\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
# Private characters that stand for a variable and a dollar sign while YAML is parsed.
_OPEN, _CLOSE, _DOLLAR = "\ue0f0", "\ue0f1", "\ue0f2"
_MARKED = re.compile(f"{_OPEN}([A-Za-z0-9_]+){_CLOSE}")
_MAX_SHOWN = 80  # characters of a value in a message


class NotCarriedError(Exception):
    """A setting cannot be carried over; the message is the reason."""


class UnsetVariableError(NotCarriedError):
    """A setting uses a variable that is not set."""

    def __init__(self, name: str) -> None:
        super().__init__(f"it uses the variable {name}, which is not set")


@dataclass(frozen=True)
class MicrosoftProject:
    """The settings of a project, unexpanded.

    Strings in `values` write variables as `${NAME}` and a dollar sign as `$$`, as our settings
    do. `variables` come from its `.env`; `environment` adds those of the process, which win.
    """

    root: Path
    path: Path
    version: int
    values: Mapping[str, Any]
    variables: Mapping[str, str] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)

    def expand(self, value: Any) -> Any:
        """Replace the variables in a value, and parse the result as YAML if there were any.

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
        if variables_in(value):
            try:
                return read_yaml(text)
            except ValueError:
                return text
        return text

    def expanded(self, *keys: str) -> Any:
        """Return the first of some keys that has a value, expanded; None if unset."""
        try:
            return self.expand(self.get(*keys))
        except UnsetVariableError:
            return None

    def leaves(self) -> Iterator[tuple[str, Any]]:
        """Yield dotted keys and values in the order of the file, without empty ones."""
        for key, value in flat(self.values):
            if value is not None and value not in ([], {}, ""):
                yield key, value

    def get(self, *keys: str) -> Any:
        """Return the first of some dotted keys that has a value; else None."""
        for key in keys:
            value: Any = self.values
            for part in key.split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
            if value is not None:
                return value
        return None


@dataclass(frozen=True)
class CarriedLine:
    """The fate of one setting: our key and value, or the reason why it has none."""

    theirs: str
    ours: str = ""
    shown: str = ""
    why: str = ""


@dataclass
class Carried:
    """The settings that are carried over, and a line on each."""

    values: dict[str, Any] = field(default_factory=dict)
    # Literal keys, which move into .env.
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    # Our name of each of their models.
    names: dict[str, str] = field(default_factory=dict)
    lines: list[CarriedLine] = field(default_factory=list)

    def left(self, theirs: str, why: object) -> None:
        self.lines.append(CarriedLine(theirs, why=str(why)))

    def kept(self, theirs: str, ours: str, value: object) -> None:
        self.lines.append(CarriedLine(theirs, ours, str(value)))


def read_project(root: Path) -> MicrosoftProject:
    """Read the settings of a project of Microsoft GraphRAG.

    Raises
    ------
    SettingsError
        They are missing, broken, or not those of Microsoft GraphRAG.
    """
    if not root.is_dir():
        raise SettingsError(
            f"{root} is no folder: name the one with the settings.yaml of Microsoft GraphRAG."
        )
    path = next((root / name for name in _SETTINGS_FILES if (root / name).is_file()), None)
    if path is None:
        raise SettingsError(
            f"There is no settings.yaml, settings.yml or settings.json in {root}: name the folder "
            "of a project of Microsoft GraphRAG."
        )
    values = _parse(path)
    variables = read_env_file(root / ".env")
    version = _version(values, path)
    return MicrosoftProject(root, path, version, values, variables, {**variables, **os.environ})


def variables_in(value: object) -> list[str]:
    """Return the names of the variables in a text."""
    found = _VARIABLE.findall(value) if isinstance(value, str) else []
    return [bare or braced for _, bare, braced in found if bare or braced]


def shown(value: Any) -> str:
    """Return a short form of a value for a message."""
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    text = " ".join(str(value).split())
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def escape_dollars(value: Any) -> Any:
    """Double the dollar signs of a literal value, as our settings write them."""
    if isinstance(value, list):
        return [escape_dollars(part) for part in value]
    return value.replace("$", "$$") if isinstance(value, str) else value


def by_their_key(section: str) -> dict[str, list[str]]:
    """Invert a section of `KEYS`: their keys, each with our keys or reasons."""
    found: dict[str, list[str]] = {}
    for ours, keys in KEYS[section].items():
        for theirs in keys:
            found.setdefault(theirs, []).append(ours)
    return found


def flat(values: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted keys and values of nested mappings."""
    if isinstance(values, Mapping) and values:
        for name, part in values.items():
            yield from flat(part, f"{key}.{name}" if key else str(name))
    elif key:
        yield key, values


def prefix_in(key: str, keys: Any) -> str | None:
    """Return the longest of `keys` that is this dotted key or stands above it."""
    parts = key.split(".")
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((name for name in names if name in keys), None)


def _parse(path: Path) -> dict[str, Any]:
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
        raise SettingsError(f"{path} is not valid {kind}: {_unmark(str(error))}.") from error
    if not isinstance(values, dict):
        raise SettingsError(f"{path} is empty or holds no settings: nothing can be taken from it.")
    unmarked: dict[str, Any] = _unmark(values)
    return unmarked


def _unmark(value: Any) -> Any:
    """Write marked variables as `${NAME}`, and dollar signs as `$$`."""
    if isinstance(value, dict):
        return {str(_unmark(key)): _unmark(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_unmark(part) for part in value]
    if not isinstance(value, str):
        return value
    # A dollar sign that begins no variable, such as one before a digit, is literal.
    value = value.replace("$", "$$").replace(_DOLLAR, "$$")
    return _MARKED.sub(r"${\1}", value)


def _version(values: Mapping[str, Any], path: Path) -> int:
    """Detect the version by its keys."""
    if "load_documents" in values or "create_text_units" in values:
        raise SettingsError(
            f"{path} is of this program already: --from takes a project of Microsoft GraphRAG."
        )
    if isinstance(values.get("completion_models") or values.get("embedding_models"), dict):
        return 3
    if isinstance(values.get("models"), dict) and "llm" not in values:
        return 2
    found = {number: sum(key in values for key in keys) for number, keys in _VERSION_KEYS.items()}
    best = max(found, key=lambda number: found[number])
    if not found[best]:
        some = ", ".join(list(values)[:5]) or "nothing"
        raise SettingsError(
            f"{path} has none of the keys of Microsoft GraphRAG 1, 2 or 3, such as "
            f"completion_models, models or llm; it has: {some}."
        )
    return best

"""Base class of sections, declaration of settings, and readable errors for invalid settings."""

import difflib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Self, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from yaml.constructor import SafeConstructor

from graphrag_index.errors import SettingsError

Share = Annotated[float, Field(ge=0, le=1)]
Similarity = Annotated[float, Field(ge=-1, le=1)]
Tokens = Annotated[int, Field(ge=200, le=1_000_000)]


class Section(BaseModel):
    """Base class of the immutable sections of `settings.yaml`; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return a copy in which some values are replaced; all values are validated."""
        try:
            return type(self).model_validate({**self.model_dump(), **values})
        except ValidationError as error:
            name = type(self).__name__
            raise SettingsError(describe_validation_error(error, type(self), name)) from None


def setting(default: Any, description: str, **limits: Any) -> Any:
    """Declare a setting; `limits` are the constraints of pydantic, such as `ge` and `le`."""
    return Field(default, description=description, **limits)


def describe_validation_error(error: ValidationError, model: type[BaseModel], where: str) -> str:
    """Return pydantic's errors as sentences; suggest the most similar key for an unknown key."""
    lines = []
    for mistake in error.errors():
        key = ".".join(str(part) for part in mistake["loc"])
        place = f"{where}: {key}" if key else where
        if mistake["type"] == "extra_forbidden":
            known = _known_keys(model, mistake["loc"][:-1])
            close = difflib.get_close_matches(str(mistake["loc"][-1]), known, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}."
            lines.append(f"{where}: unknown key {key!r}; {hint}")
        elif mistake["type"] == "value_error":
            lines.append(f"{place}: {mistake['ctx']['error']}.")
        elif mistake["type"] == "missing":
            lines.append(f"{place} is missing.")
        elif mistake["type"] in ("model_type", "dict_type"):
            lines.append(f"{place} is {mistake['input']!r}: it must hold keys and their values.")
        else:
            message = mistake["msg"][0].lower() + mistake["msg"][1:]
            lines.append(f"{place} is {mistake['input']!r}: {message}.")
    return "\n".join(lines)


def _known_keys(model: type[BaseModel], location: tuple[str | int, ...]) -> list[str]:
    """Return the keys of the section at a location; the section may be optional or in a dict."""
    annotation: Any = model
    for part in location:
        if get_origin(annotation) is dict:
            annotation = get_args(annotation)[1]
        else:
            annotation = annotation.model_fields[str(part)].annotation
        if NoneType in get_args(annotation):
            annotation = get_args(annotation)[0]
        if get_origin(annotation) is not dict and not hasattr(annotation, "model_fields"):
            return []
    return list(annotation.model_fields)


# Maximum size of a file in bytes. A person cannot have written a larger file.
MAX_FILE_BYTES = 50_000_000
# Maximum depth of nested values, and number of values. By an alias a value may contain itself.
_MAX_DEPTH = 50
_MAX_VALUES = 100_000


class _UniqueKeys(SafeConstructor):
    """Constructor that rejects duplicate keys; the base class would silently use the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} occurs twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class _StrictLoader(_UniqueKeys, yaml.CSafeLoader):
    """YAML loader in C, ten times as fast as the one in Python."""


class _ExplainingLoader(_UniqueKeys, yaml.SafeLoader):
    """YAML loader whose errors show the line in which something is wrong."""


def _load_yaml(text: str) -> Any:
    # The parser in C takes a tab where the one in Python, which edits files, refuses it.
    if "\t" not in text:
        with suppress(yaml.YAMLError):
            return yaml.load(text, _StrictLoader)
    return yaml.load(text, _ExplainingLoader)


def read_yaml(text: str) -> Any:
    """Parse YAML that consists of plain values, lists and mappings.

    Raises ValueError if the text is not valid YAML, if it has a duplicate key or a null
    character, if it is nested too deeply, or if a value contains itself. The caller adds the
    beginning of the sentence to the message.
    """
    try:
        value = _load_yaml(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    # The YAML library raises ValueError for an impossible date.
    except (yaml.YAMLError, ValueError) as error:
        # The library writes this for any text; the caller adds the name of the file.
        reason = " ".join(str(error).split()).replace('in "<unicode string>", ', "in ")
        raise ValueError(reason.rstrip(".")) from error
    except (LookupError, AttributeError, TypeError) as error:
        raise ValueError("a value does not fit the tag before it, such as `!!int`") from error
    _check_depth(value)
    return value


def read_settings_yaml(text: str, where: str) -> Any:
    """Parse YAML; raise SettingsError that names the source, the file or option `where`."""
    try:
        return read_yaml(text)
    except ValueError as error:
        raise SettingsError(f"{where} is not valid YAML: {error}.") from error


def read_text_file(path: Path) -> str | None:
    """Read a file that a person writes; None if it is missing.

    Raises SettingsError if the file cannot be read, is not UTF-8, or is too large.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SettingsError(f"{path} is larger than {MAX_FILE_BYTES:,} bytes: check the file.")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8: save it in that encoding.") from error


def _check_depth(whole: Any) -> None:
    """Check all values without recursion, since a value may contain itself by an alias."""
    left, n_values = [(whole, 0)], 0
    while left:
        value, depth = left.pop()
        n_values += 1
        if depth > _MAX_DEPTH:
            raise ValueError("it is nested too deeply, or an alias refers to a value around it")
        if n_values > _MAX_VALUES:
            raise ValueError(f"it has more than {_MAX_VALUES:,} values")
        if isinstance(value, str) and "\0" in value:
            raise ValueError(f"{value!r} has a null character, which no name or text can have")
        if isinstance(value, dict):
            left += [(part, depth + 1) for item in value.items() for part in item]
        elif isinstance(value, list):
            left += [(part, depth + 1) for part in value]

"""The base class of all sections, and messages for invalid values."""

import difflib
from collections.abc import Mapping
from types import NoneType
from typing import Annotated, Any, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphrag_index.errors import SettingsError

Share = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    """A part of `settings.yaml`: immutable, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with some values replaced, validated like all others."""
        try:
            return type(self).model_validate({**self.model_dump(), **values})
        except ValidationError as error:
            name = type(self).__name__
            raise SettingsError(describe_validation_error(error, type(self), name)) from None


def check_encoding(name: str, examples: str) -> str:
    """Return the name of a text encoding, if Python knows it."""
    try:
        "".encode(name)
    except LookupError:
        raise ValueError(f"{name!r} is no encoding; try {examples}") from None
    return name


def describe_validation_error(error: ValidationError, model: type[BaseModel], where: str) -> str:
    """Turn the errors of pydantic into sentences that name the key and the closest known one."""
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
    """Return the keys of the section at a location; it may be optional or in a mapping."""
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

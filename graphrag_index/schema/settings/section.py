"""The base of all settings: strict, and never changed once read."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from graphrag_index.errors import SettingsError


class Section(BaseModel):
    """A part of `settings.yaml`; keys that it does not know are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return the section with some values replaced, and checked like all others."""
        from graphrag_index.schema.settings.settings import describe_validation_error

        try:
            return type(self).model_validate({**self.model_dump(), **values})
        except ValidationError as error:
            name = type(self).__name__
            raise SettingsError(describe_validation_error(error, type(self), name)) from None

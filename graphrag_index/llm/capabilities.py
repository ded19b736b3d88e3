"""What an endpoint was found to support: parameters, and the ways to make a reply fit."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphrag_index.schema.settings.models import ModelSettings

# The ways to make a reply fit, best first.
RESPONSE_FORMATS = ("json_schema", "tool", "json_object", "text")
# Parameters of ours that an endpoint may not know, and what each is replaced by.
OPTIONAL = {
    "max_completion_tokens": "max_tokens",
    "temperature": None,
    "stream_options": None,
    "stream": None,
}


@dataclass(frozen=True)
class Capabilities:
    """What an endpoint was found to support; remembered in the ledger."""

    response_format: str
    dropped: tuple[str, ...] = ()

    def json(self) -> str:
        return json.dumps({"response_format": self.response_format, "dropped": list(self.dropped)})

    @classmethod
    def of(cls, settings: ModelSettings, known: str | None) -> "Capabilities":
        found: Any = (
            json.loads(known) if known else {"response_format": RESPONSE_FORMATS[0], "dropped": []}
        )
        response_format: str = settings.structured
        return cls(
            found["response_format"] if response_format == "auto" else response_format,
            tuple(found["dropped"]),
        )

    @staticmethod
    def cache_key(settings: ModelSettings) -> str:
        """Return the name under which the ledger keeps them."""
        return f"endpoint capabilities: {settings.model} at {settings.base_url}"

    def without(self, name: str) -> "Capabilities":
        """Return them without a parameter that the endpoint does not know."""
        return replace(self, dropped=(*self.dropped, name))

    def lower(self) -> "Capabilities | None":
        """Return them with the next best way to make a reply fit; None below the last."""
        if self.response_format == RESPONSE_FORMATS[-1]:
            return None
        return replace(
            self, response_format=RESPONSE_FORMATS[RESPONSE_FORMATS.index(self.response_format) + 1]
        )

    def refused(self, text: str, body: Mapping[str, Any], settings: ModelSettings) -> str | None:
        """Return the parameter of a request that an error, in lower case, is about, if any."""
        for name in (*OPTIONAL, *OPTIONAL.values()):
            if name and name in body and name in text and name not in self.dropped:
                return name
        for name in settings.parameters:
            if name in body and does_not_know(text, name.lower()):
                return name
        return None


def is_about_format(text: str, body: Mapping[str, Any]) -> bool:
    """Tell whether an error, in lower case, is about the format that a request asks for."""
    if "response_format" not in body and "tools" not in body:
        return False
    words = (
        "response_format",
        "json_schema",
        "json_object",
        "schema",
        "tool",
        "function",
        "format",
    )
    return any(word in text for word in words) or "unsupported" in text or "not support" in text


def does_not_know(text: str, name: str) -> bool:
    """Tell whether an error is about a parameter itself; a wrong value is the user's to mend."""
    words = ("unsupported", "not support", "unrecognized", "unknown", "unexpected", "extra")
    is_named = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
    return is_named and "value" not in text and any(word in text for word in words)

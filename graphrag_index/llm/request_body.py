"""Bodies of requests, adapted to the response formats and parameters of the server."""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphrag_index.llm.call_errors import UnsupportedError
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.request import Message, ReplyFormat
from graphrag_index.schema.settings.models import ModelSettings

logger = logging.getLogger(__name__)

# Ways to make a reply fit its format, best first.
RESPONSE_FORMATS = ("json_schema", "tool", "json_object", "text")
# Parameters that a server may not know, and the replacement of each.
OPTIONAL = {
    "max_completion_tokens": "max_tokens",
    "temperature": None,
    "stream_options": None,
    "stream": None,
}
# So many invalid replies, and no valid one, show that a format is accepted but ignored.
MAX_IGNORED = 3


@dataclass(frozen=True)
class Capabilities:
    """The response format and the parameters that a server supports, kept in the ledger."""

    response_format: str
    dropped: tuple[str, ...] = ()

    def json(self) -> str:
        """Serialize for the ledger."""
        return json.dumps({"response_format": self.response_format, "dropped": list(self.dropped)})

    @classmethod
    def of(cls, settings: ModelSettings, known: str | None) -> "Capabilities":
        """Deserialize; without a text assume full support. A setting overrides the format."""
        found: Any = json.loads(known) if known else {"response_format": RESPONSE_FORMATS[0]}
        chosen: str = settings.structured
        return cls(
            found["response_format"] if chosen == "auto" else chosen,
            tuple(found.get("dropped", ())),
        )

    @staticmethod
    def cache_key(settings: ModelSettings) -> str:
        """Return the name under which the ledger keeps them."""
        return f"endpoint capabilities: {settings.model} at {settings.base_url}"

    def without(self, name: str) -> "Capabilities":
        """Return a copy without a parameter that the server does not know."""
        return replace(self, dropped=(*self.dropped, name))

    def fallback(self) -> "Capabilities | None":
        """Return a copy with the next best response format; None after the last."""
        if self.response_format == RESPONSE_FORMATS[-1]:
            return None
        at = RESPONSE_FORMATS.index(self.response_format)
        return replace(self, response_format=RESPONSE_FORMATS[at + 1])

    def refused(self, text: str, body: Mapping[str, Any], settings: ModelSettings) -> str | None:
        """Return the parameter that an error message (in lower case) is about, if any."""
        for name in (*OPTIONAL, *OPTIONAL.values()):
            if name and name in body and name in text and name not in self.dropped:
                return name
        for name in settings.parameters:
            if name in body and _is_unknown(text, name.lower()):
                return name
        return None


class RequestWriter:
    """Writer of request bodies for one model, without unsupported parameters."""

    def __init__(self, name: str, settings: ModelSettings, ledger: Ledger) -> None:
        self.name, self.settings, self._ledger = name, settings, ledger
        self._cache_key = Capabilities.cache_key(settings)
        self.capabilities = Capabilities.of(settings, ledger.get_meta(self._cache_key))
        self._complies, self._n_ignored = False, 0

    @property
    def model(self) -> str:
        """The name by which the server knows the model."""
        return self.settings.deployment or self.settings.model

    def chat_body(
        self,
        messages: Sequence[Message],
        format: ReplyFormat,
        max_tokens: int,
        stream: bool = False,
    ) -> dict[str, Any]:
        """Write the body of a chat request."""
        settings = self.settings
        response_format = self.capabilities.response_format if format.schema else "plain"
        body: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        body["max_completion_tokens"] = max_tokens
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        if stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        for name in self.capabilities.dropped:
            value = body.pop(name, None)
            other = OPTIONAL.get(name)
            if other is not None and value is not None:
                body[other] = value
        own = settings.parameters.items()
        body.update({name: value for name, value in own if name not in self.capabilities.dropped})
        if response_format == "json_schema":
            schema = {"name": format.name, "strict": True, "schema": format.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif response_format == "tool":
            function = {"name": format.name, "parameters": format.schema}
            body["tools"] = [{"type": "function", "function": function}]
            body["tool_choice"] = {"type": "function", "function": {"name": format.name}}
        elif response_format == "json_object":
            body["response_format"] = {"type": "json_object"}
        if response_format in ("json_object", "text"):
            body["messages"] = _with_instructions(messages, format)
        return body

    def embedding_body(self, texts: Sequence[str]) -> dict[str, Any]:
        """Write the body of a request for vectors."""
        body: dict[str, Any] = {"model": self.model, "input": list(texts)}
        if self.settings.dimensions and "dimensions" not in self.capabilities.dropped:
            body["dimensions"] = self.settings.dimensions
        if "encoding_format" not in self.capabilities.dropped:
            body["encoding_format"] = "base64"
        return body

    def adapt(self, error: UnsupportedError, body: Mapping[str, Any], sent: Capabilities) -> bool:
        """Drop the unsupported part of a chat request; False if the request itself is at fault.

        `sent` are the capabilities at the time of sending: another call may have learnt more.
        """
        if self.capabilities != sent:
            return True
        text = str(error).lower()
        name = self.capabilities.refused(text, body, self.settings)
        if name is not None:
            if name in self.settings.parameters:
                logger.warning(
                    "Model %s: %s does not know the parameter %s, which is left out from now on",
                    self.name,
                    self.settings.base_url or "api.openai.com",
                    name,
                )
            self._learn(self.capabilities.without(name))
            return True
        if self.settings.structured != "auto" or not _is_about_format(text, body):
            return False
        return self._fall_back()

    def adapt_embedding(self, error: UnsupportedError, body: Mapping[str, Any]) -> bool:
        """Drop the unsupported parameter of a request for vectors; False if there is none."""
        text = str(error).lower()
        # A model that cannot shorten its vectors may have the wanted dimension all the same.
        name = "dimensions" if _is_unknown(text, "dimensions") else "encoding_format"
        if name in text and name in body:
            self._learn(self.capabilities.without(name))
            return True
        return False

    def note_compliance(self, is_valid: bool, response_format: str) -> None:
        """Learn from the first reply to a request whether the server enforces the format.

        Some servers accept a schema and ignore it; their model is not told the format.
        """
        self._complies = self._complies or is_valid
        is_current = response_format == self.capabilities.response_format
        if self._complies or response_format not in RESPONSE_FORMATS[:2] or not is_current:
            return
        self._n_ignored += 1
        if self._n_ignored == MAX_IGNORED and self.settings.structured == "auto":
            self._n_ignored = 0
            self._fall_back()

    def _fall_back(self) -> bool:
        """Ask for the next best response format from now on; False if there is none."""
        fallback = self.capabilities.fallback()
        if fallback is not None:
            self._learn(fallback)
        return fallback is not None

    def _learn(self, capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self._ledger.set_meta(self._cache_key, capabilities.json())


def encode(body: Mapping[str, Any]) -> bytes:
    """Encode a body as JSON; a lone surrogate, which UTF-8 cannot hold, becomes `?`."""
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _with_instructions(messages: Sequence[Message], format: ReplyFormat) -> list[Message]:
    """Describe the format in words, at the end of the first message."""
    first, *rest = messages
    content = f"{first['content']}\n\n{format.instructions}"
    return [Message(role=first["role"], content=content), *rest]


def _is_about_format(text: str, body: Mapping[str, Any]) -> bool:
    """Tell whether an error message (in lower case) is about the format of the reply."""
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


def _is_unknown(text: str, name: str) -> bool:
    """Tell whether an error rejects a parameter itself; a wrong value is the user's to fix."""
    words = ("unsupported", "not support", "unrecognized", "unknown", "unexpected", "extra")
    is_named = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
    return is_named and "value" not in text and any(word in text for word in words)

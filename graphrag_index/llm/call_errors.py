"""Failures of a call (retryable, rejected, unsupported, fatal) and their messages."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

from graphrag_index.errors import ModelError
from graphrag_index.llm.pacing import parse_duration

_RETRYABLE = frozenset((408, 409, 425, 429))
_ABOUT_CONTENT = ("content_filter", "content_policy", "context_length", "string_above_max")


class RetryError(Exception):
    """The call failed for a reason that may pass."""

    def __init__(
        self,
        reason: str,
        after: float | None = None,
        rate: bool = False,
        denied: ModelError | None = None,
        lost: bool = False,
    ) -> None:
        super().__init__(reason)
        # Seconds that the server asks to wait.
        self.after = after
        # The request was sent, and may have been answered and charged for.
        self.lost = lost
        # Access was denied; the error to raise if that persists.
        self.denied = denied
        # The provider refused the call for its rate.
        self.rate = rate


class RejectedError(Exception):
    """The server refuses this request; a retry is no use."""


class UnsupportedError(Exception):
    """The server does not support a parameter or the reply format of the request."""


@dataclass(frozen=True)
class HttpResponse:
    """A response that was read to its end."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        """Parse the body; raises `ValueError` where it is no JSON."""
        return json.loads(self.content)

    def error_message(self) -> str:
        """Return the server's error message, on one line."""
        return self._error()[1]

    def to_error(self, explain: "ErrorTexts") -> Exception:
        """Return the exception for a response whose status is an error."""
        code, message = self._error()
        return status_error(self.status, message, explain, code, retry_after(self.headers))

    def _error(self) -> tuple[str, str]:
        """Return the code of the error, and its message."""
        try:
            body = self.json()
        except ValueError:
            body = self.content.decode("utf-8", "replace")[:200]
        inner = body.get("error", body) if isinstance(body, dict) else {}
        code = str(inner.get("code") or "") if isinstance(inner, dict) else ""
        return code, message_in(body) or " ".join(str(body).split())[:200]


@dataclass(frozen=True)
class ErrorTexts:
    """Sentences for errors that only a change of the settings can mend."""

    name: str  # of the model in the settings
    address: str
    model: str  # as the server knows it
    secret: str

    def explain(self, status: int, message: str) -> str:
        """Return the sentence for a status that ends the run."""
        reason = {
            401: "does not accept the key: set api_key of this model",
            403: "refuses access: see what the key may do",
            404: f"does not know the model {self.model!r} or this address: set model or base_url",
            429: "says that the account has no quota left",
        }.get(status, f"answers {status}")
        message = redact(message, self.secret)
        return f"Model {self.name}: {self.address} {reason} (HTTP {status}: {message})."


def status_error(
    status: int, message: str, texts: ErrorTexts, code: str = "", after: float | None = None
) -> Exception:
    """Map an HTTP status and the provider's message to the exception to raise."""
    reason = f"HTTP {status}: {message}"
    if status in _RETRYABLE or status >= 500:
        if status == 429 and "quota" in message.lower() and "insufficient" in message.lower():
            return ModelError(texts.explain(status, message))
        return RetryError(reason, after, rate=status == 429)
    if status in (401, 403, 404):
        return ModelError(texts.explain(status, message))
    if any(word in f"{code} {message}".lower() for word in _ABOUT_CONTENT):
        return RejectedError(reason)
    if status in (400, 405, 415, 422, 501):
        return UnsupportedError(reason)
    return RejectedError(reason)


def redact(text: str, secret: str) -> str:
    """Replace a key in a text; providers repeat parts of it in their messages."""
    if len(secret) >= 4:
        text = text.replace(secret, "***")
    return re.sub(r"\b(sk|key|Bearer)[-_ ][\w*.-]{4,}", r"\1-***", text)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait, by any of the headers in use."""
    milliseconds = parse_duration(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    seconds = parse_duration(value)
    if seconds is None and value:
        try:
            seconds = max(0.0, parsedate_to_datetime(value).timestamp() - time())
        except ValueError:
            return None
    return seconds


def message_in(body: Any) -> str:
    """Return the provider's message in the body of an error, on one line; empty if none."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(inner, dict) or not inner.get("message"):
        return ""
    parts = [inner["message"], inner.get("code"), inner.get("param")]
    return " ".join(" ".join(str(part) for part in parts if part).split())[:500]

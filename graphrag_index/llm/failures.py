"""How a call can fail, by whose turn it is to mend it; and what a server says of it."""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

from graphrag_index.errors import ModelError
from graphrag_index.llm.pacing import parse_duration


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
        self.after = after
        # It was sent, and may have been answered and charged for.
        self.lost = lost
        # Access was denied by an endpoint that had answered before; what it means if it stays so.
        self.denied = denied
        # The provider refused it for its rate.
        self.rate = rate


class RejectedError(Exception):
    """The endpoint will not answer this request, however often it is asked."""


class UnsupportedError(Exception):
    """The endpoint does not take the request as it is written."""


def hide(text: str, secret: str) -> str:
    """Take a key out of a text; providers repeat parts of it in their messages."""
    if len(secret) >= 4:
        text = text.replace(secret, "***")
    return re.sub(r"\b(sk|key|Bearer)[-_ ][\w*.-]{4,}", r"\1-***", text)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds the server asks to wait, by any of the headers in use."""
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


def said_in(body: Any) -> str:
    """Return the provider's own words in the body of an error, on one line; or nothing."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(inner, dict) or not inner.get("message"):
        return ""
    parts = [inner["message"], inner.get("code"), inner.get("param")]
    return " ".join(" ".join(str(part) for part in parts if part).split())[:500]

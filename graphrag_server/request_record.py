"""The record of the request that is being answered, for logs, errors and traces."""

import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

# End of the paths to which files are uploaded.
UPLOAD_PATH_END = "/files"


@dataclass
class RequestRecord:
    """One request that is being answered."""

    id: str
    started: float = field(default_factory=time.perf_counter)
    caller: str = ""  # name of the key; "local" without keys
    # Header of a client that traces its request.
    traceparent: str = ""
    trace_id: str = ""  # set when the first span of the request begins
    # Names of the indexes by the paths of their projects, which replies must not tell.
    roots: Mapping[str, str] = field(default_factory=dict)


CURRENT: ContextVar[RequestRecord | None] = ContextVar("request_record", default=None)


def current_record() -> RequestRecord | None:
    """Return the record of the request that is being answered; None outside of requests."""
    return CURRENT.get()


def hide_roots(text: str) -> str:
    """Replace the paths of projects in a message to a client by the names of the indexes."""
    record = CURRENT.get()
    for path, name in record.roots.items() if record else ():
        text = text.replace(path, name)
    return text


def current_request_id() -> str:
    """Return the id of the request that is being answered; empty outside of requests."""
    record = CURRENT.get()
    return record.id if record else ""

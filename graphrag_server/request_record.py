"""The record of the request that is being answered, for logs, errors and traces."""

import time
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class RequestRecord:
    """One request that is being answered."""

    id: str
    started: float = field(default_factory=time.perf_counter)
    caller: str = ""  # name of the key; "local" without keys
    trace_id: str = ""


CURRENT: ContextVar[RequestRecord | None] = ContextVar("request_record", default=None)


def current_record() -> RequestRecord | None:
    """Return the record of the request that is being answered; None outside of requests."""
    return CURRENT.get()


def current_request_id() -> str:
    """Return the id of the request that is being answered; empty outside of requests."""
    record = CURRENT.get()
    return record.id if record else ""

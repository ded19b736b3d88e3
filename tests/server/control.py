"""Control of a server that runs as a process of its own."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from tests.server.faults import Faults
from tests.server.limits import Limits

if TYPE_CHECKING:
    from tests.server.server import Server

FIXED = ("answer", "vector", "log", "port")


def control(server: Server, body: bytes) -> dict[str, Any]:
    """Set the fields of the server that the body names; return the settings and the counts.

    `faults` and `limits` are objects with the fields of those classes. `finish_batches` is the
    status that the running batches get. `list_requests` adds the requests, without headers.
    """
    change: dict[str, Any] = json.loads(body or b"{}")
    if status := change.pop("finish_batches", None):
        server.finish_batches(status)
    listed = change.pop("list_requests", False)
    settable = {field.name for field in fields(server)} - set(FIXED)
    if unknown := set(change) - settable:
        return {"error": f"unknown: {sorted(unknown)}; known: {sorted(settable)}"}
    kinds = {"faults": Faults, "limits": Limits}
    for name, value in change.items():
        setattr(server, name, kinds[name](**value) if name in kinds else value)
    state: dict[str, Any] = {name: getattr(server, name) for name in sorted(settable)}
    state |= {name: asdict(state[name]) for name in kinds}
    counts = server.counts()
    state |= {"n_requests": len(server.requests), "n_running": server.n_running}
    state |= {"max_running": server.max_running, "counts": counts}
    if listed:
        names = ("number", "path", "key", "attempt", "arrival", "answered", "status", "fault")
        state["requests"] = [
            {name: getattr(asked, name) for name in names} | {"body": asked.body.decode("latin-1")}
            for asked in server.requests
        ]
    return state

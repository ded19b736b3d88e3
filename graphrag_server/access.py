"""Access: who calls, what the caller may do, and the dependencies that routes declare."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from fastapi import Depends, Request

from graphrag_server.hosted_index import HostedIndex, HostedIndexes
from graphrag_server.problems import RequestError


class Scope(StrEnum):
    """A right of a caller."""

    READ = "read"  # tables, reports, contexts and the graph
    ASK = "ask"  # searches, which may call a model
    INDEX = "index"  # documents, resolutions and runs
    ADMIN = "admin"  # the keys and the metrics of the server


@dataclass(frozen=True)
class Caller:
    """The sender of a request. `indexes` is None if the caller may use all indexes."""

    name: str
    scopes: frozenset[Scope]
    indexes: frozenset[str] | None = None

    def may_see(self, index: str) -> bool:
        """Return whether the caller may know that an index exists."""
        return self.indexes is None or index in self.indexes


LOCAL_CALLER = Caller("local", frozenset(Scope))


def identify_caller(request: Request) -> Caller:
    """Return the sender of a request."""
    return LOCAL_CALLER


CurrentCaller = Annotated[Caller, Depends(identify_caller)]


def visible_index(request: Request, caller: Caller, name: str, scope: Scope) -> HostedIndex:
    """Return an index by its name, for a caller who has a scope.

    Raises RequestError; an index that the caller may not see is reported as missing.
    """
    indexes: HostedIndexes = request.app.state.indexes
    index = indexes.get(name) if caller.may_see(name) else None
    if index is None:
        raise RequestError(404, "no_such_index", f"There is no index {name!r}: GET /v1/indexes.")
    if scope not in caller.scopes:
        raise RequestError(403, "missing_scope", f"This key lacks the scope {scope.value!r}.")
    return index


class _IndexFor:
    """A dependency that returns the index of the path for a caller who has a scope."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __call__(self, request: Request, caller: CurrentCaller, index: str) -> HostedIndex:
        return visible_index(request, caller, index, self._scope)


# The index of the path `/v1/indexes/{index}/...`, for routes that need the scope.
ReadIndex = Annotated[HostedIndex, Depends(_IndexFor(Scope.READ))]
AskIndex = Annotated[HostedIndex, Depends(_IndexFor(Scope.ASK))]
WriteIndex = Annotated[HostedIndex, Depends(_IndexFor(Scope.INDEX))]

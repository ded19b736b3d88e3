"""Access: who calls, what the caller may do, and the dependencies that routes declare.

A request may carry several credentials; any valid one is enough. They are tried in this order:
each `Authorization: Bearer` header, then each `X-API-Key` header. The first valid one counts.

`OriginGuard` protects a server without keys from web pages of others in its user's browser. A page
of another site can send requests to 127.0.0.1. It could read the replies if its own name led to
127.0.0.1 (DNS rebinding), so the `Host` header must name this server. It could write without
reading the replies, so the `Origin` header of a writing request must be that of this server.
Requests with a key need no such check: another page does not know the key.
"""

import ipaddress
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as RequestScope

from graphrag_index.errors import GraphRAGError, SettingsError
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.keys import Key, KeyFile, Scope
from graphrag_server.problems import RequestError
from graphrag_server.server_settings import ServerSettings
from graphrag_server.tracing import UPLOAD_PATH_END, current_record

logger = logging.getLogger(__name__)

# Maximum number of credentials that are tried.
_MAX_CREDENTIALS = 8


@dataclass(frozen=True)
class Caller:
    """The sender of a request. `indexes` is None if the caller may use all indexes."""

    name: str
    scopes: frozenset[Scope]
    indexes: frozenset[str] | None = None
    key: Key | None = None

    def may_see(self, index: str) -> bool:
        """Return whether the caller may know that an index exists."""
        return self.indexes is None or index in self.indexes

    def visible(self, indexes: Mapping[str, HostedIndex]) -> list[HostedIndex]:
        """Return the indexes that the caller may see."""
        return [index for name, index in indexes.items() if self.may_see(name)]


# The caller of a server that needs no key.
LOCAL_CALLER = Caller("local", frozenset(Scope))


class AccessControl:
    """The rules of one server: whether requests need a key, and whose key they carry."""

    def __init__(self, settings: ServerSettings) -> None:
        self.keys = KeyFile(settings.state_path)
        self.settings = settings
        self._needs_key = not settings.no_auth and not is_loopback(settings.host)

    def needs_key(self) -> bool:
        """Return whether a request needs a key.

        On loopback it does as soon as there is a key, and then until the server stops.
        """
        if not self._needs_key and not self.settings.no_auth:
            with _readable_keys():
                self._needs_key = self.keys.has_keys()
        return self._needs_key

    def check_exposure(self) -> None:
        """Raise SettingsError if others could reach a server that has no key."""
        if self.needs_key() and not self.keys.has_keys():
            raise SettingsError(
                f"Whoever reaches {self.settings.host} could read the indexes: create a key with "
                "`graphrag-index keys add NAME`, or allow everybody with --no-auth."
            )

    def identify(self, headers: Headers) -> Caller:
        """Return the sender of a request with these headers. Raises RequestError."""
        caller = self._find_caller(headers)
        if record := current_record():
            record.caller = caller.name
        return caller

    def _find_caller(self, headers: Headers) -> Caller:
        if not self.needs_key():
            return LOCAL_CALLER
        credentials = _credentials(headers)
        for credential in credentials[:_MAX_CREDENTIALS]:
            with _readable_keys():
                key = self.keys.find(credential)
            if key is not None:
                return Caller(key.name, key.scopes, key.indexes, key)
        raise RequestError(
            401,
            "invalid_key" if credentials else "missing_key",
            "The key is not valid, or was revoked: have a new one made."
            if credentials
            else "This server needs a key: send it as `Authorization: Bearer KEY` or `X-API-Key`.",
            {"WWW-Authenticate": "Bearer"},
        )


@contextmanager
def _readable_keys() -> Iterator[None]:
    """Answer 503, without the path of the file, if the keys cannot be read."""
    try:
        yield
    except GraphRAGError as error:
        logger.error("%s", error)
        raise RequestError(
            503, "keys_unavailable", "The server cannot read its keys; its log has the reason."
        ) from None


def _credentials(headers: Headers) -> list[str]:
    """Return the credentials of a request, in the order in which they are tried."""
    words = [value.partition(" ") for value in headers.getlist("authorization")]
    bearers = [token.strip() for kind, _, token in words if kind.lower() == "bearer"]
    return bearers + [value.strip() for value in headers.getlist("x-api-key")]


def is_loopback(host: str) -> bool:
    """Return whether only this computer can reach a host."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


async def identify_caller(request: Request) -> Caller:
    """Return the sender of a request. Raises RequestError if the request needs a valid key."""
    access: AccessControl = request.app.state.access
    return access.identify(request.headers)


CurrentCaller = Annotated[Caller, Depends(identify_caller)]


def require_scope(caller: Caller, scope: Scope) -> None:
    """Raise RequestError if a caller lacks a scope."""
    if scope not in caller.scopes:
        raise RequestError(403, "missing_scope", f"This key lacks the scope {scope.value!r}.")


def visible_index(request: Request, caller: Caller, name: str, scope: Scope) -> HostedIndex:
    """Return an index by its name, for a caller who has a scope.

    Raises RequestError; an index that the caller may not see is reported as missing.
    """
    indexes: Mapping[str, HostedIndex] = request.app.state.indexes
    index = indexes.get(name) if caller.may_see(name) else None
    if index is None:
        raise RequestError(404, "no_such_index", f"There is no index {name!r}: GET /v1/indexes.")
    require_scope(caller, scope)
    return index


def _index_for(scope: Scope) -> Any:
    """Return a FastAPI dependency that finds the requested index and checks the scope."""

    async def find(request: Request, caller: CurrentCaller, index: str) -> HostedIndex:
        return visible_index(request, caller, index, scope)

    return Depends(find)


# The index of the path `/v1/indexes/{index}/...`, for routes that need the scope.
ReadIndex = Annotated[HostedIndex, _index_for(Scope.READ)]
AskIndex = Annotated[HostedIndex, _index_for(Scope.ASK)]
WriteIndex = Annotated[HostedIndex, _index_for(Scope.INDEX)]


_READING = frozenset(("GET", "HEAD", "OPTIONS"))


class OriginGuard:
    """Middleware that refuses requests of foreign web pages, and uploads without a key."""

    def __init__(self, app: ASGIApp, access: AccessControl) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: RequestScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                headers = Headers(scope=scope)
                if not self.access.needs_key():
                    self._check(scope["method"], headers)
                elif scope["method"] == "POST" and scope["path"].endswith(UPLOAD_PATH_END):
                    # The framework reads a body before it asks who sends it.
                    require_scope(self.access.identify(headers), Scope.INDEX)
            except RequestError as error:
                await error.response()(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _check(self, method: str, headers: Headers) -> None:
        settings = self.access.settings
        hosts = headers.getlist("host")
        host = hosts[0] if len(hosts) == 1 else ""
        # A server that everybody may reach can have any name, unless its names are given.
        is_open = settings.no_auth and not is_loopback(settings.host)
        if settings.allowed_hosts or not is_open:
            name = _host_name(host)
            if not is_loopback(name) and name not in settings.allowed_hosts:
                raise RequestError(
                    421,
                    "unknown_host",
                    "This server has no keys, so it answers only to 127.0.0.1 and localhost: "
                    "add a key, or the name of the host to allowed_hosts in server.yaml.",
                )
        origins = headers.getlist("origin")
        if method in _READING or not origins:
            return
        for origin in origins:
            if urlsplit(origin).netloc != host and origin not in settings.allowed_origins:
                raise RequestError(
                    403,
                    "foreign_origin",
                    "A web page of another server sent this request: add a key, or the page's "
                    "origin to allowed_origins in server.yaml.",
                )


def _host_name(host: str) -> str:
    """Return the name or address in a `Host` header; empty if the header is not valid."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""

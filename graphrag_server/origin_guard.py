"""Protection of a server without keys from web pages of others in its user's browser.

A page of another site can send requests to 127.0.0.1. It could read the replies if its own name
led to 127.0.0.1 (DNS rebinding), so the `Host` header must name this server. It could write
without reading the replies, so the `Origin` header of a writing request must be that of this
server. Requests with a key need no such check: another page does not know the key.

With keys, large bodies are refused here, before they are read, if their sender may not upload.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from graphrag_server.access import AccessControl, is_loopback, require_scope
from graphrag_server.keys import Scope as KeyScope
from graphrag_server.problems import RequestError, as_request_error
from graphrag_server.request_record import UPLOAD_PATH_END

_READING = frozenset(("GET", "HEAD", "OPTIONS"))


class OriginGuard:
    """Middleware that refuses requests of foreign web pages, and uploads without a key."""

    def __init__(self, app: ASGIApp, access: AccessControl) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                headers = Headers(scope=scope)
                if not self.access.needs_key():
                    self._check(scope["method"], headers)
                elif scope["method"] == "POST" and scope["path"].endswith(UPLOAD_PATH_END):
                    # The framework reads a body before it asks who sends it.
                    require_scope(self.access.identify(headers), KeyScope.INDEX)
            except RequestError as error:
                await as_request_error(error).response()(scope, receive, send)
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

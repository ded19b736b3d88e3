"""The server of the protocol at `/mcp`, over streamable HTTP.

Each request is checked like those of all other routes: `OriginGuard` refuses foreign hosts and web
pages, and the key of the request decides which tools and indexes it reaches.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from graphrag_server.access import Caller
from graphrag_server.agents.mcp_server import build_server
from graphrag_server.agents.mcp_tools import WRITE_SCOPE
from graphrag_server.problems import RequestError

if TYPE_CHECKING:
    from graphrag_server.agents.tool_calls import ToolCalls

PATH = "/mcp"
# Maximum number of sessions of clients of revisions before 2026-07-28, and their idle seconds.
_MAX_SESSIONS, _IDLE_SECONDS = 1_000, 30 * 60


class AgentEndpoint:
    """The ASGI application at `/mcp`. It answers while `run` is entered."""

    def __init__(self, app: Starlette) -> None:
        self.app = app
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Accept sessions to the end of the block."""
        self._manager = StreamableHTTPSessionManager(
            build_server(self),
            max_sessions=_MAX_SESSIONS,
            session_idle_timeout=_IDLE_SECONDS,
            max_request_body_size=self.app.state.settings.max_body_bytes,
        )
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("POST", "DELETE"):
            # A stream of messages that belong to no request would never have one, but would
            # delay the end of the server.
            raise RequestError(
                405, "method_not_allowed", "Send MCP messages by POST.", {"Allow": "POST, DELETE"}
            )
        request = Request(scope)
        caller = self.app.state.access.identify(request.headers)
        request.state.caller = caller
        # A session belongs to the key that opened it.
        owner = caller.key.id if caller.key else caller.name
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=owner, scopes=[]))
        assert self._manager is not None
        await self._manager.handle_request(scope, receive, send)

    def scopes(self, request: Request) -> Collection[str]:
        """Return the scopes of the key of a request that its agent may use."""
        caller: Caller = request.state.caller
        return caller.scopes if self._may_write else caller.scopes - {WRITE_SCOPE}

    @property
    def _may_write(self) -> bool:
        allowed: bool = self.app.state.settings.allow_agent_writes
        return allowed

    def tools(self, request: Request) -> "ToolCalls":
        """Return the tools for the key of a request."""
        from graphrag_server.agents.tool_calls import IndexWriter, ToolCalls

        state = self.app.state
        writer = IndexWriter(state.jobs) if self._may_write else None
        caller, base_url = request.state.caller, str(request.base_url)
        return ToolCalls(state.indexes, state.asker, caller, base_url, writer)

"""The server of the protocol over standard input and output."""

import threading
from collections.abc import Collection, Mapping
from functools import cached_property
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.stdio import stdio_server

from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_server.agents.mcp_server import build_server

if TYPE_CHECKING:
    from graphrag_server.agents.tool_calls import ToolCalls


def run_stdio(roots: Mapping[str, Path], stream: TextIOWrapper) -> None:
    """Serve the client on standard input and the stream, until it closes the input.

    Raises SettingsError if the settings of a project are missing or not valid.
    """
    for root in roots.values():
        load_settings(root)
    server = build_server(_LocalHost(roots))

    async def serve() -> None:
        async with stdio_server(stdout=anyio.wrap_file(stream)) as (received, sent):
            await server.run(received, sent, server.create_initialization_options())

    anyio.run(serve)


class _LocalHost:
    """The host of the process that the client started: its user may read and ask everything."""

    def __init__(self, roots: Mapping[str, Path]) -> None:
        self._roots = roots
        self._lock = threading.Lock()

    def scopes(self, request: Any) -> Collection[str]:
        return ("read", "ask")

    def tools(self, request: Any) -> "ToolCalls":
        with self._lock:
            return self._tools

    @cached_property
    def _tools(self) -> "ToolCalls":
        from graphrag_server.access import Caller
        from graphrag_server.agents.tool_calls import ToolCalls
        from graphrag_server.asking import Asker
        from graphrag_server.hosted_index import HostedIndexes
        from graphrag_server.keys import Scope

        caller = Caller("stdio", frozenset((Scope.READ, Scope.ASK)))
        return ToolCalls(HostedIndexes(self._roots), Asker(4, 16), caller)

"""The server of the protocol over standard input and output."""

import threading
from collections.abc import Collection, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.stdio import stdio_server

from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_server.agents.mcp_server import build_server
from graphrag_server.agents.mcp_tools import WRITE_SCOPE

if TYPE_CHECKING:
    from graphrag_server.agents.tool_calls import ToolCalls
    from graphrag_server.jobs.job_runner import JobRunner


def run_stdio(roots: Mapping[str, Path], stream: TextIOWrapper, allow_writes: bool = False) -> None:
    """Serve the client on standard input and the stream, until it closes the input.

    Raises SettingsError if the settings of a project are missing or not valid.
    """
    for root in roots.values():
        load_settings(root)
    host = _LocalHost(roots, allow_writes)
    server = build_server(host)

    async def serve() -> None:
        async with stdio_server(stdout=anyio.wrap_file(stream)) as (received, sent):
            await server.run(received, sent, server.create_initialization_options())

    try:
        anyio.run(serve)
    finally:
        host.close()


class _LocalHost:
    """The host of the process that the client started.

    Its user may read and ask everything, and change everything if the command allows it.
    """

    def __init__(self, roots: Mapping[str, Path], allow_writes: bool) -> None:
        self._roots, self._allow_writes = roots, allow_writes
        self._lock = threading.Lock()
        self._opened: ToolCalls | None = None
        self._jobs: JobRunner | None = None

    def scopes(self, request: Any) -> Collection[str]:
        return ("read", "ask", WRITE_SCOPE) if self._allow_writes else ("read", "ask")

    def tools(self, request: Any) -> "ToolCalls":
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def _open(self) -> "ToolCalls":
        from graphrag_server.access import Caller
        from graphrag_server.agents.tool_calls import IndexWriter, ToolCalls
        from graphrag_server.asking import Asker
        from graphrag_server.hosted_index import HostedIndexes
        from graphrag_server.jobs.job_runner import JobRunner
        from graphrag_server.keys import Scope

        indexes, writer = HostedIndexes(self._roots), None
        if self._allow_writes:
            self._jobs = JobRunner(indexes)
            self._jobs.start()
            writer = IndexWriter(self._jobs)
        caller = Caller("stdio", frozenset(map(Scope, self.scopes(None))))
        return ToolCalls(indexes, Asker(4, 16), caller, writer=writer)

    def close(self) -> None:
        """Stop the runs; the next start goes on with them."""
        if self._jobs is not None:
            self._jobs.stop()

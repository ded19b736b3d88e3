"""The tools by which agents change documents and start runs, where the user allows them."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from graphrag_server.keys import KeyFile, Scope
from graphrag_server.server_settings import ServerSettings
from tests.fixtures.agent_client import talk
from tests.fixtures.commands import command, environment
from tests.fixtures.served import serve, write_project

NOTE = "Frank Wild was a friend of Tom Crean. Wild served on the Discovery."


def test_an_agent_adds_a_document_and_runs_the_index(tmp_path: Path) -> None:
    root = write_project(tmp_path / "docs")
    arguments = command("mcp", "--root", str(root), "--allow-writes")
    server = StdioServerParameters(command=arguments[0], args=arguments[1:], env=environment())

    async def use() -> None:
        async with Client(server) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(tools)[-2:] == ["run", "document"]
            assert tools["run"].annotations.destructive_hint
            assert not tools["run"].annotations.read_only_hint

            async def write(tool: str, **arguments: Any) -> dict[str, Any]:
                result = await client.call_tool(tool, arguments)
                assert not result.is_error, result.content
                found: dict[str, Any] = result.structured_content
                return found

            added = await write("document", action="add", path="../wild.txt", text=NOTE)
            assert added["path"] == "uploads/wild.txt"
            job = (await write("run", action="start"))["id"]
            ended = await write("run", action="watch")
            assert (ended["id"], ended["state"], ended["version"]) == (job, "done", 1)
            status = (await write("status", index="docs"))["indexes"][0]
            assert [(run["id"], run["state"]) for run in status["runs"]] == [(job, "done")]
            assert status["tables"]["documents"] == 3
            again = await client.call_tool("document", {"action": "add", "path": "wild.txt"})
            assert again.content[0].text.startswith("file_exists")
            await write("document", action="remove", path="uploads/wild.txt")
            assert not (root / "input" / "uploads" / "wild.txt").exists()

    anyio.run(use)


@pytest.mark.parametrize(
    ("allowed", "scope", "code"),
    [(False, Scope.INDEX, "writes_not_allowed"), (True, Scope.READ, "missing_scope")],
)
def test_writing_needs_the_scope_and_the_setting(
    tmp_path: Path, allowed: bool, scope: Scope, code: str
) -> None:
    root = write_project(tmp_path / "docs")
    key = KeyFile(tmp_path).add("agent", frozenset((Scope.READ, scope)))
    settings = ServerSettings(
        indexes={"docs": root}, state_folder=tmp_path, allow_agent_writes=allowed
    )

    async def use(client: Client) -> None:
        assert "run" not in [tool.name for tool in (await client.list_tools()).tools]
        for tool, arguments in (
            ("run", {"action": "start"}),
            ("document", {"action": "remove", "path": "crean.txt"}),
        ):
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            assert result.content[0].text.startswith(code)

    with serve(settings) as served:
        talk(served.url, use, key)
    assert (root / "input" / "crean.txt").is_file()

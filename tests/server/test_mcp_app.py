"""The explorer inside a chat: an MCP App that shows results of the tool `graph`."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from playwright.sync_api import Page, expect, sync_playwright

from graphrag_server.keys import KeyFile, Scope
from graphrag_server.server_settings import ServerSettings
from tests.fixtures.agent_client import talk
from tests.fixtures.commands import command, environment
from tests.fixtures.served import serve, write_project

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs the program chromium")
# A chat: it shows the page in a frame that may do nothing but run scripts.
CHAT = """<!doctype html>
<iframe sandbox="allow-scripts" style="width: 1100px; height: 640px"></iframe>
<script>
const frame = document.querySelector("iframe");
const send = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
window.addEventListener("message", async ({ source, data }) => {
  if (source !== frame.contentWindow) return;
  const { id, method, params } = data;
  if (method === "ui/initialize") {
    const hostContext = { theme: "dark" };
    send({ id, result: { protocolVersion: params.protocolVersion, hostContext } });
  } else if (method === "ui/notifications/initialized") {
    send({ method: "ui/notifications/tool-result", params: window.result });
  } else if (method === "tools/call") {
    send({ id, result: await window.callTool(params.name, params.arguments) });
  }
});
</script>"""
NOTE = "Frank Wild was a friend of Tom Crean. Wild served on the Discovery."


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1120, "height": 680})
        browser.close()


def test_a_chat_shows_the_neighbourhood_and_follows_it(sample_project: Path, page: Page) -> None:
    with serve(ServerSettings(indexes={"sample": sample_project})) as served:

        async def read_page() -> str:
            async with Client(f"{served.url}/mcp") as client:
                found = await client.read_resource("ui://graphrag/explorer")
                return str(found.contents[0].text)

        async def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
            async with Client(f"{served.url}/mcp") as client:
                result = await client.call_tool(name, arguments)
                return result.model_dump(by_alias=True, exclude_none=True, mode="json")

        # The browser holds the event loop of this thread.
        with ThreadPoolExecutor(1) as threads:

            def call_tool(*arguments: Any) -> dict[str, Any]:
                return threads.submit(anyio.run, call, *arguments).result()

            page.expose_function("callTool", call_tool)
            page.set_content(CHAT)
            text = threads.submit(anyio.run, read_page).result()
            page.evaluate(
                "([page, result]) => { window.result = result; frame.srcdoc = page; }",
                [text, call_tool("graph", {"entity": "Tom Crean"})],
            )
            app = page.frame_locator("iframe")
            expect(app.get_by_role("heading", name="Tom Crean")).to_be_visible(timeout=30_000)
            assert app.locator("html").get_attribute("data-theme") == "dark"
            app.get_by_role("link", name="Frank Worsley").first.click()
            expect(app.get_by_role("heading", name="Frank Worsley")).to_be_visible()


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

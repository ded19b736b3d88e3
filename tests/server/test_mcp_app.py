"""The explorer inside a chat: an MCP App that shows results of the tool `graph`."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from playwright.sync_api import Page, expect, sync_playwright

from graphrag_server.server_settings import ServerSettings
from tests.fixtures.served import serve

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

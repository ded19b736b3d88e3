"""A real browser, and pages of a server with the sample and an index of two versions."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from graphrag_server.server_settings import ServerSettings
from tests.fixtures.served import Served, serve

CHROMIUM = shutil.which("chromium")
# Pictures of the pages are kept here.
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
AXE = Path(__file__).parents[2] / "explorer" / "node_modules" / "axe-core" / "axe.min.js"
# Pages count the requests that have not been answered whole.
COUNT_REQUESTS = """
    window.requestsInFlight = 0;
    const fetchCounted = window.fetch;
    window.fetch = async (...request) => {
        window.requestsInFlight += 1;
        try {
            const response = await fetchCounted(...request);
            if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
                await response.clone().blob();
            }
            return response;
        } finally {
            window.requestsInFlight -= 1;
        }
    };
"""

Keep = Callable[[str], None]


def press_until(page: Page, key: str, condition: str) -> None:
    """Press a key until an expression of the page is true."""
    for _ in range(40):
        page.keyboard.press(key)
        if page.evaluate(condition):
            return
    raise AssertionError(f"{key} does not lead to {condition}")


def find_faults(page: Page) -> list[str]:
    """Return the faults of a page that axe-core finds and that are more than minor."""
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run({ resultTypes: ['violations'] })")
    return [
        f"{fault['id']}: {node['html'][:200]} {node['failureSummary']}"
        for fault in found["violations"]
        if fault["impact"] != "minor"
        for node in fault["nodes"]
    ]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("needs the program chromium")
    # A busy machine draws slowly.
    expect.set_options(timeout=120_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def server(sample_project: Path, project_of_two_versions: Path) -> Iterator[Served]:
    indexes = {"sample": sample_project, "ships": project_of_two_versions}
    with serve(ServerSettings(indexes=indexes)) as served:
        yield served


@pytest.fixture(scope="package")
def context(browser: Browser, server: Served) -> Iterator[BrowserContext]:
    """One reader for all pages: a new one compiles the scripts again, half of a page's CPU time.

    Its first page stays open, so that the process with the compiled scripts does.
    """
    context = browser.new_context(
        base_url=server.url,
        viewport={"width": 1280, "height": 800},
        reduced_motion="reduce",
        # Only so that the test may add axe-core to a page.
        bypass_csp=True,
    )
    context.add_init_script(COUNT_REQUESTS)
    context.new_page().goto("/")
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext, server: Served) -> Iterator[Page]:
    """A page of a reader of whom nothing is stored. Fails if one of its scripts has failed."""
    page = context.new_page()
    stored = {"origin": server.url, "storageTypes": "cookies,local_storage,indexeddb"}
    context.new_cdp_session(page).send("Storage.clearDataForOrigin", stored)
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    yield page
    for opened in context.pages[1:]:
        opened.close()
    assert failures == []


@pytest.fixture
def keep(page: Page) -> Keep:
    """Keep a picture of the page under a name. Playwright creates the folder."""

    def keep_picture(name: str) -> None:
        page.screenshot(path=SCREENSHOTS / f"{name}.png")

    return keep_picture

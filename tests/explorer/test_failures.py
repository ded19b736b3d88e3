"""The explorer in bad times: it says what is wrong and what to do, and goes on by itself."""

import shutil
from pathlib import Path

from playwright.sync_api import Browser, expect

from graphrag_server.keys import KeyFile, Scope
from graphrag_server.server_settings import ServerSettings
from tests.fixtures.served import Served, serve


def test_the_page_goes_on_by_itself_when_the_server_is_back(
    browser: Browser, sample_project: Path
) -> None:
    settings = ServerSettings(indexes={"sample": sample_project})
    with browser.new_context(reduced_motion="reduce") as context:
        page = context.new_page()
        with serve(settings) as served:
            page.goto(served.url)
            page.get_by_label("Question").fill("Who was Tom Crean?")
            expect(page.get_by_role("application")).not_to_have_attribute("data-areas", "0")
        page.get_by_role("link", name="Versions").click()
        lost = page.get_by_text("goes on by itself as soon as the server is back")
        expect(lost).to_be_visible()
        with serve(settings, port=served.port):
            expect(page.get_by_role("link", name="version 1")).to_be_visible()
            expect(lost).to_be_hidden()


def test_a_damaged_index_is_shown_as_soon_as_it_is_restored(
    browser: Browser, sample_project: Path, tmp_path: Path
) -> None:
    root = tmp_path / "docs"
    shutil.copytree(sample_project, root)
    pointer = root / "output" / "index.json"
    content = pointer.read_text(encoding="utf-8")
    settings = ServerSettings(indexes={"docs": root}, state_folder=tmp_path)
    with (
        serve(settings) as served,
        browser.new_context(base_url=served.url, reduced_motion="reduce") as context,
    ):
        page = context.new_page()
        page.goto("/#/docs?panel=browse")
        rows = page.locator(".panel.left .row")
        expect(rows.first).to_be_visible()
        pointer.write_text("{", encoding="utf-8")
        page.get_by_role("link", name="Versions").click()
        expect(page.get_by_role("heading", name="cannot be opened")).to_be_visible()
        expect(page.get_by_text("index.json is damaged: restore it")).to_be_visible()
        pointer.unlink()
        page.reload()
        expect(page.get_by_text("It has not been built yet")).to_be_visible()
        pointer.write_text(content, encoding="utf-8")
        expect(rows.first).to_be_visible()


def test_a_key_is_asked_for_until_it_is_valid(
    browser: Browser, sample_project: Path, tmp_path: Path
) -> None:
    keys = KeyFile(tmp_path)
    key = keys.add("reader", frozenset({Scope.READ, Scope.ASK}))
    settings = ServerSettings(indexes={"sample": sample_project}, state_folder=tmp_path)
    with serve(settings) as served, browser.new_context(reduced_motion="reduce") as context:
        page = context.new_page()
        page.goto(served.url)
        field = page.get_by_label("Key")
        field.fill("gri_wrong")
        field.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("did not accept this key")
        field.fill(key)
        field.press("Enter")
        expect(page.get_by_label("Question")).to_be_visible()
        page.get_by_role("button", name="Forget key").click()
        field.fill(key)
        field.press("Enter")
        page.reload()
        expect(page.get_by_label("Question")).to_be_visible()
        keys.revoke("reader")
        keys.close()
        # The page may have learned it already, from what it was still loading.
        page.evaluate("location.hash = '#/sample?panel=browse'")
        expect(page.get_by_role("alert")).to_contain_text("your key any more")


def test_an_answer_that_arrives_before_the_page_is_painted_is_shown(
    browser: Browser, server: Served
) -> None:
    # A browser with much to do paints, and lets timers go off, late.
    slow = """
        const wait = window.setTimeout;
        window.setTimeout = (work, time) => wait(work, Math.max(time ?? 0, 3000));
        window.requestAnimationFrame = (work) => wait(() => work(performance.now()), 3000);
    """
    with browser.new_context(base_url=server.url) as context:
        page = context.new_page()
        page.goto("/#/sample?panel=browse&search=Who+was+Tom+Crean")
        ask = page.get_by_role("button", name="Ask this as a question")
        expect(ask).to_be_visible()
        page.evaluate(slow)
        ask.click()
        expect(page.get_by_role("link", name="Citation 1:").first).to_be_visible(timeout=60_000)

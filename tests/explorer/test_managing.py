"""Owners of an index in the explorer: they upload documents, start runs, and correct names."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from graphrag_evaluation.report.evaluation_page import write_report
from graphrag_server.server_settings import ServerSettings
from tests.conftest import run_project
from tests.fixtures.page_parser import HOSTILE
from tests.fixtures.reports import literal_record
from tests.fixtures.served import serve, write_project

SWEDES = b"Otto Nordenskjold led the Swedish expedition of the Antarctic."


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_project(tmp_path_factory.mktemp("managing") / "docs")
    run_project(root)
    return root


@pytest.fixture(scope="module")
def owner(browser: Browser, root: Path) -> Iterator[Page]:
    """A page of a reader who may change the index."""
    settings = ServerSettings(indexes={"docs": root}, state_folder=root.parent)
    with (
        serve(settings) as served,
        browser.new_context(base_url=served.url, reduced_motion="reduce") as context,
    ):
        yield context.new_page()


def open_entity(page: Page, name: str) -> None:
    """Open the details of an entity, and the choice of what may be decided about its name."""
    page.goto("/#/docs?panel=browse")
    page.get_by_role("link", name=name).first.click()
    page.get_by_text("Correct the name").click()


@pytest.mark.parametrize(
    ("press", "described", "recorded"),
    [
        ("Same as …", "are the same.", "merge:\n  Tom Crean: [Robert Falcon Scott]"),
        ("Not the same as …", "are not the same.", "never:\n  - [Tom Crean, Robert Falcon Scott]"),
        ("Rename", "“Tom Crean” is called “Thomas Crean”.", "rename:\n  Tom Crean: Thomas Crean"),
        ("Split …", "“Tom Crean” is the name of “The son” and “Tom Crean”.", "title: The son"),
    ],
)
def test_a_decision_about_a_name_is_shown_before_it_is_recorded_and_undone(
    owner: Page, root: Path, press: str, described: str, recorded: str
) -> None:
    open_entity(owner, "Tom Crean")
    button = owner.get_by_role("button", name=press, exact=True)
    if press == "Rename":
        owner.get_by_label("New name").fill("Thomas Crean")
        button.click()
    elif press == "Split …":
        button.click()
        owner.get_by_label("Name of the other thing").fill("The son")
        owner.get_by_role("checkbox").first.check()
        owner.get_by_role("button", name="Preview").click()
        expect(owner.get_by_text("1 passage in 1 document")).to_have_count(2)
    else:
        button.click()
        owner.keyboard.type("Robert Falcon")
        owner.get_by_role("option", name="Robert Falcon Scott").first.click()
    expect(owner.get_by_text(described)).to_be_in_viewport()
    expect(owner.get_by_text("It concerns")).to_be_visible()
    file = root / "resolutions.yaml"
    assert not file.exists() or recorded not in file.read_text(encoding="utf-8")
    owner.get_by_role("button", name="Record").click()
    expect(owner.get_by_text("a run applies it")).to_be_visible()
    assert recorded in file.read_text(encoding="utf-8")
    owner.goto("/#/docs?panel=names")
    expect(owner.locator(".panel.left").get_by_text("Tom Crean").first).to_be_visible()
    owner.locator(".panel.left").get_by_role("button", name="Undo").first.click()
    expect(owner.get_by_role("heading", name="Decisions 0")).to_be_visible()
    assert recorded not in file.read_text(encoding="utf-8")


def test_files_that_cannot_be_stored_are_refused_with_the_reason(owner: Page, root: Path) -> None:
    (root / "input" / ".hidden").touch()
    owner.goto("/#/docs?panel=documents")
    expect(owner.get_by_role("heading", name="Files", level=3)).to_contain_text("2")
    dropped = owner.evaluate_handle("""() => {
        const files = new DataTransfer();
        for (const name of ["song.mp3", "scan.pdf", "note.txt"])
            files.items.add(new File(["la la"], name));
        return files;
    }""")
    owner.locator(".panel.left").get_by_text("These files are").dispatch_event(
        "drop", {"dataTransfer": dropped}
    )
    expect(owner.get_by_text("song.mp3: This type of file cannot be read")).to_be_visible()
    expect(owner.get_by_text("The content of scan.pdf is not that of a .pdf file")).to_be_visible()
    expect(owner.get_by_text("1 file stored")).to_be_visible()
    owner.get_by_text("1 file skipped: hidden 1.").click()
    expect(owner.locator(".panel.left").get_by_text(".hidden")).to_be_visible()
    # The table of documents tells the same.
    owner.goto("/#/docs?mode=documents")
    owner.locator(".graph-pane").get_by_text("1 file skipped: hidden 1.").click()
    expect(owner.locator(".graph-pane").get_by_text("is hidden")).to_be_visible()
    owner.goto("/#/docs?panel=documents")
    owner.get_by_role("button", name="Remove uploads/note.txt").click()
    owner.get_by_role("button", name="Delete", exact=True).click()
    expect(owner.get_by_text("uploads/note.txt")).to_have_count(0)


def test_an_upload_shows_its_progress_and_is_cancelled(owner: Page, root: Path) -> None:
    owner.goto("/#/docs?panel=documents")
    network = owner.context.new_cdp_session(owner)
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 50_000}
    network.send("Network.emulateNetworkConditions", slow)
    large: FilePayload = {"name": "large.txt", "mimeType": "text/plain", "buffer": b"a " * 500_000}
    owner.get_by_label("Add files").set_input_files(large)
    expect(owner.get_by_text(re.compile(r"^[1-9][\d.]* kB of 1 MB$"))).to_be_visible()
    owner.get_by_role("button", name="Cancel the upload").click()
    expect(owner.get_by_text("The upload of 1 file was cancelled")).to_be_visible()
    # Chromium sends the rest at once if it is no longer slowed before it has ended the request.
    owner.goto("/health")
    network.detach()
    assert not (root / "input" / "uploads" / "large.txt").exists()


def test_an_uploaded_document_is_indexed_and_the_version_before_stays(owner: Page) -> None:
    owner.goto("/#/docs?panel=documents")
    file: FilePayload = {"name": "swedes.txt", "mimeType": "text/plain", "buffer": SWEDES}
    owner.get_by_label("Add files").set_input_files(file)
    expect(owner.get_by_text("1 file stored")).to_be_visible()
    owner.get_by_role("button", name="Start a run").click()
    expect(owner.get_by_text("The last run is done")).to_be_visible(timeout=300_000)
    # The page tells what the run has changed, and shows it.
    banner = owner.locator(".banner")
    expect(banner).to_contain_text(re.compile(r"\+1 document, \+\d+ entit"))
    banner.get_by_role("button", name="Show the changes").click()
    expect(owner.get_by_role("region", name="Changes from version 1 to version 2")).to_be_visible()
    expect(owner.get_by_role("region", name="version 2", exact=True)).to_contain_text("added")
    expect(banner).to_have_count(0)
    owner.goto("/#/docs?panel=browse&search=nordenskjold")
    expect(owner.locator(".panel.left .row").first).to_be_visible()
    owner.get_by_role("link", name="Versions").click()
    owner.get_by_role("link", name=re.compile("^version 1")).click()
    expect(owner.get_by_role("button", name="As of version 1")).to_be_visible()
    owner.get_by_role("link", name="Browse").click()
    owner.get_by_label("Search this list").fill("nordenskjold")
    expect(owner.get_by_text("No row fits")).to_be_visible()
    owner.get_by_role("button", name="As of version 1").click()
    expect(owner.locator(".panel.left .row").first).to_be_visible()


def test_a_report_opens_from_the_list_and_its_texts_stay_texts(owner: Page, root: Path) -> None:
    record = literal_record(HOSTILE)
    record.results["basic"][0].scores["recall@10"] = 0.25
    write_report(root / "evaluations" / "told", record)
    owner.goto("/#/docs?panel=evaluations")
    expect(owner.get_by_role("region", name="told")).to_contain_text("recall@100.500")
    failures: list[str] = []
    owner.context.on("weberror", lambda error: failures.append(str(error.error)))
    with owner.context.expect_page() as opened:
        owner.get_by_role("button", name="Open the report").click()
    report = opened.value
    question = report.locator("#questions > li").first
    expect(question.locator("summary")).to_contain_text(HOSTILE)
    question.locator("summary").click()
    expect(question.locator("p.answer").first).to_have_text(HOSTILE)
    question.get_by_text("1 passage").first.click()
    expect(question.locator("mark")).to_have_text("gold 1")
    report.get_by_label("System").select_option("basic")
    expect(question.locator("summary b")).to_have_text("0.250")
    report.get_by_label("Order").select_option("loss")
    expect(report.get_by_role("status")).to_contain_text("0 questions")
    assert failures == []
    report.close()

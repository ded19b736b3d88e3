"""Readers of the explorer: they ask, follow what an answer rests on, and look around."""

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import graphrag_query
from graphrag_index.export.explorer_page import write_page
from graphrag_query.question.entity_linking import find_entities_like
from graphrag_server.server_settings import ServerSettings
from tests.conftest import copy_project, run_project
from tests.explorer.conftest import SCREENSHOTS, Keep, press_until
from tests.fixtures.pdf import make_pdf
from tests.fixtures.served import serve

QUESTION = "How are Tom Crean and Frank Worsley connected?"


def details(page: Page, heading: str) -> None:
    """Wait until the panel on the right shows something."""
    expect(page.get_by_label("Details").get_by_role("heading", name=heading).first).to_be_visible()


def test_a_citation_of_a_pdf_opens_its_page_with_the_passage_marked(
    browser: Browser, tmp_path: Path
) -> None:
    for package in ("pypdfium2", "liteparse"):
        pytest.importorskip(package)
    project = copy_project(tmp_path / "project")
    shutil.rmtree(project / "input")
    (project / "input").mkdir()
    lines = ["The tide gauge of Dunmere", "was repaired by Ida Falk in 1954."]
    first = [(72, 720, "The harbour of Brackenfell was built in 1911.")]
    second = [(72, 700 - 14 * n, line) for n, line in enumerate(lines)]
    (project / "input" / "survey.pdf").write_bytes(make_pdf([first, second]))
    run_project(project)
    with serve(ServerSettings(indexes={"p": project})) as served:
        page = browser.new_page(base_url=served.url)
        page.goto("/")
        page.get_by_label("Search", exact=True).select_option("local")
        page.get_by_label("Question").fill("Who repaired the tide gauge of Dunmere?")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Citation 1:").first.click()
        picture = page.get_by_role("img", name="Page 2", exact=True)
        expect(picture).to_be_visible()
        expect(page.locator("mark").first).to_be_attached()
        page.wait_for_function("document.querySelector('.page-picture img').complete")
        marked = picture.evaluate(
            """(image) => {
                const canvas = document.createElement("canvas");
                [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
                const context = canvas.getContext("2d");
                context.drawImage(image, 0, 0);
                const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
                const rows = new Set();
                for (let at = 0; at < data.length; at += 4)
                    if (data[at] > 200 && data[at + 1] > 200 && data[at + 2] < 120)
                        rows.add(Math.round(at / 4 / canvas.width / canvas.height * 792));
                return [Math.min(...rows), Math.max(...rows)];
            }"""
        )
        page.screenshot(path=SCREENSHOTS / "page-of-a-citation.png")
        page.close()
    # The two lines stand 92 to 106 points below the top.
    assert 75 < marked[0] < 92
    assert 100 < marked[1] < 115


def read_quotes(page: Page) -> list[str]:
    """Return the quotations of an answer, which its marks have as their titles."""
    marks = page.locator(".formatted a.citation")
    titles = {mark.inner_text(): mark.get_attribute("title") or "" for mark in marks.all()}
    return [title[title.index("“") + 1 : -1] for _, title in sorted(titles.items())]


@pytest.mark.parametrize("width", [1440, 390])
def test_the_citations_of_an_answer_are_read_one_after_the_other(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 860})
    page.goto("/#/sample")
    page.get_by_label("Search", exact=True).select_option("local")
    page.get_by_label("Question").fill("When did Frank Worsley reach South Georgia?")
    page.keyboard.press("Enter")
    expect(page.locator("a.citation").nth(2)).to_be_visible()
    quotes = read_quotes(page)
    # What stands around a quotation is that of the passage, and more than the answer says.
    answer = " ".join(page.locator(".answer > .formatted").all_inner_texts())
    around = page.locator(".sources .around-quote")
    expect(around).to_have_count(len(quotes))
    for text in around.all():
        inside = text.locator("q").inner_text()
        before, _, after = text.inner_text().partition(inside)
        assert len(before) + len(after) > 60
        assert before.strip("… ") not in answer or after.strip("… ") not in answer
    # The entities below are those that the quotations name.
    expect(page.locator(".named-entities .chip").first).to_be_visible()
    names = page.locator(".named-entities .chip").all_inner_texts()
    assert [name for name in names if name.split()[-1] not in " ".join(quotes)] == []

    details = page.get_by_label("Details")
    title = details.locator(".document-head h2")
    page.get_by_role("link", name="Citation 1:").first.click()
    for at, quote in enumerate(quotes):
        expect(details.get_by_text(f"Citation {at + 1} of {len(quotes)}")).to_be_in_viewport()
        expect(page.locator("mark").first).to_be_in_viewport()
        expect(title).to_be_in_viewport(ratio=1)
        assert "".join(page.locator("mark").all_inner_texts()) == quote
        if at + 1 < len(quotes):
            details.get_by_role("link", name="Next citation").click()
    expect(details.get_by_role("link", name="Next citation")).to_have_count(0)
    details.get_by_role("link", name="Previous citation").click()
    expect(details.get_by_text(f"Citation {len(quotes) - 1} of {len(quotes)}")).to_be_in_viewport()


@pytest.mark.parametrize("suffix", [":~:text=Tom", "?version=1#:~:text=x"])
def test_a_text_that_another_page_adds_to_an_address_keeps_the_mark(
    page: Page, suffix: str
) -> None:
    page.goto(f"/#/sample/document/0/3-40{suffix}")
    expect(page.locator("mark").first).to_be_in_viewport()
    assert len("".join(page.locator("mark").all_inner_texts())) == 37


def test_keys_alone_ask_and_follow_a_citation(page: Page) -> None:
    page.goto("/")
    field = page.get_by_label("Question")
    expect(field).to_be_visible()
    press_until(page, "Tab", "document.activeElement.matches('textarea')")
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Citation 1:").first).to_be_visible()
    press_until(page, "Shift+Tab", "document.activeElement.matches('a.citation')")
    page.keyboard.press("Enter")
    expect(page.locator("mark").first).to_be_in_viewport()


def test_a_community_opens_down_to_an_entity(page: Page, keep: Keep) -> None:
    page.goto("/")
    graph = page.get_by_role("application")
    expect(graph).to_have_attribute("data-areas", re.compile("[1-9]"))
    graph.focus()
    for _ in range(40):
        page.keyboard.press("Enter")
        # What is drawn is counted a little after the view has moved. Another community may have
        # as many parts, so the end of the move cannot be told by a count.
        page.wait_for_timeout(300)
        page.wait_for_function("requestsInFlight === 0")
        if graph.get_attribute("data-entities") != "0":
            break
    expect(graph).not_to_have_attribute("data-entities", "0")
    keep("community")
    members = page.get_by_label("Details").locator("section", has_text="Members")
    name = members.get_by_role("link").first.locator(".row-name").inner_text()
    members.get_by_role("link").first.click()
    details(page, name)
    keep("entity")


def test_names_are_found_as_one_types_and_a_path_joins_two(page: Page, keep: Keep) -> None:
    page.goto("/")
    expect(page.get_by_label("Question")).to_be_visible()
    press_until(page, "/", "document.activeElement.matches('[role=combobox]')")
    page.keyboard.type("tom crea")
    expect(page.get_by_role("option", name="Tom Crean").first).to_be_visible()
    keep("find")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    details(page, "Tom Crean")
    page.get_by_role("button", name="Path to …").click()
    # Of several names none is taken unseen: Enter only shows which is the first.
    page.keyboard.type("shakleton")
    expect(page.get_by_role("option", name="Emily Shackleton")).to_be_visible()
    page.keyboard.press("Enter")
    first = page.get_by_role("option", name="Ernest Shackleton", selected=True)
    expect(first).to_be_visible()
    page.get_by_role("combobox", name="Path to …").fill("Roald Amund")
    page.get_by_role("option", name="Roald Amundsen").first.click()
    details(page, "Tom Crean – Roald Amundsen")
    expect(page.get_by_text("Best path")).to_be_visible()
    keep("path")


def test_a_page_without_a_server_finds_the_same_names(
    page: Page, sample_project: Path, tmp_path: Path
) -> None:
    write_page(sample_project / "output", tmp_path / "page.html", name="sample")
    with graphrag_query.open(sample_project / "output") as index:
        page.goto((tmp_path / "page.html").as_uri())
        field = page.get_by_role("combobox", name="Find names, reports and passages")
        for typed in ("scott", "crean", "shakleton", "amundson", "nimrud expedition", "mawsn"):
            numbers = find_entities_like(index.store, typed.split(), 8)
            titles = index.store.entities(numbers)["title"].to_list()
            field.fill(typed)
            names = page.locator("[role=option] .row-name")
            expect(names.first).to_have_text(titles[0])
            assert names.all_inner_texts()[: len(titles)] == titles


def test_filters_narrow_lists_and_the_address_keeps_them(page: Page, keep: Keep) -> None:
    page.goto("/#/sample?panel=filters")
    page.get_by_label("event").check()
    page.get_by_role("link", name="Browse").click()
    types = page.locator(".panel.left .row-note")
    expect(types.first).to_have_text("event")
    assert set(types.all_inner_texts()) == {"event"}
    keep("filter")
    page.reload()
    expect(types.first).to_have_text("event")
    page.go_back()
    expect(page.get_by_label("event")).to_be_checked()
    page.go_back()
    expect(page.get_by_label("event")).not_to_be_checked()


def test_the_chosen_colours_stay(page: Page, keep: Keep) -> None:
    page.goto("/")
    for _ in range(2):
        page.get_by_role("button", name="Colours").click()
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    assert max(map(int, re.findall(r"\d+", dark)[:3])) < 64
    page.reload()
    expect(page.get_by_label("Question")).to_be_visible()
    assert page.evaluate(colour) == dark
    keep("dark")


def test_an_answer_about_the_whole_shows_its_reports_and_lights_where_they_are(
    page: Page, keep: Keep
) -> None:
    page.goto("/")
    page.get_by_label("Search", exact=True).select_option("global")
    page.get_by_label("Question").fill("How did scurvy affect the expeditions?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Evidence of the answer")).to_be_visible()
    keep("global")
    page.get_by_text("What was looked at").click()
    page.get_by_text(re.compile(r"^Reports \d+$")).click()
    scores = page.locator(".looked-at .row-note").all_inner_texts()[:12]
    assert len(scores) > 1
    assert sorted(scores, reverse=True) == scores
    page.get_by_role("button", name="Table", exact=True).click()
    # Reports of communities that are not drawn light the drawn communities around them.
    expect(page.get_by_role("table").first.locator("tr.lit").nth(5)).to_be_visible()


def test_the_lists_show_rows_of_their_own_table_one_after_the_other(page: Page) -> None:
    page.goto("/#/sample?panel=browse")
    lists = page.get_by_label("Lists")
    rows = page.locator(".panel-body .list li")
    for name, kind in [
        ("Entities", "entity"),
        ("Relationships", "relationship"),
        ("Passages", "text_unit"),
        ("Communities", "community"),
    ]:
        lists.get_by_role("link", name=name, exact=True).click()
        expect(rows.first.get_by_role("link")).to_have_attribute("href", re.compile(f"/{kind}/"))


def test_the_graph_lights_what_the_cited_passages_name_and_no_more(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Search", exact=True).select_option("local")
    page.get_by_label("Question").fill("When did Frank Worsley reach South Georgia?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Evidence of the answer")).to_be_visible()
    quotes = " ".join(read_quotes(page)).lower()
    page.get_by_role("button", name="Table", exact=True).click()
    lit = page.get_by_role("table").nth(1).locator("tr.lit td:first-child, tr.lit th")
    expect(lit.first).to_be_visible()
    # The last line of a cell is the word "lit".
    names = [name.lower().splitlines()[0] for name in lit.all_inner_texts()]
    assert [name for name in names if name.split()[-1] not in quotes] == []


def test_what_an_answer_lights_ends_when_the_reader_goes_on(page: Page) -> None:
    page.goto("/#/sample?mode=table")
    page.get_by_label("Question").fill(QUESTION)
    page.keyboard.press("Enter")
    evidence = page.get_by_role("button", name="Evidence of the answer")
    lit = page.locator(".drawn tr.lit")
    expect(evidence).to_be_visible()
    expect(lit.first).to_be_visible()
    page.get_by_role("link", name="Browse").click()
    expect(lit).to_have_count(0)
    expect(evidence).to_have_count(0)
    page.go_back()
    expect(lit.first).to_be_visible()
    page.get_by_label("Index", exact=True).select_option("ships")
    expect(page.get_by_text("This index holds 2 documents")).to_be_visible()
    expect(lit).to_have_count(0)
    # The conversation is kept, and what its answer lights comes back with it.
    page.go_back()
    expect(evidence).to_be_visible()
    expect(lit.first).to_be_visible()


def test_what_is_pointed_at_is_lit_no_longer_than_it_is_there(page: Page) -> None:
    page.goto("/#/sample/entity/0?mode=table")
    lit = page.locator(".drawn tr.lit")
    row = page.get_by_label("Details").locator(".relationship-row").first
    page.get_by_role("button", name="Close").hover()
    row.hover()
    expect(lit.first).to_be_visible()
    # The row goes away under the pointer, which never leaves it.
    page.keyboard.press("/")
    page.evaluate("location.hash = '/sample?mode=table'")
    expect(page.get_by_label("Details")).to_have_count(0)
    expect(lit).to_have_count(0)


def test_a_search_ends_with_its_list(page: Page) -> None:
    page.goto("/#/sample")
    find = page.get_by_role("combobox", name="Find names, reports and passages")
    find.fill("crean")
    expect(page.locator("[role=option]").first).to_be_visible()
    page.keyboard.press("Enter")
    search = page.get_by_label("Search this list")
    expect(search).to_have_value("crean")
    expect(page.locator("[role=option]")).to_have_count(0)
    expect(find).to_have_value("")
    page.get_by_label("Lists").get_by_role("link", name="Passages").click()
    expect(search).to_have_value("")
    page.go_back()
    expect(search).to_have_value("crean")
    page.get_by_role("link", name="Ask", exact=True).click()
    page.get_by_role("link", name="Browse").click()
    expect(search).to_have_value("")


def test_menus_close_when_the_reader_goes_elsewhere(page: Page) -> None:
    page.goto("/#/sample")
    picture = page.get_by_role("button", name="Picture (SVG)")
    page.get_by_label("Save the view").click()
    expect(picture).to_be_visible()
    page.get_by_label("Question").click()
    expect(picture).not_to_be_visible()
    panels = page.get_by_role("link", name="Health")
    page.get_by_text("More", exact=True).press("Enter")
    expect(panels).to_be_visible()
    press_until(page, "Tab", "!document.activeElement.closest('.menu')")
    expect(panels).not_to_be_visible()
    page.get_by_text("More", exact=True).press("Enter")
    page.keyboard.press("Escape")
    expect(panels).not_to_be_visible()
    assert page.evaluate("document.activeElement.matches('.menu > summary')")


def test_the_tab_of_the_browser_names_the_place(page: Page) -> None:
    page.goto("/#/sample?panel=browse")
    expect(page).to_have_title("Browse · sample · graphrag-index")
    row = page.locator(".panel.left .row").first
    name = row.locator(".row-name").inner_text()
    row.click()
    expect(page).to_have_title(f"{name} · Browse · sample · graphrag-index")
    page.get_by_role("button", name="Close").click()
    expect(page).to_have_title("Browse · sample · graphrag-index")
    page.get_by_label("Index", exact=True).select_option("ships")
    expect(page).to_have_title("Ask · ships · graphrag-index")


def test_a_report_refers_to_passages_by_the_titles_of_their_documents(page: Page) -> None:
    report = page.request.get("/v1/indexes/sample/reports/0").json()
    sources = [source for row in report["statements"] for source in row["sources"]]
    titles = {str(source["text_unit"]): source["title"] for source in sources}
    page.goto("/#/sample/community/0")
    links = page.locator(".report a.reference[href*='/text_unit/']")
    expect(links.first).to_be_visible()
    for link in links.all():
        number = re.search(r"/text_unit/(\d+)", link.get_attribute("href") or "")
        assert number
        assert link.inner_text() == titles[number[1]]


def test_passages_that_name_both_ends_are_shown_at_once(page: Page) -> None:
    rows = page.request.get("/v1/indexes/sample/relationships?limit=100").json()["items"]
    row = next(one for one in rows if one["stated"])
    text_units = page.request.get(f"/v1/indexes/sample/relationships/{row['number']}").json()
    page.goto(f"/#/sample/relationship/{row['number']}")
    section = page.get_by_label("Passages that name both")
    count = min(5, len(text_units["text_units"]))
    assert count > 0
    expect(section.locator(".passage")).to_have_count(count)

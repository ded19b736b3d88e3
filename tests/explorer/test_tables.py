"""The console, the timeline and the table of documents."""

import csv
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from graphrag_index.export.explorer_page import write_page
from graphrag_query.structured.sandbox import GRAPH_LIBRARIES
from tests.explorer.conftest import Keep

SAMPLE = "/v1/indexes/sample"
MOST_LINKED = "SELECT title, degree FROM entities ORDER BY title"


def open_console(page: Page, query: str, language: str = "sql") -> Locator:
    """Open the console at a query in the address, and return the field of the query."""
    page.goto(f"/#/sample?mode=console&language={language}&query={quote(query)}")
    field = page.get_by_label("Query", exact=True)
    expect(field).to_have_value(query)
    return field


def test_a_query_is_written_with_the_columns_beside_it_and_its_rows_open(
    page: Page, keep: Keep
) -> None:
    field = open_console(page, "SELECT , degree FROM entities ORDER BY title")
    tables = page.get_by_label("Tables and columns")
    tables.locator("summary").filter(has_text="entities").click()
    field.evaluate("field => field.setSelectionRange(7, 7)")
    tables.get_by_role("button", name="title").locator("visible=true").click()
    expect(field).to_have_value(MOST_LINKED)
    expect(field).to_be_focused()
    page.keyboard.press("Control+Enter")
    rows = page.locator(".result tbody tr")
    whole = page.request.get(SAMPLE).json()["tables"]["entities"]
    expect(page.get_by_role("status").get_by_text(f"{whole} rows")).to_be_visible()
    # The rows keep the order of the query until a column is pressed.
    shown = page.request.post(f"{SAMPLE}/sql", data={"query": MOST_LINKED}).json()["rows"]
    expect(rows.first.locator("td").first).to_have_text(shown[0][0])
    page.get_by_role("table").get_by_role("button", name="degree").click()
    first = page.request.get(f"{SAMPLE}/entities?sort=-degree&limit=1").json()["items"][0]
    expect(rows.first).to_contain_text(first["title"])
    expect(rows).to_have_count(100)
    keep("console")
    rows.first.get_by_role("link").click()
    heading = page.get_by_label("Details").get_by_role("heading", name=first["title"])
    expect(heading).to_be_visible()
    # The address holds the query, for others and for "back"; it is not run by itself.
    page.reload()
    expect(field).to_have_value(MOST_LINKED)
    expect(rows).to_have_count(0)


def test_the_rows_of_a_query_are_saved_whole(page: Page) -> None:
    open_console(page, "SELECT title, aliases FROM entities ORDER BY degree DESC LIMIT 150")
    page.get_by_role("button", name="Run").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    [names, *rows] = csv.reader(saved.value.path().read_text(encoding="utf-8").splitlines())
    assert names == ["title", "aliases"]
    assert len(rows) == 150
    assert rows[0] == ["Ernest Shackleton", '["Shackleton"]']


@pytest.mark.parametrize(
    ("language", "query"),
    [("sql", "DELETE FROM entities"), ("cypher", "MATCH (e:Entity) DELETE e")],
)
def test_a_query_that_would_write_is_refused_with_the_sentence_of_the_server(
    page: Page, language: str, query: str
) -> None:
    open_console(page, query, language)
    page.get_by_role("button", name="Run").click()
    refused = page.request.post(f"{SAMPLE}/{language}", data={"query": query})
    expect(page.get_by_role("alert")).to_have_text(refused.json()["detail"])
    expect(page.locator(".result")).to_have_count(0)


def test_a_query_is_stopped_and_the_next_one_runs(page: Page) -> None:
    product = "a.entity * b.entity * c.entity"
    endless = f"SELECT count(*) FROM mentions a, mentions b, mentions c WHERE {product} = 7"
    field = open_console(page, endless)
    page.get_by_role("button", name="Run").click()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("The query runs")).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)
    field.fill("SELECT 6 * 7 AS product")
    field.press("Control+Enter")
    expect(page.locator(".result td")).to_have_text("42")


@pytest.mark.skipif(
    not any(map(find_spec, GRAPH_LIBRARIES)),
    reason="needs a graph engine",
)
def test_the_nodes_of_a_query_in_cypher_open(page: Page) -> None:
    page.goto("/#/sample?mode=console")
    page.get_by_role("button", name="Cypher").click()
    expect(page.locator(".console summary").get_by_text("MENTIONS")).to_be_visible()
    page.get_by_role("button", name="In most documents").click()
    page.get_by_role("button", name="Run").click()
    link = page.locator(".result").get_by_role("link", name="Ernest Shackleton")
    link.click()
    details = page.get_by_label("Details")
    expect(details.get_by_role("heading", name="Ernest Shackleton")).to_be_visible()


def read_table(page: Page) -> list[list[str]]:
    rows = page.get_by_role("table").locator("tbody tr").all()
    return [row.locator("td").all_inner_texts() for row in rows]


def test_documents_are_sorted_found_and_opened_in_a_table(page: Page, keep: Keep) -> None:
    page.goto("/#/sample?mode=documents")
    table = page.get_by_role("table", name="Documents")
    page.get_by_role("button", name="Entities").click()
    first = page.request.get(f"{SAMPLE}/documents?sort=-n_entities&limit=1").json()["items"][0]
    expect(table.locator("tbody tr").first).to_contain_text(first["title"])
    keep("documents")
    counts = [int(row[-1]) for row in read_table(page)]
    assert counts == sorted(counts, reverse=True)
    page.get_by_label("Search this list").fill("belgica.md")
    expect(table.locator("tbody tr")).to_have_count(1)
    [[title, kind, date, passages, entities]] = read_table(page)
    [found] = page.request.get(f"{SAMPLE}/documents?q=belgica.md").json()["items"]
    assert title.splitlines() == [found["title"], found["path"]]
    numbers = str(found["n_text_units"]), str(found["n_entities"])
    assert (kind, date, passages, entities) == ("md", "2024-03-11", *numbers)
    table.get_by_role("link").click()
    details = page.get_by_label("Details")
    expect(details.get_by_role("heading", name=found["title"])).to_be_visible()
    # The date is said to be that of the document: its events are of 1897 to 1899.
    expect(details.get_by_text("dated 2024-03-11")).to_be_visible()


def test_the_timeline_narrows_the_table_the_lists_and_the_graph(page: Page, keep: Keep) -> None:
    page.goto("/#/sample?mode=documents&panel=browse")
    rows = page.get_by_role("table", name="Documents").locator("tbody tr")
    line = page.get_by_role("group", name="Documents over time")
    expect(line.get_by_role("status")).to_contain_text("5 documents")
    expect(line.get_by_role("status")).to_contain_text("58 documents without a date")
    # Keys alone choose a period.
    page.get_by_role("slider", name="First date").focus()
    page.keyboard.press("ArrowRight")
    expect(rows).to_have_count(4)
    page.get_by_role("slider", name="Last date").focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    expect(rows).to_have_count(3)
    expect(line.get_by_role("status")).to_contain_text("3 documents")
    dates = "since=2024-03-12&until=2024-05-03"
    assert dates in page.url
    total = page.request.get(f"{SAMPLE}/entities?{dates}").json()["total"]
    expect(page.locator(".panel.left").get_by_role("status")).to_have_text(f"{total} rows")
    keep("timeline")
    # The graph draws the entities of these documents alone.
    page.get_by_role("button", name="Table", exact=True).click()
    drawn = page.get_by_role("table", name="Entities").locator("tbody td:first-child a")
    kept = page.request.get(f"{SAMPLE}/entities?{dates}&limit=500").json()["items"]
    expect(drawn.first).to_be_visible()
    assert set(drawn.all_inner_texts()) <= {entity["title"] for entity in kept}
    page.get_by_role("link", name="Filters").click()
    expect(page.get_by_label("First", exact=True)).to_have_value("2024-03-12")
    # A whole timeline is no filter.
    page.get_by_role("slider", name="First date").focus()
    page.keyboard.press("Home")
    page.get_by_role("slider", name="Last date").focus()
    page.keyboard.press("End")
    expect(page.get_by_label("Last", exact=True)).to_have_value("")
    assert "since" not in page.url


def test_the_timeline_counts_the_mentions_of_the_selected_entity(page: Page) -> None:
    [found] = [
        entity
        for entity in page.request.get(f"{SAMPLE}/suggest?q=shackleton").json()["entities"]
        if entity["title"] == "Ernest Shackleton"
    ]
    page.goto(f"/#/sample/entity/{found['number']}?mode=documents")
    line = page.request.get(f"{SAMPLE}/timeline?entity={found['number']}").json()
    mentions = sum(period["mentions"] for period in line["periods"])
    told = page.get_by_role("group", name="Documents over time").get_by_role("status")
    expect(told).to_contain_text(f"{mentions} passages name it")
    # A period is chosen with the pointer too.
    bars = page.locator(".timeline g")
    expect(bars).to_have_count(len(line["periods"]))
    bars.first.click()
    expect(told).to_contain_text("2024-03-11 1 document")


def test_there_is_no_timeline_where_no_document_has_a_date(page: Page) -> None:
    page.goto("/#/ships?mode=documents")
    expect(page.get_by_role("table", name="Documents")).to_be_visible()
    expect(page.get_by_role("slider")).to_have_count(0)


def test_a_page_without_a_server_has_the_table_and_the_timeline(
    page: Page, sample_project: Path, tmp_path: Path
) -> None:
    write_page(sample_project / "output", tmp_path / "page.html", name="sample")
    page.goto((tmp_path / "page.html").as_uri())
    expect(page.get_by_role("button", name="Table")).to_be_visible()
    expect(page.get_by_role("button", name="Console")).to_have_count(0)
    page.get_by_role("button", name="Documents").click()
    told = page.get_by_role("group", name="Documents over time").get_by_role("status")
    expect(told).to_contain_text("5 documents")
    page.get_by_role("slider", name="First date").focus()
    page.keyboard.press("ArrowRight")
    rows = page.get_by_role("table", name="Documents").locator("tbody tr")
    expect(rows).to_have_count(4)
    page.get_by_role("button", name="Date").click()
    dates = [row[2] for row in read_table(page)]
    assert dates == sorted(dates, reverse=True)


@pytest.mark.parametrize("mode", ["documents", "console"])
def test_tables_fit_a_small_screen(page: Page, mode: str, keep: Keep) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/#/sample?mode={mode}&query={quote(MOST_LINKED)}")
    # What the address names is shown without a press.
    if mode == "console":
        page.get_by_label("Query", exact=True).press("Control+Enter")
    expect(page.locator("td").first).to_be_visible()
    keep(f"small-{mode}")
    too_wide = """[...document.querySelectorAll(".graph-pane *")].filter((element) =>
        !element.closest(".scrolled, .unseen") && element.getBoundingClientRect().right > 390.5
    ).map((element) => element.outerHTML.slice(0, 120))"""
    assert page.evaluate(too_wide) == []


def test_suggested_questions_are_about_names_that_are_connected(page: Page) -> None:
    unfit: list[str] = []

    def make_unfit(route: Route) -> None:
        reply = route.fetch()
        rows = reply.json()
        phrase, _, lonely = rows["items"][:3]
        # The first is no name, and nothing is linked to the third.
        phrase["type"], lonely["number"] = "noun phrase", 10**6
        unfit.extend([phrase["title"], lonely["title"]])
        route.fulfill(response=reply, json=rows)

    page.route("**/entities?limit=50*", make_unfit)
    page.goto("/#/sample")
    asked = page.locator(".suggestions button").filter(has_text="connected")
    expect(asked).to_be_visible()
    assert unfit
    suggested = "".join(page.locator(".suggestions button").all_inner_texts())
    assert not any(name in suggested for name in unfit)

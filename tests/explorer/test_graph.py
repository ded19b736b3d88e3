"""The graph: its table, its colours, its files, two versions of it, and a small screen."""

import colorsys
import csv
import io
import math
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from graphrag_server.server_settings import ServerSettings
from tests.conftest import run_project
from tests.explorer.conftest import COUNT_REQUESTS, Keep, press_until
from tests.fixtures.served import serve

SVG = "{http://www.w3.org/2000/svg}"
GEXF = "{http://gexf.net/1.3}"
# What the list of drawn things says, when it has been the same for some time and frames, and no
# request that could change it is waited for.
SETTLED = """async () => {
    const read = () => JSON.stringify(
        [...document.querySelectorAll(".graph-view")].map((view) => ({ ...view.dataset })));
    for (let before = null, same = 0; same < 5; before = read()) {
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 50)));
        same = window.requestsInFlight === 0 && read() === before ? same + 1 : 0;
    }
    return JSON.parse(read());
}"""
# The boxes of the texts and of the circles of a picture.
MEASURE = """(svg) => {
    const shown = document.createElement("div");
    shown.style.cssText = "position: fixed; left: 0; top: 0; visibility: hidden";
    shown.innerHTML = svg;
    document.body.append(shown);
    const measure = (element) => {
        const { left, right, top, bottom } = element.getBoundingClientRect();
        return [left, right, top, bottom];
    };
    return ["text", "circle"].map((name) => [...shown.querySelectorAll(name)].map(measure));
}"""
TABLES = {"Communities": "communities", "Entities": "entities", "Relationships": "lines"}


def read_drawn(page: Page, *, pane: int = 0) -> dict[str, int]:
    """Return how many communities, entities and lines a drawing has in sight."""
    return {name: int(count) for name, count in page.evaluate(SETTLED)[pane].items()}


def read_table(page: Page, name: str) -> list[list[str]]:
    """Return the cells of all rows of a table."""
    table = page.get_by_role("table", name=name)
    more = page.locator(f".scrolled:has(caption:text('{name}')) + .more")
    while more.count():
        more.click()
    rows: list[list[str]] = table.evaluate(
        """(table) => [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => (
            [...cell.childNodes].filter((node) => !node.classList?.contains("unseen"))
                .map((node) => node.textContent).join("").trim())))"""
    )
    return rows


def save(page: Page | Locator, name: str) -> bytes:
    """Save the view in a form, and return the file."""
    page.get_by_label("Save the view").click()
    owner = page if isinstance(page, Page) else page.page
    with owner.expect_download() as download:
        page.get_by_role("button", name=name).click()
    return Path(download.value.path()).read_bytes()


def read_csv(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_the_table_holds_what_is_drawn_and_keys_open_communities(page: Page, keep: Keep) -> None:
    page.goto("/#/sample?mode=table")
    expect(page.get_by_role("button", name="Open ").first).to_be_visible()
    assert read_drawn(page)["entities"] == 0
    page.get_by_role("button", name="Table").focus()
    while (drawn := read_drawn(page))["entities"] == 0:
        press_until(page, "Tab", "document.activeElement.ariaLabel?.startsWith('Open ')")
        page.keyboard.press("Enter")
    rows = {name: read_table(page, name) for name in TABLES}
    assert {TABLES[name]: len(found) for name, found in rows.items()} == drawn
    known = {texts[0] for name in ("Communities", "Entities") for texts in rows[name]}
    assert all({source, target} & known for source, target, *_ in rows["Relationships"])
    keep("table")
    page.get_by_role("table", name="Entities").get_by_role("button", name="Name").click()
    names = [texts[0] for texts in read_table(page, "Entities")]
    assert names == sorted(names, key=str.casefold)
    page.get_by_role("button", name="Graph", exact=True).click()
    assert read_drawn(page) == drawn
    page.get_by_role("button", name="Table").click()
    page.get_by_role("button", name="Whole graph", exact=True).click()
    assert read_drawn(page)["entities"] == 0


def test_the_view_is_saved_in_each_form(page: Page, keep: Keep) -> None:
    page.goto("/#/sample/entity/0?colour=type")
    expect(page.locator(".type-legend button").first).to_be_visible()
    page.wait_for_function("document.querySelector('.graph-view')?.dataset.entities > 0")
    drawn = read_drawn(page)
    assert drawn["entities"] > 0
    keep("types")
    entities = read_csv(save(page, "Entities (CSV)"))
    communities = read_csv(save(page, "Communities (CSV)"))
    relationships = read_csv(save(page, "Relationships (CSV)"))
    counts = [len(communities), len(entities), len(relationships)]
    assert counts == [drawn["communities"], drawn["entities"], drawn["lines"]]

    picture = ElementTree.fromstring(save(page, "Picture (SVG)"))
    words = [element.text or "" for element in picture.iter(f"{SVG}text")]
    for button in page.locator(".type-legend button").all():
        type_, count = button.inner_text().rsplit(maxsplit=1)
        assert f"{type_} ({count})" in words
    width, height = float(picture.get("width", 0)), float(picture.get("height", 0))
    circles = [circle.attrib for circle in picture.iter(f"{SVG}circle")]
    panel = page.evaluate(
        "getComputedStyle(document.documentElement).getPropertyValue('--panel').trim()"
    )
    # A closed community has a ground; the dots of the legend have one place.
    grounds = [circle for circle in circles if circle["fill"] == panel]
    assert len(grounds) == sum(row["is_open"] == "false" for row in communities)
    dots = [
        circle
        for circle in circles
        if circle["fill"] not in {panel, "none"}
        and "opacity" not in circle
        and circle["cx"] != "21"
        and 0 <= float(circle["cx"]) <= width
        and 0 <= float(circle["cy"]) <= height
    ]
    assert len(dots) == len(entities)

    graph = ElementTree.fromstring(save(page, "Graph (GEXF)"))
    nodes = {node.get("id"): node.get("label") for node in graph.iter(f"{GEXF}node")}
    assert {row["number"]: row["title"] for row in entities}.items() <= nodes.items()
    edges = list(graph.iter(f"{GEXF}edge"))
    assert len(edges) == len(relationships)
    assert {edge.get(end) for edge in edges for end in ("source", "target")} <= nodes.keys()

    png = save(page, "Picture (PNG)")
    size = [int.from_bytes(png[at : at + 4], "big") for at in (16, 20)]
    box = page.get_by_role("application").bounding_box()
    assert png.startswith(b"\x89PNG")
    assert box
    assert size == [round(box["width"]), round(box["height"])]


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_every_community_of_the_overview_has_a_title_in_the_frame(
    page: Page, size: tuple[int, int]
) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto("/#/sample")
    if size[0] < 900:
        page.get_by_label("Parts of the page").get_by_text("Graph").click()
    expect(page.get_by_role("application")).to_have_attribute("data-areas", re.compile("[1-9]"))
    read_drawn(page)
    titles = [row["title"] for row in read_csv(save(page, "Communities (CSV)"))]
    svg = save(page, "Picture (SVG)").decode()
    picture = ElementTree.fromstring(svg)
    # A long title is shortened.
    words = [element.text or "" for element in picture.iter(f"{SVG}text")]
    assert len(titles) > 10
    missing = [one for one in titles if not any(word.startswith(one[:4]) for word in words)]
    assert missing == []
    # No title runs out of the frame or under the buttons, and the discs use the frame.
    texts, discs = page.evaluate(MEASURE, svg)
    width, height = float(picture.get("width", 0)), float(picture.get("height", 0))
    buttons = page.locator(".graph-buttons").bounding_box()
    stage = page.get_by_role("application").bounding_box()
    assert buttons
    assert stage
    beside = buttons["x"] - stage["x"]
    below = buttons["y"] - stage["y"] + buttons["height"]
    out = [
        (left, right, top, bottom)
        for left, right, top, bottom in texts
        if min(left, top, width - right, height + 1 - bottom) < 0
        or (right > beside and top < below)
    ]
    assert out == []
    filled = [
        (max(disc[at + 1] for disc in discs) - min(disc[at] for disc in discs)) / side
        for at, side in ((0, width), (2, height))
    ]
    assert max(filled) > 0.85


def test_what_is_open_follows_from_the_view_alone(page: Page) -> None:
    page.goto("/#/sample")
    graph = page.get_by_role("application")
    expect(graph).to_have_attribute("data-areas", re.compile("[1-9]"))
    overview = read_drawn(page)
    graph.focus()
    while read_drawn(page)["entities"] == 0:
        page.keyboard.press("Enter")
    seen = []
    while not seen or seen[-1]["entities"] > 0:
        page.keyboard.press("-")
        seen.append(read_drawn(page))
    assert len(seen) > 1
    for before in seen[-2::-1]:
        page.keyboard.press("+")
        assert read_drawn(page) == before
    page.get_by_role("button", name="Show the whole graph").click()
    assert read_drawn(page) == overview


def test_types_and_filters_choose_among_what_is_drawn(page: Page) -> None:
    entity = page.request.get("/v1/indexes/sample/entities/0").json()
    address = f"/#/sample?mode=table&colour=type&only={entity['communities'][-1]['community']}"
    page.goto(address)
    table = page.get_by_role("table", name="Entities")
    expect(table.locator("a").first).to_be_visible()
    before = read_drawn(page)
    rows = read_table(page, "Entities")
    for button in page.locator(".type-legend button").all():
        type_, count = button.inner_text().rsplit(maxsplit=1)
        assert int(count) == sum(row[1] == type_ for row in rows)
    button = page.locator(".type-legend button", has_text="person")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    persons = {row[0] for row in rows if row[1] == "person"}
    assert set(table.locator("tr.lit a").all_inner_texts()) == persons
    assert read_drawn(page) == before
    page.goto(f"{address}&type=person")
    expect(table.locator("tbody tr")).to_have_count(len(persons))
    assert {row[0] for row in read_table(page, "Entities")} == persons
    assert len(persons) < len(rows)


def test_two_versions_show_what_came_and_what_went(page: Page, keep: Keep) -> None:
    page.goto("/#/ships?panel=versions&compare=1")
    counts = page.request.get("/v1/indexes/ships/diff/entities?from=1").json()["counts"]
    before, after = (page.get_by_role("region", name=f"version {n}", exact=True) for n in (1, 2))
    expect(before.locator(".graph-legend")).to_contain_text(
        re.compile(rf"removed: {counts['removed']} entit")
    )
    expect(after.locator(".graph-legend")).to_contain_text(
        re.compile(rf"added: {counts['added']} entit")
    )
    read_drawn(page)
    for pane, kind in ((before, "removed"), (after, "added")):
        colour = page.evaluate(
            f"getComputedStyle(document.documentElement).getPropertyValue('--{kind}').trim()"
        )
        picture = ElementTree.fromstring(save(pane, "Picture (SVG)"))
        coloured = [dot for dot in picture.iter(f"{SVG}circle") if dot.get("fill") == colour]
        # One of them is the dot of the legend.
        assert len(coloured) > 1
        # The view shows all that came.
        sides = [float(picture.get(side, 0)) for side in ("width", "height")]
        out = [
            dot.attrib
            for dot in coloured
            if not 0 < float(dot.get("cx", 0)) < sides[0]
            or not 0 < float(dot.get("cy", 0)) < sides[1]
        ]
        assert kind == "removed" or out == []
    keep("versions-side-by-side")
    # A row that went is opened in the version that had it, and the comparison stays.
    page.get_by_label("Changes from version 1 to version 2").get_by_text("removed").nth(1).click()
    page.get_by_role("link", name="Belgica in version 1").click()
    expect(page.get_by_label("Details").get_by_role("heading", name="Belgica")).to_be_visible()
    page.get_by_role("button", name="Table").click()
    row = before.get_by_role("table", name="Entities").locator("tr:has(a:text-is('Belgica'))")
    expect(row.locator("td").last).to_have_text("removed")
    expect(after).to_be_visible()


def test_what_a_question_is_about_is_in_sight_and_an_empty_place_is_told(page: Page) -> None:
    crean = find_entity(page, "Tom Crean")
    page.goto(f"/#/sample/entity/{crean['number']}")
    expect(page.get_by_role("region", name="Details")).to_be_visible()
    read_drawn(page)
    page.get_by_label("Question", exact=True).fill("Who led the Belgica?")
    page.keyboard.press("Enter")
    chips = page.locator(".named-entities .chip")
    expect(chips.first).to_be_visible()
    expect(page.get_by_role("region", name="Details")).to_have_count(0)
    read_drawn(page)
    assert set(chips.all_inner_texts()) <= read_labels(page.locator(".graph-view")).keys()
    # Both ends of a relationship are in sight too.
    page.goto(f"/#/sample/entity/{crean['number']}")
    page.locator(".relationship-row").last.click()
    expect(page.locator(".panel-kind")).to_have_text("Relationship")
    read_drawn(page)
    ends = page.locator(".evidence h2").inner_text().split(" – ")
    assert set(ends) <= read_labels(page.locator(".graph-view")).keys()
    # Between the communities there is nothing.
    page.goto("/#/sample")
    read_drawn(page)
    stage = page.get_by_role("application").bounding_box()
    assert stage
    page.mouse.move(stage["x"] + 5, stage["y"] + stage["height"] - 5)
    status = page.get_by_role("status").filter(has_text="Nothing lies here")
    for _ in range(6):
        page.mouse.wheel(0, -400)
        page.wait_for_timeout(300)
    expect(status).to_be_visible()
    page.get_by_role("button", name="Show the whole graph").click()
    expect(status).to_have_count(0)


def read_labels(pane: Locator) -> dict[str, tuple[float, float]]:
    """Return the places of the labels of a picture by their lines."""
    texts = ElementTree.fromstring(save(pane, "Picture (SVG)")).iter(f"{SVG}text")
    return {
        "".join(text.itertext()): (float(text.get("x", 0)), float(text.get("y", 0)))
        for text in texts
    }


def test_two_versions_show_the_same_things_at_the_same_places(
    browser: Browser, sample_project: Path, tmp_path: Path
) -> None:
    root = tmp_path / "kept"
    shutil.copytree(sample_project, root)
    dogs = "Ernest Shackleton bought dogs from Carl Larsen. Frank Wild and Tom Crean fed the dogs."
    (root / "input" / "people" / "dogs.txt").write_text(dogs, encoding="utf-8")
    (root / "input" / "expeditions" / "belgica.md").unlink()
    run_project(root)
    with (
        serve(ServerSettings(indexes={"kept": root})) as served,
        browser.new_context(base_url=served.url, reduced_motion="reduce") as context,
    ):
        context.add_init_script(COUNT_REQUESTS)
        page = context.new_page()
        page.goto("/#/kept?compare=1")
        panes = [page.get_by_role("region", name=f"version {n}", exact=True) for n in (1, 2)]
        for _ in range(2):
            page.evaluate(SETTLED)
            before, after = map(read_labels, panes)
            common = before.keys() & after.keys()
            apart = [name for name in common if math.dist(before[name], after[name]) > 2]
            assert len(common) > 10
            assert len(apart) < len(common) / 10
            # What moves one picture moves the other.
            panes[0].get_by_role("button", name="Zoom in", exact=True).click()


def test_a_small_screen_shows_all_without_scrolling_sideways(page: Page, keep: Keep) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    too_wide = """[...document.querySelectorAll("body *")].filter((element) => {
        if (!element.checkVisibility({ visibilityProperty: true })) return false;
        if (element.closest(".scrolled, .type-legend, .unseen, .sigma-mouse, svg")) return false;
        return element.getBoundingClientRect().right > 390.5 || element.scrollWidth > innerWidth;
    }).map((element) => element.outerHTML.slice(0, 120))"""
    for name, address in {
        "types": "/#/sample/entity/0?colour=type",
        "table": "/#/sample/entity/0?mode=table",
        "neighbours": "/#/sample/entity/0?around=entity-0",
        "versions": "/#/ships?panel=versions&compare=1",
    }.items():
        page.goto(address)
        parts = page.get_by_label("Parts of the page").get_by_role("button")
        expect(parts.first).to_be_visible()
        for part in parts.all():
            part.click()
            expect(part).to_have_attribute("aria-pressed", "true")
            keep(f"small-{name}-{part.inner_text()}")
            assert page.evaluate(too_wide) == []
        parts.get_by_text("Graph").click()
        for view in page.locator(".graph-view").all():
            expect(view.get_by_role("button", name="Zoom in", exact=True).first).to_be_in_viewport()
            expect(view.locator(".graph-legend, table").first).to_be_in_viewport()


def test_neighbouring_themes_differ_and_light_and_dark_have_the_same_hues(page: Page) -> None:
    page.goto("/#/sample")
    expect(page.get_by_role("application")).to_have_attribute("data-areas", re.compile("[1-9]"))
    read_drawn(page)
    picture = ElementTree.fromstring(save(page, "Picture (SVG)"))
    discs = [
        (*(float(circle.get(name, 0)) for name in ("cx", "cy", "r")), circle.get("stroke"))
        for circle in picture.iter(f"{SVG}circle")
        if circle.get("stroke")
    ]
    assert len(discs) > 10
    for x, y, radius, colour in discs:
        gaps = sorted((math.hypot(x - a, y - b) - radius - r, other) for a, b, r, other in discs)
        # The first one is the disc itself.
        assert colour not in [other for _, other in gaps[1:4]]
    hues: list[list[float]] = []
    for theme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        colours = page.evaluate(
            """() => Array.from({ length: 8 }, (_, at) =>
                getComputedStyle(document.documentElement).getPropertyValue(`--c${at}`).trim())"""
        )
        parts = [[int(one[at : at + 2], 16) / 255 for at in (1, 3, 5)] for one in colours]
        hues.append([360 * colorsys.rgb_to_hsv(*part)[0] for part in parts])
    differences = [abs((one - other + 180) % 360 - 180) for one, other in zip(*hues, strict=True)]
    assert max(differences) < 25


def test_colours_inside_a_theme_tell_types(page: Page) -> None:
    entity = page.request.get("/v1/indexes/sample/entities/0").json()
    page.goto(f"/#/sample?only={entity['communities'][-1]['community']}")
    buttons = page.locator(".type-legend button")
    expect(buttons.first).to_be_visible()
    read_drawn(page)
    picture = ElementTree.fromstring(save(page, "Picture (SVG)"))
    dots = Counter(circle.get("fill") for circle in picture.iter(f"{SVG}circle"))
    counts = {}
    for button in buttons.all():
        name = button.locator(".legend-dot").evaluate("(dot) => dot.style.background.slice(4, -1)")
        style = "getComputedStyle(document.documentElement)"
        colour = page.evaluate(f"{style}.getPropertyValue('{name}').trim()")
        counts[colour] = int(button.inner_text().rsplit(maxsplit=1)[1])
    assert len(counts) > 1
    # The legend of the picture has one more dot of each colour.
    assert {colour: dots[colour] - 1 for colour in counts} == counts


def find_entity(page: Page, name: str, index: str = "sample") -> dict[str, Any]:
    """Return the row of an entity by its name."""
    found = page.request.get(f"/v1/indexes/{index}/suggest", params={"q": name}).json()
    entity: dict[str, Any] = found["entities"][0]
    assert entity["title"] == name
    return entity


def expect_entities(page: Page, names: set[str]) -> None:
    """Wait until the table of the graph has these entities."""
    expect(page.locator("table:has(caption:text('Entities')) tbody tr")).to_have_count(len(names))
    assert {row[0] for row in read_table(page, "Entities")} == names


def read_neighbours(page: Page, number: int) -> list[dict[str, Any]]:
    """Return the neighbours of an entity, the strongest first."""
    found = page.request.get(f"/v1/indexes/sample/neighbourhood?entity={number}&limit=500").json()
    strength: Counter[int] = Counter()
    for row in found["relationships"]:
        ends = {row["source"], row["target"]}
        if number in ends:
            strength.update(dict.fromkeys(ends - {number}, row["weight"]))
    rows = {row["number"]: row for row in found["entities"]}
    return [rows[neighbour] for neighbour, _ in strength.most_common()]


def test_an_entity_is_surrounded_by_its_best_neighbours_and_the_map_comes_back(
    page: Page, keep: Keep
) -> None:
    crean = find_entity(page, "Tom Crean")
    neighbours = read_neighbours(page, crean["number"])
    page.goto(f"/#/sample/entity/{crean['number']}")
    page.wait_for_function("document.querySelector('.graph-view')?.dataset.entities > 0")
    page.get_by_role("button", name="Zoom in", exact=True).click()
    on_map = read_drawn(page)
    before = sorted(save(page, "Picture (SVG)").splitlines())
    page.get_by_role("link", name="Neighbours", exact=True).click()
    expect(page.get_by_role("heading", name="Neighbours of Tom Crean")).to_be_visible()
    expect(page.locator(".surroundings-bar")).to_contain_text(f"20 of {len(neighbours)}")
    assert read_drawn(page)["entities"] == 21
    keep("neighbours")
    picture = ElementTree.fromstring(save(page, "Picture (SVG)"))
    words = {element.text for element in picture.iter(f"{SVG}text")}
    assert {row["title"] for row in neighbours[:20]} | {"Tom Crean"} <= words

    page.get_by_role("button", name="Table", exact=True).click()
    best = {row["title"] for row in neighbours[:20]} | {"Tom Crean"}
    expect_entities(page, best)
    types = Counter(row["type"] for row in neighbours)
    shown = Counter(row["type"] for row in neighbours[:20])
    kind = next(one for one, _ in types.most_common() if 0 < shown[one] < types[one])
    page.get_by_role("button", name=f"All of the type {kind}").click()
    of_kind = {row["title"] for row in neighbours if row["type"] == kind}
    expect(page.locator(".surroundings-bar")).to_contain_text(f"{20 + len(of_kind - best)} of")
    expect_entities(page, best | of_kind)
    page.get_by_role("button", name=re.compile(rf"^{kind}")).click()
    rest = [row["title"] for row in neighbours if row["type"] != kind][:20]
    expect(page.locator(".surroundings-bar")).to_contain_text(f"{len(rest)} of")
    expect_entities(page, {*rest, "Tom Crean"})
    page.get_by_role("button", name="Graph", exact=True).click()

    page.get_by_role("link", name="Map", exact=True).click()
    expect(page.locator(".surroundings-bar")).to_have_count(0)
    assert read_drawn(page) == on_map
    assert sorted(save(page, "Picture (SVG)").splitlines()) == before


def test_a_neighbour_is_pinned_hidden_and_put_in_the_middle(page: Page, keep: Keep) -> None:
    crean = find_entity(page, "Tom Crean")
    first, *_, last = read_neighbours(page, crean["number"])
    page.goto(f"/#/sample/entity/{first['number']}?around=entity-{crean['number']}&mode=table")
    names = page.get_by_role("table", name="Entities").locator("td:first-child a")
    expect(names.get_by_text(first["title"], exact=True)).to_be_visible()
    page.get_by_label("Details").get_by_role("link", name="Hide").click()
    expect(names.get_by_text(first["title"], exact=True)).to_have_count(0)
    page.get_by_role("link", name="Show 1 hidden").click()
    expect(names.get_by_text(first["title"], exact=True)).to_be_visible()
    # A weak neighbour is shown while it is selected, and from then on if it is pinned.
    expect(names.get_by_text(last["title"], exact=True)).to_have_count(0)
    around = page.evaluate("new URLSearchParams(location.hash.split('?')[1]).get('around')")
    page.evaluate(f"location.hash = '/sample/entity/{last['number']}?around={around}&mode=table'")
    expect(names.get_by_text(last["title"], exact=True)).to_be_visible()
    page.get_by_label("Details").get_by_role("link", name="Pin", exact=True).click()
    names.get_by_text("Tom Crean", exact=True).click()
    expect(page.get_by_label("Details").get_by_role("heading", name="Tom Crean")).to_be_visible()
    expect(names.get_by_text(last["title"], exact=True)).to_be_visible()
    names.get_by_text(first["title"], exact=True).click()
    page.get_by_label("Details").get_by_role("link", name="Neighbours", exact=True).click()
    heading = page.get_by_role("heading", name=f"Neighbours of {first['title']}")
    expect(heading).to_be_visible()
    expect(names.get_by_text(last["title"], exact=True)).to_be_visible()
    page.reload()
    expect(heading).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Neighbours of Tom Crean")).to_be_visible()
    # What is chosen elsewhere is shown on the map.
    page.evaluate("location.hash = location.hash.replace(/entity.\\d+/, 'community/0')")
    expect(page.locator(".surroundings-bar")).to_have_count(0)
    expect(page).not_to_have_url(re.compile("around"))


def test_a_passage_and_paths_are_surrounded_by_their_entities(page: Page, keep: Keep) -> None:
    unit = page.request.get("/v1/indexes/sample/text_units/20").json()
    page.goto("/#/sample/text_unit/20?mode=table")
    page.get_by_role("link", name="Show in the graph").click()
    expect(page.locator(".surroundings-bar h2")).to_contain_text(unit["document_title"])
    expect_entities(page, {row["title"] for row in unit["entities"]})
    keep("passage-in-graph")

    ends = [find_entity(page, name)["number"] for name in ("Tom Crean", "Roald Amundsen")]
    found = page.request.get(f"/v1/indexes/sample/path?from={ends[0]}&to={ends[1]}").json()
    paths = [path["relationships"] for path in found["paths"]]
    assert len(paths) == 3
    page.goto(f"/#/sample?path={ends[0]}-{ends[1]}&mode=table")
    expect(page.locator(".surroundings-bar h2")).to_contain_text("Tom Crean")
    lit = page.get_by_role("table", name="Relationships").locator("tr.lit")
    for rank, path in enumerate(paths):
        page.get_by_label("Details").locator(".path h3").nth(rank).hover()
        expect(lit).to_have_count(len(path))
        numbers = lit.locator("td:nth-child(4) a").evaluate_all(
            "(links) => links.map((link) => Number(link.hash.match(/relationship.(\\d+)/)[1]))"
        )
        assert sorted(numbers) == sorted(path)
    keep("paths")

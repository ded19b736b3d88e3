"""axe-core looks for faults that shut out readers, on each kind of view."""

import pytest
from playwright.sync_api import Page, expect

from tests.explorer.conftest import AXE, find_faults

pytestmark = pytest.mark.skipif(
    not AXE.is_file(), reason="needs axe-core: run `npm ci` in explorer/"
)
# Each view: its address, and what is visible when it is complete.
VIEWS = {
    "start": ("/#/sample", ".suggestions button"),
    "entity": ("/#/sample/entity/0", ".evidence article section .row"),
    "community": ("/#/sample/community/0", ".evidence article section .row"),
    "relationship": ("/#/sample/relationship/0", ".evidence .passage"),
    "neighbours": ("/#/sample/entity/0?around=entity-0", ".type-choice"),
    "path": ("/#/sample?path=0-1", ".surroundings-bar"),
    "document": ("/#/sample/document/0/0-40", "mark"),
    "table": ("/#/sample?mode=table", "caption >> text=Entities"),
    "all documents": ("/#/sample/entity/0?mode=documents", ".drawn td"),
    "console": ("/#/sample?mode=console", ".console summary"),
    "browse": ("/#/sample?panel=browse", ".panel.left .row"),
    "filters": ("/#/sample?panel=filters", ".checks"),
    "versions": ("/#/sample?panel=versions", ".panel.left .row"),
    "types": ("/#/sample?colour=type", ".type-legend button"),
    "comparison": ("/#/ships?compare=1&mode=table", ".version-graph + .version-graph td"),
    "documents": ("/#/sample?panel=documents", ".panel.left .row"),
    "names": ("/#/sample?panel=names", ".panel.left .job"),
    "health": ("/#/sample?panel=health", ".panel.left table"),
}
# The other views have the same colours.
DARK_VIEWS = {"start", "entity", "neighbours", "document", "table", "all documents", "console"}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_view_has_a_fault_that_is_more_than_minor(page: Page, theme: str) -> None:
    page.add_init_script(f"localStorage.setItem('graphrag-theme', '{theme}')")
    faults = {}
    for name, (address, complete) in VIEWS.items():
        if theme == "dark" and name not in DARK_VIEWS:
            continue
        page.goto(address)
        expect(page.locator(complete).first).to_be_visible()
        faults[name] = find_faults(page)
    page.goto("/#/sample")
    page.get_by_role("button", name="What are the main themes?").click()
    expect(page.locator("a.citation").first).to_be_visible()
    faults["answer"] = find_faults(page)
    assert {name: found for name, found in faults.items() if found} == {}

"""Readers who stay all day: questions side by side, judgements, and conversations that are kept."""

import base64
import json
import re
import shutil
import zlib
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from graphrag_evaluation.judgements import read_known_answers
from graphrag_server.keys import KeyFile, Scope
from graphrag_server.server_settings import ServerSettings
from tests.explorer.conftest import AXE, Keep, find_faults
from tests.fixtures.page_parser import HOSTILE
from tests.fixtures.served import Served, project_with_model, serve
from tests.model_server.server import Server

QUESTION = "When did Frank Worsley reach South Georgia?"
HACK = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>[a](javascript:hacked)'


def ask(page: Page, question: str = QUESTION, method: str = "local") -> Locator:
    """Ask a question in the panel, and return its answer."""
    page.get_by_role("region", name="Ask").get_by_label("Search", exact=True).select_option(method)
    page.get_by_label("Question", exact=True).fill(question)
    page.keyboard.press("Enter")
    turn = page.get_by_role("article", name=question).last
    expect(turn.locator(".cost")).to_be_visible()
    return turn


def column(page: Page, number: int) -> Locator:
    return page.get_by_role("region", name=f"Column {number}")


def quotes(part: Locator) -> list[tuple[str, bool]]:
    """Return the quotation of each citation in a text, and whether no other column has it."""
    marks = part.locator(".formatted a.citation").all()
    found = {
        mark.inner_text(): (
            (mark.get_attribute("title") or "").partition("“")[2][:-1],
            "only" in (mark.get_attribute("class") or "").split(),
        )
        for mark in marks
    }
    return [found[number] for number in sorted(found, key=int)]


def test_one_question_is_answered_side_by_side_with_cost_time_and_evidence(
    page: Page, keep: Keep
) -> None:
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url) if "/search/" in sent.url else None)
    page.goto("/#/sample")
    page.get_by_label("Search", exact=True).select_option("local")
    page.get_by_label("Question", exact=True).fill(QUESTION)
    page.get_by_role("button", name="Side by side").click()
    expect(page.get_by_label("Question to all columns")).to_have_value(QUESTION)
    # The address holds the columns; a link alone asks nothing.
    page.reload()
    expect(column(page, 2).get_by_label("Search", exact=True)).to_have_value("basic")
    column(page, 2).get_by_label("Search", exact=True).select_option("local")
    column(page, 2).get_by_label("Settings of the search").fill("top_k_text_units=2")
    page.keyboard.press("Tab")
    expect(page).to_have_url(re.compile(r"beside=local%3Ftop_k_text_units%3D2"))
    assert asked == []
    page.get_by_role("button", name="Ask all").click()
    for number in (1, 2):
        facts = column(page, number).locator(".cost")
        expect(facts).to_contain_text(re.compile(r"Local\d[\d.]* m?s"))
        expect(facts).to_contain_text("no model was called")
    assert len(asked) == 2
    first, second = quotes(column(page, 1)), quotes(column(page, 2))
    assert 0 < len(second) <= 2 < len(first)
    for mine, others in ((first, second), (second, first)):
        there = {quote for quote, _ in others}
        assert all(not is_only for quote, is_only in mine if quote in there)
        assert any(is_only for _, is_only in mine)
    n_only = sum(is_only for _, is_only in first)
    # Both columns count the same shared passages, however many sentences of each they cite.
    shared = re.compile(r"(\d+) passages? shared")
    facts = [column(page, number).locator(".cost").inner_text() for number in (1, 2)]
    assert len({found[1] for found in map(shared.search, facts) if found}) == 1
    assert f"{n_only} only here" in facts[0]
    expect(column(page, 1).get_by_text("only here", exact=True)).to_have_count(n_only)
    # A column more asks only for its own answer.
    page.get_by_role("button", name="Add a column").click()
    column(page, 3).get_by_label("Search", exact=True).select_option("basic")
    page.get_by_role("button", name="Ask all").click()
    expect(column(page, 3).locator(".cost")).to_contain_text("Passages")
    assert len(asked) == 3
    keep("side-by-side")
    boxes = [column(page, number).bounding_box() for number in (1, 2, 3)]
    assert len({box["y"] for box in boxes if box}) == 1
    assert len({box["x"] for box in boxes if box}) == 3
    page.get_by_role("button", name="Add a column").click()
    expect(page.get_by_role("button", name="Add a column")).to_have_count(0)
    column(page, 4).get_by_role("button", name="Remove the column").click()
    expect(column(page, 4)).to_have_count(0)
    # A setting that the search does not have is told in its column.
    column(page, 2).get_by_label("Settings of the search").fill("top_k=2")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Ask all").click()
    expect(column(page, 2).get_by_role("alert")).to_contain_text("top_k")
    page.get_by_role("link", name="Back to the graph").click()
    expect(page.get_by_role("button", name="Zoom in")).to_be_visible()


def test_a_small_screen_shows_columns_one_below_another(page: Page, keep: Keep) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/#/sample")
    page.get_by_label("Question", exact=True).fill(QUESTION)
    page.get_by_role("button", name="Side by side").click()
    page.get_by_role("button", name="Ask all").click()
    for number in (1, 2):
        expect(column(page, number).locator(".cost")).to_be_attached()
    expect(page.get_by_role("button", name="Ask all")).to_be_visible()
    keep("side-by-side-small")
    first, second = (column(page, number).bounding_box() for number in (1, 2))
    assert first
    assert second
    assert second["y"] >= first["y"] + first["height"]
    assert first["x"] == second["x"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_two_versions_are_asked_side_by_side(page: Page) -> None:
    page.goto("/#/ships?beside=local@1&beside=local@2&question=Who led the expedition?")
    page.get_by_role("button", name="Ask all").click()
    for number in (1, 2):
        expect(column(page, number).locator(".cost")).to_contain_text(f"version {number}")


def test_columns_of_a_model_show_tokens_and_money(
    browser: Browser, sample_project: Path, model_server: Server, tmp_path: Path
) -> None:
    root = project_with_model(tmp_path / "project", sample_project, model_server.url)
    with (
        serve(ServerSettings(indexes={"p": root})) as served,
        browser.new_context(base_url=served.url) as context,
    ):
        page = context.new_page()
        page.goto(f"/#/p?beside=local&beside=basic&question={QUESTION}")
        page.get_by_role("button", name="Ask all").click()
        for number in (1, 2):
            facts = column(page, number).locator(".cost")
            expect(facts).to_contain_text(re.compile(r"\d call.* of a model"))
            expect(facts).to_contain_text(re.compile(r"[\d,]+ tokens\$0\.\d+"))


def reader(browser: Browser, url: str, key: str) -> BrowserContext:
    context = browser.new_context(base_url=url, reduced_motion="reduce")
    context.add_init_script(f"sessionStorage.setItem('graphrag-key', '{key}')")
    return context


def test_a_thumb_with_a_reason_is_kept_and_is_a_known_answer(
    browser: Browser, sample_project: Path, tmp_path: Path
) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    shutil.copyfile(sample_project / "settings.yaml", root / "settings.yaml")
    shutil.copytree(sample_project / "output", root / "output")
    keys = KeyFile(root.parent)
    scopes = {"reader": (Scope.READ, Scope.ASK), "owner": (Scope.READ, Scope.ASK, Scope.INDEX)}
    tokens = {name: keys.add(name, frozenset(allowed)) for name, allowed in scopes.items()}
    keys.close()
    path = root / "evaluations" / "judgements.jsonl"
    with serve(ServerSettings(indexes={"docs": root}, state_folder=root.parent)) as fresh:
        with reader(browser, fresh.url, tokens["reader"]) as context:
            page = context.new_page()
            page.goto("/#/docs")
            ask(page)
            expect(page.get_by_role("button", name="The answer is right")).to_have_count(0)
        with reader(browser, fresh.url, tokens["owner"]) as context:
            page = context.new_page()
            page.goto("/#/docs")
            turn = ask(page)
            down = turn.get_by_role("button", name="The answer is wrong")
            down.click()
            expect(turn.get_by_label("Why?")).to_be_focused()
            page.keyboard.type("The day is missing.")
            page.keyboard.press("Enter")
            expect(turn.get_by_text("Kept for evaluations")).to_be_visible()
            expect(down).to_have_attribute("aria-pressed", "true")
            [kept] = map(json.loads, path.read_text(encoding="utf-8").splitlines())
            assert (kept["verdict"], kept["reason"]) == ("down", "The day is missing.")
            assert (kept["question"], kept["method"], kept["author"]) == (
                QUESTION,
                "local",
                "owner",
            )
            assert kept["parameters"]
            assert kept["version"] == 1
            assert kept["citations"]
            [question] = read_known_answers(path)
            assert question.wrong_answers == (kept["answer"],)
            # The kept conversation knows the verdict; pressing again withdraws it.
            page.reload()
            expect(down).to_have_attribute("aria-pressed", "true")
            down.click()
            expect(down).to_have_attribute("aria-pressed", "false")
            assert json.loads(path.read_text("utf-8").splitlines()[-1])["verdict"] == "withdrawn"
            turn.get_by_role("button", name="The answer is right").click()
            turn.get_by_role("button", name="Keep").click()
            expect(turn.get_by_text("Kept for evaluations")).to_be_visible()
            [question] = read_known_answers(path)
            assert question.answers == (kept["answer"],)
            # What cannot be kept is told, and not shown as kept.
            path.unlink()
            path.mkdir()
            down.click()
            turn.get_by_role("button", name="Keep").click()
            expect(turn.get_by_role("alert")).to_contain_text("The judgement was not kept")


def test_a_conversation_is_kept_renamed_found_and_deleted(page: Page, keep: Keep) -> None:
    page.goto("/#/sample")
    ask(page)
    ask(page, "And Tom Crean?")
    expect(page.locator(".turn")).to_have_count(2)
    answer = page.locator(".turn .formatted").first.inner_text()
    name = page.get_by_label("Name of the conversation")
    expect(name).to_have_value(QUESTION)
    name.fill("The crossing")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".turn")).to_have_count(0)
    ask(page, "Who led the Belgica?")
    # Another tab has them too.
    page.goto("about:blank")
    page.goto("/#/sample")
    page.get_by_role("link", name="2 conversations kept").click()
    rows = page.get_by_role("region", name="History").get_by_role("listitem")
    expect(rows).to_have_count(2)
    keep("history")
    search = page.get_by_label("Search names, questions and answers")
    for text, count in (("crossing", 1), ("belgica", 1), ("Tom Crean?", 1), ("nobody", 0)):
        search.fill(text)
        expect(rows).to_have_count(count)
    # A word of the answer finds it too.
    search.fill(answer[:60])
    rows.get_by_role("link", name="The crossing").click()
    expect(page.locator(".turn")).to_have_count(2)
    assert page.locator(".turn .formatted").first.inner_text() == answer
    expect(page.get_by_label("Name of the conversation")).to_have_value("The crossing")
    # It goes on where it ended, and its citations open.
    page.get_by_role("link", name="Citation 1:").first.click()
    expect(page.locator("mark").first).to_be_visible()
    ask(page, "Who was the captain of the Endurance?")
    page.reload()
    expect(page.locator(".turn")).to_have_count(3)
    page.go_back()
    page.goto("/#/sample?panel=conversations")
    rows.filter(has_text="The crossing").get_by_role("button", name="Delete").click()
    expect(rows).to_have_count(1)
    page.reload()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Who led the Belgica?")


def test_a_question_that_was_not_answered_is_kept_as_cancelled(page: Page) -> None:
    page.goto("/#/sample")
    page.route("**/ask", lambda route: None)
    page.get_by_label("Question", exact=True).fill(QUESTION)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Cancelled.")).to_be_visible()


def test_the_oldest_conversations_go_with_a_word(page: Page) -> None:
    page.goto("/#/sample")
    page.evaluate(
        """() => {
            for (let at = 0; at < 3; at++) {
                const turn = { question: `old ${at}`, text: "x".repeat(700_000) };
                const kept = { id: `${at}`, name: `old ${at}`, changed: at + 1, turns: [turn] };
                localStorage.setItem(`graphrag-conversation/sample/${at}`, JSON.stringify(kept));
            }
            localStorage.setItem("graphrag-conversation/sample/broken", "{");
            localStorage.setItem("graphrag-conversation/other/0", "{}");
        }"""
    )
    page.reload()
    ask(page)
    expect(page.get_by_text("1 conversation that you had not changed")).to_be_visible()
    kept = page.evaluate("Object.keys(localStorage).filter((key) => key.includes('/'))")
    assert "graphrag-conversation/sample/0" not in kept
    assert {
        "graphrag-conversation/sample/1",
        "graphrag-conversation/sample/2",
        "graphrag-conversation/other/0",
    } < set(kept)
    page.get_by_role("button", name="New conversation").click()
    # A browser that stores nothing says so.
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new DOMException(); }; }")
    ask(page, "Who led the Belgica?")
    expect(page.get_by_text("This browser cannot keep the conversation")).to_be_visible()


def make_link(conversation: object) -> str:
    """Write a conversation as the link that anybody could write."""
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = pack.compress(json.dumps(conversation).encode()) + pack.flush()
    return f"~{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"


def test_a_link_shows_the_answers_to_another_reader(
    browser: Browser, page: Page, server: Served
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/#/sample")
    answer = ask(page).locator(".formatted").inner_text()
    page.get_by_text("Share", exact=True).click()
    page.get_by_role("button", name="Copy a link").click()
    expect(page.get_by_text("The link is copied.")).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    assert len(link) < 8_000
    with browser.new_context(base_url=server.url) as context:
        other = context.new_page()
        posted: list[str] = []
        other.on("request", lambda sent: posted.append(sent.url) if sent.method == "POST" else None)
        other.goto(link)
        turn = other.get_by_role("article", name=QUESTION)
        expect(turn.locator(".formatted")).to_have_text(answer)
        expect(other.get_by_text("This conversation came with a link")).to_be_visible()
        turn.get_by_role("link", name="Citation 1:").first.click()
        expect(other.locator("mark").first).to_be_visible()
        assert posted == []
        # It is a conversation of this reader now, and the address is short.
        assert len(other.url) < 300
        other.goto("/#/sample?panel=conversations")
        expect(other.get_by_role("link", name=QUESTION)).to_be_visible()
        for damaged in (link[:-30], re.sub("%7E.*", "%7E%C3%A9", link)):
            other.goto(link)
            expect(turn).to_be_visible()
            other.goto(damaged)
            expect(other.get_by_text("This link is damaged or cut off")).to_be_visible()
        # A short link could unpack to so much that the reader's own conversations had to go.
        other.goto("about:blank")
        other.goto(f"/#/sample?conversation={make_link({'turns': [{}] * 20_000})}")
        expect(other.get_by_text("This link is damaged or cut off")).to_be_visible()
    long = {"name": "long", "turns": [{"question": "q", "text": "a"}] * 500}
    page.goto("about:blank")
    page.goto(f"/#/sample?conversation={make_link(long)}")
    expect(page.locator(".turn").first).to_be_visible()
    page.evaluate("""() => {
        const [key] = Object.keys(localStorage).filter((key) => localStorage[key].includes("long"));
        const random = () => Math.random().toString(36).slice(2);
        const turns = Array.from({ length: 500 }, () => ({ question: random(), text: random() }));
        localStorage.setItem(key, JSON.stringify({ ...JSON.parse(localStorage[key]), turns }));
    }""")
    page.reload()
    page.get_by_text("Share", exact=True).click()
    page.get_by_role("button", name="Copy a link").click()
    expect(page.get_by_text("too long for a link")).to_be_visible()


def saved(page: Page, button: str, folder: Path) -> Path:
    page.get_by_text("Share", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_a_file_has_answers_and_quotations_and_needs_no_server(
    browser: Browser, page: Page, tmp_path: Path
) -> None:
    page.goto("/#/sample")
    turn = ask(page)
    answer = turn.locator(".formatted").inner_text()
    cited = [quote for quote, _ in quotes(turn)]
    titles = turn.locator(".cited .row-note").all_inner_texts()
    assert cited
    page.get_by_label("Name of the conversation").fill("A <b>crossing</b>")
    page.keyboard.press("Tab")
    markdown = saved(page, "Save as Markdown", tmp_path).read_text(encoding="utf-8")
    assert markdown.startswith("# A \\<b\\>crossing\\</b\\>\n\n## When did Frank Worsley")
    for quote, title in zip(cited, titles, strict=True):
        assert f"“{' '.join(quote.split())}” — *{title}" in markdown
    path = saved(page, "Save as a page (HTML)", tmp_path)
    # No scripts, and nothing that could be fetched.
    with browser.new_context(java_script_enabled=False, offline=True) as context:
        alone = context.new_page()
        requests: list[str] = []
        alone.on("request", lambda sent: requests.append(sent.url))
        alone.goto(path.as_uri())
        expect(alone.get_by_role("heading", level=1)).to_have_text("A <b>crossing</b>")
        expect(alone.get_by_role("heading", level=3)).to_have_text(QUESTION)
        expect(alone.locator("p").first).to_have_text(re.sub(r" (\d)(?= |$)", r" [\1]", answer))
        found = alone.locator("blockquote").all_inner_texts()
        assert [text.partition(" ")[2].partition(" — ")[0] for text in found] == [
            f"“{' '.join(quote.split())}”" for quote in cited
        ]
        assert all(title in text for text, title in zip(found, titles, strict=True))
        assert requests == [path.as_uri()]
        alone.screenshot(path=Path("build/screenshots/conversation-file.png"))
    assert "<script" not in path.read_text(encoding="utf-8")


def test_hostile_texts_stay_texts_on_the_page_and_in_files(page: Page, tmp_path: Path) -> None:
    citation = {
        "number": 1, "document": HACK, "document_id": "d", "start_char": 0, "end_char": 4,
        "quote": HACK, "text_unit": 0, "location": HACK,
    }  # fmt: skip
    text = f"{HACK} [1]\n\n[1]: javascript:hacked\n\n{HOSTILE}"
    answer = {
        "answer": text, "question": HACK, "version": 1, "outcome": "answered", "method": HACK,
        "citations": [citation], "notes": [{"a": 1}, HACK], "follow_ups": HACK,
        "table": [[1], {"__proto__": {"x": 1}, HACK: HACK}], "usage": {"cost": HACK, "calls": 1},
        "suggestion": {"method": {}}, "context": {"Sources": 3},
    }  # fmt: skip
    turns = [
        {"question": HACK, "method": "local", "state": "answered", "answer": answer, "text": text},
        {"question": 3, "state": [], "answer": "x", "text": {"constructor": None}},
        None,
    ]
    page.goto(f"/#/sample?conversation={make_link({'name': HACK, 'turns': turns})}")
    expect(page.locator(".turn")).to_have_count(3)
    expect(page.locator(".asked").first).to_have_text(HACK)
    expect(page.locator(".answer .formatted").first).to_contain_text("<script>window.hacked=1")
    assert page.locator(".panel.left script, .panel.left img").count() == 0
    markdown = saved(page, "Save as Markdown", tmp_path).read_text(encoding="utf-8")
    assert "<" not in re.sub(r"\\<", "", markdown)
    assert re.search(r"(?<!\\)\]\(|^\[1\]:", markdown, re.MULTILINE) is None
    html = saved(page, "Save as a page (HTML)", tmp_path)
    page.goto(html.as_uri())
    expect(page.get_by_role("heading", level=1)).to_have_text(HACK)
    expect(page.get_by_role("heading", level=3).first).to_have_text(HACK)
    expect(page.locator("blockquote").first).to_contain_text(HACK)
    assert page.locator("script, img, iframe, a, button").count() == 0
    assert not page.evaluate("'hacked' in window")


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core: run `npm ci` in explorer/")
@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_what_is_kept_and_compared_shuts_nobody_out(page: Page, theme: str) -> None:
    page.add_init_script(f"localStorage.setItem('graphrag-theme', '{theme}')")
    page.goto("/#/sample")
    turn = ask(page)
    turn.get_by_role("button", name="The answer is wrong").click()
    page.get_by_text("Share", exact=True).click()
    faults = {"conversation": find_faults(page)}
    page.goto("/#/sample?panel=conversations")
    expect(page.get_by_role("link", name=QUESTION)).to_be_visible()
    faults["history"] = find_faults(page)
    page.goto(f"/#/sample?beside=local&beside=local?top_k_text_units%3D2&question={QUESTION}")
    page.get_by_role("button", name="Ask all").click()
    for number in (1, 2):
        expect(column(page, number).locator(".cost")).to_contain_text("shared")
    faults["side by side"] = find_faults(page)
    assert {name: found for name, found in faults.items() if found} == {}

"""Places of citations in every protocol, pictures of pages, and files of documents."""

import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import BoundedSemaphore

import pytest
from fastapi.testclient import TestClient

import graphrag_query
from graphrag_query.index import Index
from graphrag_server.app import create_app
from graphrag_server.keys import KeyFile, Scope
from graphrag_server.routes.documents import mark_lines
from graphrag_server.server_settings import ServerSettings
from tests.conftest import copy_project, run_project
from tests.fixtures.agent_client import talk
from tests.fixtures.commands import ask
from tests.fixtures.pdf import make_pdf
from tests.fixtures.sample_files import FakeTesseract, make_zip, picture
from tests.fixtures.served import serve
from tests.server.conftest import ADDRESS

for package in ("openpyxl", "pptx", "mammoth", "pypdfium2", "liteparse"):
    pytest.importorskip(package)

KEEPER = "The lighthouse of Brackenfell is kept by Ida Falk."
PAGES = [
    [(72, 700, "Annual survey of the coast"), (72, 600, "The survey covers nine harbours.")],
    [(72, 700, "The tide gauge of Dunmere was"), (72, 686, "repaired by Otto Lenz in 1987.")],
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import openpyxl
    import pptx

    root = copy_project(tmp_path_factory.mktemp("pages") / "project")
    folder = root / "input"
    shutil.rmtree(folder)
    folder.mkdir()
    # Readers of the file see the pages A and B.
    labels = "/PageLabels << /Nums [0 << /S /A >>] >>"
    (folder / "survey.pdf").write_bytes(make_pdf(PAGES, extra=labels))
    book = openpyxl.Workbook()
    book.active.title = "Pumps"
    for row in [["Pump", "Engineer"], [], ["P-028", "Karin Holm"], ["P-029", "Per Lund"]]:
        book.active.append(row)
    book.save(folder / "pumps.xlsx")
    show = pptx.Presentation()
    for title, text in [("Talk", "We begin."), ("Ferries", "The ferry is steered by Tove Dahl.")]:
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, text
    show.save(folder / "talk.pptx")
    (folder / "notes.md").write_text(
        f"# Coast\n\nAll.\n\n## Lights\n\n{KEEPER}\n", encoding="utf-8"
    )
    bridge = "The bridge of Hollins was built by Nils Berg in 1911."
    (folder / "plain.txt").write_text(bridge, encoding="utf-8")
    lease = make_pdf([[(72, 700, "The quay of Brora is let to Ada Munro.")]])
    (folder / "more.zip").write_bytes(make_zip({"lease.pdf": lease, "a.bin": b"\0"}))
    (folder / "buoy.png").write_bytes(picture(250, (2_550, 3_300), 300))
    with pytest.MonkeyPatch.context() as patch:
        programs = tmp_path_factory.mktemp("bin")
        FakeTesseract(programs).install("The buoy of Skerry was laid by Hilda Moen in 1954.")
        patch.setenv("PATH", str(programs), prepend=os.pathsep)
        run_project(root)
    return root


@pytest.fixture(scope="module")
def index(root: Path) -> Iterator[Index]:
    with graphrag_query.open(root / "output") as index:
        yield index


@pytest.fixture(scope="module")
def client(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = ServerSettings(indexes={"p": root}, state_folder=tmp_path_factory.mktemp("state"))
    with TestClient(create_app(settings), base_url=ADDRESS) as client:
        yield client


@pytest.mark.parametrize(
    ("question", "page", "source"),
    [
        ("Who repaired the tide gauge of Dunmere?", 2, "survey.pdf, p. B"),
        ("Who is the engineer of pump P-028?", 3, "pumps.xlsx, sheet Pumps, row 3"),
        ("Who steers the ferry?", 2, "talk.pptx, slide 2"),
        ("Who keeps the lighthouse of Brackenfell?", None, "notes.md, section Lights, characters"),
        ("Who built the bridge of Hollins?", None, "plain.txt, characters 0 to 53"),
        ("Who laid the buoy of Skerry?", 1, "buoy.png, p. 1, read by OCR"),
    ],
)
def test_a_citation_names_its_page_slide_row_or_section(
    index: Index, question: str, page: int | None, source: str
) -> None:
    answer = index.local(question)
    places = {citation.place: citation.page for citation in answer.citations}
    assert [page for place, page in places.items() if place.startswith(source)] == [page], places


def test_every_protocol_tells_the_page(root: Path, client: TestClient) -> None:
    question = "Who repaired the tide gauge of Dunmere?"
    assert "] survey.pdf, p. B\n" in ask("local", question, "--root", str(root)).stdout
    result = ask("local", question, "--json", "--root", str(root))
    [printed] = json.loads(result.stdout)["citations"]
    body = {"question": question}
    [asked] = client.post("/v1/indexes/p/search/local", json=body).json()["citations"]
    chat = {"model": "graphrag/p/local", "messages": [{"role": "user", "content": question}]}
    reply = client.post("/v1/chat/completions", json=chat).json()
    [cited] = reply["graphrag"]["citations"]
    for citation in (printed, asked, cited):
        assert (citation["page"], citation["location"]) == (2, "p. B")
    notes = reply["choices"][0]["message"]["annotations"]
    assert {note["url_citation"]["title"] for note in notes} == {"survey.pdf, p. B"}
    span = f"{cited['start_char']}-{cited['end_char']}"
    assert notes[0]["url_citation"]["url"].endswith(f"/{span}#page=2")
    with serve(ServerSettings(indexes={"p": root}, state_folder=root)) as served:

        async def use(agent):  # type: ignore[no-untyped-def]
            return await agent.call_tool("ask", {"question": question, "method": "local"})

        [told] = talk(served.url, use).structured_content["citations"]
    assert (told["page"], told["location"]) == (2, "p. B")
    assert told["url"].endswith(f"/{span}?version=1#page=2")


def test_a_window_of_text_tells_its_pages(client: TestClient) -> None:
    path = f"/v1/indexes/p/documents/{find_document(client, 'survey.pdf')}/text"
    whole = client.get(path).json()
    spans = [(page["label"], page["start_char"], page["end_char"]) for page in whole["pages"]]
    end = len(whole["text"])
    start = whole["text"].index("The tide")
    assert spans == [("A", 0, start), ("B", start, end)]
    part = client.get(path, params={"start": start, "end": start + 1}).json()
    assert [page["number"] for page in part["pages"]] == [2]


def find_document(client: TestClient, path: str) -> int:
    documents = client.get("/v1/indexes/p/documents").json()["items"]
    return next(one["number"] for one in documents if one["path"] == path)


def read_picture(client: TestClient, number: int, page: int, span: str = "0:0"):  # type: ignore[no-untyped-def]
    from PIL import Image

    reply = client.get(f"/v1/indexes/p/documents/{number}/pages/{page}.jpg", params={"span": span})
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "image/jpeg"
    return Image.open(io.BytesIO(reply.content)).convert("RGB")


def test_the_picture_of_a_page_marks_the_passage(client: TestClient, index: Index) -> None:
    [citation] = index.local("Who repaired the tide gauge of Dunmere?").citations
    number = find_document(client, "survey.pdf")
    picture = read_picture(client, number, 2, f"{citation.start_char}:{citation.end_char}")
    assert picture.size == (935, 1210)

    def is_marked(x: float, y: float) -> bool:
        red, green, blue = picture.getpixel((round(x * 110 / 72), round(y * 110 / 72)))
        return red > 220 and green > 200 and blue < 180

    # Both lines are marked from their first to their last word, and nothing else is.
    lines = [(74, 792 - 698), (225, 792 - 698), (74, 792 - 684), (225, 792 - 684)]
    assert [is_marked(x, y - 9) for x, y in lines] == [True] * 4
    assert not any(is_marked(x, y) for x, y in [(60, 95), (300, 95), (74, 150), (74, 70)])
    plain = read_picture(client, number, 2)
    colours = plain.getcolors(1 << 20) or []
    assert colours
    assert not any(blue < 150 < red for _, (red, _, blue) in colours)


def test_the_picture_of_a_scan_marks_what_was_recognized(client: TestClient) -> None:
    shown = read_picture(client, find_document(client, "buoy.png"), 1, "4:8")
    assert shown.size == (935, 1210)
    # The word is a box at 400 and 1,500 pixels of 300 an inch; the next one is at 700.
    red, _, blue = shown.getpixel((420 * 110 // 300, 1_520 * 110 // 300))
    assert blue < 180 < red
    assert shown.getpixel((720 * 110 // 300, 1_520 * 110 // 300))[2] > 220


def test_not_all_threads_wait_for_pictures(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = BoundedSemaphore(1)
    monkeypatch.setattr("graphrag_server.routes.documents._WAITING", waiting)
    number = find_document(client, "survey.pdf")
    with waiting:
        busy = client.get(f"/v1/indexes/p/documents/{number}/pages/1.jpg?span=3:4")
    assert (busy.status_code, busy.json()["code"]) == (503, "busy")
    assert read_picture(client, number, 1, "3:4").size


def test_lines_are_marked_whole_and_words_in_part() -> None:
    import polars as pl

    names = ("start_char", "end_char", "left", "top", "width", "height")
    words = [(0, 4, 100, 50, 40, 12), (5, 9, 150, 51, 40, 12), (10, 14, 100, 70, 40, 12)]
    boxes = pl.DataFrame(words, names, orient="row")
    assert mark_lines(boxes, 2, 12) == ((120, 50, 70, 13), (100, 70, 20, 12))
    # Words of another column stand on the same line.
    beside = pl.DataFrame([words[0], (5, 9, 400, 50, 40, 12)], names, orient="row")
    assert mark_lines(beside, 0, 9) == ((100, 50, 40, 12), (400, 50, 40, 12))


def test_what_has_no_picture_says_why(root: Path, client: TestClient) -> None:
    def refusal(number: int, page: int = 1) -> tuple[int, str]:
        reply = client.get(f"/v1/indexes/p/documents/{number}/pages/{page}.jpg")
        return reply.status_code, reply.json()["detail"]

    number, file = find_document(client, "survey.pdf"), root / "input" / "survey.pdf"
    assert refusal(number, 3) == (404, "survey.pdf has no page 3 in the index.")
    slides = find_document(client, "talk.pptx")
    assert refusal(slides) == (415, "talk.pptx is no PDF: only these have pictures.")
    where = "lease.pdf is inside more.zip: only files of the input folder are shown."
    assert refusal(find_document(client, "more.zip/lease.pdf")) == (404, where)
    assert refusal(99)[0] == 404
    content, scan = file.read_bytes(), root / "input" / "buoy.png"
    scanned = scan.read_bytes()
    try:
        scan.write_bytes(picture(90, (2_550, 3_300), 300))
        gone = "Page 1 of buoy.png cannot be shown: the file has changed since it was read."
        assert refusal(find_document(client, "buoy.png")) == (404, gone)
        file.write_bytes(make_pdf([[(72, 500, "Another text."), (90, 400, "And more.")]] * 2))
        gone = "Page 1 of survey.pdf cannot be shown: the file has changed since it was read."
        assert refusal(number) == (404, gone)
        file.write_bytes(b"%PDF-1.4 broken")
        assert refusal(number)[0] == 422
        file.unlink()
        where = "The file 'survey.pdf' is not in the input folder."
        assert refusal(number) == (404, where)
        assert client.get(f"/v1/indexes/p/documents/{number}/file").status_code == 404
        file.symlink_to(root / "settings.yaml")
        assert client.get(f"/v1/indexes/p/documents/{number}/file").status_code == 404
    finally:
        file.unlink(missing_ok=True)
        file.write_bytes(content)
        scan.write_bytes(scanned)
        os.utime(file)


def test_files_that_are_skipped_inside_others_are_listed(client: TestClient) -> None:
    reply = client.get("/v1/indexes/p/files").json()
    assert [one["path"] for one in reply["skipped"]] == ["more.zip/a.bin"]
    assert reply["skipped_summary"] == "1 file skipped: .bin 1."


def test_a_file_is_downloaded_with_a_key_that_may_change_files(
    root: Path, client: TestClient, tmp_path: Path
) -> None:
    number = find_document(client, "survey.pdf")
    path = f"/v1/indexes/p/documents/{number}/file"
    reply = client.get(path)
    assert reply.content == (root / "input" / "survey.pdf").read_bytes()
    assert reply.headers["content-type"] == "application/pdf"
    assert reply.headers["content-disposition"].startswith("inline")
    notes = client.get(f"/v1/indexes/p/documents/{find_document(client, 'notes.md')}/file")
    assert notes.headers["content-disposition"].startswith("attachment")
    keys = KeyFile(tmp_path)
    reader, writer = (
        keys.add(name, frozenset(scopes))
        for name, scopes in [("r", {Scope.READ}), ("w", {Scope.READ, Scope.INDEX})]
    )
    settings = ServerSettings(indexes={"p": root}, state_folder=tmp_path)
    with TestClient(create_app(settings), base_url=ADDRESS) as guarded:
        picture = f"/v1/indexes/p/documents/{number}/pages/1.jpg"

        def status(path: str, key: str | None) -> int:
            headers = {"X-API-Key": key} if key else {}
            return guarded.get(path, headers=headers).status_code

        assert [status(path, key) for key in (None, reader, writer)] == [401, 403, 200]
        assert [status(picture, key) for key in (None, reader, writer)] == [401, 200, 200]

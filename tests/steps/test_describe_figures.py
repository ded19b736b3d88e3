"""Figures: found in files, described by a model that sees, cited and opened at their place."""

import base64
import io
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from fastapi.testclient import TestClient

import graphrag_query
from graphrag_index.llm.ledger import Ledger
from graphrag_index.readers.parse_process import call_parser
from graphrag_index.storage.skipped_files import read_skipped
from graphrag_index.storage.table_store import TableStore
from graphrag_server.app import create_app
from graphrag_server.server_settings import ServerSettings
from tests.fixtures.commands import call, start, wait_for
from tests.fixtures.pdf import make_pdf
from tests.fixtures.planted_figures import (
    CAPTION,
    draw_bars,
    encode,
    make_survey,
    paint_bars,
    write_figures,
)
from tests.fixtures.sample_files import FakeTesseract, make_message, make_outlook, make_zip
from tests.model_server import Server
from tests.server.conftest import ADDRESS

for package in ("pypdfium2", "liteparse", "PIL"):
    pytest.importorskip(package)

FILTERED = {"error": {"message": "Flagged by the content filter.", "code": "content_filter"}}


def chats(server: Server) -> list[Any]:
    return [asked for asked in server.requests if asked.path == "/v1/chat/completions"]


def read(root: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(root / "output" / f"{name}.parquet")


def texts(root: Path) -> dict[str, str]:
    return dict(read(root, "documents").select("path", "text").iter_rows())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Server]]:
    """A project that was run, and its server: a PDF, a picture, an icon."""
    root = tmp_path_factory.mktemp("figures") / "project"
    chart = encode(paint_bars((3_000, 1_500), Teal=0.9, Amber=0.225), "JPEG")
    with Server() as server:
        icon = encode(paint_bars((60, 60), Indigo=0.9))
        write_figures(root, server.url, survey_pdf=make_survey(), chart_jpg=chart, icon_png=icon)
        yield root, server


@pytest.fixture(scope="module")
def root(served: tuple[Path, Server]) -> Path:
    """The project after its run, whose requests were as many as the estimate said."""
    root, server = served
    priced = call(root, "estimate", "--json")
    assert (priced.returncode, len(chats(server))) == (0, 0)
    [line] = json.loads(priced.stdout)["lines"]
    planned = call(root, "run", "--dry-run").stdout
    assert "Tokens of figures are approximate" in planned
    result = call(root, "run")
    assert result.returncode == 0, result.stderr
    assert (line["step"], line["n_to_ask"]) == ("describe_figures", len(chats(server))), line
    # Within a tenth of what the server counted, which has other counts of tokens.
    with closing(Ledger(root / "output", read_only=True)) as ledger:
        [[counted]] = ledger.fetch_rows("SELECT total(prompt_tokens) FROM calls")
    assert line["prompt_tokens"] == pytest.approx(counted, rel=0.1)
    return root


def test_a_description_follows_the_text_and_says_that_a_model_wrote_it(root: Path) -> None:
    found = texts(root)
    assert list(found) == ["chart.jpg", "survey.pdf"]
    assert found["chart.jpg"] == (
        "# Picture on page 1, as described by a model\n\n"
        "The bar of Teal House reaches 100 percent. The bar of Amber House reaches 25 percent."
    )
    own, first, second = found["survey.pdf"].split("\n\n# ")
    assert own.endswith("It lies on the slope above the mill of Tessin.")
    assert first == (
        f"Figure 1 on page 1, as described by a model\n\n{CAPTION}\n\n"
        "The bar of Crimson House reaches 100 percent. The bar of Teal House reaches 25 percent."
    )
    assert second == (
        "Picture on page 2, as described by a model\n\n"
        "The bar of Amber House reaches 100 percent. The bar of Indigo House reaches 50 percent."
    )
    # Each is a passage of its own, with a row of its own.
    units = read(root, "text_units").filter(pl.col("headings").str.contains("by a model"))
    pages = read(root, "pages").filter(kind="figure")
    spans = [("document_id", "start_char", "end_char")] * 2
    assert units.select(*spans[0]).rows() == pages.select(*spans[1]).rows()
    assert pages["engine"].unique().to_list() == ["test-model"]


def test_a_request_has_one_picture_with_its_caption_and_what_refers_to_it(
    served: tuple[Path, Server], root: Path
) -> None:
    from PIL import Image

    sent = {}
    for asked in chats(served[1]):
        system, user = json.loads(asked.body)["messages"]
        assert "200 words at most" in system["content"]
        words, picture = user["content"]
        kind, _, data = picture["image_url"]["url"].partition(";base64,")
        assert kind in ("data:image/png", "data:image/jpeg")
        sent[words["text"]] = Image.open(io.BytesIO(base64.b64decode(data))).size
    texts_sent = "\n---\n".join(sent)
    assert len(sent) == 3
    assert f"\n{CAPTION}\n" in texts_sent
    assert "As Figure 1 shows, one of them was far ahead of the other one." in texts_sent
    assert "The orchard of Velden was planted" in texts_sent
    assert max(max(size) for size in sent.values()) == 2_048


@pytest.mark.parametrize(
    ("question", "path", "page", "said"),
    [
        ("How much does the bar of Indigo House reach?", "survey.pdf", 2, "50 percent"),
        ("How much does the bar of Crimson House reach?", "survey.pdf", 1, "100 percent"),
    ],
)
def test_a_question_that_only_the_figure_answers_opens_it(
    root: Path, tmp_path: Path, question: str, path: str, page: int, said: str
) -> None:
    from PIL import Image

    with graphrag_query.open(root / "output") as index:
        answer = index.local(question)
    assert said in answer.text
    first = answer.citations[0]
    assert first.place.startswith(f"{path}, p. {page}, figure described by test-model")
    assert first.page == page
    settings = ServerSettings(indexes={"p": root}, state_folder=tmp_path)
    with TestClient(create_app(settings), base_url=ADDRESS) as client:
        span = f"{first.start_char}:{first.end_char}"
        documents = client.get("/v1/indexes/p/documents").json()["items"]
        [number] = [one["number"] for one in documents if one["path"] == path]
        window = client.get(f"/v1/indexes/p/documents/{number}/text").json()
        place = f"/v1/indexes/p/documents/{number}/pages/{page}.jpg"
        reply = client.get(place, params={"span": span})
    [kind] = [
        (one["kind"], one["engine"])
        for one in window["pages"]
        if one["start_char"] <= first.start_char < one["end_char"]
    ]
    assert kind == ("figure", "test-model")
    assert reply.status_code == 200, reply.text
    shown = Image.open(io.BytesIO(reply.content)).convert("RGB")

    def is_marked(x: float, y: float) -> bool:
        red, green, blue = shown.getpixel((round(x * 110 / 72), round(y * 110 / 72)))
        return red > 220 and green > 200 and blue < 180

    # The paper between the bars is marked, also above a sentence in part, and the text is not.
    inside, outside = ((385, 300), (90, 45)) if page == 2 else ((120, 160), (90, 100))
    assert (is_marked(*inside), is_marked(*outside)) == (True, False)


def test_a_picture_file_opens_marked(root: Path, tmp_path: Path) -> None:
    settings = ServerSettings(indexes={"p": root}, state_folder=tmp_path)
    with TestClient(create_app(settings), base_url=ADDRESS) as client:
        reply = client.get("/v1/indexes/p/documents/0/pages/1.jpg?span=50:60")
    assert reply.status_code == 200, reply.text


def test_what_has_not_changed_is_not_paid_again(
    served: tuple[Path, Server], root: Path, tmp_path: Path
) -> None:
    server, copy = served[1], tmp_path / "copy"
    shutil.copytree(root, copy)
    n = len(chats(server))
    assert "Nothing changed" in call(copy, "run").stdout
    (copy / "input" / "note.txt").write_text("The bridge of Hollins was built by Nils Berg.")
    assert call(copy, "run").returncode == 0
    assert len(chats(server)) == n
    # The text of the PDF stays, and one of its pictures changes.
    (copy / "input" / "survey.pdf").write_bytes(make_survey(teal=150))
    priced = json.loads(call(copy, "estimate", "--json").stdout)["lines"]
    assert [line["n_to_ask"] for line in priced] == [1]
    assert call(copy, "run").returncode == 0
    assert len(chats(server)) == n + 1
    assert "Teal House reaches 75 percent" in texts(copy)["survey.pdf"]
    # A deleted picture takes its description along.
    (copy / "input" / "chart.jpg").unlink()
    assert call(copy, "run").returncode == 0
    assert list(texts(copy)) == ["note.txt", "survey.pdf"]


def test_passages_of_the_text_are_those_without_the_step(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("output"))
    steps = (copy / "workflows" / "small.yaml").read_text().replace("- describe_figures\n", "")
    (copy / "workflows" / "small.yaml").write_text(steps)
    assert call(copy, "run").returncode == 0
    assert list(texts(copy)) == ["survey.pdf"]
    plain, whole = read(copy, "text_units"), read(root, "text_units")
    same = ["id", "text", "start_char", "end_char", "document_id", "headings"]
    kept = whole.filter(~pl.col("headings").str.contains("by a model"))
    assert plain.select(same).equals(kept.select(same))
    assert read(copy, "pages").equals(read(root, "pages").filter(kind="page"))
    assert list_skipped(copy) == ["chart.jpg", "icon.png"]
    assert list_skipped(root) == ["icon.png"]


def list_skipped(root: Path) -> list[str]:
    store = TableStore(root / "output")
    version = store.read_pointer()
    assert version
    return [file.path for file in read_skipped(store, version)]


def test_a_killed_run_goes_on_with_the_next_figure(tmp_path: Path) -> None:
    pictures = {
        f"bars{n}_png": encode(paint_bars((400 + n, 300), Teal=0.9, Amber=0.1 * n))
        for n in range(1, 7)
    }
    with Server(latency=0.5) as server:
        root = write_figures(tmp_path / "p", server.url, note_txt=b"The mill stands.", **pictures)
        text = (root / "settings.yaml").read_text() + "\n"
        settings = text.replace("retry_seconds: 0.5", "retry_seconds: 0.5\n    concurrency: 1")
        (root / "settings.yaml").write_text(settings)

        def answered() -> int:
            return sum(asked.status == 200 for asked in chats(server))

        with start(root, "run") as process:
            wait_for(lambda: answered() >= 3, process)
            process.kill()
            process.wait()
        n_before = answered()
        assert n_before < 6
        server.latency = 0.0
        assert call(root, "run").returncode == 0
        assert len(texts(root)) == 7
        # Sent again are the request under way, and one whose reply had just left the server.
        assert len(chats(server)) <= 8


def test_a_refused_figure_is_quarantined_and_retried(tmp_path: Path) -> None:
    def refuse_drawn(endpoint: str, body: Any) -> Any:
        return (400, FILTERED) if CAPTION in json.dumps(body.get("messages")) else None

    with Server(refuse=refuse_drawn) as server:
        root = write_figures(tmp_path / "p", server.url, survey_pdf=make_survey())
        result = call(root, "run")
        assert result.returncode == 3, result.stderr
        assert "survey.pdf, page 1, Figure 1" in result.stdout + result.stderr
        assert "Crimson House" not in texts(root)["survey.pdf"]
        assert "Indigo House" in texts(root)["survey.pdf"]
        n = len(chats(server))
        assert call(root, "run").returncode == 3
        assert len(chats(server)) == n
        server.refuse = lambda endpoint, body: None
        assert call(root, "retry").returncode == 0
        assert len(chats(server)) == n + 1
        assert "Crimson House" in texts(root)["survey.pdf"]


@pytest.mark.parametrize(
    "message",
    [
        "Invalid content type. image_url is only supported by certain models.",
        "this model does not support image input",
        "some/model is not a multimodal model",
        "No endpoints found that support image input",
        "unknown variant `image_url`, expected `text`",
    ],
)
def test_a_model_that_does_not_see_is_named_in_one_sentence(tmp_path: Path, message: str) -> None:
    status = 404 if "endpoints" in message else 400
    error = {"error": {"message": message, "type": "invalid_request_error"}}

    def refuse(endpoint: str, body: Any) -> Any:
        return (status, error) if "image_url" in json.dumps(body) else None

    with Server(refuse=refuse) as server:
        root = write_figures(tmp_path / "p", server.url, survey_pdf=make_survey(is_whole=False))
        result = call(root, "run")
    assert result.returncode == 1
    assert f"test-model at {server.url} does not see pictures (HTTP {status}: {message}" in (
        " ".join(result.stderr.split())
    )


def test_a_refused_picture_does_not_change_the_format_of_requests(tmp_path: Path) -> None:
    error = {"error": {"message": "You uploaded an unsupported image format."}}
    with Server(refuse=lambda endpoint, body: (400, error)) as server:
        root = write_figures(tmp_path / "p", server.url, survey_pdf=make_survey(is_whole=False))
        assert call(root, "run").returncode in (1, 3)
        server.refuse = lambda endpoint, body: None
        assert call(root, "retry").returncode == 0
        assert "json_schema" in json.loads(chats(server)[-1].body)["response_format"]["type"]


def find(path: Path, data: bytes, suffix: str = ".pdf", limit: int = 50) -> list[Any]:
    path.write_bytes(data)
    return list(call_parser(path, "figures", suffix, limit)[0])


def box_of(figure: Any) -> tuple[int, int, int, int]:
    return figure.left, figure.top, figure.width, figure.height


@pytest.mark.parametrize(
    ("caption", "name"),
    [
        ("Figure 1: Harvest.", "Figure 1"),
        ("FIG. 12. Harvest.", "FIG. 12"),
        ("Abbildung 1: Die Ernte.", "Abbildung 1"),
        ("Figura 2.3 La cosecha", "Figura 2.3"),
        ("Figure 3 shows the harvest of a year.", ""),
        ("Table 1: Harvest.", ""),
    ],
)
def test_what_is_drawn_above_a_caption_is_a_figure(tmp_path: Path, caption: str, name: str) -> None:
    found = find(tmp_path / "a.pdf", make_survey(caption, is_whole=False))
    assert [figure.name for figure in found] == [name] * bool(name)
    for figure in found:
        left, top, width, height = (side / 10 for side in box_of(figure))
        assert left == pytest.approx(100, abs=3)
        assert top == pytest.approx(792 - 660, abs=3)
        assert (width, top + height) == pytest.approx((300, 792 - 401), abs=5)


def test_prose_between_a_drawing_and_a_caption_parts_them(tmp_path: Path) -> None:
    prose = "The two houses of the valley brought in their harvest in autumn of that year."
    lines = [(72, 430 - 14 * n, prose) for n in range(3)]
    pdf = make_pdf(
        [[*lines, (72, 380, "Figure 1: Harvest.")]],
        drawn={0: draw_bars(100, 450, Crimson=100, Teal=50)},
    )
    assert find(tmp_path / "a.pdf", pdf) == []


def test_figures_of_two_columns_stay_two(tmp_path: Path) -> None:
    bars = [
        f"{colour} rg {left} 500 200 150 re f"
        for colour, left in (("0.8 0 0", 60), ("0 0.5 0.5", 340))
    ]
    lines = [(60, 480, "Figure 1: The left one."), (340, 480, "Figure 2: The right one.")]
    found = find(tmp_path / "a.pdf", make_pdf([lines], drawn={0: " ".join(bars)}))
    assert [(f.name, f.left, f.width) for f in found] == [
        ("Figure 1", 600, 2_000),
        ("Figure 2", 3_400, 2_000),
    ]


def test_icons_logos_and_scans_are_no_figures(tmp_path: Path) -> None:
    # The logo, the icon and the picture of page 2 are pictures; only the last is a figure.
    found = find(tmp_path / "a.pdf", make_survey())
    assert [(f.page, f.name, box_of(f)) for f in found if not f.name] == [
        (2, "", (720, 2520, 3200, 2400))
    ]
    scan = paint_bars((400, 500), Teal=0.5)
    pdf = make_pdf(
        [[(72, 700, "Words.")]],
        drawn={0: "612 0 0 792 0 0 cm /Scan Do"},
        pictures={"Scan": (*scan.size, scan.tobytes())},
    )
    assert find(tmp_path / "a.pdf", pdf) == []
    assert find(tmp_path / "a.png", encode(paint_bars((90, 400), Teal=0.5)), ".png") == []


def test_a_page_that_is_turned_is_cut_where_it_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(make_survey().replace(b"/MediaBox", b"/Rotate 90 /MediaBox"))
    [figure] = [f for f in call_parser(path, "figures", ".pdf", 50)[0] if f.page == 2]
    assert (figure.page_width, figure.page_height) == (792, 612)
    assert box_of(figure) == (3000, 720, 2400, 3200)
    data = call_parser(path, "picture of a figure", ".pdf", figure)[0]
    from PIL import Image

    picture = Image.open(io.BytesIO(data)).convert("RGB")
    assert picture.size == pytest.approx((240, 320), abs=2)


def test_a_picture_that_is_large_becomes_a_jpeg_of_a_limited_size(tmp_path: Path) -> None:
    import numpy as np
    from PIL import Image

    noise = np.random.default_rng(1).integers(0, 255, (2_000, 3_000, 3), np.uint8)
    [figure] = find(tmp_path / "a.png", encode(Image.fromarray(noise)), ".png")
    data, kind, width, height, _ = call_parser(
        tmp_path / "a.png", "picture of a figure", ".png", figure
    )
    assert (kind, data[:2]) == ("image/jpeg", b"\xff\xd8")
    assert len(data) <= 1_000_000
    assert max(width, height) <= 2_048
    assert Image.open(io.BytesIO(data)).size == (width, height)


def test_a_document_has_a_limited_number_of_figures(tmp_path: Path) -> None:
    with Server() as server:
        root = write_figures(tmp_path / "p", server.url, survey_pdf=make_survey())
        result = call(root, "run", "--set", "describe_figures.max_figures=1")
        assert len(chats(server)) == 1
    assert "survey.pdf: only 1 of 2 figures are described" in result.stderr


def test_a_damaged_picture_costs_only_itself(tmp_path: Path) -> None:
    whole = encode(paint_bars((400, 300), Teal=0.9, Amber=0.3))
    with Server() as server:
        root = write_figures(
            tmp_path / "p", server.url, cut_png=whole[:400], whole_png=whole, n_txt=b"The mill."
        )
        result = call(root, "run")
    assert list(texts(root)) == ["n.txt", "whole.png"]
    assert "The figures of cut.png are not read" in result.stderr


def test_a_folder_of_pictures_is_enough(tmp_path: Path) -> None:
    whole = encode(paint_bars((400, 300), Teal=0.9, Amber=0.3))
    with Server(refuse=lambda endpoint, body: (400, FILTERED)) as server:
        root = write_figures(tmp_path / "p", server.url, a_png=whole)
        assert json.loads(call(root, "estimate", "--json").stdout)["lines"][0]["n_to_ask"] == 1
        assert "1 added" not in call(root, "run", "--dry-run").stdout
        result = call(root, "run")
        assert result.returncode == 2
        assert "no picture was described; a.png, page 1, picture: HTTP 400" in result.stderr
        server.refuse = lambda endpoint, body: None
        assert call(root, "retry").returncode == 0
    assert list(texts(root)) == ["a.png"]
    # Without the step, such a folder holds nothing to read.
    steps = (root / "workflows" / "small.yaml").read_text().replace("- describe_figures\n", "")
    (root / "workflows" / "small.yaml").write_text(steps)
    assert "could not be read" in call(root, "run").stderr


def test_a_picture_with_text_has_both_its_words_and_its_description(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeTesseract(tmp_path).install("The buoy of Skerry was laid by Hilda Moen in 1954.")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    bars = encode(paint_bars((2_550, 3_300), Teal=0.9, Amber=0.3))
    with Server() as server:
        root = write_figures(tmp_path / "p", server.url, buoy_png=bars)
        assert call(root, "run", "--set", "load_documents.ocr=auto").returncode == 0
        [asked] = chats(server)
    assert "The buoy of Skerry was laid" in asked.body.decode()
    words, heading, _ = texts(root)["buoy.png"].split("\n\n")
    assert (words[:18], heading[:17]) == ("The buoy of Skerry", "# Picture on page")
    rows = read(root, "pages").select("kind", "number", "engine").rows()
    assert rows == [("page", 1, "tesseract 5.0.1 (eng)"), ("figure", 1, "test-model")]


def test_a_renamed_file_is_not_paid_again(tmp_path: Path) -> None:
    with Server() as server:
        chart = encode(paint_bars((400, 300), Teal=0.9))
        files = {"survey_pdf": make_survey(), "a_png": chart, "b_png": chart}
        root = write_figures(tmp_path / "p", server.url, **files)
        assert call(root, "run").returncode == 0
        n, before = len(chats(server)), read(root, "documents")
        for name in ("survey.pdf", "b.png"):
            (root / "input" / name).rename(root / "input" / f"new-{name}")
        assert call(root, "run").returncode == 0
    assert len(chats(server)) == n == 3
    after = read(root, "documents")
    assert after["path"].to_list() == ["a.png", "new-b.png", "new-survey.pdf"]
    assert after["id"].to_list() == before["id"].to_list()


def test_figures_in_archives_and_messages_are_described_at_their_place(tmp_path: Path) -> None:
    teal, amber = (encode(paint_bars((400, 300), **{name: 0.9})) for name in ("Teal", "Amber"))
    survey, message = make_survey(is_whole=False), make_message()
    message.add_attachment(teal, "image", "png", filename="chart.png")
    zipped = make_zip({"b/survey.pdf": survey, "a.png": amber, "n.txt": b"The mill."})
    message.add_attachment(zipped, "application", "zip", filename="in.zip")
    files = {"m_eml": message.as_bytes(), "x_zip": zipped, "o_msg": make_outlook({"c.png": teal})}
    with Server() as server:
        root = write_figures(tmp_path / "p", server.url, **files)
        [priced] = json.loads(call(root, "estimate", "--json").stdout)["lines"]
        result = call(root, "run")
        assert result.returncode == 0, result.stderr
        # One request for what is alike, under whatever name.
        assert (priced["n_to_ask"], len(chats(server))) == (3, 3)
        found = texts(root)
        described = {path for path, text in found.items() if "as described by a model" in text}
        assert described == {
            *("m.eml/chart.png", "m.eml/in.zip/a.png", "m.eml/in.zip/b/survey.pdf"),
            *("x.zip/a.png", "x.zip/b/survey.pdf", "o.msg/c.png"),
        }
        assert "Crimson House" in found["m.eml/in.zip/b/survey.pdf"]
        rows = read(root, "documents").filter(pl.col("path").str.ends_with(".png"))
        assert {
            path: (title, date)
            for path, title, date in rows.select("path", "title", "creation_date").iter_rows()
        } == {
            "m.eml/chart.png": ("Budget: chart.png", "2001-05-14T16:39:00-07:00"),
            "m.eml/in.zip/a.png": ("Budget: a.png", "2001-05-14T16:39:00-07:00"),
            "o.msg/c.png": ("Größe des Hafens: c.png", "2001-05-14T23:39:00+00:00"),
            "x.zip/a.png": ("a.png", ""),
        }
        assert list_skipped(root) == []
        assert "Nothing changed" in call(root, "run").stdout
        # One file in the archive changes, and one is deleted.
        changed = make_zip({"b/survey.pdf": make_survey(teal=150, is_whole=False), "n.txt": b"x"})
        (root / "input" / "x.zip").write_bytes(changed)
        assert call(root, "run").returncode == 0
        assert len(chats(server)) == 4
    assert "x.zip/a.png" not in texts(root)
    assert "Teal House reaches 75 percent" in texts(root)["x.zip/b/survey.pdf"]


def test_pictures_of_slides_are_described_and_cited_by_their_slide(tmp_path: Path) -> None:
    pptx = pytest.importorskip("pptx")
    show, logo = pptx.Presentation(), paint_bars((300, 200), Crimson=0.9)
    width, height = show.slide_width, show.slide_height

    def add(slide: Any, picture: Any, left: float, top: float, across: float, down: float) -> None:
        place = (int(width * left), int(height * top), int(width * across), int(height * down))
        slide.shapes.add_picture(io.BytesIO(encode(picture)), *place)

    for title in ("Ferries", "Harvest of the valley", "Roads"):
        slide = show.slides.add_slide(show.slide_layouts[5])
        slide.shapes.title.text = title
        add(slide, logo, 0.8, 0.8, 0.2, 0.2)
        if title == "Harvest of the valley":
            add(slide, paint_bars((400, 300), Teal=0.9, Amber=0.225), 0.2, 0.2, 0.5, 0.5)
    # Nor is an icon or a background.
    add(slide, paint_bars((64, 64), Indigo=0.5), 0.1, 0.1, 0.3, 0.3)
    add(slide, paint_bars((640, 480), Indigo=0.5), 0, 0, 1, 1)
    show.save(stream := io.BytesIO())
    with Server() as server:
        root = write_figures(tmp_path / "p", server.url, talk_pptx=stream.getvalue())
        result = call(root, "run")
        assert result.returncode == 0, result.stderr
        [asked] = chats(server)
    assert "Harvest of the valley" in asked.body.decode()
    assert "# Picture on slide 2, as described by a model" in texts(root)["talk.pptx"]
    figures = read(root, "pages").filter(kind="figure").select("number", "label", "boxes").rows()
    [(number, label, [box])] = figures
    assert (number, label) == (2, "slide 2")
    assert [box[name] for name in ("left", "top", "width", "height")] == [1440, 1080, 3600, 2700]
    with graphrag_query.open(root / "output") as index:
        answer = index.local("How far does Teal House reach?")
    assert "slide 2, figure described by test-model" in {
        citation.location for citation in answer.citations
    }


def test_pictures_of_a_slide_that_are_broken_or_lie_on_each_other_are_told_apart(
    tmp_path: Path,
) -> None:
    pptx, image = pytest.importorskip("pptx"), pytest.importorskip("PIL.Image")
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[6])
    pictures = [paint_bars((300, 200), **{bar: 0.9}) for bar in ("Crimson", "Teal", "Indigo")]
    for picture in (image.effect_noise((400, 400), 99), *pictures):
        content = io.BytesIO(encode(picture))
        shape = slide.shapes.add_picture(content, 0, 0, 3_000_000)
    first = slide.shapes[0]
    noise = first.part.related_part(first._element.blip_rId)
    head, *chunks = noise.blob.split(b"IDAT")
    noise._blob = head + b"IDAT" + (b"\xff" * 4).join(chunks)
    [blip] = shape._element.xpath(".//a:blip")
    [name] = [name for name in blip.attrib if name.endswith("embed")]
    blip.attrib[name] = "rId99"
    show.save(stream := io.BytesIO())
    figures = find(tmp_path / "a.pptx", stream.getvalue(), ".pptx")
    drawn = [call_parser(tmp_path / "a.pptx", "picture of a figure", ".pptx", f) for f in figures]
    assert len(figures) == 2
    assert drawn[0] != drawn[1]


def test_an_archive_of_pictures_is_enough(tmp_path: Path) -> None:
    whole = encode(paint_bars((400, 300), Teal=0.9, Amber=0.3))
    with Server() as server:
        root = write_figures(tmp_path / "p", server.url, x_zip=make_zip({"a.png": whole}))
        assert call(root, "run").returncode == 0
    assert list(texts(root)) == ["x.zip/a.png"]

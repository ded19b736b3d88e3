"""Pages that are pictures: engines that work, misbehave or are missing; languages; the cache."""

import io
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from graphrag_index import readers
from graphrag_index.errors import SettingsError
from graphrag_index.llm.ledger import Ledger
from graphrag_index.readers import Document, read_file, recognition
from graphrag_index.readers.document import PageView, UnreadableFile
from graphrag_index.readers.input_files import find_files
from graphrag_index.readers.page_pictures import draw_page
from graphrag_index.readers.parse_process import ChangedFile
from graphrag_index.readers.recognition import PageReader
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_index.step import Silent
from graphrag_index.steps.load_documents import load_documents
from graphrag_index.storage.memo import join_batches
from graphrag_index.storage.skipped_files import SkippedFile, describe_skipped
from tests.fixtures.pdf import make_pdf
from tests.fixtures.read_documents import load, load_tables, write
from tests.fixtures.sample_files import (
    ENGLISH,
    FakeTesseract,
    make_message,
    make_outlook,
    make_tar,
    make_zip,
    picture,
)

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("pypdfium2")

GERMAN = "Das Schiff lag im Eis und die Mannschaft der Station kam mit den Hunden von der Küste."


@pytest.fixture
def tesseract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTesseract:
    """The only engine on the machine, once it is installed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(recognition, "RAPIDOCR", "no-such-package")
    return FakeTesseract(folder)


def scan(*shades: int) -> bytes:
    """Return a PDF of pages of letter size, each with a picture of one shade."""
    first, *others = (Image.new("L", (850, 1100), shade) for shade in shades)
    content = io.BytesIO()
    first.save(content, "PDF", resolution=100, save_all=True, append_images=others)
    return content.getvalue()


def read_pages(
    root: Path, ledger: Ledger, seconds: float = 20, **values: object
) -> tuple[PageReader, list[Document]]:
    settings, announced = LoadDocuments.model_validate(values), list[str]()
    reader = PageReader(lambda: ledger, announced.append, max_seconds=seconds)
    files = find_files(settings, root)
    reader.read(files, settings, Silent())
    found = (
        item
        for file in files
        for item in read_file(file.path, file.name, settings, reader.find_reader)
    )
    return reader, [item for item in found if isinstance(item, Document)]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(tmp_path / "output")
    yield opened
    opened.close()


def test_pages_without_text_are_read_at_their_place_and_say_so(
    tmp_path: Path, tesseract: FakeTesseract, ledger: Ledger
) -> None:
    tesseract.install()
    _, (document,) = read_pages(write(tmp_path, {"a.pdf": scan(200, 210)}), ledger)
    assert document.text == f"{ENGLISH}\n\n{ENGLISH}"
    first, second = document.pages
    assert [page.engine for page in document.pages] == ["tesseract 5.0.1 (eng)"] * 2
    assert (first.number, round(first.width), round(first.height)) == (1, 612, 792)
    assert document.text[second.start : second.end] == ENGLISH
    # 300 pixels are an inch, 72 points; lengths are in tenths of points.
    assert list(first.boxes[:12]) == [0, 3, 240, 3600, 600, 120, 4, 8, 960, 3600, 600, 120]


def test_pages_with_text_are_not_read_again(
    tmp_path: Path, tesseract: FakeTesseract, ledger: Ledger
) -> None:
    tesseract.install()
    lines = [(72.0, 700.0 - 14 * n, "The harbour is old and it is deep.") for n in range(9)]
    _, (document,) = read_pages(write(tmp_path, {"a.pdf": make_pdf([lines])}), ledger)
    assert (tesseract.runs, document.pages[0].engine) == ([], "")


def make_garbled(n_lines: int) -> bytes:
    """Return a page in a font whose codes are numbers of glyphs, without a Unicode map."""
    lines = [(72.0, 700.0 - 14 * n, f"{ENGLISH} {n}") for n in range(n_lines)]
    arial = "/BaseFont /Arial /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity)"
    arial = f"<< /Type /Font /Subtype /CIDFontType2 {arial} /Supplement 0 >> /DW 500 >>"
    font = f"/Subtype /Type0 /BaseFont /Arial /Encoding /Identity-H /DescendantFonts [ {arial} ]"
    content = make_pdf([lines]).replace(b"/Subtype /Type1 /BaseFont /Helvetica", font.encode())
    for _, _, text in lines:
        codes = "".join(f"{ord(c) - 29:04x}" for c in text)
        content = content.replace(f"({text})".encode(), f"<{codes}>".encode())
    size = content.index(b"\nendstream") - content.index(b"stream\n") - len("stream\n")
    return re.sub(rb"/Length \d+", f"/Length {size}".encode(), content)


def test_garbled_text_is_recognized_and_else_left_out(
    tmp_path: Path, tesseract: FakeTesseract, ledger: Ledger
) -> None:
    root = write(tmp_path, {"a.pdf": make_garbled(9), "b.txt": GERMAN})
    reader, documents = read_pages(root, ledger)
    assert [document.title for document in documents] == ["b.txt"]
    assert reader.explain("a.pdf") == (
        "its fonts do not tell the characters of its text (pages 1): "
        'install the program tesseract, or pip install "graphrag-index[ocr]"'
    )
    tesseract.install()
    _, (document, _) = read_pages(root, ledger)
    assert document.text == ENGLISH
    assert document.pages[0].engine == "tesseract 5.0.1 (deu)"


def test_a_picture_that_was_replaced_is_not_drawn_with_the_old_marks(
    tmp_path: Path, tesseract: FakeTesseract, ledger: Ledger
) -> None:
    tesseract.install()
    files = {"a.pdf": scan(200), "b.pdf": make_garbled(9), "c.png": picture(200)}
    _, documents = read_pages(write(tmp_path, files), ledger)
    others = (scan(90), make_garbled(8), picture(90))
    for document, (name, source), other in zip(documents, files.items(), others, strict=True):
        suffix = Path(name).suffix
        view = PageView(1, (), ((0, 0, 90, 90),), document.pages[0].picture_hash)
        assert draw_page(source, suffix, view)
        with pytest.raises(ChangedFile, match="has changed since it was read"):
            draw_page(other, suffix, view)
        # An index of an older version has no hash.
        assert draw_page(other, suffix, view._replace(picture_hash=""))


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.tiff"])
def test_a_picture_file_is_a_document_of_its_pages(
    tmp_path: Path, tesseract: FakeTesseract, ledger: Ledger, name: str
) -> None:
    tesseract.install()
    content = io.BytesIO()
    page = Image.new("L", (850, 1100), 200)
    extra = {"save_all": True, "append_images": [Image.new("L", (850, 1100), 99)]}
    is_tiff = name.endswith("tiff")
    page.save(content, format=name[2:].replace("jpg", "jpeg"), **(extra if is_tiff else {}))
    _, (document,) = read_pages(write(tmp_path, {name: content.getvalue()}), ledger)
    assert document.title == name
    assert [page.number for page in document.pages] == [1, 2][: 1 + is_tiff]
    assert document.text.count("station") == 1 + is_tiff


def test_a_page_is_read_once_under_any_name_and_after_a_failure_only_on_retry(
    tmp_path: Path, tesseract: FakeTesseract, ledger: Ledger
) -> None:
    tesseract.install()
    root = write(tmp_path, {"a.pdf": scan(200, 210, 200)})
    read_pages(root, ledger)
    # Equal pages are read once too.
    assert len(tesseract.runs) == 2
    (root / "input" / "a.pdf").unlink()
    tesseract.install(behaviour="echo no >&2; exit 1")
    _, (document,) = read_pages(write(root, {"b.pdf": scan(210, 220)}), ledger)
    assert (len(tesseract.runs), document.text) == (3, ENGLISH)
    tesseract.install()
    reader, _ = read_pages(root, ledger)
    assert (len(tesseract.runs), reader.explain("b.pdf")) == (3, "page 2: tesseract failed: no")
    (failed,) = ledger.quarantined_requests(["load_documents"])
    assert (failed.unit, failed.reason) == ("b.pdf, page 2", "tesseract failed: no")
    ledger.reopen_quarantined(["load_documents"])
    reader, (document,) = read_pages(root, ledger)
    assert (len(tesseract.runs), document.text) == (4, f"{ENGLISH}\n\n{ENGLISH}")
    assert not reader.explain("b.pdf")


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("echo Error in pixRead >&2; exit 3", "tesseract failed: Error in pixRead"),
        ("exit 3", "tesseract failed: exit code 3"),
        ("kill -9 $$", "tesseract failed: exit code -9"),
        ("sleep 60", "tesseract needs more than 0.5 s"),
    ],
)
def test_a_program_that_fails_or_hangs_says_why(
    tesseract: FakeTesseract, behaviour: str, reason: str
) -> None:
    tesseract.install(behaviour=behaviour)
    with pytest.raises(UnreadableFile, match=f"^{reason}$"):
        recognition._run_tesseract(str(tesseract.command), b"", ("-l", "eng"), 0.5)


def test_a_page_that_hangs_ends_alone(
    tmp_path: Path, tesseract: FakeTesseract, ledger: Ledger
) -> None:
    tesseract.install(behaviour="sleep 60")
    root = write(tmp_path, {"a.pdf": scan(200), "b.txt": ENGLISH})
    reader, (document,) = read_pages(root, ledger, seconds=0.5)
    assert document.text == ENGLISH
    assert reader.explain("a.pdf") == "page 1: tesseract needs more than 0.5 s"


def test_what_is_no_table_is_no_text(
    tmp_path: Path, tesseract: FakeTesseract, ledger: Ledger
) -> None:
    tesseract.install(behaviour="echo 5 words; printf '5\\t1\\n\\377\\000'")
    reader, documents = read_pages(write(tmp_path, {"a.pdf": scan(200), "b.txt": "B."}), ledger)
    assert [document.text for document in documents] == ["B."]
    assert not reader.explain("a.pdf")


def mail_with(body: str, **files: bytes) -> bytes:
    message = make_message("Plans", body)
    for name, content in files.items():
        kind = {"maintype": "application", "subtype": "octet-stream"}
        message.add_attachment(content, filename=name.replace("_", "."), **kind)
    return message.as_bytes()


def test_scans_in_archives_and_messages_are_read_once_at_their_place(
    tmp_path: Path, tesseract: FakeTesseract, ledger: Ledger
) -> None:
    tesseract.install()
    mail = mail_with(GERMAN, scan_pdf=scan(200), photo_png=picture(), notes_txt=b"Cold.")
    inner = make_zip({"b/c.eml": mail, "d.pdf": scan(200, 220), "e.txt": b"Warm."})
    root = write(tmp_path, {"a.zip": inner, "f.pdf": scan(200), "g.eml": mail})
    _, documents = read_pages(root, ledger)
    found = [(document.member, ENGLISH in document.text) for document in documents]
    attached = [("", False), ("scan.pdf", True), ("photo.png", True), ("notes.txt", False)]
    assert found == [
        *((f"b/c.eml/{name}".rstrip("/"), has_words) for name, has_words in attached),
        *(("d.pdf", True), ("e.txt", False), ("", True)),
        *attached,
    ]
    assert documents[1].pages[0].engine == "tesseract 5.0.1 (deu)"
    # The two pages of d.pdf and the picture; the other scans are the first page of it.
    assert len(tesseract.runs) == 3
    read_pages(root, ledger)
    assert len(tesseract.runs) == 3


def test_scans_in_archives_are_counted_and_named_if_they_are_not_read(
    tmp_path: Path, tesseract: FakeTesseract, ledger: Ledger
) -> None:
    tesseract.install()
    lines = [(72.0, 700.0 - 14 * n, f"The harbour {n} is old and deep.") for n in range(9)]
    mail = mail_with("Hello.", scan_pdf=scan(200), part_pdf=join_pdfs(make_pdf([lines]), scan(9)))
    root, settings = write(tmp_path, {"a.eml": mail}), LoadDocuments()
    reader = PageReader(lambda: ledger, only_known=True)
    reader.read(find_files(settings, root), settings, Silent())
    assert (reader.n_missing, tesseract.runs) == (2, [])
    tables = load_tables(root, ocr="none")
    reason = "load_documents.ocr is none"
    assert tables["unread_files"].rows() == [
        ("a.eml/scan.pdf", f"1 page is a picture (1): {reason}")
    ]
    assert tables["skipped_files"].rows() == [
        ("a.eml/part.pdf", "in part", f"1 page is a picture (2): {reason}", 0)
    ]


def join_pdfs(*contents: bytes) -> bytes:
    import pypdfium2

    joined, out = pypdfium2.PdfDocument.new(), io.BytesIO()
    for content in contents:
        joined.import_pages(pypdfium2.PdfDocument(content))
    joined.save(out)
    return out.getvalue()


PAGE = make_pdf([[(72, 720, "Karl Ost.")]])
KEYS = f"/O <{'0' * 64}> /U <{'1' * 64}>"
LOCK = f"/Encrypt << /Filter /Standard /V 1 /R 2 {KEYS} /P -4 >> /ID [<00> <00>] /Root"
HINT = 'install the program tesseract, or pip install "graphrag-index[ocr]"'
# File → its content, where it is listed, and why.
KINDS: dict[str, tuple[bytes, str, str]] = {
    "read.txt": (b"Anna Berg met Karl Ost.", "read", ""),
    "part.pdf": (join_pdfs(PAGE, scan(9)), "in part", f"1 page is a picture (2): {HINT}"),
    "scan.pdf": (scan(200), "unread", f"1 page is a picture (1): {HINT}"),
    "garbled.pdf": (
        make_garbled(9),
        "unread",
        f"its fonts do not tell the characters of its text (pages 1): {HINT}",
    ),
    "cut.pdf": (
        PAGE[: len(PAGE) // 2],
        "unread",
        "is a damaged or incomplete .pdf file: its end is missing, it was cut off",
    ),
    "locked.pdf": (
        PAGE.replace(b"/Root", LOCK.encode()),
        "unread",
        "needs a password: save it without one",
    ),
    "a.jsonl": (
        b'{"text": \n',
        "unread",
        "line 1 is not valid JSON: Expecting value, character 11",
    ),
    "photo.png": (picture(), ".png", f"is a picture: {HINT}"),
    "icon.png": (picture(size=(64, 64)), ".png", "is a picture without text"),
    "cut.png": (picture()[:20], ".png", "is a damaged picture, or no picture"),
    "song.mp3": (bytes(99), ".mp3", "is audio/mpeg by its suffix"),
    "old.doc": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512),
        ".doc",
        "is a file of an Office before 2007: save it in a newer format",
    ),
    ".hidden": (b"Text.", "hidden", "is hidden"),
}


def attach(files: dict[str, bytes]) -> bytes:
    message = make_message()
    for name, content in files.items():
        message.add_attachment(content, "application", "octet-stream", filename=name)
    return message.as_bytes()


def pack_twice(files: dict[str, bytes]) -> bytes:
    return attach({"in.zip": make_zip(files)})


def make_mailbox(files: dict[str, bytes]) -> bytes:
    return b"From a@b Fri May  4 14:05:44 2001\n" + attach(files) + b"\n"


@pytest.mark.parametrize(
    ("name", "inner", "pack"),
    [
        ("", "", None),
        ("a.zip", "a.zip/", make_zip),
        ("a.tar.gz", "a.tar.gz/", make_tar),
        ("a.eml", "a.eml/", attach),
        ("a.mbox", "a.mbox/message 1/", make_mailbox),
        ("a.msg", "a.msg/", make_outlook),
        ("b.eml", "b.eml/in.zip/", pack_twice),
    ],
)
def test_each_file_is_listed_alike_wherever_it_lies(
    tmp_path: Path,
    tesseract: FakeTesseract,
    name: str,
    inner: str,
    pack: Callable[[dict[str, bytes]], bytes] | None,
) -> None:
    files = {name: content for name, (content, _, _) in KINDS.items()}
    tables = load_tables(write(tmp_path, {name: pack(files)} if pack else {**files}))
    read = tables["loaded_documents"]["path"].to_list()
    listed = {path: ("unread", reason) for path, reason in tables["unread_files"].rows()}
    listed |= {path: (kind, reason) for path, kind, reason, _ in tables["skipped_files"].rows()}
    found = {path: listed.get(path, ("read", "")) for path in [*read, *listed]}
    found.pop(inner.removesuffix("in.zip/").rstrip("/"), None)  # the message
    assert found == {f"{inner}{name}": (place, why) for name, (_, place, why) in KINDS.items()}
    assert {path for path, (place, _) in found.items() if place in ("read", "in part")} == {
        f"{inner}read.txt",
        f"{inner}part.pdf",
    }
    assert describe_skipped([SkippedFile(*row) for row in tables["skipped_files"].rows()]) == (
        f"1 file read in part: {inner}part.pdf. 6 files skipped: .png 3, .doc 1, .mp3 1, hidden 1."
    )


@pytest.mark.parametrize(
    ("name", "path", "pack"),
    [
        ("a.zip", "a.zip/long.txt", make_zip),
        ("a.tar.gz", "a.tar.gz/long.txt", make_tar),
        ("b.eml", "b.eml/in.zip/long.txt", pack_twice),
    ],
)
def test_a_file_that_is_too_large_is_named_wherever_it_lies(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    path: str,
    pack: Callable[[dict[str, bytes]], bytes],
) -> None:
    monkeypatch.setattr(readers, "MAX_UNPACKED_RATIO", 1)
    files = {"read.txt": b"Anna Berg.", "long.txt": b"abc " * (1 << 19), "z.txt": b"Not read."}
    documents, unread = load(write(tmp_path, {name: pack(files)}))
    assert documents["path"].to_list()[-1] == path.replace("long", "read")
    assert unread.rows() == [(path, "unpacks to too many bytes: the rest is not read")]


def test_two_scans_of_one_name_in_an_archive_are_told_apart(
    tmp_path: Path, tesseract: FakeTesseract, ledger: Ledger
) -> None:
    tesseract.install()
    with zipfile.ZipFile(stream := io.BytesIO(), "w") as archive:
        archive.writestr("a.pdf", scan(200))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a.pdf", scan(200, 220))
    _, documents = read_pages(write(tmp_path, {"a.zip": stream.getvalue()}), ledger)
    assert [len(document.pages) for document in documents] == [1, 2]


def test_a_program_that_does_not_work_is_no_engine(
    tmp_path: Path, tesseract: FakeTesseract, caplog: pytest.LogCaptureFixture
) -> None:
    tesseract.command.write_text("#!/bin/sh\nexit 1\n")
    tesseract.command.chmod(0o755)
    assert recognition.find_engine() is None
    assert f"{tesseract.command} does not work" in caplog.text


def test_without_an_engine_one_sentence_says_what_to_install(
    tmp_path: Path, tesseract: FakeTesseract, caplog: pytest.LogCaptureFixture
) -> None:
    root = write(tmp_path, {"a.pdf": scan(200, 210), "b.png": picture(), "c.txt": ENGLISH})
    batches = load_documents(settings=LoadDocuments(), root=root, progress=Silent())
    tables = join_batches(batches, load_documents.writes)
    hint = 'install the program tesseract, or pip install "graphrag-index[ocr]"'
    assert [record.getMessage() for record in caplog.records] == [
        f"3 pages are pictures: {hint}, and run again."
    ]
    assert tables["unread_files"].rows() == [("a.pdf", f"2 pages are pictures (1, 2): {hint}")]
    assert tables["skipped_files"].rows() == [("b.png", ".png", f"is a picture: {hint}", 1)]


def test_a_document_read_in_part_is_named(
    tmp_path: Path, tesseract: FakeTesseract, ledger: Ledger
) -> None:
    lines = [(72.0, 700.0 - 14 * n, f"The harbour {n} is old and deep.") for n in range(9)]
    root = write(tmp_path, {"a.pdf": join_pdfs(make_pdf([lines]), scan(200))})
    skipped = load_skipped(root, ocr="none")
    reason = "1 page is a picture (2): load_documents.ocr is none"
    assert skipped == [SkippedFile("a.pdf", "in part", reason, 0)]
    assert describe_skipped(skipped) == "1 file read in part: a.pdf."


def load_skipped(root: Path, **values: object) -> list[SkippedFile]:
    settings = LoadDocuments.model_validate(values)
    batches = load_documents(settings=settings, root=root, progress=Silent())
    tables = join_batches(batches, load_documents.writes)
    return [SkippedFile(*row) for row in tables["skipped_files"].rows()]


def test_an_icon_and_a_damaged_picture_are_skipped(
    tmp_path: Path, tesseract: FakeTesseract
) -> None:
    tesseract.install()
    icon, damaged = picture(size=(64, 64)), picture()[:20]
    root = write(tmp_path, {"a.png": icon, "b.png": damaged, "c.txt": ENGLISH})
    assert load_skipped(root) == [
        SkippedFile("a.png", ".png", "is a picture without text"),
        SkippedFile("b.png", ".png", "is a damaged picture, or no picture"),
    ]
    assert tesseract.runs == []


GERMAN_LINES = [(72.0, 700.0 - 14 * n, GERMAN.replace("ü", "ue")) for n in range(4)]


@pytest.mark.parametrize(
    ("files", "ocr", "runs"),
    [
        # By the setting, the text of the document, that of the nearest file, and the page itself.
        ({"a.pdf": scan(200)}, "de+eng", ["deu+eng"]),
        (
            {"a.pdf": join_pdfs(make_pdf([GERMAN_LINES]), scan(200)), "b.txt": ENGLISH},
            "auto",
            ["deu"],
        ),
        ({"a.pdf": scan(200), "b.txt": GERMAN, "c.txt": ENGLISH}, "auto", ["deu"]),
        ({"a.pdf": scan(200, 210)}, "auto", ["deu", "deu", "eng"]),
    ],
)
def test_the_language_is_that_of_the_setting_or_of_the_text_around(
    tmp_path: Path,
    tesseract: FakeTesseract,
    ledger: Ledger,
    files: dict[str, str | bytes],
    ocr: str,
    runs: list[str],
) -> None:
    tesseract.install(GERMAN)
    read_pages(write(tmp_path, files), ledger, ocr=ocr)
    assert tesseract.runs == runs


def test_a_language_that_is_missing_is_named(
    tmp_path: Path, tesseract: FakeTesseract, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    tesseract.install()
    french = "Le navire était dans la glace et les hommes de la station sont venus avec les chiens"
    root = write(tmp_path, {"a.pdf": scan(200), "b.txt": french})
    read_pages(root, ledger)
    assert "language fr" in caplog.text
    assert "install tesseract-ocr-fra" in caplog.text
    with pytest.raises(SettingsError, match="has no language fra here, only deu, eng"):
        read_pages(root, ledger, ocr="fr")


def test_pages_to_be_read_are_counted_before(
    tmp_path: Path, tesseract: FakeTesseract, ledger: Ledger
) -> None:
    tesseract.install()
    root = write(tmp_path, {"a.pdf": scan(*range(100, 130))})
    settings = LoadDocuments()
    reader = PageReader(lambda: ledger, only_known=True)
    reader.read(find_files(settings, root), settings, Silent())
    assert (reader.n_missing, tesseract.runs) == (30, [])
    assert reader.explain("a.pdf") == "page 1: a picture that is not read yet and 29 more"


@pytest.mark.parametrize(
    ("n", "seconds", "text"),
    [
        (1, 0.2, "1 page is a picture: about 1 s"),
        (312, 420, "312 pages are pictures: about 7 min"),
        (9_000, 59_000, "9,000 pages are pictures: about 983 min"),
    ],
)
def test_the_time_is_said(n: int, seconds: float, text: str) -> None:
    assert recognition.describe_pictures(n, seconds) == text


def line_boxes(lines: list[tuple[float, float, float]], angle: float) -> np.ndarray:
    """Return the corners of lines (left, top, width) of ten points, on a page that is turned."""
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return (
        np.array([[(x, y), (x + w, y), (x + w, y + 10), (x, y + 10)] for x, y, w in lines]) @ turn
    )


@pytest.mark.parametrize("angle", [-0.026, 0, 0.026])
def test_lines_are_ordered_by_columns_and_paragraphs(angle: float) -> None:
    title = [(100.0, 20.0, 400.0)]
    left = [(50.0, 60.0 + 14 * n, 220.0) for n in range(6)]
    right = [(320.0, 60.0 + 14 * n, 220.0) for n in range(3)]
    after = [(320.0, 130.0 + 14 * n, 220.0) for n in range(3)]
    lines = [*title, *(line for pair in zip(left, [*right, *after], strict=True) for line in pair)]
    found = recognition._order_lines(line_boxes(lines, angle))
    ordered = [[lines[n] for n in block] for block in found]
    assert ordered == [title, left, right, after]


def render(text: str, dpi: int) -> bytes:
    """Return a page of text as a scanner gives it: a little turned, with noise."""
    import pypdfium2

    lines = [
        (72.0, 700.0 - 16 * n, text[start : start + 70])
        for n, start in enumerate(range(0, len(text), 70))
    ]
    page = pypdfium2.PdfDocument(make_pdf([lines], size=11))[0]
    image = page.render(scale=dpi / 72, grayscale=True).to_pil().rotate(1, fillcolor=255)
    noise = np.random.default_rng(1).normal(-5, 20, (image.height, image.width))
    content = io.BytesIO()
    noisy = Image.fromarray((np.asarray(image) + noise).clip(0, 255).astype(np.uint8))
    noisy.save(content, "PDF", resolution=dpi)
    return content.getvalue()


@pytest.mark.skipif(not shutil.which("tesseract"), reason="tesseract is not installed")
def test_tesseract_reads_a_scan(tmp_path: Path, ledger: Ledger) -> None:
    _, (document,) = read_pages(write(tmp_path, {"a.pdf": render(ENGLISH, 200)}), ledger, 60)
    found = document.text.split()
    assert sum(word in found for word in ENGLISH.split()) >= 0.9 * len(ENGLISH.split())
    assert document.pages[0].engine.startswith("tesseract")


@pytest.mark.skipif(find_spec("rapidocr") is None, reason="the extra ocr is not installed")
def test_rapidocr_reads_a_scan_without_a_network(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(render(ENGLISH, 150))
    code = """
import json, socket, sys
from pathlib import Path
def refuse(*arguments):
    raise OSError("there is no network")
socket.socket.connect = socket.getaddrinfo = refuse
from graphrag_index.readers.parse_process import limit_process
from graphrag_index.readers.recognition import Engine, recognize_page
limit_process()
page = recognize_page(Path(sys.argv[1]).read_bytes(), ".pdf", 1, Engine("rapidocr", "3"), "", 60.0)
print(json.dumps([word[0] for lines in page.paragraphs for line in lines for word in line]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert sum(word in found for word in ENGLISH.split()) >= 0.88 * len(ENGLISH.split())

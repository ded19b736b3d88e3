"""A folder of strange files: each is in the index, or is named with its reason; counts add up."""

import io
import os
import re
import socket
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_index.errors import InputError
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_index.step import Silent
from graphrag_index.steps.load_documents import load_documents
from graphrag_index.storage.memo import join_batches
from tests.fixtures.read_documents import write

SENTENCE = "Anna Berg met Karl Ost in Riga.\n"
RUSSIAN = "Иван Соколов был первым начальником порта. Мария Орлова училась у него."
with zipfile.ZipFile(stream := io.BytesIO(), "w") as archive:
    archive.writestr("a", "b")
# The version that an archive needs is behind the mark of its directory.
FUTURE_ZIP = re.sub(rb"(?<=PK\x01\x02..)\x14", b"\x63", stream.getvalue(), flags=re.DOTALL)
READ: dict[str, str | bytes] = {
    **dict.fromkeys(
        [
            *("a.txt", "a.rst", "a.log", "a.org", "a.tex", "a.py", "a.c", "a.yaml", "a.conf"),
            *("a.adoc", "a.sql", "A.TXT", "LICENSE", "Makefile", "a.b.c", "a.1", "new\nline.txt"),
            *("quote'\".pod", "-dash", "sp ace/ü/東.md", "x" * 200 + ".txt", "\U0001f600.srt"),
        ],
        SENTENCE,
    ),
    "koi.log": RUSSIAN.encode("koi8-r"),
    "sixteen.tex": "In sixteen bits, Müller.".encode("utf-16"),
    "japanese.org": "田中健一は青波港の初代港長であった。".encode("iso2022_jp"),
    "long line.log": "word " * 100_000,
    "page": "<!DOCTYPE html><p>One</p>",
    "colour.log": "\x1b[31mred\x1b[0m and green\n",
    "carriage.txt": "a\rb\r\nc",
    "about PDF.rst": "A PDF file begins with %PDF-1.7, Anna Berg said.",
}
SKIPPED: dict[str, str | bytes] = {
    **dict.fromkeys([".DS_Store", ".git/a", ".git/b/c", "sub/.d", "~$a.docx"], "hidden"),
    "empty": "",
    "blank.rst": " \n\t",
    "a.7z": b"7z\xbc\xaf\x27\x1c" + bytes(99),
    "future.xyz": FUTURE_ZIP,
    "a.doc": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 512,
    "a.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "pointer.mp4": "version https://git-lfs.github.com/spec/v1\n",
    "random": bytes(number * number % 251 for number in range(2_000)),
    "late.dat": "text " * 20_000 + "\0",
    "a.min.js": '!function(e,t){e.x=t(e["y"])||(e=1);for(;;)n(e)}(a,b);' * 20,
    "key.pem": "TWFueSBoYW5kcyBtYWtlIGxpZ2h0IHdvcmsuIEFuZCBzbyBvbiBhbmQgc28gb24u\n" * 9,
}
UNREAD: dict[str, str | bytes] = {
    "empty.txt": "",
    "null.txt": "a\0b",
    "bad.json": "{",
    "other.csv": "name,city\nAnna,Riga\n",
    "bad.parquet": b"PAR1PAR1",
    "damaged.log": "Käthe Müller aß Brötchen. ".encode() + b"\xff",
    "a.pdf": b"%PDF-1.4 no more",
    "b.pdf": SENTENCE,
    "a.docx": b"PK\3\4 no more",
    "a.zip": b"PK\3\4",
    "a.tgz": b"no more",
    "a.epub": b"PK\5\6" + bytes(18),
    "a.eml": SENTENCE,
    "a.mbox": SENTENCE,
}


def load(root: Path) -> tuple[set[str], dict[str, str], dict[str, int]]:
    """Return the paths of the documents, the reasons of unread files and counts of the skipped."""
    batches = load_documents(settings=LoadDocuments(), root=root, progress=Silent())
    tables: Mapping[str, pl.DataFrame] = join_batches(batches, load_documents.writes)
    skipped = tables["skipped_files"]
    assert all(skipped["reason"]), skipped
    assert skipped["path"].is_sorted()
    unread = dict(tables["unread_files"].iter_rows())
    return (
        set(tables["loaded_documents"]["path"]),
        unread,
        dict(skipped.select("path", "n_files").iter_rows()),
    )


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="the system has no such files")
def test_every_file_is_in_the_index_or_named_with_its_reason(tmp_path: Path) -> None:
    pytest.importorskip("mammoth")
    folder = write(tmp_path, READ | SKIPPED | UNREAD) / "input"
    Path(os.fsdecode(os.fsencode(folder) + b"/latin\xff.txt")).write_bytes(b"x")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listener, suppress(OSError):
        listener.bind(os.path.relpath(folder / "socket"))
    for name, target in {
        "passwd.txt": "/etc/passwd",
        "sub/up": "..",
        "gone.txt": "nowhere",
        "loop.rst": "loop.rst",
        "link.txt": "a.txt",
    }.items():
        (folder / name).symlink_to(target)
    n_files = sum(len(files) for _, _, files in os.walk(folder)) + 1  # and the link to a folder
    documents, unread, skipped = load(tmp_path)
    assert documents == {*READ, "latin\ufffd.txt", "link.txt"}
    assert unread.keys() == {*UNREAD, "gone.txt", "loop.rst"}
    hidden = {name for name in SKIPPED if name.startswith(".git/")}
    special = {"pipe", "passwd.txt", "sub/up"} | ({"socket"} & skipped.keys())
    assert skipped.keys() == {*SKIPPED, *special, ".git"} - hidden
    assert skipped[".git"] == 2
    assert len(documents) + len(unread) + sum(skipped.values()) == n_files


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(
        st.builds(
            "{}{}".format,
            st.sampled_from(["a", "b", "c/a", "c/.d", ".e", "~$f"]),
            st.sampled_from(["", ".txt", ".rst", ".json", ".csv", ".bin", ".png", ".html", ".PDF"]),
        ),
        st.one_of(st.binary(max_size=40), st.text(max_size=40).map(str.encode)),
        min_size=1,
        max_size=6,
    )
)
def test_any_bytes_under_any_name_are_read_or_named(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = write(Path(folder), {**files, "always.txt": SENTENCE})
        try:
            documents, unread, skipped = load(root)
        except InputError as error:
            raise AssertionError(files) from error
    assert {*documents, *unread, *skipped} == {*files, "always.txt"}
    assert not documents & skipped.keys()
    assert not unread.keys() & skipped.keys()

"""Archives: their files are read as if they lay in the folder, within limits."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest

from graphrag_index import readers
from graphrag_index.pipeline.changes import CHANGE_KINDS, compare_documents, digest_documents
from graphrag_index.readers import Document, ReadFailure, find_type
from tests.fixtures.read_documents import load, read, reasons, write
from tests.fixtures.sample_files import make_tar, make_zip

FILES = {
    "a.txt": b"Anna Berg met Karl Ost in Riga.",
    "sub/b.md": b"# The port\nRiga has a port.",
    "sub/c.jsonl": b'{"text": "One."}\n{"text": \n',
    ".hidden/d.txt": b"no",
    "__MACOSX/a.txt": b"no",
    "e.png": b"\x89PNG\r\n\x1a\n\0",
}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.zip", make_zip(FILES)),
        ("x.tar", make_tar(FILES, "w")),
        ("x.tar.gz", make_tar(FILES)),
        ("x.TGZ", make_tar(FILES)),
        ("x.tar.bz2", make_tar(FILES, "w:bz2")),
        ("x.txz", make_tar(FILES, "w:xz")),
    ],
)
def test_the_files_of_an_archive_are_read_as_in_a_folder(
    tmp_path: Path, name: str, content: bytes
) -> None:
    documents, unread = load(write(tmp_path, {name: content}))
    assert documents.select("path", "title").rows() == [
        (f"{name}/a.txt", "a.txt"),
        (f"{name}/sub/b.md", "The port"),
        (f"{name}/sub/c.jsonl", f"{name}/sub/c.jsonl (1)"),
    ]
    assert unread.rows() == [
        (f"{name}/sub/c.jsonl", "line 2 is not valid JSON: Expecting value, character 11")
    ]


def test_a_compressed_file_is_read_as_the_one_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "MAX_UNPACKED_RATIO", 1)
    files = {
        "a.txt.gz": gzip.compress(b"Anna met Karl."),
        "b.md.bz2": bz2.compress(b"# The port\nRiga has a port."),
        "c.JSONL.XZ": lzma.compress(b'{"text": "One."}'),
        "d.gz": gzip.compress(b"A text without a suffix."),
        "e.zip.gz": gzip.compress(make_zip({"f.txt": b"Inside."})),
        "g.txt.gz": gzip.compress(b"Cut off. " * 9)[:-12],
        "h.txt.xz": b"no file of xz at all",
        "i.gz": gzip.compress(b"\x7fELF\0\0"),
        "j.txt.gz": gzip.compress(b" " * (2 << 20)),
    }
    documents, unread = load(write(tmp_path, files))
    assert documents.select("path", "text").rows() == [
        ("a.txt.gz/a.txt", "Anna met Karl."),
        ("b.md.bz2/b.md", "# The port\nRiga has a port."),
        ("c.JSONL.XZ/c.JSONL", "One."),
        ("d.gz/d", "A text without a suffix."),
        ("e.zip.gz/e.zip/f.txt", "Inside."),
    ]
    assert unread.rows() == [
        (
            "g.txt.gz/g.txt",
            "is damaged: Compressed file ended before the end-of-stream marker was reached",
        ),
        ("h.txt.xz/h.txt", "is damaged: Input format not supported by decoder"),
        ("j.txt.gz/j.txt", "unpacks to too many bytes: the rest is not read"),
    ]


def test_an_update_names_the_files_of_an_archive_that_changed(tmp_path: Path) -> None:
    old = {"a.txt": b"Anna.", "b.txt": b"Bert.", "c.txt": b"Carl.", "d.txt": b"Dora."}
    new = {"a.txt": b"Anna.", "b.txt": b"Berta.", "e.txt": b"Carl.", "f.txt": b"Frida."}
    before, after = (
        digest_documents([load(write(tmp_path / str(i), {"x.zip": make_zip(files)}))[0]])
        for i, files in enumerate((old, new))
    )
    changes = compare_documents(before, after)
    assert {kind: changes.names(kind) for kind in CHANGE_KINDS} == {
        "added": ["x.zip/f.txt"],
        "changed": ["x.zip/b.txt"],
        "renamed": ["x.zip/c.txt to x.zip/e.txt"],
        "deleted": ["x.zip/d.txt"],
    }


def test_what_is_skipped_in_a_folder_is_skipped_in_an_archive(tmp_path: Path) -> None:
    content = make_tar(FILES, "w")
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    content = content[: content.rindex(FILES["e.png"]) + 512] + link.tobuf() + b"\0" * 1024
    found = [item for item in read(tmp_path / "x.tar", content) if isinstance(item, ReadFailure)]
    assert [(item.member, item.reason) for item in found if item.is_skipped] == [
        (".hidden/d.txt", "is hidden"),
        ("__MACOSX/a.txt", "is hidden"),
        ("e.png", "is a damaged picture, or no picture"),
        ("link", "is not a regular file"),
    ]


def test_no_name_leaves_the_archive(tmp_path: Path) -> None:
    names = ["../../up.txt", "/etc/root.txt", "C:\\a\\..\\b.txt", "a/./\udce9\n.txt", "x" * 300]
    found = read(tmp_path / "x.tar", make_tar(dict.fromkeys(names, b"Text."), "w"))
    assert [item.member for item in found] == [
        *("up.txt", "etc/root.txt", "C:/a/b.txt", "a/\ufffd\n.txt", "x" * 300),
    ]
    assert all(isinstance(item, Document) for item in found)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.tar"]


def test_archives_in_archives_are_read_down_to_a_depth(tmp_path: Path) -> None:
    content, name = b"Deep text.", "a.txt"
    for depth in range(6):
        content, name = make_zip({name: content}), f"{depth}.zip"
        (item,) = read(tmp_path / "x.zip", content)
        assert isinstance(item, Document) == (depth < readers.MAX_DEPTH), depth
    assert item == ReadFailure(
        "is a .zip file more than 4 files deep", member="4.zip/3.zip/2.zip/1.zip/0.zip"
    )


def test_a_bomb_ends_at_a_multiple_of_its_size(tmp_path: Path) -> None:
    zeros = bytes(101 << 20)
    inner = make_zip({"big.bin": zeros[: 60 << 20]})
    cases = {
        "a.zip": make_zip({"a.txt": b"One.", "b.bin": zeros, "c.txt": b"Three."}),
        "nested.zip": make_zip({f"{i}.zip": inner for i in range(3)}),
        "a.tgz": make_tar({"a.txt": b"One.", "b.bin": zeros, "c.txt": b"Three."}),
    }
    for name, content in cases.items():
        assert len(content) < 1 << 20
        *_, last = read(tmp_path / name, content)
        assert isinstance(last, ReadFailure)
        assert last.reason == "unpacks to too many bytes: the rest is not read"


def test_a_name_that_takes_all_memory_is_refused(tmp_path: Path) -> None:
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 1 << 33
    content = gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + b"a" * (4 << 20))
    assert reasons(tmp_path / "x.tgz", content) == [
        "is a damaged or incomplete tar archive: a name has 8,589,934,592 bytes"
    ]


def test_a_damaged_file_costs_itself_and_a_cut_archive_what_follows(tmp_path: Path) -> None:
    files = {"a.txt": b"One. " * 99, "b.txt": b"Two. " * 99, "c.txt": b"Three. " * 99}
    content = bytearray(make_zip(files))
    content[content.index(b"b.txt") + 8] ^= 0xFF
    found = read(tmp_path / "x.zip", bytes(content))
    assert [type(item) for item in found] == [Document, ReadFailure, Document]
    assert isinstance(found[1], ReadFailure)
    assert found[1].reason.startswith("is damaged: ")
    assert reasons(tmp_path / "x.zip", bytes(content[:200])) == [
        "is a damaged or incomplete ZIP archive: File is not a zip file"
    ]
    cut = make_tar(files, "w")[:1600]
    found = read(tmp_path / "x.tar", cut)
    assert [type(item) for item in found] == [Document, ReadFailure, ReadFailure]
    locked = bytearray(make_zip({"a.txt": b"One."}))
    locked[locked.index(b"PK\1\2") + 8] |= 1
    assert reasons(tmp_path / "x.zip", bytes(locked)) == ["needs a password"]


def test_headers_that_would_take_memory_or_raise_the_limits_end_an_archive(tmp_path: Path) -> None:
    with tarfile.open(fileobj=(stream := io.BytesIO()), mode="w") as archive:
        header = tarfile.TarInfo("a.txt")
        header.pax_headers = {"GNU.sparse.size": "-1000000000000"}
        archive.addfile(header)
    assert reasons(tmp_path / "x.tar", stream.getvalue()) == [
        "is a damaged or incomplete tar archive: a size is negative"
    ]
    sparse = tarfile.TarInfo("a.txt")
    sparse.type = tarfile.GNUTYPE_SPARSE
    assert reasons(tmp_path / "x.tar", sparse.tobuf(tarfile.GNU_FORMAT) + b"\0" * 1024) == [
        "is a damaged or incomplete tar archive: it holds a sparse file"
    ]


def test_a_long_name_keeps_its_suffixes_inside_of_an_archive(tmp_path: Path) -> None:
    long = "n" * 70
    files = {
        f"{long}.csv.gz": gzip.compress(b"text\nAnna.\n"),
        f"{long}.tar.gz": make_tar({"a.txt": b"Bert."}),
    }
    documents, unread = load(write(tmp_path, {"a.zip": make_zip(files)}))
    assert documents.select("path", "text").rows() == [
        (f"a.zip/{long}.csv.gz/{long}.csv", "Anna."),
        (f"a.zip/{long}.tar.gz/a.txt", "Bert."),
    ]
    assert unread.is_empty()


def test_a_damaged_archive_without_its_suffix_is_skipped(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("META-INF/manifest.xml", "text " * 99)
    content = bytearray(stream.getvalue())
    at = content.index(b"manifest.xml") + len("manifest.xml") + 9
    content[at : at + 9] = bytes(byte ^ 255 for byte in content[at : at + 9])
    (tmp_path / "a.jar").write_bytes(content)
    assert find_type(tmp_path / "a.jar").noun == "a damaged ZIP archive"

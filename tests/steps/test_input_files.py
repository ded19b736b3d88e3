"""The files of the input folder that are read, and those that cannot be."""

import fnmatch
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path

import polars as pl
import pytest

from graphrag_index.errors import ExitCode, InputError
from graphrag_index.readers.input_files import find_files
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_index.step import Silent
from graphrag_index.steps.load_documents import fingerprint_input, load_documents
from graphrag_index.storage.skipped_files import SkippedFile, describe_skipped
from graphrag_index.storage.versions import Version, move_pointer
from tests.fixtures.cases import cases
from tests.fixtures.read_documents import load, write


def names(root: Path, **values: object) -> list[str]:
    return [file.name for file in find_files(LoadDocuments.model_validate(values), root)]


def failure(root: Path, **values: object) -> str:
    with pytest.raises(InputError) as caught:
        load(root, **values)
    assert caught.value.exit_code == ExitCode.WRONG_USE
    return str(caught.value)


class TestFindingFiles:
    def test_files_are_in_the_order_of_their_names_by_code_point(self, tmp_path: Path) -> None:
        listed = ["Z.txt", "a b.txt", "a-b/c.txt", "a.txt", "a/b.txt", "é.txt", "東.txt"]
        write(tmp_path, dict.fromkeys(reversed(listed), "x"))
        assert names(tmp_path) == listed

    def test_text_is_read_whatever_its_suffix_and_all_else_is_named(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            dict.fromkeys(
                [
                    *("A.TXT", ".gitkeep", ".hidden/a.txt", ".hidden/n/b.txt", "sub/.b.txt"),
                    *("~$a.docx", "x.gif", "README", "a.rst", "drafts/a.txt", "drafts/n/b.txt"),
                ],
                "x",
            )
            | {"a.bin": b"\0\1", "b.xyz": b"\x1f\x8b\x08\0", "c.jar": b"PK\3\4", "e.log": ""},
        )
        skipped: list[SkippedFile] = []
        settings = LoadDocuments(exclude=["drafts"])
        found = find_files(settings, tmp_path, skipped=skipped)
        assert [file.name for file in found] == ["A.TXT", "README", "a.rst"]
        assert list(map(astuple, skipped)) == [
            (".gitkeep", "hidden", "is hidden", 1),
            (".hidden", "hidden", "is hidden", 2),
            ("a.bin", ".bin", "is application/octet-stream by its suffix", 1),
            ("b.xyz", ".xyz", "is binary data", 1),
            ("c.jar", ".jar", "is a damaged ZIP archive", 1),
            ("drafts", "excluded", "matches load_documents.exclude", 2),
            ("e.log", ".log", "is without text", 1),
            ("sub/.b.txt", "hidden", "is hidden", 1),
            ("x.gif", ".gif", "is image/gif by its suffix", 1),
            ("~$a.docx", "hidden", "is hidden", 1),
        ]
        assert describe_skipped(skipped) == (
            "12 files skipped: hidden 5, excluded 2, .bin 1, .gif 1, .jar 1, .log 1, .xyz 1."
        )
        many = [SkippedFile("", f".{n}", "") for n in range(12)]
        assert describe_skipped(many).endswith(", .7 1, others 2.")
        assert describe_skipped([]) == ""

    def test_the_files_of_the_project_in_its_own_folder_are_no_documents(
        self, tmp_path: Path
    ) -> None:
        files = ["a.txt", "settings.yaml", "prompts/a.txt", "sub/settings.yaml", "workflows/b.yaml"]
        write(tmp_path, dict.fromkeys(files, "x"))
        assert names(tmp_path / "input", folder=".") == ["a.txt", "sub/settings.yaml"]

    def test_indexes_are_passed_over_finished_or_not(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            dict.fromkeys(
                [
                    *("a.txt", "output/stats.json", "output/versions/1/steps.json"),
                    *("stopped/.lock", "stopped/versions/1/steps.json"),
                    "stopped/versions/1/loaded_documents-0123456789ab.parquet",
                ],
                "x",
            ),
        )
        version = Version(number=1, workflow="standard", program="0.1", steps=(), settings={})
        move_pointer(tmp_path / "input" / "output", version)
        assert names(tmp_path) == ["a.txt"]

    def test_files_of_ones_own_may_be_called_as_those_of_an_index(self, tmp_path: Path) -> None:
        files = [
            *("book/index.json", "book/part.txt", "book/versions/1/a.parquet"),
            *("other/.lock", "other/versions/2/steps.json", "other/versions/notes.txt"),
        ]
        write(tmp_path, dict.fromkeys(files, '{"version": 1, "workflow": "x"}'))
        assert names(tmp_path) == [name for name in files if name != "other/.lock"]

    def test_the_input_folder_itself_is_never_taken_for_an_index(self, tmp_path: Path) -> None:
        left_by_a_run = "versions/1/loaded_documents-0123456789ab.parquet"
        write(tmp_path, dict.fromkeys(["a.txt", ".lock", left_by_a_run], "x"))
        assert names(tmp_path) == ["a.txt", left_by_a_run]

    @cases("include, exclude, expected")
    def test_patterns_choose_the_files(
        self, tmp_path: Path, include: list[str], exclude: list[str], expected: list[str]
    ) -> None:
        write(tmp_path, dict.fromkeys(["a.md", "a.txt", "n/a.md", "n/o/a.md", "n/o/b.txt"], "x"))
        if expected:
            assert names(tmp_path, include=include, exclude=exclude) == expected
        else:
            assert "matches load_documents.include" in failure(tmp_path, include=include)

    @pytest.mark.parametrize("pattern", ["[ab].txt", "[]].txt", "[!]].txt", "[c-a].txt", "[a.txt"])
    def test_brackets_mean_what_they_do_in_other_programs(
        self, tmp_path: Path, pattern: str
    ) -> None:
        files = ["[a.txt", "].txt", "a.txt", "b.txt", "c.txt", "^.txt"]
        write(tmp_path, dict.fromkeys([*files, "README.md"], "x"))
        found = names(tmp_path, include=[pattern, "*.md"])
        assert found == sorted(["README.md", *fnmatch.filter(files, pattern)])

    def test_the_folder_may_lie_anywhere(self, tmp_path: Path) -> None:
        write(tmp_path / "elsewhere", {"a.txt": "x"})
        assert names(tmp_path / "root", folder=str(tmp_path / "elsewhere" / "input")) == ["a.txt"]
        assert names(tmp_path, folder="elsewhere/input") == ["a.txt"]

    def test_links_are_followed_but_not_in_circles_nor_out_of_the_folder(
        self, tmp_path: Path
    ) -> None:
        write(tmp_path, {"a/x.txt": "x"})
        write(tmp_path / "other", {"y.txt": "y"})
        folder = tmp_path / "input"
        try:
            (folder / "a" / "up").symlink_to(folder, target_is_directory=True)
            (folder / "b").symlink_to(tmp_path / "other" / "input", target_is_directory=True)
            (folder / "c").symlink_to(folder / "a", target_is_directory=True)
            (folder / "d.txt").symlink_to(folder / "b" / "y.txt")
            (folder / "e.txt").symlink_to(Path("a") / "x.txt")
            (folder / "gone.txt").symlink_to(tmp_path / "nowhere.txt")
            (folder / "self.txt").symlink_to(folder / "self.txt")
        except OSError:
            pytest.skip("links are not allowed here")
        documents, unread = load(tmp_path)
        assert documents["path"].to_list() == ["a/x.txt", "c/x.txt", "e.txt"]
        skipped: list[SkippedFile] = []
        find_files(LoadDocuments(), tmp_path, skipped=skipped)
        assert [(one.path, one.kind, one.n_files) for one in skipped] == [
            ("a/up", "circular links", 1),
            ("b", "outside links", 1),
            ("c/up", "circular links", 1),
            ("d.txt", "outside links", 1),
        ]
        documents, unread = load(tmp_path, follow_links_outside=True)
        assert documents["path"].to_list() == ["a/x.txt", "b/y.txt", "c/x.txt", "d.txt", "e.txt"]
        assert unread["path"].to_list() == ["gone.txt", "self.txt"]
        assert unread["reason"].str.starts_with("cannot be read: ").all()

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes in folders")
    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.txt": "x"})
        os.mkfifo(tmp_path / "input" / "pipe.txt")
        os.mkfifo(tmp_path / "input" / "pipe")
        skipped: list[SkippedFile] = []
        find_files(LoadDocuments(), tmp_path, skipped=skipped)
        assert list(map(astuple, skipped)) == [
            ("pipe", "special files", "is not a regular file", 1)
        ]
        assert load(tmp_path)[1].rows() == [("pipe.txt", "is not a regular file")]

    def test_a_name_that_is_not_unicode_is_shown_as_well_as_can_be(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.txt": "x"})
        try:
            Path(os.fsdecode(os.fsencode(tmp_path / "input") + b"/M\xfcnchen.txt")).write_bytes(
                b"Text."
            )
        except OSError:
            pytest.skip("the file system takes Unicode names only")
        documents, _ = load(tmp_path)
        assert documents.select("path", "title", "text").row(0) == (
            *("M\ufffdnchen.txt", "M\ufffdnchen.txt", "Text."),
        )
        assert fingerprint_input(LoadDocuments(), tmp_path)


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """Give a folder to work in as a user whom permissions bind, which they do not root."""
    if not hasattr(os, "geteuid"):
        pytest.skip("the system has other permissions")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if was_root:
            os.seteuid(0)
        for locked in folder.rglob("locked*"):
            locked.chmod(0o700)
        shutil.rmtree(folder)


def test_what_may_not_be_read_is_named_and_the_rest_goes_on(unprivileged: Path) -> None:
    write(unprivileged, {"a.txt": "x", "locked/b.txt": "y", "locked.txt": "z"})
    before = fingerprint_input(LoadDocuments(), unprivileged)
    (unprivileged / "input" / "locked").chmod(0)
    (unprivileged / "input" / "locked.txt").chmod(0)
    documents, unread = load(unprivileged)
    assert documents["path"].to_list() == ["a.txt"]
    assert unread.rows() == [
        ("locked", "cannot be listed: Permission denied"),
        ("locked.txt", "cannot be read: Permission denied"),
    ]
    assert fingerprint_input(LoadDocuments(), unprivileged) != before


def test_files_that_change_or_vanish_while_others_are_read_are_named(tmp_path: Path) -> None:
    line = '{"text": "' + "word " * 200_000 + '"}\n'
    write(tmp_path, {"a.jsonl": line * 9, "b.txt": "x", "c/d.txt": "y", "e.txt": "z"})
    batches = load_documents(settings=LoadDocuments(), root=tmp_path, progress=Silent())
    frames = [next(batches)]
    os.truncate(tmp_path / "input" / "a.jsonl", 6 * len(line) - 100)
    (tmp_path / "input" / "b.txt").unlink()
    shutil.rmtree(tmp_path / "input" / "c")
    frames += batches
    documents = pl.concat([frame["loaded_documents"] for frame in frames])
    unread = pl.concat([frame["unread_files"] for frame in frames])
    assert documents["path"].to_list() == ["a.jsonl"] * 5 + ["e.txt"]
    assert unread.rows() == [
        ("a.jsonl", "line 6 is not valid JSON: Unterminated string starting at, character 10"),
        ("b.txt", "cannot be read: No such file or directory"),
        ("c/d.txt", "cannot be read: No such file or directory"),
    ]


class TestNothingToRead:
    def test_no_folder(self, tmp_path: Path) -> None:
        assert failure(tmp_path, folder="papers") == (
            f"The input folder {tmp_path / 'papers'} does not exist: put your documents there, "
            "or name their folder in load_documents.folder."
        )
        (tmp_path / "papers").touch()
        assert "papers is a file, not a folder: " in failure(tmp_path, folder="papers")

    def test_an_empty_folder(self, tmp_path: Path) -> None:
        write(tmp_path, {".gitkeep": ""})
        assert failure(tmp_path).startswith(f"The input folder {tmp_path / 'input'} is empty: put")

    def test_no_file_of_a_type_that_is_read(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.gif": "x", "b.mp4": "x", "c/d.gif": "x", "Makefile": b"\0"})
        message = failure(tmp_path)
        assert "has no file of a type that is read (.txt, .md, " in message
        assert message.endswith(", or text): 4 files skipped: .gif 2, .mp4 1, no suffix 1.")

    def test_no_file_that_matches(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.txt": "x"})
        assert failure(tmp_path, include=["*.md"]) == (
            f"No file in the input folder {tmp_path / 'input'} matches load_documents.include "
            "(*.md) and not load_documents.exclude: change the patterns."
        )
        assert failure(tmp_path, exclude=["*"]).startswith("No file in the input folder")

    def test_no_file_that_can_be_read_names_the_first_reason(self, tmp_path: Path) -> None:
        write(tmp_path, {"b.txt": b"\0\0", "a.json": "{"})
        message = failure(tmp_path)
        assert message.startswith(f"None of the 2 files in {tmp_path / 'input'} could be read; ")
        assert "The first: a.json: is not valid JSON in or after record 1" in message
        (tmp_path / "input" / "a.json").unlink()
        assert failure(tmp_path) == (
            f"The only file in {tmp_path / 'input'} could not be read; "
            "repair or replace it: b.txt: looks binary; if it is text, set load_documents.encoding."
        )

    def test_the_fingerprint_fails_alike(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="does not exist"):
            fingerprint_input(LoadDocuments(), tmp_path)

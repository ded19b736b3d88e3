"""The step: which files it finds, what ids it gives, what it says when there is nothing to read."""

import fnmatch
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_index.errors import ExitCode, InputError, SettingsError
from graphrag_index.readers.input_files import check_output_folder, find_files
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.step import Silent
from graphrag_index.steps.load_documents import BATCH_CHARACTERS, fingerprint_input, load_documents
from graphrag_index.storage.versions import Version, move_pointer
from tests.fixtures.examples import examples


class Counter(Silent):
    def __init__(self) -> None:
        self.total: int | None = None
        self.done = 0

    def start(self, total: int | None, unit: str) -> None:
        self.total = total

    def advance(self, n: int = 1) -> None:
        self.done += n


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / "input" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return root


def load(root: Path, **values: object) -> tuple[pl.DataFrame, pl.DataFrame]:
    section = LoadDocuments.model_validate(values)
    batches = list(load_documents(settings=section, root=root, progress=Silent()))
    documents, unread = (
        pl.concat([TABLES[name].empty(), *(batch[name] for batch in batches if name in batch)])
        for name in ("loaded_documents", "unread_files")
    )
    return documents, unread


def names(root: Path, **values: object) -> list[str]:
    return [file.name for file in find_files(LoadDocuments.model_validate(values), root)]


def failure(root: Path, **values: object) -> str:
    with pytest.raises(InputError) as caught:
        load(root, **values)
    assert caught.value.exit_code == ExitCode.WRONG_USE
    return str(caught.value)


def test_a_folder_becomes_two_tables(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "b.txt": "Plain.",
            "a/x.md": "---\ndate: 1914-08-01\ntag: ice\n---\n# Ship\n",
            "a.csv": "title,text\nOne,First\nTwo,\n",
            "c.txt": " ",
        },
    )
    documents, unread = load(tmp_path, metadata_columns=["tag"])
    assert_frame_equal(
        documents,
        pl.DataFrame(
            [
                (
                    content_id("document", "First", "0"),
                    *("One", "First", "", '{"title": "One", "text": "First"}', "a.csv", "{}"),
                ),
                (
                    content_id("document", "# Ship\n", "0"),
                    *("Ship", "# Ship\n", "1914-08-01", None, "a/x.md", '{"tag": "ice"}'),
                ),
                (
                    content_id("document", "Plain.", "0"),
                    *("b.txt", "Plain.", "", None, "b.txt", "{}"),
                ),
            ],
            schema=TABLES["loaded_documents"].schema,
            orient="row",
        ),
    )
    assert unread.rows() == [
        ("a.csv", "record 2: field 'text' has no text"),
        ("c.txt", "has no text"),
    ]


class TestIds:
    def test_equal_texts_stay_two_documents(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.txt": "Same.", "b.txt": "Same.", "c.jsonl": '{"text": "Same."}\n' * 2})
        documents, _ = load(tmp_path)
        assert documents["id"].to_list() == [
            content_id("document", "Same.", str(k)) for k in range(4)
        ]

    def test_a_renamed_file_keeps_its_id_wherever_the_folder_lies(self, tmp_path: Path) -> None:
        write(tmp_path / "one", {"a.txt": "A.", "b.txt": "B."})
        write(tmp_path / "two", {"a.txt": "A.", "sub/z.txt": "B."})
        first, second = load(tmp_path / "one")[0], load(tmp_path / "two")[0]
        assert first["id"].to_list() == second["id"].to_list()

    def test_a_record_keeps_the_id_that_it_states(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            {
                "a.csv": "id,text\nx,One\nx,Two\ny,One\n",
                "b.jsonl": '{"id": "y", "text": "Three"}\n{"id": 7, "text": "Four"}\n',
                "c.txt": "One",
            },
        )
        documents, unread = load(tmp_path, id_column="id")
        assert documents["id"].to_list() == ["x", "y", "7", content_id("document", "One", "0")]
        assert unread.rows() == [
            ("a.csv", "record 2 repeats the id 'x' of an earlier record"),
            ("b.jsonl", "line 1 repeats the id 'y' of an earlier record"),
        ]

    @examples(25)
    @given(st.lists(st.sampled_from(["A", "B", "C", "D"]), min_size=1, max_size=6))
    def test_ids_are_distinct_and_the_same_for_the_same_texts(self, texts: list[str]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), {f"{i}.txt": text for i, text in enumerate(texts)})
            ids = load(Path(folder))[0]["id"].to_list()
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), {f"{9 - i}.txt": text for i, text in enumerate(texts)})
            backwards = load(Path(folder))[0]["id"].to_list()
        assert len(set(ids)) == len(texts)
        assert set(ids) == set(backwards)


class TestFindingFiles:
    def test_files_are_in_the_order_of_their_names_by_code_point(self, tmp_path: Path) -> None:
        listed = ["Z.txt", "a b.txt", "a-b/c.txt", "a.txt", "a/b.txt", "é.txt", "東.txt"]
        write(tmp_path, dict.fromkeys(reversed(listed), "x"))
        assert names(tmp_path) == listed

    def test_other_types_and_hidden_files_are_passed_over(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            dict.fromkeys(
                [
                    *("A.TXT", ".gitkeep", ".hidden/a.txt", "sub/.b.txt", "~$a.docx", "x.png"),
                    "README",
                ],
                "x",
            ),
        )
        assert names(tmp_path) == ["A.TXT"]

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

    @pytest.mark.parametrize(
        ("include", "exclude", "expected"),
        [
            (["**/*"], [], ["a.md", "a.txt", "n/a.md", "n/o/a.md", "n/o/b.txt"]),
            (["*.md"], [], ["a.md"]),
            (["**/*.md"], [], ["a.md", "n/a.md", "n/o/a.md"]),
            (["n/**"], [], ["n/a.md", "n/o/a.md", "n/o/b.txt"]),
            (["n/"], [], ["n/a.md", "n/o/a.md", "n/o/b.txt"]),
            (["./n/*/?.txt", "*.txt"], [], ["a.txt", "n/o/b.txt"]),
            (["n\\*.md"], [], ["n/a.md"]),
            (["**/*"], ["n/o"], ["a.md", "a.txt", "n/a.md"]),
            (["**/*"], ["**/o/"], ["a.md", "a.txt", "n/a.md"]),
            (["**/*"], ["**/a.*"], ["n/o/b.txt"]),
            (["**/[bc].*"], [], ["n/o/b.txt"]),
            (["**/[a-c].md"], [], ["a.md", "n/a.md", "n/o/a.md"]),
            (["**/[!b].txt"], [], ["a.txt"]),
            (["n[!x]a.md", "n[+-9]a.md"], ["[z-a].md"], []),
        ],
    )
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

    def test_a_type_that_is_not_read_is_an_error_where_a_pattern_names_it(
        self, tmp_path: Path
    ) -> None:
        write(tmp_path, {"a.txt": "x", "b.rtf": "x", "c.png": "x"})
        _, unread = load(tmp_path, include=["**/*.txt", "**/*.rtf", "c.*"])
        assert unread["path"].to_list() == ["b.rtf"]
        assert unread["reason"][0].startswith(
            "is of a type that is not read; the types are .txt, .md"
        )

    def test_the_folder_may_lie_anywhere(self, tmp_path: Path) -> None:
        write(tmp_path / "elsewhere", {"a.txt": "x"})
        assert names(tmp_path / "root", folder=str(tmp_path / "elsewhere" / "input")) == ["a.txt"]
        assert names(tmp_path, folder="elsewhere/input") == ["a.txt"]

    def test_links_are_followed_but_not_in_circles(self, tmp_path: Path) -> None:
        write(tmp_path, {"a/x.txt": "x"})
        write(tmp_path / "other", {"y.txt": "y"})
        folder = tmp_path / "input"
        try:
            (folder / "a" / "up").symlink_to(folder, target_is_directory=True)
            (folder / "b").symlink_to(tmp_path / "other" / "input", target_is_directory=True)
            (folder / "gone.txt").symlink_to(tmp_path / "nowhere.txt")
            (folder / "self.txt").symlink_to(folder / "self.txt")
        except OSError:
            pytest.skip("links are not allowed here")
        documents, unread = load(tmp_path)
        assert documents["path"].to_list() == ["a/x.txt", "b/y.txt"]
        assert unread["path"].to_list() == ["gone.txt", "self.txt"]
        assert unread["reason"].str.starts_with("cannot be read: ").all()

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes in folders")
    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.txt": "x"})
        os.mkfifo(tmp_path / "input" / "pipe.txt")
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
        write(tmp_path, {"a.png": "x", "b.zip": "x", "c/d.png": "x", "Makefile": "x"})
        message = failure(tmp_path)
        assert "has no file of a type that is read (.txt, .md, " in message
        assert message.endswith("), only .png, .zip, files without a suffix.")

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


class TestOutput:
    @pytest.mark.parametrize(
        ("folder", "output", "said"),
        [
            ("input", "input", "is"),
            ("input", "./other/../input/", "is"),
            ("input", ".", "holds"),
            ("input", "link", "is"),
            ("link", "input", "is"),
            (".", ".", "is"),
            ("a/b/c", "a", "holds"),
        ],
    )
    def test_it_is_not_where_the_documents_lie(
        self, tmp_path: Path, folder: str, output: str, said: str
    ) -> None:
        write(tmp_path, {"a.txt": "x"})
        (tmp_path / "link").symlink_to(tmp_path / "input", target_is_directory=True)
        with pytest.raises(SettingsError) as caught:
            check_output_folder(LoadDocuments(folder=folder), tmp_path, tmp_path / output)
        place = (tmp_path / output).resolve()
        assert str(caught.value) == (
            f"The output {place} {said} the input folder: name another with `--set output=FOLDER`."
        )

    @pytest.mark.parametrize("output", ["output", "input/output", "inputs", "in"])
    def test_it_may_lie_below_them_or_elsewhere(self, tmp_path: Path, output: str) -> None:
        for _ in range(2):
            check_output_folder(LoadDocuments(), tmp_path, tmp_path / output)
            (tmp_path / output).mkdir(parents=True, exist_ok=True)


class TestColumns:
    """What is said of the columns that the settings name and no record has."""

    FILES: ClassVar[dict[str, str | bytes]] = {
        "a.csv": "id,title,text\n1,One,x\n",
        "b.csv": "id,title,text\n2,Two,y\n",
        "c.md": "---\nauthor: Cherry\n---\nz",
        "d.txt": "z",
    }

    def test_each_setting_is_named_once_with_the_fields_that_there_are(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        write(tmp_path, self.FILES)
        load(
            tmp_path,
            title_column="titel",
            date_column="day",
            metadata_columns=["autor", "author", "place"],
        )
        there = "their fields are id, title, text, author."
        assert caplog.messages == [
            f"load_documents.title_column: no record and no front matter has 'titel'; {there}",
            f"load_documents.date_column: no record and no front matter has 'day'; {there}",
            "load_documents.metadata_columns: no record and no front matter has "
            f"'autor' or 'place'; {there}",
        ]

    def test_nothing_is_said_of_defaults_and_of_what_some_record_has(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        write(tmp_path, {**self.FILES, "e.jsonl": '{"text": "x", "m": {"n": null}}'})
        load(tmp_path)
        load(tmp_path, title_column=None, metadata_columns=["author", "m.n"])
        assert caplog.messages == []

    def test_without_records_that_is_said(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        write(tmp_path, {"d.txt": "z"})
        load(tmp_path, metadata_columns=["author"])
        assert caplog.messages == [
            "load_documents.metadata_columns: no record and no front matter has 'author'; "
            "there is no field."
        ]


class TestFingerprint:
    def test_it_follows_names_and_content_of_what_is_read_and_nothing_else(
        self, tmp_path: Path
    ) -> None:
        files: dict[str, str | bytes] = {"a.txt": "x", "b.txt": "y"}
        first = fingerprint_input(LoadDocuments(), write(tmp_path / "1", files))
        others: dict[str, str | bytes] = {"c.png": "z", ".d.txt": "z"}
        assert fingerprint_input(LoadDocuments(), write(tmp_path / "2", files | others)) == first
        for changed in ({"a.txt": "x", "b.txt": "z"}, {"a.txt": "x", "c.txt": "y"}, {"a.txt": "x"}):
            root = write(tmp_path / str(changed), dict(changed))
            assert fingerprint_input(LoadDocuments(), root) != first

    def test_the_step_has_it(self) -> None:
        assert load_documents.fingerprint is fingerprint_input


class TestBatches:
    def test_a_long_file_comes_in_batches_and_progress_ends_at_its_size(
        self, tmp_path: Path
    ) -> None:
        text = "word " * 20_000
        root = write(tmp_path, {"a.jsonl": f'{{"text": "{text}"}}\n' * 200, "b.txt": "x"})
        progress = Counter()
        section = LoadDocuments()
        frames = [
            batch["loaded_documents"]
            for batch in load_documents(settings=section, root=root, progress=progress)
        ]
        sizes = [
            sum(map(len, (*frame["text"], *frame["raw_data"].drop_nulls()))) for frame in frames
        ]
        assert len(sizes) == 6
        assert sum(sizes) > 200 * 2 * len(text)
        assert max(sizes) < BATCH_CHARACTERS + 3 * len(text)
        assert progress.done == progress.total == (root / "input" / "a.jsonl").stat().st_size + 1

    def test_many_unread_records_come_in_batches_too(self, tmp_path: Path) -> None:
        root = write(tmp_path, {"a.jsonl": '{"text": "x"}\n' + "[1]\n" * 300_000})
        batches = list(load_documents(settings=LoadDocuments(), root=root, progress=Silent()))
        assert len(batches) > 1
        assert sum(batch["unread_files"].height for batch in batches) == 300_000

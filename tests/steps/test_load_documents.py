"""The step: which files it finds, what ids it gives, what it says when there is nothing to read."""

import tempfile
from pathlib import Path
from typing import ClassVar

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_index.errors import SettingsError
from graphrag_index.readers.input_files import check_output_folder
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.step import Silent
from graphrag_index.steps.load_documents import BATCH_CHARACTERS, fingerprint_input, load_documents
from tests.fixtures.examples import examples
from tests.fixtures.pdf import make_pdf
from tests.fixtures.read_documents import load, load_tables, write


class Counter(Silent):
    def __init__(self) -> None:
        self.total: int | None = None
        self.done = 0

    def start(self, total: int | None, unit: str) -> None:
        self.total = total

    def advance(self, n: int = 1) -> None:
        self.done += n


def test_a_pdf_has_its_pages_with_the_boxes_of_words(tmp_path: Path) -> None:
    pages = [[(72, 700, "One two.")], [], [(100, 250, "three")]]
    write(tmp_path, {"a.txt": "Plain.", "b.pdf": make_pdf(pages, size=10)})
    tables = load_tables(tmp_path)
    boxes = [
        [(0, 3, 720, 825, 189, 117), (4, 8, 937, 825, 183, 117)],
        [],
        [(10, 15, 1000, 5325, 228, 117)],
    ]
    spans = [(1, 0, 10), (2, 10, 10), (3, 10, 15)]
    document = tables["loaded_documents"]["id"][1]
    names = ("start_char", "end_char", "left", "top", "width", "height")
    wanted = [
        (document, "page", n, str(n), "", start, end, 612.0, 792.0, records, "")
        for (n, start, end), words in zip(spans, boxes, strict=True)
        for records in [[dict(zip(names, word, strict=True)) for word in words]]
    ]
    assert_frame_equal(
        tables["loaded_pages"],
        pl.DataFrame(wanted, TABLES["loaded_pages"].schema, orient="row"),
    )


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
    def test_it_follows_names_and_content_of_what_is_read_and_names_of_what_is_skipped(
        self, tmp_path: Path
    ) -> None:
        files: dict[str, str | bytes] = {"a.txt": "x", "b.txt": "y"}
        first = fingerprint_input(LoadDocuments(), write(tmp_path / "1", files))
        others: dict[str, str | bytes] = {"c.mp3": b"\0", ".d.txt": "z"}
        more = fingerprint_input(LoadDocuments(), write(tmp_path / "2", files | others))
        assert more != first
        others = {"c.mp3": b"\0\0", ".d.txt": "zz"}
        assert fingerprint_input(LoadDocuments(), write(tmp_path / "2", files | others)) == more
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

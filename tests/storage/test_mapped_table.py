"""Rows of a mapped table are found and read without loading it."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_index.errors import TableError
from graphrag_index.schema.tables import EVIDENCE, STRINGS, TABLES, Table
from graphrag_index.storage import table_writer
from graphrag_index.storage.mapped_table import MappedTable
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.table_writer import TableCheck, can_cast

LINKS = Table(
    "links",
    "one link",
    "number",
    {
        "number": pl.Int32,
        "weight": pl.Float32,
        "sure": pl.Boolean,
        "name": pl.String,
        "others": pl.List(pl.Int32),
    },
    "mapped",
)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let three rows be a batch, so that a few rows are several."""
    monkeypatch.setattr(table_writer, "MAPPED_BATCH", 3)


def links(numbers: list[int]) -> pl.DataFrame:
    numbers = sorted(numbers)
    return pl.DataFrame(
        {
            "number": numbers,
            "weight": [number / 2 for number in numbers],
            "sure": [number % 3 == 0 for number in numbers],
            "name": sorted("aé船😀"[n % 4] * (n % 5) for n in numbers),
            "others": [list(range(n % 4)) for n in numbers],
        },
        schema=LINKS.schema,
    )


def mapped(folder: Path, frame: pl.DataFrame, *cuts: int) -> MappedTable:
    """Write a frame, cut into batches, and open it."""
    store = TableStore(folder)
    with store.writer(1, LINKS, "links") as writer:
        for start, stop in zip((0, *cuts), (*cuts, frame.height), strict=True):
            writer.append(frame[start:stop])
    return store.map("links", writer.stored)


def test_rows_come_in_the_order_that_is_asked_for(tmp_path: Path) -> None:
    frame = links(list(range(10)))
    table = mapped(tmp_path, frame)
    assert len(table) == 10
    assert_frame_equal(table.rows([9, 0, 4, 4, 3]), frame[[9, 0, 4, 4, 3]])
    assert_frame_equal(table.rows([7], "name", "number"), frame[[7]].select("name", "number"))
    assert_frame_equal(table.rows([]), frame.clear())


def test_lists_of_one_length_are_read_as_a_matrix(tmp_path: Path) -> None:
    frame = links(list(range(10)))
    lists = [[n, n + 1] for n in range(10)]
    table = mapped(tmp_path, frame.with_columns(pl.Series("others", lists, pl.List(pl.Int32))))
    assert table.matrix("others", [9, 0, 4, 4]).tolist() == [[9, 10], [0, 1], [4, 5], [4, 5]]
    assert len(table.matrix("others", [])) == 0


@given(rows=st.lists(st.integers(0, 7), max_size=12))
def test_lists_of_many_rows_are_read_at_once(rows: list[int]) -> None:
    with TemporaryDirectory() as folder:
        table = mapped(Path(folder), links([5, 3, 1, 8, 2, 2, 9, 7]))
        found, lengths = table.lists("others", np.array(rows, np.int64))
        expected = [table.numbers("others", row).tolist() for row in rows]
        assert found.tolist() == [number for numbers in expected for number in numbers]
        assert lengths.tolist() == [len(numbers) for numbers in expected]


def test_a_row_that_is_not_there_is_refused(tmp_path: Path) -> None:
    table = mapped(tmp_path, links([1, 2]))
    for numbers in ([2], [-1], [0, 5]):
        with pytest.raises(IndexError, match="there are 2 rows"):
            table.rows(numbers)


def test_a_file_is_mapped_and_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "numbers.arrow"
    pl.DataFrame({"number": range(100_000)}).write_ipc(path)
    before = pa.total_allocated_bytes()
    table = MappedTable.open(path)
    assert pa.total_allocated_bytes() - before < path.stat().st_size / 10
    assert table.slice("number", 70_000, 70_002).tolist() == [70_000, 70_001]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs the threads of Linux")
def test_no_thread_of_arrow_holds_the_file_when_the_process_ends(tmp_path: Path) -> None:
    path = tmp_path / "rows.arrow"
    pl.DataFrame({"number": range(3)}).write_ipc(path)
    program = """
import os, sys
from pathlib import Path
import pyarrow
from graphrag_index.storage.mapped_table import MappedTable
before = set(os.listdir("/proc/self/task"))
table = MappedTable.open(Path(sys.argv[1]))
print(len(table), len(set(os.listdir("/proc/self/task")) - before))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["3", "0"]


def test_a_file_that_was_cut_off_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "links.arrow"
    links([1, 2, 3, 4, 5]).write_ipc(path)
    content = path.read_bytes()
    for size in range(0, len(content), 40):
        path.write_bytes(content[:size])
        with pytest.raises(TableError, match="cannot be read"):
            MappedTable.open(path)


def test_an_empty_table_has_no_rows_and_is_searched(tmp_path: Path) -> None:
    table = mapped(tmp_path, LINKS.empty())
    assert len(table) == 0
    assert table.rows([]).schema == LINKS.schema
    first, stop = table.bounds("number", np.array([3]))
    assert (first.tolist(), stop.tolist()) == ([0], [0])
    assert list(table.find_rows("number", 3)) == list(table.find_rows("number", 10**12)) == []
    assert table.find_row("name", "a") == 0
    assert table.slice("number", 0, 0).tolist() == table.flags("sure", 0, 0).tolist() == []


@given(st.lists(st.integers(0, 12), max_size=12), st.data())
def test_every_row_is_found_however_the_file_was_written(
    numbers: list[int], data: st.DataObject
) -> None:
    frame = links(numbers)
    rows = st.integers(0, frame.height)
    cuts = sorted(data.draw(st.lists(rows, max_size=3)))
    first, stop = sorted((data.draw(rows), data.draw(rows)))
    text = data.draw(st.sampled_from(["", "a", "aa", "b", "é", "船船", "😀", "😀😀😀😀😀"]))
    with TemporaryDirectory() as folder:
        table = mapped(Path(folder), frame, *cuts)
        assert_frame_equal(table.rows(range(frame.height)), frame)
        assert table.slice("number", first, stop).tolist() == frame["number"][first:stop].to_list()
        assert table.slice("weight", first, stop).tolist() == frame["weight"][first:stop].to_list()
        assert table.flags("sure", first, stop).tolist() == frame["sure"][first:stop].to_list()
        assert table.texts("name", first, stop) == frame["name"][first:stop].to_list()
        for row, others in enumerate(frame["others"].to_list()):
            assert table.numbers("others", row).tolist() == others
            assert table.numbers("others", row, 2).tolist() == others[:2]
        wanted = np.arange(-1, 14)
        for found, side in zip(table.bounds("number", wanted), ("left", "right"), strict=True):
            expected = np.searchsorted(frame["number"].to_numpy(), wanted, side)
            assert found.tolist() == expected.tolist()
        for value in range(-1, 14):
            rows = [row for row, number in enumerate(frame["number"]) if number == value]
            assert list(table.find_rows("number", value)) == rows
        assert table.find_row("name", text) == sum(name < text for name in frame["name"])
        expected_place = max(first, sum(name < text for name in frame["name"]))
        assert table.find_row("name", text, first) == expected_place


@given(st.lists(st.integers(0, 12), max_size=12), st.data())
def test_the_file_is_the_same_however_its_rows_came(
    numbers: list[int], data: st.DataObject
) -> None:
    frame = links(numbers)
    cuts = sorted(data.draw(st.lists(st.integers(0, frame.height), max_size=3)))
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        mapped(Path(one), frame)
        mapped(Path(two), frame, *cuts)
        first, second = (Path(f) / "versions" / "1" / "links.arrow" for f in (one, two))
        assert first.read_bytes() == second.read_bytes()


def test_what_is_no_arrow_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "links.arrow").write_bytes(b"no table")
    with pytest.raises(TableError, match=r"cannot be read: run `graphrag-index run`"):
        MappedTable.open(tmp_path / "links.arrow")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pl.String(), pl.String()),
        (pl.Null(), pl.String()),
        (pl.UInt32(), pl.Int64()),
        (pl.Int64(), pl.Int32()),  # if each value fits
        (pl.Int64(), pl.Float64()),
        (pl.Float32(), pl.Float64()),
        (pl.Categorical(), pl.String()),
        (pl.List(pl.Null), STRINGS),
        (pl.Array(pl.Float32, 3), pl.List(pl.Float32)),
        (
            pl.List(
                pl.Struct({"document_id": pl.String, "start_char": pl.Int32, "end_char": pl.Int32})
            ),
            EVIDENCE,
        ),
    ],
)
def test_types_that_become_another_without_a_change_of_meaning(given: Any, wanted: Any) -> None:
    assert can_cast(given, wanted)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pl.Int64(), pl.String()),
        (pl.String(), pl.Int64()),
        (pl.Float64(), pl.Int64()),
        (pl.Float64(), pl.Float32()),
        (pl.Boolean(), pl.Int64()),
        (pl.Int64(), pl.Boolean()),
        (pl.Date(), pl.String()),
        (pl.String(), STRINGS),
        (STRINGS, pl.String()),
        (pl.List(pl.Int64), STRINGS),
        (pl.List(pl.Struct({"document_id": pl.String})), EVIDENCE),
    ],
)
def test_types_that_do_not(given: Any, wanted: Any) -> None:
    assert not can_cast(given, wanted)


LISTS = Table("lists", "", "", {"names": STRINGS, "places": EVIDENCE}, nullable=())
PLACE = {"document_id": "a", "start_char": 0, "end_char": 1}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(["a"], []), (["a", None], [])], "null inside of the column names (row 2)."),
        ([([], []), (None, [])], "null in the column names (row 2)."),
        (
            [([], [PLACE | {"start_char": None}]), ([], [PLACE])],
            "null inside of the column places (row 1).",
        ),
    ],
)
def test_nulls_inside_of_lists_are_found(rows: list[Any], said: str) -> None:
    check = TableCheck("s", LISTS)
    check.add(pl.DataFrame([([], [PLACE])], LISTS.schema, orient="row"))
    with pytest.raises(TableError) as caught:
        check.add(pl.DataFrame(rows, LISTS.schema, orient="row"))
    assert str(caught.value) == f"Step s wrote lists with {said}"


def test_a_table_that_does_not_say_where_it_has_nulls_may_have_them_anywhere() -> None:
    table = Table("words", "one word", "", {"id": pl.String, "word": pl.String})
    check = TableCheck("s", table)
    check.add(pl.DataFrame({"id": ["a", "b"], "word": [None, None]}))
    check.finish()
    # The same table refuses them as soon as it says that it has none.
    strict = TableCheck("s", replace(table, nullable=()))
    with pytest.raises(TableError, match="null"):
        strict.add(pl.DataFrame({"id": ["a", "b"], "word": [None, None]}))


def test_every_table_of_the_program_says_which_columns_may_be_null() -> None:
    for table in TABLES.values():
        assert table.nullable is not None, table.name
        assert set(table.nullable) <= set(table.columns), table.name

"""Rows split into partitions: nothing lost or reordered, in memory or in a file."""

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.registry import purge_ledger
from graphrag_index.llm.request import Usage
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.storage import partitions
from graphrag_index.storage.memo import (
    add_reply_hashes,
    content_ids,
    read_batches,
    read_stable_batches,
    reuse_rows,
)
from graphrag_index.storage.partitions import Partitions, hash_partitions
from graphrag_index.storage.table_store import Previous, TableStore
from graphrag_index.storage.table_writer import ROW_GROUP_SIZE
from graphrag_index.storage.versions import StepRecord, Version

SCHEMA = {"key": pl.Int64, "text": pl.String, "places": pl.List(pl.Int32)}
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ROWS = st.lists(st.tuples(TEXT, st.lists(TEXT)))
STEP, TABLE = "summarize_descriptions", TABLES["description_summaries"]
KEY = pl.Series(["of b", "of c", "", "of x", "of a", "of b"])


def make_rows(keys: list[int]) -> pl.DataFrame:
    rows = [(key, None if key == 3 else f"text {key}", [1] * key) for key in keys]
    return pl.DataFrame(rows, SCHEMA, orient="row")


@pytest.mark.parametrize("limit", [0, 100, 10**9])
@given(batches=st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=4))
def test_a_partition_has_its_rows_in_the_order_in_which_they_came(
    tmp_path_factory: pytest.TempPathFactory, limit: int, batches: list[list[int]]
) -> None:
    path = tmp_path_factory.mktemp("parts") / "rows"
    path.write_bytes(b"rows of an interrupted run")
    with pytest.MonkeyPatch.context() as patch, Partitions(4, SCHEMA, path) as found:
        patch.setattr(partitions, "MAX_BUFFERED_BYTES", limit)
        for keys in batches:
            found.append(make_rows(keys), make_rows(keys)["key"].to_numpy() % 4)
        for number in range(4):
            expected = [key for keys in batches for key in keys if key % 4 == number]
            assert found.read(number).equals(make_rows(expected))
        numbers = sorted({key % 4 for keys in batches for key in keys})
        assert [number for number, _ in found] == numbers


def test_few_rows_need_no_file_and_the_file_of_many_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "parts" / "rows"
    rows = pl.DataFrame({"n": range(partitions.MAX_BUFFERED_BYTES // 8)})
    numbers = hash_partitions(rows["n"], 3)
    with Partitions(3, rows.schema, path) as found:
        found.append(rows[1:], numbers[1:])
        assert not path.parent.exists()
        found.append(rows[:1], numbers[:1])
        assert path.stat().st_size > 8 * rows.height
        n_rows = [part.height for _, part in found]
    assert not path.exists()
    assert sum(n_rows) == rows.height
    # A hash spreads the keys evenly.
    assert max(n_rows) < 1.1 * min(n_rows)


def test_equal_keys_are_in_one_partition() -> None:
    keys = pl.Series(["a", "b", None, "a", "b", None])
    numbers = hash_partitions(keys, 1000)
    assert numbers[:3].tolist() == numbers[3:].tolist()
    assert len(set(numbers.tolist())) == 3


def answer(ledger: Ledger, key: str, reply: str) -> None:
    ledger.record_sent(key, STEP, key, "chat")
    ledger.record_call(key, STEP, "chat", Usage(), None, reply)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(tmp_path)) as ledger:
        answer(ledger, "a", "one")
        answer(ledger, "b", "two")
        answer(ledger, "b2", "three")
        yield ledger


@pytest.fixture
def previous(tmp_path: Path, ledger: Ledger) -> Previous:
    """Rows made from "of a", of "of b" by two requests, and of "of c", whose reply is not kept."""
    keys = [["a"], ["b", "b2"], ["c"], []]
    made = pl.DataFrame({"input_hash": ["of a", "of b", "of c", ""], "request_keys": keys})
    given = add_reply_hashes(made.cast({"request_keys": pl.List(pl.String)}), ledger)
    rows = pl.concat([TABLE.empty(), given], how="diagonal").select(TABLE.schema.names())
    store = TableStore(tmp_path)
    with store.writer(1, TABLE, TABLE.name) as writer:
        writer.append(rows)
    record = StepRecord(STEP, "key", {TABLE.name: writer.stored})
    return Previous(store, Version(1, "small", "0.1.0", (record,)))


def kept(previous: Previous, ledger: Ledger) -> list[str]:
    rows, todo = reuse_rows(previous, TABLE, KEY, replies=ledger)
    assert rows.columns == [*TABLE.columns, "at"]
    assert rows["at"].is_sorted()
    assert KEY.gather(rows["at"]).to_list() == rows["input_hash"].to_list()
    assert pl.Series(todo).arg_true().to_list() == sorted({*range(len(KEY))} - {*rows["at"]})
    return rows["input_hash"].to_list()


def test_rows_are_kept_while_input_and_replies_are_unchanged(
    previous: Previous, ledger: Ledger
) -> None:
    answer(ledger, "d", "of another")
    # The row of "of c" rested on no reply; that there is one now does not make it right.
    answer(ledger, "c", "four")
    assert kept(previous, ledger) == ["of b", "of a", "of b"]


def test_the_requests_of_kept_rows_are_used(
    previous: Previous, ledger: Ledger, tmp_path: Path
) -> None:
    ledger.track_use()
    answer(ledger, "d", "of nothing that is left")
    kept(previous, ledger)
    assert purge_ledger(ledger, tmp_path).n_deleted == 1
    assert ledger.reply_hashes(["d"]) == [""]
    assert kept(previous, ledger) == ["of b", "of a", "of b"]


def forget(ledger: Ledger) -> None:
    ledger.track_use()
    ledger.mark_used(["a", "b"])
    purge_ledger(ledger, Path(ledger.path).parent)


@pytest.mark.parametrize(
    "change",
    [
        forget,
        lambda ledger: answer(ledger, "b2", "other"),
        lambda ledger: ledger.record_replies({"b2": "other"}),
        lambda ledger: ledger.record_failure("b2", "refused"),
    ],
    ids=["purged", "asked again", "vectors", "quarantined"],
)
def test_a_row_goes_with_any_of_its_replies(
    previous: Previous, ledger: Ledger, change: object
) -> None:
    assert callable(change)
    change(ledger)
    assert kept(previous, ledger) == ["of a"]


def test_another_ledger_is_compared(previous: Previous, tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "new")) as new:
        assert kept(previous, new) == []
        answer(new, "a", "one")
        answer(new, "b", "other")
        assert kept(previous, new) == ["of a"]


def test_nothing_is_kept_of_a_table_that_is_missing_or_damaged(
    previous: Previous, ledger: Ledger, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert kept(Previous(previous.store, None), ledger) == []
    path = tmp_path / str(previous.tables[TABLE.name].file)
    path.write_bytes(b"\0" * path.stat().st_size)
    with caplog.at_level(logging.WARNING):
        assert kept(previous, ledger) == []
    assert "The table description_summaries of the last run cannot be read" in caplog.text
    path.unlink()
    assert kept(previous, ledger) == []


def test_rows_are_found_by_any_column_and_condition(previous: Previous) -> None:
    rows, todo = reuse_rows(
        previous,
        TABLE,
        pl.Series(["of c", "of a"]),
        column="input_hash",
        where=pl.col("input_hash") > "of a",
    )
    assert rows["input_hash"].to_list() == ["of c"]
    assert todo.tolist() == [False, True]


@pytest.mark.parametrize("size", [1_000, 4_096, ROW_GROUP_SIZE, 3 * ROW_GROUP_SIZE])
@pytest.mark.parametrize(
    "n_rows", [1, 4_096, ROW_GROUP_SIZE - 1, ROW_GROUP_SIZE, 2 * ROW_GROUP_SIZE + 5]
)
def test_all_rows_come_once_in_their_order(tmp_path: Path, n_rows: int, size: int) -> None:
    rows = pl.DataFrame({"number": range(n_rows)})
    rows.write_parquet(tmp_path / "rows.parquet", row_group_size=ROW_GROUP_SIZE)
    for frame in (rows.lazy(), pl.scan_parquet(tmp_path / "rows.parquet")):
        found = list(read_batches(frame, size))
        assert pl.concat(found).equals(rows)
        assert {batch.height for batch in found[:-1]} <= {size}
        assert 0 < found[-1].height <= size


@pytest.mark.parametrize("change", ["added", "removed", "changed"])
def test_a_document_changes_only_the_batches_next_to_it(change: str) -> None:
    ids = [f"document {n}" for n in range(2_000)]
    texts = [f"text {n} " * (n % 9) for n in range(2_000)]
    before = pl.DataFrame({"id": ids, "text": texts})
    new = pl.DataFrame({"id": ["new"], "text": ["new text"]})
    at = {"added": (1_000, 1_000), "removed": (1_000, 1_001), "changed": (1_000, 1_001)}[change]
    after = pl.concat([before[: at[0]], new[: change != "removed"], before[at[1] :]])
    batches, others = (list(read_stable_batches(rows.lazy(), 1_000)) for rows in (before, after))
    assert pl.concat(batches).equals(before)
    assert pl.concat(others).equals(after)
    assert 50 < len(batches) < 100
    unchanged = [batch for batch in others if any(map(batch.equals, batches))]
    assert len(others) - 2 <= len(unchanged) < len(others)


def test_of_no_rows_there_is_no_batch_or_one_with_its_columns() -> None:
    empty = pl.DataFrame({"number": pl.Series([], dtype=pl.Int64)})
    assert list(read_batches(empty.lazy(), 10)) == []
    [batch] = read_batches(empty.lazy(), 10, at_least_one=True)
    assert batch.equals(empty)


@given(TEXT, ROWS, st.integers(0, 3))
def test_each_row_has_the_id_of_its_parts(kind: str, rows: list[tuple[str, list[str]]], first: int):
    frame = pl.DataFrame(rows, {"name": pl.String, "said": pl.List(pl.String)}, orient="row")
    part = frame.slice(first)

    ids = content_ids(kind, part["name"], part["said"])

    assert ids.to_list() == [content_id(kind, name, *said) for name, said in rows[first:]]

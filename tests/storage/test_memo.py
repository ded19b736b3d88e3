"""Rows of the last version are reused while their input and their replies are unchanged."""

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from graphrag_index.llm.batch_ledger import BatchLedger
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.registry import purge
from graphrag_index.llm.request import Usage
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.memo import add_reply_hashes, reuse_rows
from graphrag_index.storage.table_store import Previous, TableStore
from graphrag_index.storage.versions import StepRecord, Version

STEP, TABLE = "summarize_descriptions", TABLES["description_summaries"]
KEY = pl.Series(["of b", "of c", "", "of x", "of a", "of b"])


def answer(ledger: Ledger, key: str, reply: str) -> None:
    ledger.record_sent(key, STEP, key, "chat")
    ledger.record_reply(key, STEP, "chat", reply, Usage(), None)


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
    assert purge(ledger, tmp_path).n_deleted == 1
    assert ledger.reply_hashes(["d"]) == [""]
    assert kept(previous, ledger) == ["of b", "of a", "of b"]


def forget(ledger: Ledger) -> None:
    ledger.track_use()
    ledger.mark_used(["a", "b"])
    purge(ledger, Path(ledger.path).parent)


@pytest.mark.parametrize(
    "change",
    [
        forget,
        lambda ledger: answer(ledger, "b2", "other"),
        lambda ledger: BatchLedger(ledger).record_reply("b2", "other"),
        lambda ledger: ledger.record_replies({"b2": "other"}),
        lambda ledger: ledger.record_failure("b2", "refused"),
    ],
    ids=["purged", "asked again", "batch", "vectors", "quarantined"],
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

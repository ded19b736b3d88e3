"""A mark in the ledger stays while no reply is deleted or replaced."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from graphrag_index.llm.batch_ledger import BatchLedger
from graphrag_index.llm.ledger import FILE, QUARANTINED, Ledger
from graphrag_index.llm.mark import begin_mark, is_marked, leave_mark
from graphrag_index.llm.purge import purge
from graphrag_index.llm.request import Usage


def answer(ledger: Ledger, key: str, reply: str = "said") -> None:
    ledger.send(key, "extract", key, "chat")
    ledger.finish(key, "extract", "chat", reply, Usage(), None)


def mark(ledger: Ledger) -> str:
    begin_mark(ledger, "extract")
    return leave_mark(ledger, "extract")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Two requests that were answered and one that is quarantined."""
    with closing(Ledger(tmp_path, 1)) as ledger:
        answer(ledger, "a")
        answer(ledger, "b")
        ledger.send("c", "extract", "c", "chat")
        ledger.put_aside("c", QUARANTINED, "refused")
        ledger.note_use()
        yield ledger


def answer_others(ledger: Ledger) -> None:
    answer(ledger, "d")
    ledger.send("e", "embed", "e", "vectors")
    ledger.finish_all({"e": "1 2"})
    ledger.send("f", "extract", "f", "chat")
    BatchLedger(ledger).finish("f", "said")


def retry(ledger: Ledger) -> None:
    ledger.release(["extract"])
    answer(ledger, "c")


def begin_again(ledger: Ledger) -> None:
    begin_mark(ledger, "extract")
    begin_mark(ledger, "describe")
    leave_mark(ledger, "describe")


def forget_no_reply(ledger: Ledger) -> None:
    ledger.use(["a", "b"])
    assert purge(ledger, Path(ledger.path).parent).n_forgotten == 1


@pytest.mark.parametrize(
    "act",
    [answer_others, retry, begin_again, forget_no_reply, lambda ledger: ledger.name("a", "new")],
    ids=["other replies", "retry", "steps", "purge without replies", "name"],
)
def test_it_stays_while_replies_stay(ledger: Ledger, act: Callable[[Ledger], None]) -> None:
    left = mark(ledger)
    act(ledger)
    assert is_marked(ledger, "extract", left)
    assert not is_marked(ledger, "describe", left)


def forget(ledger: Ledger) -> None:
    ledger.use(["b"])
    assert purge(ledger, Path(ledger.path).parent).n_forgotten == 2


def change_as_another_program(ledger: Ledger) -> None:
    with closing(sqlite3.connect(ledger.path)) as database, database:
        database.execute("UPDATE requests SET reply = 'other' WHERE key = 'a'")


CHANGES: dict[str, Callable[[Ledger], None]] = {
    "purge": forget,
    "asked again": lambda ledger: answer(ledger, "a", "other"),
    "embedded again": lambda ledger: ledger.finish_all({"a": "other"}),
    "batch": lambda ledger: BatchLedger(ledger).finish("a", "other"),
    "put aside": lambda ledger: ledger.put_aside("a", QUARANTINED, "refused"),
    "another program": change_as_another_program,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_it_goes_with_the_first_reply_that_changes(
    ledger: Ledger, change: Callable[[Ledger], None]
) -> None:
    left = mark(ledger)
    change(ledger)
    assert not is_marked(ledger, "extract", left)
    again = mark(ledger)
    assert is_marked(ledger, "extract", again)
    assert not is_marked(ledger, "extract", left)


def test_what_changes_before_it_is_left_counts(ledger: Ledger) -> None:
    begin_mark(ledger, "extract")
    answer(ledger, "a", "other")
    assert leave_mark(ledger, "extract") == ""
    assert not is_marked(ledger, "extract", "")


def test_a_ledger_that_was_restored_or_is_new_has_none(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "now")) as ledger:
        before = mark(ledger)
    shutil.copytree(tmp_path / "now", tmp_path / "backup")
    with closing(Ledger(tmp_path / "now")) as ledger:
        answer(ledger, "a")
        left = mark(ledger)
        assert is_marked(ledger, "extract", left)
    with closing(Ledger(tmp_path / "backup")) as ledger:
        assert not is_marked(ledger, "extract", left)
        # What was made before the backup rests on what it has.
        assert is_marked(ledger, "extract", before)
    with closing(Ledger(tmp_path / "new")) as ledger:
        assert not is_marked(ledger, "extract", left)


def test_the_ledger_of_an_earlier_program_can_be_marked(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path)) as ledger:
        answer(ledger, "a")
    with closing(sqlite3.connect(tmp_path / FILE)) as earlier:
        earlier.executescript("DROP TRIGGER reply_replaced; DROP TRIGGER reply_deleted;")
    with closing(Ledger(tmp_path)) as ledger:
        left = mark(ledger)
        assert is_marked(ledger, "extract", left)
        answer(ledger, "a", "other")
        assert not is_marked(ledger, "extract", left)

"""What is read of the ledger to know that rows of the last run still hold."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_index.extraction.previous_replies import earlier_rows, with_replies
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.mark import begin_mark, leave_mark
from graphrag_index.llm.request import Usage
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.table_store import Previous, TableStore
from graphrag_index.storage.versions import StepRecord, Version

STEP, TABLE = "summarize_descriptions", TABLES["description_summaries"]


class CountingLedger(Ledger):
    """Counts the replies that were looked at; what a model keeps is here as it is there."""

    n_read = 0

    def reply_hashes(self, keys: Iterable[str]) -> list[str]:
        keys = list(keys)
        self.n_read += len(keys)
        return super().reply_hashes(keys)

    def answer(self, key: str, reply: str) -> None:
        self.send(key, STEP, key, "chat")
        self.finish(key, STEP, "chat", reply, Usage(), None)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[CountingLedger]:
    with closing(CountingLedger(tmp_path)) as ledger:
        ledger.answer("a", "one")
        ledger.answer("b", "two")
        yield ledger


def write(output: Path, ledger: Any) -> Previous:
    """Write rows that were made from "of a", "of b" and "of c", whose reply is not kept."""
    begin_mark(ledger, STEP)
    made = pl.DataFrame({"made_from": ["of a", "of b", "of c"], "requests": [["a"], ["b"], ["c"]]})
    given = with_replies(made, ledger)
    rows = pl.concat([TABLE.empty(), given], how="diagonal").select(TABLE.schema.names())
    store = TableStore(output)
    with store.writer(1, TABLE, TABLE.name) as writer:
        writer.append(rows)
    record = StepRecord(STEP, "key", {TABLE.name: writer.stored}, mark=leave_mark(ledger, STEP))
    ledger.n_read = 0
    return Previous(store, Version(1, "small", "0.1.0", (record,)))


def taken(previous: Previous, ledger: Any) -> list[str]:
    made_from = pl.Series(["of b", "of c", "of x", "of a"])
    found = earlier_rows(previous, TABLE, "at", made_from, ledger)
    assert found["at"].to_list() == [["of b", "", "", "of a"].index(m) for m in found["made_from"]]
    return found["made_from"].to_list()


def test_no_reply_is_read_while_all_are_as_they_were(
    tmp_path: Path, ledger: CountingLedger
) -> None:
    previous = write(tmp_path, ledger)
    ledger.answer("d", "three")
    # It rested on no reply; that there is one now does not make the row right.
    ledger.answer("c", "four")
    assert taken(previous, ledger) == ["of b", "of a"]
    assert ledger.n_read == 0


def test_a_reply_that_is_another_is_seen(tmp_path: Path, ledger: CountingLedger) -> None:
    previous = write(tmp_path, ledger)
    ledger.answer("a", "other")
    assert taken(previous, ledger) == ["of b"]
    assert ledger.n_read == 2


def test_another_ledger_is_looked_at(tmp_path: Path, ledger: CountingLedger) -> None:
    previous = write(tmp_path, ledger)
    with closing(CountingLedger(tmp_path / "new")) as new:
        new.answer("b", "two")
        assert taken(previous, new) == ["of b"]
        assert new.n_read == 2

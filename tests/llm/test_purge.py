"""Purging of the ledger."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from graphrag_index.errors import GraphRAGError
from graphrag_index.llm.batch_ledger import COLLECTED, SUBMITTED, Batch, BatchLedger
from graphrag_index.llm.ledger import DONE, FILE, Ledger
from graphrag_index.llm.registry import Purged, purge
from graphrag_index.llm.request import Usage


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Three requests that were answered and one that is quarantined."""
    with closing(Ledger(tmp_path, 1)) as ledger:
        for key in "abc":
            ledger.record_sent(key, "extract", f"{key}.txt", "chat")
            ledger.record_reply(key, "extract", "chat", f"reply {key}", Usage(10, 0, 1), 0.5)
        ledger.record_sent("d", "extract", "d.txt", "chat")
        ledger.record_failure("d", "it says rubbish", "rubbish")
        yield ledger


def keys(ledger: Ledger) -> list[str]:
    return [key for (key,) in ledger.rows("SELECT key FROM requests ORDER BY key")]


def test_used_requests_and_all_costs_are_kept(ledger: Ledger, tmp_path: Path) -> None:
    ledger.mark_used(["b"])
    ledger.track_use()
    ledger.mark_used(["a"])
    purged = purge(ledger, tmp_path, ["c"])
    assert (purged.n_deleted, purged.n_kept) == (2, 2)
    assert keys(ledger) == ["a", "c"]
    assert ledger.spent() == 1.5
    assert ledger.rows("SELECT count(*) FROM calls WHERE key = 'b'") == [(0,)]
    found = ledger.find("a")
    assert found is not None
    assert (found.state, found.reply) == (DONE, "reply a")
    for path in tmp_path.glob(f"{FILE}*"):
        assert not [word for word in (b"reply b", b"rubbish", b".txt") if word in path.read_bytes()]


def test_use_before_tracking_does_not_count(ledger: Ledger, tmp_path: Path) -> None:
    ledger.track_use()
    ledger.mark_used(["a"])
    ledger.track_use()
    ledger.mark_used(["b", "d"])
    purge(ledger, tmp_path)
    assert keys(ledger) == ["b", "d"]


def test_an_interrupted_purge_deletes_nothing(ledger: Ledger, tmp_path: Path) -> None:
    def stopped() -> Iterator[str]:
        yield "a"
        raise KeyboardInterrupt

    ledger.track_use()
    with pytest.raises(KeyboardInterrupt):
        purge(ledger, tmp_path, stopped())
    assert keys(ledger) == ["a", "b", "c", "d"]


def test_an_open_batch_prevents_a_purge(ledger: Ledger, tmp_path: Path) -> None:
    batches = BatchLedger(ledger)
    batch = Batch("k", "extract", "chat", SUBMITTED, "f", "batch_1", 1, 10, 0.5, "{}", 0.0)
    batches.prepare(batch, {"e": ("e.txt", "100")})
    ledger.track_use()
    with pytest.raises(GraphRAGError, match=r"Nothing was purged: batch batch_1 \(extract\)"):
        purge(ledger, tmp_path)
    assert len(keys(ledger)) == 5
    batches.update(replace(batch, state=COLLECTED))
    (tmp_path / "batches").mkdir()
    (tmp_path / "batches" / "k.jsonl").write_text("a request", encoding="utf-8")
    assert purge(ledger, tmp_path).n_kept == 0
    assert list((tmp_path / "batches").iterdir()) == []
    assert ledger.rows("SELECT count(*) FROM batches") == [(0,)]


def test_a_purge_reports_bytes_held_by_another_reader(ledger: Ledger, tmp_path: Path) -> None:
    ledger.track_use()
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM requests").fetchall()
        with pytest.raises(GraphRAGError, match="is being read by another program"):
            purge(ledger, tmp_path)
    # Nothing is left to forget, but for its bytes.
    purged = purge(ledger, tmp_path)
    assert isinstance(purged, Purged)
    assert purged.n_deleted == 0
    assert not [path for path in tmp_path.glob(f"{FILE}*") if b"reply b" in path.read_bytes()]

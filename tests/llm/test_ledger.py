"""The ledger: replies, states, costs, errors, and purging."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from graphrag_index.errors import GraphRAGError
from graphrag_index.llm.ledger import (
    COLLECTED,
    DONE,
    FILE,
    OPEN,
    SUBMITTED,
    Batch,
    BatchLedger,
    Ledger,
    StepStatus,
)
from graphrag_index.llm.limits import TokenLimits
from graphrag_index.llm.registry import PurgeCounts, purge_ledger
from graphrag_index.llm.request import Usage
from graphrag_index.schema.settings.models import ModelSettings


def test_a_reply_is_found_after_reopening(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path, version=1)) as ledger:
        assert ledger.find_entry("k") is None
        ledger.record_sent("k", "extract", "a.txt", "chat")
        ledger.record_call("k", "extract", "chat", Usage(10, 4, 5), 0.25, '{"a": 1}')
        entry = ledger.find_entry("k")
    assert entry is not None
    with closing(Ledger(tmp_path)) as again:
        assert again.find_entry("k") == entry
        assert (entry.state, entry.reply) == (DONE, '{"a": 1}')


def test_a_sent_request_without_a_reply_is_open(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path, version=1)) as ledger:
        ledger.record_sent("k", "extract", "a.txt", "chat")
    with closing(Ledger(tmp_path)) as again:
        entry = again.find_entry("k")
        assert entry is not None
        assert entry.state == OPEN


def test_a_ledger_in_memory_is_limited_and_keeps_what_has_no_reply() -> None:
    with closing(Ledger(None)) as ledger:
        for number in range(20):
            key = f"k{number}"
            ledger.record_sent(key, "search", "", "chat")
            ledger.record_call(key, "search", "chat", Usage(1), 0.1, '"reply"')
            ledger.mark_used([key])
        ledger.record_sent("open", "search", "", "chat")
        ledger.limit_replies(20)
        assert ledger.find_entry("k0") is not None
        ledger.limit_replies(19)
        assert ledger.find_entry("k0") is None
        assert ledger.find_entry("open") is not None
        for table, n_rows in (("requests", 1), ("uses", 0), ("calls", 0)):
            assert ledger.fetch_rows(f"SELECT count(*) FROM {table}") == [(n_rows,)]


def test_status_counts_the_newest_version_and_all_costs(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path, version=1)) as ledger:
        for key in "abc":
            ledger.record_sent(key, "extract", f"{key}.txt", "chat")
            ledger.record_call(key, "extract", "chat", Usage(10, 0, 1), 0.5, "{}")
        ledger.record_sent("d", "extract", "d.txt", "chat")
        ledger.record_call("d", "extract", "chat", Usage(10, 0, 1), 0.5)
        ledger.record_failure("d", "refused", "no")
        assert ledger.spent_so_far() == 2.0
    with closing(Ledger(tmp_path, version=2)) as ledger:
        # Of the next version only a and d are a part.
        ledger.mark_used(["a", "d"])
        assert ledger.step_statuses() == [StepStatus("extract", "chat", 1, 0, 1, 40, 0, 4, 2.0)]
        assert [row.reason for row in ledger.quarantined_requests(["extract"])] == ["refused"]
        assert ledger.spent_so_far() == 0.0
        assert ledger.reopen_quarantined(["extract"]) == 1
        assert ledger.quarantined_requests(["extract"]) == []


def test_a_call_of_unknown_price_makes_the_total_unknown(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path, version=1)) as ledger:
        for key, cost in (("a", 1.0), ("b", None)):
            ledger.record_sent(key, "extract", key, "chat")
            ledger.record_call(key, "extract", "chat", Usage(), cost, "{}")
        assert ledger.step_statuses()[0].cost is None


def test_a_damaged_file_is_one_message(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database at all" * 100)
    with pytest.raises(GraphRAGError, match="contains the replies that you have paid for"):
        Ledger(tmp_path)


def fill(ledger: Ledger) -> None:
    for number in range(1_000):
        ledger.record_sent(str(number), "extract", "x" * 1_000, "chat")
        ledger.record_call(str(number), "extract", "chat", Usage(), 0.0, "y" * 1_000)


def test_a_file_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path, version=1)) as ledger:
        ledger.record_sent("k", "extract", "a.txt", "chat")
        ledger.record_call("k", "extract", "chat", Usage(), 0.0, "{}")
        with closing(sqlite3.connect(tmp_path / FILE)) as other:
            # As a full disk would: the file may not grow any more.
            n_pages = other.execute("PRAGMA page_count").fetchone()[0]
        ledger.fetch_rows(f"PRAGMA max_page_count = {n_pages}")
        with pytest.raises(GraphRAGError, match=r"full.*received replies are kept"):
            fill(ledger)
        entry = ledger.find_entry("k")
        assert entry is not None
        assert entry.state == DONE


def test_capabilities_are_copied_from_another_ledger(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path, version=1)) as known:
        known.set_meta("endpoint capabilities: m at http://x", "text")
        known.set_meta("released steps", "[]")
    with closing(Ledger(None)) as ledger:
        ledger.share_capabilities(tmp_path)
        assert ledger.get_meta("endpoint capabilities: m at http://x") == "text"
        assert ledger.get_meta("released steps") is None
        ledger.set_meta("released steps", "[1]")
        TokenLimits(ModelSettings(model="m", base_url="http://x"), ledger).note_answer(300, 600)
    with closing(Ledger(tmp_path)) as known:
        assert known.get_meta("released steps") == "[]"
        assert TokenLimits(ModelSettings(model="m", base_url="http://x"), known).ratio == 2
        assert TokenLimits(ModelSettings(model="m", base_url="http://y"), known).ratio == 1


def test_a_folder_without_a_ledger_stays_empty(tmp_path: Path) -> None:
    with closing(Ledger(None)) as ledger:
        ledger.share_capabilities(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_replies_have_hashes(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path)) as ledger:
        for key, reply in (("a", "one"), ("b", "two"), ("c", "one")):
            ledger.record_sent(key, "extract", key, "chat")
            ledger.record_call(key, "extract", "chat", Usage(), None, reply)
        ledger.record_sent("d", "extract", "d", "chat")
        a, d, b, c, unknown = ledger.reply_hashes(["a", "d", "b", "c", "e"])
    assert a == c != b != ""
    assert (d, unknown) == ("", "")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Three requests that were answered and one that is quarantined."""
    with closing(Ledger(tmp_path, 1)) as ledger:
        for key in "abc":
            ledger.record_sent(key, "extract", f"{key}.txt", "chat")
            ledger.record_call(key, "extract", "chat", Usage(10, 0, 1), 0.5, f"reply {key}")
        ledger.record_sent("d", "extract", "d.txt", "chat")
        ledger.record_failure("d", "it says rubbish", "rubbish")
        yield ledger


def keys(ledger: Ledger) -> list[str]:
    return [key for (key,) in ledger.fetch_rows("SELECT key FROM requests ORDER BY key")]


def test_used_requests_and_all_costs_are_kept(ledger: Ledger, tmp_path: Path) -> None:
    ledger.mark_used(["b"])
    ledger.track_use()
    ledger.mark_used(["a"])
    purged = purge_ledger(ledger, tmp_path, ["c"])
    assert (purged.n_deleted, purged.n_kept) == (2, 2)
    assert keys(ledger) == ["a", "c"]
    assert ledger.spent_so_far() == 1.5
    assert ledger.fetch_rows("SELECT count(*) FROM calls WHERE key = 'b'") == [(0,)]
    found = ledger.find_entry("a")
    assert found is not None
    assert (found.state, found.reply) == (DONE, "reply a")
    for path in tmp_path.glob(f"{FILE}*"):
        assert not [word for word in (b"reply b", b"rubbish", b".txt") if word in path.read_bytes()]


def test_use_before_tracking_does_not_count(ledger: Ledger, tmp_path: Path) -> None:
    ledger.track_use()
    ledger.mark_used(["a"])
    ledger.track_use()
    ledger.mark_used(["b", "d"])
    purge_ledger(ledger, tmp_path)
    assert keys(ledger) == ["b", "d"]


def test_an_interrupted_purge_deletes_nothing(ledger: Ledger, tmp_path: Path) -> None:
    def stopped() -> Iterator[str]:
        yield "a"
        raise KeyboardInterrupt

    ledger.track_use()
    with pytest.raises(KeyboardInterrupt):
        purge_ledger(ledger, tmp_path, stopped())
    assert keys(ledger) == ["a", "b", "c", "d"]


def test_an_open_batch_prevents_a_purge(ledger: Ledger, tmp_path: Path) -> None:
    batches = BatchLedger(ledger)
    batch = Batch("k", "extract", "chat", SUBMITTED, "f", "batch_1", 1, 10, 0.5, "{}", 0.0)
    batches.record_batch(batch, {"e": ("e.txt", "100")})
    ledger.track_use()
    with pytest.raises(GraphRAGError, match=r"Nothing was purged: batch batch_1 \(extract\)"):
        purge_ledger(ledger, tmp_path)
    assert len(keys(ledger)) == 5
    batches.update_batch(batch._replace(state=COLLECTED))
    (tmp_path / "batches").mkdir()
    (tmp_path / "batches" / "k.jsonl").write_text("a request", encoding="utf-8")
    assert purge_ledger(ledger, tmp_path).n_kept == 0
    assert list((tmp_path / "batches").iterdir()) == []
    assert ledger.fetch_rows("SELECT count(*) FROM batches") == [(0,)]


def test_a_purge_reports_bytes_held_by_another_reader(ledger: Ledger, tmp_path: Path) -> None:
    ledger.track_use()
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM requests").fetchall()
        with pytest.raises(GraphRAGError, match="is being read by another program"):
            purge_ledger(ledger, tmp_path)
    # Nothing is left to forget, but for its bytes.
    purged = purge_ledger(ledger, tmp_path)
    assert isinstance(purged, PurgeCounts)
    assert purged.n_deleted == 0
    assert not [path for path in tmp_path.glob(f"{FILE}*") if b"reply b" in path.read_bytes()]

"""Copies of the ledger, and replies that are added from a copy."""

from contextlib import closing
from pathlib import Path

import pytest

from graphrag_index.errors import TableError
from graphrag_index.llm.ledger import DONE, FILE, OPEN, Ledger
from graphrag_index.llm.request import Usage
from graphrag_index.storage.ledger_copies import copy_ledger, merge_ledger


def write(folder: Path, replies: dict[str, str | None]) -> Path:
    """Write requests with their replies, each of one call; None: no reply yet."""
    with closing(Ledger(folder, 1)) as ledger:
        for key, reply in replies.items():
            ledger.record_sent(key, "step", f"unit {key}", "model")
            if reply is not None:
                ledger.record_call(key, "step", "model", Usage(10, 0, 5), 0.5)
                ledger.record_replies({key: reply})
    return folder / FILE


def replies_of(folder: Path) -> dict[str, tuple[str, str]]:
    query = "SELECT key, state, cast(coalesce(reply, '') AS TEXT) FROM requests"
    with closing(Ledger(folder, read_only=True)) as ledger:
        return {key: (state, reply) for key, state, reply in ledger.fetch_rows(query)}


def test_a_copy_has_all_that_is_written(tmp_path: Path) -> None:
    path = write(tmp_path / "a", {"x": "one", "y": None})
    (tmp_path / "b").mkdir()
    # The ledger is open, and its last rows are in its write-ahead log.
    with closing(Ledger(tmp_path / "a", 1)) as ledger, copy_ledger(path) as snapshot:
        assert ledger.find_entry("x") is not None
        snapshot.rename(tmp_path / "b" / FILE)
    assert replies_of(tmp_path / "b") == {"x": (DONE, "one"), "y": (OPEN, "")}
    assert not list((tmp_path / "a").glob("*.tmp"))


def test_replies_that_a_ledger_lacks_are_added(tmp_path: Path) -> None:
    ours = write(tmp_path / "ours", {"x": "one", "y": None, "z": "ours"})
    theirs = write(tmp_path / "theirs", {"w": "new", "y": "two", "z": "theirs", "v": None})
    for _ in range(2):
        merge_ledger(theirs, ours)
    assert replies_of(tmp_path / "ours") == {
        **{"w": (DONE, "new"), "x": (DONE, "one"), "y": (DONE, "two")},
        **{"z": (DONE, "ours"), "v": (OPEN, "")},
    }
    with closing(Ledger(tmp_path / "ours", read_only=True)) as ledger:
        # The calls of x, y, z and w, each once.
        assert ledger.fetch_rows("SELECT count(*), sum(cost) FROM calls") == [(4, 2.0)]


def test_a_missing_ledger_becomes_a_copy(tmp_path: Path) -> None:
    theirs = write(tmp_path / "theirs", {"w": "new"})
    (tmp_path / "ours").mkdir()
    merge_ledger(theirs, tmp_path / "ours" / FILE)
    assert replies_of(tmp_path / "ours") == {"w": (DONE, "new")}
    assert theirs.exists()


def test_a_damaged_ledger_is_told(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_bytes(b"no database" * 100)
    with pytest.raises(TableError, match=r"ledger\.sqlite cannot be copied"), copy_ledger(path):
        pass
    theirs = write(tmp_path / "theirs", {"w": "new"})
    with pytest.raises(TableError, match="replies of a bucket cannot be added"):
        merge_ledger(theirs, path)

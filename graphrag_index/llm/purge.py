"""Forgetting: what the ledger holds of requests that the index does not rest on any more."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from graphrag_index.errors import GraphRAGError
from graphrag_index.llm.batch_ledger import BatchLedger
from graphrag_index.llm.ledger import DONE, FILE, NOTE, Ledger

_OTHERS = "key NOT IN (SELECT key FROM temp.used)"


@dataclass(frozen=True)
class Purged:
    """How many requests were forgotten, how many are kept, and the bytes that it freed."""

    n_forgotten: int
    n_kept: int
    n_bytes: int


def purge(ledger: Ledger, output: Path, keys: Iterable[str] = ()) -> Purged:
    """Forget all requests but those that were used since `Ledger.note_use`, and those given.

    What was paid is still known, but not for which request.

    Raises
    ------
    GraphRAGError
        A batch is open, or the file cannot be written, and all is as it was; or another program
        reads it, and what was deleted can still be found among its bytes.
    """
    for batch in BatchLedger(ledger).open():
        raise GraphRAGError(
            f"Nothing was purged: batch {batch.id or 'of ' + batch.step} ({batch.step}) is not "
            "collected yet, and its replies are to be paid: run with --batch until it is, or "
            "cancel it at the provider and then do so."
        )
    path = output / FILE
    before = path.stat().st_size
    with ledger.transaction() as database:
        database.executemany(NOTE, ((key,) for key in keys))
        n_forgotten = database.execute(f"DELETE FROM requests WHERE {_OTHERS}").rowcount
        # It may name a document that is gone, if another one says the same.
        database.execute("UPDATE requests SET unit = '' WHERE state = ?", (DONE,))
        database.execute(f"DELETE FROM uses WHERE {_OTHERS}")
        database.execute(f"UPDATE calls SET key = '' WHERE {_OTHERS}")
        database.execute(f"DELETE FROM batch_replies WHERE {_OTHERS}")
        database.execute("DELETE FROM batch_requests")
        database.execute("DELETE FROM batches")
    n_kept = ledger.rows("SELECT count(*) FROM requests")[0][0]
    for leftover in (output / "batches").glob("*"):
        leftover.unlink()
    if not ledger.shrink():
        raise GraphRAGError(
            f"{path} is being read by another program, so that what was deleted is still among "
            "its bytes: end that program and run with --purge again."
        )
    return Purged(n_forgotten, n_kept, max(0, before - path.stat().st_size))

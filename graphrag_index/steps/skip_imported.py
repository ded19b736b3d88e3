"""Pass over the documents of the input that came with an imported index."""

import logging
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import polars as pl

from graphrag_index.microsoft.import_folder import Imported, fingerprint_imported
from graphrag_index.step import step

logger = logging.getLogger(__name__)

# Documents read at once: bounds memory, not results.
BATCH = 512
# Names that a warning tells.
_MOST_NAMES = 3


@step(writes=["input_documents"], fingerprint=fingerprint_imported)
def skip_imported(input_documents: pl.LazyFrame, *, root: Path) -> Iterator[pl.DataFrame]:
    """Leave the documents whose text no imported document has.

    A mark at the beginning of a text, the form of its line ends and space around it are nothing
    to that. A record with the id of an imported document and another text is left out too: what
    was imported stays as it is.

    Yields
    ------
    input_documents
        The new documents, in their order.
    """
    imported = Imported(root).scan("documents")
    ids = set(imported.select("id").collect()["id"])
    texts = {_digest(row[0]) for batch in _batches(imported.select("text")) for row in batch.rows()}
    changed: list[str] = []
    for batch in _batches(input_documents):
        keep = []
        for id, path, text in batch.select("id", "path", "text").iter_rows():
            is_known = _digest(text) in texts
            if not is_known and id in ids:
                changed.append(f"{path} ({id})")
            keep.append(not is_known and id not in ids)
        yield batch.filter(pl.Series(keep, dtype=pl.Boolean))
    if changed:
        logger.warning(
            "%d records have the id of an imported document and another text: the imported one "
            "stays (%s%s).",
            len(changed),
            ", ".join(changed[:_MOST_NAMES]),
            ", ..." * (len(changed) > _MOST_NAMES),
        )


def _digest(text: str) -> bytes:
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").strip()
    return blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _batches(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    n_rows = rows.select(pl.len()).collect().item()
    for start in range(0, n_rows, BATCH):
        yield rows.slice(start, BATCH).collect()

"""Skip the input documents that came with an imported index."""

import logging
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import polars as pl

from graphrag_index.microsoft.import_folder import Imported, fingerprint_imported, row_batches
from graphrag_index.step import step

logger = logging.getLogger(__name__)

_BATCH = 512  # documents
_MAX_NAMES = 3  # in a warning


@step(writes=["loaded_documents"], fingerprint=fingerprint_imported)
def skip_imported(loaded_documents: pl.LazyFrame, *, root: Path) -> Iterator[pl.DataFrame]:
    """Drop documents whose text was imported, ignoring line ends, space around it and a BOM.

    A record with the id of an imported document and another text is dropped too: the imported
    one stays, and a warning says so.

    Yields
    ------
    loaded_documents
        The new documents, in their order.
    """
    imported = Imported(root).scan("documents")
    ids = set(imported.select("id").collect()["id"])
    batches = row_batches(imported.select("text"), _BATCH)
    texts = {_digest(text) for batch in batches for text in batch["text"]}
    changed: list[str] = []
    for batch in row_batches(loaded_documents, _BATCH):
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
            ", ".join(changed[:_MAX_NAMES]),
            ", ..." * (len(changed) > _MAX_NAMES),
        )


def _digest(text: str) -> bytes:
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").strip()
    return blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).digest()

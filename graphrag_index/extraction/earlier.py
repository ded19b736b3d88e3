"""What the last run found in text units that are as they were."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b

import polars as pl

from graphrag_index.core.models.chat_model import ChatModel
from graphrag_index.core.table_store import Previous
from graphrag_index.extraction.findings import TABLE

# Text units whose replies are looked up at once: bounds memory, not results.
BATCH = 8_192


def hash_of(parts: Sequence[str]) -> str:
    """Hash texts, each with its length, so that no two lists run together to one."""
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def earlier_findings(
    previous: Previous, made_from: pl.Series, chat_model: ChatModel
) -> pl.DataFrame:
    """Return the findings of the last run in text units of which nothing has changed.

    Not the text alone must be the same: each reply that the findings were read from must be
    kept, and be the same still. The replies are noted as used, as if they were read again.

    Parameters
    ----------
    made_from
        A hash of all that is asked about each text unit, and of how a reply is read.

    Returns
    -------
    findings
        The table's columns, and the number that the text unit has now, ascending.
    """
    nothing = TABLE.empty().with_columns(text_unit=pl.lit(None, pl.Int64))
    rows = previous.scan(TABLE.name)
    # A table that another version of the program wrote is none of ours.
    if rows is None or rows.collect_schema() != TABLE.schema:
        return nothing
    units = pl.DataFrame({"made_from": made_from}).with_row_index("text_unit")
    rests_on = rows.select("made_from", "requests", "replies").with_row_index("row")
    joined = units.lazy().join(
        # Equal text units have equal findings.
        rests_on.filter(pl.col("made_from") != "").unique("made_from", keep="first"),
        on="made_from",
    )
    known = joined.sort("text_unit").collect()
    same = pl.Series(_are_same(known, chat_model), dtype=pl.Boolean)
    chosen = known.filter(same).select("row", text_unit=pl.col("text_unit").cast(pl.Int64))
    found = rows.with_row_index("row").join(chosen.lazy(), on="row").drop("row")
    return found.select(nothing.columns).sort("text_unit").collect()


def _are_same(known: pl.DataFrame, chat_model: ChatModel) -> Iterator[bool]:
    """Tell for each text unit whether its replies are as they were; if so they are used."""
    for batch in known.iter_slices(BATCH):
        used: list[str] = []
        for keys, replies in batch.select("requests", "replies").iter_rows():
            is_same = bool(keys) and all(replies) and chat_model.reply_hashes(keys) == replies
            if is_same:
                used += keys
            yield is_same
        chat_model.use(used)

"""What the last run read from replies about things that are as they were."""

import logging

import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.mark import is_marked
from graphrag_index.schema.list_columns import gather_lists, spread_lists
from graphrag_index.schema.table import Table
from graphrag_index.storage.table_store import Previous

logger = logging.getLogger(__name__)


def earlier_rows(
    previous: Previous, table: Table, at: str, made_from: pl.Series, chat_model: ChatModel
) -> pl.DataFrame:
    """Return the rows of the last run's table for things of which nothing has changed.

    Not what is asked alone must be the same: each reply that the row was read from must be
    kept, and be the same still; where the step's mark is in the ledger they are, unread. The
    replies are noted as used, as if they were read again.

    Parameters
    ----------
    table
        With columns `made_from`, `requests` and `replies`.
    made_from
        A hash of all that is asked about each thing now, and of how a reply is read.

    Returns
    -------
    rows
        The table's columns, and as column `at` the place in `made_from`, ascending.
    """
    try:
        return _read(previous, table, at, made_from, chat_model)
    except (OSError, TableError, pl.exceptions.PolarsError) as error:
        logger.warning(
            "The table %s of the last run cannot be read: all replies are read again (%s)",
            table.name,
            error,
        )
        return _nothing(table, at)


def with_replies(rows: pl.DataFrame, chat_model: ChatModel) -> pl.DataFrame:
    """Add what `replies` are: the hashes of those that are kept for `requests`."""
    owners, keys = spread_lists(rows["requests"])
    hashes = pl.Series(chat_model.reply_hashes(keys), dtype=pl.String)
    return rows.with_columns(replies=gather_lists(owners, hashes, rows.height))


def _nothing(table: Table, at: str) -> pl.DataFrame:
    return table.empty().with_columns(pl.lit(None, pl.Int64).alias(at))


def _read(
    previous: Previous, table: Table, at: str, made_from: pl.Series, chat_model: ChatModel
) -> pl.DataFrame:
    nothing = _nothing(table, at)
    rows = previous.scan(table.name)
    # A table that another version of the program wrote is none of ours.
    if rows is None or rows.collect_schema() != table.schema:
        return nothing
    wanted = pl.DataFrame({"made_from": made_from}).with_row_index(at)
    rests_on = rows.select("made_from", "requests", "replies").with_row_index("row")
    joined = wanted.lazy().join(
        # What is asked in the same words has the same rows.
        rests_on.filter(pl.col("made_from") != "").unique("made_from", keep="first"),
        on="made_from",
    )
    known = joined.filter(~pl.col("replies").list.contains("")).sort(at).collect()
    step = previous.written_by(table.name)
    if step is None or not is_marked(chat_model, step.name, step.mark):
        known = known.filter(_are_same(known, chat_model))
    chosen = known.select("row", pl.col(at).cast(pl.Int64))
    found = rows.with_row_index("row").join(chosen.lazy(), on="row").select(nothing.columns)
    taken = found.sort(at).collect()
    _, keys = spread_lists(taken["requests"])
    chat_model.use(keys.to_list())
    return taken


def _are_same(known: pl.DataFrame, chat_model: ChatModel) -> pl.Series:
    """Tell for each thing whether its replies are as they were."""
    hashed = with_replies(known.select("requests"), chat_model)["replies"]
    return hashed == known["replies"]

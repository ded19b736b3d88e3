"""Which rows of the index the rows of a query are, so that an answer can cite them."""

from typing import TYPE_CHECKING

import polars as pl

from graphrag_query.structured.tables import table_files

if TYPE_CHECKING:
    from graphrag_query.retrieval.index_store import KnowledgeModel

# How rows are cited, by table: the column of the number, and those that tell rows apart.
_CITED = {
    "entities": ("Entities", "human_readable_id", ("id", "title")),
    "text_units": ("Sources", "human_readable_id", ("id",)),
    "relationships": ("Relationships", "human_readable_id", ("id",)),
    "community_reports": ("Reports", "community", ("id",)),
    "covariates": ("Claims", "human_readable_id", ("id",)),
}


def identified(model: "KnowledgeModel", rows: pl.DataFrame) -> tuple[str, pl.DataFrame]:
    """Return how the rows of a query are cited, and the rows with the number of each first.

    They are rows of a table if a column has ids of that table, or titles of entities, in every
    row. Others are called Rows, are numbered from 1, and cannot be cited.
    """
    files = table_files(model)
    for table, (name, number, keys) in _CITED.items():
        if table not in files:
            continue
        for key in keys:
            for column in rows.columns:
                values = rows[column]
                if values.dtype != pl.String or values.null_count() or not rows.height:
                    continue
                known = (
                    model.scan(table)
                    .select(pl.col(key).alias("key"), pl.col(number).cast(pl.Int64).alias("number"))
                    .filter(pl.col("key").is_in(values.unique().implode()))
                    .collect()
                )
                if known.height and values.is_in(known["key"].implode()).all():
                    numbers = dict(known.iter_rows())
                    first = pl.Series("_number", [numbers[value] for value in values], pl.Int64)
                    return name, _numbered(rows, first)
    return "Rows", _numbered(rows, pl.Series("_number", range(1, rows.height + 1), pl.Int64))


def _numbered(rows: pl.DataFrame, numbers: pl.Series) -> pl.DataFrame:
    """Put the numbers first; lists and objects become text."""
    nested = [name for name, dtype in rows.schema.items() if dtype.is_nested()]
    texts = [
        pl.Series(name, [str(value.to_list() if isinstance(value, pl.Series) else value)
                         for value in rows[name]], pl.String)
        for name in nested
    ]  # fmt: skip
    return rows.with_columns(texts).insert_column(0, numbers)

"""Weights that Leiden can work with: it takes NaN and 0 in silence and gives nonsense."""

import polars as pl

from graphrag_index.errors import TableError


def check_weights(table: str, relationships: pl.LazyFrame) -> None:
    """Refuse weights that are missing, NaN, infinite, 0 or less.

    Raises
    ------
    TableError
        Names the first such row.
    """
    weight = pl.col("weight")
    wrong = (
        relationships.select("source", "target", "weight")
        .with_row_index("row")
        .filter(~(weight.is_finite() & (weight > 0)).fill_null(False))
        .head(1)
        .collect()
    )
    for row, source, target, value in wrong.iter_rows():
        raise TableError(
            f"Table {table}: the relationship in row {row} ({source} – {target}) has the weight "
            f"{value}; a weight is a number greater than 0."
        )

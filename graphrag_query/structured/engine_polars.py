"""SQL by polars, which knows less of it than DuckDB, and is always there."""

from collections.abc import Mapping

from graphrag_index.errors import QueryError
from graphrag_query.structured.limits import Limits
from graphrag_query.structured.read_only import check_reads_no_file
from graphrag_query.structured.worker import Ready, Rows

MODULES = ("polars",)
_MORE = "DuckDB knows more SQL and is used once it is installed: pip install 'graphrag-index[sql]'."


def run(tables: Mapping[str, str], query: str, limits: Limits, ready: Ready) -> Rows:
    """Run a query over Parquet files, by the names of their tables.

    Raises
    ------
    QueryError
        It is no SQL that polars knows, no query, or fails.
    """
    import polars as pl

    check_reads_no_file(query)
    # A name with brackets is no pattern.
    frames = {name: pl.scan_parquet(path, glob=False) for name, path in tables.items()}
    ready()
    try:
        found = pl.SQLContext(frames, eager=False).execute(query.strip().rstrip(";"))
        rows = found.head(limits.max_rows + 1).collect()
    except pl.exceptions.PolarsError as error:
        raise QueryError(f"{str(error).splitlines()[0]}. {_MORE}") from error
    return rows.columns, rows.rows()

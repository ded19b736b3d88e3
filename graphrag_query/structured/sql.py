"""Questions in SQL over the tables of an index."""

from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from graphrag_query.structured.limits import Limits
from graphrag_query.structured.read_only import check_sql
from graphrag_query.structured.result import Result
from graphrag_query.structured.sandbox import run_query
from graphrag_query.structured.tables import table_files

if TYPE_CHECKING:
    from graphrag_query.retrieval.index_store import KnowledgeModel

# The first that is installed runs the queries.
ENGINES = {"engine_duckdb": "duckdb", "engine_polars": "polars"}


def engine() -> str:
    """Return the engine that runs queries in SQL here, by the name of its module."""
    return next(name for name, module in ENGINES.items() if find_spec(module))


def run_sql(model: "KnowledgeModel", query: str, limits: Limits, by: str | None = None) -> Result:
    """Run a query in SQL over the public tables of an index, by DuckDB if it is installed.

    Raises
    ------
    QueryError
        It is refused, wrong, or takes more than it may.
    """
    check_sql(query)
    found = run_query(by or engine(), table_files(model), query, limits)
    return replace(found, version=model.version.number)

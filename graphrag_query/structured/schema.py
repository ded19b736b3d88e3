"""What can be asked, in words: the tables of an index for SQL, the graph for Cypher."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.schema.tables import TABLES
from graphrag_query.structured.tables import table_files

if TYPE_CHECKING:
    from graphrag_query.retrieval.index_store import KnowledgeModel

# What names of columns do not tell.
_NOTES: Mapping[str, str] = {
    "documents": "`creation_date` is what the document states, or empty; `metadata` is JSON.",
    "text_units": "`document_id` is documents.id; `entity_ids` are entities.id.",
    "entities": "`title` is the name; `frequency` counts the text units that name it, `degree` "
    "its neighbours; `text_unit_ids` are text_units.id.",
    "entity_values": "`entity` is entities.human_readable_id; `kind` is number, money, percent, "
    "measure or date; `value` and `unit` (a currency, % or a unit) for numbers, `start_date` to "
    "`end_date` for dates.",
    "relationships": "`source` and `target` are entities.title; each pair is there once, in "
    "either direction; `weight` says how strong.",
    "mentions": "`entity` is entities.human_readable_id, `text_unit` is "
    "text_units.human_readable_id.",
    "communities": "level 0 is the coarsest; `parent` is another `community`, or -1; "
    "`entity_ids` are entities.id.",
    "community_reports": "`community` is communities.community; `rank` is 0 to 10.",
    "covariates": "`subject_id` and `object_id` are names of entities; `text_unit_id` is "
    "text_units.id.",
}


def sql_schema(model: "KnowledgeModel") -> str:
    """Describe the tables that SQL can ask: what a row is, how many there are, the columns."""
    parts = []
    for name in table_files(model):
        known = TABLES.get(name)
        what = f"one row is {known.row}" if known else "written by a step of one's own"
        columns = ", ".join(f"{column} {kind}" for column, kind in columns_of(model, name).items())
        note = f"\n  {_NOTES[name]}" if name in _NOTES else ""
        parts.append(f"{name}: {what}; {model.rows(name):,} rows\n  {columns}{note}")
    return "\n".join(parts)


def columns_of(model: "KnowledgeModel", table: str) -> Mapping[str, str]:
    """Return the columns of a table, with their types as SQL names them."""
    return {name: sql_type(dtype) for name, dtype in model.scan(table).collect_schema().items()}


def sql_type(dtype: Any) -> str:
    """Write a type as SQL does."""
    if isinstance(dtype, pl.List):
        return f"{sql_type(dtype.inner)}[]"
    if isinstance(dtype, pl.Struct):
        parts = ", ".join(f"{part.name} {sql_type(part.dtype)}" for part in dtype.fields)
        return f"STRUCT({parts})"
    names = {pl.String: "VARCHAR", pl.Boolean: "BOOLEAN", pl.Float64: "DOUBLE", pl.Float32: "FLOAT"}
    if dtype in names:
        return names[dtype]
    if dtype.is_integer():
        return "BIGINT" if dtype in (pl.Int64, pl.UInt64) else "INTEGER"
    return str(dtype).upper()

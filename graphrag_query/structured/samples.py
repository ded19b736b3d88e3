"""What a model is shown of an index before it writes a query: columns, values, names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from graphrag_query.structured.schema import sql_schema
from graphrag_query.structured.tables import table_files

if TYPE_CHECKING:
    from graphrag_query.retrieval.index_store import KnowledgeModel

# Rows of a table that samples are taken from, and letters of a value that are shown.
ROWS_READ = 5_000
LONGEST_VALUE = 60
# Columns whose values say nothing: ids, and texts that are too long to compare with.
_LEFT_OUT = frozenset({"id", "text", "raw_data", "full_content", "full_content_json", "summary"})
_LEFT_OUT_ENDINGS = ("_id", "_ids", "description", "explanation")


def sampled_schema(model: "KnowledgeModel", n_values: int) -> str:
    """Describe the tables, and give the most frequent values of each column of short texts."""
    lines = [sql_schema(model)]
    if n_values:
        lines.append("\nValues, the most frequent first:")
        for table in table_files(model):
            lines += _samples(model, table, n_values)
    return "\n".join(lines)


def _samples(model: "KnowledgeModel", table: str, n_values: int) -> list[str]:
    schema = model.scan(table).collect_schema()
    names = [
        name
        for name, dtype in schema.items()
        if dtype == pl.String and name not in _LEFT_OUT and not name.endswith(_LEFT_OUT_ENDINGS)
    ]
    rows = model.scan(table).select(names).head(ROWS_READ).collect() if names else pl.DataFrame()
    lines = []
    for name in names:
        values = rows[name].drop_nulls()
        counts = values.filter(values != "").value_counts(sort=True, name="n").head(n_values)
        if counts.height:
            shown = ", ".join(repr(value[:LONGEST_VALUE]) for value in counts[name])
            lines.append(f"{table}.{name}: {shown}")
    return lines


def names_near(model: "KnowledgeModel", texts: Sequence[str], most: int) -> list[str]:
    """Return the titles of the entities that resemble some texts, by name and by vector."""
    from graphrag_query.question.entity_linking import names_in_question

    if not texts:
        return []
    found: dict[str, None] = {}
    named = [named.entity for text in texts for named in names_in_question(model, text)]
    if named:
        found |= dict.fromkeys(model.entities(dict.fromkeys(named))["title"])
    if model.has("entity_description"):
        table = model.vectors("entity_description")
        for vector in model.embed(list(texts)):
            found |= dict.fromkeys(table.nearest(vector, most, ["title"])["title"])
    return list(found)[:most]

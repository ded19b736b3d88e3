"""The tables of an index for queries: files, columns, sample values, and the origin of rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.errors import SettingsError
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.table_store import TableStore
from graphrag_query.question.mentions import Mentions

if TYPE_CHECKING:
    from graphrag_query.retrieval.index_store import IndexStore

# Notes on columns whose names do not explain them.
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
# Rows of a table that are sampled, and characters of a value that are shown.
MAX_SAMPLED_ROWS = 5_000
MAX_VALUE_CHARS = 60
# Columns without useful values: ids, and texts that are too long to compare.
_LEFT_OUT = frozenset({"id", "text", "raw_data", "full_content", "full_content_json", "summary"})
_LEFT_OUT_ENDINGS = ("_id", "_ids", "description", "explanation")
# By table: the name by which rows are cited, the column of their number, and their key columns.
_CITED = {
    "entities": ("Entities", "human_readable_id", ("id", "title")),
    "text_units": ("Sources", "human_readable_id", ("id",)),
    "relationships": ("Relationships", "human_readable_id", ("id",)),
    "community_reports": ("Reports", "community", ("id",)),
    "covariates": ("Claims", "human_readable_id", ("id",)),
}


def table_files(index: "IndexStore") -> Mapping[str, Path]:
    """Return the Parquet files of the public and user-defined tables by name.

    Raises
    ------
    TableError
        One of them is missing or damaged.
    SettingsError
        The index is restricted by filters, and queries would not be.
    """
    if index.filters:
        raise SettingsError(
            "Queries read the tables whole: ask the index without filters, and write the "
            "conditions into the query."
        )
    index.check_version()
    if not isinstance(index.backend, TableStore):
        return index.backend.public_files()
    files = {}
    for name, stored in sorted(index.version.tables.items()):
        is_public = name not in TABLES or TABLES[name].kind == "public"
        if is_public and (stored.file or "").endswith(".parquet"):
            # Raises if the file is missing or damaged.
            index.backend.scan(name, stored)
            files[name] = index.backend.output / str(stored.file)
    return files


def sql_schema(index: "IndexStore") -> str:
    """Describe the tables: what one row is, how many rows there are, the columns."""
    parts = []
    for name in table_files(index):
        known = TABLES.get(name)
        row = f"one row is {known.row}" if known else "written by a step of one's own"
        types = index.scan(name).collect_schema().items()
        columns = ", ".join(f"{column} {_sql_type(dtype)}" for column, dtype in types)
        note = f"\n  {_NOTES[name]}" if name in _NOTES else ""
        parts.append(f"{name}: {row}; {index.rows(name):,} rows\n  {columns}{note}")
    return "\n".join(parts)


def _sql_type(dtype: Any) -> str:
    """Return the name of a type in SQL."""
    if isinstance(dtype, pl.List):
        return f"{_sql_type(dtype.inner)}[]"
    if isinstance(dtype, pl.Struct):
        parts = ", ".join(f"{part.name} {_sql_type(part.dtype)}" for part in dtype.fields)
        return f"STRUCT({parts})"
    names = {pl.String: "VARCHAR", pl.Boolean: "BOOLEAN", pl.Float64: "DOUBLE", pl.Float32: "FLOAT"}
    if dtype in names:
        return names[dtype]
    if dtype.is_integer():
        return "BIGINT" if dtype in (pl.Int64, pl.UInt64) else "INTEGER"
    return str(dtype).upper()


def sampled_schema(index: "IndexStore", n_values: int) -> str:
    """Describe the tables, with the most frequent values of each column of short texts."""
    lines = [sql_schema(index)]
    if n_values:
        lines.append("\nValues, the most frequent first:")
        for table in table_files(index):
            lines += _samples(index, table, n_values)
    return "\n".join(lines)


def _samples(index: "IndexStore", table: str, n_values: int) -> list[str]:
    names = [
        name
        for name, dtype in index.scan(table).collect_schema().items()
        if dtype == pl.String and name not in _LEFT_OUT and not name.endswith(_LEFT_OUT_ENDINGS)
    ]
    if not names:
        return []
    rows = index.scan(table).select(names).head(MAX_SAMPLED_ROWS).collect()
    lines = []
    for name in names:
        values = rows[name].drop_nulls()
        counts = values.filter(values != "").value_counts(sort=True, name="n").head(n_values)
        if counts.height:
            shown = ", ".join(repr(value[:MAX_VALUE_CHARS]) for value in counts[name])
            lines.append(f"{table}.{name}: {shown}")
    return lines


def names_near(index: "IndexStore", texts: Sequence[str], most: int) -> list[str]:
    """Return the titles of the entities nearest to some texts, by name and by vector."""
    if not texts:
        return []
    found: dict[str, None] = {}
    named = [m.entity for text in texts for m in Mentions(index, text).entities]
    if named:
        found |= dict.fromkeys(index.entities(dict.fromkeys(named))["title"])
    if index.has("entity_description"):
        table = index.vectors("entity_description")
        for vector in index.embed(list(texts)):
            found |= dict.fromkeys(table.nearest(vector, most, ["title"])["title"])
    return list(found)[:most]


def identify_rows(index: "IndexStore", rows: pl.DataFrame) -> tuple[str, pl.DataFrame]:
    """Return the name by which the rows of a query are cited, and the rows with their numbers.

    They are rows of a table if one column holds ids of that table, or titles of entities, in
    every row. Otherwise their name is Rows, they are numbered from 1, and cannot be cited.
    """
    files = table_files(index)
    texts = [
        rows[name]
        for name, dtype in rows.schema.items()
        if dtype == pl.String and rows.height and not rows[name].null_count()
    ]
    for table, (name, number, keys) in _CITED.items():
        if table not in files:
            continue
        for key in keys:
            for values in texts:
                known = (
                    index.scan(table)
                    .select(pl.col(key).alias("key"), pl.col(number).cast(pl.Int64).alias("number"))
                    .filter(pl.col("key").is_in(values.unique().implode()))
                    .collect()
                )
                if known.height and values.is_in(known["key"].implode()).all():
                    numbers = dict(known.iter_rows())
                    return name, _numbered(rows, [numbers[value] for value in values])
    return "Rows", _numbered(rows, range(1, rows.height + 1))


def _numbered(rows: pl.DataFrame, numbers: Sequence[int]) -> pl.DataFrame:
    """Insert the numbers as first column; lists and objects become text."""
    nested = [name for name, dtype in rows.schema.items() if dtype.is_nested()]
    texts = [
        pl.Series(name, [str(value.to_list() if isinstance(value, pl.Series) else value)
                         for value in rows[name]], pl.String)
        for name in nested
    ]  # fmt: skip
    return rows.with_columns(texts).insert_column(0, pl.Series("_number", numbers, pl.Int64))

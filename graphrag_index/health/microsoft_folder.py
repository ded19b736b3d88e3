"""A folder of tables as Microsoft GraphRAG 0 to 3 writes it, as it is: nothing is derived but
the members of communities, where only the table of nodes has them.
"""

from pathlib import Path

import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.health.finding import Finding
from graphrag_index.health.opened_index import READ, Opened, Vectors, damaged_table
from graphrag_index.health.vector_checks import VECTOR_TABLES
from graphrag_index.microsoft.read_communities import members_from_nodes
from graphrag_index.microsoft.read_files import RawTable, find_folder, open_table, open_vectors
from graphrag_index.microsoft.read_tables import generation

# Columns of records: what is in them is not looked at anyway.
_RECORDS = ("raw_data", "metadata")


def open_folder(folder: Path) -> Opened:
    """Open the tables in a folder, or in the folder `output` in it.

    A table that cannot be read is a finding, not an error.

    Raises
    ------
    TableError
        There is no such folder, or no table in it.
    """
    found = find_folder(folder)
    notes: list[str] = []
    damaged: list[Finding] = []
    raw: dict[str, RawTable] = {}
    for name, path in found.files.items():
        try:
            raw[name] = open_table(name, path)
        except TableError as error:
            damaged.append(damaged_table(name, str(error), path))
            continue
        for column, dtype in raw[name].left_out.items():
            if column not in _RECORDS:
                notes.append(f"{name}.{column} is {dtype}: it is not looked at.")
    tables = {name: table.rows for name, table in raw.items() if name in READ}
    if "nodes" in raw and {"communities", "entities"} <= set(tables):
        tables["communities"] = _with_members(
            tables["communities"], raw["nodes"].rows, tables["entities"]
        )
    vectors, broken = open_vectors(found.place, found.files)
    damaged += [damaged_table(name, why, path) for name, (path, why) in broken.items()]
    lacking = [name for name in VECTOR_TABLES if name not in vectors]
    if lacking:
        notes.append(
            f"There are no vectors {', '.join(lacking)} in {found.place / 'lancedb'}: "
            "they are not looked at."
        )
    opened: dict[str, Vectors] = dict(vectors)
    made_by = f"Microsoft GraphRAG {generation(found.is_legacy, raw)}"
    return Opened(found.place, made_by, None, tables, opened, {}, damaged, notes)


def _with_members(
    communities: pl.LazyFrame, nodes: pl.LazyFrame, entities: pl.LazyFrame
) -> pl.LazyFrame:
    """Take the members of communities from the table of nodes, where only that has them."""
    columns = communities.collect_schema()
    if "entity_ids" in columns or "community" not in columns:
        return communities
    members = members_from_nodes(nodes, entities)
    if members is None:
        return communities
    return communities.join(members, on="community", how="left").with_columns(
        pl.col("entity_ids").fill_null([])
    )

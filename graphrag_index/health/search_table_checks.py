"""What searches look up must be made of the tables that lie beside it."""

import polars as pl

from graphrag_index.health.finding import Finding, Looked, number_of_rows
from graphrag_index.health.opened_index import Opened

# Search tables with a row for each row of a table.
_ROWS_OF = {
    "document_rows": "documents",
    "text_unit_rows": "text_units",
    "text_unit_vectors": "text_units",
    "entity_rows": "entities",
    "relationship_rows": "relationships",
    "community_rows": "communities",
    "report_rows": "community_reports",
    "claim_rows": "covariates",
}


def stale_search_tables(index: Opened) -> Looked:
    """Compare search tables with what they are made of: how many rows, and whose."""
    found: list[Finding] = []
    of = 0
    for name, table in _ROWS_OF.items():
        if name not in index.search_tables or not index.has(table):
            continue
        rows, wanted = index.search_tables[name], index.tables[table]
        n_rows, n_wanted = number_of_rows(rows), number_of_rows(wanted)
        of += n_wanted
        count = abs(n_rows - n_wanted)
        if not count and "id" in rows.collect_schema() and index.has(table, "id"):
            ids = pl.concat([rows.select(here="id"), wanted.select(there="id")], how="horizontal")
            differ = ids.select((pl.col("here") != pl.col("there")).sum())
            count = int(differ.collect(engine="streaming").item())
        if count:
            found.append(_finding(name, table, n_rows, n_wanted, count))
    found += _links(index)
    return Looked(of or None, tuple(found))


def _links(index: Opened) -> list[Finding]:
    """Each relationship is linked from both of its ends; entities and text units each way."""
    tables, found = index.search_tables, []
    if "relationships_of_entities" in tables and index.has("relationships"):
        n_rows = number_of_rows(tables["relationships_of_entities"])
        n_wanted = 2 * _n_linking(index)
        if n_rows != n_wanted:
            found.append(
                _finding(
                    "relationships_of_entities",
                    "relationships",
                    n_rows,
                    n_wanted,
                    abs(n_rows - n_wanted),
                )
            )
    if "communities_of_entities" in tables and index.has("communities", "entity_ids"):
        n_rows = number_of_rows(tables["communities_of_entities"])
        lengths = index.tables["communities"].select(pl.col("entity_ids").list.len().sum())
        n_wanted = int(lengths.collect(engine="streaming").item() or 0)
        if n_rows != n_wanted:
            found.append(
                _finding(
                    "communities_of_entities",
                    "communities",
                    n_rows,
                    n_wanted,
                    abs(n_rows - n_wanted),
                )
            )
    return found


def _n_linking(index: Opened) -> int:
    """Count the relationships between two entities; what was imported may have others."""
    rows = index.tables["relationships"]
    if not (index.has("relationships", "source_id") and index.has("entities", "id")):
        return number_of_rows(rows)
    known = index.tables["entities"].select(pl.col("id").hash()).drop_nulls()
    ends = rows.select(pl.col("source_id", "target_id").hash()).filter(
        pl.col("source_id") != pl.col("target_id")
    )
    for end in ("source_id", "target_id"):
        ends = ends.join(known, left_on=end, right_on="id", how="semi")
    return number_of_rows(ends)


def _finding(name: str, table: str, n_rows: int, n_wanted: int, count: int) -> Finding:
    means = (
        f"{name} has {n_rows:,} rows where {table} asks for {n_wanted:,}, or rows of other ids: "
        "searches would show the wrong rows. `graphrag-index run` writes it again if its file is "
        "deleted."
    )
    return Finding(name, count, n_wanted, (), means)

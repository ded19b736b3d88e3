"""The index turned round for searches: what each thing is linked with, and its row by number."""

import polars as pl

from graphrag_index.step import step
from graphrag_index.storage.search_tables import Frames, search_tables


@step(
    writes=[
        "entities_of_text_units",
        "text_units_of_entities",
        "relationships_of_entities",
        "communities_of_entities",
        "claims_of_entities",
        "entity_names",
        "title_names",
        "name_words",
        "name_sounds",
        "document_rows",
        "text_unit_rows",
        "entity_rows",
        "relationship_rows",
        "community_rows",
        "report_rows",
        "community_places",
        "claim_rows",
    ],
    code_version=3,
)
def create_search_tables(
    documents: pl.LazyFrame,
    text_units: pl.LazyFrame,
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
    mentions: pl.LazyFrame,
    communities: pl.LazyFrame,
    community_reports: pl.LazyFrame | None = None,
    covariates: pl.LazyFrame | None = None,
) -> Frames:
    """Write what searches look up: links by number, names in order, and rows without their ids.

    Everything is known by its number, which is its row in its table; a community keeps its
    number when others vanish, so its rows are looked up. What grows with the corpus is read
    and written batch by batch; of links only their numbers are in memory.
    """
    yield from search_tables(
        documents,
        text_units,
        entities,
        relationships,
        mentions,
        communities,
        community_reports,
        covariates,
    )

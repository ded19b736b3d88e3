"""Write the tables that searches look up."""

from graphrag_index.schema.tables import TABLES
from graphrag_index.step import step
from graphrag_index.storage import search_tables

# The vectors of text units come from generate_text_embeddings.
create_search_tables = step(
    writes=[
        table.name
        for table in TABLES.values()
        if table.kind == "mapped" and table.name != "text_unit_vectors"
    ],
    code_version=3,
)(search_tables.create_search_tables)

"""All tables of an index: one row, columns and types, row order.

The seven public tables begin with the columns of Microsoft GraphRAG 3, in its
order, with its types; our own columns follow. Ids are 32 hex digits of a hash
of normalised content. `human_readable_id` is the row number, and the number
that citations name; communities and reports are cited by `community`.

Character offsets count Unicode code points and are half open:
`documents.text[start_char:end_char]`.
"""

from collections.abc import Mapping
from hashlib import blake2b

import polars as pl

from graphrag_index.schema.internal_tables import INTERNAL_TABLES
from graphrag_index.schema.search_table_definitions import SEARCH_TABLES
from graphrag_index.schema.table import EVIDENCE, FINDINGS, INTEGERS, STRINGS, Table

PUBLIC_TABLES = [
    Table(
        "documents",
        "one document",
        "path of the file, then position in it",
        {
            "id": pl.String,
            "human_readable_id": pl.Int64,
            "title": pl.String,
            "text": pl.String,
            "text_unit_ids": STRINGS,
            "creation_date": pl.String,
            "raw_data": pl.String,
            "path": pl.String,
            "metadata": pl.String,
            "language": pl.String,  # ISO 639-1, or the script's name, or "und"
        },
        nullable=("raw_data", "metadata"),
    ),
    Table(
        "text_units",
        "one text unit: a passage of a document, cut to fit a prompt",
        "document, then position",
        {
            "id": pl.String,
            "human_readable_id": pl.Int64,
            "text": pl.String,
            "n_tokens": pl.Int64,
            "document_id": pl.String,
            "entity_ids": STRINGS,
            "relationship_ids": STRINGS,
            "covariate_ids": STRINGS,
            "start_char": pl.Int64,
            "end_char": pl.Int64,
            "headings": pl.String,
            "metadata": pl.String,
        },
        nullable=("metadata",),
    ),
    Table(
        "entities",
        "one entity",
        "first mention",
        {
            "id": pl.String,
            "human_readable_id": pl.Int64,
            "title": pl.String,
            "type": pl.String,
            "description": pl.String,
            "text_unit_ids": STRINGS,  # each once, in order
            "frequency": pl.Int64,  # number of text units that name it
            "degree": pl.Int64,  # number of distinct neighbours
            "x": pl.Float64,  # position in a drawing, about -1 to 1; null without layout
            "y": pl.Float64,
            "aliases": STRINGS,  # other forms of the name in the text
            "evidence": EVIDENCE,
        },
        nullable=("x", "y"),
    ),
    Table(
        "entity_values",
        "one number, amount or date in the title or the description of an entity",
        "entity, the title before the description, then start",
        {
            "entity": pl.Int64,  # human_readable_id of the entity
            "field": pl.String,  # title or description
            "kind": pl.String,  # number, money, percent, measure or date
            "value": pl.Float64,  # null for dates
            "unit": pl.String,  # currency by ISO 4217, % or a unit; null for others
            "start_date": pl.Date,  # first day that a date means; null for others
            "end_date": pl.Date,  # last day
            "text": pl.String,  # the words themselves
            "start_char": pl.Int64,  # in the field
            "end_char": pl.Int64,
        },
        nullable=("value", "unit", "start_date", "end_date"),
    ),
    Table(
        "relationships",
        "one undirected relationship between two entities",
        "first evidence",
        {
            "id": pl.String,
            "human_readable_id": pl.Int64,
            "source": pl.String,  # title of an entity
            "target": pl.String,
            "description": pl.String,
            "weight": pl.Float64,  # greater than 0
            "combined_degree": pl.Int64,
            "text_unit_ids": STRINGS,
            "source_id": pl.String,
            "target_id": pl.String,
            "evidence": EVIDENCE,
            "type": pl.String,  # empty if it has none
        },
        nullable=(),
    ),
    Table(
        "mentions",
        "one place where a text unit names an entity",
        "text unit, then start",
        {
            "entity": pl.Int32,  # human_readable_id of the entity
            "text_unit": pl.Int32,  # human_readable_id of the text unit
            "start_char": pl.Int32,  # in the document
            "end_char": pl.Int32,
        },
        nullable=(),
    ),
    Table(
        "communities",
        "one community of the hierarchy",
        "level, then community",
        {
            "id": pl.String,
            "human_readable_id": pl.Int64,
            "community": pl.Int64,
            "level": pl.Int64,  # 0 is the coarsest
            "parent": pl.Int64,  # -1 at level 0
            "children": INTEGERS,
            "title": pl.String,
            "entity_ids": STRINGS,
            "relationship_ids": STRINGS,  # both ends are members; sorted
            "text_unit_ids": STRINGS,  # of those relationships; in islands of the entities too
            "period": pl.String,  # latest date that the documents behind it state, or empty
            "size": pl.Int64,
            "island": pl.Boolean,  # gathered from small components without links between them
        },
        nullable=(),
    ),
    Table(
        "community_lineage",
        "one community of this version or the last, and how it changed",
        "level, then community",
        {
            "community": pl.Int64,
            "level": pl.Int64,
            "status": pl.String,  # kept, grown, shrunk, split, merged, born or died
            "size": pl.Int64,  # 0 if it died
            "previous_size": pl.Int64,  # 0 if it is new
            "overlap": pl.Float64,  # members in common / members of either; 0 if new or gone
            "came_from": INTEGERS,  # earlier communities of the level with members in this one
            "went_to": INTEGERS,  # present communities with members of the earlier one
        },
        nullable=(),
    ),
    Table(
        "community_reports",
        "the report on one community",
        "level descending, then community",
        {
            "id": pl.String,
            "human_readable_id": pl.Int64,
            "community": pl.Int64,
            "level": pl.Int64,
            "parent": pl.Int64,
            "children": INTEGERS,
            "title": pl.String,
            "summary": pl.String,
            "full_content": pl.String,
            "rank": pl.Float64,  # 0 to 10
            "rating_explanation": pl.String,
            "findings": FINDINGS,
            "full_content_json": pl.String,
            "period": pl.String,
            "size": pl.Int64,
        },
        nullable=(),
    ),
    Table(
        "covariates",
        "one claim about an entity",
        "text unit, then position",
        {
            "id": pl.String,
            "human_readable_id": pl.Int64,
            "covariate_type": pl.String,
            "type": pl.String,
            "description": pl.String,
            "subject_id": pl.String,
            "object_id": pl.String,
            "status": pl.String,
            "start_date": pl.String,
            "end_date": pl.String,
            "source_text": pl.String,
            "text_unit_id": pl.String,
        },
        nullable=(
            "type",
            "description",
            "object_id",
            "status",
            "start_date",
            "end_date",
            "source_text",
        ),
    ),
]

TABLES: Mapping[str, Table] = {
    table.name: table for table in [*PUBLIC_TABLES, *INTERNAL_TABLES, *SEARCH_TABLES]
}


def content_id(*parts: str) -> str:
    """Hash the parts of a row's identity to 32 hex digits.

    Each part is preceded by its length, so that ("ab", "c") and ("a", "bc") differ.
    `content_ids` hashes many rows at once.
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()

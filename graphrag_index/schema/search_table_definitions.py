"""The tables that searches look rows up in, and those of the vectors."""

from functools import partial

import polars as pl

from graphrag_index.schema.table import FINDINGS, NUMBERS, PLACES, STRINGS, VECTOR, Table

# Arrow files that searches read row by row, and tables in LanceDB.
_mapped = partial(Table, kind="mapped", nullable=())
_vectors = partial(Table, kind="vectors", nullable=())

SEARCH_TABLES = [
    _mapped(
        "entities_of_text_units",
        "one entity that a text unit names or is about",
        "text unit, then entity",
        {
            "text_unit": pl.Int32,
            "entity": pl.Int32,
            "about": pl.Boolean,  # the text unit tells about it
            "n_mentions": pl.Int32,  # 0 if only the title of its document names it
        },
    ),
    _mapped(
        "text_units_of_entities",
        "the same pair, in order of the entity",
        "entity, then text unit",
        {
            "entity": pl.Int32,
            "text_unit": pl.Int32,
            "about": pl.Boolean,
            "n_mentions": pl.Int32,
        },
    ),
    _mapped(
        "relationships_of_entities",
        "one end of one relationship",
        "entity, then weight descending, then relationship",
        {
            "entity": pl.Int32,
            "neighbour": pl.Int32,
            "relationship": pl.Int32,
            "weight": pl.Float32,
        },
    ),
    _mapped(
        "communities_of_entities",
        "one community that holds an entity",
        "entity, then level, then community",
        {"entity": pl.Int32, "level": pl.Int32, "community": pl.Int32},
    ),
    _mapped(
        "claims_of_entities",
        "one claim whose subject or object is the name of an entity",
        "entity, then claim",
        {"entity": pl.Int32, "claim": pl.Int32},  # the claim by its row in covariates
    ),
    _mapped(
        "entity_names",
        "one normalized name of an entity, its title or an alias",
        "name, then entity",
        {"name": pl.String, "entity": pl.Int32},
    ),
    _mapped(
        "title_names",
        "one normalized name of a document: its title, with or without its brackets",
        "name, then document",
        {"name": pl.String, "document": pl.Int32},
    ),
    _mapped(
        "name_words",
        "one word of normalized names, with the entities whose names contain it",
        "word",
        {"word": pl.String, "entities": NUMBERS},  # entities by degree descending, then number
    ),
    _mapped(
        "name_sounds",
        "one phonetic key, with the words that share it",
        "sound",
        {"sound": pl.String, "words": NUMBERS},  # rows of name_words, ascending
    ),
    _mapped(
        "document_rows",
        "one document without its text",
        "document",
        {
            "id": pl.String,
            "title": pl.String,
            "path": pl.String,
            "language": pl.String,
            "creation_date": pl.String,
            "metadata": pl.String,
        },
        nullable=("metadata",),
    ),
    _mapped(
        "text_unit_rows",
        "the columns of one text unit that searches read",
        "text unit",
        {
            "id": pl.String,
            "document": pl.Int32,
            "start_char": pl.Int32,
            "end_char": pl.Int32,
            "n_tokens": pl.Int32,
            "text": pl.String,
            "headings": pl.String,
            "metadata": pl.String,
        },
        nullable=("metadata",),
        long=True,
    ),
    _mapped(
        "text_unit_vectors",
        "the vector of one text unit, for searches that read many at once",
        "text unit",
        {"vector": VECTOR},
        long=True,
    ),
    _mapped(
        "entity_rows",
        "the columns of one entity that searches read",
        "entity",
        {
            "id": pl.String,
            "title": pl.String,
            "type": pl.String,
            "description": pl.String,
            "degree": pl.Int32,
            "frequency": pl.Int32,
            "aliases": STRINGS,
            "evidence": PLACES,
        },
    ),
    _mapped(
        "relationship_rows",
        "the columns of one relationship that searches read",
        "relationship",
        {
            "source": pl.Int32,  # number of the entity
            "target": pl.Int32,
            "type": pl.String,
            "description": pl.String,
            "weight": pl.Float32,
            "text_units": NUMBERS,
            "evidence": PLACES,
        },
    ),
    _mapped(
        "community_rows",
        "one community with its position in the hierarchy",
        "level, then community",
        {
            "community": pl.Int32,
            "level": pl.Int32,
            "parent": pl.Int32,
            "children": NUMBERS,
            "title": pl.String,
            "size": pl.Int32,
            "entities": NUMBERS,  # ascending
        },
    ),
    _mapped(
        "report_rows",
        "the columns of one report that searches read; the full content is beside its vector",
        "level descending, then community",
        {
            "community": pl.Int32,
            "level": pl.Int32,
            "title": pl.String,
            "summary": pl.String,
            "findings": FINDINGS,
            "rank": pl.Float32,
        },
    ),
    _mapped(
        "community_places",
        "the row numbers of one community; community numbers have gaps",
        "community",
        {
            "community": pl.Int32,
            "row": pl.Int32,  # in communities and community_rows
            # In community_reports, report_rows and community_full_content; -1 if there is none.
            "report": pl.Int32,
        },
    ),
    _mapped(
        "claim_rows",
        "the columns of one claim that searches read",
        "claim",
        {
            "subject": pl.String,
            "object": pl.String,
            "type": pl.String,
            "status": pl.String,
            "description": pl.String,
            "start_date": pl.String,
            "end_date": pl.String,
            "source_text": pl.String,
            "text_unit": pl.Int32,
        },
        nullable=(
            "object",
            "type",
            "status",
            "description",
            "start_date",
            "end_date",
            "source_text",
        ),
    ),
    _vectors(
        "text_unit_text",
        "the vector of one text unit's text",
        "text unit",
        {
            "id": pl.String,
            "human_readable_id": pl.Int64,
            "document_id": pl.String,
            "text": pl.String,
            "headings": pl.String,
            "metadata": pl.String,
            "vector": VECTOR,
        },
        nullable=("metadata",),
        stemmed=True,
    ),
    _vectors(
        "entity_description",
        "the vector of one entity's `title:description`",
        "entity",
        {
            "id": pl.String,
            "human_readable_id": pl.Int64,
            "title": pl.String,
            "type": pl.String,
            "degree": pl.Int64,
            "text": pl.String,
            "vector": VECTOR,
        },
    ),
    _vectors(
        "community_full_content",
        "the vector of one report's full content",
        "report",
        {
            "id": pl.String,
            "community": pl.Int64,
            "level": pl.Int64,
            "title": pl.String,
            "rank": pl.Float64,
            "text": pl.String,
            "vector": VECTOR,
        },
    ),
]

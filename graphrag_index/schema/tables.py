"""Every table of an index: what one row is, its columns and types, its row order.

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

from graphrag_index.schema.search_table_definitions import SEARCH_TABLES
from graphrag_index.schema.table import EVIDENCE, FINDINGS, HASHES, INTEGERS, STRINGS, Table

_DEFINITIONS = [
    Table(
        "input_documents",
        "one document as it was read",
        "path of the file, then position in it",
        {
            "id": pl.String,
            "title": pl.String,
            "text": pl.String,
            "creation_date": pl.String,  # as the document states it; empty if it does not
            "raw_data": pl.String,  # the record as JSON; null for plain files
            "path": pl.String,  # relative to the input folder, with /
            "metadata": pl.String,  # JSON object of the metadata columns; null if none are named
        },
        "internal",
        nullable=("raw_data", "metadata"),
    ),
    Table(
        "unread_files",
        "one file or record that could not be read",
        "path",
        {"path": pl.String, "reason": pl.String},
        "internal",
        nullable=(),
    ),
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
        "base_text_units",
        "one text unit, before it is linked",
        "document, then position",
        {
            "id": pl.String,
            "human_readable_id": pl.Int64,
            "text": pl.String,
            "n_tokens": pl.Int64,
            "document_id": pl.String,
            "start_char": pl.Int64,
            "end_char": pl.Int64,
            "headings": pl.String,  # "Chapter > Section"; empty outside of any heading
            "metadata": pl.String,
        },
        "internal",
        nullable=("metadata",),
    ),
    Table(
        "sentences",
        "one sentence, heading, list item or table row of a document",
        "document, then position",
        {
            "document": pl.Int32,  # human_readable_id of the document
            "start_char": pl.Int32,
            "end_char": pl.Int32,
            "quotable": pl.Boolean,  # a whole sentence that makes sense by itself
            "line": pl.Int32,  # hash of the line that it begins in; 0 if that is long
        },
        "internal",
        nullable=(),
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
        "text_unit_findings",
        "what a model found in one text unit, in offsets of the text unit",
        "text unit",
        {
            # Hash of all that was asked of the model; empty if it did not answer all.
            "input_hash": pl.String,
            "request_keys": STRINGS,  # keys of the requests in the ledger
            "reply_hashes": STRINGS,  # hashes of the replies
            "dropped": pl.Int64,  # records of the replies that were no good
            "entities": pl.List(
                pl.Struct(
                    {
                        "number": pl.Int32,  # equal names of a text unit have equal numbers
                        "name": pl.String,
                        "type": pl.String,
                        "description": pl.String,
                        "start_char": pl.Int32,
                        "end_char": pl.Int32,
                        "forms": STRINGS,
                    }
                )
            ),
            "mentions": pl.List(
                pl.Struct({"entity": pl.Int32, "start_char": pl.Int32, "end_char": pl.Int32})
            ),
            "relationships": pl.List(
                pl.Struct(
                    {
                        "source": pl.Int32,
                        "target": pl.Int32,
                        "type": pl.String,
                        "description": pl.String,
                        "strength": pl.Float64,
                        "start_char": pl.Int32,
                        "end_char": pl.Int32,
                    }
                )
            ),
        },
        "internal",
        nullable=(),
    ),
    Table(
        "extracted_entities",
        "one entity as a model found it; `human_readable_id` numbers them for `raw_mentions`",
        "first mention",
        {
            "human_readable_id": pl.Int64,
            "title": pl.String,
            "type": pl.String,
            "descriptions": STRINGS,  # each once, in the order of the text units
            "description_text_units": INTEGERS,  # the first that gives each
            "text_units": INTEGERS,  # numbers of base_text_units, ascending
            "types": STRINGS,  # that each of the text units gives; empty if none
            "aliases": STRINGS,
            "evidence": EVIDENCE,
        },
        "internal",
        nullable=(),
    ),
    Table(
        "extracted_relationships",
        "one directed relationship of one type as a model found it, between `extracted_entities`",
        "first evidence",
        {
            "source": pl.Int64,
            "target": pl.Int64,
            "type": pl.String,
            "descriptions": STRINGS,
            "description_text_units": INTEGERS,  # the first that gives each
            "weight": pl.Float64,  # sum of the strengths, 1 to 10 each
            "text_units": INTEGERS,
            "evidence": EVIDENCE,
        },
        "internal",
        nullable=(),
    ),
    Table(
        "description_summaries",
        "one description that was made of several",
        "entities, then relationships, in the order of their tables",
        {
            # Hash of all that it was made of; empty if a model did not answer all.
            "input_hash": pl.String,
            "request_keys": STRINGS,  # keys of the requests in the ledger; none if they were joined
            "reply_hashes": STRINGS,  # hashes of the replies
            "description": pl.String,
        },
        "internal",
        nullable=(),
    ),
    Table(
        "raw_entities",
        "one entity as extraction found it; `human_readable_id` numbers them for `raw_mentions`",
        "first mention",
        {
            "human_readable_id": pl.Int64,
            "title": pl.String,
            "type": pl.String,
            "description": pl.String,
            "aliases": STRINGS,
            "evidence": EVIDENCE,
        },
        "internal",
        nullable=(),
    ),
    Table(
        "raw_relationships",
        "one relationship as extraction found it, between two `raw_entities`",
        "first evidence",
        {
            "source": pl.Int64,
            "target": pl.Int64,
            "description": pl.String,
            "weight": pl.Float64,
            "text_units": INTEGERS,  # numbers of base_text_units, ascending
            "evidence": EVIDENCE,
            "type": pl.String,  # empty if it has none
        },
        "internal",
        nullable=(),
    ),
    Table(
        "raw_mentions",
        "one place where a text unit names a raw entity",
        "text unit, then start",
        {
            "entity": pl.Int32,  # number of the raw entity
            "text_unit": pl.Int32,  # number of the base text unit
            "start_char": pl.Int32,  # in the document
            "end_char": pl.Int32,
        },
        "internal",
        nullable=(),
    ),
    Table(
        "given_ids",
        "one id that a graph had before it was read",
        "entities, then relationships, in the order of their tables",
        {
            "table": pl.String,  # entities or relationships
            "number": pl.Int64,  # of the raw entity; of a relationship that of its source
            "target": pl.Int64,  # of a relationship, number of the raw entity; null of entities
            "id": pl.String,
        },
        "internal",
        nullable=("target",),
    ),
    Table(
        "entity_assignments",
        "one extracted entity that became another, or took another title; of one that was divided, "
        "one of its text units. Who is not in it is itself",
        "extracted entity, then text unit",
        {
            "entity": pl.Int64,  # number of the extracted or raw entity
            "text_unit": pl.Int64,  # number of the base text unit; null: wherever it is named
            "document_id": pl.String,  # where that text unit lies; null as above
            "start_char": pl.Int64,
            "end_char": pl.Int64,
            "resolved": pl.Int64,  # number of the entity that it is
            "title": pl.String,
        },
        "internal",
        nullable=("text_unit", "document_id", "start_char", "end_char"),
    ),
    Table(
        "entity_resolutions",
        "one name that was merged, renamed or split, and who decided it",
        "title, then resolved title",
        {
            "title": pl.String,
            "resolved": pl.String,
            "score": pl.Float64,  # 0 to 1; 1 where a person decided
            "evidence": STRINGS,
            "decided_by": pl.String,  # rule, model or person
        },
        "internal",
        nullable=(),
    ),
    Table(
        "doubtful_pairs",
        "two entities that may be one, which nobody has decided",
        "score descending, then title",
        {
            "title": pl.String,
            "other": pl.String,
            "score": pl.Float64,
            "evidence": STRINGS,
            "type": pl.String,
            "other_type": pl.String,
            "frequency": pl.Int64,  # number of text units that name it
            "other_frequency": pl.Int64,
            "model": pl.String,  # different, no answer; empty if none was asked
        },
        "internal",
        nullable=(),
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
            "island": pl.Boolean,  # gathered from small components that nothing links
        },
        nullable=(),
    ),
    Table(
        "community_lineage",
        "what became of one community of this version or of the one before",
        "level, then community",
        {
            "community": pl.Int64,
            "level": pl.Int64,
            # kept, grown, shrunk, split, merged, born or died
            "status": pl.String,
            "size": pl.Int64,  # 0 if it died
            "previous_size": pl.Int64,  # 0 if it is new
            "overlap": pl.Float64,  # members in common / members of either; 0 if new or gone
            "came_from": INTEGERS,  # earlier communities of the level with members in this one
            "went_to": INTEGERS,  # communities of now with members of the earlier one
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
        "report_evidence",
        "one report that a model wrote, and the evidence on which it was written",
        "as in community_reports",
        {
            "community": pl.Int64,
            "asked": pl.String,  # hash of model, prompt and settings
            "request": pl.String,  # what the ledger knows it by
            "row_hashes": HASHES,  # of entities, relationships and claims; each list ascending
            "member_hashes": HASHES,  # of the ids of the entities
            "text_unit_hashes": HASHES,  # of the ids of the text units behind those rows
            "borrowed_text_unit_hashes": HASHES,  # of those behind reports that were shown
            # What the report cites, by the place in these lists, from 0 on.
            "entity_ids": STRINGS,
            "relationship_ids": STRINGS,
            "claim_ids": STRINGS,
            "communities": INTEGERS,
            "title": pl.String,
            "summary": pl.String,
            "findings": FINDINGS,
            "rank": pl.Float64,  # null if the reply had none
            "rating_explanation": pl.String,
        },
        "internal",
        nullable=("rank",),
    ),
    Table(
        "text_unit_claims",
        "what a model found claimed in one text unit",
        "text unit",
        {
            # Hash of all that was asked of the model; empty if it did not answer all.
            "input_hash": pl.String,
            "request_keys": STRINGS,  # keys of the requests in the ledger
            "reply_hashes": STRINGS,  # hashes of the replies
            "dropped": pl.Int64,  # claims of the replies that were no good
            "claims": pl.List(
                pl.Struct(
                    # In the order of the text; empty where nothing is known.
                    {
                        "subject": pl.String,
                        "object": pl.String,
                        "type": pl.String,
                        "status": pl.String,
                        "start_date": pl.String,
                        "end_date": pl.String,
                        "description": pl.String,
                        "source_text": pl.String,
                    }
                )
            ),
        },
        "internal",
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
    *SEARCH_TABLES,
]

TABLES: Mapping[str, Table] = {table.name: table for table in _DEFINITIONS}


def content_id(*parts: str) -> str:
    """Hash the parts of a row's identity to 32 hex digits.

    Parts are kept apart by their lengths, so that ("ab", "c") and ("a", "bc") differ. Of many
    rows `content_ids` makes them in half of the time.
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()

"""Internal tables: results that steps pass on, and rows that later runs reuse."""

from functools import partial

import polars as pl

from graphrag_index.schema.table import EVIDENCE, FINDINGS, HASHES, INTEGERS, STRINGS, Table

_internal = partial(Table, kind="internal", nullable=())

# Rows between extraction and the graph. A model finds several descriptions of each entity and
# relationship; rules find one, and leave the lists about descriptions and types empty.
_ENTITY: dict[str, pl.DataType | type[pl.DataType]] = {
    "human_readable_id": pl.Int64,
    "title": pl.String,
    "type": pl.String,
    "description": pl.String,  # empty if `descriptions` still have to be summarized
    "descriptions": STRINGS,  # without duplicates, in the order of the text units
    "description_text_units": INTEGERS,  # the first text unit with each description
    "text_units": INTEGERS,  # numbers of base_text_units, ascending
    "types": STRINGS,  # in each of the text units; empty if none
    "aliases": STRINGS,
    "evidence": EVIDENCE,
}
_RELATIONSHIP: dict[str, pl.DataType | type[pl.DataType]] = {
    "source": pl.Int64,
    "target": pl.Int64,
    "type": pl.String,  # empty if it has none
    "description": pl.String,
    "descriptions": STRINGS,
    "description_text_units": INTEGERS,
    "weight": pl.Float64,  # of a model: sum of the strengths, 1 to 10 each
    "text_units": INTEGERS,
    "evidence": EVIDENCE,
}
_MENTION = {
    "entity": pl.Int32,  # number of the entity
    "text_unit": pl.Int32,  # number of the base text unit
    "start_char": pl.Int32,  # in the document
    "end_char": pl.Int32,
}
_GIVEN_ID = {
    "table": pl.String,  # entities or relationships
    "number": pl.Int64,  # of the entity; of a relationship that of its source
    "target": pl.Int64,  # of a relationship, number of the entity; null of entities
    "id": pl.String,
}

INTERNAL_TABLES = [
    _internal(
        "loaded_documents",
        "one document as a reader returned it",
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
        nullable=("raw_data", "metadata"),
    ),
    _internal(
        "unread_files",
        "one file or record that could not be read",
        "path",
        {"path": pl.String, "reason": pl.String},
    ),
    _internal(
        "base_text_units",
        "one text unit before it is linked to entities",
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
        nullable=("metadata",),
    ),
    _internal(
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
    ),
    _internal(
        "text_unit_findings",
        "the findings of a model in one text unit; offsets are relative to the text unit",
        "text unit",
        {
            "input_hash": pl.String,  # empty if a request has no reply
            "request_keys": STRINGS,  # in the ledger
            "reply_hashes": STRINGS,
            "dropped": pl.Int64,  # invalid records of the replies
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
    ),
    _internal(
        "extracted_entities",
        "one entity as extraction found it; `extracted_mentions` refers to `human_readable_id`",
        "first mention",
        _ENTITY,
    ),
    _internal(
        "extracted_relationships",
        "one relationship between two `extracted_entities`; a model finds direction and type",
        "first evidence",
        _RELATIONSHIP,
    ),
    _internal(
        "extracted_mentions",
        "one place where a text unit names an extracted entity",
        "text unit, then start",
        _MENTION,
    ),
    _internal(
        "given_ids",
        "one id from a graph that was read instead of extracted",
        "entities, then relationships, in the order of their tables",
        _GIVEN_ID,
        nullable=("target",),
    ),
    _internal(
        "resolved_entities",
        "one entity after resolution merged, renamed and split the extracted ones",
        "first mention",
        _ENTITY,
    ),
    _internal(
        "resolved_relationships",
        "one relationship between two `resolved_entities`",
        "first evidence",
        _RELATIONSHIP,
    ),
    _internal(
        "resolved_mentions",
        "one place where a text unit names a resolved entity",
        "text unit, then start",
        _MENTION,
    ),
    _internal(
        "resolved_ids",
        "one of the `given_ids`, with the numbers of resolved entities",
        "as in given_ids",
        _GIVEN_ID,
        nullable=("target",),
    ),
    _internal(
        "entity_resolutions",
        "one name that was merged, renamed or split, with the source of the decision",
        "title, then resolved title",
        {
            "title": pl.String,
            "resolved": pl.String,
            "score": pl.Float64,  # 0 to 1; 1 where a person decided
            "evidence": STRINGS,
            "decided_by": pl.String,  # rule, model or person
        },
    ),
    _internal(
        "doubtful_pairs",
        "two entities that may be the same, without a decision",
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
            "model": pl.String,  # reply of the model; empty if none was asked
        },
    ),
    _internal(
        "description_summaries",
        "one description merged from several",
        "entities, then relationships, in the order of their tables",
        {
            "input_hash": pl.String,  # empty if a request has no reply
            "request_keys": STRINGS,  # in the ledger; none if no model was asked
            "reply_hashes": STRINGS,
            "description": pl.String,
        },
    ),
    _internal(
        "described_entities",
        "one resolved entity with one description",
        "first mention",
        {
            "human_readable_id": pl.Int64,
            "title": pl.String,
            "type": pl.String,
            "description": pl.String,
            "aliases": STRINGS,
            "evidence": EVIDENCE,
        },
    ),
    _internal(
        "described_relationships",
        "one resolved relationship with one description",
        "first evidence",
        {
            "source": pl.Int64,
            "target": pl.Int64,
            "type": pl.String,
            "description": pl.String,
            "weight": pl.Float64,
            "text_units": INTEGERS,
            "evidence": EVIDENCE,
        },
    ),
    _internal(
        "report_evidence",
        "one report that a model wrote, with the evidence that it is based on",
        "as in community_reports",
        {
            "community": pl.Int64,
            "prompt_hash": pl.String,  # of model, prompt and settings
            "request_key": pl.String,  # key in the ledger
            "row_hashes": HASHES,  # of entities, relationships and claims; each list ascending
            "member_hashes": HASHES,  # of the ids of the entities
            "text_unit_hashes": HASHES,  # of the ids of the text units behind those rows
            "borrowed_text_unit_hashes": HASHES,  # of text units behind reports in the prompt
            # Rows that the report cites; its citations are positions in these lists, from 0 on.
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
        nullable=("rank",),
    ),
    _internal(
        "text_unit_claims",
        "the claims that a model found in one text unit",
        "text unit",
        {
            "input_hash": pl.String,  # empty if a request has no reply
            "request_keys": STRINGS,  # in the ledger
            "reply_hashes": STRINGS,
            "dropped": pl.Int64,  # invalid claims of the replies
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
    ),
]

"""Definitions of all tables of an index: meaning of a row, row order, columns and types.

docs/tables.md explains each column. The seven public tables that Microsoft GraphRAG 3 also has
begin with Microsoft's columns, in the same order and with the same types; our own columns follow.
An id is a hash of normalized content, 32 hex digits. `human_readable_id` is the row number, and
the number in citations; communities and reports are cited by the number `community`.

Character offsets count Unicode code points. The end is exclusive:
`documents.text[start_char:end_char]`.
"""

from collections.abc import Mapping
from functools import partial
from hashlib import blake2b

from graphrag_index.schema.table import Table, define

_public = partial(define, kind="public")
_internal = partial(define, kind="internal")
_mapped = partial(define, kind="mapped")
_vectors = partial(define, kind="vectors")

_MENTION = "entity: int32, text_unit: int32, start_char: int32, end_char: int32"
_DEFINITIONS = [
    _public(
        "documents",
        "one document",
        "path of the file, then position in it",
        "id, human_readable_id: int64, title, text, text_unit_ids: strings, creation_date, "
        "raw_data?, path, metadata?, language",
    ),
    _public(
        "text_units",
        "one text unit: a passage of a document, cut to fit a prompt",
        "document, then position",
        "id, human_readable_id: int64, text, n_tokens: int64, document_id, entity_ids: strings, "
        "relationship_ids: strings, covariate_ids: strings, start_char: int64, end_char: int64, "
        "headings, metadata?",
    ),
    _public(
        "entities",
        "one entity",
        "first mention",
        "id, human_readable_id: int64, title, type, description, text_unit_ids: strings, "
        "frequency: int64, degree: int64, x?: float64, y?: float64, aliases: strings, "
        "evidence: evidence",
    ),
    _public(
        "entity_values",
        "one number, amount or date in the title or the description of an entity",
        "entity, the title before the description, then start",
        "entity: int64, field, kind, value?: float64, unit?, start_date?: date, end_date?: date, "
        "text, start_char: int64, end_char: int64",
    ),
    _public(
        "relationships",
        "one undirected relationship between two entities",
        "first evidence",
        "id, human_readable_id: int64, source, target, description, weight: float64, "
        "combined_degree: int64, text_unit_ids: strings, source_id, target_id, "
        "evidence: evidence, type",
    ),
    _public(
        "mentions",
        "one place where a text unit names an entity",
        "text unit, then start",
        _MENTION,
    ),
    _public(
        "communities",
        "one community of the hierarchy",
        "level, then community",
        "id, human_readable_id: int64, community: int64, level: int64, parent: int64, "
        "children: integers, title, entity_ids: strings, relationship_ids: strings, "
        "text_unit_ids: strings, period, size: int64, island: bool",
    ),
    _public(
        "community_lineage",
        "one community of this version or the last, and how it changed",
        "level, then community",
        "community: int64, level: int64, status, size: int64, previous_size: int64, "
        "overlap: float64, came_from: integers, went_to: integers",
    ),
    _public(
        "community_reports",
        "the report on one community",
        "level descending, then community",
        "id, human_readable_id: int64, community: int64, level: int64, parent: int64, "
        "children: integers, title, summary, full_content, rank: float64, rating_explanation, "
        "findings: findings, full_content_json, period, size: int64",
    ),
    _public(
        "covariates",
        "one claim about an entity",
        "text unit, then position",
        "id, human_readable_id: int64, covariate_type, type?, description?, subject_id, "
        "object_id?, status?, start_date?, end_date?, source_text?, text_unit_id",
    ),
    _internal(
        "loaded_documents",
        "one document as a reader returned it",
        "path of the file, then position in it",
        "id, title, text, creation_date, raw_data?, path, metadata?",
    ),
    _internal("unread_files", "one file or record that could not be read", "path", "path, reason"),
    _internal(
        "base_text_units",
        "one text unit before it is linked to entities",
        "document, then position",
        "id, human_readable_id: int64, text, n_tokens: int64, document_id, start_char: int64, "
        "end_char: int64, headings, metadata?",
    ),
    _internal(
        "sentences",
        "one sentence, heading, list item or table row of a document",
        "document, then position",
        "document: int32, start_char: int32, end_char: int32, quotable: bool, line: int32",
    ),
    _internal(
        "text_unit_findings",
        "the findings of a model in one text unit; offsets are relative to the text unit",
        "text unit",
        "input_hash, request_keys: strings, reply_hashes: strings, dropped: int64, "
        "entities: found_entities, mentions: found_mentions, relationships: found_relationships",
    ),
    # A model finds several descriptions of an entity or relationship. Rules find one description,
    # and leave the lists of descriptions and types empty.
    _internal(
        "extracted_entities",
        "one entity that was extracted, and resolved if the workflow does so; "
        "`extracted_mentions` refers to `human_readable_id`",
        "first mention",
        "human_readable_id: int64, title, type, description, descriptions: strings, "
        "description_text_units: integers, text_units: integers, types: strings, "
        "aliases: strings, evidence: evidence",
    ),
    _internal(
        "extracted_relationships",
        "one relationship between two `extracted_entities`; a model finds direction and type",
        "first evidence",
        "source: int64, target: int64, type, description, descriptions: strings, "
        "description_text_units: integers, weight: float64, text_units: integers, "
        "evidence: evidence",
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
        "table, number: int64, target?: int64, id",
    ),
    _internal(
        "entity_resolutions",
        "one name that was merged, renamed or split, with the source of the decision",
        "title, then resolved title",
        "title, resolved, score: float64, evidence: strings, decided_by",
    ),
    _internal(
        "doubtful_pairs",
        "two entities that may be the same, without a decision",
        "score descending, then title",
        "title, other, score: float64, evidence: strings, type, other_type, frequency: int64, "
        "other_frequency: int64, model",
    ),
    _internal(
        "description_summaries",
        "one description merged from several",
        "entities, then relationships, in the order of their tables",
        "input_hash, request_keys: strings, reply_hashes: strings, description",
    ),
    _internal(
        "described_entities",
        "one extracted entity with one description",
        "first mention",
        "human_readable_id: int64, title, type, description, aliases: strings, evidence: evidence",
    ),
    _internal(
        "described_relationships",
        "one extracted relationship with one description",
        "first evidence",
        "source: int64, target: int64, type, description, weight: float64, text_units: integers, "
        "evidence: evidence",
    ),
    _internal(
        "report_evidence",
        "one report that a model wrote, with the evidence that it is based on",
        "as in community_reports",
        "community: int64, prompt_hash, request_key, row_hashes: hashes, member_hashes: hashes, "
        "text_unit_hashes: hashes, borrowed_text_unit_hashes: hashes, entity_ids: strings, "
        "relationship_ids: strings, claim_ids: strings, communities: integers, title, summary, "
        "findings: findings, rank?: float64, rating_explanation",
    ),
    _internal(
        "text_unit_claims",
        "the claims that a model found in one text unit",
        "text unit",
        "input_hash, request_keys: strings, reply_hashes: strings, dropped: int64, claims: claims",
    ),
    _mapped(
        "entities_of_text_units",
        "one entity that a text unit names or is about",
        "text unit, then entity",
        "text_unit: int32, entity: int32, about: bool, n_mentions: int32",
    ),
    _mapped(
        "text_units_of_entities",
        "the same pair, in order of the entity",
        "entity, then text unit",
        "entity: int32, text_unit: int32, about: bool, n_mentions: int32",
    ),
    _mapped(
        "relationships_of_entities",
        "one end of one relationship",
        "entity, then weight descending, then relationship",
        "entity: int32, neighbour: int32, relationship: int32, weight: float32",
    ),
    _mapped(
        "communities_of_entities",
        "one community that holds an entity",
        "entity, then level, then community",
        "entity: int32, level: int32, community: int32",
    ),
    _mapped(
        "claims_of_entities",
        "one claim whose subject or object is the name of an entity",
        "entity, then claim",
        "entity: int32, claim: int32",
    ),
    _mapped(
        "entity_names",
        "one normalized name of an entity, its title or an alias",
        "name, then entity",
        "name, entity: int32",
    ),
    _mapped(
        "title_names",
        "one normalized name of a document: its title, with or without its brackets",
        "name, then document",
        "name, document: int32",
    ),
    _mapped(
        "name_words",
        "one word of normalized names, with the entities whose names contain it",
        "word",
        "word, entities: numbers",
    ),
    _mapped(
        "name_sounds",
        "one phonetic key, with the words that share it",
        "sound",
        "sound, words: numbers",
    ),
    _mapped(
        "document_rows",
        "one document without its text",
        "document",
        "id, title, path, language, creation_date, metadata?",
    ),
    _mapped(
        "text_unit_rows",
        "the columns of one text unit that searches read",
        "text unit",
        "id, document: int32, start_char: int32, end_char: int32, n_tokens: int32, text, "
        "headings, metadata?",
        long=True,
    ),
    _mapped(
        "text_unit_vectors",
        "the vector of one text unit, for searches that read many at once",
        "text unit",
        "vector: vector",
        long=True,
    ),
    _mapped(
        "entity_rows",
        "the columns of one entity that searches read",
        "entity",
        "id, title, type, description, degree: int32, frequency: int32, aliases: strings, "
        "evidence: places",
    ),
    _mapped(
        "relationship_rows",
        "the columns of one relationship that searches read",
        "relationship",
        "source: int32, target: int32, type, description, weight: float32, text_units: numbers, "
        "evidence: places",
    ),
    _mapped(
        "community_rows",
        "one community with its position in the hierarchy",
        "level, then community",
        "community: int32, level: int32, parent: int32, children: numbers, title, size: int32, "
        "entities: numbers",
    ),
    _mapped(
        "report_rows",
        "the columns of one report that searches read; the full content is beside its vector",
        "level descending, then community",
        "community: int32, level: int32, title, summary, findings: findings, rank: float32",
    ),
    _mapped(
        "community_places",
        "the row numbers of one community; community numbers have gaps",
        "community",
        "community: int32, row: int32, report: int32",
    ),
    _mapped(
        "claim_rows",
        "the columns of one claim that searches read",
        "claim",
        "subject, object?, type?, status?, description?, start_date?, end_date?, source_text?, "
        "text_unit: int32",
    ),
    _vectors(
        "text_unit_text",
        "the vector of one text unit's text",
        "text unit",
        "id, human_readable_id: int64, document_id, text, headings, metadata?, vector: vector",
        stemmed=True,
    ),
    _vectors(
        "entity_description",
        "the vector of one entity's `title:description`",
        "entity",
        "id, human_readable_id: int64, title, type, degree: int64, text, vector: vector",
    ),
    _vectors(
        "community_full_content",
        "the vector of one report's full content",
        "report",
        "id, community: int64, level: int64, title, rank: float64, text, vector: vector",
    ),
]

TABLES: Mapping[str, Table] = {table.name: table for table in _DEFINITIONS}
# Mapped tables that have one row for each row of a public table, and the public table.
ROWS_OF = {
    "document_rows": "documents",
    "text_unit_rows": "text_units",
    "text_unit_vectors": "text_units",
    "entity_rows": "entities",
    "relationship_rows": "relationships",
    "community_rows": "communities",
    "report_rows": "community_reports",
    "claim_rows": "covariates",
}
# For each vector table: the embedded table, and its columns, which are joined by a colon.
EMBEDDED_COLUMNS = {
    "text_unit_text": ("text_units", ("text",)),
    "entity_description": ("entities", ("title", "description")),
    "community_full_content": ("community_reports", ("full_content",)),
}


def content_id(*parts: str) -> str:
    """Return a hash of the parts that identify a row: 32 hex digits.

    The length of each part is hashed before the part, so that ("ab", "c") and ("a", "bc") differ.
    `content_ids` does the same for many rows.
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()

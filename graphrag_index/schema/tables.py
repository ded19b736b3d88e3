"""All tables of an index, by name; `tables.yaml` has their definitions."""

from collections.abc import Mapping
from hashlib import blake2b
from importlib.resources import files

import yaml

from graphrag_index.schema.table import Table, define

_DEFINITIONS = files(__package__).joinpath("tables.yaml").read_text(encoding="utf-8")
TABLES: Mapping[str, Table] = {
    name: define(name, **fields)
    for name, fields in yaml.load(_DEFINITIONS, yaml.CSafeLoader).items()
}
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


def derive_document_id(text: str, n_earlier: Mapping[bytes, int]) -> tuple[bytes, str]:
    """Return (hash of the text, id) of a document without an id of its own.

    `n_earlier` has the number of earlier documents with the same text, by the hash of the text.
    """
    key = bytes.fromhex(content_id("document", text, "0"))
    n = n_earlier.get(key, 0)
    return key, content_id("document", text, str(n)) if n else key.hex()

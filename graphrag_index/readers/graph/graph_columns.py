"""Columns of the given files: found by the settings, else by their usual names."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Literal

import polars as pl

from graphrag_index.errors import InputError
from graphrag_index.readers.document import listed
from graphrag_index.schema.settings.embedded_steps import ReadGraph
from graphrag_index.schema.table import STRINGS
from graphrag_index.text.normalize import letters

Kind = Literal["entities", "relationships", "text_units", "documents"]

# Usual column names of each field, the surest first; lower case, letters and digits only.
_TEXT_UNITS = ("textunitids", "textunits", "chunkids")
FIELDS: Mapping[Kind, Mapping[str, Sequence[str]]] = {
    "entities": {
        "id": ("id", "nodeid", "entityid", "uid", "key"),
        "title": ("title", "name", "label", "entity", "node", "entityname"),
        "type": ("type", "entitytype", "kind", "category", "class", "labels", "label"),
        "description": ("description", "desc", "summary", "definition", "about"),
        "aliases": ("aliases", "alias", "alsoknownas", "synonyms"),
        "text_unit_ids": _TEXT_UNITS,
    },
    "relationships": {
        "id": ("id", "edgeid", "relationshipid", "uid"),
        "source": ("source", "from", "start", "subject", "head", "src", "startid", "sourceid"),
        "target": (
            *("target", "to", "end", "object", "tail", "dst", "destination"),
            *("endid", "targetid"),
        ),
        "weight": ("weight", "strength", "score"),
        "type": (
            *("type", "relation", "relationship", "relationtype", "predicate", "label"),
            *("edgetype", "edgelabel", "kind"),
        ),
        "description": ("description", "desc", "summary"),
        "text_unit_ids": _TEXT_UNITS,
    },
    "text_units": {
        "id": ("id", "textunitid", "chunkid", "uid"),
        "text": ("text", "chunk", "content", "passage"),
        "document_id": ("documentid", "docid", "document"),
    },
    "documents": {
        "id": ("id", "documentid", "docid"),
        "title": ("title", "name"),
        "text": ("text", "content", "body"),
        "path": ("path", "file", "filename", "url"),
        "creation_date": ("creationdate", "date", "created"),
    },
}
_NEEDED: Mapping[Kind, Sequence[str]] = {
    "entities": ("title",),
    "relationships": ("source", "target"),
    "text_units": ("text",),
    "documents": ("id",),
}
# The setting that names the columns of each kind.
SETTING: Mapping[Kind, str] = {
    "entities": "entity_columns",
    "relationships": "relationship_columns",
    "text_units": "text_unit_columns",
    "documents": "document_columns",
}
# Headers of Neo4j: "personId:ID(Person)", ":START_ID", "born:int".
_NEO4J = re.compile(r"(.*?):([A-Za-z_]+)(?:\[\])?(?:\(.*\))?")
_NEO4J_MEANINGS = {"ID": "id", "START_ID": "startid", "END_ID": "endid", "TYPE": "type"}


def find_columns(
    kind: Kind, columns: Sequence[str], settings: ReadGraph, name: str, row_id: str | None = None
) -> dict[str, str]:
    """Map each field to its column, for the fields that the file has.

    `row_id` is the fallback column for the id.

    Raises
    ------
    InputError
        A required field has no column, or a configured column is missing.
    """
    named: Mapping[str, str | None] = getattr(settings, SETTING[kind])
    for field, column in named.items():
        if column is not None and column not in columns:
            raise InputError(
                f"{name} has no column {column!r}, which read_graph.{SETTING[kind]} names as the "
                f"{field}: its columns are {listed(columns, 20)}."
            )
    found = {field: column for field, column in named.items() if column is not None}
    taken = set(found.values())
    plain: dict[str, str] = {}
    for column in columns:
        plain.setdefault(_plain(column), column)
    for field, known in FIELDS[kind].items():
        if field in named:
            continue
        column = next(
            (plain[n] for n in map(letters, known) if n in plain and plain[n] not in taken),
            row_id if field == "id" else None,
        )
        if column is not None:
            found[field] = column
            taken.add(column)
    # The title falls back to the id.
    if kind == "entities" and "title" not in found and "title" not in named and "id" in found:
        found["title"] = found["id"]
    for field in _NEEDED[kind]:
        if field not in found:
            shown = [n for n in FIELDS[kind][field] if n.isascii()]
            raise InputError(
                f"{name} has no column for the {field} (known names: {', '.join(shown)}): name it "
                f"with read_graph.{SETTING[kind]}, such as {{{field}: COLUMN}}; "
                f"its columns are {listed(columns, 20)}."
            )
    return found


def _plain(column: str) -> str:
    """Reduce a column name to lower-case letters and digits; translate Neo4j's suffixes."""
    if match := _NEO4J.fullmatch(column.strip()):
        name, meaning = match.groups()
        if meaning == "LABEL":
            return "labels"
        column = _NEO4J_MEANINGS.get(meaning, name)
    return letters(column)


_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'')


def ids_of(cells: pl.Expr) -> pl.Expr:
    """Split a cell into ids at brackets, quotation marks, commas, semicolons, bars and spaces."""
    return cells.str.extract_all(r"[^\[\]'\",;|\s]+")


def aliases_of(cells: pl.Expr) -> pl.Expr:
    """Split a cell into names, which may contain apostrophes and spaces."""
    return cells.map_elements(_aliases, return_dtype=STRINGS)


def _aliases(cell: str) -> list[str]:
    """Split the names of one cell; commas separate only if no other delimiter occurs."""
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return re.split(r"[;|]" if re.search(r"[;|]", text) else ",", text)
    try:
        return [str(name) for name in json.loads(text) if name is not None]
    except ValueError:
        # A list as Python prints it, with either kind of quotation mark.
        quoted = [double or single for double, single in _QUOTED.findall(text)]
        inside = [re.sub(r"\\(.)", r"\1", name) for name in quoted]
        return inside or text[1:-1].split(",")

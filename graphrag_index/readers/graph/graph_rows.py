"""Rows of the user's graph files, with one column per known field.

The settings can name the column of a field. Otherwise, the field's usual column names are tried.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import polars as pl

from graphrag_index.errors import InputError, SettingsError, join_names
from graphrag_index.readers.document import describe_os_error
from graphrag_index.readers.graph.given_files import (
    NODE_ID_COLUMN,
    ROW_NUMBER_COLUMN,
    read_csv,
    read_graphml,
    read_parquet,
)
from graphrag_index.schema.settings.step_sections import ReadGraph
from graphrag_index.schema.tables import STRINGS, content_id
from graphrag_index.storage.atomic import digest_file
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.normalize import letters

FileKind = Literal["entities", "relationships", "text_units", "documents"]

# Usual column names by kind of file and field. Comments in the YAML file explain them.
_COLUMN_NAME_LISTS = read_lists("graphrag_index/readers/data/graph_columns")
_USUAL_COLUMN_NAMES: Mapping[FileKind, Mapping[str, str]] = _COLUMN_NAME_LISTS["fields"]
_GRAPHML = ".graphml"
_TABLES = (".parquet", ".csv", ".tsv")
_LIST_FIELDS = ("aliases", "text_unit_ids")
# Column names of Neo4j, such as "personId:ID(Person)", ":START_ID" and "born:int".
_NEO4J_COLUMN_NAME = re.compile(r"(.*?):([A-Za-z_]+)(?:\[\])?(?:\(.*\))?")
_QUOTED_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'')


@dataclass(frozen=True)
class FileRows:
    """Rows of one of the user's graph files.

    `frame` has one column per field of this kind of file. Values have collapsed white space; a
    missing value is null. The column `row` has the line or row number for messages. For entities,
    `key` has the id that relationships refer to.
    """

    name: str  # file name as in the settings
    unit: str  # "line" or "row": the meaning of the numbers in `row`
    frame: pl.DataFrame
    fields: frozenset[str]  # fields that have a column in the file
    attributes: tuple[str, ...] = ()  # columns whose values are appended to the description
    decimal_comma: bool = False  # whether 2,5 means 2.5, as in files delimited by semicolons

    def describe_row(self, row: int) -> str:
        return f"{self.name}, {self.unit} {row:,}"

    def check_values(self, field: str, fix: str) -> None:
        """Raise InputError if a row has no value of a field; `fix` ends the message."""
        empty = self.frame.filter(pl.col(field).fill_null("") == "")
        if len(empty):
            raise InputError(f"{self.describe_row(empty['row'][0])} has no {field}: {fix}.")

    def check_unique_ids(self, other_fix: str = "") -> None:
        """Raise InputError if an id is repeated; `other_fix` ends the message."""
        own = self.frame.select("id", "row").filter(pl.col("id").is_not_null())
        repeated = own.filter(pl.col("id").is_duplicated())
        if len(repeated):
            first = repeated.filter(id=repeated["id"][0])["row"]
            raise InputError(
                f"{self.describe_row(first[1])} has the id {repeated['id'][0]!r} of {self.unit} "
                f"{first[0]:,}: give each its own id{other_fix}."
            )


def _get_configured_files(settings: ReadGraph, root: Path) -> dict[FileKind, Path]:
    names = ((kind, getattr(settings, kind)) for kind in _USUAL_COLUMN_NAMES)
    return {kind: root / Path(name).expanduser() for kind, name in names if name is not None}


def find_given_files(settings: ReadGraph, root: Path) -> dict[FileKind, Path]:
    """Return the files that the settings name; raise InputError for a missing or wrong file."""
    if settings.entities is None and settings.relationships is None:
        fix = "name your files in read_graph.relationships and read_graph.entities."
        raise InputError(f"There is no graph to read: {fix}")
    if settings.documents is not None and settings.text_units is None:
        raise InputError(
            "read_graph.documents goes with read_graph.text_units: set read_graph.text_units to "
            "the file with the passages of the documents, or remove read_graph.documents."
        )
    found = _get_configured_files(settings, root)
    for kind, path in found.items():
        types = (*_TABLES, _GRAPHML) if kind in ("entities", "relationships") else _TABLES
        if path.suffix.lower() not in types:
            raise InputError(
                f"read_graph.{kind}: {getattr(settings, kind)} is of a type that is not read "
                f"here: name a file of type {', '.join(types)}."
            )
        if not path.is_file():
            what = "is not a file" if path.exists() else "does not exist"
            raise InputError(f"read_graph.{kind}: {path} {what}: name an existing file.")
    if "relationships" not in found and found["entities"].suffix.lower() != _GRAPHML:
        raise InputError(
            f"read_graph.relationships names no file, and {settings.entities} holds entities only: "
            "name the file of the relationships."
        )
    return found


def fingerprint_files(settings: ReadGraph, root: Path) -> str:
    whole = blake2b(digest_size=16)
    for kind, path in find_given_files(settings, root).items():
        try:
            whole.update(content_id(kind, digest_file(path)).encode("ascii"))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {describe_os_error(error)}.") from error
    return whole.hexdigest()


def check_files_outside_output(settings: ReadGraph, root: Path, output: Path) -> None:
    """Raise SettingsError if an input file lies in the output folder."""
    output = Path(os.path.realpath(output))
    for kind, path in _get_configured_files(settings, root).items():
        folder = Path(os.path.realpath(Path(os.path.abspath(path)).parent))
        if output in (folder, *folder.parents):
            raise SettingsError(
                f"read_graph.{kind}: {getattr(settings, kind)} lies in the output folder, where "
                "the run writes: copy the file elsewhere, or name another output with "
                "`--set output=FOLDER`."
            )


def read_given_rows(settings: ReadGraph, root: Path) -> dict[FileKind, FileRows]:
    """Read the files that the settings name; a .graphml file has both nodes and edges.

    Raises InputError if a file cannot be read, or if a required column is missing.
    """
    files = find_given_files(settings, root)
    if "relationships" not in files:
        files["relationships"] = files["entities"]
    elif "entities" not in files and files["relationships"].suffix.lower() == _GRAPHML:
        files["entities"] = files["relationships"]
    graphs: dict[Path, tuple[pl.DataFrame, pl.DataFrame]] = {}
    found: dict[FileKind, FileRows] = {}
    for kind, path in files.items():
        name = str(getattr(settings, kind) or settings.relationships or settings.entities)
        try:
            if path.suffix.lower() != _GRAPHML:
                found[kind] = _read_table_file(kind, path, name, settings)
                continue
            if path not in graphs:
                graphs[path] = read_graphml(path, name)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {describe_os_error(error)}.") from error
        frame = graphs[path][0 if kind == "entities" else 1]
        if kind == "entities" and frame.is_empty():
            raise InputError(f"{name} has no node: name the file with the graph.")
        found[kind] = _make_file_rows(kind, name, "line", frame, settings)
    seen = {column for rows in found.values() for column in rows.attributes}
    for column in settings.attributes:
        if column not in seen:
            names = [found[kind].name for kind in ("entities", "relationships") if kind in found]
            what = f"{join_names(dict.fromkeys(names))} has no column {column!r}"
            fix = "name an existing column, or leave this column out."
            raise InputError(f"read_graph.attributes: {what}: {fix}")
    return found


def _read_table_file(kind: FileKind, path: Path, name: str, settings: ReadGraph) -> FileRows:
    def choose_columns(columns: Sequence[str]) -> list[str]:
        chosen = [*_map_fields_to_columns(kind, columns, settings, name).values()]
        if kind == "relationships":
            chosen += _find_label_columns(columns)
        return list(dict.fromkeys(chosen + _find_attributes(kind, columns, settings)))

    unit, delimiter = "row", ""
    if path.suffix.lower() == ".parquet":
        frame = read_parquet(path, name, choose_columns)
    else:
        unit, (frame, delimiter) = "line", read_csv(path, name, choose_columns, settings)
    if frame.is_empty():
        raise InputError(f"{name} has no row: name a file with rows.")
    found = _make_file_rows(kind, name, unit, frame, settings)
    return replace(found, decimal_comma=delimiter == ";")


def _map_fields_to_columns(
    kind: FileKind,
    columns: Sequence[str],
    settings: ReadGraph,
    name: str,
    row_id: str | None = None,
) -> dict[str, str]:
    """Map each field to its column in the file; `row_id` is the default column of the id."""
    setting = "entity_columns" if kind == "entities" else f"{kind[:-1]}_columns"
    configured: Mapping[str, str | None] = getattr(settings, setting)
    for field, column in configured.items():
        if column is not None and column not in columns:
            raise InputError(
                f"{name} has no column {column!r}, which read_graph.{setting} names as the "
                f"{field}: name one of the columns {join_names(columns, 20)}."
            )
    found = {field: column for field, column in configured.items() if column is not None}
    taken = set(found.values())
    plain: dict[str, str] = {}
    for column in columns:
        plain.setdefault(_normalize_column_name(column), column)
    for field, known in _USUAL_COLUMN_NAMES[kind].items():
        if field in configured:
            continue
        column = next(
            (plain[n] for n in known.split() if n in plain and plain[n] not in taken),
            row_id if field == "id" else None,
        )
        if column is not None:
            found[field] = column
            taken.add(column)
    # Use the id as the title if no column has the title.
    if kind == "entities" and "title" not in configured and "id" in found:
        found.setdefault("title", found["id"])
    for field in _COLUMN_NAME_LISTS["required"][kind].split():
        if field not in found:
            raise InputError(
                f"{name} has no column for the {field} (known names: "
                f"{_USUAL_COLUMN_NAMES[kind][field].replace(' ', ', ')}): name it with "
                f"read_graph.{setting}, such as {{{field}: COLUMN}}; its columns are "
                f"{join_names(columns, 20)}."
            )
    return found


def _normalize_column_name(column: str) -> str:
    """Reduce a column name to lower-case letters and digits; map Neo4j's suffixes to fields."""
    if match := _NEO4J_COLUMN_NAME.fullmatch(column.strip()):
        column = _COLUMN_NAME_LISTS["neo4j"].get(match[2], match[1])
    return letters(column)


def _find_attributes(kind: FileKind, columns: Sequence[str], settings: ReadGraph) -> list[str]:
    has_description = kind in ("entities", "relationships")
    return [column for column in settings.attributes if has_description and column in columns]


def _find_label_columns(columns: Sequence[str]) -> list[str]:
    return [column for column in columns if column.strip().casefold() == "label"][:1]


def _make_file_rows(
    kind: FileKind, name: str, unit: str, frame: pl.DataFrame, settings: ReadGraph
) -> FileRows:
    """Rename the columns to field names and append attributes to the description."""
    own = [column for column in frame.columns if column not in (ROW_NUMBER_COLUMN, NODE_ID_COLUMN)]
    row_id = NODE_ID_COLUMN if NODE_ID_COLUMN in frame.columns else None
    columns = _map_fields_to_columns(kind, own, settings, name, row_id)
    values = {
        field: _parse_cells(field, frame.schema[columns[field]], columns[field])
        if field in columns
        else pl.lit(None, STRINGS if field in _LIST_FIELDS else pl.String)
        for field in _USUAL_COLUMN_NAMES[kind]
    }
    has_own_type = "type" in columns and not settings.relationship_columns.get("type")
    if kind == "relationships" and has_own_type:
        values["type"] = _replace_drawing_types(values["type"], _find_label_columns(frame.columns))
    attributes = _find_attributes(kind, frame.columns, settings)
    if attributes:
        braces = str.maketrans("{}", "()")
        named = [
            pl.format(f"{column.translate(braces)}: {{}}", _collapse_spaces(pl.col(column)))
            for column in attributes
        ]
        more = _empty_to_null(pl.concat_str(named, separator="; ", ignore_nulls=True))
        ended = values["description"].str.replace(r"([^.!?…])$", "${1}.")
        whole = pl.concat_str(ended, more, separator=" ", ignore_nulls=True)
        values["description"] = _empty_to_null(whole)
    if NODE_ID_COLUMN in frame.columns:
        values["key"] = _collapse_spaces(pl.col(NODE_ID_COLUMN))
    elif kind == "entities":
        values["key"] = values["id"]
    chosen = frame.select(row=pl.col(ROW_NUMBER_COLUMN), **values)
    return FileRows(name, unit, chosen, frozenset(columns), tuple(attributes))


def _parse_cells(field: str, dtype: pl.DataType, column: str) -> pl.Expr:
    value = pl.col(column)
    if field in _LIST_FIELDS:
        if dtype != STRINGS and field == "aliases":
            value = value.map_elements(_split_aliases, return_dtype=STRINGS)
        elif dtype != STRINGS:
            value = value.str.extract_all(r"[^\[\]'\",;|\s]+")
        value = value.list.eval(_collapse_spaces(pl.element()).drop_nulls(), parallel=True)
        return pl.when(value.list.len() > 0).then(value)
    if dtype == STRINGS:
        value = value.list.join("; ")
    return value.str.strip_chars() if field == "text" else _collapse_spaces(value)


def _split_aliases(cell: str) -> list[str]:
    """Split a cell into names at ";" and "|", or at commas if the cell has neither."""
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return re.split(r"[;|]" if re.search(r"[;|]", text) else ",", text)
    try:
        return [str(name) for name in json.loads(text) if name is not None]
    except ValueError:
        # Read the cell as a list in Python's notation, with single or double quotation marks.
        quoted = [double or single for double, single in _QUOTED_NAME.findall(text)]
        inside = [re.sub(r"\\(.)", r"\1", name) for name in quoted]
        return inside or text[1:-1].split(",")


def _replace_drawing_types(types: pl.Expr, label_columns: Sequence[str]) -> pl.Expr:
    """Replace Gephi's drawing types, such as "Directed", by the label of the relationship."""
    is_drawing = types.is_in(["Directed", "Undirected", "Mutual"]).all()
    if not label_columns:
        # Require "Undirected", which is a drawing type; "Directed" can be a type, as of films.
        is_drawing &= (types == "Undirected").any()
    labels = _collapse_spaces(pl.coalesce([*label_columns, pl.lit(None, pl.String)]))
    return pl.when(is_drawing).then(labels).otherwise(types)


def _collapse_spaces(value: pl.Expr) -> pl.Expr:
    """Collapse white space to single spaces; return null for a value of white space only."""
    return _empty_to_null(value.str.replace_all(r"\s+", " ").str.strip_chars())


def _empty_to_null(value: pl.Expr) -> pl.Expr:
    return pl.when(value != "").then(value)

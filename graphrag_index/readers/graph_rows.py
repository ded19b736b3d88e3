"""Rows of the user's graph files (.csv, .tsv, .parquet, .graphml): a column per known field.

All values are read as text. The settings can name the column of a field. Otherwise, the field's
usual column names are tried.
"""

import csv
import json
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal
from xml.parsers import expat

import polars as pl

from graphrag_index.errors import InputError, SettingsError, describe_error, join_names
from graphrag_index.readers.document import describe_os_error
from graphrag_index.readers.record_files import choose_delimiter
from graphrag_index.schema.settings.step_sections import ReadGraph
from graphrag_index.schema.tables import STRINGS, content_id
from graphrag_index.storage.atomic import digest_file
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.normalize import letters

logger = logging.getLogger(__name__)

# Added column with the line or row number. No column of a file can have this name.
ROW_NUMBER_COLUMN = "row of the file\0"
# Added column with the id of a GraphML node. No attribute can have this name.
NODE_ID_COLUMN = "id of <node>"
ChooseColumns = Callable[[Sequence[str]], list[str]]  # selects the columns to read

_BATCH_ROWS = 65_536  # rows that become one data frame
_MAX_FIELD_CHARACTERS = 16_000_000
_MAX_EXACT_INTEGER = 2**53  # every integer up to this magnitude is exact as a float
_XML_BYTES_PER_READ = 1 << 20
_YED_LABEL_ELEMENTS = ("NodeLabel", "EdgeLabel")  # elements of yEd that set the attribute `label`
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


def read_csv(
    path: Path, name: str, choose: ChooseColumns, settings: ReadGraph
) -> tuple[pl.DataFrame, str]:
    """Read the chosen columns of a file with a header; return them with the delimiter.

    `ROW_NUMBER_COLUMN` has the line number where each row starts. Lines that consist only of
    delimiters are skipped. Raises InputError if the file is empty, if it is not in the configured
    encoding, or if a row has more or fewer fields than the header.
    """
    encoding = settings.encoding.replace("_", "-").casefold()
    encoding = "utf-8-sig" if encoding in ("utf-8", "utf8") else encoding
    csv.field_size_limit(_MAX_FIELD_CHARACTERS)
    begun = 1
    with path.open(encoding=encoding, newline="") as stream:
        try:
            first = stream.readline()
            if not first.strip():
                raise InputError(f"{name} is empty, or has no header in its first line.")
            stream.seek(0)
            is_tsv = path.suffix.lower() == ".tsv"
            delimiter = "\t" if is_tsv else choose_delimiter(first, path)
            reader = csv.reader(stream, delimiter=delimiter, strict=True)
            header = [column.strip() for column in next(reader)]
            for number, column in enumerate(header):
                if column and column in header[:number]:
                    raise InputError(f"{name} has two columns {column!r}: rename one of them.")
            chosen = choose(header)
            places = [header.index(column) for column in chosen]
            schema = {ROW_NUMBER_COLUMN: pl.Int64, **dict.fromkeys(chosen, pl.String)}
            parts = []
            rows: list[tuple[int | str, ...]] = []
            begun = reader.line_num + 1
            for record in reader:
                line, begun = begun, reader.line_num + 1
                if not any(map(str.strip, record)):
                    continue
                if len(record) != len(header):
                    shown = "a tab" if delimiter == "\t" else repr(delimiter)
                    raise InputError(
                        f"{name}, line {line:,} has {len(record)} fields and the header "
                        f"{len(header)}: put quotation marks around a field that holds {shown}."
                    )
                rows.append((line, *(record[place] for place in places)))
                if len(rows) == _BATCH_ROWS:
                    parts.append(pl.DataFrame(rows, schema=schema, orient="row"))
                    rows = []
            parts.append(pl.DataFrame(rows, schema=schema, orient="row"))
        except UnicodeError as error:
            raise InputError(
                f"{name}{_locate_undecodable_line(path, encoding)} is not {settings.encoding}: "
                "save the file in that encoding, or set read_graph.encoding to its encoding."
            ) from error
        except csv.Error as error:
            what = str(error)
            if what == "unexpected end of data" or what.startswith("field larger"):
                what = "a quotation mark is not closed"
            raise InputError(f"{name}, line {begun:,} is not valid CSV: {what}.") from error
    return pl.concat(parts), delimiter


def _locate_undecodable_line(path: Path, encoding: str) -> str:
    """Return ", line N" for the first line that cannot be decoded; empty if N is unknown."""
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode(encoding)
            except UnicodeError:
                # A null byte is a sign of UTF-16, whose lines cannot be counted as bytes.
                return "" if b"\0" in line else f", line {number:,}"
    return ""


def read_parquet(path: Path, name: str, choose: ChooseColumns) -> pl.DataFrame:
    """Read the chosen columns of a Parquet file as text, and number its rows from 1."""
    try:
        table = pl.scan_parquet(path)
        schema = table.collect_schema()
        texts = [_cast_to_text(column, schema[column], name) for column in choose(schema.names())]
        row = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).alias(ROW_NUMBER_COLUMN)
        return table.select(row, *texts).collect()
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"{name} is not a complete Parquet file ({describe_error(error)}): write it again."
        ) from error


def _cast_to_text(column: str, dtype: pl.DataType, name: str) -> pl.Expr:
    value = pl.col(column)
    if isinstance(dtype, pl.List | pl.Array):
        inner = dtype.inner
        if isinstance(inner, pl.DataType) and not inner.is_nested():
            return value.cast(STRINGS)
    elif dtype.is_float():
        is_whole = (value == value.floor()) & (value.abs() < _MAX_EXACT_INTEGER)
        whole = pl.when(is_whole).then(value).cast(pl.Int64).cast(pl.String)
        return pl.when(is_whole).then(whole).otherwise(value.cast(pl.String)).alias(column)
    elif not dtype.is_nested() and dtype != pl.Binary:
        return value.cast(pl.String)
    raise InputError(
        f"{name}: the column {column!r} has the type {dtype}, which cannot be read as text: "
        "convert it to text, or name another column."
    )


def read_graphml(path: Path, name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the nodes and edges of all graphs in a GraphML file, including nested graphs.

    The table of nodes and the table of edges have `ROW_NUMBER_COLUMN`, the line where the element
    begins, and its attributes as text. Nodes have `NODE_ID_COLUMN`; edges have `source` and
    `target`. Raises InputError for invalid XML, and for a file that declares XML entities: a few
    lines of XML entities can expand to gigabytes.
    """
    reader = _GraphmlReader(name)
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(_XML_BYTES_PER_READ):
                reader.parser.Parse(chunk)
            reader.parser.Parse(b"", True)
    except expat.ExpatError as error:
        what = expat.errors.messages[error.code]
        raise InputError(
            f"{name}, line {error.lineno:,} is not valid XML ({what}): write the file again."
        ) from error
    if reader.n_hyperedges:
        logger.warning("%s: %d hyperedges are left out.", name, reader.n_hyperedges)
    return reader.nodes.to_frame(), reader.edges.to_frame()


class _ElementTable:
    """Table of nodes or edges, built from batches of rows."""

    def __init__(self, *columns: str) -> None:
        self.columns = dict.fromkeys(columns)
        self.rows: list[dict[str, Any]] = []
        self.parts: list[pl.DataFrame] = []

    def flush_rows(self) -> None:
        schema = {ROW_NUMBER_COLUMN: pl.Int64, **dict.fromkeys(self.columns, pl.String)}
        self.parts.append(pl.from_dicts(self.rows, schema=schema))
        self.rows = []

    def to_frame(self) -> pl.DataFrame:
        self.flush_rows()
        return pl.concat(self.parts, how="diagonal")


@dataclass
class _DeclaredAttribute:
    """An attribute of nodes or edges that a GraphML file declares."""

    name: str
    element: str = "all"  # "node", "edge" or "all": the elements that have the attribute
    default: str = ""


class _GraphmlReader:
    """Reader of a GraphML file, with a handler for each event of the XML parser."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes, self.edges = _ElementTable(NODE_ID_COLUMN), _ElementTable("source", "target")
        self.declared: dict[str, _DeclaredAttribute] = {}
        self.n_hyperedges = 0
        # (table, row) of each open node or edge, innermost last; the table is None for a hyperedge.
        self.open: list[tuple[_ElementTable | None, dict[str, Any]]] = []
        self.attribute: _DeclaredAttribute | None = None  # attribute of the open <data> or <key>
        self.text: list[str] | None = None  # text of the open element; None if it is not needed
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._handle_start
        parser.EndElementHandler = self._handle_end
        parser.CharacterDataHandler = self._handle_text
        parser.EntityDeclHandler = self._reject_xml_entity
        self.parser = parser

    def _reject_xml_entity(self, *_: object) -> None:
        raise InputError(
            f"{self.name} declares XML entities (<!ENTITY ...>): write the file without them."
        )

    def _handle_start(self, qualified: str, values: dict[str, str]) -> None:
        tag = qualified.rpartition(" ")[2]
        if tag == "key":
            self.attribute = _DeclaredAttribute(
                values.get("attr.name", ""), values.get("for", "all")
            )
            self.declared[values.get("id", "")] = self.attribute
        elif tag in ("node", "edge"):
            self._begin_node_or_edge(tag, values)
        elif tag == "data":
            key = values.get("key", "")
            self.attribute = self.declared.get(key) or _DeclaredAttribute(key)
            self.text = []
        elif tag == "default" or tag in _YED_LABEL_ELEMENTS:
            self.text = []
        elif tag == "hyperedge":
            self.n_hyperedges += 1
            self.open.append((None, {}))

    def _begin_node_or_edge(self, tag: str, values: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        row: dict[str, Any] = {
            attribute.name: attribute.default
            for attribute in self.declared.values()
            if attribute.default and attribute.name and attribute.element in (tag, "all")
        }
        for name in ("id",) if tag == "node" else ("source", "target"):
            if not values.get(name, "").strip():
                raise InputError(
                    f"{self.name}, line {line:,}: <{tag}> has no {name}: write the file again."
                )
        elements = self.nodes if tag == "node" else self.edges
        if tag == "node":
            row[NODE_ID_COLUMN] = values["id"]
        else:
            if "id" in values:
                row.setdefault("id", values["id"])
            row.update(source=values["source"], target=values["target"])
        elements.columns.update(dict.fromkeys(row))
        # An open element can still get attributes, so flush only while no element is open.
        if not self.open and len(elements.rows) >= _BATCH_ROWS:
            elements.flush_rows()
        row[ROW_NUMBER_COLUMN] = line
        elements.rows.append(row)
        self.open.append((elements, row))

    def _handle_end(self, qualified: str) -> None:
        tag = qualified.rpartition(" ")[2]
        if tag in ("node", "edge", "hyperedge"):
            self.open.pop()
        if tag not in ("default", "data", *_YED_LABEL_ELEMENTS):
            return
        text = "".join(self.text or ()).strip()
        if tag == "default" and self.attribute is not None:
            self.attribute.default, self.text = text, None
        elif tag in _YED_LABEL_ELEMENTS and self.open:
            if text:
                self._set_attribute("label", text)
            # A label outside nodes and edges belongs to the drawing only: it sets no attribute.
            self.text = None
        elif tag == "data":
            if self.attribute is not None and self.attribute.name and text:
                self._set_attribute(self.attribute.name, text, replace=True)
            self.attribute = self.text = None

    def _set_attribute(self, name: str, value: str, replace: bool = False) -> None:
        """Set an attribute of the innermost node or edge, except source and target of an edge."""
        elements, row = self.open[-1] if self.open else (None, {})
        if elements is None or (elements is self.edges and name in ("source", "target")):
            return
        if replace or name not in row:
            row[name] = value
            elements.columns.setdefault(name)

    def _handle_text(self, text: str) -> None:
        if self.text is not None:
            self.text.append(text)


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

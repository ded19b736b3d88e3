"""Readers of .csv, .tsv, .parquet and .graphml files with a graph; all values become text."""

import csv
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers import expat

import polars as pl

from graphrag_index.errors import InputError, describe_error
from graphrag_index.readers.record_files import choose_delimiter
from graphrag_index.schema.settings.step_sections import ReadGraph
from graphrag_index.schema.tables import STRINGS

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

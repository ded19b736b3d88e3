"""Streaming reader of .graphml files as networkx, Gephi, yEd and this program write them.

A file that declares XML entities is rejected: a few lines of them can expand to gigabytes.
"""

import logging
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

import polars as pl

from graphrag_index.errors import InputError
from graphrag_index.readers.graph.tabular import ROW

logger = logging.getLogger(__name__)

NODES, EDGES = "nodes", "edges"
# Column of the node id; no attribute has such a name.
NODE_ID = "id of <node>"
# Rows per frame, and bytes per read.
_BATCH = 65_536
_CHUNK = 1 << 20
# Elements for labels in files of yEd.
_LABELS = {"NodeLabel": "label", "EdgeLabel": "label"}


def read_graphml(path: Path, name: str) -> dict[str, pl.DataFrame]:
    """Read the nodes and edges of all graphs in a file, including nested ones.

    Returns
    -------
    nodes, edges
        `ROW`, the line where the element begins, and its attributes as text; for nodes the
        id, for edges `source` and `target`.

    Raises
    ------
    InputError
        The file is not valid XML, or declares entities.
    """
    reader = _Reader(name)
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                reader.parser.Parse(chunk)
            reader.parser.Parse(b"", True)
    except expat.ExpatError as error:
        what = expat.errors.messages[error.code]
        raise InputError(
            f"{name}, line {error.lineno:,} is not valid XML ({what}): write the file again."
        ) from error
    if reader.n_hyperedges:
        logger.warning("%s: %d hyperedges are left out.", name, reader.n_hyperedges)
    return {NODES: reader.nodes.frame(), EDGES: reader.edges.frame()}


@dataclass
class _Key:
    """Attribute declared by the file."""

    name: str
    of: str  # node, edge, all, ...
    default: str | None = None


@dataclass
class _Columns:
    """Buffer of rows, converted to columns in batches."""

    columns: dict[str, None]
    parts: list[pl.DataFrame] = field(default_factory=list)
    rows: list[dict[str, str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def add(self, line: int, row: dict[str, str]) -> None:
        self.lines.append(line)
        self.rows.append(row)
        self.columns.update(dict.fromkeys(row))

    def flush(self) -> None:
        values = {c: [row.get(c) for row in self.rows] for c in self.columns}
        schema = {ROW: pl.Int64, **dict.fromkeys(self.columns, pl.String)}
        self.parts.append(pl.DataFrame({ROW: self.lines, **values}, schema=schema))
        self.rows, self.lines = [], []

    def frame(self) -> pl.DataFrame:
        self.flush()
        return pl.concat(self.parts, how="diagonal")


class _Reader:
    """Handlers of XML events."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes = _Columns({NODE_ID: None})
        self.edges = _Columns({"source": None, "target": None})
        self.keys: dict[str, _Key] = {}
        self.n_hyperedges = 0
        # Open nodes and edges, innermost last.
        self.open: list[tuple[_Columns | None, dict[str, str]]] = []
        self.key: _Key | None = None  # of the open <data> or <key>
        self.text: list[str] | None = None
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._refuse_entity
        self.parser = parser

    def _refuse_entity(self, *_: object) -> None:
        raise InputError(
            f"{self.name} declares entities (<!ENTITY ...>), which are not read: "
            "write the file without them."
        )

    def _start(self, qualified: str, attributes: dict[str, str]) -> None:
        tag = qualified.rpartition(" ")[2]
        if tag == "key":
            self.key = _Key(attributes.get("attr.name", ""), attributes.get("for", "all"))
            self.keys[attributes.get("id", "")] = self.key
        elif tag in ("node", "edge"):
            self._begin(tag, attributes)
        elif tag == "data":
            known = attributes.get("key", "")
            self.key = self.keys.get(known) or _Key(known, "all")
            self.text = []
        elif tag == "default" or tag in _LABELS:
            self.text = []
        elif tag == "hyperedge":
            self.n_hyperedges += 1
            # Its data belong to no row.
            self.open.append((None, {}))

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        row: dict[str, str] = {}
        for key in self.keys.values():
            if key.default and key.name and key.of in (tag, "all"):
                row[key.name] = key.default
        needed = ("id",) if tag == "node" else ("source", "target")
        for name in needed:
            if not attributes.get(name, "").strip():
                raise InputError(
                    f"{self.name}, line {line:,}: <{tag}> has no {name}: write the file again."
                )
        if tag == "node":
            row[NODE_ID] = attributes["id"]
            columns = self.nodes
        else:
            if "id" in attributes:
                row.setdefault("id", attributes["id"])
            row.update(source=attributes["source"], target=attributes["target"])
            columns = self.edges
        # Flush only when no open element can still receive attributes.
        if not self.open and len(columns.rows) >= _BATCH:
            columns.flush()
        columns.add(line, row)
        self.open.append((columns, row))

    def _end(self, qualified: str) -> None:
        tag = qualified.rpartition(" ")[2]
        if tag in ("node", "edge", "hyperedge"):
            self.open.pop()
        elif tag == "default" and self.key is not None:
            self.key.default, self.text = self._take_text(), None
        elif tag in _LABELS and self.open:
            if text := self._take_text():
                self._set_attribute(_LABELS[tag], text)
            # Other text belongs to the drawing.
            self.text = None
        elif tag == "data":
            if self.key is not None and self.key.name and (text := self._take_text()):
                self._set_attribute(self.key.name, text, replace=True)
            self.key = self.text = None

    def _take_text(self) -> str:
        return "".join(self.text or ()).strip()

    def _set_attribute(self, name: str, value: str, replace: bool = False) -> None:
        """Set an attribute of the innermost node or edge; keys are never overwritten."""
        columns, row = self.open[-1] if self.open else (None, {})
        if columns is None or (columns is self.edges and name in ("source", "target")):
            return
        if replace or name not in row:
            row[name] = value
            columns.columns.setdefault(name)

    def _characters(self, text: str) -> None:
        if self.text is not None:
            self.text.append(text)

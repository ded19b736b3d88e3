"""Rows of the files that the settings name, in columns of known names."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b, file_digest
from pathlib import Path

import polars as pl

from graphrag_index.errors import InputError, SettingsError
from graphrag_index.readers.document import listed, system_reason
from graphrag_index.readers.graph.graph_columns import (
    FIELDS,
    Kind,
    aliases_of,
    find_columns,
    ids_of,
)
from graphrag_index.readers.graph.graphml_file import EDGES, NODE_ID, NODES, read_graphml
from graphrag_index.readers.graph.tabular import ROW, read_csv, read_parquet
from graphrag_index.schema.settings.embedded_steps import ReadGraph
from graphrag_index.schema.table import STRINGS
from graphrag_index.schema.tables import content_id

KINDS: tuple[Kind, ...] = ("entities", "relationships", "text_units", "documents")
GRAPHML = ".graphml"
_TYPES = {
    "entities": (".parquet", ".csv", ".tsv", GRAPHML),
    "relationships": (".parquet", ".csv", ".tsv", GRAPHML),
    "text_units": (".parquet", ".csv", ".tsv"),
    "documents": (".parquet", ".csv", ".tsv"),
}
LISTS = ("aliases", "text_unit_ids")


@dataclass(frozen=True)
class Rows:
    """Rows of one file.

    `frame` has a column per field of its kind, null where the file has no value, with white
    space collapsed; `row`, the line or row number for messages; and for entities `key`, the
    value that relationships refer to.
    """

    name: str  # file name as in the settings
    unit: str  # of `row`: "line" or "row"
    frame: pl.DataFrame
    fields: frozenset[str]  # fields with a column in the file
    attributes: tuple[str, ...] = ()  # other columns appended to the description
    decimal_comma: bool = False  # 2,5 means 2.5, as in files delimited by semicolons

    def without_rows(self) -> "Rows":
        return replace(self, frame=self.frame.clear())

    def place(self, row: int) -> str:
        return f"{self.name}, {self.unit} {row:,}"

    def check_ids(self, other_fix: str = "") -> None:
        """Check that ids are unique.

        Raises
        ------
        InputError
            An id is repeated; `other_fix` is an alternative remedy for the message.
        """
        own = self.frame.select("id", "row").filter(pl.col("id").is_not_null())
        repeated = own.filter(pl.col("id").is_duplicated())
        if len(repeated):
            first = repeated.filter(id=repeated["id"][0])["row"]
            raise InputError(
                f"{self.place(first[1])} has the id {repeated['id'][0]!r} of {self.unit} "
                f"{first[0]:,}: give each its own{other_fix}."
            )


def given_files(settings: ReadGraph, root: Path) -> dict[Kind, Path]:
    """Return the files that the settings name, after checking types and existence.

    Raises
    ------
    InputError
        No file is named, or one is missing or has an unsupported type.
    """
    if settings.entities is None and settings.relationships is None:
        raise InputError(
            "There is no graph to read: name your files in read_graph.relationships and "
            "read_graph.entities."
        )
    if settings.documents is not None and settings.text_units is None:
        raise InputError(
            "read_graph.documents goes with read_graph.text_units, the passages of these "
            "documents: name their file too, or neither."
        )
    found: dict[Kind, Path] = {}
    for kind in KINDS:
        name = getattr(settings, kind)
        if name is None:
            continue
        path = root / Path(name).expanduser()
        if path.suffix.lower() not in _TYPES[kind]:
            raise InputError(
                f"read_graph.{kind}: {name} is of a type that is not read here; "
                f"read are {', '.join(_TYPES[kind])}."
            )
        if not path.is_file():
            what = "is no file" if path.exists() else "does not exist"
            raise InputError(f"read_graph.{kind}: {path} {what}: name the file that is meant.")
        found[kind] = path
    if "relationships" not in found and found["entities"].suffix.lower() != GRAPHML:
        raise InputError(
            f"read_graph.relationships names no file, and {settings.entities} holds entities only: "
            "name the file of their relationships."
        )
    return found


def fingerprint_files(settings: ReadGraph, root: Path) -> str:
    """Hash the content of the files."""
    whole = blake2b(digest_size=16)
    for kind, path in given_files(settings, root).items():
        try:
            with path.open("rb") as stream:
                content = file_digest(stream, lambda: blake2b(digest_size=16)).hexdigest()
        except OSError as error:
            raise InputError(f"{path} cannot be read: {system_reason(error)}.") from error
        whole.update(content_id(kind, content).encode("ascii"))
    return whole.hexdigest()


def check_not_output(settings: ReadGraph, root: Path, output: Path) -> None:
    """Check that no input file lies in the output folder.

    Raises
    ------
    SettingsError
        One does, and the run would overwrite it or read its own output.
    """
    folder = Path(os.path.realpath(output))
    for kind in KINDS:
        name = getattr(settings, kind)
        if name is None:
            continue
        path = Path(os.path.abspath(root / Path(name).expanduser()))
        if folder in Path(os.path.realpath(path.parent)).parents or folder == Path(
            os.path.realpath(path.parent)
        ):
            raise SettingsError(
                f"read_graph.{kind}: {name} lies in the output folder, where the run writes: "
                "copy it elsewhere, or name another output with `--set output=FOLDER`."
            )


def read_given(settings: ReadGraph, root: Path) -> dict[Kind, Rows]:
    """Read the files of the settings; one .graphml file may hold nodes and edges.

    Raises
    ------
    InputError
        A file cannot be read, or lacks a required column.
    """
    files = given_files(settings, root)
    if "relationships" not in files:
        files["relationships"] = files["entities"]
    elif "entities" not in files and files["relationships"].suffix.lower() == GRAPHML:
        files["entities"] = files["relationships"]
    parts: dict[Path, dict[str, pl.DataFrame]] = {}
    found: dict[Kind, Rows] = {}
    for kind, path in files.items():
        name = str(getattr(settings, kind) or settings.relationships or settings.entities)
        if path.suffix.lower() != GRAPHML:
            found[kind] = _tabular(kind, path, name, settings)
            continue
        if path not in parts:
            with _readable(path):
                parts[path] = read_graphml(path, name)
        frame = parts[path][NODES if kind == "entities" else EDGES]
        if kind == "entities" and frame.is_empty():
            raise InputError(f"{name} has no node: is it the file that is meant?")
        own = [column for column in frame.columns if column not in (ROW, NODE_ID)]
        columns = find_columns(
            kind, own, settings, name, NODE_ID if NODE_ID in frame.columns else None
        )
        found[kind] = _named(kind, name, "line", frame, columns, settings)
    _check_attributes(settings, found)
    return found


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be read: {system_reason(error)}.") from error


def _tabular(kind: Kind, path: Path, name: str, settings: ReadGraph) -> Rows:
    def choose(columns: Sequence[str]) -> list[str]:
        chosen = find_columns(kind, columns, settings, name)
        label = [column for column in [_label(kind, columns)] if column]
        return list(
            dict.fromkeys([*chosen.values(), *label, *_attributes(kind, columns, settings)])
        )

    with _readable(path):
        if path.suffix.lower() == ".parquet":
            frame, unit, delimiter = read_parquet(path, name, choose), "row", ""
        else:
            frame, delimiter = read_csv(path, name, choose, settings)
            unit = "line"
    if frame.is_empty():
        raise InputError(f"{name} has no row: is it the file that is meant?")
    columns = find_columns(kind, [c for c in frame.columns if c != ROW], settings, name)
    found = _named(kind, name, unit, frame, columns, settings)
    return replace(found, decimal_comma=delimiter == ";")


def _attributes(kind: Kind, columns: Sequence[str], settings: ReadGraph) -> list[str]:
    if kind not in ("entities", "relationships"):
        return []
    return [column for column in settings.attributes if column in columns]


def _check_attributes(settings: ReadGraph, found: Mapping[Kind, Rows]) -> None:
    seen = {column for rows in found.values() for column in rows.attributes}
    for column in settings.attributes:
        if column not in seen:
            names = dict.fromkeys(found[kind].name for kind in KINDS[:2] if kind in found)
            raise InputError(
                f"read_graph.attributes: {listed(names)} has no column {column!r}: "
                "name one that is there, or leave it out."
            )


def _named(
    kind: Kind,
    name: str,
    unit: str,
    frame: pl.DataFrame,
    columns: Mapping[str, str],
    settings: ReadGraph,
) -> Rows:
    """Rename the columns to field names and append attributes to the description."""
    attributes = _attributes(kind, frame.columns, settings)
    values = {
        field: _field(field, frame.schema[columns[field]], columns[field])
        if field in columns
        else pl.lit(None, STRINGS if field in LISTS else pl.String)
        for field in FIELDS[kind]
    }
    if (
        kind == "relationships"
        and "type" in columns
        and not settings.relationship_columns.get("type")
    ):
        label = _label(kind, frame.columns)
        said = clean(pl.col(label)) if label else pl.lit(None, pl.String)
        values["type"] = (
            pl.when(_is_of_gephi(values["type"], label)).then(said).otherwise(values["type"])
        )
    if attributes:
        told = [
            pl.format(f"{_plain_braces(column)}: {{}}", clean(pl.col(column)))
            for column in attributes
        ]
        more = pl.concat_str(told, separator="; ", ignore_nulls=True)
        more = pl.when(more == "").then(None).otherwise(more)
        ended = values["description"].str.replace(r"([^.!?…])$", "${1}.")
        values["description"] = pl.concat_str(ended, more, separator=" ", ignore_nulls=True)
        values["description"] = (
            pl.when(values["description"] == "").then(None).otherwise(values["description"])
        )
    keys = [] if NODE_ID not in frame.columns else [clean(pl.col(NODE_ID)).alias("key")]
    if kind == "entities" and not keys:
        keys = [values["id"].alias("key")]
    chosen = frame.select(
        pl.col(ROW).alias("row"), *(v.alias(field) for field, v in values.items()), *keys
    )
    return Rows(name, unit, chosen, frozenset(columns), tuple(attributes))


def _field(field: str, dtype: pl.DataType, column: str) -> pl.Expr:
    value = pl.col(column)
    if field in LISTS:
        if dtype != STRINGS:
            value = aliases_of(value) if field == "aliases" else ids_of(value)
        value = value.list.eval(clean(pl.element()).drop_nulls(), parallel=True)
        return pl.when(value.list.len() > 0).then(value)
    if dtype == STRINGS:
        value = value.list.join("; ")
    return value.str.strip_chars() if field == "text" else clean(value)


def _label(kind: Kind, columns: Sequence[str]) -> str | None:
    """Return Gephi's label column of relationships, if any."""
    if kind != "relationships":
        return None
    return next((column for column in columns if column.strip().casefold() == "label"), None)


def _is_of_gephi(types: pl.Expr, label: str | None) -> pl.Expr:
    """Return whether types are Gephi's drawing types instead of relationship types."""
    drawn = types.is_in(["Directed", "Undirected", "Mutual"]).all()
    # "Directed" alone may be a real type (of a film); "Undirected" is not.
    return drawn if label else drawn & (types == "Undirected").any()


def clean(value: pl.Expr) -> pl.Expr:
    """Collapse white space; null if nothing is left."""
    value = value.str.replace_all(r"\s+", " ").str.strip_chars()
    return pl.when(value != "").then(value)


def _plain_braces(text: str) -> str:
    return text.replace("{", "(").replace("}", ")")

"""The files of a Microsoft GraphRAG index, version 2 or 3: Parquet tables and vectors."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from graphrag_index.errors import TableError, describe_error
from graphrag_index.schema.tables import EMBEDDED_COLUMNS, FINDINGS, TABLES, Table, parse_columns
from graphrag_index.storage.memo import read_batches
from graphrag_nlp.text.languages import read_lists

# Required and derived columns of each table.
COLUMN_RULES: Mapping[str, Mapping[str, Any]] = read_lists("graphrag_index/microsoft/read_columns")
# Types of the columns that are read but that our tables lack.
_FOREIGN_COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "text_units": parse_columns("document_ids: strings"),
}
# Columns whose values are structs, which are converted to JSON text.
_RECORD_COLUMNS = ("raw_data", "metadata")
_VECTORS_PER_BATCH = 8_192  # vectors per batch
_OPTIONAL_TABLES = ("community_reports", "covariates")


class IndexFolder(NamedTuple):
    """The folder of an index, and the paths of its table files by table name."""

    path: Path
    files: Mapping[str, Path]


class RawTable(NamedTuple):
    """The rows of a file with our column names; `left_out` has the types of unusable columns."""

    rows: pl.LazyFrame
    left_out: Mapping[str, pl.DataType]

    @property
    def columns(self) -> list[str]:
        return self.rows.collect_schema().names()


def find_folder(folder: Path) -> IndexFolder:
    """Find table files in a folder, or in `output` in it."""
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise TableError(f"{folder} {what}: name the folder of an index.")
    for base in (folder, folder / "output"):
        files = {name: base / f"{name}.parquet" for name in COLUMN_RULES["required"]}
        if found := {name: path for name, path in files.items() if path.is_file()}:
            return IndexFolder(base, found)
    if _has_early_tables(folder):
        raise TableError(
            f"{folder} has an index of Microsoft GraphRAG 0 or 1, which is not supported: convert "
            "it with Microsoft's notebook index_migration_to_v2, or index the documents again."
        )
    raise TableError(
        f"There is no index in {folder}: neither index.json nor a table such as entities.parquet."
    )


def _has_early_tables(folder: Path) -> bool:
    """Return whether a folder has tables of Microsoft GraphRAG 0 or 1."""
    places = ("", "output/", "output/*/artifacts/")
    return any(any(folder.glob(f"{place}create_final_*.parquet")) for place in places)


def is_microsoft_index(folder: Path) -> bool:
    """Return whether a folder, or `output` in it, has tables of Microsoft GraphRAG."""
    try:
        path = find_folder(folder).path
    except TableError:
        return _has_early_tables(folder)
    return not any((path / name).exists() for name in ("index.json", "versions"))


def open_table(name: str, path: Path) -> RawTable:
    """Open a table lazily, with our column names and types."""
    # With glob=True, brackets in a path would be read as a pattern.
    rows = pl.scan_parquet(path, glob=False)
    with name_damaged_file({name: path}):
        schema = rows.collect_schema()
    wanted: dict[str, Any] = dict(TABLES[name].schema) if name in TABLES else {}
    wanted |= _FOREIGN_COLUMNS.get(name, {})
    columns, left_out = [], {}
    for column, dtype in schema.items():
        if column not in wanted:
            continue
        if column in _RECORD_COLUMNS and dtype.is_nested():
            columns.append(_to_json_text(column, dtype))
        elif column == "findings" and isinstance(dtype, pl.List | pl.Array):
            columns.append(_to_findings(dtype))
        elif _is_castable(dtype, wanted[column]):
            columns.append(pl.col(column).cast(wanted[column], strict=False))
        else:
            left_out[column] = dtype
    return RawTable(rows.select(columns), left_out)


def get_column_defaults(table: Table) -> dict[str, pl.Expr]:
    """Return the default value of each column; the default of a nullable column is null."""
    by_type: dict[Any, Any] = {pl.String: "", pl.Int64: 0, pl.Float64: 0, pl.Boolean: False}
    defaults = {name: by_type.get(dtype, []) for name, dtype in table.schema.items()}
    defaults |= dict.fromkeys(table.nullable or ())
    return {name: pl.lit(value, table.schema[name]) for name, value in defaults.items()}


def check_tables(folder: IndexFolder, tables: Mapping[str, RawTable]) -> None:
    """Raise TableError if a required table or column is missing."""
    for name, columns in COLUMN_RULES["required"].items():
        if name not in tables:
            if name in _OPTIONAL_TABLES:
                continue
            raise TableError(
                f"{folder.path} has no {name}.parquet: copy it there from where the index was made."
            )
        raw, path = tables[name], folder.files[name]
        for alternatives in columns:
            names = alternatives.split("|")
            if set(names) & set(raw.columns):
                continue
            if names[0] in raw.left_out:
                raise TableError(
                    f"{path}: the column {names[0]} is {raw.left_out[names[0]]}, and should be "
                    f"{TABLES[name].schema[names[0]]}: write the file again from a complete index."
                )
            raise TableError(
                f"{path} has no column {names[0]}: is it the table {name} of Microsoft GraphRAG? "
                "Copy it again from where the index was made."
            )


@contextmanager
def name_damaged_file(files: Mapping[str, Path]) -> Iterator[None]:
    """Convert a read error in the block to a `TableError` that names the damaged file."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        for path in files.values():
            try:
                pl.scan_parquet(path, glob=False).collect()
            except (pl.exceptions.PolarsError, OSError) as found:
                raise damaged_file_error(path, found) from error
        raise


def damaged_file_error(path: Path, error: Exception) -> TableError:
    """Return a `TableError` for a file that cannot be read."""
    return TableError(
        f"{path} cannot be read ({describe_error(error)[:160]}): it is cut off or no Parquet file; "
        "copy it again from where the index was made."
    )


def _to_json_text(column: str, dtype: pl.DataType) -> pl.Expr:
    """Convert a column of structs to JSON text; binary values become null."""
    value = _remove_bytes(pl.col(column), dtype)
    if not isinstance(dtype, pl.Struct):
        value = pl.struct(value)
    return pl.when(pl.col(column).is_not_null()).then(value.struct.json_encode()).alias(column)


def _remove_bytes(value: pl.Expr, dtype: Any) -> pl.Expr:
    if isinstance(dtype, pl.Binary):
        return pl.when(False).then(pl.lit(""))
    if isinstance(dtype, pl.Struct):
        parts = {of.name: of.dtype for of in dtype.fields if _may_contain_bytes(of.dtype)}
        changed = (_remove_bytes(value.struct.field(n), of).alias(n) for n, of in parts.items())
        return value.struct.with_fields(*changed) if parts else value
    if isinstance(dtype, pl.List | pl.Array) and _may_contain_bytes(dtype.inner):
        items = value if isinstance(dtype, pl.List) else value.arr.to_list()
        return items.list.eval(_remove_bytes(pl.element(), dtype.inner))
    return value


def _may_contain_bytes(dtype: Any) -> bool:
    return isinstance(dtype, pl.Binary) or dtype.is_nested()


def _to_findings(dtype: Any) -> pl.Expr:
    """Convert findings to `summary` and `explanation`; a plain text becomes an explanation."""
    item, findings = pl.element(), pl.col("findings")
    values = {"explanation": pl.lit(""), "summary": pl.lit("")}
    if isinstance(dtype.inner, pl.Struct):
        fields = {part.name for part in dtype.inner.fields} & values.keys()
        values |= {name: item.struct.field(name).cast(pl.String) for name in fields}
    elif not dtype.inner.is_nested():
        values["explanation"] = item.cast(pl.String)
    if isinstance(dtype, pl.Array):
        findings = findings.arr.to_list()
    struct = pl.struct(value.alias(name) for name, value in values.items())
    return findings.list.eval(struct).cast(FINDINGS)


def _is_castable(given: pl.DataType, wanted: Any) -> bool:
    if given == wanted or isinstance(given, pl.Null):
        return True
    if isinstance(wanted, pl.List):
        inner: Any = given.inner if isinstance(given, pl.List | pl.Array) else None
        return inner is not None and not inner.is_nested()
    return not given.is_nested() and not isinstance(given, pl.Binary)


class LanceVectors:
    """The vectors in a LanceDB table, read in batches; `fix` tells how to repair them."""

    def __init__(self, table: Any, label: str = "", fix: str = "make the vectors again") -> None:
        self.table, self.label, self.fix = table, label or str(table.name), fix

    @property
    def dimension(self) -> int:
        # 0 if the vectors are lists of variable length.
        return int(getattr(self.table.schema.field("vector").type, "list_size", 0))

    def batches(self, names: Sequence[str] = ("id", "vector", "text")) -> Iterator[pl.DataFrame]:
        columns = [name for name in names if name in self.table.schema.names]
        try:
            for batch in self.table.search().select(columns).to_batches(_VECTORS_PER_BATCH):
                yield pl.DataFrame(batch).with_columns(pl.col("id").cast(pl.String))
        except (ValueError, RuntimeError, OSError) as error:
            raise TableError(
                f"The vectors {self.label} break off ({describe_error(error)[:120]}): {self.fix}."
            ) from error


class ParquetVectors:
    """The vectors in a Parquet file; rows without a vector are skipped."""

    def __init__(self, path: Path) -> None:
        self.label = str(path)
        vector = pl.col("embedding").cast(pl.List(pl.Float32))
        rows = pl.scan_parquet(path, glob=False).select(pl.col("id").cast(pl.String), vector=vector)
        self.rows = rows.filter(pl.col("vector").list.len() > 0)

    @property
    def dimension(self) -> int:
        first = self.rows.select(pl.col("vector").list.len()).head(1).collect()
        return int(first.item()) if first.height else 0

    def batches(self) -> Iterator[pl.DataFrame]:
        dtype = pl.Array(pl.Float32, self.dimension)
        try:
            for rows in read_batches(self.rows, _VECTORS_PER_BATCH):
                yield rows.with_columns(pl.col("vector").cast(dtype))
        except (pl.exceptions.PolarsError, OSError) as error:
            raise TableError(
                f"The vectors in {self.label} cannot be read ({describe_error(error)[:120]}): "
                "they are cut off or of different lengths; make them again."
            ) from error


MicrosoftVectors = LanceVectors | ParquetVectors


def open_vectors(
    folder: Path,
) -> tuple[dict[str, MicrosoftVectors], dict[str, tuple[Path, str]]]:
    """Open the vectors of an index, and collect the errors of vectors that cannot be opened.

    The vectors are in `lancedb/`, or in `embeddings.<name>.parquet`. Both results are by our table
    names; the second has paths and error messages.
    """
    found: dict[str, MicrosoftVectors] = {}
    damaged: dict[str, tuple[Path, str]] = {}
    # Open vectors of version 3 first: in a folder of versions 2 and 3, they are newer.
    stores = sorted(
        (folder / "lancedb").glob("*.lance"), key=lambda p: (p.stem not in EMBEDDED_COLUMNS, p)
    )
    # Version 2 names a table `default-text_unit-text`, or with another container as the prefix.
    stems = {path: re.sub("[-.]", "_", path.stem) for path in stores}
    failures = (pl.exceptions.PolarsError, ValueError, RuntimeError, OSError, KeyError)
    for name in EMBEDDED_COLUMNS:
        snapshot = folder / f"embeddings.{name}.parquet"
        sources = [path for path, stem in stems.items() if stem.endswith(name)]
        for path in [*sources, *([snapshot] if snapshot.is_file() else [])]:
            try:
                vectors = _open_parquet(path) if path == snapshot else _open_lance(path)
            except failures as error:
                damaged[name] = (path, describe_error(error))
                continue
            if vectors is not None:
                found[name] = vectors
                damaged.pop(name, None)
                break
    return found, damaged


def _open_lance(path: Path) -> LanceVectors:
    import lancedb

    # LanceDB may treat a relative path as a cloud address.
    table = lancedb.connect(str(path.parent.absolute())).open_table(path.stem)
    vectors = LanceVectors(table, str(path))
    if vectors.dimension <= 0:
        raise ValueError("the vectors have no fixed length")
    return vectors


def _open_parquet(path: Path) -> ParquetVectors | None:
    """Open a file of vectors; None if it has no vector."""
    if "embedding" not in pl.scan_parquet(path, glob=False).collect_schema():
        return None
    vectors = ParquetVectors(path)
    return vectors if vectors.dimension else None

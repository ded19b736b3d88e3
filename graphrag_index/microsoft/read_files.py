"""The files of an index of Microsoft GraphRAG 0 to 3, and their names, columns and types."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from graphrag_index.errors import TableError, describe_error
from graphrag_index.schema.table import FINDINGS, STRINGS
from graphrag_index.schema.tables import TABLES

# The tables, by the names of version 2 and 3; up to version 1 `nodes` had the places of entities.
NAMES = (
    *("documents", "text_units", "entities", "relationships", "communities"),
    *("community_reports", "covariates", "nodes"),
)
_PREFIX = "create_final_"
# What versions 0 and 1 called it.
_EARLIER_NAMES = {
    "documents": {"raw_content": "text"},
    "entities": {"name": "title"},
    "relationships": {"rank": "combined_degree"},
    "community_reports": {"rank_explanation": "rating_explanation"},
}
# What only Microsoft's tables have, and is read.
_NODES: Mapping[str, Any] = {
    "id": pl.String,
    "title": pl.String,
    "community": pl.Int64,
    "level": pl.Int64,
    "x": pl.Float64,
    "y": pl.Float64,
}
_MORE: Mapping[str, Mapping[str, Any]] = {"text_units": {"document_ids": STRINGS}}
# Columns of records, which become JSON text.
_RECORDS = ("raw_data", "metadata")


class Folder(NamedTuple):
    """Where the tables of an index lie."""

    place: Path
    files: Mapping[str, Path]  # by the name of the table

    @property
    def is_early(self) -> bool:
        """Whether version 0 or 1 wrote it."""
        return any(path.name.startswith(_PREFIX) for path in self.files.values())


class RawTable(NamedTuple):
    """A table with the names and types of ours, as far as the file has them."""

    rows: pl.LazyFrame
    left_out: Mapping[str, pl.DataType]  # columns whose type cannot become that of ours

    @property
    def columns(self) -> list[str]:
        return self.rows.collect_schema().names()


def find_folder(folder: Path) -> Folder:
    """Find the tables in a folder, or in the folder `output` in it.

    Version 0 wrote `output/<time>/artifacts`: of several the newest is taken.

    Raises
    ------
    TableError
        There is no such folder, or no table in it.
    """
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "does not exist"
        raise TableError(f"{folder} {what}: name the folder of an index.")
    runs = sorted(folder.glob("output/*/artifacts"), reverse=True)
    for place in (folder, folder / "output", *runs):
        files = _files(place)
        if files:
            return Folder(place, files)
    raise TableError(
        f"There is no index in {folder}: neither index.json nor a table such as entities.parquet."
    )


def is_microsoft(folder: Path) -> bool:
    """Tell whether a folder, or `output` in it, holds tables of Microsoft's, and not of ours."""
    try:
        place = find_folder(folder).place
    except TableError:
        return False
    return not any((place / name).exists() for name in ("index.json", "versions"))


def _files(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for name in NAMES:
        for path in (folder / f"{name}.parquet", folder / f"{_PREFIX}{name}.parquet"):
            if path.is_file():
                found.setdefault(name, path)
    return found


def open_table(name: str, path: Path) -> RawTable:
    """Open a table; nothing but its columns is read yet.

    Raises
    ------
    TableError
        The file is cut off, or no Parquet file.
    """
    try:
        # A name with brackets is no pattern.
        rows = pl.scan_parquet(path, glob=False)
        schema = rows.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise unreadable(path, error) from error
    earlier = _EARLIER_NAMES.get(name, {})
    renames = {old: new for old, new in earlier.items() if old in schema and new not in schema}
    rows = rows.rename(renames)
    if name == "communities" and "community" not in schema:
        # Up to version 0 the id was the number.
        number = next((n for n in ("human_readable_id", "id") if n in schema), None)
        if number is not None:
            rows = rows.with_columns(community=pl.col(number))
    wanted: dict[str, Any] = dict(TABLES[name].schema if name in TABLES else _NODES)
    wanted |= _MORE.get(name, {})
    columns, left_out = [], {}
    for column, dtype in rows.collect_schema().items():
        if column not in wanted:
            continue
        if column in _RECORDS and dtype.is_nested():
            columns.append(as_json(column, dtype))
        elif column == "findings" and isinstance(dtype, pl.List | pl.Array):
            columns.append(_findings(dtype))
        elif _becomes(dtype, wanted[column]):
            columns.append(pl.col(column).cast(wanted[column], strict=False))
        else:
            left_out[column] = dtype
    return RawTable(rows.select(columns), left_out)


@contextmanager
def failures_of_files(files: Mapping[str, Path]) -> Iterator[None]:
    """Say which file is damaged, where reading tables fails in their midst.

    Raises
    ------
    TableError
        One is.
    """
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        for path in files.values():
            try:
                pl.scan_parquet(path, glob=False).collect()
            except (pl.exceptions.PolarsError, OSError) as found:
                raise unreadable(path, found) from error
        raise


def unreadable(path: Path, error: Exception) -> TableError:
    """Say that a file cannot be read, and what to do."""
    return TableError(
        f"{path} cannot be read ({describe_error(error)[:160]}): it is cut off or no Parquet file; "
        "copy it again from where the index was made."
    )


def as_json(column: str, dtype: pl.DataType) -> pl.Expr:
    """Write a column of records as JSON text, bytes in them as null."""
    value = _without_bytes(pl.col(column), dtype)
    if not isinstance(dtype, pl.Struct):
        value = pl.struct(value)
    return pl.when(pl.col(column).is_not_null()).then(value.struct.json_encode()).alias(column)


def _without_bytes(value: pl.Expr, dtype: Any) -> pl.Expr:
    """Put null for bytes, which JSON has not."""
    if isinstance(dtype, pl.Binary):
        return pl.when(False).then(pl.lit(""))
    if isinstance(dtype, pl.Struct):
        parts = {of.name: of.dtype for of in dtype.fields if _may_hold_bytes(of.dtype)}
        changed = (_without_bytes(value.struct.field(n), of).alias(n) for n, of in parts.items())
        return value.struct.with_fields(*changed) if parts else value
    if isinstance(dtype, pl.List | pl.Array) and _may_hold_bytes(dtype.inner):
        items = value if isinstance(dtype, pl.List) else value.arr.to_list()
        return items.list.eval(_without_bytes(pl.element(), dtype.inner))
    return value


def _may_hold_bytes(dtype: Any) -> bool:
    return isinstance(dtype, pl.Binary) or dtype.is_nested()


def _findings(dtype: Any) -> pl.Expr:
    """Read findings whatever their fields are; a mere text is an explanation."""
    item = pl.element()
    if isinstance(dtype.inner, pl.Struct):
        names = {part.name for part in dtype.inner.fields}
        fields = [
            (item.struct.field(n).cast(pl.String) if n in names else pl.lit("")).alias(n)
            for n in ("explanation", "summary")
        ]
    elif dtype.inner.is_nested():
        fields = [pl.lit("").alias("explanation"), pl.lit("").alias("summary")]
    else:
        fields = [item.cast(pl.String).alias("explanation"), pl.lit("").alias("summary")]
    findings = pl.col("findings")
    if isinstance(dtype, pl.Array):
        findings = findings.arr.to_list()
    return findings.list.eval(pl.struct(fields)).cast(FINDINGS).alias("findings")


def _becomes(given: pl.DataType, wanted: Any) -> bool:
    """Tell whether a column can be read as what it should be."""
    if given == wanted or isinstance(given, pl.Null):
        return True
    if isinstance(wanted, pl.List):
        if isinstance(given, pl.List | pl.Array):
            inner: Any = given.inner
            return not inner.is_nested()
        return False
    return not given.is_nested() and not isinstance(given, pl.Binary)


# Our names, which version 3 has too, with the table and the column that version 0 kept them in.
VECTOR_TABLES = {
    "text_unit_text": ("text_units", "text_embedding"),
    "entity_description": ("entities", "description_embedding"),
    "community_full_content": ("community_reports", "full_content_embedding"),
}
# Vectors read at once.
_AT_ONCE = 8_192


class LanceVectors:
    """A LanceDB table, read batch by batch."""

    def __init__(self, table: Any, place: str = "") -> None:
        self.table, self.place = table, place or str(table.name)

    @property
    def dimension(self) -> int:
        # A list of any length has none.
        return int(getattr(self.table.schema.field("vector").type, "list_size", 0))

    def batches(self) -> Iterator[pl.DataFrame]:
        columns = [name for name in ("id", "vector", "text") if name in self.table.schema.names]
        try:
            for batch in self.table.search().select(columns).to_batches(_AT_ONCE):
                yield pl.DataFrame(batch).with_columns(pl.col("id").cast(pl.String))
        except (ValueError, RuntimeError, OSError) as error:
            raise TableError(
                f"The vectors {self.place} break off ({describe_error(error)[:120]}): make "
                "them again."
            ) from error


class ParquetVectors:
    """Vectors in a column of a Parquet file."""

    def __init__(self, path: Path, column: str = "embedding") -> None:
        self.place = str(path)
        vector = pl.col(column).cast(pl.List(pl.Float32))
        rows = pl.scan_parquet(path, glob=False).select(pl.col("id").cast(pl.String), vector=vector)
        self.rows = rows.filter(pl.col("vector").list.len() > 0)

    @property
    def dimension(self) -> int:
        first = self.rows.select(pl.col("vector").list.len()).head(1).collect()
        return int(first.item()) if first.height else 0

    def batches(self, at_once: int = _AT_ONCE) -> Iterator[pl.DataFrame]:
        dtype = pl.Array(pl.Float32, self.dimension)
        n_rows = self.rows.select(pl.len()).collect().item()
        for start in range(0, n_rows, at_once):
            try:
                rows = self.rows.slice(start, at_once).collect()
                yield rows.with_columns(pl.col("vector").cast(dtype))
            except (pl.exceptions.PolarsError, OSError) as error:
                raise TableError(
                    f"The vectors in {self.place} cannot be read ({describe_error(error)[:120]}): "
                    "they are cut off or of different lengths; make them again."
                ) from error


MicrosoftVectors = LanceVectors | ParquetVectors


def open_vectors(
    place: Path, files: Mapping[str, Path]
) -> tuple[dict[str, MicrosoftVectors], dict[str, tuple[Path, str]]]:
    """Open the vectors that lie beside the tables.

    Returns
    -------
    vectors
        By our names: from `lancedb/`, else from `embeddings.<name>.parquet`, else from a column
        of the table.
    damaged
        Those that cannot be opened: where they are, and why.
    """
    found: dict[str, MicrosoftVectors] = {}
    damaged: dict[str, tuple[Path, str]] = {}
    # Where versions 2 and 3 wrote into one folder, version 3 was the last.
    stems = sorted(path.stem for path in (place / "lancedb").glob("*.lance"))
    for stem in sorted(stems, key=lambda stem: stem not in VECTOR_TABLES):
        path = place / "lancedb" / f"{stem}.lance"
        name = _name(stem)
        if name is None or name in found:
            continue
        try:
            found[name] = _lance(path)
        except (ValueError, RuntimeError, OSError, KeyError) as error:
            damaged[name] = (path, describe_error(error))
    for name, (table, column) in VECTOR_TABLES.items():
        snapshot = place / f"embeddings.{name}.parquet"
        kept = [(snapshot, "embedding")] if snapshot.is_file() else []
        kept += [(files[table], column)] if table in files else []
        for path, of in kept:
            if name in found:
                break
            try:
                if of not in pl.scan_parquet(path, glob=False).collect_schema():
                    continue
                vectors = ParquetVectors(path, of)
                # A column of nothing but nulls has no vectors.
                if vectors.dimension:
                    found[name] = vectors
            except (pl.exceptions.PolarsError, OSError) as error:
                if path == snapshot:
                    damaged[name] = (path, describe_error(error))
    return found, {name: why for name, why in damaged.items() if name not in found}


def _name(stem: str) -> str | None:
    """Return our name of a table of vectors: version 2 calls them default-text_unit-text, or has
    the name of a container before it; version 0 and 1 wrote entity_description_embeddings.
    """
    plain = stem.replace("-", "_").replace(".", "_").removesuffix("_embeddings")
    return next((name for name in VECTOR_TABLES if plain.endswith(name)), None)


def _lance(path: Path) -> LanceVectors:
    import lancedb

    # LanceDB may take a bare relative name for a cloud address.
    table = lancedb.connect(str(path.parent.absolute())).open_table(path.stem)
    vectors = LanceVectors(table, str(path))
    if vectors.dimension <= 0:
        raise ValueError("vectors of no fixed width")
    return vectors

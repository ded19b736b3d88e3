"""Write the folder of what is imported, see `folder`: all of it, or nothing."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_index.errors import TableError, describe_error
from graphrag_index.microsoft.import_index.import_folder import ABOUT, BATCH, FOLDER, FORMAT, PUBLIC
from graphrag_index.microsoft.import_index.import_source import Source
from graphrag_index.microsoft.read_index.index_files import unreadable
from graphrag_index.microsoft.read_index.index_vectors import VECTOR_TABLES
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.atomic import temporary_path, write_json
from graphrag_index.storage.table_check import TableCheck


@contextmanager
def new_imported(
    root: Path, source: Source, embedded_by: tuple[str, int | None] | None
) -> Iterator[dict[str, Any]]:
    """Write what is imported under a hidden name; it takes its own when the block has ended.

    Vectors are taken over if the model that made them is given. Gives what `import.json` will say.

    Raises
    ------
    TableError
        A table is damaged, or no table of ours can be made of it; nothing is left behind.
    """
    target = root / FOLDER
    temporary, replaced = temporary_path(target), target.with_name(f".{FOLDER}.old.tmp")
    _remove(temporary, replaced)
    try:
        temporary.mkdir(parents=True)
        for name in PUBLIC:
            if name in source.tables:
                _write_table(source, name, temporary / f"{name}.parquet")
        widths = {}
        for name in VECTOR_TABLES if embedded_by else ():
            if name in source.vectors:
                widths[name] = _write_vectors(source, name, temporary / f"{name}.parquet")
        about = {
            "format": FORMAT,
            "source": str(source.place.absolute()),
            "generation": source.generation,
            "vectors": widths,
            "embedded_by": embedded_by,
            "files": {path.name: _described(path) for path in sorted(temporary.iterdir())},
        }
        write_json(temporary / ABOUT, about)
        yield about
        if target.exists():
            target.replace(replaced)
        temporary.replace(target)
    finally:
        _remove(temporary, replaced)


def _write_table(source: Source, name: str, path: Path) -> None:
    """Write a table and see that it is one of ours."""
    file = source.files.get(name, source.place)
    try:
        source.tables[name].sink_parquet(path, compression="zstd", maintain_order=True)
    except (pl.exceptions.PolarsError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise unreadable(file, error) from error
    check = TableCheck("import", TABLES[name])
    check.wrote = f"{file} makes the table {name} with"
    for batch in _batches(pl.scan_parquet(path, glob=False)):
        check.add(batch)
    check.finish()


def _batches(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    n_rows = rows.select(pl.len()).collect().item()
    for start in range(0, n_rows, BATCH):
        yield rows.slice(start, BATCH).collect()


def _write_vectors(source: Source, name: str, path: Path) -> int:
    """Write the vectors of a table; returns how many numbers they have."""
    import pyarrow.parquet as pq

    found = source.vectors[name]
    try:
        width = found.dimension
        columns: dict[str, Any] = {"id": pl.String, "vector": pl.Array(pl.Float32, width)}
        schema = pl.Schema(columns)
        empty = schema.to_frame().to_arrow(compat_level=pl.CompatLevel.oldest())
        with pq.ParquetWriter(path, empty.schema, compression="zstd") as writer:
            for batch in found.batches():
                rows = batch.select("id", "vector").cast(schema)
                writer.write_table(
                    rows.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(empty.schema)
                )
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise TableError(
            f"The vectors {name} in {found.place} cannot be read ({describe_error(error)[:120]}): "
            "copy them again, or import without them (--no-vectors)."
        ) from error
    return width


def _described(path: Path) -> dict[str, object]:
    with path.open("r+b") as file:
        os.fsync(file.fileno())
        digest = file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()
    return {"bytes": path.stat().st_size, "digest": digest}


def _remove(*paths: Path) -> None:
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)

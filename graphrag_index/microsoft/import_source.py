"""What is imported: an index of Microsoft's, or an export of ours, with all of our columns."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from graphrag_index.errors import TableError, describe_error
from graphrag_index.microsoft.import_folder import ABOUT, BATCH, FOLDER, FORMAT, PUBLIC
from graphrag_index.microsoft.read_files import VECTOR_TABLES, MicrosoftVectors, damaged_file
from graphrag_index.microsoft.read_tables import MicrosoftIndex, renumbered
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.atomic import temporary_path, write_json
from graphrag_index.storage.table_check import TableCheck
from graphrag_index.storage.table_store import INDEX_FILE

# Where an export has what Microsoft's tables have no place for.
_OWN, _ABOUT, _SUFFIX = "graphrag_index", "export.json", ".arrow"


class Source(NamedTuple):
    """The tables of an index, each with all columns of ours, and its vectors.

    `model` made the vectors, as far as that is known.
    """

    place: Path
    files: Mapping[str, Path]
    generation: str
    tables: Mapping[str, pl.LazyFrame]
    vectors: Mapping[str, MicrosoftVectors]
    model: str | None


def open_source(folder: Path) -> Source:
    """Open a folder of Microsoft's, or one that `export --to microsoft` wrote.

    Raises
    ------
    TableError
        A table or a column is missing or damaged; or it is an index of ours.
    """
    for place in (folder, folder / "output"):
        if (place / INDEX_FILE).is_file() and (place / "versions").is_dir():
            raise TableError(
                f"{place} is an index of this program already: use it as it is, or write it in "
                "Microsoft's form with `graphrag-index export --to microsoft` and import that."
            )
    index = MicrosoftIndex(folder)
    for name, (path, why) in index.damaged_vectors.items():
        raise TableError(
            f"The vectors {name} in {path} cannot be opened ({why[:120]}): copy them again from "
            "where the index was made, or import without them (--no-vectors)."
        )
    about = _about(index.place)
    if about is None:
        tables = renumbered(index.tables)
        tables["community_lineage"] = _without_history(tables["communities"])
        kind = f"Microsoft GraphRAG {index.generation}"
        return Source(index.place, index.files, kind, tables, index.vectors, None)
    tables = {name: _whole(index, name) for name in PUBLIC if _is_there(index, name)}
    kind = "an export of this program"
    return Source(
        index.place, index.files, kind, tables, index.vectors, about.get("embedding_model")
    )


def _about(place: Path) -> dict[str, Any] | None:
    path = place / _OWN / _ABOUT
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise TableError(f"{path} is damaged: export the index again.") from error
    return about if isinstance(about, dict) else {}


def _own(index: MicrosoftIndex, name: str) -> Path:
    return index.place / _OWN / f"{name}{_SUFFIX}"


def _is_there(index: MicrosoftIndex, name: str) -> bool:
    return name in index.raw or _own(index, name).is_file()


def _whole(index: MicrosoftIndex, name: str) -> pl.LazyFrame:
    """Put the columns of ours, which lie beside the table of an export, into it."""
    table, path = TABLES[name], _own(index, name)
    parts: list[pl.LazyFrame] = []
    if path.is_file():
        try:
            parts.append(pl.scan_ipc(path, glob=False))
            columns = parts[0].collect_schema().names()
            n_own = parts[0].select(pl.len()).collect().item()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise damaged_file(path, error) from error
        if name in index.raw:
            n_rows = index.n_rows(name)
            if n_own != n_rows:
                raise TableError(
                    f"{path} has {n_own:,} rows and {index.files[name]} {n_rows:,}: they are not "
                    "of one export; export the index again."
                )
            rows = index.raw[name].rows
            parts.append(rows.drop(columns, strict=False))
    else:
        parts.append(index.raw[name].rows)
    whole = pl.concat(parts, how="horizontal") if len(parts) > 1 else parts[0]
    lacking = [column for column in table.columns if column not in whole.collect_schema()]
    if lacking:
        raise TableError(
            f"{path if path.is_file() else index.files[name]} has no column {lacking[0]}: export "
            "the index again."
        )
    return whole.select(pl.col(column).cast(kind) for column, kind in table.columns.items())


def _without_history(communities: pl.LazyFrame) -> pl.LazyFrame:
    """The lineage of communities of which no earlier ones are known."""
    nobody = pl.lit([], pl.List(pl.Int64))
    rows = communities.select(
        "community",
        "level",
        pl.lit("born").alias("status"),
        "size",
        pl.lit(0, pl.Int64).alias("previous_size"),
        pl.lit(0.0).alias("overlap"),
        nobody.alias("came_from"),
        nobody.alias("went_to"),
    )
    return rows.sort("level", "community")


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
        raise damaged_file(file, error) from error
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

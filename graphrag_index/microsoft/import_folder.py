"""The folder `imported/` beside `settings.yaml`: a copy of the imported index.

    imported/<table>.parquet    the public tables, with all columns
    imported/<name>.parquet     `id` and `vector` of each imported vector table
    imported/import.json        source, model of the vectors, and size and digest of each file

If this folder changes, a run computes its tables again.
"""

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from graphrag_index.errors import InputError, TableError, describe_error
from graphrag_index.microsoft.export_index import EXPORT_FILE, OWN_FOLDER, OWN_SUFFIX
from graphrag_index.microsoft.prepended_text import separate_text_again
from graphrag_index.microsoft.read_files import (
    MicrosoftVectors,
    damaged_file_error,
    get_column_defaults,
)
from graphrag_index.microsoft.read_tables import MicrosoftIndex, renumber_rows
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.atomic import digest_file, new_folder, write_json
from graphrag_index.storage.memo import read_batches
from graphrag_index.storage.table_writer import TableCheck, write_parquet
from graphrag_index.storage.versions import INDEX_FILE

FOLDER, DESCRIPTION_FILE = "imported", "import.json"
IMPORT_FORMAT = 1
# Names of the imported tables; the last two tables are optional.
IMPORTED_TABLES = (
    *("documents", "text_units", "entities", "relationships", "mentions"),
    *("communities", "community_lineage", "community_reports", "covariates"),
)
BATCH_ROWS = 8_192  # rows per batch of an imported table


class ImportedIndex:
    """The folder of an imported index; tables are read on use."""

    def __init__(self, root: Path) -> None:
        self.path = root / FOLDER
        self.description = _read_description(self.path)
        # Dimension of the vectors in each imported vector table, by table name.
        self.vectors: Mapping[str, int] = self.description["vectors"]
        # (name, requested dimensions) of the model that made the vectors; None without vectors.
        self.embedded_by = tuple(self.description.get("embedded_by") or ()) or None
        for name, file in self.description["files"].items():
            path = self.path / name
            if not path.is_file() or path.stat().st_size != file["bytes"]:
                what = "cut off or changed" if path.is_file() else "missing"
                raise InputError(
                    f"{path} is {what}: import the index again (`graphrag-index import DIR "
                    "--replace`)."
                )

    def has_table(self, name: str) -> bool:
        return f"{name}.parquet" in self.description["files"]

    def scan(self, name: str) -> pl.LazyFrame:
        """Open a public table; a table that was not imported is empty."""
        if not self.has_table(name):
            return TABLES[name].empty().lazy()
        return self.scan_vectors(name).select(list(TABLES[name].columns))

    def scan_vectors(self, name: str) -> pl.LazyFrame:
        """Open a vector table with the columns `id` and `vector`."""
        return pl.scan_parquet(self.path / f"{name}.parquet", glob=False)


def has_imported(root: Path) -> bool:
    """Return whether an index was imported into this project."""
    return (root / FOLDER / DESCRIPTION_FILE).is_file()


def fingerprint_imported(_: object, root: Path) -> str:
    """Return a hash of all imported files; raise InputError if a file is missing."""
    files = ImportedIndex(root).description["files"]
    digests = {name: file["digest"] for name, file in files.items()}
    return blake2b(json.dumps(digests, sort_keys=True).encode(), digest_size=16).hexdigest()


def _read_description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION_FILE
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if found["format"] == IMPORT_FORMAT and found["files"] and found["vectors"] is not None:
            return found
    except FileNotFoundError:
        raise InputError(
            f"There is no imported index in {folder}: `graphrag-index import DIR` puts it there."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is damaged: import the index again (`graphrag-index import DIR --replace`)."
        ) from error
    raise InputError(f"{path} is from another version of this program: import the index again.")


class ImportSource(NamedTuple):
    """An index to import: its tables with all of our columns, and its vectors.

    `model` is the name of the model of the vectors; None if unknown.
    """

    path: Path
    files: Mapping[str, Path]
    generation: str
    tables: Mapping[str, pl.LazyFrame]
    vectors: Mapping[str, MicrosoftVectors]
    model: str | None


def open_source(folder: Path) -> ImportSource:
    """Open an index of Microsoft GraphRAG, or an index written by `export --to microsoft`."""
    for candidate in (folder, folder / "output"):
        if (candidate / INDEX_FILE).is_file() and (candidate / "versions").is_dir():
            raise TableError(
                f"{candidate} is an index of this program already: use it as it is, or write it in "
                "Microsoft's form with `graphrag-index export --to microsoft` and import that."
            )
    index = MicrosoftIndex(folder)
    for name, (path, why) in index.damaged_vectors.items():
        raise TableError(
            f"The vectors {name} in {path} cannot be opened ({why[:120]}): copy them again from "
            "where the index was made, or import without them (--no-vectors)."
        )
    export = read_export(index.path)
    if export is None:
        tables = renumber_rows(index.tables)
        tables["community_lineage"] = _make_lineage(tables["communities"])
        kind, model = f"Microsoft GraphRAG {index.generation}", None
    else:
        own_folder = index.path / OWN_FOLDER
        own_files = {name: own_folder / f"{name}{OWN_SUFFIX}" for name in IMPORTED_TABLES}
        tables = {
            name: _join_own_columns(index, name, path)
            for name, path in own_files.items()
            if name in index.raw_tables or path.is_file()
        }
        kind, model = "an export of this program", export.get("embedding_model")
    return ImportSource(index.path, index.files, kind, tables, index.vectors, model)


def read_export(folder: Path) -> dict[str, Any] | None:
    """Return the description of an export; None if the folder is not an export."""
    path = folder / OWN_FOLDER / EXPORT_FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise TableError(f"{path} is damaged: export the index again.") from error
    return found if isinstance(found, dict) else {}


def _join_own_columns(index: MicrosoftIndex, name: str, path: Path) -> pl.LazyFrame:
    """Join a table of an export with our additional columns from the Arrow file."""
    parts: list[pl.LazyFrame] = []
    columns: list[str] = []
    if path.is_file():
        try:
            parts.append(pl.scan_ipc(path, glob=False))
            columns = parts[0].collect_schema().names()
            n_own = parts[0].select(pl.len()).collect().item()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise damaged_file_error(path, error) from error
        if name in index.raw_tables and n_own != (n_rows := index.n_rows(name)):
            raise TableError(
                f"{path} has {n_own:,} rows and {index.files[name]} {n_rows:,}: the files are not "
                "of one export; export the index again."
            )
    if name in index.raw_tables:
        parts.append(index.raw_tables[name].rows.drop(columns, strict=False))
    whole, table = pl.concat(parts, how="horizontal"), TABLES[name]
    if missing := [column for column in table.columns if column not in whole.collect_schema()]:
        raise TableError(
            f"{path if columns else index.files[name]} has no column {missing[0]}: export the "
            "index again."
        )
    rows = whole.select(table.cast_columns)
    return separate_text_again(rows) if name == "text_units" else rows


def _make_lineage(communities: pl.LazyFrame) -> pl.LazyFrame:
    """Return `community_lineage` for communities without predecessors."""
    columns = get_column_defaults(TABLES["community_lineage"]) | {"status": pl.lit("born")}
    columns |= {name: pl.col(name) for name in ("community", "level", "size")}
    return communities.select(**columns).sort("level", "community")


def write_imported(
    root: Path, source: ImportSource, embedded_by: tuple[str, int | None] | None
) -> None:
    """Replace the folder `imported` by a copy of the tables and vectors of an index.

    `embedded_by` is (name, requested dimensions) of the model of the vectors. If `embedded_by` is
    None, no vectors are copied. After an error the old folder remains.
    """
    target = root / FOLDER
    replaced = [path.name for path in target.iterdir()] if target.is_dir() else []
    with new_folder(target, replaced, overwrite=True) as folder:
        for name in source.tables:
            _write_table(source, name, folder / f"{name}.parquet")
        dimensions = {
            name: _write_vectors(name, vectors, folder / f"{name}.parquet")
            for name, vectors in (source.vectors.items() if embedded_by else ())
        }
        description = {
            "format": IMPORT_FORMAT,
            "source": str(source.path.absolute()),
            "generation": source.generation,
            "vectors": dimensions,
            "embedded_by": embedded_by,
            "files": {
                path.name: {"bytes": path.stat().st_size, "digest": digest_file(path)}
                for path in sorted(folder.iterdir())
            },
        }
        write_json(folder / DESCRIPTION_FILE, description)


def _write_table(source: ImportSource, name: str, path: Path) -> None:
    """Write a table to a Parquet file, and check the rows against our schema."""
    file = source.files.get(name, source.path)
    try:
        source.tables[name].sink_parquet(path, compression="zstd", maintain_order=True)
    except (pl.exceptions.PolarsError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise damaged_file_error(file, error) from error
    check = TableCheck("import", TABLES[name])
    check.step_wrote = f"{file} makes the table {name} with"
    rows = pl.scan_parquet(path, glob=False)
    for batch in read_batches(rows, BATCH_ROWS, has_long_texts=name == "documents"):
        check.add(batch)
    check.finish()


def _write_vectors(name: str, vectors: MicrosoftVectors, path: Path) -> int:
    """Write the vectors of a table, and return their dimension."""
    try:
        dimension = vectors.dimension
        schema = pl.Schema({"id": pl.String(), "vector": pl.Array(pl.Float32, dimension)})
        write_parquet(path, schema, vectors.batches())
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise TableError(
            f"The vectors {name} in {vectors.label} cannot be read ({describe_error(error)[:120]}):"
            " copy them again, or import without them (--no-vectors)."
        ) from error
    return dimension

"""Where tables lie on disk: versions, the one pointer, and atomic writing.

    output/index.json             the pointer: which file and which vectors each table is
    output/versions/<n>/          the tables that run n wrote, and steps.json, its journal
    output/lancedb/               vectors; LanceDB keeps versions itself, the pointer names one
    output/<table>.parquet        links to the current files, for people and other tools

A reader opens what the pointer names, and nothing else. A writer fills a new
folder and moves the pointer last, so a killed run changes nothing for readers.
"""

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.core.errors import TableError
from graphrag_index.core.tables import TABLES, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from graphrag_index.core.vector_store import VectorWriter

INDEX_FILE = "index.json"
JOURNAL_FILE = "steps.json"
FORMAT = 1
# Rows of one Parquet row group: what a reader holds in memory at once.
ROW_GROUP = 16_384


@dataclass(frozen=True)
class StoredTable:
    """One table of one version: a Parquet file, or a version of a LanceDB table."""

    rows: int
    digest: str
    file: str | None = None  # relative to the output folder, with /
    n_bytes: int | None = None  # of the file: one that was cut off is not taken for whole
    lance_version: int | None = None


@dataclass(frozen=True)
class StepRecord:
    """A finished step: the key of all that it depends on, what it wrote, what it cost."""

    name: str
    key: str
    tables: Mapping[str, StoredTable]
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_bytes: int | None = None


@dataclass(frozen=True)
class Version:
    """What `index.json` says: the steps of one finished run and the tables that they wrote."""

    number: int
    workflow: str
    program: str
    steps: tuple[StepRecord, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tables(self) -> dict[str, StoredTable]:
        """The tables; where several steps wrote one, the last."""
        return {name: table for step in self.steps for name, table in step.tables.items()}


class TableStore:
    """The output folder of one project."""

    def __init__(self, output: Path) -> None:
        # LanceDB may take a bare relative name for a cloud address.
        self.output = output.absolute()

    @property
    def lancedb(self) -> Path:
        return self.output / "lancedb"

    def folder(self, version: int) -> Path:
        return self.output / "versions" / str(version)

    def read_pointer(self) -> Version | None:
        """Read what the index is now; None before the first finished run."""
        path = self.output / INDEX_FILE
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["format"] == FORMAT:
                return Version(
                    number=content["version"],
                    workflow=content["workflow"],
                    program=content["program"],
                    steps=tuple(_step_record(record) for record in content["steps"]),
                    settings=content["settings"],
                )
        except FileNotFoundError:
            return None
        except OSError as error:
            raise TableError(f"{path} cannot be read: {error.strerror}.") from error
        except (ValueError, KeyError, TypeError) as error:
            raise TableError(
                f"{path} is damaged: restore it, or delete it and run `graphrag-index run`, "
                "which keeps what is whole."
            ) from error
        raise TableError(
            f"{path} has format {content['format']!r}, this program reads {FORMAT}: "
            f"use the program that wrote it, or delete {self.output} and run again."
        )

    def move_pointer(self, version: Version) -> None:
        """Make a version the one that readers open. The only moment that changes an index."""
        content = {
            "format": FORMAT,
            "version": version.number,
            "workflow": version.workflow,
            "program": version.program,
            "steps": [asdict(record) for record in version.steps],
            "settings": version.settings,
        }
        write_json(self.output / INDEX_FILE, content)

    def read_journal(self, version: int) -> tuple[StepRecord, ...]:
        """Read which steps a run has finished; nothing if it left no journal that can be read."""
        path = self.folder(version) / JOURNAL_FILE
        try:
            return tuple(
                _step_record(record) for record in json.loads(path.read_text(encoding="utf-8"))
            )
        except (OSError, ValueError, KeyError, TypeError):
            return ()

    def write_journal(self, version: int, steps: Iterable[StepRecord]) -> None:
        write_json(self.folder(version) / JOURNAL_FILE, [asdict(record) for record in steps])

    def newest_folder(self) -> int:
        """Return the highest number among the folders of versions, finished or not; 0 if none."""
        folders = self.output.glob("versions/*")
        return max((int(path.name) for path in folders if path.name.isdecimal()), default=0)

    def exists(self, name: str, table: StoredTable) -> bool:
        """Tell whether what a record names is still there, in its full length."""
        if table.file is not None:
            path = self.output / table.file
            return path.is_file() and table.n_bytes in (None, path.stat().st_size)
        # LanceDB writes manifests counting down from 2**64 - 1 (its naming scheme V2).
        manifest = f"{2**64 - 1 - (table.lance_version or 0):020}.manifest"
        return (self.lancedb / f"{name}.lance" / "_versions" / manifest).is_file()

    def scan(self, name: str, table: StoredTable) -> pl.LazyFrame:
        """Open a table for reading; nothing is read yet."""
        if table.lance_version is not None:
            from graphrag_index.core.vector_store import VectorTable

            return VectorTable.open(self.lancedb, name, table.lance_version).lazy()
        path = self.output / str(table.file)
        if not self.exists(name, table):
            what = "damaged" if path.is_file() else "missing"
            raise TableError(
                f"The table {name} is {what} ({path}): run `graphrag-index run` to write it again."
            )
        return pl.scan_parquet(path)

    def writer(self, version: int, table: Table, file_stem: str) -> "TableWriter | VectorWriter":
        """Open a table for writing, batch by batch; use it in a `with` block.

        Leaving the block without an error puts the table in place; `stored` then tells where.
        """
        if table.kind == "vectors":
            from graphrag_index.core.vector_store import VectorWriter

            return VectorWriter(self.lancedb, table, version)
        return TableWriter(self, version, table, file_stem)

    def link_public_tables(self, version: Version) -> None:
        """Point `output/<table>.parquet` at the files of this version."""
        for name in (name for name, table in TABLES.items() if table.kind == "public"):
            link = self.output / f"{name}.parquet"
            stored = version.tables.get(name)
            if stored is None or stored.file is None:
                # Left by another workflow, which wrote this table too.
                link.unlink(missing_ok=True)
                continue
            if link.is_symlink() and os.readlink(link) == stored.file:
                continue
            temporary = _temporary(link)
            temporary.unlink(missing_ok=True)
            try:
                temporary.symlink_to(stored.file)
            except OSError:
                # Windows grants symbolic links to few; a hard link or a copy reads the same.
                _link_or_copy(self.output / stored.file, temporary)
            temporary.replace(link)

    def remove_leftovers(self, keep: int | None = None) -> None:
        """Delete what no reader can have opened: half-written files, folders of runs that
        never finished except `keep`, and files of the current version that it does not name.
        """
        current = self.read_pointer()
        finished = current.number if current else 0
        for folder in self.output.glob("versions/*"):
            if folder.name.isdecimal() and int(folder.name) > finished and int(folder.name) != keep:
                shutil.rmtree(folder)
        if current:
            named = {table.file for step in current.steps for table in step.tables.values()}
            for path in self.folder(finished).glob("*.parquet"):
                if path.relative_to(self.output).as_posix() not in named:
                    path.unlink()
        for pattern in (".*.tmp", "versions/*/.*.tmp"):
            for leftover in self.output.glob(pattern):
                leftover.unlink()


class Previous:
    """The tables of the last finished run: where a step may find what it need not compute again."""

    def __init__(self, store: TableStore, version: Version | None) -> None:
        self.store = store
        self.tables = version.tables if version else {}
        self.settings: Mapping[str, Any] = version.settings if version else {}

    def scan(self, name: str) -> pl.LazyFrame | None:
        """Open a table of the last run, if there was one and it is still there."""
        table = self.tables.get(name)
        if table is None or not self.store.exists(name, table):
            return None
        return self.store.scan(name, table)


class TableWriter:
    """Writes one table batch by batch under a temporary name; leaving without error places it."""

    def __init__(self, store: TableStore, version: int, table: Table, file_stem: str) -> None:
        self.store = store
        self.table = table
        self.file = f"versions/{version}/{file_stem}.parquet"
        self.path = store.output / self.file
        self.temporary = _temporary(self.path)
        self.rows = 0

    def __enter__(self) -> "TableWriter":
        import pyarrow.parquet as pq

        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.schema = arrow_schema(self.table)
        self.writer = pq.ParquetWriter(self.temporary, self.schema, compression="zstd")
        return self

    def append(self, batch: pl.DataFrame) -> None:
        """Add rows; their columns are checked against the table's and put in its order."""
        self.writer.write_table(to_arrow(conform(batch, self.table), self.schema), ROW_GROUP)
        self.rows += batch.height

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.writer.close()
            if kind is None:
                self.stored = self._place()
        finally:
            self.temporary.unlink(missing_ok=True)

    def _place(self) -> StoredTable:
        with self.temporary.open("r+b") as file:
            digest = file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()
            n_bytes = file.tell()
            # The pointer must not reach the disk before what it names.
            os.fsync(file.fileno())
        self.temporary.replace(self.path)
        return StoredTable(rows=self.rows, digest=digest, file=self.file, n_bytes=n_bytes)


def conform(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Put a frame's columns in the table's order and cast them to its types.

    Raises
    ------
    TableError
        A column is missing, is not the table's, or holds values of another kind.
    """
    check_columns(frame, table)
    try:
        return frame.select(pl.col(name).cast(dtype) for name, dtype in table.columns.items())
    except pl.exceptions.PolarsError as error:
        raise TableError(f"The table {table.name} has values of a wrong type: {error}.") from error


def check_columns(frame: pl.DataFrame, table: Table) -> None:
    """See that a frame has a table's columns, in any order.

    Raises
    ------
    TableError
        A column is missing, or is not the table's.
    """
    missing = [name for name in table.columns if name not in frame.columns]
    unknown = [name for name in frame.columns if name not in table.columns]
    if missing or unknown:
        raise TableError(
            f"The table {table.name} must have the columns {', '.join(table.columns)}"
            + (f"; missing: {', '.join(missing)}" if missing else "")
            + (f"; unknown: {', '.join(unknown)}" if unknown else "")
            + "."
        )


def arrow_schema(table: Table) -> "pa.Schema":
    """Return the schema of the table's file: large strings, lists whose child is `element`."""
    import pyarrow as pa

    return pa.schema([pa.field(name, _arrow_type(dtype)) for name, dtype in table.schema.items()])


def _arrow_type(dtype: pl.DataType) -> "pa.DataType":
    import pyarrow as pa

    if isinstance(dtype, pl.List):
        return pa.list_(pa.field("element", _arrow_type(_instance(dtype.inner))))
    if isinstance(dtype, pl.Struct):
        return pa.struct(
            [pa.field(part.name, _arrow_type(_instance(part.dtype))) for part in dtype.fields]
        )
    plain: dict[pl.DataType, pa.DataType] = {
        pl.String(): pa.large_string(),
        pl.Int64(): pa.int64(),
        pl.Int32(): pa.int32(),
        pl.Float64(): pa.float64(),
        pl.Float32(): pa.float32(),
        pl.Boolean(): pa.bool_(),
    }
    return plain[dtype]


def _instance(dtype: Any) -> pl.DataType:
    instance: pl.DataType = dtype() if isinstance(dtype, type) else dtype
    return instance


def to_arrow(frame: pl.DataFrame, schema: "pa.Schema") -> "pa.Table":
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema)


def write_json(path: Path, content: object) -> None:
    """Write a small file so that a reader sees the old one or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(path)
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _temporary(path: Path) -> Path:
    """Where a file is written before it takes its name; `remove_leftovers` knows these names."""
    return path.with_name(f".{path.name}.tmp")


def _step_record(record: dict[str, Any]) -> StepRecord:
    tables = {name: StoredTable(**table) for name, table in record["tables"].items()}
    return StepRecord(**{**record, "tables": tables})


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)

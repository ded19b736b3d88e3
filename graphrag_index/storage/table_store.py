"""The output folder: versions, the pointer to the current version, and tables.

    output/index.json             the pointer: the file or the vectors of each table
    output/versions/<n>/          tables that run n wrote; steps.json, the journal of the run;
                                  index.json, the pointer of the version
    output/lancedb/               vectors in LanceDB; the pointer names a version of each table
    output/cypher/                databases for Cypher questions, built from the tables
    output/parts/                 results of shards of documents, which the next run reuses
    output/<table>.parquet        links to the current files, for people and other tools

A reader opens only files that the pointer names. A writer fills a new folder and moves the pointer
at the end, so that a killed run changes nothing for readers.
"""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.schema.tables import TABLES, Table
from graphrag_index.storage.atomic import temporary_path, write_text_file
from graphrag_index.storage.mapped_table import MappedTable
from graphrag_index.storage.table_writer import MAPPED_SUFFIX, SUFFIX, MappedWriter, TableWriter
from graphrag_index.storage.versions import (
    INDEX_FILE,
    StepRecord,
    StoredTable,
    Version,
    manifest_name,
    move_pointer,
    read_index_file,
    read_step_record,
)
from graphrag_index.storage.working_copy import WorkingCopy

if TYPE_CHECKING:
    from graphrag_index.storage.vector_store import VectorTable, VectorWriter

JOURNAL_FILE = "steps.json"


class TableStore:
    """The output folder of one project."""

    # Overridden for Microsoft GraphRAG: the reason why vectors are missing, and other gaps.
    is_ours = True
    lacks_vectors = ""
    gaps: tuple[str, ...] = ()

    def __init__(self, output: Path) -> None:
        # LanceDB may interpret a relative path as a cloud address.
        self.output = output.absolute()

    @cached_property
    def working_copy(self) -> WorkingCopy | None:
        """The working copy of a bucket that this folder is; None if it is a folder of its own."""
        return WorkingCopy.open(self.output)

    @property
    def place(self) -> str:
        """The folder or the bucket of the index, for people."""
        copy = self.working_copy
        return str(self.output) if copy is None else copy.bucket.url

    @property
    def lancedb(self) -> Path:
        return self.output / "lancedb"

    @property
    def graphs(self) -> Path:
        """The folder of databases for Cypher questions; their names are `<version>-<hash>.db`."""
        return self.output / "cypher"

    def folder(self, version: int) -> Path:
        return self.output / "versions" / str(version)

    def parts_folder(self, step: str, key: str) -> Path:
        """Return the folder for the parts of a step whose inputs have this hash."""
        return self.output / "parts" / f"{step}-{key[:12]}"

    def read_pointer(self) -> Version | None:
        """Read the description of the current version; None before the first finished run."""
        if self.working_copy is not None:
            self.working_copy.refresh()
        return read_index_file(self.output / INDEX_FILE)

    def make_current(self, version: Version) -> None:
        """Make a version the current version, in the bucket of the folder first, if it has one."""
        commit = self.working_copy.push if self.working_copy is not None else None
        move_pointer(self.output, version, commit)

    def read_version(self, number: int) -> Version:
        """Read the description of a version; raise TableError if the version does not exist."""
        known = self.versions()
        version = read_index_file(self.folder(number) / INDEX_FILE) if number in known else None
        if version is None:
            kept = ", ".join(map(str, known)) or "none"
            raise TableError(f"{self.place} has no version {number}; it has: {kept}.")
        return version

    def versions(self) -> list[int]:
        """Return the numbers of the versions that can be opened."""
        current = self.read_pointer()
        newest = current.number if current else 0
        files = self.output.glob(f"versions/*/{INDEX_FILE}")
        found = (int(path.parent.name) for path in files if path.parent.name.isdecimal())
        return sorted(number for number in found if number <= newest)

    def read_written_version(self, number: int) -> Version | None:
        """Read the description of a version, even if it never became current; None if missing."""
        try:
            return read_index_file(self.folder(number) / INDEX_FILE)
        except TableError:
            return None

    def is_gone(self, number: int) -> bool:
        """Return whether the files of a version were deleted."""
        return not (self.folder(number) / INDEX_FILE).is_file()

    def read_journal(self, version: int) -> tuple[StepRecord, ...]:
        """Read the finished steps of a run from its journal; empty if the journal is unreadable."""
        path = self.folder(version) / JOURNAL_FILE
        try:
            return tuple(map(read_step_record, json.loads(path.read_text(encoding="utf-8"))))
        except (OSError, ValueError, KeyError, TypeError):
            return ()

    def write_journal(self, version: int, steps: Iterable[StepRecord]) -> None:
        # Without indents, which would take `json` ten times as long after each step.
        content = json.dumps([asdict(record) for record in steps], ensure_ascii=False)
        write_text_file(self.folder(version) / JOURNAL_FILE, [content])

    def next_number(self) -> int:
        """Return the number of the version that the next run will start or resume."""
        current = self.read_pointer()
        folders = self.output.glob("versions/*")
        newest = max((int(path.name) for path in folders if path.name.isdecimal()), default=0)
        return max(newest, current.number + 1 if current else 1)

    def exists(self, name: str, table: StoredTable) -> bool:
        """Return whether the files of a table exist, and are not truncated."""
        if table.file is not None:
            path = self.output / table.file
            if self.working_copy is not None:
                self.working_copy.fetch(table.file)
            return path.is_file() and table.n_bytes in (None, path.stat().st_size)
        manifest = manifest_name(table.lance_version or 0)
        return (self.lancedb / f"{name}.lance" / "_versions" / manifest).is_file()

    def scan(self, name: str, table: StoredTable) -> pl.LazyFrame:
        """Open a table as a LazyFrame; no rows are read."""
        if table.lance_version is not None:
            return self.vectors(name, table).lazy()
        path = self._complete_file(name, table)
        # Pass `glob=False`: brackets in a path are not a pattern.
        scan = pl.scan_ipc if path.suffix == MAPPED_SUFFIX else pl.scan_parquet
        return scan(path, glob=False)

    def vectors(self, name: str, table: StoredTable) -> "VectorTable":
        """Open a vector table at the version that `table` names."""
        from graphrag_index.storage.vector_store import VectorTable

        return VectorTable.open(self.lancedb, name, table.lance_version)

    def map(self, name: str, table: StoredTable) -> MappedTable:
        """Open a mapped table, to read rows by number; nothing is loaded into memory."""
        return MappedTable.open(self._complete_file(name, table))

    def _complete_file(self, name: str, table: StoredTable) -> Path:
        path = self.output / str(table.file)
        if not self.exists(name, table):
            what = "damaged" if path.is_file() else "missing"
            raise TableError(
                f"The table {name} is {what} ({path}): run `graphrag-index run` to write it again."
            )
        return path

    def writer(
        self, version: int, table: Table, file_stem: str, **vector_options: Any
    ) -> "MappedWriter | TableWriter | VectorWriter":
        """Return a writer that writes a table in batches, inside a `with` block.

        If the block ends without an error, the table has its final name, and `stored` of the
        writer describes the table. `vector_options` are arguments of `VectorWriter`.
        """
        if table.kind == "vectors":
            from graphrag_index.storage.vector_store import VectorWriter

            return VectorWriter(self.lancedb, table, version, **vector_options)
        if table.kind == "mapped":
            return MappedWriter(self.output, version, table, file_stem)
        return TableWriter(self.output, version, table, file_stem)

    def link_public_tables(self, version: Version) -> None:
        """Link `output/<table>.parquet` to the files of this version."""
        for table in TABLES.values():
            if table.kind != "public":
                continue
            link = self.output / f"{table.name}.parquet"
            stored = version.tables.get(table.name)
            if stored is None or stored.file is None:
                # Delete a link of an earlier workflow.
                link.unlink(missing_ok=True)
                continue
            if link.is_symlink() and os.readlink(link) == stored.file:
                continue
            temporary = temporary_path(link)
            temporary.unlink(missing_ok=True)
            try:
                temporary.symlink_to(stored.file)
            except OSError:
                # Windows restricts symbolic links: make a hard link or a copy.
                source = self.output / stored.file
                try:
                    temporary.hardlink_to(source)
                except OSError:
                    shutil.copyfile(source, temporary)
            temporary.replace(link)

    def remove_leftovers(self, keep: int | None = None) -> None:
        """Delete files that no reader uses.

        Such files are half-written files, folders of unfinished runs (except run `keep`), and
        files in the folder of the current version that the pointer does not name.
        """
        current = self.read_pointer()
        finished = current.number if current else 0
        for folder in self.output.glob("versions/*"):
            if not folder.name.isdecimal() or int(folder.name) in range(finished + 1):
                continue
            # If there is no pointer, keep the finished versions.
            is_finished = current is None and (folder / INDEX_FILE).exists()
            if int(folder.name) != keep and not is_finished:
                shutil.rmtree(folder)
        if current:
            named = {table.file for step in current.steps for table in step.tables.values()}
            for path in self.folder(finished).glob("*"):
                is_table = path.suffix in (SUFFIX, MAPPED_SUFFIX)
                if is_table and path.relative_to(self.output).as_posix() not in named:
                    path.unlink()
        for pattern in (".*.tmp", "versions/*/.*.tmp"):
            for leftover in self.output.glob(pattern):
                leftover.unlink()

    def remove_old_parts(self, version: Version) -> None:
        """Delete the parts of steps, except the parts that belong to the tables of a version."""
        kept = {self.parts_folder(step.name, step.key) for step in version.steps}
        for path in self.output.glob("parts/*"):
            if path in kept:
                # A run that was killed may have left other files, such as partitions.
                for file in {*path.glob("*")} - {*path.glob("part-*")}:
                    file.unlink()
            elif path.is_dir():
                shutil.rmtree(path)
            else:  # a file of the system, such as .DS_Store
                path.unlink()
        with suppress(OSError):  # the folder is not there, or has parts
            (self.output / "parts").rmdir()


class Previous:
    """The tables of the last version, for a step that reuses their rows.

    `is_same_step` is true if the step wrote its last tables with the same code and settings.
    """

    def __init__(
        self, store: TableStore, version: Version | None, is_same_step: bool = False
    ) -> None:
        self.store, self.version, self.is_same_step = store, version, is_same_step
        self.tables = version.tables if version else {}
        self.settings: Mapping[str, Any] = version.settings if version else {}

    def scan(self, name: str) -> pl.LazyFrame | None:
        """Open a table of the last version; None if the table or its file is missing."""
        table = self.tables.get(name)
        if table is None or not self.store.exists(name, table):
            return None
        return self.store.scan(name, table)

    def open_vectors(self, name: str) -> "VectorTable | None":
        """Open a vector table of the last version; None if the table or its files are missing."""
        table = self.tables.get(name)
        if table is None or not self.store.exists(name, table):
            return None
        return self.store.vectors(name, table)

    def rolled_back_tables(self, name: str) -> Iterator[pl.LazyFrame]:
        """Yield the table `name` of each version that was rolled back, if it can be read."""
        if not (self.version and self.version.made and self.version.made.tables_of is not None):
            return
        for number in range(self.version.made.tables_of + 1, self.version.number):
            version = self.store.read_written_version(number)
            table = version.tables.get(name) if version else None
            if table is not None and self.store.exists(name, table):
                yield self.store.scan(name, table)


def open_index(output: Path) -> tuple[TableStore, Version]:
    """Open an index at its current version; raise TableError if no run has finished yet."""
    store = TableStore(output)
    version = store.read_pointer()
    if version is None:
        raise TableError(f"There is no index in {store.place} yet: run `graphrag-index run` first.")
    return store, version


def scan_table(store: TableStore, version: Version, name: str) -> pl.LazyFrame:
    """Open a table; return an empty table if the workflow does not write this table."""
    stored = version.tables.get(name)
    return TABLES[name].empty().lazy() if stored is None else store.scan(name, stored)

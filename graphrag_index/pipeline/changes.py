"""Changes of documents since the last run, changes of rows between versions, and dry runs.

A dry run predicts the steps of a run and their price; nothing is written or sent.
"""

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.pipeline.history import no_folder
from graphrag_index.pipeline.run import Watcher, finished_steps, is_whole, step_key
from graphrag_index.pipeline.workflow import Workflow, asking_steps, check_settings, services_of
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.schema.tables import content_id
from graphrag_index.step import Step
from graphrag_index.storage.table_store import TableStore, scan_table
from graphrag_index.storage.versions import StepRecord, StoredTable, Version

if TYPE_CHECKING:
    from graphrag_index.pipeline.estimate import Estimate

ADDED, CHANGED, RENAMED, DELETED = "added", "changed", "renamed", "deleted"
KINDS = (ADDED, CHANGED, RENAMED, DELETED)
UNCHANGED = "unchanged"
REMOVED = "removed"

# Documents per batch: bounds memory, not results.
BATCH_DOCUMENTS = 1_024

# One row per document, in any order.
COLUMNS = {
    "id": pl.String,  # as stated by the record; null if derived from the text
    "path": pl.String,
    "text": pl.String,  # digest of the text
    "details": pl.UInt64,  # hash of title, date, record and metadata; valid in one process
}
# Keys that pair a document of the index with one of the input, most specific first. A record
# that states an id is paired by the id alone.
_BY_CONTENT = (["path", "text", "details"], ["path", "text"], ["text"], ["path"])

# Citations contain row numbers, which change with other rows.
_CITATION = r"\[Data:[^\]]*\]"


# By table: the key of its rows, their display name, and the compared content. Weights, degrees,
# positions and ids of text units change with other documents: a row that differs in nothing else
# has not changed.
COMPARED = {
    "entities": (
        "id",
        pl.col("title"),
        [pl.col("title", "type", "description", "aliases", "frequency")],
    ),
    "relationships": (
        "id",
        pl.format("{} - {}", "source", "target"),
        [pl.col("source", "target", "type", "description"), pl.col("text_unit_ids").list.len()],
    ),
    "communities": (
        "community",
        pl.col("title"),
        [pl.col("level", "parent"), pl.col("entity_ids").list.sort()],
    ),
    "community_reports": (
        "community",
        pl.format("{}: {}", "community", "title"),
        [pl.col("title"), pl.col("summary", "full_content").str.replace_all(_CITATION, "")],
    ),
}


@dataclass(frozen=True)
class Difference:
    """The changed rows of one table, by kind: their number and names.

    The records of a file share one name.
    """

    counts: Mapping[str, int]
    names: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Changes:
    """Differences between the documents of the index and those of the input.

    `rows` has one row per document of either, with the columns `kind`, `old_row` and `row` (row
    numbers in the two tables), and `old_...` and `...` for each of `COLUMNS`. Of an added document
    the old columns are null, of a deleted one the new columns.
    """

    rows: pl.DataFrame

    def count(self, kind: str) -> int:
        """Return the number of documents of a kind."""
        return int((self.rows["kind"] == kind).sum())

    def __bool__(self) -> bool:
        return self.count(UNCHANGED) < self.rows.height

    def __str__(self) -> str:
        """Summarize on one line: "3 added, 1 deleted documents"."""
        counts = [(kind, n) for kind in KINDS if (n := self.count(kind))]
        if not counts:
            return "no document changed"
        summary = ", ".join(f"{n:,} {kind}" for kind, n in counts)
        return f"{summary} document{'s' * (sum(n for _, n in counts) != 1)}"

    def names(self, kind: str) -> list[str]:
        """Return the paths of the documents of a kind; the records of a file are grouped.

        A renamed document has both names: "a.md to b.md".
        """
        path = "old_path" if kind == DELETED else "path"
        keys = [path, "old_path"] if kind == RENAMED else [path]
        groups = self.rows.filter(kind=kind).group_by(keys, maintain_order=True).len()
        return [
            (f"{row['old_path']} to " if kind == RENAMED else "")
            + row[path]
            + (f" ({row['len']:,} records)" if row["len"] > 1 else "")
            for row in groups.iter_rows(named=True)
        ]


def digest_documents(batches: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the rows to compare of batches of `loaded_documents`, in their order."""
    n_of_text: dict[bytes, int] = {}
    parts = [pl.DataFrame(schema=COLUMNS)]
    for batch in batches:
        rows = []
        for id, path, text in batch.select("id", "path", "text").iter_rows():
            digest = content_id("document", text, "0")
            key = bytes.fromhex(digest)
            before = n_of_text.get(key, 0)
            # Without a stated id, it is derived from the text and the number of equal ones before.
            derived = content_id("document", text, str(before)) if before else digest
            if id == derived:
                n_of_text[key] = before + 1
            rows.append((None if id == derived else id, path, digest))
        details = batch.select("title", "creation_date", "raw_data", "metadata").hash_rows()
        frame = pl.DataFrame(rows, dict.fromkeys(("id", "path", "text"), pl.String), orient="row")
        parts.append(frame.with_columns(details=details))
    return pl.concat(parts)


def compare_documents(old: pl.DataFrame, new: pl.DataFrame) -> Changes:
    """Pair the documents of an index with those of the input, each once.

    Records with a stated id are paired by it. Other documents with the same path and text are
    unchanged, or changed if the title, date, record or metadata differ; with the same text and
    another path they are renamed; with the same path and another text they are changed.
    """
    before = old.rename({name: f"old_{name}" for name in COLUMNS}).with_row_index("old_row")
    after = new.with_row_index("row")
    pairs = []
    for stated, keys in ((True, ["id"]), *((False, keys) for keys in _BY_CONTENT)):
        left = _nth(before.filter(pl.col("old_id").is_not_null() == stated), keys, "old_")
        right = _nth(after.filter(pl.col("id").is_not_null() == stated), keys, "")
        found = left.join(right, on=["key", "nth"]).drop("key", "nth")
        pairs.append(found)
        before = before.join(found, on="old_row", how="anti")
        after = after.join(found, on="row", how="anti")
    rows = pl.concat([*pairs, before, after], how="diagonal")
    has_text, has_path = (pl.col(name) == pl.col(f"old_{name}") for name in ("text", "path"))
    kind = (
        pl.when(pl.col("old_row").is_null()).then(pl.lit(ADDED))
        .when(pl.col("row").is_null()).then(pl.lit(DELETED))
        .when(has_text & ~has_path).then(pl.lit(RENAMED))
        .when(has_text & (pl.col("details") == pl.col("old_details"))).then(pl.lit(UNCHANGED))
        .otherwise(pl.lit(CHANGED))
    )  # fmt: skip
    return Changes(rows.select(kind.alias("kind"), pl.all()).sort("row", "old_row"))


def _nth(rows: pl.DataFrame, keys: Sequence[str], prefix: str) -> pl.DataFrame:
    """Add the key of each row, and the number of rows before it with the same key."""
    key = pl.struct(pl.col(f"{prefix}{name}").alias(name) for name in keys)
    return rows.with_columns(key=key).with_columns(nth=pl.int_range(pl.len()).over("key"))


def compare(store: TableStore, before: Version, after: Version) -> dict[str, Difference]:
    """Compare the tables of two versions; names are in the order of the tables.

    Entities and relationships are identified by id, communities and reports by number; documents
    are paired as in a run.
    """
    digests = []
    for version in (before, after):
        # A workflow may only load documents. Those of an imported index are in no other table.
        table = "documents" if "documents" in version.tables else "loaded_documents"
        digests.append(_digest_table(store, table, version.tables))
    changes = compare_documents(*digests)
    kinds = {ADDED: ADDED, REMOVED: DELETED, CHANGED: CHANGED, RENAMED: RENAMED}
    counts = {kind: changes.count(found) for kind, found in kinds.items()}
    names = {kind: changes.names(found) for kind, found in kinds.items()}
    found = {"documents": Difference(counts, names)}
    for name, (key, label, content) in COMPARED.items():
        changed: dict[str, list[str]] = {}
        if before.tables.get(name) != after.tables.get(name):
            # Long texts are compared by their hash.
            hashed = pl.struct(*content).hash()
            compared = {"key": pl.col(key), "name": label, "content": hashed}
            old, new = (scan_table(store, one, name).select(**compared) for one in (before, after))
            rows = _changed_rows(old, new)
            changed = dict(rows.group_by("kind", maintain_order=True).agg("name").iter_rows())
        by_kind = {kind: changed.get(kind, []) for kind in (ADDED, REMOVED, CHANGED)}
        found[name] = Difference({kind: len(rows) for kind, rows in by_kind.items()}, by_kind)
    return found


def _digest_table(store: TableStore, name: str, tables: Mapping[str, StoredTable]) -> pl.DataFrame:
    if name not in tables:
        return digest_documents([])
    rows = store.scan(name, tables[name])
    starts = range(0, tables[name].rows, BATCH_DOCUMENTS)
    return digest_documents(rows.slice(start, BATCH_DOCUMENTS).collect() for start in starts)


def _changed_rows(before: pl.LazyFrame, after: pl.LazyFrame) -> pl.DataFrame:
    """Return the name and the kind of change of each row that differs."""
    old, new = (frame.with_columns(row=pl.int_range(pl.len())) for frame in (before, after))
    joined = new.join(old, on="key", how="full", coalesce=True, suffix="_before")
    is_added, is_removed = pl.col("row_before").is_null(), pl.col("row").is_null()
    kind = pl.when(is_added).then(pl.lit(ADDED)).when(is_removed).then(pl.lit(REMOVED))
    return (
        joined.filter(is_added | is_removed | (pl.col("content") != pl.col("content_before")))
        .select(
            name=pl.coalesce("name", "name_before"),
            kind=kind.otherwise(pl.lit(CHANGED)),
            row=pl.coalesce("row", "row_before"),
        )
        .sort("row", "name")
        .collect(engine="streaming")
    )


@dataclass(frozen=True)
class DryRun:
    """The result of a dry run."""

    output: Path
    version: int | None  # number of the current version
    run: Sequence[str]  # names of the steps that would run
    kept: Sequence[str]
    loader: str | None  # name of the step that reads the documents
    changes: Changes | None  # None if the input has not changed, or there is no loader
    unread: Sequence[tuple[str, str]]  # files and records, each with the reason
    estimate: "Estimate | None"  # None if no step that would run asks a model


def dry_run(
    workflow: Workflow,
    settings: Settings,
    root: Path,
    max_documents: int,
    watcher: Watcher | None = None,
    batch: bool = False,
) -> DryRun:
    """Predict the steps and the price of `run_workflow`.

    An update counts all documents; a first run is estimated from a sample of `max_documents`.
    With `batch`, chats have the price of a batch. Raises InputError if there is nothing to read.
    """
    # Models take long to import.
    from graphrag_index.pipeline.estimate import estimate

    store = TableStore(root / settings.output)
    if store.output.exists() and not store.output.is_dir():
        raise no_folder(store)
    current, loader = store.read_pointer(), workflow.loader
    run, kept = plan_steps(workflow, settings, root)
    changes, unread = None, []
    if loader is not None:
        before = _loaded(store, current, loader)
        if before is not None:
            unread = store.scan("unread_files", before.tables["unread_files"]).collect().rows()
        unread_before = unread
        if loader.name in run:
            now, unread = _read_input(loader, settings, root, watcher or Watcher())
            if before is not None or current is None:
                tables = before.tables if before else {}
                old = _digest_table(store, str(loader.input_table), tables)
                changes = compare_documents(old, now)
            if before is not None and not changes and unread == unread_before:
                run, kept = plan_steps(workflow, settings, root, same=(loader.name,))
    costs = None
    if asking_steps(workflow, settings) & set(run):
        n_documents = max_documents if current is None else sys.maxsize
        costs = estimate(workflow, settings, root, n_documents, watcher, batch, run)
    number = current.number if current else None
    name = loader.name if loader else None
    return DryRun(store.output, number, run, kept, name, changes, unread, costs)


def changes_since(
    store: TableStore, version: Version | None, loader: Step, record: StepRecord
) -> Changes | None:
    """Compare the documents that the loader has just read with those of the index.

    None if they are equal, or if there are none to compare with.
    """
    before, table = _loaded(store, version, loader), str(loader.input_table)
    if before is None or before.tables[table].digest == record.tables[table].digest:
        return None
    old, new = (_digest_table(store, table, one.tables) for one in (before, record))
    return compare_documents(old, new)


def plan_steps(
    workflow: Workflow, settings: Settings, root: Path, same: Collection[str] = ()
) -> tuple[list[str], list[str]]:
    """Return the names of the steps that would run, and of those that would be kept.

    The output of a step that would run is unknown, so all steps that read it count as running,
    though a run keeps them if the output is unchanged. The steps in `same` are known to write
    the same tables again. Raises InputError if there is nothing to read.
    """
    sections, services = check_settings(workflow, settings), services_of(settings, None, root)
    store = TableStore(root / settings.output)
    current = store.read_pointer()
    known = finished_steps(store, current, store.next_number())
    before = {record.name: record for record in (current.steps if current else ())}
    tables: dict[str, StoredTable] = {}
    unknown: set[str] = set()
    run, kept = [], []
    for step in workflow.steps:
        written = {table.name for table in step.writes}
        record = None
        if not unknown & {read.table for read in step.reads}:
            record = known.get(step_key(step, sections.get(step.name), tables, services, root))
        if record is not None and is_whole(store, record):
            kept.append(step.name)
        else:
            run.append(step.name)
            record = before.get(step.name) if step.name in same else None
        if record is None:
            unknown |= written
        else:
            unknown -= written
            tables.update(record.tables)
    return run, kept


def _loaded(store: TableStore, version: Version | None, loader: Step) -> StepRecord | None:
    """Return the record of the step that read the documents, if its tables still exist."""
    records = version.steps if version else ()
    mine = (one for one in records if one.name == loader.name and is_whole(store, one))
    return next(mine, None)


def _read_input(
    loader: Step, settings: Settings, root: Path, watcher: Watcher
) -> tuple[pl.DataFrame, list[tuple[str, str]]]:
    """Read the documents as a run would; keep only the compared columns."""
    unread: list[tuple[str, str]] = []
    section = check_settings(Workflow("input", (loader,)), settings)[loader.name]

    def documents() -> Iterator[pl.DataFrame]:
        progress = watcher.step_started(loader, 1, 1)
        read: Any = loader(settings=section, root=root, progress=progress)
        for frames in read:
            unread.extend(frames["unread_files"].rows())
            yield frames[loader.input_table]

    with closing(watcher):
        return digest_documents(documents()), unread

"""Comparisons of documents and of versions, and dry runs.

A dry run predicts the steps of a run and their price. It writes nothing and sends nothing.
"""

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.pipeline.history import make_output_folder_error
from graphrag_index.pipeline.run import (
    Watcher,
    find_finished_steps,
    hash_step_inputs,
    is_complete,
)
from graphrag_index.pipeline.workflow import (
    Workflow,
    describes_figures,
    find_asking_steps,
    make_services,
    select_sections,
)
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.tables import derive_document_id
from graphrag_index.step import Step
from graphrag_index.storage.table_store import TableStore, scan_table
from graphrag_index.storage.versions import StepRecord, StoredTable, Version
from graphrag_index.storage.working_copy import locate_output

if TYPE_CHECKING:
    from graphrag_index.pipeline.estimate import Estimate

ADDED, CHANGED, RENAMED, DELETED = "added", "changed", "renamed", "deleted"
CHANGE_KINDS = (ADDED, CHANGED, RENAMED, DELETED)
UNCHANGED = "unchanged"

# Number of documents per batch. The number limits memory and does not change the results.
BATCH_DOCUMENTS = 1_024

# Columns of the compared documents: one row per document, in any order.
COMPARED_COLUMNS = {
    "id": pl.String,  # id in the record; null if the id is derived from the text
    "path": pl.String,
    "text": pl.String,  # digest of the text of the document
    "details": pl.UInt64,  # hash of title, date, record and metadata; valid only in this process
}
# Columns that pair a document of the index with a document of the input, most specific columns
# first. A record with its own id is paired by the id alone.
_PAIRING_COLUMNS = (["path", "text", "details"], ["path", "text"], ["text"], ["path"])


@dataclass(frozen=True)
class Changes:
    """Differences between the documents of the index and the documents of the input.

    `rows` has one row per document. The column `kind` is the kind of change. `old_row` is the row
    number in the index, and `row` is the row number in the input. Each column of `COMPARED_COLUMNS`
    is there twice: `old_NAME` is the value in the index, and `NAME` is the value in the input. If a
    document was added, its old columns are null. If a document was deleted, its new columns are
    null.
    """

    rows: pl.DataFrame

    def count(self, kind: str) -> int:
        """Return the number of documents with this kind of change."""
        return int((self.rows["kind"] == kind).sum())

    def __bool__(self) -> bool:
        return self.count(UNCHANGED) < self.rows.height

    def __str__(self) -> str:
        """Summarize the changes on one line, for example "3 added, 1 deleted documents"."""
        counts = [(kind, n) for kind in CHANGE_KINDS if (n := self.count(kind))]
        if not counts:
            return "no document changed"
        summary = ", ".join(f"{n:,} {kind}" for kind, n in counts)
        return f"{summary} document{'s' * (sum(n for _, n in counts) != 1)}"

    def names(self, kind: str) -> list[str]:
        """Return the paths of the documents with this kind of change.

        Several records of one file are listed once, with their number. A renamed document is
        listed with both paths: "a.md to b.md".
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
    """Return one row per loaded document, in order, with the columns `COMPARED_COLUMNS`."""
    n_of_text: Counter[bytes] = Counter()
    parts = [pl.DataFrame(schema=COMPARED_COLUMNS)]
    for batch in batches:
        rows = []
        for id, path, text in batch.select("id", "path", "text").iter_rows():
            key, derived = derive_document_id(text, n_of_text)
            n_of_text[key] += id == derived
            rows.append((None if id == derived else id, path, key.hex()))
        details = batch.select("title", "creation_date", "raw_data", "metadata").hash_rows()
        frame = pl.DataFrame(rows, dict.fromkeys(("id", "path", "text"), pl.String), orient="row")
        parts.append(frame.with_columns(details=details))
    return pl.concat(parts)


def compare_documents(old: pl.DataFrame, new: pl.DataFrame) -> Changes:
    """Pair each document of the index with at most one document of the input.

    Records with their own ids are paired by id. Other documents are paired by path and text:

    - If path and text are equal, the document is unchanged. If its title, date, record or metadata
      differ, the document is changed.
    - If only the text is equal, the document is renamed.
    - If only the path is equal, the document is changed.
    """
    before = old.rename(lambda name: f"old_{name}").with_row_index("old_row")
    after = new.with_row_index("row")
    pairs = []
    for stated, keys in ((True, ["id"]), *((False, keys) for keys in _PAIRING_COLUMNS)):
        left = _number_equal_keys(
            before.filter(pl.col("old_id").is_not_null() == stated), keys, "old_"
        )
        right = _number_equal_keys(after.filter(pl.col("id").is_not_null() == stated), keys, "")
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


def _number_equal_keys(rows: pl.DataFrame, keys: Sequence[str], prefix: str) -> pl.DataFrame:
    """Add the columns `key` and `nth` (the number of earlier rows with the same key)."""
    key = pl.struct(pl.col(f"{prefix}{name}").alias(name) for name in keys)
    return rows.with_columns(key=key).with_columns(nth=pl.int_range(pl.len()).over("key"))


def digest_table(store: TableStore, name: str, tables: Mapping[str, StoredTable]) -> pl.DataFrame:
    """Return the digests of the documents of a stored table; no rows if the table is missing."""
    if name not in tables:
        return digest_documents([])
    rows = store.scan(name, tables[name])
    starts = range(0, tables[name].rows, BATCH_DOCUMENTS)
    return digest_documents(rows.slice(start, BATCH_DOCUMENTS).collect() for start in starts)


@dataclass(frozen=True)
class DryRun:
    """The result of a dry run."""

    place: str  # the folder or the bucket of the index
    version: int | None  # number of the current version
    run: Sequence[str]  # names of the steps that would run
    kept: Sequence[str]  # names of the steps whose tables would be reused
    loader: str | None  # name of the step that reads the documents
    changes: Changes | None  # None if the input is unchanged or the workflow reads no input
    unread: Sequence[tuple[str, str]]  # (file, reason) for each unread file or record
    estimate: "Estimate | None"  # None if no step that would run asks a model
    pictures: str = ""  # the pages that are pictures, and the time to read them


def dry_run(
    workflow: Workflow,
    settings: Settings,
    root: Path,
    max_documents: int,
    watcher: Watcher | None = None,
    batch: bool = False,
) -> DryRun:
    """Predict the steps and the price of `run_workflow`.

    For an update, the requests for all documents are counted. For a first run, the number of
    requests is estimated from a sample of `max_documents` documents. With `batch`, the price of
    the batch API is used for chat requests.
    Raises InputError if the input folder has no document.
    """
    # Import this module only here, because the import takes long.
    from graphrag_index.pipeline.estimate import estimate

    store = TableStore(locate_output(root, settings))
    if store.output.exists() and not store.output.is_dir():
        raise make_output_folder_error(store)
    current, loader = store.read_pointer(), workflow.loader
    run, kept = plan_steps(workflow, settings, root)
    changes, unread, pictures = None, [], ""
    if loader is not None:
        before = _find_loader_record(store, current, loader)
        if before is not None:
            unread = store.scan("unread_files", before.tables["unread_files"]).collect().rows()
        unread_before = unread
        if loader.name in run:
            now, unread, pictures = _read_input_documents(
                loader, settings, root, watcher or Watcher()
            )
            if before is not None or current is None:
                tables = before.tables if before else {}
                old = digest_table(store, str(loader.input_table), tables)
                changes = compare_documents(old, now)
            if before is not None and not changes and unread == unread_before:
                run, kept = plan_steps(workflow, settings, root, (loader.name,))
    costs = None
    if find_asking_steps(workflow, settings) & set(run):
        n_documents = max_documents if current is None else sys.maxsize
        costs = estimate(workflow, settings, root, n_documents, watcher, batch, run)
    number = current.number if current else None
    name = loader.name if loader else None
    return DryRun(store.place, number, run, kept, name, changes, unread, costs, pictures)


def compare_with_index(
    store: TableStore, version: Version | None, loader: Step, record: StepRecord
) -> Changes | None:
    """Compare the documents that were just read with the documents of the index.

    Return None if the documents are equal, or if the index has no documents.
    """
    before, table = _find_loader_record(store, version, loader), str(loader.input_table)
    if before is None or before.tables[table].digest == record.tables[table].digest:
        return None
    old, new = (digest_table(store, table, one.tables) for one in (before, record))
    return compare_documents(old, new)


def plan_steps(
    workflow: Workflow,
    settings: Settings,
    root: Path,
    same: Collection[str] = (),
) -> tuple[list[str], list[str]]:
    """Return the names of the steps that would run, and the names of the steps to reuse.

    The output of a step that would run is unknown. So every step that reads this output counts as
    a step that would run, although a real run reuses the step if the output is unchanged. The
    steps in `same` are known to write the same tables again.
    """
    sections = select_sections(workflow, settings)
    services = make_services(settings, None, root)
    store = TableStore(locate_output(root, settings))
    current = store.read_pointer()
    known = find_finished_steps(store, current, store.next_number())
    before = {record.name: record for record in (current.steps if current else ())}
    tables: dict[str, StoredTable] = {}
    unknown: set[str] = set()
    run, kept = [], []
    for step in workflow.steps:
        written = {table.name for table in step.writes}
        record = None
        if not unknown & {read.table for read in step.reads}:
            record = known.get(
                hash_step_inputs(step, sections.get(step.name), tables, services, root)
            )
        if record is not None and is_complete(store, record):
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


def _find_loader_record(
    store: TableStore, version: Version | None, loader: Step
) -> StepRecord | None:
    """Return the record of the step that read the documents; None if a table of it is missing."""
    records = version.steps if version else ()
    return next((r for r in records if r.name == loader.name and is_complete(store, r)), None)


def _read_input_documents(
    loader: Step, settings: Settings, root: Path, watcher: Watcher
) -> tuple[pl.DataFrame, list[tuple[str, str]], str]:
    """Read the input folder. Return its documents with the compared columns, and unread files.

    Pages that are pictures and not read yet are described.
    """
    unread: list[tuple[str, str]] = []
    section = select_sections(Workflow("input", (loader,)), settings)[loader.name]
    services: dict[str, Any] = {"settings": section, "root": root}

    def documents() -> Iterator[pl.DataFrame]:
        progress = watcher.step_started(loader, 1, 1)
        read: Any = loader(**services, progress=progress)
        for frames in read:
            unread.extend(frames["unread_files"].rows())
            yield frames[loader.input_table]

    # Import these modules only here, because the import takes long.
    from graphrag_index.pipeline.estimate import PastReplies
    from graphrag_index.readers.recognition import PageReader, describe_pictures

    with closing(watcher), closing(PastReplies(locate_output(root, settings))) as past:
        reader = PageReader(lambda: past, only_known=True)
        if "page_reader" in loader.services:
            services["page_reader"] = reader
        if "describes_figures" in loader.services:
            services["describes_figures"] = describes_figures(root, settings)
        found = digest_documents(documents())
    told = describe_pictures(reader.n_missing, reader.seconds) if reader.n_missing else ""
    return found, unread, told


REMOVED = "removed"

# Pattern of citations. Their row numbers change when other rows change, so citations are removed.
_CITATION_PATTERN = r"\[Data:[^\]]*\]"

# For each table: the key of its rows, the display name of a row, and the compared columns. Weights,
# degrees, positions and ids of text units are not compared, because a change of other documents
# changes them too.
COMPARED_TABLES = {
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
        [pl.col("title"), pl.col("summary", "full_content").str.replace_all(_CITATION_PATTERN, "")],
    ),
}


@dataclass(frozen=True)
class Difference:
    """The changed rows of one table, grouped by the kind of change.

    `counts` has the number of rows of each kind, and `names` has the names of the rows. Several
    records of one file are listed under one name.
    """

    counts: Mapping[str, int]
    names: Mapping[str, Sequence[str]]


def compare_versions(store: TableStore, before: Version, after: Version) -> dict[str, Difference]:
    """Compare the tables of two versions. Return the differences by table name.

    Rows of entities and relationships are matched by id. Rows of communities and reports are
    matched by community number. Documents are paired by `compare_documents`. The names of changed
    rows are in the order of the rows.
    """
    changes = _compare_stored_documents(store, before, after)
    kinds = {ADDED: ADDED, REMOVED: DELETED, CHANGED: CHANGED, RENAMED: RENAMED}
    counts = {kind: changes.count(found) for kind, found in kinds.items()}
    names = {kind: changes.names(found) for kind, found in kinds.items()}
    found = {"documents": Difference(counts, names)}
    for name in COMPARED_TABLES:
        rows = _find_changed_rows(store, before, after, name)
        changed = dict(rows.group_by("kind", maintain_order=True).agg("name").iter_rows())
        by_kind = {kind: changed.get(kind, []) for kind in (ADDED, REMOVED, CHANGED)}
        found[name] = Difference({kind: len(rows) for kind, rows in by_kind.items()}, by_kind)
    return found


def compare_rows(store: TableStore, before: Version, after: Version, table: str) -> pl.DataFrame:
    """Return the changed rows of `documents` or a table of `COMPARED_TABLES`, in their order.

    The columns are `kind` (added, removed, changed, renamed), `name`, and `before` and `after`:
    the number of the row in each version, null in the version that does not have the row. The
    number is the `human_readable_id`, or that of the community. Rows are matched as in
    `compare_versions`.
    """
    if table != "documents":
        return _find_changed_rows(store, before, after, table)
    rows = _compare_stored_documents(store, before, after).rows
    return rows.filter(pl.col("kind") != UNCHANGED).select(
        kind=pl.col("kind").replace(DELETED, REMOVED),
        name=pl.coalesce("path", "old_path"),
        before=pl.col("old_row").cast(pl.Int64),
        after=pl.col("row").cast(pl.Int64),
    )


def _compare_stored_documents(store: TableStore, before: Version, after: Version) -> Changes:
    digests = []
    for version in (before, after):
        # Compare `loaded_documents` if a workflow only loads documents and has no table
        # `documents`. An imported index has only the table `documents`.
        table = "documents" if "documents" in version.tables else "loaded_documents"
        digests.append(digest_table(store, table, version.tables))
    return compare_documents(*digests)


def _find_changed_rows(
    store: TableStore, before: Version, after: Version, table: str
) -> pl.DataFrame:
    """Return the rows of a table that were added, removed or changed; see `compare_rows`."""
    key, label, content = COMPARED_TABLES[table]
    if before.tables.get(table) == after.tables.get(table):
        columns = {"kind": pl.String, "name": pl.String, "before": pl.Int64, "after": pl.Int64}
        return pl.DataFrame(schema=columns)
    # Compare hashes of the columns, because their texts may be long.
    number = pl.col("community" if key == "community" else "human_readable_id").cast(pl.Int64)
    compared = {"key": pl.col(key), "name": label, "content": pl.struct(*content).hash()}
    old, new = (
        scan_table(store, version, table)
        .select(**compared, number=number)
        .with_columns(row=pl.int_range(pl.len()))
        for version in (before, after)
    )
    joined = new.join(old, on="key", how="full", coalesce=True, suffix="_before")
    is_added, is_removed = pl.col("row_before").is_null(), pl.col("row").is_null()
    kind = pl.when(is_added).then(pl.lit(ADDED)).when(is_removed).then(pl.lit(REMOVED))
    return (
        joined.filter(is_added | is_removed | (pl.col("content") != pl.col("content_before")))
        .sort(pl.coalesce("row", "row_before"), pl.coalesce("name", "name_before"))
        .select(
            kind=kind.otherwise(pl.lit(CHANGED)),
            name=pl.coalesce("name", "name_before"),
            before="number_before",
            after="number",
        )
        .collect(engine="streaming")
    )

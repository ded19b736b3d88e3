"""An index opened for checks, and the findings that checks return."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from graphrag_index.errors import SettingsError, TableError, describe_error, format_count
from graphrag_index.microsoft.read_files import (
    LanceVectors,
    MicrosoftVectors,
    RawTable,
    find_folder,
    open_table,
    open_vectors,
)
from graphrag_index.microsoft.read_tables import detect_generation
from graphrag_index.schema.tables import EMBEDDED_COLUMNS, TABLES
from graphrag_index.storage.skipped_files import describe_skipped, read_skipped
from graphrag_index.storage.table_store import TableStore, open_index
from graphrag_index.storage.vector_store import VectorTable
from graphrag_index.storage.versions import INDEX_FILE
from graphrag_index.storage.working_copy import WorkingCopy
from graphrag_nlp.text.languages import read_lists

_LISTS = read_lists("graphrag_index/health/checked_tables")
# Columns that checks need. `a|b` means that one of the two columns is enough.
NEEDED_COLUMNS: Mapping[str, str] = _LISTS["needed_columns"]
# Name of one row of each table, in messages.
SINGULAR: Mapping[str, str] = _LISTS["singular"]
# Column of a table → key of another table: each value of the column must be a value of the key.
REFERENCES: Mapping[str, str] = _LISTS["references"]
# Section of a citation → column of the numbers that the section cites.
CITED_COLUMNS: Mapping[str, str] = _LISTS["cited_columns"]
# Titles of checks, notes on repeated values, and explanations of findings.
TEXTS: Mapping[str, Mapping[str, str]] = read_lists("graphrag_index/health/finding_texts")
EXPLANATIONS = TEXTS["explanations"]
_UNCHECKED_COLUMNS = ("raw_data", "metadata")
MAX_EXAMPLES = 5
_ROWS_PER_BATCH = 65_536
# (name of an embedding model on its server, requested dimensions or None).
ModelIdentity = tuple[str, int | None]


@dataclass(frozen=True)
class Finding:
    """All defects of one type in one table."""

    table: str  # a table, or table and column: entities.text_unit_ids
    count: int
    of: int  # number of checked rows or ids
    examples: tuple[str, ...]  # the first defective rows, by number, id or title
    means: str  # one or two sentences: the explanation, and what to do


@dataclass(frozen=True)
class CheckResult:
    """The findings of one check.

    `of` is the number of checked rows or ids; None if the index lacks the tables of the check.
    """

    of: int | None
    findings: Sequence[Finding] = ()

    @property
    def count(self) -> int:
        return sum(finding.count for finding in self.findings)


NOT_CHECKED = CheckResult(None)


@dataclass
class CheckedIndex:
    """The tables of an index, with the columns that `tables.yaml` defines, and its vectors."""

    path: Path
    made_by: str
    version: int | None  # None for an index of Microsoft GraphRAG
    tables: dict[str, pl.LazyFrame] = field(default_factory=dict)
    vectors: dict[str, MicrosoftVectors] = field(default_factory=dict)
    search_tables: dict[str, pl.LazyFrame] = field(default_factory=dict)
    damaged: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # sentences on parts that are not checked
    vector_models: Mapping[str, ModelIdentity] = field(default_factory=dict)  # by vector table
    question_model: ModelIdentity | None = None  # embedding model in the settings
    is_imported: bool = False  # an own index with imported rows

    def __post_init__(self) -> None:
        self._columns = {name: set(t.collect_schema()) for name, t in self.tables.items()}

    @property
    def place(self) -> str:
        """The folder or the bucket of the index, for people."""
        copy = WorkingCopy.open(self.path)
        return str(self.path) if copy is None else copy.bucket.url

    @property
    def is_own(self) -> bool:
        """Whether this program wrote the index, without imported rows."""
        return self.version is not None and not self.is_imported

    def has(self, name: str, *columns: str) -> bool:
        return name in self._columns and self._columns[name].issuperset(columns)

    def first_column(self, name: str, *columns: str) -> str | None:
        """Return the first of these columns that the table has; None if it has none of them."""
        return next((column for column in columns if self.has(name, column)), None)

    def label_column(self, name: str) -> str:
        """Return the column that identifies a row in messages: its number, or else its id."""
        number = "community" if name == "community_reports" else "human_readable_id"
        return self.first_column(name, number, "human_readable_id") or "id"

    def relationship_keys(self) -> tuple[str, list[str]]:
        """Return the column of entities that relationships refer to, and those that refer to it.

        Relationships of Microsoft GraphRAG have titles of source and target, but no ids.
        """
        if self.has("relationships", "source_id", "target_id"):
            return "id", ["source_id", "target_id"]
        return "title", ["source", "target"]

    def text_unit_documents(self) -> pl.LazyFrame | None:
        """Return pairs of hashed ids: `unit` of a text unit, and `key` of its document."""
        column = self.first_column("text_units", "document_id", "document_ids")
        if column is None or not self.has("text_units", "id"):
            return None
        rows = self.tables["text_units"].select(unit=pl.col("id").hash(), key=column)
        if column == "document_ids":
            rows = explode_lists(rows, "key")
        return rows.with_columns(pl.col("key").hash())

    def leave_out_damaged_tables(self) -> bool:
        """Read all tables and remove damaged ones; return whether a table was removed."""
        n_before = len(self.damaged)
        for tables in (self.tables, self.search_tables):
            for name, rows in list(tables.items()):
                try:
                    for start in range(0, count_rows(rows), _ROWS_PER_BATCH):
                        rows.slice(start, _ROWS_PER_BATCH).collect()
                except (pl.exceptions.PolarsError, OSError) as error:
                    del tables[name]
                    self._columns.pop(name, None)
                    self.damaged.append(damaged_table_finding(name, describe_error(error)))
        return len(self.damaged) > n_before

    def missing_parts(self) -> list[str]:
        """Return a sentence for each missing table and for missing columns."""
        lines = []
        # Do not report the table of claims, which is optional, and damaged tables.
        expected = {"covariates", *(finding.table for finding in self.damaged)}
        for name, columns in NEEDED_COLUMNS.items():
            if name not in self._columns:
                if name not in expected:
                    lines.append(f"There is no table {name}: checks that need it are skipped.")
                continue
            has = self._columns[name]
            missing = [c for c in columns.split() if not has.intersection(c.split("|"))]
            if missing:
                names = ", ".join(column.split("|")[0] for column in missing)
                lines.append(f"{name} has no {names}: checks that need it are skipped.")
        return lines


def open_for_check(folder: Path, as_of: int | None = None) -> CheckedIndex:
    """Open an index of graphrag-index or of Microsoft GraphRAG for checks.

    Raises TableError if the folder has no index, and SettingsError if `as_of` is given for an
    index of Microsoft GraphRAG, which has no versions.
    """
    for path in (folder, folder / "output"):
        if (path / INDEX_FILE).is_file():
            return open_own(path, as_of)
    if as_of is not None:
        raise SettingsError(f"{folder} has no index of graphrag-index: --as-of needs its versions.")
    return open_microsoft(folder)


def open_own(output: Path, as_of: int | None = None) -> CheckedIndex:
    """Open an index of graphrag-index; report damaged tables as findings.

    Raises TableError if there is no index, or no version `as_of` of the index.
    """
    store = TableStore(output)
    version = open_index(output)[1] if as_of is None else store.read_version(as_of)
    tables: dict[str, dict[str, pl.LazyFrame]] = {"public": {}, "mapped": {}}
    vectors: dict[str, MicrosoftVectors] = {}
    models, damaged, notes = {}, [], list[str]()
    for name, stored in version.tables.items():
        kind = TABLES[name].kind if name in TABLES else "other"
        if stored.vectors is not None and stored.vectors.identity is not None:
            models[name] = stored.vectors.identity
        try:
            if kind == "vectors":
                opened = VectorTable.open(store.lancedb, name, stored.lance_version)
                vectors[name] = LanceVectors(opened.table)
            elif kind in tables:
                rows = store.scan(name, stored)
                # Read the schema, which fails if the file is missing or truncated.
                rows.collect_schema()
                tables[kind][name] = rows
                if name == "pages":
                    notes.append(_describe_recognized(rows))
            elif name == "skipped_files":
                notes.append(describe_skipped(read_skipped(store, version)))
            elif name == "unread_files" and stored.rows:
                what = "file or record was" if stored.rows == 1 else "files or records were"
                notes.append(f"{stored.rows:,} {what} not read: status --all lists them.")
        except TableError as error:
            damaged.append(Finding(name, 1, 1, (), str(error)))
        except (pl.exceptions.PolarsError, OSError) as error:
            damaged.append(
                damaged_table_finding(name, describe_error(error), output / str(stored.file))
            )
    return CheckedIndex(
        store.output,
        f"graphrag-index {version.program}, workflow {version.workflow}, version {version.number}",
        version.number,
        tables["public"],
        vectors,
        tables["mapped"],
        damaged,
        list(filter(None, notes)),
        vector_models=models,
        is_imported=any(record.name == "read_imported" for record in version.steps),
    )


def _describe_recognized(pages: pl.LazyFrame) -> str:
    """Say how many pages were read by OCR, and how many figures described; empty if none."""
    found = pages.filter(pl.col("engine") != "").select("kind", "document_id").collect()
    said = []
    for kind, what, end in (
        ("page", "pages", "read by OCR, which makes mistakes."),
        ("figure", "figures", "described by a model, which makes mistakes."),
    ):
        rows = found.filter(kind=kind)
        of = format_count("documents", rows["document_id"].n_unique())
        said += [f"{format_count(what, rows.height)} of {of} {end}"] * bool(rows.height)
    return " ".join(said)


def open_microsoft(folder: Path) -> CheckedIndex:
    """Open an index of Microsoft GraphRAG in place; report damaged files as findings.

    No column is derived. Raises TableError if the folder has no table.
    """
    found = find_folder(folder)
    notes: list[str] = []
    damaged: list[Finding] = []
    raw_tables: dict[str, RawTable] = {}
    for name, path in found.files.items():
        try:
            raw_tables[name] = open_table(name, path)
        except TableError as error:
            damaged.append(damaged_table_finding(name, str(error), path))
            continue
        for column, dtype in raw_tables[name].left_out.items():
            if column not in _UNCHECKED_COLUMNS:
                notes.append(f"{name}.{column} is {dtype}: checks that need it are skipped.")
    tables = {name: table.rows for name, table in raw_tables.items() if name in NEEDED_COLUMNS}
    vectors, broken = open_vectors(found.path)
    damaged += [damaged_table_finding(name, why, path) for name, (path, why) in broken.items()]
    missing = [name for name in EMBEDDED_COLUMNS if name not in vectors]
    if missing:
        path = found.path / "lancedb"
        notes.append(f"There are no vectors {', '.join(missing)} in {path}: they are not checked.")
    made_by = f"Microsoft GraphRAG {detect_generation(raw_tables)}"
    return CheckedIndex(found.path, made_by, None, tables, {**vectors}, {}, damaged, notes)


def find_defects(
    rows: pl.LazyFrame, table: str, of: int, means: str, example: str, by: Sequence[str] = ()
) -> list[Finding]:
    """Return one finding with the first defective rows as examples; none if there are no rows.

    The finding begins with "3 of 50 ", followed by `means`. `example` is the text for a row, with
    column names in braces. `by` are the columns that sort the examples; by default, the columns
    that `example` names.
    """
    by = by or re.findall(r"\{(\w+)", example)
    count, first = pl.collect_all(
        [rows.select(pl.len()), rows.bottom_k(MAX_EXAMPLES, by=by)], engine="streaming"
    )
    n = int(count.item())
    if not n:
        return []
    examples = tuple(example.format(**row) for row in first.sort(by).iter_rows(named=True))
    return [Finding(table, n, of, examples, f"{n:,} of {of:,} {means}")]


def count_rows(rows: pl.LazyFrame) -> int:
    return int(rows.select(pl.len()).collect(engine="streaming").item())


def explode_lists(rows: pl.LazyFrame, column: str) -> pl.LazyFrame:
    """Return one row per value of a list column; drop empty lists and nulls."""
    return rows.explode(column).drop_nulls(column)


def name_row(table: str, label: object) -> str:
    """Return the name of a row in messages: "entity 12"."""
    if table == "community_reports":
        return f"report on community {label}"
    return f"{SINGULAR.get(table, table)} {label}"


def damaged_table_finding(name: str, reason: str, path: Path | None = None) -> Finding:
    means = f"The table {name} cannot be read ({reason[:160]})"
    fix = "restore the file of the table, or rebuild the index."
    return Finding(name, 1, 1, (str(path),) if path else (), f"{means}: {fix}")

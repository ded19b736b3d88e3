"""Printed tables: the content of an index, its versions, and the differences of versions."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

import polars as pl

from graphrag_index.errors import format_count, join_names
from graphrag_index.pipeline.changes import Difference
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.table_store import TableStore, open_index, scan_table
from graphrag_index.storage.versions import Version, VersionOrigin
from graphrag_nlp.text.normalize import display_width, fit_line

TOP_COMMUNITIES = 10
TOP_ENTITIES = 15
# Tables whose row counts are columns of the list of versions, and the headings of the columns.
VERSION_COLUMNS = {
    "documents": "documents",
    "entities": "entities",
    "communities": "communities",
    "community_reports": "reports",
}
MAX_ROW_NAMES = 5  # names of added, removed and changed rows to print


class PrintedTable(NamedTuple):
    """A small printed table. Columns of numbers are aligned right."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str | int | None, ...]]

    def is_number(self, column: int) -> bool:
        return all(isinstance(row[column], int) for row in self.rows)

    def cells(self) -> list[list[str]]:
        return [
            [f"{cell:,}" if isinstance(cell, int) else fit_line(cell or "") for cell in row]
            for row in self.rows
        ]


def align_columns(rows: Sequence[Sequence[str]], left: Sequence[int], gap: int = 2) -> list[str]:
    """Return rows as lines; align the columns in `left` to the left, others to the right."""
    columns = []
    for number, cells in enumerate(zip(*rows, strict=True)):
        widths = [display_width(cell) for cell in cells]
        spaces = [" " * (max(widths) - width) for width in widths]
        pairs = zip(cells, spaces, strict=True)
        columns.append([cell + space if number in left else space + cell for cell, space in pairs])
    return [(" " * gap).join(row).rstrip() for row in zip(*columns, strict=True)]


def write_overview(output: Path, out: TextIO) -> None:
    """Print an overview of an index."""
    store, version = open_index(output)
    by = f"written by the workflow {version.workflow} of graphrag-index {version.program}"
    head = f"Version {version.number} of {store.place}, {by}"
    sections = [section for section in _overview_sections(store, version) if section.rows]
    out.write("\n\n".join([head, *map(format_table, sections)]) + "\n")


def format_table(section: PrintedTable) -> str:
    left = [n for n in range(len(section.header)) if not section.is_number(n)]
    lines = align_columns([section.header, *section.cells()], left)
    return "\n".join([section.title, *(f"  {line}" for line in lines)])


def _overview_sections(store: TableStore, version: Version) -> Iterator[PrintedTable]:
    from rich.filesize import decimal

    yield PrintedTable("Tables", ("table", "rows"), _size_rows(version, "public"))
    yield PrintedTable("Vectors", ("table", "rows"), _size_rows(version, "vectors"))
    size = sum(
        path.lstat().st_size
        for path in store.output.rglob("*")
        if path.is_file() and not path.is_symlink()
    )
    folder = store.output.name if store.working_copy is None else "copy of the bucket"
    yield PrintedTable("On disk", ("folder", "size"), [(folder, decimal(size))])

    counts = scan_table(store, version, "documents").group_by("language").len()
    languages = counts.sort("len", "language", descending=[True, False])
    yield PrintedTable("Languages", ("language", "documents"), _collect_rows(languages))

    communities = scan_table(store, version, "communities")
    levels = communities.group_by("level").agg(pl.len(), pl.col("size").sum()).sort("level")
    yield PrintedTable("Levels", ("level", "communities", "entities"), _collect_rows(levels))
    reports = scan_table(store, version, "community_reports").select("community", report="title")
    largest = (
        communities.filter(pl.col("level") == 0)
        .sort("size", "community", descending=[True, False])
        .head(TOP_COMMUNITIES)
        .join(reports, on="community", how="left", maintain_order="left")
        # Without reports, use the title of the community.
        .select("community", "size", pl.coalesce("report", "title"))
    )
    header = ("community", "entities", "title of the report")
    yield PrintedTable("Largest communities of level 0", header, _collect_rows(largest))
    entities = (
        scan_table(store, version, "entities")
        .sort("degree", "frequency", "human_readable_id", descending=[True, True, False])
        .head(TOP_ENTITIES)
        .select("title", "type", "degree", "frequency")
    )
    yield PrintedTable(
        "Main entities", ("entity", "type", "neighbours", "text units"), _collect_rows(entities)
    )


def _size_rows(version: Version, kind: str) -> list[tuple[str | int, ...]]:
    return [
        (name, version.tables[name].rows)
        for name, table in TABLES.items()
        if table.kind == kind and name in version.tables
    ]


def _collect_rows(table: pl.LazyFrame) -> list[tuple[str | int, ...]]:
    return table.collect(engine="streaming").rows()


def version_as_json(version: Version, current: int) -> dict[str, object]:
    made = version.made
    return {
        "version": version.number,
        "current": version.number == current,
        "date": made.date if made else None,
        "workflow": version.workflow,
        "rows": {n: t.rows for n, t in version.tables.items() if n in VERSION_COLUMNS},
        "steps_run": list(made.steps_run) if made else None,
        "tables_of": made.tables_of if made else None,
        **_costs_as_json(made),
    }


def _costs_as_json(made: VersionOrigin | None) -> dict[str, object]:
    """Return the costs of a version for JSON; unknown costs are null."""
    names = ("calls", "prompt_tokens", "completion_tokens", "cost")
    return {name: getattr(made, name, None) for name in names}


def write_versions(versions: Sequence[Version], current: int, out: TextIO) -> None:
    """Print a line for each version; a star marks the current version.

    Calls and costs are columns only if a version asked a model.
    """
    costs = (
        ("calls", "$") if any(version.made and version.made.calls for version in versions) else ()
    )
    heading = ("version", "made", *VERSION_COLUMNS.values(), *costs, "what ran")
    rows = [_version_cells(one, one.number == current, bool(costs)) for one in versions]
    print("\n".join(align_columns([heading, *rows], left=[len(heading) - 1])), file=out)


def describe_state(store: TableStore, option: str) -> list[str]:
    """Describe the current version and a run that goes on or was interrupted, a line for each."""
    from graphrag_index.pipeline.history import is_locked

    version = store.read_pointer()
    if version is None:
        lines = [f"There is no index in {store.place} yet."]
    else:
        made = f", made {version.made.date[:16].replace('T', ' ')} UTC" if version.made else ""
        lines = [f"Version {version.number} of {store.place}{made}, workflow {version.workflow}."]
        unread = version.tables.get("unread_files")
        if unread is not None and unread.rows:
            what = "file or record was" if unread.rows == 1 else "files or records were"
            lines.append(f"{unread.rows:,} {what} not read: the next run lists them again.")
    done = [record.name for record in store.read_journal(store.next_number())]
    if is_locked(store):
        last = f"; the last finished step is {done[-1]}" if done else ""
        lines.append(f"A run is writing to it now{last}.")
    elif done:
        lines.append(
            f"The last run did not finish: `graphrag-index run{option}` continues after the step "
            f"{done[-1]}."
        )
    return lines


def _version_cells(version: Version, is_current: bool, with_costs: bool) -> tuple[str, ...]:
    tables, made = version.tables, version.made
    number = f"{version.number}{'*' if is_current else ' '}"
    counts = [f"{tables[name].rows:,}" if name in tables else "-" for name in VERSION_COLUMNS]
    if made is None:
        return (number, "-", *counts, *("-", "-") * with_costs, "-")
    if made.tables_of is not None:
        ran = f"rollback to version {made.tables_of}"
    elif len(made.steps_run) == len(version.steps):
        ran = "all steps"
    else:
        ran = join_names(made.steps_run, 2)
    date = made.date[:16].replace("T", " ")
    costs = (f"{made.calls:,}", format_cost(made.cost)) if with_costs else ()
    return (number, date, *counts, *costs, ran)


def format_cost(dollars: float | None) -> str:
    """Format a cost in dollars; an unknown cost is a question mark."""
    return "?" if dollars is None else f"{dollars:.4f}"


def difference_as_json(
    before: Version, after: Version, found: Mapping[str, Difference]
) -> dict[str, object]:
    old, new = ({"version": one.number, **_costs_as_json(one.made)} for one in (before, after))
    tables = {
        name: {kind: {"count": n, "names": one.names[kind]} for kind, n in one.counts.items()}
        for name, one in found.items()
    }
    return {"before": old, "after": new, "tables": tables}


def write_difference(
    before: Version, after: Version, found: Mapping[str, Difference], out: TextIO
) -> None:
    """Print how many rows of each table differ, with the names of a few rows."""
    print(f"From version {before.number} to version {after.number}:", file=out)
    for name, one in found.items():
        nothing = ": no difference" * (not any(one.counts.values()))
        print(f"\n{name.replace('_', ' ')}{nothing}", file=out)
        for kind, n in one.counts.items():
            if n:
                print(f"  {n:,} {kind}: {join_names(one.names[kind], MAX_ROW_NAMES)}", file=out)
    print("", _describe_cost(before), _describe_cost(after), sep="\n", file=out)


def _describe_cost(version: Version) -> str:
    made = version.made
    if made is None:
        return f"The cost of version {version.number} was not recorded."
    if not made.calls:
        return f"Version {version.number} asked no model."
    calls = f"{format_count('calls', made.calls)} to models"
    tokens = f"{made.prompt_tokens:,} prompt + {made.completion_tokens:,} reply tokens"
    price = "at an unknown price" if made.cost is None else f"{made.cost:.4f} dollars"
    return f"Version {version.number}: {calls}, {tokens}, {price}."

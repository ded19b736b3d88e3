"""Printed tables of `graphrag-index show`: sizes, communities and entities of an index."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import polars as pl

from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.table_store import TableStore, open_index, scan_table
from graphrag_index.storage.versions import Version
from graphrag_index.text.terminal_line import display_width, fit_line

if TYPE_CHECKING:
    from rich.table import Table as RichTable

TOP_COMMUNITIES = 10
TOP_ENTITIES = 15


@dataclass(frozen=True)
class Section:
    """A small printed table; columns of numbers are aligned right."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str | int, ...]]

    def is_number(self, column: int) -> bool:
        return all(isinstance(row[column], int) for row in self.rows)

    def cells(self) -> list[list[str]]:
        return [[_show(cell) for cell in row] for row in self.rows]


def write_overview(output: Path, out: TextIO) -> None:
    """Describe an index: tables with lines on a terminal, aligned text elsewhere.

    Raises
    ------
    TableError
        There is no index in the folder, or a table is missing.
    """
    store, version = open_index(output)
    head = (
        f"Version {version.number} of {store.output}, "
        f"by the workflow {version.workflow} of graphrag-index {version.program}"
    )
    sections = [section for section in _sections(store, version) if section.rows]
    if not out.isatty():
        out.write("\n\n".join([head, *map(_plain, sections)]) + "\n")
        return
    from rich.console import Console

    console = Console(file=out, highlight=False)
    console.print(head, style="bold", markup=False)
    for section in sections:
        console.print()
        console.print(_rich(section))


def _sections(store: TableStore, version: Version) -> Iterator[Section]:
    yield Section("Tables", ("table", "rows"), _sizes(version, "public"))
    yield Section("Vectors", ("table", "rows"), _sizes(version, "vectors"))
    size = sum(
        path.lstat().st_size
        for path in store.output.rglob("*")
        if path.is_file() and not path.is_symlink()
    )
    yield Section("On disk", ("folder", "size"), [(store.output.name, _bytes(size))])

    documents = scan_table(store, version, "documents")
    languages = (
        documents.group_by("language").len().sort("len", "language", descending=[True, False])
    )
    yield Section("Languages", ("language", "documents"), _rows(languages))

    communities = scan_table(store, version, "communities")
    levels = communities.group_by("level").agg(pl.len(), pl.col("size").sum()).sort("level")
    yield Section("Levels", ("level", "communities", "entities"), _rows(levels))
    yield Section(
        "Largest communities of level 0",
        ("community", "entities", "title of the report"),
        _rows(_largest_communities(communities, scan_table(store, version, "community_reports"))),
    )
    entities = (
        scan_table(store, version, "entities")
        .sort("degree", "frequency", "human_readable_id", descending=[True, True, False])
        .head(TOP_ENTITIES)
        .select("title", "type", "degree", "frequency")
    )
    yield Section("Main entities", ("entity", "type", "neighbours", "text units"), _rows(entities))


def _sizes(version: Version, kind: str) -> list[tuple[str | int, ...]]:
    return [
        (name, version.tables[name].rows)
        for name, table in TABLES.items()
        if table.kind == kind and name in version.tables
    ]


def _largest_communities(communities: pl.LazyFrame, reports: pl.LazyFrame) -> pl.LazyFrame:
    largest = (
        communities.filter(pl.col("level") == 0)
        .select("community", "size", "title")
        .sort("size", "community", descending=[True, False])
        .head(TOP_COMMUNITIES)
    )
    titles = reports.select("community", report="title")
    # A workflow without reports still names its communities.
    return largest.join(titles, on="community", how="left", maintain_order="left").select(
        "community", "size", pl.coalesce("report", "title")
    )


def _rows(table: pl.LazyFrame) -> list[tuple[str | int, ...]]:
    return table.collect(engine="streaming").rows()


def _bytes(size: int) -> str:
    if size < 1_000:
        return f"{size} bytes"
    amount = float(size)
    for unit in ("kB", "MB", "GB"):
        amount /= 1_000
        # 999.95 and more would be written 1,000.0.
        if amount < 999.95:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1_000:,.1f} TB"


def _show(cell: str | int | None) -> str:
    if cell is None:
        return ""
    return f"{cell:,}" if isinstance(cell, int) else fit_line(cell)


def _plain(section: Section) -> str:
    cells = [list(section.header), *section.cells()]
    widths = [max(map(display_width, column)) for column in zip(*cells, strict=True)]
    lines = [section.title]
    for row in cells:
        padded = [
            " " * (width - display_width(cell)) + cell
            if section.is_number(column)
            else cell + " " * (width - display_width(cell))
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(("  " + "  ".join(padded)).rstrip())
    return "\n".join(lines)


def _rich(section: Section) -> "RichTable":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=section.title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold"
    )
    for column, name in enumerate(section.header):
        table.add_column(name, justify="right" if section.is_number(column) else "left")
    for row in section.cells():
        # A plain string would be parsed for markup such as [bold].
        table.add_row(*map(Text, row))
    return table

"""The versions of an index as a list."""

from collections.abc import Sequence
from typing import TextIO

from graphrag_index.errors import TableError
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import Made, Version

# What is counted, and its heading.
COUNTED = {
    "documents": "documents",
    "entities": "entities",
    "communities": "communities",
    "community_reports": "reports",
}


def current_version(store: TableStore) -> Version:
    """Return the version that readers open.

    Raises
    ------
    TableError
        There is none, or its description is damaged.
    """
    version = store.read_pointer()
    if version is None:
        raise TableError(
            f"There is no index in {store.output}: make one with `graphrag-index run`."
        )
    return version


def read_versions(store: TableStore) -> list[Version]:
    """Return the finished versions that can be opened, oldest first.

    Raises
    ------
    TableError
        The description of one is damaged.
    """
    return [store.read_version(number) for number in store.versions()]


def as_json(version: Version, current: int) -> dict[str, object]:
    """Describe a version for a program."""
    made = version.made
    return {
        "version": version.number,
        "current": version.number == current,
        "date": made.date if made else None,
        "workflow": version.workflow,
        "rows": {name: table.rows for name, table in version.tables.items() if name in COUNTED},
        "steps_run": list(made.steps_run) if made else None,
        "tables_of": made.tables_of if made else None,
        **spent_as_json(made),
    }


def spent_as_json(made: Made | None) -> dict[str, object]:
    """Describe what a version has cost; null where that is not known."""
    return {
        "calls": made.calls if made else None,
        "prompt_tokens": made.prompt_tokens if made else None,
        "completion_tokens": made.completion_tokens if made else None,
        "cost": made.cost if made else None,
    }


def write_versions(versions: Sequence[Version], current: int, out: TextIO) -> None:
    """Print a line for each version; the current one is marked with a star."""
    heading = ("version", "made", *COUNTED.values(), "calls", "$", "what ran")
    lines = [heading, *(_cells(version, version.number == current) for version in versions)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
        print("  ".join([*cells[:-1], line[-1]]).rstrip(), file=out)


def money(made: Made | None) -> str:
    """Say what the calls of a version have cost."""
    if made is None:
        return "-"
    return "?" if made.cost is None else f"{made.cost:.4f}"


def _cells(version: Version, is_current: bool) -> tuple[str, ...]:
    tables, made = version.tables, version.made
    counts = (f"{tables[name].rows:,}" if name in tables else "-" for name in COUNTED)
    ran = "-"
    if made is not None:
        ran = _ran(made, len(version.steps))
    return (
        f"{version.number}{'*' if is_current else ' '}",
        made.date[:16].replace("T", " ") if made else "-",
        *counts,
        f"{made.calls:,}" if made else "-",
        money(made),
        ran,
    )


def _ran(made: Made, n_steps: int) -> str:
    if made.tables_of is not None:
        return f"rollback to version {made.tables_of}"
    if len(made.steps_run) == n_steps:
        return "all steps"
    first, n_more = made.steps_run[:2], len(made.steps_run) - 2
    return ", ".join(first) + (f" and {n_more} more" if n_more > 0 else "")

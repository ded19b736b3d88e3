"""Printed tables of versions and their differences."""

from collections.abc import Mapping, Sequence
from typing import TextIO

from graphrag_index.pipeline.changes import Difference
from graphrag_index.storage.versions import Made, Version

# Tables with a column in the list of versions, and the heading of each.
COUNTED = {
    "documents": "documents",
    "entities": "entities",
    "communities": "communities",
    "community_reports": "reports",
}
# Names of each kind on one screen.
MAX_NAMES = 5


def version_as_json(version: Version, current: int) -> dict[str, object]:
    """Return the JSON description of a version."""
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
    """Return the JSON description of the costs of a version; null if unknown."""
    return {
        "calls": made.calls if made else None,
        "prompt_tokens": made.prompt_tokens if made else None,
        "completion_tokens": made.completion_tokens if made else None,
        "cost": made.cost if made else None,
    }


def write_versions(versions: Sequence[Version], current: int, out: TextIO) -> None:
    """Print a line for each version; a star marks the current one."""
    heading = ("version", "made", *COUNTED.values(), "calls", "$", "what ran")
    lines = [heading, *(_cells(version, version.number == current) for version in versions)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
        print("  ".join([*cells[:-1], line[-1]]).rstrip(), file=out)


def money(made: Made | None) -> str:
    """Format the costs of a version."""
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


def difference_as_json(
    before: Version, after: Version, found: Mapping[str, Difference]
) -> dict[str, object]:
    """Return the JSON description of all differences."""
    old, new = ({"version": one.number, **spent_as_json(one.made)} for one in (before, after))
    tables = {
        name: {kind: {"count": n, "names": one.names[kind]} for kind, n in one.counts.items()}
        for name, one in found.items()
    }
    return {"before": old, "after": new, "tables": tables}


def write_difference(
    before: Version, after: Version, found: Mapping[str, Difference], out: TextIO
) -> None:
    """Print the number of differing rows of each table, with a few names."""
    print(f"From version {before.number} to version {after.number}:", file=out)
    for name, one in found.items():
        nothing = ": no difference" * (not any(one.counts.values()))
        print(f"\n{name.replace('_', ' ')}{nothing}", file=out)
        for kind, n in one.counts.items():
            names = one.names[kind]
            more = f", and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
            if n:
                print(f"  {n:,} {kind}: {', '.join(names[:MAX_NAMES])}{more}", file=out)
    print(file=out)
    for version in (before, after):
        print(_spent(version), file=out)


def _spent(version: Version) -> str:
    made = version.made
    if made is None:
        return f"What version {version.number} has cost was not noted."
    if not made.calls:
        return f"Version {version.number} asked no model."
    calls = f"{made.calls:,} call{'' if made.calls == 1 else 's'} to models"
    tokens = f"{made.prompt_tokens:,} + {made.completion_tokens:,} tokens"
    dollars = f"{money(made)} dollars" if made.cost is not None else "at a price that is not known"
    return f"Version {version.number}: {calls}, {tokens}, {dollars}."

"""What the ledger tells about the requests to models: their state, their tokens, their price."""

from collections.abc import Sequence
from typing import TextIO

from graphrag_index.core.models.ledger import Quarantined, StepStatus
from graphrag_index.core.models.prices import price_list_date

# Quarantined requests that one screen lists.
MOST = 20


def write_status(
    rows: Sequence[StepStatus], quarantined: Sequence[Quarantined], out: TextIO
) -> None:
    """Print a line for each step and model, the sum, and what is quarantined and why."""
    if not rows:
        print("No model was asked.", file=out)
        return
    heading = ("step", "model", "done", "open", "quarantined", "skipped", "prompt", "reply", "$")
    table = [heading, *(_cells(row) for row in rows)]
    if len(rows) > 1:
        table.append(_total(rows))
    widths = [max(len(line[column]) for line in table) for column in range(len(heading))]
    for line in table:
        cells = [cell.ljust(width) for cell, width in zip(line[:2], widths, strict=False)]
        cells += [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
        print("  ".join(cells).rstrip(), file=out)
    if any(row.cost is None for row in rows):
        print(
            f"The price of a model that is marked ? is not in the list of {price_list_date()}: "
            "set `price` of this model.",
            file=out,
        )
    if quarantined:
        print(file=out)
        print(describe_quarantined(quarantined), file=out)


def describe_quarantined(quarantined: Sequence[Quarantined]) -> str:
    """List what gave nothing, on one screen."""
    n = len(quarantined)
    lines = [f"{n} request{'' if n == 1 else 's'} gave nothing:"]
    lines += [f"  {row.step}, {row.unit}: {row.reason}" for row in quarantined[:MOST]]
    if n > MOST:
        lines.append(f"  ... and {n - MOST} more: `graphrag-index status --all` lists them.")
    return "\n".join(lines)


def _cells(row: StepStatus) -> tuple[str, ...]:
    counts = (row.done, row.open, row.quarantined, row.skipped)
    cost = "?" if row.cost is None else f"{row.cost:.4f}"
    cached = f" ({row.cached_tokens:,} cached)" if row.cached_tokens else ""
    tokens = (f"{row.prompt_tokens:,}{cached}", f"{row.completion_tokens:,}")
    return (row.step, row.model, *(f"{count:,}" for count in counts), *tokens, cost)


def _total(rows: Sequence[StepStatus]) -> tuple[str, ...]:
    known = [row.cost for row in rows if row.cost is not None]
    return (
        *("all", ""),
        *(
            f"{sum(getattr(row, name) for row in rows):,}"
            for name in ("done", "open", "quarantined", "skipped")
        ),
        f"{sum(row.prompt_tokens for row in rows):,}",
        f"{sum(row.completion_tokens for row in rows):,}",
        f"{sum(known):.4f}" + (" + ?" if len(known) < len(rows) else ""),
    )

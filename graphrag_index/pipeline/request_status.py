"""What the ledger tells about the requests to models: their state, their tokens, their price."""

import time
from collections.abc import Sequence
from typing import TextIO

from graphrag_index.llm.batch_ledger import Batch
from graphrag_index.llm.ledger import Quarantined, StepStatus
from graphrag_index.llm.prices import price_list_date

# Quarantined requests that one screen lists.
MOST = 20


def write_status(
    rows: Sequence[StepStatus],
    quarantined: Sequence[Quarantined],
    out: TextIO,
    batches: Sequence[Batch] = (),
) -> None:
    """Print a line for each step and model, the sum, batches, and what is quarantined and why."""
    if not rows:
        print("No model was asked.", file=out)
        return
    heading = ("step", "model", "done", "open", "quarantined", "skipped", "prompt", "reply", "$")
    table = [heading, *(_cells(row) for row in rows)]
    if len(rows) > 1:
        table.append(_total(rows))
    write_table(table, out)
    if any(row.cost is None for row in rows):
        print(describe_unknown_price(), file=out)
    if batches:
        print(file=out)
        print("\n".join(map(describe_batch, batches)), file=out)
    if quarantined:
        print(file=out)
        print(describe_quarantined(quarantined), file=out)


def write_table(table: Sequence[Sequence[str]], out: TextIO) -> None:
    """Print lines of cells in columns: step and model at the left, numbers at the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        cells = [cell.ljust(width) for cell, width in zip(line[:2], widths, strict=False)]
        cells += [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
        print("  ".join(cells).rstrip(), file=out)


def describe_unknown_price() -> str:
    """Say what the mark ? means, and what to do."""
    return (
        f"The price of a model that is marked ? is not in the list of {price_list_date()}: "
        "set `price` of this model."
    )


def describe_batch(batch: Batch) -> str:
    """Say what a batch has and how it stood when it was last looked at."""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(batch.submitted))
    if not batch.id:
        return f"A batch of {batch.step} ({batch.model}) is not made yet; {when}."
    status = batch.status.replace("_", " ") or "submitted"
    return (
        f"Batch {batch.id} of {batch.step} ({batch.model}), submitted {when}: {status}, "
        f"{batch.n_done:,} of {batch.n_requests:,} requests are done."
    )


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

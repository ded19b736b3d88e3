"""The context of one question: rows of tables, the best first, within a token budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.llm.prompts import Budget, RenderedRows
from graphrag_index.text.citations import Shown

# The lines above the rows of a section.
HEADING_TOKENS = 24


@dataclass(frozen=True)
class Section:
    """A table of candidates for a context: number in the first column, the best row first.

    Its rows are cited by its `name`, such as Sources. `share` is its part of the budget; the
    rest of a short section goes to those that lack room, in their order.
    """

    name: str
    rows: pl.DataFrame
    share: float


@dataclass(frozen=True)
class Context:
    """The rows of one prompt by section, and their text.

    `n_tokens` is the length of the text. `n_left_out` counts the rows of each section that did
    not fit.
    """

    tables: Mapping[str, pl.DataFrame]
    text: str
    n_tokens: int
    n_left_out: Mapping[str, int]

    @property
    def shown(self) -> Shown:
        """The numbers that may be cited, by section."""
        return {name: set(rows.to_series(0).to_list()) for name, rows in self.tables.items()}

    @property
    def is_empty(self) -> bool:
        """Whether no section has a row."""
        return not any(rows.height for rows in self.tables.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the rows of each section, for JSON."""
        return {name: rows.to_dicts() for name, rows in self.tables.items()}


def pack(sections: Sequence[Section], max_tokens: int) -> Context:
    """Pack the best rows of each section into a context of limited length.

    A row takes at most a quarter of the budget; longer ones are shortened.
    """
    sections = [section for section in sections if section.rows.height]
    left = max(0, max_tokens - HEADING_TOKENS * len(sections))
    budget = Budget(max(4, left), 1 << 40)
    # More rows than tokens cannot fit.
    rendered = [RenderedRows.of(section.rows.head(left), budget) for section in sections]
    costs = [np.cumsum(rows.cost) for rows in rendered]
    total = sum(section.share for section in sections) or 1.0
    taken = [
        int(np.searchsorted(cost, left * section.share / total, side="right"))
        for section, cost in zip(sections, costs, strict=True)
    ]
    used = [int(cost[n - 1]) if n else 0 for cost, n in zip(costs, taken, strict=True)]
    for i, cost in enumerate(costs):
        room = left - sum(used) + used[i]
        taken[i] = int(np.searchsorted(cost, room, side="right"))
        used[i] = int(cost[taken[i] - 1]) if taken[i] else 0
    parts, tables, left_out = [], {}, {}
    for section, rows, n in zip(sections, rendered, taken, strict=True):
        left_out[section.name] = section.rows.height - n
        if n:
            tables[section.name] = section.rows.head(n)
            heading = ",".join(["id", *section.rows.columns[1:]])
            lines = "".join(rows.text.head(n).to_list())
            parts.append(f"-----{section.name}-----\n{heading}\n{lines}")
    headings = HEADING_TOKENS * len(parts)
    return Context(tables, "\n".join(parts), sum(used) + headings, left_out)


def source_rows(text_units: Mapping[int, Mapping[str, Any]]) -> pl.DataFrame:
    """Return text units as rows of a section, in the order given."""
    units = text_units.items()
    return pl.DataFrame(
        [(number, unit["title"], unit["headings"], unit["text"]) for number, unit in units],
        {"id": pl.Int64, "document": pl.String, "headings": pl.String, "text": pl.String},
        orient="row",
    )


def joined(contexts: Sequence[Context]) -> Context:
    """Merge the contexts of several calls, each row once."""
    tables: dict[str, pl.DataFrame] = {}
    for context in contexts:
        for name, rows in context.tables.items():
            known = [tables[name]] if name in tables else []
            # Calls may show different columns of a table.
            together = pl.concat([*known, rows], how="diagonal_relaxed")
            tables[name] = together.unique(together.columns[0], keep="first", maintain_order=True)
    return Context(
        tables,
        "\n".join(context.text for context in contexts),
        sum(context.n_tokens for context in contexts),
        dict.fromkeys(tables, 0),
    )

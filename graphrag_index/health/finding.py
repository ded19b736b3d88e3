"""What a check says: how many rows it looked at, and what it found in them."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

# Rows of each finding that are named.
EXAMPLES = 5
SINGULAR = {
    "documents": "document",
    "text_units": "text unit",
    "entities": "entity",
    "relationships": "relationship",
    "communities": "community",
    "community_reports": "community report",
    "covariates": "claim",
    "mentions": "mention",
}


@dataclass(frozen=True)
class Finding:
    """One kind of defect in one table."""

    table: str  # with the column where it is one: entities.text_unit_ids
    count: int
    of: int  # rows or ids looked at
    examples: tuple[str, ...]  # the first few, by number, id or title
    means: str  # what it is and what to do, in a sentence or two


@dataclass(frozen=True)
class Looked:
    """The outcome of one check; `of` is None if the index has nothing that it could look at."""

    of: int | None
    findings: tuple[Finding, ...] = ()

    @property
    def count(self) -> int:
        return sum(finding.count for finding in self.findings)


def count_and_first(
    rows: pl.LazyFrame, by: Sequence[str], n: int = EXAMPLES
) -> tuple[int, pl.DataFrame]:
    """Count rows, and return the first ones in the order of some columns; no more is in memory."""
    count, first = pl.collect_all(
        [rows.select(pl.len()), rows.bottom_k(n, by=by)], engine="streaming"
    )
    return int(count.item()), first.sort(by)


def number_of_rows(rows: pl.LazyFrame) -> int:
    return int(rows.select(pl.len()).collect(engine="streaming").item())

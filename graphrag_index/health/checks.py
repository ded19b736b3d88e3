"""All checks of an index, in the order of the report, with their limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import polars as pl

from graphrag_index.health import report_checks, row_checks
from graphrag_index.health.checked_index import TEXTS, CheckedIndex, CheckResult
from graphrag_index.health.index_statistics import IndexStatistics, compute_statistics
from graphrag_index.schema.settings.step_sections import Check as Limits
from graphrag_index.step import Progress, Silent


class CheckOutcome(NamedTuple):
    """The result of one check, and the limit of its findings."""

    name: str
    result: CheckResult
    limit: float
    is_share: bool  # the limit is a share (0–1) of the checked rows, not a count

    @property
    def title(self) -> str:
        return TEXTS["check_titles"][self.name]

    @property
    def failed(self) -> bool:
        count, of = self.result.count, self.result.of or 0
        return count > (self.limit * of if self.is_share else self.limit)


@dataclass(frozen=True)
class IndexHealth:
    """The outcomes of all checks of an index, and the statistics of the index."""

    index: CheckedIndex
    outcomes: tuple[CheckOutcome, ...]
    statistics: IndexStatistics
    skipped: tuple[str, ...]  # sentences on tables and columns that were not checked

    @property
    def failed(self) -> bool:
        return any(outcome.failed for outcome in self.outcomes)


def check_index(
    index: CheckedIndex, limits: Limits, progress: Progress | None = None
) -> IndexHealth:
    """Run all checks of an index; a table that cannot be read becomes a finding."""
    progress = progress or Silent()
    try:
        return _run_checks(index, limits, progress)
    except (pl.exceptions.PolarsError, OSError):
        # The error does not name the damaged table: read all tables to find it.
        if not index.leave_out_damaged_tables():
            raise
        return _run_checks(index, limits, progress)


def _run_checks(index: CheckedIndex, limits: Limits, progress: Progress) -> IndexHealth:
    vectors = row_checks.read_embedded_tables(index)
    oversized = partial(report_checks.find_oversized_communities, max_size=limits.oversized_above)
    checks: Mapping[str, Callable[[CheckedIndex], CheckResult]] = {
        "dangling_ids": row_checks.find_dangling_ids,
        "duplicates": row_checks.find_duplicate_rows,
        "unresolved_citations": report_checks.find_unresolved_citations,
        "missing_vectors": lambda _: row_checks.find_missing_vectors(vectors),
        "stale_vectors": partial(row_checks.find_stale_vectors, tables=vectors),
        "stale_search_tables": row_checks.find_stale_search_tables,
        "uncovered_entities": report_checks.find_uncovered_entities,
        "uncovered_documents": report_checks.find_uncovered_documents,
        "missing_reports": report_checks.find_missing_reports,
        "empty_reports": report_checks.find_empty_reports,
        "oversized_communities": oversized,
        "equal_documents": row_checks.find_equal_documents,
    }
    progress.start(len(checks) + 1, "checks")
    outcomes = []
    for name, check in checks.items():
        limit = getattr(limits, f"max_{name}")
        outcomes.append(CheckOutcome(name, check(index), limit, isinstance(limit, float)))
        progress.advance()
    statistics = compute_statistics(index)
    progress.advance()
    damaged = {finding.table for finding in index.damaged}
    readable = {*index.tables, *index.search_tables, *index.vectors}
    result = CheckResult(len(damaged | readable), index.damaged)
    unreadable = CheckOutcome("unreadable_tables", result, 0, False)
    skipped = (*index.missing_parts(), *index.notes)
    return IndexHealth(index, (unreadable, *outcomes), statistics, skipped)

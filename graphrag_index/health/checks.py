"""The checks of an index, in the order of the report, and their limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from graphrag_index.health.checked_index import CheckedIndex, CheckResult
from graphrag_index.health.index_statistics import IndexStatistics, compute_statistics
from graphrag_index.health.report_checks import (
    empty_reports,
    missing_reports,
    oversized_communities,
    uncovered_documents,
    uncovered_entities,
    unresolved_citations,
)
from graphrag_index.health.row_checks import (
    dangling_ids,
    duplicates,
    equal_documents,
    stale_search_tables,
)
from graphrag_index.health.vector_checks import VectorChecks
from graphrag_index.schema.settings.embedded_steps import Check as Limits
from graphrag_index.step import Progress, Silent


class Outcome(NamedTuple):
    """The result of one check, and its limit."""

    name: str
    title: str
    result: CheckResult
    limit: float
    is_share: bool  # the limit is a share of what was checked, not a count

    @property
    def failed(self) -> bool:
        count, of = self.result.count, self.result.of or 0
        return count > (self.limit * of if self.is_share else self.limit)


@dataclass(frozen=True)
class Health:
    """The outcomes of all checks of an index, and its statistics."""

    index: CheckedIndex
    outcomes: tuple[Outcome, ...]
    statistics: IndexStatistics
    skipped: tuple[str, ...]  # sentences on missing tables and columns

    @property
    def failed(self) -> bool:
        return any(outcome.failed for outcome in self.outcomes)


def check_index(index: CheckedIndex, limits: Limits, progress: Progress | None = None) -> Health:
    """Run every check; report tables that cannot be read as findings."""
    progress = progress or Silent()
    try:
        return _check(index, limits, progress)
    except (pl.exceptions.PolarsError, OSError):
        # The error does not name the damaged table.
        if not index.drop_unreadable():
            raise
        return _check(index, limits, progress)


def _check(index: CheckedIndex, limits: Limits, progress: Progress) -> Health:
    vectors = VectorChecks(index)
    checks: Mapping[str, tuple[str, Callable[[], CheckResult]]] = {
        "dangling_ids": ("ids that do not resolve", lambda: dangling_ids(index)),
        "duplicates": ("duplicate rows", lambda: duplicates(index)),
        "unresolved_citations": (
            "citations that do not resolve",
            lambda: unresolved_citations(index),
        ),
        "missing_vectors": ("missing vectors", vectors.missing),
        "stale_vectors": ("stale vectors", vectors.stale),
        "stale_search_tables": ("stale rows of search tables", lambda: stale_search_tables(index)),
        "uncovered_entities": ("entities not covered", lambda: uncovered_entities(index)),
        "uncovered_documents": ("documents not covered", lambda: uncovered_documents(index)),
        "missing_reports": ("communities without a report", lambda: missing_reports(index)),
        "empty_reports": ("empty reports", lambda: empty_reports(index)),
        "oversized_communities": (
            "oversized communities",
            lambda: oversized_communities(index, limits.oversized_above),
        ),
        "equal_documents": ("documents with equal text", lambda: equal_documents(index)),
    }
    progress.start(len(checks) + 1, "checks")
    outcomes = []
    for name, (title, check) in checks.items():
        limit = getattr(limits, f"max_{name}")
        outcomes.append(Outcome(name, title, check(), limit, isinstance(limit, float)))
        progress.advance()
    statistics = compute_statistics(index)
    progress.advance()
    damaged = {finding.table for finding in index.damaged}
    readable = {*index.tables, *index.search_tables, *index.vectors}
    result = CheckResult(len(damaged | readable), tuple(index.damaged))
    unreadable = Outcome("unreadable_tables", "unreadable tables", result, 0, False)
    return Health(
        index, (unreadable, *outcomes), statistics, (*index.missing_parts(), *index.notes)
    )

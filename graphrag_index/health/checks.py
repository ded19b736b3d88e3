"""The checks, in the order in which they are told, and what their limits say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from graphrag_index.health.coverage import (
    oversized_communities,
    uncovered_documents,
    uncovered_entities,
)
from graphrag_index.health.duplicates import duplicates, equal_documents
from graphrag_index.health.figures import Figures, measure
from graphrag_index.health.finding import Looked
from graphrag_index.health.opened_index import Opened
from graphrag_index.health.references import dangling_ids
from graphrag_index.health.report_checks import empty_reports, missing_reports, unresolved_citations
from graphrag_index.health.search_table_checks import stale_search_tables
from graphrag_index.health.vector_checks import VectorChecks
from graphrag_index.schema.settings.embedded_steps import Check as Limits
from graphrag_index.step import Progress, Silent


class Outcome(NamedTuple):
    """What one check has found, and whether that is more than its limit allows."""

    name: str
    title: str  # of what the findings are, for a person
    looked: Looked
    limit: float
    is_share: bool  # the limit is a share of what was looked at, not a count

    @property
    def failed(self) -> bool:
        count, of = self.looked.count, self.looked.of or 0
        return count > (self.limit * of if self.is_share else self.limit)


@dataclass(frozen=True)
class Health:
    """All that a check of an index tells."""

    index: Opened
    outcomes: tuple[Outcome, ...]
    figures: Figures
    not_looked_at: tuple[str, ...]

    @property
    def failed(self) -> bool:
        return any(outcome.failed for outcome in self.outcomes)


def check_index(index: Opened, limits: Limits, progress: Progress | None = None) -> Health:
    """Run every check; what cannot be read is a finding of its own."""
    progress = progress or Silent()
    try:
        return _check(index, limits, progress)
    except (pl.exceptions.PolarsError, OSError):
        # Which table it was only reading them all tells.
        if not index.drop_unreadable():
            raise
        return _check(index, limits, progress)


def _check(index: Opened, limits: Limits, progress: Progress) -> Health:
    vectors = VectorChecks(index)
    checks: Mapping[str, tuple[str, Callable[[], Looked]]] = {
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
    figures = measure(index)
    progress.advance()
    names = {finding.table for finding in index.damaged}
    readable = {*index.tables, *index.search_tables, *index.vectors}
    looked = Looked(len(names | readable), tuple(index.damaged))
    damaged = Outcome("unreadable_tables", "unreadable tables", looked, 0, False)
    return Health(index, (damaged, *outcomes), figures, (*index.gaps(), *index.notes))

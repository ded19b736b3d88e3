"""All checks of an index, in the order of the report, with their limits."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_index.health import row_checks
from graphrag_index.health.checked_index import (
    CITED_COLUMNS,
    EXPLANATIONS,
    MAX_EXAMPLES,
    NOT_CHECKED,
    TEXTS,
    CheckedIndex,
    CheckResult,
    Finding,
    count_rows,
    explode_lists,
    find_defects,
    name_row,
)
from graphrag_index.health.index_statistics import IndexStatistics, compute_statistics
from graphrag_index.schema.settings.health import Check as Limits
from graphrag_index.step import Progress, Silent
from graphrag_nlp.list_columns import Integers
from graphrag_nlp.text.citations import find_citations


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
    oversized = partial(find_oversized_communities, max_size=limits.oversized_above)
    checks: Mapping[str, Callable[[CheckedIndex], CheckResult]] = {
        "dangling_ids": row_checks.find_dangling_ids,
        "duplicates": row_checks.find_duplicate_rows,
        "unresolved_citations": find_unresolved_citations,
        "missing_vectors": lambda _: row_checks.find_missing_vectors(vectors),
        "stale_vectors": partial(row_checks.find_stale_vectors, tables=vectors),
        "stale_search_tables": row_checks.find_stale_search_tables,
        "uncovered_entities": find_uncovered_entities,
        "uncovered_documents": find_uncovered_documents,
        "missing_reports": find_missing_reports,
        "empty_reports": find_empty_reports,
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


_REPORTS_PER_BATCH = 4_096
_REPORT_TEXT_COLUMNS = ("full_content", "summary")  # preferred column first
_UNITS_OF_ENTITIES = ("entities", "id", "text_unit_ids")


def find_uncovered_entities(index: CheckedIndex) -> CheckResult:
    """Find entities without a community, and entities whose communities have no report."""
    if not (index.has("entities", "id") and index.has("communities", "community", "entity_ids")):
        return NOT_CHECKED
    label = "title" if index.has("entities", "title") else index.label_column("entities")
    covered = _hash_member_ids(index.tables["communities"])
    reported = _hash_member_ids(_communities_with_report(index))
    return _find_uncovered_rows(index, "entities", label, covered, reported)


def find_uncovered_documents(index: CheckedIndex) -> CheckResult:
    """Find documents without a community, and documents whose communities have no report."""
    units = index.text_unit_documents()
    label = index.first_column("documents", "path", "title", "id")
    if units is None or label is None or not index.has("documents", "id"):
        return NOT_CHECKED
    by_member = index.has("communities", "entity_ids") and index.has(*_UNITS_OF_ENTITIES)
    if not (by_member or index.has("communities", "text_unit_ids")):
        return NOT_CHECKED
    covered = _hash_document_ids(index, index.tables["communities"], units)
    reported = _hash_document_ids(index, _communities_with_report(index), units)
    return _find_uncovered_rows(index, "documents", label, covered, reported)


def _find_uncovered_rows(
    index: CheckedIndex, table: str, label: str, covered: pl.LazyFrame, reported: pl.LazyFrame
) -> CheckResult:
    """Find rows that are in no community, and rows only in communities without a report.

    The column `key` has hashed ids: in `covered` of the rows in communities, in `reported` of the
    rows in communities with a report.
    """
    rows = index.tables[table].select(label=pl.col(label), key=pl.col("id").hash())
    n_rows = count_rows(rows)
    outside = rows.join(covered, on="key", how="anti")
    means = EXPLANATIONS[f"uncovered_{table}"]
    findings = find_defects(outside, table, n_rows, means, "{label}")
    if _has_reports(index):
        means = EXPLANATIONS["only_unreported"].replace("ROWS", table)
        silent = rows.join(reported, on="key", how="anti").join(covered, on="key", how="semi")
        findings += find_defects(silent, "community_reports", n_rows, means, "{label}")
    return CheckResult(n_rows, findings)


def _hash_member_ids(communities: pl.LazyFrame) -> pl.LazyFrame:
    """Return the hashed ids of the entities in these communities, in the column `key`."""
    return explode_lists(communities.select(key="entity_ids"), "key").select(pl.col("key").hash())


def _has_reports(index: CheckedIndex) -> bool:
    return index.has("community_reports", "community") and index.has("communities", "community")


def _communities_with_report(index: CheckedIndex) -> pl.LazyFrame:
    """Return the communities with a report; all communities if there are no reports."""
    communities = index.tables["communities"]
    if not _has_reports(index):
        return communities
    reports = index.tables["community_reports"].select("community")
    return communities.join(reports, on="community", how="semi")


def _hash_document_ids(
    index: CheckedIndex, communities: pl.LazyFrame, units: pl.LazyFrame
) -> pl.LazyFrame:
    """Return the hashed ids of the documents of these communities, in the column `key`.

    A document belongs to a community that has one of its text units, or an entity in one.
    """
    named = []
    if index.has("communities", "text_unit_ids"):
        named.append(communities)
    if index.has("communities", "entity_ids") and index.has(*_UNITS_OF_ENTITIES):
        entities = index.tables["entities"].with_columns(key=pl.col("id").hash())
        named.append(entities.join(_hash_member_ids(communities), on="key", how="semi"))
    covered = [explode_lists(rows.select(unit="text_unit_ids"), "unit") for rows in named]
    hashed = pl.concat(covered).select(pl.col("unit").hash())
    return units.join(hashed, on="unit", how="semi").select("key").unique()


def find_oversized_communities(index: CheckedIndex, max_size: int) -> CheckResult:
    """Find communities without children that have more than `max_size` entities."""
    members = index.first_column("communities", "entity_ids", "size")
    if members is None or not index.has("communities", "community"):
        return NOT_CHECKED
    size = pl.col(members).list.n_unique() if members == "entity_ids" else pl.col(members)
    communities = index.tables["communities"]
    leaves = communities.select("community", n=size.cast(pl.Int64))
    if index.has("communities", "parent"):
        parents = communities.select(community="parent").unique()
        leaves = leaves.join(parents, on="community", how="anti")
    n_leaves = count_rows(leaves)
    findings = find_defects(
        leaves.filter(pl.col("n") > max_size).with_columns(smallness=-pl.col("n")),
        "communities",
        n_leaves,
        f"communities that are not split further have more than {max_size:,} entities: one report "
        "cannot cover them all. Lower create_communities.max_cluster_size, or raise max_levels or "
        "the resolution.",
        "community {community}: {n:,} entities",
        by=["smallness", "community"],
    )
    return CheckResult(n_leaves, findings)


def find_missing_reports(index: CheckedIndex) -> CheckResult:
    """Find communities without a report; skip an index without any report."""
    if not _has_reports(index):
        return NOT_CHECKED
    communities = index.tables["communities"].select("community")
    reports = index.tables["community_reports"].select("community")
    n_communities = count_rows(communities)
    findings = find_defects(
        communities.join(reports, on="community", how="anti"),
        "community_reports",
        n_communities,
        EXPLANATIONS["missing_reports"],
        "community {community}",
    )
    return CheckResult(n_communities, findings)


def find_empty_reports(index: CheckedIndex) -> CheckResult:
    """Find reports without text or with only a title."""
    text = index.first_column("community_reports", *_REPORT_TEXT_COLUMNS)
    if text is None:
        return NOT_CHECKED
    reports = index.tables["community_reports"]
    n_reports = count_rows(reports)
    content = pl.col(text).fill_null("")
    if text == "full_content":
        # Remove the first heading, which is the title of the report.
        content = content.str.replace(r"^\s*#[^\n]*", "")
    empty = reports.filter(content.str.strip_chars() == "")
    findings = find_defects(
        empty.select(row=index.label_column("community_reports")),
        "community_reports",
        n_reports,
        EXPLANATIONS["empty_reports"],
        "report on community {row}",
    )
    return CheckResult(n_reports, findings)


def find_unresolved_citations(index: CheckedIndex) -> CheckResult:
    """Find citations in reports whose rows do not exist."""
    text = index.first_column("community_reports", *_REPORT_TEXT_COLUMNS)
    if text is None:
        return NOT_CHECKED
    known = {section: _read_known_numbers(index, section) for section in CITED_COLUMNS}
    n_cited: dict[str, int] = defaultdict(int)
    # Unresolved citations by section: (report, citation, number of cited rows that are missing).
    broken: dict[str, list[tuple[object, str, int]]] = defaultdict(list)
    for row, citation, section, numbers in _read_citations(index, text):
        # Skip a citation of a table without numbers: it cannot be checked.
        if section in known and known[section] is None:
            continue
        n_cited[section] += len(numbers)
        if n_unknown := _count_unknown(numbers, known.get(section)):
            broken[section].append((row, citation, n_unknown))
    quoted = _find_quoted_citations(
        index, {citation for rows in broken.values() for _, citation, _ in rows}
    )
    findings = []
    for section, found in broken.items():
        rows = [(row, citation, n) for row, citation, n in found if citation not in quoted]
        if not rows:
            continue
        count, of = sum(n for _, _, n in rows), n_cited[section]
        reason = "there is no table of this name"
        if section in CITED_COLUMNS:
            table = CITED_COLUMNS[section].partition(".")[0].replace("_", " ")
            reason = f"there are no {table} with these numbers"
        means = (
            f"{count:,} of {of:,} citations of {section} in reports do not resolve: "
            f"{reason}. Write the reports again."
        )
        names = [f"{name_row('community_reports', row)}: {citation}" for row, citation, _ in rows]
        examples = tuple(names[:MAX_EXAMPLES])
        findings.append(Finding(f"community_reports.{text}", count, of, examples, means))
    return CheckResult(sum(n_cited.values()), findings)


def _read_citations(index: CheckedIndex, text: str) -> Iterator[tuple[object, str, str, set[int]]]:
    """Yield (report number, citation, section, numbers) for each section of a citation."""
    label = index.label_column("community_reports")
    reports = index.tables["community_reports"].select(label, pl.col(text).fill_null(""))
    for first in range(0, count_rows(reports), _REPORTS_PER_BATCH):
        for row, content in reports.slice(first, _REPORTS_PER_BATCH).collect().iter_rows():
            for start, end, cited in find_citations(content):
                for section in dict.fromkeys(section for section, _ in cited):
                    numbers = {number for other, number in cited if other == section}
                    yield row, content[start:end].strip(), section, numbers


def _read_known_numbers(index: CheckedIndex, section: str) -> Integers | None:
    """Return the numbers that a section may cite, ascending; None if its table has no numbers.

    Microsoft's searches cite text units by row number.
    """
    table, column = CITED_COLUMNS[section].split(".")
    if not index.has(table, column):
        return None
    numbers = index.tables[table].select(pl.col(column).cast(pl.Int64, strict=False)).drop_nulls()
    found = np.sort(numbers.collect(engine="streaming").to_series().to_numpy())
    if section == "Sources" and not index.is_own:
        found = np.union1d(found, np.arange(len(found)))
    return found if len(found) or index.is_own else None


def _count_unknown(numbers: set[int], known: Integers | None) -> int:
    """Count the numbers that are not in `known`, a sorted array."""
    if known is None or not len(known):
        return len(numbers)
    wanted = np.fromiter(numbers, np.int64)
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return int((known[places] != wanted).sum())


def _find_quoted_citations(index: CheckedIndex, citations: set[str]) -> set[str]:
    """Return citations that a text unit contains too: the report may have quoted the document."""
    if not citations or not index.has("text_units", "text"):
        return set()
    wanted = {" ".join(citation.split()): citation for citation in citations}
    texts = pl.col("text").str.replace_all(r"\s+", " ")
    quoted = texts.str.extract_many(list(wanted)).list.unique()
    found = explode_lists(index.tables["text_units"].select(quoted), "text").unique()
    return {wanted[citation] for citation in found.collect(engine="streaming")["text"]}

"""Reports of the last run that need not be written again, since hardly anything changed."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.core.errors import TableError
from graphrag_index.core.lists import gather_lists, positions, spread_lists
from graphrag_index.core.table_store import Previous
from graphrag_index.core.tables import TABLES
from graphrag_index.reports.evidence import Evidence, EvidenceOfCommunities, Hashes
from graphrag_index.reports.row import Finding, Report
from graphrag_index.reports.written import Rows, Written

logger = logging.getLogger(__name__)

# What is written in `asked` of a report that was imported, whoever was asked for it and how.
IMPORTED = "imported"
TABLE = TABLES["report_evidence"]
# The column of what a report cites, by section: ids, or numbers of communities.
CITED = {
    "Entities": "entity_ids",
    "Relationships": "relationship_ids",
    "Claims": "claim_ids",
    "Reports": "communities",
}


@dataclass(frozen=True)
class WrittenOn:
    """A report with the evidence on which it was written.

    `borrowed` are text units behind the reports on sub-communities that were shown for it and
    are not behind its own rows; `request` is what the ledger knows it by.
    """

    written: Written
    evidence: Evidence
    borrowed: Hashes
    request: str = ""

    @property
    def text_units(self) -> Hashes:
        """All text units of which something may stand in the report."""
        return np.concatenate([self.evidence.text_units, self.borrowed])


class EarlierReports:
    """The reports of the last run that were asked for in the same way, or imported.

    Parameters
    ----------
    asked
        Hash of all that a report depends on beside what its community holds.
    rewrite_above
        Share of a community's evidence that may be other than when its report was written.
    """

    def __init__(self, previous: Previous, asked: str, rewrite_above: float) -> None:
        self._rows: pl.LazyFrame | None = None
        self.asked, self.rewrite_above = asked, rewrite_above
        # With 0 nothing is kept but replies: the result is that of a first run.
        if rewrite_above > 0:
            self._open(previous)

    def _open(self, previous: Previous) -> None:
        try:
            rows = previous.scan(TABLE.name)
            if rows is not None and rows.collect_schema() == TABLE.schema:
                self._rows = rows.filter(pl.col("asked").is_in([self.asked, IMPORTED]))
        except (OSError, TableError, pl.exceptions.PolarsError) as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._rows = None
        logger.warning("Reports of the last run cannot be read: all are written again (%s)", error)

    def keep(
        self,
        level: list[int],
        communities: pl.Series,
        evidence: EvidenceOfCommunities,
        ids: Mapping[str, pl.Series],
        below: Mapping[int, Collection[int]],
    ) -> dict[int, WrittenOn]:
        """Return the reports of one level that stay, by the rows of their communities.

        Parameters
        ----------
        level
            Rows of the communities of the level.
        communities
            The number of each row.
        ids
            The ids of the rows that may be cited, by section.
        below
            For each of the level, the communities of its parts that have a report now.
        """
        found = self._read(communities.gather(level))
        at_of = dict(zip(communities.gather(level).to_list(), level, strict=True))
        unchanged: dict[int, int] = {}
        for row, number in enumerate(found["community"].to_list()):
            at = at_of[number]
            before = _evidence(found, row)
            now = evidence.of(at)
            if (
                now.has_half_the_members_of(before)
                and now.share_changed(before) <= self.rewrite_above
                and evidence.are_there(before.text_units)
                and evidence.are_there(_list(found, "borrowed_text_unit_hashes", row))
            ):
                unchanged[at] = row
        keys = {**ids, "Reports": communities}
        cited = {
            section: _places(found[column], keys[section]) for section, column in CITED.items()
        }
        kept = {}
        for at, row in unchanged.items():
            rows = {section: places[row] for section, places in cited.items() if places[row]}
            is_there = all(place >= 0 for places in rows.values() for place in places)
            if is_there and set(rows.get("Reports", ())) <= set(below.get(at, ())):
                kept[at] = _written_on(found, row, rows)
        return kept

    def _read(self, communities: pl.Series) -> pl.DataFrame:
        if self._rows is None:
            return TABLE.empty()
        try:
            return self._rows.filter(pl.col("community").is_in(communities.to_list())).collect()
        except (OSError, TableError, pl.exceptions.PolarsError) as error:
            self._give_up(error)
            return TABLE.empty()


def evidence_rows(
    written: Mapping[int, WrittenOn],
    communities: pl.Series,
    ids: Mapping[str, pl.Series],
    asked: str,
) -> pl.DataFrame:
    """Make the rows of `report_evidence`, in the order of the mapping."""
    keys = {**ids, "Reports": communities}
    rows = [
        {
            "community": communities[at],
            "asked": asked,
            "request": on.request,
            **_columns(on.written.report),
        }
        for at, on in written.items()
    ]
    evidence = [on.evidence for on in written.values()]
    hashes = {
        "row_hashes": _lists([one.rows for one in evidence]),
        "member_hashes": _lists([one.members for one in evidence]),
        "text_unit_hashes": _lists([one.text_units for one in evidence]),
        "borrowed_text_unit_hashes": _lists([on.borrowed for on in written.values()]),
    }
    cited = {
        column: _named([on.written.rows.get(section, ()) for on in written.values()], keys[section])
        for section, column in CITED.items()
    }
    lists = hashes | cited
    return pl.DataFrame(
        {
            name: lists[name]
            if name in lists
            else pl.Series([row[name] for row in rows], dtype=dtype)
            for name, dtype in TABLE.schema.items()
        }
    )


def _named(lists: Sequence[Sequence[int]], keys: pl.Series) -> pl.Series:
    """Undo `_places`: lists of what stands at these places in `keys`."""
    owners = np.repeat(np.arange(len(lists)), [len(places) for places in lists])
    return gather_lists(owners, keys.gather([at for places in lists for at in places]), len(lists))


def _places(lists: pl.Series, keys: pl.Series) -> list[list[int]]:
    """Where in `keys` the members of each list stand, -1 if nowhere."""
    owners, values = spread_lists(lists)
    places = positions(values, keys)
    bounds = np.searchsorted(owners, np.arange(len(lists) + 1))
    return [places[first:last].tolist() for first, last in pairwise(bounds.tolist())]


def _lists(hashes: Sequence[Hashes]) -> pl.Series:
    """Make a column of lists."""
    owners = np.repeat(np.arange(len(hashes)), [len(some) for some in hashes])
    values = np.concatenate([np.zeros(0, np.uint64), *hashes])
    return gather_lists(owners.astype(np.int64), pl.Series(values, dtype=pl.UInt64), len(hashes))


def _columns(report: Report) -> dict[str, Any]:
    return {
        "title": report.title,
        "summary": report.summary,
        "findings": [
            {"explanation": found.explanation, "summary": found.summary}
            for found in report.findings
        ],
        "rank": report.rank,
        "rating_explanation": report.rating_explanation,
    }


def _written_on(found: pl.DataFrame, row: int, rows: Rows) -> WrittenOn:
    said = found.select("title", "summary", "findings", "rank", "rating_explanation")
    values = said.row(row, named=True)
    findings = tuple(Finding(one["summary"], one["explanation"]) for one in values["findings"])
    report = Report(
        values["title"], values["summary"], findings, values["rank"], values["rating_explanation"]
    )
    borrowed = _list(found, "borrowed_text_unit_hashes", row)
    written = Written(report, rows)
    return WrittenOn(written, _evidence(found, row), borrowed, found["request"][row])


def _evidence(found: pl.DataFrame, row: int) -> Evidence:
    names = ("row_hashes", "member_hashes", "text_unit_hashes")
    return Evidence(*(_list(found, name, row) for name in names))


def _list(found: pl.DataFrame, column: str, row: int) -> Hashes:
    hashes: Hashes = found[column][row].to_numpy()
    return hashes

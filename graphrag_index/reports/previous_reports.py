"""Reports of the last run that need not be written again, since hardly anything changed."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from graphrag_index.reports.evidence_rows import TABLE, Keys, Places, read_cited, read_written
from graphrag_index.reports.local_citations import Written
from graphrag_index.reports.report_evidence import (
    EvidenceOfCommunities,
    Flags,
    have_half_the_members,
    share_changed,
)
from graphrag_index.storage.memo import reuse_rows
from graphrag_index.storage.table_store import Previous

# What is written in `asked` of a report that was imported, whoever was asked for it and how.
IMPORTED = "imported"
# Reports that are compared at once: bounds memory, not results.
BATCH_REPORTS = 2_000


@dataclass(frozen=True)
class Kept:
    """The reports of one level that stay, in the order of their communities.

    `rows` are those of `report_evidence`; in `at` stands the row of the community. `places`
    say where what they cite stands now.
    """

    rows: pl.DataFrame
    places: Places

    @property
    def communities(self) -> list[int]:
        at: list[int] = self.rows["at"].to_list()
        return at

    def written(self) -> Iterator[Written]:
        """Read one report after the other."""
        return read_written(self.rows, self.places)


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
        self.previous, self.asked, self.rewrite_above = previous, asked, rewrite_above

    def keep(
        self,
        level: list[int],
        evidence: EvidenceOfCommunities,
        keys: Keys,
        below: Mapping[int, Collection[int]],
    ) -> Kept:
        """Return the reports of one level that stay.

        Parameters
        ----------
        level
            Rows of the communities of the level, ascending.
        keys
            What may be cited, by section: for Reports the number of each community.
        below
            For each of the level, the communities of its parts that have a report now.
        """
        # With 0 nothing is kept but replies: the result is that of a first run.
        rows = pl.Series(level if self.rewrite_above > 0 else [], dtype=pl.Int64)
        found, _ = reuse_rows(
            self.previous,
            TABLE,
            keys["Reports"].gather(rows),
            column="community",
            where=pl.col("asked").is_in([self.asked, IMPORTED]),
        )
        found = found.with_columns(at=rows.gather(found["at"]))
        unchanged = [
            self._is_unchanged(part, evidence) for part in found.iter_slices(BATCH_REPORTS)
        ]
        found = found.filter(np.concatenate([np.zeros(0, bool), *unchanged]))
        places, is_there = read_cited(found, keys)
        for row, (at, parts) in enumerate(zip(found["at"], places["Reports"], strict=True)):
            if parts and not set(parts) <= set(below.get(at, ())):
                is_there[row] = False
        there = np.flatnonzero(is_there).tolist()
        kept = {section: [lists[row] for row in there] for section, lists in places.items()}
        return Kept(found.filter(is_there).with_columns(asked=pl.lit(self.asked)), kept)

    def _is_unchanged(self, before: pl.DataFrame, evidence: EvidenceOfCommunities) -> Flags:
        now = evidence.of(before["at"].to_numpy())
        flags: Flags = (
            have_half_the_members(now, before)
            & (share_changed(now, before) <= self.rewrite_above)
            & evidence.are_there(before["text_unit_hashes"])
            & evidence.are_there(before["borrowed_text_unit_hashes"])
        )
        return flags

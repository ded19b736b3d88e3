"""The reports that are there so far, and the rows that they become."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from graphrag_index.reports.community_context import ReportContexts
from graphrag_index.reports.community_members import Holdings
from graphrag_index.reports.evidence_rows import WrittenOn, evidence_rows
from graphrag_index.reports.local_citations import Written
from graphrag_index.reports.previous_reports import Kept
from graphrag_index.reports.report import Report, report_rows
from graphrag_index.reports.report_evidence import EvidenceOfCommunities, Hashes, union


class Writing:
    """Takes reports in the order of their communities, and makes rows of them batch by batch."""

    def __init__(
        self,
        rows: pl.DataFrame,
        holdings: Holdings,
        contexts: ReportContexts,
        evidence: EvidenceOfCommunities,
        asked: str,
    ) -> None:
        self.rows, self.contexts, self.evidence, self.asked = rows, contexts, evidence, asked
        tables = {
            "Entities": holdings.entities,
            "Relationships": holdings.relationships,
            "Claims": holdings.claims,
        }
        self.keys = {
            "Reports": rows["community"],
            **{name: table["id"] for name, table in tables.items()},
        }
        self.numbers = {
            "Reports": rows["community"].to_numpy(),
            **{name: table["human_readable_id"].to_numpy() for name, table in tables.items()},
        }
        # The parts of each community that have a report.
        self.below: dict[int, list[int]] = {}
        # The text units behind reports that may stand in for their communities.
        self.behind: dict[int, Hashes] = {}
        self.reports: dict[int, Report] = {}
        # Those that a model wrote now: the reports that were shown for each, and its request.
        self.written: dict[int, tuple[Written, Sequence[int], str]] = {}

    def add(self, at: int, written: Written) -> None:
        """Take a report."""
        self.reports[at] = written.numbered(self.numbers)
        for above in self.contexts.above(at):
            self.below.setdefault(above, []).append(at)
        self.contexts.add_report(at, written)

    def add_new(self, at: int, written: Written, stand_ins: Sequence[int], request: str) -> None:
        """Take a report that a model wrote now, with these reports shown for its parts."""
        self.add(at, written)
        self.written[at] = written, stand_ins, request

    def batch(self, kept: Kept) -> Mapping[str, pl.DataFrame]:
        """Return the rows of the reports that are new since the last batch, all of one level.

        `kept` are the reports of the level that stay.
        """
        communities = [*self.reports]
        stay = kept.rows.filter(
            pl.col("at").is_between(min(communities, default=0), max(communities, default=-1))
        )
        evidence = pl.concat([stay, self._evidence_of_new().select(stay.columns)]).sort("at")
        self._note_behind(evidence)
        reports = report_rows(self.rows[communities], [*self.reports.values()])
        self.reports, self.written = {}, {}
        return {"community_reports": reports, "report_evidence": evidence.drop("at")}

    def _evidence_of_new(self) -> pl.DataFrame:
        at = np.array([*self.written], np.int64)
        evidence = self.evidence.of(at)
        own = dict(zip(self.written, evidence["text_unit_hashes"], strict=True))
        reports = {}
        for community, (written, stand_ins, request) in self.written.items():
            behind = union([self.behind[part] for part in stand_ins if part in self.behind])
            borrowed = np.setdiff1d(behind, own[community].to_numpy(), True)
            reports[community] = WrittenOn(written, borrowed, request)
        rows = evidence_rows(reports, evidence, self.keys, self.asked)
        return rows.with_columns(at=at)

    def _note_behind(self, evidence: pl.DataFrame) -> None:
        """Keep what is behind the reports that may be shown for their communities."""
        behind = evidence.filter(pl.col("at").is_in([*self.contexts.reports])).select(
            "at", hashes=pl.concat_list("text_unit_hashes", "borrowed_text_unit_hashes")
        )
        for at, hashes in zip(behind["at"], behind["hashes"], strict=True):
            self.behind[at] = hashes.to_numpy()

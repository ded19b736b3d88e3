"""The reports that are there so far, and the rows that they become."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from graphrag_index.core.tables import TABLES
from graphrag_index.reports.context import ReportContexts
from graphrag_index.reports.earlier import WrittenOn, evidence_rows
from graphrag_index.reports.evidence import EvidenceOfCommunities, Hashes, union
from graphrag_index.reports.holdings import Holdings
from graphrag_index.reports.row import report_row
from graphrag_index.reports.written import Written


class Writing:
    """The reports that are there so far, and the rows that they become."""

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
        self.ids = {name: table["id"] for name, table in tables.items()}
        self.numbers = {
            "Reports": rows["community"].to_numpy(),
            **{name: table["human_readable_id"].to_numpy() for name, table in tables.items()},
        }
        # The parts of each community that have a report.
        self.below: dict[int, list[int]] = {}
        # The text units behind reports that may stand in for their communities.
        self.behind: dict[int, Hashes] = {}
        self.reports: list[dict[str, object]] = []
        self.written_on: dict[int, WrittenOn] = {}

    def on_evidence(
        self, at: int, written: Written, stand_ins: Sequence[int], request: str
    ) -> WrittenOn:
        """Say what a report rests on that was written now, with these reports shown for it."""
        evidence = self.evidence.of(at)
        behind = union([self.behind[part] for part in stand_ins if part in self.behind])
        borrowed = np.setdiff1d(behind, evidence.text_units, True)
        return WrittenOn(written, evidence, borrowed, request)

    def add(self, at: int, written: Written, on: WrittenOn | None = None) -> None:
        """Take a report; those that a model wrote come with what they rest on."""
        self.reports.append(
            report_row(self.rows.row(at, named=True), written.numbered(self.numbers))
        )
        for above in self.contexts.above(at):
            self.below.setdefault(above, []).append(at)
        self.contexts.add_report(at, written)
        if on is not None:
            self.written_on[at] = on
            if at in self.contexts.reports:
                self.behind[at] = on.text_units

    def batch(self) -> Mapping[str, pl.DataFrame]:
        """Return the rows of the reports that are new since the last batch."""
        evidence = evidence_rows(self.written_on, self.rows["community"], self.ids, self.asked)
        reports = pl.DataFrame(self.reports, schema=TABLES["community_reports"].schema)
        self.reports, self.written_on = [], {}
        return {"community_reports": reports, "report_evidence": evidence}

"""Reports that are kept from the last version, and the rows of all reports in batches."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from graphrag_index.reports.community_members import CommunityMembers
from graphrag_index.reports.report import CitedReport, Report, report_rows
from graphrag_index.reports.report_context import ReportContexts
from graphrag_index.reports.report_evidence import (
    TABLE,
    CommunityEvidence,
    Flags,
    Hashes,
    Keys,
    Positions,
    ReportEvidence,
    evidence_rows,
    find_cited,
    have_half_the_members,
    read_reports,
    share_changed,
)
from graphrag_index.storage.memo import reuse_rows
from graphrag_index.storage.table_store import Previous

# The `prompt_hash` of an imported report: it is kept whatever the prompt is now.
IMPORTED_PROMPT = "imported"
# Reports compared at once: bounds memory, not results.
BATCH_REPORTS = 2_000


@dataclass(frozen=True)
class KeptReports:
    """The reports of one level that are kept, in the order of their communities.

    `rows` are rows of `report_evidence` with the row of the community in `at`; `cited` are the
    present positions of the rows that they cite.
    """

    rows: pl.DataFrame
    cited: Positions

    @property
    def communities(self) -> list[int]:
        at: list[int] = self.rows["at"].to_list()
        return at

    def reports(self) -> Iterator[CitedReport]:
        return read_reports(self.rows, self.cited)


@dataclass(frozen=True)
class PreviousReports:
    """The reports of the last version that had the same prompt, or were imported.

    Parameters
    ----------
    prompt_hash
        Hash of all inputs of a report but the contents of its community.
    rewrite_above
        A report is kept while at most this share of its evidence has changed. With 0 none is
        kept, so that the result is that of a first run.
    """

    previous: Previous
    prompt_hash: str
    rewrite_above: float

    def keep(
        self,
        level: list[int],
        evidence: CommunityEvidence,
        keys: Keys,
        below: Mapping[int, Collection[int]],
    ) -> KeptReports:
        """Return the reports of one level that are kept.

        Parameters
        ----------
        level
            Rows of the communities of the level, ascending.
        keys
            Ids of the rows that may be cited, by section; for Reports community numbers.
        below
            For each of the level, its sub-communities that have a report now.
        """
        rows = pl.Series(level if self.rewrite_above > 0 else [], dtype=pl.Int64)
        found, _ = reuse_rows(
            self.previous,
            TABLE,
            keys["Reports"].gather(rows),
            column="community",
            where=pl.col("prompt_hash").is_in([self.prompt_hash, IMPORTED_PROMPT]),
        )
        found = found.with_columns(at=rows.gather(found["at"]))
        unchanged = [
            self._is_unchanged(part, evidence) for part in found.iter_slices(BATCH_REPORTS)
        ]
        found = found.filter(np.concatenate([np.zeros(0, bool), *unchanged]))
        cited, is_whole = find_cited(found, keys)
        for row, (at, parts) in enumerate(zip(found["at"], cited["Reports"], strict=True)):
            if not set(parts) <= set(below.get(at, ())):
                is_whole[row] = False
        kept = np.flatnonzero(is_whole).tolist()
        return KeptReports(
            found.filter(is_whole).with_columns(prompt_hash=pl.lit(self.prompt_hash)),
            {section: [lists[row] for row in kept] for section, lists in cited.items()},
        )

    def _is_unchanged(self, before: pl.DataFrame, evidence: CommunityEvidence) -> Flags:
        now = evidence.of(before["at"].to_numpy())
        flags: Flags = (
            have_half_the_members(now, before)
            & (share_changed(now, before) <= self.rewrite_above)
            & evidence.have_all_text_units(before["text_unit_hashes"])
            & evidence.have_all_text_units(before["borrowed_text_unit_hashes"])
        )
        return flags


class ReportWriter:
    """Collects reports in the order of their communities, and returns their rows in batches."""

    def __init__(
        self,
        rows: pl.DataFrame,
        members: CommunityMembers,
        contexts: ReportContexts,
        evidence: CommunityEvidence,
        prompt_hash: str,
    ) -> None:
        self.rows, self.contexts, self.evidence = rows, contexts, evidence
        self.prompt_hash = prompt_hash
        tables = {
            "Entities": members.entities,
            "Relationships": members.relationships,
            "Claims": members.claims,
        }
        self.keys = {name: table["id"] for name, table in tables.items()}
        self.numbers = {
            name: table["human_readable_id"].to_numpy() for name, table in tables.items()
        }
        self.keys["Reports"] = rows["community"]
        self.numbers["Reports"] = rows["community"].to_numpy()
        # Sub-communities of each community that have a report.
        self.below: dict[int, list[int]] = {}
        # Hashes of the text units behind reports that may be substituted for communities.
        self.behind: dict[int, Hashes] = {}
        self.reports: dict[int, Report] = {}
        # New reports of a model, with the reports in their prompt and the key of the request.
        self.new: dict[int, tuple[CitedReport, Sequence[int], str]] = {}

    def add(self, at: int, report: CitedReport) -> None:
        """Add the report of a community."""
        self.reports[at] = report.numbered(self.numbers)
        for above in self.contexts.above(at):
            self.below.setdefault(above, []).append(at)
        self.contexts.add_report(at, report)

    def add_new(
        self, at: int, report: CitedReport, substitutes: Sequence[int], request_key: str
    ) -> None:
        """Add a new report of a model; `substitutes` are the reports in its prompt."""
        self.add(at, report)
        self.new[at] = report, substitutes, request_key

    def batch(self, kept: KeptReports) -> Mapping[str, pl.DataFrame]:
        """Return the rows of the reports since the last batch, all of the level of `kept`."""
        communities = [*self.reports]
        stay = kept.rows.filter(
            pl.col("at").is_between(min(communities, default=0), max(communities, default=-1))
        )
        evidence = pl.concat([stay, self._new_evidence().select(stay.columns)]).sort("at")
        self._note_behind(evidence)
        reports = report_rows(self.rows[communities], [*self.reports.values()])
        self.reports, self.new = {}, {}
        return {"community_reports": reports, "report_evidence": evidence.drop("at")}

    def _new_evidence(self) -> pl.DataFrame:
        at = np.array([*self.new], np.int64)
        evidence = self.evidence.of(at)
        own = dict(zip(self.new, evidence["text_unit_hashes"], strict=True))
        reports = {}
        for community, (report, substitutes, request_key) in self.new.items():
            shown = [self.behind[part] for part in substitutes if part in self.behind]
            behind = np.unique(np.concatenate([np.zeros(0, np.uint64), *shown]))
            borrowed = np.setdiff1d(behind, own[community].to_numpy(), True)
            reports[community] = ReportEvidence(report, borrowed, request_key)
        return evidence_rows(reports, evidence, self.keys, self.prompt_hash).with_columns(at=at)

    def _note_behind(self, evidence: pl.DataFrame) -> None:
        behind = evidence.filter(pl.col("at").is_in([*self.contexts.reports])).select(
            "at", hashes=pl.concat_list("text_unit_hashes", "borrowed_text_unit_hashes")
        )
        for at, hashes in zip(behind["at"], behind["hashes"], strict=True):
            self.behind[at] = hashes.to_numpy()

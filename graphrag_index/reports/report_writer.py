"""Collect the reports of a model, keep those of the last version, and make table rows."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from graphrag_index.reports.report import (
    CitedReport,
    CommunityMembers,
    Finding,
    Report,
    make_report_rows,
)
from graphrag_index.reports.report_context import ReportContexts
from graphrag_index.reports.report_evidence import (
    COLUMN_OF_CITED_ROWS,
    EVIDENCE_TABLE,
    PROMPT_HASH_OF_IMPORTS,
    REPORTS_PER_BATCH,
    CommunityEvidence,
    Hashes,
    SectionIds,
)
from graphrag_index.reports.statement_sources import StatementSources
from graphrag_index.storage.memo import reuse_rows
from graphrag_index.storage.table_store import Previous
from graphrag_nlp.list_columns import find_rows, gather_lists, spread_lists


class ReportWriter:
    """A collector of reports, in the order of communities; it returns table rows in batches."""

    def __init__(
        self,
        rows: pl.DataFrame,
        members: CommunityMembers,
        contexts: ReportContexts,
        evidence: CommunityEvidence,
        sources: StatementSources,
        prompt_hash: str,
    ) -> None:
        """Start without reports; `prompt_hash` hashes all inputs of a request except its rows."""
        self.rows, self.contexts, self.evidence = rows, contexts, evidence
        self.sources, self.prompt_hash = sources, prompt_hash
        self.keys = {"Reports": rows["community"]}
        self.numbers = {"Reports": rows["community"].to_numpy()}
        tables = (members.entities, members.relationships, members.claims)
        for name, table in zip(COLUMN_OF_CITED_ROWS, tables, strict=False):
            self.keys[name] = table["id"]
            self.numbers[name] = table["human_readable_id"].to_numpy()
        self.reports: dict[int, CitedReport] = {}
        # Sub-communities that have a report, by the community that contains them.
        self._reported_below: dict[int, set[int]] = {}
        # By community: hashes of the text units behind its report, if other contexts may use it.
        self._support_hashes: dict[int, Hashes] = {}
        # By community: (new report, communities whose reports are in its prompt, request key).
        self._new: dict[int, tuple[CitedReport, Sequence[int], str]] = {}
        # Rows of `report_evidence` for reports of this level kept from the last version.
        self._kept = EVIDENCE_TABLE.empty().with_columns(pl.lit(None, pl.Int64).alias("at"))

    def keep_reports(
        self, level: Sequence[int], previous: Previous, rewrite_above: float
    ) -> tuple[pl.DataFrame, Iterator[CitedReport]]:
        """Choose the reports of one level that are kept from the last version.

        A kept report had the same prompt or was imported, and at most the share `rewrite_above`
        (0 to 1) of its evidence has changed. If the share is 0, no report is kept, as in a first
        run. `level` are the rows of the communities, ascending. Returns rows of `report_evidence`,
        with the row of the community in `at`, and their reports in the same order.
        """
        rows = pl.Series(level if rewrite_above > 0 else [], dtype=pl.Int64)
        found, _ = reuse_rows(
            previous,
            EVIDENCE_TABLE,
            self.keys["Reports"].gather(rows),
            column="community",
            where=pl.col("prompt_hash").is_in([self.prompt_hash, PROMPT_HASH_OF_IMPORTS]),
        )
        found = found.with_columns(at=rows.gather(found["at"]))
        parts = found.iter_slices(REPORTS_PER_BATCH)
        unchanged = [self.evidence.flag_reusable(part, rewrite_above) for part in parts]
        found = found.filter(np.concatenate([np.zeros(0, bool), *unchanged]))
        cited = _find_cited_rows(found, self.keys)
        is_whole = [
            set(reports) <= self._reported_below.get(at, set())
            and all(place >= 0 for places in own for place in places)
            for at, reports, own in zip(
                found["at"], cited["Reports"], zip(*cited.values(), strict=True), strict=True
            )
        ]
        self._kept = found.filter(pl.Series(is_whole, dtype=pl.Boolean)).with_columns(
            prompt_hash=pl.lit(self.prompt_hash)
        )
        return self._kept, _read_reports(self._kept, self.keys)

    def add_report(self, at: int, report: CitedReport) -> None:
        """Add the report of a community."""
        self.reports[at] = report
        for above in self.contexts.find_ancestors(at):
            self._reported_below.setdefault(above, set()).add(at)
        self.contexts.add_report(at, report)

    def add_new_report(
        self, at: int, report: CitedReport, substitutes: Sequence[int], request_key: str
    ) -> None:
        """Add a new report; `substitutes` are communities whose reports are in its prompt."""
        self.add_report(at, report)
        self._new[at] = report, substitutes, request_key

    def take_report_rows(self) -> Mapping[str, pl.DataFrame]:
        """Return table rows of all reports added since the last call; all are of one level."""
        communities = [*self.reports]
        kept = self._kept.filter(
            pl.col("at").is_between(min(communities, default=0), max(communities, default=-1))
        )
        evidence = pl.concat([kept, self._new_evidence().select(kept.columns)]).sort("at")
        behind = evidence.filter(pl.col("at").is_in([*self.contexts.reports])).select(
            "at", hashes=pl.concat_list("text_unit_hashes", "borrowed_text_unit_hashes")
        )
        for at, hashes in zip(behind["at"], behind["hashes"], strict=True):
            self._support_hashes[at] = hashes.to_numpy()
        numbered = [report.number_citations(self.numbers) for report in self.reports.values()]
        statements = self.sources.make_column(self.reports)
        reports = make_report_rows(self.rows[communities], numbered, statements)
        self.reports, self._new = {}, {}
        return {"community_reports": reports, "report_evidence": evidence.drop("at")}

    def _new_evidence(self) -> pl.DataFrame:
        new = self._new
        reports = {at: report for at, (report, _, _) in new.items()}
        rows = self.evidence.make_evidence_rows(reports, self.keys, self.prompt_hash)
        borrowed = []
        for (_, substitutes, _), own in zip(new.values(), rows["text_unit_hashes"], strict=True):
            shown = [
                self._support_hashes[part] for part in substitutes if part in self._support_hashes
            ]
            behind = np.unique(np.concatenate([np.zeros(0, np.uint64), *shown]))
            borrowed.append(pl.Series(np.setdiff1d(behind, own.to_numpy(), assume_unique=True)))
        return rows.with_columns(
            at=pl.Series(list(new), dtype=pl.Int64),
            request_key=pl.Series([key for _, _, key in new.values()], dtype=pl.String),
            # Text units that support a report in the prompt, but no row of the community itself.
            borrowed_text_unit_hashes=pl.Series(borrowed, dtype=pl.List(pl.UInt64)),
        )


def _find_cited_rows(rows: pl.DataFrame, keys: SectionIds) -> dict[str, list[list[int]]]:
    """Return the cited rows of each report, by section; -1 for a row that no longer exists."""
    cited = {}
    for section, column in COLUMN_OF_CITED_ROWS.items():
        owners, values = spread_lists(rows[column])
        found = pl.Series(find_rows(values, keys[section]))
        cited[section] = gather_lists(owners, found, rows.height).to_list()
    return cited


def _read_reports(rows: pl.DataFrame, keys: SectionIds) -> Iterator[CitedReport]:
    """Yield one report for each row of `report_evidence`."""
    cited = _find_cited_rows(rows, keys)
    texts = rows.select("title", "summary", "findings", "rank", "rating_explanation").iter_rows()
    for row, (title, summary, found, rank, explanation) in enumerate(texts):
        findings = tuple(Finding(one["summary"], one["explanation"]) for one in found)
        own = {section: lists[row] for section, lists in cited.items() if lists[row]}
        yield CitedReport(Report(title, summary, findings, rank, explanation), own)

"""Community reports written by a model; sub-communities come before their parents.

An island community gathers small components of the graph.
"""

import json
import logging
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.prompts import Prompts, n_prompt_tokens
from graphrag_index.llm.request import Message, Outcome, Request, pair_outcomes
from graphrag_index.reports.report import (
    FORMAT_INSTRUCTION,
    CitedReport,
    CommunityMembers,
    Finding,
    Report,
    format_citation,
    make_report_format,
    make_report_rows,
    rank_communities,
)
from graphrag_index.reports.report_context import Context, ReportContexts
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
from graphrag_index.schema.settings.step_sections import CreateCommunityReports
from graphrag_index.schema.tables import content_id
from graphrag_index.step import Progress, Shards, step
from graphrag_index.storage.memo import reuse_rows
from graphrag_index.storage.table_store import Previous
from graphrag_nlp.list_columns import Integers, find_rows, gather_lists, spread_lists
from graphrag_nlp.text.citations import check_citations
from graphrag_nlp.text.languages import join_titles

logger = logging.getLogger(__name__)

# Maximum number of entities that a title names, if the reply of the model has no title.
MAX_ENTITIES_IN_TITLE = 3
# Rank (0 to 10) of a report without a model: low, because its entities have few links.
RANK_WITHOUT_MODEL = 1.0
NO_MODEL_REASON = "No model was asked about this community."
# Number of reports per batch. The number limits memory and does not change the results.
BATCH_REPORTS = 1_000


@step(writes=["community_reports", "report_evidence"], code_version=9)
def create_community_reports(
    communities: pl.LazyFrame,
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
    base_text_units: pl.LazyFrame,
    covariates: pl.LazyFrame | None = None,
    community_lineage: pl.LazyFrame | None = None,
    *,
    settings: CreateCommunityReports,
    chat_model: ChatModel,
    prompts: Prompts,
    previous: Previous,
    progress: Progress,
    shards: Shards,
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Ask a model for a report on each community, from its entities, relationships and claims.

    The deepest level comes first. If the rows of a community exceed the token limit, the reports
    on its sub-communities replace their rows. If the rows are from at least three documents, those
    of one document have at most the share `max_document_share` of the tokens. No model is asked
    about an island community or a community without descriptions; the report lists the members. A
    community whose request fails has no report, and the ledger lists the request. A report of the
    last version is reused if at most the share `rewrite_above` (0–1) of its evidence has changed.
    Reports are ordered by level, deepest first, then `community`. `report_evidence` has one row
    per report of a model.
    """
    rows = rank_communities(communities)
    lists = communities.select("community", "entity_ids", "relationship_ids").collect()
    members = CommunityMembers(
        rows.join(lists, on="community", how="left", maintain_order="left"),
        entities,
        relationships,
        covariates,
    )
    evidence = CommunityEvidence(members, entities, relationships, base_text_units)
    documents = evidence.find_main_documents()
    requests = _ReportRequests(rows, members, documents, settings, chat_model, prompts, shards)
    members.drop_texts()
    sources = StatementSources(members, evidence, base_text_units)
    prompt_hash = requests.prompt_hash
    writer = ReportWriter(rows, members, requests.contexts, evidence, sources, prompt_hash)
    can_be_reused = ~requests.is_plain & ~_find_born(rows["community"], community_lineage)
    progress.start(rows.height, "reports")
    n_failed = n_dropped = n_kept = 0
    for level in rows.with_row_index("at").partition_by("level", maintain_order=True):
        numbers: list[int] = level["at"].to_list()
        known = [at for at in numbers if can_be_reused[at]]
        kept, kept_reports = writer.keep_reports(known, previous, settings.rewrite_above)
        kept_numbers = set(kept["at"])
        n_kept += len(kept_numbers)
        chat_model.mark_used(kept["request_key"].to_list())
        for at, substitutes, outcome in requests.outcomes(numbers, kept_numbers):
            if at in kept_numbers:
                writer.add_report(at, next(kept_reports))
            elif outcome is None:
                writer.add_report(at, requests.make_report_without_model(at))
            else:
                n_failed += bool(outcome.failure)
                n_dropped += outcome.dropped
                if outcome.values and not outcome.failure:
                    key = "".join(outcome.keys[-1:])
                    writer.add_new_report(at, outcome.values[0], substitutes, key)
            progress.advance()
            if len(writer.reports) == BATCH_REPORTS:
                yield writer.take_report_rows()
        yield writer.take_report_rows()
    if n_kept:
        logger.info("%d reports of the last run are reused, because little has changed", n_kept)
    if n_failed or n_dropped:
        logger.warning(
            "%d communities have no report, %d findings and citations of replies were invalid",
            n_failed,
            n_dropped,
        )


def _find_born(communities: pl.Series, lineage: pl.LazyFrame | None) -> np.ndarray:
    """Tell for each community whether it has none before it in the last version."""
    if lineage is None:
        return np.zeros(len(communities), np.bool_)
    born = lineage.filter(status="born").select("community").collect().to_series()
    return communities.is_in(born.implode()).to_numpy()


class _ReportRequests:
    """The requests for reports, and the reports on communities that need no request."""

    def __init__(
        self,
        rows: pl.DataFrame,
        members: CommunityMembers,
        main_documents: Mapping[str, Integers],
        settings: CreateCommunityReports,
        chat_model: ChatModel,
        prompts: Prompts,
        shards: Shards,
    ) -> None:
        values = {name: str(getattr(settings, name)) for name in ("max_findings", "max_words")}
        system = prompts.fill("create_community_reports", values).strip()
        self.rows, self.chat_model = rows, chat_model
        self.system = Message(role="system", content=system)
        self.contexts = ReportContexts(
            members,
            shards,
            max_tokens=settings.max_input_tokens,
            room=chat_model.max_prompt_tokens - n_prompt_tokens(system + FORMAT_INSTRUCTION),
            main_documents=main_documents,
            max_document_share=settings.max_document_share,
        )
        self.entities = members.entities.select("title", pl.col("description").fill_null(""))
        self.titles = self.entities["title"].to_list()
        self.is_plain = rows["island"].to_numpy() | self.contexts.is_empty
        # Hash all inputs that the reports share. The alias of the model is not an input.
        section = settings.model_dump(mode="json", exclude={"model", "rewrite_above"})
        limit = self.contexts.budget.limit
        parts = (section, chat_model.settings.identity(), system, FORMAT_INSTRUCTION, limit)
        dumped = (json.dumps(part, sort_keys=True) for part in parts)
        self.prompt_hash = content_id("report", *dumped)

    def outcomes(
        self, level: Sequence[int], kept: Collection[int]
    ) -> Iterator[tuple[int, Sequence[int], Outcome | None]]:
        """Yield (community, sub-communities, outcome) for each community of a level, in order.

        The prompt contains the reports on the sub-communities. The outcome is None if the community
        needs no request.
        """
        left = deque(level)
        asked = [at for at in level if not self.is_plain[at] and at not in kept]

        def requests() -> Iterator[tuple[tuple[int, Sequence[int]], Request]]:
            for at, context in zip(asked, self.contexts.build_contexts(asked), strict=True):
                yield (at, context.substitutes), self._make_request(at, context)

        for (at, substitutes), outcome in pair_outcomes(self.chat_model, requests()):
            while left[0] != at:
                yield left.popleft(), (), None
            yield left.popleft(), substitutes, outcome
        for at in left:
            yield at, (), None

    def _make_request(self, at: int, context: Context) -> Request:
        title = self._make_report_title(at)
        return Request(
            # Do not label a request with the community number, which may change in a later run.
            f"community of {title} ({self.rows['size'][at]} entities)",
            [self.system, Message(role="user", content=context.text)],
            make_report_format(context.shown, title),
        )

    def make_report_without_model(self, at: int) -> CitedReport:
        """Return a report that lists the members with their distinct descriptions."""
        members = self.contexts.sort_by_degree(at)[0]
        title = self._make_report_title(at)
        names: list[str] = []
        described: dict[str, tuple[list[int], list[str]]] = {}
        for place, (name, description) in enumerate(self.entities[members].iter_rows()):
            # Remove citations from names, because a citation in a document does not refer to this
            # index.
            names.append(_remove_citations(name))
            text = " ".join(_remove_citations(description).split())
            places, titles = described.setdefault(text, ([], []))
            places.append(place)
            titles.append(names[-1])
        findings = tuple(
            Finding(join_titles(titles), f"{description} {format_citation({'Entities': places})}")
            for description, (places, titles) in described.items()
            if description
        )
        named = f"{join_titles(names)}. {format_citation({'Entities': range(len(names))})}"
        summary = f"Nothing is told of the links of {named}"
        if self.rows["island"][at]:
            title, summary = f"Island: {title}", f"Entities with few or no links: {named}"
        report = Report(title, summary, findings, RANK_WITHOUT_MODEL, NO_MODEL_REASON)
        return CitedReport(report, {"Entities": members.tolist()})

    def _make_report_title(self, at: int) -> str:
        best = self.contexts.sort_by_degree(at)[0][:MAX_ENTITIES_IN_TITLE].tolist()
        return join_titles([_remove_citations(self.titles[entity]) for entity in best])


def _remove_citations(text: str) -> str:
    return check_citations(text, {})[0]


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

"""Community reports written by a model; sub-communities come before their parents.

An island community gathers small components of the graph.
"""

import json
import logging
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from graphrag_index.errors import join_counts
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.prompts import Prompts, n_prompt_tokens
from graphrag_index.llm.request import (
    SHORTENED_SHARE,
    Message,
    Outcome,
    Request,
    pair_outcomes,
)
from graphrag_index.reports.report import (
    FORMAT_INSTRUCTION,
    CitedReport,
    CommunityMembers,
    Finding,
    Report,
    format_citation,
    make_report_format,
    rank_communities,
)
from graphrag_index.reports.report_context import MIN_ROW_TOKENS, Context, ReportContexts
from graphrag_index.reports.report_evidence import CommunityEvidence
from graphrag_index.reports.report_writer import ReportWriter, StatementSources
from graphrag_index.schema.settings.step_sections import CreateCommunityReports
from graphrag_index.schema.tables import content_id
from graphrag_index.step import Progress, Shards, step
from graphrag_index.storage.table_store import Previous
from graphrag_nlp.list_columns import Integers
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


@step(writes=["community_reports", "report_evidence"], code_version=10)
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
    if lost := join_counts(reports=n_failed, invalid_findings_and_citations=n_dropped):
        logger.warning("Lost: %s", lost)


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

        def requests() -> Iterator[tuple[tuple[int, list[Context]], Request]]:
            for at, context in zip(asked, self.contexts.build_contexts(asked), strict=True):
                sent = [context]
                yield (at, sent), self._make_request(at, sent, self.contexts.budget.limit)

        for (at, sent), outcome in pair_outcomes(self.chat_model, requests()):
            while left[0] != at:
                yield left.popleft(), (), None
            yield left.popleft(), sent[-1].substitutes, outcome
        for at in left:
            yield at, (), None

    def _make_request(self, at: int, sent: list[Context], max_tokens: int) -> Request:
        """Make a request with the last context in `sent`, to which shorter ones are added."""
        context, title = sent[-1], self._make_report_title(at)

        def shorten() -> Request | None:
            shorter = int(SHORTENED_SHARE * min(max_tokens, self.contexts.cost[at]))
            if shorter < MIN_ROW_TOKENS:
                return None
            sent.extend(self.contexts.build_contexts([at], shorter))
            return self._make_request(at, sent, shorter)

        return Request(
            # Do not label a request with the community number, which may change in a later run.
            f"community of {title} ({self.rows['size'][at]} entities)",
            [self.system, Message(role="user", content=context.text)],
            make_report_format(context.shown, title),
            shorten=shorten,
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

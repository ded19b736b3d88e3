"""Ask a model for a report on each community, the parts of a community before the whole."""

import json
import logging
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence

import polars as pl

from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.rendered_rows import n_prompt_tokens
from graphrag_index.llm.request import Message, Outcome, Request
from graphrag_index.reports.community_context import ReportContexts
from graphrag_index.reports.community_members import Holdings
from graphrag_index.reports.local_citations import Written
from graphrag_index.reports.previous_reports import EarlierReports
from graphrag_index.reports.report import (
    Finding,
    Report,
    community_rows,
    join_titles,
)
from graphrag_index.reports.report_context import Context
from graphrag_index.reports.report_evidence import EvidenceOfCommunities
from graphrag_index.reports.report_reply import IN_WORDS, report_format
from graphrag_index.reports.report_writer import Writing
from graphrag_index.schema.settings.llm_steps import CreateCommunityReports
from graphrag_index.schema.tables import content_id
from graphrag_index.step import Progress, step
from graphrag_index.storage.table_store import Previous
from graphrag_index.text.citations import check_citations

logger = logging.getLogger(__name__)

# Members that name a report if its reply has no title.
TITLE_MEMBERS = 3
# Ids in one citation; more are shown as "+more".
MAX_CITED = 5
# Of a report that no model wrote: what nothing links matters least.
PLAIN_RANK = 1.0
NOT_ASKED = "No model was asked about this community."
# Reports written at once: bounds memory, not results.
BATCH_REPORTS = 1_000


@step(writes=["community_reports", "report_evidence"], code_version=6)
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
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Ask a model for a report on each community, from its entities, relationships and claims.

    The deepest level comes first, since reports on the parts stand in for what is too large
    to be shown whole. Islands, and communities of which nothing is told but names, are not
    asked about: their reports list the members with their descriptions. A community
    whose request fails has no report; the ledger lists it. A report of the last run stays
    while the evidence of its community is what it was written on, but for the share of it
    that `rewrite_above` allows; not where communities were made anew.

    Yields
    ------
    community_reports
        One row per community with a report, ordered by level, deepest first, then `community`.
    report_evidence
        One row for each of these that a model wrote.
    """
    rows = community_rows(communities)
    lists = communities.select("community", "entity_ids", "relationship_ids").collect()
    system = prompts.fill(
        "create_community_reports",
        {"max_findings": str(settings.max_findings), "max_words": str(settings.max_words)},
    ).strip()
    holdings = Holdings.of(
        rows.join(lists, on="community", how="left", maintain_order="left"),
        entities,
        relationships,
        covariates,
    )
    contexts = ReportContexts(
        holdings,
        max_tokens=settings.max_input_tokens,
        room=chat_model.max_prompt_tokens - n_prompt_tokens(system + IN_WORDS),
    )
    evidence = EvidenceOfCommunities(holdings, entities, relationships, base_text_units)
    holdings = holdings.without_texts()
    asking = _Asking(rows, holdings, contexts, Message(role="system", content=system))
    asked = _hash(settings, chat_model, system, contexts.budget.limit)
    earlier = EarlierReports(previous, asked, settings.rewrite_above)
    writing = Writing(rows, holdings, contexts, evidence, asked)
    born = _born(community_lineage)
    progress.start(rows.height, "reports")
    n_failed = n_dropped = n_kept = 0
    for level in rows.with_row_index("at").partition_by("level", maintain_order=True):
        numbers: list[int] = level["at"].to_list()
        known = [
            at for at in numbers if not asking.is_plain[at] and rows["community"][at] not in born
        ]
        kept = earlier.keep(known, evidence, writing.keys, writing.below)
        staying = dict.fromkeys(kept.communities)
        n_kept += len(staying)
        chat_model.mark_used(kept.rows["request"].to_list())
        earlier_reports = kept.written()
        for at, stand_ins, outcome in asking.outcomes(numbers, staying, chat_model):
            if at in staying:
                writing.add(at, next(earlier_reports))
            elif outcome is None:
                writing.add(at, asking.plain_report(at))
            elif outcome.values and not outcome.failure:
                written: Written = outcome.values[0]
                writing.add_new(at, written, stand_ins, "".join(outcome.keys[-1:]))
            n_failed += outcome is not None and bool(outcome.failure)
            n_dropped += outcome.dropped if outcome is not None else 0
            progress.advance()
            if len(writing.reports) == BATCH_REPORTS:
                yield writing.batch(kept)
        yield writing.batch(kept)
    if n_kept:
        logger.info("%d reports of the last run stay, since hardly anything changed", n_kept)
    if n_failed or n_dropped:
        logger.warning(
            "%d communities have no report, %d findings and citations of replies were no good",
            n_failed,
            n_dropped,
        )


def _hash(settings: CreateCommunityReports, chat_model: ChatModel, system: str, limit: int) -> str:
    """Hash what a report depends on beside what its community holds."""
    # By which name the settings know the model is nothing to it.
    section = settings.model_dump(mode="json", exclude={"model", "rewrite_above"})
    parts = (section, chat_model.settings.identity(), system, IN_WORDS, limit)
    return content_id("report", *(json.dumps(part, sort_keys=True) for part in parts))


def _born(lineage: pl.LazyFrame | None) -> Collection[int]:
    """The communities that were none of the last run's, whatever their numbers."""
    if lineage is None:
        return ()
    born = lineage.filter(pl.col("status") == "born").select("community")
    return frozenset(born.collect()["community"])


class _Asking:
    """What is asked about each community, and what is said of those that are not asked about."""

    def __init__(
        self,
        rows: pl.DataFrame,
        holdings: Holdings,
        contexts: ReportContexts,
        system: Message,
    ) -> None:
        self.rows, self.contexts, self.system = rows, contexts, system
        self.entities = holdings.entities.select("title", pl.col("description").fill_null(""))
        self.is_plain = rows["island"].to_numpy() | contexts.is_empty

    def outcomes(
        self, level: Sequence[int], kept: Collection[int], chat_model: ChatModel
    ) -> Iterator[tuple[int, Sequence[int], Outcome | None]]:
        """Give each community of a level in order, and what came of asking; None if none was asked.

        Between the two stand the communities whose reports were shown for it.
        """
        left = deque(level)
        shown: dict[int, Sequence[int]] = {}

        def is_asked(at: int) -> bool:
            return not self.is_plain[at] and at not in kept

        def requests() -> Iterator[Request]:
            asked = list(filter(is_asked, level))
            for at, context in zip(asked, self.contexts.each(asked), strict=True):
                shown[at] = context.stand_ins
                yield self.request(at, context)

        for outcome in chat_model.replies(requests()):
            while not is_asked(left[0]):
                yield left.popleft(), (), None
            at = left.popleft()
            yield at, shown.pop(at), outcome
        for at in left:
            yield at, (), None

    def request(self, at: int, context: Context) -> Request:
        """Ask for the report on a community."""
        title = self._title(at)
        return Request(
            # By its content, since its number may be another's next time.
            f"community of {title} ({self.rows['size'][at]} entities)",
            [self.system, Message(role="user", content=context.text)],
            report_format(context.shown, title),
        )

    def plain_report(self, at: int) -> Written:
        """List the members of a community with their descriptions, each of these once."""
        members = self.contexts.best_first(at)[0]
        title = self._title(at)
        names: list[str] = []
        told: dict[str, tuple[list[int], list[str]]] = {}
        for place, (name, description) in enumerate(self.entities[members].iter_rows()):
            # What a document cites is no row of this index.
            names.append(_without_citations(name))
            said = " ".join(_without_citations(description).split())
            places, titles = told.setdefault(said, ([], []))
            places.append(place)
            titles.append(names[-1])
        findings = tuple(
            Finding(join_titles(titles), f"{description} {_citation(places)}")
            for description, (places, titles) in told.items()
            if description
        )
        named = f"{join_titles(names)}. {_citation(range(len(names)))}"
        if self.rows["island"][at]:
            summary = f"Entities with few or no links: {named}"
            report = Report(f"Island: {title}", summary, findings, PLAIN_RANK, NOT_ASKED)
        else:
            summary = f"Nothing is told of the links of {named}"
            report = Report(title, summary, findings, PLAIN_RANK, NOT_ASKED)
        return Written(report, {"Entities": members.tolist()})

    def _title(self, at: int) -> str:
        best = self.contexts.best_first(at)[0][:TITLE_MEMBERS]
        return join_titles([_without_citations(name) for name in self.entities["title"][best]])


def _without_citations(text: str) -> str:
    return check_citations(text, {})[0]


def _citation(places: Sequence[int]) -> str:
    shown = ", ".join(map(str, places[:MAX_CITED]))
    return f"[Data: Entities ({shown}{', +more' if len(places) > MAX_CITED else ''})]"

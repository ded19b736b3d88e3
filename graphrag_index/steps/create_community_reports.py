"""Ask a model for a report on each community, the parts of a community before the whole."""

import logging
from collections import deque
from collections.abc import Iterator, Sequence

import polars as pl

from graphrag_index.core.model_steps import CreateCommunityReports
from graphrag_index.core.models.chat_model import ChatModel
from graphrag_index.core.models.request import Message, Outcome, Request
from graphrag_index.core.progress import Progress
from graphrag_index.core.prompts import Prompts
from graphrag_index.core.rendered_rows import n_prompt_tokens
from graphrag_index.core.tables import TABLES
from graphrag_index.reports.context import ReportContexts
from graphrag_index.reports.reply import IN_WORDS, report_format
from graphrag_index.reports.row import (
    Finding,
    Report,
    community_rows,
    join_titles,
    report_row,
)
from graphrag_index.step import step

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


@step(writes=["community_reports"])
def create_community_reports(
    communities: pl.LazyFrame,
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
    covariates: pl.LazyFrame | None = None,
    *,
    settings: CreateCommunityReports,
    chat_model: ChatModel,
    prompts: Prompts,
    progress: Progress,
) -> Iterator[pl.DataFrame]:
    """Ask a model for a report on each community, from its entities, relationships and claims.

    The deepest level comes first, since reports on the parts stand in for what is too large
    to be shown whole. Islands, and communities of which nothing is told but names, are not
    asked about: their reports list the members with their descriptions. A community
    whose request fails has no report; the ledger lists it.

    Yields
    ------
    community_reports
        One row per community with a report, ordered by level, deepest first, then `community`.
    """
    rows = community_rows(communities)
    lists = communities.select("community", "entity_ids", "relationship_ids").collect()
    system = prompts.fill(
        "create_community_reports",
        {"max_findings": str(settings.max_findings), "max_words": str(settings.max_words)},
    ).strip()
    contexts = ReportContexts(
        rows.join(lists, on="community", how="left", maintain_order="left"),
        entities,
        relationships,
        covariates,
        max_tokens=settings.max_input_tokens,
        room=chat_model.max_prompt_tokens - n_prompt_tokens(system + IN_WORDS),
    )
    asking = _Asking(rows, contexts, Message(role="system", content=system))
    progress.start(rows.height, "reports")
    n_failed = n_dropped = 0
    for level in rows.with_row_index("at").partition_by("level", maintain_order=True):
        reports: list[dict[str, object]] = []
        for at, outcome in _outcomes(level["at"].to_list(), asking, chat_model):
            report = asking.plain_report(at) if outcome is None else _report(outcome)
            n_dropped += outcome.dropped if outcome is not None else 0
            n_failed += report is None
            if report is not None:
                reports.append(report_row(rows.row(at, named=True), report))
                contexts.add_report(at, report.markdown())
            progress.advance()
            if len(reports) == BATCH_REPORTS:
                yield _frame(reports)
                reports = []
        yield _frame(reports)
    if n_failed or n_dropped:
        logger.warning(
            "%d communities have no report, %d findings and citations of replies were no good",
            n_failed,
            n_dropped,
        )


def _report(outcome: Outcome) -> Report | None:
    return outcome.values[0] if outcome.values and not outcome.failure else None


def _frame(reports: Sequence[dict[str, object]]) -> pl.DataFrame:
    return pl.DataFrame(reports, schema=TABLES["community_reports"].schema)


def _outcomes(
    level: Sequence[int], asking: "_Asking", chat_model: ChatModel
) -> Iterator[tuple[int, Outcome | None]]:
    """Give each community of a level in order, with what came of asking; None if none was asked."""
    left = deque(level)
    requests = (asking.request(at) for at in level if not asking.is_plain[at])
    for outcome in chat_model.replies(requests):
        while asking.is_plain[left[0]]:
            yield left.popleft(), None
        yield left.popleft(), outcome
    for at in left:
        yield at, None


class _Asking:
    """What is asked about each community, and what is said of those that are not asked about."""

    def __init__(self, rows: pl.DataFrame, contexts: ReportContexts, system: Message) -> None:
        self.rows, self.contexts, self.system = rows, contexts, system
        self.is_plain = rows["island"].to_numpy() | contexts.is_empty

    def request(self, at: int) -> Request:
        """Ask for the report on a community."""
        context = self.contexts.of(at)
        title = self._title(at)
        user = Message(role="user", content=context.text)
        return Request(
            f"community {self.rows['community'][at]}: {title}",
            [self.system, user],
            report_format(context.shown, title, self.rows["rank"][at]),
        )

    def plain_report(self, at: int) -> Report:
        """List the members of a community with their descriptions, each of these once."""
        members = self.contexts.best_members(at)
        title = self._title(at)
        names = join_titles(members["title"].to_list())
        cited = _citation(members["human_readable_id"].to_list())
        told: dict[str, tuple[list[int], list[str]]] = {}
        for number, name, description in members.iter_rows():
            numbers, titles = told.setdefault(" ".join(description.split()), ([], []))
            numbers.append(number)
            titles.append(name)
        findings = tuple(
            Finding(join_titles(titles), f"{description} {_citation(numbers)}")
            for description, (numbers, titles) in told.items()
            if description
        )
        if self.rows["island"][at]:
            summary = f"Entities with few or no links: {names}. {cited}"
            return Report(f"Island: {title}", summary, findings, PLAIN_RANK, NOT_ASKED)
        summary = f"Nothing is told of the links of {names}. {cited}"
        return Report(title, summary, findings, PLAIN_RANK, NOT_ASKED)

    def _title(self, at: int) -> str:
        best = self.contexts.best_members(at).head(TITLE_MEMBERS)
        return join_titles(best["title"].to_list())


def _citation(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:MAX_CITED]))
    return f"[Data: Entities ({shown}{', +more' if len(numbers) > MAX_CITED else ''})]"

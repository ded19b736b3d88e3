"""Which community reports a model is shown for a question about the whole corpus."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from graphrag_index.llm.rendered_rows import Budget, RenderedRows
from graphrag_index.schema.settings.searches import GlobalSearch
from graphrag_index.text.citations import check_citations
from graphrag_query.answering.context import TOKENS_OF_HEADING, Context
from graphrag_query.answering.sentence_ranking import content_words, stem
from graphrag_query.question.question import TOKENS_OF_PROMPT, Question
from graphrag_query.retrieval.index_store import KnowledgeModel

# What a report weighs in its level, beside its cosine with the question.
RANK_WEIGHT = 0.25
# A level of fewer reports is too coarse to name themes.
MIN_REPORTS = 4
# Reports of so many tokens are read even if that is much of a small level.
ENOUGH_TOKENS = 500
# What the instructions of a call take, which count in the share of a level; in bytes.
BYTES_OF_PROMPT = 1_600
# Reports of which the texts are read at once.
REPORTS_AT_ONCE = 32
# Reports that a note names; the answer has the numbers of all.
NAMED_IN_NOTE = 8
# Questions about the whole name no subject that a report could be similar to.
_WHOLE = frozenset(
    map(
        stem,
        (
            "theme themes topic topics summary summarize summarise overview corpus collection "
            "document documents dataset text texts subject subjects story idea ideas point points "
            "issue issues top key major most important overall mentioned thema themen überblick "
            "temat tematy"
        ).split(),
    )
)


@dataclass(frozen=True)
class ReportChoice:
    """The reports to be shown, best first: one row a report, its number `id` and its `text`.

    `left_out` are the numbers and titles of those that were passed over. `level` is None
    where several were walked through.
    """

    reports: pl.DataFrame
    left_out: pl.DataFrame
    level: int | None
    looked_at: Mapping[str, int]
    why: str  # they were left out
    notes: tuple[str, ...] = ()

    @property
    def note(self) -> tuple[str, ...]:
        """Tell which reports were left out."""
        if not self.left_out.height:
            return ()
        named = [
            f"{title} ({number})" for number, title in self.left_out.head(NAMED_IN_NOTE).iter_rows()
        ]
        more = self.left_out.height - len(named)
        where = f" of level {self.level}" if self.level is not None else ""
        rest = f" and {more} more" if more else ""
        of_all = f"{self.left_out.height} of {self.left_out.height + self.reports.height}"
        return (f"{of_all} reports{where} left out, {self.why}: {', '.join(named)}{rest}.",)


def subject_of(question: str) -> list[str]:
    """Return the words of a question that name its subject; none if it asks about the whole."""
    return [word for word in content_words(question) if word not in _WHOLE]


def by_fit(question: Question) -> pl.DataFrame:
    """Return all reports with their cosine with the question and their score.

    Their texts are left out: `KnowledgeModel.with_texts` reads those that are looked at.
    """
    reports = question.model.report_list
    table = question.model.vectors("community_full_content")
    rows = table.nearest(question.vector, max(1, reports.height), ["community"])
    return reports.join(rows, on="community", how="left", maintain_order="left").with_columns(
        pl.col("similarity").cast(pl.Float64).fill_null(0),
        score=pl.col("similarity").fill_null(0) + RANK_WEIGHT * pl.col("rank") / 10,
    )


def fitting_level(reports: pl.DataFrame, about_all: bool) -> int:
    """Return the level that fits a question: a coarse one if it is about the whole."""
    return _coarsest(reports) if about_all else _closest(reports)


def _coarsest(reports: pl.DataFrame) -> int:
    """Return the coarsest level that has several reports: it tells the themes of the whole."""
    sizes = reports.group_by("level").len().sort("level")
    several = sizes.filter(pl.col("len") >= MIN_REPORTS)["level"].to_list()
    return several[0] if several else 0


def _closest(reports: pl.DataFrame) -> int:
    """Return the level whose best reports are most similar to the question."""
    best = (
        reports.group_by("level")
        .agg(fit=pl.col("similarity").top_k(MIN_REPORTS).mean())
        .sort("fit", "level", descending=[True, False])
    )
    return best["level"].to_list()[0] if best.height else 0


def of_level(reports: pl.DataFrame, level: int) -> pl.DataFrame:
    """Return the reports of a level, and those further up of communities that are not split."""
    leaf = pl.col("children").list.len() == 0
    return reports.filter((pl.col("level") == level) | ((pl.col("level") < level) & leaf))


def choose_reports(question: Question, settings: GlobalSearch) -> ReportChoice:
    """Choose the reports of a level: all of it, or the best within a budget.

    `similar` takes the most similar until `max_map_tokens` or `max_map_share` of the level is
    reached. A question about the whole resembles no report: there the highest ranks come
    first, with their summaries alone, so that more of them have room.
    """
    reports = by_fit(question)
    about_all = not subject_of(question.text)
    level = settings.level if settings.level is not None else fitting_level(reports, about_all)
    reports = of_level(reports, level)
    order = ["rank", "size", "score"] if about_all else ["score"]
    reports = reports.sort(*order, "community", descending=[True] * len(order) + [False])
    n_all = reports.height
    if settings.selection == "level":
        chosen = reports
    else:
        chosen = _within_budget(question.model, reports, settings, about_all)
    left_out = reports.join(chosen, on="community", how="anti", maintain_order="left")
    by_summary = about_all and settings.selection == "similar"
    return ReportChoice(
        reports=as_shown(question.model, chosen, "summary" if by_summary else "full_content"),
        left_out=left_out.select("community", "title"),
        level=level,
        looked_at={
            "community_reports": n_all,
            "reports_read": chosen.height,
            "reports_left_out": left_out.height,
        },
        why="ranked lower" if about_all else "less similar to the question",
    )


def _within_budget(
    model: KnowledgeModel, reports: pl.DataFrame, settings: GlobalSearch, about_all: bool
) -> pl.DataFrame:
    """Take the first reports, as many as the budget has room for; one at least."""
    n_bytes_of_level = int(reports["n_bytes"].sum())
    if not about_all:
        reports = reports.filter(pl.col("similarity") >= settings.min_similarity)
    # By bytes, since to count the tokens of a large level takes long.
    most_bytes = settings.max_map_share * (n_bytes_of_level + BYTES_OF_PROMPT) - BYTES_OF_PROMPT
    column = "summary" if about_all else "full_content"
    n_fitting = cost = n_bytes = 0
    # Read as long as there is room, not all of a large level.
    for start in range(0, reports.height, REPORTS_AT_ONCE):
        read = model.with_texts(reports[start : start + REPORTS_AT_ONCE], column)
        shown = as_shown(model, read, column)
        costs = cost + np.cumsum(RenderedRows.of(shown, Budget(1 << 40, 1 << 40)).cost)
        said = pl.concat_str("title", "summary") if about_all else pl.col("full_content")
        sizes = read.select(said.str.len_bytes().cast(pl.Int64)).to_series().to_numpy()
        bytes_read = n_bytes + np.cumsum(sizes)
        has_room = (bytes_read <= most_bytes) | (costs <= ENOUGH_TOKENS)
        fits = (costs <= settings.max_map_tokens) & has_room
        n_fitting += int(fits.sum())
        if not fits.all():
            break
        cost, n_bytes = int(costs[-1]), int(bytes_read[-1])
    return reports.head(max(1, n_fitting))


def as_shown(model: KnowledgeModel, reports: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return reports as a model is shown them: the number, and the text with its title.

    What they cite is left out: it is not shown, and is found again from what the answer says.
    """
    if column not in reports.columns:
        reports = model.with_texts(reports, column)
    text = (
        [f"{title}: {said}" for title, said in reports.select("title", "summary").iter_rows()]
        if column == "summary"
        else reports["full_content"].to_list()
    )
    texts = [check_citations(said, {})[0] for said in text]
    return pl.DataFrame(
        {"id": reports["community"], "text": texts}, {"id": pl.Int64, "text": pl.String}
    )


def in_batches(question: Question, reports: pl.DataFrame, max_tokens: int) -> list[Context]:
    """Put reports into as few contexts of at most so many tokens as their order allows.

    A report takes at most half of one; longer ones are shortened.
    """
    assert question.chat is not None
    limit = max(8, question.max_context_tokens(max_tokens) - TOKENS_OF_HEADING)
    room = max(8, question.chat.max_prompt_tokens - TOKENS_OF_PROMPT)
    # Twice both, for a row takes a quarter of a budget at most.
    rows = RenderedRows.of(reports, Budget(2 * limit, 2 * room))
    batches = []
    ends = np.cumsum(rows.cost)
    first = 0
    while first < reports.height:
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + limit, side="right")))
        lines = "".join(rows.text[first:last].to_list())
        batches.append(
            Context(
                {"Reports": reports[first:last]},
                f"-----Reports-----\nid,text\n{lines}",
                int(ends[last - 1]) - before + TOKENS_OF_HEADING,
                {"Reports": 0},
            )
        )
        first = last
    return batches

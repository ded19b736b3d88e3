"""The context of one report request: rows of a community, best first, within a token budget.

The tokens of every row are counted once. The cost of a context is then a sum, so that all contexts
together take time linear in the number of relationships.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import numpy as np
import polars as pl

from graphrag_index.errors import SettingsError
from graphrag_index.llm.prompts import (
    ROW_SHARE,
    RenderedRows,
    TokenBudget,
    count_lines,
    csv_line,
)
from graphrag_index.reports.report import CitedReport, CommunityMembers, Rows
from graphrag_index.schema.list_columns import Integers, positions
from graphrag_index.text.citations import renumber_written

REPORTS = "-----Reports-----\nid,report\n"
COLUMNS = {
    "Entities": "title type description".split(),
    "Relationships": "source target type description".split(),
    "Claims": (
        "subject_id object_id type status start_date end_date source_text description".split()
    ),
}
HEADINGS = {
    name: f"-----{name}-----\nid,{','.join(columns).replace('_id', '')}\n"
    for name, columns in COLUMNS.items()
}
# Tokens of the section headings and the empty lines between sections.
HEADING_TOKENS = 80
# A smaller budget has no room for a community.
MIN_TOKENS = 200
# The report on a sub-community takes at most this part of the budget: a half.
MAX_REPORT_PART = 2
# Contexts built at once: bounds memory, not results.
BATCH_CONTEXTS = 500
# A citation that was cut off at the end of a text.
_BROKEN_CITATION = re.compile(r"\s*[\[［【][^\]］】]*$")


class TableLines:
    """The rows of a table as lines of a prompt: their costs, and the texts of some."""

    def __init__(self, rows: pl.DataFrame, budget: TokenBudget) -> None:
        # Numbers stay below the limit, since each row takes more than one token.
        widest = pl.Series("id", np.full(rows.height, budget.limit))
        self._rows, self._budget = rows.insert_column(0, widest), budget
        self.cost = RenderedRows.from_rows(self._rows, budget).cost

    def texts(self, wanted: Iterable[int]) -> Mapping[int, str]:
        """Return the lines of some rows, without their numbers."""
        rows = sorted(set(wanted))
        rendered = RenderedRows.from_rows(self._rows[rows], self._budget, self._count_long)
        texts = rendered.text.str.slice(len(str(self._budget.limit)))
        return dict(zip(rows, texts.to_list(), strict=True))

    def _count_long(self, lines: pl.Series) -> Integers:
        """Count the tokens of lines that may have to be cut, and the bytes of the others."""
        n_tokens = lines.str.len_bytes().cast(pl.Int64).to_numpy().copy()
        may_be_cut = n_tokens > self._budget.limit // ROW_SHARE
        n_tokens[may_be_cut] = count_lines(lines.filter(pl.Series(may_be_cut)))
        return n_tokens


class SubstituteReport:
    """A report in place of the rows of a sub-community.

    Most reports are never substituted, so the text and its cost are computed at first use.
    """

    def __init__(self, report: CitedReport, budget: TokenBudget) -> None:
        self._report, self._budget, self.rows = report.report, budget, report.rows

    @cached_property
    def text(self) -> str:
        """The text, cut until it fits."""
        whole = "\n".join(self._report.markdown().splitlines())
        text, width = whole, len(whole)
        while self._cost_of(text) > self._budget.limit // MAX_REPORT_PART and width:
            width //= 2
            text = _BROKEN_CITATION.sub("", whole[:width]).rstrip() + "…"
        return text

    @cached_property
    def cost(self) -> int:
        return self._cost_of(self.text)

    def _cost_of(self, text: str) -> int:
        widest = renumber_written(text, lambda _section, _place: self._budget.limit)
        return self._budget.cost_of(csv_line([str(self._budget.limit), widest]))


@dataclass(frozen=True)
class Context:
    """The context of one prompt.

    `shown` are the rows that may be cited, by section, in the order of their numbers from 1 on;
    `substitutes` the sub-communities of which it has the reports.
    """

    text: str
    shown: Rows
    substitutes: Sequence[int]


class ContextBuilder:
    """The rows of a context by section, added while there is room."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.rows: dict[str, dict[int, int]] = {name: {} for name in ("Reports", *HEADINGS)}

    def take(self, section: str, row: int, cost: int) -> bool:
        """Add a row if there is room for it."""
        if cost > self.room:
            return False
        self.room -= cost
        self.add(section, [row])
        return True

    def add(self, section: str, rows: Iterable[int]) -> None:
        """Assign numbers to rows, from 1 in each section."""
        numbers = self.rows[section]
        for row in rows:
            numbers.setdefault(row, len(numbers) + 1)

    def context(
        self, lines: Mapping[str, Mapping[int, str]], reports: Mapping[int, SubstituteReport]
    ) -> Context:
        """Return the context; rows that only its reports cite are numbered last.

        `lines` are the texts of the rows, by section.
        """
        sections = []
        for name, heading in HEADINGS.items():
            if chosen := list(self.rows[name]):
                texts = (f"{n}{lines[name][row]}" for n, row in enumerate(chosen, 1))
                sections.append(heading + "".join(texts))
        substitutes = list(self.rows["Reports"])
        if substitutes:
            for part in substitutes:
                for section, rows in reports[part].rows.items():
                    self.add(section, rows)
            rows_of_reports = (self._line(part, reports[part]) for part in substitutes)
            sections.insert(0, REPORTS + "".join(rows_of_reports))
        shown = {section: tuple(rows) for section, rows in self.rows.items() if rows}
        return Context("\n".join(sections), shown, substitutes)

    def _line(self, part: int, report: SubstituteReport) -> str:
        """Return a report as a line, with its citations numbered as rows of the context."""

        def number_of(section: str, place: int) -> int | None:
            rows = report.rows.get(section, ())
            return self.rows[section][rows[place]] if 0 <= place < len(rows) else None

        number = self.rows["Reports"][part]
        return csv_line([str(number), renumber_written(report.text, number_of)])


class ReportContexts:
    """The contexts of all communities, each built on demand.

    Communities are referred to by their rows. The reports of sub-communities must be added with
    `add_report` before the contexts of the communities above them are built. A context has at
    most `max_tokens`, and fits into `room`, the tokens of the window that the prompt leaves;
    SettingsError if these are too few.
    """

    def __init__(self, members: CommunityMembers, *, max_tokens: int, room: int) -> None:
        limit = min(max_tokens, room) - HEADING_TOKENS
        if limit < MIN_TOKENS:
            raise SettingsError(
                f"The model leaves {room} tokens for the context of a report, which is too few: "
                "raise its context_window, or lower its max_output_tokens."
            )
        self.budget = TokenBudget(limit, room - HEADING_TOKENS)
        communities, nodes = members.communities, members.entities
        self.parent = positions(communities["parent"], communities["community"])
        tables = nodes, members.relationships, members.claims
        self.lines = {
            name: TableLines(rows.select(columns), self.budget)
            for (name, columns), rows in zip(COLUMNS.items(), tables, strict=True)
        }
        self.ends, self.members, self.inner = members.ends, members.members, members.inner
        self.claims_of = members.claims_of
        n_claims = np.diff(self.claims_of.bounds)
        costs = {name: lines.cost for name, lines in self.lines.items()}
        with_claims = costs["Entities"] + self.claims_of.sums(costs["Claims"])
        # Cost of each community if all its rows are shown.
        self.cost = self.members.sums(with_claims) + self.inner.sums(costs["Relationships"])
        described = (nodes["description"].fill_null("") != "").to_numpy() | (n_claims > 0)
        self.is_empty = (self.members.sums(described.astype(np.int64)) == 0) & (
            np.diff(self.inner.bounds) == 0
        )
        self.reports: dict[int, SubstituteReport] = {}
        self._children: dict[int, list[int]] = {}
        for child in np.flatnonzero(self.parent >= 0).tolist():
            self._children.setdefault(int(self.parent[child]), []).append(child)
        # Ties are broken by id, a hash of the members; rows change with other communities.
        self._place = np.empty(communities.height, np.int64)
        self._place[communities["id"].arg_sort().to_numpy()] = np.arange(communities.height)
        self._degree = np.zeros(nodes.height, np.int64)

    def best_first(self, community: int) -> tuple[Integers, Integers]:
        """Return the entities and the relationships of a community, best connected first.

        Only links inside the community count, since the others change with documents that say
        nothing about it.
        """
        members, inner = self.members[community], self.inner[community]
        ends = self.ends[inner]
        known = ends[ends >= 0]
        np.add.at(self._degree, known, 1)
        combined = np.where(ends >= 0, self._degree[ends], 0).sum(axis=1)
        best = (
            members[np.argsort(-self._degree[members], kind="stable")],
            inner[np.argsort(-combined, kind="stable")],
        )
        self._degree[known] = 0
        return best

    def add_report(self, community: int, report: CitedReport) -> None:
        """Add a report that may be shown where a community above is too large for its rows."""
        if any(self.cost[above] > self.budget.limit for above in self.above(community)):
            self.reports[community] = SubstituteReport(report, self.budget)

    def each(self, communities: Sequence[int]) -> Iterator[Context]:
        """Yield the context of each of these communities, none of which contains another.

        Relationships come first, sorted by the links of their ends inside the community, then by
        weight, each with its two entities; then the other entities; then the claims about these.
        If that exceeds the budget, reports replace the rows of sub-communities, on the deepest
        level first, and there of the largest first; then the last rows are left out.
        """
        for start in range(0, len(communities), BATCH_CONTEXTS):
            builders = [self._choose_rows(at) for at in communities[start : start + BATCH_CONTEXTS]]
            texts = {
                name: self.lines[name].texts(
                    row for builder in builders for row in builder.rows[name]
                )
                for name in HEADINGS
            }
            for builder in builders:
                yield builder.context(texts, self.reports)

    def above(self, community: int) -> Iterable[int]:
        """Yield the communities that contain another, the smallest first."""
        above = int(self.parent[community])
        while above >= 0:
            yield above
            above = int(self.parent[above])

    def _substitutes(self, community: int) -> list[int]:
        """Choose the sub-communities to be replaced by their reports, largest first."""
        cost: dict[int, int] = {}
        generations: list[list[int]] = []
        parts = self._children.get(community, [])
        while parts:
            generations.append(parts)
            cost.update((part, int(self.cost[part])) for part in parts)
            parts = [child for part in parts for child in self._children.get(part, [])]

        def deepest_first() -> Iterator[int]:
            for generation in reversed(generations):
                yield from sorted(generation, key=lambda part: (-cost[part], self._place[part]))

        excess = int(self.cost[community]) - self.budget.limit
        chosen: set[int] = set()
        for part in deepest_first():
            report = self.reports.get(part)
            if report is None or report.cost >= cost[part]:
                continue
            saved = cost[part] - report.cost
            chosen.add(part)
            cost[part] = report.cost
            for above in takewhile(lambda above: above != community, self.above(part)):
                cost[above] -= saved
            excess -= saved
            if excess <= 0:
                break
        outer = [part for part in chosen if chosen.isdisjoint(self.above(part))]
        return sorted(outer, key=lambda part: (-self.cost[part], self._place[part]))

    def _choose_rows(self, community: int) -> ContextBuilder:
        """Choose the rows of the context of a community, and the reports that replace some."""
        entities, links, claims = (self.lines[name].cost for name in HEADINGS)
        builder = ContextBuilder(self.budget.limit)
        members, inner = self.best_first(community)
        if self.cost[community] > self.budget.limit:
            parts = self._substitutes(community)
            for part in parts:
                builder.take("Reports", part, self.reports[part].cost)
            members = members[~np.isin(members, self.members.take(np.array(parts, np.int64))[1])]
            inner = inner[~np.isin(inner, self.inner.take(np.array(parts, np.int64))[1])]
        own = members.tolist()
        is_own = frozenset(own)
        taken = builder.rows["Entities"]
        for row in inner.tolist():
            ends = dict.fromkeys(self.ends[row].tolist())
            new = [end for end in ends if end in is_own and end not in taken]
            cost = int(links[row]) + sum(int(entities[end]) for end in new)
            if not builder.take("Relationships", row, cost):
                break
            builder.add("Entities", new)
        for row in own:
            if row not in taken and not builder.take("Entities", row, int(entities[row])):
                break
        for entity in taken:
            for row in self.claims_of[entity].tolist():
                builder.take("Claims", row, int(claims[row]))
        return builder

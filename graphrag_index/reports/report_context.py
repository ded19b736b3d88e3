"""The context of one report request: rows of a community, best first, within a token budget.

The cost of a row is its number of tokens, which is counted only once. The cost of a context is the
sum of the costs of its rows, so the time for all contexts is linear in the number of rows.
"""

import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import numpy as np
import polars as pl

from graphrag_index.errors import SettingsError
from graphrag_index.llm.prompts import ROW_SHARE, RenderedRows, TokenBudget, count_lines, csv_line
from graphrag_index.reports.report import CLAIM_COLUMNS, CitedReport, CommunityMembers, SectionRows
from graphrag_index.step import ShardFrames, Shards
from graphrag_nlp.list_columns import Integers, find_rows
from graphrag_nlp.text.citations import number_cited_rows, renumber_canonical

# Number of documents from which the share of one document is limited.
MIN_DOCUMENTS = 3
REPORTS_HEADING = "-----Reports-----\nid,report\n"
SECTION_COLUMNS = {
    "Entities": "title type description".split(),
    "Relationships": "source target type description".split(),
    "Claims": CLAIM_COLUMNS,
}
SECTION_HEADINGS = {
    name: f"-----{name}-----\nid,{','.join(columns).replace('_id', '')}\n"
    for name, columns in SECTION_COLUMNS.items()
}
# Tokens reserved for the section headings and the empty lines between sections.
TOKENS_FOR_HEADINGS = 80
# Minimum token budget for the rows of a context.
MIN_ROW_TOKENS = 200
# A report in the context of another report has at most the token budget divided by this number.
REPORT_BUDGET_DIVISOR = 2
# Number of rows in a shard, of which the tokens are counted. It limits memory.
SHARD_ROWS = 8_192
# Number of contexts in a batch. Batches limit the memory used, and do not change the result.
CONTEXTS_PER_BATCH = 500
# An incomplete citation at the end of a text that was cut.
_INCOMPLETE_CITATION = re.compile(r"\s*[\[［【][^\]］】]*$")


def limit_document(sizes: Collection[int], max_total: int, max_share: float) -> int:
    """Return the maximum size of one document, so that none has more than a share of all.

    `sizes` has what each document could give, in sentences or tokens, and `max_total` is the
    maximum for all documents together. With fewer than `MIN_DOCUMENTS` documents, nothing is
    limited. The result is at least 1.
    """
    if len(sizes) < MIN_DOCUMENTS:
        return max_total
    lowest, highest = 1, max_total
    # The share that a limit leaves to other documents falls as the limit grows.
    while lowest < highest:
        limit = (lowest + highest + 1) // 2
        total = min(max_total, sum(min(size, limit) for size in sizes))
        if limit <= max_share * total:
            lowest = limit
        else:
            highest = limit - 1
    return lowest


class DocumentRoom:
    """The tokens that the rows of each document may still take in one context.

    A row is given as (document, tokens); -1 is a row of several documents, which is not limited.
    """

    def __init__(self, rows: Iterable[tuple[int, int]], max_total: int, max_share: float) -> None:
        """Set the limit of a document from all rows that the context could have."""
        sizes: dict[int, int] = {}
        for number, (document, cost) in enumerate(rows):
            # A row of several documents counts as a document of its own.
            key = document if document >= 0 else -1 - number
            sizes[key] = sizes.get(key, 0) + cost
        largest = max((size for key, size in sizes.items() if key >= 0), default=0)
        self._limit = limit_document(sizes.values(), max_total, max_share)
        self.limits_nothing = largest <= self._limit
        self._used: dict[int, int] = {}

    def has_room(self, rows: Iterable[tuple[int, int]]) -> bool:
        """Return whether some more rows fit; the first rows of a document always do."""
        for document, cost in _add_up(rows).items():
            used = self._used.get(document, 0)
            if used and used + cost > self._limit:
                return False
        return True

    def take(self, rows: Iterable[tuple[int, int]]) -> None:
        for document, cost in _add_up(rows).items():
            self._used[document] = self._used.get(document, 0) + cost


def _add_up(rows: Iterable[tuple[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for document, cost in rows:
        if document >= 0:
            total[document] = total.get(document, 0) + cost
    return total


class TableLines:
    """The rows of a table as lines of a prompt; texts are rendered on demand."""

    def __init__(self, rows: pl.DataFrame, budget: TokenBudget, shards: Shards) -> None:
        # Count tokens with the largest possible row number, so that no row costs more later.
        widest = pl.Series("id", np.full(rows.height, budget.limit))
        self._rows, self._budget = rows.insert_column(0, widest), budget
        parts = ((None, {"rows": part}) for part in self._rows.iter_slices(SHARD_ROWS))
        costs = [part["costs"]["cost"] for _, part in shards.map(count_row_costs, parts, budget)]
        self.cost: Integers = np.concatenate([np.zeros(0, np.int64), *costs])

    def render_lines(self, row_numbers: Iterable[int]) -> Mapping[int, str]:
        """Map row numbers to lines of the prompt, without the number at the start."""
        rows = sorted(set(row_numbers))
        rendered = RenderedRows.from_rows(self._rows[rows], self._budget, self._count_long_lines)
        texts = rendered.text.str.slice(len(str(self._budget.limit)))
        return dict(zip(rows, texts.to_list(), strict=True))

    def _count_long_lines(self, lines: pl.Series) -> Integers:
        """Count the tokens of long lines, which may be cut; count the bytes of short lines."""
        n_tokens = lines.str.len_bytes().cast(pl.Int64).to_numpy().copy()
        may_be_cut = n_tokens > self._budget.limit // ROW_SHARE
        n_tokens[may_be_cut] = count_lines(lines.filter(pl.Series(may_be_cut)))
        return n_tokens


def count_row_costs(shard: ShardFrames, budget: TokenBudget) -> ShardFrames:
    """Return the cost of each row of a shard, in tokens."""
    return {"costs": pl.DataFrame({"cost": RenderedRows.from_rows(shard["rows"], budget).cost})}


class SubstituteReport:
    """A report that may replace the rows of a sub-community in a context.

    The text and its cost are computed at first use, since most reports replace no rows.
    """

    def __init__(self, report: CitedReport, budget: TokenBudget) -> None:
        self._report, self._budget, self.rows = report.report, budget, report.rows

    @cached_property
    def text(self) -> str:
        """The report as one text, cut to the maximum number of tokens."""
        whole = "\n".join(self._report.to_markdown().splitlines())
        text, width = whole, len(whole)
        while self._count_tokens(text) > self._budget.limit // REPORT_BUDGET_DIVISOR and width:
            width //= 2
            text = _INCOMPLETE_CITATION.sub("", whole[:width]).rstrip() + "…"
        return text

    @cached_property
    def cost(self) -> int:
        return self._count_tokens(self.text)

    def _count_tokens(self, text: str) -> int:
        widest = renumber_canonical(text, lambda _section, _place: self._budget.limit)
        return self._budget.cost_of(csv_line([str(self._budget.limit), widest]))


@dataclass(frozen=True)
class Context:
    """The context (table rows as text) of one report request.

    `shown` contains the rows that may be cited, by section, numbered from 1 on. `substitutes` are
    sub-communities: the context contains their reports instead of their rows.
    """

    text: str
    shown: SectionRows
    substitutes: Sequence[int]


class ContextBuilder:
    """A collector of the rows of one context. `room` is the number of tokens that are left."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.rows: dict[str, dict[int, int]] = {name: {} for name in ("Reports", *SECTION_HEADINGS)}

    def add_if_room(self, section: str, row: int, cost: int) -> bool:
        """Add a row if enough tokens are left for it; return whether the row was added."""
        if cost > self.room:
            return False
        self.room -= cost
        self.add_rows(section, [row])
        return True

    def add_rows(self, section: str, rows: Iterable[int]) -> None:
        """Add rows to a section without counting tokens; number rows of a section from 1 on."""
        numbers = self.rows[section]
        for row in rows:
            numbers.setdefault(row, len(numbers) + 1)

    def build_context(
        self, lines: Mapping[str, Mapping[int, str]], reports: Mapping[int, SubstituteReport]
    ) -> Context:
        """Build the context; rows that are only cited in its reports get the last numbers.

        `lines` are the texts of the rows, by section.
        """
        sections = []
        for name, heading in SECTION_HEADINGS.items():
            if chosen := list(self.rows[name]):
                texts = (f"{n}{lines[name][row]}" for n, row in enumerate(chosen, 1))
                sections.append(heading + "".join(texts))
        substitutes = list(self.rows["Reports"])
        if substitutes:
            used = [reports[part] for part in substitutes]
            for report in used:
                for section, rows in report.rows.items():
                    self.add_rows(section, rows)
            # Number the cited rows of each report as this context numbers them.
            cited = (number_cited_rows(report.text, report.rows, self.rows) for report in used)
            rows_of_reports = (csv_line([str(n), text]) for n, text in enumerate(cited, 1))
            sections.insert(0, REPORTS_HEADING + "".join(rows_of_reports))
        shown = {section: tuple(rows) for section, rows in self.rows.items() if rows}
        return Context("\n".join(sections), shown, substitutes)


class ReportContexts:
    """The contexts of all communities, built on demand.

    A community is identified by its row. Add the reports of sub-communities with `add_report`
    before building the contexts of the communities above them. A context has at most `max_tokens`
    tokens, and at most `room` tokens: the context window without prompt and output. One document
    has at most the share `max_document_share` of the rows, in tokens; `main_documents` has the
    document of each row by section, and -1 for rows of several documents. Raises SettingsError if
    the room is too small.
    """

    def __init__(
        self,
        members: CommunityMembers,
        shards: Shards,
        *,
        max_tokens: int,
        room: int,
        main_documents: Mapping[str, Integers],
        max_document_share: float,
    ) -> None:
        limit = min(max_tokens, room) - TOKENS_FOR_HEADINGS
        if limit < MIN_ROW_TOKENS:
            raise SettingsError(
                f"The model leaves {room} tokens for the context of a report, which is too few: "
                "raise its context_window, or lower its max_output_tokens."
            )
        self.budget = TokenBudget(limit, room - TOKENS_FOR_HEADINGS)
        self.main_documents, self.max_document_share = main_documents, max_document_share
        communities, nodes = members.communities, members.entities
        self.parent = find_rows(communities["parent"], communities["community"])
        tables = nodes, members.relationships, members.claims
        self.lines = {
            name: TableLines(rows.select(columns), self.budget, shards)
            for (name, columns), rows in zip(SECTION_COLUMNS.items(), tables, strict=True)
        }
        self.endpoints, self.members, self.inner = members.endpoints, members.members, members.inner
        self.claims_of = members.claims_of
        n_claims = np.diff(self.claims_of.bounds)
        costs = {name: lines.cost for name, lines in self.lines.items()}
        with_claims = costs["Entities"] + self.claims_of.sums(costs["Claims"])
        # The number of tokens of each community if the context contains all its rows.
        self.cost = self.members.sums(with_claims) + self.inner.sums(costs["Relationships"])
        described = (nodes["description"].fill_null("") != "").to_numpy() | (n_claims > 0)
        self.is_empty = (self.members.sums(described.astype(np.int64)) == 0) & (
            np.diff(self.inner.bounds) == 0
        )
        self.reports: dict[int, SubstituteReport] = {}
        self._children: dict[int, list[int]] = {}
        for child in np.flatnonzero(self.parent >= 0).tolist():
            self._children.setdefault(int(self.parent[child]), []).append(child)
        # Sort communities of equal cost by id, since row numbers depend on other communities.
        self._place = np.argsort(communities["id"].arg_sort().to_numpy())
        self._degree, self._degree_lock = np.zeros(nodes.height, np.int64), threading.Lock()

    def sort_by_degree(self, community: int) -> tuple[Integers, Integers]:
        """Sort the entities and relationships of a community by descending degree.

        Only links inside the community count, since links to other communities may change with
        documents about other subjects.
        """
        members, inner = self.members[community], self.inner[community]
        endpoints = self.endpoints[inner]
        known = endpoints[endpoints >= 0]
        with self._degree_lock:
            np.add.at(self._degree, known, 1)
            combined = np.where(endpoints >= 0, self._degree[endpoints], 0).sum(axis=1)
            of_members = self._degree[members]
            self._degree[known] = 0
        return (
            members[np.argsort(-of_members, kind="stable")],
            inner[np.argsort(-combined, kind="stable")],
        )

    def add_report(self, community: int, report: CitedReport) -> None:
        """Add the report on a community, for the contexts of communities that contain it."""
        if any(self.cost[above] > self.budget.limit for above in self.find_ancestors(community)):
            self.reports[community] = SubstituteReport(report, self.budget)

    def build_contexts(
        self, communities: Sequence[int], max_tokens: int | None = None
    ) -> Iterator[Context]:
        """Yield the context of each community; no community may contain another one.

        `max_tokens` of a context are those of the budget, or less. Several threads may call this.

        Rows are added in this order: relationships, each with its two entities, sorted by the
        degrees of these entities inside the community, then by weight; the other entities; the
        claims about entities. If the rows exceed the budget, reports replace the rows of
        sub-communities, on the deepest level first, and on a level the largest first. Rows that
        still exceed the budget, or the share of their document, are left out.
        """
        for start in range(0, len(communities), CONTEXTS_PER_BATCH):
            batch = communities[start : start + CONTEXTS_PER_BATCH]
            builders = [self._choose_rows(at, max_tokens or self.budget.limit) for at in batch]
            texts = {
                name: self.lines[name].render_lines(
                    row for builder in builders for row in builder.rows[name]
                )
                for name in SECTION_HEADINGS
            }
            for builder in builders:
                yield builder.build_context(texts, self.reports)

    def find_ancestors(self, community: int) -> Iterable[int]:
        """Yield the communities that contain a community, the smallest first."""
        above = int(self.parent[community])
        while above >= 0:
            yield above
            above = int(self.parent[above])

    def _choose_substitutes(self, community: int, limit: int) -> list[int]:
        """Choose sub-communities to replace by their reports; return the largest first."""
        cost: dict[int, int] = {}
        generations: list[list[int]] = []
        parts = self._children.get(community, [])
        while parts:
            generations.append(parts)
            cost.update((part, int(self.cost[part])) for part in parts)
            parts = [child for part in parts for child in self._children.get(part, [])]

        def sort_deepest_first() -> Iterator[int]:
            for generation in reversed(generations):
                yield from sorted(generation, key=lambda part: (-cost[part], self._place[part]))

        excess = int(self.cost[community]) - limit
        chosen: set[int] = set()
        for part in sort_deepest_first():
            report = self.reports.get(part)
            if report is None or report.cost >= cost[part]:
                continue
            saved = cost[part] - report.cost
            chosen.add(part)
            cost[part] = report.cost
            for above in takewhile(lambda above: above != community, self.find_ancestors(part)):
                cost[above] -= saved
            excess -= saved
            if excess <= 0:
                break
        outer = [part for part in chosen if chosen.isdisjoint(self.find_ancestors(part))]
        return sorted(outer, key=lambda part: (-self.cost[part], self._place[part]))

    def _choose_rows(self, community: int, limit: int) -> ContextBuilder:
        """Choose the rows and the reports for the context of a community."""
        builder = ContextBuilder(limit)
        members, inner = self.sort_by_degree(community)
        if self.cost[community] > limit:
            parts = self._choose_substitutes(community, limit)
            for part in parts:
                builder.add_if_room("Reports", part, self.reports[part].cost)
            members = members[~np.isin(members, self.members.take(np.array(parts, np.int64))[1])]
            inner = inner[~np.isin(inner, self.inner.take(np.array(parts, np.int64))[1])]
        own = members.tolist()
        is_own = frozenset(own)
        taken = builder.rows["Entities"]
        claimed = self.claims_of.take(members)[1]
        rows = {"Entities": members, "Relationships": inner, "Claims": claimed}
        add = self._limit_documents(builder, rows)
        for row in inner.tolist():
            endpoints = dict.fromkeys(self.endpoints[row].tolist())
            new = [end for end in endpoints if end in is_own and end not in taken]
            if not add("Relationships", row, new):
                break
        for row in own:
            if row not in taken and not add("Entities", row):
                break
        for entity in taken:
            for row in self.claims_of[entity].tolist():
                add("Claims", row)
        return builder

    def _limit_documents(
        self, builder: ContextBuilder, rows: Mapping[str, Integers]
    ) -> Callable[..., bool]:
        """Return a function that adds a row, with new entities, if it fits.

        A row whose document has its share of `rows` is left out. The function returns False only
        if the budget of the context is used up.
        """
        costs = {name: lines.cost for name, lines in self.lines.items()}
        documents = self.main_documents
        all_rows = (
            pair
            for name, numbers in rows.items()
            for pair in zip(
                documents[name][numbers].tolist(), costs[name][numbers].tolist(), strict=True
            )
        )
        room = DocumentRoom(all_rows, builder.room, self.max_document_share)

        def add(section: str, row: int, entities: Sequence[int] = ()) -> bool:
            added = [(section, row), *(("Entities", entity) for entity in entities)]
            shares = [(int(documents[name][at]), int(costs[name][at])) for name, at in added]
            if not room.limits_nothing and not room.has_room(shares):
                return True
            if not builder.add_if_room(section, row, sum(cost for _, cost in shares)):
                return False
            room.take(shares)
            builder.add_rows("Entities", entities)
            return True

        return add

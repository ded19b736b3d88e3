"""What a model is shown of each community: all that it holds, best first, as far as it fits.

What every row of the tables takes is counted once; what a context costs is then a sum, so that
all contexts together take time linear in the relationships.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from graphrag_index.errors import SettingsError
from graphrag_index.llm.rendered_rows import Budget
from graphrag_index.reports.community_members import Holdings
from graphrag_index.reports.local_citations import Written
from graphrag_index.reports.report_context import HEADINGS, Context, Lines, Page, StandIn
from graphrag_index.schema.list_columns import Integers, positions

ENTITIES = ("title", "type", "description")
RELATIONSHIPS = ("source", "target", "type", "description")
CLAIMS = (
    *("subject_id", "object_id", "type", "status", "start_date", "end_date", "source_text"),
    "description",
)
# For the lines that head the sections and the empty lines between them.
TOKENS_OF_HEADINGS = 80
# With less than this nothing can be said of a community.
LEAST_TOKENS = 200
# Contexts that are made at once: bounds memory, not results.
BATCH_CONTEXTS = 500


class ReportContexts:
    """The contexts of all communities, each made when it is asked for.

    Communities are named by their row. The reports of sub-communities are given with
    `add_report` before the contexts of those above them are asked for.

    Parameters
    ----------
    max_tokens
        Longest context.
    room
        What the prompt leaves of the model's window, in tokens.

    Raises
    ------
    SettingsError
        The window is too small for the prompt.
    """

    def __init__(
        self,
        holdings: Holdings,
        *,
        max_tokens: int,
        room: int,
    ) -> None:
        limit = min(max_tokens, room) - TOKENS_OF_HEADINGS
        if limit < LEAST_TOKENS:
            raise SettingsError(
                f"The model leaves {room} tokens for the context of a report, which is too few: "
                "raise its context_window, or lower its max_output_tokens."
            )
        self.budget = Budget(limit, room - TOKENS_OF_HEADINGS)
        communities, nodes = holdings.communities, holdings.entities
        self.parent = positions(communities["parent"], communities["community"])
        self.lines = {
            name: Lines(rows.select(columns), self.budget)
            for name, rows, columns in (
                ("Entities", nodes, ENTITIES),
                ("Relationships", holdings.relationships, RELATIONSHIPS),
                ("Claims", holdings.claims, CLAIMS),
            )
        }
        self.ends, self.members, self.inner = holdings.ends, holdings.members, holdings.inner
        self.claims_of = holdings.claims_of
        n_claims = np.diff(self.claims_of.bounds)
        with_claims = self._cost("Entities") + self.claims_of.sums(self._cost("Claims"))
        # What each community takes if it is shown whole.
        self.cost = self.members.sums(with_claims) + self.inner.sums(self._cost("Relationships"))
        telling = (nodes["description"].fill_null("") != "").to_numpy() | (n_claims > 0)
        self.is_empty = (self.members.sums(telling.astype(np.int64)) == 0) & (
            np.diff(self.inner.bounds) == 0
        )
        self.reports: dict[int, StandIn] = {}
        self._children: dict[int, list[int]] = {}
        for child in np.flatnonzero(self.parent >= 0).tolist():
            self._children.setdefault(int(self.parent[child]), []).append(child)
        # Ids of communities are made of their members; rows move with other communities.
        self._place = np.empty(communities.height, np.int64)
        self._place[communities["id"].arg_sort().to_numpy()] = np.arange(communities.height)
        self._is_hidden = np.zeros(len(self.ends), bool)
        self._is_own = np.zeros(nodes.height, bool)
        self._degree = np.zeros(nodes.height, np.int64)

    def _cost(self, section: str) -> Integers:
        return self.lines[section].cost

    def best_first(self, community: int) -> tuple[Integers, Integers]:
        """Return the entities and the relationships of a community, best first.

        What counts are the links inside of the community: those that lead out of it change
        with documents that tell nothing of it.
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

    def add_report(self, community: int, written: Written) -> None:
        """Give the report that may stand in for a community where those above it are too large."""
        if any(self.cost[above] > self.budget.limit for above in self.above(community)):
            self.reports[community] = StandIn(written, self.budget)

    def each(self, communities: Sequence[int]) -> Iterator[Context]:
        """Write the context of each of these communities, none of which holds another.

        Its own relationships come by the links of their ends in it, then weight, each with its
        two entities; then its other entities; then the claims about these. Where that is too
        much, reports stand in for sub-communities, of the deepest level first and there of the
        largest first, until it fits; then the last rows are left out.
        """
        for start in range(0, len(communities), BATCH_CONTEXTS):
            pages = [self._page(at) for at in communities[start : start + BATCH_CONTEXTS]]
            texts = {
                name: self.lines[name].texts(row for page in pages for row in page.rows[name])
                for name in HEADINGS
            }
            for page in pages:
                yield page.written(texts, self.reports)

    def _page(self, community: int) -> Page:
        """Choose what stands in the context of a community."""
        stand_ins: list[int] = []
        if self.cost[community] > self.budget.limit:
            stand_ins = self._stand_ins(community)
        page = Page(self.budget.limit)
        for part in stand_ins:
            page.take("Reports", part, self.reports[part].cost)
        self._fill(page, community, stand_ins)
        return page

    def above(self, community: int) -> Iterable[int]:
        """Give the communities that hold another, the smallest first."""
        above = int(self.parent[community])
        while above >= 0:
            yield above
            above = int(self.parent[above])

    def _stand_ins(self, community: int) -> list[int]:
        """Choose the sub-communities whose reports stand in for them, largest first."""
        cost: dict[int, int] = {}
        generations: list[list[int]] = []
        parts = self._children.get(community, [])
        while parts:
            generations.append(parts)
            cost.update((part, int(self.cost[part])) for part in parts)
            parts = [child for part in parts for child in self._children.get(part, [])]
        excess = int(self.cost[community]) - self.budget.limit
        chosen: set[int] = set()
        for generation in reversed(generations):
            for part in sorted(generation, key=lambda part: (-cost[part], self._place[part])):
                report = self.reports.get(part)
                if report is None or report.cost >= cost[part]:
                    continue
                saved = cost[part] - report.cost
                chosen.add(part)
                cost[part] = report.cost
                for above in self.above(part):
                    if above == community:
                        break
                    cost[above] -= saved
                excess -= saved
                if excess <= 0:
                    return self._outermost(chosen)
        return self._outermost(chosen)

    def _outermost(self, chosen: Collection[int]) -> list[int]:
        outer = [part for part in chosen if not any(above in chosen for above in self.above(part))]
        return sorted(outer, key=lambda part: (-self.cost[part], self._place[part]))

    def _fill(self, page: Page, community: int, stand_ins: Sequence[int]) -> None:
        """Take the community's own rows, without those for which reports stand in."""
        entities, links = self._cost("Entities"), self._cost("Relationships")
        claims = self._cost("Claims")
        members, inner = self.best_first(community)
        self._is_own[members] = True
        for part in stand_ins:
            self._is_own[self.members[part]] = False
            self._is_hidden[self.inner[part]] = True
        taken = page.rows["Entities"]
        for row in inner[~self._is_hidden[inner]].tolist():
            ends = dict.fromkeys(self.ends[row].tolist())
            new = [e for e in ends if e >= 0 and self._is_own[e] and e not in taken]
            cost = int(links[row]) + sum(int(entities[end]) for end in new)
            if not page.take("Relationships", row, cost):
                break
            page.add("Entities", new)
        own = members[self._is_own[members]].tolist()
        for row in [row for row in own if row not in taken]:
            if not page.take("Entities", row, int(entities[row])):
                break
        for entity in taken:
            for row in self.claims_of[entity].tolist():
                page.take("Claims", row, int(claims[row]))
        self._is_own[members] = False
        for part in stand_ins:
            self._is_hidden[self.inner[part]] = False

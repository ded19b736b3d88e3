"""What a model is shown of each community: all that it holds, best first, as far as it fits.

Every row of the tables is written out and its tokens are counted once; what a context costs
is then a sum, so that all contexts together take time linear in the relationships.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from graphrag_index.core.citations import Shown, cited
from graphrag_index.core.errors import SettingsError
from graphrag_index.core.lists import Grouped, positions
from graphrag_index.core.rendered_rows import Budget, RenderedRows, report_row
from graphrag_index.core.tables import title_key

REPORTS = "-----Reports-----\nid,report\n"
ENTITIES = "-----Entities-----\nid,title,type,description\n"
RELATIONSHIPS = "-----Relationships-----\nid,source,target,description\n"
TYPED_RELATIONSHIPS = "-----Relationships-----\nid,source,target,type,description\n"
CLAIMS = (
    "-----Claims-----\nid,subject,object,type,status,start_date,end_date,source_text,description\n"
)
# For the lines that head the sections and the empty lines between them.
TOKENS_OF_HEADINGS = 80
# With less than this nothing can be said of a community.
LEAST_TOKENS = 200


@dataclass(frozen=True)
class Context:
    """What stands in one prompt, and the numbers of the rows that may be cited from it."""

    text: str
    shown: Shown


@dataclass(frozen=True)
class _Report:
    row: str
    cost: int
    cited: Shown


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
        communities: pl.DataFrame,
        entities: pl.LazyFrame,
        relationships: pl.LazyFrame,
        covariates: pl.LazyFrame | None,
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
        self.communities = communities.select("community", "level", "parent")
        self.parent = positions(communities["parent"], communities["community"])
        # Best first, so that a smaller row number is a better row.
        nodes = (
            entities.select("id", "human_readable_id", "title", "type", "description", "degree")
            .sort("degree", "human_readable_id", descending=[True, False])
            .collect()
        )
        links, columns = _links(relationships)
        self.heading = TYPED_RELATIONSHIPS if "type" in columns else RELATIONSHIPS
        claims = _claims(covariates, nodes["title"])
        render = partial(RenderedRows.of, budget=self.budget)
        self.entities = render(nodes.select("human_readable_id", "title", "type", "description"))
        self.relationships = render(links.select(columns))
        self.claims = render(claims.drop("entity"))
        self.ends = np.stack(
            [positions(links[end], nodes["id"]) for end in ("source_id", "target_id")], axis=1
        )
        self.nodes = nodes.select("human_readable_id", "title", pl.col("description").fill_null(""))
        self.members = Grouped.of(communities["entity_ids"], nodes["id"])
        self.inner = Grouped.of(communities["relationship_ids"], links["id"])
        self.claims_of = Grouped(claims["entity"].to_numpy(), np.arange(claims.height), len(nodes))
        n_claims = np.diff(self.claims_of.bounds)
        with_claims = self.entities.cost + self.claims_of.sums(self.claims.cost)
        # What each community takes if it is shown whole.
        self.cost = self.members.sums(with_claims) + self.inner.sums(self.relationships.cost)
        telling = (nodes["description"].fill_null("") != "").to_numpy() | (n_claims > 0)
        self.is_empty = (self.members.sums(telling.astype(np.int64)) == 0) & (
            np.diff(self.inner.bounds) == 0
        )
        self.reports: dict[int, _Report] = {}
        self._children: dict[int, list[int]] = {}
        for child in np.flatnonzero(self.parent >= 0).tolist():
            self._children.setdefault(int(self.parent[child]), []).append(child)
        self._is_hidden = np.zeros(links.height, bool)
        self._is_own = np.zeros(nodes.height, bool)

    def best_members(self, community: int) -> pl.DataFrame:
        """Number, title and description of the entities of a community, best first."""
        return self.nodes[self.members[community]]

    def add_report(self, community: int, full_content: str) -> None:
        """Give the report that may stand in for a community where those above it are too large."""
        if not any(self.cost[above] > self.budget.limit for above in self._above(community)):
            return
        number = self.communities["community"][community]
        row, cost = report_row(number, full_content, self.budget)
        self.reports[community] = _Report(row, cost, cited(full_content))

    def of(self, community: int) -> Context:
        """Write the context of a community.

        Its own relationships come by the degree of their ends, then weight, each with its two
        entities; then its other entities; then the claims about these. Where that is too
        much, reports stand in for sub-communities, of the deepest level first and there of the
        largest first, until it fits; then the last rows are left out.
        """
        stand_ins: list[int] = []
        if self.cost[community] > self.budget.limit:
            stand_ins = self._stand_ins(community)
        page = _Page(self.budget.limit)
        for part in stand_ins:
            report = self.reports[part]
            if page.take("Reports", part, report.cost):
                page.texts.append(report.row)
                page.cite("Reports", [self.communities["community"][part]])
                for name, numbers in report.cited.items():
                    page.cite(name, numbers)
        self._fill(page, community, stand_ins)
        return self._written(page)

    def _above(self, community: int) -> Iterable[int]:
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
            for part in sorted(generation, key=lambda part: (-cost[part], part)):
                report = self.reports.get(part)
                if report is None or report.cost >= cost[part]:
                    continue
                saved = cost[part] - report.cost
                chosen.add(part)
                cost[part] = report.cost
                for above in self._above(part):
                    if above == community:
                        break
                    cost[above] -= saved
                excess -= saved
                if excess <= 0:
                    return self._outermost(chosen)
        return self._outermost(chosen)

    def _outermost(self, chosen: Collection[int]) -> list[int]:
        outer = [part for part in chosen if not any(above in chosen for above in self._above(part))]
        return sorted(outer, key=lambda part: (-self.cost[part], part))

    def _fill(self, page: "_Page", community: int, stand_ins: Sequence[int]) -> None:
        """Take the community's own rows, without those for which reports stand in."""
        members, inner = self.members[community], self.inner[community]
        self._is_own[members] = True
        for part in stand_ins:
            self._is_own[self.members[part]] = False
            self._is_hidden[self.inner[part]] = True
        for row in inner[~self._is_hidden[inner]].tolist():
            new = {
                end
                for end in self.ends[row].tolist()
                if end >= 0 and self._is_own[end] and end not in page.rows["Entities"]
            }
            costs = {end: int(self.entities.cost[end]) for end in sorted(new)}
            cost = int(self.relationships.cost[row]) + sum(costs.values())
            if not page.take("Relationships", row, cost):
                break
            page.rows["Entities"].update(costs)
        own = members[self._is_own[members]].tolist()
        for row in [row for row in own if row not in page.rows["Entities"]]:
            if not page.take("Entities", row, int(self.entities.cost[row])):
                break
        for entity in page.rows["Entities"]:
            for row in self.claims_of[entity].tolist():
                page.take("Claims", row, int(self.claims.cost[row]))
        self._is_own[members] = False
        for part in stand_ins:
            self._is_hidden[self.inner[part]] = False

    def _written(self, page: "_Page") -> Context:
        sections = [REPORTS + "".join(page.texts)] if page.texts else []
        for name, heading, rows in (
            ("Entities", ENTITIES, self.entities),
            ("Relationships", self.heading, self.relationships),
            ("Claims", CLAIMS, self.claims),
        ):
            if chosen := list(page.rows[name]):
                sections.append(heading + "".join(rows.text.gather(chosen).to_list()))
                page.cite(name, rows.number[chosen].tolist())
        return Context("\n".join(sections), page.shown)


class _Page:
    """Rows taken into a context, by section in their order, as long as there is room."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.rows: dict[str, dict[int, object]] = {
            name: {} for name in ("Reports", "Entities", "Relationships", "Claims")
        }
        self.texts: list[str] = []
        self.shown: dict[str, set[int]] = {}

    def take(self, section: str, row: int, cost: int) -> bool:
        if cost > self.room:
            return False
        self.room -= cost
        self.rows[section][row] = None
        return True

    def cite(self, section: str, numbers: Iterable[int]) -> None:
        self.shown.setdefault(section, set()).update(numbers)


def _links(relationships: pl.LazyFrame) -> tuple[pl.DataFrame, list[str]]:
    """The relationships, best first, and which columns of them are shown."""
    columns = ["human_readable_id", "source", "target", "description"]
    if "type" in relationships.collect_schema():
        columns.insert(3, "type")
    order = ["combined_degree", "weight", "human_readable_id"]
    links = (
        relationships.select({*columns, *order, "id", "source_id", "target_id"})
        .sort(order, descending=[True, True, False])
        .collect()
    )
    if "type" in columns and not (links["type"].fill_null("") != "").any():
        columns.remove("type")
    return links, columns


def _claims(covariates: pl.LazyFrame | None, titles: pl.Series) -> pl.DataFrame:
    """The claims about known entities, and the row of the `entity` of each: subject, or object."""
    columns = "subject_id object_id type status start_date end_date source_text description"
    schema = {"human_readable_id": pl.Int64, **dict.fromkeys(columns.split(), pl.String)}
    if covariates is None:
        return pl.DataFrame(schema={**schema, "entity": pl.Int64})
    claims = covariates.select(*schema).sort("human_readable_id").collect()
    # The first of entities whose titles differ in case alone is the best.
    rows = {title_key(title): row for row, title in reversed([*enumerate(titles)])}
    entity = [
        rows.get(title_key(subject), rows.get(title_key(object or ""), -1))
        for subject, object in claims.select("subject_id", "object_id").iter_rows()
    ]
    return claims.with_columns(entity=pl.Series(entity, dtype=pl.Int64)).filter(
        pl.col("entity") >= 0
    )

"""Order of lazy search's relevance tests: from coarse communities down to relevant ones.

A passage that answers a question in other words is not similar to it, but lies in one community
with passages that are. So tests are spread over many communities first, and then go down into
those where relevant text units were found.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from graphrag_index.schema.settings.searches import LazySearch

if TYPE_CHECKING:
    from graphrag_query.retrieval.index_store import IndexStore

# Number for text units that belong to no community.
NO_COMMUNITY = -1
# Weight of the share of relevant text units in a community's last turn, for its next.
FOUND_WEIGHT = 0.3
# Of a community with more text units, only the children are read.
MAX_READ = 2_000
# A text unit belongs to communities that hold this share of the entities that the first one holds.
SHARE_OF_FIRST = 0.5

# After so many failed tests in a row the model is down.
MAX_FAILED_IN_A_ROW = 8

# Rates text units in their order; None for a failed test.
Rate = Callable[[list[int]], Sequence[float | None]]
Score = Callable[[list[int]], Mapping[int, float]]


class Hierarchy(Protocol):
    """The communities of an index, as the descent reads them."""

    def counts(self, text_unit: int) -> Mapping[int, int]:
        """Count the entities of a text unit in each community of any level."""

    def children(self, community: int) -> Sequence[int]:
        """Return the communities one level down, or those of level 0 for `NO_COMMUNITY`."""

    def text_units(self, community: int) -> Sequence[int]:
        """Return the text units of a community's entities; none if there are too many."""


@dataclass
class Findings:
    """The results of the tests.

    `relevant` has the ratings of relevant text units, and `community_of` the community in which
    each was found. A failed test counts in the budget.
    """

    relevant: dict[int, float] = field(default_factory=dict)
    community_of: dict[int, int] = field(default_factory=dict)
    communities: set[int] = field(default_factory=set)
    n_tests: int = 0
    n_failed: int = 0


@dataclass
class _Community:
    """A community in the queue; its waiting text units are ordered, the best first."""

    number: int
    waiting: list[int]
    found: float = 0.0  # relevant share of its last turn, or of its parent's
    n_barren: int = 0
    is_read: bool = False


class Descent:
    """Spends the budget of tests for one question; `run` is called once."""

    def __init__(
        self,
        scores: Mapping[int, float],
        hierarchy: Hierarchy,
        score: Score,
        test: Rate,
        settings: LazySearch,
        min_rating: float,
    ) -> None:
        self.scores, self.hierarchy = dict(scores), hierarchy
        self.score, self.test = score, test
        self.settings, self.min_rating = settings, min_rating
        self.tested = Findings()
        self.taken: set[int] = set()

    def run(self) -> Findings:
        """Test text units until the budget is spent or no community is left.

        In each round the communities with the best untested text units have a turn, with all
        tests in one batch. A community with relevant text units is replaced by its children; one
        without any in `patience` turns is dropped. It ends early if every test fails.
        """
        queue = self._first()
        n_failed_in_a_row = 0
        while queue and self.tested.n_tests < self.settings.budget:
            for community in queue:
                community.waiting = [n for n in community.waiting if n not in self.taken]
            queue = [community for community in queue if community.waiting]
            queue = self._ordered(queue)
            turns = self._turns(queue)
            batch = [number for _, numbers in turns for number in numbers]
            if not batch:
                break
            ratings = dict(zip(batch, self.test(batch), strict=True))
            failed = [number for number in batch if ratings[number] is None]
            self.tested.n_tests += len(batch)
            self.tested.n_failed += len(failed)
            after = queue[len(turns) :]
            for community, numbers in turns:
                after += self._after(community, [(n, ratings[n]) for n in numbers])
            queue = after
            n_failed_in_a_row = n_failed_in_a_row + len(batch) if len(failed) == len(batch) else 0
            if n_failed_in_a_row >= MAX_FAILED_IN_A_ROW:
                break
        return self.tested

    def _ordered(self, queue: list[_Community]) -> list[_Community]:
        """Order communities by the expected result of their next test.

        Half of a round is for those with relevant text units in their last turn or their
        parent's, however low their scores. Ties go by number last: updates change numbers.
        """
        queue = sorted(queue, key=lambda c: (-self._worth(c), c.waiting, c.number))
        fruitful = [c for c in queue if c.found][: -(-self.settings.communities_at_once // 2)]
        numbers = {id(community) for community in fruitful}
        return [*fruitful, *(c for c in queue if id(c) not in numbers)]

    def _worth(self, community: _Community) -> float:
        return self.scores[community.waiting[0]] + FOUND_WEIGHT * community.found

    def _turns(self, queue: list[_Community]) -> list[tuple[_Community, list[int]]]:
        """Choose the text units of a round, each for one community only."""
        left = self.settings.budget - self.tested.n_tests
        turns = []
        for community in queue[: self.settings.communities_at_once]:
            numbers = [n for n in community.waiting if n not in self.taken]
            numbers = numbers[: min(left, self.settings.tests_at_once)]
            self.taken.update(numbers)
            left -= len(numbers)
            turns.append((community, numbers))
        return turns

    def _after(
        self, community: _Community, ratings: list[tuple[int, float | None]]
    ) -> list[_Community]:
        """Record the ratings of a turn; return the communities that replace it in the queue."""
        if not ratings:
            # Other communities tested its text units in this round.
            return [community]
        self.tested.communities.add(community.number)
        n_found = 0
        for number, rating in ratings:
            if rating is not None and rating >= self.min_rating:
                n_found += 1
                self.tested.relevant[number] = rating
                self.tested.community_of[number] = community.number
        community.found = n_found / len(ratings)
        if not n_found:
            community.n_barren += 1
            return [community] if community.n_barren < self.settings.patience else []
        community.n_barren = 0
        return self._below(community)

    def _first(self) -> list[_Community]:
        """Return the coarsest communities that are enough for a round."""
        queue = self._divide(_Community(NO_COMMUNITY, best_first(self.scores, self.scores)))
        while len(queue) < self.settings.communities_at_once:
            below = [part for community in queue for part in self._divide(community)]
            if len(below) == len(queue):
                break
            queue = below
        return queue

    def _divide(self, community: _Community) -> list[_Community]:
        """Distribute the text units of a community to its children, or to itself without any."""
        children = self.hierarchy.children(community.number)
        parts: dict[int, list[int]] = {}
        for number in community.waiting:
            for part in self._homes(number, children) or [community.number]:
                parts.setdefault(part, []).append(number)
        return [
            _Community(part, numbers, community.found, 0, community.is_read)
            for part, numbers in parts.items()
        ]

    def _below(self, community: _Community) -> list[_Community]:
        """Return the children of a fruitful community, with all of its text units."""
        if community.number == NO_COMMUNITY:
            return [community]
        units = () if community.is_read else self.hierarchy.text_units(community.number)
        if units:
            self.scores |= self.score([number for number in units if number not in self.scores])
            community.waiting = best_first(self.scores, {*community.waiting, *units})
            community.is_read = True
        return self._divide(community)

    def _homes(self, text_unit: int, communities: Sequence[int]) -> list[int]:
        """Return the communities, of these, that a text unit belongs to."""
        counts = self.hierarchy.counts(text_unit)
        held = {number: counts[number] for number in communities if number in counts}
        least = SHARE_OF_FIRST * max(held.values(), default=0)
        return [number for number, count in held.items() if count >= least]


class IndexHierarchy:
    """The communities of an index, cached for one question."""

    def __init__(self, index: "IndexStore") -> None:
        self.index = index
        self._counts: dict[int, Counter[int]] = {}
        self._of_entity: dict[int, list[int]] = {}
        self._children: dict[int, list[int]] = {}

    def counts(self, text_unit: int) -> Counter[int]:
        if text_unit not in self._counts:
            entities, _ = self.index.links.entities_of(text_unit)
            found = (self._communities_of(entity) for entity in entities.tolist())
            self._counts[text_unit] = Counter(number for numbers in found for number in numbers)
        return self._counts[text_unit]

    def _communities_of(self, entity: int) -> list[int]:
        if entity not in self._of_entity:
            self._of_entity[entity] = self.index.links.communities_of(entity)[1].tolist()
        return self._of_entity[entity]

    def children(self, community: int) -> list[int]:
        if community not in self._children:
            if community == NO_COMMUNITY:
                top = self.index.scan("communities").filter(level=0).select("community")
                self._children[community] = top.collect()["community"].sort().to_list()
            else:
                rows = self.index.communities([community])
                self._children[community] = sorted(rows["children"].to_list()[0])
        return self._children[community]

    def text_units(self, community: int) -> list[int]:
        entities: list[int] = self.index.communities([community])["entities"].to_list()[0]
        links = self.index.links
        if links.n_text_units_of(entities).sum() > MAX_READ:
            return []
        found: set[int] = set()
        for entity in entities:
            found.update(links.text_units_of(entity)[0].tolist())
        return sorted(found)


def best_first(scores: Mapping[int, float], numbers: Iterable[int]) -> list[int]:
    """Order text units by score, then by number."""
    return sorted(numbers, key=lambda number: (-scores[number], number))

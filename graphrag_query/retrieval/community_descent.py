"""Which text units are worth a test: community by community, and down where something was found.

What resembles a question is not all that answers it: a passage in other words stands in a
community beside one that was found. So tests are spread over many communities first, and
then go down into those that gave something.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from graphrag_index.schema.settings.searches import LazySearch

if TYPE_CHECKING:
    from graphrag_query.retrieval.index_store import KnowledgeModel

# For text units that belong to no community.
NO_COMMUNITY = -1
# What the share of relevant ones in a community's last turn adds to the score of its next.
FOUND_WEIGHT = 0.3
# A community whose entities have more text units than this is not read itself, only below.
MOST_READ = 2_000
# A text unit belongs to the communities that hold half as many of its entities as the first.
SHARE_OF_FIRST = 0.5

# Who asks what never answers learns nothing from the rest of the budget.
MOST_FAILED_IN_A_ROW = 8

# How relevant text units are, in their order; None if that could not be found out.
Rate = Callable[[list[int]], Sequence[float | None]]
Score = Callable[[list[int]], Mapping[int, float]]


class Hierarchy(Protocol):
    """The communities of an index, as the descent reads them."""

    def counts(self, text_unit: int) -> Mapping[int, int]:
        """Count the entities of a text unit in each community of any level."""

    def children(self, community: int) -> Sequence[int]:
        """Return the communities one level down, or at level 0 for `NO_COMMUNITY`."""

    def text_units(self, community: int) -> Sequence[int]:
        """Return the text units of a community's entities; none if there are too many."""


@dataclass
class Findings:
    """What the tests gave.

    `relevant` are the text units with their ratings, `community_of` says in which community
    each of them was found. A failed test is spent like any other.
    """

    relevant: dict[int, float] = field(default_factory=dict)
    community_of: dict[int, int] = field(default_factory=dict)
    communities: set[int] = field(default_factory=set)
    n_tests: int = 0
    n_failed: int = 0


@dataclass
class _Community:
    """A community in the queue, its text units the best first."""

    number: int
    waiting: list[int]
    found: float = 0.0  # share of the last turn, or of that of the community above
    n_barren: int = 0
    is_read: bool = False


class Descent:
    """Spends the tests of one question; `run` is called once."""

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
        """Test text units until the budget is spent or nothing is left that is worth it.

        In each round the communities with the best untested text units have their turn, all
        tests at once. One that gave something is replaced by its children; one that gave
        nothing `patience` times is left. Where nothing but failures comes, no more is asked.
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
            if n_failed_in_a_row >= MOST_FAILED_IN_A_ROW:
                break
        return self.tested

    def _ordered(self, queue: list[_Community]) -> list[_Community]:
        """Order communities by what their next test promises.

        Half of a round is for those that gave something or whose parent did, however little
        their text units resemble the question. Numbers decide last: an update changes them.
        """
        queue = sorted(queue, key=lambda c: (-self._worth(c), c.waiting, c.number))
        fruitful = [c for c in queue if c.found][: -(-self.settings.communities_at_once // 2)]
        numbers = {id(community) for community in fruitful}
        return [*fruitful, *(c for c in queue if id(c) not in numbers)]

    def _worth(self, community: _Community) -> float:
        return self.scores[community.waiting[0]] + FOUND_WEIGHT * community.found

    def _turns(self, queue: list[_Community]) -> list[tuple[_Community, list[int]]]:
        """Choose what is tested in a round, each text unit for one community only."""
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
        """Note what a turn gave; return what stands in the queue in its place."""
        if not ratings:
            # Others tested its text units in this round.
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
        """Return the coarsest communities of which there are enough for a round."""
        queue = self._divide(_Community(NO_COMMUNITY, best_first(self.scores, self.scores)))
        while len(queue) < self.settings.communities_at_once:
            below = [part for community in queue for part in self._divide(community)]
            if len(below) == len(queue):
                break
            queue = below
        return queue

    def _divide(self, community: _Community) -> list[_Community]:
        """Give the text units of a community to its children; itself if it has none."""
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
        """Go down into a community that gave something, and read what resembles less, too."""
        if community.number == NO_COMMUNITY:
            return [community]
        units = () if community.is_read else self.hierarchy.text_units(community.number)
        if units:
            self.scores |= self.score([number for number in units if number not in self.scores])
            community.waiting = best_first(self.scores, {*community.waiting, *units})
            community.is_read = True
        return self._divide(community)

    def _homes(self, text_unit: int, communities: Sequence[int]) -> list[int]:
        """Return those of some communities that a text unit belongs to."""
        counts = self.hierarchy.counts(text_unit)
        held = {number: counts[number] for number in communities if number in counts}
        least = SHARE_OF_FIRST * max(held.values(), default=0)
        return [number for number, count in held.items() if count >= least]


class IndexHierarchy:
    """The communities of an index, with what was looked up of them."""

    def __init__(self, model: "KnowledgeModel") -> None:
        self.model = model
        self._counts: dict[int, Counter[int]] = {}
        self._of_entity: dict[int, list[int]] = {}
        self._children: dict[int, list[int]] = {}

    def counts(self, text_unit: int) -> Counter[int]:
        if text_unit not in self._counts:
            entities, _ = self.model.links.entities_of(text_unit)
            found = (self._communities_of(entity) for entity in entities.tolist())
            self._counts[text_unit] = Counter(number for numbers in found for number in numbers)
        return self._counts[text_unit]

    def _communities_of(self, entity: int) -> list[int]:
        if entity not in self._of_entity:
            self._of_entity[entity] = self.model.links.communities_of(entity)[1].tolist()
        return self._of_entity[entity]

    def children(self, community: int) -> list[int]:
        if community not in self._children:
            if community == NO_COMMUNITY:
                top = self.model.scan("communities").filter(level=0).select("community")
                self._children[community] = top.collect()["community"].sort().to_list()
            else:
                rows = self.model.communities([community])
                self._children[community] = sorted(rows["children"].to_list()[0])
        return self._children[community]

    def text_units(self, community: int) -> list[int]:
        entities: list[int] = self.model.communities([community])["entities"].to_list()[0]
        links = self.model.links
        if links.n_text_units_of(entities).sum() > MOST_READ:
            return []
        found: set[int] = set()
        for entity in entities:
            found.update(links.text_units_of(entity)[0].tolist())
        return sorted(found)


def best_first(scores: Mapping[int, float], numbers: Iterable[int]) -> list[int]:
    """Order text units by their scores; those of one score by number."""
    return sorted(numbers, key=lambda number: (-scores[number], number))

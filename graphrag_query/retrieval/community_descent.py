"""Relevance tests of lazy search: the order of the tests, and ratings without a model.

A passage may answer a question in other words and have a low similarity to the question. But its
community often has similar passages. So the first tests cover many communities, and further tests
go down the hierarchy in the communities where relevant text units were found.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
import polars as pl

from graphrag_index.schema.settings.searches import LazySearch
from graphrag_query.answering.extractive import FULL_WORD_COVERAGE, MIN_WORD_COVERAGE, word_weight
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import content_words, is_unreadable, share_words
from graphrag_query.question.stem_matching import match_stems
from graphrag_query.retrieval.text_unit_ranking import full_text_shares
from graphrag_query.store.index_store import IndexStore

if TYPE_CHECKING:
    import numpy.typing as npt

# Number that stands for the community of the text units without a community.
NO_COMMUNITY = -1
# Weight of the share of relevant text units in the last batch of a community.
RELEVANT_SHARE_WEIGHT = 0.3
# Maximum number of text units of a community that are read. Of a larger community, only the text
# units of its children are read.
MAX_TEXT_UNITS_READ = 2_000
# A text unit belongs to the community with most of its entities, and to each community with at
# least this share (0 to 1) of that number of entities.
MIN_SHARE_OF_LARGEST = 0.5
# Number of failed tests in a row after which the search ends, because the model is down.
MAX_FAILED_IN_A_ROW = 8
# Weight of the full-text score (see `full_text_shares`), added to the cosine.
FULL_TEXT_WEIGHT = 0.25
# Weight of the share of the question's words that a text unit contains, added to the cosine.
COVERAGE_WEIGHT = 0.35

# Function that rates text units and returns the ratings in their order; None for a failed test.
RatingFunction = Callable[[list[int]], Sequence[float | None]]
# Function that maps text units to similarity scores.
ScoreFunction = Callable[[list[int]], Mapping[int, float]]


@dataclass
class RatedTextUnits:
    """The ratings of relevant text units, and the community where each text unit was found.

    `n_tests` includes failed tests.
    """

    relevant: dict[int, float] = field(default_factory=dict)
    community_of: dict[int, int] = field(default_factory=dict)
    communities: set[int] = field(default_factory=set)
    n_tests: int = 0
    n_failed: int = 0


@dataclass
class _Community:
    """A community in the queue. The text units in `waiting` are not tested yet, best first."""

    number: int
    waiting: list[int]
    found: float = 0.0  # relevant share of its last batch, or of its parent's last batch
    n_fruitless: int = 0  # number of batches in a row without a relevant text unit
    is_read: bool = False  # whether `waiting` includes all text units of the community


@dataclass
class RelevanceTests:
    """The relevance tests for one question, within a budget. `run` is called once."""

    scores: Mapping[int, float]
    hierarchy: "IndexHierarchy"
    score: ScoreFunction
    test: RatingFunction
    settings: LazySearch
    min_rating: float
    tested: RatedTextUnits = field(default_factory=RatedTextUnits)
    taken: set[int] = field(default_factory=set)

    def accept(self, numbers: Sequence[int]) -> None:
        """Take text units for relevant without a test, such as those of the question's cells."""
        self.tested.relevant |= dict.fromkeys(numbers, self.min_rating)
        self.tested.community_of |= dict.fromkeys(numbers, NO_COMMUNITY)
        self.taken.update(numbers)

    def run(self) -> RatedTextUnits:
        """Test text units until the budget is spent or no community is left.

        In each round, text units of the best communities are tested, all tests in one batch. A
        community with relevant text units is replaced by its children. A community without a
        relevant text unit in `patience` rounds is dropped. The loop ends early after
        `MAX_FAILED_IN_A_ROW` failed tests in a row.
        """
        queue, budget = self._coarsest_communities(), self.settings.budget
        n_failed_in_a_row = 0
        while self.tested.n_tests < budget and n_failed_in_a_row < MAX_FAILED_IN_A_ROW:
            for community in queue:
                community.waiting = [n for n in community.waiting if n not in self.taken]
            queue = self._order_communities([community for community in queue if community.waiting])
            turns = self._choose_text_units(queue)
            batch = [number for _, numbers in turns for number in numbers]
            if not batch:
                break
            ratings = dict(zip(batch, self.test(batch), strict=True))
            n_failed = sum(rating is None for rating in ratings.values())
            self.tested.n_tests += len(batch)
            self.tested.n_failed += n_failed
            queue = queue[len(turns) :]
            for community, numbers in turns:
                queue += self._record_turn(community, [ratings[n] for n in numbers], numbers)
            n_failed_in_a_row = n_failed_in_a_row + len(batch) if n_failed == len(batch) else 0
        return self.tested

    def _order_communities(self, queue: list[_Community]) -> list[_Community]:
        """Order communities by the expected result of their next test.

        Half of the communities of a round have had relevant text units in their last batch, or
        in the last batch of their parent. The number decides last, because an index update may
        change the numbers.
        """

        def worth(community: _Community) -> float:
            return self.scores[community.waiting[0]] + RELEVANT_SHARE_WEIGHT * community.found

        sizes = self.hierarchy.sizes
        queue = sorted(
            queue, key=lambda c: (-worth(c), c.waiting, sizes.get(c.number, 0), c.number)
        )
        fruitful = [c for c in queue if c.found][: -(-self.settings.communities_at_once // 2)]
        numbers = {id(community) for community in fruitful}
        return [*fruitful, *(c for c in queue if id(c) not in numbers)]

    def _choose_text_units(self, queue: list[_Community]) -> list[tuple[_Community, list[int]]]:
        """Choose the text units of a round. Each text unit is tested for one community only."""
        left = self.settings.budget - self.tested.n_tests
        turns = []
        for community in queue[: self.settings.communities_at_once]:
            numbers = [n for n in community.waiting if n not in self.taken]
            numbers = numbers[: min(left, self.settings.tests_at_once)]
            self.taken.update(numbers)
            left -= len(numbers)
            turns.append((community, numbers))
        return turns

    def _record_turn(
        self, community: _Community, ratings: list[float | None], numbers: list[int]
    ) -> list[_Community]:
        """Record the ratings of a community's text units in this round.

        Returns the communities that replace it in the queue.
        """
        if not numbers:
            # Other communities have taken all its text units in this round.
            return [community]
        self.tested.communities.add(community.number)
        least, rated = self.min_rating, zip(numbers, ratings, strict=True)
        relevant = {n: rating for n, rating in rated if rating is not None and rating >= least}
        self.tested.relevant |= relevant
        self.tested.community_of |= dict.fromkeys(relevant, community.number)
        community.found = len(relevant) / len(numbers)
        if not relevant:
            community.n_fruitless += 1
            return [community] if community.n_fruitless < self.settings.patience else []
        community.n_fruitless = 0
        return self._replace_by_children(community)

    def _coarsest_communities(self) -> list[_Community]:
        """Return the communities of the coarsest level with enough communities for a round."""
        queue = self._divide_community(
            _Community(NO_COMMUNITY, order_by_score(self.scores, self.scores))
        )
        while len(queue) < self.settings.communities_at_once:
            below = [part for community in queue for part in self._divide_community(community)]
            if len(below) == len(queue):
                break
            queue = below
        return queue

    def _divide_community(self, community: _Community) -> list[_Community]:
        """Distribute the text units of a community to its children.

        A text unit that belongs to no child stays in the community itself.
        """
        children = self.hierarchy.children(community.number)
        parts: dict[int, list[int]] = {}
        for number in community.waiting:
            counts = self.hierarchy.counts(number)
            held = {child: counts[child] for child in children if child in counts}
            least = MIN_SHARE_OF_LARGEST * max(held.values(), default=0)
            for part in [c for c, count in held.items() if count >= least] or [community.number]:
                parts.setdefault(part, []).append(number)
        found, is_read = community.found, community.is_read
        return [_Community(part, numbers, found, 0, is_read) for part, numbers in parts.items()]

    def _replace_by_children(self, community: _Community) -> list[_Community]:
        """Return the children of a community, with all text units of the community."""
        if community.number == NO_COMMUNITY:
            return [community]
        units = () if community.is_read else self.hierarchy.text_units(community.number)
        if units:
            new = [number for number in units if number not in self.scores]
            self.scores = {**self.scores, **self.score(new)}
            community.waiting = order_by_score(self.scores, {*community.waiting, *units})
            community.is_read = True
        return self._divide_community(community)


class IndexHierarchy:
    """The communities of an index and their text units, cached for one question."""

    def __init__(self, index: IndexStore) -> None:
        self.index = index
        self._communities_of = cache(lambda entity: index.links.communities_of(entity)[1].tolist())
        # `RelevanceTests` asks for the same text unit or community many times: cache the results.
        self.counts = cache(self._count_entities)
        self.children = cache(self._read_children)

    @cached_property
    def sizes(self) -> dict[int, int]:
        """The number of entities of each community."""
        rows = self.index.scan("communities").select("community", "size").collect()
        return dict(rows.iter_rows())

    def _count_entities(self, text_unit: int) -> Counter[int]:
        """Count the entities of a text unit in each community of any level."""
        entities, _ = self.index.links.entities_of(text_unit)
        found = (self._communities_of(entity) for entity in entities.tolist())
        return Counter(number for numbers in found for number in numbers)

    def _read_children(self, community: int) -> list[int]:
        """Return the children of a community; for `NO_COMMUNITY`, the communities of level 0."""
        if community == NO_COMMUNITY:
            top = self.index.scan("communities").filter(level=0).select("community")
            return top.collect()["community"].sort().to_list()
        return self.index.children_of(community)

    def text_units(self, community: int) -> list[int]:
        """Return the text units of the entities; empty if more than `MAX_TEXT_UNITS_READ`."""
        entities: list[int] = self.index.communities([community])["entities"].to_list()[0]
        links = self.index.links
        if links.n_text_units_of(entities).sum() > MAX_TEXT_UNITS_READ:
            return []
        return sorted({n for entity in entities for n in links.text_units_of(entity)[0].tolist()})


def order_by_score(scores: Mapping[int, float], numbers: Iterable[int]) -> list[int]:
    """Order text units by score, then by number."""
    return sorted(numbers, key=lambda number: (-scores[number], number))


@dataclass
class QueryScores:
    """The similarity of each text unit to the most similar of several queries."""

    question: Question
    vectors: "npt.NDArray[np.float32]"  # one row per query
    scores: dict[int, float]

    @classmethod
    def compute(cls, question: Question, queries: Sequence[str], settings: LazySearch) -> Self:
        """Score text units by cosine and full text; the best score of all queries counts."""
        vectors = question.vector[np.newaxis]
        if len(queries) > 1:
            embed = question.index.embedder.embed
            vectors = np.vstack([vectors, embed(list(queries[1:]))])
        table = question.index.vectors("text_unit_text")
        numbers: set[int] = set()
        shares: dict[int, float] = {}
        top_k = settings.top_k_text_units
        for query, vector in zip(queries, vectors, strict=True):
            near = table.nearest(vector, top_k, ["human_readable_id"])
            numbers.update(near["human_readable_id"])
            words = " ".join(content_words(query)) or query
            for number, share in full_text_shares(table, words, top_k).items():
                shares[number] = max(shares.get(number, 0.0), share)
        ranking = cls(question, vectors, {})
        for number, cosine in ranking.score([*{*numbers, *shares}]).items():
            ranking.scores[number] = cosine + FULL_TEXT_WEIGHT * shares.get(number, 0.0)
        return ranking

    def score(self, numbers: list[int]) -> dict[int, float]:
        """Return the cosine of each text unit with the most similar query."""
        if not numbers:
            return {}
        numbers = sorted(numbers)
        return dict(zip(numbers, self._cosines(numbers).tolist(), strict=True))

    def _cosines(self, numbers: list[int]) -> "npt.NDArray[np.float32]":
        vectors = self.question.index.open_mapped("text_unit_vectors").matrix("vector", numbers)
        cosines: npt.NDArray[np.float32] = (vectors @ self.vectors.T).max(axis=1)
        return cosines

    def rate_text_units(self, min_similarity: float, numbers: list[int]) -> list[float]:
        """Rate text units by cosine and by the question's words in them; -1 if irrelevant."""
        ordered = sorted(numbers)
        text_units = self.question.index.open_mapped("text_unit_rows")
        texts = [text_units.text("text", number) for number in ordered]
        held = match_stems(pl.Series(texts, dtype=pl.String), self.question.content_words)
        rarity = np.array([word_weight(n, len(ordered)) for n in held.sum(axis=0).tolist()])
        coverages = (held @ rarity) / (rarity.sum() or 1.0)
        asked = self.question.text
        unreadable = is_unreadable(self.question.index, asked)
        has_number = any(letter.isdigit() for letter in asked)
        ratings = {}
        for number, text, cosine, coverage in zip(
            ordered, texts, self._cosines(ordered).tolist(), coverages.tolist(), strict=True
        ):
            enough = coverage >= MIN_WORD_COVERAGE or cosine >= 2 * min_similarity
            is_relevant = enough and cosine >= min_similarity
            if unreadable:
                is_relevant = share_words(asked, text)
            elif has_number:
                is_relevant |= coverage > FULL_WORD_COVERAGE
            # What is relevant by its words alone may have a cosine below the threshold.
            rating = max(min_similarity, cosine + COVERAGE_WEIGHT * coverage)
            ratings[number] = rating if is_relevant else -1.0
        return [ratings[number] for number in numbers]

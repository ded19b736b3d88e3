from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.schema.settings.searches import LazySearch
from graphrag_query.retrieval.community_descent import NO_COMMUNITY, RatedTextUnits, RelevanceTests
from tests.fixtures.examples import examples


class Tree:
    """A hierarchy of two levels: each text unit in one community, and in one of its children."""

    def __init__(self, homes: Mapping[int, tuple[int, int]]) -> None:
        self.homes = homes
        self.below: dict[int, list[int]] = {}
        for pair in homes.values():
            for parent, child in zip((NO_COMMUNITY, pair[0]), pair, strict=True):
                self.below.setdefault(parent, [])
                if child not in self.below[parent]:
                    self.below[parent].append(child)

    def counts(self, text_unit: int) -> Mapping[int, int]:
        return dict.fromkeys(self.homes.get(text_unit, ()), 1)

    def children(self, community: int) -> Sequence[int]:
        return self.below.get(community, [])

    def text_units(self, community: int) -> Sequence[int]:
        return [number for number, pair in self.homes.items() if community in pair]


class Corpus:
    """40 communities of 50 text units, each of 5 parts. What answers is one part of community 7.

    By similarity one text unit of it is the 30th of all, and the rest come last.
    """

    answering = range(7 * 50 + 10, 7 * 50 + 20)

    def __init__(self) -> None:
        self.tree = Tree({n: (n // 50, 100 + n // 10) for n in range(2_000)})
        # 7919 is prime: a shuffle.
        order = sorted(range(2_000), key=lambda n: n * 7919 % 2_000)
        order = [n for n in order if n not in self.answering]
        order.insert(29, self.answering[0])
        order += self.answering[1:]
        self.similarity = {n: 1 - place / 2_000 for place, n in enumerate(order)}
        self.order = order
        self.tests: list[list[int]] = []

    def test(self, numbers: list[int]) -> list[float | None]:
        self.tests.append(numbers)
        return [float(number in self.answering) for number in numbers]

    def score(self, numbers: list[int]) -> dict[int, float]:
        return {number: self.similarity[number] for number in numbers}

    def descend(self, pool: int = 200, **values: int) -> RatedTextUnits:
        scores = self.score(self.order[:pool])
        settings = LazySearch(**values)
        return RelevanceTests(scores, self.tree, self.score, self.test, settings, 1.0).run()


@pytest.mark.parametrize(("budget", "n_found"), [(100, 7), (500, 10), (1_500, 10)])
def test_what_similarity_ranks_last_is_found_beside_what_it_ranks_high(
    budget: int, n_found: int
) -> None:
    corpus = Corpus()
    plain = set(corpus.order[:budget]) & set(corpus.answering)
    found = corpus.descend(budget=budget)
    assert len(plain) == 1
    assert len(found.relevant) >= n_found
    assert found.n_tests <= budget


def test_without_a_first_find_nothing_is_descended_into() -> None:
    corpus = Corpus()
    corpus.answering = range(0)
    found = corpus.descend(budget=300)
    assert found.relevant == {}
    assert {number for batch in corpus.tests for number in batch} <= set(corpus.order[:200])


def test_rounds_spread_over_communities_before_they_go_deep() -> None:
    corpus = Corpus()
    corpus.descend(budget=100, communities_at_once=6, tests_at_once=3)
    first = corpus.tests[0]
    assert len(first) == 18
    assert len({number // 50 for number in first}) == 6


def test_a_community_is_left_after_barren_turns() -> None:
    homes = {n: (n // 10, 100 + n // 10) for n in range(20)}
    tests: list[list[int]] = []

    def test(numbers: list[int]) -> list[float | None]:
        tests.append(numbers)
        return [float(number >= 10) for number in numbers]

    scores = {n: 1 - n / 20 for n in range(20)}
    settings = LazySearch(budget=20, tests_at_once=2, patience=2, communities_at_once=1)
    found = RelevanceTests(scores, Tree(homes), lambda _: {}, test, settings, 1.0).run()
    # Two turns of two in the one whose text units are more similar, the rest in the other.
    assert tests[:2] == [[0, 1], [2, 3]]
    assert sorted(found.relevant) == list(range(10, 20))
    assert found.n_tests == 14


def test_text_units_of_no_community_have_their_turn() -> None:
    def test(numbers: list[int]) -> list[float | None]:
        return [1.0] * len(numbers)

    scores = {n: 1 - n / 20 for n in range(20)}
    found = RelevanceTests(scores, Tree({}), lambda _: {}, test, LazySearch(budget=15), 1.0).run()
    assert sorted(found.relevant) == list(range(15))


def test_failed_tests_are_spent_and_failures_alone_end_it() -> None:
    corpus = Corpus()

    def failing(numbers: list[int]) -> list[float | None]:
        corpus.tests.append(numbers)
        return [None] * len(numbers)

    scores = corpus.score(corpus.order[:200])
    settings = LazySearch(budget=500)
    found = RelevanceTests(scores, corpus.tree, corpus.score, failing, settings, 1.0).run()
    assert found.n_failed == found.n_tests == len(corpus.tests[0])
    assert len(corpus.tests) == 1


@examples(30)
@given(
    st.dictionaries(st.integers(0, 60), st.tuples(st.integers(0, 5), st.integers(10, 25))),
    st.sets(st.integers(0, 60), min_size=1),
    st.lists(st.sampled_from([None, 0.0, 1.0]), min_size=61, max_size=61),
    st.builds(
        LazySearch,
        budget=st.integers(1, 70),
        tests_at_once=st.integers(1, 9),
        communities_at_once=st.integers(1, 9),
        patience=st.integers(1, 3),
    ),
)
def test_the_budget_holds_and_each_text_unit_is_tested_once(
    homes: dict[int, tuple[int, int]],
    pool: set[int],
    ratings: list[float | None],
    settings: LazySearch,
) -> None:
    def run() -> tuple[RatedTextUnits, list[int]]:
        asked: list[int] = []

        def test(numbers: list[int]) -> list[float | None]:
            asked.extend(numbers)
            return [ratings[number] for number in numbers]

        def score(numbers: list[int]) -> dict[int, float]:
            return {number: number % 7 / 7 for number in numbers}

        found = RelevanceTests(score(sorted(pool)), Tree(homes), score, test, settings, 1.0).run()
        return found, asked

    found, asked = run()
    assert len(asked) == len(set(asked)) == found.n_tests <= settings.budget
    assert found.n_failed == sum(ratings[number] is None for number in asked)
    assert set(found.relevant) == {number for number in asked if ratings[number] == 1.0}
    assert found.relevant.keys() == found.community_of.keys()
    assert run() == (found, asked)

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphrag_query
from graphrag_index.pipeline.run import run_workflow
from graphrag_index.pipeline.workflow import Workflow, load_workflow, make_services
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_index.schema.settings.searches import LazySearch
from graphrag_index.step import Step
from graphrag_index.storage.memo import join_batches
from graphrag_query.index import Index
from graphrag_query.retrieval.community_descent import NO_COMMUNITY, RatedTextUnits, RelevanceTests
from tests.fixtures.examples import examples

QUESTIONS = [
    ("global", "What are the main themes?", {}),
    ("global", "How did the expeditions fight scurvy?", {"level": 1}),
    ("drift", "How did scurvy shape the expeditions?", {"rounds": 1}),
    ("local", "Who was Tom Crean?", {}),
    ("basic", "Which fossil plant was found?", {}),
    ("lazy", "How did dogs and ponies serve the expeditions?", {"budget": 40}),
    ("path", "How is Tom Crean connected to Fridtjof Nansen?", {}),
    ("neighbourhood", "Tom Crean", {}),
]


class Tree:
    """A hierarchy of two levels: each text unit in one community, and in one of its children."""

    def __init__(self, homes: Mapping[int, tuple[int, int]]) -> None:
        self.homes = homes
        self.sizes: dict[int, int] = {}
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


def renumbered(number: int, level: int) -> int:
    """Return the number of a community after many updates: level 1 begins before level 0."""
    return number if number < 0 else 7 * number + (5_000 if level == 0 else 3)


def with_gaps(step: Step) -> Step:
    """Return the step that makes communities, as one that gives them other numbers."""
    function: Callable[..., Any] = step.function

    @wraps(function)
    def renumber(*tables: Any, **services: Any) -> dict[str, pl.DataFrame]:
        written = join_batches(function(*tables, **services))
        made = written["communities"]
        rows = []
        for row in made.iter_rows(named=True):
            level = row["level"]
            number = renumbered(row["community"], level)
            changed = {
                "human_readable_id": number,
                "community": number,
                "parent": renumbered(row["parent"], level - 1),
                "children": [renumbered(child, level + 1) for child in row["children"]],
            }
            rows.append({**row, **changed})
        changed_rows = pl.DataFrame(rows, made.schema).sort("level", "community")
        return {**written, "communities": changed_rows}

    return replace(step, function=renumber, code_version=1_000)


@pytest.fixture(scope="module")
def with_other_numbers(
    sample_project: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Index, dict[int, int]]:
    """The sample's index with gaps in the numbers of communities, and the numbers before."""
    root = tmp_path_factory.mktemp("gaps") / "project"
    shutil.copytree(sample_project, root, symlinks=True)
    settings = load_settings(root)
    workflow = load_workflow(root, settings.workflow)
    steps = tuple(
        with_gaps(step) if step.name == "create_communities" else step for step in workflow.steps
    )
    run_workflow(
        Workflow(workflow.name, steps), settings, root, make_services(settings, None, root)
    )
    before = graphrag_query.open(sample_project / "output").store.scan("communities")
    numbers = {
        renumbered(number, level): number
        for number, level in before.select("community", "level").collect().iter_rows()
    }
    return graphrag_query.open(root / "output"), numbers


def told(index: Index, method: str, question: str, values: dict[str, Any], number_of: Any) -> str:
    """Write out an answer, with the numbers of communities as they were."""
    found = index.search(method, question, **values).to_dict()
    left_out = [number_of(number) for number in found["left_out"]]
    text = json.dumps({**found, "left_out": left_out, "usage": 0, "version": 0}, indent=1)
    return re.sub(
        r"(Reports \()(\d+)(?=\))", lambda cited: cited[1] + str(number_of(int(cited[2]))), text
    )


@pytest.mark.parametrize(("method", "question", "values"), QUESTIONS)
@pytest.mark.parametrize("filters", [{}, {"path": "expeditions/*"}], ids=["all", "a part"])
def test_an_answer_is_the_same_but_for_the_numbers(
    sample_project: Path,
    with_other_numbers: tuple[Index, dict[int, int]],
    method: str,
    question: str,
    values: dict[str, Any],
    filters: dict[str, str],
) -> None:
    index, numbers = with_other_numbers
    before = graphrag_query.open(sample_project / "output")
    if filters:
        index, before = index.where(filters), before.where(filters)
    after = told(index, method, question, values, numbers.__getitem__)
    assert after == told(before, method, question, values, int)


def test_communities_are_fetched_by_number(
    sample_project: Path, with_other_numbers: tuple[Index, dict[int, int]]
) -> None:
    index, numbers = with_other_numbers
    before = graphrag_query.open(sample_project / "output").store
    columns = ["level", "size", "entities"]
    found = index.store.communities(numbers).select(columns)
    assert found.equals(before.communities(numbers.values()).select(columns))
    titles = index.store.reports(numbers)["title"].to_list()
    assert titles == before.reports(numbers.values())["title"].to_list()
    unknown = [-1, 4, 10**5, 2**40]
    assert index.store.communities(unknown).is_empty()
    assert index.store.reports(unknown).is_empty()
    assert index.store.report(2**40) is None

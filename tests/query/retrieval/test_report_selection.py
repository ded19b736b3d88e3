"""Reports chosen by ratings of a model, from the top of the hierarchy down."""

from collections.abc import Callable
from typing import Any

import pytest

from graphrag_index.errors import ModelError
from graphrag_index.llm.request import Request
from graphrag_index.schema.settings.searches import GlobalSearch
from graphrag_query.answer import Answer, Outcome
from graphrag_query.index import Index
from graphrag_query.searches.global_search import global_search
from tests.fixtures.fake_llm import FakeLLM, one_point_a_report, question_to, shown


def rated(request: Request) -> int:
    return int(request.unit.removeprefix("report "))


def ask(index: Index, rating: Callable[[int], Any], **values: Any) -> tuple[Answer, FakeLLM]:
    """Search with the rating of each report, by the number of its community."""

    def answer(request: Request) -> Any:
        is_rating = request.format.name == "rating"
        return rating(rated(request)) if is_rating else one_point_a_report(request)

    llm = FakeLLM(answer, 100_000)
    question = question_to(index, "How did the expeditions fight scurvy?", llm)
    return global_search(question, GlobalSearch(selection="dynamic").with_values(values)), llm


@pytest.fixture(scope="module")
def hierarchy(index: Index) -> dict[int, int]:
    """The parent of each community."""
    rows = index.store.scan("community_reports").select("community", "parent").collect()
    return dict(rows.iter_rows())


def test_only_children_of_relevant_reports_are_rated(
    index: Index, hierarchy: dict[int, int]
) -> None:
    top = {number for number, parent in hierarchy.items() if parent == -1}
    parents = [n for n in sorted(top) if n in hierarchy.values()]
    opened = parents[0]
    children = {number for number, parent in hierarchy.items() if parent == opened}
    child = min(children)
    answer, llm = ask(index, lambda n: {"rating": 5 if n in (opened, child) else 1})
    asked = {rated(request) for request in llm.asked if request.format.name == "rating"}
    grandchildren = {number for number, parent in hierarchy.items() if parent == child}
    assert asked == top | children | grandchildren
    # The parent gave way to its relevant child.
    assert shown(llm.asked[-1]) == [child]
    assert answer.looked_at["reports_rated"] == len(asked)
    assert set(answer.left_out) == asked - {opened, child}
    ratings = {report.community: report.score for report in answer.reports}
    assert ratings == {number: 5 if number in (opened, child) else 1 for number in asked}


def test_a_parent_stays_if_none_of_its_children_is_relevant(
    index: Index, hierarchy: dict[int, int]
) -> None:
    opened = min(parent for parent in hierarchy.values() if hierarchy.get(parent) == -1)
    _, llm = ask(index, lambda n: {"rating": 5 * (n == opened)})
    assert shown(llm.asked[-1]) == [opened]


def test_levels_are_bounded(index: Index, hierarchy: dict[int, int]) -> None:
    _, llm = ask(index, lambda _: {"rating": 5}, max_levels=1)
    asked = {rated(request) for request in llm.asked if request.format.name == "rating"}
    assert asked == {number for number, parent in hierarchy.items() if parent == -1}


@pytest.mark.parametrize(
    "reply", [{"rating": "4/5"}, {"score": 4}, [4], [{"rating": 4}], "4 out of 5", {"x": "80%"}, 4]
)
def test_ratings_are_read_tolerantly(
    index: Index, hierarchy: dict[int, int], reply: object
) -> None:
    first = min(number for number, parent in hierarchy.items() if parent == -1)
    answer, llm = ask(index, lambda n: reply if n == first else 0, max_levels=1, min_rating=4)
    assert shown(llm.asked[-1]) == [first]
    assert answer.looked_at["ratings_failed"] == 0


def test_a_failing_rating_costs_its_report_and_is_told(
    index: Index, hierarchy: dict[int, int]
) -> None:
    first = min(number for number, parent in hierarchy.items() if parent == -1)
    answer, _ = ask(index, lambda n: None if n == first else 5, max_levels=1)
    assert answer.notes[0] == f"1 calls failed: reports {first} were not rated."
    assert first in answer.left_out


def test_nothing_relevant_is_no_evidence(index: Index) -> None:
    answer, llm = ask(index, lambda _: {"rating": 0})
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert {asked.format.name for asked in llm.asked} == {"rating"}
    with pytest.raises(ModelError, match="rated none"):
        ask(index, lambda _: None)

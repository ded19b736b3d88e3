"""A name that ten thousand entities have: searches answer within their budgets."""

import re
from collections.abc import Iterator

import pytest

import benchmarks.synthetic
import graphrag_query
from benchmarks.synthetic import make_index
from graphrag_index.text.tokens import count_tokens, load_encoding
from graphrag_query.answer import Outcome
from graphrag_query.index import Index

N = 10_000
QUESTION = "What is known of Bell?"


@pytest.fixture(scope="module")
def bells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("bells")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmarks.synthetic, "title_of", lambda number: f"Bell {number}")
        make_index(folder, N)
    with graphrag_query.open(folder / "output") as index:
        assert index.store.n_rows("entities") == N
        yield index


@pytest.mark.parametrize("method", ["local", "basic", "global", "drift", "lazy", "ask"])
def test_a_search_answers(bells: Index, method: str) -> None:
    answer = bells.search(method, QUESTION)
    assert answer.outcome in (Outcome.ANSWERED, Outcome.NO_EVIDENCE)
    assert any(answer.looked_at.values())
    assert len(answer.text) < 20_000


def test_the_context_keeps_to_its_budget(bells: Index) -> None:
    context = bells.context(QUESTION, method="local", max_context_tokens=2_000)
    assert 0 < count_tokens(context.text, load_encoding("o200k_base")) <= 2_000
    assert 0 < context.tables["Entities"].height < N


def test_one_of_them_is_found_by_its_whole_name(bells: Index) -> None:
    found = bells.neighbourhood("Bell 7", hops=1, max_relationships=10)
    assert "Bell 7" in found.text
    context = bells.context("What is known of Bell 7?", method="local")
    assert re.search(r"\bBell 7\b", context.text)


def test_names_that_many_have_are_connected_by_none_or_by_short_paths(bells: Index) -> None:
    answer = bells.path("How is Bell 3 connected with Bell 9000?")
    assert answer.outcome in (Outcome.ANSWERED, Outcome.NO_EVIDENCE)

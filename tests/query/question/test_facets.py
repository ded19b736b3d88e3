"""The things and periods that a question names, their cells, and the words of its topic."""

from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphrag_query
from graphrag_nlp.text.languages import language_of
from graphrag_query.answer import Cell
from graphrag_query.index import Index
from graphrag_query.question import cell_coverage
from graphrag_query.question import facets as facets_of_questions
from graphrag_query.question.cell_coverage import CellCoverage
from graphrag_query.question.facets import Facets
from graphrag_query.question.question import Question
from graphrag_query.question.refusals import format_absence
from graphrag_query.question.stem_matching import count_stems, match_stems
from graphrag_query.store.index_store import RankedTextUnit
from tests.fixtures.cases import cases
from tests.fixtures.planted_series import planted_series

QUESTION = "What was the operating margin of Galemark Group and Ostwick in Q3 2022?"


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return graphrag_query.open(planted_series(tmp_path_factory) / "output")


def asked(index: Index, question: str) -> Question:
    return index._build_question("local", question, (), None)


def facets(index: Index, question: str) -> Facets:
    return asked(index, question).facets


@cases("question, things, periods, parts")
def test_the_facets_of_a_question(
    series: Index, question: str, things: list[str], periods: str, parts: list[str]
) -> None:
    found = facets(series, question)
    assert [thing.text for thing in found.things] == things
    assert "; ".join(map(str, found.periods)) == periods
    assert [" ".join(part) for part in found.parts] == parts
    for thing in found.things:
        assert question[thing.start : thing.end].removesuffix("'s") == thing.text
        assert thing.is_series


@given(
    st.lists(
        st.sampled_from("Ostwick galemark Group's and , Q3 2022 the of 船 - Zed".split()),
        min_size=1,
    )
)
def test_any_question_has_facets_inside_of_it(series: Index, words: Sequence[str]) -> None:
    question = " ".join(words)
    found = facets(series, question)
    ends = [0, *(place for thing in found.things for place in (thing.start, thing.end))]
    assert ends == sorted(ends)
    assert ends[-1] <= len(question)


def test_with_many_text_units_those_that_match_are_read(
    series: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = asked(series, QUESTION).cell_coverage
    monkeypatch.setattr(cell_coverage, "MAX_TEXT_UNITS_READ", 4)
    few = asked(series, QUESTION).cell_coverage
    assert [cell.thing for cell in few.cells] == ["Galemark Group", "Ostwick"]
    for cell, known in zip(few.cells, whole.cells, strict=True):
        assert 0 < len(cell.text_units) <= 2
        assert {*cell.text_units} < {*known.text_units}


def test_with_many_periods_a_thing_is_one_cell(
    series: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_coverage, "MIN_CELLS_PER_THING", 2)
    monkeypatch.setattr(cell_coverage, "MAX_CELLS", 2)
    [cell] = asked(series, "How did the margin of Ostwick develop since 2021?").cell_coverage.cells
    assert (cell.period, len(cell.documents)) == ("since 2021-01-01", 4)


@pytest.mark.parametrize(
    "question",
    [
        "Which company had the highest margin in Q3 2029?",
        "Which company had the highest margin?",
        "What was the highest margin in Q3 2022?",
        "Which company had a higher margin than Morewick in Q3 2022?",
        "Welche Marge hatte Morewick in Q3 2022?",
    ],
)
def test_without_names_and_documents_of_a_period_there_are_no_things(
    series: Index, question: str
) -> None:
    assert asked(series, question).facets.things == ()


def test_a_word_such_as_every_before_a_period_asks_for_no_other(series: Index) -> None:
    found = facets(series, "What was the margin of Ostwick in every third quarter of 2022?")
    assert (found.each, [*map(str, found.periods)]) == (0, ["Q3 2022"])
    assert found.parts == (("margin",),)


def test_too_many_things_of_a_period_are_not_compared(
    series: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facets_of_questions, "MAX_THINGS", 4)
    question = "Which company had the highest margin in Q3 2022?"
    assert asked(series, question).facets.things == ()
    kept = series.where({"path": "ostwick*"})
    assert [thing.text for thing in asked(kept, question).facets.things] == ["Ostwick"]


def test_each_cell_gets_its_best_before_any_gets_its_second(series: Index) -> None:
    found = asked(series, QUESTION).cell_coverage
    first, second = (cell.text_units for cell in found.cells)
    assert found.order[:4] == (first[0], second[0], first[1], second[1])


@given(st.integers(0, 40), st.integers(1, 30), st.integers(0, 30))
def test_cells_come_first_and_widen_the_search(n_order: int, top_k: int, n_others: int) -> None:
    covered = CellCoverage(order=tuple(range(n_order)), n_slots=n_order)
    scores = {number: 1 / number for number in range(20, 20 + n_others)}
    found = covered.score_first(scores, top_k)
    assert [*found][: min(n_order, len(found))] == [*range(n_order)][: len(found)]
    assert [*found.values()] == sorted(found.values(), reverse=True)
    assert len(found) <= max(top_k, 48)
    assert len(found) >= min(top_k, len({*range(n_order), *scores}))
    ranked = [RankedTextUnit(number, score, score, "match") for number, score in scores.items()]
    if n_order:
        assert [unit.number for unit in covered.rank_first(ranked, top_k)] == [*found]


def test_words_are_counted_by_stem_and_near_numbers() -> None:
    texts = [
        "Margins fell. The margin was 4%.", "Submargin 4", "The MARGIN rose. By how much? 4%.", "",
    ]  # fmt: skip
    counts, near = count_stems(texts, ["margin", "oper"])
    assert counts.tolist() == [[2, 0], [0, 0], [1, 0], [0, 0]]
    assert near.tolist() == [[True, False], [False, False], [False, False], [False, False]]


@given(st.lists(st.text("Margins 4. Ärger\n")), st.lists(st.sampled_from(["margin", "ärger", "a"])))
def test_counted_words_are_those_that_match(texts: list[str], stems: list[str]) -> None:
    counts, near = count_stems(texts, stems)
    assert counts.shape == near.shape == (len(texts), len(stems))
    assert not (near & (counts == 0)).any()
    if texts and stems:
        held = match_stems(pl.Series(texts, dtype=pl.String), stems)
        assert ((counts > 0) == held).all()


@cases("code, period, statement")
def test_what_a_cell_lacks_is_said_in_the_language_of_the_question(
    code: str, period: str, statement: str
) -> None:
    language = language_of(code)
    assert format_absence(Cell("Acme", "2022", "no_period", covered="2021"), language) == period
    for state in ("no_passage", "no_statement"):
        assert format_absence(Cell("Acme", "2022", state), language) == statement  # type: ignore[arg-type]
    assert "Acme" in format_absence(Cell("Acme", "2022", "no_thing"), language)

"""Periods in questions and titles, in four languages."""

from calendar import monthrange
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_nlp.text.languages import language_of
from graphrag_nlp.text.periods import (
    apply_fiscal_year,
    find_dates,
    find_each,
    find_periods,
    format_period,
    names_latest,
    period_around,
)
from tests.fixtures.cases import cases

# Parts of periods, so that random texts have some.
WORDS = (
    "Q1 3Q24 H2 2022 1999 0000 9999 FY24 '24 since before after until to from bis entre and et y "
    "– - . , fiscal year ended first dritten quarter trimestre half of the May mai mayo 31 4 02 "
    "1900 １９９９ İ ß à"
).split()
texts = st.one_of(
    st.text(), *(st.lists(st.sampled_from(WORDS)).map(joint.join) for joint in (" ", "", "-"))
)


def shown(text: str) -> str:
    return "; ".join(map(str, find_periods(text)))


@cases("text, periods")
def test_the_periods_of_a_text(text: str, periods: str) -> None:
    assert shown(text) == periods
    # Case and what stands around do not matter.
    assert shown(f"What was it ({text.upper()})?") == periods


@cases("title, head, is_fiscal, in_calendar")
def test_a_text_tells_how_fiscal_years_differ(
    title: str, head: str, is_fiscal: bool, in_calendar: str
) -> None:
    found = apply_fiscal_year(find_periods(title)[0], f"{title}\n{head}")
    assert (bool(found.is_fiscal), found.first) == (is_fiscal, find_periods(title)[0].first)
    calendar = found.numbered(fiscal=False)
    assert str(calendar).removeprefix("fiscal ") == in_calendar
    # The way back leads to the same days, and nothing changes where nothing is told.
    assert calendar.numbered(fiscal=is_fiscal) == found


@cases("text")
def test_no_period(text: str) -> None:
    assert find_periods(text) == []


@cases("text, language, dates")
def test_the_days_and_months_of_a_text(text: str, language: str, dates: list[list[int]]) -> None:
    found = find_dates(text, language_of(language))
    assert [[date.year, date.month, date.day] for date in found] == dates


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("the margin in the latest quarter", True),
        ("Marge im letzten Quartal", True),
        ("marge du dernier trimestre", True),
        ("margen del último trimestre", True),
        ("the last fiscal year", True),
        ("the last company", False),
        ("the quarter of 2022", False),
    ],
)
def test_a_question_asks_for_the_last_period(text: str, asks: bool) -> None:
    assert names_latest(text) is asks


@cases("text, asked, n_months")
def test_a_question_asks_for_all_periods_of_a_length(text: str, asked: str, n_months: int) -> None:
    start, end, found = find_each(text) or (0, 0, 0)
    assert (text[start:end], found) == (asked, n_months)


def test_the_unit_around_a_period_has_all_of_its_days() -> None:
    day, quarter, year = find_periods("2022-05-04, Q3 2022 and 2023")
    assert [str(period_around(day, n)) for n in (1, 3, 6, 12)] == [
        "2022-05", "Q2 2022", "H1 2022", "2022"
    ]  # fmt: skip
    assert str(period_around(quarter, 12)) == "2022"
    assert str(period_around(year, 3)) == "2023"


@given(texts)
def test_a_period_has_days_and_a_place_in_the_text(text: str) -> None:
    end = 0
    for period in find_periods(text):
        assert end <= period.start < period.end <= len(text)
        assert text[period.start : period.end].strip() == text[period.start : period.end]
        assert period.first <= period.last
        assert period.n_days > 0
        assert str(period)
        end = period.end


@given(st.integers(1900, 2098), st.sampled_from((1, 3, 6, 12)), st.integers(0, 11))
def test_a_written_period_is_read_again(year: int, n_months: int, at: int) -> None:
    month = at // n_months * n_months + 1
    last = month + n_months - 1
    days = date(year, month, 1), date(year, last, monthrange(year, last)[1])
    [found] = find_periods(format_period(*days))
    assert (found.first, found.last) == days


def test_periods_contain_and_overlap() -> None:
    quarter, other, year = find_periods("Q3 2022, Q4 2022 and 2022")
    assert (year.contains(quarter), quarter.contains(year)) == (True, False)
    assert (year.overlaps(quarter), quarter.overlaps(other)) == (True, False)
    assert (year.n_days, quarter.n_days) == (365, 92)

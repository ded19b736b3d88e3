"""Dates of documents: stated ones, and those in titles, which are often names of files."""

import polars as pl
import pytest

from graphrag_nlp.text.document_dates import MAX_PERIODS, divide_time, find_document_dates
from tests.fixtures.cases import cases


def dates_of(*titles: str, stated: str = "") -> list[str]:
    documents = pl.DataFrame({"title": titles, "creation_date": [stated] * len(titles)})
    return find_document_dates(documents).to_list()


@cases("title, date")
def test_a_date_in_a_title_is_a_day_a_month_or_a_year_of_its_own(title: str, date: str) -> None:
    assert dates_of(title) == [date]


def test_a_stated_date_comes_before_one_in_the_title() -> None:
    assert dates_of("report-2017.txt", stated="1914-08-01T00:00:00") == ["1914-08-01"]
    assert dates_of("report-2017.txt", stated="unknown") == ["2017"]


def test_the_time_of_a_file_is_no_date_of_its_document() -> None:
    assert dates_of("letter.txt", stated="2026-01-09 10:00:00 +0000") == [""]
    assert dates_of("1914-08-01 letter.txt", stated="2026-01-09 10:00:00 +0000") == ["1914-08-01"]
    assert dates_of("letter.txt", stated="1914-08-01 10:00:00") == ["1914-08-01"]


def test_numbers_that_count_files_are_no_years() -> None:
    numbers = range(1, 2_100, 7)
    assert set(dates_of(*(f"article-{n}-news.txt" for n in numbers))) == {""}
    assert set(dates_of(*(f"a{n:04}.txt" for n in numbers))) == {""}


def test_years_of_most_titles_of_a_form_are_dates_beside_other_files() -> None:
    letters = [f"letter {n}.txt" for n in (3, 1801, 12, 1950, 8)]
    reports = [f"report-{year}.txt" for year in (1998, 1999, 2000)]
    assert dates_of(*letters, *reports) == [*[""] * 5, "1998", "1999", "2000"]


def test_a_year_that_few_headlines_name_is_no_date() -> None:
    headlines = ["The crash of 1929", "A flood in Oslo", "Ann Berg is mayor", "Bread gets dearer"]
    assert dates_of(*headlines) == ["", "", "", ""]


@pytest.mark.parametrize(
    ("titles", "dates"),
    [
        (("report-2017.txt", "notes.txt", "a.txt", "b.txt"), ("2017", "", "", "")),
        (("report-2017.txt", "notes of meeting.txt", "Oslo plan.txt"), ("2017", "", "")),
        (("budget 2017", "budget 2018", "minutes", "plan"), ("2017", "2018", "", "")),
        (
            ("budget 2017", "budget 2018", "letter 3", "memo 7", "note 12"),
            ("2017", "2018", "", "", ""),
        ),
        (("budget 2017", "budget 3", "minutes", "plan"), ("", "", "", "")),
    ],
)
def test_titles_without_a_number_say_nothing_on_years(
    titles: tuple[str, ...], dates: tuple[str, ...]
) -> None:
    assert dates_of(*titles) == [*dates]


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [("rfc-{}", 1945, 2045), ("page-{}", 1600, 1900), ("a-{}", 1945, 2045), ("a-{}", 1600, 1900)],
)
def test_numbers_beyond_the_years_count_files(name: str, first: int, last: int) -> None:
    assert set(dates_of(*(name.format(n) for n in range(first, last + 1)))) == {""}


@pytest.mark.parametrize(
    "title",
    [
        *("RFC 1918", "rfc1918", "Windows 2000", "Office 2016", "Windows Server 2019"),
        *("1984 by Orwell", "ISO 19011:2018", "ISO/IEC 27001:2013", "DIN EN 1990", "EN 1991"),
        *("page-1650.txt", "Chapter 1812", "figure_1914.png"),
    ],
)
def test_numbers_of_standards_pages_and_products_are_no_years(title: str) -> None:
    assert dates_of(title) == [""]


@pytest.mark.parametrize(
    "title", ["news-en-2017.txt", "officer 2017", "home page, 5 May, 2017", "2017 by month"]
)
def test_years_beside_words_like_those_of_standards_are_dates(title: str) -> None:
    assert dates_of(title) == ["2017"]


def test_numbers_behind_years_are_months_if_all_may_be() -> None:
    assert dates_of("invoice 2017-05", "invoice 2017-13") == ["2017", "2017"]
    assert dates_of("invoice 2017-05", "invoice 2017-12") == ["2017-05", "2017-12"]
    assert dates_of("letter 2017-05", "invoice 2017-13") == ["2017-05", "2017"]


@pytest.mark.parametrize(
    ("dates", "first", "last", "positions"),
    [
        (["2024-04-15", "2024-05-01", "", "soon"], "2024-04-15", "2024-05-01", [0, 16, None, None]),
        (["2024-02-30", "2024-03-01"], "2024-03-01", "2024-03-01", [None, 0]),
        (["1914-08", "1914-12-24"], "1914-08", "1914-12", [0, 4]),
        (["1900-01-02", "1905-01"], "1900-01 1900-03", "1905-01 1905-03", [0, 20]),
        (["1950-02-03", "1914"], "1914", "1950", [36, 0]),
        (["1801", "2001"], "1800 1809", "2000 2009", [0, 20]),
        (["0001", "9999"], "0000 0099", "9900 9999", [0, 99]),
    ],
)
def test_time_is_divided_into_periods_of_one_length(
    dates: list[str], first: str, last: str, positions: list[int | None]
) -> None:
    periods, found = divide_time(pl.Series(dates))
    assert [" ".join(dict.fromkeys(periods[at])) for at in (0, -1)] == [first, last]
    assert found.to_list() == positions
    assert len(periods) <= MAX_PERIODS or first == "0000 0099"


def test_there_is_no_time_without_a_date() -> None:
    assert divide_time(pl.Series(["", "soon"]))[0] == []
    assert divide_time(pl.Series([], dtype=pl.String))[0] == []

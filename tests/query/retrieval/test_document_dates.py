"""Dates of documents: stated ones, and those in titles, which are often names of files."""

import polars as pl
import pytest

from graphrag_query.retrieval.document_dates import find_document_dates


def dates_of(*titles: str, stated: str = "") -> list[str]:
    documents = pl.DataFrame({"title": titles, "creation_date": [stated] * len(titles)})
    return find_document_dates(documents).to_list()


@pytest.mark.parametrize(
    ("title", "date"),
    [
        ("2017-03-02.txt", "2017-03-02"),
        ("minutes_20170302_final.txt", "2017-03-02"),
        ("IMG20170302.txt", "2017-03-02"),
        ("letters 2017-03.txt", "2017-03"),
        ("report-2017.txt", "2017"),
        ("report-201703.txt", "2017-03"),
        # A part of a name, of a longer number, or no month.
        ("a1657.txt", ""),
        ("minutes2017.txt", ""),
        ("20170302123.txt", ""),
        ("order-2017-13.txt", "2017"),
        ("letter-2099.txt", ""),
    ],
)
def test_a_date_in_a_title_is_a_day_a_month_or_a_year_of_its_own(title: str, date: str) -> None:
    assert dates_of(title) == [date]


def test_a_stated_date_comes_before_one_in_the_title() -> None:
    assert dates_of("report-2017.txt", stated="1914-08-01T00:00:00") == ["1914-08-01"]
    assert dates_of("report-2017.txt", stated="unknown") == ["2017"]


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

"""Numbers, amounts and dates in descriptions."""

from datetime import date
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.schema.tables import TABLES
from graphrag_index.steps.summarize_descriptions import find_entity_values, normalize_values
from graphrag_nlp.text.values import find_dates, find_numbers
from graphrag_query.store.index_store import IndexStore
from graphrag_query.structured.queries import run_sql
from graphrag_query.structured.sandbox import Limits
from tests.fixtures.small_index import table, write_index


def numbers(text: str, language: str = "en") -> list[tuple[str, float, str | None]]:
    return [found[2:] for found in find_numbers(text, language)]


def dates(text: str, language: str = "en") -> list[tuple[str, str]]:
    return [(str(found.first), str(found.last)) for found in find_dates(text, language)]


@pytest.mark.parametrize(
    ("text", "language", "found"),
    [
        ("a fund of 1.2 million", "en", [("number", 1.2e6, None)]),
        ("it cost €3,5 Mio.", "de", [("money", 3.5e6, "EUR")]),
        ("it cost $1.2m", "en", [("money", 1.2e6, "USD")]),
        ("US$ 40,000 was raised", "en", [("money", 40_000, "USD")]),
        ("£1,234.50", "en", [("money", 1_234.5, "GBP")]),
        ("1.234,50 Euro", "de", [("money", 1_234.5, "EUR")]),
        ("12 345 678 zł", "pl", [("money", 12_345_678, "PLN")]),
        ("2 billion dollars", "en", [("money", 2e9, "USD")]),
        ("2 Billionen Euro", "de", [("money", 2e12, "EUR")]),
        ("3 Mrd. Euro", "de", [("money", 3e9, "EUR")]),
        ("5 mln", "pl", [("number", 5e6, None)]),
        ("12.5 % of 28 men", "en", [("percent", 12.5, "%"), ("number", 28, None)]),
        ("12,5 Prozent", "de", [("percent", 12.5, "%")]),
        ("1,300 km and 25 miles", "en", [("measure", 1_300, "km"), ("measure", 25, "mi")]),
        ("at -40 °C", "en", [("measure", -40, "°C")]),
        ("1.234", "de", [("number", 1_234, None)]),
        ("1.234", "en", [("number", 1.234, None)]),
        ("0.500 kg", "de", [("measure", 0.5, "kg")]),
        ("1,234,567", "und", [("number", 1_234_567, None)]),
        ("1’234’567", "de", [("number", 1_234_567, None)]),
        ("the 69 dogs.", "en", [("number", 69, None)]),
        ("minus 70 degrees Fahrenheit", "en", [("measure", -70, "°F")]),
        ("at 88° South", "en", [("measure", 88, "°")]),
        ("USD 5 million and EUR 3.5bn", "en", [("money", 5e6, "USD"), ("money", 3.5e9, "EUR")]),
        ("5 M€ et 300 k€", "fr", [("money", 5e6, "EUR"), ("money", 3e5, "EUR")]),
        ("3,5 millions d’euros", "fr", [("money", 3.5e6, "EUR")]),
        ("3,5 millones de euros", "es", [("money", 3.5e6, "EUR")]),
        ("5 milioni di euro", "it", [("money", 5e6, "EUR")]),
        ("3 millones de personas", "es", [("number", 3e6, None)]),
        ("15 mil euros", "es", [("money", 15_000, "EUR")]),
        ("5 to 10 km", "en", [("measure", 10, "km")]),
        ("between $5 and $10 million", "en", [("money", 1e7, "USD")]),
        ("8 men and 12 dogs", "en", [("number", 8, None), ("number", 12, None)]),
    ],
)
def test_numbers_are_read_as_their_language_writes_them(
    text: str, language: str, found: list[tuple[str, float, str | None]]
) -> None:
    assert [(kind, unit) for kind, _, unit in numbers(text, language)] == [
        (kind, unit) for kind, _, unit in found
    ]
    assert [value for _, value, _ in numbers(text, language)] == pytest.approx(
        [value for _, value, _ in found]
    )


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("1,234", "und"),  # a thousand or one
        ("the pages 3,5", "en"),
        ("a Boeing 747-8 and an A380", "en"),
        ("at 12:30", "en"),
        ("version 1.2.3", "en"),
        ("COVID-19", "en"),
        ("the 3rd man", "en"),
        ("am 3. Tag", "de"),
        ("in 1914", "en"),
        ("5/8", "en"),
        ("12,34,56", "en"),
        ("the flying boat Latham 47", "en"),
        ("the Pesca No. 1 sailed", "en"),
        ("3.5 billion euros", "und"),  # a thousand times more elsewhere
        ("15 mil euros", "und"),
        ("a run of 10–15 km", "en"),
        ("at –5 °C", "en"),  # below zero, or behind a dash
        ("the model 5 T", "en"),
        ("5 M users", "en"),
        ("A$5m", "en"),
        ("12 апреля 1961 года", "und"),
        ("on 31 February 1914", "en"),
        ("10^6", "en"),
    ],
)
def test_what_is_no_number_or_could_be_two_is_left_out(text: str, language: str) -> None:
    assert numbers(text, language) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("on 12 March 1914", [("1914-03-12", "1914-03-12")]),
        ("on March 12, 1914,", [("1914-03-12", "1914-03-12")]),
        ("am 12. März 1914", [("1914-03-12", "1914-03-12")]),
        ("le 1er mars 1914", [("1914-03-01", "1914-03-01")]),
        ("el 12 de marzo de 1914", [("1914-03-12", "1914-03-12")]),
        ("12 marca 1914 roku", [("1914-03-12", "1914-03-12")]),
        ("12.03.1914", [("1914-03-12", "1914-03-12")]),
        ("1914-03-12", [("1914-03-12", "1914-03-12")]),
        ("25/12/1914", [("1914-12-25", "1914-12-25")]),
        ("March 1914", [("1914-03-01", "1914-03-31")]),
        ("in February 1912", [("1912-02-01", "1912-02-29")]),
        ("Q3 2021", [("2021-07-01", "2021-09-30")]),
        ("1914–17", [("1914-01-01", "1917-12-31")]),
        ("1901–05", [("1901-01-01", "1905-12-31")]),
        ("1914-17", [("1914-01-01", "1917-12-31")]),
        ("of 1897-1899, led", [("1897-01-01", "1899-12-31")]),
        ("the 1890s", [("1890-01-01", "1899-12-31")]),
        ("born in 1877 on a farm", [("1877-01-01", "1877-12-31")]),
        ("born in 1877.", [("1877-01-01", "1877-12-31")]),
        ("In 1903 Scott sailed", [("1903-01-01", "1903-12-31")]),
        ("died (1922)", [("1922-01-01", "1922-12-31")]),
        ("from 1911 to 1914", [("1911-01-01", "1911-12-31"), ("1914-01-01", "1914-12-31")]),
    ],
)
def test_dates_are_spans_of_days(text: str, found: list[tuple[str, str]]) -> None:
    assert dates(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "3/4/1914",
        "2001-05",
        "2010/11",
        "they may 1914 times",
        "32 March 1914",
        "30.02.1914",
        "1500 cases",
        "in 1500 cases",
        "1917-14",
        "A1914",
    ],
)
def test_what_is_no_date_or_could_be_two_is_left_out(text: str) -> None:
    assert dates(text) == []


def test_a_noun_behind_four_digits_is_counted() -> None:
    assert dates("in 1500 Fällen", "de") == []
    assert dates("seit 1914 war er dort", "de") == [("1914-01-01", "1914-12-31")]


def test_the_step_gives_each_value_with_its_place() -> None:
    entities = table(
        "entities",
        {"id": "a", "human_readable_id": 0, "title": "Plain", "description": "It has none."},
        {
            "id": "b",
            "human_readable_id": 1,
            "title": "Antarctic Expedition of 1897",
            "description": "The grant of £2,000 was paid on 12 March 1914 to 28 men.",
        },
    )
    [found] = normalize_values(entities.lazy())
    assert found.schema == TABLES["entity_values"].schema
    assert found.drop("start_char", "end_char").rows() == [
        (1, "title", "date", None, None, date(1897, 1, 1), date(1897, 12, 31), "1897"),
        (1, "description", "money", 2000.0, "GBP", None, None, "£2,000"),
        (1, "description", "date", None, None, *[date(1914, 3, 12)] * 2, "12 March 1914"),
        (1, "description", "number", 28.0, None, None, None, "28"),
    ]
    for row in found.iter_rows(named=True):
        text = entities[row["field"]][1]
        assert text[row["start_char"] : row["end_char"]] == row["text"]


def test_the_place_of_a_number_ends_with_what_belongs_to_it() -> None:
    text = "Dio 3 millones de euros a 3 millones de personas."
    found = [text[n.start_char : n.end_char] for n in find_numbers(text, "es")]
    assert found == ["3 millones de euros", "3 millones"]


def test_an_index_without_entities_has_the_table() -> None:
    [found] = normalize_values(table("entities").head(0).lazy())
    assert (found.height, found.schema) == (0, TABLES["entity_values"].schema)


@given(st.text("0123456789.,-–/ €$%kmMärzMarchQs", max_size=40))
def test_values_lie_in_their_order_where_they_are_said_to(text: str) -> None:
    rows = find_entity_values("", text)
    assert all(text[row[-2] : row[-1]] == row[-3] for row in rows)  # type: ignore[misc]
    ends = [place for row in rows for place in row[-2:]]
    assert ends == sorted(ends)  # type: ignore[type-var]


def test_amounts_and_dates_of_an_index_can_be_asked_in_sql(tmp_path: Path) -> None:
    entities = table(
        "entities",
        {"id": "a", "title": "A", "description": "It was given £2,000 by the king."},
        {"id": "b", "human_readable_id": 1, "title": "B", "description": "In May 1910 it cost £9."},
    )
    values = pl.concat(normalize_values(entities.lazy()))  # type: ignore[type-var]
    output = write_index(tmp_path, entities=entities, entity_values=values)
    model = IndexStore.open(output)
    query = "SELECT sum(value) AS n FROM entity_values WHERE kind = 'money' AND unit = 'GBP'"
    assert run_sql(model, query, Limits()).rows == [[2009.0]]
    query = "SELECT start_date FROM entity_values WHERE kind = 'date'"
    assert run_sql(model, query, Limits()).rows == [["1910-05-01"]]

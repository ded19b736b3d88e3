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
from tests.fixtures.cases import cases
from tests.fixtures.small_index import table, write_index


def numbers(text: str, language: str = "en") -> list[tuple[str, float, str | None]]:
    return [found[2:] for found in find_numbers(text, language)]


def dates(text: str, language: str = "en") -> list[tuple[str, str]]:
    return [(str(found.first), str(found.last)) for found in find_dates(text, language)]


@cases("text, language, found")
def test_numbers_are_read_as_their_language_writes_them(
    text: str, language: str, found: list[tuple[str, float, str | None]]
) -> None:
    assert [(kind, unit) for kind, _, unit in numbers(text, language)] == [
        (kind, unit) for kind, _, unit in found
    ]
    assert [value for _, value, _ in numbers(text, language)] == pytest.approx(
        [value for _, value, _ in found]
    )


@cases("text, language")
def test_what_is_no_number_or_could_be_two_is_left_out(text: str, language: str) -> None:
    assert numbers(text, language) == []


@cases("text, found")
def test_dates_are_spans_of_days(text: str, found: list[list[str]]) -> None:
    assert [[*span] for span in dates(text)] == found


@cases("text")
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

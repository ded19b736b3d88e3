"""Entities and relationships read from replies of many forms."""

from typing import Any

import pytest

from graphrag_index.extraction.graph_reply import (
    FoundEntity,
    FoundRecords,
    read_records,
    read_strength,
)
from graphrag_index.llm.request import ReplyError

ADA, BEN = FoundEntity("Ada", "person", "A."), FoundEntity("Ben")


@pytest.mark.parametrize(
    "data",
    [
        {"Entities": [{"Name": "Ada", "TYPE": "person", "Description": "A."}, "Ben"]},
        {"entities": {"Ada": {"type": "person", "description": "A."}, "Ben": {}}, "extra": 1},
        {"entities": [["Ada", "person", "A."], ["Ben"]], "relationships": []},
        {"result": {"nodes": [{"title": '"Ada"', "type": ["person"], "description": "A."}, "Ben"]}},
        [{"kind": "entity", "name": "Ada", "category": "person", "desc": "A."}, {"name": "Ben"}],
        [["entity", "Ada", "person", "A."], ["entity", "Ben"]],
        [{"type": "entity", "name": "Ada", "entity_type": "person", "description": "A."}, "Ben"],
        [{"entities": [["Ada", "person", "A."]]}, {"entities": ["Ben"], "relationships": None}],
    ],
)
def test_entities_are_read_in_many_forms(data: Any) -> None:
    assert read_records(data) == (FoundRecords((ADA, BEN)), 0)


@pytest.mark.parametrize(
    "record",
    [
        {
            "Source": "Ada",
            "Target": "Ben",
            "type": "knows",
            "description": "K.",
            "strength": "8/10",
        },
        {"from": {"name": "Ada"}, "to": "Ben", "relation": "knows", "desc": "K.", "weight": "high"},
        ["Ada", "Ben", "knows", "K.", 8],
        ["relationship", "Ada", "Ben", "knows", "K.", 0.8],
    ],
)
def test_relationships_are_read_in_many_forms(record: Any) -> None:
    found, n_bad = read_records({"entities": ["Ada", "Ben"], "relationships": [record]})
    assert found.relationships == (("Ada", "Ben", "knows", "K.", 8.0),)
    assert n_bad == 0


def test_lists_of_three_are_triples_unless_two_names_come_first() -> None:
    records = [["Ada", "knows", "Ben"], ["Ada", "Ben", "They met."], ["Ada", "Ben", "It.", "9"]]
    found, _ = read_records({"entities": ["Ada", "Ben"], "relationships": records})
    assert [row[:4] for row in found.relationships] == [
        ("Ada", "Ben", "knows", ""),
        ("Ada", "Ben", "", "They met."),
        ("Ada", "Ben", "", "It."),
    ]


def test_a_type_that_never_ends_is_none() -> None:
    found, n_bad = read_records({"entities": [{"name": "Ada", "type": "person " * 5_000}]})
    assert (found, n_bad) == (FoundRecords((FoundEntity("Ada"),)), 0)


def test_a_bad_record_is_dropped_and_counted() -> None:
    bad: list[Any] = [None, 7, {}, {"name": None}, {"name": "..."}, [], "x" * 500]
    links = [None, {"source": "Ada"}, {"source": "Ada", "target": "ADA"}, ["Ada"]]
    found, n_bad = read_records({"entities": ["Ada", *bad], "relationships": links})
    assert found == FoundRecords((FoundEntity("Ada"),))
    assert n_bad == len(bad) + len(links)


@pytest.mark.parametrize(
    "data", [{"error": "no"}, {}, "text", 3, None, {"entities": [{}, None]}, {"entities": 5}]
)
def test_what_is_no_extraction_is_an_error(data: Any) -> None:
    with pytest.raises(ReplyError):
        read_records(data)


def test_strengths_are_read_as_written() -> None:
    values = [7, "7", "8/10", "80 %", 0.8, "high", "weak", "?", None, True, 99, -3, float("nan")]
    assert [read_strength(value) for value in values] == [
        *(7.0, 7.0, 8.0, 8.0, 8.0, 8.0, 2.0, 5.0, 5.0, 5.0, 10.0, 3.0, 5.0),
    ]

"""Answers from the rows of a table, whose rows may stand in several text units."""

from pathlib import Path

import pytest

import graphrag_query
from graphrag_index.schema.settings.project_settings import init_project
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from tests.conftest import run_project

LOANS = """# Loans

| Item | Category | Site | Borrower | Due | Price EUR |
|---|---|---|---|---|---|
| Laser level L20 | Survey | Ghent | Ines Moreau | 2024-05-02 | 420 |
| Total station TS7 | Survey | Ghent | Pavel Novak | 2024-05-17 | 8900 |
| Drone Mavic 3 | Camera | Antwerp | Ines Moreau | 2024-04-11 | 2100 |
| Thermal camera E8 | Camera | Antwerp | Lotte Claes | 2024-06-03 | 3150 |
| Angle grinder G5 | Power tool | Bruges | Bram Peeters | 2024-04-20 | 140 |
| Hammer drill H2 | Power tool | Bruges | Lotte Claes | 2024-04-29 | 260 |
| Core drill C9 | Power tool | Ghent | Bram Peeters | 2024-05-09 | 1780 |
| Generator 5 kVA | Power | Bruges | Lotte Claes | 2024-05-30 | 1340 |
| Light mast LM1 | Power | Antwerp | Bram Peeters | 2024-06-20 | 3600 |
"""
STATIONS = """| Station | Operator | Height m | Built |
|---|---|---|---|
| Holm Reef | Norwest Marine | 41 | 1887 |
| Grey Tooth | Coast Trust | 53 | 1871 |
| Old Pier | Port of Lysne | 12 | 1956 |
"""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Index:
    project: Path = tmp_path_factory.mktemp("tables")
    init_project(project)
    (project / "input/loans.md").write_text(LOANS, encoding="utf-8")
    (project / "input/stations.md").write_text(STATIONS, encoding="utf-8")
    run_project(project)
    return graphrag_query.open(project / "output")


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Which items are in Antwerp?", "Drone Mavic 3|Thermal camera E8|Light mast LM1"),
        ("What did Ines Moreau borrow?", "Laser level L20|Drone Mavic 3"),
        ("Which items in Ghent are surveys?", "Laser level L20|Total station TS7"),
        # "Power" is another category.
        ("Which items are power tools?", "Angle grinder G5|Hammer drill H2|Core drill C9"),
    ],
)
def test_the_rows_with_a_value_are_listed(tables: Index, question: str, names: str) -> None:
    lines = [f"- {name} [{number}]" for number, name in enumerate(names.split("|"), 1)]
    assert tables.search("local", question).text == "\n".join(lines)


def test_the_rows_with_a_value_are_counted(tables: Index) -> None:
    answer = tables.search("local", "How many items did Lotte Claes borrow?")
    assert answer.text.startswith("3:\n- Thermal camera E8 [1]")
    assert [citation.quote for citation in answer.citations] == ["Lotte Claes"] * 3


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which item is the most expensive?", "Total station TS7 — Price EUR: 8900 [1]"),
        ("What is the cheapest item?", "Angle grinder G5 — Price EUR: 140 [1]"),
        ("Which item is due first?", "Drone Mavic 3 — Due: 2024-04-11 [1]"),
        ("Which station is the tallest?", "Grey Tooth — Height m: 53 [1]"),
        ("Which station is the oldest?", "Grey Tooth — Built: 1871 [1]"),
        ("Which is older, Holm Reef or Old Pier?", "Holm Reef — Built: 1887 [1]"),
    ],
)
def test_the_row_with_the_most_is_named(tables: Index, question: str, expected: str) -> None:
    assert tables.search("local", question).text == expected


@pytest.mark.parametrize(
    "question",
    [
        # No column says what is broken, or stolen.
        "Which items in Ghent are broken?",
        "How many items did Lotte Claes steal?",
        "Which item is the heaviest?",
    ],
)
def test_rows_answer_nothing_that_no_column_says(tables: Index, question: str) -> None:
    answer = tables.search("local", question)
    assert "- " not in answer.text
    assert " — " not in answer.text


def test_the_names_of_the_columns_are_no_answer(tables: Index) -> None:
    answer = tables.search("local", "Which site and borrower has the crane?")
    assert answer.outcome is Outcome.NO_EVIDENCE or "| Item" not in answer.text

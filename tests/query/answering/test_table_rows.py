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
RANGES = """# Mountains

| Mountain | Range | Height (m) | Prominence (m) |
|---|---|---|---|
| Arkel | North | 1,850 | 900 |
| Borum | South | 2,400 | |
| Cadur | North | 900 | n/a |

# Lakes

| Lake | Range | Temperature | Version |
|---|---|---|---|
| Ilm | North | 5 | 1.2.3 |
| Jor | South | −12 | 1.10.0 |
| Kess | North | 4 | 10.0.0.1 |
"""
TOWNS = """# Gemeinden

| Gemeinde | Kanton | Einwohner |
|---|---|---|
| Adorf | Uri | 1.200 |
| Bedorf | Uri | 950 |
| Cedorf | Schwyz | 12.400 |
| Dedorf | Schwyz | 1.100.000 |
"""
TEAMS = """# Teams 2023

| Team | Points |
|---|---|
| Reds | 40 |
| Blues | 60 |

# Teams 2024

| Team | Points |
|---|---|
| Reds | 50 |
| Blues | 70 |
"""
STAFF = """# Staff

| Name | Born | Manager |
|---|---|---|
| Ann Lee | 1980 | Bob Tan |
| Bob Tan | 1975 | Cleo Ray |
| Bob Tan Senior | 1950 | Cleo Ray |
"""
BOXES = "# Boxes\n\n| Box | Shelf |\n|---|---|\n" + "".join(
    f"| Box {number} | {'Upper' if number <= 34 else 'Lower'} |\n" for number in range(1, 41)
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Index:
    project: Path = tmp_path_factory.mktemp("tables")
    init_project(project)
    (project / "input/loans.md").write_text(LOANS, encoding="utf-8")
    (project / "input/stations.md").write_text(STATIONS, encoding="utf-8")
    for name, text in (
        ("staff", STAFF),
        ("ranges", RANGES),
        ("towns", TOWNS),
        ("boxes", BOXES),
        ("teams", TEAMS),
    ):
        (project / f"input/{name}.md").write_text(text, encoding="utf-8")
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
        # The mountains stand in another table of the document.
        ("Which lakes are in the North?", "Ilm|Kess"),
        ("Welche Gemeinden sind in Uri?", "Adorf|Bedorf"),
        # Another column than the first one has what is asked for.
        ("Which borrowers are in Antwerp?", "Ines Moreau|Lotte Claes|Bram Peeters"),
        ("Who borrowed in Antwerp?", "Ines Moreau|Lotte Claes|Bram Peeters"),
    ],
)
def test_the_rows_with_a_value_are_listed(tables: Index, question: str, names: str) -> None:
    lines = [f"- {name} [{number}]" for number, name in enumerate(names.split("|"), 1)]
    assert tables.search("local", question).text == "\n".join(lines)


def test_the_rows_with_a_value_are_counted(tables: Index) -> None:
    answer = tables.search("local", "How many items did Lotte Claes borrow?")
    assert answer.text.startswith("3:\n- Thermal camera E8 [1]")
    assert [citation.quote for citation in answer.citations] == ["Lotte Claes"] * 3


def test_all_rows_are_counted_and_a_cut_list_says_so(tables: Index) -> None:
    answer = tables.search("local", "How many boxes are on the upper shelf?")
    assert answer.text.startswith("34:\n- Box 1 [1]")
    assert answer.text.endswith("- Box 30 [30]\n- and 4 more")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which item is the most expensive?", "Total station TS7 — Price EUR: 8900 [1]"),
        ("What is the cheapest item?", "Angle grinder G5 — Price EUR: 140 [1]"),
        ("Which item is due first?", "Drone Mavic 3 — Due: 2024-04-11 [1]"),
        ("Which station is the tallest?", "Grey Tooth — Height m: 53 [1]"),
        ("Which station is the oldest?", "Grey Tooth — Built: 1871 [1]"),
        ("Which is older, Holm Reef or Old Pier?", "Holm Reef — Built: 1887 [1]"),
        ("Who is older, Holm Reef or Old Pier?", "Holm Reef — Built: 1887 [1]"),
        ("Who is older, Ann Lee or Bob Tan?", "Bob Tan — Born: 1975 [1]"),
        ("Who is younger, Ann Lee or Bob Tan Senior?", "Ann Lee — Born: 1980 [1]"),
        # Only rows with the values of the question are compared.
        ("Which item in Ghent is the cheapest?", "Laser level L20 — Price EUR: 420 [1]"),
        ("Which mountain is the highest?", "Borum — Height (m): 2,400 [1]"),
        ("Which lake has the lowest temperature?", "Jor — Temperature: −12 [1]"),
        ("Welche Gemeinde ist die größte?", "Dedorf — Einwohner: 1.100.000 [1]"),
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
        # No column has lengths, or the date of a loan.
        "Which item is the longest?",
        "Which item was borrowed first?",
        # Versions are no numbers, and one prominence cannot be read.
        "Which lake has the highest version?",
        "Which mountain has the lowest prominence?",
        # A denial, a bound, a rank or another restriction.
        "Which items are not in Antwerp?",
        "Which items are in Antwerp except cameras?",
        "Which items are only in Antwerp?",
        "Which items are due by 2024-05-02?",
        "Which mountains are higher than 900?",
        "Which mountain is the second highest?",
        "Which new item is the cheapest?",
        # The rows are no persons, and no prices.
        "Who is in Antwerp?",
        "What is the price of the surveys?",
        "Who has the cheapest item?",
        "Is the cheapest item in Ghent?",
        # Two tables answer differently.
        "Which team has the most points?",
    ],
)
def test_rows_answer_nothing_with_another_word(tables: Index, question: str) -> None:
    answer = tables.search("local", question)
    assert "- " not in answer.text
    assert " — " not in answer.text


def test_the_names_of_the_columns_are_no_answer(tables: Index) -> None:
    answer = tables.search("local", "Which site and borrower has the crane?")
    assert answer.outcome is Outcome.NO_EVIDENCE or "| Item" not in answer.text
    answer = tables.search("local", "Which item was borrowed first?")
    assert "| Item" not in answer.text


def test_a_refusal_names_no_language_if_that_of_most_documents_is_unknown(tables: Index) -> None:
    answer = tables.search("local", "Which lake is the heaviest?")
    assert answer.text == "No passage that was read answers this."

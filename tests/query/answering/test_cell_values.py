"""Numbers and dates that are read from cells of tables."""

import pytest

from graphrag_query.answering.cell_values import find_number, read_dates, read_numbers


@pytest.mark.parametrize(
    ("cells", "code", "numbers"),
    [
        ("1,850|2,400|900", "en", [1850, 2400, 900]),
        ("1.200|950|1.100.000", "en", [1200, 950, 1100000]),
        ("1.200|950", "de", [1200, 950]),
        # 1.2 or 1200: German cells in a question in English.
        ("1.200|950", "en", []),
        ("1.250|2.500", "en", [1.25, 2.5]),
        ("12,5|1.000,25", "en", [12.5, 1000.25]),
        ("−12|+4|1 000", "en", [-12, 4, 1000]),
        ("1.2.3|2", "en", []),
        ("10.0.0.1|2", "en", []),
        ("7 km|2", "en", []),
    ],
)
def test_numbers_are_read_if_their_order_is_certain(
    cells: str, code: str, numbers: list[float]
) -> None:
    assert read_numbers(cells.split("|"), code) == numbers


def test_dates_of_one_precision_are_read() -> None:
    assert read_dates(["2024-05-02", "1887-01-31"]) == [20240502, 18870131]
    assert read_dates(["1871", "c. 1880"]) == []
    assert read_dates(["2024", "2024-05-02"]) == []


@pytest.mark.parametrize(
    ("text", "number"), [("1,200 men", 1200), ("1.200", 1200), ("2,5 km", 2.5), ("none", None)]
)
def test_the_first_number_of_a_text_is_found(text: str, number: float | None) -> None:
    assert find_number(text) == number

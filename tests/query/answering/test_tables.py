"""Tables in texts, and the places of their cells."""

from graphrag_query.answering.tables import find_tables


def test_empty_cells_keep_their_columns() -> None:
    text = "| A || C |\n|---|---|---|\n| 1 | | 3 |\n|| 2 | a \\| b |\n"
    [table] = find_tables(text)
    assert table.header == ["A", "", "C"]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["1", "", "3"],
        ["", "2", "a \\| b"],
    ]
    assert all(text[cell.start :].startswith(cell.text) for row in table.rows for cell in row)


def test_empty_cells_between_tabs_keep_their_columns() -> None:
    [table] = find_tables("Fruit\tColour\tStock\nPlum\tblue\t4\nFig\t\t20\n")
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["Plum", "blue", "4"],
        ["Fig", "", "20"],
    ]

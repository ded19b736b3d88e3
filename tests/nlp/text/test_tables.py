from graphrag_nlp.text.tables import find_tables, repeat_header
from tests.fixtures.cases import cases


@cases("text, part, header")
def test_a_text_that_begins_in_a_table_repeats_its_header(
    text: str, part: str, header: str
) -> None:
    assert repeat_header(list(find_tables(text)), text.index(part)) == header


def test_a_line_of_bars_is_no_table_and_two_are_one() -> None:
    for line in ("|" * 20_000, "| cell " * 9_000, "a\t" * 20_000):
        assert not list(find_tables(line))
        assert [(table.start, table.end) for table in find_tables(f"{line}\n{line}")] == [
            (0, 2 * len(line) + 1)
        ]


@cases("text, header, rows")
def test_tables_below_rules_have_the_cells_of_their_columns(
    text: str, header: list[str], rows: list[list[str]]
) -> None:
    for cut in (text, text.rstrip("\n"), f"Pumps of the hall.\n\n{text}\nAfter | it."):
        (table,) = find_tables(cut)
        found = [row.cells for row in table.rows if not row.is_rule]
        assert found == [header, *rows] if header else found == rows
        assert table.header == (1 if header else -1)

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

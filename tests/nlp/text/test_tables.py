from graphrag_nlp.text.tables import find_tables, repeat_header
from tests.fixtures.cases import cases


@cases("text, part, header")
def test_a_text_that_begins_in_a_table_repeats_its_header(
    text: str, part: str, header: str
) -> None:
    assert repeat_header(list(find_tables(text)), text.index(part)) == header

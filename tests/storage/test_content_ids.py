import subprocess
import sys

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.schema.tables import content_id
from graphrag_index.storage.content_ids import content_ids

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ROWS = st.lists(st.tuples(TEXT, st.lists(TEXT)))


@given(TEXT, ROWS, st.integers(0, 3))
def test_each_row_has_the_id_of_its_parts(kind: str, rows: list[tuple[str, list[str]]], first: int):
    frame = pl.DataFrame(rows, {"name": pl.String, "said": pl.List(pl.String)}, orient="row")
    part = frame.slice(first)

    ids = content_ids(kind, part["name"], part["said"])

    assert ids.to_list() == [content_id(kind, name, *said) for name, said in rows[first:]]


def test_no_pandas_is_loaded_for_it() -> None:
    code = (
        "import sys; import polars as pl\n"
        "from graphrag_index.storage.content_ids import content_ids\n"
        "content_ids('a', pl.Series(['b']), pl.Series([['c']]))\n"
        "print('pandas' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout == "False\n"

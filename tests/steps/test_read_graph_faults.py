"""Tables and graphs of a user that cannot be read."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_index.errors import ExitCode, InputError
from tests.fixtures.cases import cases
from tests.fixtures.given_graph import read, write

NODES, EDGES = "id,name\n1,Ada\n2,Bo\n", "source,target,weight\n1,2,3\n"


@cases("files, section, said")
def test_what_cannot_be_read_is_named_with_what_to_do(
    tmp_path: Path, files: dict[str, str], section: dict[str, Any], said: str
) -> None:
    write(tmp_path, **files)
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        read(tmp_path, section)
    assert caught.value.exit_code == ExitCode.WRONG_USE
    assert "\n" not in str(caught.value)


def test_another_encoding_is_named_or_read(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_bytes("source,target\nAda,Bo\nZoë,Bo\n".encode("cp1252"))
    with pytest.raises(
        InputError, match=r"edges\.csv, line 3 is not utf-8: .*read_graph\.encoding"
    ):
        read(tmp_path, {"relationships": "edges.csv"})
    tables = read(tmp_path, {"relationships": "edges.csv", "encoding": "cp1252"})
    assert "Zoë" in tables["extracted_entities"]["title"]
    (tmp_path / "edges.csv").write_bytes("source,target\nZoë,Bo\n".encode("utf-16"))
    with pytest.raises(InputError, match=r"edges\.csv is not utf-8: "):
        read(tmp_path, {"relationships": "edges.csv"})


def test_a_damaged_table_and_one_of_other_types_are_named(tmp_path: Path) -> None:
    path = tmp_path / "edges.parquet"
    pl.DataFrame({"source": ["a"] * 99, "target": ["b"] * 99}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"edges\.parquet is not a complete Parquet file"):
        read(tmp_path, {"relationships": "edges.parquet"})
    pl.DataFrame({"source": [{"a": 1}], "target": ["b"]}).write_parquet(path)
    with pytest.raises(InputError, match="the column 'source' has the type Struct"):
        read(tmp_path, {"relationships": "edges.parquet"})

"""Rows split into partitions: nothing lost or reordered, in memory or in a file."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.storage import partitions
from graphrag_index.storage.partitions import Partitions, hash_partitions

SCHEMA = {"key": pl.Int64, "text": pl.String, "places": pl.List(pl.Int32)}


def make_rows(keys: list[int]) -> pl.DataFrame:
    rows = [(key, None if key == 3 else f"text {key}", [1] * key) for key in keys]
    return pl.DataFrame(rows, SCHEMA, orient="row")


@pytest.mark.parametrize("limit", [0, 100, 10**9])
@given(batches=st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=4))
def test_a_partition_has_its_rows_in_the_order_in_which_they_came(
    tmp_path_factory: pytest.TempPathFactory, limit: int, batches: list[list[int]]
) -> None:
    path = tmp_path_factory.mktemp("parts") / "rows"
    path.write_bytes(b"rows of an interrupted run")
    with pytest.MonkeyPatch.context() as patch, Partitions(4, SCHEMA, path) as found:
        patch.setattr(partitions, "MAX_BUFFERED_BYTES", limit)
        for keys in batches:
            found.append(make_rows(keys), make_rows(keys)["key"].to_numpy() % 4)
        for number in range(4):
            expected = [key for keys in batches for key in keys if key % 4 == number]
            assert found.read(number).equals(make_rows(expected))
        numbers = sorted({key % 4 for keys in batches for key in keys})
        assert [number for number, _ in found] == numbers


def test_few_rows_need_no_file_and_the_file_of_many_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "parts" / "rows"
    rows = pl.DataFrame({"n": range(partitions.MAX_BUFFERED_BYTES // 8)})
    numbers = hash_partitions(rows["n"], 3)
    with Partitions(3, rows.schema, path) as found:
        found.append(rows[1:], numbers[1:])
        assert not path.parent.exists()
        found.append(rows[:1], numbers[:1])
        assert path.stat().st_size > 8 * rows.height
        n_rows = [part.height for _, part in found]
    assert not path.exists()
    assert sum(n_rows) == rows.height
    # A hash spreads the keys evenly.
    assert max(n_rows) < 1.1 * min(n_rows)


def test_equal_keys_are_in_one_partition() -> None:
    keys = pl.Series(["a", "b", None, "a", "b", None])
    numbers = hash_partitions(keys, 1000)
    assert numbers[:3].tolist() == numbers[3:].tolist()
    assert len(set(numbers.tolist())) == 3

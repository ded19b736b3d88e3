"""Parquet: the documents of the records, and the records that are refused."""

from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphrag_index.readers import Document, ReadFailure, read_file
from graphrag_index.schema.settings.step_sections import LoadDocuments
from tests.fixtures.read_documents import read, reasons


class TestParquet:
    def test_values_that_json_lacks_become_text(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        table = pa.table(
            {
                "text": ["Lübeck", None],
                "date": pa.array([datetime(2024, 5, 1)] * 2, pa.timestamp("ns")),
                "day": [date(2024, 5, 2), None],
                "share": [float("nan"), 0.5],
                "tags": [["a"], None],
            }
        )
        pq.write_table(table, path)
        found = list(read_file(path, "a.parquet", LoadDocuments()))
        assert found == [
            Document(
                text="Lübeck",
                title="a.parquet (1)",
                creation_date="2024-05-01",
                raw_data='{"text": "Lübeck", "date": "2024-05-01T00:00:00", '
                '"day": "2024-05-02", "share": null, "tags": ["a"]}',
                place="record 1",
            ),
            ReadFailure("record 2: field 'text' is null"),
        ]

    @pytest.mark.parametrize(
        ("values", "said"),
        [
            (
                [{"body": "x", "n": 1}],
                "has objects in field 'text', not text; set load_documents.text_column "
                "to a field of them: 'text.body', 'text.n'",
            ),
            ([["x"]], "has lists in field 'text', not text"),
        ],
    )
    def test_a_text_column_without_text_is_named_once(
        self, tmp_path: Path, values: list[object], said: str
    ) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"text": values * 9}), path)
        assert list(read_file(path, "a.parquet", LoadDocuments())) == [ReadFailure(said)]

    def test_a_field_of_a_struct_is_named_by_its_path(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"text": [{"body": "x"}]}), path)
        (found,) = read_file(path, "a.parquet", LoadDocuments(text_column="text.body"))
        assert isinstance(found, Document)
        assert found.text == "x"

    def test_a_missing_file_is_not_said_to_be_damaged(self, tmp_path: Path) -> None:
        (unread,) = read_file(tmp_path / "a.parquet", "a.parquet", LoadDocuments())
        assert unread == ReadFailure("cannot be read: No such file or directory")

    def test_a_truncated_file_says_so(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"text": ["a"] * 1000}), path)
        (reason,) = reasons(path, path.read_bytes()[:-20])
        assert reason.startswith("is not a readable Parquet file: ")

    def test_a_damaged_row_group_costs_itself_and_what_follows(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        column = [f"text {i}" for i in range(600)]
        pq.write_table(
            pa.table({"text": column}), path, row_group_size=300, write_page_checksum=True
        )
        offset = pq.ParquetFile(path).metadata.row_group(1).column(0).dictionary_page_offset
        data = bytearray(path.read_bytes())
        data[offset : offset + 40] = b"\xff" * 40
        found = read(path, bytes(data))
        assert [d.text for d in found if isinstance(d, Document)] == column[: len(found) - 1]
        assert len(found) > 256
        assert isinstance(found[-1], ReadFailure)

    def test_a_file_without_the_text_column_is_named_once(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"content": ["a", "b"]}), path)
        assert list(read_file(path, "a.parquet", LoadDocuments())) == [
            ReadFailure(
                "has no field 'text'; its fields are content. "
                "Set load_documents.text_column to one of them, or to '*' for all"
            )
        ]

"""CSV, JSON and Parquet: the documents of their records, and the records that are refused."""

import io
import json
import tracemalloc
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.readers import Document, ReadFailure, read_file, record_files
from graphrag_index.readers.document import UnreadableFile
from graphrag_index.readers.record_files import JsonStream
from graphrag_index.schema.settings.step_sections import LoadDocuments
from tests.fixtures.cases import cases
from tests.fixtures.read_documents import read, read_one, reasons, texts


class TestCsv:
    def test_each_row_is_a_document_with_its_record(self, tmp_path: Path) -> None:
        found = read(
            tmp_path / "a.csv",
            'id,title,text,date,tag\r\n1,One,"a ""b"",\r\nc",2024-05-01,x\r\n\r\n2,,d,,\r\n',
            id_column="id",
            metadata_columns=["tag"],
        )
        raw = {"id": "1", "title": "One", "text": 'a "b",\r\nc', "date": "2024-05-01", "tag": "x"}
        assert found == [
            Document(
                text='a "b",\nc',
                title="One",
                creation_date="2024-05-01",
                raw_data=json.dumps(raw),
                metadata='{"tag": "x"}',
                id="1",
                place="record 1",
            ),
            Document(
                text="d",
                title="a.csv (2)",
                raw_data='{"id": "2", "title": "", "text": "d", "date": "", "tag": ""}',
                metadata='{"tag": ""}',
                id="2",
                place="record 2",
            ),
        ]

    @cases("name, content")
    def test_the_header_tells_what_parts_the_fields(
        self, tmp_path: Path, name: str, content: str
    ) -> None:
        (found,) = read(tmp_path / name, content)
        assert isinstance(found, Document)
        # The only record of a file is called as the file.
        assert (found.text, found.title) == ("x, y", name)
        assert found.raw_data == '{"n": "1", "text": "x, y"}'

    def test_a_broken_row_costs_itself(self, tmp_path: Path) -> None:
        content = 'n,text\n1,a\n2,b,c\n3\n4,"d" e\n5,f\n6,\n7,"open\n'
        assert texts(tmp_path / "a.csv", content) == ["a", "f"]
        assert reasons(tmp_path / "a.csv", content) == [
            "record 2 has 3 fields, the header has 2",
            "record 3 has 1 fields, the header has 2",
            "record 4 (line 5) is not valid CSV: ',' expected after '\"'",
            "record 6: field 'text' has no text",
            "record 7 (line 8) is not valid CSV: "
            "a quotation mark is not closed, all after it is one field",
        ]

    def test_a_mark_that_is_never_closed_is_found_by_its_line(self, tmp_path: Path) -> None:
        content = 'sep=,\nn,text\n1,"a\nb"\n2,"c\n' + "3,d\n" * 100
        assert texts(tmp_path / "a.csv", content) == ["a\nb"]
        assert reasons(tmp_path / "a.csv", content) == [
            "record 2 (line 5) is not valid CSV: "
            "a quotation mark is not closed, all after it is one field"
        ]

    @pytest.mark.parametrize("column", ["text", "title", "tag"])
    def test_a_column_that_is_used_stands_there_once(self, tmp_path: Path, column: str) -> None:
        header = f"text,title,tag,{column}"
        assert reasons(tmp_path / "a.csv", f"{header}\na,b,c,d\n", metadata_columns=["tag"]) == [
            f"has 2 columns {column!r}: rename all but the one to read"
        ]

    def test_other_columns_of_one_name_are_numbered(self, tmp_path: Path) -> None:
        found = read_one(tmp_path / "a.csv", "text,,n,n,n (2),n,\na,1,2,3,4,5,6\n")
        assert found.raw_data == (
            '{"text": "a", "": "1", "n": "2", "n (2)": "3", "n (2) (2)": "4", "n (3)": "5", '
            '" (2)": "6"}'
        )

    def test_what_parts_fields_but_is_not_understood_is_named(self, tmp_path: Path) -> None:
        assert reasons(tmp_path / "a.csv", "id^text\n1^a\n") == [
            "has a header of one field, 'id^text': fields are separated by a comma, a semicolon, "
            "a tab or |, or by the character that a first line such as sep=: names"
        ]
        assert reasons(tmp_path / "b.csv", "id|Text\n1|a\n") == [
            "has no field 'text'; did you mean 'Text'? Set load_documents.text_column"
        ]

    def test_a_mark_that_swallows_too_much_ends_the_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert record_files._MAX_FIELD_CHARACTERS == 1 << 27
        monkeypatch.setattr(record_files, "_MAX_FIELD_CHARACTERS", 1 << 20)
        rows = "1,some text of a row that the open quotation mark swallows, with commas,\n" * 20_000
        assert reasons(tmp_path / "a.csv", f'n,text\n0,"open\n{rows}') == [
            "has a field of more than 1,048,576 characters in record 1 (line 2): "
            "is its quotation mark closed? The rest is not read"
        ]

    def test_a_row_in_another_encoding_costs_itself(self, tmp_path: Path) -> None:
        rows = [f"Günter Graß {i}, Lübeck".encode() for i in range(9)]
        content = b"text\n" + b"\n".join(b'"' + row + b'"' for row in rows) + b"\nM\xfcnchen\n"
        assert len(texts(tmp_path / "a.csv", content)) == 9
        assert reasons(tmp_path / "a.csv", content) == [
            "record 10 holds bytes that are not in the file's encoding"
        ]

    def test_a_field_may_be_very_long(self, tmp_path: Path) -> None:
        text = "x" * 1_000_000
        assert texts(tmp_path / "a.csv", f"n,text\n1,{text}\n") == [text]

    def test_a_file_without_the_text_column_is_named_once(self, tmp_path: Path) -> None:
        assert reasons(tmp_path / "a.csv", "id,Texts\n1,a\n2,b\n") == [
            "has no field 'text'; did you mean 'Texts'? Set load_documents.text_column"
        ]
        assert reasons(tmp_path / "b.csv", "id,body\n1,a\n2,b\n") == [
            "has no field 'text'; its fields are id, body. "
            "Set load_documents.text_column to one of them, or to '*' for all, "
            "and title_column to the one that names a record"
        ]

    def test_all_fields_of_a_record_are_its_text(self, tmp_path: Path) -> None:
        rows = "Item;Site;Price\nDrill;Ghent;140\nLaser;;420\n"
        assert texts(tmp_path / "a.csv", rows, text_column="*") == [
            "Item: Drill\nSite: Ghent\nPrice: 140",
            "Item: Laser\nPrice: 420",
        ]
        nested = (
            '[{"item": {"name": "Drill"}, "sites": ["Ghent", "Bruges"], "price": 1.5, "x": null}]'
        )
        assert texts(tmp_path / "b.json", nested, text_column="*") == [
            "item.name: Drill\nsites: Ghent, Bruges\nprice: 1.5"
        ]
        assert reasons(tmp_path / "c.json", '[{"x": null}]', text_column="*") == [
            "record 1: field '*' has no text"
        ]

    @pytest.mark.parametrize("content", ["", "n,text\n", "\n"])
    def test_a_file_without_rows_says_so(self, tmp_path: Path, content: str) -> None:
        assert reasons(tmp_path / "a.csv", content) == ["has no records"]


class TestJson:
    def test_a_file_is_one_record_or_a_list_of_them(self, tmp_path: Path) -> None:
        one = read_one(tmp_path / "a.json", '{"text": "a", "n": 1}')
        assert (one.text, one.title, one.raw_data) == ("a", "a.json", '{"text": "a", "n": 1}')
        both = read(tmp_path / "b.json", '[{"text": "a"}, {"text": "b", "title": "B"}]')
        assert [(d.text, d.title) for d in both if isinstance(d, Document)] == [
            ("a", "b.json (1)"),
            ("b", "B"),
        ]

    def test_json_lines_are_read_under_either_name(self, tmp_path: Path) -> None:
        content = '{"text": "a"}\n\n{"text": "b"}\n'
        assert texts(tmp_path / "a.jsonl", content) == ["a", "b"]
        assert texts(tmp_path / "a.ndjson", content) == ["a", "b"]
        assert texts(tmp_path / "a.json", content) == ["a", "b"]

    def test_an_object_of_records_is_an_error(self, tmp_path: Path) -> None:
        assert reasons(tmp_path / "a.json", '{"1": {"text": "a"}, "2": {"text": "b"}}') == [
            "holds one JSON object: write a list of records, or one a line in a .jsonl file"
        ]

    def test_a_broken_line_costs_itself(self, tmp_path: Path) -> None:
        content = '{"text": "a"}\n{"text": \n[1]\n{"text": "b"}\n{"text": ' + "1" * 5000 + "}\n"
        assert texts(tmp_path / "a.jsonl", content) == ["a", "b"]
        found = reasons(tmp_path / "a.jsonl", content)
        assert found[:2] == [
            "line 2 is not valid JSON: Expecting value, character 11",
            "line 3 is a list, not an object",
        ]
        assert found[2].startswith("line 5 is not valid JSON: Exceeds the limit")

    def test_a_broken_list_keeps_what_stands_before_the_break(self, tmp_path: Path) -> None:
        content = '[{"text": "a"}, {"text": "b" "c"}, {"text": "d"}]'
        assert texts(tmp_path / "a.json", content) == ["a"]
        assert reasons(tmp_path / "a.json", content) == [
            "is not valid JSON in or after record 2 (character 30): "
            "Expecting ',' delimiter; the rest is not read"
        ]

    def test_brackets_thousands_deep_cost_their_record(self, tmp_path: Path) -> None:
        deep = '{"text": "a"}\n{"text": ' + "[" * 100_000 + "\n"
        assert texts(tmp_path / "a.jsonl", deep) == ["a"]
        assert len(reasons(tmp_path / "a.jsonl", deep)) == 1

    def test_numbers_become_text_and_other_values_do_not(self, tmp_path: Path) -> None:
        content = "\n".join(
            f'{{"text": {value}}}' for value in ["12", "1.5", "null", "true", "[1]", "{}", '" "']
        )
        assert texts(tmp_path / "a.jsonl", content) == ["12", "1.5"]
        assert reasons(tmp_path / "a.jsonl", content) == [
            "line 3: field 'text' is null",
            "line 4: field 'text' is true or false, not text",
            "line 5: field 'text' is a list, not text",
            "line 6: field 'text' is an object, not text",
            "line 7: field 'text' has no text",
        ]

    def test_a_record_without_the_text_names_its_fields(self, tmp_path: Path) -> None:
        content = '[{"id": 1, "body": "x"}, {"text": "a"}, {"id": 2}]'
        assert texts(tmp_path / "a.json", content) == ["a"]
        assert reasons(tmp_path / "a.json", content) == [
            "record 1 has no field 'text'; its fields are id, body",
            "record 3 has no field 'text'; its fields are id",
        ]

    def test_reasons_stay_short(self, tmp_path: Path) -> None:
        wide = {f"field number {i} with a long name " + "x" * 40: i for i in range(100)}
        (reason,) = reasons(tmp_path / "a.json", json.dumps([wide, wide]))
        assert reason.startswith("has no field 'text'")
        assert len(reason) < 300

    def test_half_a_character_becomes_the_replacement_character(self, tmp_path: Path) -> None:
        found = read_one(
            tmp_path / "a.json", r'{"text": "a\ud83d b\ud83d\ude42", "title": "\udc00", "n": NaN}'
        )
        assert (found.text, found.title) == ("a\ufffd b🙂", "\ufffd")
        assert found.raw_data == '{"text": "a\ufffd b🙂", "title": "\ufffd", "n": null}'

    def test_fields_of_nested_records_are_named_by_a_path(self, tmp_path: Path) -> None:
        found = read_one(
            tmp_path / "a.json",
            '{"a": {"body": "x", "n": {"t": "T"}}, "b.c": 1}',
            text_column="a.body",
            title_column="a.n.t",
            metadata_columns=["b.c"],
        )
        assert (found.text, found.title, found.metadata) == ("x", "T", '{"b.c": 1}')

    def test_a_record_without_its_id_is_not_read(self, tmp_path: Path) -> None:
        content = '[{"text": "a", "id": 7}, {"text": "b"}, {"text": "c", "id": null}]'
        found = read(tmp_path / "a.json", content, id_column="id")
        assert [item.id for item in found if isinstance(item, Document)] == ["7"]
        assert [item.reason for item in found if isinstance(item, ReadFailure)] == [
            "record 2 has no id in field 'id'",
            "record 3 has no id in field 'id'",
        ]

    @given(
        st.lists(
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.text(),
                lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
                max_leaves=8,
            )
        ),
        st.integers(1, 9),
    )
    def test_a_list_read_in_pieces_is_the_list(self, values: list[object], size: int) -> None:
        class Dripping(io.StringIO):
            """Gives less than it is asked for, as a stream may."""

            def read(self, _: int | None = -1, /) -> str:
                return super().read(size)

        source = json.dumps(values, indent=1, ensure_ascii=False)
        assert [value for value, _ in JsonStream(Dripping(source))] == values

    @pytest.mark.parametrize("source", ["[1, 2", "[1 2]", "[1] 2", "[1,]", '["a', "[tru]", '{"a"'])
    def test_what_is_no_json_is_refused(self, source: str) -> None:
        with pytest.raises(UnreadableFile, match="is not valid JSON"):
            list(JsonStream(io.StringIO(source)))


RECORD = {"text": "word " * 60, "n": 1}


def write_records(path: Path, n: int) -> None:
    """Write equal records of 320 characters."""
    line = json.dumps(RECORD)
    with path.open("w", encoding="utf-8", newline="") as stream:
        match path.suffix:
            case ".json":
                stream.write("[" + ",\n".join([line] * n) + "]")
            case ".jsonl":
                stream.write((line + "\n") * n)
            case ".csv":
                stream.write("n,text\n" + f"1,{RECORD['text']}\n" * n)


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".csv"])
def test_a_large_file_of_records_is_never_in_memory_at_once(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    write_records(path, 6_000)
    size = path.stat().st_size
    found: Iterator[Document | ReadFailure] = read_file(path, path.name, LoadDocuments())
    tracemalloc.start()
    try:
        assert sum(isinstance(item, Document) for item in found) == 6_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size / 3


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

    @cases("values, said")
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

    def test_a_text_that_is_not_valid_ends_the_file_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        broken = pa.array([b"One.", b"Two \xff\xfe."]).view(pa.string())
        pq.write_table(pa.table({"text": broken}), path)
        (reason,) = reasons(path, path.read_bytes())
        assert reason.startswith("is not a readable Parquet file: ")

    def test_a_file_without_the_text_column_is_named_once(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"content": ["a", "b"]}), path)
        assert list(read_file(path, "a.parquet", LoadDocuments())) == [
            ReadFailure(
                "has no field 'text'; its fields are content. "
                "Set load_documents.text_column to one of them, or to '*' for all, "
                "and title_column to the one that names a record"
            )
        ]

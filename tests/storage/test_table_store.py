"""The output folder: what a table's file looks like, and what a reader finds when."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal

from graphrag_index.errors import TableError
from graphrag_index.schema.tables import TABLES, Table
from graphrag_index.storage.atomic import write_json
from graphrag_index.storage.table_store import Previous, TableStore
from graphrag_index.storage.table_writer import ROW_GROUP_SIZE, cast_to_table
from graphrag_index.storage.versions import StepRecord, StoredTable, Version, move_pointer

UNREAD = TABLES["unread_files"]
PAIRS = pl.DataFrame({"entity": [0, 3], "claim": [5, 4]}, TABLES["claims_of_entities"].schema)
BROKEN = pl.DataFrame({"path": ["a.md", "b.md"], "reason": ["is empty", "is no text"]})


def write(
    store: TableStore, number: int, frame: pl.DataFrame, table: Table = UNREAD, stem: str = ""
) -> StoredTable:
    with store.writer(number, table, stem or table.name) as writer:
        writer.append(frame)
    return writer.stored


def version(number: int, tables: Mapping[str, StoredTable]) -> Version:
    step = StepRecord("only_step", f"key {number}", tables, 1.5, 1.25, 1_000_000)
    return Version(number, "small", "0.1.0", (step,), {"output": "output"})


def files(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}


class TestWriting:
    def test_a_table_is_read_back_as_it_was_written(self, tmp_path: Path) -> None:
        store = TableStore(tmp_path)
        stored = write(store, 3, BROKEN)
        assert stored.rows == 2
        assert stored.file == "versions/3/unread_files.parquet"
        assert stored.n_bytes == (tmp_path / stored.file).stat().st_size
        assert_frame_equal(store.scan("unread_files", stored).collect(), BROKEN)

    def test_brackets_in_the_path_are_no_pattern(self, tmp_path: Path) -> None:
        store = TableStore(tmp_path / "docs [old]*" / "output")
        for frame, table in ((BROKEN, UNREAD), (PAIRS, TABLES["claims_of_entities"])):
            stored = write(store, 1, frame, table)
            assert_frame_equal(store.scan(table.name, stored).collect(), frame)

    def test_batches_follow_each_other(self, tmp_path: Path) -> None:
        store = TableStore(tmp_path)
        with store.writer(1, UNREAD, "unread_files") as writer:
            writer.append(BROKEN)
            writer.append(UNREAD.empty())
            writer.append(BROKEN)
        found = store.scan("unread_files", writer.stored).collect()
        assert writer.stored.rows == 4
        assert_frame_equal(found, pl.concat([BROKEN, BROKEN]))

    @pytest.mark.parametrize("name", [n for n, t in TABLES.items() if t.kind != "vectors"])
    def test_every_table_can_be_empty_and_keeps_its_types(self, tmp_path: Path, name: str) -> None:
        store = TableStore(tmp_path)
        stored = write(store, 1, TABLES[name].empty(), TABLES[name])
        assert store.scan(name, stored).collect_schema() == TABLES[name].schema
        assert stored.rows == 0

    def test_the_file_has_large_strings_and_lists_of_elements(self, tmp_path: Path) -> None:
        store = TableStore(tmp_path)
        stored = write(store, 1, TABLES["entities"].empty(), TABLES["entities"])
        schema = pq.read_schema(tmp_path / str(stored.file))
        assert schema.field("title").type == pa.large_string()
        assert schema.field("degree").type == pa.int64()
        assert schema.field("x").type == pa.float64()
        for name in ("text_unit_ids", "aliases"):
            child = schema.field(name).type.value_field
            assert (child.name, child.type) == ("element", pa.large_string())
        passage = schema.field("evidence").type.value_type
        assert [part.name for part in passage] == ["document_id", "start_char", "end_char"]

    def test_only_text_has_a_dictionary_in_the_file(self, tmp_path: Path) -> None:
        place = {"document_id": "d", "start_char": 1, "end_char": 2}
        units = {"text_unit": [0], "entity": [1], "start_char": [1], "end_char": [2]}
        entities = {
            **{name: [None] for name in TABLES["extracted_entities"].columns},
            "human_readable_id": [0],
            "title": ["Tom"],
            "descriptions": [["A sailor."]],
            "evidence": [[place]],
        }
        with_one, without = set(), set()
        for name, rows in (("mentions", units), ("extracted_entities", entities)):
            frame = pl.DataFrame(rows, TABLES[name].schema)
            stored = write(TableStore(tmp_path), 1, frame, TABLES[name])
            group = pq.ParquetFile(tmp_path / str(stored.file)).metadata.row_group(0)
            for column in (group.column(i) for i in range(group.num_columns)):
                (with_one if column.has_dictionary_page else without).add(column.physical_type)
        assert (with_one, without) == ({"BYTE_ARRAY"}, {"INT32", "INT64"})

    def test_equal_tables_are_equal_bytes_and_have_one_digest(self, tmp_path: Path) -> None:
        first = write(TableStore(tmp_path / "a"), 1, BROKEN)
        second = write(TableStore(tmp_path / "b"), 7, BROKEN)
        third = write(TableStore(tmp_path / "b"), 8, BROKEN.reverse())
        assert first.digest == second.digest != third.digest
        one, two = tmp_path / "a" / str(first.file), tmp_path / "b" / str(second.file)
        assert one.read_bytes() == two.read_bytes()

    def test_a_mapped_table_lies_in_an_arrow_file_that_equal_rows_make_equal(
        self, tmp_path: Path
    ) -> None:
        claims = TABLES["claims_of_entities"]
        first = write(TableStore(tmp_path / "a"), 1, PAIRS, claims)
        second = write(TableStore(tmp_path / "b"), 2, PAIRS, claims)
        assert first.file == "versions/1/claims_of_entities.arrow"
        assert (first.digest, first.n_bytes) == (second.digest, second.n_bytes)
        assert first.n_bytes == (tmp_path / "a" / first.file).stat().st_size
        assert_frame_equal(TableStore(tmp_path / "a").scan("", first).collect(), PAIRS)

    def test_a_failure_while_writing_a_mapped_table_leaves_no_file(self, tmp_path: Path) -> None:
        def write_two_batches() -> None:
            store = TableStore(tmp_path)
            with store.writer(1, TABLES["claims_of_entities"], "claims") as writer:
                writer.append(PAIRS)
                writer.append(PAIRS.drop("claim"))

        with pytest.raises(TableError):
            write_two_batches()
        assert files(tmp_path) == set()

    def test_a_large_batch_is_written_in_row_groups(self, tmp_path: Path) -> None:
        rows = ROW_GROUP_SIZE + 1
        frame = pl.DataFrame({"path": [str(i) for i in range(rows)], "reason": [""] * rows})
        stored = write(TableStore(tmp_path), 1, frame)
        metadata = pq.read_metadata(tmp_path / str(stored.file))
        assert [metadata.row_group(i).num_rows for i in range(2)] == [ROW_GROUP_SIZE, 1]

    def test_columns_are_put_in_order_and_cast(self, tmp_path: Path) -> None:
        mentions = TABLES["extracted_mentions"]
        frame = pl.DataFrame({"end_char": [4], "start_char": [1], "text_unit": [0], "entity": [7]})
        expected = pl.DataFrame([[7], [0], [1], [4]], schema=mentions.schema)
        assert_frame_equal(cast_to_table(frame, mentions), expected)

    @pytest.mark.parametrize(
        ("frame", "said"),
        [
            (
                pl.DataFrame({"path": ["a"], "cause": ["b"]}),
                "The table unread_files must have the columns path, reason; "
                "missing: reason; unknown: cause.",
            ),
            (
                pl.DataFrame({"path": ["a"]}),
                "The table unread_files must have the columns path, reason; missing: reason.",
            ),
        ],
    )
    def test_wrong_columns_are_refused_by_name(self, frame: pl.DataFrame, said: str) -> None:
        with pytest.raises(TableError) as caught:
            cast_to_table(frame, UNREAD)
        assert str(caught.value) == said

    def test_values_of_another_kind_are_refused(self) -> None:
        frame = pl.DataFrame(
            {"entity": ["x"], "text_unit": [0], "start_char": [0], "end_char": [0]}
        )
        with pytest.raises(
            TableError, match="The table extracted_mentions has values of a wrong type: "
        ):
            cast_to_table(frame, TABLES["extracted_mentions"])

    def test_a_failure_while_writing_leaves_no_file(self, tmp_path: Path) -> None:
        store = TableStore(tmp_path)

        def write_two_batches() -> None:
            with store.writer(1, UNREAD, "unread_files") as writer:
                writer.append(BROKEN)
                writer.append(BROKEN.drop("reason"))

        with pytest.raises(TableError):
            write_two_batches()
        assert files(tmp_path) == set()

    def test_a_json_file_is_replaced_whole(self, tmp_path: Path) -> None:
        write_json(tmp_path / "new" / "a.json", {"name": "Łódź", "many": ["x"] * 1000})
        write_json(tmp_path / "new" / "a.json", {"name": "Łódź"})
        text = (tmp_path / "new" / "a.json").read_text(encoding="utf-8")
        assert json.loads(text) == {"name": "Łódź"}
        assert files(tmp_path) == {"new/a.json"}

    def test_a_json_file_that_cannot_be_written_to_its_end_leaves_the_one_before(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "a.json"
        write_json(path, {"a": 1})
        with pytest.raises(TypeError):
            write_json(path, {"a": 2, "b": object()})
        assert json.loads(path.read_text(encoding="utf-8")) == {"a": 1}


class TestReading:
    def test_there_is_no_index_before_the_first_run(self, tmp_path: Path) -> None:
        assert TableStore(tmp_path / "nowhere").read_pointer() is None

    def test_the_pointer_is_read_as_it_was_written(self, tmp_path: Path) -> None:
        store = TableStore(tmp_path)
        written = version(4, {"unread_files": write(store, 4, BROKEN)})
        move_pointer(store.output, written)
        assert store.read_pointer() == written

    def test_of_a_table_that_two_steps_wrote_the_last_counts(self) -> None:
        first, last = StoredTable(1, "a", "1.parquet"), StoredTable(1, "b", "2.parquet")
        steps = (StepRecord("s", "k", {"t": first}), StepRecord("r", "l", {"t": last}))
        assert Version(1, "w", "0", steps).tables == {"t": last}

    @pytest.mark.parametrize(
        "content",
        [b"", b"{", b"[]", b"{}", b"null", b'{"format": 1}', b"\xff\xfe\x00", b'{"format": 1, "v'],
    )
    def test_a_damaged_pointer_is_named_with_the_way_out(
        self, tmp_path: Path, content: bytes
    ) -> None:
        (tmp_path / "index.json").write_bytes(content)
        with pytest.raises(TableError) as caught:
            TableStore(tmp_path).read_pointer()
        assert str(caught.value) == (
            f"{tmp_path / 'index.json'} is damaged: restore it, or delete it and run "
            "`graphrag-index run`, which reuses undamaged files."
        )

    def test_steps_that_this_program_does_not_understand_are_damage(self, tmp_path: Path) -> None:
        store = TableStore(tmp_path)
        move_pointer(store.output, version(1, {"unread_files": write(store, 1, BROKEN)}))
        content: dict[str, Any] = json.loads((tmp_path / "index.json").read_text("utf-8"))
        content["steps"][0]["tables"]["unread_files"]["colour"] = "red"
        (tmp_path / "index.json").write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(TableError, match="is damaged"):
            store.read_pointer()

    def test_the_pointer_of_another_format_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "index.json").write_text('{"format": 99}', encoding="utf-8")
        with pytest.raises(TableError, match="has format 99, this program reads 1: "):
            TableStore(tmp_path).read_pointer()

    @pytest.mark.parametrize(
        ("frame", "name"), [(BROKEN, "unread_files"), (PAIRS, "claims_of_entities")]
    )
    def test_a_truncated_or_missing_file_is_no_table(
        self, tmp_path: Path, frame: pl.DataFrame, name: str
    ) -> None:
        store = TableStore(tmp_path)
        stored = write(store, 1, frame, TABLES[name])
        path = tmp_path / str(stored.file)
        os.truncate(path, path.stat().st_size - 1)
        for state in ("damaged", "missing"):
            assert not store.exists(name, stored)
            for opened in (store.scan, store.map):
                with pytest.raises(TableError) as caught:
                    opened(name, stored)
                assert str(caught.value) == (
                    f"The table {name} is {state} ({path}): "
                    "run `graphrag-index run` to write it again."
                )
            path.unlink(missing_ok=True)

    def test_a_journal_that_cannot_be_read_means_that_nothing_is_finished(
        self, tmp_path: Path
    ) -> None:
        store = TableStore(tmp_path)
        record = StepRecord("s", "k", {"unread_files": write(store, 1, BROKEN)})
        assert store.read_journal(1) == ()
        store.write_journal(1, [record])
        assert store.read_journal(1) == (record,)
        path = tmp_path / "versions" / "1" / "steps.json"
        for content in ("", "[{", "{}", "[3]", '[{"name": "s"}]'):
            path.write_text(content, encoding="utf-8")
            assert store.read_journal(1) == ()

    def test_the_previous_run_gives_its_tables_while_they_are_there(self, tmp_path: Path) -> None:
        store = TableStore(tmp_path)
        assert Previous(store, None).scan("unread_files") is None
        stored = write(store, 1, BROKEN)
        previous = Previous(store, version(1, {"unread_files": stored}))
        assert previous.scan("documents") is None
        found = previous.scan("unread_files")
        assert found is not None
        assert_frame_equal(found.collect(), BROKEN)
        (tmp_path / str(stored.file)).unlink()
        assert previous.scan("unread_files") is None


class TestLinks:
    def test_public_tables_are_found_in_the_output_folder(self, tmp_path: Path) -> None:
        store = TableStore(tmp_path)
        documents = TABLES["documents"]
        one = version(
            1,
            {
                "documents": write(store, 1, documents.empty(), documents),
                "unread_files": write(store, 1, BROKEN),
            },
        )
        store.link_public_tables(one)
        link = tmp_path / "documents.parquet"
        assert pl.read_parquet(link).schema == documents.schema
        assert not (tmp_path / "unread_files.parquet").exists()

        two = version(2, {"documents": write(store, 2, documents.empty(), documents)})
        store.link_public_tables(two)
        assert link.resolve() == (tmp_path / "versions" / "2" / "documents.parquet").resolve()

    def test_the_link_of_a_table_that_is_no_longer_written_goes(self, tmp_path: Path) -> None:
        store = TableStore(tmp_path)
        documents = TABLES["documents"]
        stored = write(store, 1, documents.empty(), documents)
        store.link_public_tables(version(1, {"documents": stored}))
        store.link_public_tables(version(2, {}))
        assert files(tmp_path) == {"versions/1/documents.parquet"}


class TestLeftovers:
    def test_what_no_reader_can_have_opened_is_deleted_and_the_rest_stays(
        self, tmp_path: Path
    ) -> None:
        store = TableStore(tmp_path)
        first = write(store, 1, BROKEN)
        second = write(store, 2, BROKEN.reverse())
        unnamed = write(store, 2, BROKEN, stem="unnamed")
        mapped = write(store, 2, PAIRS, TABLES["claims_of_entities"])
        unnamed_mapped = write(store, 2, PAIRS, TABLES["claims_of_entities"], stem="unnamed")
        write(store, 3, BROKEN)
        write(store, 4, BROKEN)
        move_pointer(store.output, version(1, {"unread_files": first}))
        move_pointer(
            store.output, version(2, {"unread_files": second, "claims_of_entities": mapped})
        )
        store.write_journal(2, [])
        for name in (".index.json.tmp", "versions/2/.a.parquet.tmp", "versions/4/.steps.json.tmp"):
            (tmp_path / name).write_bytes(b"half")
        (tmp_path / "notes.txt").write_bytes(b"mine")
        (tmp_path / "versions" / "notes.txt").write_bytes(b"mine")
        kept = {"index.json", "notes.txt", "versions/notes.txt", "versions/2/steps.json"}
        kept |= {str(first.file), str(second.file), str(mapped.file)}
        kept |= {"versions/1/index.json", "versions/2/index.json"}

        store.remove_leftovers(keep=4)
        assert files(tmp_path) == {*kept, "versions/4/unread_files.parquet"}
        assert {unnamed.file, unnamed_mapped.file}.isdisjoint(files(tmp_path))
        store.remove_leftovers()
        assert files(tmp_path) == kept
        assert not (tmp_path / "versions" / "4").exists()

    def test_an_earlier_version_can_be_read_and_one_that_never_was_is_told(
        self, tmp_path: Path
    ) -> None:
        store = TableStore(tmp_path)
        versions = [version(n, {"unread_files": write(store, n, BROKEN)}) for n in (1, 2, 3)]
        for made in versions[:2]:
            move_pointer(store.output, made)
        assert [store.read_version(n) for n in (1, 2)] == versions[:2]
        assert store.versions() == [1, 2]
        with pytest.raises(TableError, match="no version 3; it has: 1, 2"):
            store.read_version(3)

    def test_only_parts_of_the_given_version_are_kept(self, tmp_path: Path) -> None:
        store = TableStore(tmp_path)
        for name in ("step-0123456789ab", "step-ba9876543210", "gone-0123456789ab"):
            (tmp_path / "parts" / name).mkdir(parents=True)
            for file in ("part-1", "partitions-1"):
                (tmp_path / "parts" / name / file).write_bytes(b"rows")
        (tmp_path / "parts" / ".DS_Store").touch()
        steps = (StepRecord("step", "0123456789abcdef", {}),)
        store.remove_old_parts(Version(1, "small", "0.1.0", steps))
        assert files(tmp_path) == {"parts/step-0123456789ab/part-1"}
        store.remove_old_parts(Version(2, "small", "0.1.0", ()))
        assert not (tmp_path / "parts").exists()

    def test_the_folder_of_the_current_version_may_be_gone(self, tmp_path: Path) -> None:
        store = TableStore(tmp_path)
        move_pointer(store.output, version(2, {"unread_files": write(store, 1, BROKEN)}))
        shutil.rmtree(store.folder(2))
        store.remove_leftovers()
        assert files(tmp_path) == {"index.json", "versions/1/unread_files.parquet"}

    def test_the_next_run_resumes_the_folder_of_the_highest_number(self, tmp_path: Path) -> None:
        store = TableStore(tmp_path)
        assert store.next_number() == 1
        for name in ("2", "10", "9", "notes"):
            (tmp_path / "versions" / name).mkdir(parents=True)
        assert store.next_number() == 10

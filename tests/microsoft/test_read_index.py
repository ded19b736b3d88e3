"""Tables of Microsoft's as ours: what is in the files stays, what is missing is found."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import graphrag_query
from graphrag_index.errors import TableError
from graphrag_index.health.checked_index import open_microsoft
from graphrag_index.microsoft.read_positions import locate_names
from graphrag_index.microsoft.read_tables import MicrosoftIndex, renumber_rows
from graphrag_index.schema.tables import TABLES
from tests.fixtures.microsoft_index import (
    MICROSOFT,
    TEXTS,
    Tables,
    needs_index,
    version_1,
    version_2,
    version_3,
    write,
    write_vectors,
)


def read(folder: Path) -> Tables:
    return {name: rows.collect() for name, rows in MicrosoftIndex(folder).tables.items()}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return read(write(tmp_path_factory.mktemp("v3"), version_3()))


def test_every_table_has_all_columns_of_ours_and_no_null_where_ours_has_none(
    opened: Tables,
) -> None:
    for name, rows in opened.items():
        table = TABLES[name]
        assert rows.schema == table.schema, name
        nulls = {column for column in rows.columns if rows[column].null_count()}
        assert nulls <= set(table.nullable or ()), name


def test_what_the_files_say_is_what_is_read(opened: Tables) -> None:
    for name, rows in version_3().items():
        columns = [column for column in rows.columns if column != "raw_data"]
        assert_frame_equal(opened[name].select(columns), rows.select(columns), check_dtypes=False)


def test_what_is_ours_alone_is_found_from_the_texts(opened: Tables) -> None:
    units = opened["text_units"]
    assert units.select("start_char", "end_char").rows() == [(0, 26), (20, 65), (0, len(TEXTS[1]))]
    documents = opened["documents"]["text"].to_list()
    mentions = [
        (unit, opened["entities"]["title"][entity], documents[unit == 2][start:end])
        for entity, unit, start, end in opened["mentions"].rows()
    ]
    assert mentions == [
        (0, "ADA BYRON", "Ada Byron"),
        (0, "BO", "Bo"),
        (1, "BO", "Bo"),
        (1, "CY", "Cy"),
        (1, "ADA BYRON", "ada byron"),
        (2, "DI", "Di"),
    ]
    assert opened["documents"].select("path", "language").rows() == [
        ("a.txt", "en"),
        ("d.txt", "en"),
    ]
    links = opened["relationships"]
    assert links["source_id"].to_list() == ["e0", "e1", "e2", "e3"]
    assert links["target_id"].to_list() == ["e1", "e2", "e1", ""]
    proofs = [
        [documents[place["document_id"] == "d1"][place["start_char"] : place["end_char"]]]
        for evidence in links["evidence"].to_list()
        for place in evidence
    ]
    # Of what is no entity there is nothing in the text.
    assert proofs == [[TEXTS[0][:25]], [TEXTS[0][26:]], [TEXTS[0][26:]]]


def test_nothing_of_a_file_is_changed_by_reading(tmp_path: Path) -> None:
    folder = write(tmp_path, version_3())
    before = {path: path.read_bytes() for path in folder.iterdir()}
    read(folder)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_version_2_reads_as_version_3(tmp_path: Path, opened: Tables) -> None:
    found = read(write(tmp_path / "output", version_2()))
    found_again = read(tmp_path)
    for name, rows in opened.items():
        expected = rows
        if name == "entities":
            expected = rows.with_columns(x=pl.lit(0.5), y=pl.lit(-0.5))
        if name == "documents":
            stated = ['{"author":"Zoë","year":1843}', '{"author":"Zoë","year":1850}']
            expected = rows.with_columns(metadata=pl.Series(stated))
        assert_frame_equal(found[name], expected)
        assert_frame_equal(found_again[name], expected)


@pytest.mark.parametrize("place", ["", "output", "output/20240702-1000/artifacts"])
def test_versions_0_and_1_are_refused_in_one_sentence(tmp_path: Path, place: str) -> None:
    write(tmp_path / place, version_1())
    for read_index in (MicrosoftIndex, graphrag_query.open, open_microsoft):
        with pytest.raises(TableError, match=r"GraphRAG 0 or 1, which is not supported: convert "):
            read_index(tmp_path)


def test_counts_that_a_graph_of_ones_own_lacks_are_derived(tmp_path: Path, opened: Tables) -> None:
    tables = version_3()
    tables["entities"] = tables["entities"].drop("frequency", "degree")
    tables["relationships"] = tables["relationships"].drop("combined_degree")
    found = read(write(tmp_path, tables))
    for name in ("entities", "relationships"):
        assert_frame_equal(found[name], opened[name])


def test_relationships_without_a_weight_weigh_1(tmp_path: Path) -> None:
    tables = version_3()
    tables["relationships"] = tables["relationships"].drop("weight")
    found = read(write(tmp_path, tables))["relationships"]
    assert found.select("weight", "combined_degree").rows() == [(1, 3), (1, 3), (1, 3), (1, 2)]


def test_passages_that_come_again_stand_one_behind_the_other(tmp_path: Path) -> None:
    tables = version_3()
    said = "Ada Byron met Bo. "
    tables["documents"] = tables["documents"].with_columns(text=pl.lit(3 * said))
    tables["text_units"] = tables["text_units"].with_columns(
        text=pl.lit(said), document_id=pl.lit("d0")
    )
    found = read(write(tmp_path, tables))
    assert found["text_units"]["start_char"].to_list() == [0, 18, 36]
    assert found["mentions"].filter(entity=1)["start_char"].to_list() == [14, 32]


def test_lists_and_texts_of_any_arrow_type_are_read(tmp_path: Path, opened: Tables) -> None:
    tables = version_3()
    tables["relationships"] = tables["relationships"].with_columns(
        pl.col("text_unit_ids").cast(pl.Array(pl.String, 1)), pl.col("source").cast(pl.Categorical)
    )
    tables["entities"] = tables["entities"].with_columns(
        pl.col("text_unit_ids").cast(pl.List(pl.Categorical)), pl.col("degree").cast(pl.Float64)
    )
    found = read(write(tmp_path, tables))
    for name in ("relationships", "entities"):
        assert_frame_equal(found[name], opened[name])


def test_rows_whose_numbers_and_ids_are_in_order_are_not_touched(tmp_path: Path) -> None:
    tables = MicrosoftIndex(write(tmp_path, version_3())).tables
    assert all(rows is tables[name] for name, rows in renumber_rows(tables).items())


def test_equal_text_units_that_share_an_id_are_told_apart(tmp_path: Path) -> None:
    tables = version_3()
    tables["text_units"] = pl.concat([tables["text_units"], tables["text_units"][2:]]).with_columns(
        human_readable_id=pl.int_range(pl.len(), dtype=pl.Int64)
    )
    index = MicrosoftIndex(write(tmp_path, tables))
    assert index.tables["text_units"].collect()["id"].to_list() == ["u0", "u1", "u2", "u2"]
    found = renumber_rows(index.tables)
    assert found["text_units"].collect()["id"].to_list() == ["u0", "u1", "u2", "u2-2"]
    assert index.tables["mentions"].collect()["text_unit"].to_list()[-2:] == [2, 3]


def test_numbers_that_no_row_had_are_taken_out_of_reports(tmp_path: Path) -> None:
    tables = version_3()
    tables["entities"] = tables["entities"].with_columns(pl.col("human_readable_id") + 5)
    tables["community_reports"] = tables["community_reports"].with_columns(
        summary=pl.lit("It is so [Data: Entities (8, 0); Reports (2)], and [Data: Entities (1)].")
    )
    reports = renumber_rows(MicrosoftIndex(write(tmp_path, tables)).tables)["community_reports"]
    assert reports.collect()["summary"][0] == ("It is so [Data: Entities (3); Reports (2)], and.")


def test_a_shared_number_means_the_first_row_and_a_missing_one_is_the_row_number(
    tmp_path: Path,
) -> None:
    tables = version_3()
    tables["entities"] = tables["entities"].with_columns(
        human_readable_id=pl.Series([7, 7, 8, None])
    )
    tables["community_reports"] = tables["community_reports"].with_columns(
        summary=pl.lit("It is so [Data: Entities (7, 8, 3)].")
    )
    reports = renumber_rows(MicrosoftIndex(write(tmp_path, tables)).tables)["community_reports"]
    assert reports.collect()["summary"][0] == "It is so [Data: Entities (0, 2, 3)]."


def test_records_become_json_and_their_short_values_metadata(tmp_path: Path) -> None:
    tables = version_3()
    records = [{"body": text, "author": name} for text, name in zip(TEXTS, "AB", strict=True)]
    tables["documents"] = tables["documents"].with_columns(raw_data=pl.Series(records))
    rows = read(write(tmp_path, tables))["documents"]
    assert rows["metadata"].to_list() == ['{"author": "A"}', '{"author": "B"}']
    assert '"body":"Di lives alone in Oslo with the cat."' in rows["raw_data"][1]


def test_bytes_in_records_are_null_and_what_is_no_record_is_no_metadata(tmp_path: Path) -> None:
    tables = version_3()
    record = {"author": "A", "scan": b"\xff", "pages": [{"n": 1, "scan": b"x"}]}
    tables["documents"] = tables["documents"].with_columns(
        raw_data=pl.Series([record, None]), metadata=pl.Series(["page 3", '{"year": 1843}'])
    )
    rows = read(write(tmp_path, tables))["documents"]
    assert rows["raw_data"].to_list() == [
        '{"author":"A","scan":null,"pages":[{"n":1,"scan":null}]}',
        None,
    ]
    said = '{"author": "A", "scan": null, "pages": [{"n": 1, "scan": null}]}'
    assert rows["metadata"].to_list() == [said, '{"year": 1843}']


def test_vectors_are_found_by_the_names_of_every_version(tmp_path: Path) -> None:
    for prefix in ("", "default-"):
        folder = write(tmp_path / f"{prefix}index", version_3())
        write_vectors(folder, version_3(), prefix)
        index = MicrosoftIndex(folder)
        assert set(index.vectors) == {
            "text_unit_text",
            "entity_description",
            "community_full_content",
        }
        rows = pl.concat(index.vectors["entity_description"].batches())
        assert rows["id"].to_list() == ["e0", "e1", "e2", "e3"]
        assert index.vectors["entity_description"].dimension == 4


def test_vectors_of_version_3_are_taken_where_version_2_left_others(tmp_path: Path) -> None:
    folder = write(tmp_path, version_3())
    write_vectors(folder, version_3())
    earlier = {name: rows.with_columns(id=pl.lit("old")) for name, rows in version_3().items()}
    write_vectors(folder, earlier, "default-")
    for name, vectors in MicrosoftIndex(folder).vectors.items():
        assert "old" not in pl.concat(vectors.batches())["id"].to_list(), name


def test_snapshots_of_any_kind_of_list_are_read_and_empty_ones_are_none(tmp_path: Path) -> None:
    folder = write(tmp_path, version_3())
    fixed = pl.Series("embedding", [[1, 0], [0, 1]], pl.Array(pl.Float32, 2))
    pl.DataFrame([pl.Series("id", [7, 8]), fixed]).write_parquet(
        folder / "embeddings.text_unit_text.parquet"
    )
    nothing = pl.DataFrame(
        {"id": ["e0"], "embedding": pl.Series([None], dtype=pl.List(pl.Float64))}
    )
    nothing.write_parquet(folder / "embeddings.entity_description.parquet")
    vectors = MicrosoftIndex(folder).vectors
    assert list(vectors) == ["text_unit_text"]
    (batch,) = vectors["text_unit_text"].batches()
    assert batch.rows() == [("7", [1, 0]), ("8", [0, 1])]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.pop("text_units"), "has no text_units.parquet"),
        (
            lambda t: t.update(entities=t["entities"].drop("title")),
            "entities.parquet has no column title: is it the table entities",
        ),
        (
            lambda t: t.update(text_units=t["text_units"].drop("document_id")),
            "text_units.parquet has no column document_id",
        ),
        (
            lambda t: t.update(entities=t["entities"].with_columns(title=pl.concat_list("title"))),
            r"the column title is List\(String\), and should be String",
        ),
    ],
)
def test_what_cannot_be_derived_is_named(
    tmp_path: Path, change: Callable[[Tables], object], said: str
) -> None:
    tables = version_3()
    change(tables)
    with pytest.raises(TableError, match=said):
        MicrosoftIndex(write(tmp_path, tables))


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, version_3())
    path = folder / "entities.parquet"
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(TableError, match=r"entities.parquet cannot be read .*: it is cut off"):
        MicrosoftIndex(folder)


def test_names_are_found_in_whatever_case_as_whole_words() -> None:
    text = "The dulce base, Dulce\nBase and Dulce; İdris, not Dulcea. 北京大学"
    titles = ["DULCE BASE", "DULCE", "AGENT MERCER", "THE DULCEA COMPANY", "北京"]
    found = locate_names(text, titles)
    spelt = [[text[a:b] for a, b in named.spans] for named in found]
    assert spelt == [["dulce base", "Dulce\nBase"], ["Dulce"], [text], ["Dulcea"], ["北京"]]
    assert [named.whole for named in found] == [True, True, False, False, True]


def test_what_is_only_part_of_longer_names_is_still_the_name() -> None:
    titles = ["DULCE BASE", "DULCE"]
    [base, dulce] = locate_names("At Dulce Base.", titles)
    assert (base.spans, dulce.spans, dulce.whole) == (((3, 13),), ((3, 8),), True)


def test_a_name_in_capitals_is_found_as_german_spells_it() -> None:
    text = "Die Große Straße, die grosse Strasse; Grossen und Straßen."
    [street] = locate_names(text, ["GROSSE STRASSE"])
    assert [text[a:b] for a, b in street.spans] == ["Große Straße", "grosse Strasse"]


@needs_index
def test_a_real_index_is_read_as_it_is() -> None:
    found = read(MICROSOFT)
    for name in ("entities", "relationships", "communities", "community_reports", "covariates"):
        rows = pl.read_parquet(MICROSOFT / f"{name}.parquet")
        assert_frame_equal(found[name].select(rows.columns), rows)
    text = found["documents"]["text"][0]
    units = found["text_units"].select("text", "start_char", "end_char").rows()
    assert [text[start:end] for _, start, end in units] == [unit for unit, _, _ in units]
    unnamed = [row for row in found["relationships"].rows(named=True) if not row["source_id"]]
    assert [row["source"] for row in unnamed] == ["ELEVATOR", "CONCRETE HALLWAY"]

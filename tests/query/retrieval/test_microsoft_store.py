"""Microsoft's index, asked where it lies."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import graphrag_query
from graphrag_index.errors import SettingsError, TableError
from graphrag_index.microsoft.export_index import export
from graphrag_index.microsoft.microsoft_store import InMemoryVectors
from graphrag_index.microsoft.read_files import ParquetVectors
from graphrag_index.schema.settings.project_settings import Settings, parse_settings
from graphrag_index.storage.table_store import open_index
from graphrag_query.answer import Outcome
from graphrag_query.answering.cited_text import supporting_text_units
from graphrag_query.index import Index
from tests.fixtures.commands import ask
from tests.fixtures.microsoft_index import (
    MICROSOFT,
    SEARCHES,
    answered,
    check_citations,
    version_2,
    version_3,
    write,
    write_vectors,
)
from tests.fixtures.model_project import model_sections
from tests.model_server import Server
from tests.model_server.embeddings import embed


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    models = ["test-model", "test-embedding"]
    with Server(dimensions=3072, models=models, answer=answered) as server:
        yield server


def settings_with(server: Server, **embedding: Any) -> Settings:
    """Settings in which a server's models write and embed."""
    return parse_settings(model_sections(server.url, embedding=embedding, api_key="key", timeout=5))


@pytest.fixture(scope="module")
def with_models(server: Server) -> Iterator[Index]:
    if not MICROSOFT.is_dir():
        pytest.skip("the index is not here")
    with graphrag_query.open(MICROSOFT, settings_with(server)) as index:
        yield index


@pytest.fixture(scope="module")
def without_models() -> Index:
    if not MICROSOFT.is_dir():
        pytest.skip("the index is not here")
    return graphrag_query.open(MICROSOFT)


@pytest.mark.parametrize("method", list(SEARCHES))
def test_a_model_answers_by_every_search(with_models: Index, method: str) -> None:
    answer = with_models.search(method, SEARCHES[method])
    assert answer.outcome is Outcome.ANSWERED, answer.text
    check_citations(with_models, answer)
    assert not [note for note in answer.notes if "vectors" in note]


@pytest.mark.parametrize("method", list(SEARCHES))
def test_without_any_model_it_is_searched_by_names_and_words(
    without_models: Index, method: str
) -> None:
    answer = without_models.search(method, SEARCHES[method])
    assert answer.outcome is Outcome.ANSWERED, answer.text
    check_citations(without_models, answer)
    assert answer.notes[-1].startswith(
        f"The vectors of {MICROSOFT}, of 3,072 numbers, were made by another model and not by st"
    )
    assert answer.notes[-1].endswith("and set generate_text_embeddings.model to its name.")


def test_filters_hold_its_searches(with_models: Index) -> None:
    held = with_models.where({"title": "dulce*"}, ["PERSON"])
    answer = held.local("Who is Alex Mercer?")
    check_citations(held, answer)
    assert held.store.keeps_entity(0)
    places = held.store.masks.entities  # type: ignore[attr-defined]
    types = held.store.scan("entities").select("type").collect()["type"]
    assert set(types.filter(pl.Series(places))) == {"PERSON"}
    with pytest.raises(SettingsError, match="No document matches the filter"):
        with_models.where({"title": "other*"})


def test_its_tables_are_asked_in_sql(without_models: Index) -> None:
    query = "SELECT count(*) AS n FROM relationships WHERE source_id = ''"
    assert without_models.sql(query).rows == [[2]]
    assert not (MICROSOFT / "cypher").exists()


def test_its_documents_have_subjects(without_models: Index) -> None:
    names = without_models.store.open_mapped("subject_names")
    assert [names.text("name", row) for row in range(len(names))] == ["dulce", "operation dulce"]
    units = without_models.store.text_units(range(5)).values()
    assert {unit["subject"] for unit in units} == {"Operation: Dulce"}


def test_a_conversation_goes_on(with_models: Index) -> None:
    conversation = with_models.conversation()
    with_models.converse(conversation, "Who is Alex Mercer?", "local")
    answer = with_models.converse(conversation, "And who is Jordan Hayes?", "local")
    check_citations(with_models, answer)


def test_citations_of_its_reports_lead_to_text_units(without_models: Index) -> None:
    for community in range(10):
        text = without_models.store.report(community)["full_content"]  # type: ignore[index]
        behind = supporting_text_units(without_models.store, "Reports", community, text[-400:])
        assert set(behind) & set(range(5))


def test_relationships_that_end_at_no_entity_keep_their_number_and_link_nothing(
    without_models: Index,
) -> None:
    store = without_models.store
    rows = store.scan("relationships").collect()
    (number, _) = rows.filter(pl.col("source_id") == "")["human_readable_id"]
    assert store.text_units_behind("Relationships", number)
    assert store.relationships([number])["source"].to_list() == [""]
    table = store.open_mapped("relationships_of_entities")
    linked = set(table.slice("relationship", 0, len(table)).tolist())
    assert linked == set(range(107)) - set(rows.filter(source_id="")["human_readable_id"])


@pytest.mark.parametrize("version", [version_2, version_3])
def test_every_version_answers(tmp_path: Path, version: Any) -> None:
    folder = write(tmp_path / "output", version())
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    index = graphrag_query.open(tmp_path)
    answer = index.local("What did Ada Byron do?")
    assert answer.outcome is Outcome.ANSWERED
    check_citations(index, answer)
    assert {quoted.quote for quoted in answer.citations} <= {
        *("Ada Byron met Bo in Oslo.", "Bo met Cy, and ada byron wrote it down.")
    }
    assert index.global_("What are the main themes?").outcome is Outcome.ANSWERED
    assert index.store.text_units_behind("Claims", 0) == [2]
    said = index.store.scan("covariates").select("subject_id", "object_id", "status", "start_date")
    assert said.collect().rows() == [("DI", None, "TRUE", None)]
    # What the report on Bo and Cy cites is what it was written on.
    assert supporting_text_units(index.store, "Reports", 2, "They met") == [1]
    assert index.store.backend.output == folder
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def write_vectors_of(folder: Path, width: int) -> None:
    """Embed text units and entities as the server does, out of the order of the tables."""
    tables = version_3()
    texts = {
        "text_unit_text": tables["text_units"].select("id", "text"),
        "entity_description": tables["entities"].select(
            "id", text=pl.concat_str("title", "description", separator=":")
        ),
    }
    for name, rows in texts.items():
        vectors = [[3 * value for value in embed(text, width)] for text in rows["text"]]
        table = rows.select("id", embedding=pl.Series(vectors)).reverse()
        table.write_parquet(folder / f"embeddings.{name}.parquet")


def test_questions_are_compared_with_its_vectors_by_the_model_that_made_them(
    tmp_path: Path, server: Server
) -> None:
    folder = write(tmp_path, version_3())
    write_vectors_of(folder, 64)
    # Of another width than most: not compared, as if they were not there.
    reports = pl.DataFrame({"id": ["p0"], "embedding": [[1.0, 0.0]]})
    reports.write_parquet(folder / "embeddings.community_full_content.parquet")
    with graphrag_query.open(folder, settings_with(server, dimensions=64)) as index:
        for number, unit in index.store.text_units([0, 1, 2]).items():
            (vector,) = index.store.embedder.embed([unit["text"]])
            table = index.store.vectors("text_unit_text")
            found = table.nearest(vector, 1, ["human_readable_id"])
            assert found["human_readable_id"].to_list() == [number]
            assert found["similarity"][0] == pytest.approx(1)
            assert index.store.open_mapped("text_unit_vectors").matrix("vector", [number])[
                0
            ] @ vector == pytest.approx(1)
        answer = index.basic("Who lives alone?")
        assert answer.notes[-1].startswith(
            "There are no vectors of community reports of 64 numbers in"
        )


def test_a_model_of_another_dimension_is_told_in_one_sentence(
    tmp_path: Path, server: Server
) -> None:
    folder = write(tmp_path, version_3())
    write_vectors_of(folder, 64)
    with graphrag_query.open(folder, settings_with(server, dimensions=32)) as index:
        answer = index.basic("Who lives alone?")
    assert answer.outcome is Outcome.PROVIDER_ERROR
    assert answer.text == (
        f"The vectors of {folder} have 64 numbers, and model embedding gives 32 for a question: "
        "set generate_text_embeddings.model to the model that made these vectors, or "
        "models.embedding.dimensions to 64."
    )


def test_lancedb_tables_of_either_name_are_compared(tmp_path: Path, server: Server) -> None:
    folder = write(tmp_path, version_2())
    write_vectors(folder, version_2(), "default-")
    with graphrag_query.open(folder, settings_with(server, dimensions=4)) as index:
        table = index.store.vectors("entity_description")
        found = table.nearest(np.array([0, 1, 0.5, 0]), 2, ["human_readable_id"])
        assert found["human_readable_id"].to_list() == [1, 2]
        assert index.store.vectors("community_full_content").at([1], ["community"]).rows() == [(0,)]


def test_text_units_of_unknown_documents_and_equal_ones_are_found(tmp_path: Path) -> None:
    tables = version_3()
    units = pl.concat([tables["text_units"], tables["text_units"][2:]]).with_columns(
        human_readable_id=pl.int_range(pl.len(), dtype=pl.Int64)
    )
    tables["text_units"] = units.with_columns(document_id=pl.Series(["d0", "d9", "d1", "d1"]))
    index = graphrag_query.open(write(tmp_path, tables))
    answer = index.local("What did Ada Byron write?")
    assert "d9" in [citation.document for citation in answer.citations]
    assert answer.notes[-1].startswith("1 of 4 text units do not occur literally")
    assert index.basic("Who lives alone?").outcome is Outcome.ANSWERED
    held = index.where({"title": "d9"}).local("What did Ada Byron write?")
    assert {citation.document for citation in held.citations} == {"d9"}


def test_what_an_entity_has_to_do_with_itself_links_nothing(tmp_path: Path) -> None:
    tables = version_3()
    tables["relationships"] = tables["relationships"].with_columns(
        target=pl.Series(["ADA BYRON", "CY", "BO", "NOBODY"])
    )
    store = graphrag_query.open(write(tmp_path, tables)).store
    table = store.open_mapped("relationships_of_entities")
    assert table.slice("relationship", 0, len(table)).tolist() == [1, 2, 1, 2]


def test_reports_on_unknown_communities_are_read(tmp_path: Path) -> None:
    tables = version_3()
    tables["communities"] = tables["communities"].filter(pl.col("community") != 0)
    index = graphrag_query.open(write(tmp_path, tables))
    assert index.global_("What are the main themes?").outcome == "answered"
    assert "All of them" in index.store.report_list["title"]
    assert index.store.communities([0]).select("title", "size").rows() == [("All of them", 0)]


def test_words_are_ranked_as_bm25_ranks_them() -> None:
    texts = [
        "The ship sails.",
        "Ships, ships and a ship in the ice of the south",
        "Ice",
        "北京大学",
    ]
    rows = pl.DataFrame({"id": list("abcd"), "human_readable_id": range(4), "text": texts})
    held = InMemoryVectors(rows.lazy(), rows.lazy().select("id"), None, 1)
    found = held.find_matching_rows("ship", 9, ["human_readable_id"])
    # Three times in a longer text, once in a short one.
    assert found["human_readable_id"].to_list() == [1, 0]
    assert held.find_matching_rows("ice of ships", 1, ["id"])["id"].to_list() == ["b"]
    where = "human_readable_id IN (2, 3)"
    assert held.find_matching_rows("ice ship", 9, ["id"], where=where)["id"].to_list() == ["c"]
    assert held.find_matching_rows("京大", 9, ["id"])["id"].to_list() == ["d"]
    assert held.find_matching_rows("?!", 9, ["id"]).height == 0
    assert held.nearest(np.zeros(1), 3, ["id"]).height == 0


def test_vectors_of_rows_that_are_gone_are_passed_over(tmp_path: Path) -> None:
    vectors = pl.DataFrame({"id": ["z", "b"], "embedding": [[1.0, 0.0], [0.0, 2.0]]})
    vectors.write_parquet(tmp_path / "v.parquet")
    rows = pl.DataFrame({"id": ["a", "b"], "text": ["", ""]}).lazy()
    held = InMemoryVectors(rows, rows.select("id"), ParquetVectors(tmp_path / "v.parquet"), 2)
    assert held.matrix.tolist() == [[0, 0], [0, 1]]
    assert held.nearest(np.array([1, 0]), 3, ["id"]).rows() == [("b", 0)]


def test_rows_of_one_id_share_its_vector_and_what_is_no_number_is_none(tmp_path: Path) -> None:
    numbers = [[3.0, 4.0], [float("nan"), 2.0]]
    vectors = pl.DataFrame({"id": ["a", "b"], "embedding": numbers})
    vectors.write_parquet(tmp_path / "v.parquet")
    rows = pl.DataFrame({"id": ["a", "a-2", "b"], "text": ["", "", ""]}).lazy()
    ids = pl.LazyFrame({"id": ["a", "a", "b"]})
    held = InMemoryVectors(rows, ids, ParquetVectors(tmp_path / "v.parquet"), 2)
    assert held.matrix.tolist() == [[*map(np.float32, (0.6, 0.8))]] * 2 + [[0, 1]]
    found = held.nearest(np.array([0, 1]), 3, ["id"], where="id IN ('a', 'a-2')")
    assert found["id"].to_list() == ["a", "a-2"]


def test_a_table_that_breaks_off_inside_is_told_when_it_is_read(tmp_path: Path) -> None:
    folder = write(tmp_path, version_3())
    path = folder / "entities.parquet"
    whole = bytearray(path.read_bytes())
    whole[4:400] = bytes(396)
    path.write_bytes(whole)
    with pytest.raises(TableError, match=r"entities.parquet cannot be read|cannot be read .*check"):
        graphrag_query.open(folder).local("Who is Bo?")


def test_the_command_takes_the_folder_and_tells_what_is_missing(tmp_path: Path) -> None:
    folder = write(tmp_path / "index", version_3())
    root = tmp_path / "elsewhere"
    root.mkdir()
    asked = ("--index", str(folder), "--root", str(root))
    result = ask("local", "What did Ada Byron do?", "--json", *asked)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["citations"][0]["document"] == "a.txt"
    with pytest.raises(SettingsError, match="keeps no earlier versions"):
        graphrag_query.open(folder, as_of=1)
    (folder / "relationships.parquet").unlink()
    result = ask("local", "Who is Bo?", *asked)
    assert (result.returncode, result.stdout) == (1, "")
    assert f"{folder} has no relationships.parquet" in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_export_is_searched_by_vectors_only_with_the_table_that_made_them(
    sample_project: Path, tmp_path: Path
) -> None:
    store, version = open_index(sample_project / "output")
    export(store, version, tmp_path / "exported")
    assert graphrag_query.open(tmp_path / "exported").local("Who was Tom Crean?").notes == ()
    path = tmp_path / "exported" / "graphrag_index" / "export.json"
    description = json.loads(path.read_text(encoding="utf-8"))
    description["embedding_model"] = "static 00000000"
    path.write_text(json.dumps(description), encoding="utf-8")
    (note,) = graphrag_query.open(tmp_path / "exported").local("Who was Tom Crean?").notes
    assert "were made by static 00000000 and not by static " in note

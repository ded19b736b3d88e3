"""`graphrag-index import`: an index of Microsoft's becomes ours, or what is broken is told."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from polars.testing import assert_frame_equal

import graphrag_query
from graphrag_index.errors import ExitCode, TableError
from graphrag_index.health.checked_index import open_for_check
from graphrag_index.health.checks import check_index
from graphrag_index.microsoft.read_tables import MicrosoftIndex, renumber_rows
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_index.schema.settings.step_sections import Check
from graphrag_nlp.text.citations import check_citations
from tests.fixtures.checked import found
from tests.fixtures.commands import Call
from tests.fixtures.importing import chats, read, write_project
from tests.fixtures.microsoft_index import (
    MICROSOFT,
    SEARCHES,
    answered,
    needs_index,
    version_2,
    version_3,
    write,
    write_vectors,
)
from tests.model_server import Server

NAMES = ("text_unit_text", "entity_description", "community_full_content")


def test_rows_ids_numbers_and_vectors_are_those_of_the_files(
    graphrag_index: Call, theirs: Path, project: Path, server: Server
) -> None:
    result = graphrag_index("import", theirs, "--root", project)
    assert result.code == 0, result.err
    index = MicrosoftIndex(theirs)
    for name, rows in renumber_rows(index.tables).items():
        assert_frame_equal(read(project, name), rows.collect())
    for name in NAMES:
        given = pl.concat(index.vectors[name].batches())
        assert_frame_equal(read(project, name).select("id", "vector"), given.select("id", "vector"))
    assert not server.requests
    assert "2 documents, 3 text units, 4 entities, 4 relationships" in result.out
    assert "1 relationships are merged with their reverse" in result.out
    assert "1 relationships with an unknown source or target are dropped" in result.out


def test_the_settings_name_the_workflow_that_goes_on(
    graphrag_index: Call, theirs: Path, project: Path
) -> None:
    result = graphrag_index("import", theirs, "--root", project)
    text = (project / "settings.yaml").read_text(encoding="utf-8")
    assert text.startswith("# Mine.\nworkflow: standard_imported  # as it was\n")
    assert "now has `workflow: standard_imported` (before: standard)" in result.out
    steps = yaml.safe_load((project / "workflows" / "standard_imported.yaml").read_text())
    assert (
        steps[:6]
        == (
            "load_documents skip_imported create_text_units extract_graph extract_covariates "
            "add_imported"
        ).split()
    )
    assert graphrag_index("validate", "--root", project).code == 0


def test_without_new_documents_a_run_asks_nothing_and_tidies(
    graphrag_index: Call, theirs: Path, project: Path, server: Server
) -> None:
    graphrag_index("import", theirs, "--root", project)
    shutil.rmtree(project / "input")
    assert "Nothing" not in graphrag_index("run", "--root", project, "--dry-run").out
    result = graphrag_index("run", "--root", project)
    assert result.code == 0, result.err
    assert not chats(server)
    before, after = (read(project, "entities", number) for number in (1, 2))
    assert_frame_equal(before.drop("degree"), after.drop("degree"))
    links = read(project, "relationships", 2)
    assert links.select("id", "weight").rows() == [("r0", 2.0), ("r1", 2.0)]
    assert links["description"].to_list() == ["Ada met Bo.", "Bo met Cy. Cy was met."]
    for name in ("documents", "covariates", "mentions"):
        assert_frame_equal(read(project, name, 1), read(project, name, 2))
    # A part of one part alone is none.
    communities = dict(read(project, "communities").select("community", "id").rows())
    assert communities[0] == "c0"
    assert 2 not in communities
    reports = dict(read(project, "community_reports").select("community", "full_content").rows())
    # Text units are not cited by reports of ours.
    assert reports[0].startswith("# All of them\n\nAda wrote [Data: Entities (0, 1)].\n\n## All")
    assert "Nothing changed" in graphrag_index("run", "--root", project).out
    health = check_index(open_for_check(project / "output"), Check())
    assert not {"dangling", "unresolved"} & found(health).keys()


def test_a_new_document_costs_what_it_changes(
    graphrag_index: Call, theirs: Path, project: Path, server: Server
) -> None:
    graphrag_index("import", theirs, "--root", project)
    (project / "input" / "copy.txt").write_text(
        "\ufeff" + version_3()["documents"]["text"][0].replace("\n", "\r\n") + "\r\n"
    )
    new = "Eve Stone met Ada Byron in Rome. Ada Byron gave Eve Stone a map."
    (project / "input" / "new.txt").write_text(new)
    assert graphrag_index("run", "--root", project).code == 0
    # Only the new text unit is read: once for the graph, once for claims.
    passages = [text for text in chats(server) if "Passage" in text]
    assert len(passages) == 2
    assert all("Eve Stone met Ada Byron" in text for text in passages)
    assert read(project, "documents")["title"].to_list() == ["a.txt", "d.txt", "new.txt"]
    assert read(project, "text_units")["human_readable_id"].to_list() == [0, 1, 2, 3]
    entities = read(project, "entities")
    assert entities["id"][:4].to_list() == ["e0", "e1", "e2", "e3"]
    ada = entities.row(0, named=True)
    assert ada["title"] == "ADA BYRON"
    assert ada["text_unit_ids"][:2] == ["u0", "u1"]
    assert len(ada["text_unit_ids"]) == 3
    assert ada["description"].startswith("Ada Byron writes.")
    assert "Eve Stone" in entities["title"].to_list()
    lineage = dict(read(project, "community_lineage").select("community", "status").rows())
    assert lineage[0] != "died"
    sentences = read(project, "sentences")
    assert sentences["document"].to_list() == sorted(sentences["document"].to_list())
    assert found(check_index(open_for_check(project / "output"), Check())) == {}
    n_asked = len(chats(server))
    assert "Nothing changed" in graphrag_index("run", "--root", project).out
    assert len(chats(server)) == n_asked
    told = graphrag_index("diff", "1", "2", "--root", project).out
    assert "1 added: new.txt" in told
    assert "a.txt" not in told


@pytest.mark.parametrize("workflow", ["fast", pytest.param("embedded", marks=pytest.mark.slow)])
def test_rules_go_on_too(
    graphrag_index: Call, theirs: Path, tmp_path: Path, server: Server, workflow: str
) -> None:
    project = write_project(tmp_path / "project", server.url, workflow)
    server.requests.clear()
    graphrag_index("import", theirs, "--root", project)
    assert graphrag_index("run", "--root", project).code == 0
    assert not chats(server)
    (project / "input" / "new.txt").write_text("Eve Stone met Ada Byron. Ada Byron met Eve Stone.")
    assert graphrag_index("run", "--root", project).code == 0
    entities = read(project, "entities")
    assert entities["id"][:4].to_list() == ["e0", "e1", "e2", "e3"]
    assert entities["description"][0] == "Ada Byron writes."
    links = read(project, "relationships").select("source", "target").rows()
    assert any({"ADA BYRON", "Eve Stone"} == set(ends) for ends in links)
    assert all("Passage" not in text for text in chats(server))


def test_a_decision_merges_imported_entities_and_the_first_keeps_its_id(
    graphrag_index: Call, theirs: Path, project: Path
) -> None:
    graphrag_index("import", theirs, "--root", project)
    decisions = {"merge": {"CY": ["BO"]}}
    file = load_settings(project).resolve_entities.file
    (project / file).write_text(yaml.safe_dump(decisions), encoding="utf-8")
    result = graphrag_index("run", "--root", project)
    assert result.code == 0, result.err
    rows = read(project, "entities").select("id", "title").rows()
    assert [id for id, _ in rows] in (["e0", "e1", "e3"], ["e0", "e2", "e3"])
    assert read(project, "relationships")["id"].to_list() == ["r0"]


def test_texts_without_a_vector_are_embedded_by_the_workflow_that_only_embeds(
    graphrag_index: Call, theirs: Path, project: Path, server: Server
) -> None:
    tables = version_3()
    shutil.rmtree(theirs / "lancedb")
    write_vectors(theirs, {**tables, "entities": tables["entities"].head(3)})
    shutil.rmtree(theirs / "lancedb" / "community_full_content.lance")
    out = graphrag_index("import", theirs, "--root", project).out
    assert "Rows without a vector: 1 rows of entity_description" in out
    options = ("--root", project, "--set", "workflow=imported")
    assert graphrag_index("run", *options).code == 0
    inputs = [
        json.loads(request.body)["input"]
        for request in server.requests
        if request.path.endswith("/embeddings")
    ]
    texts = [text for batch in inputs for text in batch if text != "dimension"]
    assert sorted(text.partition("\n")[0] for text in texts) == [
        "# All of them",
        "# Bo and Cy",
        "# Di",
        "DI:Di lives alone.",
    ]
    assert not chats(server)


@needs_index
def test_an_index_of_a_real_model_comes_back_as_it_was(
    graphrag_index: Call, tmp_path: Path
) -> None:
    import lancedb

    with Server(dimensions=3072, answer=answered) as server:
        project = write_project(tmp_path / "project", server.url, width=3072)
        result = graphrag_index("import", MICROSOFT, "--root", project)
        assert result.code == 0, result.err
        assert not server.requests
        target = tmp_path / "exported"
        options = ("--to", "microsoft", "--root", project)
        assert graphrag_index("export", target, *options).code == 0
        for name in ("text_units", "entities", "relationships", "communities", "covariates"):
            theirs, ours = (pl.read_parquet(at / f"{name}.parquet") for at in (MICROSOFT, target))
            assert_frame_equal(theirs, ours)
        for name in NAMES:
            theirs, ours = (
                pl.DataFrame(lancedb.connect(str(at / "lancedb")).open_table(name).to_arrow())
                for at in (MICROSOFT, target)
            )
            assert_frame_equal(theirs.select("id", "vector"), ours.select("id", "vector"))
        # What is wrong with Microsoft's is wrong with what was imported, and nothing else.
        theirs_health, ours_health = (
            found(check_index(open_for_check(at), Check()))
            for at in (MICROSOFT, project / "output")
        )
        assert ours_health == theirs_health
        with graphrag_query.open(project / "output") as index:
            for method in ("local", "basic", "global"):
                ask: Any = getattr(index, "global_" if method == "global" else method)
                assert ask(SEARCHES[method]).text
        server.requests.clear()
        assert graphrag_index("run", "--root", project).code == 0
        assert not chats(server)
    before, after = (read(project, "community_reports", number) for number in (1, 2))
    columns = ("community", "title", "rank", "rating_explanation", "full_content")
    cited = [
        [
            [check_citations(str(value), {})[0] for value in row]
            for row in rows.sort("community").select(columns).rows()
        ]
        for rows in (before, after)
    ]
    assert cited[0] == cited[1]


def test_an_export_of_ours_comes_back_whole(
    graphrag_index: Call, sample_project: Path, tmp_path: Path
) -> None:
    exported = tmp_path / "exported"
    options = ("--to", "microsoft", "--root", sample_project)
    assert graphrag_index("export", exported, *options).code == 0
    project = tmp_path / "project"
    project.mkdir()
    shutil.copy(sample_project / "settings.yaml", project)
    shutil.copytree(sample_project / "workflows", project / "workflows")
    result = graphrag_index("import", exported, "--root", project)
    assert result.code == 0, result.err
    names = ("documents text_units entities relationships mentions communities").split()
    for name in (*names, "community_lineage", "community_reports", *NAMES):
        assert_frame_equal(read(project, name), read(sample_project, name))
    again = tmp_path / "again"
    assert graphrag_index("export", again, "--to", "microsoft", "--root", project).code == 0
    # Without what lies beside the tables, all of Microsoft's columns are the same still.
    shutil.rmtree(exported / "graphrag_index")
    plain = tmp_path / "plain"
    options = ("--root", project, "--replace")
    assert graphrag_index("import", exported, *options).code == 0
    assert graphrag_index("export", plain, "--to", "microsoft", "--root", project).code == 0
    for path in sorted(exported.glob("*.parquet")):
        for other in (again, plain):
            assert_frame_equal(pl.read_parquet(path), pl.read_parquet(other / path.name))


def test_version_2_is_imported(graphrag_index: Call, project: Path, tmp_path: Path) -> None:
    folder = write(tmp_path / "earlier", version_2())
    result = graphrag_index("import", folder, "--root", project)
    assert result.code == 0, result.err
    assert "The index has no vectors" in result.out
    index = graphrag_query.open(project / "output")
    for search in (index.local, index.basic, index.global_, index.drift, index.lazy):
        with pytest.raises(TableError, match=r"has no vectors, .*--set workflow=imported"):
            search("Who met Bo?")
    assert graphrag_index("run", "--root", project).code == 0
    assert read(project, "entities")["id"].to_list() == ["e0", "e1", "e2", "e3"]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _rewrite(path: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    change(pl.read_parquet(path)).write_parquet(path)


BROKEN: Mapping[str, tuple[Callable[[Path], object], tuple[str, ...], str]] = {
    "a missing table": (lambda f: (f / "entities.parquet").unlink(), (), "has no entities.parquet"),
    "a missing column": (
        lambda f: _rewrite(f / "relationships.parquet", lambda rows: rows.drop("target")),
        (),
        "relationships.parquet has no column target",
    ),
    "a file that was cut off": (
        lambda f: _cut(f / "text_units.parquet"),
        (),
        "text_units.parquet cannot be read",
    ),
    "a null where none may be": (
        lambda f: _rewrite(
            f / "entities.parquet",
            lambda rows: rows.with_columns(text_unit_ids=pl.lit([None], pl.List(pl.String))),
        ),
        (),
        "entities.parquet makes the table entities with null inside of the column text_unit_ids",
    ),
    "vectors of another width": (
        lambda f: None,
        ("--set", "models.embedding.dimensions=7"),
        "has 4 numbers, and the embedding model test-embedding gives 7",
    ),
    "no folder": (shutil.rmtree, (), "does not exist"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_broken_is_told_and_nothing_is_written(
    graphrag_index: Call, theirs: Path, project: Path, case: str
) -> None:
    breaking, options, said = BROKEN[case]
    breaking(theirs)
    settings = (project / "settings.yaml").read_bytes()
    result = graphrag_index("import", theirs, "--root", project, *options)
    assert result.code != ExitCode.DONE
    assert said in result.err
    assert len(result.err.strip().splitlines()) == 1
    assert not (project / "imported").exists()
    assert not list((project / "output").glob("versions/*"))
    assert (project / "settings.yaml").read_bytes() == settings
    if case == "vectors of another width":
        assert graphrag_index("import", theirs, "--root", project, "--no-vectors").code == 0


def test_an_index_that_is_there_is_replaced_only_if_asked_and_can_be_had_back(
    graphrag_index: Call, theirs: Path, project: Path
) -> None:
    graphrag_index("import", theirs, "--root", project)
    result = graphrag_index("import", theirs, "--root", project)
    assert result.code == ExitCode.WRONG_USE
    assert "--replace" in result.err
    result = graphrag_index("import", project / "output", "--root", project, "--replace")
    assert "is an index of this program already" in result.err
    (project / "input" / "new.txt").write_text("Eve met Bo.")
    assert graphrag_index("run", "--root", project).code == 0
    assert graphrag_index("import", theirs, "--root", project, "--replace").code == 0
    assert read(project, "documents").height == 2
    assert graphrag_index("rollback", "2", "--root", project).code == 0
    assert read(project, "documents").height == 3
    assert "standard_imported" in (project / "settings.yaml").read_text()
    assert graphrag_index("versions", "--root", project).code == 0
    assert graphrag_index("status", "--root", project).code == 0


def test_what_was_interrupted_is_begun_again_and_what_is_damaged_is_told(
    graphrag_index: Call, theirs: Path, project: Path
) -> None:
    result = graphrag_index("run", "--root", project, "--set", "workflow=imported")
    assert "There is no imported index" in result.err
    graphrag_index("import", theirs, "--root", project)
    # As if it had been killed between its files and its version.
    shutil.rmtree(project / "output")
    (project / ".imported.tmp").mkdir()
    assert graphrag_index("import", theirs, "--root", project).code == 0
    assert not (project / ".imported.tmp").exists()
    _cut(project / "imported" / "entities.parquet")
    result = graphrag_index("run", "--root", project)
    assert result.code == ExitCode.WRONG_USE
    assert "imported/entities.parquet is cut off or changed: import the index again" in result.err


def test_where_the_version_of_what_was_imported_is_gone_a_run_makes_it_again(
    graphrag_index: Call, theirs: Path, project: Path, server: Server
) -> None:
    graphrag_index("import", theirs, "--root", project)
    graphrag_index("run", "--root", project)
    names = ("community_reports", "text_unit_text", "community_full_content")
    before = {name: read(project, name) for name in names}
    asked = len(server.requests)
    shutil.rmtree(project / "output")
    result = graphrag_index("run", "--root", project)
    assert result.code == 0, result.err
    assert "The imported index is version 1 again; this run updates it." in result.out
    # Vectors too: what is asked is what the first run asked.
    assert len(server.requests) == 2 * asked
    assert not chats(server)
    for name in names:
        assert_frame_equal(read(project, name), before[name])
    assert "is version" not in graphrag_index("run", "--root", project).out


def test_after_a_rollback_to_before_the_import_its_reports_are_not_paid_again(
    graphrag_index: Call, theirs: Path, project: Path, server: Server
) -> None:
    (project / "input" / "own.txt").write_text("Eve met Bo in Rome. Bo met Eve in Rome.")
    assert graphrag_index("run", "--root", project).code == 0
    assert graphrag_index("import", theirs, "--root", project, "--replace").code == 0
    assert graphrag_index("run", "--root", project).code == 0
    before, asked = read(project, "community_reports"), len(chats(server))
    assert graphrag_index("rollback", "1", "--root", project).code == 0
    result = graphrag_index("run", "--root", project)
    assert "The imported index is version 5 again" in result.out
    assert len(chats(server)) == asked
    assert_frame_equal(
        read(project, "community_reports").drop("id"), before.drop("id"), check_row_order=False
    )


@pytest.mark.parametrize("text", ["", "- no_such_step\n", "just words\n"])
def test_a_workflow_that_cannot_be_gone_on_from_is_told(
    graphrag_index: Call, theirs: Path, project: Path, text: str
) -> None:
    (project / "workflows" / "standard.yaml").write_text(text, encoding="utf-8")
    result = graphrag_index("import", theirs, "--root", project)
    assert result.code == 0, result.err
    assert "A workflow that updates the imported index could not be written: " in result.out


def test_an_entity_without_a_name_does_not_end_the_run(
    graphrag_index: Call, theirs: Path, project: Path
) -> None:
    path = theirs / "entities.parquet"
    first = pl.int_range(pl.len()) == 0
    _rewrite(
        path,
        lambda rows: rows.with_columns(title=pl.when(first).then(pl.lit(" ")).otherwise("title")),
    )
    assert graphrag_index("import", theirs, "--root", project).code == 0
    result = graphrag_index("run", "--root", project)
    assert result.code == 0, result.err


def test_the_folder_of_theirs_is_not_written_over(
    graphrag_index: Call, theirs: Path, project: Path
) -> None:
    before = {path: path.read_bytes() for path in theirs.glob("*.parquet")}
    settings = ("--set", f"output={theirs}")
    result = graphrag_index("import", theirs, "--root", project, *settings)
    assert result.code == ExitCode.WRONG_USE
    assert "is the output folder of this project" in result.err
    assert {path: path.read_bytes() for path in theirs.glob("*.parquet")} == before
    assert not (project / "imported").exists()

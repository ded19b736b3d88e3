"""The workflow from_graph: from the files of a graph to answers, and every command on the way."""

import shutil
from pathlib import Path

import polars as pl
import pytest
import yaml

import graphrag_query
from graphrag_index.errors import ExitCode
from graphrag_index.health.checked_index import open_for_check
from graphrag_index.health.checks import check_index
from graphrag_index.schema.settings.step_sections import Check
from graphrag_query.answer import Outcome
from tests.conftest import REPOSITORY, run_project
from tests.fixtures.cases import cases
from tests.fixtures.checked import found
from tests.fixtures.commands import Call
from tests.fixtures.given_graph import write_graph
from tests.fixtures.model_project import KEY, model_sections
from tests.fixtures.sample_questions import check_citations
from tests.model_server import Server


def write_project(root: Path, workflow: str = "from_graph", **settings: object) -> Path:
    names = write_graph(root, "csv")
    shutil.copytree(REPOSITORY / "workflows", root / "workflows")
    content = {"workflow": workflow, "read_graph": names, **settings}
    (root / "settings.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of the small graph after a run; tests must not change it."""
    root = write_project(tmp_path_factory.mktemp("given") / "project")
    run_project(root)
    return root


@pytest.fixture
def project(indexed: Path, tmp_path: Path) -> Path:
    """A copy of it to change."""
    return Path(shutil.copytree(indexed, tmp_path / "project", symlinks=True))


def table(root: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(root / "output" / f"{name}.parquet")


def communities(root: Path) -> dict[int, set[str]]:
    rows = table(root, "communities").filter(level=0).select("community", "entity_ids")
    return {community: set(ids) for community, ids in rows.iter_rows()}


def test_the_communities_of_two_triangles_are_the_triangles(indexed: Path) -> None:
    assert communities(indexed) == {0: {"p1", "p2", "p3"}, 1: {"p4", "p5", "p6"}}
    reports = dict(
        table(indexed, "community_reports").select("community", "full_content").iter_rows()
    )
    assert "Ada taught Bo." in reports[0]
    # That two are related is no sentence to quote where others say how.
    assert "Ada – Cy." not in reports[0]
    assert "[Data: " in reports[0]


@cases("method, question, said, path")
def test_searches_answer_with_the_rows_of_the_files(
    indexed: Path, method: str, question: str, said: str, path: str
) -> None:
    index = graphrag_query.open(indexed / "output")
    answer = getattr(index, method)(question)
    assert answer.outcome is Outcome.ANSWERED
    check_citations(answer, indexed / "output")
    assert [c.path for c in answer.citations if c.quote == said] == [path]


def test_nothing_is_wrong_with_such_an_index(indexed: Path) -> None:
    health = check_index(open_for_check(indexed / "output"), Check())
    assert found(health) == {}


def test_commands_need_no_input_folder(graphrag_index: Call, indexed: Path) -> None:
    assert not (indexed / "input").exists()
    for arguments, said in (
        (["validate"], "All is well. The workflow from_graph runs: read_graph, finalize_graph,"),
        (["run", "--dry-run"], "Nothing would change"),
        (["estimate"], "asks no model: a run costs nothing."),
        (["show"], "from_graph"),
        (["check"], "Passed: no defects were found."),
    ):
        result = graphrag_index(*arguments, "--root", indexed)
        assert (result.code, result.err) == (ExitCode.DONE, "")
        assert said in result.out


def test_changed_files_are_read_again_and_communities_keep_their_numbers(
    graphrag_index: Call, project: Path
) -> None:
    before = communities(project)
    with (project / "people.csv").open("a", encoding="utf-8") as stream:
        stream.write("p7,Gus,person,Gus cooks.\n")
    links = (project / "links.csv").read_text(encoding="utf-8").splitlines()
    # The new relationship is the first: the others have other numbers.
    links.insert(1, "r8,p7,p6,1.0,,")
    (project / "links.csv").write_text("\n".join(links), encoding="utf-8")
    said = graphrag_index("run", "--dry-run", "--root", project).out
    assert said.startswith("Steps that would run: read_graph, finalize_graph,")
    run_project(project)
    assert communities(project) == {0: before[0], 1: before[1] | {"p7"}}
    assert table(project, "relationships")["id"].to_list() == [
        "r8",
        *(f"r{n}" for n in range(1, 8)),
    ]


def test_a_broken_file_leaves_the_index_as_it_was(graphrag_index: Call, project: Path) -> None:
    pointer = (project / "output" / "index.json").read_bytes()
    (project / "links.csv").write_text("source,target\np1,p9\n", encoding="utf-8")
    result = graphrag_index("run", "--root", project)
    assert result.code == ExitCode.WRONG_USE
    assert result.err == (
        "Error: links.csv, line 2: the target 'p9' is not an entity of people.csv: add it there, "
        "correct it here, or set read_graph.add_missing_entities to true.\n"
    )
    (project / "links.csv").unlink()
    for command in (["run"], ["validate"], ["run", "--dry-run"]):
        result = graphrag_index(*command, "--root", project)
        assert result.code == ExitCode.WRONG_USE
        assert "links.csv does not exist: name an existing file." in result.err
    assert (project / "output" / "index.json").read_bytes() == pointer


@pytest.mark.parametrize("command", [["run"], ["validate"], ["run", "--dry-run"], ["estimate"]])
def test_files_in_the_output_folder_are_refused(
    graphrag_index: Call, indexed: Path, command: list[str]
) -> None:
    override = "read_graph.relationships=output/relationships.parquet"
    result = graphrag_index(*command, "--root", indexed, "--set", override)
    assert result.code == ExitCode.WRONG_USE
    assert "output/relationships.parquet lies in the output folder" in result.err


def test_what_this_program_wrote_is_read_as_a_graph(indexed: Path, tmp_path: Path) -> None:
    root = write_project(tmp_path / "again")
    names = ("entities", "relationships", "text_units", "documents")
    for name in names:
        shutil.copy(indexed / "output" / f"{name}.parquet", root)
    workflow = ["read_graph", "finalize_graph", "create_communities"]
    (root / "workflows" / "from_graph.yaml").write_text(yaml.safe_dump(workflow), encoding="utf-8")
    run_project(root, *(f"read_graph.{name}={name}.parquet" for name in names))
    assert communities(root) == communities(indexed)
    for name, column in (("entities", "id"), ("relationships", "id"), ("documents", "text")):
        assert table(root, name)[column].to_list() == table(indexed, name)[column].to_list()
    for column in ("text_unit_ids", "weight", "description", "type"):
        old, new = (table(r, "relationships")[column] for r in (indexed, root))
        assert new.to_list() == old.to_list(), column
    old, new = (table(r, "entities")["text_unit_ids"] for r in (indexed, root))
    assert new.to_list() == old.to_list()


def test_what_is_exported_as_graphml_is_read_again(
    graphrag_index: Call, indexed: Path, tmp_path: Path
) -> None:
    root = write_project(tmp_path / "again")
    exported = graphrag_index("export", "--to", "graphml", root / "g.graphml", "--root", indexed)
    assert exported.code == ExitCode.DONE
    workflow = ["read_graph", "finalize_graph", "create_communities"]
    (root / "workflows" / "from_graph.yaml").write_text(yaml.safe_dump(workflow), encoding="utf-8")
    run_project(root, "read_graph.entities=null", "read_graph.relationships=g.graphml")
    for name, columns in (
        ("entities", ["id", "title", "type", "description", "degree"]),
        ("relationships", ["source", "target", "weight", "type", "description"]),
    ):
        assert table(root, name).select(columns).equals(table(indexed, name).select(columns))


def test_a_graph_without_a_sentence_has_reports_and_searches_find_no_evidence(
    graphrag_index: Call, tmp_path: Path
) -> None:
    root = write_project(tmp_path / "project")
    nodes = "".join(f"<node id='{name}'/>" for name in ("Ada", "Bo"))
    (root / "g.graphml").write_text(f"<graphml><graph>{nodes}</graph></graphml>", encoding="utf-8")
    run_project(root, "read_graph.entities=null", "read_graph.relationships=g.graphml")
    assert len(table(root, "text_units")) == 0
    assert table(root, "community_reports")["title"].to_list() == ["Ada, Bo"]
    index = graphrag_query.open(root / "output")
    assert index.local("Who is Ada?").outcome is Outcome.NO_EVIDENCE
    assert index.path("Ada", "Bo").outcome is Outcome.NO_EVIDENCE


def test_names_are_merged_where_the_workflow_says_so_and_keep_the_first_id(tmp_path: Path) -> None:
    root = write_project(tmp_path / "project")
    people = "id,name\n1,Anna Novak\n2,Captain Anna Novak\n3,Bo\n"
    (root / "people.csv").write_text(people, encoding="utf-8")
    (root / "links.csv").write_text("id,source,target\nx,2,3\ny,1,3\n", encoding="utf-8")
    workflow = ["read_graph", "resolve_entities", "finalize_graph"]
    (root / "workflows" / "from_graph.yaml").write_text(yaml.safe_dump(workflow), encoding="utf-8")
    decided = {"merge": {"Anna Novak": ["Captain Anna Novak"]}}
    (root / "resolutions.yaml").write_text(yaml.safe_dump(decided), encoding="utf-8")
    run_project(root, "resolve_entities.max_embedded=0")
    assert table(root, "entities").select("id", "title").rows() == [
        ("1", "Anna Novak"),
        ("3", "Bo"),
    ]
    links = table(root, "relationships").select("id", "source", "target", "weight")
    assert links.rows() == [("x", "Anna Novak", "Bo", 2.0)]


def test_a_model_writes_the_reports_of_the_other_workflow(
    graphrag_index: Call, model_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)
    settings = model_sections(model_server.url, api_key="${MODEL_KEY}")
    root = write_project(tmp_path / "project", "from_graph_written", **settings)
    estimate = graphrag_index("estimate", "--root", root)
    assert estimate.code == ExitCode.DONE
    assert graphrag_index("run", "--root", root).code == ExitCode.DONE
    assert len(table(root, "community_reports")) == 2
    assert "links.csv" in set(table(root, "documents")["path"])

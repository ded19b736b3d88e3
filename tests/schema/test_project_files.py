"""A new project: what `init` writes is what the program reads."""

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_series_equal

from graphrag_index.errors import ExitCode, ModelError, SettingsError
from graphrag_index.pipeline.workflow import (
    Workflow,
    check_services,
    load_workflow,
    make_services,
    select_sections,
)
from graphrag_index.readers.input_files import find_files
from graphrag_index.schema.settings.project_settings import (
    Settings,
    init_project,
    load_settings,
    parse_settings,
    shipped_workflows,
)
from graphrag_nlp.list_columns import gather_lists, spread_lists
from tests.fixtures.small_steps import SMALL

REPOSITORY = Path(__file__).parents[2]


def test_a_new_project_can_be_loaded_as_it_is(tmp_path: Path) -> None:
    root = tmp_path / "a" / "new project"
    written = init_project(root)
    assert written[0] == root / "settings.yaml"
    assert root / "workflows" / "embedded.yaml" in written
    assert all(path.is_file() for path in written)
    assert (root / "input").is_dir()
    settings = load_settings(root)
    assert settings == Settings()
    workflow = load_workflow(root, settings.workflow)
    check_services(
        workflow, select_sections(workflow, settings), make_services(settings, None, tmp_path)
    )


def test_the_workflows_of_this_repository_are_shipped() -> None:
    assert shipped_workflows() == {
        path.stem: path.read_text(encoding="utf-8")
        for path in (REPOSITORY / "workflows").glob("*.yaml")
    }


@pytest.mark.parametrize(
    "name",
    ["documents", "my documents", "Dokumente für Łódź", "文档", "a$b", "a$$b", "${HOME}", "#1"],
)
def test_documents_elsewhere_are_found_whatever_their_folder_is_called(
    tmp_path: Path, name: str
) -> None:
    documents = tmp_path / name
    documents.mkdir()
    (documents / "a.txt").write_text("One text.", encoding="utf-8")
    root = tmp_path / "project"
    init_project(root, documents)
    settings = load_settings(root)
    assert settings.load_documents.folder == documents.as_posix()
    assert [file.path for file in find_files(settings.load_documents, root)] == [
        documents / "a.txt"
    ]
    assert not (root / "input").exists()


@pytest.mark.parametrize(("name", "folder"), [("input", "input"), ("texts/2024", "texts/2024")])
def test_documents_inside_the_project_are_named_relative_to_it(
    tmp_path: Path, name: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    init_project(Path(), Path(name))
    assert load_settings(Path()).load_documents.folder == folder


def test_a_project_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("output: mine\n", encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        init_project(tmp_path)
    assert caught.value.exit_code == ExitCode.WRONG_USE
    assert str(caught.value) == (
        f"{tmp_path / 'settings.yaml'} already exists: nothing was written."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["settings.yaml"]


def test_a_workflow_of_ones_own_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "workflows" / "embedded.yaml"
    path.parent.mkdir()
    path.write_text("- load_documents\n", encoding="utf-8")
    assert path not in init_project(tmp_path)
    assert path.read_text(encoding="utf-8") == "- load_documents\n"


def test_documents_that_are_not_there_are_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    with pytest.raises(SettingsError, match=r"nowhere does not exist: nothing was written\."):
        init_project(tmp_path / "project", tmp_path / "nowhere")
    assert not (tmp_path / "project").exists()


def test_a_model_that_is_not_here_is_missed_only_by_workflows_that_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_INDEX_CACHE", str(tmp_path))
    settings = parse_settings({"generate_text_embeddings": {"model": "all-MiniLM-L6-v2"}})
    services = make_services(settings, None, tmp_path)
    check_services(SMALL, {}, services)
    embedded = load_workflow(REPOSITORY, "embedded")
    sections = select_sections(embedded, settings)
    with pytest.raises(ModelError, match="`graphrag-index download-model`"):
        check_services(embedded, sections, services)
    without = tuple(s for s in embedded.steps if s.name != "generate_text_embeddings")
    check_services(Workflow("shorter", without), sections, services)


def test_lists_of_structs_are_gathered_again_from_their_values():
    lists = pl.Series([[{"at": 1}], [], [{"at": 2}, {"at": 3}]])

    place, values = spread_lists(lists)

    assert place.tolist() == [0, 2, 2]
    assert values.to_list() == [{"at": 1}, {"at": 2}, {"at": 3}]
    assert_series_equal(gather_lists(place, values, 3), lists)

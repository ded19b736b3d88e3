"""The command `export`: targets, what it tells, and what goes wrong."""

import os
import re
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphrag_index.__main__ import app
from graphrag_index.cli.exchange_commands import GRAPH_FORMATS
from graphrag_index.errors import ExitCode, ExportError, TableError
from graphrag_index.storage.atomic import new_file, new_folder
from tests.fixtures.commands import call, environment
from tests.fixtures.small_graph import write_small_index

FOLDERS = {"neo4j", "parquet"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    (root / "settings.yaml").touch()
    write_small_index(root / "output")
    return root


def export(project: Path, *arguments: str) -> str:
    result = CliRunner().invoke(app, ["export", "--root", str(project), *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def content(target: Path) -> dict[str, bytes]:
    files = sorted(target.iterdir()) if target.is_dir() else [target]
    return {path.name if target.is_dir() else "": path.read_bytes() for path in files}


@pytest.mark.parametrize("form", GRAPH_FORMATS)
def test_every_form_is_written_the_same_each_time(project: Path, tmp_path: Path, form: str) -> None:
    target, again = tmp_path / "new folder" / "graph", tmp_path / "again"
    told = export(project, "--to", form, str(target))
    assert told.splitlines()[:2] == [
        f"Wrote 4 entities and 2 relationships of version 1 to {target}.",
        "Left out: 1 relationships to unknown entities.",
    ]
    export(project, "--to", form, str(again))
    assert content(target) == content(again)
    assert target.is_dir() == (form in FOLDERS)
    assert {path.name for path in target.parent.iterdir()} == {"graph"}


@pytest.mark.parametrize("form", ["gexf", "neo4j"])
def test_what_is_there_is_replaced_only_when_asked(
    project: Path, tmp_path: Path, form: str
) -> None:
    target = tmp_path / "graph"
    export(project, "--to", form, str(target))
    before = content(target)
    with pytest.raises(
        ExportError, match="already exists: name another target, or use --overwrite"
    ):
        export(project, "--to", form, str(target), "--type", "place")
    assert content(target) == before
    export(project, "--to", form, str(target), "--type", "place", "--overwrite")
    assert content(target) != before
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_a_folder_and_a_file_do_not_stand_for_each_other(project: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(ExportError, match="is a folder, but this format is a file"):
        export(project, "--to", "gexf", str(tmp_path / "folder"), "--overwrite")
    with pytest.raises(ExportError, match="is a file, but this format is a folder"):
        export(project, "--to", "neo4j", str(tmp_path / "file"), "--overwrite")
    export(project, "--to", "neo4j", str(tmp_path / "folder"))


def test_a_folder_with_anything_else_in_it_is_never_replaced(project: Path, tmp_path: Path) -> None:
    target = tmp_path / "graph"
    export(project, "--to", "neo4j", str(target))
    (target / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(ExportError, match=r"holds thesis.txt, which is not part of an export"):
        export(project, "--to", "neo4j", str(target), "--overwrite")
    assert (target / "thesis.txt").read_text(encoding="utf-8") == "years of work"


@pytest.mark.parametrize("name", ["output", "output/index.json", "output/new/graph.gexf"])
def test_an_export_does_not_lie_in_the_index(project: Path, name: str) -> None:
    before = (project / "output" / "index.json").read_bytes()
    with pytest.raises(ExportError, match="lies in the index folder"):
        export(project, "--to", "gexf", str(project / name), "--overwrite")
    assert (project / "output" / "index.json").read_bytes() == before


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("old", encoding="utf-8")
    folder.mkdir()
    (folder / "old.csv").touch()

    def fail(place: AbstractContextManager[Path]) -> None:
        with place as path:
            (path / "new.csv" if path.is_dir() else path).write_text("half", encoding="utf-8")
            raise OSError

    with pytest.raises(OSError):
        fail(new_file(file, overwrite=True))
    with pytest.raises(OSError):
        fail(new_folder(folder, {"old.csv"}, overwrite=True))
    assert file.read_text(encoding="utf-8") == "old"
    assert [path.name for path in folder.iterdir()] == ["old.csv"]
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder"}


def test_a_folder_is_the_old_one_again_where_the_new_one_cannot_take_its_name(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "old.csv").touch()
    with pytest.raises(FileNotFoundError), new_folder(folder, {"old.csv"}, overwrite=True) as path:
        path.rmdir()
    assert [path.name for path in folder.iterdir()] == ["old.csv"]
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_stays_a_link(project: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "to folder").symlink_to("folder")
    (tmp_path / "to file").symlink_to("file")
    for more in ([], ["--overwrite"]):
        export(project, "--to", "parquet", str(tmp_path / "to folder"), *more)
        export(project, "--to", "gexf", str(tmp_path / "to file"), *more)
    names = ["file", "folder", "to file", "to folder"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert (tmp_path / "to folder").is_symlink()
    assert (tmp_path / "to file").is_symlink()
    assert (tmp_path / "folder" / "nodes.parquet").is_file()


def test_what_is_no_place_for_an_export_is_refused(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ExportError, match=r"^\. is the current folder: name a new folder"):
        export(project, "--to", "neo4j", ".")
    (tmp_path / "file").touch()
    with pytest.raises(ExportError, match="file cannot be a folder, since a file is there"):
        export(project, "--to", "gexf", "file/graph.gexf")
    if sys.platform != "win32":
        os.mkfifo("pipe")
        with pytest.raises(ExportError, match=r"^pipe is not a plain file: name another"):
            export(project, "--to", "gexf", "pipe", "--overwrite")
    assert {path.name for path in tmp_path.iterdir()} <= {"file", "pipe"}


@pytest.mark.parametrize("form", ["gexf", "parquet"])
def test_what_a_killed_export_left_is_cleared_away(
    project: Path, tmp_path: Path, form: str
) -> None:
    (tmp_path / ".graph.lock").touch()
    if form in FOLDERS:
        (tmp_path / ".graph.tmp").touch()
    else:
        (tmp_path / ".graph.tmp" / "half").mkdir(parents=True)
    export(project, "--to", form, str(tmp_path / "graph"))
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_two_exports_do_not_write_one_file(tmp_path: Path) -> None:
    target = tmp_path / "graph"
    with new_file(target, overwrite=False) as path:
        path.write_text("first", encoding="utf-8")
        with (
            pytest.raises(ExportError, match="Another export is writing"),
            new_file(target, overwrite=False),
        ):
            pass
    assert target.read_text(encoding="utf-8") == "first"


def test_help_names_every_form() -> None:
    told = CliRunner().invoke(app, ["export", "--help"]).stdout
    assert all(re.search(rf"\b{form}:", told) for form in ["microsoft", *GRAPH_FORMATS])


def test_an_unknown_form_is_told_with_those_there_are(project: Path, tmp_path: Path) -> None:
    arguments = ["export", "--to", "dot", str(tmp_path / "graph"), "--root", str(project)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == ExitCode.WRONG_USE
    assert f"--to takes one of: {', '.join(['microsoft', *GRAPH_FORMATS])}." in result.stderr


def test_a_mistake_is_one_sentence(project: Path, tmp_path: Path) -> None:
    target = tmp_path / "graph"
    result = call(project, "export", "--to", "gexf", "--level", "7", str(target))
    assert result.returncode == ExitCode.WRONG_USE
    assert result.stderr == "Error: There is no level 7: the levels of the index are 0, 1.\n"
    with pytest.raises(TableError, match="has no version 4; it has: 1"):
        export(project, "--to", "gexf", str(target), "--as-of", "4")
    assert list(tmp_path.iterdir()) == []


def test_where_there_is_no_index_the_command_that_makes_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").touch()
    with pytest.raises(TableError, match="run `graphrag-index run` first"):
        export(tmp_path, "--to", "gexf", str(tmp_path / "graph.gexf"))


_LIMITED = """
import resource, sys
from graphrag_index.__main__ import main
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
sys.argv = ["graphrag-index", "export", "--to", sys.argv[1], "graph", "--root", sys.argv[2]]
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
@pytest.mark.parametrize("form", ["neo4j", "parquet"])
def test_a_full_disk_leaves_nothing(project: Path, tmp_path: Path, form: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", _LIMITED, form, str(project)],
        # Python cuts a compiled module at the limit too, and every later process would fail at it.
        env=environment(PYTHONDONTWRITEBYTECODE="1"),
        **{"cwd": tmp_path, "capture_output": True, "encoding": "utf-8"},
    )
    assert (result.returncode, result.stderr.count("\n")) == (1, 1), result.stderr
    assert "The disk is full" in result.stderr
    assert list(tmp_path.iterdir()) == []

"""The command line: what it prints where, and the exit code that it ends with."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import graphrag_index.__main__
import graphrag_query.__main__
from graphrag_index.cli import run_commands
from graphrag_index.pipeline.history import lock_output
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.storage.table_store import TableStore, open_index
from tests.fixtures.commands import Call, call, command, environment, small_project, write_project
from tests.fixtures.small_index import SHIPPED, TEXTS

COMMANDS = "init run validate schema show check download-model".split()


class TestHelp:
    def test_the_program_lists_its_commands(self, graphrag_index: Call) -> None:
        result = graphrag_index("--help")
        assert (result.code, result.err) == (0, "")
        for name in COMMANDS:
            assert re.search(rf"^  {name} +[A-Z].*\.$", result.out, re.MULTILINE), name

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command_explains_itself(self, graphrag_index: Call, name: str) -> None:
        result = graphrag_index(name, "--help")
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith(f"Usage: graphrag-index {name} ")
        options = set(re.findall(r"^  (--[a-z-]+)", result.out, re.MULTILINE))
        assert (
            options
            >= {
                "init": {"--input"},
                "run": {"--root", "--set", "--quiet", "--verbose"},
                "validate": {"--root", "--set"},
                "schema": set(),
                "show": {"--root", "--html", "--set"},
                "check": {"--root", "--json", "--as-of", "--set"},
                "download-model": {"--from"},
            }[name]
        )

    @pytest.mark.parametrize("app", [graphrag_index.__main__.app, graphrag_query.__main__.app])
    def test_values_have_names_in_capitals_in_every_command(self, app: typer.Typer) -> None:
        n_values = 0
        contexts = [typer.Context(typer.main.get_command(app))]
        for context in contexts:
            command = context.command
            contexts += [
                typer.Context(one, parent=context, info_name=name)
                for name, one in getattr(command, "commands", {}).items()
            ]
            usage = " ".join(command.collect_usage_pieces(context))
            assert re.fullmatch(r"[][A-Z|. ]+", usage), usage
            for parameter in command.params:
                if not getattr(parameter, "is_flag", False):
                    n_values += 1
                    assert re.fullmatch(r"[A-Z=| ]+", parameter.metavar or ""), parameter
        assert n_values > 80

    def test_help_is_clean_where_warnings_are_errors(self, tmp_path: Path) -> None:
        result = subprocess.run(
            [sys.executable, "-W", "error", "-m", "graphrag_index", "--help"],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert (result.returncode, result.stderr) == (0, "")

    def test_an_unknown_command_or_option_is_wrong_use(self, graphrag_index: Call) -> None:
        assert graphrag_index("rnu").code == 2
        result = graphrag_index("run", "--rot", "x")
        assert result.code == 2
        assert "--root" in result.err

    def test_without_a_command_the_help_is_printed(self, graphrag_index: Call) -> None:
        result = graphrag_index()
        assert "Usage: graphrag-index" in result.out + result.err


class TestInit:
    def test_a_new_project_is_written_and_the_next_commands_are_named(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        folder = tmp_path / "my über-project"
        result = graphrag_index("init", folder)
        assert (result.code, result.err) == (0, "")
        assert result.out == (
            f"Wrote {folder / 'settings.yaml'}\n"
            f"Wrote {folder / 'workflows' / 'embedded.yaml'}\n"
            f"Wrote {folder / 'workflows' / 'fast.yaml'}\n"
            f"Wrote {folder / 'workflows' / 'figures.yaml'}\n"
            f"Wrote {folder / 'workflows' / 'from_graph.yaml'}\n"
            f"Wrote {folder / 'workflows' / 'from_graph_written.yaml'}\n"
            f"Wrote {folder / 'workflows' / 'imported.yaml'}\n"
            f"Wrote {folder / 'workflows' / 'lazy.yaml'}\n"
            f"Wrote {folder / 'workflows' / 'standard.yaml'}\n"
            f"Put documents into {folder / 'input'}.\n"
            f"Next: graphrag-index run --root '{folder}'\n"
        )
        assert "is empty: put documents there" in graphrag_index("validate", "--root", folder).err
        (folder / "input" / "a.txt").write_text(TEXTS["scott.txt"], encoding="utf-8")
        assert graphrag_index("validate", "--root", folder).code == 0

    def test_a_second_time_is_refused(self, graphrag_index: Call, tmp_path: Path) -> None:
        assert graphrag_index("init", tmp_path).code == 0
        result = graphrag_index("init", tmp_path)
        assert (result.code, result.out) == (2, "")
        assert result.err == (
            f"Error: {tmp_path / 'settings.yaml'} already exists: nothing was written.\n"
        )

    def test_documents_elsewhere_are_indexed_from_there(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        documents = tmp_path / "teksty i Łódź"
        documents.mkdir()
        (documents / "a.txt").write_text(TEXTS["scott.txt"], encoding="utf-8")
        root = tmp_path / "project"
        assert graphrag_index("init", root, "--input", documents).code == 0
        (root / "workflows" / "texts.yaml").write_text("- load_documents\n", encoding="utf-8")
        assert graphrag_index("run", "--root", root, "--set", "workflow=texts").code == 0
        _, version = open_index(root / "output")
        assert version.tables["loaded_documents"].rows == 1

    @pytest.mark.parametrize("name", ["file", "file/project", "half", "link"])
    def test_a_file_in_the_way_of_a_project_is_wrong_use(
        self, graphrag_index: Call, tmp_path: Path, name: str
    ) -> None:
        (tmp_path / "file").touch()
        (tmp_path / "half").mkdir()
        (tmp_path / "half" / "workflows").touch()
        (tmp_path / "link").symlink_to("nowhere")
        before = sorted(tmp_path.rglob("*"))
        result = graphrag_index("init", tmp_path / name)
        in_the_way = {"file/project": "file", "half": "half/workflows"}.get(name, name)
        assert (result.code, result.out) == (2, "")
        assert result.err == (
            f"Error: {tmp_path / in_the_way} is not a folder: name another one for the project, "
            "or move what is there; nothing was written.\n"
        )
        assert sorted(tmp_path.rglob("*")) == before

    @pytest.mark.parametrize(
        ("name", "said"),
        [("a.txt", "is a file: name the folder in which it lies; "), ("b", "does not exist: ")],
    )
    def test_an_input_that_is_no_folder_is_wrong_use(
        self, graphrag_index: Call, tmp_path: Path, name: str, said: str
    ) -> None:
        (tmp_path / "a.txt").touch()
        result = graphrag_index("init", tmp_path / "new", "--input", tmp_path / name)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith(f"Error: The input folder {tmp_path / name} {said}")
        assert not (tmp_path / "new").exists()


class TestOtherCommands:
    def test_validate_names_the_steps_and_runs_none(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        root = small_project(tmp_path)
        result = graphrag_index("validate", "--root", root)
        assert (result.code, result.err) == (0, "")
        assert result.out == (
            "All is well. The workflow small runs: list_numbers, square, measure, add_up.\n"
        )
        assert not (root / "output").exists()

    def test_the_schema_is_json(self, graphrag_index: Call) -> None:
        result = graphrag_index("schema")
        assert (result.code, result.err) == (0, "")
        assert json.loads(result.out) == Settings.model_json_schema()

    def test_the_model_is_fetched_once(self, graphrag_index: Call, minilm_files: Path) -> None:
        result = graphrag_index("download-model")
        assert (result.code, result.err) == (0, "")
        assert result.out == f"The embedding model all-MiniLM-L6-v2 is already in {minilm_files}.\n"

    def test_output_that_nobody_reads_to_its_end_is_no_traceback(self, tmp_path: Path) -> None:
        result = subprocess.run(
            ["bash", "-c", '"$@" | true; exit ${PIPESTATUS[0]}', "bash", *command("schema")],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert (result.returncode, result.stderr) == (1, "")


def test_few_calls_lead_from_the_command_to_leiden(tmp_path: Path, graphrag_index: Call) -> None:
    root = write_project(tmp_path, SHIPPED, "finalize_graph: {layout: false}\n", TEXTS)
    calls: list[str] = []

    def profile(frame: Any, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name == "partition_with_graspologic" and not calls:
            while frame.f_code.co_filename != run_commands.__file__:
                calls.append(frame.f_code.co_name)
                frame = frame.f_back
            calls.append(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        result = graphrag_index("run", "--root", root, "--quiet")
    finally:
        sys.setprofile(None)
    assert result.code == 0, result.err
    assert calls[0] == "partition_with_graspologic"
    assert calls[-1] == "run"
    assert len(calls) <= 8


class TestStatus:
    def test_there_is_no_index_before_the_first_run(self, tmp_path: Path) -> None:
        result = call(small_project(tmp_path), "status")
        assert result.returncode == 0
        assert "There is no index in " in result.stdout

    def test_the_version_and_the_number_of_unread_files_are_told(self, tmp_path: Path) -> None:
        root = write_project(tmp_path, ["load_documents"], documents={**TEXTS, "empty.txt": ""})
        assert call(root, "run").returncode == 3
        said = call(root, "status").stdout
        assert re.search(r"^Version 1 of .*, made \d{4}-\d\d-\d\d \d\d:\d\d UTC, ", said)
        assert "1 file or record was not read" in said

    def test_a_run_that_goes_on_and_one_that_stopped_are_told(self, tmp_path: Path) -> None:
        root = small_project(tmp_path)
        assert call(root, "run").returncode == 0
        store = TableStore(root / "output")
        version = store.read_pointer()
        assert version is not None
        assert "A run is" not in call(root, "status").stdout
        store.folder(2).mkdir()
        store.write_journal(2, version.steps[:1])
        stopped = call(root, "status").stdout
        assert "did not finish: `graphrag-index run` continues after the step list_num" in stopped
        with lock_output(store):
            running = call(root, "status").stdout
        assert "A run is writing to it now; the last finished step is list_numbers." in running
        assert "did not finish" not in running

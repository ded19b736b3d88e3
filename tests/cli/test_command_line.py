"""The command line: what it prints where, and the exit code that it ends with."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_index.cli import run_commands
from graphrag_index.errors import explain_failures
from graphrag_index.pipeline.history import lock_output
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.storage.table_store import TableStore
from tests.fixtures.commands import (
    Call,
    call,
    call_process,
    command,
    environment,
    small_project,
    write_project,
)

REPOSITORY = Path(__file__).parents[2]
COMMANDS = "init run validate schema show check download-model".split()


TEXTS = {
    "amundsen.txt": "Roald Amundsen reached the South Pole. Amundsen sailed on the Fram.",
    "scott.txt": "Robert Scott reached the South Pole after Roald Amundsen.",
}
SHIPPED = (
    "load_documents create_text_units extract_graph_nlp finalize_graph create_communities "
    "link_text_units create_community_reports_nlp"
).split()


def table(root: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(root / "output" / f"{name}.parquet")


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
                "check": {"--root", "--json", "--html", "--as-of", "--set"},
                "download-model": {"--from"},
            }[name]
        )

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
        version = TableStore(root / "output").read_pointer()
        assert version is not None
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


class TestRun:
    def test_each_step_is_a_line_and_the_end_says_what_there_is_and_what_comes_next(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        root = write_project(tmp_path / "project", SHIPPED, documents=TEXTS)
        result = graphrag_index("run", "--root", root)
        assert (result.code, result.err) == (0, "")
        *steps, empty, counts, place, ask = result.out.splitlines()
        assert [line.split()[:2] for line in steps] == [
            [str(number), name] for number, name in enumerate(SHIPPED, 1)
        ]
        assert all(re.fullmatch(r" +\d  \w+ +\d+\.\d s  [\d,]+ .*", line) for line in steps), steps
        assert steps[0].endswith("2 documents")
        entities = table(root, "entities").height
        assert empty == ""
        assert counts.startswith(f"2 documents, 2 text units, {entities} entities, ")
        assert place == f"The tables are in {root / 'output'} (version 1)."
        assert ask == (f'Ask it: graphrag-query global "What are the main themes?" --root {root}')
        assert "\x1b" not in result.out

        again = graphrag_index("run", "--root", root)
        assert again.code == 0
        assert again.out.count("unchanged") == len(SHIPPED)
        assert f"Nothing changed: {root / 'output'} is up to date (version 1)." in again.out

        overview = graphrag_index("show", "--root", root)
        assert (overview.code, overview.err) == (0, "")
        assert "Amundsen" in overview.out
        page = tmp_path / "page.html"
        assert graphrag_index("show", "--root", root, "--html", page).out == f"Wrote {page}\n"
        assert 'id="index-data"' in page.read_text(encoding="utf-8")

    def test_quiet_prints_nothing_when_all_is_well(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        result = graphrag_index("run", "--root", small_project(tmp_path), "--quiet")
        assert (result.code, result.out, result.err) == (0, "", "")

    def test_verbose_tells_what_the_program_does_and_nothing_of_other_libraries(
        self, tmp_path: Path
    ) -> None:
        root = write_project(tmp_path, SHIPPED[:2], documents=TEXTS)
        result = call(root, "run", "--verbose")
        assert result.returncode == 0
        lines = result.stderr.splitlines()
        assert lines[0].startswith("DEBUG: load_documents runs with LoadDocuments(folder='input'")
        assert all(line.startswith("DEBUG: ") for line in lines)
        assert any(
            re.fullmatch(r"DEBUG: documents: 2 rows in versions/1/documents-\w+\.parquet", line)
            for line in lines
        )

    def test_files_that_were_not_read_are_listed_each_time(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        root = write_project(tmp_path, SHIPPED[:1], documents={**TEXTS, "bad.json": "{"})
        for _ in range(2):
            result = graphrag_index("run", "--root", root, "--quiet")
            assert (result.code, result.out) == (3, "")
            assert "\n1 file or record was not read:\n  bad.json: " in result.err
            assert result.err.endswith("Correct or remove these files and run again.\n")
        (root / "input" / "bad.json").unlink()
        assert graphrag_index("run", "--root", root, "--quiet").code == 0

    def test_a_column_that_no_record_has_is_told_and_is_no_failure(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        settings = "load_documents: {metadata_columns: [autor]}\n"
        records = {"a.csv": "author,text\nScott,One.\n", "b.csv": "author,text\nFram,Two.\n"}
        root = write_project(tmp_path, SHIPPED[:1], settings, records)
        result = call(root, "run")
        assert (result.returncode, result.stderr) == (
            0,
            "WARNING: load_documents.metadata_columns: no record and no front matter has 'autor'; "
            "their fields are author, text.\n",
        )

    def test_many_unread_files_are_counted(self, graphrag_index: Call, tmp_path: Path) -> None:
        bad = {f"{number:02}.json": "{" for number in range(25)}
        root = write_project(tmp_path, SHIPPED[:1], documents={**TEXTS, **bad})
        result = graphrag_index("run", "--root", root)
        assert result.code == 3
        assert "25 files or records were not read:" in result.err
        assert "  19.json: " in result.err
        assert "20.json" not in result.err
        assert "  ... and 5 more, all in the table unread_files.\n" in result.err

    def test_an_override_is_given_on_the_command_line(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        root = small_project(tmp_path)
        result = graphrag_index(
            *("run", "--root", root, "--set", "steps.list_numbers.count=5"),
            *("--set", "output=elsewhere"),
        )
        assert result.code == 0
        assert "5 numbers" in result.out
        assert not (root / "output").exists()
        assert (root / "elsewhere" / "index.json").is_file()

    def test_a_step_of_ones_own_changes_what_those_after_it_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # This process imports the step once; processes of their own import what it is then.
        monkeypatch.delitem(sys.modules, "my_steps", raising=False)
        monkeypatch.setattr(sys, "path", sys.path.copy())
        steps = ["load_documents", "my_steps:redact", *SHIPPED[1:3]]
        settings = "steps: {redact: {words: [Amundsen]}}\n"
        root = write_project(tmp_path, steps, settings, TEXTS)
        (root / "my_steps.py").write_text(REDACT, encoding="utf-8")

        assert "run: load_documents, redact, " in call(root, "run", "--dry-run").stdout
        result = call_process(root, "run")
        assert (result.returncode, result.stderr) == (0, "")
        number, name, _, *wrote = result.stdout.splitlines()[1].split()
        assert (number, name, wrote) == ("2", "redact", ["s", "2", "documents"])
        assert table(root, "documents")["text"].to_list() == [
            "Roald ___ reached the South Pole. ___ sailed on the Fram.",
            "Robert Scott reached the South Pole after Roald ___.",
        ]
        unchanged = call(root, "run").stdout
        assert unchanged.count("unchanged") == len(steps)

        # A change in a function that the step calls is a change of the step.
        (root / "my_steps.py").write_text(REDACT.replace("___", "XX"), encoding="utf-8")
        changed = call_process(root, "run").stdout.splitlines()
        assert [("unchanged" in line) for line in changed[:4]] == [True, False, False, False]
        assert table(root, "documents")["text"][1].endswith("after Roald XX.")

        wrong = call(root, "run", "--set", "steps.redact.word=[Scott]")
        assert wrong.returncode == 2
        assert wrong.stderr == ("Error: steps.redact: unknown key 'word'; did you mean 'words'?\n")


REDACT = """
import polars as pl
from pydantic import BaseModel, ConfigDict
from graphrag_index.step import step


class Redact(BaseModel):
    model_config = ConfigDict(extra="forbid")
    words: list[str] = []


def black_out(text: pl.Expr, words: list[str]) -> pl.Expr:
    return text.str.replace_all("|".join(words), "___")


@step(writes=["loaded_documents"])
def redact(loaded_documents: pl.LazyFrame, *, settings: Redact) -> pl.DataFrame:
    return loaded_documents.with_columns(black_out(pl.col("text"), settings.words)).collect()
"""


class TestRefusals:
    @pytest.mark.parametrize("name", ["run", "validate", "show"])
    def test_a_folder_without_settings_is_wrong_use(
        self, graphrag_index: Call, tmp_path: Path, name: str
    ) -> None:
        for folder in (tmp_path, tmp_path / "nowhere"):
            result = graphrag_index(name, "--root", folder)
            assert (result.code, result.out) == (2, "")
            assert result.err == (
                f"Error: There is no settings.yaml in {folder}: name another folder with --root, "
                "or write a first one with `graphrag-index init`.\n"
            )

    @pytest.mark.parametrize("name", ["run", "validate"])
    @pytest.mark.parametrize(
        ("override", "said"),
        [
            ("outptu=x", "unknown key 'outptu'; did you mean 'output'?"),
            ("workflow=smal", "did you mean 'small'?"),
            ("steps.list_number.count=3", "did you mean 'list_numbers'?"),
            ("steps.list_numbers.count=x", "steps.list_numbers: count is 'x': "),
        ],
    )
    def test_wrong_settings_are_found_before_anything_is_written(
        self, graphrag_index: Call, tmp_path: Path, name: str, override: str, said: str
    ) -> None:
        root = small_project(tmp_path)
        result = graphrag_index(name, "--root", root, "--set", override)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("Error: ")
        assert said in result.err
        assert result.err.count("\n") == 1
        assert not (root / "output").exists()

    @pytest.mark.parametrize("name", ["run", "validate"])
    def test_an_input_folder_without_documents_is_wrong_use(
        self, graphrag_index: Call, tmp_path: Path, name: str
    ) -> None:
        root = write_project(tmp_path, SHIPPED[:2])
        result = graphrag_index(name, "--root", root)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith(f"Error: The input folder {root / 'input'} does not exist: ")
        (root / "input").mkdir()
        result = graphrag_index(name, "--root", root)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith(f"Error: The input folder {root / 'input'} is empty: ")

    @pytest.mark.parametrize("name", ["run", "validate"])
    @pytest.mark.parametrize(
        ("folder", "output", "said"),
        [("input", "input", "is"), ("input", ".", "holds"), (".", ".", "is")],
    )
    def test_an_output_where_the_documents_lie_is_wrong_use_and_leaves_nothing(
        self,
        graphrag_index: Call,
        tmp_path: Path,
        name: str,
        folder: str,
        output: str,
        said: str,
    ) -> None:
        root = write_project(tmp_path, SHIPPED[:2], documents=TEXTS)
        before = sorted(root.rglob("*"))
        result = graphrag_index(
            *(name, "--root", root, "--set", f"output={output}"),
            *("--set", f"load_documents.folder={folder}"),
        )
        assert (result.code, result.out) == (2, "")
        assert result.err == (
            f"Error: The output {(root / output).resolve()} {said} the input folder: "
            "name another with `--set output=FOLDER`.\n"
        )
        assert sorted(root.rglob("*")) == before

    def test_an_output_below_the_documents_is_passed_over(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        root = write_project(tmp_path, SHIPPED[:2], "output: input/index\n", TEXTS)
        for expected in ("2 documents", "unchanged", "unchanged"):
            assert graphrag_index("validate", "--root", root).code == 0
            result = graphrag_index("run", "--root", root)
            assert (result.code, result.err) == (0, "")
            assert expected in result.out.splitlines()[0]
        # An older output lies there as well; a run that was stopped wrote no index.
        (root / "input" / "index" / "index.json").unlink()
        result = graphrag_index("run", "--root", root, "--set", "output=input/other")
        assert (result.code, result.err) == (0, "")
        assert "2 documents" in result.out.splitlines()[0]

    def test_a_missing_model_is_found_before_any_step_runs(self, tmp_path: Path) -> None:
        root = write_project(tmp_path, [*SHIPPED, "generate_text_embeddings"], documents=TEXTS)
        for name in ("run", "validate"):
            model = "generate_text_embeddings.model=all-MiniLM-L6-v2"
            cache = str(tmp_path / "cache")
            result = call(root, name, "--set", model, GRAPHRAG_INDEX_CACHE=cache)
            assert (result.returncode, result.stdout) == (1, "")
            assert "`graphrag-index download-model`" in result.stderr
        assert not (root / "output").exists()

    def test_an_index_that_is_not_there_cannot_be_shown(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        result = graphrag_index("show", "--root", small_project(tmp_path))
        assert (result.code, result.out) == (1, "")
        assert result.err == (
            f"Error: There is no index in {tmp_path / 'output'} yet: "
            "run `graphrag-index run` first.\n"
        )

    def test_a_damaged_table_is_one_sentence_and_a_run_mends_it(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        root = write_project(tmp_path, SHIPPED, documents=TEXTS)
        assert graphrag_index("run", "--root", root, "--quiet").code == 0
        path = (root / "output" / "entities.parquet").resolve()
        os.truncate(path, 100)
        result = graphrag_index("show", "--root", root)
        assert result.code == 1
        assert result.err == (
            f"Error: The table entities is damaged ({path}): "
            "run `graphrag-index run` to write it again.\n"
        )
        assert graphrag_index("run", "--root", root, "--quiet").code == 0
        assert graphrag_index("show", "--root", root).code == 0

    def test_a_damaged_pointer_is_one_sentence(self, graphrag_index: Call, tmp_path: Path) -> None:
        root = small_project(tmp_path)
        assert graphrag_index("run", "--root", root, "--quiet").code == 0
        (root / "output" / "index.json").write_text("{", encoding="utf-8")
        for name in ("run", "show"):
            result = graphrag_index(name, "--root", root)
            assert (result.code, result.out) == (1, "")
            assert result.err.startswith(f"Error: {root / 'output' / 'index.json'} is damaged: ")

    def test_an_output_that_is_a_file_is_wrong_use(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        root = small_project(tmp_path)
        (root / "output").write_text("mine", encoding="utf-8")
        result = graphrag_index("run", "--root", root)
        assert (result.code, result.out) == (2, "")
        assert result.err == (
            f"Error: The output {root / 'output'} is not a folder: "
            "name another with `--set output=FOLDER`.\n"
        )

    def test_a_run_beside_another_is_wrong_use(self, graphrag_index: Call, tmp_path: Path) -> None:
        root = small_project(tmp_path)
        with lock_output(TableStore(root / "output")):
            result = graphrag_index("run", "--root", root)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("Error: Another run is writing to ")

    @pytest.mark.parametrize(
        ("error", "said"),
        [
            (
                OSError(errno.ENOSPC, "No space left on device", "/index/a"),
                "Error: The disk is full (/index/a): make room and run again; finished steps "
                "are kept and the index is as it was.\n",
            ),
            (
                PermissionError(errno.EACCES, "Permission denied", "/index/a"),
                "Error: Permission denied (/index/a).\n",
            ),
            (OSError("lost"), "Error: lost.\n"),
        ],
    )
    def test_failures_of_the_system_are_one_sentence(
        self, capsys: pytest.CaptureFixture[str], error: OSError, said: str
    ) -> None:
        with pytest.raises(SystemExit) as ended, explain_failures():
            raise error
        assert ended.value.code == 1
        assert capsys.readouterr().err == said

    def test_a_mistake_in_a_step_of_ones_own_is_one_sentence_and_a_traceback_if_asked_for(
        self, tmp_path: Path
    ) -> None:
        root = small_project(tmp_path)
        result = call(root, "run", "--set", "steps.add_up.fail=true")
        assert result.returncode == 1
        sentence = (
            r"Error: Step add_up \(.*small_steps\.py, line \d+\) failed: "
            r"ArithmeticError: The sum does not come out\.\n"
        )
        assert re.fullmatch(sentence, result.stderr)
        result = call(root, "run", "--set", "steps.add_up.fail=true", "--verbose")
        assert result.returncode == 1
        assert 'raise ArithmeticError("The sum does not come out.")' in result.stderr
        assert re.search(sentence + r"\Z", result.stderr)
        assert call(root, "run").stdout.count("unchanged") == 3


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

"""Wrong use of the command line: one sentence that says what would be right."""

import errno
import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_index.errors import explain_failures
from tests.fixtures.commands import Call, ask, call, small_project, write_project
from tests.fixtures.small_index import SHIPPED, TEXTS

CODE = """
import sys
from graphrag_index.storage.lancedb_stubs import stub_unused_imports
stub_unused_imports()
import lancedb
table = lancedb.connect(sys.argv[1]).create_table("t", [{"vector": [1.0, 0.0], "id": "a"}])
print(table.search([1.0, 0.0]).limit(1).to_list()[0]["id"])
print(any(name.startswith("lance_namespace_urllib3_client.api") for name in sys.modules))
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
        self, graphrag_index: Call, tmp_path: Path, name: str, folder: str, output: str, said: str
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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("run", "project"),
            "Unexpected argument 'project'. A project is given by its folder: --root project\n",
        ),
        (("init", "project", "other"), "Unexpected argument 'other'.\n"),
        (("schema", "project"), "Unexpected argument 'project'.\n"),
    ],
)
def test_an_argument_too_many_is_refused_with_what_to_do(
    graphrag_index: Call, arguments: tuple[str, ...], said: str
) -> None:
    result = graphrag_index(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"Usage: graphrag-index {arguments[0]} ")
    assert result.err.endswith(f"\n\nError: {said}")


def test_a_question_of_several_words_needs_quotes() -> None:
    result = ask("global", "What", "are", "the", "themes?")
    assert result.returncode == 2
    assert result.stderr.endswith(
        "\n\nError: Unexpected argument 'are'. Put a question of several words in quotes.\n"
    )


def test_local_tables_need_no_remote_catalogue(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path)],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert result.stdout.split() == ["a", "False"]


@pytest.mark.parametrize("env", ["", "OPENAI_API_KEY=\n"])
def test_a_check_tells_of_a_missing_key_of_openai(
    graphrag_index: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    steps = ["load_documents", "create_text_units", "extract_graph"]
    root = write_project(tmp_path, steps, documents={"a.txt": "Crean sailed."})
    (root / ".env").write_text(env, encoding="utf-8")
    result = graphrag_index("validate", "--root", root)
    assert result.code == 2
    assert "has no key, which https://api.openai.com/v1 demands: export OPENAI_API" in result.err
    local = "models.chat={model: m, base_url: 'http://localhost:1/v1'}"
    assert graphrag_index("validate", "--root", root, "--set", local).code == 0

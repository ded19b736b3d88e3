"""What the pages show is true: examples run, links lead somewhere, tables are those of the code."""

import dataclasses
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
import yaml
from typer.core import TyperGroup

import graphrag_query
from graphrag_evaluation.systems import split_values
from graphrag_index.errors import ExitCode
from graphrag_index.llm.local.reader_model import ReaderDescription
from graphrag_index.resolution.decisions_file import DecisionsParser
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.project_settings import Settings, load_settings
from graphrag_index.schema.settings.section import Section
from graphrag_index.schema.tables import TABLES
from graphrag_index.steps import STEPS
from graphrag_nlp.names.uncased import LANGUAGE_CODES as CASELESS
from graphrag_nlp.text.languages import languages
from graphrag_query.answer import Answer, Citation, Outcome, Usage
from graphrag_server.server_settings import load_server_settings
from tests.conftest import REPOSITORY, run_project
from tests.fixtures.in_process import COMMANDS, call_here

DOCS = REPOSITORY / "docs"
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
NOTEBOOKS = {
    f"tutorials/{path.name}": json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(DOCS.glob("tutorials/*.ipynb"))
}
TEXTS = PAGES | {
    name: "\n".join("".join(cell["source"]) for cell in notebook["cells"])
    for name, notebook in NOTEBOOKS.items()
}
GENERATE = runpy.run_path(str(DOCS / "generate.py"))
SECTIONS = {name: type(part) for name, part in Settings() if isinstance(part, Section)}

_FENCE = re.compile(
    r"^(?:<!-- (?P<mark>[^>\n]*) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
# A command on a line of its own, after || or in backticks.
_COMMAND_LINE = re.compile(r"(?:^|`|\|\| )(graphrag-(?:index|query) [^`\n]+)", re.MULTILINE)
_OVERRIDE = re.compile(r"--set \"?([\w.]+=[^`\"\s]+)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class Example(NamedTuple):
    """A fenced block of a page, with what the comment before it says."""

    place: str  # page:line
    mark: str
    language: str
    code: str


EXAMPLES = [
    Example(
        f"{page}:{text.count(chr(10), 0, match.start('code'))}",
        match["mark"] or "",
        match["language"],
        match["code"],
    )
    for page, text in PAGES.items()
    for match in _FENCE.finditer(text)
]
FILES = {
    example.mark.removeprefix("file: "): example.code
    for example in EXAMPLES
    if example.mark.startswith("file: ")
}


def examples(language: str, mark: str = "") -> list[object]:
    return [
        pytest.param(example, id=example.place)
        for example in EXAMPLES
        if example.language == language and example.mark.startswith(mark)
    ]


def commands(code: str) -> list[list[str]]:
    """The lines that call this program, cut into words, without redirections."""
    lines = [shlex.split(line.partition(" > ")[0]) for line in code.splitlines()]
    return [words for words in lines if words and words[0] in COMMANDS]


def call(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    program, *arguments = words
    return call_here(program, arguments, folder)


def call_python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def rows_under(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table behind some words of a page, without its head."""
    lines = PAGES[page].partition(heading)[2].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def anchors(text: str) -> set[str]:
    """The names that GitHub and MkDocs give to headings."""
    plain = _FENCE.sub("", text)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
        for heading in _HEADING.findall(plain)
    }


@pytest.mark.parametrize("page", PAGES)
def test_generated_parts_are_those_of_the_code(page: str) -> None:
    assert GENERATE["render"](PAGES[page]) == PAGES[page], "run `python docs/generate.py`"


def test_every_setting_and_every_column_is_described() -> None:
    for name, section in SECTIONS.items():
        rows = rows_under("settings.md", f"### `{name}`")
        assert [row[0] for row in rows] == [f"`{key}`" for key in section.model_fields]
    for name, table in TABLES.items():
        rows = rows_under("tables.md", f"### `{name}`")
        assert [row[0] for row in rows] == [f"`{column}`" for column in table.columns]
        assert all(row[2].strip("| ") for row in rows), f"{name} has a column without a meaning"


def test_what_a_column_means_survives_a_new_type() -> None:
    page = (
        "<!-- begin: public tables -->\n### `mentions`\n\n"
        "| `entity` | string | whom it names |\n<!-- end: public tables -->\n"
    )
    rendered = GENERATE["render"](page)
    assert "| `entity` | int32 | whom it names |\n" in rendered
    assert "| `text_unit` | int32 |  |\n" in rendered


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_somewhere(page: str) -> None:
    for link in _LINK.findall(TEXTS[page]):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = ((DOCS / page).parent / name).resolve() if name else DOCS / page
        assert target.is_file(), link
        if anchor:
            assert anchor in anchors(TEXTS[target.relative_to(DOCS).as_posix()]), link


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_stored_without_outputs(name: str) -> None:
    cells = [cell for cell in NOTEBOOKS[name]["cells"] if cell["cell_type"] == "code"]
    assert cells
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)


def test_the_page_of_tutorials_leads_to_all_of_them() -> None:
    assert set(_LINK.findall(PAGES["tutorials.md"])) == set(NOTEBOOKS)


def test_the_first_page_leads_to_all_others() -> None:
    linked = {link.partition("#")[0] for link in _LINK.findall(PAGES["index.md"])}
    assert set(PAGES) - {"index.md"} <= linked


@pytest.mark.parametrize("example", examples("python", "test"))
def test_python_examples_run(
    example: Example, sample_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in example.mark.partition(": ")[2].split():
        pytest.importorskip(library)
    monkeypatch.chdir(sample_project)
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(example.code, example.place, "exec"), names)
    # An example that binds nothing new shows nothing.
    assert names.keys() - {"__name__", "__builtins__"}


def test_no_python_example_goes_untested() -> None:
    unmarked = [e.place for e in EXAMPLES if e.language == "python" and not e.mark]
    assert unmarked == []


@pytest.mark.parametrize("example", examples("yaml"))
def test_yaml_examples_are_settings_or_workflows(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = yaml.safe_load(example.code)
    if isinstance(content, list):
        assert all(name in STEPS or f"{name.partition(':')[0]}.py" in FILES for name in content)
        return
    if example.mark == "resolutions.yaml":
        assert DecisionsParser(example.code, tmp_path).parse().split
        return
    if example.mark == "reader.yaml":
        assert ReaderDescription.model_validate(content).sha256
        return
    if example.mark == "server.yaml":
        (tmp_path / "server.yaml").write_text(example.code, encoding="utf-8")
        assert load_server_settings(tmp_path / "server.yaml").indexes
        return
    for name in re.findall(r"\$\{(\w+)\}", example.code):
        monkeypatch.setenv(name, "somewhere")
    (tmp_path / "settings.yaml").write_text(example.code, encoding="utf-8")
    load_settings(tmp_path)


def test_the_embedded_workflow_is_the_one_that_is_shown() -> None:
    shown = next(e.code for e in EXAMPLES if e.place.startswith("workflows.md"))
    shipped = (REPOSITORY / "workflows" / "embedded.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(shown) == yaml.safe_load(shipped)


@pytest.mark.parametrize("page", TEXTS)
def test_commands_are_understood(page: str) -> None:
    found = "\n".join(_COMMAND_LINE.findall(TEXTS[page]))
    for program, *arguments in commands(found):
        command, name, context = COMMANDS[program], program, None
        # A group of commands, such as `keys`, leaves the arguments of its command.
        while True:
            # Raises for an unknown option, a missing argument or a wrong value.
            context = command.make_context(name, list(arguments), parent=context)
            if not isinstance(command, TyperGroup):
                break
            name, command, arguments = command.resolve_command(context, arguments)
        assert context.args == []


@pytest.mark.parametrize("page", PAGES)
def test_overrides_are_settings(page: str, tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").touch()
    # An evaluation compares several values of an override.
    shown = tuple(value for text in _OVERRIDE.findall(PAGES[page]) for value in split_values(text))
    changed = load_settings(tmp_path, shown) != load_settings(tmp_path)
    assert changed == bool(shown)


@pytest.mark.parametrize("example", examples("sh", "test"))
def test_marked_commands_run(example: Example, sample_project: Path) -> None:
    for words in commands(example.code):
        result = call(words, sample_project)
        assert (result.returncode, result.stderr) == (0, "")
        assert "answered" in result.stdout


@pytest.fixture(scope="module")
def redacted_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the page on steps of one's own, without the step that needs a model."""
    root = tmp_path_factory.mktemp("own_steps")
    for name, code in FILES.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(code, encoding="utf-8")
    workflow = root / "workflows" / "redacted.yaml"
    steps = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    steps.remove("generate_text_embeddings")
    workflow.write_text(yaml.safe_dump([*steps, "lengths:measure_documents"]), encoding="utf-8")
    (root / "input").mkdir()
    (root / "input" / "meeting.txt").write_text(
        "Alice Novak met bob reyes in Prague. Carol Weiss paid Bob Reyes.", encoding="utf-8"
    )
    call_record = {
        "title": "Call of Alice Novak",
        "text": "Carol Weiss called Bob Reyes. Carol Weiss lives in Prague.",
        "caller": "Alice Novak",
    }
    (root / "input" / "calls.jsonl").write_text(json.dumps(call_record), encoding="utf-8")
    result = call(["graphrag-index", "run"], root)
    assert result.returncode == 0, result.stderr
    return root


def test_names_taken_out_are_in_no_public_table(redacted_project: Path) -> None:
    documents = pl.read_parquet(redacted_project / "output" / "documents.parquet")
    assert documents.select("title", "text", "raw_data", "metadata").rows() == [
        (
            "Call of [redacted]",
            "Carol Weiss called [redacted]. Carol Weiss lives in Prague.",
            None,
            '{"caller": "[redacted]"}',
        ),
        (
            "meeting.txt",
            "[redacted] met [redacted] in Prague. Carol Weiss paid [redacted].",
            None,
            "{}",
        ),
    ]
    entities = pl.read_parquet(redacted_project / "output" / "entities.parquet")
    assert {"Carol Weiss", "Prague"} <= set(entities["title"])
    for path in redacted_project.glob("output/*.parquet"):
        rows = json.dumps(pl.read_parquet(path).to_dicts())
        assert "Novak" not in rows, path.name
        assert "Reyes" not in rows, path.name


def test_the_table_of_ones_own_is_read_as_shown(redacted_project: Path) -> None:
    result = call_python("read_lengths.py", folder=redacted_project)
    assert result.returncode == 0, result.stderr
    assert "n_words" in result.stdout


def test_own_settings_are_strict_as_the_page_says(redacted_project: Path) -> None:
    wrong = "steps.redact_names.name=[Alice Novak]"
    result = call(["graphrag-index", "validate", "--set", wrong], redacted_project)
    assert result.returncode == ExitCode.WRONG_USE
    assert "did you mean 'names'?" in result.stderr


def test_the_graph_of_the_example_gives_the_answer_that_is_shown(tmp_path: Path) -> None:
    shown = {
        example.mark.removeprefix("graph: "): example.code
        for example in EXAMPLES
        if example.mark.startswith("graph: ")
    }
    answer = shown.pop("answer")
    for name, code in shown.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    shutil.copytree(REPOSITORY / "workflows", tmp_path / "workflows")
    run_project(tmp_path)
    (question,) = re.findall(r'graphrag-query path "(.*)"', PAGES["from-graph.md"])
    found = graphrag_query.open(tmp_path / "output").path(question)
    assert found.text.strip() == answer.strip()
    assert [citation.path for citation in found.citations] == ["links.csv", "links.csv"]


def test_keys_that_microsofts_settings_become_are_settings() -> None:
    of_models = {"models", *ModelSettings.model_fields}
    for row in rows_under("from-microsoft-graphrag.md", "### Settings"):
        here = re.findall(r"`(\w+)\.(\w+)`", row[1])
        for section, key in here:
            assert key in SECTIONS[section].model_fields, row
        told = of_models & {*re.findall(r"`(\w+)`", row[1])}
        assert here or told or re.search(r"not|same|`workflow|workflow:|exports", row[1]), row


def test_every_field_of_an_answer_is_described() -> None:
    answer = Answer("?", "", Outcome.NO_EVIDENCE, "local").to_dict()
    described = [row[0] for row in rows_under("searches.md", "## An answer")]
    assert set(described) == {f"`{name}`" for name in answer}
    described = [row[0] for row in rows_under("searches.md", "Each citation")]
    assert described == [f"`{field.name}`" for field in dataclasses.fields(Citation)]
    (usage,) = (row[1] for row in rows_under("searches.md", "## An answer") if "usage" in row[0])
    assert all(f"`{field.name}`" in usage for field in dataclasses.fields(Usage))


def test_every_exit_code_is_explained() -> None:
    rows = rows_under("workflows.md", "## Exit codes")
    assert [int(row[0]) for row in rows] == [int(code) for code in ExitCode]


def test_every_language_is_in_the_page_on_how_it_works() -> None:
    named = " ".join(
        cell for row in rows_under("how-it-works.md", "### By language") for cell in row
    )
    assert set(re.findall(r"`([a-z]{2})`", named)) == {*languages(), *CASELESS}

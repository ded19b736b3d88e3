"""A workflow: what is refused before it runs."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import BaseModel

from graphrag_index.errors import ExitCode, SettingsError, WorkflowError
from graphrag_index.pipeline.workflow import (
    Service,
    Workflow,
    check_services,
    check_steps,
    load_workflow,
    select_sections,
)
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.settings.step_sections import CreateCommunities
from graphrag_index.schema.tables import TABLES, Table
from graphrag_index.step import Progress, Read, step
from graphrag_index.steps import STEPS
from tests.fixtures.cases import cases
from tests.fixtures.small_steps import NUMBERS, SMALL

REPOSITORY = Path(__file__).parents[2]
WORDS = Table("words", "one word", "the word", {"word": pl.String})


class TestLoading:
    def load(self, root: Path, text: str) -> Workflow:
        (root / "workflows").mkdir(exist_ok=True)
        (root / "workflows" / "mine.yaml").write_text(text, encoding="utf-8")
        return load_workflow(root, "mine")

    def refusal(self, root: Path, text: str) -> str:
        with pytest.raises(WorkflowError) as caught:
            self.load(root, text)
        assert caught.value.exit_code == ExitCode.WRONG_USE
        return str(caught.value).replace(f"{root / 'workflows'}/", "")

    def test_shipped_workflows_name_shipped_steps_in_order(self) -> None:
        used = set()
        for path in sorted((REPOSITORY / "workflows").glob("*.yaml")):
            names = [step.name for step in load_workflow(REPOSITORY, path.stem).steps]
            assert names == sorted(names, key=[*STEPS].index)
            used.update(names)
        # What a user adds who wants it, and what an import puts into a workflow.
        added = {"normalize_values"}
        imported = {"skip_imported", "add_imported", "add_imported_nlp", "read_imported_vectors"}
        assert used == set(STEPS) - added - imported

    def test_a_byte_order_mark_is_no_part_of_the_first_step(self, tmp_path: Path) -> None:
        assert self.load(tmp_path, "\ufeff- load_documents").steps[0].name == "load_documents"

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "mine.yaml names no step."),
            ("[]", "mine.yaml names no step."),
            ("# - load_documents", "mine.yaml names no step."),
            ("load_documents", "mine.yaml must be a list of step names, one `- name` a line."),
            (
                "steps: [load_documents]",
                "mine.yaml must be a list of step names, one `- name` a line.",
            ),
            (
                "- load_documents:\n    folder: x",
                "mine.yaml must be a list of step names, one `- name` a line.",
            ),
            (
                "- load_document",
                "mine.yaml: unknown step 'load_document'; did you mean 'load_documents'?",
            ),
            ("- zzz", f"mine.yaml: unknown step 'zzz'; known: {', '.join(STEPS)}."),
            (
                "- my_steps.load_documents",
                "mine.yaml: unknown step 'my_steps.load_documents'; a step of your own is named "
                "module:function; did you mean 'load_documents'?",
            ),
            (
                "- create_text_units",
                "mine.yaml: step create_text_units reads the table loaded_documents, "
                "which no step before it writes.",
            ),
            (
                "- load_documents\n- load_documents",
                "mine.yaml: there are two steps with the name load_documents.",
            ),
            (
                "- tests.fixtures.small_steps:list_numbers\n"
                "- tests.pipeline.test_workflow:count_down",
                "mine.yaml: step count_down writes the table numbers a second time.",
            ),
            (
                "- no_such_module:redact",
                "mine.yaml: step 'no_such_module:redact' cannot be imported: "
                "No module named 'no_such_module'.",
            ),
            (
                "- tests.fixtures.small_steps:nothing",
                "mine.yaml: 'tests.fixtures.small_steps:nothing' is not a step; decorate the "
                "function with `@graphrag_index.step.step(writes=[...])`.",
            ),
            (
                "- tests.fixtures.small_steps:small_settings",
                "mine.yaml: 'tests.fixtures.small_steps:small_settings' is not a step; "
                "decorate the function with `@graphrag_index.step.step(writes=[...])`.",
            ),
        ],
    )
    def test_what_cannot_run_is_refused(self, tmp_path: Path, text: str, said: str) -> None:
        assert self.refusal(tmp_path, text) == said

    def test_broken_yaml_is_refused(self, tmp_path: Path) -> None:
        assert self.refusal(tmp_path, "- [").startswith("mine.yaml cannot be read: ")
        (tmp_path / "workflows" / "mine.yaml").write_bytes(b"- \xff\xfe")
        with pytest.raises(WorkflowError, match=r"mine\.yaml cannot be read: "):
            load_workflow(tmp_path, "mine")

    def test_a_missing_workflow_is_refused_with_the_nearest_one(self, tmp_path: Path) -> None:
        self.load(tmp_path, "- load_documents")
        with pytest.raises(WorkflowError, match=r"no workflow 'mime' .*; did you mean 'mine'\?"):
            load_workflow(tmp_path, "mime")
        with pytest.raises(
            WorkflowError, match="`graphrag-index init` writes the first ones into a new"
        ):
            load_workflow(tmp_path / "nowhere", "mine")

    def test_a_step_beside_the_settings_is_found_by_its_import_path(self, tmp_path: Path) -> None:
        (tmp_path / "steps_beside_settings.py").write_text(
            "from graphrag_index.step import step\n"
            "@step(writes=['unread_files'])\n"
            "def check_files():\n"
            "    ...\n",
            encoding="utf-8",
        )
        workflow = self.load(tmp_path, "- steps_beside_settings:check_files")
        assert [step.name for step in workflow.steps] == ["check_files"]
        sys.path.remove(str(tmp_path))

    @pytest.mark.parametrize(
        ("code", "said"),
        [
            ("x = 1\n1/0\n", "ZeroDivisionError: division by zero (m{}.py, line 2)."),
            ("import sys\nsys.exit(3)\n", "SystemExit: 3 (m{}.py, line 2)."),
            ("no_name\n", "NameError: name 'no_name' is not defined (m{}.py, line 1)."),
        ],
    )
    def test_a_module_that_fails_is_refused_by_its_line(
        self, tmp_path: Path, code: str, said: str
    ) -> None:
        number = len(code)
        (tmp_path / f"m{number}.py").write_text(code, encoding="utf-8")
        assert self.refusal(tmp_path, f"- m{number}:f") == (
            f"mine.yaml: step 'm{number}:f' cannot be imported: {said.format(number)}"
        )
        sys.path.remove(str(tmp_path))

    @pytest.mark.parametrize("name", [":f", "own:", ".own:f", "a..b:f", "own.py:f"])
    def test_a_name_without_module_or_function_is_refused(self, tmp_path: Path, name: str) -> None:
        assert self.refusal(tmp_path, f'- "{name}"') == (
            f"mine.yaml: {name!r} names no step; a step of your own is named module:function, "
            "such as redaction:redact_names for a function in redaction.py."
        )

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("&x [*x]", "it is nested too deeply, or an alias refers to a value around it."),
            ("[" * 3000, "it is nested too deeply."),
            ('["a\\0b"]', "'a\\x00b' has a null character, which no name or text can have."),
        ],
    )
    def test_yaml_that_cannot_be_meant_is_refused(
        self, tmp_path: Path, text: str, said: str
    ) -> None:
        assert self.refusal(tmp_path, text) == f"mine.yaml cannot be read: {said}"

    def test_a_module_that_is_no_python_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "steps_with_a_typo.py").write_text("def f(:\n", encoding="utf-8")
        said = self.refusal(tmp_path, "- steps_with_a_typo:f")
        assert "cannot be imported: invalid syntax (steps_with_a_typo.py, line 1)" in said
        sys.path.remove(str(tmp_path))


@step(writes=[NUMBERS])
def count_down() -> pl.DataFrame:
    return NUMBERS.empty()


class TestSettings:
    def check(self, values: dict[str, Any], workflow: Workflow = SMALL) -> dict[str, Any]:
        check_steps(workflow, Settings(steps=values), Path())
        return select_sections(workflow, Settings(steps=values))

    def test_every_step_gets_its_own_section(self) -> None:
        sections = self.check({"list_numbers": {"first": 5}})
        assert sections["list_numbers"].first == 5
        assert sections["add_up"].factor == 1
        assert "square" not in sections

    @cases("values, said")
    def test_what_fits_no_step_is_refused(self, values: dict[str, Any], said: str) -> None:
        with pytest.raises(SettingsError) as caught:
            self.check(values)
        assert str(caught.value) == said

    def test_a_key_that_a_step_needs_is_asked_for(self) -> None:
        from pydantic import BaseModel

        class Translate(BaseModel):
            language: str

        @step(writes=[NUMBERS])
        def translate(*, settings) -> pl.DataFrame:  # type: ignore[no-untyped-def]
            return NUMBERS.empty()

        workflow = Workflow("w", (replace(translate, settings_model=Translate),))
        with pytest.raises(SettingsError, match=r"^steps.translate: language is missing\.$"):
            self.check({}, workflow)

    def test_settings_without_a_model_come_as_they_are(self) -> None:
        @step(writes=[NUMBERS])
        def shout(*, settings: dict[str, Any]) -> pl.DataFrame:
            return NUMBERS.empty()

        assert self.check({"shout": {"loud": 3}}, Workflow("w", (shout,))) == {"shout": {"loud": 3}}

    def test_a_step_of_ones_own_can_ask_for_a_section_of_the_program(self) -> None:
        @step(writes=["communities"])
        def create_communities(*, settings: CreateCommunities) -> pl.DataFrame:
            return TABLES["communities"].empty()

        settings = Settings(create_communities=CreateCommunities(seed=7))
        sections = select_sections(Workflow("w", (create_communities,)), settings)
        assert sections["create_communities"].seed == 7

    def test_a_service_that_there_is_not_is_refused(self) -> None:
        @step(writes=[NUMBERS])
        def draw(*, progres: Progress) -> pl.DataFrame:
            return NUMBERS.empty()

        workflow = Workflow("w", (draw,))
        with pytest.raises(WorkflowError) as caught:
            check_services(workflow, {}, {})
        assert str(caught.value) == "Step draw asks for 'progres'; did you mean 'progress'?"
        check_services(workflow, {}, {"progres": Service(lambda step, section: None)})


class Redact(BaseModel):
    """Settings of a step of one's own."""

    words: list[str] = []


def test_positional_parameters_are_tables_and_keywords_are_services() -> None:
    @step(writes=["documents", WORDS], code_version=3)
    def redact(
        loaded_documents: pl.LazyFrame,
        entities: pl.DataFrame,
        covariates: pl.LazyFrame | None = None,
        words=None,  # type: ignore[no-untyped-def]
        *,
        settings: Redact,
        progress: object,
    ) -> dict[str, pl.DataFrame]:
        return {}

    assert redact.name == "redact"
    assert redact.reads == (
        Read("loaded_documents", optional=False, lazy=True),
        Read("entities", optional=False, lazy=False),
        Read("covariates", optional=True, lazy=True),
        Read("words", optional=True, lazy=False),
    )
    assert redact.writes == (TABLES["documents"], WORDS)
    assert redact.services == ("settings", "progress")
    assert redact.settings_model is Redact
    assert redact.code_version == 3
    assert redact.fingerprint is None


def test_a_step_can_be_called_as_the_function_that_it_is() -> None:
    @step(writes=[WORDS])
    def list_words(documents: pl.DataFrame, *, settings: Redact) -> pl.DataFrame:
        return documents.select(word="title").filter(~pl.col("word").is_in(settings.words))

    titles = pl.DataFrame({"title": ["a", "b"]})
    found = list_words(titles, settings=Redact(words=["a"]))
    assert isinstance(found, pl.DataFrame)
    assert found["word"].to_list() == ["b"]


@pytest.mark.parametrize(("writes", "shown"), [("documents", "'documents'"), (WORDS, "...")])
def test_one_table_in_place_of_a_list_is_refused(writes: Any, shown: str) -> None:
    def redact() -> None: ...

    with pytest.raises(WorkflowError) as caught:
        step(writes=writes)(redact)
    assert str(caught.value) == (
        "Step redact: writes must be a list of tables, "
        f"`@step(writes=[{shown}])`, also if it is one."
    )


def test_a_table_that_nobody_defined_is_refused() -> None:
    declare = step(writes=["docments"])

    def redact() -> None: ...

    with pytest.raises(WorkflowError) as caught:
        declare(redact)
    assert str(caught.value) == (
        "Step redact writes the unknown table 'docments': "
        "give a Table with its columns instead of a name."
    )

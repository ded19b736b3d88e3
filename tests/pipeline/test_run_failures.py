"""Runs that fail, and damaged files of an index."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_index.errors import ModelError, SettingsError, StepError, TableError, WorkflowError
from graphrag_index.pipeline.history import lock_output
from graphrag_index.pipeline.workflow import Workflow
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.step import step
from graphrag_index.storage.table_store import TableStore
from tests.fixtures.small_index import read_files, read_table
from tests.fixtures.small_steps import NUMBERS, files, kept, run, small_settings


class TestFailuresAndDamage:
    def test_a_step_that_fails_leaves_the_index_as_it_was(self, tmp_path: Path) -> None:
        run(tmp_path)
        index = (tmp_path / "output" / "index.json").read_bytes()
        before = read_files(tmp_path)
        with pytest.raises(StepError):
            run(tmp_path, small_settings({"generation": 1}, fail=True))
        assert (tmp_path / "output" / "index.json").read_bytes() == index
        assert read_files(tmp_path) == before
        assert not [*tmp_path.rglob("*.tmp")]

    @pytest.mark.parametrize(
        ("error", "said"),
        [
            (ValueError("boom."), "ValueError: boom."),
            (ValueError(), "ValueError."),
            (SystemExit(3), "SystemExit: 3."),
            (RuntimeError("one\n two\n\nthree"), "RuntimeError: one two."),
        ],
    )
    @pytest.mark.parametrize("late", [False, True])
    def test_a_failure_names_the_step_and_the_line(
        self, tmp_path: Path, error: BaseException, said: str, late: bool
    ) -> None:
        @step(writes=[NUMBERS])
        def give() -> Any:
            if not late:
                raise error
            return batches()

        def batches() -> Iterator[pl.DataFrame]:
            yield NUMBERS.empty()
            raise error

        with pytest.raises(StepError) as caught:
            run(tmp_path, Settings(), Workflow("w", (give,)))
        place = r"Step give \(test_run_failures\.py, line \d+\) failed: "
        assert re.fullmatch(place + re.escape(said), str(caught.value))
        assert caught.value.__cause__ is error

    def test_a_mistake_of_the_program_names_the_step_and_how_to_see_more(
        self, tmp_path: Path
    ) -> None:
        def give() -> Any:
            raise KeyError("x")

        give.__module__ = "graphrag_index.steps.give"
        with pytest.raises(StepError) as caught:
            run(tmp_path, Settings(), Workflow("w", (step(writes=[NUMBERS])(give),)))
        assert str(caught.value) == (
            "Step give failed: KeyError: 'x'. This is a bug in the program: --verbose shows where."
        )

    @pytest.mark.parametrize(
        "error", [KeyboardInterrupt(), OSError(28, "No space"), ModelError("It is not there.")]
    )
    def test_interruptions_and_failures_that_explain_themselves_come_as_they_are(
        self, tmp_path: Path, error: BaseException
    ) -> None:
        @step(writes=[NUMBERS])
        def give() -> Any:
            raise error

        with pytest.raises(type(error)) as caught:
            run(tmp_path, Settings(), Workflow("w", (give,)))
        assert caught.value is error

    def test_the_steps_that_were_finished_before_a_failure_are_not_run_again(
        self, tmp_path: Path
    ) -> None:
        with pytest.raises(StepError):
            run(tmp_path, small_settings(fail=True))
        result = run(tmp_path)
        assert kept(result) == ("list_numbers", "square", "measure")
        assert result.steps_run == ("add_up",)
        run(tmp_path / "undisturbed")
        assert read_files(tmp_path) == read_files(tmp_path / "undisturbed")

    def test_after_a_failure_and_a_change_back_nothing_of_the_change_is_left(
        self, tmp_path: Path
    ) -> None:
        run(tmp_path)
        before = files(tmp_path)
        with pytest.raises(StepError):
            run(tmp_path, small_settings({"generation": 1}, fail=True))
        assert run(tmp_path).steps_run == ()
        assert files(tmp_path) == before

    @pytest.mark.parametrize("cut_off", [True, False])
    def test_a_table_that_is_gone_or_cut_off_is_written_again(
        self, tmp_path: Path, cut_off: bool
    ) -> None:
        result = run(tmp_path)
        before = read_files(tmp_path)
        path = tmp_path / "output" / str(result.version.tables["squares"].file)
        if cut_off:
            path.write_bytes(path.read_bytes()[:-9])
        else:
            path.unlink()
        with pytest.raises(TableError, match=r"squares is .* `graphrag-index run`"):
            read_table(tmp_path, "squares")
        assert run(tmp_path).steps_run == ("square",)
        assert read_files(tmp_path) == before
        assert run(tmp_path).steps_run == ()

    def test_a_damaged_pointer_stops_a_run_and_without_it_what_is_whole_is_kept(
        self, tmp_path: Path
    ) -> None:
        run(tmp_path)
        before = files(tmp_path / "output" / "versions")
        pointer = tmp_path / "output" / "index.json"
        pointer.write_text("{", encoding="utf-8")
        with pytest.raises(TableError, match="is damaged"):
            run(tmp_path)
        pointer.unlink()
        assert run(tmp_path).steps_run == ()
        assert files(tmp_path / "output" / "versions") == before

    def test_a_second_run_at_the_same_time_is_refused(self, tmp_path: Path) -> None:
        with lock_output(TableStore(tmp_path / "output")):
            with pytest.raises(WorkflowError) as caught:
                run(tmp_path)
            assert str(caught.value) == (
                f"Another run is writing to {tmp_path / 'output'}: wait for it to finish, "
                "or give this one another folder with `--set output=FOLDER`."
            )
        assert run(tmp_path).new_version

    def test_an_output_that_is_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "output").write_text("mine", encoding="utf-8")
        with pytest.raises(SettingsError, match="is not a folder: name another"):
            run(tmp_path)
        with pytest.raises(SettingsError, match="is not a folder: name another"):
            run(tmp_path, small_settings().model_copy(update={"output": "output/index"}))
        assert (tmp_path / "output").read_text(encoding="utf-8") == "mine"

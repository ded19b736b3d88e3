"""Running a workflow: which steps run, what they give and leave, failures and damage."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from graphrag_index.errors import ModelError, SettingsError, StepError, TableError
from graphrag_index.pipeline.run import RunSetup, Watcher, run_workflow
from graphrag_index.pipeline.workflow import Service, Workflow
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.tables import TABLES, Table
from graphrag_index.step import Progress, Step, step
from graphrag_index.storage.table_store import Previous, TableStore, open_index
from graphrag_index.storage.versions import StepRecord
from tests.fixtures.small_index import read_files, read_table
from tests.fixtures.small_steps import (
    NUMBERS,
    SIZES,
    SMALL,
    SQUARES,
    TOTALS,
    files,
    kept,
    list_numbers,
    measure,
    run,
    small_settings,
    square,
)


@step(writes=[NUMBERS])
def negate(numbers: pl.DataFrame) -> pl.DataFrame:
    """Rewrites the table that it reads."""
    return numbers.with_columns(-pl.col("number"))


class TestWhichStepsRun:
    def test_the_first_run_runs_all_and_the_second_none(self, tmp_path: Path) -> None:
        first = run(tmp_path)
        assert first.steps_run == ("list_numbers", "square", "measure", "add_up")
        assert (kept(first), first.new_version, first.version.number) == ((), True, 1)
        before = files(tmp_path)
        changed = (tmp_path / "output" / "index.json").stat().st_mtime_ns

        second = run(tmp_path)
        assert (second.steps_run, second.new_version) == ((), False)
        assert kept(second) == first.steps_run
        assert second.version == first.version
        assert files(tmp_path) == before
        assert (tmp_path / "output" / "index.json").stat().st_mtime_ns == changed

    def test_a_changed_setting_runs_its_step_and_what_depends_on_changed_tables(
        self, tmp_path: Path
    ) -> None:
        run(tmp_path)
        result = run(tmp_path, small_settings(factor=2))
        assert (result.steps_run, result.version.number) == (("add_up",), 2)
        result = run(tmp_path, small_settings({"first": 2}, factor=2))
        assert result.steps_run == ("list_numbers", "square", "measure", "add_up")
        assert read_table(tmp_path, "totals")["total"].item() == 2 * (4 + 9 + 16) + 3

    def test_a_step_that_gives_the_same_bytes_again_stops_the_change_there(
        self, tmp_path: Path
    ) -> None:
        @step(writes=[TOTALS])
        def double_size(sizes: pl.DataFrame) -> pl.DataFrame:
            return sizes.select(generation=0, total=pl.col("size") * 2)

        workflow = Workflow("w", (list_numbers, measure, double_size))
        run(tmp_path, Settings(steps={"list_numbers": {"first": 1}}), workflow)
        # Other numbers, but as many.
        result = run(tmp_path, Settings(steps={"list_numbers": {"first": 2}}), workflow)
        assert result.steps_run == ("list_numbers", "measure")
        assert kept(result) == ("double_size",)

    def test_a_table_that_did_not_change_is_not_written_a_second_time(self, tmp_path: Path) -> None:
        run(tmp_path)
        before = read_files(tmp_path)
        result = run(tmp_path, small_settings({"pause": 0.001}))
        assert result.steps_run == ("list_numbers",)
        assert result.new_version
        assert read_files(tmp_path) == before
        assert {table.file for table in result.version.tables.values()} == {
            path.relative_to(tmp_path / "output").as_posix()
            for path in tmp_path.glob("output/versions/*/*.parquet")
        }

    def test_settings_that_no_step_reads_run_none(self, tmp_path: Path) -> None:
        run(tmp_path)
        settings = small_settings()
        changed = settings.model_copy(
            update={"local_search": settings.local_search.with_values({"max_sentences": 2})}
        )
        result = run(tmp_path, changed)
        assert result.steps_run == ()
        _, version = open_index(tmp_path / "output")
        assert version.settings["local_search"]["max_sentences"] == 2

    def test_a_raised_code_version_runs_a_step_again(self, tmp_path: Path) -> None:
        run(tmp_path)
        newer = replace(measure, code_version=2)
        steps = tuple(newer if s is measure else s for s in SMALL.steps)
        assert run(tmp_path, workflow=Workflow("small", steps)).steps_run == ("measure",)

    def test_what_a_step_reads_beside_its_tables_is_seen_by_its_fingerprint(
        self, tmp_path: Path
    ) -> None:
        note = tmp_path / "note.txt"

        @step(writes=[NUMBERS], fingerprint=lambda settings, root: (root / note).read_text("utf-8"))
        def read_number(*, root: Path) -> pl.DataFrame:
            number = int((root / "note.txt").read_text("utf-8"))
            return pl.DataFrame({"generation": [0], "number": [number]})

        workflow = Workflow("w", (read_number, square))
        for text, steps_run in [
            ("3", ("read_number", "square")),
            ("3", ()),
            ("3 ", ("read_number",)),
            ("4", ("read_number", "square")),
        ]:
            note.write_text(text, encoding="utf-8")
            assert run(tmp_path, Settings(), workflow).steps_run == steps_run

    def test_another_workflow_keeps_the_steps_that_it_shares(self, tmp_path: Path) -> None:
        run(tmp_path)
        shorter = Workflow("shorter", SMALL.steps[:2])
        settings = Settings(steps={"list_numbers": {}})
        result = run(tmp_path, settings, shorter)
        assert (result.steps_run, result.new_version) == ((), True)
        assert sorted(result.version.tables) == ["numbers", "squares"]
        # Without `sizes`, which is optional to it, the sum is another.
        result = run(tmp_path, workflow=Workflow("w", (*SMALL.steps[:2], SMALL.steps[3])))
        assert result.steps_run == ("add_up",)
        assert read_table(tmp_path, "totals")["total"].item() == 1 + 4 + 9

    def test_a_watcher_is_told_of_every_step(self, tmp_path: Path) -> None:
        listener = Listener()
        run_workflow(SMALL, small_settings(), tmp_path, {}, RunSetup(watcher=listener))
        assert listener.told == [
            *(("started", "list_numbers 1/4"), ("finished", "list_numbers")),
            *(("started", "square 2/4"), ("finished", "square")),
            *(("started", "measure 3/4"), ("finished", "measure")),
            *(("started", "add_up 4/4"), ("finished", "add_up")),
            ("closed", ""),
        ]
        listener = Listener()
        run_workflow(SMALL, small_settings(factor=2), tmp_path, {}, RunSetup(watcher=listener))
        assert listener.told[:4] == [
            *(("kept", "list_numbers"), ("kept", "square"), ("kept", "measure")),
            ("started", "add_up 4/4"),
        ]

    def test_services_are_made_only_for_steps_that_run(self, tmp_path: Path) -> None:
        made: list[str] = []

        @step(writes=[NUMBERS])
        def ask(*, oracle: int) -> pl.DataFrame:
            return pl.DataFrame({"generation": [0], "number": [oracle]})

        def oracle(step: Step, section: object) -> int:
            made.append(step.name)
            return 42

        for _ in range(2):
            run_workflow(Workflow("w", (ask,)), Settings(), tmp_path, {"oracle": Service(oracle)})
        assert made == ["ask"]
        assert read_table(tmp_path, "numbers")["number"].item() == 42

    def test_a_step_sees_the_tables_of_the_run_before(self, tmp_path: Path) -> None:
        @step(writes=[TOTALS])
        def remember(numbers: pl.DataFrame, *, previous: Previous) -> pl.DataFrame:
            before = previous.scan("totals")
            total = 0 if before is None else before.collect()["total"].item()
            return pl.DataFrame({"generation": [0], "total": [total + numbers.height]})

        workflow = Workflow("w", (list_numbers, remember))
        for first, total in [(1, 3), (2, 6), (3, 9)]:
            run(tmp_path, Settings(steps={"list_numbers": {"first": first}}), workflow)
            assert read_table(tmp_path, "totals")["total"].item() == total


class Listener(Watcher):
    """Notes what a run tells."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def step_started(self, step: Step, number: int, of: int) -> Progress:
        self.told.append(("started", f"{step.name} {number}/{of}"))
        return super().step_started(step, number, of)

    def step_finished(self, record: StepRecord, reused: bool) -> None:
        self.told.append(("kept" if reused else "finished", record.name))

    def close(self) -> None:
        self.told.append(("closed", ""))


class TestWhatStepsGive:
    def write(self, root: Path, result: Any, *writes: str | Table) -> None:
        @step(writes=writes or [NUMBERS])
        def give() -> Any:
            return result

        run(root, Settings(), Workflow("w", (give,)))

    def test_a_step_that_rewrites_a_table_changes_it_for_those_after_it(
        self, tmp_path: Path
    ) -> None:
        workflow = Workflow("w", (list_numbers, square, negate, replace(measure, name="again")))
        result = run(tmp_path, Settings(), workflow)
        assert read_table(tmp_path, "numbers")["number"].to_list() == [-1, -2, -3]
        assert read_table(tmp_path, "squares")["square"].to_list() == [1, 4, 9]
        first = result.version.steps[0].tables["numbers"]
        found = TableStore(tmp_path / "output").scan("numbers", first).collect()
        assert found["number"].to_list() == [1, 2, 3]
        assert run(tmp_path, Settings(), workflow).steps_run == ()

    def test_a_table_that_is_left_as_it_is_is_not_copied(self, tmp_path: Path) -> None:
        @step(writes=[NUMBERS, SIZES])
        def look_at(numbers: pl.DataFrame) -> Any:
            yield {"numbers": None, "sizes": pl.DataFrame({"size": [numbers.height]})}

        result = run(tmp_path, Settings(), Workflow("w", (list_numbers, look_at, square)))
        first, second, _ = result.version.steps
        assert first.tables["numbers"] == second.tables["numbers"]
        assert read_table(tmp_path, "squares")["square"].to_list() == [1, 4, 9]

    def test_several_tables_come_in_a_mapping_or_in_batches_of_them(self, tmp_path: Path) -> None:
        one = pl.DataFrame({"generation": [0], "number": [1]})
        square_of_one = pl.DataFrame({"generation": [0], "square": [1]})
        self.write(tmp_path, {"numbers": one, "squares": square_of_one}, NUMBERS, SQUARES)
        assert read_table(tmp_path, "numbers")["number"].to_list() == [1]

        def batches() -> Iterator[dict[str, pl.DataFrame]]:
            yield {"squares": square_of_one}
            yield {"numbers": one, "squares": square_of_one}
            yield {}

        self.write(tmp_path / "batches", batches(), NUMBERS, SQUARES)
        assert read_table(tmp_path / "batches", "numbers").height == 1
        assert read_table(tmp_path / "batches", "squares").height == 2

    def test_a_table_of_which_nothing_was_yielded_is_empty(self, tmp_path: Path) -> None:
        self.write(tmp_path, iter([]), NUMBERS, SQUARES)
        assert_frame_equal(read_table(tmp_path, "numbers"), NUMBERS.empty())
        assert_frame_equal(read_table(tmp_path, "squares"), SQUARES.empty())

    @pytest.mark.parametrize(
        ("result", "said"),
        [
            (
                None,
                "Step give writes numbers: it must return or yield a pl.DataFrame, not NoneType.",
            ),
            (
                NUMBERS.empty().lazy(),
                "Step give writes numbers: it must return or yield a pl.DataFrame, not LazyFrame.",
            ),
            (
                {"squares": SQUARES.empty()},
                "Step give writes numbers: it must return or yield a pl.DataFrame, "
                "not squares: DataFrame.",
            ),
            (
                iter([NUMBERS.empty(), 3]),
                "Step give writes numbers: it must return or yield a pl.DataFrame, not int.",
            ),
            (
                NUMBERS.empty().drop("number"),
                "Step give wrote numbers with the wrong columns. "
                "The table numbers must have the columns generation, number; missing: number.",
            ),
        ],
    )
    def test_what_is_no_such_table_is_refused(self, tmp_path: Path, result: Any, said: str) -> None:
        with pytest.raises(TableError) as caught:
            self.write(tmp_path, result)
        assert str(caught.value) == said
        assert TableStore(tmp_path / "output").read_pointer() is None

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"text": pl.lit(3)}, "Int32 in the column text of type String."),
            ({"text": pl.lit(None, pl.String)}, "null in the column text (row 0)."),
            (
                {"text": pl.when(pl.col("id") == "a").then("text")},
                "null in the column text (row 1).",
            ),
            ({"id": pl.lit("a")}, "the same id in the rows 0 and 1."),
        ],
    )
    @pytest.mark.parametrize("batches", [False, True])
    def test_what_does_not_belong_into_a_table_is_refused(
        self, tmp_path: Path, change: dict[str, pl.Expr], said: str, batches: bool
    ) -> None:
        documents = pl.DataFrame(
            {"id": ["a", "b"], "title": "t", "text": "x", "creation_date": "", "path": "p"}
        ).with_columns(raw_data=None, metadata=None)
        documents = documents.with_columns(**change)
        result = iter([documents[:1], documents[1:]]) if batches else documents
        with pytest.raises(TableError) as caught:
            self.write(tmp_path, result, "loaded_documents")
        assert str(caught.value) == f"Step give wrote loaded_documents with {said}"
        assert TableStore(tmp_path / "output").read_pointer() is None

    def test_one_frame_is_not_enough_for_two_tables(self, tmp_path: Path) -> None:
        with pytest.raises(TableError) as caught:
            self.write(tmp_path, NUMBERS.empty(), NUMBERS, SQUARES)
        assert str(caught.value) == (
            "Step give writes numbers, squares: it must return or yield "
            "a mapping from their names to frames, not DataFrame."
        )


class TestWhatARunLeaves:
    def test_two_runs_in_two_folders_leave_the_same_files(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            run(tmp_path / name, small_settings({"count": 1000, "batches": 3}))
        assert read_files(tmp_path / "a") == read_files(tmp_path / "b")
        a, b = files(tmp_path / "a"), files(tmp_path / "b")
        assert a.keys() == b.keys()
        # These say how long each step took.
        of_version = {f"output/versions/1/{name}.json" for name in ("index", "steps")}
        costs = {"output/index.json", "output/stats.json", *of_version}
        assert {name for name in a if a[name] != b[name]} <= costs

    def test_statistics_tell_what_each_step_wrote_and_what_it_cost(self, tmp_path: Path) -> None:
        run(tmp_path, small_settings({"count": 2, "batches": 3, "pause": 0.02}))
        path = tmp_path / "output" / "stats.json"
        first = json.loads(path.read_text(encoding="utf-8"))
        assert (first["version"], first["workflow"]) == (1, "small")
        assert {name: cost["rows"] for name, cost in first["steps"].items()} == {
            "list_numbers": {"numbers": 6},
            "square": {"squares": 6},
            "measure": {"sizes": 1},
            "add_up": {"totals": 1},
        }
        cost = first["steps"]["list_numbers"]
        assert cost["seconds"] >= 0.06
        assert cost["cpu_seconds"] >= 0
        assert cost["peak_memory_bytes"] is None or cost["peak_memory_bytes"] > 1_000_000
        assert first["tables"]["numbers"]["rows"] == 6
        assert (tmp_path / "output" / first["tables"]["numbers"]["file"]).is_file()

        # A step that is kept keeps its cost.
        run(tmp_path, small_settings({"count": 2, "batches": 3, "pause": 0.02}, factor=3))
        second = json.loads(path.read_text(encoding="utf-8"))
        assert second["version"] == 2
        assert second["steps"]["list_numbers"] == cost

    def test_the_public_tables_are_found_in_the_output_folder(self, tmp_path: Path) -> None:
        covariates = TABLES["covariates"]

        @step(writes=["covariates", "unread_files"])
        def claim() -> dict[str, pl.DataFrame]:
            return {"covariates": covariates.empty()}

        run(tmp_path, Settings(), Workflow("w", (claim,)))
        assert pl.read_parquet(tmp_path / "output" / "covariates.parquet").height == 0
        assert not (tmp_path / "output" / "unread_files.parquet").exists()
        run(tmp_path, Settings(), Workflow("v", (list_numbers,)))
        assert not (tmp_path / "output" / "covariates.parquet").exists()


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
        place = r"Step give \(test_run\.py, line \d+\) failed: "
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

    def test_an_output_that_is_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "output").write_text("mine", encoding="utf-8")
        with pytest.raises(SettingsError, match="is not a folder: name another"):
            run(tmp_path)
        with pytest.raises(SettingsError, match="is not a folder: name another"):
            run(tmp_path, small_settings().model_copy(update={"output": "output/index"}))
        assert (tmp_path / "output").read_text(encoding="utf-8") == "mine"

"""The versions of an index: what is noted of them, going back, and deleting old ones."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import lancedb
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphrag_index.errors import TableError, WorkflowError
from graphrag_index.llm.ledger import FILE, Ledger
from graphrag_index.llm.request import Spending, Usage
from graphrag_index.pipeline.history import collect_garbage, current_version, lock_output, roll_back
from graphrag_index.pipeline.run import RunResult, RunSetup, run_workflow
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import INDEX_FILE, Version
from graphrag_query.retrieval.index_store import IndexStore
from tests.fixtures.commands import call, environment
from tests.fixtures.kill_history import WITH_VECTORS, numbers_of

VECTORS = "community_full_content"


class SpendingModels:
    """Models of a run that has spent this; None: the run is stopped when it is asked for."""

    def __init__(self, spending: Spending | None) -> None:
        self.spending = spending

    def reopened_steps(self) -> list[str]:
        return []

    def quarantined_requests(self, steps: list[str]) -> list[Any]:
        return []

    def spent(self, version: int) -> Spending:
        if self.spending is None:
            raise KeyboardInterrupt
        return self.spending


def run(root: Path, generation: int, spent: Spending | None = None) -> RunResult:
    models: Any = SpendingModels(spent or Spending())
    setup = RunSetup(models=models)
    return run_workflow(WITH_VECTORS, numbers_of(generation), root, {}, setup)


def read(root: Path, number: int) -> dict[str, pl.DataFrame]:
    """All that a reader finds in a version."""
    model = IndexStore.open(root / "output", as_of=number)
    found = {name: model.scan(name).collect() for name in model.version.tables}
    words = model.vectors(VECTORS).find_matching_rows("number", 9, ["id"])
    return {**found, "found by words": words.sort("id").select("id")}


def equal(one: dict[str, pl.DataFrame], other: dict[str, pl.DataFrame]) -> bool:
    return one.keys() == other.keys() and all(one[name].equals(other[name]) for name in one)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with three versions; tests must not change it."""
    root = tmp_path_factory.mktemp("three")
    for generation in (1, 2, 3):
        run(root, generation)
    return root


@pytest.fixture
def project(three: Path, tmp_path: Path) -> Path:
    (tmp_path / "settings.yaml").write_text("workflow: small\n", encoding="utf-8")
    shutil.copytree(three / "output", tmp_path / "output", symlinks=True)
    return tmp_path


class TestVersions:
    def test_a_version_says_when_it_was_made_by_which_steps_and_for_what_money(
        self, tmp_path: Path
    ) -> None:
        run(tmp_path, 1, spent=Spending(3, Usage(100, 20, 7), 0.25))
        # The same settings in other steps: `list_numbers` runs, and what it writes is as before.
        models: Any = SpendingModels(Spending(1, Usage(1, 0, 1), None))
        setup = RunSetup(models=models)
        run_workflow(WITH_VECTORS, numbers_of(1, pause=0.001), tmp_path, {}, setup)
        store = TableStore(tmp_path / "output")
        first, second = map(store.read_version, store.versions())
        assert first.made is not None
        assert second.made is not None
        assert first.made.date <= second.made.date
        assert first.made.date.endswith("+00:00")
        assert first.made.steps_run == ("list_numbers", "square", "measure", "embed")
        assert second.made.steps_run == ("list_numbers",)
        assert (first.made.calls, first.made.prompt_tokens, first.made.cost) == (3, 100, 0.25)
        assert second.made.cost is None

    def test_when_it_was_made_makes_no_other_version(self, project: Path) -> None:
        store = TableStore(project / "output")
        before = current_version(store)
        assert not run(project, 3, spent=Spending(9)).new_version
        assert current_version(store).made == before.made

    def test_a_step_that_ran_again_and_wrote_the_same_makes_no_other_version(
        self, project: Path
    ) -> None:
        setup = RunSetup(forced_steps=["embed"])
        result = run_workflow(WITH_VECTORS, numbers_of(3), project, {}, setup)
        assert result.steps_run == ("embed",)
        assert (result.version.number, result.new_version) == (3, False)
        assert read(project, 3)["numbers"]["generation"].unique().to_list() == [3]

    def test_the_list_marks_the_current_version(self, project: Path) -> None:
        lines = call(project, "versions").stdout.splitlines()
        assert [line.split()[0] for line in lines] == ["version", "1", "2", "3*"]
        assert lines[3].endswith("all steps")
        assert "calls" not in lines[0]  # no model was asked
        rows = json.loads(call(project, "versions", "--json").stdout)
        assert [(row["version"], row["current"]) for row in rows] == [
            *((1, False), (2, False), (3, True))
        ]

    @pytest.mark.parametrize(
        "command", [["versions"], ["diff", "1"], ["rollback", "1"], ["gc"]], ids=lambda c: c[0]
    )
    def test_without_an_index_there_is_one_sentence_and_nothing_is_written(
        self, command: list[str], tmp_path: Path
    ) -> None:
        (tmp_path / "settings.yaml").touch()
        result = call(tmp_path, *command)
        assert result.returncode == 1
        assert result.stderr.startswith("Error: There is no index in ")
        assert result.stderr.count("\n") == 1
        assert not (tmp_path / "output").exists()


class TestRollback:
    def test_a_new_version_has_the_tables_of_the_earlier_one_and_none_is_lost(
        self, project: Path, three: Path
    ) -> None:
        store = TableStore(project / "output")
        version = roll_back(store, 1)
        assert version.number == 4
        assert version.made is not None
        assert version.made.tables_of == 1
        assert current_version(store) == version
        for number, other in ((1, 1), (2, 2), (3, 3), (4, 1)):
            assert equal(read(project, number), read(three, other))
        # Who opens the vectors without a version finds those of the index.
        vectors = lancedb.connect(project / "output" / "lancedb").open_table(VECTORS)
        assert set(vectors.to_arrow()["level"].to_pylist()) == {1}
        assert json.loads((project / "output" / "stats.json").read_text("utf-8"))["version"] == 4

    def test_the_next_run_brings_the_index_up_to_date(self, project: Path, three: Path) -> None:
        roll_back(TableStore(project / "output"), 1)
        assert run(project, 3).version.number == 5
        assert equal(read(project, 5), read(three, 3))

    def test_going_back_to_where_one_is_changes_nothing(self, project: Path) -> None:
        store = TableStore(project / "output")
        assert roll_back(store, 3).number == 3
        assert roll_back(store, 1).number == roll_back(store, 1).number == 4
        assert "Nothing changed" in call(project, "rollback", "1").stdout

    def test_the_command_says_what_follows(self, project: Path) -> None:
        assert call(project, "rollback", "2").stdout == (
            "Restored the tables of version 2 as version 4.\n"
            "The next `graphrag-index run` updates them to the current input and settings. "
            "`graphrag-index rollback 3` undoes this rollback.\n"
        )

    def test_what_an_interrupted_run_has_paid_belongs_to_it(self, project: Path) -> None:
        store = TableStore(project / "output")
        ledger = Ledger(store.output, 4)
        ledger.record_call("k", "extract_graph", "chat", Usage(10, 0, 2), 0.5)
        ledger.close()
        store.write_journal(4, [])
        version = roll_back(store, 1)
        assert version.number == 4
        assert version.made is not None
        assert (version.made.calls, version.made.cost) == (1, 0.5)
        lines = [line.split() for line in call(project, "versions").stdout.splitlines()]
        assert lines[0][-4:] == ["calls", "$", "what", "ran"]
        assert lines[1][-4:] == ["0", "0.0000", "all", "steps"]
        assert lines[4][-6:] == ["1", "0.5000", "rollback", "to", "version", "1"]

    def test_a_version_that_is_not_there_or_not_whole_is_refused(self, project: Path) -> None:
        store = TableStore(project / "output")
        result = call(project, "rollback", "9")
        assert result.returncode == 1
        assert result.stderr.endswith("has no version 9; it has: 1, 2, 3.\n")
        numbers = store.read_version(1).tables["numbers"].file
        (store.output / str(numbers)).unlink()
        with pytest.raises(TableError, match=r"numbers is missing or damaged in .* as it was"):
            roll_back(store, 1)
        assert current_version(store).number == 3


class TestGarbage:
    def test_versions_but_the_last_go_with_what_only_they_have(
        self, project: Path, three: Path
    ) -> None:
        store = TableStore(project / "output")
        freed = collect_garbage(store, 2)
        assert (freed.deleted, freed.kept, freed.in_use) == ((1,), (2, 3), ())
        assert freed.n_bytes > 0
        assert store.versions() == [2, 3]
        for number in (2, 3):
            assert equal(read(project, number), read(three, number))
        assert collect_garbage(store, 1).deleted == (2,)
        assert equal(read(project, 3), read(three, 3))
        with pytest.raises(TableError, match=r"has no version 2; it has: 3\."):
            IndexStore.open(store.output, as_of=2)
        table = lancedb.connect(store.lancedb).open_table(VECTORS)
        for version in table.list_versions():
            table.checkout(version["version"])
            assert set(table.to_arrow()["level"].to_pylist()) == {3}
        assert len(list((store.lancedb / f"{VECTORS}.lance" / "data").iterdir())) == 1

    def test_a_file_of_an_old_version_that_a_kept_one_names_stays(self, tmp_path: Path) -> None:
        run(tmp_path, 1)
        run_workflow(WITH_VECTORS, numbers_of(2), tmp_path, {})
        store = TableStore(tmp_path / "output")
        # How many there are is the same in both.
        assert str(current_version(store).tables["sizes"].file).startswith("versions/1/")
        collect_garbage(store, 1)
        assert read(tmp_path, 2)["sizes"].item() == 3
        assert [path.name[:5] for path in (store.folder(1)).iterdir()] == ["sizes"]

    def test_vectors_go_when_no_version_has_them(self, project: Path) -> None:
        store = TableStore(project / "output")
        own = lancedb.connect(store.lancedb).create_table("own", [{"a": 1}])
        without = type(WITH_VECTORS)("vectors", WITH_VECTORS.steps[:-1])
        run_workflow(without, numbers_of(4), project, {})
        collect_garbage(store, 2)
        assert read(project, 3)[VECTORS].height == 3
        collect_garbage(store, 1)
        # What somebody else put there stays.
        assert [path.name for path in store.lancedb.iterdir()] == ["own.lance"]
        assert own.count_rows() == 1

    def test_what_an_interrupted_run_has_finished_stays(self, project: Path) -> None:
        store = TableStore(project / "output")
        settings, stop = numbers_of(4), RunSetup(models=SpendingModels(None))
        with pytest.raises(KeyboardInterrupt):
            run_workflow(WITH_VECTORS, settings, project, {}, stop)
        assert len(store.read_journal(4)) == len(WITH_VECTORS.steps)
        collect_garbage(store, 1)
        assert run_workflow(WITH_VECTORS, settings, project, {}).steps_run == ()
        assert read(project, 4)[VECTORS]["level"].unique().to_list() == [4]

    def test_nothing_goes_if_a_kept_version_or_the_index_is_damaged(self, project: Path) -> None:
        store = TableStore(project / "output")
        (store.folder(2) / INDEX_FILE).write_text("{", encoding="utf-8")
        with pytest.raises(TableError, match="is damaged"):
            collect_garbage(store, 2)
        assert store.versions() == [1, 2, 3]
        # Whether one that goes is damaged does not matter.
        assert collect_garbage(store, 1).kept == (3,)
        shutil.rmtree(store.lancedb)
        with pytest.raises(TableError, match=f"lacks its table {VECTORS}: run"):
            collect_garbage(store, 1)

    def test_who_reads_a_version_that_goes_is_told_so(self, project: Path) -> None:
        opened = IndexStore.open(project / "output", as_of=1)
        with opened.pinned_version():
            assert opened.scan("numbers").collect().height == 3
        lazy = opened.scan("numbers")
        collect_garbage(TableStore(project / "output"), 1)
        said = "Version 1 of .* was deleted while it was open: open the index again"
        for read in (opened.scan, opened.vectors, opened.open_mapped):
            with pytest.raises(TableError, match=said):
                read(VECTORS)
        with pytest.raises(TableError, match=said), opened.pinned_version():
            pass
        with pytest.raises(FileNotFoundError):
            lazy.collect()

    def test_what_fails_while_a_version_goes_is_explained(self, project: Path) -> None:
        opened = IndexStore.open(project / "output", as_of=1)
        lazy = opened.scan("numbers")

        def read() -> None:
            with opened.pinned_version():
                collect_garbage(TableStore(project / "output"), 1)
                lazy.collect()

        with pytest.raises(TableError, match="was deleted while it was open") as caught:
            read()
        assert isinstance(caught.value.__cause__, FileNotFoundError)

    @pytest.mark.parametrize("keep", ["0", "-1", "all"])
    def test_at_least_one_version_stays(self, keep: str, project: Path) -> None:
        assert call(project, "gc", "--keep", keep).returncode == 2
        assert TableStore(project / "output").versions() == [1, 2, 3]


@pytest.mark.parametrize("command", [["gc"], ["rollback", "1"]], ids=lambda c: c[0])
def test_neither_is_done_while_a_run_writes(command: list[str], project: Path) -> None:
    store = TableStore(project / "output")
    with lock_output(store):
        result = call(project, *command)
        assert result.returncode == 2
        assert result.stderr.startswith("Error: Another run is writing to ")
    assert store.versions() == [1, 2, 3]


def test_a_run_is_refused_while_gc_deletes(project: Path) -> None:
    with lock_output(TableStore(project / "output")), pytest.raises(WorkflowError):
        run(project, 4)


@given(
    actions=st.lists(
        st.tuples(st.sampled_from(["run", "rollback", "gc"]), st.integers(1, 3)),
        min_size=3,
        max_size=4,
    )
)
@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_version_that_is_listed_is_what_it_was_when_it_was_made(
    actions: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("actions")
    store = TableStore(root / "output")
    run(root, 0)
    known = {1: read(root, 1)}
    for action, n in actions:
        if action == "run":
            version = run(root, n).version
        elif action == "rollback":
            version = roll_back(store, store.versions()[-n:][0])
        else:
            collect_garbage(store, n)
            version = current_version(store)
            known = {number: known[number] for number in sorted(known)[-n:]}
        known.setdefault(version.number, read(root, version.number))
        assert store.versions() == sorted(known)
        for number, tables in known.items():
            assert equal(read(root, number), tables)
    shutil.rmtree(root)


@pytest.mark.skipif(sys.platform == "win32", reason="needs links")
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_stopped_at_any_moment_no_version_that_stays_is_harmed(tmp_path: Path, every: int) -> None:
    subprocess.run(
        [sys.executable, "-m", "tests.fixtures.kill_history", str(tmp_path), str(every)],
        env=environment(),
        check=True,
        timeout=300,
    )
    base = {number: read(tmp_path / "base", number) for number in (1, 2, 3)}
    stopped = sorted(tmp_path.glob("gc/*"), key=lambda path: int(path.name))
    assert len(stopped) > 10 // every
    for root in stopped:
        store = TableStore(root / "output")
        assert set(store.versions()) >= {2, 3}
        for number in (2, 3):
            assert equal(read(root, number), base[number])
    # The next one deletes what is left, wherever the first was stopped.
    for root in stopped[::2]:
        store = TableStore(root / "output")
        collect_garbage(store, 2)
        assert store.versions() == [2, 3]
        tables = list(store.output.glob("versions/*/*.parquet"))
        assert len(tables) == 5  # the sizes are the same in all
        assert len(list(store.lancedb.glob("*/data/*"))) == 2
        assert equal(read(root, 3), base[3])
    for root in tmp_path.glob("rollback/*"):
        store = TableStore(root / "output")
        newest = current_version(store).number
        assert equal(read(root, newest), base[1 if newest == 4 else 3])
        assert roll_back(store, 1).number == 4
        assert equal(read(root, 3), base[3])
        assert equal(read(root, 4), base[1])


def test_money_is_read_from_the_ledger_by_version(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, 2)
    ledger.record_call("a", "extract_graph", "chat", Usage(10, 4, 2), 0.5)
    ledger.record_call("b", "extract_graph", "chat", Usage(10, 0, 2), 0.25)
    assert ledger.spent_for(2) == Spending(2, Usage(20, 4, 4), 0.75)
    assert ledger.spent_for(1) == Spending()
    ledger.record_call("c", "extract_graph", "chat", Usage(), None)
    assert ledger.spent_for(2).cost is None
    ledger.close()
    assert (tmp_path / FILE).exists()


def test_a_version_that_was_described_and_not_reached_keeps_its_date(project: Path) -> None:
    store = TableStore(project / "output")
    made = current_version(store).made
    (store.output / INDEX_FILE).unlink()
    version: Version = run(project, 3).version
    assert version.number == 3
    assert current_version(store).made == made

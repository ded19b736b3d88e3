"""Shards of a step: the same result for any number of workers, and nothing lost by a failure."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from graphrag_index.errors import StepError
from graphrag_index.pipeline import shards
from graphrag_index.pipeline.run import RunSetup, run_workflow
from graphrag_index.pipeline.shards import (
    MIN_MAPPED_BYTES,
    LocalRunner,
    StepShards,
    count_cores,
    decode_frames,
    encode_frames,
)
from graphrag_index.pipeline.workflow import load_workflow, make_services
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_index.step import ShardFrames
from tests.conftest import copy_project
from tests.fixtures.commands import MAX_SECONDS, wait_for
from tests.fixtures.in_process import call_here
from tests.fixtures.sharded_squares import (
    square,
    square_on_full_disk,
    square_or_die,
)

# Larger than the size from which workers are started.
N_ROWS = 200_000


def number_shards(n: int) -> Iterator[tuple[int, ShardFrames]]:
    for number in range(n):
        yield number, {"numbers": pl.DataFrame({"n": [number] * N_ROWS})}


def squares(
    folder: Path, log: Path, function: Any = square, n_workers: int = 1, code: str = "code"
) -> list[int]:
    log.mkdir(exist_ok=True)
    with closing(LocalRunner(n_workers)) as workers:
        parts = StepShards(workers, folder, code).map(function, number_shards(5), 10, log)
        found = []
        for number, part in parts:
            assert part["squares"].height == N_ROWS
            assert number == len(found)
            found.append(part["squares"]["square"][0])
    return found


@pytest.mark.parametrize("n_workers", [1, 3])
def test_parts_come_in_order_and_are_reused(tmp_path: Path, n_workers: int) -> None:
    expected = [0, 10, 40, 90, 160]
    parts, log = tmp_path / "parts", tmp_path / "log"
    assert squares(parts, log, n_workers=n_workers) == expected
    calls = list(log.iterdir())
    assert len(calls) == 5
    in_this_process = {path.read_text() == str(os.getpid()) for path in calls}
    assert in_this_process == {n_workers == 1}
    # Nothing is computed again, by any number of workers; a damaged part is.
    assert squares(parts, log, n_workers=4 - n_workers) == expected
    assert len(list(log.iterdir())) == 5
    sorted(parts.glob("part-*"))[2].write_bytes(b"PK")
    assert squares(parts, log) == expected
    assert len(list(log.iterdir())) == 6
    # Other code of the step makes other parts.
    assert squares(parts, log, code="other") == expected
    assert len(list(log.iterdir())) == 11


def test_workers_start_after_some_seconds_of_a_step_of_an_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count_processes(name: str) -> int:
        log = tmp_path / name
        log.mkdir()
        shards = StepShards(workers, tmp_path / "parts", name, is_update=True)
        parts = shards.map(square, number_shards(5), 1, log)
        assert [part["squares"][0, 0] for _, part in parts] == [0, 1, 4, 9, 16]
        pids = {int(path.read_text()) for path in log.iterdir()}
        return len(pids - {os.getpid()})

    monkeypatch.setattr(shards, "SECONDS_BEFORE_WORKERS", 60)
    with closing(LocalRunner(2)) as workers:
        assert count_processes("short") == 0
        monkeypatch.setattr(shards, "SECONDS_BEFORE_WORKERS", 1e-9)
        # The first shard takes longer than that.
        assert count_processes("long") > 0
        # Workers that have started take all shards.
        assert workers.seconds_alone == 0


def test_few_rows_are_processed_at_once(tmp_path: Path) -> None:
    shards: list[tuple[int, ShardFrames]] = [
        (n, {"numbers": pl.DataFrame({"n": [n]})}) for n in range(3)
    ]
    with closing(LocalRunner(2)) as workers:
        parts = StepShards(workers, tmp_path / "parts", "code").map(square, shards, 1, tmp_path)
        assert [part["squares"].item() for _, part in parts] == [0, 1, 4]
    assert not (tmp_path / "parts").exists()


def test_fewer_rows_go_to_workers_that_run(tmp_path: Path) -> None:
    def where(workers: LocalRunner, step: str, n_rows: int) -> set[bool]:
        """Return whether this process made the parts of two shards."""
        log = tmp_path / step
        log.mkdir()
        rows: list[tuple[int, ShardFrames]] = [
            (n, {"numbers": pl.DataFrame({"n": [n] * n_rows})}) for n in range(2)
        ]
        parts = StepShards(workers, tmp_path / f"parts-{step}", "code").map(square, rows, 1, log)
        assert [part["squares"]["square"][0] for _, part in parts] == [0, 1]
        return {path.read_text() == str(os.getpid()) for path in log.iterdir()}

    few = shards.MIN_BYTES_FOR_RUNNING_WORKERS // 8
    with closing(LocalRunner(2)) as workers:
        assert where(workers, "before", few) == {True}
        assert where(workers, "start", N_ROWS) == {False}
        assert where(workers, "after", few) == {False}
        assert where(workers, "fewer", few // 4) == {True}


@pytest.mark.parametrize("n_rows", [1, N_ROWS])
def test_kept_parts_serve_the_next_run_and_other_parts_are_deleted(
    tmp_path: Path, n_rows: int
) -> None:
    log = tmp_path / "log"
    log.mkdir()

    def run(folder: Path, numbers: list[int], keep_parts: bool = True) -> list[str]:
        rows = ((n, {"numbers": pl.DataFrame({"n": [n] * n_rows})}) for n in numbers)
        with closing(LocalRunner(1)) as workers:
            shards = StepShards(workers, folder, "code")
            parts = shards.map(square, rows, 1, log, keep_parts=keep_parts)
            assert [part["squares"]["square"][0] for _, part in parts] == [n * n for n in numbers]
            shards.remove_files()
        return [path.name.partition("-")[0] for path in folder.glob("*")]

    folders = [tmp_path / "parts" / f"step-{n}" for n in range(3)]
    assert run(folders[0], [1, 2, 3]) == ["part"] * 3
    assert run(folders[1], [1, 4, 3, 5]) == ["part"] * 4
    assert sorted(path.name.partition("-")[0] for path in log.iterdir()) == list("12345")
    # The part of the shard that is gone stays where it was; the run deletes this folder.
    assert len(list(folders[0].iterdir())) == 1
    assert run(folders[2], [6, 7], keep_parts=False) == []


@pytest.mark.parametrize(
    ("function", "failure", "message"),
    [
        (square_or_die, StepError, "A worker process was killed"),
        (square_on_full_disk, OSError, "No space left on device"),
    ],
)
def test_finished_parts_survive_a_failure(
    tmp_path: Path, function: object, failure: type[Exception], message: str
) -> None:
    parts, log = tmp_path / "parts", tmp_path / "log"
    with pytest.raises(failure, match=message):
        squares(parts, log, function, n_workers=2)
    made = [decode_frames(path.read_bytes())["squares"][0, 0] for path in parts.glob("part-*")]
    assert set(made) <= {0, 10, 40, 160}
    # The parts that are there are used, and the others are made.
    assert squares(parts, log) == [0, 10, 40, 90, 160]


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_a_run_that_is_stopped(tmp_path: Path, stop: signal.Signals) -> None:
    # The script has no main guard: a worker must not run it again.
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from tests.fixtures.sharded_squares import square_slowly\n"
        "from tests.pipeline.test_shards import squares\n"
        "from graphrag_index.errors import let_ctrl_c_end_waits; let_ctrl_c_end_waits()\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "squares(folder / 'parts', folder / 'log', square_slowly, n_workers=2)\n"
    )
    run = subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    log = tmp_path / "log"
    wait_for(lambda: sum(path.stat().st_size > 0 for path in log.glob("*")) == 2, run)
    pids = [int(path.read_text()) for path in log.iterdir()]
    # Ctrl-C reaches the whole group; a kill only the main process.
    os.killpg(run.pid, stop) if stop == signal.SIGINT else run.kill()
    _, err = run.communicate(timeout=MAX_SECONDS)
    assert err.count("Traceback") == (stop == signal.SIGINT)
    wait_for(lambda: not any(map(is_running, pids)))


def is_running(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("n", [0, 10, MIN_MAPPED_BYTES // 4])
def test_arrays_leave_no_file(tmp_path: Path, n: int) -> None:
    with closing(LocalRunner(1)) as workers:
        array = StepShards(workers, tmp_path / "parts", "code").allocate(n, np.int32)
    array[:] = np.arange(n)
    assert array.sum() == n * (n - 1) // 2
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_frames_are_encoded_alike_however_they_are_stored() -> None:
    whole = pl.DataFrame({"text": ["a", None, "ü" * 50], "list": [[1], [], [2, 3]]})
    pieces = pl.concat([whole[:1], whole[1:]], rechunk=False)
    encoded = encode_frames({"rows": whole, "none": whole.clear()})
    assert encoded == encode_frames({"rows": pieces, "none": pieces.clear()})
    decoded = decode_frames(encoded)
    assert decoded["rows"].equals(whole)
    assert decoded["none"].schema == whole.schema


@pytest.mark.parametrize(("option", "expected"), [(["--workers", "3"], 3), ([], count_cores())])
def test_the_command_says_how_many_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: list[str], expected: int
) -> None:
    root = copy_project(tmp_path / "project")
    (root / "workflows/loading.yaml").write_text("- load_documents\n", encoding="utf-8")
    numbers: list[int] = []

    class CountedRunner(LocalRunner):
        def __init__(self, n: int | None) -> None:
            super().__init__(n)
            numbers.append(self.n)

    monkeypatch.setattr(shards, "LocalRunner", CountedRunner)
    command = ["run", "--set", "workflow=loading", *option]
    assert call_here("graphrag-index", command, root).returncode == 0
    assert numbers == [expected]


def test_tables_are_equal_for_any_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy_project(tmp_path / "project")
    for name in ("expeditions", "places", "science", "themes", "data"):
        shutil.rmtree(root / "input" / name)
    # Speakers come last in titles, in whichever partitions their turns are quoted.
    names = ("Ernest Shackleton", "Tom Crean", "Roald Amundsen", "Frank Wild")
    turns = [
        f"{name}: In {year} {other} sailed to Antarctica and then came home to {place}."
        for name, other in permutations(names, 2)
        for year, place in ((1910, "London"), (1914, "Norway"))
    ]
    (root / "input/people/chat.txt").write_text("\n".join(turns), encoding="utf-8")
    # So many shards that workers are worth their start.
    monkeypatch.setattr(shards, "MIN_BYTES_FOR_WORKERS", 10_000)
    monkeypatch.setattr(shards, "MIN_BYTES_FOR_RUNNING_WORKERS", 0)
    for constant, size in (
        ("create_text_units.SHARD_BYTES", 60_000),
        ("extract_graph_nlp.MEAN_SHARD_BYTES", 20_000),
        ("create_community_reports_nlp.SHARD_REPORTS", 20),
        ("create_community_reports_nlp.SHARD_SENTENCES", 50),
        ("generate_text_embeddings.BATCH_VECTORS", 50),
    ):
        monkeypatch.setattr(f"graphrag_index.steps.{constant}", size)

    def run(n_workers: int, output: str) -> dict[str, str]:
        settings = load_settings(root, [f"output={output}"])
        workflow = load_workflow(root, settings.workflow)
        services = make_services(settings, None, root)
        setup = RunSetup(runner=LocalRunner(n_workers))
        result = run_workflow(workflow, settings, root, services, setup)
        # The parts of one step are kept, for the current version.
        [folder] = root.glob(f"{output}/parts/*")
        assert folder.name.startswith("extract_graph_nlp-")
        return {name: table.digest for name, table in result.version.tables.items()}

    with monkeypatch.context() as patch:
        # The sizes of partitions do not matter either.
        reports = "graphrag_index.steps.create_community_reports_nlp"
        patch.setattr(f"{reports}.PARTITION_REPORTS", 20)
        patch.setattr(f"{reports}.PARTITION_SENTENCES", 300)
        found = run(2, "one")
    assert found == run(1, "other")
    assert len(set(found.values())) > 20

    file = root / "input/people/tom-crean.txt"
    assert finds(root / "one/parts", "Annascaul")
    file.unlink()
    updated, rebuilt = run(1, "one"), run(1, "new")
    for name in ("entities", "relationships", "mentions", "text_units"):
        assert updated[name] == rebuilt[name] != found[name]
    # Nothing that only a removed document says stays in the parts.
    assert not finds(root / "one/parts", "Annascaul")


def finds(folder: Path, word: str) -> bool:
    return any(word.encode() in path.read_bytes() for path in folder.glob("*/*"))

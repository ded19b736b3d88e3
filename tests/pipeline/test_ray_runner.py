"""Shards on a Ray cluster: the tables of one machine, and what its failures do."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_index.errors import SettingsError, StepError, WorkflowError
from graphrag_index.pipeline import ray_runner
from graphrag_index.pipeline.ray_runner import RayRunner
from graphrag_index.pipeline.shards import StepShards
from graphrag_index.storage.working_copy import WorkingCopy, locate_working_copy
from tests.conftest import copy_project
from tests.fixtures.commands import MAX_SECONDS, environment, wait_for
from tests.fixtures.model_project import KEY, write_project
from tests.fixtures.object_server import new_bucket, serve_objects, set_credentials
from tests.fixtures.small_shards import COMMAND, read_digests, run_alone
from tests.model_server import Server

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of three nodes on this machine, with one CPU each."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 100_000_000}
    # A killed node is noticed within a second.
    fast = {
        "health_check_initial_delay_ms": 0,
        "health_check_period_ms": 300,
        "health_check_timeout_ms": 300,
        "health_check_failure_threshold": 2,
    }
    cluster = Cluster(initialize_head=True, head_node_args={**node, "_system_config": fast})
    del node["include_dashboard"]
    for _ in range(2):
        cluster.add_node(**node)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def address(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    return str(cluster.address)


def double(shard: dict[str, pl.DataFrame], kind: str) -> dict[str, pl.DataFrame]:
    """Double the rows; "raise", "die", or die once if the file that `kind` names is missing."""
    if kind == "raise":
        raise ZeroDivisionError("a number of the shard is 0")
    if kind == "die" or (kind and not Path(kind).exists()):
        if kind != "die":
            Path(kind).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"rows": shard["rows"] * 2}


def map_shards(runner: RayRunner, folder: Path, kind: str, n: int = 4) -> list[int]:
    shards = StepShards(runner, folder / "step-1", "code")
    work = ((None, {"rows": pl.DataFrame({"number": range(k, k + 200_000)})}) for k in range(n))
    try:
        return [part["rows"]["number"][0] for _, part in shards.map(double, work, kind)]
    finally:
        shards.remove_files()


def test_parts_come_from_a_cluster(address: str, tmp_path: Path) -> None:
    with closing(RayRunner(1)) as runner:
        assert map_shards(runner, tmp_path, "") == [0, 2, 4, 6]
        assert runner.n == 3
        assert runner.count_cpu_seconds() > 0


def test_a_killed_process_costs_no_part(address: str, tmp_path: Path) -> None:
    with closing(RayRunner(1)) as runner:
        assert map_shards(runner, tmp_path, str(tmp_path / "killed")) == [0, 2, 4, 6]
    assert (tmp_path / "killed").exists()


@pytest.mark.slow
def test_an_error_of_a_function_is_that_of_the_function(address: str, tmp_path: Path) -> None:
    with (
        closing(RayRunner(1)) as runner,
        pytest.raises(ZeroDivisionError, match="a number of the shard is 0"),
    ):
        map_shards(runner, tmp_path, "raise")


@pytest.mark.slow
def test_a_shard_that_ends_its_processes_is_told(address: str, tmp_path: Path) -> None:
    with (
        closing(RayRunner(1)) as runner,
        pytest.raises(StepError, match="A shard has ended 3 processes of the Ray cluster"),
    ):
        map_shards(runner, tmp_path, "die", n=2)


@pytest.mark.slow
def test_a_node_with_another_program_is_refused(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ray_runner.describe_program()
    monkeypatch.setattr(ray_runner, "describe_program", lambda: {**own, "program": "9.9"})
    with (
        closing(RayRunner(1)) as runner,
        pytest.raises(SettingsError, match=r"A node of the Ray cluster has program .*has 9\.9"),
    ):
        map_shards(runner, tmp_path, "")


def test_a_cluster_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with (
        closing(RayRunner(1)) as runner,
        pytest.raises(WorkflowError, match=r"No Ray cluster answers at 127\.0\.0\.1:1"),
    ):
        map_shards(runner, tmp_path, "")


@pytest.mark.slow
def test_a_killed_node_changes_no_table(cluster: Any, address: str, tmp_path: Path) -> None:
    root = copy_project(tmp_path / "project")
    expected = run_alone(root)
    node = cluster.add_node(num_cpus=1, object_store_memory=100_000_000)
    with subprocess.Popen(
        [*COMMAND, "run", "--quiet", "--runner", "ray", "--set", "output=by-ray"],
        cwd=root,
        env=environment(RAY_ADDRESS=address),
    ) as process:
        wait_for(lambda: list(root.glob("by-ray/parts/*/part-*")), process)
        cluster.remove_node(node, allow_graceful=False)
        assert process.wait(MAX_SECONDS) == 0
    assert read_digests(root / "by-ray") == expected


@pytest.mark.slow
def test_a_killed_node_changes_no_table_of_a_model_backed_run_into_a_bucket(
    cluster: Any, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)
    set_credentials(monkeypatch)
    with Server(latency=0.05) as models, serve_objects() as objects:
        root = write_project(tmp_path / "project", models.url, 8)
        expected = run_alone(root)
        paid = len(models.requests)
        bucket, cache = new_bucket(objects), tmp_path / "cache"
        node = cluster.add_node(num_cpus=1, object_store_memory=100_000_000)
        with subprocess.Popen(
            [*COMMAND, "run", "--quiet", "--runner", "ray", "--set", f"output={bucket}"],
            cwd=root,
            env=environment(RAY_ADDRESS=address, GRAPHRAG_INDEX_CACHE=str(cache)),
        ) as process:
            wait_for(lambda: list(cache.glob("indexes/*/parts/*/part-*")), process)
            cluster.remove_node(node, allow_graceful=False)
            assert process.wait(MAX_SECONDS) == 0
        # Another machine reads the tables; no request was sent twice.
        monkeypatch.setenv("GRAPHRAG_INDEX_CACHE", str(tmp_path / "other"))
        copy = WorkingCopy.open(locate_working_copy(bucket))
        assert copy is not None
        copy.refresh()
        assert read_digests(copy.folder) == expected
        assert len(models.requests) <= 2 * paid

"""The plan of a run by many workers: its model of the time, and the plan of the sample."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.pipeline import scaling
from graphrag_index.pipeline.scaling import (
    NETWORK_BYTES_PER_SECOND,
    StepWork,
    WorkerPlan,
    describe_graph_memory,
    estimate_graph_memory,
    read_free_memory,
)
from tests.fixtures.commands import call


def plan(*steps: StepWork, model_seconds: float = 0.0) -> WorkerPlan:
    return WorkerPlan(
        n_workers=4,
        steps=steps,
        model_seconds=model_seconds,
        unknown=(),
        memory=0,
        memory_step="",
        table_bytes=0,
        part_bytes=0,
        n_puts=0,
        n_gets=0,
        request_cost=0.0,
        cost_per_month=0.0,
    )


def test_shards_are_divided_and_the_rest_is_not() -> None:
    found = plan(StepWork("a", 10.0, 80.0), StepWork("b", 5.0, 0.0), model_seconds=7.0)
    assert found.seconds(1) == 102.0
    assert found.seconds() == 10 + 20 + 5 + 7
    assert found.seconds(80) == 23.0


def test_what_is_sent_passes_the_network_of_the_leader() -> None:
    work = StepWork("a", 1.0, 8.0, n_bytes=3 * NETWORK_BYTES_PER_SECOND)
    assert work.seconds(1) == 9.0  # One process sends nothing.
    assert work.seconds(4) == 1 + 2 + 3


@pytest.mark.parametrize(
    ("leader", "shards", "most"),
    [(1.0, 0.0, 1), (100.0, 1.0, 1), (10.0, 90.0, 128), (1.0, 10_000.0, 1_024)],
)
def test_more_workers_stop_helping_where_the_leader_is_what_is_waited_for(
    leader: float, shards: float, most: int
) -> None:
    assert plan(StepWork("a", leader, shards)).max_useful_workers == most


WORK = st.builds(
    StepWork,
    st.just("step"),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.integers(0, 10**12),
    st.integers(0, 10**6),
)


@given(steps=st.lists(WORK, max_size=5), n=st.integers(2, 1_000), more=st.integers(1, 1_000))
def test_more_workers_are_never_slower(steps: list[StepWork], n: int, more: int) -> None:
    found = plan(*steps)
    assert found.seconds(n + more) <= found.seconds(n) + 1e-6
    assert found.seconds(n) >= sum(work.leader_seconds for work in steps) - 1e-6
    everything = sum(work.leader_seconds + work.shard_seconds for work in steps)
    assert found.seconds(1) == pytest.approx(everything)


def test_the_plan_of_the_sample_is_that_of_its_index(sample_project: Path) -> None:
    told = call(sample_project, "estimate", "--workers", "8", "--json")
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)["plan"]
    steps = {work["step"]: work for work in found["steps"]}
    assert "create_search_tables" in steps
    assert not steps["finalize_graph"]["shard_seconds"]
    assert steps["create_text_units"]["shard_seconds"] > 0
    assert steps["create_text_units"]["n_bytes"] > 200_000
    # The tables and vectors of this index.
    on_disk = sum(
        path.stat().st_size
        for folder in ("versions", "lancedb")
        for path in (sample_project / "output" / folder).rglob("*")
        if path.is_file()
    )
    assert 0.5 < found["table_bytes"] / on_disk < 2
    assert found["seconds"] == pytest.approx(found["seconds_by_workers"]["8"])
    text = call(sample_project, "estimate", "--workers", "8").stdout
    assert "A run by 8 processes: about " in text
    assert "Memory of the leader: about 0.4 GB" in text
    assert "Measured on the sample, and multiplied: CPU seconds and bytes." in text


def test_memory_grows_with_the_edges_and_depends_on_the_engine() -> None:
    assert estimate_graph_memory("native", 1_000_000) == 210_000_000
    assert estimate_graph_memory("leidenalg", 2_000_000) == 600_000_000
    assert estimate_graph_memory("microsoft", 1_000_000) == 210_000_000


def test_free_memory_is_what_the_system_tells() -> None:
    free = read_free_memory()
    assert free is None or 10_000_000 < free < 10**14


def test_a_small_graph_is_not_told() -> None:
    assert describe_graph_memory("native", 500_000, 2_000_000) == ""


@pytest.mark.parametrize(
    ("free", "end"),
    [
        (None, "needs about 2.1 GB with the engine native."),
        (4_000_000_000, "needs about 2.1 GB with the engine native."),
        (
            1_000_000_000,
            "2.1 GB with the engine native, and 1.0 GB are free: the run may be killed. Finished "
            "steps are kept, so that it can go on with more memory.",
        ),
    ],
)
def test_a_large_graph_is_told_with_what_is_free(
    free: int | None, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaling, "read_free_memory", lambda: free)
    told = describe_graph_memory("native", 2_000_000, 10_000_000)
    assert told.startswith("The graph of 2,000,000 entities and 10,000,000 relationships")
    assert told.endswith(end)

"""What a run says of the memory for a large graph."""

import pytest

from graphrag_index.cli import run_commands
from graphrag_index.cli.run_commands import (
    describe_graph_memory,
    estimate_graph_memory,
    read_free_memory,
)


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
    monkeypatch.setattr(run_commands, "read_free_memory", lambda: free)
    told = describe_graph_memory("native", 2_000_000, 10_000_000)
    assert told.startswith("The graph of 2,000,000 entities and 10,000,000 relationships")
    assert told.endswith(end)

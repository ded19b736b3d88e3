"""The command `evaluate graph`: figures, limits and references."""

import json
from pathlib import Path

import pytest

from tests.fixtures.commands import Call
from tests.fixtures.literal_index import two_triangles


def test_the_graph_of_a_project_is_measured(sample_project: Path, graphrag_index: Call) -> None:
    arguments = ["evaluate", "graph", "--root", str(sample_project), "--resamples", "2"]
    found = json.loads(graphrag_index(*arguments, "--json").out)["indexes"][str(sample_project)]
    measures = found["measures"]
    assert measures["grounded_mentions"]["mean"] > 0.99
    assert measures["duplicate_names"]["mean"] == 0
    assert measures["supported_claims"]["mean"] > 0.99
    assert measures["cited_claims"]["mean"] == measures["stated_claims"]["mean"] == 1
    assert 0 < measures["confirmed_claims"]["mean"] < 0.5
    assert measures["rebuilt_ari"]["mean"] == 1
    assert 0 < measures["ari@0"]["mean"] < 1
    assert list(found["not_measured"]) == ["grounded_claims"]


@pytest.fixture
def folder_of_tables(tmp_path: Path) -> Path:
    """A folder with tables as Microsoft GraphRAG writes them: two triangles."""
    for name, rows in two_triangles(["abc", "def"]).tables.items():
        rows.collect().write_parquet(tmp_path / f"{name}.parquet")
    return tmp_path


@pytest.mark.parametrize(
    ("option", "code", "said"),
    [
        ("--fail-below largest_component=0.85", 0, ""),
        ("--fail-below alone=0.5", 1, "alone of {} is 0.1429, below 0.5."),
        ("--fail-above alone=0.1", 1, "alone of {} is 0.1429, above 0.1."),
        ("--fail-below grounded_claims=0", 1, "cannot be measured: the index has no claims."),
        (
            "--fail-below beauty=1",
            2,
            "There is no measure 'beauty' of a graph, but",
        ),
        ("--fail-below ari@7=0", 1, "cannot be measured: the index has no such level."),
        ("--fail-above alone", 2, "--fail-above alone: write it as measure=0.9."),
        ("--as-of 3", 2, "--as-of needs its versions."),
        ("--against {}/nowhere", 1, "nowhere"),
    ],
)
def test_limits_and_places_are_checked(
    folder_of_tables: Path, graphrag_index: Call, option: str, code: int, said: str
) -> None:
    options = option.format(folder_of_tables).split()
    told = graphrag_index("evaluate", "graph", "--root", folder_of_tables, *options)
    assert told.code == code, told.err
    assert said.format(folder_of_tables) in told.err


def test_a_broken_table_is_told(folder_of_tables: Path, graphrag_index: Call) -> None:
    (folder_of_tables / "relationships.parquet").write_bytes(b"PAR1 cut off")
    told = graphrag_index("evaluate", "graph", "--root", folder_of_tables)
    assert told.code == 1
    assert "relationships cannot be read" in told.err
    assert "Traceback" not in told.err

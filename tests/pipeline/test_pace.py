"""Times of runs: scaled from the times of a sample, measured and printed."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from graphrag_index.cli.request_tables import describe_times, format_duration
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.request import Usage
from graphrag_index.pipeline.counting_models import PastReplies
from graphrag_index.pipeline.estimate import (
    Estimate,
    Pace,
    StepTime,
    measure_embedding,
    seconds_per_request,
)
from graphrag_index.pipeline.sample import GrowthRatios, SampleResult, TimedShards
from graphrag_index.steps.create_communities import create_communities
from graphrag_index.steps.create_text_units import create_text_units
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import StepRecord, Version, VersionOrigin
from tests.fixtures.commands import call


class CountingModel:
    """An embedding model that notes how many texts each call has."""

    name, dimension, identity = "counting", 2, None

    def __init__(self) -> None:
        self.n_texts: list[int] = []

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> np.ndarray:
        self.n_texts.append(len(texts))
        return np.ones((len(texts), 2), np.float32)


def make_pace(n_workers: int, folder: Path) -> Pace:
    """A sample that took 3 s for text units, 2 of them in shards, and 2 s for communities."""
    steps = (
        StepRecord("create_text_units", "a", {}, seconds=6, cpu_seconds=3),
        StepRecord("create_communities", "b", {}, seconds=4, cpu_seconds=2),
    )
    shards = TimedShards()
    shards.cpu_seconds = 2
    records = {record.name: record for record in steps}
    shards_of = {"create_text_units": shards}
    result = SampleResult(
        TableStore(folder), Version(1, "w", "", steps), [], [], shards_of, records
    )
    fixed = {
        "create_text_units": StepRecord("create_text_units", "a", {}, cpu_seconds=0.5),
        "create_communities": StepRecord("create_communities", "b", {}, cpu_seconds=1),
    }
    return Pace(result, fixed, GrowthRatios(text_units=100, names=10), None, n_workers)


def test_a_step_grows_with_the_text_or_with_the_names(tmp_path: Path) -> None:
    # The sample took 2 s for each CPU second. What grows is counted without the fixed costs.
    assert make_pace(1, tmp_path).estimate_step(create_text_units) == StepTime(
        "create_text_units", seconds=2 * 250.5, cpu_seconds=250.5
    )
    assert make_pace(1, tmp_path).estimate_step(create_communities) == StepTime(
        "create_communities", seconds=2 * 11, cpu_seconds=11
    )


def test_workers_share_the_shards(tmp_path: Path) -> None:
    time = make_pace(4, tmp_path).estimate_step(create_text_units)
    assert time.cpu_seconds == 250.5
    assert time.seconds == 2 * (50.5 + 200 / 4)


def test_a_model_is_measured_with_few_texts_but_all_count() -> None:
    model = CountingModel()
    measure_embedding(model, ["text"] * 20)
    assert model.n_texts == [1, 2, 8, 20]


def test_the_last_run_tells_the_pace_of_requests(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, 3)
    for number in range(40):
        ledger.record_sent(str(number), "extract_graph", "unit", "chat")
        ledger.record_call(str(number), "extract_graph", "chat", Usage(1, 0, 1), None, "{}")
    steps = (StepRecord("extract_graph", "key", {}, seconds=8),)
    made = VersionOrigin("2026-01-31T18:00:00+00:00", ("extract_graph",))
    past = PastReplies(tmp_path)
    for number, steps_run, seconds in ((3, made, 0.2), (4, made, None), (3, None, None)):
        version = Version(number, "w", "", steps, made=steps_run)
        assert seconds_per_request(past, "extract_graph", version) == seconds
    past.close()
    ledger.close()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "1 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (250, "4 min"),
        (3_599, "1 h"),
        (7_700, "2 h 10 min"),
        (10_900, "3 h"),
        (360_000, "100 h"),
    ],
)
def test_a_duration_has_the_precision_of_an_estimate(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def make_estimate(*times: StepTime, default_model: tuple[str, float] | None = None) -> Estimate:
    return Estimate((), 1, 1, False, times, default_model)


def test_long_steps_are_named_and_compared_with_the_default_model() -> None:
    found = make_estimate(
        StepTime("create_text_units", 300, 300),
        StepTime("extract_graph_nlp", 300, 300),
        StepTime("link_text_units", 5, 5),
        StepTime("generate_text_embeddings", 10_800, 20_000),
        default_model=("static", 60.0),
    )
    assert describe_times(found) == (
        "generate_text_embeddings 3 h (static: 1 min), other steps 10 min; about 3 h 10 min in all."
    )


def test_what_is_not_known_is_told() -> None:
    found = make_estimate(
        StepTime("create_text_units", 0.5, 0.5),
        StepTime("extract_graph", None, None, 20_000),
        StepTime("generate_text_embeddings", None, None),
    )
    assert describe_times(found) == (
        "about 1 s in all, without extract_graph (20,000 requests), generate_text_embeddings, "
        "whose pace is not known."
    )


# 18 characters a sentence, and 40 characters a text unit: a run of 24,000 text units is announced.
@pytest.mark.parametrize(
    ("n_sentences", "option", "n_lines"),
    [(53_333, "--verbose", 0), (53_334, "--verbose", 1), (53_334, "--quiet", 0)],
)
def test_a_long_run_is_announced_after_the_documents(
    tmp_path: Path, n_sentences: int, option: str, n_lines: int
) -> None:
    (tmp_path / "input").mkdir()
    (tmp_path / "workflows").mkdir()
    (tmp_path / "input" / "a.txt").write_text("A short sentence. " * n_sentences, encoding="utf-8")
    steps = "- load_documents\n- create_text_units\n"
    (tmp_path / "workflows" / "cut.yaml").write_text(steps, encoding="utf-8")
    settings = "workflow: cut\ncreate_text_units: {max_tokens: 10, overlap_tokens: 0}\n"
    (tmp_path / "settings.yaml").write_text(settings, encoding="utf-8")
    result = call(tmp_path, "run", option)
    assert result.returncode == 0, result.stderr
    # The steps that ran on the sample do not log that they ran.
    assert result.stderr.count("create_text_units runs with") == (option == "--verbose")
    ahead = [line for line in result.stdout.splitlines() if line.startswith("Ahead: ")]
    assert len(ahead) == n_lines
    assert not pl.read_parquet(tmp_path / "output" / "documents.parquet").is_empty()

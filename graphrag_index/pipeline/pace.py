"""Pace of the steps on this machine: the time of a run, scaled from the time of a sample."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphrag_index.llm.local.local_models import EmbeddingModel
from graphrag_index.pipeline.counting_models import MIN_PAST_CALLS, PastReplies
from graphrag_index.pipeline.sample import EMBEDDING_STEP, GrowthRatios, SampleResult
from graphrag_index.step import Step
from graphrag_index.storage.versions import StepRecord, Version

# A model is measured until one call takes this many seconds, or until it has embedded all texts.
MIN_EMBEDDING_SECONDS = 0.3
# Minimum number of text units of a run whose time is announced: of a run without models, and of a
# run that asks a model or embeds with another model than the default one. Such a run takes a minute
# or longer on one core, and the sample for its time takes two to four seconds.
MIN_ANNOUNCED_TEXT_UNITS, MIN_ANNOUNCED_TEXT_UNITS_WITH_MODEL = 24_000, 1_500


@dataclass(frozen=True)
class StepTime:
    """The estimated time of one step for all documents, in seconds.

    Both times are None if the step asks a model whose speed is not known, or needs a local model
    that is not on this machine. `cpu_seconds` is None too if the step asks a model.
    """

    step: str
    seconds: float | None
    cpu_seconds: float | None
    n_requests: int = 0


@dataclass(frozen=True)
class Pace:
    """The times of the steps in a sample, to be scaled to all documents.

    `fixed` are the steps in a run on almost no text.
    """

    sample: SampleResult
    fixed: Mapping[str, StepRecord]
    growth: GrowthRatios
    model: EmbeddingModel | None
    n_workers: int

    def estimate_step(self, step: Step) -> StepTime:
        """Estimate the time of a step that sends no request.

        The time of a step that reads entities grows with the names in the text.
        """
        grows_with_names = any(read.table.endswith("entities") for read in step.reads)
        growth = self.growth.names if grows_with_names else self.growth.text_units
        cpu = self.sample.records[step.name].cpu_seconds
        fixed = min(cpu, self.fixed[step.name].cpu_seconds) if self.fixed else 0.0
        growing = (cpu - fixed) * growth
        shards = self.sample.shards.get(step.name)
        parallel = min(growing, shards.cpu_seconds * growth) if shards else 0.0
        # Elapsed time per CPU second, which depends on the other programs on this machine.
        records = self.sample.records.values()
        load = sum(one.seconds for one in records) / max(
            0.001, sum(one.cpu_seconds for one in records)
        )
        wall = (fixed + growing - parallel * (1 - 1 / self.n_workers)) * load
        cpu = fixed + growing
        if step.name == EMBEDDING_STEP and self.sample.embedded:
            if self.model is None:
                return StepTime(step.name, None, None)
            wall_vectors, cpu_vectors = self.estimate_embedding(self.model)
            wall, cpu = wall + wall_vectors, cpu + cpu_vectors
        return StepTime(step.name, wall, cpu)

    def estimate_embedding(self, model: EmbeddingModel) -> tuple[float, float]:
        """Return the elapsed seconds and CPU seconds in which a model embeds all texts."""
        version, store = self.sample.version, self.sample.store
        units = store.scan("text_units", version.tables["text_units"]).select("text").collect()
        known, wall, cpu = set(units["text"]), 0.0, 0.0
        for texts in self.sample.embedded:
            # The texts of one call are of one kind: text units, entities or reports.
            growth = self.growth.text_units if texts[0] in known else self.growth.names
            sampled_wall, sampled_cpu = measure_embedding(model, texts)
            wall, cpu = wall + sampled_wall * growth, cpu + sampled_cpu * growth
        return wall, cpu


def measure_embedding(model: EmbeddingModel, texts: Sequence[str]) -> tuple[float, float]:
    """Return the elapsed seconds and CPU seconds for all texts, measured with some of them."""
    model.embed(texts[:1])  # The first call loads parts of the model.
    n = 2
    while True:
        n = min(n, len(texts))
        chosen = [texts[number * len(texts) // n] for number in range(n)]
        wall, cpu = time.perf_counter(), time.process_time()
        model.embed(chosen)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if n == len(texts) or wall >= MIN_EMBEDDING_SECONDS:
            return wall * len(texts) / n, cpu * len(texts) / n
        n *= 4


def seconds_per_request(past: PastReplies, step: str, version: Version | None) -> float | None:
    """Return the average seconds per request of a step in the run that made a version.

    The requests of a run overlap. Return None if the run sent fewer than `MIN_PAST_CALLS`.
    """
    if version is None or version.made is None or step not in version.made.steps_run:
        return None
    seconds = sum(record.seconds for record in version.steps if record.name == step)
    query = "SELECT count(*) FROM calls WHERE step = ? AND version = ?"
    n_calls = past.fetch_rows(query, step, version.number)[0][0]
    return seconds / n_calls if n_calls >= MIN_PAST_CALLS else None

"""Estimate of the requests, the price and the time of a run; no request is sent.

The price is the number of requests times their mean tokens. The steps run in a temporary folder on
a sample of the documents, with `CountingModels` in place of the models. A request in the ledger
(the cache of replies) gets its reply, and is free. So requests about text units are exact.

The requests about descriptions, pairs of names and reports depend on the names that the model will
find. If text units have no reply yet, the steps run a second time on the names that the rules of
`extract_graph_nlp` find. The further requests of this run are a guess, in proportion to the text
units without a reply.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from graphrag_index.llm.limits import cost_of, price_of_model
from graphrag_index.llm.local.local_models import EmbeddingModel
from graphrag_index.llm.request import Usage
from graphrag_index.pipeline.counting_models import MIN_PAST_CALLS, PastReplies, RequestCount
from graphrag_index.pipeline.run import Watcher
from graphrag_index.pipeline.sample import (
    CHARACTERS_PER_TOKEN,
    EMBEDDING_STEP,
    EXTRACTION_STEP,
    GrowthRatios,
    LoadedDocuments,
    Sample,
    SampleResult,
    SampleRuns,
)
from graphrag_index.pipeline.shards import count_cores
from graphrag_index.pipeline.workflow import Workflow, find_asking_steps
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.settings.step_sections import GenerateTextEmbeddings
from graphrag_index.step import Step
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import StepRecord, Version
from graphrag_index.storage.working_copy import locate_output

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


# If the length of replies, or the number of requests, is a guess, the bounds of the estimate are
# larger and smaller by this factor.
GUESSED_REPLY_LENGTH_FACTOR, GUESSED_REQUESTS_FACTOR = 2.0, 3.0
# Maximum number of documents whose names are found by rules.
MAX_DOCUMENTS_BY_RULES = 100
# Number of characters of each document in the runs that measure fixed costs.
WARM_UP_CHARACTERS = 2_000
# Number of characters, and minimum number of documents, of the sample before a long run.
SAMPLE_CHARACTERS, MIN_ANNOUNCED_DOCUMENTS = 320_000, 16


@dataclass(frozen=True)
class StepCosts:
    """The estimated requests of one step to one model, for all documents."""

    step: str
    model: str
    n_answered: int
    n_to_ask: int
    prompt_tokens: int
    reply_tokens: int
    # Cost in dollars, with a lower and an upper bound. The bounds differ if the length of replies
    # or the number of requests is a guess. All three values are None if the price is unknown.
    cost: float | None
    low: float | None
    high: float | None
    # True if the length of replies is the average length of earlier replies.
    replies_are_known: bool
    # Number of requests in `n_to_ask` that depend on names that no model has found yet.
    n_guessed: int = 0

    def bound_requests(self) -> tuple[int, int]:
        """Return a lower and an upper bound of `n_to_ask`."""
        n_exact, by = self.n_to_ask - self.n_guessed, GUESSED_REQUESTS_FACTOR
        return n_exact + round(self.n_guessed / by), n_exact + round(self.n_guessed * by)


@dataclass(frozen=True)
class Estimate:
    """The estimated requests and the estimated time of a run."""

    lines: tuple[StepCosts, ...]  # empty if no step asks a model
    n_documents: int
    n_sampled: int
    has_past: bool
    times: tuple[StepTime, ...]
    # (name, seconds) of the default embedding model, if the settings name another local model.
    default_model: tuple[str, float] | None


def estimate(
    workflow: Workflow,
    settings: Settings,
    root: Path,
    max_documents: int,
    watcher: Watcher | None = None,
    batch: bool = False,
    only: Collection[str] | None = None,
    *,
    loaded: LoadedDocuments | None = None,
    max_characters: int | None = None,
    n_workers: int | None = None,
) -> Estimate:
    """Estimate the requests and the time of a run.

    No request is sent, and the output folder is not changed. At most `max_documents` evenly spaced
    documents are read, and at most the first `max_characters` of each. With `batch`, the price of
    the batch API is used for chat requests. `only` has the names of the steps in the result; None
    means all steps. `loaded` are the documents if they are loaded already. `n_workers` is the
    number of processes of the run; None means one per core.
    """
    with (
        closing(PastReplies(locate_output(root, settings))) as past,
        TemporaryDirectory(prefix="graphrag-estimate-", ignore_cleanup_errors=True) as folder,
    ):
        runs = SampleRuns(workflow, settings, root, past, Path(folder))
        sample = Sample(max_documents, max_characters)
        steps = {step.name: step for step in workflow.steps if only is None or step.name in only}
        times, loader = [], workflow.loader
        if loader and not loaded:
            _, record = loaded = runs.load_documents(loader, watcher)
            if loader.name in steps:
                times.append(StepTime(record.name, record.seconds, record.cpu_seconds))
        fixed: Mapping[str, StepRecord] = {}
        n_documents = loaded[1].tables[str(loader.input_table)].rows if loader and loaded else 0
        if n_documents > max_documents or max_characters is not None:
            fixed = _measure_fixed_costs(runs, loaded)
        result, version = runs.run(sample, loaded, watcher), runs.last.version
        growth, counts = sample.growth, result.counts
        scales = {
            count.step: _find_growth(steps[count.step], count, growth, result)
            for count in counts
            if count.step in steps
        }
        guessed: dict[str, RequestCount] = {}
        if extraction := next(
            (c for c in counts if c.step == EXTRACTION_STEP and c.n_to_ask), None
        ):
            missing = extraction.n_to_ask / (extraction.n_to_ask + extraction.n_answered)
            by_rules = Sample(min(max_documents, MAX_DOCUMENTS_BY_RULES), max_characters)
            result = runs.run(by_rules, loaded, watcher, counts)
            growth = by_rules.growth
            guessed = {count.step: count.scale(missing * growth.names) for count in result.counts}
        lines = [
            estimate_step_costs(
                count.scale(scales[count.step]), guessed.get(count.step), settings, past, batch
            )
            for count in counts
            if count.step in steps
        ]
        pace = Pace(result, fixed, growth, runs.model, n_workers or count_cores())
        for step in steps.values():
            n_requests = sum(line.n_to_ask for line in lines if line.step == step.name)
            if n_requests:
                # A provider completes a batch within a day; nobody knows when.
                per_request = None if batch else seconds_per_request(past, step.name, version)
                seconds = None if per_request is None else n_requests * per_request
                times.append(StepTime(step.name, seconds, None, n_requests))
            elif step is not loader:
                times.append(pace.estimate_step(step))
        return Estimate(
            *(tuple(lines), sample.n_documents, sample.n_sampled, not past.is_empty, tuple(times)),
            _estimate_default_model(runs, settings, pace) if result.embedded else None,
        )


def _measure_fixed_costs(
    runs: SampleRuns, loaded: LoadedDocuments | None
) -> Mapping[str, StepRecord]:
    """Return the records of steps that have next to nothing to do."""
    tiny = Sample(2, WARM_UP_CHARACTERS, is_measured=False)
    # The first run loads libraries. The second run has only the fixed costs of each step.
    return [runs.run(tiny, loaded) for _ in range(2)][1].records


def _estimate_default_model(
    runs: SampleRuns, settings: Settings, pace: Pace
) -> tuple[str, float] | None:
    """Return (name, seconds) of the default embedding model, if the settings name another one."""
    default = GenerateTextEmbeddings().model
    if default == settings.generate_text_embeddings.model:
        return None
    model = runs.open_local_model(default)
    return (default, pace.estimate_embedding(model)[0]) if model else None


def estimate_steps_ahead(
    workflow: Workflow,
    settings: Settings,
    root: Path,
    ahead: Collection[str],
    record: StepRecord,
    changed_share: float,
    batch: bool = False,
    n_workers: int | None = None,
) -> Estimate | None:
    """Estimate the time of the steps `ahead` after documents were loaded; None if it is short.

    `record` is the step that has loaded the documents. `changed_share` of them are new or changed.
    """
    loader = workflow.loader
    if loader is None or not ahead:
        return None
    store, table = TableStore(locate_output(root, settings)), str(loader.input_table)
    lengths = store.scan(table, record.tables[table]).select(pl.col("text").str.len_chars().sum())
    n_characters = int(lengths.collect(engine="streaming").item())
    n_text_units = n_characters / (settings.create_text_units.max_tokens * CHARACTERS_PER_TOKEN)
    embeds_slowly = settings.generate_text_embeddings.model != GenerateTextEmbeddings().model
    is_slow = embeds_slowly or bool(find_asking_steps(workflow, settings))
    minimum = MIN_ANNOUNCED_TEXT_UNITS_WITH_MODEL if is_slow else MIN_ANNOUNCED_TEXT_UNITS
    if n_text_units * changed_share < minimum:
        return None
    # Read enough short documents, and only the starts of long documents.
    n_sampled = max(
        MIN_ANNOUNCED_DOCUMENTS, SAMPLE_CHARACTERS * record.tables[table].rows // n_characters
    )
    return estimate(
        *(workflow, settings, root, n_sampled, None, batch, ahead),
        loaded=(store, record),
        max_characters=SAMPLE_CHARACTERS // MIN_ANNOUNCED_DOCUMENTS,
        n_workers=n_workers,
    )


def _find_growth(
    step: Step, count: RequestCount, growth: GrowthRatios, sample: SampleResult
) -> float:
    """Return the growth of the requests of a step, by the tables that it reads."""
    tables = {read.table for read in step.reads}
    if "text_units" in tables:
        # The step embeds text units, and beside them entities and reports.
        n_units = sample.version.tables["text_units"].rows
        share = min(1.0, n_units / max(1, count.n_to_ask + count.n_answered))
        return growth.text_units * share + growth.names * (1 - share)
    return growth.names if tables & {"communities", "extracted_entities"} else growth.text_units


def estimate_step_costs(
    count: RequestCount,
    guessed: RequestCount | None,
    settings: Settings,
    past: PastReplies,
    batch: bool,
) -> StepCosts:
    """Estimate the cost of counted requests, and of further requests whose number is a guess."""
    guessed = guessed or RequestCount(count.step, count.model, count.is_chat)
    known, cached_share = past.average_past_replies(count.step, count.model)
    price = price_of_model(settings.models[count.model])
    if price is not None and batch and count.is_chat:
        price = price.in_batch()

    def count_tokens(of_calls: float, of_replies: float) -> Usage:
        prompt = count.prompt_tokens + guessed.prompt_tokens * of_calls
        if known is None:
            reply = (count.reply_tokens + guessed.reply_tokens * of_calls) * of_replies
        else:
            reply = (count.n_to_ask + guessed.n_to_ask * of_calls) * known
        return Usage(round(prompt), round(prompt * cached_share), round(reply))

    n_to_ask, usage = count.n_to_ask + guessed.n_to_ask, count_tokens(1, 1)
    low = count_tokens(1 / GUESSED_REQUESTS_FACTOR, 1 / GUESSED_REPLY_LENGTH_FACTOR)
    high = count_tokens(GUESSED_REQUESTS_FACTOR, GUESSED_REPLY_LENGTH_FACTOR)
    costs = [cost_of(tokens, price) if n_to_ask else 0.0 for tokens in (usage, low, high)]
    return StepCosts(
        count.step,
        count.model,
        count.n_answered,
        n_to_ask,
        usage.prompt,
        usage.completion,
        cost=costs[0],
        low=costs[1],
        high=costs[2],
        replies_are_known=known is not None or not usage.completion,
        n_guessed=guessed.n_to_ask,
    )

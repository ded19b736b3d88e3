"""Estimate of the requests, the price and the time of a run; no request is sent.

The steps run in a temporary folder. `CountingModels` replace the models, so the prompts are real.
A request in the ledger (the cache of replies) gets its stored reply, and any other request gets a
simulated reply. If there are many documents, a sample is read, and the counts are scaled to all
documents. Each further document adds fewer new names to the graph, and this decrease depends on the
corpus. So a cheap pattern counts the names in all documents, and the graph of the sample is scaled
by these counts.
"""

from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from graphrag_index.llm.limits import cost_of, price_of_model
from graphrag_index.llm.request import Usage
from graphrag_index.pipeline.counting_models import PastReplies, RequestCount
from graphrag_index.pipeline.local_runner import count_cores
from graphrag_index.pipeline.pace import (
    MIN_ANNOUNCED_TEXT_UNITS,
    MIN_ANNOUNCED_TEXT_UNITS_WITH_MODEL,
    Pace,
    StepTime,
    seconds_per_request,
)
from graphrag_index.pipeline.run import Watcher
from graphrag_index.pipeline.sample import (
    CHARACTERS_PER_TOKEN,
    GrowthRatios,
    LoadedDocuments,
    Sample,
    SampleRuns,
    average_growth,
)
from graphrag_index.pipeline.workflow import Workflow, find_asking_steps
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.settings.step_sections import GenerateTextEmbeddings
from graphrag_index.step import Step
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import StepRecord, Version
from graphrag_index.storage.working_copy import locate_output

# If the length of replies is a guess, the bounds of the cost assume replies that are longer and
# shorter by this factor.
GUESSED_REPLY_LENGTH_FACTOR = 2.0
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
    # is a guess. All three values are None if the price is unknown.
    cost: float | None
    low: float | None
    high: float | None
    # True if the length of replies is the average length of earlier replies.
    replies_are_known: bool


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
        size = settings.create_text_units.max_tokens
        asks = bool(find_asking_steps(workflow, settings))
        sample = Sample(max_documents, size, max_characters, counts_pairs=asks)
        steps = {step.name: step for step in workflow.steps if only is None or step.name in only}
        times, loader = [], workflow.loader
        if loader and not loaded:
            _, record = loaded = runs.load_documents(loader, watcher)
            if loader.name in steps:
                times.append(StepTime(record.name, record.seconds, record.cpu_seconds))
        fixed: Mapping[str, StepRecord] = {}
        n_documents = loaded[1].tables[str(loader.input_table)].rows if loader and loaded else 0
        if n_documents > max_documents or max_characters is not None:
            fixed = _measure_fixed_costs(runs, size, loaded)
        result, version = runs.run(sample, loaded, watcher), runs.last.version
        lines = [
            estimate_step_costs(
                count,
                _estimate_growth(
                    steps[count.step], count, sample.growth, result.store, result.version
                ),
                *(settings, past, batch),
            )
            for count in result.counts
            if count.step in steps
        ]
        pace = Pace(result, fixed, sample.growth, runs.model, n_workers or count_cores())
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
    runs: SampleRuns, size: int, loaded: LoadedDocuments | None
) -> Mapping[str, StepRecord]:
    """Return the records of steps that have next to nothing to do; `size` is that of text units."""
    tiny = Sample(2, size, WARM_UP_CHARACTERS, is_measured=False)
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


def _estimate_growth(
    step: Step, count: RequestCount, growth: GrowthRatios, store: TableStore, version: Version
) -> tuple[float, float, float]:
    """Return the growth of calls, of variable prompt tokens, and of reply tokens.

    The counts by which the requests of a step grow depend on the tables that the step reads.
    """
    tables = {read.table for read in step.reads}
    if "text_units" in tables:
        # A step that reads `text_units` embeds text units, entities and reports.
        units = store.scan("text_units", version.tables["text_units"])
        n_units, n_tokens = units.select(pl.len(), pl.col("n_tokens").sum()).collect().row(0)
        n_texts = max(1, count.n_to_ask + count.n_answered)
        calls = average_growth(growth.text_units, growth.names, n_units / n_texts)
        share = n_tokens / max(1, count.prompt_tokens) * count.n_to_ask / n_texts
        return calls, average_growth(growth.text_units, growth.names, share), calls
    if "communities" in tables:
        return growth.names, growth.pairs, growth.names
    if "extracted_entities" in tables:
        # The length of a summary grows less than the number of descriptions that it summarizes.
        replies = average_growth(growth.repeated, growth.repetitions, 0.5)
        return growth.repeated, growth.repetitions, replies
    return growth.text_units, growth.text_units, growth.text_units


def estimate_step_costs(
    count: RequestCount,
    growth: tuple[float, float, float],
    settings: Settings,
    past: PastReplies,
    batch: bool,
) -> StepCosts:
    """Estimate the cost of counted requests; `growth` are the ratios of calls and tokens."""
    of_calls, of_tokens, of_replies = growth
    n_to_ask = round(count.n_to_ask * of_calls)
    beyond = count.prompt_tokens - count.fixed_tokens
    prompt = round(count.fixed_tokens * of_calls + beyond * of_tokens)
    known, cached_share = past.average_past_replies(count.step, count.model)
    reply = round(count.reply_tokens * of_replies if known is None else n_to_ask * known)
    cached = round(prompt * cached_share)
    price = price_of_model(settings.models[count.model])
    if price is not None and batch and count.is_chat:
        price = price.in_batch()
    guess = GUESSED_REPLY_LENGTH_FACTOR if known is None else 1.0

    def estimate_cost(times: float) -> float | None:
        return cost_of(Usage(prompt, cached, round(reply * times)), price) if n_to_ask else 0.0

    return StepCosts(
        count.step,
        count.model,
        round(count.n_answered * of_calls),
        n_to_ask,
        prompt,
        reply,
        estimate_cost(1),
        estimate_cost(1 / guess),
        estimate_cost(guess),
        known is not None or not reply,
    )

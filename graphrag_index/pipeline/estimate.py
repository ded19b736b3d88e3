"""Estimate of the requests of a run and their price; no request is sent.

The steps up to the last step that asks a model run in a temporary folder. `CountingModels` replace
the models, so the prompts are real. A request in the ledger (the cache of replies) gets its stored
reply, and any other request gets a simulated reply. If there are many documents, a sample is read,
and the counts are scaled to all documents. Each further document adds fewer new names to the graph,
and this decrease depends on the corpus. So a cheap pattern counts the names in all documents, and
the graph of the sample is scaled by these counts.
"""

import logging
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from graphrag_index.llm.limits import cost_of, price_of_model
from graphrag_index.llm.request import Usage
from graphrag_index.microsoft.import_folder import has_imported
from graphrag_index.pipeline.counting_models import NAME, CountingModels, PastReplies, RequestCount
from graphrag_index.pipeline.run import Watcher, run_workflow
from graphrag_index.pipeline.workflow import Service, Workflow, find_asking_steps, make_services
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.step import Step, step
from graphrag_index.storage.table_store import Previous, TableStore
from graphrag_index.storage.versions import Version

# If the length of replies is a guess, the bounds of the cost assume replies that are longer and
# shorter by this factor.
GUESSED_REPLY_LENGTH_FACTOR = 2.0
# Number of documents per batch. The number limits memory and does not change the results.
BATCH_DOCUMENTS = 256
# Approximate number of characters per token.
CHARACTERS_PER_TOKEN = 4
# If fewer passages contain a name, no model summarizes the descriptions of the name: two
# descriptions are usually short enough to be joined.
MIN_PASSAGES_WITH_NAME = 3
# If the sample has fewer names, pairs or passages than this number, no ratio is computed from them.
MIN_COUNT_IN_SAMPLE = 20


@dataclass(frozen=True)
class GrowthRatios:
    """Ratios of counts in all documents to counts in the sample."""

    text_units: float = 1.0
    # Ratios of the numbers of names, of pairs of adjacent names, of names that occur in several
    # passages, and of these passages.
    names: float = 1.0
    pairs: float = 1.0
    repeated: float = 1.0
    repetitions: float = 1.0


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
    """The estimated requests of a run."""

    lines: tuple[StepCosts, ...]
    n_documents: int
    n_sampled: int
    has_past: bool


def estimate(
    workflow: Workflow,
    settings: Settings,
    root: Path,
    max_documents: int,
    watcher: Watcher | None = None,
    batch: bool = False,
    only: Collection[str] | None = None,
) -> Estimate | None:
    """Estimate the requests of a workflow; return None if no step asks a model.

    No request is sent, and the output folder is not changed. At most `max_documents` evenly spaced
    documents are read. With `batch`, the price of the batch API is used for chat requests. `only`
    has the names of the steps in the result; None means all steps.
    """
    names = find_asking_steps(workflow, settings)
    asking = [number for number, one in enumerate(workflow.steps, 1) if one.name in names]
    if not asking:
        return None
    steps = [*workflow.steps[: asking[-1]]]
    sample = Sample(max_documents, settings.create_text_units.max_tokens)
    if workflow.loader in steps:
        to_sample = step(writes=["loaded_documents"])(sample.sample_documents)
        steps.insert(steps.index(workflow.loader) + 1, to_sample)
    with (
        closing(PastReplies(root / settings.output)) as past,
        TemporaryDirectory(prefix="graphrag-estimate-", ignore_cleanup_errors=True) as folder,
    ):
        # Do not compute a layout, because nobody sees the temporary graph.
        plain = settings.finalize_graph.model_copy(update={"layout": False})
        temporary = settings.model_copy(update={"output": folder, "finalize_graph": plain})
        store = TableStore(root / settings.output)
        last = Previous(store, store.read_pointer())
        vectors = last.tables["text_unit_text"].vectors if "text_unit_text" in last.tables else None
        dimension = vectors.dimension if vectors and has_imported(root) else None
        models: Any = CountingModels(settings.models, past, dimension)
        services = {
            **make_services(temporary, models, root),
            "previous": Service(open=lambda step, section: last),
        }
        sampled = Workflow(workflow.name, tuple(steps))
        # Hide warnings about simulated replies.
        logger = logging.getLogger("graphrag_index.steps")
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            version = run_workflow(sampled, temporary, root, services, watcher).version
        finally:
            logger.setLevel(level)
        by_name, tables = {one.name: one for one in steps}, TableStore(Path(folder))
        lines = []
        for count in models.counts:
            if only is None or count.step in only:
                growth = _estimate_growth(
                    by_name[count.step], count, sample.growth, tables, version
                )
                lines.append(_estimate_step_costs(count, growth, settings, past, batch))
        return Estimate(tuple(lines), sample.n_documents, sample.n_sampled, not past.is_empty)


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
        calls = _average_growth(growth.text_units, growth.names, n_units / n_texts)
        share = n_tokens / max(1, count.prompt_tokens) * count.n_to_ask / n_texts
        return calls, _average_growth(growth.text_units, growth.names, share), calls
    if "communities" in tables:
        return growth.names, growth.pairs, growth.names
    if "extracted_entities" in tables:
        # The length of a summary grows less than the number of descriptions that it summarizes.
        replies = _average_growth(growth.repeated, growth.repetitions, 0.5)
        return growth.repeated, growth.repetitions, replies
    return growth.text_units, growth.text_units, growth.text_units


def _average_growth(first: float, second: float, share: float) -> float:
    share = min(1.0, share)
    return first * share + second * (1 - share)


def _estimate_step_costs(
    count: RequestCount,
    growth: tuple[float, float, float],
    settings: Settings,
    past: PastReplies,
    batch: bool,
) -> StepCosts:
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


@dataclass
class Sample:
    """A sample of the documents; `sample_documents` sets its counts and its growth."""

    max_documents: int
    text_unit_tokens: int
    n_documents: int = 0
    n_sampled: int = 0
    growth: GrowthRatios = field(default_factory=GrowthRatios)

    def sample_documents(self, loaded_documents: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Keep evenly spaced documents, and measure the growth from the sample to all documents.

        This method is run as a step.
        """
        self.n_documents = loaded_documents.select(pl.len()).collect().item()
        self.n_sampled = min(self.max_documents, self.n_documents)
        chosen = {number * self.n_documents // self.n_sampled for number in range(self.n_sampled)}
        size = self.text_unit_tokens * CHARACTERS_PER_TOKEN
        whole, sampled = _NameCounts(size), _NameCounts(size)
        for offset in range(0, self.n_documents, BATCH_DOCUMENTS):
            batch = loaded_documents.slice(offset, BATCH_DOCUMENTS).collect()
            mine = batch[[row for row in range(batch.height) if offset + row in chosen]]
            if self.n_sampled < self.n_documents:
                for names, rows in ((whole, batch), (sampled, mine)):
                    for text in rows["text"]:
                        names.add_document(text)
            yield mine
        self.growth = whole.compute_growth(sampled)


class _NameCounts:
    """Counts of names in documents, and of the passages with each name."""

    def __init__(self, size: int) -> None:
        self.size = size  # number of characters per passage
        self.n_characters = 0
        self.n_passages = 0
        # Hash of a name → (number of the last passage with the name, number of passages).
        self.passages: dict[int, tuple[int, int]] = {}
        self.pairs: set[int] = set()

    def add_document(self, text: str) -> None:
        self.n_characters += len(text)
        last, last_end = 0, -self.size
        for match in NAME.finditer(text):
            name = hash(match[0])
            passage = self.n_passages + match.start() // self.size
            before, n = self.passages.get(name, (-1, 0))
            if before != passage:
                self.passages[name] = passage, n + 1
            if match.start() - last_end < self.size // 4 and name != last:
                self.pairs.add(hash((last, name)))
            last, last_end = name, match.end()
        self.n_passages += len(text) // self.size + 1

    def compute_growth(self, part: "_NameCounts") -> GrowthRatios:
        """Return the ratios of these counts to the counts of a sample of the same documents.

        If a count of the sample is below `MIN_COUNT_IN_SAMPLE`, for example without capital letters
        in the script, the ratio of text units replaces the ratio of this count.
        """
        counts = zip(self._count_names(), part._count_names(), strict=True)
        ratios = [whole / n if n >= MIN_COUNT_IN_SAMPLE else None for whole, n in counts]
        text_units = ratios[0] or 1.0
        return GrowthRatios(*(ratio or text_units for ratio in ratios))

    def _count_names(self) -> list[int]:
        repeated = [n for _, n in self.passages.values() if n >= MIN_PASSAGES_WITH_NAME]
        return [
            *(self.n_characters, len(self.passages), len(self.pairs)),
            *(len(repeated), sum(repeated)),
        ]

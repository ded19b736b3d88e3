"""Run the steps of a workflow in a temporary folder, with stand-ins for models, and add up.

Steps before and between those that ask a model run as they are, so the prompts are the real
ones: of what is answered already with the real replies, of the rest with replies made of the
same text. Steps behind the last that asks are left out.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

import polars as pl

from graphrag_index.llm.prices import cost_of, price_of
from graphrag_index.llm.request import Usage
from graphrag_index.microsoft.import_folder import has_imported
from graphrag_index.pipeline.estimate.counting_models import Count, CountingModels
from graphrag_index.pipeline.estimate.past_replies import ENOUGH_CALLS, Past
from graphrag_index.pipeline.estimate.sample import Growth, Sample
from graphrag_index.pipeline.request_status import describe_unknown_price, write_table
from graphrag_index.pipeline.run import Watcher, run_workflow
from graphrag_index.pipeline.services import services_of
from graphrag_index.pipeline.workflow import Workflow, check_settings
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.step import Step
from graphrag_index.storage.table_store import Previous, TableStore
from graphrag_index.storage.versions import Version

HEADING = ("step", "model", "answered", "to ask", "prompt", "reply", "$", "low", "high")
# A guess of how long replies are may be so many times too long or too short.
GUESS = 2.0


@dataclass(frozen=True)
class Line:
    """What one step asks one model, in all documents."""

    step: str
    model: str
    n_answered: int
    n_to_ask: int
    prompt_tokens: int
    reply_tokens: int
    # In dollars, and the least and the most if replies are guessed; None if the price is not known.
    cost: float | None
    low: float | None
    high: float | None
    # The length of replies is that of earlier ones.
    replies_are_known: bool


@dataclass(frozen=True)
class Estimate:
    """What a run would ask of models."""

    lines: tuple[Line, ...]
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
    """Count what a workflow would ask; None if none of its steps asks a model.

    Nothing is sent, and nothing is written to the output folder. Of more documents than
    `max_documents` as many are read, evenly chosen, and the counts are scaled. With `batch`
    chats have the price that they have in batches. Steps beside those named by `only` are
    not told of.
    """
    check_settings(workflow, settings)
    steps = _up_to_last_asking(workflow, settings)
    if not steps:
        return None
    sample = Sample(max_documents, settings.create_text_units.max_tokens)
    steps = _with_sample(steps, sample.step())
    with (
        closing(Past(root / settings.output)) as past,
        TemporaryDirectory(prefix="graphrag-estimate-", ignore_cleanup_errors=True) as folder,
    ):
        # The layout is what nobody looks at.
        plain = settings.finalize_graph.model_copy(update={"layout": False})
        changes = {"output": folder, "finalize_graph": plain}
        temporary = settings.model_copy(update=changes)
        store = TableStore(root / settings.output)
        last = Previous(store, store.read_pointer())
        dimension = _dimension(last) if has_imported(root) else None
        models: Any = CountingModels(settings.models, past, dimension)
        services = {**services_of(temporary, models, root), "previous": lambda _: last}
        with _without_warnings():
            version = run_workflow(
                replace(workflow, steps=steps), temporary, root, services, watcher
            ).version
        by_step = {step.name: step for step in steps}
        lines = []
        for count in models.counts:
            if only is not None and count.step not in only:
                continue
            asking = by_step[count.step]
            growth = _growth_of(asking, count, sample.growth, TableStore(Path(folder)), version)
            lines.append(_line(count, growth, settings, past, batch))
        return Estimate(tuple(lines), sample.n_documents, sample.n_sampled, not past.is_empty)


def _dimension(last: Previous) -> int | None:
    """How many numbers the vectors of the index have."""
    table = last.tables.get("text_unit_text")
    return table.vectors.dimension if table and table.vectors else None


def write_estimate(estimate: Estimate, out: TextIO) -> None:
    """Print a line for each step and model, the sum, and what the figures rest on."""
    lines = estimate.lines
    table = [HEADING, *(_cells(line) for line in lines)]
    if len(lines) > 1:
        table.append(
            (
                *("all", ""),
                *(
                    f"{sum(getattr(line, name) for line in lines):,}"
                    for name in ("n_answered", "n_to_ask", "prompt_tokens", "reply_tokens")
                ),
                *(_total(lines, name) for name in ("cost", "low", "high")),
            )
        )
    write_table(table, out)
    if any(line.cost is None for line in lines):
        print(describe_unknown_price(), file=out)
    if not all(line.replies_are_known for line in lines):
        print(
            f"Until a step has had {ENOUGH_CALLS} calls the length of its replies is a guess: low "
            "is half of it, high twice as much, and a reasoning model's thoughts come on top.",
            file=out,
        )
    if estimate.n_sampled < estimate.n_documents:
        hint = " Summaries and reports that were paid for are known with all of them only."
        print(
            f"From {estimate.n_sampled:,} of {estimate.n_documents:,} documents, evenly chosen: "
            f"--sample {estimate.n_documents} reads all.{hint * estimate.has_past}",
            file=out,
        )


@dataclass(frozen=True)
class _Factors:
    """How many times more a step asks in all documents than in the sample."""

    calls: float
    # Of what prompts have beyond what is the same in each, and of replies.
    tokens: float
    replies: float


def _growth_of(
    step: Step, count: Count, growth: Growth, store: TableStore, version: Version
) -> _Factors:
    """Tell by the tables that a step reads what its requests grow with."""
    tables = {read.table for read in step.reads}
    if "text_units" in tables:
        # One vector for each text unit, and others for entities and reports.
        units = store.scan("text_units", version.tables["text_units"])
        n_units, n_tokens = units.select(pl.len(), pl.col("n_tokens").sum()).collect().row(0)
        n_texts = max(1, count.n_to_ask + count.n_answered)
        calls = _mixed(growth.text_units, growth.names, n_units / n_texts)
        share = n_tokens / max(1, count.prompt_tokens) * count.n_to_ask / n_texts
        return _Factors(calls, _mixed(growth.text_units, growth.names, share), calls)
    if "communities" in tables:
        return _Factors(growth.names, growth.pairs, growth.names)
    if "extracted_entities" in tables:
        # More descriptions make a longer summary, but not in proportion.
        replies = _mixed(growth.repeated, growth.repetitions, 0.5)
        return _Factors(growth.repeated, growth.repetitions, replies)
    return _Factors(growth.text_units, growth.text_units, growth.text_units)


def _mixed(first: float, second: float, share: float) -> float:
    share = min(1.0, share)
    return first * share + second * (1 - share)


def _line(count: Count, factors: _Factors, settings: Settings, past: Past, batch: bool) -> Line:
    n_to_ask = round(count.n_to_ask * factors.calls)
    beyond = count.prompt_tokens - count.fixed_tokens
    prompt = round(count.fixed_tokens * factors.calls + beyond * factors.tokens)
    known = past.reply_tokens(count.step, count.model)
    reply = round(count.reply_tokens * factors.replies if known is None else n_to_ask * known)
    cached = round(prompt * past.cached_share(count.step, count.model))
    price = price_of(settings.models[count.model])
    if price is not None and batch and count.is_chat:
        price = price.in_batch()
    guess = GUESS if known is None else 1.0

    def cost(times: float) -> float | None:
        return cost_of(Usage(prompt, cached, round(reply * times)), price) if n_to_ask else 0.0

    return Line(
        count.step,
        count.model,
        round(count.n_answered * factors.calls),
        n_to_ask,
        prompt,
        reply,
        cost(1),
        cost(1 / guess),
        cost(guess),
        known is not None or not reply,
    )


def _cells(line: Line) -> tuple[str, ...]:
    numbers = (line.n_answered, line.n_to_ask, line.prompt_tokens, line.reply_tokens)
    costs = ("?" if cost is None else f"{cost:.4f}" for cost in (line.cost, line.low, line.high))
    return (line.step, line.model, *(f"{number:,}" for number in numbers), *costs)


def _total(lines: Sequence[Line], name: str) -> str:
    """Sum the costs that are known; the others are a question mark."""
    known = [cost for line in lines if (cost := getattr(line, name)) is not None]
    return f"{sum(known):.4f}" + (" + ?" if len(known) < len(lines) else "")


def _up_to_last_asking(workflow: Workflow, settings: Settings) -> tuple[Step, ...]:
    """Return the steps up to the last that asks a model behind an address."""
    names = asking_steps(workflow, settings)
    asking = [number for number, step in enumerate(workflow.steps, 1) if step.name in names]
    return workflow.steps[: max(asking, default=0)]


def asking_steps(workflow: Workflow, settings: Settings) -> set[str]:
    """Return the names of the steps that ask a model behind an address."""
    embeds = settings.generate_text_embeddings.model in settings.models
    return {
        step.name
        for step in workflow.steps
        if "chat_model" in (asked := step.needs(getattr(settings, step.name, None)))
        or (embeds and "embedding_model" in asked)
    }


def _with_sample(steps: Sequence[Step], sampling: Step) -> tuple[Step, ...]:
    """Put a step behind the first that writes the documents."""
    for number, step in enumerate(steps, 1):
        if any(table.name == "loaded_documents" for table in step.writes):
            return (*steps[:number], sampling, *steps[number:])
    return tuple(steps)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Keep quiet of what is no good in replies that no model made."""
    logger = logging.getLogger("graphrag_index.steps")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)

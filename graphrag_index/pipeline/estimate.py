"""Estimate of the requests and the price of a run; no request is sent.

The price is the number of requests times their mean tokens. The steps that ask a model, and the
steps that they depend on, run in a temporary folder on a sample of the documents, with
`CountingModels` in place of the models. A request in the ledger (the cache of replies) gets its
reply, and is free. So requests about text units are exact.

The requests about descriptions, pairs of names and reports depend on the names that the model will
find. If text units have no reply yet, the steps run a second time on the names that the rules of
`extract_graph_nlp` find. The further requests of this run are a guess, in proportion to the text
units without a reply.
"""

import json
import logging
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.llm.chat_model import CachedModel, RequestChain
from graphrag_index.llm.embeddings import text_key
from graphrag_index.llm.ledger import DONE, FILE, QUARANTINED, Ledger
from graphrag_index.llm.limits import cost_of, price_of_model
from graphrag_index.llm.prompts import find_quoted_texts
from graphrag_index.llm.protocol import Capabilities
from graphrag_index.llm.request import (
    ENCODING,
    Outcome,
    QuarantinedError,
    ReplyError,
    Request,
    Usage,
    count_picture_tokens,
    prompt_tokens,
)
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.microsoft.import_folder import has_imported
from graphrag_index.pipeline.run import RunSetup, Watcher, run_workflow
from graphrag_index.pipeline.shards import LocalRunner
from graphrag_index.pipeline.workflow import (
    Service,
    Workflow,
    find_asking_steps,
    load_step,
    make_services,
)
from graphrag_index.readers.input_files import find_files
from graphrag_index.readers.recognition import PageReader, describe_pictures
from graphrag_index.schema.settings.models import ModelSettings, find_model
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Silent, Step, step
from graphrag_index.storage.table_store import Previous, TableStore
from graphrag_index.storage.versions import Version
from graphrag_index.storage.working_copy import locate_output

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Number of tokens that mark the start and the end of one message of a prompt.
DELIMITER_TOKENS_PER_MESSAGE = 4
# Mean tokens of a reply, by name of the reply format, until the step has `MIN_PAST_CALLS`: per
# token of the passage in the prompt, or per reply. The values are rough, because they depend on
# the model and the text.
TOKENS_PER_PASSAGE_TOKEN = {"extraction": 2.0, "claims": 0.5}
TOKENS_PER_REPLY = {"description": 160, "community_report": 700, "figure": 200}
DEFAULT_TOKENS_PER_REPLY = 60
# Dimension of the dummy vectors, if the settings do not set a dimension.
DUMMY_DIMENSION = 8
# If a step has fewer past calls than this number, no average length of its replies is computed.
MIN_PAST_CALLS = 20
# A text of about the mean length of a description. It stands for every text of a missing reply.
PLACEHOLDER = "This sentence has as many words as a model needs to describe one name in a passage."
EXTRACTION_STEP = "extract_graph"
# If the length of replies, or the number of requests, is a guess, the bounds of the estimate are
# larger and smaller by this factor.
GUESSED_REPLY_LENGTH_FACTOR, GUESSED_REQUESTS_FACTOR = 2.0, 3.0
# Maximum number of documents whose names are found by rules.
MAX_DOCUMENTS_BY_RULES = 100
# Number of documents per batch. The number limits memory and does not change the results.
BATCH_DOCUMENTS = 256
_UPPER = "".join(re.escape(chr(code)) for code in range(0x10000) if chr(code).isupper())
_WORD = rf"[{_UPPER}](?:[\w’'&.-]*\w)?"
_NAME = rf"\b{_WORD}(?: (?:(?:of|de|del|la|von|van|der|bin|al) )?{_WORD})*"
# If the sample has fewer names than this number, no ratio is computed from them.
MIN_COUNT_IN_SAMPLE = 20


class PastReplies(Ledger):
    """The ledger (cache of replies) of an output folder, read-only; empty if the file is absent."""

    def __init__(self, output: Path) -> None:
        self.is_empty = not (output / FILE).exists()
        super().__init__(None if self.is_empty else output, read_only=not self.is_empty)

    def average_past_replies(self, step: str, model: str) -> tuple[float | None, float]:
        """Return the average tokens of a reply, and the share (0–1) of cached prompt tokens.

        Return None and 0 if the step has fewer than `MIN_PAST_CALLS` replies.
        """
        n_calls, *averages = self.fetch_rows(
            "SELECT count(*), total(completion_tokens) / count(*), "
            "total(cached_tokens) / max(1, total(prompt_tokens)) FROM calls "
            "WHERE step = ? AND model = ? AND completion_tokens > 0",
            step,
            model,
        )[0]
        return (averages[0], averages[1]) if n_calls >= MIN_PAST_CALLS else (None, 0.0)


@dataclass
class RequestCount:
    """Counts of the requests of one step to one model.

    `n_answered` requests have a reply in the ledger, the cache of replies. `n_to_ask` requests have
    no reply yet.
    """

    step: str
    model: str
    is_chat: bool
    n_answered: int = 0
    n_to_ask: int = 0
    # Token counts of the requests without a reply.
    prompt_tokens: int = 0
    reply_tokens: int = 0
    seen: set[str] = field(default_factory=set, repr=False)

    def scale(self, growth: float) -> "RequestCount":
        """Return the counts multiplied by a number."""
        names = ("n_answered", "n_to_ask", "prompt_tokens", "reply_tokens")
        return replace(self, **{name: round(getattr(self, name) * growth) for name in names})


class CountingModels:
    """The counting models of one estimate, with the interface of `Models`."""

    def __init__(
        self,
        settings: Mapping[str, ModelSettings],
        past: PastReplies,
        dimension: int | None = None,
        counted: Sequence[RequestCount] = (),
    ) -> None:
        self._dimension = dimension
        self.settings, self.past = settings, past
        self.ledger, self.only_known, self.announce = past, True, print
        self.counts: list[RequestCount] = []
        # Keys of the requests that were counted already, by step.
        self._seen = {count.step: count.seen for count in counted}

    def open_chat_model(self, name: str, step: str) -> "CountingChatModel":
        settings = find_model(self.settings, name, step)
        return CountingChatModel(settings, self.past, self._add_count(step, name, True))

    def open_embedding_model(self, name: str, step: str) -> "CountingEmbeddingModel":
        settings, count = find_model(self.settings, name, step), self._add_count(step, name, False)
        return CountingEmbeddingModel(settings, self.past, count, self._dimension)

    def _add_count(self, step: str, model: str, is_chat: bool) -> RequestCount:
        count = RequestCount(step, model, is_chat, seen=set(self._seen.get(step, ())))
        self.counts.append(count)
        return count


class CountingChatModel(CachedModel):
    """A chat model that counts requests, and returns a cached reply or a placeholder."""

    def __init__(self, settings: ModelSettings, past: PastReplies, count: RequestCount) -> None:
        super().__init__(count.model, settings, count.step, past)
        self.count = count
        known = self.get_meta(Capabilities.cache_key(settings))
        self._response_format = Capabilities.from_json(settings, known).response_format

    def set_meta(self, name: str, value: str) -> None:
        """Store nothing, because an estimate does not change the ledger."""

    def mark_used(self, keys: Iterable[str]) -> None:
        """Count the requests with these keys as answered, because their rows are reused."""
        new = set(keys) - self.count.seen
        self.count.seen |= new
        self.count.n_answered += len(new)

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Yield the outcome of each request, in order."""
        for request in requests:
            chain, n_missing, known = RequestChain(request, self.settings), 0, Outcome(request.unit)
            try:
                while not chain.is_answered:
                    n_missing += self._advance_chain(chain, n_missing)
                    known = known if n_missing else chain.outcome
                outcome = chain.outcome
                if request.format.name in TOKENS_PER_PASSAGE_TOKEN:
                    # No names and no claims are made up.
                    outcome = replace(outcome, values=known.values)
            except (QuarantinedError, ReplyError) as error:
                outcome = chain.failed_outcome(error)
            yield outcome

    def _advance_chain(self, chain: RequestChain, n_missing: int) -> int:
        """Count the next request of a chain, and add its cached reply or a placeholder.

        `n_missing` are the tokens of the missing replies that the request contains. Return the
        tokens of its own reply; 0 if the reply is in the ledger.
        """
        while (
            self.ledger.find_entry(chain.key) is None
            and self._is_too_long(chain.request, prompt_tokens(chain.request, self.settings))
            and chain.shorten()
        ):
            pass
        is_new = chain.key not in self.count.seen
        self.count.seen.add(chain.key)
        try:
            is_stored = chain.add_cached_reply(self.ledger.find_entry)
        except QuarantinedError:
            self.count.n_answered += is_new
            raise
        if is_stored:
            self.count.n_answered += is_new
            return 0
        request = chain.request
        self.tokens.max_reply_tokens(request, prompt_tokens(request, self.settings))
        n_reply = self._count_reply(request)
        if is_new:
            self.count.n_to_ask += 1
            self.count.prompt_tokens += self._count_prompt(request) + n_missing
            self.count.reply_tokens += n_reply
        chain.add_reply(request.format.read(_make_placeholder(request.format.schema)))
        return max(1, n_reply)

    def _count_prompt(self, request: Request) -> int:
        n_prompt = count_picture_tokens(request.messages) + sum(
            _count_tokens(message["content"]) + DELIMITER_TOKENS_PER_MESSAGE
            for message in request.messages
        )
        if self._response_format in ("json_schema", "tool"):
            n_prompt += _count_tokens(json.dumps(request.format.schema, ensure_ascii=False))
        if self._response_format in ("json_object", "text"):
            n_prompt += _count_tokens(request.format.instructions)
        return n_prompt

    def _count_reply(self, request: Request) -> int:
        longest = request.max_output_tokens or self.settings.max_output_tokens
        n_reply = TOKENS_PER_REPLY.get(request.format.name, DEFAULT_TOKENS_PER_REPLY)
        if share := TOKENS_PER_PASSAGE_TOKEN.get(request.format.name):
            # A gleaning request has no passage, and counts as if nothing were found.
            passage = "".join(find_quoted_texts(request.messages[-1]["content"]))
            n_reply = round(share * _count_tokens(passage))
        return min(longest, n_reply)


class CountingEmbeddingModel:
    """An embedding model that counts each text as one request.

    `dimension` is the dimension of imported vectors. Imported vectors are not in the ledger.
    """

    def __init__(
        self, settings: ModelSettings, past: PastReplies, count: RequestCount, dimension: int | None
    ) -> None:
        self.settings, self.past, self.count = settings, past, count
        self.dimension = dimension or settings.dimensions or DUMMY_DIMENSION
        self.identity = settings.vector_identity()

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Count each text as one request, and return the same dummy vector for each text."""
        import numpy as np

        for text in texts:
            key = text_key(text, self.settings)
            if key in self.count.seen:
                continue
            self.count.seen.add(key)
            entry = self.past.find_entry(key)
            if entry is not None and entry.state in (DONE, QUARANTINED):
                self.count.n_answered += 1
            else:
                self.count.n_to_ask += 1
                self.count.prompt_tokens += _count_tokens(text)
        if advance:
            advance(len(texts))
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        vectors[:, 0] = 1
        return vectors


# Cache the counts, because many requests contain the same prompt and the same schema.
@lru_cache(maxsize=64)
def _count_tokens(text: str) -> int:
    return count_tokens(text, load_encoding(ENCODING))


def _make_placeholder(schema: Any) -> Any:
    """Return a value for a JSON Schema: lists of one item, and `PLACEHOLDER` as each text."""
    if not isinstance(schema, Mapping):
        return PLACEHOLDER
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        parts = schema.get("properties", {})
        return {name: _make_placeholder(part) for name, part in parts.items()}
    if kind == "array":
        return [_make_placeholder(schema.get("items"))]
    values = {"integer": 1, "number": 1, "boolean": False, "null": None}
    return values.get(str(kind), PLACEHOLDER)


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
    """The estimated requests of a run."""

    lines: tuple[StepCosts, ...]  # empty if no step asks a model
    n_documents: int
    n_sampled: int
    has_past: bool
    n_pictures: int = 0  # pages that are pictures and that the run would read
    picture_seconds: float = 0.0  # that it would read them for, about

    def describe_pictures(self) -> str:
        return describe_pictures(self.n_pictures, self.picture_seconds)


def estimate(
    workflow: Workflow,
    settings: Settings,
    root: Path,
    max_documents: int = sys.maxsize,
    watcher: Watcher | None = None,
    batch: bool = False,
    only: Collection[str] | None = None,
) -> Estimate:
    """Estimate the requests of a run and their price.

    No request is sent, and the output folder is not changed. At most `max_documents` evenly spaced
    documents are read. With `batch`, the price of the batch API is used for chat requests. `only`
    has the names of the steps in the result; None means all steps.
    """
    asking = find_asking_steps(workflow, settings)
    steps = {
        one.name: one
        for one in workflow.steps
        if one.name in asking and (only is None or one.name in only)
    }
    with (
        closing(PastReplies(locate_output(root, settings))) as past,
        TemporaryDirectory(prefix="graphrag-estimate-", ignore_cleanup_errors=True) as folder,
    ):
        reader = _find_pictures(workflow, settings, root, past)
        pictures = (reader.n_missing, reader.seconds)
        if not steps:
            return Estimate((), 0, 0, not past.is_empty, *pictures)
        runs = _SampleRuns(workflow, settings, root, past, Path(folder))
        chosen, sample = _select_needed_steps(workflow, steps), Sample(max_documents)
        runs.load_documents(watcher)
        counts, n_text_units = runs.run(chosen, sample, watcher)
        scales = {
            count.step: _find_growth(steps[count.step], count, sample.growth, n_text_units)
            for count in counts
            if count.step in steps
        }
        guessed: dict[str, RequestCount] = {}
        extraction = next((c for c in counts if c.step == EXTRACTION_STEP and c.n_to_ask), None)
        if extraction is not None:
            missing = extraction.n_to_ask / (extraction.n_to_ask + extraction.n_answered)
            by_rules = Sample(min(max_documents, MAX_DOCUMENTS_BY_RULES))
            further, _ = runs.run(chosen, by_rules, watcher, counts)
            growth = missing * by_rules.growth.names
            guessed = {count.step: count.scale(growth) for count in further}
        lines = [
            estimate_step_costs(
                count.scale(scales[count.step]), guessed.get(count.step), settings, past, batch
            )
            for count in counts
            if count.step in steps
        ]
        counted = (sample.n_documents, sample.n_sampled)
        return Estimate(tuple(lines), *counted, not past.is_empty, *pictures)


def _find_pictures(
    workflow: Workflow, settings: Settings, root: Path, past: PastReplies
) -> PageReader:
    """Return a reader that knows the pages to be read, if the workflow reads them."""
    reader, loader = PageReader(lambda: past, only_known=True), workflow.loader
    if loader is not None and "page_reader" in loader.services:
        files = find_files(settings.load_documents, root, may_be_empty=True)
        reader.read(files, settings.load_documents, Silent())
    return reader


def _select_needed_steps(workflow: Workflow, names: Collection[str]) -> list[Step]:
    """Return the named steps and the steps whose tables they depend on, in order."""
    needed, chosen = set[str](), list[Step]()
    for one in reversed(workflow.steps):
        if one.name in names or needed & {table.name for table in one.writes}:
            chosen.append(one)
            needed |= {read.table for read in one.reads}
    return chosen[::-1]


def _find_growth(
    step: Step, count: RequestCount, growth: "GrowthRatios", n_text_units: int
) -> float:
    """Return the growth of the requests of a step, by the tables that it reads."""
    tables = {read.table for read in step.reads}
    if "text_units" in tables:
        # The step embeds text units, and beside them entities and reports.
        share = min(1.0, n_text_units / max(1, count.n_to_ask + count.n_answered))
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


class _SampleRuns:
    """Runs of steps on samples of the documents, each in a folder of its own in `folder`."""

    def __init__(
        self, workflow: Workflow, settings: Settings, root: Path, past: PastReplies, folder: Path
    ) -> None:
        self.workflow, self.settings, self.root = workflow, settings, root
        self.past, self.folder, self.n_runs = past, folder, 0
        store = TableStore(locate_output(root, settings))
        self.last = Previous(store, store.read_pointer())
        # The store and the version with the loaded documents.
        self._loaded: tuple[TableStore, Version] | None = None

    def load_documents(self, watcher: Watcher | None) -> None:
        """Run the step that loads all documents, if the workflow has one."""
        if loader := self.workflow.loader:
            models = CountingModels(self.settings.models, self.past)
            self._loaded = self._run([loader], models, watcher, hidden="graphrag_index.steps")

    def run(
        self,
        steps: Sequence[Step],
        sample: "Sample",
        watcher: Watcher | None,
        counted: Sequence[RequestCount] = (),
    ) -> tuple[list[RequestCount], int]:
        """Run steps on a sample of the loaded documents.

        Return the counts of requests and the number of text units. With the requests `counted` so
        far, only further ones are counted. Then the rules of `extract_graph_nlp` replace the model
        of `extract_graph`.
        """
        if counted:
            rules = _extract_by_rules(self.root)
            steps = [rules if one.name == EXTRACTION_STEP else one for one in steps]
        loader = self.workflow.loader
        if loader is not None and self._loaded is not None:
            store, loaded = self._loaded

            def load_sample() -> Iterator[Mapping[str, pl.DataFrame]]:
                for name, table in loaded.tables.items():
                    rows = store.scan(name, table)
                    if name == loader.input_table:
                        for batch in sample.sample_documents(rows):
                            yield {name: batch}
                    elif name == "skipped_files":
                        # A picture without text may become a document.
                        yield {name: rows.collect()[:: sample.step]}
                    else:
                        yield {name: rows.collect()}

            source = step(writes=loader.writes)(load_sample)
            steps = [source if one is loader else one for one in steps]
        known = self.last.tables.get("text_unit_text")
        vectors = known.vectors if known else None
        dimension = vectors.dimension if vectors and has_imported(self.root) else None
        models = CountingModels(self.settings.models, self.past, dimension, counted)
        version = self._run(steps, models, watcher)[1]
        units = version.tables.get("text_units")
        return models.counts, units.rows if units else 0

    def _run(
        self,
        steps: Sequence[Step],
        models: Any,
        watcher: Watcher | None,
        hidden: str = "graphrag_index",
    ) -> tuple[TableStore, Version]:
        """Run steps in a folder of their own; messages of the logger `hidden` are not shown."""
        self.n_runs += 1
        folder = self.folder / str(self.n_runs)
        settings = self.settings.model_copy(update={"output": str(folder)})
        services = {
            **make_services(settings, models, self.root),
            "previous": Service(open=lambda step, section: self.last),
        }
        # The messages are about missing replies, or the run itself logs them again.
        logger = logging.getLogger(hidden)
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            workflow = Workflow(self.workflow.name, tuple(steps))
            setup = RunSetup(watcher=watcher or Watcher(), runner=LocalRunner(1))
            version = run_workflow(workflow, settings, self.root, services, setup).version
        finally:
            logger.setLevel(level)
        return TableStore(folder), version


def _extract_by_rules(root: Path) -> Step:
    """Return the step that extracts names by rules, with the descriptions of a model replaced.

    An entity gets one placeholder for each text unit that mentions it.
    """
    rules = load_step("extract_graph_nlp", root, "estimate")

    def extract_names(*tables: Any, **services: Any) -> Iterator[Mapping[str, pl.DataFrame]]:
        mentions: list[pl.DataFrame] = []
        frames: Any = rules(*tables, **services)
        for found in frames:
            if "extracted_mentions" in found:
                mentions.append(found["extracted_mentions"].select("entity", "text_unit"))
            if "extracted_entities" in found:
                units = pl.concat(mentions).unique().group_by("entity").agg("text_unit")
                rows = found["extracted_entities"].join(
                    units.select(pl.col("entity").cast(pl.Int64), units="text_unit"),
                    left_on="human_readable_id",
                    right_on="entity",
                    how="left",
                    maintain_order="left",
                )
                of_units = pl.col("units").fill_null([])
                rows = rows.with_columns(
                    description_text_units=of_units,
                    descriptions=pl.lit(PLACEHOLDER).repeat_by(of_units.list.len()),
                )
                columns = TABLES["extracted_entities"].cast_columns
                found = {"extracted_entities": rows.select(columns)}
            yield found

    return replace(rules, name=EXTRACTION_STEP, function=extract_names)


@dataclass(frozen=True)
class GrowthRatios:
    """Ratios of counts in all documents to counts in the sample."""

    text_units: float = 1.0
    names: float = 1.0


@dataclass
class Sample:
    """A sample of the documents; `sample_documents` sets its counts and its growth."""

    max_documents: int
    n_documents: int = 0
    n_sampled: int = 0
    growth: GrowthRatios = field(default_factory=GrowthRatios)

    @property
    def step(self) -> int:
        """Of so many documents, about one is in the sample."""
        return max(1, round(self.n_documents / max(1, self.n_sampled)))

    def sample_documents(self, documents: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Keep evenly spaced documents, and measure the growth from the sample to all documents.

        This method is run as a step.
        """
        self.n_documents = documents.select(pl.len()).collect().item()
        self.n_sampled = min(self.max_documents, self.n_documents)
        chosen = {number * self.n_documents // self.n_sampled for number in range(self.n_sampled)}
        # Numbers of characters, and hashes of distinct names.
        n_characters, n_sampled_characters = 0, 0
        names, sampled_names = set[int](), set[int]()
        for offset in range(0, self.n_documents, BATCH_DOCUMENTS):
            batch = documents.slice(offset, BATCH_DOCUMENTS).collect()
            mine = batch[[row for row in range(batch.height) if offset + row in chosen]]
            if self.n_sampled < self.n_documents:
                n_characters += int(batch["text"].str.len_chars().sum())
                n_sampled_characters += int(mine["text"].str.len_chars().sum())
                names |= _hash_names(batch["text"])
                sampled_names |= _hash_names(mine["text"])
            yield mine
        if n_sampled_characters:
            by_length = n_characters / n_sampled_characters
            # A script without capital letters has too few names.
            is_enough = len(sampled_names) >= MIN_COUNT_IN_SAMPLE
            by_names = len(names) / len(sampled_names) if is_enough else by_length
            self.growth = GrowthRatios(by_length, by_names)


def _hash_names(texts: pl.Series) -> set[int]:
    return set(texts.str.extract_all(_NAME).explode().drop_nulls().unique().hash())

"""Samples of documents, and runs of a workflow on a sample in a temporary folder."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from graphrag_index.errors import GraphRAGError
from graphrag_index.llm.local.local_models import EmbeddingModel
from graphrag_index.microsoft.import_folder import has_imported
from graphrag_index.pipeline.counting_models import (
    DUMMY_DIMENSION,
    NAME,
    CountingModels,
    PastReplies,
    RequestCount,
)
from graphrag_index.pipeline.local_runner import LocalRunner
from graphrag_index.pipeline.run import RunSetup, Watcher, run_workflow
from graphrag_index.pipeline.workflow import Service, Workflow, make_services
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.settings.step_sections import GenerateTextEmbeddings
from graphrag_index.step import SerialShards, Step, step
from graphrag_index.storage.table_store import Previous, TableStore
from graphrag_index.storage.versions import StepRecord, Version
from graphrag_index.storage.working_copy import locate_output

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from graphrag_index.step import ShardFrames

T = TypeVar("T")
# The step that has loaded the documents, and the store of its tables.
LoadedDocuments = tuple[TableStore, StepRecord]

EMBEDDING_STEP = "generate_text_embeddings"
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


def average_growth(first: float, second: float, share: float) -> float:
    """Average two ratios; `share` is the weight of the first."""
    share = min(1.0, share)
    return first * share + second * (1 - share)


@dataclass(frozen=True)
class SampleResult:
    """The tables of a run on a sample, and what its services have counted."""

    store: TableStore
    version: Version
    counts: list[RequestCount]
    # The texts of each call of a local embedding model by `EMBEDDING_STEP`.
    embedded: list[Sequence[str]]
    shards: Mapping[str, "TimedShards"]  # by name of the step
    records: Mapping[str, StepRecord]  # by name of the step


class SampleRuns:
    """Runs of a workflow on samples. Each run has a folder of its own in `folder`."""

    def __init__(
        self,
        workflow: Workflow,
        settings: Settings,
        root: Path,
        past: PastReplies,
        folder: Path,
    ) -> None:
        self.workflow, self.settings, self.root = workflow, settings, root
        self.past, self.folder, self.n_runs = past, folder, 0
        store = TableStore(locate_output(root, settings))
        self.last = Previous(store, store.read_pointer())
        self.model = self.open_local_model(settings.generate_text_embeddings.model)

    def open_local_model(self, name: str) -> EmbeddingModel | None:
        """Open a local embedding model; return None if it is remote or not on this machine."""
        section = GenerateTextEmbeddings(model=name)
        settings = self.settings.model_copy(update={"generate_text_embeddings": section})
        service: Any = make_services(settings, None, self.root)["embedding_model"]
        try:
            return None if name in settings.models else service.open(None, section)
        except GraphRAGError:
            return None

    def load_documents(self, loader: Step, watcher: Watcher | None) -> LoadedDocuments:
        """Run the step that loads all documents."""
        result = self._run((loader,), watcher, hidden="graphrag_index.steps")
        return result.store, result.records[loader.name]

    def run(
        self, sample: "Sample", loaded: LoadedDocuments | None, watcher: Watcher | None = None
    ) -> SampleResult:
        """Run all steps on a sample of the loaded documents; without documents, as they are."""
        loader = self.workflow.loader
        if loader is None or loaded is None:
            return self._run(self.workflow.steps, watcher)
        store, record = loaded

        def load_sample() -> Iterator[Mapping[str, pl.DataFrame]]:
            for name, table in record.tables.items():
                rows = store.scan(name, table)
                is_sampled = name == loader.input_table
                for batch in sample.sample_documents(rows) if is_sampled else [rows.collect()]:
                    yield {name: batch}

        source = step(writes=loader.writes)(load_sample)
        steps = [source if one is loader else one for one in self.workflow.steps]
        return self._run(steps, watcher)

    def _run(
        self, steps: Sequence[Step], watcher: Watcher | None, hidden: str = "graphrag_index"
    ) -> SampleResult:
        """Run steps in a folder of their own; messages of the logger `hidden` are not shown."""
        self.n_runs += 1
        folder = self.folder / str(self.n_runs)
        settings = self.settings.model_copy(update={"output": str(folder)})
        known = self.last.tables.get("text_unit_text")
        vectors = known.vectors if known else None
        dimension = vectors.dimension if vectors and has_imported(self.root) else None
        models: Any = CountingModels(settings.models, self.past, dimension)
        shards: dict[str, TimedShards] = defaultdict(TimedShards)
        embedded: list[Sequence[str]] = []
        services = {
            **make_services(settings, models, self.root),
            "previous": Service(open=lambda step, section: self.last),
            "shards": Service(lambda step, section: shards[step.name]),
        }
        name, original = settings.generate_text_embeddings.model, services["embedding_model"]

        def open_model(step: Step, section: Any) -> Any:
            if step.name == EMBEDDING_STEP and name not in settings.models:
                return CollectingModel(name, self.model, embedded)
            return original.open(step, section)

        services["embedding_model"] = Service(open_model, original.identity)
        # The messages are about simulated replies, or the run itself logs them again.
        logger = logging.getLogger(hidden)
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            workflow = Workflow(self.workflow.name, tuple(steps))
            setup = RunSetup(watcher=watcher or Watcher(), runner=LocalRunner(1))
            result = run_workflow(workflow, settings, self.root, services, setup)
        finally:
            logger.setLevel(level)
        records = {record.name: record for record in result.version.steps}
        store = TableStore(folder)
        return SampleResult(store, result.version, models.counts, embedded, shards, records)


class CollectingModel:
    """An embedding model that collects the texts of each call, and returns dummy vectors.

    It has the dimension and the identity of `model`, so that a step reuses vectors of that model.
    """

    def __init__(self, name: str, model: EmbeddingModel | None, calls: list[Sequence[str]]) -> None:
        self.name, self.calls = name, calls
        self.dimension = model.dimension if model else DUMMY_DIMENSION
        self.identity = model.identity if model else (name, None)

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        import numpy as np

        self.calls.append(texts)
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        vectors[:, 0] = 1
        return vectors


class TimedShards(SerialShards):
    """The service `Shards` in this process, which counts the CPU seconds of shards."""

    def __init__(self) -> None:
        self.cpu_seconds = 0.0

    def map(
        self,
        function: "Callable[..., ShardFrames]",
        shards: "Iterable[tuple[T, ShardFrames]]",
        *shared: Any,
        keep_parts: bool = False,
    ) -> "Iterator[tuple[T, ShardFrames]]":
        for context, shard in shards:
            before = time.process_time()
            part = function(shard, *shared)
            self.cpu_seconds += time.process_time() - before
            yield context, part


@dataclass
class Sample:
    """A sample of the documents; `sample_documents` sets its counts and its growth."""

    max_documents: int
    text_unit_tokens: int
    max_characters: int | None = None  # limit of each document; None: documents are not cut
    # Without pairs, only names are counted, which is several times as fast.
    counts_pairs: bool = True
    # If the growth is not measured, the first documents are the sample.
    is_measured: bool = True
    n_documents: int = 0
    n_sampled: int = 0
    growth: GrowthRatios = field(default_factory=GrowthRatios)

    def sample_documents(self, loaded_documents: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Keep evenly spaced documents, and measure the growth from the sample to all documents.

        This method is run as a step.
        """
        if not self.is_measured:
            loaded_documents = loaded_documents.head(self.max_documents)
        self.n_documents = loaded_documents.select(pl.len()).collect().item()
        self.n_sampled = min(self.max_documents, self.n_documents)
        chosen = {number * self.n_documents // self.n_sampled for number in range(self.n_sampled)}
        size = self.text_unit_tokens * CHARACTERS_PER_TOKEN
        whole, sampled = _NameCounts(size), _NameCounts(size)
        for offset in range(0, self.n_documents, BATCH_DOCUMENTS):
            batch = loaded_documents.slice(offset, BATCH_DOCUMENTS).collect()
            mine = batch[[row for row in range(batch.height) if offset + row in chosen]]
            if self.max_characters is not None:
                mine = mine.with_columns(pl.col("text").str.head(self.max_characters))
            is_cut = self.max_characters is not None
            if self.is_measured and (is_cut or self.n_sampled < self.n_documents):
                for names, rows in ((whole, batch), (sampled, mine)):
                    if not self.counts_pairs:
                        names.add_names(rows["text"])
                        continue
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

    def add_names(self, texts: pl.Series) -> None:
        """Add the characters and the distinct names of documents, and no other count."""
        names = texts.str.extract_all(NAME.pattern).explode().drop_nulls().unique()
        self.n_characters += int(texts.str.len_chars().sum())
        self.passages.update(dict.fromkeys(names.hash(), (0, 1)))

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

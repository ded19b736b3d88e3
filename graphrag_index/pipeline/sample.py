"""Samples of documents, and runs of a workflow on a sample in a temporary folder."""

import logging
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from graphrag_index.errors import GraphRAGError
from graphrag_index.llm.local.local_models import EmbeddingModel
from graphrag_index.microsoft.import_folder import has_imported
from graphrag_index.pipeline.counting_models import (
    DUMMY_DIMENSION,
    PLACEHOLDER,
    CountingModels,
    PastReplies,
    RequestCount,
)
from graphrag_index.pipeline.run import RunSetup, Watcher, run_workflow
from graphrag_index.pipeline.shards import LocalRunner
from graphrag_index.pipeline.workflow import Service, Workflow, load_step, make_services
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.settings.step_sections import GenerateTextEmbeddings
from graphrag_index.schema.tables import TABLES
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

EXTRACTION_STEP, EMBEDDING_STEP = "extract_graph", "generate_text_embeddings"
# Number of documents per batch. The number limits memory and does not change the results.
BATCH_DOCUMENTS = 256
_UPPER = "".join(re.escape(chr(code)) for code in range(0x10000) if chr(code).isupper())
_WORD = rf"[{_UPPER}](?:[\w’'&.-]*\w)?"
_NAME = rf"\b{_WORD}(?: (?:(?:of|de|del|la|von|van|der|bin|al) )?{_WORD})*"
# Approximate number of characters per token.
CHARACTERS_PER_TOKEN = 4
# If the sample has fewer names than this number, no ratio is computed from them.
MIN_COUNT_IN_SAMPLE = 20


@dataclass(frozen=True)
class GrowthRatios:
    """Ratios of counts in all documents to counts in the sample."""

    text_units: float = 1.0
    names: float = 1.0


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
        self,
        sample: "Sample",
        loaded: LoadedDocuments | None,
        watcher: Watcher | None = None,
        counted: Sequence[RequestCount] = (),
    ) -> SampleResult:
        """Run all steps on a sample of the loaded documents; without documents, as they are.

        With the requests `counted` so far, only further ones are counted. Then the rules of
        `extract_graph_nlp` replace the model of `extract_graph`.
        """
        loader = self.workflow.loader
        steps = [
            _extract_by_rules(self.root) if counted and one.name == EXTRACTION_STEP else one
            for one in self.workflow.steps
        ]
        if loader is None or loaded is None:
            return self._run(steps, watcher, counted=counted)
        store, record = loaded

        def load_sample() -> Iterator[Mapping[str, pl.DataFrame]]:
            for name, table in record.tables.items():
                rows = store.scan(name, table)
                is_sampled = name == loader.input_table
                for batch in sample.sample_documents(rows) if is_sampled else [rows.collect()]:
                    yield {name: batch}

        source = step(writes=loader.writes)(load_sample)
        steps = [source if one is loader else one for one in steps]
        return self._run(steps, watcher, counted=counted)

    def _run(
        self,
        steps: Sequence[Step],
        watcher: Watcher | None,
        hidden: str = "graphrag_index",
        counted: Sequence[RequestCount] = (),
    ) -> SampleResult:
        """Run steps in a folder of their own; messages of the logger `hidden` are not shown."""
        self.n_runs += 1
        folder = self.folder / str(self.n_runs)
        settings = self.settings.model_copy(update={"output": str(folder)})
        known = self.last.tables.get("text_unit_text")
        vectors = known.vectors if known else None
        dimension = vectors.dimension if vectors and has_imported(self.root) else None
        models: Any = CountingModels(settings.models, self.past, dimension, counted)
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
        # The messages are about missing replies, or the run itself logs them again.
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
    max_characters: int | None = None  # limit of each document; None: documents are not cut
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
        whole, sampled = _TextCounts(), _TextCounts()
        for offset in range(0, self.n_documents, BATCH_DOCUMENTS):
            batch = loaded_documents.slice(offset, BATCH_DOCUMENTS).collect()
            mine = batch[[row for row in range(batch.height) if offset + row in chosen]]
            if self.max_characters is not None:
                mine = mine.with_columns(pl.col("text").str.head(self.max_characters))
            is_cut = self.max_characters is not None
            if self.is_measured and (is_cut or self.n_sampled < self.n_documents):
                whole.add(batch["text"])
                sampled.add(mine["text"])
            yield mine
        self.growth = whole.compute_growth(sampled)


class _TextCounts:
    """Counts of the characters and of the distinct names in documents."""

    def __init__(self) -> None:
        self.n_characters, self.names = 0, set[int]()

    def add(self, texts: pl.Series) -> None:
        names = texts.str.extract_all(_NAME).explode().drop_nulls().unique()
        self.n_characters += int(texts.str.len_chars().sum())
        self.names.update(names.hash())

    def compute_growth(self, part: "_TextCounts") -> GrowthRatios:
        """Return the ratios of these counts to the counts of a sample of the same documents.

        The ratio of characters replaces that of names if the sample has too few names, for example
        without capital letters in the script.
        """
        if not part.n_characters:
            return GrowthRatios()
        text_units, n_names = self.n_characters / part.n_characters, len(part.names)
        is_enough = n_names >= MIN_COUNT_IN_SAMPLE
        return GrowthRatios(text_units, len(self.names) / n_names if is_enough else text_units)

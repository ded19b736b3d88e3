"""The contract of a step: a function from tables to tables.

    @step(writes=["communities"])
    def create_communities(
        entities: pl.LazyFrame, relationships: pl.LazyFrame, *, settings: CreateCommunities
    ) -> pl.DataFrame: ...

Each positional parameter has the name of an input table. A table annotated `pl.LazyFrame` is
scanned, a table annotated `pl.DataFrame` is loaded, and a table with the default None may be
missing. Each keyword-only parameter has the name of a service: `settings` (the step's section
of settings.yaml), `progress`, `shards`, `root`, `previous`, `embedding_model`, ...

A step returns a frame (if it writes one table) or a mapping from table names to frames. It may
also yield frames or mappings batch by batch, to write a table that is larger than memory; vector
tables are written one after another. For a table that the step both reads and writes, None
instead of a frame keeps it unchanged.
"""

import inspect
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, get_type_hints

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import BaseModel

from graphrag_index import __version__
from graphrag_index.errors import WorkflowError
from graphrag_index.schema.settings.section import Section
from graphrag_index.schema.tables import TABLES, Table, content_id
from graphrag_index.storage.partitions import Partitions
from graphrag_nlp.corpus import Progress, ShardFrames
from graphrag_nlp.corpus import Shards as CorpusShards

__all__ = [
    "Frames",
    "Partitions",
    "Progress",
    "Project",
    "Read",
    "Section",
    "SerialShards",
    "ShardFrames",
    "Shards",
    "Silent",
    "Step",
    "Table",
    "step",
]

# Services that a step may need only with some settings; the parameter `asks` selects them.
MODELS = ("chat_model", "embedding_model")

Frames = pl.DataFrame | Mapping[str, pl.DataFrame | None]
T = TypeVar("T")


class Silent:
    """A `Progress` that displays nothing."""

    def start(self, total: int | None, unit: str) -> None: ...

    def advance(self, n: int = 1) -> None: ...


class Shards(CorpusShards, Protocol):
    """The service `shards`: a step has its rows processed shard by shard, on all cores.

    With `keep_parts`, make shards with `read_stable_batches`, and leave numbers out of their rows
    that change if a document is inserted elsewhere.
    """

    def open_partitions(self, n: int, schema: Mapping[str, Any]) -> Partitions:
        """Return `n` empty partitions for rows that are more than memory can hold.

        Use them in a `with` block. Their file is in the folder of the step's parts.
        """

    def allocate(self, n: int, dtype: Any) -> npt.NDArray[Any]:
        """Return an array of `n` numbers; a large array is a memory map of a file."""


class SerialShards:
    """The service `Shards` in this process, without files."""

    def map(
        self,
        function: Callable[..., ShardFrames],
        shards: Iterable[tuple[T, ShardFrames]],
        *shared: Any,
        keep_parts: bool = False,
    ) -> Iterator[tuple[T, ShardFrames]]:
        for context, shard in shards:
            yield context, function(shard, *shared)

    def open_partitions(self, n: int, schema: Mapping[str, Any]) -> Partitions:
        return Partitions(n, schema)

    def allocate(self, n: int, dtype: Any) -> npt.NDArray[Any]:
        return np.empty(n, dtype)


@dataclass(frozen=True)
class Project:
    """A project whose workflow is about to run."""

    root: Path  # folder of settings.yaml
    output: Path  # folder of the index
    steps: tuple[str, ...]  # names of the steps, in order


@dataclass(frozen=True)
class Read:
    """An input table of a step."""

    table: str
    optional: bool  # the table may be missing
    lazy: bool  # the table is scanned, not loaded


@dataclass(frozen=True)
class Step:
    """A function from tables to tables, and its requirements. `step` describes the fields."""

    name: str
    function: Callable[..., Frames | Iterator[Frames]]
    reads: tuple[Read, ...]
    writes: tuple[Table, ...]
    services: tuple[str, ...]
    settings_model: type[BaseModel] | None
    code_version: int
    fingerprint: Callable[[Any, Path], str] | None
    asks: Callable[[Any], Collection[str]] | None
    check: Callable[[Any, Project], None] | None
    input_table: str | None
    request_keys: Callable[..., Iterator[str]] | None

    def needs(self, section: Any) -> tuple[str, ...]:
        """Return the services that the step needs with these settings; the others are None."""
        if self.asks is None:
            return self.services
        needed = self.asks(section)
        return tuple(name for name in self.services if name not in MODELS or name in needed)

    @property
    def is_shipped(self) -> bool:
        """Whether the step is part of this program, not a step of a user."""
        return self.function.__module__.startswith("graphrag_index.")

    def prompt_hash(self, settings: Section, model: Mapping[str, Any], **parts: Any) -> str:
        """Hash the inputs that all requests of the step share: code, settings, model, `parts`."""
        shared = {
            "model": model,
            "settings": settings.model_dump(mode="json"),
            "code": [__version__, self.code_version],
        }
        return content_id(json.dumps({**shared, **parts}, sort_keys=True))

    def __call__(self, *tables: Any, **services: Any) -> Frames | Iterator[Frames]:
        return self.function(*tables, **services)


def step(
    writes: Sequence[str | Table],
    *,
    code_version: int = 1,
    fingerprint: Callable[[Any, Path], str] | None = None,
    asks: Callable[[Any], Collection[str]] | None = None,
    check: Callable[[Any, Project], None] | None = None,
    input_table: str | None = None,
    request_keys: Callable[..., Iterator[str]] | None = None,
) -> Callable[[Callable[..., Any]], Step]:
    """Make a step of a function that writes these tables.

    Parameters
    ----------
    writes
        Names of tables of the program, or a `Table` for a table that you define.
    code_version
        Version of the function's code. Increase it when the function computes another result,
        so that results of the old code are not reused.
    fingerprint
        For a step that reads other data than tables, such as the input folder: a function from
        the settings and the root folder to a hash of these data.
    asks
        For a step that needs a model only with some settings: a function from the settings to
        the names of the `MODELS` that the step needs.
    check
        A function that is called with the settings and the project before any step runs. It
        raises a `GraphRAGError` if the step cannot run, for example without an input file.
    input_table
        Name of the table with the documents of the input folder. Only for the step that reads
        the documents, and that needs no other service than `settings`, `root`, `progress`,
        `page_reader` and `describes_figures`.
        A dry run calls this step to find out which documents have changed.
    request_keys
        For a step that reuses replies without looking them up in the ledger: a function from
        the settings, the models of the settings and the tables of a version (`Previous`) to the
        ledger keys of the replies in these tables.
    """

    def make_step(function: Callable[..., Any]) -> Step:
        if isinstance(writes, str | Table):
            one = repr(writes) if isinstance(writes, str) else "..."
            raise WorkflowError(
                f"Step {function.__name__}: writes must be a list of tables, "
                f"`@step(writes=[{one}])`, also if it is one."
            )
        hints = get_type_hints(function)
        section = hints.get("settings")
        is_model = isinstance(section, type) and issubclass(section, BaseModel)
        reads, services = [], []
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                hint = hints.get(name)
                lazy = pl.LazyFrame in getattr(hint, "__args__", (hint,))
                reads.append(Read(name, parameter.default is None, lazy))
            else:
                services.append(name)
        return Step(
            name=function.__name__,
            function=function,
            reads=tuple(reads),
            writes=tuple(_find_table(function.__name__, table) for table in writes),
            services=tuple(services),
            settings_model=section if is_model else None,
            code_version=code_version,
            fingerprint=fingerprint,
            asks=asks,
            check=check,
            input_table=input_table,
            request_keys=request_keys,
        )

    return make_step


def _find_table(step_name: str, table: str | Table) -> Table:
    if isinstance(table, Table):
        return table
    if table not in TABLES:
        raise WorkflowError(
            f"Step {step_name} writes the unknown table {table!r}: "
            "give a Table with its columns instead of a name."
        )
    return TABLES[table]

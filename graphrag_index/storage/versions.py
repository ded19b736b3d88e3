"""The description of a version of an index: finished steps and the tables they wrote."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Vectors:
    """The model and the form of the vectors of a table."""

    dimension: int
    # All have the length 1, but for zeros in place of missing vectors.
    normalized: bool
    # Name of the model on its server, and the shortened dimension in the request.
    model: str | None = None
    dimensions: int | None = None

    @property
    def identity(self) -> tuple[str, int | None] | None:
        """The model and its dimensions; None if they are not known."""
        return None if self.model is None else (self.model, self.dimensions)


@dataclass(frozen=True)
class StoredTable:
    """One table of one version: a Parquet or Arrow file, or a version of a LanceDB table."""

    rows: int
    digest: str
    file: str | None = None  # relative to the output folder, with /
    n_bytes: int | None = None  # size of the file, to detect truncated ones
    lance_version: int | None = None
    vectors: Vectors | None = None


def manifest_name(lance_version: int) -> str:
    """Name the file that lists what belongs to a version of a LanceDB table."""
    # They count down from 2**64 - 1 (naming scheme V2 of Lance).
    return f"{2**64 - 1 - lance_version:020}.manifest"


@dataclass(frozen=True)
class StepRecord:
    """A finished step: the hash of its inputs, the tables it wrote, and its cost."""

    name: str
    key: str
    tables: Mapping[str, StoredTable]
    made_by: str = ""  # hash of its code and settings alone
    # Two runs of a step that wrote the same are equal, whatever they took.
    seconds: float = field(default=0.0, compare=False)
    cpu_seconds: float = field(default=0.0, compare=False)
    peak_memory_bytes: int | None = field(default=None, compare=False)
    quarantined: int = 0  # requests without a valid reply, missing in the tables


@dataclass(frozen=True)
class Made:
    """The origin of a version: its date, steps, and cost of model calls."""

    date: str  # of its end, in UTC, as in 2026-01-31T18:00:00+00:00
    steps_run: tuple[str, ...] = ()
    calls: int = 0  # since the version before it was made
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0  # in dollars; None where a price is not known
    tables_of: int | None = None  # the version that was rolled back to


@dataclass(frozen=True)
class Version:
    """The content of `index.json`: the steps of a finished run and their tables."""

    number: int
    workflow: str
    program: str
    steps: tuple[StepRecord, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    made: Made | None = field(default=None, compare=False)

    @property
    def tables(self) -> dict[str, StoredTable]:
        """The tables; where several steps wrote one, the last."""
        return {name: table for step in self.steps for name, table in step.tables.items()}


def read_step_record(record: Mapping[str, Any]) -> StepRecord:
    """Deserialize a record from its dict."""
    tables = {
        name: StoredTable(**{**table, "vectors": table["vectors"] and Vectors(**table["vectors"])})
        for name, table in record["tables"].items()
    }
    return StepRecord(**{**record, "tables": tables})

"""What a version of an index is made of: finished steps and the tables that they wrote."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Vectors:
    """What the vectors of a table are, so that no others are compared with them."""

    dimension: int
    # All have the length 1, but for zeros, which stand for a vector that could not be had.
    normalized: bool
    # Name of the model as its server knows it, and the shortening that was asked for.
    model: str | None = None
    dimensions: int | None = None

    @property
    def identity(self) -> tuple[str, int | None] | None:
        """What they depend on beside the text; None if it is not known."""
        return None if self.model is None else (self.model, self.dimensions)


@dataclass(frozen=True)
class StoredTable:
    """One table of one version: a Parquet or Arrow file, or a version of a LanceDB table."""

    rows: int
    digest: str
    file: str | None = None  # relative to the output folder, with /
    n_bytes: int | None = None  # of the file: one that was cut off is not taken for whole
    lance_version: int | None = None
    vectors: Vectors | None = None  # None too where an earlier program wrote them


def manifest_name(lance_version: int) -> str:
    """Name the file that lists what belongs to a version of a LanceDB table."""
    # They count down from 2**64 - 1 (its naming scheme V2).
    return f"{2**64 - 1 - lance_version:020}.manifest"


@dataclass(frozen=True)
class StepRecord:
    """A finished step: the key of all that it depends on, what it wrote, what it cost."""

    name: str
    key: str
    tables: Mapping[str, StoredTable]
    made_by: str = ""  # key of the step alone: its code and settings; empty by earlier programs
    # A step that ran again and wrote the same is the same, however long it took.
    seconds: float = field(default=0.0, compare=False)
    cpu_seconds: float = field(default=0.0, compare=False)
    peak_memory_bytes: int | None = field(default=None, compare=False)
    quarantined: int = 0  # requests to a model that gave nothing, and so are missing in the tables


@dataclass(frozen=True)
class Made:
    """How a version came about: when, by which steps, and what the calls to models cost."""

    date: str  # of its end, in UTC, as in 2026-01-31T18:00:00+00:00
    steps_run: tuple[str, ...] = ()
    calls: int = 0  # since the version before it was made
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0  # in dollars; None where a price is not known
    tables_of: int | None = None  # the version that was rolled back to


@dataclass(frozen=True)
class Version:
    """What `index.json` says: the steps of one finished run and the tables that they wrote."""

    number: int
    workflow: str
    program: str
    steps: tuple[StepRecord, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    # No part of what it is; None if an earlier program made it.
    made: Made | None = field(default=None, compare=False)

    @property
    def tables(self) -> dict[str, StoredTable]:
        """The tables; where several steps wrote one, the last."""
        return {name: table for step in self.steps for name, table in step.tables.items()}


def read_step_record(record: Mapping[str, Any]) -> StepRecord:
    """Make a record of what `dataclasses.asdict` made of one."""
    tables = {
        name: StoredTable(**{**table, "vectors": _read_vectors(table.get("vectors"))})
        for name, table in record["tables"].items()
    }
    return StepRecord(**{**record, "tables": tables})


def _read_vectors(described: Mapping[str, Any] | None) -> Vectors | None:
    return Vectors(**described) if described else None


def read_made(made: Mapping[str, Any] | None) -> Made | None:
    """Make of what `dataclasses.asdict` made of it how a version was made, if it says."""
    return Made(**{**made, "steps_run": tuple(made["steps_run"])}) if made else None

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


@dataclass(frozen=True)
class StepRecord:
    """A finished step: the key of all that it depends on, what it wrote, what it cost."""

    name: str
    key: str
    tables: Mapping[str, StoredTable]
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_bytes: int | None = None
    quarantined: int = 0  # requests to a model that gave nothing, and so are missing in the tables


@dataclass(frozen=True)
class Version:
    """What `index.json` says: the steps of one finished run and the tables that they wrote."""

    number: int
    workflow: str
    program: str
    steps: tuple[StepRecord, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

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

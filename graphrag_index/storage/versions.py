"""Versions of an index: their steps and tables, and the pointer to the current version."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from graphrag_index.errors import TableError
from graphrag_index.storage.atomic import write_json

# The pointer in the output folder, and its copy in the folder of each version.
INDEX_FILE = "index.json"
INDEX_FORMAT = 1


@dataclass(frozen=True)
class Vectors:
    """Description of the vectors of a table: their dimension and their model."""

    dimension: int
    # Whether all vectors have the length 1, except missing vectors, which are zeros.
    normalized: bool
    # Name of the model on its server, and the dimension that the request asks for, if any.
    model: str | None = None
    dimensions: int | None = None

    @property
    def identity(self) -> tuple[str, int | None] | None:
        """(name of the model, requested dimension); None if the model is not known."""
        return None if self.model is None else (self.model, self.dimensions)


@dataclass(frozen=True)
class StoredTable:
    """A table of a version: a Parquet or Arrow file, or a version of a LanceDB table."""

    rows: int
    digest: str
    file: str | None = None  # path relative to the output folder, with /
    n_bytes: int | None = None  # size of the file in bytes, to detect a truncated file
    lance_version: int | None = None
    vectors: Vectors | None = None


def manifest_name(lance_version: int) -> str:
    """Return the name of the manifest, the file that describes a version of a LanceDB table."""
    # The names count down from 2**64 - 1 (naming scheme V2 of Lance).
    return f"{2**64 - 1 - lance_version:020}.manifest"


@dataclass(frozen=True)
class StepRecord:
    """A finished step: the hash of its inputs, the tables it wrote, and its cost."""

    name: str
    key: str
    tables: Mapping[str, StoredTable]
    made_by: str = ""  # hash of the code and the settings of the step
    # Two records with the same tables are equal, even if time and memory differ.
    seconds: float = field(default=0.0, compare=False)
    cpu_seconds: float = field(default=0.0, compare=False)
    peak_memory_bytes: int | None = field(default=None, compare=False)
    quarantined: int = 0  # requests without a valid reply, whose results the tables lack


@dataclass(frozen=True)
class VersionOrigin:
    """The origin of a version: its date, steps, and cost of model calls."""

    date: str  # end of the run in UTC, such as 2026-01-31T18:00:00+00:00
    steps_run: tuple[str, ...] = ()
    calls: int = 0  # model calls since the previous version was made
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0  # in dollars; None if a price is not known
    tables_of: int | None = None  # number of the version that a rollback restored


@dataclass(frozen=True)
class Version:
    """The content of `index.json`: the steps of a finished run and their tables."""

    number: int
    workflow: str
    program: str
    steps: tuple[StepRecord, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    made: VersionOrigin | None = field(default=None, compare=False)

    @property
    def tables(self) -> dict[str, StoredTable]:
        """All tables by name. If several steps wrote a table, the last step counts."""
        return {name: table for step in self.steps for name, table in step.tables.items()}


def read_step_record(record: Mapping[str, Any]) -> StepRecord:
    """Create a step record from its deserialized JSON."""
    tables = {
        name: StoredTable(**{**table, "vectors": table["vectors"] and Vectors(**table["vectors"])})
        for name, table in record["tables"].items()
    }
    return StepRecord(**{**record, "tables": tables})


def read_index_file(path: Path) -> Version | None:
    """Read a version from an `index.json` file; None if the file is missing."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] == INDEX_FORMAT:
            made = content["made"]
            return Version(
                number=content["version"],
                workflow=content["workflow"],
                program=content["program"],
                steps=tuple(map(read_step_record, content["steps"])),
                settings=content["settings"],
                made=made and VersionOrigin(**{**made, "steps_run": tuple(made["steps_run"])}),
            )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise TableError(
            f"{path} is damaged: restore it, or delete it and run `graphrag-index run`, "
            "which reuses undamaged files."
        ) from error
    raise TableError(
        f"{path} has format {content['format']!r}, this program reads {INDEX_FORMAT}: "
        "use the program that wrote it, or delete the output folder and run again."
    )


def move_pointer(
    output: Path, version: Version, commit: Callable[[int], None] | None = None
) -> None:
    """Make a version the current version. Only this call changes the index for readers.

    `commit` is called with its number when its files and its description are complete.
    """
    fields = asdict(version)
    content = {"format": INDEX_FORMAT, "version": fields.pop("number"), **fields}
    # Keep a copy of the pointer for rollbacks and comparisons.
    folder = output / "versions" / str(version.number)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / INDEX_FILE, content)
    if commit is not None:
        commit(version.number)
    write_json(output / INDEX_FILE, content)

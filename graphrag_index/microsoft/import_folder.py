"""The folder `imported/` beside `settings.yaml`, which keeps an imported index.

    imported/<table>.parquet    the public tables, with all columns
    imported/<name>.parquet     `id` and `vector` of each imported vector table
    imported/import.json        the source, the model of the vectors, size and digest of each file

A run depends on it as it does on documents, settings and replies.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_index.errors import InputError
from graphrag_index.schema.tables import TABLES

FOLDER, DESCRIPTION = "imported", "import.json"
FORMAT = 1
# The imported tables; the last two are optional.
# fmt: off
PUBLIC = (
    "documents", "text_units", "entities", "relationships", "mentions", "communities",
    "community_lineage", "community_reports", "covariates",
)
# fmt: on
_BATCH = 8_192  # rows


class Imported:
    """The opened folder; only its description is read at first."""

    def __init__(self, root: Path) -> None:
        self.place = root / FOLDER
        self.description = _read_description(self.place)
        for name, file in self.description["files"].items():
            path = self.place / name
            if not path.is_file() or path.stat().st_size != file["bytes"]:
                what = "cut off or changed" if path.is_file() else "missing"
                raise InputError(
                    f"{path} is {what}: import the index again (`graphrag-index import DIR "
                    "--replace`)."
                )

    @property
    def digest(self) -> str:
        """The hash of all files."""
        digests = {name: file["digest"] for name, file in self.description["files"].items()}
        return blake2b(json.dumps(digests, sort_keys=True).encode(), digest_size=16).hexdigest()

    @property
    def vectors(self) -> Mapping[str, int]:
        """The dimension of each imported vector table."""
        found: Mapping[str, int] = self.description["vectors"]
        return found

    @property
    def embedded_by(self) -> tuple[str, int | None] | None:
        """Name and requested dimensions of the model that the vectors are attributed to."""
        found = self.description.get("embedded_by")
        return tuple(found) if found else None

    def has(self, name: str) -> bool:
        return f"{name}.parquet" in self.description["files"]

    def scan(self, name: str) -> pl.LazyFrame:
        """Open a public table; one that was not imported is empty."""
        if not self.has(name):
            return TABLES[name].empty().lazy()
        return self.scan_vectors(name).select(list(TABLES[name].columns))

    def scan_vectors(self, name: str) -> pl.LazyFrame:
        """Open `id` and `vector` of a vector table."""
        return pl.scan_parquet(self.place / f"{name}.parquet", glob=False)


def has_imported(root: Path) -> bool:
    """Tell whether an index was imported into this project."""
    return (root / FOLDER / DESCRIPTION).is_file()


def fingerprint_imported(_: object, root: Path) -> str:
    """Return the hash of all that was imported.

    Raises
    ------
    InputError
        Nothing was, or a file of it is missing.
    """
    return Imported(root).digest


def row_batches(rows: pl.LazyFrame, size: int = _BATCH) -> Iterator[pl.DataFrame]:
    """Yield the rows of a table, `size` at a time."""
    n_rows = rows.select(pl.len()).collect().item()
    for start in range(0, n_rows, size):
        yield rows.slice(start, size).collect()


def _read_description(place: Path) -> dict[str, Any]:
    path = place / DESCRIPTION
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if found["format"] == FORMAT and found["files"] and found["vectors"] is not None:
            return found
    except FileNotFoundError:
        raise InputError(
            f"There is no imported index in {place}: `graphrag-index import DIR` puts it there."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is damaged: import the index again (`graphrag-index import DIR --replace`)."
        ) from error
    raise InputError(f"{path} is of another version of this program: import the index again.")

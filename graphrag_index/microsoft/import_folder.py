"""Where what was imported is kept: a folder `imported` of Parquet files beside `settings.yaml`.

    imported/<table>.parquet    the public tables, with all columns
    imported/<name>.parquet     `id` and `vector` of text_unit_text, entity_description and
                                community_full_content, as far as there are any
    imported/import.json        where they come from, the model of the vectors, and a digest of
                                each file

It is part of what the index is a function of: documents, settings, replies, and this.
"""

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_index.errors import InputError
from graphrag_index.schema.tables import TABLES

FOLDER, ABOUT = "imported", "import.json"
FORMAT = 1
# The tables of an index that are imported; the last two may be missing.
PUBLIC = (
    *("documents", "text_units", "entities", "relationships", "mentions", "communities"),
    *("community_lineage", "community_reports", "covariates"),
)
# Rows looked at or written at once: bounds memory, not results.
BATCH = 8_192


class Imported:
    """The folder, opened; nothing but its description is read."""

    def __init__(self, root: Path) -> None:
        self.place = root / FOLDER
        self.about = _read_about(self.place)
        for name, file in self.about["files"].items():
            path = self.place / name
            if not path.is_file() or path.stat().st_size != file["bytes"]:
                what = "cut off or changed" if path.is_file() else "missing"
                raise InputError(
                    f"{path} is {what}: import the index again (`graphrag-index import DIR "
                    "--replace`)."
                )

    @property
    def digest(self) -> str:
        """What stands for all that lies there."""
        return digest_of(self.about)

    @property
    def vectors(self) -> Mapping[str, int]:
        """How many numbers the vectors have, by their names; empty if there are none."""
        found: Mapping[str, int] = self.about["vectors"]
        return found

    @property
    def embedded_by(self) -> tuple[str, int | None] | None:
        """The model that the vectors are taken to be of: its name, the dimensions asked for."""
        found = self.about.get("embedded_by")
        return tuple(found) if found else None

    def has(self, name: str) -> bool:
        return f"{name}.parquet" in self.about["files"]

    def scan(self, name: str) -> pl.LazyFrame:
        """Open a public table; one that was not imported is empty."""
        if not self.has(name):
            return TABLES[name].empty().lazy()
        return self._scan(name).select(list(TABLES[name].columns))

    def scan_vectors(self, name: str) -> pl.LazyFrame:
        """Open `id` and `vector`."""
        return self._scan(name)

    def _scan(self, name: str) -> pl.LazyFrame:
        return pl.scan_parquet(self.place / f"{name}.parquet", glob=False)


def has_imported(root: Path) -> bool:
    """Tell whether an index was imported into this project."""
    return (root / FOLDER / ABOUT).is_file()


def fingerprint_imported(_: object, root: Path) -> str:
    """Return what stands for all that was imported.

    Raises
    ------
    InputError
        Nothing was, or a file of it is missing.
    """
    return Imported(root).digest


def digest_of(about: Mapping[str, Any]) -> str:
    digests = {name: file["digest"] for name, file in about["files"].items()}
    return blake2b(json.dumps(digests, sort_keys=True).encode(), digest_size=16).hexdigest()


def _read_about(place: Path) -> dict[str, Any]:
    path = place / ABOUT
    try:
        about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if about["format"] == FORMAT and about["files"] and about["vectors"] is not None:
            return about
    except FileNotFoundError:
        raise InputError(
            f"There is no imported index in {place}: `graphrag-index import DIR` puts it there."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is damaged: import the index again (`graphrag-index import DIR --replace`)."
        ) from error
    raise InputError(f"{path} is of another version of this program: import the index again.")

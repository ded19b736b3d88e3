"""The vectors of an index of Microsoft's: LanceDB tables, snapshots, or columns of tables."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_index.errors import TableError, describe_error

# Our names, which version 3 has too, with the table and the column that version 0 kept them in.
VECTOR_TABLES = {
    "text_unit_text": ("text_units", "text_embedding"),
    "entity_description": ("entities", "description_embedding"),
    "community_full_content": ("community_reports", "full_content_embedding"),
}
# Vectors read at once.
_AT_ONCE = 8_192


class LanceVectors:
    """A LanceDB table, read batch by batch."""

    def __init__(self, table: Any, place: str = "") -> None:
        self.table, self.place = table, place or str(table.name)

    @property
    def dimension(self) -> int:
        # A list of any length has none.
        return int(getattr(self.table.schema.field("vector").type, "list_size", 0))

    def batches(self) -> Iterator[pl.DataFrame]:
        columns = [name for name in ("id", "vector", "text") if name in self.table.schema.names]
        try:
            for batch in self.table.search().select(columns).to_batches(_AT_ONCE):
                yield pl.DataFrame(batch).with_columns(pl.col("id").cast(pl.String))
        except (ValueError, RuntimeError, OSError) as error:
            raise TableError(
                f"The vectors {self.place} break off ({describe_error(error)[:120]}): make "
                "them again."
            ) from error


class ParquetVectors:
    """Vectors in a column of a Parquet file."""

    def __init__(self, path: Path, column: str = "embedding") -> None:
        self.place = str(path)
        vector = pl.col(column).cast(pl.List(pl.Float32))
        rows = pl.scan_parquet(path, glob=False).select(pl.col("id").cast(pl.String), vector=vector)
        self.rows = rows.filter(pl.col("vector").list.len() > 0)

    @property
    def dimension(self) -> int:
        first = self.rows.select(pl.col("vector").list.len()).head(1).collect()
        return int(first.item()) if first.height else 0

    def batches(self, at_once: int = _AT_ONCE) -> Iterator[pl.DataFrame]:
        dtype = pl.Array(pl.Float32, self.dimension)
        n_rows = self.rows.select(pl.len()).collect().item()
        for start in range(0, n_rows, at_once):
            try:
                rows = self.rows.slice(start, at_once).collect()
                yield rows.with_columns(pl.col("vector").cast(dtype))
            except (pl.exceptions.PolarsError, OSError) as error:
                raise TableError(
                    f"The vectors in {self.place} cannot be read ({describe_error(error)[:120]}): "
                    "they are cut off or of different lengths; make them again."
                ) from error


MicrosoftVectors = LanceVectors | ParquetVectors


def open_vectors(
    place: Path, files: Mapping[str, Path]
) -> tuple[dict[str, MicrosoftVectors], dict[str, tuple[Path, str]]]:
    """Open the vectors that lie beside the tables.

    Returns
    -------
    vectors
        By our names: from `lancedb/`, else from `embeddings.<name>.parquet`, else from a column
        of the table.
    damaged
        Those that cannot be opened: where they are, and why.
    """
    found: dict[str, MicrosoftVectors] = {}
    damaged: dict[str, tuple[Path, str]] = {}
    # Where versions 2 and 3 wrote into one folder, version 3 was the last.
    stems = sorted(path.stem for path in (place / "lancedb").glob("*.lance"))
    for stem in sorted(stems, key=lambda stem: stem not in VECTOR_TABLES):
        path = place / "lancedb" / f"{stem}.lance"
        name = _name(stem)
        if name is None or name in found:
            continue
        try:
            found[name] = _lance(path)
        except (ValueError, RuntimeError, OSError, KeyError) as error:
            damaged[name] = (path, describe_error(error))
    for name, (table, column) in VECTOR_TABLES.items():
        snapshot = place / f"embeddings.{name}.parquet"
        kept = [(snapshot, "embedding")] if snapshot.is_file() else []
        kept += [(files[table], column)] if table in files else []
        for path, of in kept:
            if name in found:
                break
            try:
                if of not in pl.scan_parquet(path, glob=False).collect_schema():
                    continue
                vectors = ParquetVectors(path, of)
                # A column of nothing but nulls has no vectors.
                if vectors.dimension:
                    found[name] = vectors
            except (pl.exceptions.PolarsError, OSError) as error:
                if path == snapshot:
                    damaged[name] = (path, describe_error(error))
    return found, {name: why for name, why in damaged.items() if name not in found}


def _name(stem: str) -> str | None:
    """Return our name of a table of vectors: version 2 calls them default-text_unit-text, or has
    the name of a container before it; version 0 and 1 wrote entity_description_embeddings.
    """
    plain = stem.replace("-", "_").replace(".", "_").removesuffix("_embeddings")
    return next((name for name in VECTOR_TABLES if plain.endswith(name)), None)


def _lance(path: Path) -> LanceVectors:
    import lancedb

    # LanceDB may take a bare relative name for a cloud address.
    table = lancedb.connect(str(path.parent.absolute())).open_table(path.stem)
    vectors = LanceVectors(table, str(path))
    if vectors.dimension <= 0:
        raise ValueError("vectors of no fixed width")
    return vectors

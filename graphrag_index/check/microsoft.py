"""A folder of tables as Microsoft GraphRAG 0 to 3 writes it, with our names and types."""

from pathlib import Path
from typing import Any

import polars as pl

from graphrag_index.check.finding import Finding
from graphrag_index.check.opened import READ, Opened, Vectors, damaged_table
from graphrag_index.check.own import LanceVectors
from graphrag_index.check.vectors import VECTOR_TABLES
from graphrag_index.core.errors import TableError, describe_error
from graphrag_index.core.tables import TABLES

_PREFIX = "create_final_"
# What versions 0 and 1 called it.
_EARLIER_NAMES = {
    "documents": {"raw_content": "text"},
    "entities": {"name": "title"},
    "relationships": {"rank": "combined_degree"},
}


class SnapshotVectors:
    """Vectors that were written as a Parquet file."""

    def __init__(self, path: Path) -> None:
        self.rows = pl.scan_parquet(path, glob=False).select("id", vector="embedding")

    @property
    def dimension(self) -> int:
        first = self.rows.select(pl.col("vector").list.len()).head(1).collect()
        return int(first.item()) if first.height else 0

    def batches(self, at_once: int = 8_192) -> Any:
        dtype = pl.Array(pl.Float32, self.dimension)
        n_rows = self.rows.select(pl.len()).collect().item()
        for start in range(0, n_rows, at_once):
            yield (
                self.rows.slice(start, at_once).with_columns(pl.col("vector").cast(dtype)).collect()
            )


def open_folder(folder: Path) -> Opened:
    """Open the tables in a folder, or in the folder `output` in it.

    A table that cannot be read is a finding, not an error.

    Raises
    ------
    TableError
        There is no such folder, or no table in it.
    """
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "does not exist"
        raise TableError(f"{folder} {what}: name the folder of an index.")
    place = next((path for path in (folder, folder / "output") if _files(path)), None)
    if place is None:
        raise TableError(
            f"There is no index in {folder}: neither index.json nor a table such as "
            "entities.parquet."
        )
    notes: list[str] = []
    damaged: list[Finding] = []
    raw: dict[str, pl.LazyFrame] = {}
    for name, path in _files(place).items():
        try:
            raw[name] = _renamed(name, pl.scan_parquet(path, glob=False), notes)
        except (pl.exceptions.PolarsError, OSError) as error:
            damaged.append(damaged_table(name, describe_error(error), path))
    nodes = raw.pop("nodes", None)
    if "communities" in raw:
        raw["communities"] = _with_members(raw["communities"], nodes, raw.get("entities"))
    vectors = _vectors(place, notes, damaged)
    made_by = f"Microsoft GraphRAG {_generation(place, raw)}"
    return Opened(place, made_by, None, raw, vectors, {}, damaged, notes)


def _files(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for name in (*READ, "nodes"):
        for path in (folder / f"{name}.parquet", folder / f"{_PREFIX}{name}.parquet"):
            if path.is_file():
                found.setdefault(name, path)
    return found


def _generation(place: Path, tables: dict[str, pl.LazyFrame]) -> str:
    if any(place.glob(f"{_PREFIX}*.parquet")):
        return "0 or 1"
    text_units = tables.get("text_units")
    if text_units is not None and "document_ids" in text_units.collect_schema():
        return "2"
    return "2 or 3"


def _renamed(name: str, rows: pl.LazyFrame, notes: list[str]) -> pl.LazyFrame:
    """Give a table the names and types of ours; a column of another kind is left out."""
    schema = rows.collect_schema()
    earlier = _EARLIER_NAMES.get(name, {})
    renames = {old: new for old, new in earlier.items() if old in schema and new not in schema}
    rows = rows.rename(renames)
    if name == "communities" and "community" not in schema:
        # Up to version 0 the id was the number.
        number = "human_readable_id" if "human_readable_id" in schema else "id"
        rows = rows.with_columns(community=pl.col(number))
    wanted: dict[str, Any] = dict(TABLES[name].schema) if name in TABLES else dict(_NODES)
    if name == "text_units":
        wanted["document_ids"] = pl.List(pl.String)
    columns = []
    for column, dtype in rows.collect_schema().items():
        if column not in wanted:
            continue
        if _becomes(dtype, wanted[column]):
            columns.append(pl.col(column).cast(wanted[column], strict=False))
        elif column not in ("raw_data", "metadata"):
            notes.append(f"{name}.{column} is {dtype}: it is not looked at.")
    return rows.select(columns)


_NODES = {"id": pl.String, "title": pl.String, "community": pl.Int64, "level": pl.Int64}


def _becomes(given: pl.DataType, wanted: Any) -> bool:
    """Tell whether a column can be read as what it should be."""
    if given == wanted or isinstance(given, pl.Null):
        return True
    if isinstance(wanted, pl.List):
        if not isinstance(given, pl.List | pl.Array):
            return False
        inner: Any = given.inner
        if isinstance(wanted.inner, pl.Struct):
            names = {part.name for part in wanted.inner.fields}
            return isinstance(inner, pl.Struct) and names == {part.name for part in inner.fields}
        return not inner.is_nested()
    return not given.is_nested() and not isinstance(given, pl.Binary)


def _with_members(
    communities: pl.LazyFrame, nodes: pl.LazyFrame | None, entities: pl.LazyFrame | None
) -> pl.LazyFrame:
    """Take the members of communities from the table of nodes, where only that has them."""
    if "entity_ids" in communities.collect_schema() or nodes is None or entities is None:
        return communities
    if not {"title", "community"}.issubset(nodes.collect_schema()):
        return communities
    members = (
        nodes.select("title", "community")
        .drop_nulls()
        .join(entities.select("id", "title"), on="title")
        .group_by("community")
        .agg(entity_ids=pl.col("id").unique())
    )
    return communities.join(members, on="community", how="left").with_columns(
        pl.col("entity_ids").fill_null([])
    )


def _vectors(place: Path, notes: list[str], damaged: list[Finding]) -> dict[str, Vectors]:
    """Open the vector tables, by our names for them."""
    found: dict[str, Vectors] = {}
    for path in sorted((place / "lancedb").glob("*.lance")):
        # Version 2 calls them default-text_unit-text, or has the name of a container before it.
        plain = path.stem.replace("-", "_")
        name = next((name for name in VECTOR_TABLES if plain.endswith(name)), None)
        if name is None or name in found:
            continue
        try:
            found[name] = _lance(path)
        except (ValueError, RuntimeError, OSError, KeyError) as error:
            damaged.append(damaged_table(name, describe_error(error), path))
    for name in VECTOR_TABLES:
        path = place / f"embeddings.{name}.parquet"
        if name not in found and path.is_file():
            try:
                vectors = SnapshotVectors(path)
                vectors.rows.collect_schema()
                found[name] = vectors
            except (pl.exceptions.PolarsError, OSError) as error:
                damaged.append(damaged_table(name, describe_error(error), path))
    lacking = [name for name in VECTOR_TABLES if name not in found]
    if lacking:
        notes.append(
            f"There are no vectors {', '.join(lacking)} in {place / 'lancedb'}: "
            "they are not looked at."
        )
    return found


def _lance(path: Path) -> LanceVectors:
    import lancedb

    # LanceDB may take a bare relative name for a cloud address.
    table = lancedb.connect(str(path.parent.absolute())).open_table(path.stem)
    return LanceVectors(table)

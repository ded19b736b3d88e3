"""Export an index in the layout of Microsoft GraphRAG 3, for its own query engine.

    TARGET/<table>.parquet        documents, text_units, entities, relationships, communities,
                                  community_reports, and covariates if there are claims
    TARGET/lancedb/               text_unit_text, entity_description, community_full_content
    TARGET/graphrag_index/        what only our tables have; its program does not look there
        export.json               the version of our index, and the model that embedded it
        <table>.arrow             columns of that table, row for row
        mentions.arrow, …         whole tables: the public ones that are only ours

A table of ours is Microsoft's with the columns of the Arrow file of its name, which win where
both have one. Those are `documents.raw_data`, a struct there; the title of an island, there
`Community <number>`; and `communities.text_unit_ids`, which names the text units of the
relationships alone there. All else is written as it is, in its order.

A row of zeros, whose vector could not be computed, gets no vector there; reports keep it.
"""

import json
from pathlib import Path

import polars as pl

from graphrag_index.errors import ExportError, TableError, describe_error
from graphrag_index.microsoft.export_tables import (
    FIRST_OWN,
    OWN_TABLES,
    VECTOR_TABLES,
    write_own,
    write_tables,
    write_vectors,
)
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.atomic import new_folder, write_json
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.vector_store import VectorTable
from graphrag_index.storage.versions import Version

FORMAT = 1
OWN_FOLDER, EXPORT_FILE, LANCEDB = "graphrag_index", "export.json", "lancedb"
# All that a target may hold.
_NAMES = (*(f"{name}.parquet" for name in FIRST_OWN), LANCEDB, OWN_FOLDER)
# Without these its program opens nothing.
_REQUIRED = ("documents", "text_units", "entities", "relationships", "communities")


def export(
    store: TableStore, version: Version, target: Path, *, overwrite: bool = False
) -> list[str]:
    """Write an index as Microsoft GraphRAG 3 does, and return the settings that it needs.

    Raises
    ------
    TableError
        A table is missing or damaged.
    ExportError
        There is something at the target that is not to be replaced.
    """
    _check_target(target)
    tables = _open_tables(store, version)
    vectors = {
        name: VectorTable.open(store.lancedb, name, version.tables[name].lance_version)
        for name in VECTOR_TABLES
        if name in version.tables
    }
    n_skipped = {}
    date = version.made.date if version.made else None
    with new_folder(target, _NAMES, overwrite=overwrite) as folder:
        try:
            write_tables(tables, folder)
            write_own(tables, folder / OWN_FOLDER)
        except pl.exceptions.PolarsError as error:
            raise TableError(
                f"A table in {store.output} is damaged ({describe_error(error)[:200]}): run "
                "`graphrag-index run` to write it again."
            ) from error
        for name, table in vectors.items():
            n_skipped[name] = write_vectors(table, name, folder / LANCEDB, date)
        write_json(folder / OWN_FOLDER / EXPORT_FILE, _description(version))
    return _messages(version, target.absolute(), vectors, n_skipped)


def _open_tables(store: TableStore, version: Version) -> dict[str, pl.LazyFrame]:
    missing = [name for name in _REQUIRED if name not in version.tables]
    if missing:
        raise TableError(
            f"The index in {store.output} has no table {', '.join(missing)}: Microsoft GraphRAG "
            "needs it, run a workflow that writes it."
        )
    tables = {
        name: store.scan(name, version.tables[name])
        for name in (*FIRST_OWN, *OWN_TABLES)
        if name in version.tables
    }
    # Its local search opens this file too, but needs no report.
    return {"community_reports": TABLES["community_reports"].empty().lazy(), **tables}


def _description(version: Version) -> dict[str, object]:
    embedded = [version.tables[name] for name in VECTOR_TABLES if name in version.tables]
    vectors = embedded[0].vectors if embedded else None
    return {
        "format": FORMAT,
        "program": version.program,
        "version": version.number,
        "workflow": version.workflow,
        "embedding_model": _embedding_model(version),
        "dimensions": vectors.dimensions if vectors else None,
    }


def _embedding_model(version: Version) -> str | None:
    """Return the model's own name, or else its alias in the settings."""
    for name in VECTOR_TABLES:
        stored = version.tables.get(name)
        if stored and stored.vectors and stored.vectors.model:
            return stored.vectors.model
    name = version.settings.get("generate_text_embeddings", {}).get("model")
    return str(name) if name else None


def _check_target(target: Path) -> None:
    """Refuse a target that holds anything but an earlier export.

    An index of Microsoft's own has files of the same names.
    """
    own_files = {f"{name}.lance" for name in VECTOR_TABLES}
    inner = sorted(path.name for path in (target / LANCEDB).glob("*"))
    foreign = [f"{LANCEDB}/{name}" for name in inner if name not in own_files]
    if target.is_dir() and not _is_export(target):
        foreign += sorted(path.name for path in target.iterdir())
    if foreign:
        raise ExportError(
            f"{target} holds {foreign[0]}, which is not of an export: name another folder."
        )


def _is_export(folder: Path) -> bool:
    try:
        found = json.loads((folder / OWN_FOLDER / EXPORT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and "format" in found


def _messages(
    version: Version, target: Path, vectors: dict[str, VectorTable], n_skipped: dict[str, int]
) -> list[str]:
    """Return what was written, what is missing, and the settings that are needed there."""
    counts = (
        f"{version.tables[name].rows:,} {name.replace('_', ' ')}"
        for name in FIRST_OWN
        if name in version.tables
    )
    lines = [f"{target}: {', '.join(counts)}."]
    if "community_reports" not in version.tables:
        lines.append(
            "This index has no community reports: local and basic search answer from it there, "
            "global and drift search do not."
        )
    for name, n_rows in n_skipped.items():
        if n_rows:
            lines.append(f"{name}: {n_rows:,} rows without a vector are left out.")
    missing = [name for name in VECTOR_TABLES if name not in vectors]
    if missing and vectors:
        lines.append(f"There are no vectors {', '.join(missing)}.")
    if not vectors:
        lines.append("This index has no vectors: only global search answers from it there.")
    dimensions = {name: table.dimension for name, table in vectors.items()}
    lines += _settings_lines(target, dimensions)
    if vectors:
        model = _embedding_model(version) or "the model that embedded this index"
        numbers = " or ".join(map(str, sorted({*dimensions.values()})))
        lines.append(
            f"Its embedding model must be {model}, which gives vectors of {numbers} numbers."
        )
    return lines


def _settings_lines(target: Path, dimensions: dict[str, int]) -> list[str]:
    """Return the lines for its `settings.yaml`, where `$$` is a dollar sign."""

    def quoted(path: Path) -> str:
        return json.dumps(str(path), ensure_ascii=False).replace("$", "$$")

    lines = [
        "The settings.yaml there needs these lines:",
        "",
        "output_storage:",
        "  type: file",
        f"  base_dir: {quoted(target)}",
        "vector_store:",
        "  type: lancedb",
        f"  db_uri: {quoted(target / LANCEDB)}",
    ]
    if dimensions:
        lines += [f"  vector_size: {max(dimensions.values())}", "  index_schema:"]
    for name, n in dimensions.items():
        lines += [f"    {name}:", f"      index_name: {name}", f"      vector_size: {n}"]
    return [*lines, ""]

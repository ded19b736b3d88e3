"""An index as Microsoft GraphRAG 3 writes it, so that its own program answers from it.

    TARGET/<table>.parquet        documents, text_units, entities, relationships, communities,
                                  community_reports, and covariates if there are claims
    TARGET/lancedb/               text_unit_text, entity_description, community_full_content
    TARGET/graphrag_index/        what only our tables have; its program does not look there
        export.json               which version of an index this is, and which model embedded it
        <table>.arrow             columns of that table, row for row
        mentions.arrow, …         whole tables: the public ones that are only ours

A table of ours is Microsoft's with the columns of the Arrow file of its name; a column that both
have is taken from the Arrow file. Three of ours are others there: `documents.raw_data` is a
struct, the title of an island is `Community <number>`, and `communities.text_unit_ids` names the
text units of the relationships alone. Everything else is written as it is, in its order.

A row whose vector could not be had, and is all zeros here, has none there; reports keep it.
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
from graphrag_index.storage.atomic import write_json
from graphrag_index.storage.export_target import new_folder
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.vector_store import VectorTable
from graphrag_index.storage.versions import Version

FORMAT = 1
OWN = "graphrag_index"
ABOUT = "export.json"
LANCEDB = "lancedb"
_NAMES = (*(f"{name}.parquet" for name in FIRST_OWN), LANCEDB, OWN)
_VECTOR_FILES = {f"{name}.lance" for name in VECTOR_TABLES}
# Without these its program opens nothing.
_NEEDED = ("documents", "text_units", "entities", "relationships", "communities")


def export(
    store: TableStore, version: Version, target: Path, *, overwrite: bool = False
) -> list[str]:
    """Write an index as Microsoft GraphRAG 3 does, and say what its settings need.

    Raises
    ------
    TableError
        A table is missing or damaged.
    ExportError
        There is something at the target that is not to be replaced.
    """
    _check_target(target)
    tables = _open(store, version)
    vectors = {
        name: VectorTable.open(store.lancedb, name, version.tables[name].lance_version)
        for name in VECTOR_TABLES
        if name in version.tables
    }
    left_out = {}
    date = version.made.date if version.made else None
    with new_folder(target, _NAMES, overwrite=overwrite) as folder:
        try:
            write_tables(tables, folder)
            write_own(tables, folder / OWN)
        except pl.exceptions.PolarsError as error:
            raise TableError(
                f"A table in {store.output} is damaged ({describe_error(error)[:200]}): run "
                "`graphrag-index run` to write it again."
            ) from error
        for name, table in vectors.items():
            left_out[name] = write_vectors(table, name, folder / LANCEDB, date)
        write_json(folder / OWN / ABOUT, _about(version))
    return _told(version, target.absolute(), vectors, left_out)


def _open(store: TableStore, version: Version) -> dict[str, pl.LazyFrame]:
    wanted = [*FIRST_OWN, *OWN_TABLES]
    missing = [name for name in _NEEDED if name not in version.tables]
    if missing:
        raise TableError(
            f"The index in {store.output} has no table {', '.join(missing)}: Microsoft GraphRAG "
            "needs it, run a workflow that writes it."
        )
    tables = {
        name: store.scan(name, version.tables[name]) for name in wanted if name in version.tables
    }
    # Its local search opens this file too, and does with no report.
    return {"community_reports": TABLES["community_reports"].empty().lazy(), **tables}


def _about(version: Version) -> dict[str, object]:
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
    """The name of the model by which others know it."""
    for name in VECTOR_TABLES:
        stored = version.tables.get(name)
        if stored and stored.vectors and stored.vectors.model:
            return stored.vectors.model
    name = version.settings.get("generate_text_embeddings", {}).get("model")
    return str(name) if name else None


def _check_target(target: Path) -> None:
    """See that what lies at the target, if anything does, is an earlier export and no more.

    An index of Microsoft's own has files of the same names.
    """
    inner = sorted(path.name for path in (target / LANCEDB).glob("*"))
    foreign = [f"{LANCEDB}/{name}" for name in inner if name not in _VECTOR_FILES]
    if target.is_dir() and not _is_export(target):
        foreign += sorted(path.name for path in target.iterdir())
    if foreign:
        raise ExportError(
            f"{target} holds {foreign[0]}, which is not of an export: name another folder."
        )


def _is_export(folder: Path) -> bool:
    try:
        about = json.loads((folder / OWN / ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(about, dict) and "format" in about


def _told(
    version: Version, target: Path, vectors: dict[str, VectorTable], left_out: dict[str, int]
) -> list[str]:
    """What the user has to know, and the lines that the settings there need."""
    counts = (
        f"{version.tables[name].rows:,} {name.replace('_', ' ')}"
        for name in FIRST_OWN
        if name in version.tables
    )
    told = [f"{target}: {', '.join(counts)}."]
    if "community_reports" not in version.tables:
        told.append(
            "This index has no community reports: local and basic search answer from it there, "
            "global and drift search do not."
        )
    for name, n_rows in left_out.items():
        if n_rows:
            told.append(f"{name}: {n_rows:,} rows without a vector are left out.")
    lacking = [name for name in VECTOR_TABLES if name not in vectors]
    if lacking and vectors:
        told.append(f"There are no vectors {', '.join(lacking)}.")
    if not vectors:
        told.append("This index has no vectors: only global search answers from it there.")
        return [*told, *_settings(target, {})]
    widths = {name: table.dimension for name, table in vectors.items()}
    told += _settings(target, widths)
    model = _embedding_model(version) or "the model that embedded this index"
    told.append(
        f"Its embedding model must be {model}, which gives vectors of "
        f"{' or '.join(map(str, sorted(set(widths.values()))))} numbers."
    )
    return told


def _settings(target: Path, widths: dict[str, int]) -> list[str]:
    """The lines for its `settings.yaml`, in which a dollar begins a variable."""

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
    if widths:
        lines += [f"  vector_size: {max(widths.values())}", "  index_schema:"]
    for name, width in widths.items():
        lines += [f"    {name}:", f"      index_name: {name}", f"      vector_size: {width}"]
    return [*lines, ""]

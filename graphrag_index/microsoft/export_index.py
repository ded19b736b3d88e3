"""Export of an index in the file layout of Microsoft GraphRAG 3.

    TARGET/<table>.parquet        documents, text_units, entities, relationships, communities,
                                  community_reports, and covariates if there are claims
    TARGET/lancedb/               text_unit_text, entity_description, community_full_content
    TARGET/graphrag_index/        data that only our tables have; Microsoft GraphRAG ignores it
        export.json               the version of our index, and the name of its embedding model
        <table>.arrow             our additional columns of that table, in the same row order
        mentions.arrow, …         whole tables: public tables that Microsoft GraphRAG lacks

The columns of our table are those of the Parquet file and of the Arrow file together. Three columns
are in both files, and the Arrow file has our value. In the Parquet file `documents.raw_data` is a
struct, the title of a theme or an island is `Community <number>`, and `communities.text_unit_ids`
holds the text units of the relationships only. Metadata that Microsoft GraphRAG put before the text
of a text unit is in the text again. Values and row order are otherwise unchanged.

A vector of zeros means that no vector could be computed. Such vectors are left out, except those of
reports. An island community holds several small components of the graph.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from graphrag_index.errors import ExportError, TableError, describe_error, format_count
from graphrag_index.microsoft.prepended_text import restore_text
from graphrag_index.microsoft.read_files import COLUMN_RULES, LanceVectors
from graphrag_index.schema.tables import EMBEDDED_COLUMNS, TABLES
from graphrag_index.storage.atomic import new_folder, write_json
from graphrag_index.storage.memo import read_batches
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.table_writer import ROW_GROUP_SIZE, arrow_schema, to_arrow
from graphrag_index.storage.vector_store import VectorTable, connect, convert_os_errors
from graphrag_index.storage.versions import Version
from graphrag_nlp.list_columns import gather_by_owner, spread_lists

EXPORT_FORMAT = 1
OWN_FOLDER, EXPORT_FILE, LANCEDB = "graphrag_index", "export.json", "lancedb"
# The suffix is not .parquet, since `graphrag update` copies all Parquet files, and would fail.
OWN_SUFFIX = ".arrow"
# By table: our first column that Microsoft GraphRAG lacks; None if it has all our columns.
FIRST_OWN: Mapping[str, str | None] = COLUMN_RULES["first_own"]
# Columns whose values Microsoft GraphRAG defines differently; the Arrow files keep our values.
CHANGED_COLUMNS = {"documents": ["raw_data"], "communities": ["title", "text_unit_ids"]}
# Names of all files and folders of an export.
_EXPORTED_FILES = (*(f"{name}.parquet" for name in FIRST_OWN), LANCEDB, OWN_FOLDER)
# Microsoft GraphRAG opens no index without these tables.
_REQUIRED_TABLES = ("documents", "text_units", "entities", "relationships", "communities")
# Vectors of reports, of which none is left out: otherwise Microsoft's drift search would fail.
_REPORT_VECTORS = "community_full_content"


def export(
    store: TableStore, version: Version, target: Path, *, overwrite: bool = False
) -> list[str]:
    """Write an index in the layout of Microsoft GraphRAG 3; return a summary for the user.

    The lines of the summary report row counts and missing parts, and give the settings that
    Microsoft GraphRAG needs. Raises ExportError if the target holds files of another origin.
    """
    _check_target_folder(target)
    tables = _open_tables(store, version)
    stored = {name: version.tables[name] for name in EMBEDDED_COLUMNS if name in version.tables}
    # Use the model name that a vector table records; if there is none, the name in the settings.
    models = [table.vectors.model for table in stored.values() if table.vectors]
    model = next(filter(None, models), None)
    model = model or version.settings.get("generate_text_embeddings", {}).get("model") or None
    vectors = {name: store.vectors(name, table) for name, table in stored.items()}
    dimensions = {name: table.dimension for name, table in vectors.items()}
    description = {
        "format": EXPORT_FORMAT,
        "program": version.program,
        "version": version.number,
        "workflow": version.workflow,
        "embedding_model": model,
        "dimensions": next((t.vectors and t.vectors.dimensions for t in stored.values()), None),
    }
    date = version.made.date if version.made else None
    n_skipped = {}
    with new_folder(target, _EXPORTED_FILES, overwrite=overwrite) as folder:
        try:
            _write_tables(tables, folder)
            _write_additional_data(tables, folder / OWN_FOLDER)
        except pl.exceptions.PolarsError as error:
            raise TableError(
                f"A table in {store.place} is damaged ({describe_error(error)[:200]}): run "
                "`graphrag-index run` to write it again."
            ) from error
        for name, table in vectors.items():
            n_skipped[name] = _write_vectors(table, name, folder / LANCEDB, date)
        write_json(folder / OWN_FOLDER / EXPORT_FILE, description)
    lines = _format_summary(version, target.absolute(), n_skipped)
    lines += _format_settings(target.absolute(), dimensions)
    if vectors:
        numbers = " or ".join(map(str, sorted({*dimensions.values()})))
        lines.append(
            f"Its embedding model must be {model or 'the model that embedded this index'}, "
            f"which gives vectors of {numbers} numbers."
        )
    return lines


def _open_tables(store: TableStore, version: Version) -> dict[str, pl.LazyFrame]:
    if missing := [name for name in _REQUIRED_TABLES if name not in version.tables]:
        raise TableError(
            f"The index in {store.place} has no table {', '.join(missing)}: Microsoft GraphRAG "
            "needs it, run a workflow that writes it."
        )
    tables = {
        name: store.scan(name, version.tables[name])
        for name, table in TABLES.items()
        if table.kind == "public" and name in version.tables
    }
    # The local search of Microsoft GraphRAG opens the table of reports even if it is empty.
    return {"community_reports": TABLES["community_reports"].empty().lazy(), **tables}


def _check_target_folder(target: Path) -> None:
    """Raise ExportError if the target folder holds anything but an earlier export.

    An index that Microsoft GraphRAG wrote has files of the same names, so names prove nothing.
    """
    own_files = {f"{name}.lance" for name in EMBEDDED_COLUMNS}
    inner = sorted(path.name for path in (target / LANCEDB).glob("*"))
    foreign = [f"{LANCEDB}/{name}" for name in inner if name not in own_files]
    if target.is_dir():
        path = target / OWN_FOLDER / EXPORT_FILE
        try:
            is_export = "format" in json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, TypeError):
            is_export = False
        foreign += [] if is_export else sorted(path.name for path in target.iterdir())
    if foreign:
        raise ExportError(
            f"{target} holds {foreign[0]}, which is not part of an export: name another folder."
        )


def _format_summary(version: Version, target: Path, n_skipped: Mapping[str, int]) -> list[str]:
    """Return sentences that report written rows and missing tables and vectors.

    `n_skipped` is the number of skipped rows of each vector table.
    """
    counts = (
        format_count(name, version.tables[name].rows)
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
    missing = [name for name in EMBEDDED_COLUMNS if name not in n_skipped]
    if not n_skipped:
        lines.append("This index has no vectors: only global search answers from it there.")
    elif missing:
        lines.append(f"There are no vectors {', '.join(missing)}.")
    return lines


def _format_settings(target: Path, dimensions: Mapping[str, int]) -> list[str]:
    """Return lines for Microsoft's `settings.yaml`, in which `$$` means a dollar sign."""

    def quote_path(path: Path) -> str:
        return json.dumps(str(path), ensure_ascii=False).replace("$", "$$")

    lines = [
        "The settings.yaml there needs these lines:",
        "",
        "output_storage:",
        "  type: file",
        f"  base_dir: {quote_path(target)}",
        "vector_store:",
        "  type: lancedb",
        f"  db_uri: {quote_path(target / LANCEDB)}",
    ]
    if dimensions:
        lines += [f"  vector_size: {max(dimensions.values())}", "  index_schema:"]
    for name, n in dimensions.items():
        lines += [f"    {name}:", f"      index_name: {name}", f"      vector_size: {n}"]
    return [*lines, ""]


def shared_columns(name: str) -> list[str]:
    """Return the columns that Microsoft's table and our table share, in Microsoft's order."""
    columns = list(TABLES[name].columns)
    first = FIRST_OWN[name]
    return columns if first is None else columns[: columns.index(first)]


def _write_tables(tables: Mapping[str, pl.LazyFrame], folder: Path) -> None:
    """Write the tables with Microsoft's columns as Parquet files; keep our row order."""
    import pyarrow.parquet as pq

    for name in (name for name in FIRST_OWN if name in tables):
        rows = tables[name]
        if name == "text_units":
            rows = restore_text(rows)
        if name == "communities":
            rows = _use_microsoft_values(rows, tables["relationships"])
        rows = rows.select(shared_columns(name))
        # Text columns are large strings in Arrow, but texts inside lists are plain strings.
        fields = {
            field.name: _use_plain_strings_in_lists(field.type)
            for field in _select_arrow_schema(name, rows)
        }
        if name == "documents":
            texts = read_batches(rows.select("raw_data"), ROW_GROUP_SIZE)
            fields["raw_data"] = record_type(batch["raw_data"].to_list() for batch in texts)
        schema = pa.schema(list(fields.items()))
        with pq.ParquetWriter(folder / f"{name}.parquet", schema, compression="snappy") as writer:
            for batch in read_batches(rows, ROW_GROUP_SIZE):
                writer.write_table(_convert_batch(batch, schema), ROW_GROUP_SIZE)


def _write_additional_data(tables: Mapping[str, pl.LazyFrame], folder: Path) -> None:
    """Write the columns and tables that Microsoft GraphRAG lacks as Arrow files."""
    folder.mkdir()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    for name, rows in tables.items():
        if name in FIRST_OWN:
            own = [c for c in TABLES[name].columns if c not in shared_columns(name)]
            rows = rows.select(CHANGED_COLUMNS.get(name, []) + own)
        schema = _select_arrow_schema(name, rows)
        if not schema.names:
            continue
        with pa.ipc.new_file(folder / f"{name}{OWN_SUFFIX}", schema, options=options) as writer:
            for batch in read_batches(rows, ROW_GROUP_SIZE):
                writer.write_table(to_arrow(batch, schema))


def _select_arrow_schema(name: str, rows: pl.LazyFrame) -> pa.Schema:
    """Return the Arrow schema of the table's columns that `rows` has."""
    whole = arrow_schema(TABLES[name])
    return pa.schema([whole.field(column) for column in rows.collect_schema().names()])


def _use_plain_strings_in_lists(kind: pa.DataType, within: bool = False) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(
            pa.field("element", _use_plain_strings_in_lists(kind.value_type, within=True))
        )
    if pa.types.is_struct(kind):
        return pa.struct(
            [(part.name, _use_plain_strings_in_lists(part.type, within)) for part in kind]
        )
    return pa.string() if within and pa.types.is_large_string(kind) else kind


def _convert_batch(batch: pl.DataFrame, schema: pa.Schema) -> pa.Table:
    """Convert a batch to Arrow, and parse the JSON in its column `raw_data`."""
    at = schema.get_field_index("raw_data")
    if at < 0:
        return to_arrow(batch, schema)
    rest = to_arrow(batch.drop("raw_data"), schema.remove(at))
    raw_data = parse_records(batch["raw_data"].to_list(), schema.field(at).type)
    return rest.add_column(at, schema.field(at), pa.chunked_array([raw_data]))


def _use_microsoft_values(communities: pl.LazyFrame, relationships: pl.LazyFrame) -> pl.LazyFrame:
    """Replace titles and text units of communities by the values of Microsoft GraphRAG.

    In Microsoft GraphRAG, a community has the text units of its relationships. The values differ
    from our values for themes, islands and communities without relationships.
    """
    is_named = pl.col("island") | pl.col("theme")
    is_other = is_named | (pl.col("relationship_ids").list.len() == 0)
    others = communities.filter(is_other).select("community", "relationship_ids").collect()
    texts = _find_text_units(others["relationship_ids"], relationships)
    others = others.select("community", texts.alias("theirs"))
    title = pl.format("Community {}", "community")
    return communities.join(
        others.lazy(), on="community", how="left", maintain_order="left"
    ).with_columns(
        title=pl.when(is_named).then(title).otherwise("title"),
        text_unit_ids=pl.coalesce("theirs", "text_unit_ids"),
    )


def record_type(record_batches: Iterable[Sequence[str | None]]) -> pa.DataType:
    """Return one Arrow type that fits all JSON records.

    The type is null if there are no records. It is text if no struct type fits all records: for
    example, a field is a number in one record and a list in another, or a record is not an object.
    """
    found = pa.null()
    for texts in record_batches:
        try:
            types = [found, pa.array(_parse_json_texts(texts)).type]
            schemas = [pa.schema([("record", each)]) for each in types]
            found = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            return pa.large_string()
    is_record = pa.types.is_null(found) or (pa.types.is_struct(found) and _is_writable(found))
    return found if is_record else pa.large_string()


def parse_records(texts: Sequence[str | None], kind: pa.DataType) -> pa.Array:
    """Parse JSON records into an Arrow array of the type from `record_type`."""
    return pa.array(texts if pa.types.is_large_string(kind) else _parse_json_texts(texts), kind)


def _parse_json_texts(texts: Sequence[str | None]) -> list[Any]:
    return [None if text is None else json.loads(text) for text in texts]


def _is_writable(kind: pa.DataType) -> bool:
    """Return whether Parquet can store a type; it cannot store a struct without fields."""
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(_is_writable(part.type) for part in kind)
    return not pa.types.is_list(kind) or _is_writable(kind.value_type)


def _write_vectors(vectors: VectorTable, name: str, lancedb: Path, date: str | None) -> int:
    """Write a vector table as version 3.0.3 and later do; return the number of skipped rows.

    A vector of zeros means that the vector is missing. Microsoft GraphRAG ranks rows by distance,
    and a vector of zeros would be closer to most questions than the rows that answer them.
    """
    stamps = _make_date_columns(date)
    schema = pa.schema(
        [("id", pa.string()), ("vector", pa.list_(pa.float32(), vectors.dimension))]
        + [(column, stamp.type) for column, stamp in stamps.items()]
    )
    n_skipped = 0
    with convert_os_errors(lancedb):
        written = connect(lancedb).create_table(name, schema=schema)
    source = LanceVectors(vectors.table, name, "run `graphrag-index run` to write them again")
    for batch in source.batches(("id", "vector")):
        is_present = pl.Series(batch["vector"].to_numpy().any(axis=1), dtype=pl.Boolean)
        if name != _REPORT_VECTORS and not is_present.all():
            n_skipped += int((~is_present).sum())
            batch = batch.filter(is_present)
        rows = batch.select("id", "vector").to_arrow(compat_level=pl.CompatLevel.oldest())
        columns = [rows[field].cast(schema.field(field).type) for field in ("id", "vector")]
        columns += [pa.repeat(stamp, batch.height) for stamp in stamps.values()]
        with convert_os_errors(lancedb):
            written.add(pa.table(columns, schema=schema))
    return n_skipped


def _make_date_columns(date: str | None) -> dict[str, pa.Scalar]:
    """Return the date columns of a vector table; the columns of the update date are null."""
    moment = datetime.fromisoformat(date) if date else datetime.min
    parts = {
        "year": moment.year,
        "month": moment.month,
        "month_name": moment.strftime("%B"),
        "day": moment.day,
        "day_of_week": moment.strftime("%A"),
        "hour": moment.hour,
        "quarter": (moment.month - 1) // 3 + 1,
    }
    dates = {"create_date": date, "update_date": None}
    stamps = {column: pa.scalar(value, pa.string()) for column, value in dates.items()}
    for column, value in dates.items():
        for part, number in parts.items():
            stamp = pa.scalar(number)
            stamps[f"{column}_{part}"] = stamp if value else pa.scalar(None, stamp.type)
    return stamps


def _find_text_units(relationship_ids: pl.Series, relationships: pl.LazyFrame) -> pl.Series:
    """Return, for each list of relationship ids, the sorted ids of their text units."""
    owners, ids = spread_lists(relationship_ids)
    links = relationships.select("id", "text_unit_ids").unique("id", keep="first")
    units = (
        pl.LazyFrame({"owner": owners, "id": ids})
        .join(links, on="id")
        .select("owner", unit="text_unit_ids")
        .explode("unit")
        .drop_nulls()
        .unique()
        .sort("owner", "unit")
        .collect()
    )
    return gather_by_owner(units, len(relationship_ids))

"""Selection of the entities and relationships to export, and formatting of rows as text.

Rows are read in batches; only the ids and communities of the entities stay in memory. Polars
expressions format the rows: this is faster than Python code that runs for each row.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import polars as pl

from graphrag_index.errors import ExportError, join_names
from graphrag_index.step import Progress, Silent
from graphrag_index.storage.table_store import TableStore, scan_table
from graphrag_index.storage.table_writer import EqualBatches
from graphrag_index.storage.versions import Version

BATCH_ROWS = 16_384  # rows per batch of an export
_MAX_NAMES_IN_MESSAGE = 20  # entity types or levels that an error message lists
# Characters that XML forbids; some CSV parsers fail on them too.
_XML_FORBIDDEN_CHARACTERS = r"[\x00-\x08\x0B\x0C\x0E-\x1F\x{FFFE}\x{FFFF}]"
_QUOTED_TEXT_ESCAPES = {chr(code): f"\\u{code:04X}" for code in (*range(0x20), 0x7F)}
_QUOTED_TEXT_ESCAPES |= {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_XML_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
# Escape line ends and tabs: in attributes, an XML parser replaces unescaped ones by spaces.
_XML_ESCAPES |= {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


@dataclass(frozen=True)
class Filters:
    """Conditions for exported entities. A relationship is exported if both of its entities are.

    `level` selects the members of all communities of one level, and `community` the members of
    one community. `types` selects the entities of these types, ignoring case. `min_degree` is the
    minimum number of neighbours of an entity in the whole graph.
    """

    level: int | None = None
    community: int | None = None
    types: tuple[str, ...] = ()
    min_degree: int = 0

    def __bool__(self) -> bool:
        return self != Filters()


@dataclass
class ExportedGraph:
    """Entities and relationships that `select_graph` selected for an export.

    `keys` has one row per entity of the index: `id`, `row`, `kept` (whether the entity passes the
    filters), `community` (at the requested level, or at the coarsest level), and
    `community_level_N` for each level N. A community is null if the entity has none at the level.
    """

    store: TableStore
    version: Version
    keys: pl.DataFrame
    is_filtered: bool
    progress: Progress = field(default_factory=Silent)
    n_nodes: int = 0
    n_edges: int = 0
    n_dangling: int = 0  # relationships left out because source or target is unknown

    @property
    def community_columns(self) -> list[str]:
        """The names of the community columns of the nodes."""
        return [name for name in self.keys.columns if name.startswith("community")]

    def scan_table(self, name: str) -> pl.LazyFrame:
        return scan_table(self.store, self.version, name)

    def scan_kept_entities(self) -> pl.LazyFrame:
        """Return `id` and communities of the entities that pass the filters."""
        return self.keys.lazy().filter("kept").drop("row", "kept")

    def scan_nodes(self) -> pl.LazyFrame:
        """Return the exported entities with their communities, in the order of `entities`."""
        number = pl.col("human_readable_id").alias("number")
        columns = "title type description aliases degree frequency x y".split()
        rows = self.scan_table("entities").select("id", number, *columns)
        return rows.join(self.scan_kept_entities(), on="id", maintain_order="left")

    def stream_nodes(self) -> Iterator[pl.DataFrame]:
        """Yield the exported entities in batches."""
        self.n_nodes = 0
        for batch in stream_rows(self.scan_nodes()):
            self.n_nodes += batch.height
            self.progress.advance(batch.height)
            yield batch

    def stream_edges(self) -> Iterator[pl.DataFrame]:
        """Yield the exported relationships in batches, in the order of `relationships`.

        `source` and `target` are entity ids; `source_row` and `target_row` are their row numbers.
        """
        self.n_edges = self.n_dangling = 0
        rows = self.scan_table("relationships").select(
            "id",
            number="human_readable_id",
            source="source_id",
            target="target_id",
            type="type",
            description="description",
            # Write null for NaN and infinity, which most formats cannot store.
            weight=pl.when(pl.col("weight").is_finite()).then("weight"),
            text_unit_ids="text_unit_ids",
        )
        for end in ("source", "target"):
            keys = self.keys.lazy().select(
                pl.col("id").alias(end),
                pl.col("row").alias(f"{end}_row"),
                pl.col("kept").alias(f"{end}_kept"),
            )
            rows = rows.join(keys, on=end, how="left", maintain_order="left")
        kept = pl.col("source_kept") & pl.col("target_kept")
        is_dangling = pl.col("source_kept").is_null() | pl.col("target_kept").is_null()
        for batch in stream_rows(rows):
            self.n_dangling += batch.select(is_dangling.sum()).item()
            self.progress.advance(batch.height)
            edges = batch.filter(kept & ~is_dangling).drop("source_kept", "target_kept")
            self.n_edges += edges.height
            if edges.height:
                yield edges


def select_graph(
    store: TableStore, version: Version, filters: Filters, progress: Progress | None = None
) -> ExportedGraph:
    """Select the entities to export; raise ExportError if none can pass the filters."""
    if "entities" not in version.tables or "relationships" not in version.tables:
        raise ExportError(
            f"The workflow {version.workflow} writes no entities and relationships: "
            "there is no graph to export."
        )
    entities = scan_table(store, version, "entities")
    communities = scan_table(store, version, "communities")
    levels = communities.select(pl.col("level").unique().sort()).collect()["level"].to_list()
    _check_communities(filters, communities, levels)
    most = entities.select(pl.col("degree").max()).collect(engine="streaming").item() or 0
    if filters.min_degree > most:
        raise ExportError(
            f"No entity has {filters.min_degree:,} neighbours: the maximum is {most:,}."
        )
    passes = pl.col("degree") >= filters.min_degree
    if filters.types:
        passes &= pl.col("type").is_in(_find_requested_types(filters, entities))
    keys = entities.select("id", kept=passes).with_row_index("row").collect(engine="streaming")
    for level in levels:
        members = _find_first_communities(communities.filter(pl.col("level") == level))
        members = members.rename({"community": f"community_level_{level}"})
        rows = keys.lazy().join(members, on="id", how="left", maintain_order="left")
        keys = rows.collect(engine="streaming")
    if levels:
        shown = levels[0] if filters.level is None else filters.level
        keys = keys.with_columns(community=pl.col(f"community_level_{shown}"))
    if filters.level is not None:
        keys = keys.with_columns(pl.col("kept") & pl.col("community").is_not_null())
    if filters.community is not None:
        of_one = communities.filter(pl.col("community") == filters.community)
        is_member = pl.col("id").is_in(_find_first_communities(of_one).collect()["id"].implode())
        keys = keys.with_columns(pl.col("kept") & is_member)
    first = ["id", "row", "kept", *(["community"] if levels else [])]
    keys = keys.select(*first, pl.exclude(first)).rechunk()
    progress = progress or Silent()
    progress.start(int(keys["kept"].sum()) + version.tables["relationships"].rows, "rows")
    return ExportedGraph(store, version, keys, bool(filters), progress)


def stream_rows(rows: pl.LazyFrame, size: int = BATCH_ROWS) -> Iterator[pl.DataFrame]:
    """Yield the rows in order, in batches of `size` rows; the last batch may be smaller.

    Batches of a fixed size make repeated exports of the same rows equal.
    """
    equal, oldest = EqualBatches(size), pl.CompatLevel.oldest()
    for part in rows.collect_batches(chunk_size=size, maintain_order=True, engine="streaming"):
        yield from map(pl.DataFrame, equal.add(part.to_arrow(compat_level=oldest)))
    end = rows.collect_schema().to_frame().to_arrow(compat_level=oldest)
    yield from map(pl.DataFrame, equal.add(end, is_last=True))


def _find_first_communities(communities: pl.LazyFrame) -> pl.LazyFrame:
    """Return the entity `id` of each member of the communities, with its first community."""
    return (
        communities.select(pl.col("community").cast(pl.Int64), id="entity_ids")
        .explode("id", empty_as_null=False)
        .unique("id", keep="first", maintain_order=True)
    )


def _check_communities(filters: Filters, communities: pl.LazyFrame, levels: list[int]) -> None:
    if filters.level is not None and filters.level not in levels:
        shown = join_names(map(str, levels), _MAX_NAMES_IN_MESSAGE)
        raise ExportError(
            f"There is no level {filters.level}: the levels of the index are {shown or 'none'}."
        )
    if filters.community is not None:
        numbers = communities.select("community").collect()["community"].to_list()
        if filters.community not in numbers:
            shown = f"numbers {min(numbers)} to {max(numbers)}" if numbers else "no communities"
            raise ExportError(f"There is no community {filters.community}: the index has {shown}.")


def _find_requested_types(filters: Filters, entities: pl.LazyFrame) -> list[str]:
    """Return the requested entity types in the spelling of the index."""
    counts = entities.group_by("type").len().sort("len", "type", descending=[True, False])
    present: list[str] = counts.collect(engine="streaming")["type"].to_list()
    for name in filters.types:
        if name.casefold() not in map(str.casefold, present):
            shown = join_names(map(repr, present), _MAX_NAMES_IN_MESSAGE) or "none"
            raise ExportError(f"No entity has the type {name!r}: the types are {shown}.")
    wanted = set(map(str.casefold, filters.types))
    return [name for name in present if name.casefold() in wanted]


def open_text_file(path: Path) -> TextIO:
    """Open a text file for writing, in UTF-8 with line feeds as line ends."""
    return path.open("w", encoding="utf-8", newline="\n")


def write_rows(file: TextIO, batches: Iterable[pl.DataFrame], line: pl.Expr) -> None:
    """Write the value of the expression `line` for each row, without separators."""
    for batch in batches:
        texts = batch.select(line)
        # `write_csv` joins the texts faster than Python. `file` writes them: its errors have errno.
        file.write(texts.write_csv(include_header=False, quote_style="never", line_terminator=""))


def replace_control_characters(column: str | pl.Expr) -> pl.Expr:
    """Replace control characters that XML forbids by the replacement character U+FFFD."""
    text = pl.col(column) if isinstance(column, str) else column
    return text.str.replace_all(_XML_FORBIDDEN_CHARACTERS, "\ufffd")


def escape_xml(column: str | pl.Expr) -> pl.Expr:
    """Escape a text for an XML element or attribute."""
    return replace_control_characters(column).str.replace_many(_XML_ESCAPES)


def quote_text(column: str | pl.Expr) -> pl.Expr:
    """Quote and escape a text in the syntax that JSON and Cypher share."""
    text = pl.col(column) if isinstance(column, str) else column
    return pl.format('"{}"', text.str.replace_many(_QUOTED_TEXT_ESCAPES))


def format_fields(columns: dict[str, str], batch: pl.DataFrame) -> pl.Expr:
    """Format the columns of a row as a map of JSON or Cypher, without nulls.

    `columns` maps each column name to the text before its value, such as `"id":`.
    """
    parts = []
    for name, key in columns.items():
        dtype = batch.schema[name]
        value = quote_text(name) if dtype == pl.String else pl.col(name)
        if isinstance(dtype, pl.List):
            value = pl.format("[{}]", value.list.eval(quote_text(pl.element())).list.join(","))
        parts.append(pl.format(f",{key}{{}}", value).fill_null(""))
    # Remove the comma that precedes the first field.
    return pl.format("{{{}}}", pl.concat_str(parts).str.slice(1))

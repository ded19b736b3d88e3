"""The graph of an index after filters, read in batches, and its rows as lines of text.

Only the ids of the entities and their communities are held in memory. Lines are built column by
column instead of row by row in Python.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import polars as pl

from graphrag_index.errors import ExportError, listed
from graphrag_index.step import Progress, Silent
from graphrag_index.storage.table_store import TableStore, scan_table
from graphrag_index.storage.versions import Version

BATCH = 16_384  # rows
_MAX_TYPES = 20  # in a message
# XML cannot hold these characters, and readers of CSV fail on some.
_FORBIDDEN = r"[\x00-\x08\x0B\x0C\x0E-\x1F\x{FFFE}\x{FFFF}]"
_QUOTED = {chr(code): f"\\u{code:04X}" for code in (*range(0x20), 0x7F)}
_QUOTED |= {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_XML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
# A parser turns line ends and tabs in an attribute into spaces, and a return into a line end.
_XML |= {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


@dataclass(frozen=True)
class Filters:
    """Conditions that an exported entity meets; a relationship needs both of its ends.

    `level` keeps the members of any community of this level, `community` those of one. `types`
    are alternatives, compared without case. `min_degree` counts the neighbours in the whole
    graph.
    """

    level: int | None = None
    community: int | None = None
    types: tuple[str, ...] = ()
    min_degree: int = 0

    def __bool__(self) -> bool:
        return self != Filters()


@dataclass
class Graph:
    """The entities and relationships that pass the filters; `select_graph` makes it.

    `keys` has one row per entity of the index: `id`, `row`, `kept`, `community` (of the
    requested level, or the coarsest), and `community_level_N` for each level. A community is
    null for an entity in none.
    """

    store: TableStore
    version: Version
    keys: pl.DataFrame
    is_filtered: bool
    progress: Progress = field(default_factory=Silent)
    n_nodes: int = 0
    n_edges: int = 0
    n_dangling: int = 0  # relationships with an end that is no entity, which are left out

    @property
    def communities(self) -> list[str]:
        """The columns of `nodes` that hold a community."""
        return [name for name in self.keys.columns if name.startswith("community")]

    def scan(self, name: str) -> pl.LazyFrame:
        return scan_table(self.store, self.version, name)

    def kept(self) -> pl.LazyFrame:
        """Return the entities of this graph: `id`, and their communities."""
        return self.keys.lazy().filter("kept").drop("row", "kept")

    def node_rows(self) -> pl.LazyFrame:
        """Return the entities with their communities, in the order of their table."""
        number = pl.col("human_readable_id").alias("number")
        columns = "title type description aliases degree frequency x y".split()
        rows = self.scan("entities").select("id", number, *columns)
        return rows.join(self.kept(), on="id", maintain_order="left")

    def nodes(self) -> Iterator[pl.DataFrame]:
        """Yield `node_rows` in batches."""
        self.n_nodes = 0
        for batch in in_batches(self.node_rows()):
            self.n_nodes += batch.height
            self.progress.advance(batch.height)
            yield batch

    def edges(self) -> Iterator[pl.DataFrame]:
        """Yield the relationships, in the order of their table.

        `source` and `target` are ids, `source_row` and `target_row` rows of the entities.
        """
        self.n_edges = self.n_dangling = 0
        rows = self.scan("relationships").select(
            "id",
            number="human_readable_id",
            source="source_id",
            target="target_id",
            type="type",
            description="description",
            # Most formats cannot hold NaN and infinity.
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
        dangles = pl.col("source_kept").is_null() | pl.col("target_kept").is_null()
        for batch in in_batches(rows):
            self.n_dangling += batch.select(dangles.sum()).item()
            self.progress.advance(batch.height)
            edges = batch.filter(kept & ~dangles).drop("source_kept", "target_kept")
            self.n_edges += edges.height
            if edges.height:
                yield edges


def select_graph(
    store: TableStore, version: Version, filters: Filters, progress: Progress | None = None
) -> Graph:
    """Select the entities that pass the filters; raise ExportError if none can."""
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
            f"No entity has {filters.min_degree:,} neighbours: the most that one has is {most:,}."
        )
    passes = pl.col("degree") >= filters.min_degree
    if filters.types:
        passes &= pl.col("type").is_in(_find_types(filters, entities))
    keys = entities.select("id", kept=passes).with_row_index("row").collect(engine="streaming")
    for level in levels:
        members = _members(communities.filter(pl.col("level") == level))
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
        is_member = pl.col("id").is_in(_members(of_one).collect()["id"].implode())
        keys = keys.with_columns(pl.col("kept") & is_member)
    first = ["id", "row", "kept", *(["community"] if levels else [])]
    keys = keys.select(*first, pl.exclude(first)).rechunk()
    progress = progress or Silent()
    progress.start(int(keys["kept"].sum()) + version.tables["relationships"].rows, "rows")
    return Graph(store, version, keys, bool(filters), progress)


def in_batches(rows: pl.LazyFrame, size: int = BATCH) -> Iterator[pl.DataFrame]:
    """Yield rows in their order, in batches of one size."""
    parts = rows.collect_batches(chunk_size=size, maintain_order=True, engine="streaming")
    return of_equal_size(parts, size)


def of_equal_size(parts: Iterable[pl.DataFrame], size: int) -> Iterator[pl.DataFrame]:
    """Rebatch rows to one size, so that the output of all formats is deterministic."""
    pending: list[pl.DataFrame] = []
    n_pending = 0
    for part in parts:
        pending.append(part)
        n_pending += part.height
        if n_pending >= size:
            whole = pl.concat(pending)
            for start in range(0, n_pending - n_pending % size, size):
                yield whole.slice(start, size).rechunk()
            n_pending %= size
            pending = [whole.tail(n_pending)] if n_pending else []
    if n_pending:
        yield pl.concat(pending).rechunk()


def _members(communities: pl.LazyFrame) -> pl.LazyFrame:
    """Return `id` of the members, and the first of these communities that holds each."""
    return (
        communities.select(pl.col("community").cast(pl.Int64), id="entity_ids")
        .explode("id", empty_as_null=False)
        .unique("id", keep="first", maintain_order=True)
    )


def _check_communities(filters: Filters, communities: pl.LazyFrame, levels: list[int]) -> None:
    if filters.level is not None and filters.level not in levels:
        shown = listed(map(str, levels), _MAX_TYPES)
        has = f"has {shown}" if levels else "has no communities"
        raise ExportError(f"There is no level {filters.level}: the index {has}.")
    if filters.community is not None:
        numbers = communities.select("community").collect()["community"].to_list()
        if filters.community not in numbers:
            has = f"go from {min(numbers)} to {max(numbers)}" if numbers else "are none"
            raise ExportError(f"There is no community {filters.community}: the numbers {has}.")


def _find_types(filters: Filters, entities: pl.LazyFrame) -> list[str]:
    """Return the requested types as the index spells them."""
    counts = entities.group_by("type").len().sort("len", "type", descending=[True, False])
    present: list[str] = counts.collect(engine="streaming")["type"].to_list()
    for name in filters.types:
        if name.casefold() not in map(str.casefold, present):
            shown = listed(map(repr, present), _MAX_TYPES) or "none"
            raise ExportError(f"No entity has the type {name!r}: the index has {shown}.")
    wanted = set(map(str.casefold, filters.types))
    return [name for name in present if name.casefold() in wanted]


def text_file(path: Path) -> TextIO:
    """Open a file for UTF-8 text with plain line ends."""
    return path.open("w", encoding="utf-8", newline="\n")


def write_rows(file: TextIO, batches: Iterable[pl.DataFrame], line: pl.Expr) -> None:
    """Write a text for each row as it is, without a separator."""
    for batch in batches:
        texts = batch.select(line)
        # Faster than to join them in Python. Python writes, whose errors have a number.
        file.write(texts.write_csv(include_header=False, quote_style="never", line_terminator=""))


def clean(column: str | pl.Expr) -> pl.Expr:
    """Replace the control characters that XML forbids by the replacement character."""
    text = pl.col(column) if isinstance(column, str) else column
    return text.str.replace_all(_FORBIDDEN, "\ufffd")


def xml(column: str | pl.Expr) -> pl.Expr:
    """Escape a text for an element or an attribute of XML."""
    return clean(column).str.replace_many(_XML)


def quoted(column: str | pl.Expr) -> pl.Expr:
    """Quote and escape a text as JSON, Cypher and N-Triples all read it."""
    text = pl.col(column) if isinstance(column, str) else column
    return pl.format('"{}"', text.str.replace_many(_QUOTED))


def fields(columns: dict[str, str], batch: pl.DataFrame) -> pl.Expr:
    """Write the columns of a row as a map in JSON or Cypher, without nulls.

    `columns` has the key of each as it is written, with its colon.
    """
    parts = []
    for name, key in columns.items():
        dtype = batch.schema[name]
        value = quoted(name) if dtype == pl.String else pl.col(name)
        if isinstance(dtype, pl.List):
            value = pl.format("[{}]", value.list.eval(quoted(pl.element())).list.join(","))
        parts.append(pl.format(f",{key}{{}}", value).fill_null(""))
    # Without the comma of the first field that is not null.
    return pl.format("{{{}}}", pl.concat_str(parts).str.slice(1))

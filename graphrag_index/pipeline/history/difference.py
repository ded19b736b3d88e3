"""How two versions of an index differ: what was added, removed and changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

import polars as pl

from graphrag_index.pipeline.changes import (
    ADDED,
    CHANGED,
    DELETED,
    RENAMED,
    compare_documents,
    digest_documents,
)
from graphrag_index.pipeline.history.version_list import money, spent_as_json
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import Version

REMOVED = "removed"
# Documents read at once: bounds memory, not results.
BATCH = 2_000
# Names of each kind that one screen lists.
MOST = 5
# Citations name rows by number, which others move.
_CITATION = r"\[Data:[^\]]*\]"


@dataclass(frozen=True)
class Compared:
    """What tells the rows of a table apart, how they are named, and what makes one another."""

    key: str
    name: pl.Expr
    content: Sequence[pl.Expr]


# Weights, degrees, places in a drawing and ids of text units move when other documents do: a row
# that differs in nothing else has not changed.
COMPARED = {
    "entities": Compared(
        "id",
        pl.col("title"),
        [pl.col("title", "type", "description", "aliases", "frequency")],
    ),
    "relationships": Compared(
        "id",
        pl.format("{} - {}", "source", "target"),
        [pl.col("source", "target", "type", "description"), pl.col("text_unit_ids").list.len()],
    ),
    "communities": Compared(
        "community",
        pl.col("title"),
        [pl.col("level", "parent"), pl.col("entity_ids").list.sort()],
    ),
    "community_reports": Compared(
        "community",
        pl.format("{}: {}", "community", "title"),
        [pl.col("title"), pl.col("summary", "full_content").str.replace_all(_CITATION, "")],
    ),
}


@dataclass(frozen=True)
class Difference:
    """What became of the rows of one table, by kind: how many there are of it, and their names.

    Records of one file have one name.
    """

    counts: Mapping[str, int]
    names: Mapping[str, Sequence[str]]


def compare(store: TableStore, before: Version, after: Version) -> dict[str, Difference]:
    """Compare the tables of two versions; names are in the order of the tables.

    Entities and relationships are the same by their id, communities and reports by their
    number; documents are paired as a run does it.

    Raises
    ------
    TableError
        A table is missing or damaged.
    """
    found = {"documents": _compare_documents(store, before, after)}
    for name, compared in COMPARED.items():
        names: dict[str, list[str]] = {}
        if _digest(before, name) != _digest(after, name):
            rows = _changes(_scan(store, before, name), _scan(store, after, name), compared)
            names = dict(rows.group_by("kind", maintain_order=True).agg("name").iter_rows())
        kinds = {kind: names.get(kind, []) for kind in (ADDED, REMOVED, CHANGED)}
        found[name] = Difference({kind: len(names) for kind, names in kinds.items()}, kinds)
    return found


def _compare_documents(store: TableStore, before: Version, after: Version) -> Difference:
    old, new = (digest_documents(_documents(store, version)) for version in (before, after))
    changes = compare_documents(old, new)
    # What is gone from a folder was deleted, and what is gone from a table is removed.
    kinds = {ADDED: ADDED, REMOVED: DELETED, CHANGED: CHANGED, RENAMED: RENAMED}
    counts = {kind: changes.count(found) for kind, found in kinds.items()}
    return Difference(counts, {kind: changes.names(found) for kind, found in kinds.items()})


def _documents(store: TableStore, version: Version) -> Iterator[pl.DataFrame]:
    """Read the documents of a version batch by batch, since their texts may be all of a disk."""
    name = "loaded_documents" if "loaded_documents" in version.tables else "documents"
    if any(record.name == "skip_imported" for record in version.steps):
        # Those that came with an imported index are not in the input.
        name = "documents"
    table = version.tables.get(name)
    for start in range(0, table.rows if table else 0, BATCH):
        yield _scan(store, version, name).slice(start, BATCH).collect()


def _digest(version: Version, name: str) -> str:
    table = version.tables.get(name)
    return table.digest if table else ""


def _scan(store: TableStore, version: Version, name: str) -> pl.LazyFrame:
    """Open a table; one that the version does not have is empty."""
    table = version.tables.get(name)
    return store.scan(name, table) if table else TABLES[name].empty().lazy()


def _changes(before: pl.LazyFrame, after: pl.LazyFrame, compared: Compared) -> pl.DataFrame:
    """Return the name of each row that is not the same in both, and what became of it."""
    old, new = (
        # Of long texts no more is held than their hash.
        frame.select(
            key=pl.col(compared.key),
            row=pl.int_range(pl.len()),
            name=compared.name,
            content=pl.struct(*compared.content).hash(),
        )
        for frame in (before, after)
    )
    joined = new.join(old, on="key", how="full", coalesce=True, suffix="_before")
    is_added, is_removed = pl.col("row_before").is_null(), pl.col("row").is_null()
    kind = pl.when(is_added).then(pl.lit(ADDED)).when(is_removed).then(pl.lit(REMOVED))
    return (
        joined.filter(is_added | is_removed | (pl.col("content") != pl.col("content_before")))
        .select(
            name=pl.coalesce("name", "name_before"),
            kind=kind.otherwise(pl.lit(CHANGED)),
            row=pl.coalesce("row", "row_before"),
        )
        .sort("row", "name")
        .collect(engine="streaming")
    )


def as_json(before: Version, after: Version, found: Mapping[str, Difference]) -> dict[str, object]:
    """Describe all differences for a program."""
    old, new = ({"version": one.number, **spent_as_json(one.made)} for one in (before, after))
    tables = {
        name: {kind: {"count": n, "names": one.names[kind]} for kind, n in one.counts.items()}
        for name, one in found.items()
    }
    return {"before": old, "after": new, "tables": tables}


def write_difference(
    before: Version, after: Version, found: Mapping[str, Difference], out: TextIO
) -> None:
    """Print how many rows of each table differ, with a few names."""
    print(f"From version {before.number} to version {after.number}:", file=out)
    for name, one in found.items():
        nothing = ": no difference" * (not any(one.counts.values()))
        print(f"\n{name.replace('_', ' ')}{nothing}", file=out)
        for kind, n in one.counts.items():
            names = one.names[kind]
            more = f", and {len(names) - MOST:,} more" if len(names) > MOST else ""
            if n:
                print(f"  {n:,} {kind}: {', '.join(names[:MOST])}{more}", file=out)
    print(file=out)
    for version in (before, after):
        print(_spent(version), file=out)


def _spent(version: Version) -> str:
    made = version.made
    if made is None:
        return f"What version {version.number} has cost was not noted."
    if not made.calls:
        return f"Version {version.number} asked no model."
    calls = f"{made.calls:,} call{'' if made.calls == 1 else 's'} to models"
    tokens = f"{made.prompt_tokens:,} + {made.completion_tokens:,} tokens"
    dollars = f"{money(made)} dollars" if made.cost is not None else "at a price that is not known"
    return f"Version {version.number}: {calls}, {tokens}, {dollars}."

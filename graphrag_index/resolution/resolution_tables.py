"""Readers of the tables that entity resolution has written into the current index."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.resolution.decisions_file import read_decisions
from graphrag_index.storage.table_store import TableStore
from graphrag_index.text.normalize import title_key

Row = Mapping[str, Any]


def doubtful_pairs(output: Path, path: Path) -> list[Row]:
    """Return the doubtful pairs without a decision in the file `path`, highest score first."""
    decisions = read_decisions(path)
    decided = {frozenset(pair) for pair in decisions.forbidden_pairs()}
    titles = {key: title_key(title) for key, title in decisions.titles.items()}
    rows: list[Row] = []
    for row in read_resolution_table(output, "doubtful_pairs").iter_rows(named=True):
        one, other = title_key(row["title"]), title_key(row["other"])
        same = titles.get(one, one) == titles.get(other, other)
        if frozenset((one, other)) not in decided and not same:
            rows.append(row)
    return rows


def are_merged_in_index(output: Path, one: str, other: str) -> bool:
    """Return whether the index has two different names as one entity."""
    resolved = read_resolution_table(output, "entity_resolutions").select("title", "resolved")
    titles = {title_key(title): title_key(become) for title, become in resolved.iter_rows()}
    keys = title_key(one), title_key(other)
    return keys[0] != keys[1] and len({titles.get(key, key) for key in keys}) == 1


def read_resolution_table(output: Path, name: str) -> pl.DataFrame:
    """Read `entity_resolutions` or `doubtful_pairs`. Raises TableError if the index lacks it."""
    store = TableStore(output)
    version = store.read_pointer()
    if version is None:
        raise TableError(f"There is no index in {output}: `graphrag-index run` builds it.")
    if name not in version.tables:
        raise TableError(
            f"The workflow {version.workflow} wrote the index in {output} without the step "
            "resolve_entities: add the step to the workflow before finalize_graph and "
            "summarize_descriptions, and run it."
        )
    return store.scan(name, version.tables[name]).collect()

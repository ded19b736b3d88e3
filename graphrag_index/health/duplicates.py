"""What is there twice: ids, numbers that citations name, names, links, reports, whole documents."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from graphrag_index.health.finding import EXAMPLES, Finding, Looked
from graphrag_index.health.opened_index import READ, Opened

_MEANS = {
    "id": "Rows that have one id are taken for one another wherever the id stands.",
    "human_readable_id": "A citation of this number means several rows.",
    "community": "A citation of this number means several rows.",
    "title": "An entity is known by its title: its relationships belong to either row.",
    "link": "Two entities are linked twice: the link counts double.",
}


def duplicates(index: Opened) -> Looked:
    """Find rows that share what must be theirs alone."""
    findings: list[Finding] = []
    of = 0
    for table in READ:
        columns = ["id", "human_readable_id"]
        if table in ("communities", "community_reports"):
            # Their number is `community`; human_readable_id is a copy of it.
            columns = ["id", "community"]
        if table == "entities":
            columns.append("title")
        for column in columns:
            if index.has(table, column):
                found, n = _repeated(
                    index.tables[table], [column], f"{table}.{column}", _MEANS[column]
                )
                findings += found
                of += n
    if index.has("relationships", "source", "target"):
        found, n = _repeated(*_links(index), "relationships", _MEANS["link"])
        findings += found
        of += n
    return Looked(of or None, tuple(findings))


def equal_documents(index: Opened) -> Looked:
    """Find documents with the same text."""
    if not index.has("documents", "text"):
        return Looked(None)
    named = next((c for c in ("path", "title", "id") if index.has("documents", c)), "text")
    texts = index.tables["documents"].select(pl.col("text").hash(), name=pl.col(named))
    repeated = (
        texts.collect(engine="streaming")
        .group_by("text", maintain_order=True)
        .agg("name")
        .filter(pl.col("name").list.len() > 1)
    )
    n_documents = int(texts.select(pl.len()).collect().item())
    count = int((repeated["name"].list.len() - 1).sum())
    if not count:
        return Looked(n_documents)
    examples = tuple(
        " = ".join(map(str, names[:3])) for names in repeated["name"].head(EXAMPLES).to_list()
    )
    means = (
        f"{count:,} of {n_documents:,} documents have the text of another: what they say counts "
        "twice. Leave the copies out with load_documents.exclude."
    )
    return Looked(n_documents, (Finding("documents.text", count, n_documents, examples, means),))


def _links(index: Opened) -> tuple[pl.LazyFrame, list[str]]:
    """Return the ends of relationships; ours and only ours have no direction."""
    rows = index.tables["relationships"]
    if not index.is_own:
        return rows, ["source", "target"]
    ends = rows.select(
        source=pl.min_horizontal("source", "target"), target=pl.max_horizontal("source", "target")
    )
    return ends, ["source", "target"]


def _repeated(
    rows: pl.LazyFrame, columns: Sequence[str], name: str, means: str
) -> tuple[list[Finding], int]:
    key = pl.concat_str(
        [pl.col(column).cast(pl.String) for column in columns], separator="\x1f"
    ).alias("key")
    hashes = rows.select(key.hash()).drop_nulls().collect(engine="streaming")["key"].to_numpy()
    hashes = np.sort(hashes)
    again = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    n_rows = len(hashes)
    if not len(again):
        return [], n_rows
    # Different values may have one hash, so the values decide.
    repeated = (
        rows.select(key)
        .filter(pl.col("key").hash().is_in(pl.Series(again).implode()))
        .group_by("key")
        .len()
        .filter(pl.col("len") > 1)
        .collect(engine="streaming")
        .sort("key")
    )
    count = int((repeated["len"] - 1).sum())
    if not count:
        return [], n_rows
    examples = tuple(
        f"{value.replace(chr(31), ' - ')} ({n} times)"
        for value, n in repeated.head(EXAMPLES).iter_rows()
    )
    said = f"{count:,} of {n_rows:,} rows of {name} repeat another. {means} Make the index again."
    return [Finding(name, count, n_rows, examples, said)], n_rows

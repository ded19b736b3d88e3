"""What no community and no report speaks of, and communities that are too large for one report."""

import polars as pl

from graphrag_index.health.finding import Finding, Looked, count_and_first, number_of_rows
from graphrag_index.health.opened_index import Opened, explode, name_row


def uncovered_entities(index: Opened) -> Looked:
    """Find entities in no community, and those whose communities all have no report."""
    if not (index.has("entities", "id") and index.has("communities", "community", "entity_ids")):
        return Looked(None)
    label = "title" if index.has("entities", "title") else index.label("entities")
    entities = index.tables["entities"].select(label=pl.col(label), key=pl.col("id").hash())
    n_entities = number_of_rows(entities)
    outside = entities.join(_members(index.tables["communities"]), on="key", how="anti")
    findings = []
    count, first = count_and_first(outside, ["label", "key"])
    if count:
        means = (
            f"{count:,} of {n_entities:,} entities are in no community: no report can speak of "
            "them, and global search does not know them. Local search finds them."
        )
        findings.append(Finding("entities", count, n_entities, _labels(first), means))
    reported = _reported(index)
    if reported is not None:
        silent = entities.join(_members(reported), on="key", how="anti").join(
            _members(index.tables["communities"]), on="key", how="semi"
        )
        count, first = count_and_first(silent, ["label", "key"])
        if count:
            means = (
                f"{count:,} of {n_entities:,} entities are in communities of which none has a "
                "report. `graphrag-index retry` asks again for reports that failed."
            )
            findings.append(Finding("community_reports", count, n_entities, _labels(first), means))
    return Looked(n_entities, tuple(findings))


def uncovered_documents(index: Opened) -> Looked:
    """Find documents of which no passage, and no entity in one, is in a community or a report."""
    units = index.text_unit_documents()
    if units is None or not index.has("documents", "id") or not index.has("communities"):
        return Looked(None)
    label = next(c for c in ("path", "title", "id") if index.has("documents", c))
    documents = index.tables["documents"].select(label=pl.col(label), key=pl.col("id").hash())
    n_documents = number_of_rows(documents)
    units = units.select(unit=pl.col("id").hash(), key=pl.col("document_id").hash())
    covered = _documents_of(index, index.tables["communities"], units)
    if covered is None:
        return Looked(None)
    findings = []
    count, first = count_and_first(documents.join(covered, on="key", how="anti"), ["label", "key"])
    if count:
        means = (
            f"{count:,} of {n_documents:,} documents are in no community, mostly since no entity "
            "was found in them: only a search in the texts finds them."
        )
        findings.append(Finding("documents", count, n_documents, _labels(first), means))
    reported = _reported(index)
    reported_documents = None if reported is None else _documents_of(index, reported, units)
    if reported_documents is not None:
        silent = documents.join(reported_documents, on="key", how="anti").join(
            covered, on="key", how="semi"
        )
        count, first = count_and_first(silent, ["label", "key"])
        if count:
            means = (
                f"{count:,} of {n_documents:,} documents are only in communities without a "
                "report. `graphrag-index retry` asks again for reports that failed."
            )
            findings.append(Finding("community_reports", count, n_documents, _labels(first), means))
    return Looked(n_documents, tuple(findings))


def oversized_communities(index: Opened, most: int) -> Looked:
    """Find communities that are not split further and have more than `most` entities."""
    if not index.has("communities", "community"):
        return Looked(None)
    if index.has("communities", "entity_ids"):
        size = pl.col("entity_ids").list.n_unique()
    elif index.has("communities", "size"):
        size = pl.col("size")
    else:
        return Looked(None)
    communities = index.tables["communities"]
    leaves = communities.select("community", n=size)
    if index.has("communities", "parent"):
        leaves = leaves.join(
            communities.select(community="parent").unique(), on="community", how="anti"
        )
    count, first = count_and_first(
        leaves.filter(pl.col("n") > most).with_columns(smallness=-pl.col("n").cast(pl.Int64)),
        ["smallness", "community"],
    )
    n_leaves = number_of_rows(leaves)
    if not count:
        return Looked(n_leaves)
    examples = tuple(
        f"{name_row('communities', number)}: {n:,} entities"
        for number, n in first.select("community", "n").iter_rows()
    )
    means = (
        f"{count:,} of {n_leaves:,} communities that are not split further have more than {most:,} "
        "entities: one report cannot speak of all. Lower create_communities.max_cluster_size, or "
        "raise max_levels or the resolution."
    )
    return Looked(n_leaves, (Finding("communities", count, n_leaves, examples, means),))


def _members(communities: pl.LazyFrame) -> pl.LazyFrame:
    """Return the keys of all that is in these communities."""
    return explode(communities.select(key="entity_ids"), "key").select(pl.col("key").hash())


def _reported(index: Opened) -> pl.LazyFrame | None:
    """Return the communities that have a report; None if there are no reports at all."""
    if not index.has("community_reports", "community") or not index.has("communities", "community"):
        return None
    reports = index.tables["community_reports"].select("community")
    return index.tables["communities"].join(reports, on="community", how="semi")


def _documents_of(
    index: Opened, communities: pl.LazyFrame, units: pl.LazyFrame
) -> pl.LazyFrame | None:
    """Return the keys of documents with a text unit of these communities or of their members."""
    named = []
    if index.has("communities", "text_unit_ids"):
        named.append(explode(communities.select(unit="text_unit_ids"), "unit"))
    if index.has("communities", "entity_ids") and index.has("entities", "id", "text_unit_ids"):
        entities = index.tables["entities"].select("text_unit_ids", key=pl.col("id").hash())
        inside = entities.join(_members(communities), on="key", how="semi")
        named.append(explode(inside.select(unit="text_unit_ids"), "unit"))
    if not named:
        return None
    covered = pl.concat(named).select(pl.col("unit").hash())
    return units.join(covered, on="unit", how="semi").select("key").unique()


def _labels(rows: pl.DataFrame) -> tuple[str, ...]:
    return tuple(str(label) for label in rows["label"])

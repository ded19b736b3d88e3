"""The evidence of imported reports, so that a run keeps a report while its evidence stays."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.reports.community_members import CommunityMembers
from graphrag_index.reports.report import CitedReport, Finding, Report
from graphrag_index.reports.report_evidence import CommunityEvidence, ReportEvidence, evidence_rows
from graphrag_index.reports.report_writer import IMPORTED_PROMPT
from graphrag_index.schema.list_columns import Integers, gather_lists, positions, spread_lists
from graphrag_index.text.citations import renumber_citations
from graphrag_index.text.normalize import title_key

Tables = Mapping[str, pl.LazyFrame]


def evidence_of_reports(imported: Tables, now: Tables) -> pl.DataFrame:
    """Return `report_evidence` of imported reports.

    Parameters
    ----------
    imported
        The tables as they were.
    now
        Entities, relationships and text units as the first run makes them: names that differ
        in case alone are merged, and relationships with an unknown end dropped.
    """
    nodes = now["entities"].select("id", "title").collect()
    links = now["relationships"].select("id", "source_id", "target_id").collect()
    before = imported["entities"].select("id", "title").collect()
    row_of = {title_key(title): row for row, title in enumerate(nodes["title"])}
    new_nodes = np.array([row_of[title_key(title)] for title in before["title"]], np.int64)
    # Imported relationships with an unknown end, at position -1, get no row.
    old_ends = imported["relationships"].select("source_id", "target_id").collect()
    old_pairs = _pairs(old_ends, before["id"], np.append(new_nodes, -1))
    own_rows = np.append(np.arange(nodes.height), -1)
    link_row = {pair: row for row, pair in enumerate(_pairs(links, nodes["id"], own_rows))}
    communities = _communities(imported["communities"], before["id"], new_nodes, nodes, links)
    covariates = imported["covariates"]
    members = CommunityMembers.of(communities, now["entities"], now["relationships"], covariates)
    evidence = CommunityEvidence(
        members, now["entities"], now["relationships"], now["base_text_units"]
    )
    numbers = communities["community"]
    claim_ids = covariates.select("id").collect()["id"]
    community_row = {number: row for row, number in enumerate(numbers)}
    new_rows = {
        "Entities": dict(enumerate(new_nodes.tolist())),
        "Relationships": {row: link_row.get(pair, -1) for row, pair in enumerate(old_pairs)},
        "Claims": {row: row for row in range(len(claim_ids))},
        "Reports": community_row,
    }
    keys = {
        "Reports": numbers,
        "Entities": nodes["id"],
        "Relationships": links["id"],
        "Claims": claim_ids,
    }
    columns = ("community", "title", "summary", "findings", "rank", "rating_explanation")
    reports = imported["community_reports"].select(columns).collect()
    written = {
        community_row[row["community"]]: ReportEvidence(_with_local_citations(row, new_rows))
        for row in reports.iter_rows(named=True)
        if row["community"] in community_row
    }
    known = evidence.of(np.array([*written], np.int64))
    return evidence_rows(written, known, keys, IMPORTED_PROMPT)


def _pairs(links: pl.DataFrame, ids: pl.Series, rows: Integers) -> list[frozenset[int]]:
    """Return the two ends of each relationship as `rows` numbers the entities of `ids`."""
    ends = (rows[positions(links[end], ids)].tolist() for end in ("source_id", "target_id"))
    return [frozenset(pair) for pair in zip(*ends, strict=True)]


def _communities(
    communities: pl.LazyFrame,
    ids: pl.Series,
    new_nodes: Integers,
    nodes: pl.DataFrame,
    links: pl.DataFrame,
) -> pl.DataFrame:
    """Return the communities with their new members, and the relationships between these."""
    rows = communities.select("community", "entity_ids").collect()
    owners, members = spread_lists(rows["entity_ids"])
    at = positions(members, ids)
    held = pl.DataFrame({"row": owners[at >= 0], "entity": new_nodes[at[at >= 0]]}).unique()
    held = held.sort("row", "entity")
    ends = pl.DataFrame(
        {end: positions(links[f"{end}_id"], nodes["id"]) for end in ("source", "target")}
    ).with_columns(id=links["id"])
    inner = (
        ends.join(held, left_on="source", right_on="entity")
        .join(held, left_on=["target", "row"], right_on=["entity", "row"])
        .select("row", "id")
        .sort("row", "id")
    )
    held_ids = nodes["id"].gather(held["entity"])
    return rows.with_columns(
        gather_lists(held["row"].to_numpy(), held_ids, rows.height).alias("entity_ids"),
        gather_lists(inner["row"].to_numpy(), inner["id"], rows.height).alias("relationship_ids"),
    )


def _with_local_citations(
    row: Mapping[str, Any], new_rows: Mapping[str, Mapping[int, int]]
) -> CitedReport:
    """Make a report cite its rows by their index in lists of its own."""
    rows: dict[str, list[int]] = {}

    def local_number(section: str, number: int) -> int | None:
        at = new_rows.get(section, {}).get(number, -1)
        if at < 0:
            return None
        cited = rows.setdefault(section, [])
        if at not in cited:
            cited.append(at)
        return cited.index(at)

    def text(said: object) -> str:
        return renumber_citations(str(said), local_number)[0]

    report = Report(
        text(row["title"]),
        text(row["summary"]),
        tuple(Finding(text(f["summary"]), text(f["explanation"])) for f in row["findings"]),
        row["rank"],
        text(row["rating_explanation"]),
    )
    return CitedReport(report, rows)

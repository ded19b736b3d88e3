"""What imported reports rest on, so that a run keeps them while that is as it was."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from graphrag_index.reports.community_members import Holdings
from graphrag_index.reports.evidence_rows import WrittenOn, evidence_rows
from graphrag_index.reports.local_citations import Written
from graphrag_index.reports.previous_reports import IMPORTED
from graphrag_index.reports.report import Finding, Report
from graphrag_index.reports.report_evidence import EvidenceOfCommunities
from graphrag_index.schema.list_columns import Integers, gather_lists, positions, spread_lists
from graphrag_index.text.citations import renumber_citations
from graphrag_index.text.normalize import title_key

Tables = Mapping[str, pl.LazyFrame]
# Which of the rows that stand now is each imported one, -1 if none.
Moved = Mapping[str, Integers]


def evidence_of_reports(imported: Tables, now: Tables) -> pl.DataFrame:
    """Return `report_evidence` of imported reports, whoever wrote them.

    Parameters
    ----------
    imported
        The tables as they were.
    now
        Entities, relationships and text units as the first run has them, where two names
        that differ in case alone are one, and what has an unknown end is gone.
    """
    nodes = now["entities"].select("id", "title").collect()
    links = now["relationships"].select("id", "source_id", "target_id").collect()
    before = imported["entities"].select("id", "title").collect()
    row_of = {title_key(title): row for row, title in enumerate(nodes["title"])}
    moved_nodes = np.array([row_of[title_key(title)] for title in before["title"]], np.int64)
    communities = _communities(imported["communities"], before["id"], moved_nodes, nodes, links)
    covariates = imported["covariates"]
    holdings = Holdings.of(communities, now["entities"], now["relationships"], covariates)
    evidence = EvidenceOfCommunities(
        holdings, now["entities"], now["relationships"], now["base_text_units"]
    )
    numbers = communities["community"]
    claim_ids = covariates.select("id").collect()["id"]
    moved = {
        "Entities": moved_nodes,
        "Relationships": _moved_links(
            imported["relationships"], before["id"], moved_nodes, nodes["id"], links
        ),
        "Claims": np.arange(len(claim_ids)),
    }
    keys = {
        "Reports": numbers,
        "Entities": nodes["id"],
        "Relationships": links["id"],
        "Claims": claim_ids,
    }
    at_of = {number: at for at, number in enumerate(numbers)}
    columns = ("community", "title", "summary", "findings", "rank", "rating_explanation")
    reports = imported["community_reports"].select(columns).collect()
    written = {}
    for row in reports.iter_rows(named=True):
        at = at_of.get(row["community"])
        if at is not None:
            written[at] = WrittenOn(_written(row, moved, at_of))
    known = evidence.of(np.array([*written], np.int64))
    return evidence_rows(written, known, keys, IMPORTED)


def _communities(
    communities: pl.LazyFrame,
    ids: pl.Series,
    moved: Integers,
    nodes: pl.DataFrame,
    links: pl.DataFrame,
) -> pl.DataFrame:
    """The communities with the members that they have now, and the relationships between these."""
    rows = communities.select("community", "entity_ids").collect()
    owners, members = spread_lists(rows["entity_ids"])
    at = positions(members, ids)
    held = pl.DataFrame({"row": owners[at >= 0], "entity": moved[at[at >= 0]]}).unique()
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
    n_rows = rows.height
    return rows.with_columns(
        gather_lists(held["row"].to_numpy(), nodes["id"].gather(held["entity"]), n_rows).alias(
            "entity_ids"
        ),
        gather_lists(inner["row"].to_numpy(), inner["id"], n_rows).alias("relationship_ids"),
    )


def _moved_links(
    relationships: pl.LazyFrame,
    ids: pl.Series,
    moved: Integers,
    nodes: pl.Series,
    links: pl.DataFrame,
) -> Integers:
    """Which relationship of now each imported one is, by its ends."""
    before = relationships.select("source_id", "target_id").collect()
    # An end that is no entity is the last, and becomes none.
    of = np.append(moved, -1)
    ends = (of[positions(before[f"{end}_id"], ids)] for end in ("source", "target"))
    row_of = {
        frozenset(pair): row
        for row, pair in enumerate(
            zip(
                *(positions(links[f"{end}_id"], nodes).tolist() for end in ("source", "target")),
                strict=True,
            )
        )
    }
    return np.array([row_of.get(frozenset(pair), -1) for pair in zip(*ends, strict=True)], np.int64)


def _written(row: Mapping[str, object], moved: Moved, at_of: Mapping[int, int]) -> Written:
    """Let a report cite rows by their places in lists of its own."""
    rows: dict[str, list[int]] = {}

    def place(section: str, number: int) -> int | None:
        if section == "Reports":
            at = at_of.get(number, -1)
        else:
            known = moved.get(section, ())
            at = int(known[number]) if 0 <= number < len(known) else -1
        if at < 0:
            return None
        cited = rows.setdefault(section, [])
        if at not in cited:
            cited.append(at)
        return cited.index(at)

    def text(said: object) -> str:
        return renumber_citations(str(said), place)[0]

    findings: list[dict[str, str]] = row["findings"]  # type: ignore[assignment]
    report = Report(
        text(row["title"]),
        text(row["summary"]),
        tuple(Finding(text(found["summary"]), text(found["explanation"])) for found in findings),
        row["rank"],  # type: ignore[arg-type]
        text(row["rating_explanation"]),
    )
    return Written(report, rows)

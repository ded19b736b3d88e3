"""Communities and their reports."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl
from fastapi import APIRouter, Query
from pydantic import BaseModel

from graphrag_query.store.filtered_index import FilteredIndex
from graphrag_query.store.index_store import IndexStore
from graphrag_server.routes.entities import Community, read_communities
from graphrag_server.table_pages import (
    Page,
    Paging,
    Span,
    Version,
    no_such_row,
    read_page,
    read_spans,
)

router = APIRouter(prefix="/v1/indexes/{index}", tags=["communities"])

# Maximum number of neighbours of a community.
MAX_NEIGHBOURS = 50
_STATEMENT_FIELDS = ("finding", "text", "n_documents")
Level = Annotated[int | None, Query(ge=0, le=1_000, description="0 is the coarsest level.")]


class Finding(BaseModel):
    """One finding of a report."""

    summary: str
    explanation: str


class Statement(BaseModel):
    """A statement of a report, and the sentences of documents that state it.

    `finding` is the number of its finding, from 0; null is the summary. `n_documents` is the number
    of documents that state it: 1 is a single source, and 0 means that no cited passage states it.
    `sources` has the sentences of at most five documents.
    """

    finding: int | None
    text: str
    n_documents: int
    sources: list[Span]


class ReportSummary(BaseModel):
    """A report without its full text."""

    community: int
    level: int
    title: str
    summary: str
    rank: float
    size: int


class Report(ReportSummary):
    """The report on one community. Numbers in square brackets cite rows of other tables."""

    parent: int
    children: list[int]
    findings: list[Finding]
    full_content: str
    statements: list[Statement]


class CommunityNeighbour(Community):
    """A community of the same level, with the weight of the relationships to it."""

    weight: float


class CommunityDetails(Community):
    """A community with its ancestors, the coarsest first, its children and its neighbours."""

    ancestors: list[Community]
    child_communities: list[Community]
    neighbours: list[CommunityNeighbour]
    has_report: bool


@router.get("/communities")
def list_communities(
    opened: Version,
    page: Paging,
    level: Level = None,
    parent: Annotated[
        int | None, Query(ge=-1, lt=2**31, description="Number of the parent; -1: none.")
    ] = None,
) -> Page[Community]:
    """List communities, the coarsest and largest first. Sort by size, level, title or number."""
    rows = opened.store.scan("communities").with_columns(human_readable_id=pl.col("community"))
    if opened.whole.has_table("community_reports"):
        reports = opened.whole.scan("community_reports").select("community", report="title")
        rows = rows.join(reports, on="community", how="left").with_columns(
            title=pl.coalesce("report", "title")
        )
    rows = rows.with_columns(
        # Sort by level, then by size descending.
        order=pl.col("level") - pl.col("size") / (pl.col("size").max() + 1),
    )
    rows = _filter_communities(opened, rows, level)
    if parent is not None:
        rows = rows.filter(pl.col("parent") == parent)
    sorts = {name: name for name in ("order", "size", "level", "title")}
    return read_page(
        *(opened, rows, page, read_communities),
        sorts=sorts | {"number": "community"},
        default_sort="order",
        searched=("title",),
    )


@router.get("/communities/{number}")
def read_community(opened: Version, number: int) -> CommunityDetails:
    """Return a community with its ancestors, children and neighbours of the same level."""
    store = opened.whole
    found = read_communities(store, [number])
    if not found:
        raise no_such_row("community", number)
    community, ancestors = found[0], list[Community]()
    parent = community.parent
    while parent >= 0 and (above := read_communities(store, [parent])):
        ancestors.insert(0, above[0])
        parent = above[0].parent
    weights = _neighbour_weights(store, number, community.level)
    neighbours = {one.community: one for one in read_communities(store, list(weights))}
    return CommunityDetails(
        **community.model_dump(),
        ancestors=ancestors,
        child_communities=read_communities(store, community.children),
        neighbours=[
            CommunityNeighbour(**neighbours[at].model_dump(), weight=weight)
            for at, weight in weights.items()
            if at in neighbours
        ],
        has_report=store.has_table("report_rows") and store.reports([number]).height > 0,
    )


@router.get("/reports")
def list_reports(opened: Version, page: Paging, level: Level = None) -> Page[ReportSummary]:
    """List reports, those with the highest rank first. Sort by rank, size, level or title."""
    rows = opened.store.scan("community_reports")
    rows = rows.with_columns(human_readable_id=pl.col("community"))
    rows = _filter_communities(opened, rows, level)
    return read_page(
        *(opened, rows, page, _read_summaries),
        sorts={name: name for name in ("rank", "size", "level", "title", "community")},
        default_sort="-rank",
        searched=("title", "summary"),
    )


def _read_summaries(store: IndexStore, numbers: list[int]) -> list[ReportSummary]:
    rows = store.reports(numbers).to_dicts() if numbers else []
    return [ReportSummary.model_validate(row) for row in rows]


@router.get("/reports/{number}")
def read_report(opened: Version, number: int) -> Report:
    """Return the report on a community."""
    report = opened.whole.report(number) if opened.whole.has_table("report_rows") else None
    if report is None:
        raise no_such_row("report on community", number)
    names = Report.model_fields.keys() - {"statements"}
    fields: dict[str, Any] = {name: report[name] for name in names}
    # An index of an earlier version has no statements.
    records = report.get("statements") or []
    return Report.model_validate({**fields, "statements": _read_statements(opened.whole, records)})


def _filter_communities(opened: Version, rows: pl.LazyFrame, level: int | None) -> pl.LazyFrame:
    """Keep the rows of a level, and those that the filters of a request keep."""
    if isinstance(opened.store, FilteredIndex):
        kept = pl.Series(sorted(opened.store.masks.communities), dtype=pl.Int64).implode()
        rows = rows.filter(pl.col("community").is_in(kept))
    return rows if level is None else rows.filter(pl.col("level") == level)


def _read_statements(store: IndexStore, records: list[Mapping[str, Any]]) -> list[Statement]:
    """Read the statements of a report; each of their records is one sentence of a document."""
    ids = pl.Series([one["document_id"] for one in records], dtype=pl.String)
    documents = store.scan("documents").filter(pl.col("id").is_in(ids.drop_nulls().implode()))
    numbers = dict(documents.select("id", "human_readable_id").collect().iter_rows())
    statements: dict[int, Statement] = {}
    places: dict[int, list[dict[str, int]]] = {}
    for one in records:
        number, fields = one["statement"], {name: one[name] for name in _STATEMENT_FIELDS}
        statements.setdefault(number, Statement(**fields, sources=[]))
        if one["document_id"] in numbers:
            place = {name: one[name] for name in ("start_char", "end_char")}
            document = numbers[one["document_id"]]
            places.setdefault(number, []).append({"document": document, **place})
    for number, found in places.items():
        statements[number].sources = read_spans(store, found)
    return list(statements.values())


def _neighbour_weights(store: IndexStore, number: int, level: int) -> dict[int, float]:
    """Return the weights of the relationships to other communities of the level, by community.

    The communities with the highest weights come first.
    """
    members = store.communities([number])["entities"][0].to_numpy()
    table = store.open_mapped("communities_of_entities")
    community_of = np.full(store.n_rows("entity_rows"), -1, np.int32)
    at_level = table.slice("level", 0, len(table)) == level
    entities = table.slice("entity", 0, len(table))[at_level]
    community_of[entities] = table.slice("community", 0, len(table))[at_level]
    weights: dict[int, float] = {}
    for entity in members.tolist():
        around = store.links.relationships_of(entity)
        for other, weight in zip(
            community_of[around.entities].tolist(), around.weights.tolist(), strict=True
        ):
            if other not in (-1, number):
                weights[other] = weights.get(other, 0.0) + weight
    best = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    return dict(best[:MAX_NEIGHBOURS])

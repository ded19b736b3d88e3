"""The table `report_evidence`: how reports become its rows, and its rows reports again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import polars as pl

from graphrag_index.reports.local_citations import Written
from graphrag_index.reports.report import Finding, Report, text_columns
from graphrag_index.reports.report_evidence import Flags, Hashes
from graphrag_index.schema.list_columns import gather_lists, positions, spread_lists
from graphrag_index.schema.tables import TABLES

TABLE = TABLES["report_evidence"]
# The column of what a report cites, by section: ids, or numbers of communities.
CITED = {
    "Entities": "entity_ids",
    "Relationships": "relationship_ids",
    "Claims": "claim_ids",
    "Reports": "communities",
}
# What may be cited, by section: the ids of rows, and the numbers of communities.
Keys = Mapping[str, pl.Series]
# Of each report, by section, where what it cites stands among the keys; -1 if nowhere.
Places = Mapping[str, Sequence[Sequence[int]]]


@dataclass(frozen=True)
class WrittenOn:
    """A report, and what it rests on beside the evidence of its community.

    `borrowed` are text units behind the reports on sub-communities that were shown for it and
    are not behind its own rows; `request` is what the ledger knows it by.
    """

    written: Written
    borrowed: Hashes = field(default_factory=lambda: np.zeros(0, np.uint64))
    request: str = ""


def evidence_rows(
    reports: Mapping[int, WrittenOn], evidence: pl.DataFrame, keys: Keys, asked: str
) -> pl.DataFrame:
    """Make the rows of the table, in the order of the mapping from rows of communities.

    `evidence` is what `EvidenceOfCommunities` says of these.
    """
    written = [on.written for on in reports.values()]
    columns = {
        "community": keys["Reports"].gather([*reports]),
        "asked": pl.repeat(asked, len(written), dtype=pl.String, eager=True),
        "request": pl.Series([on.request for on in reports.values()], dtype=pl.String),
        **evidence.to_dict(),
        "borrowed_text_unit_hashes": _lists([on.borrowed for on in reports.values()]),
        **text_columns([one.report for one in written]),
    }
    for section, column in CITED.items():
        columns[column] = _named([one.rows.get(section, ()) for one in written], keys[section])
    return pl.DataFrame({name: columns[name] for name in TABLE.schema})


def read_cited(rows: pl.DataFrame, keys: Keys) -> tuple[Places, Flags]:
    """Find what reports cite; tell of each whether all of that is there."""
    places = {section: _places(rows[column], keys[section]) for section, column in CITED.items()}
    is_there = [
        all(place >= 0 for cited in lists for place in cited)
        for lists in zip(*places.values(), strict=True)
    ]
    return places, np.array(is_there, bool)


def read_written(rows: pl.DataFrame, places: Places) -> Iterator[Written]:
    """Make reports of rows, one after the other."""
    said = rows.select("title", "summary", "findings", "rank", "rating_explanation").iter_rows()
    for row, (title, summary, found, rank, explanation) in enumerate(said):
        findings = tuple(Finding(one["summary"], one["explanation"]) for one in found)
        cited = {section: lists[row] for section, lists in places.items() if lists[row]}
        yield Written(Report(title, summary, findings, rank, explanation), cited)


def _named(lists: Sequence[Sequence[int]], keys: pl.Series) -> pl.Series:
    """Undo `_places`: lists of what stands at these places in `keys`."""
    owners = np.repeat(np.arange(len(lists)), [len(places) for places in lists])
    return gather_lists(owners, keys.gather([at for places in lists for at in places]), len(lists))


def _places(lists: pl.Series, keys: pl.Series) -> list[list[int]]:
    """Where in `keys` the members of each list stand, -1 if nowhere."""
    owners, values = spread_lists(lists)
    places = positions(values, keys).tolist()
    bounds = np.searchsorted(owners, np.arange(len(lists) + 1))
    return [places[first:last] for first, last in pairwise(bounds.tolist())]


def _lists(hashes: Sequence[Hashes]) -> pl.Series:
    """Make a column of lists."""
    owners = np.repeat(np.arange(len(hashes)), [len(some) for some in hashes])
    values = np.concatenate([np.zeros(0, np.uint64), *hashes])
    return gather_lists(owners.astype(np.int64), pl.Series(values, dtype=pl.UInt64), len(hashes))

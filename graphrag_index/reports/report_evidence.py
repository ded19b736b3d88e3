"""The evidence of reports, as hashes, and the table `report_evidence`.

A later run compares the hashes to see how much of the evidence has changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.reports.community_members import CommunityMembers
from graphrag_index.reports.report import CitedReport, Finding, Report, text_columns
from graphrag_index.schema.list_columns import (
    Grouped,
    Integers,
    gather_lists,
    positions,
    spread_lists,
)
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.memo import content_ids, list_pairs

Flags = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]
# Ids of the rows that may be cited, by section; for Reports community numbers.
Keys = Mapping[str, pl.Series]
# By section, the positions among the keys of what each report cites; -1 if it is gone.
Positions = Mapping[str, Sequence[Sequence[int]]]

TABLE = TABLES["report_evidence"]
# Column of the cited rows, by section.
CITED = {
    "Entities": "entity_ids",
    "Relationships": "relationship_ids",
    "Claims": "claim_ids",
    "Reports": "communities",
}
# Rows hashed at once: bounds memory, not results.
BATCH_HASHED = 10_000


def share_changed(now: pl.DataFrame, before: pl.DataFrame) -> npt.NDArray[np.float64]:
    """Return the share of rows and text units that changed, 0 to 1, for each community."""
    same, most = np.zeros(now.height, np.int64), np.ones(now.height, np.int64)
    columns = ("row_hashes", "text_unit_hashes")
    for column in columns:
        same += _n_common(now[column], before[column])
    for side in (now, before):
        most = np.maximum(most, sum(_lengths(side[column]) for column in columns))
    shares: npt.NDArray[np.float64] = 1 - same / most
    return shares


def have_half_the_members(now: pl.DataFrame, before: pl.DataFrame) -> Flags:
    """Return the communities of which at least half of the members are the same."""
    first, second = now["member_hashes"], before["member_hashes"]
    flags: Flags = 2 * _n_common(first, second) >= np.maximum(_lengths(first), _lengths(second))
    return flags


def _n_common(first: pl.Series, second: pl.Series) -> Integers:
    """Count the common values of lists without duplicates, pair by pair."""
    return _lengths(first.list.set_intersection(second))


def _lengths(lists: pl.Series) -> Integers:
    lengths: Integers = lists.list.len().cast(pl.Int64).to_numpy()
    return lengths


class CommunityEvidence:
    """The evidence of communities. Communities are referred to by their rows."""

    def __init__(
        self,
        members: CommunityMembers,
        entities: pl.LazyFrame,
        relationships: pl.LazyFrame,
        base_text_units: pl.LazyFrame,
    ) -> None:
        self._members = members
        nodes, links, claims = members.entities, members.relationships, members.claims
        self._ids = row_hashes("id", nodes.select("id"))
        self._nodes = row_hashes("entity", nodes.select("id", "title", "type", "description"))
        self._links = row_hashes("relationship", links.select("id", "type", "description"))
        texts = claims.columns[claims.columns.index("human_readable_id") + 1 : -1]
        self._claims = row_hashes("claim", claims.select("id", *texts))
        ids = base_text_units.select("id").collect()["id"]
        self._text_units = row_hashes("text unit", pl.DataFrame([ids]))
        self._all_text_units = pl.Series(self._text_units).unique()
        self._units_of_nodes = _text_units(entities, nodes["row"], ids)
        self._units_of_links = _text_units(relationships, links["row"], ids)
        self._unit_of_claim = positions(claims["text_unit_id"], ids)

    def of(self, communities: Integers) -> pl.DataFrame:
        """Return the evidence of communities, as ascending lists of hashes without duplicates.

        `row_hashes` are of the entities, relationships and claims with their texts,
        `member_hashes` of the ids of the entities, `text_unit_hashes` of the ids of the text
        units that support any of these rows.
        """
        held = self._members
        owners, members = held.members.take(communities)
        link_owners, links = held.inner.take(communities)
        at, claims = held.claims_of.take(members)
        claim_owners = owners[at]
        at_members, node_units = self._units_of_nodes.take(members)
        at_links, link_units = self._units_of_links.take(links)
        claim_units = self._unit_of_claim[claims]
        known = claim_units >= 0
        lists = {
            "row_hashes": (
                (owners, self._nodes[members]),
                (link_owners, self._links[links]),
                (claim_owners, self._claims[claims]),
            ),
            "member_hashes": ((owners, self._ids[members]),),
            "text_unit_hashes": (
                (owners[at_members], self._text_units[node_units]),
                (link_owners[at_links], self._text_units[link_units]),
                (claim_owners[known], self._text_units[claim_units[known]]),
            ),
        }
        return pl.DataFrame(
            {name: _distinct_lists(parts, len(communities)) for name, parts in lists.items()}
        )

    def have_all_text_units(self, text_units: pl.Series) -> Flags:
        """Return the lists of hashes whose text units are all still there."""
        owners, wanted = spread_lists(text_units)
        flags = np.ones(len(text_units), bool)
        flags[owners[~wanted.is_in(self._all_text_units).to_numpy()]] = False
        return flags


def row_hashes(kind: str, rows: pl.DataFrame) -> Hashes:
    """Hash rows of one kind; unlike the hashes of polars, these are the same in every run."""
    texts = rows.select(pl.all().cast(pl.String).fill_null(""))
    hashes = [np.zeros(0, np.uint64)]
    for part in texts.iter_slices(BATCH_HASHED):
        first_half = content_ids(kind, *part).str.head(16)
        hashes.append(first_half.str.to_integer(base=16, dtype=pl.UInt64).to_numpy())
    return np.concatenate(hashes)


def _text_units(table: pl.LazyFrame, order: pl.Series, ids: pl.Series) -> Grouped:
    """Group the text units of a table's rows, which are sorted in `order`."""
    place = np.empty(len(order), np.int64)
    place[order.to_numpy()] = np.arange(len(order))
    rows, units = list_pairs(table.select("text_unit_ids"), ids)
    return Grouped(place[rows], units, len(order))


def _distinct_lists(parts: Sequence[tuple[Integers, Hashes]], n_lists: int) -> pl.Series:
    """Merge the hashes of each owner from all parts to one list."""
    owners, hashes = (np.concatenate(side) for side in zip(*parts, strict=True))
    pairs = pl.DataFrame({"owner": owners, "hash": hashes}).unique().sort("owner", "hash")
    return gather_lists(pairs["owner"].to_numpy(), pairs["hash"], n_lists)


@dataclass(frozen=True)
class ReportEvidence:
    """A report, and its evidence besides that of its community.

    `borrowed` are hashes of the text units behind reports in its prompt that do not support its
    own rows; `request_key` is that of the ledger.
    """

    report: CitedReport
    borrowed: Hashes = field(default_factory=lambda: np.zeros(0, np.uint64))
    request_key: str = ""


def evidence_rows(
    reports: Mapping[int, ReportEvidence], evidence: pl.DataFrame, keys: Keys, prompt_hash: str
) -> pl.DataFrame:
    """Return the rows of `report_evidence`, in the order of `reports`.

    `reports` are by the rows of their communities; `evidence` is that of these communities.
    """
    found = [one.report for one in reports.values()]
    columns = {
        "community": keys["Reports"].gather([*reports]),
        "prompt_hash": pl.repeat(prompt_hash, len(found), dtype=pl.String, eager=True),
        "request_key": pl.Series([one.request_key for one in reports.values()], dtype=pl.String),
        **evidence.to_dict(),
        "borrowed_text_unit_hashes": _lists(
            [pl.Series(one.borrowed, dtype=pl.UInt64) for one in reports.values()], pl.UInt64()
        ),
        **text_columns([one.report for one in found]),
    }
    for section, column in CITED.items():
        cited = [keys[section].gather(list(one.rows.get(section, ()))) for one in found]
        columns[column] = _lists(cited, keys[section].dtype)
    return pl.DataFrame({name: columns[name] for name in TABLE.schema})


def find_cited(rows: pl.DataFrame, keys: Keys) -> tuple[Positions, Flags]:
    """Find the rows that reports cite, and the reports of which all of these exist."""
    cited = {section: _positions(rows[column], keys[section]) for section, column in CITED.items()}
    is_whole = [
        all(position >= 0 for positions in lists for position in positions)
        for lists in zip(*cited.values(), strict=True)
    ]
    return cited, np.array(is_whole, bool)


def read_reports(rows: pl.DataFrame, cited: Positions) -> Iterator[CitedReport]:
    """Read reports from rows of `report_evidence`, one after the other."""
    texts = rows.select("title", "summary", "findings", "rank", "rating_explanation").iter_rows()
    for row, (title, summary, found, rank, explanation) in enumerate(texts):
        findings = tuple(Finding(one["summary"], one["explanation"]) for one in found)
        own = {section: lists[row] for section, lists in cited.items() if lists[row]}
        yield CitedReport(Report(title, summary, findings, rank, explanation), own)


def _positions(lists: pl.Series, keys: pl.Series) -> list[list[int]]:
    """Return the positions in `keys` of the values of each list, -1 for unknown ones."""
    owners, values = spread_lists(lists)
    found = positions(values, keys).tolist()
    bounds = np.searchsorted(owners, np.arange(len(lists) + 1))
    return [found[first:last] for first, last in pairwise(bounds.tolist())]


def _lists(values: Sequence[pl.Series], dtype: pl.DataType) -> pl.Series:
    owners = np.repeat(np.arange(len(values)), [len(part) for part in values])
    return gather_lists(owners, pl.concat([pl.Series(dtype=dtype), *values]), len(values))

"""What reports rest on, as hashes: so that a later run can tell how much of it has changed."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.reports.community_members import Holdings
from graphrag_index.schema.list_columns import (
    Grouped,
    Integers,
    gather_lists,
    positions,
    spread_lists,
)
from graphrag_index.storage.content_ids import content_ids

Flags = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]
Shares = npt.NDArray[np.float64]

# Rows whose text units are read at once: bounds memory, not results.
BATCH_ROWS = 200_000
# Rows that are hashed at once: bounds memory, not results.
BATCH_HASHED = 10_000


def share_changed(now: pl.DataFrame, before: pl.DataFrame) -> Shares:
    """Return which share of the rows and text units of each is other than it was, 0 to 1."""
    same, most = np.zeros(now.height, np.int64), np.ones(now.height, np.int64)
    columns = ("row_hashes", "text_unit_hashes")
    for column in columns:
        same += _n_common(now[column], before[column])
    for side in (now, before):
        most = np.maximum(most, sum(_lengths(side[column]) for column in columns))
    shares: Shares = 1 - same / most
    return shares


def have_half_the_members(now: pl.DataFrame, before: pl.DataFrame) -> Flags:
    """Tell of which at least half of the members are the same."""
    first, second = now["member_hashes"], before["member_hashes"]
    flags: Flags = 2 * _n_common(first, second) >= np.maximum(_lengths(first), _lengths(second))
    return flags


def _n_common(first: pl.Series, second: pl.Series) -> Integers:
    """Count what each two lists, which have everything once, have in common."""
    return _lengths(first.list.set_intersection(second))


def _lengths(lists: pl.Series) -> Integers:
    lengths: Integers = lists.list.len().cast(pl.Int64).to_numpy()
    return lengths


class EvidenceOfCommunities:
    """The evidence of communities, which are named by their rows."""

    def __init__(
        self,
        holdings: Holdings,
        entities: pl.LazyFrame,
        relationships: pl.LazyFrame,
        base_text_units: pl.LazyFrame,
    ) -> None:
        self._members, self._inner = holdings.members, holdings.inner
        self._claims_of = holdings.claims_of
        nodes, links, claims = holdings.entities, holdings.relationships, holdings.claims
        self._ids = row_hashes("id", nodes.select("id"))
        self._nodes = row_hashes("entity", nodes.select("id", "title", "type", "description"))
        self._links = row_hashes("relationship", links.select("id", "type", "description"))
        said = claims.columns[claims.columns.index("human_readable_id") + 1 : -1]
        self._claims = row_hashes("claim", claims.select("id", *said))
        ids = base_text_units.select("id").collect()["id"]
        self._text_units = row_hashes("text unit", pl.DataFrame([ids]))
        self._all_text_units = pl.Series(self._text_units).unique()
        self._of_nodes = _text_units(entities, nodes["row"], ids)
        self._of_links = _text_units(relationships, links["row"], ids)
        self._of_claims = positions(claims["text_unit_id"], ids)

    def of(self, communities: Integers) -> pl.DataFrame:
        """Return what each of these communities holds, as lists of hashes, each once, ascending.

        `row_hashes` are its entities, relationships and claims with all that is said of them,
        `member_hashes` its entities by id alone, `text_unit_hashes` those that any of these
        come from.
        """
        owners, members = _held(self._members, communities)
        owners_of_links, links = _held(self._inner, communities)
        at, claims = _held(self._claims_of, members)
        owners_of_claims = owners[at]
        rows = (
            (owners, self._nodes[members]),
            (owners_of_links, self._links[links]),
            (owners_of_claims, self._claims[claims]),
        )
        at_members, of_members = _held(self._of_nodes, members)
        at_links, of_links = _held(self._of_links, links)
        of_claims = self._of_claims[claims]
        units = (
            (owners[at_members], self._text_units[of_members]),
            (owners_of_links[at_links], self._text_units[of_links]),
            (owners_of_claims[of_claims >= 0], self._text_units[of_claims[of_claims >= 0]]),
        )
        return pl.DataFrame(
            {
                "row_hashes": _distinct_lists(rows, len(communities)),
                "member_hashes": _distinct_lists([(owners, self._ids[members])], len(communities)),
                "text_unit_hashes": _distinct_lists(units, len(communities)),
            }
        )

    def are_there(self, text_units: pl.Series) -> Flags:
        """Tell of each list whether all of its text units still are, as they were."""
        owners, wanted = spread_lists(text_units)
        there = np.ones(len(text_units), bool)
        there[owners[~wanted.is_in(self._all_text_units).to_numpy()]] = False
        return there


def row_hashes(kind: str, rows: pl.DataFrame) -> Hashes:
    """Hash each row, which is of this kind; the same in every run, unlike the hashes of polars."""
    texts = rows.select(pl.all().cast(pl.String).fill_null(""))
    hashes = [np.zeros(0, np.uint64)]
    for part in texts.iter_slices(BATCH_HASHED):
        first_half = content_ids(kind, *part).str.head(16)
        hashes.append(first_half.str.to_integer(base=16, dtype=pl.UInt64).to_numpy())
    return np.concatenate(hashes)


def _text_units(table: pl.LazyFrame, order: pl.Series, ids: pl.Series) -> Grouped:
    """The text units that each row of a table comes from; `order` says where its rows stand now."""
    place = np.empty(len(order), np.int64)
    place[order.to_numpy()] = np.arange(len(order))
    owners, units = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for offset, lists in _batches(table.select("text_unit_ids")):
        rows, named = spread_lists(lists)
        found = positions(named, ids)
        owners.append(place[offset + rows[found >= 0]])
        units.append(found[found >= 0])
    return Grouped(np.concatenate(owners), np.concatenate(units), len(order))


def _batches(table: pl.LazyFrame) -> Iterator[tuple[int, pl.Series]]:
    offset = 0
    while (batch := table.slice(offset, BATCH_ROWS).collect()).height:
        yield offset, batch.to_series()
        offset += batch.height


def _held(grouped: Grouped, owners: Integers) -> tuple[Integers, Integers]:
    """The rows of several owners, one after the other, and which of the owners each is of."""
    starts, ends = grouped.bounds[owners], grouped.bounds[owners + 1]
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    at = np.repeat(starts - before, lengths) + np.arange(lengths.sum())
    return np.repeat(np.arange(len(owners)), lengths), grouped.rows[at]


def _distinct_lists(parts: Sequence[tuple[Integers, Hashes]], n_lists: int) -> pl.Series:
    """Make a list for each owner, of all the hashes that any part has of it."""
    owners, hashes = (np.concatenate(side) for side in zip(*parts, strict=True))
    pairs = pl.DataFrame({"owner": owners, "hash": hashes}).unique().sort("owner", "hash")
    return gather_lists(pairs["owner"].to_numpy(), pairs["hash"], n_lists)


def union(parts: Sequence[Hashes]) -> Hashes:
    """All that stands in any of the lists, each once, ascending."""
    everything: Any = np.unique(np.concatenate([np.zeros(0, np.uint64), *parts]))
    return np.asarray(everything, np.uint64)

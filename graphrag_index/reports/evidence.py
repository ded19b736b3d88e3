"""What reports rest on, as hashes: so that a later run can tell how much of it has changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.core.lists import Grouped, Integers, positions, spread_lists
from graphrag_index.core.tables import content_id
from graphrag_index.reports.holdings import Holdings

Hashes = npt.NDArray[np.uint64]

# Rows whose text units are read at once: bounds memory, not results.
BATCH_ROWS = 200_000


@dataclass(frozen=True)
class Evidence:
    """What one community holds; each hash once, ascending.

    `rows` are its entities, relationships and claims with all that is said of them, `members`
    its entities by id alone, `text_units` those that any of these come from.
    """

    rows: Hashes
    members: Hashes
    text_units: Hashes

    def share_changed(self, since: Self) -> float:
        """Return which share of the rows and text units is other than it was, 0 to 1."""
        same = common(self.rows, since.rows) + common(self.text_units, since.text_units)
        before = len(since.rows) + len(since.text_units)
        return 1 - same / max(len(self.rows) + len(self.text_units), before, 1)

    def has_half_the_members_of(self, since: Self) -> bool:
        """Tell whether at least half of the members are the same."""
        most = max(len(self.members), len(since.members))
        return 2 * common(self.members, since.members) >= most


def common(first: Hashes, second: Hashes) -> int:
    """Count what two lists, each of which has everything once, have in common."""
    return len(np.intersect1d(first, second, assume_unique=True))


class EvidenceOfCommunities:
    """The evidence of each community, which is named by its row."""

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
        self._ids = _hashes("id", nodes.select("id"))
        self._nodes = _hashes("entity", nodes.select("id", "title", "type", "description"))
        self._links = _hashes("relationship", links.select("id", "type", "description"))
        said = claims.columns[claims.columns.index("human_readable_id") + 1 : -1]
        self._claims = _hashes("claim", claims.select("id", *said))
        ids = base_text_units.select("id").collect()["id"]
        self._text_units = _hashes("text unit", pl.DataFrame([ids]))
        self._all_text_units = np.sort(self._text_units)
        self._of_nodes = _text_units(entities, nodes["row"], ids)
        self._of_links = _text_units(relationships, links["row"], ids)
        self._of_claims = positions(claims["text_unit_id"], ids)

    def of(self, community: int) -> Evidence:
        members, inner = self._members[community], self._inner[community]
        claims = _rows_of(self._claims_of, members)
        of_claims = self._of_claims[claims]
        text_units = np.unique(
            np.concatenate(
                [
                    _rows_of(self._of_nodes, members),
                    _rows_of(self._of_links, inner),
                    of_claims[of_claims >= 0],
                ]
            )
        )
        rows = np.concatenate([self._nodes[members], self._links[inner], self._claims[claims]])
        return Evidence(
            np.unique(rows), np.unique(self._ids[members]), np.unique(self._text_units[text_units])
        )

    def are_there(self, text_units: Hashes) -> bool:
        """Tell whether all of these text units still are, as they were."""
        everything = self._all_text_units
        if not len(text_units) or not len(everything):
            return not len(text_units)
        # Not by np.isin, which would look at all text units for each report.
        at = np.minimum(np.searchsorted(everything, text_units), len(everything) - 1)
        return bool((everything[at] == text_units).all())


def _hashes(kind: str, rows: pl.DataFrame) -> Hashes:
    """Hash each row: the same in every run, unlike the hashes of polars."""
    texts = rows.select(pl.all().cast(pl.String).fill_null(""))
    hashed = (int(content_id(kind, *row)[:16], 16) for row in texts.iter_rows())
    return np.fromiter(hashed, np.uint64, rows.height)


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


def _rows_of(grouped: Grouped, owners: Integers) -> Integers:
    """The rows of several owners, one after the other."""
    starts, ends = grouped.bounds[owners], grouped.bounds[owners + 1]
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    at = np.repeat(starts - before, lengths) + np.arange(lengths.sum())
    rows: Integers = grouped.rows[at]
    return rows


def union(parts: Sequence[Hashes]) -> Hashes:
    """All that stands in any of the lists, each once, ascending."""
    everything: Any = np.unique(np.concatenate([np.zeros(0, np.uint64), *parts]))
    return np.asarray(everything, np.uint64)

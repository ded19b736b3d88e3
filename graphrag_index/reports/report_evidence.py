"""Evidence of reports, stored as hashes, and rows of the report tables.

The evidence of a report is the rows and text units that support it. A later run compares the
hashes in the table `report_evidence`, and keeps reports whose evidence has hardly changed.
"""

from collections.abc import Mapping
from itertools import chain

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.reports.report import (
    CLAIM_COLUMNS,
    CitedReport,
    CommunityMembers,
    make_text_columns,
)
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.memo import content_ids, locate_list_values
from graphrag_nlp.list_columns import (
    Integers,
    RowGroups,
    find_rows,
    gather_lists,
    spread_lists,
)

Flags = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]
# Ids of rows that may be cited, by section; in the section Reports, numbers of communities.
SectionIds = Mapping[str, pl.Series]

EVIDENCE_TABLE = TABLES["report_evidence"]
# The column of `report_evidence` with the cited rows, by the name of the section in a citation.
COLUMN_OF_CITED_ROWS = {
    "Entities": "entity_ids",
    "Relationships": "relationship_ids",
    "Claims": "claim_ids",
    "Reports": "communities",
}
# Number of rows that are hashed, and of reports that are compared, in a batch, to limit memory.
HASHED_ROWS_PER_BATCH, REPORTS_PER_BATCH = 10_000, 2_000
# Value of `prompt_hash` for imported reports, which are kept even if the prompt changes.
PROMPT_HASH_OF_IMPORTS = "imported"


def find_main_documents(text_units: RowGroups, document_of: Integers) -> Integers:
    """Return the document of more than half of the text units of each row; -1 without one.

    `text_units` groups text units by row, and `document_of` has the document of each text unit.
    """
    counted = (
        pl.DataFrame({"row": text_units.owners, "document": document_of[text_units.rows]})
        .group_by("row", "document")
        .len()
        .filter(2 * pl.col("len") > pl.col("len").sum().over("row"))
    )
    main = np.full(len(text_units.bounds) - 1, -1, np.int64)
    main[counted["row"].to_numpy()] = counted["document"].to_numpy()
    return main


class CommunityEvidence:
    """The evidence for reports on communities. A community is identified by its row.

    `units_of_nodes`, `units_of_links` and `unit_of_claim` have the row numbers of the text units
    of entities, relationships and claims; -1: unknown.
    """

    def __init__(
        self,
        members: CommunityMembers,
        entities: pl.LazyFrame,
        relationships: pl.LazyFrame,
        base_text_units: pl.LazyFrame,
    ) -> None:
        self._members = members
        nodes, links, claims = members.entities, members.relationships, members.claims
        self._ids = hash_rows("id", nodes.select("id"))
        self._nodes = hash_rows("entity", nodes.select("id", "title", "type", "description"))
        self._links = hash_rows("relationship", links.select("id", "type", "description"))
        self._claims = hash_rows("claim", claims.select("id", *CLAIM_COLUMNS, "text_unit_id"))
        units = base_text_units.select("id", "document_id").collect()
        ids = units["id"]
        self._text_units = hash_rows("text unit", pl.DataFrame([ids]))
        self._all_text_units = pl.Series(self._text_units).unique()
        self.units_of_nodes = _group_text_units(entities, nodes["row"], ids)
        self.units_of_links = _group_text_units(relationships, links["row"], ids)
        self.unit_of_claim = find_rows(claims["text_unit_id"], ids)
        documents = units["document_id"].unique(maintain_order=True)
        self._document_of_unit = find_rows(units["document_id"], documents)

    def find_main_documents(self) -> Mapping[str, Integers]:
        """Return the document of most text units of each row by section; -1 without one."""
        rows = np.flatnonzero(self.unit_of_claim >= 0)
        units_of_claims = RowGroups(rows, self.unit_of_claim[rows], len(self.unit_of_claim))
        groups = {
            "Entities": self.units_of_nodes,
            "Relationships": self.units_of_links,
            "Claims": units_of_claims,
        }
        return {
            name: find_main_documents(units, self._document_of_unit)
            for name, units in groups.items()
        }

    def hash_evidence(self, communities: Integers) -> pl.DataFrame:
        """Return the evidence of communities as sorted lists of hashes without duplicates.

        `row_hashes` are hashes of entities, relationships and claims with their texts.
        `member_hashes` are hashes of the ids of entities. `text_unit_hashes` are hashes of the
        ids of text units that support any of these rows.
        """
        held = self._members
        owners, members = held.members.take(communities)
        link_owners, links = held.inner.take(communities)
        at, claims = held.claims_of.take(members)
        claim_owners = owners[at]
        at_members, node_units = self.units_of_nodes.take(members)
        at_links, link_units = self.units_of_links.take(links)
        claim_units = self.unit_of_claim[claims]
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
        columns = {}
        for name, parts in lists.items():
            owners, hashes = (np.concatenate(side) for side in zip(*parts, strict=True))
            pairs = pl.DataFrame({"owner": owners, "hash": hashes}).unique().sort("owner", "hash")
            columns[name] = gather_lists(pairs["owner"].to_numpy(), pairs["hash"], len(communities))
        return pl.DataFrame(columns)

    def make_evidence_rows(
        self, reports: Mapping[int, CitedReport], keys: SectionIds, prompt_hash: str
    ) -> pl.DataFrame:
        """Make rows of `report_evidence`, with `request_key` and borrowed hashes still empty.

        `reports` maps the row of a community to its report, in the order of the result.
        """
        found = list(reports.values())
        evidence = self.hash_evidence(np.array([*reports], np.int64))
        cited = []
        for section, column in COLUMN_OF_CITED_ROWS.items():
            places = [one.rows.get(section, ()) for one in found]
            owners = np.repeat(np.arange(len(found)), list(map(len, places)))
            ids = keys[section].gather(list(chain.from_iterable(places)))
            cited.append(gather_lists(owners, ids, len(found)).alias(column))
        return evidence.with_columns(
            keys["Reports"].gather([*reports]).alias("community"),
            *(*cited, *make_text_columns([one.report for one in found])),
            prompt_hash=pl.lit(prompt_hash),
            request_key=pl.lit(""),
            borrowed_text_unit_hashes=pl.lit([], pl.List(pl.UInt64)),
        ).select(list(EVIDENCE_TABLE.schema))

    def flag_reusable(self, before: pl.DataFrame, max_share_changed: float) -> Flags:
        """Flag the rows of `report_evidence` whose reports may be kept.

        A report may be kept if at most `max_share_changed` (0 to 1) of its rows and text units
        has changed, at least half of the members are the same, and no text unit was removed. The
        column `at` of `before` has the row of the community.
        """
        now = self.hash_evidence(before["at"].to_numpy())
        columns = ("row_hashes", "text_unit_hashes")
        same = sum(_count_common_values(now[column], before[column]) for column in columns)
        size, old_size = (
            sum(_count_list_values(side[column]) for column in columns) for side in (now, before)
        )
        share_changed = 1 - same / np.maximum(np.maximum(size, old_size), 1)
        members, old_members = now["member_hashes"], before["member_hashes"]
        most_members = np.maximum(_count_list_values(members), _count_list_values(old_members))
        flags: Flags = share_changed <= max_share_changed
        flags &= 2 * _count_common_values(members, old_members) >= most_members
        for column in ("text_unit_hashes", "borrowed_text_unit_hashes"):
            owners, hashes = spread_lists(before[column])
            flags[owners[~hashes.is_in(self._all_text_units).to_numpy()]] = False
        return flags


def _count_common_values(first: pl.Series, second: pl.Series) -> Integers:
    """Count the common values of each pair of lists; lists must have no duplicates."""
    return _count_list_values(first.list.set_intersection(second))


def _count_list_values(lists: pl.Series) -> Integers:
    return lists.list.len().cast(pl.Int64).to_numpy()


def hash_rows(kind: str, rows: pl.DataFrame) -> Hashes:
    """Hash each row of one kind; unlike hashes of polars, these are the same in every run."""
    texts = rows.select(pl.all().cast(pl.String).fill_null(""))
    hashes = [np.zeros(0, np.uint64)]
    for part in texts.iter_slices(HASHED_ROWS_PER_BATCH):
        first_half = content_ids(kind, *part).str.head(16)
        hashes.append(first_half.str.to_integer(base=16, dtype=pl.UInt64).to_numpy())
    return np.concatenate(hashes)


def _group_text_units(table: pl.LazyFrame, order: pl.Series, ids: pl.Series) -> RowGroups:
    """Group the text units of each table row; `order` contains the rows in their new order."""
    place = np.argsort(order.to_numpy())
    rows, units = locate_list_values(table.select("text_unit_ids"), ids)
    return RowGroups(place[rows], units, len(order))

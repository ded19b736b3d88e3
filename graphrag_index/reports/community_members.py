"""The members of communities: entities, relationships and claims, in a stable order.

The request for a report must not change because an unrelated document was added. So no order here
depends on row numbers of the index, or on anything outside the community.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl

from graphrag_index.schema.list_columns import Grouped, Integers, positions
from graphrag_index.text.normalize import title_key

_CLAIM = "subject_id object_id type status start_date end_date source_text description".split()


@dataclass(frozen=True)
class CommunityMembers:
    """Rows of entities, relationships and claims, grouped by community.

    `entities` are sorted by title, `relationships` by descending weight, then titles, `claims` by
    date; `row` is the row in the table. `ends` are the rows in `entities` of the two ends of each
    relationship. A claim belongs to its subject, or else its object; claims about unknown
    entities are left out. `members` groups entities, and `inner` relationships, by the row of the
    community; `claims_of` groups claims by entity.
    """

    communities: pl.DataFrame
    entities: pl.DataFrame
    relationships: pl.DataFrame
    claims: pl.DataFrame
    ends: Integers
    members: Grouped
    inner: Grouped
    claims_of: Grouped

    @classmethod
    def of(
        cls,
        communities: pl.DataFrame,
        entities: pl.LazyFrame,
        relationships: pl.LazyFrame,
        covariates: pl.LazyFrame | None,
    ) -> Self:
        nodes = (
            entities.select("id", "human_readable_id", "title", "type", "description")
            .with_row_index("row")
            .sort("title", "id")
            .collect()
        )
        links = _links(relationships)
        claims = _claims(covariates, nodes["title"])
        return cls(
            communities,
            nodes,
            links,
            claims,
            np.stack([positions(links[end], nodes["id"]) for end in ("source_id", "target_id")], 1),
            Grouped.of(communities["entity_ids"], nodes["id"]),
            Grouped.of(communities["relationship_ids"], links["id"]),
            Grouped(claims["entity"].to_numpy(), np.arange(claims.height), nodes.height),
        )

    def without_texts(self) -> Self:
        """Drop the texts, keeping ids and numbers."""
        kept = ("id", "human_readable_id", "row")
        return replace(
            self,
            relationships=self.relationships.select(kept),
            claims=self.claims.select(kept),
        )


def _links(relationships: pl.LazyFrame) -> pl.DataFrame:
    order = ["weight", "source", "target", "id"]
    columns = [*order, "human_readable_id", "type", "description", "source_id", "target_id"]
    if "type" not in relationships.collect_schema():
        relationships = relationships.with_columns(type=pl.lit(""))
    return (
        relationships.select(columns)
        .with_row_index("row")
        .sort(order, descending=[True, False, False, False])
        .collect()
    )


def _claims(covariates: pl.LazyFrame | None, titles: pl.Series) -> pl.DataFrame:
    """Return the claims about known entities, with the row of the `entity` of each."""
    schema: Mapping[str, type[pl.DataType]] = {
        "id": pl.String,
        "human_readable_id": pl.Int64,
        **dict.fromkeys(_CLAIM, pl.String),
        "text_unit_id": pl.String,
    }
    if covariates is None:
        return pl.DataFrame(schema={"row": pl.UInt32, **schema, "entity": pl.Int64})
    order = ["start_date", "end_date", "description", "id"]
    claims = covariates.select(*schema).with_row_index("row").sort(order, nulls_last=True).collect()
    if claims.is_empty():
        # Most indexes have no claims: then no title is normalized.
        titles = titles.clear()
    # If titles differ only in case, the first entity gets the claims.
    rows = {title_key(title): row for row, title in reversed([*enumerate(titles)])}
    entity = [
        rows.get(title_key(subject), rows.get(title_key(object or ""), -1))
        for subject, object in claims.select("subject_id", "object_id").iter_rows()
    ]
    return claims.with_columns(entity=pl.Series(entity, dtype=pl.Int64)).filter(
        pl.col("entity") >= 0
    )

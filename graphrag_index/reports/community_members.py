"""What communities hold, in an order that their content alone decides.

What is asked about a community must not change because a document elsewhere was added: no
order here goes by a number of the index, nor by what lies outside of the community.
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
class Holdings:
    """The rows of entities, relationships and claims, and which of them each community holds.

    `entities` come by title; `relationships`, whose `ends` are rows of these, by weight, the
    greatest first, then by titles; `claims` by date. Column `row` says where each stands in its
    table. A claim belongs to the entity that is its subject, or else its object; claims about
    others are left out. Communities are named by their row.
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
        """Leave of the rows only their ids and numbers."""
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
    """The claims about known entities, and the row of the `entity` of each."""
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
        # The usual case, in which no title need be folded.
        titles = titles.clear()
    # Of entities whose titles differ in case alone the first has them.
    rows = {title_key(title): row for row, title in reversed([*enumerate(titles)])}
    entity = [
        rows.get(title_key(subject), rows.get(title_key(object or ""), -1))
        for subject, object in claims.select("subject_id", "object_id").iter_rows()
    ]
    return claims.with_columns(entity=pl.Series(entity, dtype=pl.Int64)).filter(
        pl.col("entity") >= 0
    )

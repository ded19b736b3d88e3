"""The members of communities: entities, relationships and claims, in a stable order.

The request for a report must not change because an unrelated document was added. So no order here
depends on row numbers of the index, or on anything outside the community.
"""

import numpy as np
import polars as pl

from graphrag_index.schema.list_columns import Grouped, positions
from graphrag_index.schema.tables import TABLES
from graphrag_index.text.normalize import title_key

_CLAIM = (
    "id human_readable_id subject_id object_id type status start_date end_date source_text "
    "description text_unit_id"
).split()


class CommunityMembers:
    """Rows of entities, relationships and claims, grouped by community.

    `entities` are sorted by title, `relationships` by descending weight, then titles, `claims` by
    date; `row` is the row in the table. `ends` are the rows in `entities` of the two ends of each
    relationship. A claim belongs to its subject, or else its object; claims about unknown
    entities are left out. `members` groups entities, and `inner` relationships, by the row of the
    community; `claims_of` groups claims by entity.
    """

    def __init__(
        self,
        communities: pl.DataFrame,
        entities: pl.LazyFrame,
        relationships: pl.LazyFrame,
        covariates: pl.LazyFrame | None,
    ) -> None:
        self.communities = communities
        self.entities = (
            entities.select("id", "human_readable_id", "title", "type", "description")
            .with_row_index("row")
            .sort("title", "id")
            .collect()
        )
        order = ["weight", "source", "target", "id"]
        columns = ["human_readable_id", "type", "description", "source_id", "target_id"]
        if "type" not in relationships.collect_schema():
            relationships = relationships.with_columns(type=pl.lit(""))
        links = (
            relationships.select(*order, *columns)
            .with_row_index("row")
            .sort(order, descending=[True, False, False, False])
            .collect()
        )
        self.relationships = links
        self.claims = _claims(covariates, self.entities["title"])
        ids = self.entities["id"]
        self.ends = np.stack([positions(links[end], ids) for end in ("source_id", "target_id")], 1)
        self.members = Grouped.of(communities["entity_ids"], ids)
        self.inner = Grouped.of(communities["relationship_ids"], links["id"])
        n_claims = self.claims.height
        self.claims_of = Grouped(self.claims["entity"].to_numpy(), np.arange(n_claims), len(ids))

    def drop_texts(self) -> None:
        """Drop the texts of relationships and claims, keeping ids and numbers."""
        kept = ("id", "human_readable_id", "row")
        self.relationships, self.claims = self.relationships.select(kept), self.claims.select(kept)


def _claims(covariates: pl.LazyFrame | None, titles: pl.Series) -> pl.DataFrame:
    """Return the claims about known entities, with the row of the `entity` of each."""
    if covariates is None:
        covariates = TABLES["covariates"].empty().lazy()
    order = ["start_date", "end_date", "description", "id"]
    claims = covariates.select(_CLAIM).with_row_index("row").sort(order, nulls_last=True).collect()
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

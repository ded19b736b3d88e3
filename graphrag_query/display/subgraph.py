"""A part of the graph: entities and their relationships, in the forms they are wanted in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_query.retrieval.index_store import KnowledgeModel

if TYPE_CHECKING:
    import networkx as nx

RELATIONSHIP_COLUMNS = (
    *("human_readable_id", "source", "target", "source_entity", "target_entity"),
    *("type", "description", "weight"),
)

_SHOWN_OF_ENTITIES = ("title", "type", "description")
_SHOWN_OF_RELATIONSHIPS = ("source", "type", "target", "description")


@dataclass(frozen=True, eq=False)
class Subgraph:
    """Entities and relationships, the most important first.

    `entities` has human_readable_id, title, type, description and `ring`: hops from what was
    asked for. `relationships` has human_readable_id, source and target (titles), source_entity
    and target_entity (numbers), type, description and weight. Both ends of every relationship
    are among the entities.
    """

    entities: pl.DataFrame
    relationships: pl.DataFrame

    def triples(self) -> list[tuple[str, str, str]]:
        """Return a (source, type, target) for each relationship; the type may be empty."""
        return list(self.relationships.select("source", "type", "target").iter_rows())

    def sentences(self) -> list[str]:
        """Return what is said of each relationship, or just that there is one."""
        columns = ("source", "target", "type", "description")
        return [
            " ".join(description.split()) or plain_sentence(source, target, kind)
            for source, target, kind, description in self.relationships.select(columns).iter_rows()
        ]

    def to_networkx(self) -> "nx.MultiGraph[int]":
        """Return the graph for networkx: a node is the number of an entity.

        Nodes have title, type, description and ring, edges source and target (titles), type,
        description and weight; the key of an edge is the number of its relationship.
        """
        import networkx as nx

        graph: nx.MultiGraph[int] = nx.MultiGraph()
        for row in self.entities.iter_rows(named=True):
            number = row.pop("human_readable_id")
            graph.add_node(number, **row)
        for row in self.relationships.iter_rows(named=True):
            key, source, target = (
                row.pop(name) for name in ("human_readable_id", "source_entity", "target_entity")
            )
            graph.add_edge(source, target, key=key, **row)
        return graph

    def to_dict(self) -> dict[str, Any]:
        """Return the tables as JSON knows them."""
        return {
            "entities": self.entities.to_dicts(),
            "relationships": self.relationships.to_dicts(),
        }

    def shown_entities(self) -> pl.DataFrame:
        """Return the entities as a model is shown them."""
        return self.entities.select(pl.col("human_readable_id").alias("id"), *_SHOWN_OF_ENTITIES)

    def shown_relationships(self) -> pl.DataFrame:
        """Return the relationships as a model is shown them."""
        number = pl.col("human_readable_id").alias("id")
        return self.relationships.select(number, *_SHOWN_OF_RELATIONSHIPS)

    def _repr_svg_(self) -> str:
        """Show the picture in a notebook."""
        from graphrag_query.display.subgraph_picture import draw

        return draw(self)

    def __repr__(self) -> str:
        entities, relationships = self.entities.height, self.relationships.height
        return f"<Subgraph: {entities} entities, {relationships} relationships>"


def plain_sentence(source: str, target: str, kind: str) -> str:
    """Say that two entities are related where nothing more is known."""
    return f"{source} – {target}: {kind.replace('_', ' ')}." if kind else f"{source} – {target}."


def subgraph_of(
    model: KnowledgeModel, rings: Mapping[int, int], relationships: Sequence[int]
) -> Subgraph:
    """Fetch a part of the graph by numbers, in the order given.

    `rings` tells for each entity how many hops it is from what was asked for.
    """
    columns = ("human_readable_id", "title", "type", "description")
    entities = model.entities(rings).select(*columns)
    ring = pl.Series("ring", list(rings.values()), pl.Int64)
    found = model.relationships(relationships).select(RELATIONSHIP_COLUMNS)
    return Subgraph(entities.with_columns(ring), found)

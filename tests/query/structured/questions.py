"""Ten questions over the sample in SQL and in Cypher, and what the tables say to each."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import polars as pl

Tables = Mapping[str, pl.DataFrame]


class AskedTwice(NamedTuple):
    """A question in both languages; `answer` finds it by other means."""

    question: str
    sql: str
    cypher: str
    answer: Callable[[Tables], list[tuple[Any, ...]]]


def _neighbours(tables: Tables, title: str) -> pl.DataFrame:
    """The entities linked with one, with their weights."""
    rows = tables["relationships"]
    there = rows.filter(source=title).select(title="target", weight="weight")
    back = rows.filter(target=title).select(title="source", weight="weight")
    return pl.concat([there, back])


def _named(tables: Tables) -> pl.DataFrame:
    """Each entity with each text unit that names it."""
    entities = tables["entities"].select("title", "type", pl.col("text_unit_ids").alias("id"))
    return entities.explode("id")


QUESTIONS = [
    AskedTwice(
        "How many documents are about people?",
        "SELECT count(*) FROM documents WHERE path LIKE 'people/%'",
        "MATCH (d:Document) WHERE d.path STARTS WITH 'people/' RETURN count(*)",
        lambda tables: [(20,)],
    ),
    AskedTwice(
        "How many entities are there of each type?",
        "SELECT type, count(*) AS n FROM entities GROUP BY type ORDER BY n DESC, type",
        "MATCH (e:Entity) RETURN e.type, count(*) AS n ORDER BY n DESC, e.type",
        lambda tables: (
            tables["entities"]
            .group_by("type")
            .len("n")
            .sort("n", "type", descending=[True, False])
            .rows()
        ),
    ),
    AskedTwice(
        "With how many entities is Tom Crean linked?",
        "SELECT count(*) FROM relationships WHERE source = 'Tom Crean' OR target = 'Tom Crean'",
        "MATCH (:Entity {title: 'Tom Crean'})-[r:RELATED]-() RETURN count(r)",
        lambda tables: tables["entities"].filter(title="Tom Crean").select("degree").rows(),
    ),
    AskedTwice(
        "With whom is Tom Crean linked most?",
        "SELECT CASE WHEN source = 'Tom Crean' THEN target ELSE source END AS other "
        "FROM relationships WHERE source = 'Tom Crean' OR target = 'Tom Crean' "
        "ORDER BY weight DESC LIMIT 3",
        "MATCH (:Entity {title: 'Tom Crean'})-[r:RELATED]-(e:Entity) "
        "RETURN e.title ORDER BY r.weight DESC LIMIT 3",
        lambda tables: (
            _neighbours(tables, "Tom Crean")
            .sort("weight", descending=True)
            .head(3)
            .select("title")
            .rows()
        ),
    ),
    AskedTwice(
        "Which documents name Tom Crean?",
        "SELECT DISTINCT d.title FROM mentions m "
        "JOIN entities e ON e.human_readable_id = m.entity "
        "JOIN text_units t ON t.human_readable_id = m.text_unit "
        "JOIN documents d ON d.id = t.document_id "
        "WHERE e.title = 'Tom Crean' ORDER BY d.title",
        "MATCH (:Entity {title: 'Tom Crean'})<-[:MENTIONS]-(t:TextUnit)-[:PART_OF]->(d:Document) "
        "RETURN DISTINCT d.title ORDER BY d.title",
        lambda tables: (
            _named(tables)
            .filter(title="Tom Crean")
            .select("id")
            .join(tables["text_units"].select("id", "document_id"), on="id")
            .join(tables["documents"].select("title", document_id="id"), on="document_id")
            .select(pl.col("title").unique().sort())
            .rows()
        ),
    ),
    AskedTwice(
        "Who is linked with both Tom Crean and Roald Amundsen?",
        "WITH ends AS (SELECT source AS a, target AS b FROM relationships "
        "UNION ALL SELECT target AS a, source AS b FROM relationships) "
        "SELECT x.b FROM ends x JOIN ends y ON x.b = y.b "
        "WHERE x.a = 'Tom Crean' AND y.a = 'Roald Amundsen' ORDER BY x.b",
        "MATCH (:Entity {title: 'Tom Crean'})-[:RELATED]-(e:Entity)"
        "-[:RELATED]-(:Entity {title: 'Roald Amundsen'}) RETURN e.title ORDER BY e.title",
        lambda tables: (
            _neighbours(tables, "Tom Crean")
            .join(_neighbours(tables, "Roald Amundsen"), on="title")
            .select(pl.col("title").sort())
            .rows()
        ),
    ),
    AskedTwice(
        "How many communities are there on each level?",
        "SELECT level, count(*) AS n FROM communities GROUP BY level ORDER BY level",
        "MATCH (c:Community) RETURN c.level, count(*) ORDER BY c.level",
        lambda tables: tables["communities"].group_by("level").len().sort("level").rows(),
    ),
    AskedTwice(
        "Which parts has the community of Ernest Shackleton on level 0?",
        "SELECT part.community FROM communities whole "
        "JOIN communities part ON part.parent = whole.community "
        "JOIN (SELECT id, unnest(text_unit_ids) AS unit FROM entities "
        "WHERE title = 'Ernest Shackleton') one ON 1 = 1 "
        "WHERE whole.level = 0 AND array_contains(whole.entity_ids, one.id) "
        "GROUP BY part.community ORDER BY part.community",
        "MATCH (:Entity {title: 'Ernest Shackleton'})-[:IN_COMMUNITY]->(c:Community {level: 0})"
        "<-[:BELOW]-(part) RETURN part.community ORDER BY part.community",
        lambda tables: [
            (child,)
            for row in tables["communities"].filter(level=0).iter_rows(named=True)
            if tables["entities"].filter(title="Ernest Shackleton")["id"][0] in row["entity_ids"]
            for child in sorted(row["children"])
        ],
    ),
    AskedTwice(
        "Which report of level 0 ranks highest?",
        "SELECT title, rank FROM community_reports WHERE level = 0 "
        "ORDER BY rank DESC, community LIMIT 1",
        "MATCH (c:Community {level: 0}) RETURN c.report, c.rank "
        "ORDER BY c.rank DESC, c.community LIMIT 1",
        lambda tables: (
            tables["community_reports"]
            .filter(level=0)
            .sort("rank", "community", descending=[True, False])
            .select("title", "rank")
            .rows()[:1]
        ),
    ),
    AskedTwice(
        "Which persons are named most often together with the Discovery?",
        "SELECT p.title, count(DISTINCT a.text_unit) AS n FROM mentions a "
        "JOIN entities s ON s.human_readable_id = a.entity "
        "JOIN mentions b ON b.text_unit = a.text_unit "
        "JOIN entities p ON p.human_readable_id = b.entity "
        "WHERE s.title = 'Discovery' AND p.type = 'person' "
        "GROUP BY p.title ORDER BY n DESC, p.title LIMIT 3",
        "MATCH (:Entity {title: 'Discovery'})<-[:MENTIONS]-(t:TextUnit)"
        "-[:MENTIONS]->(p:Entity {type: 'person'}) "
        "RETURN p.title, count(DISTINCT t.number) AS n ORDER BY n DESC, p.title LIMIT 3",
        lambda tables: (
            _named(tables)
            .filter(type="person")
            .join(_named(tables).filter(title="Discovery").select("id"), on="id")
            .group_by("title")
            .len("n")
            .sort("n", "title", descending=[True, False])
            .rows()[:3]
        ),
    ),
]

"""Parts of the graph as records: an entity, its neighbourhood, and paths."""

from typing import Any

from graphrag_index.text.normalize import fold_name
from graphrag_server.agents.mcp_tools import GraphArguments
from graphrag_server.agents.row_ids import RowId
from graphrag_server.agents.tool_results import Record, link_passage
from graphrag_server.problems import RequestError
from graphrag_server.routes.entities import Relationship, list_mentions, read_entity
from graphrag_server.routes.graph import MAX_RELATIONSHIPS, read_neighbourhood, read_path
from graphrag_server.routes.suggest import find_entities
from graphrag_server.table_pages import OpenVersion

_MAX_MENTIONS = 100


def graph_records(
    opened: OpenVersion, arguments: GraphArguments
) -> tuple[dict[str, Any], list[Record]]:
    """Read a part of the graph: the fields of the whole result, and its records.

    The entities at the ends of a relationship come before the relationship.
    """
    entity = find_entity(opened, arguments.entity)
    if arguments.mode == "entity":
        return {"mode": "entity", "entity": entity}, _entity_records(opened, entity)
    if arguments.mode == "path":
        if not arguments.to:
            raise RequestError(400, "invalid_request", "A path needs its end: give `to`.")
        to = find_entity(opened, arguments.to)
        found = read_path(opened, entity, to)
        head = {"mode": "path", "entity": entity, "to": to}
        paths = [Record("paths", path.model_dump()) for path in found.paths]
        entities = {row.number: row.model_dump() for row in found.entities}
        return head, [*paths, *_relationship_records(entities, found.relationships)]
    around = read_neighbourhood(opened, entity, arguments.hops, MAX_RELATIONSHIPS)
    entities = {row.number: row.model_dump() for row in around.entities}
    head = {"mode": "neighbourhood", "entity": entity}
    if around.left_out:
        head["not_read"] = around.left_out
    return head, _relationship_records(entities, around.relationships)


def find_entity(opened: OpenVersion, name: str) -> int:
    """Return the number of an entity by its number or name. Raises RequestError."""
    if name.isascii() and name.isdecimal() and len(name) < 12:
        opened.check_row("entity_rows", int(name), "entity")
        return int(name)
    words = fold_name(name).split()
    found = find_entities(opened.whole, words, 1) if words else []
    if not found:
        raise RequestError(
            404, "no_such_entity", f"No entity is called {name!r}: find its name with search."
        )
    return found[0]


def _entity_records(opened: OpenVersion, number: int) -> list[Record]:
    details = read_entity(opened, number).model_dump(exclude={"evidence"})
    mentions = list_mentions(opened, number, _MAX_MENTIONS).items
    records = [Record("entities", details)]
    for mention in mentions:
        row = RowId(
            opened.hosted.name,
            "text-unit",
            str(mention.text_unit),
            opened.index.store.version.number,
        )
        link = link_passage(row, mention.title, mention.start_char, mention.end_char)
        values = mention.model_dump(exclude={"text_unit"})
        records.append(Record("mentions", {"id": str(row), **values}, link))
    return records


def _relationship_records(
    entities: dict[int, dict[str, Any]], relationships: list[Relationship]
) -> list[Record]:
    """List relationships, each after those of its entities that were not listed before."""
    records = []
    left = dict(entities)
    for relationship in relationships:
        for end in (relationship.source, relationship.target):
            if end in left:
                records.append(Record("entities", left.pop(end)))
        records.append(Record("relationships", relationship.model_dump()))
    return records + [Record("entities", values) for values in left.values()]

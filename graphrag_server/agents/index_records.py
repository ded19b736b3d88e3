"""Rows of an index as records for agents: texts, parts of the graph, and the status."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from graphrag_nlp.text.normalize import fold_name
from graphrag_server.agents.mcp_tools import GraphArguments
from graphrag_server.agents.tool_results import Record, RowId, link_passage
from graphrag_server.document_spans import read_texts
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.jobs.job_store import JobStore
from graphrag_server.problems import RequestError
from graphrag_server.routes.communities import read_report
from graphrag_server.routes.documents import read_document, read_text_unit
from graphrag_server.routes.entities import (
    Relationship,
    list_mentions,
    list_relationships_of_entity,
    read_entity,
)
from graphrag_server.routes.graph import MAX_RELATIONSHIPS, read_neighbourhood, read_path
from graphrag_server.routes.indexes import summarize_index
from graphrag_server.routes.suggest import find_entities
from graphrag_server.routes.versions import list_versions
from graphrag_server.table_pages import MAX_LIMIT, OpenVersion

_MAX_MENTIONS = 100
_MAX_VERSIONS, _MAX_RUNS = 20, 5
_RUN_FIELDS = ("id", "kind", "state", "created", "ended", "step", "cost", "version", "message")


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


@dataclass(frozen=True)
class RowText:
    """The text of a row. `place` is the row to open in the explorer, `span` its marked span."""

    title: str
    text: str
    metadata: dict[str, Any]
    place: RowId
    span: str = ""


def read_row_text(opened: OpenVersion, row: RowId) -> RowText:
    """Read the text of a row. Raises RequestError if there is no such row."""
    row = replace(row, version=opened.index.store.version.number)
    if row.kind == "text-unit":
        return _text_unit(opened, row)
    if row.kind == "entity":
        return _entity(opened, row)
    if row.kind == "report":
        report = read_report(opened, row.number)
        metadata = {"level": report.level, "rank": report.rank, "n_entities": report.size}
        return RowText(report.title, report.full_content, metadata, row)
    document = read_document(opened, row.number)
    text = read_texts(opened.whole, [row.number])[row.number]
    metadata = document.model_dump(exclude={"number", "title"})
    return RowText(document.title, text, metadata, row)


def _text_unit(opened: OpenVersion, row: RowId) -> RowText:
    unit = read_text_unit(opened, row.number)
    document = replace(row, kind="document", name=str(unit.document))
    metadata = {
        "document": str(document),
        "path": unit.path,
        "headings": unit.headings,
        "start_char": unit.start_char,
        "end_char": unit.end_char,
        "entities": [entity.title for entity in unit.entities[:20]],
    }
    span = f"{unit.start_char}-{unit.end_char}"
    return RowText(unit.document_title, unit.text, metadata, document, span)


def _entity(opened: OpenVersion, row: RowId) -> RowText:
    row = replace(row, name=str(find_entity(opened, row.name)))
    entity = read_entity(opened, row.number)
    related = list_relationships_of_entity(opened, row.number, MAX_LIMIT)
    lines = [entity.description, ""]
    lines += [f"> {span.text} ({span.title})" for span in entity.evidence]
    lines += ["", f"Relationships ({related.total}, the strongest first):"]
    for one in related.items:
        kind = one.type or ("related" if one.stated else "named together")
        lines.append(f"- {one.source_title} [{kind}] {one.target_title}: {one.description}")
    metadata = {
        "type": entity.type,
        "aliases": entity.aliases,
        "n_text_units": entity.frequency,
        "communities": [community.title for community in entity.communities],
    }
    return RowText(entity.title, "\n".join(lines).strip(), metadata, row)


def describe_index(hosted: HostedIndex) -> dict[str, Any]:
    """Return the sizes of an index, its newest versions and runs, and its health if checked."""
    summary: dict[str, Any] = summarize_index(hosted).model_dump()
    if summary["version"]:
        versions = list_versions(hosted).versions
        summary["versions"] = [
            version.model_dump(include={"number", "date", "is_current", "cost"})
            for version in versions[:_MAX_VERSIONS]
        ]
        # A check takes long on a large index: only its known result is told.
        if health := hosted.checks.known(summary["version"]):
            summary["health"] = health
    # A disk that is full or read-only has no queue of jobs.
    with suppress(RequestError):
        runs = JobStore(hosted.store.output).jobs(_MAX_RUNS)
        summary["runs"] = [{name: getattr(run, name) for name in _RUN_FIELDS} for run in runs]
    return summary

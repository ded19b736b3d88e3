"""The texts of rows, as agents read them."""

from dataclasses import dataclass, replace
from typing import Any

from graphrag_server.agents.graph_records import find_entity
from graphrag_server.agents.row_ids import RowId
from graphrag_server.document_spans import read_texts
from graphrag_server.routes.communities import read_report
from graphrag_server.routes.documents import read_document, read_text_unit
from graphrag_server.routes.entities import list_relationships_of_entity, read_entity
from graphrag_server.table_pages import MAX_LIMIT, OpenVersion


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

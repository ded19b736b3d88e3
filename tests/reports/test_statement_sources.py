"""Sentences of the cited text units that state what a model's report states."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from graphrag_index.reports.report import CitedReport, CommunityMembers, Finding, Report
from graphrag_index.reports.report_evidence import CommunityEvidence
from graphrag_index.reports.statement_sources import StatementSources
from tests.fixtures.small_index import table

TEXTS = {
    # Text unit and document: text.
    ("t0", "d0"): "Summer came. Scott hired 34 sailors in Cardiff for the voyage. They left.",
    ("t1", "d1"): "In Cardiff, Scott hired the sailors of his voyage: 34 in all.",
    ("t2", "d1"): "Scott liked Cardiff, where sailors grumbled on every voyage of 22 days.",
    ("t3", "d2"): "Scott secretly sold all ponies in Cardiff.",
}
START = 100  # of each text unit in its document


def trace(*findings: str, summary: str = "", **cited: Sequence[int]) -> list[dict[str, Any]]:
    """Trace a report about Scott (0) and Cardiff (1), with one relationship and their texts."""
    units = table(
        "base_text_units",
        *(
            {"id": unit, "document_id": document, "text": text, "start_char": START}
            for (unit, document), text in TEXTS.items()
        ),
    ).lazy()
    entities = table(
        "entities",
        {"id": "e0", "title": "Robert Scott", "text_unit_ids": ["t0", "t1", "t2", "t3"]},
        {"id": "e1", "title": "Zealous Cardiff", "text_unit_ids": ["t0", "t1", "t2", "t3"]},
    ).lazy()
    links = table(
        "relationships",
        {"id": "r0", "source": "Robert Scott", "target": "Zealous Cardiff"}
        | {"source_id": "e0", "target_id": "e1", "text_unit_ids": ["t0", "t1", "t2"]},
    ).lazy()
    communities = pl.DataFrame({"entity_ids": [["e0", "e1"]], "relationship_ids": [["r0"]]})
    members = CommunityMembers(communities, entities, links, None)
    evidence = CommunityEvidence(members, entities, links, units)
    report = Report("Title", summary, tuple(Finding("Heading", text) for text in findings), 1, "")
    rows: Mapping[str, Sequence[int]] = cited
    column = StatementSources(members, evidence, units).make_column({0: CitedReport(report, rows)})
    records: list[dict[str, Any]] = column.to_list()[0]
    return records


def test_a_statement_has_the_sentence_of_each_document_that_states_it() -> None:
    found = trace(
        "Scott hired 34 sailors for his voyage in Cardiff [Data: Relationships (0)]. He left.",
        Relationships=[0],
    )
    assert [one["text"] for one in found] == [
        *["Scott hired 34 sailors for his voyage in Cardiff"] * 2,
        "He left.",
    ]
    first, second, other = found
    assert (first["n_documents"], first["finding"], first["statement"]) == (2, 0, 0)
    assert {first["text_unit_id"], second["text_unit_id"]} == {"t0", "t1"}
    for one in (first, second):
        text = TEXTS[one["text_unit_id"], one["document_id"]]
        span = text[one["start_char"] - START : one["end_char"] - START]
        assert "34" in span
        assert "Summer" not in span
    assert other["statement"] == 1


def test_what_one_document_states_is_told_as_such() -> None:
    [one] = trace("Scott secretly sold all ponies. [Data: Entities (0)]", Entities=[0])
    assert (one["n_documents"], one["document_id"]) == (1, "d2")


def test_a_statement_that_no_cited_passage_states_has_no_place() -> None:
    # The words stand in a text unit that is not behind the cited row; or in none.
    for said in ("Scott secretly sold all ponies.", "Scott wrote 34 poems in Cardiff."):
        [one] = trace(f"{said} [Data: Relationships (0)]", Relationships=[0])
        assert one["n_documents"] == 0
        assert [one[name] for name in ("text_unit_id", "document_id", "start_char")] == [None] * 3


def test_a_summary_without_citations_is_looked_for_behind_all_cited_rows() -> None:
    found = trace(
        "It is so. [Data: Entities (0)]", summary="Scott sold ponies in secrecy.", Entities=[0]
    )
    assert (found[0]["finding"], found[0]["n_documents"]) == (None, 1)

"""Statements of reports, the sentences that state them, and the share of one document."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.reports.report import (
    CitedReport,
    CommunityMembers,
    Finding,
    Report,
    format_citation,
)
from graphrag_index.reports.report_context import MIN_DOCUMENTS, limit_document
from graphrag_index.reports.report_evidence import CommunityEvidence
from graphrag_index.reports.report_writer import (
    Statement,
    StatementSources,
    make_statement_column,
)
from graphrag_nlp.text.languages import join_titles
from graphrag_nlp.text.report_statements import (
    MAX_SPANS,
    SourceSpan,
    StatementWords,
    choose_spans,
    stem_words,
)
from tests.fixtures.small_index import table

NAMES = stem_words("Thomas Crean Elephant Island")


def score(statement: str, sentence: str) -> float:
    return StatementWords.split(stem_words(statement), NAMES).score(stem_words(sentence))


def test_a_sentence_states_what_it_has_the_words_and_the_numbers_of() -> None:
    said = "Crean reached Elephant Island with 28 sailors."
    assert score(said, "On Elephant Island, which 28 sailors reached, Crean slept.") > 0
    assert score(said, "Crean reached Elephant Island with 22 sailors.") == 0
    assert score(said, "Crean never liked Elephant Island in all of the 28 years.") == 0
    assert score("Thomas Crean, Elephant Island", "Crean left Elephant Island.") == 0


def test_of_each_document_the_best_and_earliest_sentence_is_chosen() -> None:
    found = [
        (1.0, SourceSpan(0, 0, 50, 60)),
        (1.0, SourceSpan(0, 0, 10, 20)),
        (2.0, SourceSpan(7, 1, 5, 9)),
        *((0.5, SourceSpan(8, n, 0, 1)) for n in range(2, 9)),
    ]
    n_documents, spans = choose_spans(found)
    assert n_documents == 9
    assert len(spans) == MAX_SPANS
    assert spans[:2] == [SourceSpan(7, 1, 5, 9), SourceSpan(0, 0, 10, 20)]


def test_a_statement_without_a_sentence_has_no_place() -> None:
    statements = [
        Statement(None, "Ice.", 2, [SourceSpan(0, 0, 1, 2), SourceSpan(4, 1, 3, 4)]),
        Statement(0, "Boats.", 0, []),
    ]
    column = make_statement_column([[], statements], {0: "t0", 4: "t4"}, {0: "d0", 1: "d1"})
    keys = ("statement", "finding", "text", "n_documents", "text_unit_id", "document_id")
    assert column.to_list() == [
        [],
        [
            dict(zip((*keys, "start_char", "end_char"), values, strict=True))
            for values in (
                (0, None, "Ice.", 2, "t0", "d0", 1, 2),
                (0, None, "Ice.", 2, "t4", "d1", 3, 4),
                (1, 0, "Boats.", 0, None, None, None, None),
            )
        ],
    ]
    assert make_statement_column([[]], {}, {}).to_list() == [[]]


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=8),
    st.integers(1, 60),
    st.sampled_from([0.1, 0.34, 0.5, 0.9, 1.0]),
)
def test_no_document_has_more_than_its_share(
    sizes: list[int], max_total: int, max_share: float
) -> None:
    limit = limit_document(sizes, max_total, max_share)

    def fits(limit: int) -> bool:
        return limit <= max_share * min(max_total, sum(min(size, limit) for size in sizes))

    if len(sizes) < MIN_DOCUMENTS:
        assert limit == max_total
    else:
        assert limit == max((n for n in range(1, max_total + 1) if fits(n)), default=1)


@given(st.text(), st.lists(st.tuples(st.text(), st.text()), max_size=3), st.floats(0, 10))
def test_the_json_of_a_report_is_that_of_the_json_module(
    text: str, findings: list[tuple[str, str]], rank: float
) -> None:
    report = Report(text, text, tuple(Finding(*one) for one in findings), rank, text)
    content = {
        "title": text,
        "summary": text,
        "findings": [vars(finding) for finding in report.findings],
        "rating": rank,
        "rating_explanation": text,
    }
    assert report.to_json() == json.dumps(content, ensure_ascii=False, indent=4)


def test_a_citation_names_at_most_five_of_a_kind() -> None:
    rows = {"Entities": range(1, 7), "Relationships": (7,), "Claims": (), "Sources": [8]}
    assert format_citation(rows) == (
        "[Data: Entities (1, 2, 3, 4, 5, +more); Relationships (7); Sources (8)]"
    )


def test_titles_are_joined_as_prose_joins_them() -> None:
    joined = [join_titles(["A", "B", "C"][:n]) for n in range(4)]
    assert joined == ["", "A", "A and B", "A, B and C"]
    assert join_titles(["A", "B"], "de") == "A und B"


TEXTS = {
    # Text unit and document: text.
    ("t0", "d0"): "Summer came. Scott hired 34 sailors in Cardiff for the voyage. They left.",
    ("t1", "d1"): "In Cardiff, Scott hired the sailors of his voyage: 34 in all.",
    ("t2", "d1"): "Scott liked Cardiff, where sailors grumbled on every voyage of 22 days.",
    ("t3", "d2"): "Scott secretly sold all ponies in Cardiff.",
}
READINGS: dict[str, str] = {}
START = 100  # of each text unit in its document


def trace(*findings: str, summary: str = "", **cited: Sequence[int]) -> list[dict[str, Any]]:
    """Trace a report about Scott (0) and Cardiff (1), with one relationship and their texts."""
    units = table(
        "base_text_units",
        *(
            {"id": unit, "document_id": document, "text": text, "start_char": START}
            | {"reading": READINGS.get(unit)}
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
        | {"source_id": "e0", "target_id": "e1", "text_unit_ids": ["t0", "t1", "t2", "t9"]},
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


def test_a_sentence_is_read_with_its_words_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = "Summer came. Scott hi-\nred 34 sai-\nlors for his voy-\nage in Car-\ndiff. He left."
    joined = "| Header |\n\nSummer came. Scott hired 34 sailors for his voyage in Cardiff. He left."
    monkeypatch.setitem(READINGS, "t9", joined)
    monkeypatch.setitem(TEXTS, ("t9", "d9"), broken)
    cited = trace("Scott hired 34 sailors for his voyage in Cardiff [Data: Relationships (0)].",
                  Relationships=[0])  # fmt: skip
    (found,) = [one for one in cited if one["document_id"] == "d9"]
    span = broken[found["start_char"] - START : found["end_char"] - START]
    assert span == broken.removeprefix("Summer came. ").removesuffix(" He left.")


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

"""Statements of reports, the sentences that state them, and the share of one document."""

import json

from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.reports.report import Finding, Report, format_citation
from graphrag_index.reports.report_context import MIN_DOCUMENTS, limit_document
from graphrag_index.reports.statement_sources import Statement, make_statement_column
from graphrag_nlp.text.languages import join_titles
from graphrag_nlp.text.report_statements import (
    MAX_SPANS,
    SourceSpan,
    StatementWords,
    choose_spans,
    stem_words,
)

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

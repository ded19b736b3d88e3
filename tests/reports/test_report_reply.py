"""Replies of a model with a community report, and their citations."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from graphrag_index.llm.request import ParsedReply, ReplyError
from graphrag_index.reports.report import make_report_format
from graphrag_nlp.text.citations import check_citations, find_cited_rows
from tests.fixtures.report_contexts import GOOD


def read(data: Any, **shown: Sequence[int]) -> Any:
    reading = make_report_format(shown, "Fallback").read(data)
    return ParsedReply(reading.value.report, reading.dropped)


class TestReply:
    @pytest.mark.parametrize(
        ("rating", "rank"),
        [
            (8, 8.0),
            ("8/10", 8.0),
            ("7,5", 7.5),
            ("4 out of 5", 8.0),
            ("85/100", 8.5),
            ("80 %", 8.0),
            ("Rating: 6.5 (high)", 6.5),
            (95, 10.0),
            (-3, 0.0),
            ("high", None),
            (None, None),
            (True, None),
            (float("nan"), None),
            (1e12, None),
        ],
    )
    def test_ratings_are_read_and_clipped(self, rating: object, rank: float | None) -> None:
        assert read({**GOOD, "rating": rating}).value.rank == rank

    @pytest.mark.parametrize(
        ("findings", "expected", "dropped"),
        [
            (["A first. Then more."], [("A first", "A first. Then more.")], 0),
            ({"Head": "Text."}, [("Head", "Text.")], 0),
            ({"summary": "Head", "explanation": "Text."}, [("Head", "Text.")], 0),
            ([{"title": "Head", "description": "Text."}], [("Head", "Text.")], 0),
            ([{"summary": "## Head\n"}], [("Head", "")], 0),
            ([{"explanation": "Only this. And this."}], [("Only this", "Only this. And this.")], 0),
            ([None, 3, {}, {"summary": "Head"}], [("Head", "")], 3),
            (None, [], 0),
            ("One text.", [("One text", "One text.")], 0),
        ],
    )
    def test_findings_are_read_in_many_forms(
        self, findings: object, expected: list[tuple[str, str]], dropped: int
    ) -> None:
        reading = read({"title": "T", "summary": "S", "rating": 5, "findings": findings})
        assert [(f.summary, f.explanation) for f in reading.value.findings] == expected
        assert reading.dropped == dropped

    def test_a_report_within_something_else_is_found(self) -> None:
        assert read([GOOD]).value.title == "Crean and Scott"
        assert read({"report": GOOD}).value.title == "Crean and Scott"

    def test_what_is_missing_is_taken_from_the_community_or_left_empty(self) -> None:
        report = read({"summary": "They went."}).value
        assert (report.title, report.rank, report.findings) == ("Fallback", None, ())
        assert "no rating" in report.rating_explanation

    def test_citations_become_places_in_lists_of_rows(self) -> None:
        said = {**GOOD, "summary": "A [Data: Entities (3, 1)]. B [Data: Entities (3, 0, 4)]."}
        reading = make_report_format({"Entities": [70, 80, 90]}, "Fallback").read(said)
        assert reading.value.rows == {"Entities": (90, 70)}
        assert reading.value.report.summary == (
            "A [Data: Entities (0, 1)]. B [Data: Entities (0)]."
        )
        # Two of the summary, and a relationship.
        assert reading.dropped == 3
        numbered = reading.value.number_citations({"Entities": np.arange(100) + 1000})
        assert numbered.summary == "A [Data: Entities (1090, 1070)]. B [Data: Entities (1090)]."

    @pytest.mark.parametrize("data", [[], {}, "text", 3, {"title": "T", "rating": 3}, [1, 2]])
    def test_a_reply_without_a_report_is_refused(self, data: object) -> None:
        with pytest.raises(ReplyError):
            read(data)

    def test_half_a_character_does_no_harm(self) -> None:
        assert read({"title": "T\ud83d", "summary": "S"}).value.title == "T\ufffd"


SHOWN = {"Entities": {1, 2}, "Relationships": {3}, "Reports": {5}}


@pytest.mark.parametrize(
    ("text", "checked", "n_removed"),
    [
        ("So. [Data: Entities (1, 2)]", "So. [Data: Entities (1, 2)]", 0),
        ("So. [Data: Entities (1, 9); Claims (4)]", "So. [Data: Entities (1)]", 2),
        ("So. [Data: Entities (9)] More.", "So. More.", 1),
        (
            "So [Data: Entities (1, 8, +more); Reports (5)].",
            "So [Data: Entities (1, +more); Reports (5)].",
            1,
        ),
        ("So. [data: entity (2, 2); report(5)]", "So. [Data: Entities (2); Reports (5)]", 0),
        ("So. [Relationships (3)]", "So. [Data: Relationships (3)]", 0),
        ("So. [Data: Sources (3)]", "So.", 1),
        ("[Data: Weather (1)]", "", 1),
        ("So. [Data:] It is.", "So. It is.", 0),
        ("A [note] and [1] stay.", "A [note] and [1] stay.", 0),
        (f"So. [Data: Entities (1, {'9' * 5000})]", "So. [Data: Entities (1)]", 1),
    ],
)
def test_only_what_was_shown_may_be_cited(text: str, checked: str, n_removed: int) -> None:
    assert check_citations(text, SHOWN) == (checked, n_removed)


def test_citations_are_found_by_section() -> None:
    text = "A [Data: Entities (1, 2); Claims (4)] b [Data: Entities (7, +more)]"
    assert find_cited_rows(text) == {"Entities": {1, 2, 7}, "Claims": {4}}

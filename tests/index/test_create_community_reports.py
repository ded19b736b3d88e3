import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_index.core.citations import check_citations, cited
from graphrag_index.core.model_steps import CreateCommunityReports
from graphrag_index.core.models.request import ReplyError, Request
from graphrag_index.core.progress import Silent
from graphrag_index.core.prompts import Prompts
from graphrag_index.core.tables import TABLES
from graphrag_index.reports.reply import report_format
from graphrag_index.steps.create_community_reports import create_community_reports
from tests.index.fake_model import FakeChatModel
from tests.index.small_index import table

GOOD = {
    "title": "Crean and Scott",
    "summary": "They went south. [Data: Entities (0, 77)]",
    "rating": 7.5,
    "rating_explanation": "They are famous.",
    "findings": [
        {"summary": "Crean knew Scott", "explanation": "It is so. [Data: Relationships (0)]"}
    ],
}


def entity(number: int, description: str = "", degree: int = 1) -> dict[str, object]:
    return {
        "id": f"e{number}",
        "human_readable_id": number,
        "title": f"Name {number}",
        "description": description,
        "degree": degree,
    }


def link(number: int, a: int, b: int) -> dict[str, object]:
    return {
        "id": f"r{number}",
        "human_readable_id": number,
        "source": f"Name {a}",
        "target": f"Name {b}",
        "description": f"{a} knows {b}.",
        "weight": 1.0,
        "source_id": f"e{a}",
        "target_id": f"e{b}",
    }


def community(
    number: int, level: int, parent: int, members: list[int], inner: list[int], **other: object
) -> dict[str, object]:
    return {
        "id": f"c{number}",
        "human_readable_id": number,
        "community": number,
        "level": level,
        "parent": parent,
        "entity_ids": [f"e{i}" for i in members],
        "relationship_ids": [f"r{i}" for i in inner],
        "size": len(members),
        "period": "1912-01-17",
        **other,
    }


# A pair within a triangle, an island, and a community of which nothing is told.
TABLES_READ = {
    "communities": table(
        "communities",
        community(0, 0, -1, [0, 1, 2], [0, 1, 2], children=[3]),
        community(1, 0, -1, [3, 4], [], island=True),
        community(2, 0, -1, [5], []),
        community(3, 1, 0, [0, 1], [0]),
    ),
    "entities": table(
        "entities",
        *(entity(0, "Nought.", 2), entity(1, "One.", 2), entity(2, "Two.", 2)),
        *(entity(3, "Three is\nalone."), entity(4, "Three is alone."), entity(5)),
    ),
    "relationships": table("relationships", link(0, 0, 1), link(1, 1, 2), link(2, 0, 2)),
}


def run(
    answer: Callable[[Request], Any] = lambda _: GOOD,
    covariates: pl.DataFrame | None = None,
    max_prompt_tokens: int = 8_000,
    **settings: Any,
) -> tuple[pl.DataFrame, list[Request]]:
    model = FakeChatModel(answer, max_prompt_tokens)
    batches = create_community_reports(
        *(frame.lazy() for frame in TABLES_READ.values()),
        covariates.lazy() if covariates is not None else None,
        settings=CreateCommunityReports(**settings),
        chat_model=model,
        prompts=Prompts(Path("nowhere")),
        progress=Silent(),
    )
    assert isinstance(batches, Iterator)
    frames = [batch for batch in batches if isinstance(batch, pl.DataFrame)]
    return pl.concat(frames), model.asked


def test_reports_come_deepest_level_first_and_repeat_their_community() -> None:
    reports, _ = run()
    assert reports.schema == TABLES["community_reports"].schema
    assert reports["community"].to_list() == [3, 0, 1, 2]
    report = reports.row(0, named=True)
    assert (report["level"], report["parent"], report["size"]) == (1, 0, 2)
    assert report["period"] == "1912-01-17"
    assert report["rank"] == 7.5
    assert report["full_content"] == (
        "# Crean and Scott\n\nThey went south. [Data: Entities (0)]\n\n"
        "## Crean knew Scott\n\nIt is so. [Data: Relationships (0)]"
    )
    assert list(json.loads(report["full_content_json"])) == [
        *("title", "summary", "findings", "rating", "rating_explanation")
    ]
    assert reports["id"].n_unique() == reports.height


def test_the_context_is_the_last_message_and_the_rest_is_always_the_same() -> None:
    _, asked = run()
    assert len({json.dumps(request.messages[0]) for request in asked}) == 1
    assert "{{" not in asked[0].messages[0]["content"]
    assert [request.unit for request in asked] == [
        "community 3: Name 0 and Name 1",
        "community 0: Name 0, Name 1 and Name 2",
    ]
    assert "0 knows 1." in asked[0].messages[1]["content"]
    assert "Name 2" not in asked[0].messages[1]["content"]


def test_claims_are_shown() -> None:
    claims = table(
        "covariates",
        {"id": "v", "subject_id": "Name 2", "description": "Two is said to have gone."},
    )
    _, asked = run(covariates=claims)
    assert [("said to have gone" in r.messages[1]["content"]) for r in asked] == [False, True]


def test_islands_and_mere_names_cost_no_request_and_are_listed() -> None:
    reports, asked = run()
    assert len(asked) == 2
    island, silent = reports.filter(pl.col("community").is_in([1, 2])).iter_rows(named=True)
    assert island["title"] == "Island: Name 3 and Name 4"
    assert island["summary"] == (
        "Entities with few or no links: Name 3 and Name 4. [Data: Entities (3, 4)]"
    )
    assert island["findings"] == [
        {"explanation": "Three is alone. [Data: Entities (3, 4)]", "summary": "Name 3 and Name 4"}
    ]
    assert silent["summary"] == "Nothing is told of the links of Name 5. [Data: Entities (5)]"
    assert island["rank"] == silent["rank"] == 1.0


def test_a_failed_report_is_missing_and_the_one_above_it_is_written() -> None:
    def answer(request: Request) -> Any:
        return None if request.unit.startswith("community 3") else GOOD

    reports, _ = run(answer)
    assert reports["community"].to_list() == [0, 1, 2]


def test_prompts_fit_the_window() -> None:
    def lengths(request: Request) -> Any:
        assert sum(len(m["content"].encode()) * 10 / 35 for m in request.messages) < 1_500
        return GOOD

    run(lengths, max_prompt_tokens=1_500)


def read(data: Any, **shown: set[int]) -> Any:
    return report_format(shown, "Fallback", 3.0).read(data)


class TestReply:
    @pytest.mark.parametrize(
        ("rating", "rank"),
        [
            (8, 8.0),
            ("8/10", 8.0),
            ("7,5", 7.5),
            ("4 out of 5", 8.0),
            ("85/100", 8.5),
            ("Rating: 6.5 (high)", 6.5),
            (95, 10.0),
            (-3, 0.0),
            ("high", 3.0),
            (None, 3.0),
            (True, 3.0),
            (float("nan"), 3.0),
        ],
    )
    def test_ratings_are_read_and_clipped(self, rating: object, rank: float) -> None:
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
        assert (report.title, report.rank, report.findings) == ("Fallback", 3.0, ())
        assert "no rating" in report.rating_explanation

    @pytest.mark.parametrize("data", [[], {}, "text", 3, {"title": "T", "rating": 3}, [1, 2]])
    def test_a_reply_without_a_report_is_refused(self, data: object) -> None:
        with pytest.raises(ReplyError):
            read(data)

    def test_half_a_character_does_no_harm(self) -> None:
        assert read({"title": "T\ud83d", "summary": "S"}).value.title == "T?"


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
    assert cited(text) == {"Entities": {1, 2, 7}, "Claims": {4}}

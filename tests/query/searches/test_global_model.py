"""Global search with a model: which reports it is shown, what becomes of its replies."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphrag_query
from graphrag_index.errors import ModelError
from graphrag_index.llm.prompts import n_prompt_tokens
from graphrag_index.llm.request import Request
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.schema.settings.searches import GlobalSearch
from graphrag_nlp.text.citations import find_cited_rows
from graphrag_query.answer import Answer, Outcome
from graphrag_query.index import Index
from graphrag_query.retrieval.report_passages import GAP
from graphrag_query.searches.global_search import (
    MAX_POINT_CHARS,
    NO_POINTS_TEXT,
    global_search,
    points_format,
)
from tests.fixtures.examples import examples
from tests.fixtures.fake_llm import (
    FakeLLM,
    one_point_a_report,
    question_to,
    settings_with,
    shown,
    shown_sources,
)
from tests.fixtures.sample_questions import QUESTIONS
from tests.model_server import Faults, Server

SUBJECT = "How did the expeditions fight scurvy?"


def ask(
    index: Index,
    answer: Callable[[Request], Any],
    text: str = SUBJECT,
    max_prompt_tokens: int = 100_000,
    **values: Any,
) -> tuple[Answer, FakeLLM]:
    llm = FakeLLM(answer, max_prompt_tokens)
    question = question_to(index, text, llm)
    return global_search(question, GlobalSearch().with_values(values)), llm


def test_reports_that_fit_one_context_are_answered_from_in_one_call(index: Index) -> None:
    answer, llm = ask(index, one_point_a_report, max_map_tokens=3_000)
    assert [asked.format.name for asked in llm.asked] == ["text"]
    assert answer.outcome is Outcome.ANSWERED
    assert answer.citations
    assert all(citation.cited_as.startswith("Reports (") for citation in answer.citations)
    assert "map_calls" not in answer.looked_at


def test_what_was_left_out_is_told(index: Index) -> None:
    answer, llm = ask(index, one_point_a_report)
    read = {n for asked in llm.asked for n in shown(asked)}
    assert answer.left_out
    assert not read & set(answer.left_out)
    assert len(read) == answer.looked_at["reports_read"]
    assert answer.looked_at["reports_left_out"] == len(answer.left_out)
    assert len(read) + len(answer.left_out) == answer.looked_at["community_reports"]
    [note] = answer.notes
    assert note.startswith(f"{len(answer.left_out)} of {answer.looked_at['community_reports']} ")
    assert f"({answer.left_out[0]})" in note


def test_a_whole_level_is_mapped_in_batches_and_reduced(index: Index) -> None:
    answer, llm = ask(
        index, one_point_a_report, selection="level", level=1, max_context_tokens=1_500
    )
    maps = [asked for asked in llm.asked if asked.format.name == "points"]
    assert len(maps) == answer.looked_at["map_calls"] > 2
    read = [n for asked in maps for n in shown(asked)]
    assert len(read) == len(set(read)) == answer.looked_at["community_reports"]
    assert answer.left_out == ()
    assert llm.asked[-1].format.name == "text"
    points = llm.asked[-1].messages[1]["content"].splitlines()[2:-2]
    scores = [int(line.split(",")[1]) for line in points]
    assert scores == sorted(scores, reverse=True)
    assert answer.context is not None
    assert answer.context.shown["Reports"] == set(read)
    passages = {number for asked in maps for number in shown_sources(asked)}
    assert answer.context.shown["Sources"] == passages != set()
    assert answer.citations


def test_points_may_cite_the_passages_beside_the_reports(index: Index) -> None:
    reports = pl.DataFrame({"id": [7], "text": ["Ice and scurvy."]})
    replied = {"points": [{"description": "Ice. [Data: Sources (3, 4)]", "score": 5}]}
    (point,) = points_format(reports, {3}).read(replied).value
    assert point.description == "Ice. [Data: Sources (3)]"


def test_reports_and_passages_share_the_budget(index: Index) -> None:
    both = index.context(SUBJECT, "global", max_map_tokens=3_000)
    reports = index.context(SUBJECT, "global", max_map_tokens=3_000, passage_share=0)
    assert list(both.tables) == ["Reports", "Sources"]
    assert list(reports.tables) == ["Reports"]
    assert both.tables["Reports"].height < reports.tables["Reports"].height
    assert both.n_tokens <= 3_000 + 100
    assert "scurvy" in both.tables["Sources"]["text"][0]


def test_passages_are_shortened_for_a_question_about_one_word(index: Index) -> None:
    few, many = (
        index.context(text, "global", max_map_tokens=3_000).tables["Sources"]
        for text in (SUBJECT, "What do the documents tell about scurvy?")
    )
    assert many.height > few.height
    assert (
        many["text"].str.contains("(?i)scurvy").sum() > few["text"].str.contains("(?i)scurvy").sum()
    )
    stored = index.store.text_units(many["id"])
    for number, text in many.select("id", "text").iter_rows():
        parts = text.removesuffix("…").split(GAP)
        assert all(part in stored[number]["text"] for part in parts)


def test_a_question_about_the_whole_is_shown_summaries_of_the_highest_ranks(index: Index) -> None:
    _, llm = ask(index, one_point_a_report, "What are the main themes?")
    # No room is kept for passages: the summaries need one call.
    [asked] = llm.asked
    n_whole = len(shown(asked))
    _, narrow = ask(index, one_point_a_report, "What about the scurvy?", level=0)
    assert n_whole > len(shown(narrow.asked[0]))


def test_the_default_sends_less_than_a_third_of_the_level(index: Index) -> None:
    for text in (SUBJECT, "What are the main themes?"):
        chosen, few = ask(index, one_point_a_report, text)
        level = chosen.parameters["level"]
        _, whole = ask(index, one_point_a_report, text, selection="level", level=level)
        sent, all_sent = (
            sum(count_tokens(prompt, load_encoding("o200k_base")) for prompt in llm.prompts_sent)
            for llm in (few, whole)
        )
        assert 3 * sent <= all_sent


def map_then_write(points: Any) -> Callable[[Request], Any]:
    def answer(request: Request) -> Any:
        if request.format.name == "points":
            return points(request) if callable(points) else points
        return one_point_a_report(request)

    return answer


SMALL = {"selection": "level", "level": 0, "max_context_tokens": 600}


@pytest.mark.parametrize(
    ("reply", "n"),
    [
        ({"points": [{"description": "Scott sailed.", "score": "4/5"}]}, 1),
        ({"points": {"description": "Scott sailed.", "score": "80 %"}}, 1),
        ([{"point": "Scott sailed.", "importance": 80}], 1),
        ({"description": "Scott sailed.", "rating": 80}, 1),
        ({"points": {"Scott sailed.": 80}}, 1),
        ({"points": "Scott sailed."}, 1),
        ({"points": ["Scott sailed.", 7, None, {"score": 3}, {"description": ""}]}, 1),
        ({"points": [{"description": "Scott sailed.", "score": None}]}, 1),
        ({"points": None}, 0),
        ({}, 0),
    ],
)
def test_points_are_read_tolerantly(index: Index, reply: Any, n: int) -> None:
    answer, _ = ask(index, map_then_write(reply), **SMALL)
    assert bool(answer.looked_at["points"]) == bool(n)
    # A point that cites no report gets the one of its batch that says most of it.
    assert answer.looked_at["points"] <= n * answer.looked_at["map_calls"]


def test_points_cite_only_what_their_call_was_shown(index: Index) -> None:
    def lies(request: Request) -> Any:
        number = shown(request)[0]
        text = f"Scott sailed. [Data: Reports ({number}, 99999)]"
        return {"points": [{"description": text, "score": 90}]}

    _, llm = ask(index, map_then_write(lies), **SMALL)
    reduced = find_cited_rows(llm.asked[-1].messages[1]["content"])["Reports"]
    assert 99999 not in reduced
    assert len(reduced) > 1


def test_a_point_that_is_an_essay_is_cut_but_not_what_it_cites() -> None:
    reports = pl.DataFrame({"id": [4, 7], "text": ["Of ice.", "Of ships."]})
    essay = (
        "The ice held the ship. " * 100 + "[Data: Reports (7)] So it was. [Data: Reports (4, 9)]"
    )
    (point,) = points_format(reports).read({"points": [{"description": essay, "score": 5}]}).value
    assert len(point.description) < MAX_POINT_CHARS + 50
    assert point.description.endswith("… [Data: Reports (4, 7)]")


def test_an_answer_cites_only_reports_that_points_cite(index: Index) -> None:
    def lies(request: Request) -> Any:
        if request.format.name == "points":
            number = min(shown(request))
            text = f"Scott sailed. [Data: Reports ({number})]"
            return {"points": [{"description": text, "score": 90}]}
        return "Scott sailed. [Data: Reports (99999)]"

    answer, _ = ask(index, lies, **SMALL)
    assert answer.citations == ()
    assert any("1 citation" in note for note in answer.notes)


def test_points_that_score_low_are_left_out(index: Index) -> None:
    def scores(request: Request) -> Any:
        first = shown(request)[0]
        return {
            "points": [
                {"description": f"High {first}. [Data: Reports ({first})]", "score": 60},
                {"description": f"Low {first}. [Data: Reports ({first})]", "score": 10},
            ]
        }

    answer, llm = ask(index, map_then_write(scores), **SMALL)
    assert "High" in llm.prompts_sent[-1]
    assert "Low" not in llm.prompts_sent[-1]
    assert answer.looked_at["points_below_min_score"] == answer.looked_at["map_calls"]


def test_no_points_are_no_evidence_without_another_call(index: Index) -> None:
    answer, llm = ask(index, map_then_write({"points": []}), **SMALL)
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text == NO_POINTS_TEXT
    assert {asked.format.name for asked in llm.asked} == {"points"}
    assert answer.looked_at["community_reports"] > 0
    assert answer.looked_at["points"] == 0


def test_a_failing_map_call_costs_its_reports_and_is_told(index: Index) -> None:
    lost: list[int] = []

    def fails(request: Request) -> Any:
        if not lost:
            lost.extend(shown(request))
            return None
        return one_point_a_report(request)["points"]

    answer, llm = ask(index, map_then_write(fails), **SMALL)
    assert answer.outcome is Outcome.ANSWERED
    assert answer.looked_at["map_calls_failed"] == 1
    assert answer.notes[0].startswith("A call failed (it is empty): reports ")
    assert not set(lost) & find_cited_rows(llm.asked[-1].messages[1]["content"])["Reports"]


def test_an_outage_is_an_error(index: Index) -> None:
    with pytest.raises(ModelError, match="read none of the reports"):
        ask(index, map_then_write(lambda _: None), **SMALL)


def test_nothing_similar_is_no_evidence_without_a_call(index: Index) -> None:
    answer, llm = ask(index, one_point_a_report, SUBJECT, level=0, min_similarity=0.99)
    text = "No community report is similar enough to this question."
    assert (answer.outcome, answer.text) == (Outcome.NO_EVIDENCE, text)
    assert llm.asked == []
    assert answer.looked_at["community_reports"] > 0


def test_a_name_that_the_documents_do_not_hold_is_said_without_a_call(index: Index) -> None:
    answer, llm = ask(index, one_point_a_report, "What did Albert Einstein find out about ice?")
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text == "The documents do not mention Albert Einstein."
    assert llm.asked == []


@examples(6)
@given(
    text=QUESTIONS,
    selection=st.sampled_from(["similar", "level", "dynamic"]),
    max_map_tokens=st.integers(200, 4_000),
    max_context_tokens=st.integers(200, 3_000),
    window=st.integers(1_300, 4_000),
)
def test_budgets_hold_and_the_same_question_gets_the_same_prompts(
    sample_project: Path,
    text: str,
    selection: str,
    max_map_tokens: int,
    max_context_tokens: int,
    window: int,
) -> None:
    index = graphrag_query.open(sample_project / "output")
    values: dict[str, Any] = {
        "selection": selection,
        "level": 0,
        "max_map_tokens": max_map_tokens,
        "max_context_tokens": max_context_tokens,
    }
    answer, llm = ask(index, one_point_a_report, text, window, **values)
    again, chat_again = ask(index, one_point_a_report, text, window, **values)
    assert llm.prompts_sent == chat_again.prompts_sent
    assert (answer.text, answer.citations) == (again.text, again.citations)
    for asked in llm.asked:
        context = asked.messages[1]["content"]
        if asked.format.name != "rating":
            rows = context.rpartition("\nQuestion: ")[0]
            assert count_tokens(rows, load_encoding("o200k_base")) <= max_context_tokens
        assert sum(n_prompt_tokens(m["content"]) for m in asked.messages) <= window + 100
    documents = {row["id"]: row["text"] for row in _documents(index)}
    for citation in answer.citations:
        text = documents[citation.document_id]
        assert text[citation.start_char : citation.end_char] == citation.quote


def _documents(index: Index) -> list[dict[str, str]]:
    return index.store.scan("documents").select("id", "text").collect().to_dicts()


def test_over_http_a_failing_map_call_is_told_and_an_outage_is_an_outcome(
    sample_project: Path, model_server: Server
) -> None:
    settings = settings_with(sample_project, model_server)
    with graphrag_query.open(sample_project / "output", settings, sample_project) as index:
        values: dict[str, Any] = {"selection": "level", "level": 0, "max_context_tokens": 2_000}
        whole = index.global_(SUBJECT, **values)
        assert whole.outcome is Outcome.ANSWERED
        assert whole.citations
        assert whole.usage.calls == whole.looked_at["map_calls"] + 1
        assert whole.usage.prompt_tokens > 0
        model_server.faults = Faults(by_number=["content_filter"])
        part = index.global_(f"{SUBJECT} All of it?", **values)
        assert part.outcome is Outcome.ANSWERED
        assert part.looked_at["map_calls_failed"] == 1
        assert "content_filter" in part.notes[0]
        model_server.faults = Faults(rate=1.0, kinds=["500"])
        out = index.global_(f"{SUBJECT} Again?", **values)
        assert out.outcome is Outcome.PROVIDER_ERROR

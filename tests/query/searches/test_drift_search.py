"""Drift search: steps, their budget, bad replies, and what it does without a model."""

import shutil
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
from graphrag_index.schema.settings.searches import DriftSearch, GlobalSearch
from graphrag_nlp.text.citations import find_cited_rows
from graphrag_query.answer import Answer, Outcome
from graphrag_query.index import Index
from graphrag_query.searches.drift_search import NOTHING_FOUND, drift_search
from graphrag_query.searches.global_search import global_search
from graphrag_query.store.index_store import IndexStore
from tests.conftest import copy_project, run_project
from tests.fixtures.examples import examples
from tests.fixtures.fake_llm import FakeLLM, one_point_a_report, question_to, settings_with
from tests.fixtures.sample_questions import QUESTIONS, check_citations
from tests.model_server import Faults, Server

BROAD = "How did scurvy shape the expeditions?"


def ask(
    index: Index, answer: Callable[[Request], Any], text: str = BROAD, **values: Any
) -> tuple[Answer, FakeLLM]:
    llm = FakeLLM(answer)
    question = question_to(index, text, llm)
    return drift_search(question, DriftSearch().with_values(values)), llm


def first_of(request: Request) -> str:
    """A citation of the first row that a request shows."""
    section, _, row = request.messages[1]["content"].splitlines()[:3]
    return f"[Data: {section.strip('-')} ({row.split(',')[0]})]"


def steps(**replies: Any) -> Callable[[Request], Any]:
    """Answer each step with its reply by question, or with one that leads nowhere."""
    by_question = {text.replace("_", " "): reply for text, reply in replies.items()}

    def answer(request: Request) -> Any:
        if request.format.name == "text":
            numbers = find_cited_rows(request.messages[1]["content"])
            if not numbers:
                return "It did."
            name, rows = min(numbers.items())
            return f"It did. [Data: {name} ({min(rows)})]"
        reply = by_question.get(request.unit, by_question.get("other", {"score": 10}))
        if isinstance(reply, dict) and "answer" not in reply:
            return {"answer": f"About {request.unit} {first_of(request)}", **reply}
        return reply

    return answer


def asked_steps(llm: FakeLLM) -> list[str]:
    return [request.unit for request in llm.asked if request.format.name == "drift_step"]


def test_follow_ups_of_the_best_answers_are_asked_first(index: Index) -> None:
    replies = {
        BROAD: {"score": 50, "follow_ups": ["Who was Scott?", "Where is Cape Adare?"]},
        "Who was Scott?": {"score": 20, "follow_ups": ["Who paid for the ships?"]},
        "Where is Cape Adare?": {"score": 90, "follow_ups": ["What did penguins taste like?"]},
    }
    answer, llm = ask(index, steps(**replies), rounds=2, follow_ups=2)
    assert asked_steps(llm) == [
        BROAD,
        "Who was Scott?",
        "Where is Cape Adare?",
        "What did penguins taste like?",
        "Who paid for the ships?",
    ]
    reduced = llm.asked[-1].messages[1]["content"]
    order = ["About Where is Cape Adare?", f"About {BROAD}", "About Who was Scott?"]
    assert [reduced.index(text) for text in order] == sorted(map(reduced.index, order))
    assert answer.outcome is Outcome.ANSWERED
    assert answer.citations
    assert answer.looked_at["steps"] == 5
    assert [(one.question, one.score) for one in answer.sub_questions] == [
        *((BROAD, 50), ("Who was Scott?", 20), ("Where is Cape Adare?", 90)),
        *(("What did penguins taste like?", 10), ("Who paid for the ships?", 10)),
    ]
    assert answer.sub_questions[2].answer.startswith("About Where is Cape Adare?")
    assert len(answer.reports) == DriftSearch().top_k_reports


def test_the_same_question_is_asked_once(index: Index) -> None:
    again = ["Who was Tom Crean?", "who was  TOM CREAN?", BROAD, "Who was Frank Wild?"]
    _, llm = ask(index, steps(**{BROAD: {"score": 50, "follow_ups": again}}, other={
        "score": 40, "follow_ups": again}), rounds=3)  # fmt: skip
    assert asked_steps(llm) == [BROAD, "Who was Tom Crean?", "Who was Frank Wild?"]


def test_rounds_are_bounded_and_what_is_left_is_suggested(index: Index) -> None:
    many = {"score": 50, "follow_ups": ["Who was Tom Crean?", "Where is Ross Island?"]}
    answer, llm = ask(index, steps(**{BROAD: many}), rounds=1, follow_ups=1)
    assert asked_steps(llm) == [BROAD, "Who was Tom Crean?"]
    assert answer.follow_ups == ("Where is Ross Island?",)
    _, llm = ask(index, steps(**{BROAD: many}), rounds=0)
    assert asked_steps(llm) == [BROAD]


def test_without_follow_ups_the_question_itself_is_asked_locally(index: Index) -> None:
    _, llm = ask(index, steps(**{BROAD: {"score": 50}}))
    assert asked_steps(llm) == [BROAD, BROAD]
    assert "-----Sources-----" in llm.asked[1].messages[1]["content"]


@pytest.mark.parametrize(
    ("reply", "follow_ups"),
    [
        ({"answer": "It did.", "score": "4/5", "follow_ups": "1. Who was Scott?\n2. Who sailed?"},
         ["Who was Scott?", "Who sailed?"]),
        ({"response": "It did.", "follow_up_queries": [{"query": "Who was Scott?"}, 7, None]},
         ["Who was Scott?"]),
        ([{"answer": "It did.", "score": 80, "follow_ups": {"question": "Who was Scott?"}}],
         ["Who was Scott?"]),
        ("It did.", []),
        ({"answer": None, "score": None, "follow_ups": ["1910 began how?"]}, ["1910 began how?"]),
        ({"answer": "NO_RECORD of it", "score": 90, "follow_ups": []}, []),
    ],
)  # fmt: skip
def test_replies_are_read_tolerantly(index: Index, reply: Any, follow_ups: list[str]) -> None:
    _, llm = ask(index, steps(**{BROAD: reply}), rounds=1)
    assert asked_steps(llm) == [BROAD, *(follow_ups or [BROAD])]


def test_a_step_cites_only_what_it_was_shown(index: Index) -> None:
    reply = {"answer": "It did. [Data: Sources (3); Reports (99999)]", "score": 90}
    answer, llm = ask(index, steps(other=reply), rounds=0)
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert [request.format.name for request in llm.asked] == ["drift_step"]


def test_nothing_found_is_no_evidence_without_a_last_call(index: Index) -> None:
    answer, llm = ask(index, steps(other={"answer": "", "score": 0}))
    assert (answer.outcome, answer.text) == (Outcome.NO_EVIDENCE, NOTHING_FOUND)
    assert {request.format.name for request in llm.asked} == {"drift_step"}
    assert answer.looked_at["community_reports"] > 0
    assert answer.looked_at["text_units"] > 0


def test_a_failing_step_is_told_and_an_outage_is_an_error(index: Index) -> None:
    replies = {BROAD: {"score": 50, "follow_ups": ["Who was Scott?", "Who was Tom Crean?"]}}
    answer, _ = ask(index, steps(**replies, **{"Who was Scott?": None}), rounds=1)
    assert answer.outcome is Outcome.ANSWERED
    assert answer.looked_at["steps_failed"] == 1
    assert answer.notes[0] == "A call failed (it is empty): “Who was Scott?”."
    with pytest.raises(ModelError, match="answered no step"):
        ask(index, lambda _: None)


def test_a_name_that_the_documents_do_not_hold_is_said_without_a_call(index: Index) -> None:
    answer, llm = ask(index, steps(), "What did Albert Einstein eat on the ice?")
    assert answer.text == "The documents do not mention Albert Einstein."
    assert llm.asked == []
    assert answer.looked_at["text_units"] > 0


@examples(3)
@given(
    text=QUESTIONS,
    max_total_tokens=st.integers(10_000, 40_000),
    max_context_tokens=st.integers(200, 3_000),
    rounds=st.integers(0, 3),
)
def test_the_budget_holds_and_the_same_question_gets_the_same_prompts(
    sample_project: Path, text: str, max_total_tokens: int, max_context_tokens: int, rounds: int
) -> None:
    index = graphrag_query.open(sample_project / "output")
    leads = steps(
        other={"score": 50, "follow_ups": ["Who was Tom Crean?", "Where is Ross Island?"]}
    )
    values = {
        "max_total_tokens": max_total_tokens,
        "max_context_tokens": max_context_tokens,
        "rounds": rounds,
    }
    answer, llm = ask(index, leads, text, **values)
    again, chat_again = ask(index, leads, text, **values)
    assert llm.prompts_sent == chat_again.prompts_sent
    assert (answer.text, answer.citations) == (again.text, again.citations)
    assert sum(map(n_prompt_tokens, llm.prompts_sent)) <= max_total_tokens
    documents = dict(index.store.scan("documents").select("id", "text").collect().iter_rows())
    for citation in answer.citations:
        text = documents[citation.document_id]
        assert text[citation.start_char : citation.end_char] == citation.quote


def test_a_budget_that_is_used_up_is_told(index: Index) -> None:
    many = [f"Who was {name}?" for name in ("Tom Crean", "Scott", "Frank Wild", "Amundsen")]
    answer, llm = ask(
        index,
        steps(**{BROAD: {"score": 50, "follow_ups": many}}),
        max_total_tokens=10_000,
        follow_ups=4,
        rounds=1,
    )
    assert len(asked_steps(llm)) < 5
    assert any("not asked: max_total_tokens is used" in note for note in answer.notes)


def test_over_http_steps_are_answered_and_an_outage_is_an_outcome(
    sample_project: Path, model_server: Server
) -> None:
    settings = settings_with(sample_project, model_server)
    with graphrag_query.open(sample_project / "output", settings, sample_project) as index:
        whole = index.drift(BROAD, rounds=1)
        assert whole.outcome is Outcome.ANSWERED
        assert whole.citations
        assert whole.looked_at["steps"] > 1
        assert whole.usage.calls == whole.looked_at["steps"] + 1
        model_server.faults = Faults(by_number=[None, "content_filter"])
        part = index.drift("How did the dogs shape the expeditions?", rounds=1)
        assert part.looked_at["steps_failed"] == 1
        assert "content_filter" in part.notes[0]
        model_server.faults = Faults(rate=1.0, kinds=["500"])
        out = index.drift("What became of the ships of the expeditions?")
        assert out.outcome is Outcome.PROVIDER_ERROR


def test_over_http_the_budget_holds_whatever_the_replies(
    sample_project: Path, model_server: Server
) -> None:
    settings = settings_with(sample_project, model_server)
    kinds = ["wrong_schema", "length", "empty_content", "malformed_content"]
    model_server.faults = Faults(rate=0.6, kinds=kinds, redraw=True)
    with graphrag_query.open(sample_project / "output", settings, sample_project) as index:
        for max_total_tokens in (10_000, 20_000):
            before = len(model_server.requests)
            index.drift(BROAD, max_total_tokens=max_total_tokens, max_context_tokens=700)
            sent = sum(
                n_prompt_tokens(message["content"])
                for request in model_server.requests[before:]
                for message in request.json.get("messages", ())
            )
            assert 0 < sent <= max_total_tokens


def test_without_a_model_names_are_followed_up(index: Index, sample_project: Path) -> None:
    answer = index.drift(BROAD)
    assert answer.outcome is Outcome.ANSWERED
    assert answer.looked_at["entities_followed"] == 6
    assert answer.notes[0].startswith("Followed up: ")
    assert len(answer.sub_questions) == 6
    assert all(one.question.endswith(f": {BROAD}") for one in answer.sub_questions)
    check_citations(answer, sample_project / "output")
    alone = index.drift(BROAD, rounds=0)
    assert alone.looked_at["text_units"] < answer.looked_at["text_units"]


@pytest.mark.parametrize(
    "text", ["What is the capital of Mongolia?", "Did Marie Curie meet Ernest Shackleton?"]
)
def test_without_a_model_what_is_not_there_is_no_evidence(index: Index, text: str) -> None:
    answer = index.drift(text)
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.citations == ()
    assert answer.looked_at["text_units"] > 0


@examples(3)
@given(QUESTIONS)
def test_without_a_model_every_citation_resolves(sample_project: Path, text: str) -> None:
    answer = graphrag_query.open(sample_project / "output").drift(text)
    check_citations(answer, sample_project / "output")


def test_an_index_of_one_sentence_can_be_asked(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    shutil.rmtree(project / "input")
    (project / "input").mkdir()
    (project / "input" / "a.txt").write_text("Anna Berg met Tom Crean in Oslo.", encoding="utf-8")
    run_project(project)
    index = graphrag_query.open(project / "output")
    answer, _ = ask(index, steps(), "Who met in Oslo?")
    assert answer.outcome is Outcome.ANSWERED
    assert index.drift("Who met in Oslo?").outcome is Outcome.ANSWERED
    for selection in ("similar", "level", "dynamic"):
        found, llm = ask_global(index, selection)
        assert found.outcome is Outcome.ANSWERED
        assert len(llm.asked) == 1 + (selection == "dynamic")


def ask_global(index: Index, selection: str) -> tuple[Answer, FakeLLM]:
    llm = FakeLLM(one_point_a_report)
    settings = GlobalSearch().with_values({"selection": selection})
    return global_search(question_to(index, "What are the main themes?", llm), settings), llm


class WithoutReports(IndexStore):
    """An index whose list of reports is empty."""

    @property
    def report_list(self) -> pl.DataFrame:
        return super().report_list.clear()


def test_without_reports_global_asks_no_model_and_drift_begins_locally(index: Index) -> None:
    whole = index.store
    nothing = Index(WithoutReports(whole.backend, whole.version, whole.models))
    for selection in ("similar", "level", "dynamic"):
        found, llm = ask_global(nothing, selection)
        assert found.outcome is Outcome.NO_EVIDENCE
        assert llm.asked == []
    # Without a model, global search also reads passages.
    assert nothing.global_(BROAD).outcome is Outcome.ANSWERED
    answer, llm = ask(nothing, steps(), BROAD)
    assert answer.outcome is Outcome.ANSWERED
    assert asked_steps(llm) == [BROAD]
    assert nothing.drift(BROAD).outcome is Outcome.ANSWERED

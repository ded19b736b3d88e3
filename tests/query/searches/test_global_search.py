import shutil
from pathlib import Path

import pytest
from hypothesis import given

import graphrag_query
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from graphrag_query.retrieval import community_paths, report_selection
from graphrag_query.searches import global_sentences
from graphrag_query.store.index_store import IndexStore
from tests.conftest import copy_project, run_project
from tests.fixtures.cases import cases
from tests.fixtures.examples import examples
from tests.fixtures.sample_questions import QUESTIONS, check_citations, count_words


def test_the_main_themes_are_those_of_the_largest_communities(index: Index) -> None:
    answer = index.global_("What are the main themes?")
    assert answer.outcome is Outcome.ANSWERED
    assert answer.looked_at["community_reports"] >= 4
    for name in ("Robert Falcon Scott", "Ernest Shackleton", "Roald Amundsen"):
        assert name in answer.text
    assert "[Data: Reports (" in answer.text


def test_a_subject_is_answered_from_the_reports_that_speak_of_it(index: Index) -> None:
    answer = index.global_("How did scurvy affect the expeditions?")
    assert answer.outcome is Outcome.ANSWERED
    assert "scurvy" in answer.citations[0].quote.lower()


def test_an_answer_shows_the_reports_and_passages_that_were_read(index: Index) -> None:
    answer = index.global_("How did scurvy affect the expeditions?")
    read = answer.to_dict(with_context=True)
    scores = [report["score"] for report in read["reports"]]
    assert len(scores) > 2
    assert scores == sorted(scores, reverse=True)
    assert [row["id"] for row in read["context"]["Reports"]] == [
        report["community"] for report in read["reports"]
    ]
    sources = {row["id"] for row in read["context"]["Sources"]}
    assert sources & {citation.text_unit for citation in answer.citations}
    assert not {"reports", "context"} & answer.to_dict().keys()
    themes = index.global_("What are the main themes?")
    assert max(report.score for report in themes.reports) <= 1  # shares of the documents


def test_a_large_index_is_not_read_as_a_whole(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("How did scurvy affect the expeditions?", "What are the main themes?")
    monkeypatch.setattr(community_paths, "MAX_SAMPLED_TEXT_UNITS", 30)
    monkeypatch.setattr(global_sentences, "MAX_TEXT_UNITS", 20)
    monkeypatch.setattr(IndexStore, "scan", lambda *_: pytest.fail("a whole table is read"))
    for question in asked:
        assert len(index.global_(question).citations) > 5


def test_an_answer_covers_many_themes_within_its_words(index: Index) -> None:
    short = index.global_("How did expeditions fight scurvy?", max_words=150)
    long = index.global_("How did expeditions fight scurvy?", max_words=600)
    assert count_words(short) <= 150 < count_words(long) <= 600
    assert len(short.citations) >= short.looked_at["reports_used"] > 2
    assert len(long.citations) > long.looked_at["reports_used"]


def test_each_sentence_stands_once_and_is_cited_where_it_stands(index: Index) -> None:
    answer = index.global_("How did scurvy affect the expeditions?")
    quotes = [" ".join(citation.quote.split()) for citation in answer.citations]
    assert len(set(quotes)) == len(quotes)
    assert all(f"{quote} [{n}]" in answer.text for n, quote in enumerate(quotes, 1))


@cases("question")
def test_a_question_that_only_asks_about_the_whole_is_answered_by_themes(
    index: Index, question: str
) -> None:
    answer = index.global_(question)
    assert answer.text.startswith("The largest themes of the documents")


def test_what_no_report_speaks_of_is_no_evidence(index: Index) -> None:
    answer = index.global_("What is quantum chromodynamics?")
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.looked_at["community_reports"] > 0
    assert answer.text == "No community report is similar enough to this question."


def test_a_question_in_the_language_of_the_documents_without_their_words_is_no_evidence(
    index: Index,
) -> None:
    for question in ("Which chromodynamics are criticised?", "What is the best pizza?"):
        assert index.global_(question).outcome is Outcome.NO_EVIDENCE


def test_a_name_that_the_documents_do_not_hold_is_said_so(index: Index) -> None:
    answer = index.global_("What did Albert Einstein find out about ice?")
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text == "The documents do not mention Albert Einstein."


@examples(8)
@given(QUESTIONS)
def test_every_citation_resolves_for_any_question(sample_project: Path, question: str) -> None:
    answer = graphrag_query.open(sample_project / "output").global_(question)
    check_citations(answer, sample_project / "output")


def test_the_level_can_be_chosen(index: Index) -> None:
    coarse = index.global_("What are the main themes?", level=0)
    fine = index.global_("What are the main themes?", level=1)
    assert coarse.parameters["level"] == 0
    assert fine.looked_at["community_reports"] > coarse.looked_at["community_reports"]
    for question in ("What are the main themes?", "What did the ships carry?"):
        assert index.global_(question, level=99).parameters["level"] < 99


def test_themes_are_bounded(index: Index) -> None:
    answer = index.global_("What are the main themes?", max_points=2)
    assert answer.looked_at["reports_used"] == 2
    assert "\n3. " not in answer.text


def test_what_several_documents_state_is_marked_in_the_context_of_a_model(index: Index) -> None:
    reports = index.store.report_list
    shown = report_selection.as_context_rows(index.store, reports, "full_content")
    stated = index.store.scan("community_reports").select("community", "statements").collect()
    n_marked = 0
    texts = dict(shown.iter_rows())
    for community, records in stated.iter_rows():
        counts = {one["text"]: one["n_documents"] for one in records}
        for said, n in counts.items():
            assert (f"{said} ({n} documents)" in texts[community]) == (n > 1)
            n_marked += n > 1
    assert n_marked


def test_texts_without_a_sentence_are_no_evidence(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    shutil.rmtree(project / "input")
    (project / "input").mkdir()
    (project / "input" / "names.txt").write_text("Tom Crean\n\nEdgar Evans\n", encoding="utf-8")
    run_project(project)
    with graphrag_query.open(project / "output") as index:
        for question in ("What are the main themes?", "What did Crean do?"):
            assert index.global_(question).outcome is Outcome.NO_EVIDENCE

import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given

import graphrag_query
from graphrag_query.answer import Outcome
from graphrag_query.answering.theme_answer import Point, Theme, choose_points
from graphrag_query.index import Index
from graphrag_query.retrieval import report_selection, theme_passages
from graphrag_query.searches import main_entities, subject_sentences
from graphrag_query.searches.global_sentences import MAX_REPORTS, _keep_best_sections
from graphrag_query.store.index_store import IndexStore
from tests.conftest import copy_project, run_project
from tests.fixtures.examples import examples
from tests.fixtures.fake_llm import question_to
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
    assert 0 < len(scores) <= MAX_REPORTS
    assert scores == sorted(scores, reverse=True)
    assert [row["id"] for row in read["context"]["Reports"]] == [
        report["community"] for report in read["reports"]
    ]
    sources = {row["id"] for row in read["context"]["Sources"]}
    assert sources & {citation.text_unit for citation in answer.citations}
    assert not {"reports", "context"} & answer.to_dict().keys()
    themes = index.global_("What are the main themes?")
    assert max(report.score for report in themes.reports) <= 1  # shares of the documents
    people = index.global_("Who are the main people?").to_dict(with_context=True)
    counts = [row["relationships"] for row in people["context"]["Entities"]]
    assert counts == sorted(counts, reverse=True)


def test_the_texts_of_few_reports_are_read(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def with_texts(store: IndexStore, reports: pl.DataFrame, *columns: str) -> pl.DataFrame:
        read.extend(reports["community"])
        return original(store, reports, *columns)

    original = IndexStore.with_texts
    monkeypatch.setattr(IndexStore, "with_texts", with_texts)
    for search in (index.global_, index.drift):
        read.clear()
        assert search("How did scurvy affect the expeditions?").outcome is Outcome.ANSWERED
        assert 0 < len(read) <= MAX_REPORTS < index.store.n_rows("community_reports") / 4


def test_a_large_index_is_not_read_as_a_whole(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("How did scurvy affect the expeditions?", "Who are the main people?")
    whole = [index.global_(question).text for question in asked]
    monkeypatch.setattr(report_selection, "MAX_SIMILAR_REPORTS", 100)
    monkeypatch.setattr(main_entities, "FIRST_ENTITIES", 1)
    monkeypatch.setattr(IndexStore, "scan", lambda *_: pytest.fail("a whole table is read"))
    assert [index.global_(question).text for question in asked] == whole
    monkeypatch.setattr(theme_passages, "MAX_SAMPLED_TEXT_UNITS", 30)
    sampled = index.global_(asked[0])
    assert all("scurvy" in citation.quote.lower() for citation in sampled.citations[:3])


def test_a_word_that_is_all_over_the_corpus_makes_few_points(index: Index) -> None:
    answer = index.global_("How did expeditions fight scurvy?")
    said = ["scurvy" in citation.quote.lower() for citation in answer.citations]
    assert len(said) > 5
    assert all(said[:5])
    assert sum(said) > 0.7 * len(said)


def test_an_answer_covers_many_themes_and_then_details(index: Index) -> None:
    short = index.global_("How did expeditions fight scurvy?", max_words=150)
    long = index.global_("How did expeditions fight scurvy?", max_words=600)
    assert count_words(short) <= 150 < count_words(long) <= 600
    assert len(short.citations) >= short.looked_at["reports_used"] > 2
    assert len(long.citations) > long.looked_at["reports_used"]
    # Every theme of several documents says how many it has.
    assert re.search(r"\*\* \((?:[2-9]|\d\d) documents\)", long.text)


def test_a_theme_gets_sentences_by_the_root_of_its_weight() -> None:
    heavy, light = (
        Theme(name, "", "", [Point(f"{name}{i} said to{i} that{i}", 0, 1.0) for i in range(5)], w)
        for name, w in (("Crean", 9.0), ("Evans", 1.0))
    )
    # A sentence has 4 words and a citation, and a heading a name and a number.
    left = choose_points([heavy, light], 3 * 5 + 2 + 5 + 2, [], 5, count_names=True)
    assert (len(heavy.chosen), len(light.chosen), left) == (3, 1, 0)


def test_no_theme_has_a_third_sentence_before_another_has_one() -> None:
    heavy, light = (
        Theme(name, "", "", [Point(f"{name}{i} said to{i} that{i}", 0, 1.0) for i in range(5)], w)
        for name, w in (("Crean", 90.0), ("Evans", 1.0))
    )
    choose_points([heavy, light], 3 * 5 + 2 + 2, [], 5, count_names=True)
    assert (len(heavy.chosen), len(light.chosen)) == (2, 1)


def test_a_theme_is_named_by_its_sentences_and_the_subject_of_its_passages(index: Index) -> None:
    units = index.store.text_units(range(300)).items()
    number = next(number for number, unit in units if unit["text"].startswith("The Fram was"))
    points = [Point("It was designed by Colin Archer.", number, 1.0)]

    def names_for(question: str) -> list[str]:
        [names] = main_entities.name_themes(question_to(index, question), [points])
        return names

    assert names_for("Who designs ships?") == ["Fram", "Colin Archer"]
    assert names_for("Who designed the Fram?") == ["Colin Archer"]


def test_it_says_that_more_documents_may_fit_if_the_search_is_cut(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "How did scurvy affect the expeditions?"
    assert re.match(r"\d+ of 63 documents", index.global_(question).text)
    monkeypatch.setattr(theme_passages, "MAX_TEXT_UNITS", 8)
    monkeypatch.setattr(subject_sentences, "MAX_TEXT_UNITS", 8)
    assert index.global_(question).text.startswith("At least ")


CHAT = """Time: 20260408_1900
OlgaNowak: The tap in the kitchen of my house leaks since Monday, and the floor is wet.
JanBlum: No problem! Is the house insured?
JanBlum: A plumber will repair the tap tomorrow, the landlord of the house pays for it.
"""


def test_what_says_nothing_is_not_quoted_and_speakers_are_named(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    shutil.rmtree(project / "input")
    (project / "input").mkdir()
    (project / "input" / "chat.txt").write_text(CHAT, encoding="utf-8")
    run_project(project)
    index = graphrag_query.open(project / "output")
    answer = index.global_("What problems are reported with the house?")
    assert "OlgaNowak: The tap in the kitchen" in answer.text
    assert "JanBlum: A plumber" in answer.text
    assert "No problem" not in answer.text
    assert "insured" not in answer.text


@pytest.mark.parametrize(
    "question",
    [
        "What are the main themes and who matters most?",
        "Was sind die wichtigsten Themen?",
        "¿De qué tratan estos textos en conjunto?",
        "What do these documents deal with?",
        "What are the key takeaways?",
        "Wovon handeln die Dokumente?",
        "What are the main topics of these conversations?",
        "Was sind die wichtigsten Themen dieses Buches?",
        "Gib mir einen Überblick über die Sammlung.",
        "Quels sujets sont abordés ?",
        "Dame una visión general.",
        "Di cosa parlano questi documenti?",
        "De que tratam estes documentos?",
        "Waar gaan deze documenten over?",
        "Vad handlar dokumenten om?",
        "O czym są te dokumenty?",
        "Jaká jsou hlavní témata?",
        "О чём эти документы?",
    ],
)
def test_a_question_that_only_asks_about_the_whole_is_answered_by_themes(
    index: Index, question: str
) -> None:
    answer = index.global_(question)
    assert answer.text.startswith("The largest themes of the documents")


def test_what_somebody_reports_is_answered_without_the_words_for_it(index: Index) -> None:
    answer = index.global_("Which diseases are criticised?")
    assert answer.outcome is Outcome.ANSWERED
    answer = index.global_("Which chromodynamics are criticised?")
    assert answer.outcome is Outcome.NO_EVIDENCE


def test_what_no_report_speaks_of_is_no_evidence(index: Index) -> None:
    answer = index.global_("What is quantum chromodynamics?")
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.looked_at["community_reports"] > 0
    assert answer.text == "No community report is similar enough to this question."


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


def test_themes_answer_a_question_for_something_that_any_corpus_has(index: Index) -> None:
    answer = index.global_("What are the main interests and goals in these texts?")
    assert answer.outcome is Outcome.ANSWERED
    assert answer.text.startswith("No passage fits the words of this question. The largest themes")


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


def test_themes_beside_the_subject_are_no_sections() -> None:
    def theme(name: str, *scores: float) -> Theme:
        return Theme(name, "", "", [Point(f"{name} {score}", 0, score) for score in scores])

    themes = [theme("homes", 1.1, 0.4), theme("rents", 1.0), theme("tenants", 1.0, 0.9)]
    aside, beside = theme("stables", 0.6), theme("House of Commons", 0.4)
    kept, others = _keep_best_sections([*themes, aside, beside], [Point("sheds", 0, 0.55)])
    assert [one.name for one in kept] == ["homes", "rents", "tenants"]
    assert [point.text for point in kept[0].points] == ["homes 1.1"]
    assert [point.text for point in others] == ["sheds", "stables 0.6"]
    assert _keep_best_sections(kept[:1], []) == (kept[:1], [])

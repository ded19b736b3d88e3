import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

import graphrag_query
from graphrag_index.errors import SettingsError, TableError
from graphrag_index.schema.settings.searches import GlobalSearch
from graphrag_index.storage.table_store import open_index
from graphrag_index.storage.versions import move_pointer
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.written_answer import HEADING_TOKENS
from graphrag_query.index import Index
from graphrag_query.question.question import find_similar_names
from graphrag_query.searches.global_search import global_search
from graphrag_query.searches.router import METHODS
from tests.conftest import run_project
from tests.fixtures.fake_llm import FakeLLM, one_point_a_report, question_to, shown, shown_sources


def without_time(answer: Answer) -> Answer:
    usage = dataclasses.replace(answer.usage, seconds=0.0)
    return dataclasses.replace(answer, usage=usage, context=None)


def test_every_search_has_a_method(index: Index) -> None:
    for method in METHODS:
        assert callable(getattr(index, "global_" if method == "global" else method))


def test_many_questions_are_answered_in_their_order_from_several_threads(index: Index) -> None:
    questions = [f"Who was {name}?" for name in ("Tom Crean", "Frank Wild", "Frank Worsley")] * 4
    answers = index.ask_many(questions, "local", concurrency=6)
    assert [answer.question for answer in answers] == questions
    alone = {question: without_time(index.local(question)) for question in questions[:3]}
    assert [without_time(answer) for answer in answers] == [alone[q] for q in questions]


@pytest.mark.parametrize("method", ["local", "global", "basic"])
def test_a_stream_gives_the_text_of_the_answer(index: Index, method: str) -> None:
    stream = index.stream(method, "Who was Tom Crean?")
    assert "".join(stream) == stream.answer.text
    assert list(stream) == []
    assert without_time(stream.answer) == without_time(index.search(method, "Who was Tom Crean?"))


def test_a_stream_raises_what_the_search_raises(index: Index) -> None:
    stream = index.stream("local", " ")
    with pytest.raises(SettingsError, match="empty"):
        list(stream)
    with pytest.raises(SettingsError, match="empty"):
        _ = stream.answer


def test_the_context_can_be_had_without_asking(index: Index) -> None:
    context = index.context("Who was Tom Crean?", max_context_tokens=500)
    assert "Tom Crean" in context.text
    assert context.n_tokens <= 500


@pytest.mark.parametrize("values", [{}, {"max_map_tokens": 600}, {"selection": "level"}])
@pytest.mark.parametrize("question", ["How did they fight scurvy?", "What are the main themes?"])
def test_the_context_of_global_search_is_what_the_model_reads(
    index: Index, question: str, values: dict[str, object]
) -> None:
    context = index.context(question, method="global", **values)
    llm = FakeLLM(one_point_a_report)
    global_search(question_to(index, question, llm), GlobalSearch().with_values(values))
    calls = [asked for asked in llm.asked if asked.format.name == "points"] or llm.asked
    read = [number for asked in calls for number in shown(asked)]
    # Passages are shown for a question with a subject.
    shown_passages = {number for asked in calls for number in shown_sources(asked)}
    assert set(context.tables["Sources"]["id"] if "scurvy" in question else ()) == shown_passages
    assert bool(shown_passages) == ("scurvy" in question)
    assert context.tables["Reports"]["id"].to_list() == read
    assert all(f"\n{number}," in context.text for number in read)
    if "max_map_tokens" in values:
        assert context.n_tokens <= 600 + 2 * HEADING_TOKENS


@pytest.mark.parametrize(
    "method", [name for name in METHODS if name not in ("structured", "compare")]
)
def test_every_search_without_a_query_of_a_model_has_a_context(index: Index, method: str) -> None:
    context = index.context("When did Roald Amundsen reach the South Pole?", method=method)
    assert not context.is_empty
    assert "Amundsen" in context.text


def test_a_search_that_has_no_context_names_those_that_have_one(index: Index) -> None:
    having = "ask, local, global, basic, drift, lazy, path, neighbourhood, compare"
    with pytest.raises(SettingsError, match=rf"searches have one: {having}\."):
        index.context("How many ships?", method="structured")
    with pytest.raises(SettingsError, match="selection to similar or level"):
        index.context("How did they fight scurvy?", method="global", selection="dynamic")
    assert index.context("What did Marie Curie say?", method="global").is_empty


def test_the_folder_of_a_project_can_be_opened(sample_project: Path) -> None:
    with graphrag_query.open(sample_project) as index:
        assert index.local("Who was Tom Crean?").outcome == "answered"


@pytest.mark.parametrize("question", [None, 5, ["Who was Tom Crean?"]])
def test_a_question_that_is_no_text_is_refused(index: Index, question: Any) -> None:
    with pytest.raises(SettingsError, match=r"^A question is a text, not "):
        index.local(question)


def test_one_text_is_not_taken_for_many_questions(index: Index) -> None:
    with pytest.raises(SettingsError, match=r"^Many questions are a list of texts"):
        index.ask_many("Who was Tom Crean?")


def test_an_unknown_search_or_setting_is_told(index: Index) -> None:
    with pytest.raises(SettingsError, match="There is no search 'universal'"):
        index.search("universal", "Who?")
    with pytest.raises(SettingsError, match="top_k_entities"):
        index.local("Who?", top_k_entitis=3)


def test_a_search_that_lacks_a_table_says_so(sample_project: Path, tmp_path: Path) -> None:
    shutil.copytree(sample_project / "output", tmp_path / "output", symlinks=True)
    store, version = open_index(tmp_path / "output")
    steps = tuple(s for s in version.steps if s.name != "create_community_reports_nlp")
    move_pointer(store.output, dataclasses.replace(version, steps=steps))
    answer = graphrag_query.open(tmp_path / "output").global_("What are the themes?")
    assert answer.outcome is Outcome.INDEX_INCOMPLETE
    assert "no community_reports" in answer.text
    with pytest.raises(TableError, match="no community_reports"):
        graphrag_query.open(tmp_path / "output").context("What are the themes?", "global")


def test_what_a_run_left_out_is_told_with_every_answer(
    sample_project: Path, tmp_path: Path
) -> None:
    shutil.copytree(sample_project / "output", tmp_path / "output", symlinks=True)
    store, version = open_index(tmp_path / "output")
    first, *rest = version.steps
    partial = dataclasses.replace(first, quarantined=3)
    move_pointer(store.output, dataclasses.replace(version, steps=(partial, *rest)))
    answer = graphrag_query.open(tmp_path / "output").local("Who was Tom Crean?")
    assert answer.notes == (
        "The index is incomplete. Requests to a model without a result: 3 of load_documents.",
    )


def test_an_earlier_version_can_be_asked(sample_project: Path, tmp_path: Path) -> None:
    shutil.copytree(sample_project, tmp_path / "project", symlinks=True)
    root = tmp_path / "project"
    letter = root / "input" / "letter.txt"
    letter.write_text("Ulrika Stenmark kept bees on Gotland until 1931.", encoding="utf-8")
    run_project(root)
    question = "What did Ulrika Stenmark keep?"
    assert "bees" in graphrag_query.open(root / "output").local(question).text
    before = graphrag_query.open(root / "output", as_of=1)
    assert before.local(question).outcome is Outcome.NO_EVIDENCE
    assert before.local("Who was Tom Crean?").version == 1
    with pytest.raises(TableError, match="no version 7; it has: 1, 2"):
        graphrag_query.open(root / "output", as_of=7)


def test_only_names_that_resemble_the_unknown_one_are_suggested(index: Index) -> None:
    assert "Roald Amundsen" in find_similar_names(index.store, "Amundson")
    assert find_similar_names(index.store, "Café de Genf") == []

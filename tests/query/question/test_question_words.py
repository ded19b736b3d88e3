"""Questions in scripts that the built-in embedding model cannot read."""

from shutil import rmtree

import pytest

import graphrag_query
from graphrag_query.index import Index
from graphrag_query.question.question_words import (
    find_question_language,
    is_unreadable,
    language_in,
    share_words,
)
from tests.conftest import copy_project, run_project
from tests.fixtures.cases import cases

TEXTS = {
    "ru": "Анна Соколова родилась в Казани. Её лаборатория производила пенициллин.",
    "zh": "李明在北京大学学习天文学。上海天文台为这项研究提供了望远镜。",
    "ar": "أسس الطبيب يوسف الحداد مستشفى النور. درس الطب في القاهرة.",
    "log": "[09:25] lena: fix is in review, PR 1182\n[09:26] max: nice, thanks",
    "en": "Ticket 4711 was closed on a Monday. The stove of the observatory smokes.",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    root = copy_project(tmp_path_factory.mktemp("scripts") / "project")
    rmtree(root / "input")
    (root / "input").mkdir()
    for name, text in TEXTS.items():
        (root / "input" / f"{name}.txt").write_text(text, encoding="utf-8")
    run_project(root)
    return graphrag_query.open(root / "output")


@pytest.mark.parametrize("method", ["local", "basic", "lazy"])
@cases("question, held")
def test_what_is_asked_is_found_by_its_words(
    index: Index, method: str, question: str, held: str
) -> None:
    answer = index.search(method, question)
    assert answer.outcome == "answered"
    assert held in answer.citations[0].quote


@pytest.mark.parametrize("method", ["local", "basic", "lazy", "drift"])
@pytest.mark.parametrize(
    "question",
    ["кто изобрёл телефон?", "谁发明了电话？", "ما هي عاصمة فرنسا؟", "誰が電話を発明したか"],
)
def test_what_no_document_tells_is_no_evidence(index: Index, method: str, question: str) -> None:
    assert index.search(method, question).outcome == "no_evidence"


@pytest.mark.parametrize(
    ("text", "unread"),
    [("Who was Łukasz?", False), ("Кто такой Scott?", True), ("4711", False), ("", False)],
)
def test_most_letters_tell_the_script(index: Index, text: str, unread: bool) -> None:
    assert is_unreadable(index.store, text) is unread


@cases("question, sentence, shared")
def test_words_are_shared_with_any_ending(question: str, sentence: str, shared: bool) -> None:
    assert share_words(question, sentence) is shared


@cases("text, code")
def test_an_inverted_mark_before_a_sentence_is_spanish(text: str, code: str) -> None:
    assert language_in(text).code == code


@cases("question, code")
def test_the_first_word_of_a_short_question_tells_its_language(question: str, code: str) -> None:
    assert find_question_language(question).code == code


@pytest.mark.parametrize(
    ("question", "of_documents", "code"),
    [
        ("Altdorf?", {"fr"}, "und"),
        ("Alpha or Beta?", {"en"}, "en"),
        ("Is Alpha purely red?", {"en", "de"}, "en"),
        ("Is Olga blind?", {"nl"}, "nl"),
        ("Is Alpha purely red?", set(), "en"),
        ("Quanto costa?", {"pt"}, "pt"),
        ("Norda", {"de", "en"}, "und"),
    ],
)
def test_the_documents_tell_the_language_of_an_unclear_question(
    question: str, of_documents: set[str], code: str
) -> None:
    assert find_question_language(question, of_documents).code == code

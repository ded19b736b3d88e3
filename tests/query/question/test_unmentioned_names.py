"""Names of questions in small corpora of several languages: found, absent, or perhaps there."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from graphrag_index.schema.settings.searches import LocalSearch
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from graphrag_query.searches.local_search import local_search
from tests.fixtures.cases import cases
from tests.fixtures.fake_llm import FakeLLM, question_to
from tests.fixtures.small_projects import index_texts

CORPORA = {
    "en": [
        "Karl Müller is the treasurer of the Blue-Lamp Society. "
        "He lives in Saint-Étienne. "
        "The World Health Organization opened a house in Riga in 1999.",
        "Jean O'Neil wrote to François Mitterand about the Northport Harbour Company. "
        "The Millers own a mill in Kyiv. "
        "The clerk met Zdeněk Dvořák and Łukasz Żak.",
        "NATO sent an envoy to Reykjavík. "
        "Al-Jazeera reported it. "
        "MacDonald Steelworks supplied the rails. "
        "The Wolfgangschulz Foundation paid. "
        "Aleksandr Solzhenitsyn visited the Straße der Einheit.",
    ],
    "ru": [
        "Иван Соколов был первым начальником порта Зелёная Гавань. "
        "В 1953 году Иван Соколов построил северный причал.",
    ],
    "ko": [
        "김민수는 푸른항의 첫 번째 항만장이었다. "
        "1953년에 김민수는 푸른항에 북부두를 건설했다. "
        "박지영은 학교에서 일했다.",
    ],
    "zh": [
        "林海是青石港的第一任港务长。林海修建了北码头。陈月担任镇长。臺灣銀行在高雄開設分行。",
    ],
    "ar": [
        "أسس محمد الرازي مستشفى بغداد. كانت فاطمة الفهري طبيبة في المستشفى.",
    ],
}
OpenCorpus = Callable[[str], Index]


@pytest.fixture(scope="module")
def open_corpus(tmp_path_factory: pytest.TempPathFactory) -> OpenCorpus:
    """Open the index of a corpus by its name; it is made when first asked for."""
    return cache(lambda code: index_texts(tmp_path_factory.mktemp(code), CORPORA[code]))


@cases("code, question, said")
def test_a_name_is_found_in_any_form(
    open_corpus: OpenCorpus, code: str, question: str, said: str
) -> None:
    answer = open_corpus(code).local(question)
    assert answer.outcome is Outcome.ANSWERED
    assert said in answer.citations[0].quote


@cases("code, question, said")
def test_a_name_that_nothing_resembles_is_absent(
    open_corpus: OpenCorpus, code: str, question: str, said: str
) -> None:
    answer = open_corpus(code).local(question)
    assert (answer.text, answer.outcome) == (said, Outcome.NO_EVIDENCE)


@cases("code, question")
@pytest.mark.parametrize("method", ["ask", "basic"])
def test_no_name_is_called_absent_that_may_be_there_in_another_form(
    open_corpus: OpenCorpus, code: str, question: str, method: str
) -> None:
    answer = open_corpus(code).search(method, question)
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert "mention" not in answer.text
    assert all(cell.state != "no_thing" for cell in answer.cells)


def test_an_answer_quotes_only_what_names_a_name_in_another_script(
    open_corpus: OpenCorpus,
) -> None:
    quotes = [citation.quote for citation in open_corpus("ko").local("Who is 김민수?").citations]
    assert quotes
    assert all("김민수" in quote for quote in quotes)


def test_a_model_reads_the_passages_if_a_name_may_be_in_another_script(
    open_corpus: OpenCorpus,
) -> None:
    llm = FakeLLM(lambda request: "The first head of the port [Data: Sources (0)].")
    question = question_to(open_corpus("ru"), "Who is Ivan Sokolov?", llm)
    answer = local_search(question, LocalSearch())
    assert answer.text == "The first head of the port [1]."
    assert "Иван Соколов" in answer.citations[0].quote


def test_characters_that_are_not_shown_cut_no_name(tmp_path: Path) -> None:
    text = (
        "The Bank of Mer\xadce\xaddes was founded by Anna\u200b Berg in 1990. "
        "\u202aAnna Berg\u202c left the Bank of Mercedes in 1998. "
        "Karl\u2060 Ost followed Anna Berg. The clerk met Karl Ost\ufeff in Riga."
    )
    with index_texts(tmp_path, [text]) as index:
        titles = index.store.scan("entities").collect()["title"].to_list()
        answer = index.local("Who founded the Bank of Mercedes?")
    assert set(titles) == {"Bank of Mercedes", "Anna Berg", "Karl Ost", "Riga"}
    assert answer.citations[0].quote == "The Bank of Mercedes was founded by Anna Berg in 1990."

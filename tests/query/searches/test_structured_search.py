"""Questions for which a model writes the query: what it is told, what becomes of its replies."""

import json
from pathlib import Path
from typing import Any

import pytest

import graphrag_query
from graphrag_index.errors import SettingsError
from graphrag_index.llm.reply_parser import read_reply
from graphrag_index.llm.request import ReplyError, Request
from graphrag_index.schema.settings.searches import StructuredSearch
from graphrag_query.answer import Answer, Outcome
from graphrag_query.index import Index
from graphrag_query.searches.structured_search import (
    NO_RECORD,
    QUERY_FORMAT,
    read_query,
    structured_search,
)
from tests.fixtures.cases import cases
from tests.fixtures.commands import ask as command
from tests.fixtures.fake_llm import FakeLLM, index_behind, question_to
from tests.model_server import ChatRequest, Faults, Server

PEOPLE = "How many documents are about people?"
COUNT = "SELECT count(*) AS n FROM documents WHERE path LIKE 'people/%'"


@pytest.fixture(scope="module")
def index(sample_project: Path) -> Index:
    return graphrag_query.open(sample_project / "output")


def ask(
    index: Index, question: str, *queries: str, answer: str = "20 [Data: Rows (1)]", **values: Any
) -> tuple[Answer, FakeLLM]:
    """Ask with a model that writes these queries, one after the other, and then this answer."""
    left = list(queries)

    def reply(request: Request) -> Any:
        return {"why": "it fits", "sql": left.pop(0)} if request.format is QUERY_FORMAT else answer

    llm = FakeLLM(reply)
    settings = StructuredSearch(**values)
    found = structured_search(question_to(index, question, llm), settings)
    assert not left
    return found, llm


def told(llm: FakeLLM, n: int) -> str:
    """The last message of a request."""
    return llm.asked[n].messages[-1]["content"]


def test_the_answer_is_written_from_the_rows_and_the_query_is_shown(index: Index) -> None:
    found, llm = ask(index, PEOPLE, COUNT)
    assert found.outcome is Outcome.ANSWERED
    assert found.text.startswith("20")
    assert "[" not in found.text
    assert found.notes == (f"Query: {COUNT}",)
    assert found.looked_at == {"queries": 1, "rows": 1}
    written = told(llm, 1)
    assert written.startswith(f"Query: {COUNT}")
    assert "id,n\n1,20\n" in written


def test_the_model_knows_tables_values_and_names_that_resemble_the_question(index: Index) -> None:
    _, llm = ask(index, "How many documents name Ernest Shakleton?", COUNT)
    asked = told(llm, 0)
    assert "entities: one row is one entity" in asked
    assert "entities.type: 'person'" in asked
    assert "- Ernest Shackleton" in asked
    assert asked.endswith("Question: How many documents name Ernest Shakleton?")


def test_rows_that_are_entities_are_cited_and_followed_to_a_passage(index: Index) -> None:
    query = "SELECT id, title FROM entities WHERE title = 'Tom Crean'"
    number = index.sql("SELECT human_readable_id FROM entities WHERE title = 'Tom Crean'").rows[0][
        0
    ]
    written = f"Tom Crean was an Irish seaman [Data: Entities ({number}, 999)]."
    found, _ = ask(index, "Which entity is Tom Crean?", query, answer=written)
    assert found.text == "Tom Crean was an Irish seaman [1]."
    assert found.citations[0].cited_as == f"Entities ({number})"
    assert "1 citation was removed, because the context has no such row." in found.notes


def test_rows_some_of_which_are_no_entities_are_not_cited(index: Index) -> None:
    query = "SELECT title FROM entities WHERE title = 'Tom Crean' UNION ALL SELECT 'Nobody'"
    found, llm = ask(index, "Who is there?", query, answer="Two [Data: Entities (0)].")
    assert "-----Rows-----" in told(llm, 1)
    assert found.text == "Two."


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("SELECT nothing FROM documents", "nothing"),
        ("DELETE FROM documents", "DELETE is refused"),
        ("SELECT * FROM read_csv('/etc/passwd')", "read_csv|disabled"),
    ],
)
def test_what_is_wrong_with_a_query_is_told_to_the_model(
    index: Index, wrong: str, why: str
) -> None:
    found, llm = ask(index, PEOPLE, wrong, COUNT)
    assert found.outcome is Outcome.ANSWERED
    assert any(word in told(llm, 1) for word in why.split("|"))
    assert wrong in found.notes[0]
    assert found.notes[1] == f"Query: {COUNT}"


def test_without_a_query_that_works_passages_answer(index: Index) -> None:
    wrong = "SELECT nothing FROM documents"
    found, llm = ask(index, "Where was Tom Crean born?", wrong, wrong, answer="In Kerry.")
    assert (found.text, found.outcome) == ("In Kerry.", Outcome.ANSWERED)
    assert any("local search" in note for note in found.notes)
    assert "-----Sources-----" in told(llm, 2)


def test_a_query_that_finds_nothing_is_written_again_over_names_alike(index: Index) -> None:
    query = "SELECT count(*) FROM entities WHERE title = '{}'"
    wrong, right = query.format("Thomas Crean"), query.format("Tom Crean")
    found, llm = ask(index, "How many are called Thomas Crean?", wrong, right, answer="1")
    assert "Tom Crean" in told(llm, 1)
    assert found.notes == (f"Query that found nothing: {wrong}", f"Query: {right}")


def test_what_nothing_is_close_to_is_no_record(index: Index) -> None:
    query = "SELECT count(*) FROM documents WHERE path = 'x'"
    found, llm = ask(index, "How many invoices?", query, "", min_similarity=0.99)
    assert (found.text, found.outcome) == (NO_RECORD, Outcome.NO_EVIDENCE)
    assert len(llm.asked) == 2


def test_a_question_that_is_no_matter_of_rows_goes_to_passages(index: Index) -> None:
    found, llm = ask(index, "Why did Scott fail?", "", answer="NO_RECORD Nothing tells why.")
    assert found.outcome is Outcome.NO_EVIDENCE
    assert len(llm.asked) == 2


@cases("reply, sql")
def test_queries_are_read_as_models_write_them(reply: Any, sql: str) -> None:
    assert read_query(reply).value == sql


@cases("reply, sql")
def test_a_query_that_stands_in_no_json_is_read(reply: str, sql: str) -> None:
    assert read_reply(reply, QUERY_FORMAT).value == sql


@pytest.mark.parametrize(
    "reply", ["I cannot select that.", "```\nSELECT 1\n```\nor\n```\nSELECT 2\n```", ""]
)
def test_a_reply_without_one_query_is_none(reply: str) -> None:
    with pytest.raises(ReplyError):
        read_reply(reply, QUERY_FORMAT)


def test_a_reply_without_text_is_none() -> None:
    with pytest.raises(ReplyError):
        read_query({"sql": 3})


def test_rows_beyond_the_limit_are_told(index: Index) -> None:
    query = "SELECT title, path FROM documents ORDER BY path"
    found, llm = ask(index, "Which documents are there?", query, answer="Many.", max_rows=5)
    assert any("more rows than the 5" in note for note in found.notes)
    assert "there are more" in told(llm, 1)


def test_without_a_model_it_says_what_to_do(index: Index, sample_project: Path) -> None:
    with pytest.raises(SettingsError, match="needs a chat model"):
        index.structured(PEOPLE)
    result = command("structured", PEOPLE, "--root", str(sample_project))
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)


def test_an_outage_is_no_missing_record(model_server: Server, sample_project: Path) -> None:
    model_server.faults = Faults(rate=1.0, kinds=["500"])
    with index_behind(model_server, sample_project) as index:
        assert index.structured(PEOPLE).outcome is Outcome.PROVIDER_ERROR


def test_it_works_over_the_wire(sample_project: Path) -> None:
    def answer(llm: ChatRequest) -> Any:
        if "-----Rows-----" in llm.texts[-1]:
            return "There are 20."
        return json.dumps({"why": "it counts", "sql": COUNT})

    with Server(answer=answer) as server, index_behind(server, sample_project) as index:
        found = index.search("structured", PEOPLE)
    assert (found.text, found.outcome) == ("There are 20.", Outcome.ANSWERED)
    assert found.usage.calls == 2

"""Questions in the layouts of known sets."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphrag_evaluation.questions import EvaluationQuestion, read_questions, write_questions
from graphrag_index.errors import GraphRAGError, SettingsError
from tests.fixtures.examples import n_examples

FIELDS = [
    *("id", "question", "user_input", "answer", "aliases", "documents", "ref_urls", "spans"),
    *("statements", "reference_contexts", "supporting_facts", "paragraphs", "is_answerable"),
    *("document", "start_char", "end_char", "text", "title", "is_supporting", "statement"),
]
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 3), st.floats(), st.sampled_from(["", "a", "a\u2028"])
)


def read(folder: Path, *records: Any, name: str = "questions.jsonl") -> list[EvaluationQuestion]:
    path = folder / name
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return read_questions(path)


def test_the_layout_of_hotpotqa(tmp_path: Path) -> None:
    record = {
        "_id": "a",
        "question": "Who led it?",
        "answer": "Scott",
        "type": "bridge",
        "supporting_facts": [["Discovery", 0], ["Scott", 1], ["Scott", 2]],
    }
    assert read(tmp_path, record) == [
        EvaluationQuestion("a", "Who led it?", "bridge", ("Discovery", "Scott"), answers=("Scott",))
    ]


def test_the_layout_of_musique(tmp_path: Path) -> None:
    record = {
        "id": "2hop__1",
        "question": "Who led it?",
        "answer": "Scott",
        "answer_aliases": ["R. F. Scott"],
        "answerable": False,
        "paragraphs": [
            {"title": "Discovery", "is_supporting": True},
            {"title": "Fram", "is_supporting": False},
        ],
    }
    [question] = read(tmp_path, record)
    assert question.documents == ("Discovery",)
    assert question.answers == ("Scott", "R. F. Scott")
    assert not question.is_answerable


def test_the_layouts_of_ragas_and_benchmark_qed(tmp_path: Path) -> None:
    [one, other] = read(
        tmp_path,
        {"user_input": "Who led it?", "reference": "Scott led it."},
        {
            "question_id": "q7",
            "question_text": "Themes?",
            "question_type": "data_global",
            "assertions": [{"statement": "Ice is a theme."}],
        },
    )
    assert (one.id, one.answers) == ("1", ("Scott led it.",))
    assert (other.id, other.kind, other.statements) == ("q7", "data_global", ("Ice is a theme.",))


def test_a_compressed_list_is_read(tmp_path: Path) -> None:
    path = tmp_path / "questions.json.gz"
    path.write_bytes(gzip.compress(b'{"questions": [{"id": 3, "question": "Who?", "gold": [5]}]}'))
    [question] = read_questions(path)
    assert (question.id, question.documents, question.cluster) == ("3", ("5",), "5")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no questions"),
        (b'{"answer": "Scott"}', "question 1: there is no text of a question"),
        (b'{"question": 3}', "question 1: there is no text of a question"),
        (b'{"question": "a"}\n{"question', "line 2: this is not JSON"),
        (b'{"id": 1, "question": "a"}\n{"id": 1, "question": "b"}', "two questions have the id"),
        (b"\xff\xfe\xff", "cannot be read"),
        (b"[1]", "question 1: a record with the field question"),
        (b'{"question": "a", "spans": [{"document": "x"}]}', "question 1: .*start_char"),
        (b'{"question": "a", "spans": 5}', "question 1: a field"),
        (
            b'{"question": "a", "spans": [{"document": "x", "start_char": 1e999, "end_char": 2}]}',
            "question 1: a field",
        ),
        (
            b'{"question": "a", "spans": [{"document": "x", "start_char": 9, "end_char": 5}]}',
            "question 1: .*the span 9 to 5 is not in a document",
        ),
        (b'{"question": "a", "is_answerable": "maybe"}', "question 1: a field"),
        (b'{"question": "a", "supporting_facts": [[]]}', "question 1: a field"),
        (b'{"question": "a", "paragraphs": ["b"]}', "question 1: a field"),
    ],
)
def test_a_broken_file_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=message):
        read_questions(path)


@pytest.mark.parametrize("content", [b"5", b'{"questions": null}'])
def test_a_file_without_a_list_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "questions.json"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match="a list of questions is expected"):
        read_questions(path)


def test_a_damaged_compressed_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl.gz"
    content = bytearray(gzip.compress(b'{"question": "Who led it?"}'))
    content[10] = 0xFF  # an unknown kind of block
    path.write_bytes(content)
    with pytest.raises(SettingsError, match="cannot be read"):
        read_questions(path)


def test_a_text_with_other_line_breaks_is_read_again(tmp_path: Path) -> None:
    question = EvaluationQuestion("a", "Who\u2028led\x85it?", answers=("Scott\u2029",))
    write_questions([question], tmp_path / "questions.jsonl")
    assert read_questions(tmp_path / "questions.jsonl") == [question]


def test_blank_contexts_and_answers_are_no_gold(tmp_path: Path) -> None:
    record = {"user_input": "Who?", "reference": "", "reference_contexts": ["", " ", "Scott."]}
    [question] = read(tmp_path, record)
    assert question.answers == ()
    assert [span.text for span in question.spans] == ["Scott."]


@pytest.mark.parametrize(
    ("value", "is_answerable"),
    [(True, True), (False, False), (None, True), ("False", False), ("true", True), (0, False)],
)
def test_whether_a_question_can_be_answered_may_be_a_word(
    value: object, is_answerable: bool, tmp_path: Path
) -> None:
    [question] = read(tmp_path, {"question": "Who?", "answerable": value})
    assert question.is_answerable is is_answerable


def test_a_span_may_be_only_a_text(tmp_path: Path) -> None:
    spans = [{"text": "Scott led it."}, "Crean served.", {"document": "a", "text": "Wild did."}]
    [question] = read(tmp_path, {"question": "Who?", "spans": spans})
    assert [(one.document, one.text) for one in question.spans] == [
        ("", "Scott led it."),
        ("", "Crean served."),
        ("a", "Wild did."),
    ]


def nest(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(KNOWN, inner, max_size=5)


KNOWN = st.sampled_from(sorted(FIELDS))
RECORDS = st.dictionaries(KNOWN, st.recursive(VALUES, nest, max_leaves=6), max_size=6)


@settings(max_examples=n_examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(RECORDS, min_size=1, max_size=2))
def test_any_record_is_read_or_refused(tmp_path: Path, lines: list[Any]) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(
        "\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8"
    )
    try:
        found, told = read_questions(path), ""
    except GraphRAGError as error:
        found, told = [], str(error)
    assert found or str(path) in told

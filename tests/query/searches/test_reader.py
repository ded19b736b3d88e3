"""Answers without a model that begin with the span of a reader of the user."""

import json
import shutil
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import graphrag_query
from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_query.answer import Answer, Outcome
from graphrag_server.app import create_app
from graphrag_server.server_settings import ServerSettings
from tests.fixtures.commands import ask
from tests.fixtures.own_models import write_graph, write_tokenizer
from tests.fixtures.own_readers import write_reader

QUESTION = "How many men were on Elephant Island?"
READER = "search.reader_model=reader"
SPANS = {"many": "28 men", "who": "Annascaul", "where": "Ireland. As"}


@pytest.fixture(scope="module")
def project(sample_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the sample with a reader; tests must not change it."""
    root = tmp_path_factory.mktemp("reader") / "project"
    shutil.copytree(sample_project, root, symlinks=True)
    write_reader(root / "reader", SPANS)
    return root


def search(root: Path, question: str, method: str, *overrides: str) -> Answer:
    settings = load_settings(root, overrides)
    with graphrag_query.open(root / "output", settings, root) as index:
        answer = index.search(method, question)
        texts = dict(index.store.scan("documents").select("id", "text").collect().iter_rows())
    for citation in answer.citations:
        text = texts[citation.document_id]
        assert text[citation.start_char : citation.end_char] == citation.quote
    return answer


@pytest.mark.parametrize("method", ["local", "basic", "drift", "lazy"])
def test_an_answer_begins_with_the_span_and_its_sentence(project: Path, method: str) -> None:
    plain = search(project, QUESTION, method)
    answer = search(project, QUESTION, method, READER)
    first, *others = answer.citations
    assert "28 men" in first.quote
    assert answer.text.startswith(f"28 men — {first.quote} [1] ")
    # What the rules have chosen comes after it, without the same sentence again.
    rest = [c.quote for c in plain.citations if c.quote != first.quote]
    assert [c.quote for c in others] == rest
    assert [c.number for c in answer.citations] == list(range(1, len(rest) + 2))
    assert all(f"{c.quote} [{c.number}]" in answer.text for c in others if "\n" not in c.quote)
    assert (answer.outcome, answer.usage.calls) == (Outcome.ANSWERED, 0)


@pytest.mark.parametrize("method", ["local", "basic"])
@pytest.mark.parametrize(
    "question",
    [
        # The reader finds nothing.
        "When was Tom Crean born?",
        # A question for yes or no, although the reader finds a span.
        "Were many men on Elephant Island?",
        # Nothing is evidence, although the reader finds a span somewhere.
        "How many sourdough breads were baked?",
        "How many men did Marie Curie lead?",
        # One of two, which two sentences decide.
        "Who was born first, Ernest Shackleton or Tom Crean?",
    ],
)
def test_the_answer_of_the_rules_stays(project: Path, question: str, method: str) -> None:
    plain = search(project, question, method)
    answer = search(project, question, method, READER)
    assert (answer.text, answer.citations) == (plain.text, plain.citations)
    assert answer.outcome is plain.outcome


def test_the_reader_sees_only_what_the_filters_keep(project: Path) -> None:
    settings = load_settings(project, (READER,))
    with graphrag_query.open(project / "output", settings, project) as index:
        whole = index.local(QUESTION)
        people = index.where({"path": "people/*"})
        assert whole.citations[0].path.startswith("expeditions/")
        assert {c.path.split("/")[0] for c in people.local(QUESTION).citations} == {"people"}


def test_the_answer_keeps_the_maximum_of_sentences(project: Path) -> None:
    answer = search(project, QUESTION, "local", READER, "local_search.max_sentences=1")
    assert answer.text == f"28 men — {answer.citations[0].quote} [1]"


def test_a_span_over_two_sentences_is_quoted_with_both(project: Path) -> None:
    answer = search(project, "Where was Tom Crean born?", "local", READER)
    first = answer.citations[0].quote
    assert answer.text.startswith(f"Ireland. As — {first} [1]")
    assert first.startswith("Crean was born in 1877")
    assert first.endswith("As a youth Crean left home and enlisted in the Royal Navy.")
    # The places are plain numbers.
    assert json.dumps(answer.to_dict())


def test_the_command_line_says_the_span_and_what_is_wrong(project: Path, tmp_path: Path) -> None:
    options = ("--root", str(project), "--set")
    result = ask("local", QUESTION, *options, READER, "--json")
    assert result.returncode == 0
    assert json.loads(result.stdout)["answer"].startswith("28 men — ")
    streamed = ask("basic", QUESTION, *options, READER, "--stream")
    assert streamed.stdout.startswith("28 men — ")
    folders = {name: tmp_path / name for name in ("none", "empty", "embeds")}
    folders["empty"].mkdir()
    folders["embeds"].mkdir()
    write_tokenizer(folders["embeds"])
    write_graph(folders["embeds"] / "model.onnx")
    failed = ask("local", QUESTION, *options, f"search.reader_model={folders['none']}")
    assert (failed.returncode, failed.stdout) == (2, "")
    message = (
        f"There is no folder {folders['none']}: search.reader_model is the folder of a reader, "
    )
    assert message in failed.stderr
    assert failed.stderr.count("\n") == 1
    plain = json.loads(ask("local", QUESTION, "--root", str(project), "--json").stdout)
    for name, message in (
        ("empty", "FOLDER has no model.onnx, which the reader needs: export"),
        ("embeds", "FOLDER/model.onnx has no output end_logits and is no re"),
    ):
        result = ask("local", QUESTION, *options, f"search.reader_model={folders[name]}", "--json")
        answer = json.loads(result.stdout)
        assert (result.returncode, answer["answer"]) == (0, plain["answer"])
        [note] = set(answer["notes"]) - set(plain["notes"])
        expected = f"Answered without search.reader_model: {message}"
        assert note.startswith(expected.replace("FOLDER", str(folders[name])))


def test_a_server_reads_and_no_caller_names_another_model(project: Path, tmp_path: Path) -> None:
    root = tmp_path / "project"
    shutil.copytree(project, root, symlinks=True)
    settings = root / "settings.yaml"
    settings.write_text("search: {reader_model: reader}\n", encoding="utf-8")
    with TestClient(
        create_app(ServerSettings(indexes={"sample": root})), base_url="http://127.0.0.1"
    ) as client:
        address = "/v1/indexes/sample/search/local"
        reply = client.post(address, json={"question": QUESTION})
        assert reply.json()["answer"].startswith("28 men — ")
        body = {"question": QUESTION, "settings": {"reader_model": "/tmp"}}
        assert client.post(address, json=body).status_code == 400


def test_a_suggestion_does_not_load_the_reader(project: Path) -> None:
    plain = search(project, "How did they fight scurvy?", "path")
    assert plain.suggestion is not None
    answer = search(project, plain.question, "path", "search.reader_model=none")
    assert answer.suggestion == plain.suggestion
    with pytest.raises(SettingsError, match="There is no folder"):
        search(project, plain.question, "local", "search.reader_model=none")

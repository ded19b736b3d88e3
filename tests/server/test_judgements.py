"""Judgements of answers over HTTP: kept in the project, listed, and refused with the reason."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from graphrag_evaluation.judgements import read_known_answers
from graphrag_server.app import create_app
from graphrag_server.keys import KeyFile, Scope
from graphrag_server.server_settings import ServerSettings
from tests.server.conftest import ADDRESS

JUDGEMENTS = "/v1/indexes/docs/judgements"
QUESTION = "Where was Tom Crean born?"
JUDGED = ("question", "method", "parameters", "version", "outcome", "answer", "citations")


@pytest.fixture
def root(tmp_path: Path, sample_project: Path) -> Path:
    root = tmp_path / "docs"
    root.mkdir()
    shutil.copyfile(sample_project / "settings.yaml", root / "settings.yaml")
    shutil.copytree(sample_project / "output", root / "output")
    return root


@pytest.fixture
def client(root: Path) -> Iterator[TestClient]:
    settings = ServerSettings(indexes={"docs": root}, state_folder=root.parent)
    with TestClient(create_app(settings), base_url=ADDRESS) as client:
        yield client


def ask(client: TestClient, **headers: str) -> dict[str, Any]:
    body = {"question": QUESTION}
    reply = client.post("/v1/indexes/docs/search/local", json=body, headers=headers).json()
    return {name: reply[name] for name in JUDGED}


def test_a_judgement_is_kept_in_the_project_and_is_a_question_with_a_known_answer(
    client: TestClient, root: Path
) -> None:
    assert client.get(JUDGEMENTS).json() == {"judgements": [], "total": 0, "problem": ""}
    answer = ask(client)
    sent = client.post(JUDGEMENTS, json={**answer, "verdict": "up", "reason": "All is there."})
    assert sent.status_code == 200, sent.text
    kept = sent.json()
    assert (kept["author"], kept["reason"], kept["date"][-6:]) == (
        "local",
        "All is there.",
        "+00:00",
    )
    assert [one["text_unit"] for one in kept["citations"]] == [
        one["text_unit"] for one in answer["citations"]
    ]
    assert client.get(JUDGEMENTS).json() == {"judgements": [kept], "total": 1, "problem": ""}
    path = root / "evaluations" / "judgements.jsonl"
    [question] = read_known_answers(path)
    assert (question.text, question.answers) == (QUESTION, (answer["answer"],))
    assert [span.text for span in question.spans] == [one["quote"] for one in answer["citations"]]
    # The last judgement of the same answer replaces it.
    client.post(JUDGEMENTS, json={**answer, "verdict": "down"})
    listed = client.get(JUDGEMENTS).json()
    assert [one["verdict"] for one in listed["judgements"]] == ["down"]
    client.post(JUDGEMENTS, json={**answer, "verdict": "withdrawn"})
    assert client.get(JUDGEMENTS).json()["total"] == 0
    assert len(path.read_text(encoding="utf-8").splitlines()) == 3


def test_what_is_no_judgement_is_refused(client: TestClient, root: Path) -> None:
    answer = {**ask(client), "verdict": "up"}
    for wrong in (
        {"verdict": "maybe"},
        {"question": ""},
        {"outcome": "provider_error"},
        {"reason": "x" * 5_001},
        {"citations": [{"number": 1}]},
        {"author": "somebody else"},
    ):
        reply = client.post(JUDGEMENTS, json={**answer, **wrong})
        assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request"), wrong
    assert not (root / "evaluations").exists()


def test_a_judgement_that_cannot_be_kept_says_why(client: TestClient, root: Path) -> None:
    answer = {**ask(client), "verdict": "up"}
    folder = root / "evaluations"
    folder.write_text("no folder", encoding="utf-8")
    reply = client.post(JUDGEMENTS, json=answer)
    assert (reply.status_code, reply.json()["code"]) == (507, "not_stored")
    assert reply.json()["detail"].startswith("The judgement was not kept: File exists")
    folder.unlink()
    client.post(JUDGEMENTS, json=answer)
    with (folder / "judgements.jsonl").open("a", encoding="utf-8") as file:
        file.write("{broken\n")
    client.post(JUDGEMENTS, json={**answer, "question": "Who?"})
    listed = client.get(JUDGEMENTS).json()
    assert listed["total"] == 2
    assert listed["problem"] == "Line 2 of judgements.jsonl is no judgement: delete the line."
    (folder / "judgements.jsonl").unlink()
    (folder / "judgements.jsonl").mkdir()
    reply = client.get(JUDGEMENTS)
    assert (reply.status_code, reply.json()["code"]) == (503, "unreadable_judgements")
    assert str(root) not in reply.text


def test_a_judgement_needs_a_key_that_may_write(client: TestClient, root: Path) -> None:
    keys = KeyFile(root.parent)
    tokens = {
        name: {"Authorization": f"Bearer {keys.add(name, frozenset(scopes))}"}
        for name, scopes in (
            ("reader", (Scope.READ, Scope.ASK)),
            ("owner", (Scope.READ, Scope.ASK, Scope.INDEX)),
        )
    }
    keys.close()
    answer = {**ask(client, **tokens["owner"]), "verdict": "up"}
    refused = client.post(JUDGEMENTS, json=answer, headers=tokens["reader"])
    assert (refused.status_code, refused.json()["code"]) == (403, "missing_scope")
    kept = client.post(JUDGEMENTS, json=answer, headers=tokens["owner"])
    assert (kept.status_code, kept.json()["author"]) == (200, "owner")
    listed = client.get(JUDGEMENTS, headers=tokens["reader"]).json()
    assert [one["author"] for one in listed["judgements"]] == ["owner"]

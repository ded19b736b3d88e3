"""Ollama's chat with the prefixes of LightRAG, and Dify's external knowledge."""

import json

import pytest
from fastapi.testclient import TestClient

MODEL = "graphrag/sample/local:latest"
QUESTION = "Who was Tom Crean?"


def chat(client: TestClient, content: str, **more: object) -> dict:
    body = {"model": MODEL, "messages": [{"role": "user", "content": content}], "stream": False}
    return client.post("/api/chat", json={**body, **more}).json()


def test_the_models_of_ollama_are_the_searches(sample_client: TestClient) -> None:
    names = {model["name"] for model in sample_client.get("/api/tags").json()["models"]}
    assert MODEL in names
    shown = sample_client.post("/api/show", json={"model": MODEL}).json()
    assert shown["capabilities"] == ["completion"]
    assert sample_client.get("/api/version").json()["version"]


def test_a_chat_is_answered_whole_and_line_by_line(sample_client: TestClient) -> None:
    whole = chat(sample_client, QUESTION)
    assert "Irish seaman" in whole["message"]["content"]
    assert (whole["done"], whole["graphrag"]["outcome"]) == (True, "answered")
    body = {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}]}
    lines = sample_client.post("/api/chat", json=body).text.splitlines()
    parts = [json.loads(line) for line in lines]
    assert "".join(p["message"]["content"] for p in parts) == whole["message"]["content"]
    assert [part["done"] for part in parts] == [False] * (len(parts) - 1) + [True]


def test_a_prompt_is_answered(sample_client: TestClient) -> None:
    body = {"model": MODEL, "prompt": QUESTION, "stream": False}
    assert "Irish seaman" in sample_client.post("/api/generate", json=body).json()["response"]


@pytest.mark.parametrize(
    ("prefix", "method"),
    [("/naive", "basic"), ("/global", "global"), ("/local", "local"), ("", "local")],
)
def test_the_prefixes_of_lightrag_choose_the_search(
    sample_client: TestClient, prefix: str, method: str
) -> None:
    reply = chat(sample_client, f"{prefix} {QUESTION}".strip())
    assert (reply["graphrag"]["method"], reply["graphrag"]["question"]) == (method, QUESTION)


def test_the_context_alone_and_what_cannot_be_done(sample_client: TestClient) -> None:
    for prefix in ("/context", "/localcontext", "/naivecontext"):
        content = chat(sample_client, f"{prefix} {QUESTION}")["message"]["content"]
        assert "-----Sources-----" in content
    content = chat(sample_client, "/globalcontext What are the main themes?")["message"]["content"]
    assert content.startswith("-----Reports-----")
    assert "not supported" in chat(sample_client, f"/bypass {QUESTION}")["error"]
    assert "There is no model" in chat(sample_client, QUESTION, model="llama3")["error"]


def retrieve(client: TestClient, **more: object) -> dict:
    body = {
        "knowledge_id": "sample",
        "query": QUESTION,
        "retrieval_setting": {"top_k": 4, "score_threshold": 0.0},
    }
    return client.post("/dify/retrieval", json={**body, **more}).json()


def test_dify_gets_the_best_passages(sample_client: TestClient) -> None:
    records = retrieve(sample_client)["records"]
    assert len(records) == 4
    assert "Crean" in records[0]["content"]
    scores = [record["score"] for record in records]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert all(record["metadata"]["path"] for record in records)
    some = {"top_k": 4, "score_threshold": scores[1]}
    assert len(retrieve(sample_client, retrieval_setting=some)["records"]) == 2
    without = {"top_k": 4, "score_threshold": None}
    assert retrieve(sample_client, retrieval_setting=without)["records"] == records


@pytest.mark.parametrize(
    ("operator", "value", "n"),
    [
        ("contains", "TOM-CREAN", 1),
        ("start with", "people/", 1),
        ("end with", ".pdf", 0),
        ("is", "people/tom-crean.txt", 1),
        ("in", ["people/tom-crean.txt", "other.txt"], 1),
        ("in", "other.txt, people/tom-crean.txt", 1),
        ("in", "other.txt", 0),
        ("not in", ["other.txt"], 1),
        ("is not", "people/tom-crean.txt", 3),
        ("not contains", "people", 1),
        ("empty", None, 0),
        ("not empty", None, 3),
        ("unknown", "x", 0),
    ],
)
def test_dify_filters_by_metadata(
    sample_client: TestClient, operator: str, value: str | None, n: int
) -> None:
    """`n` is the least number of passages; for 0 there is none."""
    rule = {"name": ["path"], "comparison_operator": operator, "value": value}
    condition = {"logical_operator": "and", "conditions": [rule]}
    found = len(retrieve(sample_client, metadata_condition=condition)["records"])
    assert found >= n if n else found == 0


@pytest.mark.parametrize(
    ("operator", "value", "found"), [(">", 10_000_000, 0), ("≤", 10_000_000, 4), ("=", -1, 0)]
)
def test_dify_compares_numbers(
    sample_client: TestClient, operator: str, value: int, found: int
) -> None:
    rule = {"name": "end_char", "comparison_operator": operator, "value": value}
    condition = {"conditions": [rule]}
    assert len(retrieve(sample_client, metadata_condition=condition)["records"]) == found


def test_dify_is_told_that_an_index_is_missing(sample_client: TestClient) -> None:
    assert retrieve(sample_client, knowledge_id="other")["error_code"] == 2001

"""Ollama's chat, as its clients speak it."""

import json

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


def test_an_unknown_model_is_an_error_of_ollama(sample_client: TestClient) -> None:
    assert "There is no model" in chat(sample_client, QUESTION, model="llama3")["error"]

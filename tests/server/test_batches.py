"""Files and batches of the server, through the official client."""

import json
from typing import Any

from openai import OpenAI

from tests.server import Faults, Server
from tests.server.asking import GRAPH, TEXT, as_format


def batch_of(client: OpenAI, *texts: str) -> Any:
    url: Any = "/v1/chat/completions"
    lines = [
        {"custom_id": f"{number}", "method": "POST", "url": url,
         "body": {"model": "m", "messages": [{"role": "user", "content": text}],
                  "response_format": as_format(GRAPH)}}
        for number, text in enumerate(texts)
    ]  # fmt: skip
    content = "\n".join(json.dumps(line) for line in lines).encode()
    file = client.files.create(file=("in.jsonl", content), purpose="batch")
    assert client.files.content(file.id).read() == content
    return client.batches.create(
        input_file_id=file.id, endpoint=url, completion_window="24h", metadata={"job": "j"}
    )


def test_a_batch_gives_answers_and_errors_in_files(server: Server, client: OpenAI) -> None:
    server.batch_seconds, server.faults = None, Faults(by_text={"poison": "400"})
    made = batch_of(client, TEXT, "poison", "Ada Lovelace met Charles Babbage.")
    assert client.batches.retrieve(made.id).status == "in_progress"
    server.finish_batches()
    batch: Any = client.batches.list().data[0]
    assert (batch.status, batch.metadata) == ("completed", {"job": "j"})
    assert (batch.request_counts.completed, batch.request_counts.failed) == (2, 1)
    output = client.files.content(batch.output_file_id).text.splitlines()
    errors = client.files.content(batch.error_file_id).text.splitlines()
    assert [json.loads(line)["custom_id"] for line in output] == ["0", "2"]
    completion = json.loads(output[1])["response"]["body"]
    assert "Ada Lovelace" in completion["choices"][0]["message"]["content"]
    assert json.loads(errors[0])["response"]["status_code"] == 400


def test_a_batch_can_be_cancelled_expire_and_be_refused(server: Server, client: OpenAI) -> None:
    server.batch_seconds = None
    first, second = batch_of(client, "a", "b"), batch_of(client, "c", "d")
    assert client.batches.cancel(first.id).status == "cancelling"
    assert client.batches.retrieve(first.id).status == "cancelled"
    server.finish_batches("expired")
    assert client.batches.retrieve(second.id).status == "expired"
    file = client.files.create(file=("in.jsonl", b"no json\n"), purpose="batch")
    failed = client.batches.create(
        input_file_id=file.id, endpoint="/v1/embeddings", completion_window="24h"
    )
    assert failed.status == "failed"
    assert failed.errors
    assert failed.errors.data
    assert failed.errors.data[0].line == 1

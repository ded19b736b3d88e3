"""Runs against servers that refuse or answer in other forms, and ledgers in a bucket."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graphrag_index.errors import ExitCode
from graphrag_index.llm.probe import PROBE_TOKENS
from graphrag_index.storage.bucket import Bucket
from tests.fixtures.commands import call, small_project
from tests.fixtures.model_project import KEY, run, write_project
from tests.fixtures.object_server import new_bucket, serve_objects, set_credentials
from tests.model_server import OTHER_HOST, Faults, Server


def validate(root: Path) -> Any:
    return call(root, "validate", "--probe", MODEL_KEY=KEY)


def refusing(*kinds: str) -> Faults:
    return Faults(rate=1, kinds=kinds)


@pytest.mark.parametrize(
    "behaviour",
    [
        {"faults": refusing("500:json_schema"), "quirks": ["gzip"]},
        {"faults": refusing("silent:json_schema"), "quirks": ["close"]},
        {"faults": refusing("422:json_schema", "422:temperature"), "quirks": ["http_1_0"]},
        {"faults": refusing("ignores:json_schema"), "redirect": 301},
        {"faults": refusing("silent:encoding_format"), "redirect": 308},
        {"quirks": ["bom"]},
    ],
    ids=str,
)
def test_a_run_finishes_with_the_server(behaviour: dict[str, Any], tmp_path: Path) -> None:
    with Server(dimensions=32, **behaviour) as server:
        root = write_project(tmp_path / "project", server.url, 1, retry_seconds=600)
        result = run(root)
        assert result.returncode == 0, result.stderr
        assert "entities" in result.stdout
        n_sent = len(server.requests)
        assert run(root).returncode == 0
        assert len(server.requests) == n_sent


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ({"certificate": OTHER_HOST}, "the certificate of 127.0.0.1:"),
        ({"redirect": 302, "redirect_to": "https://models.example"}, "to https://models.example/"),
    ],
    ids=["certificate", "redirect"],
)
def test_a_run_ends_with_a_sentence_before_the_first_request(
    behaviour: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with Server(**behaviour) as server:
        root = write_project(tmp_path / "project", server.url, 1, retry_seconds=600)
        for result in (run(root), validate(root)):
            assert result.returncode == 1
            assert said in result.stderr
            assert "set base_url" in result.stderr
        assert not [asked for asked in server.requests if asked.body]


def test_a_run_says_which_server_and_model_it_asks(tmp_path: Path) -> None:
    with Server(dimensions=32, faults=refusing("unsupported:temperature")) as server:
        root = write_project(tmp_path / "project", server.url, 1)
        first = run(root).stdout
        chat = f"Model chat: test-model at {server.url}"
        assert f"{chat} (reply format not known before the first request)\n" in first
        assert f"Model embedding: test-embedding at {server.url} (vectors)\n" in first
        assert first.index(chat) < first.index("extract_graph")
        (root / "input" / "new.txt").write_text("Ada Quill met Bo Reed in Lund.", encoding="utf-8")
        again = run(root).stdout
        assert f"{chat} (replies by JSON schema, without temperature)\n" in again
        (root / "input" / "new.txt").write_text("Ada Quill met Cy Reed.", encoding="utf-8")
        assert run(root, "--quiet").stdout == ""


def test_a_probe_prints_what_works_and_a_run_uses_it(tmp_path: Path) -> None:
    faults = refusing("silent:json_schema", "422:temperature")
    with Server(dimensions=32, faults=faults) as server:
        root = write_project(tmp_path / "project", server.url, 1)
        result = validate(root)
        assert result.returncode == 0, result.stderr
        lines = [" ".join(line.split()[:-1]) for line in result.stdout.splitlines()]
        for name in ("max_tokens", "replies by tool call", "stream", "vectors"):
            assert any(line.startswith(name) for line in lines), name
        assert "422: body.temperature: Extra inputs are not permitted" in result.stdout
        assert "(replies by tool call, without temperature)" in result.stdout
        asked = [asked.json for asked in server.requests if asked.path.endswith("/completions")]
        assert f"  {len(asked)} requests of at most {PROBE_TOKENS} tokens" in result.stdout
        limits = [body.get("max_tokens") for body in asked]
        assert set(limits) == {PROBE_TOKENS}
        n_refused = sum(asked.status in (422, 500) for asked in server.requests)
        assert run(root).returncode == 0
        assert sum(asked.status in (422, 500) for asked in server.requests) == n_refused


def test_a_probe_finds_out_that_a_format_is_ignored(tmp_path: Path) -> None:
    with Server(dimensions=32, faults=refusing("ignores:json_schema")) as server:
        root = write_project(tmp_path / "project", server.url, 1)
        result = validate(root)
    assert "refused (the reply is in another format)" in result.stdout
    assert "(replies by tool call)" in result.stdout


def test_a_probe_reports_all_servers_that_answer_nothing(tmp_path: Path) -> None:
    with Server(dimensions=32, faults=refusing("500")) as server:
        root = write_project(tmp_path / "project", server.url, 1)
        result = validate(root)
    assert result.returncode == 1
    for name in ("chat", "embedding"):
        assert f"Model {name}: {server.url} does not answer a tiny request" in result.stderr
    assert "All is well" not in result.stdout


def test_a_probe_finds_vectors_of_another_dimension(tmp_path: Path) -> None:
    with Server(dimensions=32, faults=refusing("ignores:dimensions")) as server:
        root = write_project(tmp_path / "project", server.url, 1)
        settings = root / "settings.yaml"
        text = settings.read_text(encoding="utf-8")
        name = "model: test-embedding"
        settings.write_text(text.replace(name, f"{name}\n    dimensions: 8"), encoding="utf-8")
        result = validate(root)
    assert result.returncode == 1
    assert "returns vectors of 32 numbers and ignores `dimensions`" in result.stderr


def test_a_probe_of_a_workflow_without_models_sends_nothing(tmp_path: Path) -> None:
    result = validate(small_project(tmp_path / "project"))
    assert result.returncode == 0
    assert "asks no model: nothing was sent." in result.stdout


CONCURRENCY = 4


@pytest.fixture
def bucket_address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    set_credentials(monkeypatch)
    with serve_objects() as server:
        yield new_bucket(server)


@pytest.fixture
def models() -> Iterator[Server]:
    with Server(latency=0.05) as models:
        yield models


@pytest.fixture
def asking(tmp_path: Path, models: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose replies and vectors come from a server."""
    monkeypatch.setenv("MODEL_KEY", KEY)
    return write_project(tmp_path / "asking", models.url, 2, concurrency=CONCURRENCY)


def paid(models: Server) -> Counter[bytes]:
    """Count how often each request for a reply or for vectors was answered, but for the tests."""
    return Counter(
        asked.body
        for asked in models.requests
        if asked.path.endswith(("/chat/completions", "/embeddings")) and asked.status == 200
    )


def test_replies_of_a_stopped_run_are_saved_for_another_machine(
    asking: Path, bucket_address: str, tmp_path: Path, models: Server
) -> None:
    options = ("--set", f"output={bucket_address}")
    price = ("--set", "models.chat.price={input: 1000, output: 1000}")
    free = ("--set", "models.embedding.price={input: 0, output: 0}")
    here, there = ({"GRAPHRAG_INDEX_CACHE": str(tmp_path / name)} for name in ("here", "there"))
    told = call(asking, "run", *options, *price, *free, "--budget", "30", **here)
    assert told.returncode == ExitCode.BUDGET
    assert "The ledger is in s3://" in call(asking, "status", "--save", *options, **here).stdout
    n_paid = sum(paid(models).values())
    assert n_paid > 5
    assert call(asking, "run", *options, **there).returncode == 0
    found = paid(models)
    # Only replies that were cut off, before the budget forbade longer ones, are requested again.
    assert sum(found.values()) - len(found) <= CONCURRENCY - 1 < n_paid
    # Nothing is left to save, and a folder has no other place for it.
    number = Bucket(bucket_address).read_json("current.json")
    assert call(asking, "status", "--save", *options, **there).returncode == 0
    assert Bucket(bucket_address).read_json("current.json") == number
    stopped = call(asking, "run", *price, *free, "--budget", "30")
    assert stopped.returncode == ExitCode.BUDGET
    refused = call(asking, "status", "--save")
    assert refused.returncode == ExitCode.WRONG_USE
    assert "the output is not in a bucket" in refused.stderr


def test_purged_replies_do_not_stay_in_the_bucket(
    asking: Path, bucket_address: str, tmp_path: Path
) -> None:
    bucket, ledger = Bucket(bucket_address), tmp_path / "ledger.sqlite"

    def run(*options: str) -> int:
        """Run; return the number of requests in the only ledger in the bucket."""
        cache = {"GRAPHRAG_INDEX_CACHE": str(tmp_path / "here")}
        told = call(
            asking, "run", "--quiet", "--set", f"output={bucket_address}", *options, **cache
        )
        assert told.returncode == 0, told.stderr
        listed = (str(one["path"]) for one in bucket.list_objects("objects/"))
        [key] = [key for key in listed if key.endswith("ledger.sqlite")]
        bucket.download(key, ledger)
        with closing(sqlite3.connect(ledger)) as database:
            [(n,)] = database.execute("SELECT count(*) FROM requests")
        return int(n)

    n_before = run()
    min((asking / "input").iterdir()).unlink()
    assert run() >= n_before
    assert 0 < run("--purge") < n_before

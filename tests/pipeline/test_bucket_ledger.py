"""The ledger of an index in a bucket: replies for other machines, and purged replies."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from graphrag_index.errors import ExitCode
from graphrag_index.storage.bucket import Bucket
from tests.fixtures.commands import call
from tests.fixtures.model_project import KEY, write_project
from tests.fixtures.object_server import new_bucket, serve_objects, set_credentials
from tests.model_server import Server

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

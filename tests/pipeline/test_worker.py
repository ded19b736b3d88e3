"""Runs that workers on several machines share: what they make, and what kills do to them."""

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from graphrag_index.errors import ExitCode
from graphrag_index.storage.bucket import Bucket
from tests.conftest import copy_project
from tests.fixtures.commands import call
from tests.fixtures.model_project import KEY, write_project
from tests.fixtures.object_server import (
    Fault,
    FaultyProxy,
    StaleReads,
    new_bucket,
    serve_objects,
    set_credentials,
)
from tests.fixtures.workers import run_alone, start_workers
from tests.model_server import Server

CONCURRENCY = 4


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serve_objects() as address:
        yield address


@pytest.fixture
def proxy(server: str) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(server)
    yield proxy
    proxy.close()


@pytest.fixture
def bucket_address(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    set_credentials(monkeypatch)
    return new_bucket(server)


@pytest.fixture
def address(server: str, proxy: FaultyProxy, bucket_address: str) -> str:
    """The address of a bucket behind the proxy."""
    return bucket_address.replace(server, proxy.address)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def expected(root: Path) -> dict[str, str]:
    """The digests of the tables that one machine makes."""
    return run_alone(root)


def results_made(proxy: FaultyProxy) -> Counter[str]:
    """Count how often each result was written."""
    return Counter(
        path.rpartition("/")[2]
        for method, path in proxy.requests
        if method == "PUT" and "/work/results/part-" in path
    )


def check_run(address: str, proxy: FaultyProxy) -> None:
    """Check that no shard was done twice, and that nothing is left but what the next run uses."""
    made = results_made(proxy)
    assert len(made) > 30
    assert set(made.values()) == {1}
    bucket = Bucket(address)
    left = {one["path"] for one in bucket.list_objects("work/")}
    assert "work/board.json" in left
    assert all(path.startswith("work/results/part-") for path in left - {"work/board.json"})


def kill_and_compare(
    root: Path,
    address: str,
    tmp_path: Path,
    proxy: FaultyProxy,
    expected: dict[str, str],
    n_kills: int,
    seed: int,
    n_workers: int = 5,
) -> int:
    folder = tmp_path / "machines"
    with start_workers(root, address, folder, n_workers, lease_seconds=3) as workers:
        workers.kill_some(n_kills, 2.0, seed)
        assert set(workers.wait().values()) == {0}
        assert workers.digests() == expected
        told = [workers.told(number) for number in range(1, workers.n_started + 1)]
        n_killed = workers.n_killed
    assert any("This worker leads the run." in text for text in told)
    assert any("this one works for it" in text for text in told)
    check_run(address, proxy)
    return n_killed


def test_killed_workers_lose_nothing(
    root: Path, address: str, tmp_path: Path, proxy: FaultyProxy, expected: dict[str, str]
) -> None:
    assert kill_and_compare(root, address, tmp_path, proxy, expected, 3, 1, n_workers=3) > 1


@pytest.mark.slow
def test_a_server_that_fails_and_shows_changes_late_costs_only_time(
    root: Path, address: str, tmp_path: Path, proxy: FaultyProxy, expected: dict[str, str]
) -> None:
    proxy.stale, chance = StaleReads(proxy.host), random.Random(1)
    n_faults = 0

    def fail_sometimes(method: str, path: str) -> Fault | None:
        nonlocal n_faults
        if chance.random() > 0.03:
            return None
        n_faults += 1
        return chance.choice([500, 503, "slow", "lost reply", 409 if method == "PUT" else 500])

    proxy.take_fault = fail_sometimes  # type: ignore[method-assign]
    with start_workers(root, address, tmp_path / "machines", 2, lease_seconds=5) as workers:
        assert set(workers.wait().values()) == {0}
        n_stale, proxy.stale = proxy.stale.n_told, None
        assert workers.digests() == expected
    assert n_faults > 5
    assert n_stale > 20


@pytest.mark.slow
def test_two_hundred_kills_lose_nothing(
    root: Path, server: str, address: str, tmp_path: Path, proxy: FaultyProxy, expected: Any
) -> None:
    n_killed = 0
    for seed in count():
        proxy.requests.clear()
        folder = tmp_path / str(seed)
        folder.mkdir()
        new = new_bucket(server).replace(server, proxy.address)
        n_killed += kill_and_compare(root, new, folder, proxy, expected, 20, seed)
        if n_killed >= 200:
            break
    assert n_killed >= 200


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


def count_done(told: list[str]) -> int:
    """Add up the tasks that workers have done for others."""
    return sum(
        int(text.partition("has done ")[2].split()[0]) for text in told if "has done" in text
    )


def test_requests_to_models_are_sent_once_by_any_worker(
    asking: Path, bucket_address: str, tmp_path: Path, models: Server
) -> None:
    alone = run_alone(asking)
    n_requests = len(paid(models))
    models.requests.clear()
    # The other worker needs time to start, and what a killed one has done is not told.
    models.latency = 0.15
    with start_workers(asking, bucket_address, tmp_path / "machines", 2) as workers:
        # One is killed in the middle, and another takes its place.
        workers.kill_some(1, 5.0, seed=3)
        assert set(workers.wait().values()) == {0}
        assert workers.digests() == alone
        n_killed = workers.n_killed
        told = [workers.told(number) for number in range(1, workers.n_started + 1)]
    found = paid(models)
    assert len(found) == n_requests > 10
    assert count_done(told) > n_requests / 4
    # Only requests that were on their way when a worker was killed are sent again.
    assert sum(found.values()) <= n_requests + n_killed * CONCURRENCY
    # No key leaves a machine.
    for one in Bucket(bucket_address).list_objects():
        content = Bucket(bucket_address).read(one["path"])
        assert content is not None
        assert KEY.encode() not in content[0]


@pytest.mark.slow
def test_many_kills_pay_only_for_requests_on_their_way_again(
    asking: Path, server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, models: Server
) -> None:
    set_credentials(monkeypatch)
    alone = run_alone(asking)
    n_requests, n_killed = len(paid(models)), 0
    for seed in count():
        models.requests.clear()
        address = new_bucket(server)
        with start_workers(asking, address, tmp_path / f"machines-{seed}", 3) as workers:
            workers.kill_some(10, 2.0, seed)
            assert set(workers.wait().values()) == {0}
            assert workers.digests() == alone
        found = paid(models)
        assert len(found) == n_requests
        assert sum(found.values()) <= n_requests + workers.n_killed * CONCURRENCY
        n_killed += workers.n_killed
        if n_killed >= 40:
            return


def test_the_budget_is_that_of_all_workers(
    asking: Path, bucket_address: str, tmp_path: Path, models: Server
) -> None:
    price = "models.chat.price={input: 1000, output: 1000}"
    free = "models.embedding.price={input: 0, output: 0}"
    options = ("--set", price, "--set", free, "--budget", "30")
    with start_workers(asking, bucket_address, tmp_path / "machines", 2, *options) as workers:
        assert set(workers.wait().values()) == {ExitCode.BUDGET}
        told = [workers.told(number) for number in (1, 2)]
    assert all("The budget of $30.00 would be exceeded" in text for text in told)
    assert count_done(told) > 0
    [ledger] = (tmp_path / "machines").glob("*/indexes/*/ledger.sqlite")
    with closing(sqlite3.connect(ledger)) as database:
        [(n_calls, spent)] = database.execute("SELECT count(*), sum(cost) FROM calls")
    assert n_calls == sum(paid(models).values())
    assert 20 < spent <= 30


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


def test_a_folder_on_one_machine_has_no_workers(root: Path) -> None:
    told = call(root, "worker")
    assert told.returncode == ExitCode.WRONG_USE
    assert "output is output: set output to an address such as s3://" in told.stderr

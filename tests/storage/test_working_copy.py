"""An index in a bucket: what its writers and readers on several machines see of each other."""

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import graphrag_query
from graphrag_index.errors import GraphRAGError, TableError, WorkflowError
from graphrag_index.llm.ledger import Ledger
from graphrag_index.pipeline.history import collect_garbage, roll_back
from graphrag_index.pipeline.run import RunResult, Watcher
from graphrag_index.storage import bucket as bucket_module
from graphrag_index.storage import working_copy
from graphrag_index.storage.bucket import Bucket
from graphrag_index.storage.working_copy import Commit, WorkingCopy
from tests.fixtures.kill_history import Machines, Tables, equal, read
from tests.fixtures.object_server import Fault, FaultyProxy, StaleReads, new_bucket, set_credentials


def test_machines_read_and_continue_what_another_has_written(
    machines: Machines, expected: list[Tables]
) -> None:
    assert machines.run("a", 1).version.number == 1
    assert machines.run("a", 2).version.number == 2
    assert equal(machines.read("b"), expected[1])
    assert equal(machines.read("b", 1), expected[0])
    assert machines.run("b", 3).version.number == 3
    assert equal(machines.read("a"), expected[2])
    assert equal(machines.read("c", 2), expected[1])
    assert machines.run("c", 3).steps_run == ()


def test_a_reader_fetches_only_what_it_reads_and_once(
    machines: Machines, server: str, expected: list[Tables]
) -> None:
    machines.run("a", 1)
    machines.run("a", 2)
    proxy = FaultyProxy(server)
    machines.address = machines.address.replace(server, proxy.address)
    assert equal(machines.read("b"), expected[1])
    # Nothing is listed: the keys are known.
    assert not any("list-type" in path for _, path in proxy.requests)
    # Version 2 shares one table with version 1.
    old = machines.enter("b").glob("versions/1/*.parquet")
    assert [path.name.partition("-")[0] for path in old] == ["sizes"]
    proxy.requests.clear()
    assert equal(machines.read("b"), expected[1])
    # One request asks whether the index is still the same.
    assert {method for method, path in proxy.requests} == {"GET"}
    assert {path.partition("/base/")[2] for _, path in proxy.requests} == {"current.json"}
    proxy.close()


def test_a_run_lists_nothing(machines: Machines, server: str) -> None:
    proxy = FaultyProxy(server)
    machines.address = machines.address.replace(server, proxy.address)
    for generation in (1, 2):
        machines.run("a", generation)
    assert {method for method, _ in proxy.requests} == {"GET", "PUT"}
    assert not any("list-type" in path for _, path in proxy.requests)
    proxy.close()


def test_a_run_that_may_not_write_does_not_begin(machines: Machines, server: str) -> None:
    class Steps(Watcher):
        def step_started(self, *_: Any) -> Any:
            raise AssertionError("a step has begun")

    proxy = FaultyProxy(server)
    machines.address = machines.address.replace(server, proxy.address)
    proxy.faults += [("PUT", "", 403)]
    with pytest.raises(TableError, match=r"does not allow it \(current\.json\)"):
        machines.run("a", 1, Steps())
    machines.run("a", 1)
    proxy.faults += [("PUT", "", 403)]
    with pytest.raises(TableError, match=r"does not allow it \(current\.json\)"):
        machines.run("a", 2, Steps())
    missing = machines.address.replace("s3://bucket", "s3://missing")
    machines.address = missing
    with pytest.raises(TableError, match=r"no bucket of s3://missing-.*: create it, or correct"):
        machines.run("a", 1, Steps())
    proxy.close()


def test_a_ledger_that_is_not_there_is_fetched(machines: Machines) -> None:
    machines.run("a", 1)
    with closing(Ledger(machines.enter("a"), 1)) as ledger:
        ledger.record_sent("key", "step", "unit", "model")
        ledger.record_replies({"key": "reply"})
    machines.run("a", 1)
    for name in ("a", "b"):
        (machines.enter(name) / "ledger.sqlite").unlink(missing_ok=True)
        machines.run(name, 1)
        with closing(Ledger(machines.enter(name), read_only=True)) as ledger:
            assert ledger.find_entry("key") is not None


@pytest.mark.parametrize("part", ["/commits/", "/objects/"])
def test_a_version_that_is_deleted_while_it_is_fetched_gives_way_to_the_next(
    part: str, machines: Machines, server: str, expected: list[Tables]
) -> None:
    machines.run("a", 1)
    proxy, cleaned = FaultyProxy(server), threading.Event()
    reader = Machines(
        machines.folder, machines.address.replace(server, proxy.address), machines.monkeypatch
    )
    machines.monkeypatch.setattr(bucket_module, "LATE_PAUSES", (0,))
    # All other files would be here before the first one is deleted, which may be one that stays.
    machines.monkeypatch.setattr(working_copy, "TRANSFERS_AT_ONCE", 1)

    def clean_up(method: str, path: str) -> Fault | None:
        if part in path and not cleaned.is_set():
            cleaned.set()
            machines.run("a", 2)
            collect_garbage(machines.store("a"), 1)
        return None

    proxy.take_fault = clean_up  # type: ignore[method-assign]
    assert equal(reader.read("b"), expected[1])
    assert cleaned.is_set()
    proxy.close()


def test_versions_are_rolled_back_and_deleted_by_any_machine(
    machines: Machines, expected: list[Tables]
) -> None:
    for generation in (1, 2, 3):
        machines.run("a", generation)
    assert roll_back(machines.store("b"), 1).number == 4
    assert equal(machines.read("a"), expected[0])
    assert machines.store("a").versions() == [1, 2, 3, 4]
    assert collect_garbage(machines.store("c"), 2).deleted == (1, 2)
    for name in ("a", "b", "c", "d"):
        assert machines.store(name).versions() == [3, 4]
        assert equal(machines.read(name, 3), expected[2])
        assert equal(machines.read(name), expected[0])
        with pytest.raises(TableError, match="has no version 1"):
            machines.read(name, 1)
    bucket = Bucket(machines.address)
    newest = json.loads(bucket.read("current.json")[0])["commit"]  # type: ignore[index]
    commit = Commit.from_json(bucket.read_json(f"commits/{newest}.json"))
    stored = {one["path"] for one in bucket.list_objects("objects/")}
    assert stored == {file.object for file in commit.files.values()}


def write_version(copy: WorkingCopy, number: int, text: str) -> None:
    folder = copy.folder / "versions" / str(number)
    folder.mkdir(parents=True)
    (folder / "numbers.parquet").write_text(text)
    (folder / "index.json").write_text(json.dumps({"made by": text}))


@pytest.mark.parametrize("n_rounds", [5, pytest.param(100, marks=pytest.mark.slow)])
def test_of_two_writers_one_wins(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_rounds: int
) -> None:
    set_credentials(monkeypatch)
    address = new_bucket(server)
    copies = [WorkingCopy.create(tmp_path / name, address) for name in ("a", "b")]
    for number in range(1, n_rounds + 1):
        for copy in copies:
            copy.pull(for_writing=True)
            write_version(copy, number, f"{copy.folder.name} {number}")

        def push(copy: WorkingCopy, number: int = number) -> str:
            try:
                copy.push(number)
            except WorkflowError:
                return ""
            return copy.folder.name

        with ThreadPoolExecutor(2) as threads:
            [winner] = filter(None, threads.map(push, copies))
        for copy in copies:
            # The loser makes its next version on that of the winner.
            if copy.folder.name != winner:
                shutil.rmtree(copy.folder / "versions" / str(number))
            copy.pull()
            for file in ("numbers.parquet", "index.json"):
                found = (copy.folder / "versions" / str(number) / file).read_text()
                assert f"{winner} {number}" in found


def test_a_run_that_another_has_overtaken_says_so(
    machines: Machines, expected: list[Tables]
) -> None:
    class Overtaken(Watcher):
        def step_finished(self, *_: Any) -> None:
            if not overtaken:
                overtaken.append(machines.run("b", 2))
                machines.enter("a")

    machines.run("a", 1)
    overtaken: list[RunResult] = []
    with pytest.raises(WorkflowError, match="Another run has changed s3://bucket-"):
        machines.run("a", 3, Overtaken())
    for name in ("a", "b", "c"):
        assert equal(machines.read(name), expected[1])
    assert machines.run("a", 3).version.number == 3
    assert equal(machines.read("b"), expected[2])


def test_a_bucket_that_cannot_be_reached(
    machines: Machines, server: str, expected: list[Tables], caplog: pytest.LogCaptureFixture
) -> None:
    machines.run("a", 1)
    proxy = FaultyProxy(server)
    machines.address = machines.address.replace(server, proxy.address)
    assert equal(machines.read("b"), expected[0])
    proxy.close()
    machines.monkeypatch.setattr(bucket_module, "MAX_HASTY_RETRIES", 0)
    # A reader goes on with the version that is here, and says so; a writer does not.
    assert equal(machines.read("b"), expected[0])
    assert "Version 1, which is on this machine, is read meanwhile." in caplog.text
    with pytest.raises(TableError, match="cannot be reached"):
        machines.run("b", 2)
    with pytest.raises(TableError, match="cannot be reached"):
        machines.read("c")


def test_a_server_that_shows_changes_late_changes_nothing(
    machines: Machines, server: str, expected: list[Tables]
) -> None:
    proxy = FaultyProxy(server)
    machines.address = machines.address.replace(server, proxy.address)
    machines.run("a", 1)
    machines.monkeypatch.setattr(bucket_module, "LATE_PAUSES", (0.05,) * 40)
    machines.monkeypatch.setattr(bucket_module, "CONFLICT_PAUSES", (0.05,) * 40)
    proxy.stale = StaleReads(proxy.host)
    machines.run("a", 2)
    for name in ("a", "b", "b", "a", "c", "a", "b"):
        # The machine that wrote a version never goes back; another one sees it late, but whole.
        found = machines.read(name)
        assert equal(found, expected[1]) or (name != "a" and equal(found, expected[0]))
    assert proxy.stale.n_told > 3
    proxy.close()


def test_an_old_pointer_does_not_take_a_version_away(machines: Machines) -> None:
    machines.run("a", 1)
    bucket = Bucket(machines.address)
    old = bucket.read("current.json")
    machines.run("a", 2)
    new = bucket.read("current.json")
    assert bucket.replace("current.json", old[0], new[1])  # type: ignore[index]
    assert read_number(machines, "b") == 1
    assert read_number(machines, "a") == 2
    # A writer moves the pointer again.
    assert machines.run("c", 3).version.number == 3
    assert read_number(machines, "b") == 3
    bucket.delete(["current.json"])
    assert read_number(machines, "b") == 3
    assert machines.run("b", 2).version.number == 4
    assert read_number(machines, "a") == 4


def test_a_bucket_that_was_emptied_is_told(machines: Machines) -> None:
    machines.run("a", 1)
    bucket = Bucket(machines.address)
    bucket.delete([one["path"] for one in bucket.list_objects()])
    machines.monkeypatch.setattr(bucket_module, "LATE_PAUSES", ())
    with pytest.raises(TableError, match=r"is empty, and had version 1: restore it, or delete /"):
        machines.run("a", 2)


def read_number(machines: Machines, name: str) -> int:
    version = machines.store(name).read_pointer()
    assert version is not None
    return version.number


def test_an_object_that_is_cut_off_or_lost_is_told(machines: Machines) -> None:
    machines.run("a", 1)
    machines.monkeypatch.setattr(bucket_module, "LATE_PAUSES", ())
    bucket = Bucket(machines.address)
    [key] = [one["path"] for one in bucket.list_objects("objects/") if "squares-" in one["path"]]
    content, _ = bucket.read(key)  # type: ignore[misc]
    bucket._store.put(key, content[:-1])
    with pytest.raises(TableError, match=r"-squares-.* is damaged or was cut off"):
        machines.read("b")
    bucket.delete([key])
    with pytest.raises(TableError, match=r"has lost objects/.*-squares-"):
        machines.read("b")
    # Whoever has the file can read on.
    assert machines.read("a")


def test_a_damaged_note_of_the_bucket_is_told(machines: Machines) -> None:
    machines.run("a", 1)
    folder = machines.enter("a")
    (folder / working_copy.STATE_FILE).write_text("{")
    with pytest.raises(TableError, match="delete the folder, which is a copy of a bucket"):
        read(folder)


def test_an_index_is_opened_by_its_address(machines: Machines) -> None:
    machines.run("a", 1)
    machines.enter("b")
    with pytest.raises(GraphRAGError, match=r"search_tables|embedding|text_unit"):
        # It has no tables for searches, and is found for all that.
        graphrag_query.open(machines.address)

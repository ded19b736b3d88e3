"""An index in a bucket: what its writers and readers on several machines see of each other."""

import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import graphrag_query
from graphrag_index.errors import GraphRAGError, StepError, TableError, WorkflowError
from graphrag_index.llm.ledger import Ledger
from graphrag_index.pipeline.history import collect_garbage, roll_back
from graphrag_index.pipeline.run import RunResult, Watcher, run_workflow
from graphrag_index.storage import bucket as bucket_module
from graphrag_index.storage import working_copy
from graphrag_index.storage.bucket import Bucket
from graphrag_index.storage.commits import Commit
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.working_copy import WorkingCopy, locate_working_copy
from graphrag_query.retrieval.index_store import IndexStore
from tests.fixtures.kill_history import WITH_VECTORS, Stopped, numbers_of
from tests.fixtures.object_server import FaultyProxy, new_bucket, serve_objects, set_credentials
from tests.fixtures.stale_reads import StaleReads

Tables = dict[str, pl.DataFrame]
WORDS = "community_full_content"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serve_objects() as address:
        yield address


class Machines:
    """Machines that know nothing of each other but an address: each has a cache of its own."""

    def __init__(self, folder: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.address, self.monkeypatch = folder, address, monkeypatch

    def enter(self, name: str) -> Path:
        """Be on a machine from now on; return the folder of the index there."""
        self.monkeypatch.setenv("GRAPHRAG_INDEX_CACHE", str(self.folder / name))
        return locate_working_copy(self.address)

    def run(self, name: str, generation: int, watcher: Watcher | None = None) -> RunResult:
        self.enter(name)
        settings = numbers_of(generation).model_copy(update={"output": self.address})
        return run_workflow(WITH_VECTORS, settings, self.folder, {}, watcher)

    def store(self, name: str) -> TableStore:
        return TableStore(self.enter(name))

    def read(self, name: str, number: int | None = None) -> Tables:
        """Return all that a reader on a machine finds in a version."""
        return read(self.enter(name), number)


def read(output: Path, number: int | None = None) -> Tables:
    index = IndexStore.open(output, as_of=number)
    found = {name: index.scan(name).collect() for name in index.version.tables}
    words = index.vectors(WORDS).find_matching_rows("number", 9, ["id"])
    return {**found, "found by words": words.sort("id").select("id")}


def equal(one: Tables, other: Tables) -> bool:
    return one.keys() == other.keys() and all(one[name].equals(other[name]) for name in one)


@pytest.fixture
def machines(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    set_credentials(monkeypatch)
    monkeypatch.setattr(working_copy, "SECONDS_BETWEEN_REFRESHES", 0)
    return Machines(tmp_path, new_bucket(server), monkeypatch)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Tables]:
    """The tables of the generations 1 to 3, made in a folder."""
    root = tmp_path_factory.mktemp("expected")
    for generation in (1, 2, 3):
        run_workflow(WITH_VECTORS, numbers_of(generation), root, {})
    return [read(root / "output", number) for number in (1, 2, 3)]


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


def race(tmp_path: Path, address: str, n_rounds: int) -> None:
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


def test_of_two_writers_one_wins(server: str, tmp_path: Path, monkeypatch: Any) -> None:
    set_credentials(monkeypatch)
    race(tmp_path, new_bucket(server), 10)


@pytest.mark.slow
def test_of_two_writers_one_wins_a_hundred_times(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_credentials(monkeypatch)
    race(tmp_path, new_bucket(server), 100)


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


CALLS = ("read", "download", "upload", "replace", "create", "delete")
CHANGES: dict[str, Callable[[Machines], object]] = {
    "run": lambda machines: machines.run("b", 3),
    "rollback": lambda machines: roll_back(machines.store("b"), 1),
    "gc": lambda machines: collect_garbage(machines.store("b"), 1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_writer_may_be_killed_before_some_requests(
    change: str, machines: Machines, server: str, expected: list[Tables]
) -> None:
    kill_writers(change, machines, server, expected, every=9)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_a_writer_may_be_killed_before_any_request(
    change: str, machines: Machines, server: str, expected: list[Tables]
) -> None:
    kill_writers(change, machines, server, expected, every=1)


def kill_writers(
    change: str, machines: Machines, server: str, expected: list[Tables], every: int
) -> None:
    after = {"run": expected[2], "rollback": expected[0], "gc": expected[1]}[change]
    counter = {"left": 0}

    def stop_before(name: str) -> Callable[..., Any]:
        call = getattr(Bucket, name)

        def counted(self: Bucket, *arguments: Any, **options: Any) -> Any:
            if counter["left"]:
                counter["left"] -= 1
                if not counter["left"]:
                    raise Stopped
            return call(self, *arguments, **options)

        return counted

    for name in CALLS:
        machines.monkeypatch.setattr(Bucket, name, stop_before(name))
    for number in range(1, 500, every):
        root = machines.folder / str(number)
        now = Machines(root, new_bucket(server), machines.monkeypatch)
        now.run("a", 1)
        now.run("a", 2)
        counter["left"] = number
        try:
            CHANGES[change](now)
        except Stopped:
            pass
        except StepError as error:  # A step was fetching a table.
            if not isinstance(error.__cause__, Stopped):
                raise
        was_stopped, counter["left"] = not counter["left"], 0
        # Readers on other machines see the version before, or the one after.
        for name in ("a", "c"):
            found = now.read(name)
            assert equal(found, expected[1]) or equal(found, after), (number, name)
        # The killed writer, or another one, goes on.
        if number % 2:
            shutil.rmtree(root / "b")
        if not (change == "rollback" and equal(now.read("d"), expected[0])):
            CHANGES[change](now)
        for name in ("a", "b", "c", "d"):
            assert equal(now.read(name), after), (number, name)
        if not was_stopped:
            break
    assert number > every


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
    bucket.write("current.json", old[0])  # type: ignore[index]
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

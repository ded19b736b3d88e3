"""The board of the worker that leads: what it does itself, and what it leaves to others."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from graphrag_index.errors import StepError
from graphrag_index.pipeline.shared_calls import CallSender, ShardMaker
from graphrag_index.pipeline.task_board import LostLeadError, Task, TaskBoard
from graphrag_index.pipeline.tasks import (
    BOARD,
    LEADER,
    MAX_ATTEMPTS,
    Ending,
    Result,
    describe_program,
    remove_finished_work,
)
from graphrag_index.pipeline.worker import Follower
from graphrag_index.storage.bucket import Bucket
from graphrag_index.storage.leases import Leases
from tests.fixtures.commands import wait_for
from tests.fixtures.object_server import new_bucket, serve_objects, set_credentials

SECONDS = 0.5


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serve_objects() as address:
        yield address


class Leader:
    """A worker that leads, and doubles the content of its tasks."""

    def __init__(self, address: str) -> None:
        self.leases = Leases(Bucket(address), SECONDS)
        self.bucket, self.done = self.leases.bucket, list[str]()
        lease = self.leases.take(LEADER)
        assert lease is not None
        self.lease = lease
        self.board = TaskBoard(self.leases, lease, self.double, 1)

    def double(self, task: Task) -> Result:
        self.done.append(task.name)
        return Result({}, task.content * 2)

    def close(self, ending: Ending | None = None) -> None:
        self.board.close(ending)
        self.leases.close()


@pytest.fixture
def address(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    set_credentials(monkeypatch)
    return new_bucket(server)


@pytest.fixture
def function(tmp_path: Path) -> Path:
    path = tmp_path / "function-1"
    path.write_bytes(b"the function")
    return path


def keys(address: str) -> set[str]:
    return {str(one["path"]) for one in Bucket(address).list_objects("work/")}


def test_a_leader_without_others_does_its_tasks_and_keeps_their_results(
    address: str, function: Path
) -> None:
    with closing(Leader(address)) as first:
        done = [first.board.submit(f"part-{n}", b"%d" % n, function) for n in range(5)]
        assert [first.board.wait(one).content for one in done] == [
            b"00",
            b"11",
            b"22",
            b"33",
            b"44",
        ]
        assert not any("/tasks/" in key or "/leases/" in key for key in keys(address))
    with closing(Leader(address)) as second:
        # Another content shows that nothing is done again.
        result = second.board.wait(second.board.submit("part-3", b"other", function))
        assert result.content == b"33"
        assert second.done == []
        second.close(Ending(0, "", ("part-1",)))
    assert keys(address) == {"work/board.json", "work/results/part-1"}


def test_what_was_kept_is_deleted_when_nobody_leads(address: str, function: Path) -> None:
    bucket = Bucket(address)
    bucket.write("current.json", b"{}")
    with closing(Leader(address)) as leader:
        leader.board.wait(leader.board.submit("part-1", b"1", function))
        remove_finished_work(bucket)
        assert "work/results/part-1" in keys(address)
        leader.close(Ending(0, "", ("part-1",)))
    remove_finished_work(bucket)
    assert keys(address) == set()
    assert bucket.exists("current.json")


def test_results_stay_after_a_failure(address: str, function: Path) -> None:
    with closing(Leader(address)) as leader:
        leader.board.wait(leader.board.submit("part-1", b"1", function))
        leader.close(Ending(1, "The disk of the database is full."))
    assert "work/results/part-1" in keys(address)
    board = Bucket(address).read_json("work/board.json")
    assert board["ended"]["message"] == "The disk of the database is full."


def test_a_task_that_another_worker_has_leased_is_left_to_it(address: str, function: Path) -> None:
    bucket = Bucket(address)
    bucket.write("work/tasks/part-1", b"1")
    with closing(Leases(bucket, SECONDS)) as other, closing(Leader(address)) as leader:
        lease = other.take("work/leases/part-1")
        assert lease is not None
        done = leader.board.submit("part-1", b"1", function)
        time.sleep(3 * SECONDS)
        assert not done.done()
        bucket.create("work/results/part-1", Result({"cpu_seconds": 2.5}, b"of another").encode())
        other.keep(lease)
        assert leader.board.wait(done).content == b"of another"
        assert leader.board.cpu_seconds_of_others == 2.5
        assert leader.done == []


def test_a_damaged_result_is_made_again(address: str, function: Path) -> None:
    bucket = Bucket(address)
    bucket.write("work/tasks/part-1", b"1")
    bucket.write("work/results/part-1", Result({}, b"one").encode()[:-1])
    bucket.write("work/results/part-2", b"not even a header")
    with closing(Leader(address)) as leader:
        for number in ("1", "2"):
            done = leader.board.submit(f"part-{number}", number.encode(), function)
            assert leader.board.wait(done).content == number.encode() * 2
        stored = bucket.read("work/results/part-1")
        assert stored is not None
        assert Result.decode(stored[0]) == Result({}, b"11")


def test_a_task_whose_worker_is_gone_is_done_by_the_leader(address: str, function: Path) -> None:
    bucket = Bucket(address)
    bucket.write("work/tasks/part-1", b"1")
    with closing(Leases(bucket, SECONDS)) as killed, closing(Leader(address)) as leader:
        lease = killed.take("work/leases/part-1")
        assert lease is not None
        killed.keep(lease)
        result = leader.board.wait(leader.board.submit("part-1", b"1", function))
        assert result.content == b"11"


def leave_result_and_lease(bucket: Bucket) -> bytes:
    """Leave what a worker leaves that is killed after it has stored its result."""
    bucket.write("work/tasks/part-1", b"1")
    bucket.write("work/results/part-1", Result({}, b"one").encode())
    lease = json.dumps({"holder": "killed", "seconds": 0.1, "attempt": 1}).encode()
    bucket.write("work/leases/part-1", lease)
    return lease


def test_the_lease_of_a_task_with_a_result_stays_for_workers_with_an_old_board(
    address: str, tmp_path: Path
) -> None:
    bucket = Bucket(address)
    lease = leave_result_and_lease(bucket)
    with (
        closing(Leases(bucket, SECONDS)) as leader,
        closing(Leases(bucket, SECONDS)) as leases,
        closing(ShardMaker(1, tmp_path)) as maker,
        closing(CallSender({})) as sender,
        closing(Follower(leases, maker, sender, tmp_path)) as follower,
        ThreadPoolExecutor(1) as thread,
    ):
        leader.take(LEADER)
        board = {"leader": leader.holder, **describe_program()}
        bucket.write(BOARD, json.dumps({**board, "tasks": [["part-1", "function-1"]]}).encode())
        working = thread.submit(follower.work)
        while (found := bucket.read("work/leases/part-1")) and found[0] == lease:
            time.sleep(0.01)
        bucket.write(BOARD, json.dumps({**board, "ended": Ending(0, "")._asdict()}).encode())
        assert working.result() is not None
    assert follower.n_done == 0
    # The leader deletes it with the task. Until then nobody takes a first lease of the task.
    assert "work/leases/part-1" in keys(address)


def test_the_leader_takes_the_result_of_a_worker_that_was_killed(
    address: str, function: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = Bucket(address)
    leave_result_and_lease(bucket)
    kept = list[str]()
    with closing(Leader(address)) as leader:
        monkeypatch.setattr(leader.leases, "release", lambda lease: kept.remove(lease.key))
        monkeypatch.setattr(leader.leases, "keep", lambda lease: kept.append(lease.key))
        task = Task("part-1", b"1", function)
        task.is_published = True
        assert leader.board._do_own(task) is None
        time.sleep(0.2)
        assert leader.board._do_own(task) is None
        assert kept == ["work/leases/part-1"]
        assert leader.done == []
        monkeypatch.undo()


def test_a_task_that_ends_its_workers_is_told(address: str, function: Path) -> None:
    bucket = Bucket(address)
    bucket.write("work/tasks/part-1", b"1")
    content = {"holder": "x", "seconds": 0.1, "attempt": MAX_ATTEMPTS}
    bucket.write("work/leases/part-1", json.dumps(content).encode())
    with closing(Leader(address)) as leader:
        done = leader.board.submit("part-1", b"1", function)
        with pytest.raises(StepError, match="A shard has ended 3 workers, possibly because memory"):
            leader.board.wait(done)
        assert leader.done == []


def test_an_error_of_a_function_reaches_the_caller(
    address: str, function: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Leader(address)) as leader:
        monkeypatch.setattr(leader.board, "_perform", lambda task: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            leader.board.wait(leader.board.submit("part-1", b"1", function))
        assert "work/results/part-1" not in keys(address)


def test_a_leader_that_another_has_replaced_stops(address: str, function: Path) -> None:
    with closing(Leader(address)) as slow:
        slow.leases.keep(slow.lease)  # It is not renewed any more.
        with closing(Leases(Bucket(address), SECONDS)) as other:
            other.take(LEADER)
            time.sleep(1.1 * SECONDS)
            assert other.take(LEADER) is not None
            slow.lease.is_lost = True  # The next renewal would tell it.
            with pytest.raises(LostLeadError, match="Another worker leads the run"):
                slow.board.wait(slow.board.submit("call-1", b"a request"))
            slow.close(Ending(0, ""))
            # What the new leader needs stays.
            assert other.look_at(LEADER) is not None


def test_requests_are_published_when_there_are_others(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = Bucket(address)
    with closing(Leader(address)) as leader:
        bucket.write("work/workers/other-3", b"1")
        done = leader.board.submit("call-1", b"a request")
        published = ["call-1", ""]
        wait_for(lambda: published in bucket.read_json("work/board.json").get("tasks", []))
        assert leader.board.n_slots == 4
        assert bucket.read("work/tasks/call-1")[0] == b"a request"  # type: ignore[index]
        # A request that failed may be sent again at once, so nothing of it stays.
        bucket.create("work/results/call-1", Result({"failed": "retry"}, b"").encode())
        assert leader.board.wait(done).header == {"failed": "retry"}
        assert not {"work/results/call-1", "work/tasks/call-1"} & keys(address)
        # The other worker is silent, so the leader takes the request back.
        again = leader.board.submit("call-1", b"a request")
        wait_for(lambda: not leader.board.n_others)
        lease = leader.board.take_back("call-1")
        assert lease is not None
        assert not again.done()
        leader.board.give_up("call-1", lease)
        assert not {"work/leases/call-1", "work/tasks/call-1"} & keys(address)


def test_a_request_that_failed_under_the_leader_before_is_published_again(address: str) -> None:
    bucket = Bucket(address)
    bucket.write("work/tasks/call-1", b"a request")
    bucket.write("work/results/call-1", Result({"failed": "retry"}, b"").encode())
    with closing(Leader(address)) as leader:
        assert leader.board.was_published("call-1")
        done = leader.board.submit("call-1", b"a request")
        assert leader.board.wait(done).header == {"failed": "retry"}
        assert not leader.board.was_published("call-1")
        bucket.write("work/workers/other-1", b"1")
        again = leader.board.submit("call-1", b"a request")
        wait_for(lambda: "work/tasks/call-1" in keys(address))
        assert not again.done()

"""Writers of an index in a bucket that are killed at any request, while others read the index."""

import random
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_index.errors import StepError
from graphrag_index.pipeline.history import collect_garbage, roll_back
from graphrag_index.storage.bucket import Bucket
from graphrag_index.storage.working_copy import locate_working_copy
from tests.fixtures.commands import MAX_SECONDS, command, environment, write_project
from tests.fixtures.kill_history import Machines, Stopped, Tables, equal, read
from tests.fixtures.object_server import Fault, FaultyProxy, new_bucket

STEPS = [f"tests.fixtures.small_steps:{name}" for name in ("list_numbers", "square")]
STEPS += [f"tests.fixtures.small_steps:{name}" for name in ("measure", "embed")]
# A command sends about this many requests.
MAX_REQUESTS = 45


CALLS = ("read", "download", "upload", "replace", "create", "delete")
CHANGES: dict[str, Callable[[Machines], object]] = {
    "run": lambda machines: machines.run("b", 3),
    "rollback": lambda machines: roll_back(machines.store("b"), 1),
    "gc": lambda machines: collect_garbage(machines.store("b"), 1),
}


@pytest.mark.parametrize("every", [22, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("change", CHANGES)
def test_a_writer_may_be_killed_before_any_request(
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


class Reader(threading.Thread):
    """Reads all tables again and again, and keeps what was not those of a whole version."""

    def __init__(self, output: Path, whole: list[Tables]) -> None:
        super().__init__(daemon=True)
        self.output, self.whole = output, whole
        self.stopped = threading.Event()
        self.problems: list[str] = []
        self.n_reads = 0

    def run(self) -> None:
        while not self.stopped.wait(0.1):
            try:
                found = read(self.output)
            except Exception as error:  # noqa: BLE001
                self.problems.append(f"{type(error).__name__}: {error}")
                continue
            self.n_reads += 1
            if not any(equal(found, one) for one in self.whole):
                self.problems.append(str(found))


@pytest.mark.parametrize("n_kills", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_killed_commands_show_readers_nothing_half(
    machines: Machines, server: str, expected: list[Tables], n_kills: int
) -> None:
    root, chance = write_project(machines.folder / "project", STEPS), random.Random(n_kills)
    direct, proxy = machines.address, FaultyProxy(server)
    address = direct.replace(server, proxy.address)
    machines.run("first", 1)
    machines.enter("reader")
    reader = Reader(locate_working_copy(direct), expected)
    reader.start()
    writers: list[subprocess.Popen[bytes]] = []
    left = n_killed = 0

    def kill_at_request(method: str, path: str) -> Fault | None:
        nonlocal left, n_killed
        left -= 1
        if left == 0:
            writers[-1].send_signal(signal.SIGKILL)
            n_killed += 1
            # Half of these requests have arrived at the server.
            return chance.choice([500, None])
        return None

    proxy.take_fault = kill_at_request  # type: ignore[method-assign]
    while n_killed < n_kills:
        choice = f"--set=steps.list_numbers.generation={chance.randint(1, 3)}"
        task = ["gc", "--keep", "1"] if chance.random() < 0.3 else ["run", "--quiet", choice]
        left = chance.randint(1, MAX_REQUESTS)
        with subprocess.Popen(
            [*command(*task, f"--set=output={address}"), f"--root={root}"],
            env=environment(GRAPHRAG_INDEX_CACHE=str(machines.folder / chance.choice("abc"))),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as writer:
            writers.append(writer)
            _, told = writer.communicate(timeout=MAX_SECONDS)
            assert writer.returncode in (0, -signal.SIGKILL), told
    reader.stopped.set()
    reader.join()
    assert reader.problems == []
    assert reader.n_reads > 3
    # Any machine goes on, and nothing that the index needs is missing.
    machines.run("d", 3)
    for name in ("a", "b", "c", "d", "reader", "new"):
        assert equal(machines.read(name), expected[2])
    proxy.close()

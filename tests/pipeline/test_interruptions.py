"""Runs that are killed or stopped, or have no room: what readers see, and what comes after."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

import graphrag_query
from graphrag_index.storage.table_store import TableStore, open_index
from graphrag_query.answer import Outcome
from graphrag_query.store.index_store import IndexStore
from tests.conftest import REPOSITORY, run_project
from tests.fixtures.commands import (
    MAX_SECONDS,
    call,
    command,
    environment,
    small_project,
    start,
    wait_for,
    write_project,
)
from tests.fixtures.small_index import read_files

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs fork, flock and signals")


def read_all(root: Path) -> dict[str, pl.DataFrame]:
    """Every table of an index, as a reader gets them from one opening."""
    model = IndexStore.open(root / "output")
    return {name: model.scan(name).collect() for name in model.version.tables}


def generation(root: Path) -> int:
    """The one generation of which all tables of an index are."""
    found: set[int] = set()
    for frame in read_all(root).values():
        if "generation" in frame.columns:
            found |= set(frame["generation"])
    assert len(found) == 1
    return found.pop()


def is_in_last_step(root: Path) -> bool:
    """Whether a run of the small project has finished all steps but one."""
    return any(record.name == "measure" for record in TableStore(root / "output").read_journal(1))


def names(root: Path) -> set[str]:
    """Every file below a folder, but for the vectors."""
    return {
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and "lancedb" not in path.parts
    }


@linux
@pytest.mark.parametrize(
    ("every", "detour_at_every"), [(3, 4), pytest.param(1, 1, marks=pytest.mark.slow)]
)
def test_a_kill_before_any_change_harms_no_reader_and_the_next_run_leaves_no_trace_of_it(
    tmp_path: Path, every: int, detour_at_every: int
) -> None:
    subprocess.run(
        [
            *(sys.executable, "-m", "tests.fixtures.kill_everywhere"),
            *(str(tmp_path), str(every), str(detour_at_every)),
        ],
        env=environment(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"),
        check=True,
        timeout=MAX_SECONDS,
    )
    assert generation(tmp_path / "base") == 0
    assert generation(tmp_path / "undisturbed") == 1
    expected, files = read_files(tmp_path / "undisturbed"), names(tmp_path / "undisturbed")

    numbers = sorted(int(path.name) for path in (tmp_path / "killed").iterdir())
    assert numbers == list(range(1, every * len(numbers) + 1, every))
    assert every * len(numbers) > 20
    seen = [generation(tmp_path / "killed" / str(number)) for number in numbers]
    # One change of all moves readers from the old index to the new one.
    assert seen == sorted(seen)
    assert set(seen) == {0, 1}
    ends = [*tmp_path.glob("resumed/*"), *tmp_path.glob("detour/*")]
    assert len(ends) == len(numbers) + -(-len(numbers) // detour_at_every)
    for root in ends:
        assert read_files(root) == expected, f"{root} differs"
        left = {name for name in names(root) if "/versions/" not in name}
        assert left == {name for name in files if "/versions/" not in name}
        # Each generation has other tables than the one before.
        for folder in root.glob("output/versions/*"):
            assert sorted(path.name.split("-")[0] for path in folder.iterdir()) == [
                *("index.json", "numbers", "squares", "steps.json")
            ]


@linux
@pytest.mark.parametrize(
    ("kills", "steps"),
    [
        (4, ["list_numbers", "square", "measure", "add_up"]),
        pytest.param(
            50, ["list_numbers", "square", "measure", "embed", "add_up"], marks=pytest.mark.slow
        ),
    ],
)
def test_kills_at_any_moment_harm_no_reader(tmp_path: Path, kills: int, steps: list[str]) -> None:
    settings = "steps: {list_numbers: {batches: 3, pause: 0.05}, add_up: {pause: 0.1}}\n"
    paths = [f"tests.fixtures.small_steps:{name}" for name in steps]
    root = write_project(tmp_path / "killed", paths, settings)
    began = time.monotonic()
    assert call(root, "run").returncode == 0
    length = time.monotonic() - began

    seen = [0]
    dice = random.Random(7)
    for kill in range(1, kills + 1):
        with start(root, "run", "--set", f"steps.list_numbers.generation={kill}") as process:
            moment = time.monotonic() + dice.uniform(0.3, 1.1) * length
            while time.monotonic() < moment and process.poll() is None:
                seen.append(generation(root))
            process.kill()
        seen.append(generation(root))
    assert seen == sorted(seen)

    final = ("run", "--set", "steps.list_numbers.generation=0")
    assert call(root, *final).returncode == 0
    undisturbed = write_project(tmp_path / "undisturbed", paths, settings)
    assert call(undisturbed, *final).returncode == 0
    assert read_files(root) == read_files(undisturbed)
    assert not [*root.rglob("*.tmp")]
    _, version = open_index(root / "output")
    assert max(int(path.name) for path in root.glob("output/versions/*")) <= version.number


@linux
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_says_how_to_go_on_and_keeps_what_is_finished(
    tmp_path: Path, stop: signal.Signals
) -> None:
    root = small_project(tmp_path / "a project")
    with start(root, "run", "--set", "steps.add_up.pause=60") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().split()[:2] for _ in range(3)]
        process.send_signal(stop)
        out, err = process.communicate(timeout=MAX_SECONDS)
    assert process.returncode == 130
    assert err == (
        "Stopped. The index has not changed, and finished steps are kept: "
        "`graphrag-index run` continues with the interrupted step.\n"
    )
    assert lines == [["1", "list_numbers"], ["2", "square"], ["3", "measure"]]
    assert out == ""
    assert not [*root.rglob("*.tmp")]
    again = call(tmp_path, "run", "--root", "a project")
    assert again.returncode == 0
    assert again.stdout.count("unchanged") == 3


@linux
def test_of_two_runs_at_once_the_second_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    root = small_project(tmp_path)
    with start(root, "run", "--quiet", "--set", "steps.add_up.pause=3") as first:
        wait_for(lambda: is_in_last_step(root), first)
        second = call(root, "run")
        assert first.communicate(timeout=MAX_SECONDS) == ("", "")
    assert second.returncode == 2
    assert second.stdout == ""
    assert second.stderr == (
        f"Error: Another run is writing to {root / 'output'}: wait for it to finish, "
        "or give this one another folder with `--set output=FOLDER`.\n"
    )
    assert first.returncode == 0
    assert read_all(root)["totals"]["total"].item() == 1 + 4 + 9 + 3


@linux
def test_a_full_disk_is_one_sentence_and_the_next_run_goes_on(tmp_path: Path) -> None:
    root = small_project(tmp_path)
    assert call(root, "run").returncode == 0
    before = names(root)

    many = ("--set", "steps.list_numbers.generation=1", "--set", "steps.list_numbers.count=50000")
    # No file may grow beyond this many kilobytes.
    limited = subprocess.run(
        ["bash", "-c", 'ulimit -f 60; exec "$@"', "bash", *command("run", *many)],
        cwd=root,
        env=environment(PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True,
        encoding="utf-8",
        timeout=MAX_SECONDS,
        check=False,
    )
    assert limited.stderr == (
        "Error: The disk is full: make room and run again; finished steps are kept "
        "and the index is as it was.\n"
    )
    assert limited.returncode == 1
    assert limited.stdout == ""
    assert generation(root) == 0
    assert names(root) == before

    assert call(root, "run", *many).returncode == 0
    assert generation(root) == 1
    assert read_all(root)["numbers"].height == 50_000


@linux
def test_an_output_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    root = small_project(tmp_path)
    output = root / "output"
    output.mkdir()
    output.chmod(0o500)
    immutable = os.geteuid() == 0 and shutil.which("chattr") is not None
    if immutable:  # a mode does not keep root from writing
        subprocess.run(["chattr", "+i", str(output)], check=False, capture_output=True)
    try:
        if os.access(output, os.W_OK):
            pytest.skip("this user can write everywhere")
        result = call(root, "run")
    finally:
        if immutable:
            subprocess.run(["chattr", "-i", str(output)], check=False, capture_output=True)
        output.chmod(0o700)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr in {
        f"Error: {reason} ({output / '.lock'}).\n"
        for reason in ("Permission denied", "Operation not permitted")
    }


PEOPLE = ["Ada Vance", "Boris Kemp", "Carla Diem", "Dora Lund", "Emil Roth"]
QUESTIONS = ["What did Carla Diem sign?", "Who met Dora Lund?"]
TABLES = ("documents", "text_units", "entities", "relationships", "text_unit_vectors")


def write_generation(root: Path, number: int) -> None:
    """Write all documents anew: each says in every sentence of which generation it is."""
    shutil.rmtree(root / "input", ignore_errors=True)
    (root / "input").mkdir()
    for i, (one, other) in enumerate(pairwise(PEOPLE)):
        text = (
            f"{one} met {other} in Oslo in the round {number}. "
            f"{one} signed the paper of round {number} in Bergen. "
            f"{other} left Oslo after the round {number}."
        )
        # One more document in every other generation.
        if i or number % 2:
            (root / "input" / f"{i}.txt").write_text(text, encoding="utf-8")


def project(root: Path) -> Path:
    root.mkdir()
    shutil.copytree(REPOSITORY / "workflows", root / "workflows")
    (root / "settings.yaml").write_text("workflow: embedded\n", encoding="utf-8")
    return root


class Reader(threading.Thread):
    """Asks until it is stopped; keeps what went wrong, and which generations it saw."""

    def __init__(self, output: Path) -> None:
        super().__init__()
        self.output = output
        self.stopped = threading.Event()
        self.problems: list[str] = []
        self.seen: list[int] = []
        self.n_answers = 0

    def run(self) -> None:
        self.problems.append("a question raised an error")
        # Without a pause it would take half of the processor time from the runs.
        while not self.stopped.wait(0.1) and len(self.problems) == 1:
            self._ask()
        self.problems.remove("a question raised an error")

    def _ask(self) -> None:
        with graphrag_query.open(self.output) as index:
            texts = dict(index.store.scan("documents").select("id", "text").collect().iter_rows())
            generations = {number for text in texts.values() for number in rounds(text)}
            answers = [index.local(question) for question in QUESTIONS]
            answers.append(index.global_("What are the main themes?"))
        if len(generations) != 1:
            self.problems.append(f"documents of the rounds {generations}")
        self.seen += generations
        for answer in answers:
            self.n_answers += 1
            if answer.outcome is not Outcome.ANSWERED:
                self.problems.append(f"{answer.outcome}: {answer.text}")
            if not rounds(answer.text) <= generations:
                self.problems.append(f"in round {generations}: {answer.text}")
            for citation in answer.citations:
                span = texts[citation.document_id][citation.start_char : citation.end_char]
                if citation.quote not in span:
                    self.problems.append(f"{citation.quote!r} is not {span!r}")


def rounds(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"round (\d+)", text)}


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("n_kills", [1, pytest.param(50, marks=pytest.mark.slow)])
def test_a_reader_sees_whole_versions_only(tmp_path: Path, n_kills: int) -> None:
    root = project(tmp_path / "killed")
    write_generation(root, 0)
    began = time.monotonic()
    run_command(root).wait()
    seconds = time.monotonic() - began
    reader = Reader(root / "output")
    reader.start()
    moments = random.Random(7)
    n_killed = 0
    try:
        for number in range(1, n_kills + 1):
            write_generation(root, number)
            process = run_command(root)
            try:
                process.wait(timeout=moments.uniform(0.2, 0.9 if n_kills == 1 else 1.3) * seconds)
            except subprocess.TimeoutExpired:
                n_killed += 1
            process.kill()
            process.wait()
        write_generation(root, n_kills + 1)
        assert run_command(root).wait() == 0
        n_answers = reader.n_answers
        while reader.is_alive() and reader.n_answers < n_answers + 6:
            time.sleep(0.05)
    finally:
        reader.stopped.set()
        reader.join()
    assert reader.problems == []
    assert n_killed > 0
    assert reader.seen[0] == 0
    assert reader.seen[-1] == n_kills + 1

    clean = project(tmp_path / "clean")
    write_generation(clean, n_kills + 1)
    run_project(clean)
    assert digests(clean) == digests(root)


def run_command(root: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command("run", "--quiet"), cwd=root, env=environment())


def digests(root: Path) -> dict[str, str]:
    _, version = open_index(root / "output")
    return {name: version.tables[name].digest for name in TABLES}

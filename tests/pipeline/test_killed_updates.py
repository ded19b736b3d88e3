"""Updates that are killed at any moment while a reader asks questions all the time."""

import random
import re
import shutil
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

import graphrag_query
from graphrag_index.storage.table_store import open_index
from graphrag_query.answer import Outcome
from tests.conftest import REPOSITORY, run_project
from tests.fixtures.commands import command, environment

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
        while not self.stopped.is_set() and len(self.problems) == 1:
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
